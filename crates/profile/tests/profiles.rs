//! Profiles from text to fingerprint, against published values.

use nearprint_fingerprint::{BitRule, FeatureHash, hamming_distance, simhash};
use nearprint_html::HtmlText;
use nearprint_profile as profile;
use nearprint_profile::{Outcome, ProfileConfig, TextFingerprinter};
use nearprint_tokenize::{Resources, TokenizerKind, Top, Weight};

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

/// A profile under overrides, as a job file would give them.
fn changed(name: &str, change: impl FnOnce(&mut ProfileConfig)) -> TextFingerprinter {
    let mut config = profile::by_name(name).unwrap();
    change(&mut config);
    TextFingerprinter::try_new(config, &Resources::default()).unwrap()
}

/// Every row's fingerprint is the decimal number in `column`; a text without a feature has none, and 0 in the vectors.
fn check(jsonl: &str, (text, column): (&str, &str), fingerprinter: &TextFingerprinter) -> usize {
    let mut n_rows = 0;
    for line in jsonl.lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let expected: u64 = row[column].as_str().unwrap().parse().unwrap();
        let got = match fingerprinter.fingerprint(row[text].as_str().unwrap()).outcome {
            Outcome::Fingerprinted { fingerprint, .. } => fingerprint,
            Outcome::TooShort { .. } => 0,
            other @ Outcome::Empty => panic!("{}: {other:?}", row["id"]),
        };
        assert_eq!(got, expected, "{column} of {}", row["id"]);
        n_rows += 1;
    }
    n_rows
}

macro_rules! peers {
    ($name:literal) => {
        include_str!(concat!("../../fingerprint/tests/data/peers/", $name, ".jsonl"))
    };
}

#[test]
fn profiles_of_published_programs_give_their_fingerprints() {
    let python = peers!("pysimhash_1e0ng");
    assert_eq!(check(python, ("text", "value"), &fingerprinter("python-simhash")), 13);
    let seomoz = peers!("seomoz_py_text");
    assert_eq!(check(seomoz, ("text", "fingerprint"), &fingerprinter("seomoz")), 22);
    let rust = peers!("rust_simhash_gaoya");
    assert_eq!(check(rust, ("text", "simhash_rs_sip24"), &fingerprinter("simhash-crate")), 13);
    assert_eq!(check(rust, ("text", "gaoya64_sip24_keys_5_6"), &fingerprinter("gaoya")), 13);
    let sing1ee = peers!("sing1ee_docs");
    assert_eq!(check(sing1ee, ("text", "simhash64_unsigned"), &fingerprinter("sing1ee")), 13);
    let mllearning = peers!("mllearning_darksun");
    assert_eq!(check(mllearning, ("line", "simhash32_tokens_bytelen"), &fingerprinter("mllearning")), 15);
    assert_eq!(check(mllearning, ("line", "simhash32_bytes2"), &fingerprinter("mllearning-bytes2")), 15);
    assert_eq!(check(peers!("yanyiwu_topauto"), ("text", "fingerprint"), &fingerprinter("cppjieba")), 12);
}

/// The program gives 0 for each of them, the fingerprint of no feature: in a run all of them would be one document.
#[test]
fn texts_without_a_window_of_seomoz_are_too_short_and_their_published_value_is_0() {
    let seomoz = fingerprinter("seomoz");
    for text in ["abc", "a-b c!", "我们好", "!!!"] {
        assert!(matches!(seomoz.fingerprint(text).outcome, Outcome::TooShort { .. }), "{text}");
    }
    assert_eq!(simhash::<u64>([], &seomoz.config().fingerprint), 0);
    assert_ne!(fingerprint(&fingerprinter("python-simhash"), "abc"), 0);
}

/// The digests that profiles had in 0.1.0.
const DIGESTS: [(&str, &str); 9] = [
    // As "default".
    ("han-bigrams", "1cc9460aa8c4042f7dd5ec1da57a2dedab7d04e83bf09e3723352455a71ab8c6"),
    ("paper", "5fa8e992c0c28324b7f2cde8ff2b76ec3ebf32a95b2718b3b985f35dae9e2149"),
    ("java", "355cbb871b00a61143da0faa9332216cf037221bbe198f9bb4d39377f9d3c526"),
    ("hanlp-java", "3c92f4a80a71ec096ed7ef98d18ec0d6661ef581c4b595a4570ecb9741104860"),
    ("gaoya", "9853321845e2ea35d4faefa05aae2883a703df8838b273bf889b8e0b24a1f648"),
    ("mllearning-bytes2", "40ce17b9070d7721f0bf5df972a48ca1c7abde2aa993fef57682d665517992bf"),
    ("python-simhash", "6ccb9cbdb31b3ad1492c993f2107fe2aa179028505c944f7bc60432e93bfbd7a"),
    ("simhash-crate", "3d7837e5d839cbb62fdecea431e1b6aa3bca5b574d07e27177c5d69a2dd4ab23"),
    ("sing1ee", "f640009b0f1237d64ab9b00444c65067f92913a3c9f8564dfbc73f20a5af20cb"),
];

#[test]
fn stores_of_a_tokenizer_that_cuts_otherwise_now_are_refused_and_no_others() {
    let digest = |name: &str| profile::by_name(name).unwrap().digest(&Resources::default(), &HtmlText::Main).unwrap();
    let before = [
        ("default", "1cc9460aa8c4042f7dd5ec1da57a2dedab7d04e83bf09e3723352455a71ab8c6"),
        ("cppjieba", "40e7b09ec716e1f4cd67a5614876d5e5b6293a8a73004193417cfa06aca83505"),
        ("mllearning", "9f80ea9fd6c00ed19144bdfbc9543f1b0ed2ba3eee690aa3ebb372ab712d4817"),
        ("seomoz", "85a359de77b3c63e0a8083590df20326ce4f9c9bcd91fcc42c339149f669e508"),
    ];
    for (name, before) in before {
        assert_ne!(digest(name), before, "{name}");
    }
    DIGESTS.iter().for_each(|(name, before)| assert_eq!(digest(name), *before, "{name}"));
}

/// A text is cut once where both tokenizers give the same tokens; the profile without a sketch tells the fingerprint, and
/// that of words alone tells the sketch.
#[test]
fn the_sketch_is_that_of_its_own_tokens_and_the_fingerprint_that_of_its_own() {
    let without_sketch = changed("default", |config| {
        config.sketch = None;
        config.join.max_sketch_distance = None;
        config.join.earlier = None;
    });
    let parts = |fingerprinter: &TextFingerprinter, text: &str| match fingerprinter.fingerprint(text).outcome {
        Outcome::Fingerprinted { fingerprint, sketch, .. } => (fingerprint, sketch),
        other => panic!("{text}: {other:?}"),
    };
    // With a seed of its own, the sketch hashes no token as the fingerprint does.
    for seed in [0, 7] {
        let seeded = |config: &mut ProfileConfig| config.sketch.as_mut().unwrap().seed = seed;
        let default = changed("default", seeded);
        let words = changed("default", |config| {
            config.tokenize.tokenizer.kind = TokenizerKind::Words;
            seeded(config);
        });
        for text in [
            "The quick brown fox jumps over the lazy dog near the river bank, twice a day.",
            "“Curly” quotes — and dashes – in plain English text: nine words or more, café au lait.",
            "नमस्ते दुनिया यह एक छोटा सा पाठ है जिसमें कई शब्द हैं और कुछ अंक १२३ भी",
            "敏捷的棕色狐狸跳过了懒狗，每天两次，在河岸边 twice a day",
            "狗，狗 狗3狗 the dog 狐狸跳过了懒狗，狐狸跳过了懒狗；the dog、狐狸",
            "敏捷的棕色狐狸跳过了懒狗，每天两次，在河岸边 café, 㐀狐狸々，狐狸",
            "素早い茶色のキツネが、のろまな犬を飛び越える。一日に二回、川岸で",
            "สุนัขจิ้งจอกสีน้ำตาลกระโดดข้ามสุนัขขี้เกียจ",
        ] {
            assert_eq!(parts(&default, text).0, parts(&without_sketch, text).0, "{text}");
            assert_eq!(parts(&default, text).1, parts(&words, text).1, "{text}");
        }
    }
}

#[test]
fn a_sketch_takes_no_tokenizer_that_needs_a_dictionary() {
    let mut config = profile::by_name("default").unwrap();
    config.sketch.as_mut().unwrap().tokenizer = Some(TokenizerKind::Mixed);
    let error = config.validate().unwrap_err().to_string();
    assert!(error.contains("`mixed` needs a dictionary: use `words` or `pairs`"), "{error}");
}

#[test]
fn overrides_of_those_profiles_give_the_programs_other_forms() {
    let fnv = changed("simhash-crate", |config| config.fingerprint.feature_hash = FeatureHash::RustFnv1a);
    assert_eq!(check(peers!("rust_simhash_gaoya"), ("text", "simhash_rs_fnv"), &fnv), 13);
    let narrow = changed("sing1ee", |config| {
        config.bits = 32;
        config.fingerprint.bit_rule = BitRule::AboveOne;
    });
    assert_eq!(check(peers!("sing1ee_docs"), ("text", "simhash32_unsigned"), &narrow), 13);
    let five = changed("cppjieba", |config| {
        config.tokenize.features.weight = Weight::TfIdf { top: Top::Best(5) };
    });
    assert_eq!(check(peers!("yanyiwu_top5"), ("text", "fingerprint"), &five), 16);
}

#[test]
fn the_sketch_has_its_own_tokenizer_whatever_that_of_the_fingerprint_uses() {
    let of_sketch = |kind| changed("default", |config| config.sketch.as_mut().unwrap().tokenizer = Some(kind));
    let text = "Words between white space, and as many of them as a fingerprint asks for in any script.";
    for kind in [TokenizerKind::Whitespace, TokenizerKind::CharNgrams] {
        fingerprint(&of_sketch(kind), text);
    }
    let of_characters = changed("default", |config| {
        let tokenizer = &mut config.tokenize.tokenizer;
        (tokenizer.kind, tokenizer.ngram, tokenizer.long_run) = (TokenizerKind::CharNgrams, 5, 0);
    });
    fingerprint(&of_characters, text);
}

#[test]
fn fewer_features_than_the_floor_asks_for_are_refused() {
    let mut config = profile::by_name("paper").unwrap();
    config.tokenize.features.weight = Weight::TfIdf { top: Top::Best(5) };
    let error = config.validate().unwrap_err().to_string();
    assert!(error.contains("tokenize.features.weight") && error.contains("5 features are fewer"), "{error}");
    config.tokenize.min_features.han = 5;
    assert!(config.validate().is_ok(), "texts of Han have enough");
}

#[test]
fn a_feature_hash_too_narrow_for_the_fingerprint_is_refused() {
    let mut config = profile::by_name("mllearning").unwrap();
    config.bits = 64;
    let error = config.validate().unwrap_err().to_string();
    assert!(error.contains("fingerprint.feature_hash") && error.contains("no 64 bits"), "{error}");
}

#[test]
fn every_profile_is_valid_and_a_short_text_has_no_fingerprint_by_default() {
    for (name, ..) in profile::profiles() {
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
