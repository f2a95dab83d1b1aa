//! SimHash: features vote on each bit with their weight.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bit_rule::BitRule;
use crate::error::FingerprintError;
use crate::feature_hash::FeatureHash;
use crate::fingerprint::Fingerprint;
use crate::votes::Votes;

/// Everything that determines a fingerprint besides the features. Every store should record a digest of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FingerprintConfig {
    /// The hash whose bits vote.
    pub feature_hash: FeatureHash,
    /// The rule by which votes become bits.
    pub bit_rule: BitRule,
}

impl FingerprintConfig {
    /// Checks that the feature hash can fill fingerprints of `bits` bits.
    ///
    /// # Errors
    /// [`FingerprintError::Width`] if it cannot.
    pub fn validate(&self, bits: u32) -> Result<(), FingerprintError> {
        let is_built = cfg!(feature = "published") || matches!(self.feature_hash, FeatureHash::Xxh3 { .. });
        if !is_built {
            return Err(FingerprintError::NotBuilt { feature_hash: self.feature_hash.clone() });
        }
        let widths = self.feature_hash.widths();
        if widths.contains(&bits) {
            return Ok(());
        }
        Err(FingerprintError::Width { feature_hash: self.feature_hash.clone(), bits, widths })
    }
}

/// Returns the SimHash of weighted features, which are pairs `(bytes, weight)` with weights in units of 1/65536.
///
/// Bit i is decided by v_i, which is the sum of the weights of the features whose hash has bit i, minus the weights of
/// the others. The order of the features does not matter (but see [`BitRule::FloatPositive`]), a feature that is given
/// twice counts with both weights, and a feature of weight 0 does not vote. Sums are exact for any weights.
///
/// Do not fingerprint texts without features: all of them would get [`F::ZERO`](Fingerprint::ZERO) under
/// [`BitRule::Positive`] or [`F::MAX`](Fingerprint::MAX) under [`BitRule::NonNegative`], and would be duplicates of
/// each other.
///
/// Each feature costs one hash and about seven operations on fingerprints if the features share a few weights;
/// otherwise it costs one hash and [`F::BITS`](Fingerprint::BITS) additions.
///
/// Source: Charikar, "Similarity Estimation Techniques from Rounding Algorithms" (STOC 2002), section 3; Manku, Jain,
/// Das Sarma, "Detecting Near-Duplicates for Web Crawling" (WWW 2007), section 2.
///
/// ```
/// use nearprint_fingerprint::{FingerprintConfig, simhash};
///
/// let features = [("near", 2 << 16), ("duplicate", 1 << 16)];
/// let fingerprint: u64 = simhash(features.map(|(word, weight)| (word.as_bytes(), weight)), &FingerprintConfig::default());
/// // The heavier of two features wins every bit.
/// assert_eq!(fingerprint, FingerprintConfig::default().feature_hash.hash::<u64>("near".as_bytes()));
/// ```
///
/// # Panics
/// If the crate is built without the config's hash: see [`FingerprintConfig::validate`].
pub fn simhash<'a, F: Fingerprint>(
    features: impl IntoIterator<Item = (&'a [u8], u64)>,
    config: &FingerprintConfig,
) -> F {
    simhash_of_hashes(features.into_iter().map(|(feature, weight)| (config.feature_hash.hash(feature), weight)), config)
}

/// Returns the SimHash of features that are already hashed by `config`'s own
/// [`feature_hash`](FingerprintConfig::feature_hash).
///
/// ```
/// use nearprint_fingerprint::{FingerprintConfig, simhash_of_hashes};
///
/// let hashes = [(0b1100_u64, 1 << 16), (0b1010, 1 << 16), (0b1001, 1 << 16)];
/// assert_eq!(simhash_of_hashes(hashes, &FingerprintConfig::default()), 0b1000);
/// ```
pub fn simhash_of_hashes<F: Fingerprint>(hashes: impl IntoIterator<Item = (F, u64)>, config: &FingerprintConfig) -> F {
    if config.bit_rule == BitRule::FloatPositive {
        return float_simhash(hashes);
    }
    let mut votes = Votes::<F>::default();
    // Not `for`: a chain of two iterators would look at each feature which of the two is next.
    hashes.into_iter().for_each(|(hash, weight)| votes.add(hash, weight));
    votes.into_fingerprint(config.bit_rule)
}

/// Returns the SimHash under [`BitRule::FloatPositive`].
fn float_simhash<F: Fingerprint>(hashes: impl IntoIterator<Item = (F, u64)>) -> F {
    let mut sums = vec![0.0; F::BITS as usize];
    for (hash, weight) in hashes {
        let bits = hash.to_u128();
        for (bit, sum) in sums.iter_mut().enumerate() {
            *sum += if (bits >> bit) & 1 == 1 { weight as f64 } else { -(weight as f64) };
        }
    }
    sums.iter().rev().fold(F::ZERO, |bits, &sum| (bits << 1) | F::from_u128(u128::from(sum > 0.0)))
}
