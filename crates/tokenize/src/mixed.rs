use std::ops::Range;

use crate::jieba::JiebaCutter;
use crate::script::han_runs;
use crate::tokenizer::Tokenizer;
use crate::words::word_spans;

/// Runs of Han characters through jieba, everything between them as Unicode words.
pub(crate) struct Mixed {
    jieba: JiebaCutter,
}

impl Mixed {
    pub(crate) fn new(jieba: JiebaCutter) -> Self {
        Self { jieba }
    }
}

impl Tokenizer for Mixed {
    fn spans(&self, text: &str, spans: &mut Vec<Range<usize>>) {
        for (han, base, run) in han_runs(text) {
            if han {
                self.jieba.cut(run, base, spans);
            } else {
                word_spans(run, base, spans);
            }
        }
    }
}
