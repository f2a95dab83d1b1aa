//! The vectors of the source articles' Java, and what their printed examples give. See `data/README.md`.

use std::collections::BTreeMap;

use nearprint_fingerprint::{BitRule, FeatureHash, Fingerprint, FingerprintConfig, hamming_distance, simhash};
use serde_json::Value;

const WORD_HASHES: &str = include_str!("data/word_hashes.jsonl");
const FINGERPRINTS: &str = include_str!("data/fingerprints.jsonl");
const WHOLE: u64 = 1 << 16;

fn rows(jsonl: &str) -> Vec<Value> {
    jsonl.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn words(row: &Value) -> Vec<&str> {
    row["words"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect()
}

fn counts<'a>(words: &[&'a str]) -> BTreeMap<&'a str, u64> {
    words.iter().fold(BTreeMap::new(), |mut counts, word| {
        *counts.entry(*word).or_default() += 1;
        counts
    })
}

fn fingerprint<F: Fingerprint>(words: &[&str], max_count: u64, config: &FingerprintConfig) -> F {
    simhash(counts(words).iter().map(|(word, &count)| (word.as_bytes(), count.min(max_count) * WHOLE)), config)
}

fn hash_at(bits: &str, hash: &FeatureHash, word: &str) -> u128 {
    match bits {
        "32" => hash.hash::<u32>(word.as_bytes()).to_u128(),
        "64" => hash.hash::<u64>(word.as_bytes()).to_u128(),
        "128" => hash.hash::<u128>(word.as_bytes()),
        other => panic!("no fingerprint of {other} bits"),
    }
}

#[test]
fn every_word_hash_of_the_java_programs_is_reproduced() {
    let mut n_checked = 0;
    for row in rows(WORD_HASHES) {
        let word = row["word"].as_str().unwrap();
        for (column, hash) in [("plain", FeatureHash::JavaPlain), ("padded", FeatureHash::JavaPad3)] {
            for bits in ["32", "64", "128"] {
                let expected: u128 = row[format!("{column}{bits}")].as_str().unwrap().parse().unwrap();
                assert_eq!(hash_at(bits, &hash, word), expected, "{column}{bits} of {word:?}");
                n_checked += 1;
            }
        }
    }
    println!("word hashes checked: {n_checked}");
    assert_eq!(n_checked, 1_444 * 6);
}

#[test]
fn every_fingerprint_of_the_java_programs_is_reproduced() {
    let mut n_checked = 0;
    for row in rows(FINGERPRINTS) {
        let words = words(&row);
        for (rule, expected) in row["fingerprints"].as_object().unwrap() {
            let expected = u128::from_str_radix(expected.as_str().unwrap(), 16).unwrap();
            assert_eq!(fingerprint_by_rule(&words, rule), expected, "{rule} of {}", row["case"]);
            n_checked += 1;
        }
    }
    println!("fingerprints checked: {n_checked}");
    assert_eq!(n_checked, 126 * 24);
}

/// `rule` is `HASH/bBITS/CAP/TEST`.
fn fingerprint_by_rule(words: &[&str], rule: &str) -> u128 {
    let [hash, bits, cap, test] = rule.split('/').collect::<Vec<_>>().try_into().unwrap();
    let feature_hash = match hash {
        "plain" => FeatureHash::JavaPlain,
        "pad3" => FeatureHash::JavaPad3,
        other => panic!("unknown hash {other}"),
    };
    let bit_rule = match test {
        "ge0" => BitRule::NonNegative,
        "gt0" => BitRule::Positive,
        other => panic!("unknown test {other}"),
    };
    let max_count = match cap {
        "nocap" => u64::MAX,
        "cap5" => 6,
        other => panic!("unknown cap {other}"),
    };
    let config = FingerprintConfig { feature_hash, bit_rule };
    match bits {
        "b32" => fingerprint::<u32>(words, max_count, &config).to_u128(),
        "b64" => fingerprint::<u64>(words, max_count, &config).to_u128(),
        "b128" => fingerprint::<u128>(words, max_count, &config),
        other => panic!("unknown width {other}"),
    }
}

#[test]
fn every_sum_and_bit_string_of_the_java_programs_is_reproduced() {
    let config = FingerprintConfig { feature_hash: FeatureHash::JavaPlain, bit_rule: BitRule::NonNegative };
    let (mut n_sums, mut n_bit_strings) = (0, 0);
    for row in rows(FINGERPRINTS) {
        let words = words(&row);
        let sums = row["v_plain64_nocap"].as_array().unwrap();
        assert_eq!(sums.len(), 64);
        for (bit, expected) in sums.iter().enumerate() {
            let vote = |word: &&str| {
                if config.feature_hash.hash::<u64>(word.as_bytes()) >> bit & 1 == 1 { 1 } else { -1 }
            };
            assert_eq!(words.iter().map(vote).sum::<i64>(), expected.as_i64().unwrap(), "sum {bit} of {}", row["case"]);
            n_sums += 1;
        }
        let fingerprint = fingerprint::<u64>(&words, u64::MAX, &config);
        let lowest_bit_first: String = format!("{fingerprint:064b}").chars().rev().collect();
        assert_eq!(lowest_bit_first, row["plain64_ge0_lsb_first"].as_str().unwrap(), "{}", row["case"]);
        assert_eq!(fingerprint.to_string(), row["plain64_ge0_decimal"].as_str().unwrap(), "{}", row["case"]);
        n_bit_strings += 1;
    }
    println!("sums checked: {n_sums}, bit strings checked: {n_bit_strings}");
    assert_eq!((n_sums, n_bit_strings), (126 * 64, 126));
}

/// Both splitters read the bit string from bit 0 on, in blocks of 16, each as a number whose highest bit comes first. Article 003
/// gives all four. Article 000 builds its string from the number, so the zeros above the highest 1 bit are lost, and gives a block
/// only when its 16 bits are complete: the last one or more are missing.
#[test]
fn the_block_splits_of_articles_003_and_000_follow_from_the_fingerprint() {
    let mut n_checked = 0;
    for row in rows(FINGERPRINTS) {
        let fingerprint: u64 = row["plain64_ge0_decimal"].as_str().unwrap().parse().unwrap();
        let blocks: Vec<u64> = (0..4)
            .map(|block| u64::from(u16::try_from(fingerprint >> (16 * block) & 0xFFFF).unwrap().reverse_bits()))
            .collect();
        let n_complete = (64 - fingerprint.leading_zeros() as usize) / 16;
        assert_eq!(numbers(&row["blocks_seed003_k3"]), blocks, "{}", row["case"]);
        assert_eq!(numbers(&row["blocks_seed000_k3"]), blocks[..n_complete], "{}", row["case"]);
        n_checked += 1;
    }
    assert_eq!(n_checked, 126);
}

fn numbers(row: &Value) -> Vec<u64> {
    row.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
}

/// Article 002 compares a sentence with itself and with four shortened ones. Its segmenter and stop words give the words below: the comma is
/// dropped, 的 is kept, the name is one word.
#[test]
fn article_002_prints_the_distances_0_8_13_18_19() {
    let original = ["我", "是", "蒋固金", "欢迎", "查看", "我", "的", "博客"];
    let variants: [&[&str]; 5] = [
        &original,
        &["我", "是", "蒋固金", "欢迎", "查看", "我", "的", "博"],
        &["欢迎", "查看", "我", "的", "博客"],
        &["我", "是", "蒋固金"],
        &["我", "是"],
    ];
    let config = FingerprintConfig { feature_hash: FeatureHash::JavaPad3, bit_rule: BitRule::NonNegative };
    let of = |words: &[&str]| fingerprint::<u64>(words, 6, &config);
    assert_eq!(variants.map(|variant| hamming_distance(of(&original), of(variant))), [0, 8, 13, 18, 19]);
}
