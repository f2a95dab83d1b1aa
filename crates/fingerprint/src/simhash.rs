//! SimHash: features vote on each bit with their weight.

use serde::{Deserialize, Serialize};

use crate::votes::Votes;
use crate::{FeatureHash, Fingerprint};

/// When a bit of the fingerprint is 1, v being the weight of the features that have the bit less the weight of those that have not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BitRule {
    /// v > 0, as in the paper; the default.
    #[default]
    Positive,
    /// v ≥ 0, as in the Java articles' code.
    NonNegative,
}

/// All that, besides the features, decides a fingerprint. Its digest belongs in every store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FingerprintConfig {
    /// The hash whose bits vote.
    pub feature_hash: FeatureHash,
    /// How votes become bits.
    pub bit_rule: BitRule,
}

/// The SimHash of weighted features, `(bytes, weight)` with weights in units of 1/65536.
///
/// Bit i is decided by v_i, the sum of the weights of the features whose hash has bit i, less the weights of the others. The order of the
/// features does not matter, a feature given twice counts with both weights, and weight 0 is no vote. Sums are exact for any weights.
///
/// Do not fingerprint texts without features: all of them get [`F::ZERO`](Fingerprint::ZERO) under [`BitRule::Positive`],
/// [`F::MAX`](Fingerprint::MAX) under [`BitRule::NonNegative`], and would be duplicates of each other.
///
/// Cost: one hash and some seven operations on fingerprints a feature, where features share a few weights; else one hash and
/// [`F::BITS`](Fingerprint::BITS) additions.
///
/// Source: Charikar, "Similarity Estimation Techniques from Rounding Algorithms" (STOC 2002), section 3; Manku, Jain, Das Sarma, "Detecting
/// Near-Duplicates for Web Crawling" (WWW 2007), section 2.
///
/// ```
/// use nearprint_fingerprint::{FingerprintConfig, simhash};
///
/// let features = [("near", 2 << 16), ("duplicate", 1 << 16)];
/// let fingerprint: u64 = simhash(features.map(|(word, weight)| (word.as_bytes(), weight)), &FingerprintConfig::default());
/// // The heavier of two features wins every bit.
/// assert_eq!(fingerprint, FingerprintConfig::default().feature_hash.hash("near".as_bytes()));
/// ```
pub fn simhash<'a, F: Fingerprint>(
    features: impl IntoIterator<Item = (&'a [u8], u64)>,
    config: &FingerprintConfig,
) -> F {
    simhash_of_hashes(features.into_iter().map(|(feature, weight)| (config.feature_hash.hash(feature), weight)), config)
}

/// The same of features that are hashed already, by `config`'s own [`feature_hash`](FingerprintConfig::feature_hash).
pub fn simhash_of_hashes<F: Fingerprint>(hashes: impl IntoIterator<Item = (F, u64)>, config: &FingerprintConfig) -> F {
    let mut votes = Votes::<F>::default();
    for (hash, weight) in hashes {
        votes.add(hash, weight);
    }
    votes.into_fingerprint(config.bit_rule)
}
