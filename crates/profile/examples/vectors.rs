//! Known-answer vectors of the default profile: reads JSON lines with `text` (and further keys, which stay), and writes each
//! with all that docs/fingerprint-format.md freezes about its text.
//!
//! `cargo run -p nearprint-profile --example vectors < texts.jsonl > docs/vectors/default.jsonl`
#![allow(clippy::print_stdout, reason = "an example")]

use std::error::Error;
use std::fmt::Write;
use std::io::BufRead;

use nearprint_profile::{Outcome, TextFingerprinter, by_name};
use serde_json::{Map, Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let fingerprinter = TextFingerprinter::try_new(by_name("default")?, &Default::default())?;
    for line in std::io::stdin().lock().lines() {
        let mut vector: Map<String, Value> = serde_json::from_str(&line?)?;
        let text = vector["text"].as_str().ok_or("`text` is not a string")?.to_owned();
        vector.extend(frozen(&fingerprinter, &text));
        println!("{}", Value::Object(vector));
    }
    Ok(())
}

/// Returns the keys that the page freezes; those that a text does not have are absent.
fn frozen(fingerprinter: &TextFingerprinter, text: &str) -> Map<String, Value> {
    let dissected = fingerprinter.dissect(text);
    let mut frozen = Map::from_iter([("normalized".to_owned(), json!(dissected.normalized))]);
    let mut set = |key: &str, value: Value| frozen.insert(key.to_owned(), value);
    if dissected.outcome != Outcome::Empty {
        let features = dissected.features.iter().map(|(token, weight)| (String::from_utf8_lossy(token), weight));
        set("features", features.collect::<Vec<_>>().into_iter().map(|f| json!(f)).collect());
    }
    match dissected.outcome {
        Outcome::Empty => set("outcome", json!("empty")),
        Outcome::TooShort { text_hash } => {
            set("text_hash", json!(hex(&text_hash)));
            set("outcome", json!("too_short"))
        }
        Outcome::Fingerprinted { fingerprint, sketch, n_features, text_hash, .. } => {
            set("text_hash", json!(hex(&text_hash)));
            set("fingerprint", json!(format!("{fingerprint:016x}")));
            set("sketch", json!(sketch.map(|sketch| hex(&sketch.0))));
            set("n_features", json!(n_features));
            set("outcome", json!("fingerprinted"))
        }
    };
    frozen
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
