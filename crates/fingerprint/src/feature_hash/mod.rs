//! How a feature becomes the bits that vote. A new strategy is one new file and one variant.

mod java;
pub(crate) mod xxh3;

use serde::{Deserialize, Serialize};

use crate::Fingerprint;

/// The function that hashes a feature to as many bits as the fingerprint has.
///
/// In configuration it is written `{ xxh3 = { seed = 0 } }` (the seed may be left out), `"java_plain"` or `"java_pad3"`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FeatureHash {
    /// XXH3, the default with seed 0. 64 bits: XXH3-64; 32 bits: its low half; 128 bits: XXH3-128.
    Xxh3 {
        /// XXH3's own seed.
        #[serde(default)]
        seed: u64,
    },
    /// The word hash of the widespread Java SimHash articles: CPython 2's string hash, multiplier 1000003, over UTF-16 code units.
    ///
    /// It is kept so that published fingerprints can be reproduced. Its high bits are nearly constant for short words: a word of one
    /// or two units reaches some 40 bits, the rest of the fingerprint then carries no information.
    JavaPlain,
    /// The same, with words shorter than 3 UTF-16 units extended by their own first unit, and blank words hashed to 0.
    ///
    /// Blank is what Java calls white space: no-break spaces (U+00A0, U+2007, U+202F) and U+0085 are not blank, U+001C to U+001F are.
    JavaPad3,
}

impl Default for FeatureHash {
    fn default() -> Self {
        Self::Xxh3 { seed: 0 }
    }
}

impl FeatureHash {
    /// The hash of `feature`, [`F::BITS`](Fingerprint::BITS) bits wide, equal on every platform.
    ///
    /// XXH3 takes any bytes. The Java hashes read UTF-8; each invalid sequence counts as U+FFFD. An empty feature is 0 to them.
    ///
    /// ```
    /// use nearprint_fingerprint::FeatureHash;
    ///
    /// assert_eq!(FeatureHash::JavaPlain.hash::<u64>("\"i".as_bytes()), 4_352_026_146_039_181);
    /// assert_eq!(FeatureHash::JavaPad3.hash::<u64>(b" "), 0);
    /// ```
    #[inline]
    pub fn hash<F: Fingerprint>(&self, feature: &[u8]) -> F {
        match self {
            Self::Xxh3 { seed } => xxh3::hash(feature, *seed),
            Self::JavaPlain => java::plain(feature),
            Self::JavaPad3 => java::pad3(feature),
        }
    }
}
