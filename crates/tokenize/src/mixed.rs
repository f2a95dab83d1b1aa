use std::ops::Range;

use crate::jieba::JiebaCutter;
use crate::tokenizer::Tokenizer;
use crate::words::{Symbols, words_and_han};

/// Runs of Han characters through jieba, everything between them as Unicode words.
pub(crate) struct Mixed {
    pub(crate) jieba: JiebaCutter,
    pub(crate) symbols: Symbols,
}

impl Tokenizer for Mixed {
    fn spans(&self, text: &str, spans: &mut Vec<Range<usize>>) {
        words_and_han(text, self.symbols, spans, |run, start, spans| self.jieba.cut(run, start, spans));
    }

    fn drops_symbols(&self) -> bool {
        self.symbols == Symbols::Dropped
    }
}
