//! The differences of two texts on a terminal.

use std::fmt::Write;

use nearprint_explain::{DiffPiece, ExplainedPair};

use super::grouped;

/// The most segments of the diff that are shown.
const MAX_SEGMENTS: usize = 10;
/// The most characters of a piece that are shown.
const MAX_PIECE: usize = 300;

/// Writes how two texts differ, with the names of the two.
pub(super) fn diff(out: &mut String, pair: &ExplainedPair, [a, b]: [&str; 2]) {
    if pair.same_text {
        let _ = writeln!(out, "The normalised texts are equal");
        return;
    }
    let _ = writeln!(out, "\nNormalised texts, [-only in {a}-] {{+only in {b}+}}");
    if pair.diff_of_sentences {
        let _ = writeln!(
            out,
            "Too long to compare word by word: whole sentences are shown, so less may differ than is marked"
        );
    }
    for segment in pair.diff.iter().take(MAX_SEGMENTS) {
        let pieces: String = segment.iter().map(piece).collect();
        let _ = writeln!(out, "  … {pieces} …");
    }
    if pair.diff.len() > MAX_SEGMENTS {
        let _ = writeln!(out, "  … and {} more places", grouped((pair.diff.len() - MAX_SEGMENTS) as u64));
    }
}

fn piece(piece: &DiffPiece) -> String {
    match piece {
        DiffPiece::Same(text) => shortened(text),
        DiffPiece::Removed(text) => format!("[-{}-]", shortened(text)),
        DiffPiece::Added(text) => format!("{{+{}+}}", shortened(text)),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_PIECE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
