//! The seams between the spans of a file that are read independently.

use std::ops::Range;

/// Where a span of a file began to be read, and where it left off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seam {
    /// The position of the first member that was read: `None` if no member within the span begins with a record.
    pub first: Option<u64>,
    /// The position of the first member that was left to the next spans, or of the end of the file.
    pub next: u64,
}

/// Returns whether the spans of a file of `size` bytes, in order, were read as if by one reader: each begins where those
/// before it left off, and the last ends where the file does. A span without a seam joins nothing, so a damaged file
/// does not join.
///
/// The first span begins where the file begins, so it finds the members as they are, and so does each span that begins
/// where such a span left off.
///
/// ```
/// use nearprint_warc::{Seam, spans_join};
///
/// let seam = |first, next| Some(Seam { first, next });
/// let spans = |third| [(0..100, seam(Some(0), 210)), (100..200, seam(None, 200)), (200..300, third)];
/// assert!(spans_join(300, spans(seam(Some(210), 300))));
/// // This span took bytes within a record for a member.
/// assert!(!spans_join(300, spans(seam(Some(205), 300))));
/// ```
pub fn spans_join(size: u64, spans: impl IntoIterator<Item = (Range<u64>, Option<Seam>)>) -> bool {
    let mut at = 0;
    let joins = spans.into_iter().all(|(span, seam)| match seam {
        Some(Seam { first: Some(first), next }) if first == at && span.contains(&at) => {
            at = next;
            true
        }
        Some(Seam { first: None, .. }) => at >= span.end,
        _ => false,
    });
    joins && at >= size
}
