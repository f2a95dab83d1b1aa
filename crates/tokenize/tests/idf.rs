//! Weights by inverse document frequency, and tables of one's own.

use nearprint_tokenize::{
    Analyzer, FeatureConfig, IdfBuilder, Resources, TokenizeConfig, TokenizeError, TokenizerKind, Top, Weight,
};
use proptest::prelude::*;

use crate::common::kind;

fn tf_idf(top: Top) -> TokenizeConfig {
    let features = FeatureConfig { shingle: 1, weight: Weight::TfIdf { top }, short_word: 0 };
    TokenizeConfig { features, ..kind(TokenizerKind::Whitespace) }
}

fn with_table(table: &str) -> Result<Analyzer, TokenizeError> {
    let resources = Resources { idf: Some(table.to_owned()), ..Resources::default() };
    Analyzer::try_new(&tf_idf(Top::All), &resources)
}

/// Features with their weights in those of the lightest.
fn weights(analyzer: &Analyzer, text: &str, top: Top) -> Vec<(String, f64)> {
    let features = analyzer.features(&analyzer.tokens(text), &tf_idf(top).features);
    let lightest = features.iter().map(|(_, weight)| weight).min().unwrap_or(1) as f64;
    let name = |feature: &[u8]| String::from_utf8(feature.to_vec()).unwrap();
    features.iter().map(|(feature, weight)| (name(feature), weight as f64 / lightest)).collect()
}

#[test]
fn a_feature_weighs_its_count_times_its_idf_and_unknown_ones_the_mean() {
    let analyzer = with_table("rare 4\ncommon\t2\n").unwrap();
    let weights = weights(&analyzer, "common rare common new rare common common", Top::All);
    let expected = [("rare", 8.0 / 3.0), ("common", 8.0 / 3.0), ("new", 1.0)];
    assert_eq!(weights.iter().map(|(f, w)| (f.as_str(), *w)).collect::<Vec<_>>(), expected);
}

#[test]
fn only_the_heaviest_are_kept_when_asked() {
    let analyzer = with_table("a 1\nb 2\nc 3\n").unwrap();
    let names = |top| weights(&analyzer, "a b c a a a", top).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(names(Top::All), ["a", "c", "b"]);
    assert_eq!(names(Top::Best(2)), ["a", "c"]);
    assert_eq!(names(Top::Best(9)), ["a", "c", "b"]);
    assert_eq!(names(Top::Auto), ["a", "c", "b"]);
}

#[test]
fn what_weighs_nothing_is_no_feature_and_a_unit_makes_texts_comparable() {
    let analyzer = with_table("rare 4\ncommon 2\nnothing 0\n").unwrap();
    assert_eq!(weights(&analyzer, "nothing common", Top::All).len(), 1);
    let of = |text: &str| {
        let features = analyzer.features(&analyzer.tokens(text), &tf_idf(Top::All).features);
        let common = features.iter().find(|(name, _)| *name == b"common").unwrap().1;
        common as f64 / features.unit() as f64
    };
    assert_eq!((of("common"), of("common rare rare rare")), (2.0, 2.0));
}

#[test]
fn a_bad_line_of_a_table_is_named() {
    let reason = |table: &str| match with_table(table).unwrap_err() {
        TokenizeError::Idf { line, reason, .. } => (line, reason),
        other => unreachable!("{other}"),
    };
    assert_eq!(reason("a 1\n\nb\n"), (3, "no white space between a word and its number"));
    assert_eq!(reason("a 1\nb x\n"), (2, "no number at the end"));
    assert_eq!(reason("a NaN\n"), (1, "a number that is not between 0 and 1000"));
    assert_eq!(reason("a -1\n"), (1, "a number that is not between 0 and 1000"));
    assert_eq!(reason("\t1\n"), (1, "no word before the number"));
    assert_eq!(reason("a 1\na 2\n"), (2, "a word that the table has already"));
    assert_eq!(reason("\n \n"), (1, "no word in the whole table"));
}

#[test]
fn weights_of_tokens_are_refused_for_shingles_and_tables_without_use() {
    let mut config = tf_idf(Top::All);
    config.features.shingle = 2;
    let weight = config.features.weight;
    let refused = Analyzer::try_new(&config, &Resources::default()).err();
    assert_eq!(refused, Some(TokenizeError::WeightOfTokens { weight, shingle: 2 }));
    let resources = Resources { idf: Some("a 1".to_owned()), ..Resources::default() };
    let refused = Analyzer::try_new(&kind(TokenizerKind::Whitespace), &resources).err();
    assert_eq!(refused, Some(TokenizeError::UnusedIdf { weight: Weight::LogCount }));
    let refused = Analyzer::try_new(&tf_idf(Top::Best(0)), &Resources::default()).err();
    assert_eq!(refused, Some(TokenizeError::TooSmall { key: "features.weight.tf_idf.top.best", got: 0, least: 1 }));
}

#[test]
fn a_written_config_without_the_later_settings_is_what_it_was() {
    let written = serde_json::to_string(&TokenizeConfig::default()).unwrap();
    assert!(!["lower_case", "cppjieba", "single_characters"].iter().any(|key| written.contains(key)), "{written}");
    let written = serde_json::to_string(&tf_idf(Top::Best(5))).unwrap();
    assert_eq!(serde_json::from_str::<TokenizeConfig>(&written).unwrap(), tf_idf(Top::Best(5)));
}

proptest! {
    #[test]
    fn a_built_table_is_read_back_and_does_not_depend_on_order_or_splitting(
        documents in prop::collection::vec(prop::collection::vec("[ab \\t\n，\u{FEFF}]{0,3}", 0..6), 1..8),
        cut in 0..8_usize,
        min_documents in 1..3_u64,
    ) {
        let build = |documents: &[Vec<String>]| {
            let mut builder = IdfBuilder::default();
            documents.iter().for_each(|document| builder.add(document.iter().map(String::as_str)));
            builder
        };
        let whole = build(&documents);
        let (first, second) = documents.split_at(cut.min(documents.len()));
        let mut merged = build(second);
        merged.merge(build(first));
        prop_assert_eq!(&merged, &whole);
        let table = whole.write(min_documents);
        prop_assert_eq!(table.lines().count(), whole.n_features(min_documents));
        prop_assert!(table.is_empty() || with_table(&table).is_ok(), "{:?}", table);
    }

    #[test]
    fn no_table_makes_reading_panic(table in any::<String>()) {
        let _ = with_table(&table);
    }
}
