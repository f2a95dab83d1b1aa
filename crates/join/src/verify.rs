//! The one place where a candidate becomes a pair.

use nearprint_fingerprint::Sketch;

/// The distances that make two documents near-duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verifier {
    /// The largest Hamming distance of two fingerprints that counts.
    pub max_distance: u8,
    /// The largest distance of two sketches that counts; none leaves sketches out.
    pub max_sketch_distance: Option<u16>,
}

impl Verifier {
    /// None where the two are not near-duplicates; otherwise their sketch distance, which is none where sketches are not
    /// verified. With sketches verified, a document without one matches nothing.
    #[must_use]
    pub fn verify(&self, distance: u8, a: Option<&Sketch>, b: Option<&Sketch>) -> Option<Option<u16>> {
        if distance > self.max_distance {
            return None;
        }
        let Some(max_sketch_distance) = self.max_sketch_distance else {
            return Some(None);
        };
        #[expect(clippy::cast_possible_truncation, reason = "a sketch has 256 bits")]
        let sketch_distance = a?.distance(b?) as u16;
        (sketch_distance <= max_sketch_distance).then_some(Some(sketch_distance))
    }
}
