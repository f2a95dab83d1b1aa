use std::ops::Range;

use crate::tokenizer::Tokenizer;

/// The parts of the text that ASCII punctuation and ASCII white space separate: the words of the crate gaoya 0.2.2.
pub(crate) struct AsciiWords;

impl Tokenizer for AsciiWords {
    fn spans(&self, text: &str, spans: &mut Vec<Range<usize>>) {
        let bytes = text.as_bytes();
        let mut start = 0;
        while start < bytes.len() {
            let word =
                bytes[start..].iter().position(|&byte| SEPARATES[usize::from(byte)]).unwrap_or(bytes.len() - start);
            spans.extend((word > 0).then_some(start..start + word));
            start += word + 1;
        }
    }
}

/// By the byte: those of other characters are none of these.
const SEPARATES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        table[byte as usize] = byte.is_ascii_punctuation() || byte.is_ascii_whitespace();
        byte += 1;
    }
    table
};
