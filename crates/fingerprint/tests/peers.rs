//! The fingerprints that other published SimHash programs give, from their features on. See `data/README.md`.

use nearprint_fingerprint::{BitRule, FeatureHash, Fingerprint, FingerprintConfig, FingerprintError, simhash};
use serde_json::Value;

const WHOLE: u64 = 1 << 16;

fn rows(jsonl: &str) -> Vec<Value> {
    jsonl.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A number that is written as a decimal string.
fn number(value: &Value) -> u128 {
    value.as_str().unwrap().parse().unwrap()
}

/// The fingerprint of features that each count as often as they come.
fn fingerprint<'a, F: Fingerprint>(
    features: impl IntoIterator<Item = &'a [u8]>,
    feature_hash: FeatureHash,
    bit_rule: BitRule,
) -> u128 {
    let weighted = features.into_iter().map(|feature| (feature, WHOLE));
    simhash::<F>(weighted, &FingerprintConfig { feature_hash, bit_rule }).to_u128()
}

#[test]
fn python_simhash_word_lists_are_reproduced() {
    let rows = rows(include_str!("data/peers/pysimhash_1e0ng_wordlists.jsonl"));
    for row in &rows {
        let words = row["features"].as_array().unwrap().iter().map(|word| word.as_str().unwrap().as_bytes());
        let got = fingerprint::<u64>(words, FeatureHash::Md5Last, BitRule::Positive);
        assert_eq!(got, number(&row["value"]), "{}", row["id"]);
    }
    assert_eq!(rows.len(), 13);
}

#[test]
fn seomoz_compute_is_a_vote_above_zero() {
    let rows = rows(include_str!("data/peers/seomoz_compute.jsonl"));
    for row in &rows {
        // The vectors start from hashes: a bit wins when more than half of them have it.
        let hashes: Vec<u64> =
            row["hashes"].as_array().unwrap().iter().map(|h| number(h).try_into().unwrap()).collect();
        let wins = |bit: &u32| 2 * hashes.iter().filter(|&hash| hash >> bit & 1 == 1).count() > hashes.len();
        let got = (0..64_u32).filter(wins).fold(0_u64, |bits, bit| bits | 1 << bit);
        assert_eq!(u128::from(got), number(&row["fingerprint"]), "{}", row["id"]);
    }
    assert_eq!(rows.len(), 29);
}

#[test]
fn every_murmur_hash_of_sing1ee_is_reproduced() {
    let rows = rows(include_str!("data/peers/sing1ee_murmur.jsonl"));
    for row in &rows {
        let word = row["id"].as_str().unwrap();
        let (wide, narrow) = (number(&row["murmur64a_unsigned"]), number(&row["murmur32_unsigned"]));
        assert_eq!(FeatureHash::MurmurSigned.hash::<u64>(word.as_bytes()).to_u128(), wide, "{word:?}");
        assert_eq!(FeatureHash::MurmurSigned.hash::<u32>(word.as_bytes()).to_u128(), narrow, "{word:?}");
    }
    assert_eq!(rows.len(), 175);
}

#[test]
fn mllearning_is_reproduced_from_bytes() {
    let rows = rows(include_str!("data/peers/mllearning_darksun.jsonl"));
    for row in &rows {
        let line = row["line"].as_str().unwrap().as_bytes();
        let hash = FeatureHash::Bkdr131.hash::<u32>(line).to_u128();
        assert_eq!(hash, number(&row["bkdr131_of_line"]), "{}", row["id"]);
        let pieces = fingerprint::<u32>(line.chunks(2), FeatureHash::Bkdr131, BitRule::Positive);
        assert_eq!(pieces, number(&row["simhash32_bytes2"]), "{}", row["id"]);
        let tokens = line.split(u8::is_ascii_whitespace).filter(|token| !token.is_empty());
        let by_length = tokens.map(|token| (token, token.len() as u64 * WHOLE));
        let config = FingerprintConfig { feature_hash: FeatureHash::Bkdr131, bit_rule: BitRule::Positive };
        assert_eq!(
            simhash::<u32>(by_length, &config).to_u128(),
            number(&row["simhash32_tokens_bytelen"]),
            "{}",
            row["id"]
        );
    }
    assert_eq!(rows.len(), 15);
}

#[test]
fn a_hash_that_cannot_fill_the_fingerprint_is_refused() {
    let config = FingerprintConfig { feature_hash: FeatureHash::Bkdr131, bit_rule: BitRule::Positive };
    assert!(config.validate(32).is_ok());
    let error = config.validate(64).unwrap_err();
    assert!(matches!(error, FingerprintError::Width { bits: 64, widths: [32], .. }));
    assert!(error.to_string().contains("Bkdr131 has no 64 bits: use a fingerprint of [32] bits"), "{error}");
}
