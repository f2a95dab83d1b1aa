//! Compares the features of two texts, and their votes on the bits that differ.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::legible::legible;
use nearprint_profile::ProfileConfig;

/// A feature with its weight in each text.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ExplainedFeature {
    /// The feature. Blanks separate the tokens of a shingle.
    pub feature: String,
    /// Its weight in the first text, or 0 if the text does not have it.
    pub weight_a: f64,
    /// Its weight in the second text, or 0 if the text does not have it.
    pub weight_b: f64,
}

/// The features of two texts, in descending order of weight.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct FeatureTable {
    /// The features of both texts.
    pub shared: Vec<ExplainedFeature>,
    /// The features of the first text only.
    pub only_a: Vec<ExplainedFeature>,
    /// The features of the second text only.
    pub only_b: Vec<ExplainedFeature>,
}

/// A bit that is 1 in only one of two fingerprints.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DifferingBit {
    /// The number of the bit. Bit 0 is the least significant.
    pub bit: u32,
    /// The vote v of the first text: the weight of the features whose hash has the bit, minus the weight of the others.
    pub vote_a: f64,
    /// The vote v of the second text.
    pub vote_b: f64,
    /// The features that separate the two votes most, at most ten. If such a feature had the same weight in both texts,
    /// the votes would be closer.
    pub features: Vec<ExplainedFeature>,
}

/// The most deciding features that are listed for a bit.
const DECIDERS: usize = 10;

/// A feature that at least one of the texts has.
#[derive(Debug)]
pub struct Feature {
    bytes: Vec<u8>,
    hash: u64,
    weight_a: f64,
    weight_b: f64,
}

/// Returns the features of both texts, ordered by their bytes. Beside the features of each text stands the number of units of weight
/// that make 1 there.
#[allow(clippy::cast_precision_loss, reason = "for people to read")]
pub fn union(
    (a, unit_a): (&[(Vec<u8>, u64)], u64),
    (b, unit_b): (&[(Vec<u8>, u64)], u64),
    profile: &ProfileConfig,
) -> Vec<Feature> {
    let mut weights: BTreeMap<&[u8], (f64, f64)> = BTreeMap::new();
    for (feature, weight) in a {
        weights.entry(feature).or_default().0 += *weight as f64 / unit_a as f64;
    }
    for (feature, weight) in b {
        weights.entry(feature).or_default().1 += *weight as f64 / unit_b as f64;
    }
    let hash = |feature: &[u8]| match profile.bits {
        32 => u64::from(profile.fingerprint.feature_hash.hash::<u32>(feature)),
        _ => profile.fingerprint.feature_hash.hash::<u64>(feature),
    };
    let feature = |(bytes, (weight_a, weight_b)): (&[u8], (f64, f64))| Feature {
        bytes: bytes.to_vec(),
        hash: hash(bytes),
        weight_a,
        weight_b,
    };
    weights.into_iter().map(feature).collect()
}

pub fn table(features: &[Feature]) -> FeatureTable {
    let mut order: Vec<&Feature> = features.iter().collect();
    let heaviest = |f: &Feature| f.weight_a.max(f.weight_b);
    order.sort_by(|f, g| heaviest(g).total_cmp(&heaviest(f)).then_with(|| f.bytes.cmp(&g.bytes)));
    let chosen = |wanted: fn(&Feature) -> bool| order.iter().filter(|f| wanted(f)).map(|f| f.explained()).collect();
    FeatureTable {
        shared: chosen(|f| f.weight_a > 0.0 && f.weight_b > 0.0),
        only_a: chosen(|f| f.weight_b <= 0.0),
        only_b: chosen(|f| f.weight_a <= 0.0),
    }
}

/// Returns the bits in which the fingerprints differ, in ascending order.
pub fn differing_bits(features: &[Feature], a: u64, b: u64) -> Vec<DifferingBit> {
    (0..u64::BITS)
        .filter(|bit| ((a ^ b) >> bit) & 1 == 1)
        .map(|bit| differing_bit(features, bit, (a >> bit) & 1))
        .collect()
}

fn differing_bit(features: &[Feature], bit: u32, value_a: u64) -> DifferingBit {
    let vote = |weight: fn(&Feature) -> f64| features.iter().map(|f| f.sign(bit) * weight(f)).sum();
    // The contribution of a feature to vote_a - vote_b. It is positive if the feature pulls the votes apart to their
    // sides.
    let toward_a = if value_a == 1 { 1.0 } else { -1.0 };
    let part = |f: &Feature| toward_a * f.sign(bit) * (f.weight_a - f.weight_b);
    let mut deciders: Vec<&Feature> = features.iter().filter(|f| part(f) > 0.0).collect();
    deciders.sort_by(|f, g| part(g).total_cmp(&part(f)).then_with(|| f.bytes.cmp(&g.bytes)));
    DifferingBit {
        bit,
        vote_a: vote(|f| f.weight_a),
        vote_b: vote(|f| f.weight_b),
        features: deciders.into_iter().take(DECIDERS).map(Feature::explained).collect(),
    }
}

impl Feature {
    /// Returns 1 if the hash has the bit, and -1 otherwise.
    fn sign(&self, bit: u32) -> f64 {
        if (self.hash >> bit) & 1 == 1 { 1.0 } else { -1.0 }
    }

    fn explained(&self) -> ExplainedFeature {
        ExplainedFeature {
            feature: legible(&String::from_utf8_lossy(&self.bytes)),
            weight_a: self.weight_a,
            weight_b: self.weight_b,
        }
    }
}
