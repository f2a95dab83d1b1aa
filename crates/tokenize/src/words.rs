use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::LazyLock;

use unicode_normalization::char::is_combining_mark;
use unicode_segmentation::UnicodeSegmentation;

use crate::script::{is_alphanumeric, is_common_han_at, is_unspaced, run_len};
use crate::tokenizer::Tokenizer;

/// Unicode words (UAX #29), cut further at every character that is not a letter, digit, mark or `_`: each longest run
/// of letters, digits, marks and `_` is cut at the standard's boundaries inside it.
///
/// In alphabetic text the result is that of `\w+`: `can't` is `can` and `t`, `3.14` is `3` and `14`, `org.example` is
/// two words, and `foo_bar` is one. The standard's words alone would keep the first three whole, and then one edit
/// inside a long dotted name would replace a rare feature instead of leaving its common parts alone: macro F1 of log
/// counts over the six labelled sets at distance 3 / 6 is .863 / .965 without the further cut, and .878 / .968 with it
/// (both with jieba's hidden Markov model for Han, means over six hash seeds). In scripts without spaces the standard's
/// boundaries cut text that `\w+` leaves in one piece: each Han and hiragana character is a word, and a katakana run is
/// one.
pub(crate) struct Words {
    pub(crate) cut: WordCut,
}

/// The settings of the tokenizers that cut words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WordCut {
    pub(crate) symbols: Symbols,
    /// The least number of ASCII characters without white space that are one token: base64, hashes and long links.
    /// `None` if no run is.
    pub(crate) long_run: Option<NonZeroUsize>,
}

/// The treatment of characters that are neither in a word nor white space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Symbols {
    /// Each is a token.
    Kept,
    /// None of them is a token.
    Dropped,
}

impl Tokenizer for Words {
    fn spans(&self, text: &str, spans: &mut Vec<Range<usize>>) {
        self.spans_while(|_| true, text, spans);
    }

    fn spans_of_common(&self, text: &str, spans: &mut Vec<Range<usize>>) -> bool {
        self.spans_while(|scan| !scan.has_others, text, spans)
    }

    fn drops_symbols(&self) -> bool {
        self.cut.symbols == Symbols::Dropped
    }
}

impl Words {
    /// Cuts the text while the scan `goes_on`, and returns whether it does to the end.
    #[inline]
    fn spans_while(&self, goes_on: impl Fn(&Scan<'_>) -> bool, text: &str, spans: &mut Vec<Range<usize>>) -> bool {
        let mut scan = Scan::new(text, self.cut, spans);
        while scan.at < text.len() && goes_on(&scan) {
            scan.take_ascii();
            if !scan.is_at_whole_han() {
                scan.take_other(|_| false);
            }
            while scan.is_at_whole_han() {
                scan.push(scan.at + 3);
            }
        }
        goes_on(&scan)
    }
}

/// Cuts the text into words, but each longest run of characters of `is_of_run`, at byte `start`, by `cut_run(run, start,
/// spans)`. Han characters are among those of `is_of_run`.
pub(crate) fn words_and_runs(
    text: &str,
    cut: WordCut,
    spans: &mut Vec<Range<usize>>,
    is_of_run: impl Fn(char) -> bool,
    cut_run: impl Fn(&str, usize, &mut Vec<Range<usize>>),
) {
    let mut scan = Scan::new(text, cut, spans);
    while scan.at < text.len() {
        scan.take_ascii();
        match run_len(text, scan.at, &is_of_run) {
            0 => scan.take_other(&is_of_run),
            n => {
                cut_run(&text[scan.at..scan.at + n], scan.at, scan.spans);
                scan.at += n;
            }
        }
    }
}

/// A walk along a text, from token to token.
struct Scan<'a> {
    text: &'a str,
    at: usize,
    symbols: Symbols,
    /// The least number of characters of a long run; `usize::MAX` if no run is long.
    long_run: usize,
    spans: &'a mut Vec<Range<usize>>,
    /// A letter, digit or mark was taken that is neither ASCII nor common Han, or a character that runs of
    /// [`Pairs`](crate::pairs::Pairs) may have.
    has_others: bool,
}

impl<'a> Scan<'a> {
    fn new(text: &'a str, cut: WordCut, spans: &'a mut Vec<Range<usize>>) -> Self {
        let long_run = cut.long_run.map_or(usize::MAX, NonZeroUsize::get);
        Self { text, at: 0, symbols: cut.symbols, long_run, spans, has_others: false }
    }
}

impl Scan<'_> {
    /// Takes the ASCII words that begin here, and what is between and after them, up to the first other character or
    /// the end of the text. An ASCII word that goes on with another character is left.
    #[inline]
    fn take_ascii(&mut self) {
        let bytes = self.text.as_bytes();
        let (mut start, mut n_before) = (self.at, self.spans.len());
        while let Some(class) = bytes.get(self.at).map(|&byte| ASCII[usize::from(byte)]) {
            match class {
                Ascii::Word => {
                    let end = ascii_word_end(bytes, self.at);
                    if !self.ends_token(end) {
                        break;
                    }
                    self.push_word(end);
                }
                Ascii::Space => {
                    self.end_run(start, n_before);
                    self.at += 1;
                    (start, n_before) = (self.at, self.spans.len());
                }
                Ascii::Symbol if self.symbols == Symbols::Dropped => self.at += 1,
                Ascii::Symbol => self.push(self.at + 1),
                Ascii::Not => break,
            }
        }
        self.end_run(start, n_before);
    }

    /// Makes one token of the tokens from `n_before` on, if the ASCII characters without white space from `start` to
    /// here are a long run. A run without tokens, such as a line of dashes, stays without.
    #[inline]
    fn end_run(&mut self, start: usize, n_before: usize) {
        if self.at - start >= self.long_run && self.spans.len() > n_before {
            self.spans.truncate(n_before);
            self.spans.push(start..self.at);
        }
    }

    /// Takes the text that begins here, where [`take_ascii`](Self::take_ascii) stopped: a run of word characters that
    /// ends where `is_foreign`, a symbol, or white space.
    fn take_other(&mut self, is_foreign: impl Fn(char) -> bool) {
        let Some(c) = self.text[self.at..].chars().next() else {
            return;
        };
        if is_word_character(c) {
            self.has_others = true;
            self.push_run(is_foreign);
        } else {
            self.has_others |= is_unspaced(c);
            self.push_symbol(c);
        }
    }

    /// Returns whether a common Han character begins here that is a token by itself.
    #[inline]
    fn is_at_whole_han(&self) -> bool {
        is_common_han_at(self.text.as_bytes(), self.at) && self.ends_token(self.at + 3)
    }

    /// Returns whether a token that is all ASCII or one Han character is whole at `end`: no mark and no letter that
    /// might belong to it follows.
    #[inline]
    fn ends_token(&self, end: usize) -> bool {
        let bytes = self.text.as_bytes();
        match bytes.get(end) {
            None => true,
            Some(next) if next.is_ascii() => true,
            Some(_) if is_common_han_at(bytes, end) => true,
            Some(_) => !self.text[end..].chars().next().is_some_and(is_word_character),
        }
    }

    /// The longest run of word characters, cut at the standard's boundaries.
    fn push_run(&mut self, is_foreign: impl Fn(char) -> bool) {
        let rest = &self.text[self.at..];
        let first_other = rest.char_indices().find(|&(_, c)| !is_joined(c));
        if first_other.is_none_or(|(_, c)| !is_word_character(c) || is_foreign(c)) {
            let len = first_other.map_or(rest.len(), |(at, _)| at);
            return self.push_word(self.at + len);
        }
        self.push_mixed_run(is_foreign);
    }

    #[cold]
    fn push_mixed_run(&mut self, is_foreign: impl Fn(char) -> bool) {
        let rest = &self.text[self.at..];
        let run = &rest[..rest.find(|c| !is_word_character(c) || is_foreign(c)).unwrap_or(rest.len())];
        for word in run.split_word_bounds() {
            self.push_word(self.at + word.len());
        }
    }

    fn push_symbol(&mut self, c: char) {
        let end = self.at + c.len_utf8();
        if self.symbols == Symbols::Kept && !c.is_whitespace() {
            self.push(end);
        }
        self.at = end;
    }

    /// Appends a word. A word without a letter or digit, such as `__`, counts as a symbol.
    #[inline]
    fn push_word(&mut self, end: usize) {
        let word = &self.text[self.at..end];
        let begins_well = word.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric);
        if begins_well || self.symbols == Symbols::Kept || word.chars().any(is_alphanumeric) {
            self.push(end);
        } else {
            self.at = end;
        }
    }

    #[inline]
    fn push(&mut self, end: usize) {
        debug_assert!(end > self.at, "a token has a byte at least");
        self.spans.push(self.at..end);
        self.at = end;
    }
}

/// The standard has no boundary inside an ASCII `\w+`. Words have all lengths in no order, so eight bytes are looked at at once.
#[inline]
fn ascii_word_end(bytes: &[u8], at: usize) -> usize {
    let mut end = at;
    while let Some(&eight) = bytes[end..].first_chunk() {
        let others = no_word_bytes(u64::from_le_bytes(eight));
        if others != 0 {
            return end + others.trailing_zeros() as usize / 8;
        }
        end += 8;
    }
    let rest = &bytes[end..];
    end + rest.iter().position(|&byte| ASCII[usize::from(byte)] != Ascii::Word).unwrap_or(rest.len())
}

/// Returns the highest bit of each of eight bytes that is not one of [`Ascii::Word`].
#[inline]
fn no_word_bytes(bytes: u64) -> u64 {
    const ALL: u64 = 0x0101_0101_0101_0101;
    const HIGHEST: u64 = 0x80 * ALL;
    // The highest bit says whether a byte below 128 is at least so large; no sum reaches the next byte.
    let at_least = |bytes: u64, least: u8| bytes + (0x80 - u64::from(least)) * ALL;
    let within = |bytes: u64, first: u8, last: u8| at_least(bytes, first) & !at_least(bytes, last + 1);
    let seven_bits = bytes & !HIGHEST;
    let letters = within(seven_bits | (u64::from(b' ') * ALL), b'a', b'z');
    let words = letters | within(seven_bits, b'0', b'9') | within(seven_bits, b'_', b'_');
    (!words | bytes) & HIGHEST
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ascii {
    /// A letter, a digit or `_`.
    Word,
    Space,
    Symbol,
    /// A byte of another character.
    Not,
}

const ASCII: [Ascii; 256] = {
    let mut table = [Ascii::Not; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        table[byte as usize] = match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' => Ascii::Word,
            b'\t'..=b'\r' | b' ' => Ascii::Space,
            _ => Ascii::Symbol,
        };
        byte += 1;
    }
    table
};

fn is_word_character(c: char) -> bool {
    match c {
        '\0'..='\x7F' => c.is_ascii_alphanumeric() || c == '_',
        // Punctuation, as tables would say too, but slower.
        '\u{2010}'..='\u{205E}' | '\u{3001}'..='\u{3004}' | '\u{3008}'..='\u{3020}' => false,
        _ => is_alphanumeric(c) || is_combining_mark(c),
    }
}

/// Returns whether `c` is a letter or digit, of a script with spaces between words, that the standard parts from no other
/// such character: Latin, Greek, Cyrillic, Hebrew, Arabic, Hangul and others. A word of them is whole without a look at
/// the standard's rules.
#[inline]
fn is_joined(c: char) -> bool {
    /// Of the characters below U+2000, made from the standard once in a process, in some milliseconds.
    static JOINED: LazyLock<Vec<bool>> = LazyLock::new(|| {
        let joins = |text: &[char]| text.iter().collect::<String>().split_word_bounds().count() == 1;
        // Letters, digits and `_` join `a` on both sides. Marks do so on one side only.
        let of = |c: char| is_word_character(c) && !is_unspaced(c) && joins(&['a', c]) && joins(&[c, 'a']);
        ('\0'..'\u{2000}').map(of).collect()
    });
    match JOINED.get(u32::from(c) as usize) {
        Some(&joined) => joined,
        None => matches!(c, '\u{AC00}'..='\u{D7A3}'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_ascii_end_before_the_first_byte_that_is_in_no_word() {
        for byte in 0..=u8::MAX {
            for n_before in 0..20 {
                let mut bytes = b"azAZ09_mMbyYcx58qQ_z"[..n_before].to_vec();
                bytes.push(byte);
                for n_behind in [0, 1, 9] {
                    bytes.resize(n_before + 1 + n_behind, b'-');
                    let expected = n_before + usize::from(byte.is_ascii_alphanumeric() || byte == b'_');
                    assert_eq!(ascii_word_end(&bytes, 0), expected, "{bytes:?}");
                }
            }
        }
    }

    #[test]
    fn the_standard_parts_no_joined_characters() {
        let joined: Vec<char> = ('\0'..=char::MAX).filter(|&c| is_joined(c)).collect();
        assert!(joined.len() > 14_000, "letters of many scripts and the syllables of Hangul: {}", joined.len());
        let both_ways: String =
            joined.iter().chain(joined.iter().rev()).flat_map(|&c| [c, 'a', c, '0', c, '_', c]).collect();
        assert_eq!(both_ways.split_word_bounds().count(), 1);
        assert!(joined.iter().all(|&c| is_word_character(c) && !is_unspaced(c)));
    }

    /// Also those of Han that are not assigned yet, which Unicode's tables do not know.
    #[test]
    fn every_letter_and_digit_is_a_word_character() {
        let missing: Vec<char> = ('\0'..=char::MAX).filter(|&c| is_alphanumeric(c) && !is_word_character(c)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
