//! Finds the differences between two texts.

use std::ops::Range;

use schemars::JsonSchema;
use serde::Serialize;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::legible::legible;

/// A piece of a diff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiffPiece {
    /// The piece is in both texts.
    Same(String),
    /// The piece is only in the first text.
    Removed(String),
    /// The piece is only in the second text.
    Added(String),
}

/// The comparison of two texts.
#[derive(Debug)]
pub struct Diff {
    /// The pieces, in order.
    pub pieces: Vec<DiffPiece>,
    /// True if whole sentences were compared.
    pub of_sentences: bool,
}

/// The most tokens of both texts together for a comparison by words. Above this number, whole sentences are compared,
/// because a comparison of such long texts by words takes seconds if they share hardly any.
const MAX_TOKENS: usize = 400_000;

/// Cuts both texts into the pieces that they share and the pieces that they do not share. Words stay whole, but each
/// Han character is compared by itself.
pub fn diff(a: &str, b: &str) -> Diff {
    let (a, b) = (legible(a), legible(b));
    let (mut old, mut new) = (words(&a), words(&b));
    let of_sentences = old.len() + new.len() > MAX_TOKENS;
    if of_sentences {
        (old, new) = (sentences(&a), sentences(&b));
    }
    let mut pieces = Vec::new();
    for op in capture_diff_slices(Algorithm::Myers, &old, &new) {
        let (removed, added) = (old[op.old_range()].concat(), new[op.new_range()].concat());
        if matches!(op, DiffOp::Equal { .. }) {
            pieces.push(DiffPiece::Same(removed));
            continue;
        }
        pieces.extend((!removed.is_empty()).then_some(DiffPiece::Removed(removed)));
        pieces.extend((!added.is_empty()).then_some(DiffPiece::Added(added)));
    }
    Diff { pieces, of_sentences }
}

/// Returns the changes with up to `context` characters of shared text on either side. Changes that are at most twice
/// that far apart are in the same segment.
pub fn segments(pieces: &[DiffPiece], context: usize) -> Vec<Vec<DiffPiece>> {
    let mut segments: Vec<Vec<DiffPiece>> = Vec::new();
    let mut open: Vec<DiffPiece> = Vec::new();
    for (i, piece) in pieces.iter().enumerate() {
        let DiffPiece::Same(text) = piece else {
            open.push(piece.clone());
            continue;
        };
        let n_chars = text.chars().count();
        let (first, last) = (i == 0, i + 1 == pieces.len());
        if !first && !last && n_chars <= 2 * context {
            open.push(piece.clone());
            continue;
        }
        if !first {
            open.push(DiffPiece::Same(chars(text, 0..context)));
            segments.push(std::mem::take(&mut open));
        }
        if !last {
            open.push(DiffPiece::Same(chars(text, n_chars.saturating_sub(context)..n_chars)));
        }
    }
    if open.iter().any(|p| !matches!(p, DiffPiece::Same(_))) {
        segments.push(open);
    }
    segments
}

fn chars(text: &str, range: Range<usize>) -> String {
    text.chars().skip(range.start).take(range.len()).collect()
}

fn words(text: &str) -> Vec<&str> {
    cut(text, |before, c| before.is_alphanumeric() && c.is_alphanumeric() && !is_han(before) && !is_han(c))
}

fn sentences(text: &str) -> Vec<&str> {
    cut(text, |before, _| !matches!(before, '.' | '!' | '?' | ';' | '。' | '！' | '？' | '；'))
}

fn is_han(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Cuts the text between two characters unless `together` joins them.
fn cut(text: &str, together: impl Fn(char, char) -> bool) -> Vec<&str> {
    let (mut parts, mut start, mut before) = (Vec::new(), 0, None);
    for (at, c) in text.char_indices() {
        if before.is_some_and(|before| !together(before, c)) {
            parts.push(&text[start..at]);
            start = at;
        }
        before = Some(c);
    }
    parts.extend((start < text.len()).then(|| &text[start..]));
    parts
}
