use std::ops::Range;

use crate::jieba::JiebaCutter;
use crate::tokenizer::Tokenizer;
use crate::words::{Symbols, words_and_han};

/// jieba cuts runs of Han characters; the text between them is cut into Unicode words.
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
