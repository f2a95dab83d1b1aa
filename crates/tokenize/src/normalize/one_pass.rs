//! Does NFKC, case folding, the removal of control characters and the collapse of white space in one pass over the
//! text.
//!
//! Most characters are *plain*: the result of one does not depend on its neighbours, and only marks after it can change
//! it. Plain characters are copied or mapped as they come. Any other characters form a stretch, which begins at the
//! plain character before it, because marks may compose with that, ends before the next plain one, and goes through the
//! steps of the definition.

use std::borrow::Cow;
use std::sync::OnceLock;

use unicode_normalization::IsNormalized::Yes;
use unicode_normalization::char::canonical_combining_class;
use unicode_normalization::is_nfc_quick;

use super::steps;
use crate::config::NormalizeConfig;
use crate::script::is_common_han_at;

/// Returns whether these are the steps that one pass does.
pub(super) fn applies(config: &NormalizeConfig) -> bool {
    let NormalizeConfig { html_entities, .. } = *config;
    *config == NormalizeConfig { html_entities, ..NormalizeConfig::default() }
}

/// Returns the result of [`steps::normalize`], if [`applies`] returns true.
pub(super) fn normalize<'a>(text: &'a str, config: &NormalizeConfig) -> Cow<'a, str> {
    let decoded = if config.html_entities { steps::decode_html_entities(text) } else { Cow::Borrowed(text) };
    let normalized = one_pass(&decoded);
    match decoded {
        Cow::Borrowed(text) if text == normalized => Cow::Borrowed(text),
        _ => Cow::Owned(normalized),
    }
}

fn one_pass(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Output { text: String::with_capacity(text.len()), space_due: false };
    // Where the plain character just before begins, in `text` and in `out`.
    let mut before = None;
    let mut at = 0;
    while at < bytes.len() {
        let piece = piece_at(text, at);
        debug_assert!(piece.len() > 0, "each piece takes the pass onward, to the end of the text");
        match piece {
            TextPiece::Ascii(n) => out.push_ascii(&text[at..at + n]),
            TextPiece::Han(n) => out.push(&text[at..at + n]),
            TextPiece::Char(_, plain) => out.push(plain.encode_utf8(&mut [0; 4])),
            TextPiece::Space(_) => out.space_due = true,
            TextPiece::Stretch(n) => {
                let start = before.map_or(at, |(start, kept)| {
                    out.text.truncate(kept);
                    start
                });
                out.push_stretch(&text[start..at + n]);
            }
        }
        at += piece.len();
        before = piece.last_character_len().map(|(n, n_out)| (at - n, out.text.len() - n_out));
    }
    out.text
}

/// A part of the text whose normalised form does not depend on the rest of the text, except for marks that follow.
#[derive(Clone, Copy)]
enum TextPiece {
    /// Visible ASCII with single spaces in it, of this many bytes, the first and last no space.
    Ascii(usize),
    /// Han characters, of this many bytes.
    Han(usize),
    /// One plain character, of this many bytes, and what it becomes.
    Char(usize, char),
    /// White space, of this many bytes.
    Space(usize),
    /// A stretch that needs the steps, up to the next plain character or white space.
    Stretch(usize),
}

impl TextPiece {
    fn len(self) -> usize {
        match self {
            Self::Ascii(n) | Self::Han(n) | Self::Char(n, _) | Self::Space(n) | Self::Stretch(n) => n,
        }
    }

    /// Returns the bytes of its last character, before and after normalisation, if marks that follow can change it.
    fn last_character_len(self) -> Option<(usize, usize)> {
        match self {
            Self::Ascii(_) => Some((1, 1)),
            Self::Han(_) => Some((3, 3)),
            Self::Char(n, plain) => Some((n, plain.len_utf8())),
            Self::Space(_) | Self::Stretch(_) => None,
        }
    }
}

/// Returns the piece of `text` at byte `at`, which is before the end of the text.
fn piece_at(text: &str, at: usize) -> TextPiece {
    let bytes = text.as_bytes();
    let first = bytes[at];
    if is_visible_ascii(first) {
        return TextPiece::Ascii(ascii_len(&bytes[at..]));
    }
    if is_common_han_at(bytes, at) {
        let mut end = at + 3;
        while is_common_han_at(bytes, end) {
            end += 3;
        }
        return TextPiece::Han(end - at);
    }
    match plain_at(text, at) {
        Plain::Becomes(n, c) => TextPiece::Char(n, c),
        Plain::Space(n) => TextPiece::Space(n),
        Plain::No(n) => {
            let mut end = at + n;
            while end < bytes.len() && !is_visible_ascii(bytes[end]) && !is_common_han_at(bytes, end) {
                let Plain::No(n) = plain_at(text, end) else { break };
                end += n;
            }
            TextPiece::Stretch(end - at)
        }
    }
}

fn is_visible_ascii(byte: u8) -> bool {
    byte.is_ascii_graphic()
}

/// Returns the length of the longest beginning of `bytes`, whose first byte is visible, that is visible ASCII with
/// single spaces between.
fn ascii_len(bytes: &[u8]) -> usize {
    const STEP: usize = 32;
    let mut len = 0;
    // A step's bytes are printable, and no two spaces stand side by side, the first of the next step included.
    while let Some(step) = bytes.get(len..=len + STEP) {
        let printable = step[..STEP].iter().fold(true, |all, &b| all & (0x20..0x7F).contains(&b));
        let spaces = step[..STEP].iter().zip(&step[1..]).fold(false, |any, (&a, &b)| any | (a == b' ' && b == b' '));
        if !printable || spaces {
            break;
        }
        len += STEP;
    }
    while let Some(&byte) = bytes.get(len) {
        let single_space = byte == b' ' && len > 0 && bytes[len - 1] != b' ';
        if !is_visible_ascii(byte) && !single_space {
            break;
        }
        len += 1;
    }
    len - bytes[..len].iter().rev().take_while(|&&b| b == b' ').count()
}

enum Plain {
    /// So many bytes become this character.
    Becomes(usize, char),
    /// White space of so many bytes.
    Space(usize),
    /// A character of so many bytes that is not plain.
    No(usize),
}

fn plain_at(text: &str, at: usize) -> Plain {
    let Some(c) = text[at..].chars().next() else {
        return Plain::No(0);
    };
    let n = c.len_utf8();
    if c.is_whitespace() {
        return Plain::Space(n);
    }
    match plain_table().get(u32::from(c) as usize) {
        Some(&unit) if unit != NOT_PLAIN => {
            char::from_u32(u32::from(unit)).map_or(Plain::No(n), |p| Plain::Becomes(n, p))
        }
        _ => Plain::No(n),
    }
}

const NOT_PLAIN: u16 = 0;

/// Returns, for each character of the Basic Multilingual Plane, the character that it becomes if it is plain. The table
/// is made from the definition once in a process, in some milliseconds.
fn plain_table() -> &'static [u16] {
    static TABLE: OnceLock<Vec<u16>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let unit = |c: u32| char::from_u32(c).and_then(plain).and_then(|p| u16::try_from(u32::from(p)).ok());
        (0..=0xFFFF).map(|c| unit(c).unwrap_or(NOT_PLAIN)).collect()
    })
}

/// Returns the character that `c` becomes if it is plain: it becomes one character, and both its NFKC form and its
/// folded form are starters that compose with nothing before them. White space and removed characters are not plain.
fn plain(c: char) -> Option<char> {
    let compatible = only_char(&steps::nfkc(c.encode_utf8(&mut [0; 4])))?;
    let becomes = only_char(&steps::normalize(c.encode_utf8(&mut [0; 4]), &steps_of_one_pass()))?;
    let stands_alone = |c: char| canonical_combining_class(c) == 0 && is_nfc_quick(std::iter::once(c)) == Yes;
    (stands_alone(c) && stands_alone(compatible) && stands_alone(becomes)).then_some(becomes)
}

fn only_char(text: &str) -> Option<char> {
    let mut chars = text.chars();
    chars.next().filter(|_| chars.next().is_none())
}

fn steps_of_one_pass() -> NormalizeConfig {
    NormalizeConfig { html_entities: false, ..NormalizeConfig::default() }
}

/// The normalised text so far, without white space at its end.
struct Output {
    text: String,
    /// A space comes before the next character, if any does.
    space_due: bool,
}

impl Output {
    /// Appends what is normalised and has no white space at its ends.
    fn push(&mut self, normalized: &str) {
        if std::mem::take(&mut self.space_due) && !self.text.is_empty() {
            self.text.push(' ');
        }
        self.text.push_str(normalized);
    }

    fn push_ascii(&mut self, ascii: &str) {
        self.push(ascii);
        let start = self.text.len() - ascii.len();
        self.text[start..].make_ascii_lowercase();
    }

    fn push_stretch(&mut self, text: &str) {
        let all_but_white_space = NormalizeConfig { white_space: false, ..steps_of_one_pass() };
        for c in steps::normalize(text, &all_but_white_space).chars() {
            if c.is_whitespace() {
                self.space_due = true;
            } else {
                self.push(c.encode_utf8(&mut [0; 4]));
            }
        }
    }
}
