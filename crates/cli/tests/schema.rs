//! The published schemas of summaries and manifests. `Ran::json` and `Night::run` hold every summary and manifest of all
//! tests to them.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use crate::support::{Night, nearprint_in, root, schema, text};

const DT: &str = "2026-11-20";

fn night() -> Night {
    let night = Night::new("");
    night.documents(DT, &[("a", &text(1, 40)), ("b", &text(1, 40)), ("c", &text(3, 40))]);
    night
}

fn published(name: &str) -> Value {
    serde_json::from_slice(&fs::read(root().join(format!("docs/schema/{name}.json"))).unwrap()).unwrap()
}

#[test]
fn the_summary_of_every_command_is_described() {
    let night = night();
    fs::write(night.path().join("truth.csv"), "a,b\n").unwrap();
    let documents = format!("documents/dt={DT}");
    let lines = [
        "config init new.toml".to_owned(),
        "config check job.toml".to_owned(),
        "config schema".to_owned(),
        "completions zsh".to_owned(),
        "man".to_owned(),
        "man pages".to_owned(),
        "plan --existing-rows 1000000 --query-rows 1000 --max-distance 3".to_owned(),
        "plan --existing-rows 1000000 --query-rows 1000 --max-distance 3 --workers 2 --worker-memory 4GiB".to_owned(),
        "store init store".to_owned(),
        format!("run -c job.toml --dt {DT} --dry-run"),
        format!("run -c job.toml --dt {DT} --report night.html"),
        format!("run -c job.toml --dt {DT}"),
        "run -c job.toml --stale".to_owned(),
        format!("report -c job.toml --dt {DT} --html page.html"),
        format!("audit -c job.toml --dt {DT}"),
        format!("review -c job.toml --dt {DT} --answers answers.jsonl"),
        format!("filter -c job.toml --dt {DT} --output kept"),
        "check -c job.toml".to_owned(),
        "store info store".to_owned(),
        "store check store".to_owned(),
        "config init other.toml --documents documents --store other-store --output other-results".to_owned(),
        "store migrate -c other.toml --from store --create-store".to_owned(),
        "store compact store".to_owned(),
        "store index store".to_owned(),
        "query --store store --fingerprint 0123456789abcdef".to_owned(),
        format!("fingerprint --documents {documents} --output fingerprints"),
        "join --queries fingerprints --self --max-distance 3 --output joined".to_owned(),
        format!("idf build --documents {documents} --output idf.txt"),
        format!("explain a c --documents {documents}"),
        "explain a -c job.toml".to_owned(),
        format!("tune --documents {documents} --sheet sheet.csv"),
        "store gc store --grace-hours 0".to_owned(),
        "store forget store --before 2026-11-01".to_owned(),
        format!("store drop-night store --dt {DT}"),
        "frobnicate".to_owned(),
    ];
    let mut commands = BTreeSet::new();
    for line in lines {
        let words: Vec<&str> = line.split(' ').chain(["--json"]).collect();
        let said = nearprint_in(night.path(), &words);
        assert_eq!(said.code == 0, line != "frobnicate", "{line}: {}", said.stderr);
        commands.insert(said.json()["command"].as_str().unwrap_or_default().to_owned());
    }
    // These have tests of their own, which need more than one line.
    commands.extend(["diff", "evaluate", "serve"].map(str::to_owned));
    let kinds = published("summary")["$defs"].as_object().unwrap().clone();
    let described = kinds.values().filter_map(|kind| kind["properties"]["command"]["const"].as_str());
    let missing: Vec<&str> = described.filter(|command| !commands.contains(*command)).collect();
    assert!(missing.is_empty(), "not run: {missing:?}");
}

#[test]
fn a_key_that_is_unknown_or_missing_is_refused() {
    let night = night();
    let summary = night.run(DT, &[]).expect_success().json();
    let manifest = fs::read(night.generation(DT).join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    for (value, admits) in [(summary, schema::summary as fn(&Value) -> _), (manifest, schema::manifest)] {
        admits(&value).unwrap();
        let mut more = value.clone();
        more["another"] = json!(1);
        assert!(admits(&more).is_err(), "an unknown key of {value:#}");
        for key in value.as_object().unwrap().keys().filter(|key| !IS_LEFT_OUT.contains(&key.as_str())) {
            let mut less = value.clone();
            less.as_object_mut().unwrap().remove(key);
            assert!(admits(&less).is_err(), "{key} is missing");
        }
    }
}

/// Keys that a summary of a night has or has not.
const IS_LEFT_OUT: [&str; 18] = [
    "judge",
    "max_doc_bytes",
    "n_texts",
    "stubs",
    "generation",
    "measured",
    "n_changed",
    "n_keep_bound",
    "n_kept_beyond_component",
    "n_kept_in_vain",
    "n_new",
    "n_repeated_ids",
    "n_same",
    "newest_input",
    "next",
    "peak_rss_bytes",
    "references",
    "stage_ms",
];

#[test]
fn every_key_has_a_description() {
    fn walk(place: &str, value: &Value) {
        for (key, property) in value["properties"].as_object().into_iter().flatten() {
            let words = ["description", "$ref", "const", "enum"];
            assert!(words.iter().any(|word| property.get(word).is_some()), "{place}/{key}");
            assert!(!property["description"].as_str().is_some_and(|text| text.contains('\n')), "{place}/{key}");
        }
        let inner = value.as_object().into_iter().flatten().map(|(key, value)| (key.clone(), value));
        let items = value.as_array().into_iter().flatten().enumerate().map(|(at, value)| (at.to_string(), value));
        inner.chain(items).for_each(|(key, value)| walk(&format!("{place}/{key}"), value));
    }
    for name in ["summary", "manifest"] {
        walk(name, &published(name));
    }
}
