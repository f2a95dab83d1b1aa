//! The known answers of docs/vectors/default.jsonl, which docs/fingerprint-format.md freezes.

use nearprint_profile::{Outcome, TextFingerprinter, by_name};
use serde_json::Value;

fn unhex(hex: &Value) -> Vec<u8> {
    let hex = hex.as_str().unwrap();
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn the_default_profile_gives_the_known_answers() {
    let fingerprinter = TextFingerprinter::try_new(by_name("default").unwrap(), &Default::default()).unwrap();
    let vectors = include_str!("../../../docs/vectors/default.jsonl");
    let vectors: Vec<Value> = vectors.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for vector in &vectors {
        let name = vector["name"].as_str().unwrap();
        let text = vector["text"].as_str().unwrap();
        let dissected = fingerprinter.dissect(text);
        assert_eq!(dissected.normalized, vector["normalized"].as_str().unwrap(), "{name}");
        let outcome = match vector["outcome"].as_str().unwrap() {
            "empty" => Outcome::Empty,
            "too_short" => Outcome::TooShort { text_hash: unhex(&vector["text_hash"]).try_into().unwrap() },
            _ => Outcome::Fingerprinted {
                fingerprint: u64::from_str_radix(vector["fingerprint"].as_str().unwrap(), 16).unwrap(),
                low_half: None,
                sketch: Some(unhex(&vector["sketch"]).as_slice().try_into().unwrap()),
                n_features: Some(vector["n_features"].as_u64().unwrap().try_into().unwrap()),
                text_hash: unhex(&vector["text_hash"]).try_into().unwrap(),
            },
        };
        assert_eq!(fingerprinter.fingerprint(text).outcome, outcome, "{name}");
        if outcome != Outcome::Empty {
            let features: Vec<(String, u64)> = serde_json::from_value(vector["features"].clone()).unwrap();
            let got: Vec<_> = dissected.features.into_iter().map(|(f, w)| (String::from_utf8(f).unwrap(), w)).collect();
            assert_eq!(got, features, "{name}");
        }
    }
    let outcomes = |name| vectors.iter().filter(|vector| vector["outcome"] == name).count();
    assert_eq!(["fingerprinted", "too_short", "empty"].map(outcomes), [26, 3, 2]);
}
