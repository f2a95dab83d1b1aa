use std::ops::Range;

use crate::jieba::JiebaCutter;
use crate::script::is_han;
use crate::tokenizer::Tokenizer;
use crate::words::{Symbols, WordCut, words_and_runs};

/// jieba cuts runs of Han characters; the text between them is cut into Unicode words.
pub(crate) struct Mixed {
    pub(crate) jieba: JiebaCutter,
    pub(crate) cut: WordCut,
}

impl Tokenizer for Mixed {
    fn spans(&self, text: &str, spans: &mut Vec<Range<usize>>) {
        words_and_runs(text, self.cut, spans, is_han, |run, start, spans| self.jieba.cut(run, start, spans));
    }

    fn drops_symbols(&self) -> bool {
        self.cut.symbols == Symbols::Dropped
    }
}
