//! Laws of fingerprints and sketches, checked against programs too slow and too plain to be wrong.

use std::collections::{BTreeMap, BTreeSet};

use nearprint_fingerprint::{
    BitRule, DistinctHashes, FeatureHash, Fingerprint, FingerprintConfig, FingerprintError, Sketch, hamming_distance,
    simhash, sketch, sketch_and_count, token_hash,
};
use proptest::collection::vec;
use proptest::prelude::*;

type Features = Vec<(Vec<u8>, u64)>;

fn borrow(features: &Features) -> impl Iterator<Item = (&[u8], u64)> {
    features.iter().map(|(feature, weight)| (feature.as_slice(), *weight))
}

/// Weights of every size, so that sums of 64 bits would overflow in many cases and ties are common in others.
fn features() -> impl Strategy<Value = Features> {
    let weight = prop_oneof![Just(1 << 16), 0..4_u64, 1..(64_u64 << 16), any::<u64>(), Just(u64::MAX)];
    vec((vec(any::<u8>(), 0..12), weight), 0..24)
}

fn config() -> impl Strategy<Value = FingerprintConfig> {
    let feature_hash = prop_oneof![
        any::<u64>().prop_map(|seed| FeatureHash::Xxh3 { seed }),
        Just(FeatureHash::JavaPlain),
        Just(FeatureHash::JavaPad3),
        Just(FeatureHash::Md5First),
        Just(FeatureHash::Md5Last),
        any::<(u64, u64)>().prop_map(|(k0, k1)| FeatureHash::RustSipHash24 { k0, k1 }),
        Just(FeatureHash::RustFnv1a),
        Just(FeatureHash::Lookup3),
        Just(FeatureHash::Bkdr131),
        Just(FeatureHash::MurmurSigned),
    ];
    let bit_rule = prop_oneof![
        Just(BitRule::Positive),
        Just(BitRule::NonNegative),
        Just(BitRule::Negative),
        Just(BitRule::AboveOne)
    ];
    (feature_hash, bit_rule).prop_map(|(feature_hash, bit_rule)| FingerprintConfig { feature_hash, bit_rule })
}

/// Those whose rule looks at the sign of v alone, and goes with the majority.
fn majority_config() -> impl Strategy<Value = FingerprintConfig> {
    let rule = prop_oneof![Just(BitRule::Positive), Just(BitRule::NonNegative)];
    (config(), rule).prop_map(|(config, bit_rule)| FingerprintConfig { bit_rule, ..config })
}

/// The highest bit first, one character a bit.
fn bit_string<F: Fingerprint>(value: F) -> String {
    let bits = format!("{:0128b}", value.to_u128());
    bits[128 - F::BITS as usize..].to_owned()
}

fn naive_distance(a: &str, b: &str) -> usize {
    assert_eq!(a.len(), b.len());
    a.chars().zip(b.chars()).filter(|(a, b)| a != b).count()
}

fn naive_simhash<F: Fingerprint>(features: &Features, config: &FingerprintConfig) -> String {
    let hashes: Vec<(String, i128)> = features
        .iter()
        .map(|(feature, weight)| (bit_string(config.feature_hash.hash::<F>(feature)), i128::from(*weight)))
        .collect();
    let bit = |place: usize| {
        let v: i128 =
            hashes.iter().map(|(bits, weight)| if bits.as_bytes()[place] == b'1' { *weight } else { -weight }).sum();
        match config.bit_rule {
            BitRule::Positive | BitRule::FloatPositive => v > 0,
            BitRule::NonNegative => v >= 0,
            BitRule::Negative => v < 0,
            BitRule::AboveOne => v > 1 << 16,
        }
    };
    (0..F::BITS as usize).map(|place| if bit(place) { '1' } else { '0' }).collect()
}

fn check_against_naive<F: Fingerprint>(features: &Features, config: &FingerprintConfig) {
    assert_eq!(bit_string(simhash::<F>(borrow(features), config)), naive_simhash::<F>(features, config));
}

fn check_metric<F: Fingerprint>(a: F, b: F, c: F) {
    assert_eq!(hamming_distance(a, b) as usize, naive_distance(&bit_string(a), &bit_string(b)));
    assert_eq!(hamming_distance(a, b), hamming_distance(b, a));
    assert_eq!(hamming_distance(a, b) == 0, a == b);
    assert!(hamming_distance(a, c) <= hamming_distance(a, b) + hamming_distance(b, c));
    assert_eq!(hamming_distance(a, !a), F::BITS);
    assert_eq!(hamming_distance(F::ZERO, a), a.count_ones());
}

fn check_integer<F: Fingerprint>(value: u128) {
    let fingerprint = F::from_u128(value);
    assert_eq!(fingerprint.to_u128(), value & F::MAX.to_u128());
    assert_eq!(fingerprint.leading_zeros() as usize, bit_string(fingerprint).find('1').unwrap_or(F::BITS as usize));
    assert_eq!(F::MAX, !F::ZERO);
    assert_eq!(F::MAX.count_ones(), F::BITS);
}

#[test]
fn no_features_give_zero_or_all_ones_by_the_rule() {
    let config = |bit_rule| FingerprintConfig { bit_rule, ..FingerprintConfig::default() };
    assert_eq!(simhash::<u64>([], &config(BitRule::Positive)), u64::ZERO);
    assert_eq!(simhash::<u64>([], &config(BitRule::NonNegative)), u64::MAX);
    assert_eq!(sketch_of(&[], &[], 2), Sketch([0; 32]));
}

#[test]
fn sums_beyond_64_bits_stay_exact() {
    // The two features are even but for the last unit, 1 in 2^66.
    let heaviest = [("a", u64::MAX), ("b", u64::MAX), ("a", u64::MAX), ("b", u64::MAX), ("a", 1)];
    let config = FingerprintConfig::default();
    let fingerprint: u64 = simhash(heaviest.map(|(word, weight)| (word.as_bytes(), weight)), &config);
    assert_eq!(fingerprint, config.feature_hash.hash::<u64>(b"a"));
}

/// Stores hold sketches and fingerprints: these values must not change between releases.
#[test]
fn published_values_do_not_change() {
    let words = ["near", "duplicate", "detection", "近", "重复"].map(|word| (word.as_bytes(), 1 << 16));
    assert_eq!(simhash::<u64>(words, &FingerprintConfig::default()), 10_994_496_066_092_965_040);
    let hashes = words.map(|(word, _)| token_hash(word, 0));
    let hex: String = sketch_of(&hashes, &[0, 1, 2, 3, 4, 1], 2).0.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "3f834cea64f6ce49bd2bf9a08eb7bf32ca011de7d15ce4736218095ff5b74a88");
}

#[test]
fn a_sketch_is_read_back_from_its_32_bytes_only() {
    let sketch = sketch_of(&[token_hash(b"a", 0)], &[0], 2);
    assert_eq!(Sketch::try_from(sketch.0.as_slice()), Ok(sketch));
    assert_eq!(Sketch::try_from([0; 8].as_slice()), Err(FingerprintError::SketchLength { got: 8 }));
}

/// More hashes of one weight than a counter's planes can count.
#[test]
fn a_million_votes_of_one_weight_are_counted() {
    let config = FingerprintConfig::default();
    let (a, b) = (b"a".as_slice(), b"b".as_slice());
    let many = |n_a: usize, n_b: usize| -> u64 {
        simhash(std::iter::repeat_n((a, 3), n_a).chain(std::iter::repeat_n((b, 3), n_b)), &config)
    };
    assert_eq!(many(1_100_001, 1_100_000), config.feature_hash.hash::<u64>(a));
    assert_eq!(many(1_100_000, 1_100_001), config.feature_hash.hash::<u64>(b));
}

fn sketch_of(hashes: &[u64], sequence: &[u32], width: usize) -> Sketch {
    let count = |number: usize| sequence.iter().filter(|&&token| token as usize == number).map(|_| 1).sum::<u64>();
    sketch(hashes, (0..hashes.len()).map(count), sequence, width)
}

/// The elements of a sketch, from its description: (occurrence of a token, up to 4) and distinct shingles.
fn elements(sequence: &[u32], width: usize) -> BTreeSet<Vec<u32>> {
    let occurrence = |at: usize| sequence[..=at].iter().filter(|&&token| token == sequence[at]).map(|_| 1).sum::<u32>();
    let tokens = (0..sequence.len()).map(|at| (at, occurrence(at))).filter(|(_, occurrence)| *occurrence <= 4);
    let tokens = tokens.map(|(at, occurrence)| vec![sequence[at], u32::MAX - occurrence]);
    let shingles = sequence.windows(width).filter(|_| width > 1).map(<[u32]>::to_vec);
    tokens.chain(shingles).collect()
}

/// Over many pairs of texts the share of differing bits is (1 - J) / 2 of their elements, also where texts have fewer elements than bins.
#[test]
fn sketches_differ_in_half_of_what_their_elements_do() {
    for n_tokens in [12_u32, 60, 3000] {
        for n_changed in [0, 1, n_tokens / 8, n_tokens / 3, n_tokens] {
            let (mut expected, mut differing) = (0.0, 0);
            for trial in 0..60 {
                let hashes: Vec<u64> = (0..2 * n_tokens)
                    .map(|token| token_hash(&[token.to_le_bytes(), u32::to_le_bytes(trial)].concat(), 7))
                    .collect();
                let a: Vec<u32> = (0..n_tokens).collect();
                let b: Vec<u32> =
                    (0..n_tokens).map(|token| if token < n_changed { token + n_tokens } else { token }).collect();
                let (x, y) = (elements(&a, 2), elements(&b, 2));
                let jaccard = x.intersection(&y).count() as f64 / x.union(&y).count() as f64;
                expected += 256.0 * (1.0 - jaccard) / 2.0;
                differing += sketch_of(&hashes, &a, 2).distance(&sketch_of(&hashes, &b, 2));
            }
            let (mean, expected) = (f64::from(differing) / 60.0, expected / 60.0);
            assert!((mean - expected).abs() < 4.0, "{n_tokens} tokens, {n_changed} changed: {mean} of {expected}");
        }
    }
}

proptest! {
    #[test]
    fn fingerprints_are_integers_of_their_width(value: u128) {
        check_integer::<u32>(value);
        check_integer::<u64>(value);
        check_integer::<u128>(value);
    }

    #[test]
    fn hamming_distance_is_a_metric(a: u128, b: u128, c: u128) {
        check_metric(u32::from_u128(a), u32::from_u128(b), u32::from_u128(c));
        check_metric(u64::from_u128(a), u64::from_u128(b), u64::from_u128(c));
        check_metric(a, b, c);
    }

    #[test]
    fn simhash_is_what_counting_characters_gives(features in features(), config in config()) {
        check_against_naive::<u32>(&features, &config);
        check_against_naive::<u64>(&features, &config);
        check_against_naive::<u128>(&features, &config);
    }

    #[test]
    fn counting_hashes_of_equal_weight_is_adding_them_up(
        features in vec((vec(any::<u8>(), 0..3), prop_oneof![4 => 1..9_u64, 1 => 0..1_u64 << 33]), 0..400),
        config in config(),
    ) {
        check_against_naive::<u32>(&features, &config);
        check_against_naive::<u64>(&features, &config);
        check_against_naive::<u128>(&features, &config);
    }

    #[test]
    fn the_order_of_features_does_not_matter(
        (features, shuffled) in features().prop_flat_map(|features| (Just(features.clone()), Just(features).prop_shuffle())),
        config in config(),
    ) {
        prop_assert_eq!(simhash::<u64>(borrow(&features), &config), simhash::<u64>(borrow(&shuffled), &config));
    }

    #[test]
    fn scaling_all_weights_changes_nothing(
        features in vec((vec(any::<u8>(), 0..12), 0..1_u64 << 40), 0..24),
        factor in 1..1_u64 << 23,
        config in majority_config(),
    ) {
        let scaled: Features = features.iter().map(|(feature, weight)| (feature.clone(), weight * factor)).collect();
        prop_assert_eq!(simhash::<u64>(borrow(&features), &config), simhash::<u64>(borrow(&scaled), &config));
    }

    #[test]
    fn a_repeated_feature_counts_with_the_sum_of_its_weights(feature: Vec<u8>, a in 0..1_u64 << 60, b in 0..1_u64 << 60, rest in features(), config in config()) {
        let mut split = rest.clone();
        split.extend([(feature.clone(), a), (feature.clone(), b)]);
        let mut merged = rest;
        merged.push((feature, a + b));
        prop_assert_eq!(simhash::<u128>(borrow(&split), &config), simhash::<u128>(borrow(&merged), &config));
    }

    #[test]
    fn one_feature_has_its_own_hash_as_fingerprint(feature: Vec<u8>, weight in 1..u64::MAX, config in majority_config()) {
        let fingerprint: u64 = simhash([(feature.as_slice(), weight)], &config);
        prop_assert_eq!(fingerprint, config.feature_hash.hash::<u64>(&feature));
    }

    #[test]
    fn sketch_distance_is_a_metric_and_counts_differing_bits(a: [u8; 32], b: [u8; 32], c: [u8; 32]) {
        let bits = |sketch: [u8; 32]| sketch.iter().map(|byte| format!("{byte:08b}")).collect::<String>();
        let [x, y, z] = [Sketch(a), Sketch(b), Sketch(c)];
        prop_assert_eq!(x.distance(&y) as usize, naive_distance(&bits(a), &bits(b)));
        prop_assert_eq!(x.distance(&y), y.distance(&x));
        prop_assert_eq!(x.distance(&x), 0);
        prop_assert!(x.distance(&z) <= x.distance(&y) + y.distance(&z));
        prop_assert_eq!(x.distance(&Sketch(a.map(|byte| !byte))), Sketch::BITS);
    }

    /// Of two tokens long texts have much the same elements.
    #[test]
    fn a_sketch_is_made_of_its_elements_alone(
        texts in vec(vec(0..2_u32, 10..20), 2..12),
        width in 1..4_usize,
        seed: u64,
    ) {
        let hashes: Vec<u64> = (0..2_u8).map(|token| token_hash(&[token], seed)).collect();
        let mut known: BTreeMap<BTreeSet<Vec<u32>>, Sketch> = BTreeMap::new();
        for text in &texts {
            let sketch = sketch_of(&hashes, text, width);
            prop_assert_eq!(*known.entry(elements(text, width)).or_insert(sketch), sketch);
        }
    }

    #[test]
    fn the_count_beside_a_sketch_is_that_of_its_distinct_elements(
        texts in vec(vec(0..5_u32, 0..60), 1..6),
        width in 1..4_usize,
        seed: u64,
    ) {
        let hashes: Vec<u64> = (0..5_u8).map(|token| token_hash(&[token], seed)).collect();
        let mut memory = DistinctHashes::default();
        for text in &texts {
            let count = |number: u32| text.iter().filter(|&&token| token == number).map(|_| 1).sum::<u64>();
            let counted = sketch_and_count(&hashes, (0..5).map(count), text, width, &mut memory);
            let n_elements = u32::try_from(elements(text, width).len()).unwrap();
            prop_assert_eq!(counted, (sketch_of(&hashes, text, width), n_elements));
        }
    }

    #[test]
    fn the_numbers_of_tokens_do_not_matter_to_a_sketch(sequence in vec(0..6_u32, 1..40), seed: u64) {
        let hashes: Vec<u64> = (0..6_u8).map(|token| token_hash(&[token], seed)).collect();
        let reversed: Vec<u64> = hashes.iter().rev().copied().collect();
        let renumbered: Vec<u32> = sequence.iter().map(|token| 5 - token).collect();
        prop_assert_eq!(sketch_of(&hashes, &sequence, 2), sketch_of(&reversed, &renumbered, 2));
    }
}
