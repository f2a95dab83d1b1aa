//! The estimate of what a document loses when another document is kept in its place.

use nearprint_fingerprint::Sketch;

/// Returns the estimated *lost share* of a document for a keeper: the share of the document's features that the keeper
/// lacks, from 0 to 1. `n_features` and `keeper_features` are the numbers of distinct features that the sketches of the
/// two see, and `sketch_distance` is the number of bits in which the sketches differ.
///
/// A bit differs with probability (1 − J) / 2, where J is the Jaccard similarity |A ∩ B| / |A ∪ B|
/// ([`Sketch`]). So J is about 1 − 2 d / 256, and |A ∩ B| = J (|A| + |B|) / (1 + J), but not more than
/// |A| or |B|. A document without features loses nothing.
///
/// The result is the same on every machine: it is one division of integers.
///
/// ```
/// use nearprint_join::lost_share;
///
/// // A page of 300 features is kept in place of one of 400 that has all of them: 1 − J = 1/4, 32 of 256 bits.
/// assert_eq!((lost_share(400, 300, 32), lost_share(300, 400, 32)), (0.25, 0.0));
/// // Each of two pages of 700 features lacks 100 of the other's.
/// assert_eq!((lost_share(700, 700, 32), lost_share(700, 700, 0)), (1.0 / 7.0, 0.0));
/// assert_eq!(lost_share(700, 700, 200), 1.0);
/// ```
#[must_use]
pub fn lost_share(n_features: u32, keeper_features: u32, sketch_distance: u16) -> f64 {
    let [own, keepers, differing, bits] =
        [n_features, keeper_features, u32::from(sketch_distance), Sketch::BITS].map(i64::from);
    if own == 0 {
        return 0.0;
    }
    // |A ∩ B| = numerator / denominator: with J = (128 − d) / 128, J / (1 + J) = (128 − d) / (256 − d).
    let alike = (bits / 2 - differing).max(0);
    let denominator = bits - differing.min(bits / 2);
    let shared = (alike * (own + keepers)).min(own.min(keepers) * denominator);
    let lost = own * denominator - shared;
    debug_assert!((0..=own * denominator).contains(&lost), "a share is no less than nothing and no more than all");
    // Both are below 2^41, so no precision is lost.
    lost as f64 / (own * denominator) as f64
}

/// The largest lost share with which a document is dropped for a keeper.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LossLimit(pub f64);

impl LossLimit {
    /// Any document may be dropped for one near it.
    pub const NONE: Self = Self(1.0);

    /// Returns whether a document with this lost share may be dropped for the keeper. `None` means that the share is
    /// unknown, because the features of one of the two were not counted: then the distances alone decide.
    #[must_use]
    pub fn allows(self, lost_share: Option<f64>) -> bool {
        lost_share.is_none_or(|share| share <= self.0)
    }
}
