//! Profiles from text to fingerprint, against published values.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use nearprint_fingerprint::hamming_distance;
use nearprint_pipeline::{Outcome, TextFingerprinter, profile};
use nearprint_tokenize::Resources;

fn fingerprinter(name: &str) -> TextFingerprinter {
    TextFingerprinter::try_new(profile::by_name(name).unwrap(), &Resources::default()).unwrap()
}

fn fingerprint(fingerprinter: &TextFingerprinter, text: &str) -> u64 {
    match fingerprinter.fingerprint(text).outcome {
        Outcome::Fingerprinted { fingerprint, .. } => fingerprint,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn hanlp_java_gives_the_distances_that_article_002_prints() {
    let hanlp = fingerprinter("hanlp-java");
    let first = fingerprint(&hanlp, "我是蒋固金，欢迎查看我的博客");
    let others =
        ["我是蒋固金，欢迎查看我的博客", "我是蒋固金，欢迎查看我的博", "欢迎查看我的博客", "我是蒋固金", "我是"];
    let distances = others.map(|text| hamming_distance(first, fingerprint(&hanlp, text)));
    assert_eq!(distances, [0, 8, 13, 18, 19]);
}

#[test]
fn java_fingerprints_the_golden_texts_as_the_articles_program_does() {
    let java = fingerprinter("java");
    let vectors = include_str!("../../fingerprint/tests/data/fingerprints.jsonl");
    let mut checked = 0;
    for line in vectors.lines() {
        let case: serde_json::Value = serde_json::from_str(line).unwrap();
        let name = case["case"].as_str().unwrap();
        // Words that jieba cut without its HMM, nothing left out: end to end they are the text.
        if case["hmm"] != false || name.contains("nopunct") {
            continue;
        }
        let text: String = case["words"].as_array().unwrap().iter().map(|w| w.as_str().unwrap()).collect();
        let expected = case["fingerprints"]["plain/b64/nocap/ge0"].as_str().unwrap();
        let got = fingerprint(&java, &text);
        assert_eq!(got, u64::from_str_radix(expected.trim_start_matches("0x"), 16).unwrap(), "{name}");
        checked += 1;
    }
    println!("{checked} texts");
    assert!(checked > 0);
}

#[test]
fn every_profile_is_valid_and_a_short_text_has_no_fingerprint_by_default() {
    for (name, ..) in profile::PROFILES {
        assert!(fingerprinter(name).config().validate().is_ok(), "{name}");
    }
    let default = fingerprinter("default");
    assert!(matches!(default.fingerprint("味道不错").outcome, Outcome::TooShort { .. }));
    assert!(matches!(default.fingerprint(" \u{200b}\n ").outcome, Outcome::Empty));
}

#[test]
fn an_unknown_profile_is_refused_with_the_names_there_are() {
    let error = profile::by_name("fast").unwrap_err().to_string();
    assert!(error.contains("no profile 'fast'") && error.contains("hanlp-java"), "{error}");
}
