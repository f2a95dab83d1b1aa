use std::ops::Range;

use crate::jieba::JiebaCutter;
use crate::script::{han_run_len, is_han};
use crate::tokenizer::Tokenizer;
use crate::words::{Scan, Symbols};

/// Runs of Han characters through jieba, everything between them as Unicode words.
pub(crate) struct Mixed {
    pub(crate) jieba: JiebaCutter,
    pub(crate) symbols: Symbols,
}

impl Tokenizer for Mixed {
    fn spans(&self, text: &str, spans: &mut Vec<Range<usize>>) {
        let mut scan = Scan { text, at: 0, symbols: self.symbols, spans };
        while scan.at < text.len() {
            scan.take_ascii();
            match han_run_len(text, scan.at) {
                0 => scan.take_other(is_han),
                n => {
                    self.jieba.cut(&text[scan.at..scan.at + n], scan.at, scan.spans);
                    scan.at += n;
                }
            }
        }
    }

    fn drops_symbols(&self) -> bool {
        self.symbols == Symbols::Dropped
    }
}
