//! The weakest drops of a night as a section of its page: the near-duplicates that lose most, with what they lose.

use maud::{Markup, html};
use nearprint_explain::{DiffPiece, diff, segments};
use nearprint_fault::{and_more, counted, grouped, percent};

use super::night_report::{Example, NightReport};
use crate::page::pieces::{self, section};

/// The characters of shared text around a difference.
const CONTEXT_CHARS: usize = 60;
/// The most characters of one example's differences that are shown at once, and that a reader can open. The rest is
/// counted.
const MAX_SHOWN_CHARS: usize = 600;
const MAX_DIFF_CHARS: usize = 4000;

pub(super) fn weakest(night: &NightReport) -> Markup {
    let near: Vec<&Example> = night.examples.iter().filter(|example| example.is_near()).collect();
    let n_near = night.summary.counts.decisions.n_near_duplicates();
    let body = html! {
        @if near.is_empty() {
            p { @if n_near == 0 { "No near-duplicate was dropped." } @else { (counted(n_near, "near-duplicate")) " dropped; none is shown here." } }
        } @else {
            p {
                (grouped(near.iter().map(|example| 1 + example.n_alike).sum())) " of " (counted(n_near, "dropped near-duplicate"))
                ", those first that lose most. Those that are dropped for the same document, at the same distance and with the \
                same lost share, are alike: one of them is shown, and the others are counted. " del { "Deleted" } " is what only the dropped document has: it is lost. "
                ins { "Inserted" } " is what only the kept one has."
            }
            @for (n, example) in (1_u32..).zip(near) { (drop_of(n, example)) }
        }
    };
    section("weakest", "Weakest drops", &body)
}

fn drop_of(n: u32, example: &Example) -> Markup {
    let lost =
        example.lost_share.map_or_else(|| "an unknown share".to_owned(), |share| format!("about {}", percent(share)));
    html! {
        article aria-labelledby={ "drop-" (n) } {
            h3 id={ "drop-" (n) } { (n) ". Lost " (lost) " of its features" (and_more_alike(example.n_alike)) }
            dl {
                dt { "dropped" } dd { (pieces::document_id(&example.doc_id)) }
                dt { "kept" }
                dd {
                    (pieces::document_id(&example.canonical_id))
                    @if let Some(store) = &example.reference { " of the reference store " (pieces::id(store)) }
                }
                @if let Some(distance) = example.distance { dt { "distance" } dd { (distance) (if distance == 1 { " bit" } else { " bits" }) " of the fingerprint" } }
            }
            (differences(example))
        }
    }
}

fn and_more_alike(n: u64) -> String {
    let more = and_more(n);
    if more.is_empty() { more } else { format!(",{more} like it") }
}

fn differences(example: &Example) -> Markup {
    let Some((dropped, kept)) = &example.texts else {
        return html! {
            p.quiet {
                @if example.reference.is_some() { "The texts are not shown: those of reference stores are not read." }
                @else { "The texts are not shown: their files are gone, have changed since or cannot be read, or their night was replaced." }
            }
        };
    };
    let compared = diff(dropped, kept);
    let chars = |wanted: fn(&DiffPiece) -> Option<&String>| -> u64 {
        compared.pieces.iter().filter_map(wanted).map(|text| text.chars().count() as u64).sum()
    };
    let n_lost = chars(|piece| if let DiffPiece::Removed(text) = piece { Some(text) } else { None });
    let n_gained = chars(|piece| if let DiffPiece::Added(text) = piece { Some(text) } else { None });
    let all = segments(&compared.pieces, CONTEXT_CHARS);
    let (first, shown) = (within(&all, MAX_SHOWN_CHARS), within(&all, MAX_DIFF_CHARS));
    html! {
        p {
            (counted(n_lost, "character")) " of " (grouped(dropped.chars().count() as u64)) " only in the dropped document, "
            (counted(n_gained, "character")) " of " (grouped(kept.chars().count() as u64)) " only in the kept one"
            @if compared.of_sentences { "; the texts are long, so whole sentences were compared" }
            "."
        }
        @if all.is_empty() { p.quiet { "The texts are equal as far as a reader can see." } }
        (places(&first))
        @if first != shown {
            details { summary { "The longer comparison" } (places(&shown)) }
        }
        @if shown.len() < all.len() {
            p.quiet { (counted((all.len() - shown.len()) as u64, "further place")) " with differences, not shown." }
        }
    }
}

fn places(segments: &[Vec<DiffPiece>]) -> Markup {
    html! { @for segment in segments { div.diff dir="auto" { "… " (pieces::merged(segment)) " …" } } }
}

/// Returns the first segments, up to a number of characters together. A segment that is longer is cut, and says so.
fn within(segments: &[Vec<DiffPiece>], max_chars: usize) -> Vec<Vec<DiffPiece>> {
    let (mut left, mut shown) = (max_chars, Vec::new());
    for segment in segments {
        if left == 0 {
            break;
        }
        let mut cut = Vec::new();
        for piece in segment.iter() {
            let (text, make): (_, fn(String) -> DiffPiece) = match piece {
                DiffPiece::Same(text) => (text, DiffPiece::Same),
                DiffPiece::Removed(text) => (text, DiffPiece::Removed),
                DiffPiece::Added(text) => (text, DiffPiece::Added),
            };
            let n_chars = text.chars().count();
            if n_chars > left {
                let start: String = text.chars().take(left).collect();
                cut.push(make(format!("{start}… ({} more)", counted((n_chars - left) as u64, "character"))));
                left = 0;
                break;
            }
            left -= n_chars;
            cut.push(piece.clone());
        }
        shown.push(cut);
    }
    shown
}
