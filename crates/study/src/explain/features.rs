//! Features of two texts side by side, and how they vote on the bits that differ.

use std::collections::BTreeMap;

use nearprint_tokenize::ONE;
use serde::Serialize;

use crate::legible::legible;
use nearprint_profile::ProfileConfig;

/// A feature with its weight in each text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExplainedFeature {
    /// The feature; the tokens of a shingle separated by blanks.
    pub feature: String,
    /// Its weight in the first text; 0 where it is not there.
    pub weight_a: f64,
    /// Its weight in the second.
    pub weight_b: f64,
}

/// Features of two texts, the heaviest first.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct FeatureTable {
    /// In both.
    pub shared: Vec<ExplainedFeature>,
    /// In the first only.
    pub only_a: Vec<ExplainedFeature>,
    /// In the second only.
    pub only_b: Vec<ExplainedFeature>,
}

/// A bit that is 1 in one fingerprint only.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DifferingBit {
    /// The bit; 0 is the least significant.
    pub bit: u32,
    /// v of the first text: the weight of the features whose hash has the bit, less the weight of the others.
    pub vote_a: f64,
    /// v of the second.
    pub vote_b: f64,
    /// The features that part the two votes most, at most ten: with the weights of the one text in the other, the votes would come nearer.
    pub features: Vec<ExplainedFeature>,
}

/// Deciding features of a bit that are listed.
const DECIDERS: usize = 10;

/// A feature of either text.
#[derive(Debug)]
pub struct Feature {
    bytes: Vec<u8>,
    hash: u64,
    weight_a: u64,
    weight_b: u64,
}

/// The features of both texts, by their bytes.
pub fn union(a: &[(Vec<u8>, u64)], b: &[(Vec<u8>, u64)], profile: &ProfileConfig) -> Vec<Feature> {
    let mut weights: BTreeMap<&[u8], (u64, u64)> = BTreeMap::new();
    for (feature, weight) in a {
        weights.entry(feature).or_default().0 += weight;
    }
    for (feature, weight) in b {
        weights.entry(feature).or_default().1 += weight;
    }
    let hash = |feature: &[u8]| match profile.bits {
        32 => u64::from(profile.fingerprint.feature_hash.hash::<u32>(feature)),
        _ => profile.fingerprint.feature_hash.hash::<u64>(feature),
    };
    let feature = |(bytes, (weight_a, weight_b)): (&[u8], (u64, u64))| Feature {
        bytes: bytes.to_vec(),
        hash: hash(bytes),
        weight_a,
        weight_b,
    };
    weights.into_iter().map(feature).collect()
}

pub fn table(features: &[Feature]) -> FeatureTable {
    let mut order: Vec<&Feature> = features.iter().collect();
    order.sort_by_key(|f| (std::cmp::Reverse(f.weight_a.max(f.weight_b)), &f.bytes));
    let chosen = |wanted: fn(&Feature) -> bool| order.iter().filter(|f| wanted(f)).map(|f| f.explained()).collect();
    FeatureTable {
        shared: chosen(|f| f.weight_a > 0 && f.weight_b > 0),
        only_a: chosen(|f| f.weight_b == 0),
        only_b: chosen(|f| f.weight_a == 0),
    }
}

/// The bits in which the fingerprints differ, the lowest first.
pub fn differing_bits(features: &[Feature], a: u64, b: u64) -> Vec<DifferingBit> {
    (0..u64::BITS)
        .filter(|bit| ((a ^ b) >> bit) & 1 == 1)
        .map(|bit| differing_bit(features, bit, (a >> bit) & 1))
        .collect()
}

fn differing_bit(features: &[Feature], bit: u32, value_a: u64) -> DifferingBit {
    let vote = |weight: fn(&Feature) -> u64| {
        let votes = features.iter().map(|f| f.sign(bit) * i128::from(weight(f)));
        in_ones(votes.sum())
    };
    // A feature's part in vote_a - vote_b, positive where it takes the two to their sides.
    let toward_a = if value_a == 1 { 1 } else { -1 };
    let part = |f: &Feature| toward_a * f.sign(bit) * (i128::from(f.weight_a) - i128::from(f.weight_b));
    let mut deciders: Vec<&Feature> = features.iter().filter(|f| part(f) > 0).collect();
    deciders.sort_by_key(|f| (std::cmp::Reverse(part(f)), &f.bytes));
    DifferingBit {
        bit,
        vote_a: vote(|f| f.weight_a),
        vote_b: vote(|f| f.weight_b),
        features: deciders.into_iter().take(DECIDERS).map(Feature::explained).collect(),
    }
}

impl Feature {
    /// 1 where the hash has the bit, else -1.
    fn sign(&self, bit: u32) -> i128 {
        if (self.hash >> bit) & 1 == 1 { 1 } else { -1 }
    }

    fn explained(&self) -> ExplainedFeature {
        ExplainedFeature {
            feature: legible(&String::from_utf8_lossy(&self.bytes)),
            weight_a: in_ones(self.weight_a.into()),
            weight_b: in_ones(self.weight_b.into()),
        }
    }
}

/// From units of 1/65536.
#[allow(clippy::cast_precision_loss, reason = "for people to read")]
fn in_ones(weight: i128) -> f64 {
    weight as f64 / ONE as f64
}
