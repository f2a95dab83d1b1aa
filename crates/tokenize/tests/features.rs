//! Shingles, weights, and the floor.

use std::collections::HashMap;

use nearprint_tokenize::{
    Analyzer, FeatureConfig, Features, MinFeatures, ONE, Resources, TokenizeConfig, TokenizeError, TokenizerKind,
    Weight,
};
use proptest::prelude::*;

use crate::common::{analyzer, kind};

fn features(text: &str, shingle: usize, weight: Weight) -> Features {
    let analyzer = analyzer(&kind(TokenizerKind::Whitespace));
    analyzer.features(&analyzer.tokens(text), &FeatureConfig { shingle, weight, short_word: 0 })
}

fn listed(features: &Features) -> Vec<(String, u64)> {
    features.iter().map(|(bytes, weight)| (String::from_utf8(bytes.to_vec()).unwrap(), weight)).collect()
}

#[test]
fn features_come_in_order_of_first_occurrence_with_their_counts() {
    let expected = [("b", 2 * ONE), ("a", 3 * ONE), ("c", ONE)];
    let got = listed(&features("b a a c b a", 1, Weight::Count));
    assert_eq!(got, expected.map(|(token, weight)| (token.to_owned(), weight)));
}

#[test]
fn a_shingle_joins_tokens_by_one_separator() {
    let got = listed(&features("a b a b", 2, Weight::Count));
    let expected = [("a\u{1F}b", 2 * ONE), ("b\u{1F}a", ONE)];
    assert_eq!(got, expected.map(|(shingle, weight)| (shingle.to_owned(), weight)));
}

#[test]
fn a_text_shorter_than_a_shingle_is_one_shingle() {
    assert_eq!(listed(&features("a b", 3, Weight::Set)), [("a\u{1F}b".to_owned(), ONE)]);
    assert_eq!(features("", 3, Weight::Set).n_distinct(), 0);
}

#[test]
fn weights_are_in_65536ths() {
    assert_eq!(Weight::Count.of(7), 7 << 16);
    assert_eq!(Weight::Set.of(7), 1 << 16);
    assert_eq!(Weight::CappedCount { cap: 6 }.of(7), 6 << 16);
    assert_eq!(Weight::CappedCount { cap: 6 }.of(5), 5 << 16);
    // 1, 1 + ln 2, 1 + ln 10
    assert_eq!([1, 2, 10].map(|c| Weight::LogCount.of(c)), [65_536, 110_962, 216_438]);
}

/// Another platform's `ln` may differ in its last bit. Up to a million occurrences no weight is so near to a rounding boundary
/// that this could change it.
#[test]
fn log_weights_do_not_hang_on_the_last_bit_of_a_logarithm() {
    for count in 2..=1_000_000_u32 {
        let exact = (1.0 + f64::from(count).ln()) * 65_536.0;
        let from_boundary = (exact.fract() - 0.5).abs();
        assert!(from_boundary > 1e-9, "{count}: {exact}");
    }
}

#[test]
fn the_floor_counts_distinct_features_by_script() {
    let min_features = MinFeatures { han: 3, unspaced: None, other: 2 };
    let analyzer = analyzer(&TokenizeConfig { min_features, ..TokenizeConfig::default() });
    let enough = |text: &str| {
        let features = analyzer.features(&analyzer.tokens(text), &FeatureConfig::default());
        analyzer.has_enough(text, features.n_distinct())
    };
    assert!(enough("one two"));
    assert!(!enough("one one one"));
    assert!(!enough("中国 人民"));
    assert!(enough("中国 人民 欢迎"));
    assert!(enough("中国 ab"), "half Han is not more than half");
    assert!(!enough("中国 a"));
}

#[test]
fn texts_of_scripts_without_spaces_have_a_floor_of_their_own() {
    let min_features = MinFeatures { han: 3, unspaced: Some(4), other: 1 };
    let analyzer = analyzer(&TokenizeConfig { min_features, ..TokenizeConfig::default() });
    let enough = |text: &str| {
        let features = analyzer.features(&analyzer.tokens(text), &FeatureConfig::default());
        analyzer.has_enough(text, features.n_distinct())
    };
    assert!(!enough("ひらがな"), "three pairs");
    assert!(enough("ひらがなで"));
    assert!(!enough("น้ำดีๆ"));
    assert!(enough("中国人民です"), "more than half Han");
    assert!(enough("word かな"), "half is not more than half");
    assert!(!enough("wo かな文"), "kana and Han are more than half together");
}

#[test]
fn short_words_weigh_half() {
    let config = FeatureConfig { short_word: 3, ..FeatureConfig::default() };
    let analyzer = analyzer(&TokenizeConfig::default());
    let weights = |text: &str| -> Vec<u64> {
        analyzer.features(&analyzer.tokens(text), &config).iter().map(|(_, weight)| weight).collect()
    };
    assert_eq!(weights("a the them"), [ONE / 2, ONE / 2, ONE]);
    assert_eq!(weights("и что этом"), [ONE / 2, ONE / 2, ONE], "letters count, not bytes");
    assert_eq!(weights("中 中国 こ これ"), [ONE / 2, ONE, ONE / 2, ONE], "these characters count as two letters");
    assert_eq!(weights("이 문서"), [ONE / 2, ONE], "and so do syllables of Hangul");
    let twice = Weight::LogCount.of(2);
    assert_eq!(weights("the the"), [twice / 2]);
}

#[test]
fn short_words_need_single_tokens_and_a_weight_of_counts() {
    for features in [
        FeatureConfig { shingle: 2, weight: Weight::LogCount, short_word: 3 },
        FeatureConfig { shingle: 1, weight: Weight::ByteLength, short_word: 3 },
    ] {
        let config = TokenizeConfig { features, ..TokenizeConfig::default() };
        let error = Analyzer::try_new(&config, &Resources::default()).unwrap_err();
        assert!(matches!(error, TokenizeError::ShortWordOfTokens { .. }), "{error}");
    }
}

#[test]
fn a_text_without_features_never_has_enough() {
    let min_features = MinFeatures { han: 0, unspaced: None, other: 0 };
    let analyzer = analyzer(&TokenizeConfig { min_features, ..TokenizeConfig::default() });
    let features = analyzer.features(&analyzer.tokens("--- !"), &FeatureConfig::default());
    assert!(!analyzer.has_enough("--- !", features.n_distinct()));
}

#[test]
fn numbers_below_their_least_value_are_refused() {
    let refused = |change: fn(&mut TokenizeConfig)| {
        let mut config = TokenizeConfig::default();
        change(&mut config);
        match Analyzer::try_new(&config, &Resources::default()).err() {
            Some(TokenizeError::TooSmall { key, got: 0, least: 1 }) => key,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(|c| c.tokenizer.ngram = 0), "tokenizer.ngram");
    assert_eq!(refused(|c| c.features.shingle = 0), "features.shingle");
    let cap = "features.weight.capped_count.cap";
    assert_eq!(refused(|c| c.features.weight = Weight::CappedCount { cap: 0 }), cap);
}

#[test]
fn a_config_survives_its_written_form_and_refuses_unknown_keys() {
    let text = r#"{"tokenizer": {"kind": "char_ngrams", "ngram": 5},
        "features": {"shingle": 2, "weight": {"capped_count": {"cap": 6}}}, "min_features": {"han": 3}}"#;
    let config: TokenizeConfig = serde_json::from_str(text).unwrap();
    assert_eq!(config.tokenizer.kind, TokenizerKind::CharNgrams);
    assert_eq!(config.features.weight, Weight::CappedCount { cap: 6 });
    assert_eq!(config.min_features, MinFeatures { han: 3, ..MinFeatures::default() });
    let written = serde_json::to_string(&config).unwrap();
    assert_eq!(serde_json::from_str::<TokenizeConfig>(&written).unwrap(), config);
    let set: FeatureConfig = serde_json::from_str(r#"{"weight": "log_count"}"#).unwrap();
    assert_eq!(set, FeatureConfig::default());
    let unknown = serde_json::from_str::<TokenizeConfig>(r#"{"tokenizer": {"n": 5}}"#);
    assert!(unknown.unwrap_err().to_string().contains("unknown field `n`"));
}

#[test]
fn an_analyzer_is_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Analyzer>();
}

proptest! {
    #[test]
    fn counts_add_up_to_the_shingles_of_the_text(words in prop::collection::vec("[a-d]{1,2}", 0..40), shingle in 1_usize..6) {
        let text = words.join(" ");
        let n_shingles = if words.is_empty() { 0 } else { words.len().saturating_sub(shingle - 1).max(1) };
        let features = features(&text, shingle, Weight::Count);
        let total: u64 = features.iter().map(|(_, weight)| weight / ONE).sum();
        prop_assert_eq!(total, n_shingles as u64);
    }

    #[test]
    fn features_agree_with_a_naive_count(words in prop::collection::vec("[a-d]{1,2}", 1..40), shingle in 1_usize..6) {
        let mut naive: HashMap<String, u64> = HashMap::new();
        for window in words.windows(shingle.min(words.len())) {
            *naive.entry(window.join("\u{1F}")).or_default() += ONE;
        }
        let features = features(&words.join(" "), shingle, Weight::Count);
        prop_assert_eq!(listed(&features).into_iter().collect::<HashMap<_, _>>(), naive);
        prop_assert_eq!(features.n_distinct(), features.iter().len());
    }
}
