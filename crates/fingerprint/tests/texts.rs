//! The fingerprints that other published SimHash programs give for a text, with the settings of the profiles that bear their names. See
//! `data/README.md`. `pipeline/tests/profiles.rs` has the same vectors through the profiles themselves.

use nearprint_fingerprint::{BitRule, FeatureHash, Fingerprint, FingerprintConfig, simhash};
use nearprint_tokenize::{
    Analyzer, FeatureConfig, NormalizeConfig, Resources, StopWordsConfig, TokenizeConfig, TokenizerConfig,
    TokenizerKind, Top, Weight,
};
use serde_json::Value;

/// Every token of a text as it is, by its count.
fn plain(kind: TokenizerKind, ngram: usize) -> TokenizeConfig {
    TokenizeConfig {
        normalize: NormalizeConfig::NONE,
        tokenizer: TokenizerConfig {
            kind,
            ngram,
            drop_tokens_without_alphanumeric: false,
            hmm: kind == TokenizerKind::Cppjieba,
            long_run: 0,
        },
        features: FeatureConfig { shingle: 1, weight: Weight::Count, short_word: 0 },
        ..TokenizeConfig::default()
    }
}

fn lower_case(config: TokenizeConfig) -> TokenizeConfig {
    TokenizeConfig { normalize: NormalizeConfig { lower_case: true, ..config.normalize }, ..config }
}

fn weighted(weight: Weight, config: TokenizeConfig) -> TokenizeConfig {
    TokenizeConfig { features: FeatureConfig { shingle: 1, weight, short_word: 0 }, ..config }
}

fn cppjieba(top: Top) -> TokenizeConfig {
    TokenizeConfig {
        stop_words: StopWordsConfig { cppjieba: true, single_characters: true, ..StopWordsConfig::default() },
        ..weighted(Weight::TfIdf { top }, plain(TokenizerKind::Cppjieba, 4))
    }
}

/// Every row's fingerprint is the decimal number in `column`; says how many rows there are.
fn check<F: Fingerprint>(
    jsonl: &str,
    (text, column): (&str, &str),
    tokenize: &TokenizeConfig,
    feature_hash: FeatureHash,
    bit_rule: BitRule,
) -> usize {
    let analyzer = Analyzer::try_new(tokenize, &Resources::default()).unwrap();
    let config = FingerprintConfig { feature_hash, bit_rule };
    let mut n_rows = 0;
    for line in jsonl.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let normalized = analyzer.normalize(row[text].as_str().unwrap());
        let features = analyzer.features(&analyzer.tokens(&normalized), &tokenize.features);
        let got: F = simhash(features.iter(), &config);
        let expected: u128 = row[column].as_str().unwrap().parse().unwrap();
        assert_eq!(got.to_u128(), expected, "{column} of {}", row["id"]);
        n_rows += 1;
    }
    n_rows
}

#[test]
fn python_simhash_is_reproduced() {
    let vectors = include_str!("data/peers/pysimhash_1e0ng.jsonl");
    let windows = lower_case(plain(TokenizerKind::WordCharNgrams, 4));
    let (hash, rule) = (FeatureHash::Md5Last, BitRule::Positive);
    assert_eq!(check::<u64>(vectors, ("text", "value"), &windows, hash.clone(), rule), 13);
    assert_eq!(check::<u128>(vectors, ("text", "value_f128"), &windows, hash, rule), 13);
}

#[test]
fn seomoz_is_reproduced() {
    let vectors = include_str!("data/peers/seomoz_py_text.jsonl");
    let windows = lower_case(plain(TokenizerKind::WordCharNgrams, 4));
    let n_rows = check::<u64>(vectors, ("text", "fingerprint"), &windows, FeatureHash::Md5First, BitRule::Positive);
    assert_eq!(n_rows, 22);
}

#[test]
fn the_rust_crates_simhash_and_gaoya_are_reproduced() {
    let vectors = include_str!("data/peers/rust_simhash_gaoya.jsonl");
    let sip = |k0, k1| FeatureHash::RustSipHash24 { k0, k1 };
    let words = plain(TokenizerKind::Whitespace, 4);
    let rule = BitRule::Positive;
    assert_eq!(check::<u64>(vectors, ("text", "simhash_rs_sip24"), &words, sip(0, 0), rule), 13);
    assert_eq!(check::<u64>(vectors, ("text", "simhash_rs_fnv"), &words, FeatureHash::RustFnv1a, rule), 13);
    let words = plain(TokenizerKind::AsciiWords, 4);
    let rule = BitRule::Negative;
    assert_eq!(check::<u64>(vectors, ("text", "gaoya64_sip24_keys_5_6"), &words, sip(5, 6), rule), 13);
    assert_eq!(check::<u128>(vectors, ("text", "gaoya128_sip24_keys_5_6"), &words, sip(5, 6), rule), 13);
}

#[test]
fn sing1ee_is_reproduced() {
    let vectors = include_str!("data/peers/sing1ee_docs.jsonl");
    let pairs = plain(TokenizerKind::Utf16Ngrams, 2);
    let hash = FeatureHash::MurmurSigned;
    assert_eq!(check::<u64>(vectors, ("text", "simhash64_unsigned"), &pairs, hash.clone(), BitRule::Positive), 13);
    assert_eq!(check::<u32>(vectors, ("text", "simhash32_unsigned"), &pairs, hash, BitRule::AboveOne), 13);
}

#[test]
fn mllearning_is_reproduced() {
    let vectors = include_str!("data/peers/mllearning_darksun.jsonl");
    let (hash, rule) = (FeatureHash::Bkdr131, BitRule::Positive);
    let tokens = weighted(Weight::ByteLength, plain(TokenizerKind::Whitespace, 4));
    assert_eq!(check::<u32>(vectors, ("line", "simhash32_tokens_bytelen"), &tokens, hash.clone(), rule), 15);
    let pieces = plain(TokenizerKind::BytePieces, 2);
    assert_eq!(check::<u32>(vectors, ("line", "simhash32_bytes2"), &pieces, hash, rule), 15);
}

#[test]
fn yanyiwus_simhash_is_reproduced_by_cppjiebas_rules() {
    let (hash, rule) = (FeatureHash::Lookup3, BitRule::FloatPositive);
    let best = include_str!("data/peers/yanyiwu_top5.jsonl");
    assert_eq!(check::<u64>(best, ("text", "fingerprint"), &cppjieba(Top::Best(5)), hash.clone(), rule), 16);
    let auto = include_str!("data/peers/yanyiwu_topauto.jsonl");
    assert_eq!(check::<u64>(auto, ("text", "fingerprint"), &cppjieba(Top::Auto), hash, rule), 12);
}

#[test]
fn yanyiwus_keywords_with_their_weights_and_hashes_are_reproduced() {
    let (mut n_rows, mut n_keywords) = (0, 0);
    let vectors = [include_str!("data/peers/yanyiwu_top5.jsonl"), include_str!("data/peers/yanyiwu_topauto.jsonl")];
    for line in vectors.iter().flat_map(|vectors| vectors.lines()) {
        let row: Value = serde_json::from_str(line).unwrap();
        let config = cppjieba(Top::Best(row["top_n"].as_u64().unwrap().try_into().unwrap()));
        let analyzer = Analyzer::try_new(&config, &Resources::default()).unwrap();
        let features = analyzer.features(&analyzer.tokens(row["text"].as_str().unwrap()), &config.features);
        // Weights are in some unit, the heaviest first; serde_json's numbers may be off by their last bit.
        let unit = features.iter().next().unwrap().1 as f64 / row["keywords"][0]["weight"].as_f64().unwrap();
        assert_eq!(features.n_distinct(), row["keywords"].as_array().unwrap().len(), "{}", row["id"]);
        for ((word, weight), keyword) in features.iter().zip(row["keywords"].as_array().unwrap()) {
            assert_eq!(std::str::from_utf8(word).unwrap(), keyword["word"].as_str().unwrap(), "{}", row["id"]);
            let expected = keyword["weight"].as_f64().unwrap();
            assert!((weight as f64 / unit / expected - 1.0).abs() < 1e-15, "{}: {keyword}", row["id"]);
            let hash = FeatureHash::Lookup3.hash::<u64>(word).to_string();
            assert_eq!(hash, keyword["jenkins64"].as_str().unwrap());
        }
        n_rows += 1;
        n_keywords += features.n_distinct();
    }
    assert_eq!((n_rows, n_keywords), (16 + 12, 220));
}
