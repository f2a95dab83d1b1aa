//! The feature hashes' corners, and how configuration spells them.

use nearprint_fingerprint::{BitRule, FeatureHash, FingerprintConfig};
use proptest::prelude::*;
use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128_with_seed};

#[test]
fn xxh3_is_the_published_function_with_seed_0_by_default() {
    // From the reference implementation: XXH3-64 and XXH3-128 of the empty input.
    let hash = FeatureHash::default();
    assert_eq!(hash.hash::<u64>(b""), 0x2D06_8005_38D3_94C2);
    assert_eq!(hash.hash::<u32>(b""), 0x38D3_94C2);
    assert_eq!(hash.hash::<u128>(b""), 0x99AA_06D3_0147_98D8_6001_C324_468D_497F);
}

#[test]
fn an_empty_feature_is_0_to_the_java_hashes() {
    assert_eq!(FeatureHash::JavaPlain.hash::<u128>(b""), 0);
    assert_eq!(FeatureHash::JavaPad3.hash::<u128>(b""), 0);
}

#[test]
fn pad3_calls_blank_what_java_calls_white_space() {
    let hash = |word: &str| FeatureHash::JavaPad3.hash::<u64>(word.as_bytes());
    for blank in [
        " ",
        "\t\r\n",
        "\u{B}\u{C}",
        "\u{1C}\u{1D}\u{1E}\u{1F}",
        "\u{1680}",
        "\u{2000}\u{200A}",
        "\u{2028}\u{2029}",
        "\u{205F}",
        "\u{3000}",
    ] {
        assert_eq!(hash(blank), 0, "{blank:?}");
    }
    for word in ["\u{85}", "\u{A0}", "\u{2007}", "\u{202F}", "\u{200B}", "\u{FEFF}", " a"] {
        assert_ne!(hash(word), 0, "{word:?}");
    }
}

#[test]
fn pad3_extends_by_the_first_utf16_unit() {
    let pad3 = |word: &str| FeatureHash::JavaPad3.hash::<u128>(word.as_bytes());
    let plain = |word: &str| FeatureHash::JavaPlain.hash::<u128>(word.as_bytes());
    assert_eq!(pad3("我"), plain("我我我"));
    assert_eq!(pad3("博客"), plain("博客博"));
    assert_eq!(pad3("蒋固金"), plain("蒋固金"));
}

#[test]
fn invalid_utf8_is_hashed_as_replacement_characters() {
    for hash in [FeatureHash::JavaPlain, FeatureHash::JavaPad3] {
        assert_eq!(hash.hash::<u64>(b"ab\xFFc"), hash.hash::<u64>("ab\u{FFFD}c".as_bytes()));
    }
}

#[test]
fn configuration_is_written_in_snake_case_and_unknown_keys_are_refused() {
    let read = |json: &str| serde_json::from_str::<FingerprintConfig>(json);
    assert_eq!(
        read("{}").unwrap(),
        FingerprintConfig { feature_hash: FeatureHash::Xxh3 { seed: 0 }, bit_rule: BitRule::Positive }
    );
    assert_eq!(read(r#"{"feature_hash": {"xxh3": {}}}"#).unwrap(), FingerprintConfig::default());
    assert_eq!(
        read(r#"{"feature_hash": "java_pad3", "bit_rule": "non_negative"}"#).unwrap(),
        FingerprintConfig { feature_hash: FeatureHash::JavaPad3, bit_rule: BitRule::NonNegative }
    );
    let seeded = FingerprintConfig { feature_hash: FeatureHash::Xxh3 { seed: 7 }, bit_rule: BitRule::Positive };
    let json = serde_json::to_string(&seeded).unwrap();
    assert_eq!(json, r#"{"feature_hash":{"xxh3":{"seed":7}},"bit_rule":"positive"}"#);
    assert_eq!(read(&json).unwrap(), seeded);
    for wrong in [
        r#"{"seed": 1}"#,
        r#"{"feature_hash": {"xxh3": {"sead": 1}}}"#,
        r#"{"feature_hash": "java"}"#,
        r#"{"bit_rule": "zero"}"#,
    ] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

proptest! {
    #[test]
    fn xxh3_takes_its_bits_from_the_function_of_that_width(feature: Vec<u8>, seed: u64) {
        let hash = FeatureHash::Xxh3 { seed };
        prop_assert_eq!(hash.hash::<u64>(&feature), xxh3_64_with_seed(&feature, seed));
        prop_assert_eq!(u64::from(hash.hash::<u32>(&feature)), xxh3_64_with_seed(&feature, seed) & 0xFFFF_FFFF);
        prop_assert_eq!(hash.hash::<u128>(&feature), xxh3_128_with_seed(&feature, seed));
    }

    #[test]
    fn narrow_java_hashes_are_the_low_bits_of_wide_ones(feature: Vec<u8>) {
        for hash in [FeatureHash::JavaPlain, FeatureHash::JavaPad3] {
            let wide = hash.hash::<u128>(&feature);
            prop_assert_eq!(u128::from(hash.hash::<u64>(&feature)), wide & u128::from(u64::MAX));
            prop_assert_eq!(u128::from(hash.hash::<u32>(&feature)), wide & u128::from(u32::MAX));
        }
    }
}
