//! SimHash: features vote on each bit with their weight.

use std::marker::PhantomData;

use serde::{Deserialize, Serialize};

use crate::{FeatureHash, Fingerprint, FingerprintError};

/// When a bit of the fingerprint is 1, v being the weight of the features that have the bit less the weight of those that have not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BitRule {
    /// v > 0, as in the paper; the default.
    #[default]
    Positive,
    /// v ≥ 0, as in the Java articles' code.
    NonNegative,
    /// v < 0: the vote inverted, as in the crate gaoya 0.2.2.
    Negative,
    /// v > 1, in whole weights: sing1ee's SimHash of 32 bits.
    AboveOne,
    /// v > 0, v summed in double precision in the order of the features, whose rounding decides where votes cancel: yanyiwu's simhash. The
    /// only rule under which the order of the features matters.
    FloatPositive,
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

impl FingerprintConfig {
    /// Checks that the feature hash can fill fingerprints of `bits` bits.
    ///
    /// # Errors
    /// [`FingerprintError::Width`] when it cannot.
    pub fn validate(&self, bits: u32) -> Result<(), FingerprintError> {
        let widths = self.feature_hash.widths();
        if widths.contains(&bits) {
            return Ok(());
        }
        Err(FingerprintError::Width { feature_hash: self.feature_hash.clone(), bits, widths })
    }
}

/// The SimHash of weighted features, `(bytes, weight)` with weights in units of 1/65536.
///
/// Bit i is decided by v_i, the sum of the weights of the features whose hash has bit i, less the weights of the others. The order of the
/// features does not matter (but see [`BitRule::FloatPositive`]), a feature given twice counts with both weights, and weight 0 is no vote. Sums are exact for any weights:
/// they are kept in 64 bits while the total weight allows it (below 2^48 in whole units) and in 128 bits beyond.
///
/// Do not fingerprint texts without features: all of them get [`F::ZERO`](Fingerprint::ZERO) under [`BitRule::Positive`],
/// [`F::MAX`](Fingerprint::MAX) under [`BitRule::NonNegative`], and would be duplicates of each other.
///
/// Cost: one hash and [`F::BITS`](Fingerprint::BITS) additions a feature.
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
    if config.bit_rule == BitRule::FloatPositive {
        return float_simhash(features, &config.feature_hash);
    }
    let mut votes = Votes::<F>::default();
    for (feature, weight) in features {
        votes.add(config.feature_hash.hash(feature), weight);
    }
    votes.into_fingerprint(config.bit_rule)
}

/// [`BitRule::FloatPositive`].
fn float_simhash<'a, F: Fingerprint>(
    features: impl IntoIterator<Item = (&'a [u8], u64)>,
    feature_hash: &FeatureHash,
) -> F {
    let mut sums = [0.0; MAX_BITS];
    for (feature, weight) in features {
        let [low, high] = words(feature_hash.hash::<F>(feature));
        for (bit, sum) in sums.iter_mut().enumerate() {
            let word = if bit < 64 { low } else { high };
            *sum += if (word >> (bit % 64)) & 1 == 1 { weight as f64 } else { -(weight as f64) };
        }
    }
    let lanes = sums.iter().take(F::BITS as usize).rev();
    lanes.fold(F::ZERO, |bits, &sum| (bits << 1) | F::from_u128(u128::from(sum > 0.0)))
}

const MAX_BITS: usize = 128;

/// The weight of 1 in units of 1/65536.
const ONE: u128 = 1 << 16;

/// The sums of the votes so far, lane i for bit i; lanes from `F::BITS` on stay 0.
///
/// Only the weight *for* each bit is summed: v_i = ones_i - (total - ones_i). Invariant: `ones[i] <= total`, which does not overflow; what was
/// spilled before it would have is in the wide sums.
pub(crate) struct Votes<F> {
    ones: [u64; MAX_BITS],
    total: u64,
    /// Empty until the first spill.
    wide_ones: Vec<u128>,
    wide_total: u128,
    width: PhantomData<F>,
}

impl<F: Fingerprint> Default for Votes<F> {
    fn default() -> Self {
        Self { ones: [0; MAX_BITS], total: 0, wide_ones: Vec::new(), wide_total: 0, width: PhantomData }
    }
}

impl<F: Fingerprint> Votes<F> {
    /// Adds `weight` for each bit of `hash` that is 1, against each that is 0.
    #[inline]
    pub(crate) fn add(&mut self, hash: F, weight: u64) {
        if self.total.checked_add(weight).is_none() {
            self.spill();
        }
        self.total += weight;
        for (lanes, word) in self.ones.chunks_exact_mut(64).zip(words(hash)).take(F::BITS.div_ceil(64) as usize) {
            for (lane, ones) in lanes.iter_mut().enumerate().take(F::BITS as usize) {
                *ones += weight & ((word >> lane) & 1).wrapping_neg();
            }
        }
    }

    /// The bits that win under `rule`.
    pub(crate) fn into_fingerprint(mut self, rule: BitRule) -> F {
        self.spill();
        let total = self.wide_total;
        let wins = |ones: u128| match rule {
            BitRule::Positive | BitRule::FloatPositive => ones > total - ones,
            BitRule::NonNegative => ones >= total - ones,
            BitRule::Negative => ones < total - ones,
            BitRule::AboveOne => ones > total - ones + ONE,
        };
        // From the highest bit down, so that each step is a shift by one.
        self.wide_ones.iter().rev().fold(F::ZERO, |bits, &ones| (bits << 1) | F::from_u128(u128::from(wins(ones))))
    }

    /// Moves the narrow sums into the wide ones. 2^64 spills would be needed to overflow those.
    fn spill(&mut self) {
        self.wide_ones.resize(F::BITS as usize, 0);
        for (wide, narrow) in self.wide_ones.iter_mut().zip(&mut self.ones) {
            *wide += u128::from(std::mem::take(narrow));
        }
        self.wide_total += u128::from(std::mem::take(&mut self.total));
    }
}

/// The 64-bit words of `hash`, the lowest first.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "the words are the two halves")]
fn words<F: Fingerprint>(hash: F) -> [u64; 2] {
    let bits = hash.to_u128();
    [bits as u64, (bits >> 64) as u64]
}
