//! The sketch: a SimHash of 256 bits that is stored beside the fingerprint and read only to verify candidates.

use crate::feature_hash::xxh3;
use crate::simhash::Votes;
use crate::{BitRule, FingerprintError};

/// A 256-bit SimHash, as it is stored: bit i is bit i mod 8 of byte i / 8, so each part reads as little-endian.
///
/// `Ord` is the order of the bytes.
///
/// ```
/// use nearprint_fingerprint::Sketch;
///
/// assert_eq!(Sketch([0; 32]).distance(&Sketch([0b101; 32])), 64);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Sketch(pub [u8; 32]);

impl Sketch {
    /// The number of bits.
    pub const BITS: u32 = 256;

    /// The number of bits in which the two differ, from 0 to 256. It is a metric.
    #[inline]
    pub fn distance(&self, other: &Self) -> u32 {
        let (mine, _) = self.0.as_chunks::<8>();
        let (theirs, _) = other.0.as_chunks::<8>();
        mine.iter().zip(theirs).map(|(&a, &b)| (u64::from_ne_bytes(a) ^ u64::from_ne_bytes(b)).count_ones()).sum()
    }
}

impl TryFrom<&[u8]> for Sketch {
    type Error = FingerprintError;

    /// Reads back the 32 bytes of a sketch; any other length is refused.
    fn try_from(bytes: &[u8]) -> Result<Self, FingerprintError> {
        bytes.try_into().map(Self).map_err(|_| FingerprintError::SketchLength { got: bytes.len() })
    }
}

/// The sketch of weighted features, usually a text's distinct shingles with equal weights; weights in units of 1/65536.
///
/// A feature's 256 bits are two XXH3-128 values: the first 16 bytes from one seed, the last 16 from another, both derived from `seed` and
/// unlike it, so that a sketch tells more than a fingerprint with the same seed. A bit is 1 when its v > 0. Order and exactness are those of
/// [`simhash`](crate::simhash()), and like there a text without features (all 0) is not to be sketched.
///
/// Cost: two hashes and 256 additions a feature.
///
/// ```
/// use nearprint_fingerprint::sketch;
///
/// let shingles = ["a rose is", "rose is a", "is a rose"];
/// let of = |seed| sketch(shingles.iter().map(|shingle| (shingle.as_bytes(), 1 << 16)), seed);
/// assert_eq!(of(0), of(0));
/// assert_ne!(of(0), of(1));
/// ```
pub fn sketch<'a>(features: impl IntoIterator<Item = (&'a [u8], u64)>, seed: u64) -> Sketch {
    let seeds: [u64; 2] = [b"nearprint sketch, bits 0 to 127".as_slice(), b"nearprint sketch, bits 128 to 255"]
        .map(|half| xxh3::hash(half, seed));
    let mut halves = [Votes::<u128>::default(), Votes::default()];
    for (feature, weight) in features {
        for (votes, &seed) in halves.iter_mut().zip(&seeds) {
            votes.add(xxh3::hash(feature, seed), weight);
        }
    }
    let mut bytes = [0; 32];
    for (part, votes) in bytes.as_chunks_mut::<16>().0.iter_mut().zip(halves) {
        *part = votes.into_fingerprint(BitRule::Positive).to_le_bytes();
    }
    Sketch(bytes)
}
