//! The hashes that turn a feature into the bits that vote. A new hash is one new file and one variant;
//! those of published programs are in a folder of their own, which a cargo feature brings.

#[cfg(feature = "published")]
mod published;
pub(crate) mod xxh3;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fingerprint::Fingerprint;

/// The function that hashes a feature to as many bits as the fingerprint has.
///
/// In a configuration it is written as `{ xxh3 = { seed = 0 } }` (the seed may be left out), as `{ rust_sip_hash24 = {
/// k0 = 0, k1 = 0 } }` (the keys may be left out), or as a plain name: `"java_plain"`, `"md5_last"`. All hashes except
/// XXH3 exist to reproduce published programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FeatureHash {
    /// XXH3; the default, with seed 0. Fingerprints of 64 bits take XXH3-64, those of 32 bits its low half, and those
    /// of 128 bits XXH3-128.
    Xxh3 {
        /// The seed of XXH3.
        #[serde(default)]
        seed: u64,
    },
    /// The word hash of the widespread Java SimHash articles: CPython 2's string hash, multiplier 1000003, over UTF-16
    /// code units.
    ///
    /// It exists so that published fingerprints can be reproduced. Its high bits are nearly constant for short words: a
    /// word of one or two units reaches about 40 bits, and the rest of the fingerprint then carries no information.
    JavaPlain,
    /// The same hash, but words shorter than 3 UTF-16 units are extended by their own first unit, and blank words are
    /// hashed to 0.
    ///
    /// A word is blank if all of it is white space to Java: no-break spaces (U+00A0, U+2007, U+202F) and U+0085 are not
    /// white space, but U+001C to U+001F are.
    JavaPad3,
    /// The first bytes of MD5, read big-endian: 16 bytes for 128 bits, otherwise 8, of which 32-bit fingerprints take
    /// the low half. This is the hash of seomoz's simhash-py, in the recipe of its tests.
    Md5First,
    /// The last bytes of MD5, read big-endian, in the same numbers. This is the hash of Python's simhash 2.1.2 (1e0ng).
    Md5Last,
    /// SipHash-2-4 as a Rust program gets it from hashing a `str`: over the feature and one 0xFF byte. Fingerprints of
    /// 64 bits take its 64-bit output, those of 32 bits the low half of that, and those of 128 bits its 128-bit output.
    /// The crates simhash 0.3.0 (keys 0, 0) and gaoya 0.2.2 (keys 5, 6) use it.
    #[serde(rename = "rust_sip_hash24")]
    RustSipHash24 {
        /// The first half of the key.
        #[serde(default)]
        k0: u64,
        /// The second half of the key.
        #[serde(default)]
        k1: u64,
    },
    /// FNV-1a of 64 bits as a Rust program gets it from hashing a `str`: over the feature and one 0xFF byte. The crate
    /// simhash 0.3.0 uses it with its FNV hasher. Fingerprints of 32 bits take the low half.
    RustFnv1a,
    /// `hashlittle2` of Bob Jenkins' lookup3, with both seeds 0 and the primary value `c` as the high half. yanyiwu's
    /// simhash over cppjieba uses it. Fingerprints of 32 bits take the low half.
    Lookup3,
    /// The BKDR string hash: each step multiplies by 131 and adds the byte, as a signed one; the result is masked to 31
    /// bits at the end. It serves fingerprints of 32 bits only, and their highest bit is always 0. mllearning's SimHash
    /// uses it.
    Bkdr131,
    /// Murmur 2 as sing1ee's Java has it, with seed 0. Fingerprints of 64 bits take MurmurHash64A with its tail bytes
    /// sign-extended; those of 32 bits take MurmurHash2 with its tail bytes sign-extended and in reverse order. The
    /// values are not the canonical ones if a tail byte is above 0x7F, nor, at 32 bits, for tails of two or three
    /// bytes.
    MurmurSigned,
}

impl Default for FeatureHash {
    fn default() -> Self {
        Self::Xxh3 { seed: 0 }
    }
}

impl FeatureHash {
    /// Returns the hash of `feature`, which is [`F::BITS`](Fingerprint::BITS) bits wide and equal on every platform.
    ///
    /// All hashes except the Java ones take any bytes. The Java hashes read UTF-8: each invalid sequence counts as
    /// U+FFFD, and an empty feature has the hash 0.
    ///
    /// # Panics
    /// If the crate is built without the cargo feature `published` and the hash is not XXH3: see
    /// [`FingerprintConfig::validate`](crate::FingerprintConfig::validate).
    ///
    /// ```
    /// use nearprint_fingerprint::FeatureHash;
    ///
    /// assert_eq!(FeatureHash::Xxh3 { seed: 0 }.hash::<u64>(b""), 0x2d06_8005_38d3_94c2);
    /// # #[cfg(feature = "published")]
    /// assert_eq!(FeatureHash::JavaPlain.hash::<u64>("\"i".as_bytes()), 4_352_026_146_039_181);
    /// # #[cfg(feature = "published")]
    /// assert_eq!(FeatureHash::JavaPad3.hash::<u64>(b" "), 0);
    /// ```
    #[inline]
    pub fn hash<F: Fingerprint>(&self, feature: &[u8]) -> F {
        match self {
            Self::Xxh3 { seed } => xxh3::hash(feature, *seed),
            #[cfg(feature = "published")]
            other => published::hash(other, feature),
            #[cfg(not(feature = "published"))]
            other => unreachable!("{other:?} needs the cargo feature `published`: FingerprintConfig::validate says so"),
        }
    }

    /// Returns the widths, in bits, of the fingerprints that this hash can fill.
    ///
    /// In a wider fingerprint the hash would leave the highest bits 0, so
    /// [`FingerprintConfig::validate`](crate::FingerprintConfig::validate) refuses it.
    #[must_use]
    pub fn widths(&self) -> &'static [u32] {
        match self {
            Self::Xxh3 { .. }
            | Self::JavaPlain
            | Self::JavaPad3
            | Self::Md5First
            | Self::Md5Last
            | Self::RustSipHash24 { .. } => &[32, 64, 128],
            Self::RustFnv1a | Self::Lookup3 | Self::MurmurSigned => &[32, 64],
            Self::Bkdr131 => &[32],
        }
    }
}
