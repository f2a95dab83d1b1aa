//! `nearprint diff`: what changed between two generations of a night.

use serde_json::Value;

use crate::history::of_the_last_release;
use crate::support::{self, Night, Ran, expect, nearprint_in, text};

const DT: &str = "2026-11-20";

fn diff(night: &Night, args: &[&str]) -> Ran {
    support::command(night.path(), &["diff", "--dt", DT, "--json"]).args(args).run().unwrap()
}

fn counts(found: &Value) -> [u64; 7] {
    ["n_same", "n_decision", "n_reason", "n_canonical", "n_details", "n_only_a", "n_only_b"]
        .map(|name| found["documents"][name].as_u64().unwrap())
}

/// The changes as (kind, from, to, number, ids of the examples).
fn changes(found: &Value) -> Vec<(String, String, String, u64, Vec<String>)> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let ids = |change: &Value| change["examples"].as_array().unwrap().iter().map(|e| word(&e["doc_id"])).collect();
    let changes = found["documents"]["changes"].as_array().unwrap().iter();
    changes.map(|c| (word(&c["kind"]), word(&c["from"]), word(&c["to"]), c["n"].as_u64().unwrap(), ids(c))).collect()
}

/// A night that was replaced: `b` has another text, `c` is gone, `d` is new, and `e` is a copy of another page.
fn replaced() -> Night {
    let night = Night::new("");
    let [one, two, three, four] = [1, 2, 3, 4].map(|i| text(i, 60));
    night
        .documents(DT, &[("a", &one), ("b", &one), ("c", &two), ("e", &one), ("f", &four)])
        .run(DT, &["--no-breakers"])
        .expect_success();
    night
        .documents(DT, &[("a", &one), ("b", &three), ("d", &two), ("e", &three), ("f", &four)])
        .run(DT, &["--replace", "--no-breakers"])
        .expect_success();
    night
}

#[test]
fn a_replaced_night_is_compared_with_the_generation_before_it() {
    let night = replaced();
    let found = diff(&night, &["results"]).expect_success().json();
    assert_eq!((&found["status"], &found["made_from_other"]), (&"different".into(), &serde_json::json!(["inputs"])));
    assert_eq!(counts(&found), [1, 1, 1, 1, 0, 1, 1], "{found}");
    let expected = [
        ("decision", "drop exact", "keep canonical", "b"),
        ("reason", "keep canonical", "keep unique", "a"),
        ("canonical", "drop exact", "drop exact", "e"),
        ("only_a", "keep unique", "", "c"),
        ("only_b", "", "keep unique", "d"),
    ];
    let expected = expected.map(|(kind, from, to, id)| (kind.into(), from.into(), to.into(), 1, vec![id.into()]));
    assert_eq!(changes(&found), expected);
    let of_e = &found["documents"]["changes"][2]["examples"][0];
    assert_eq!((&of_e["canonical_a"], &of_e["canonical_b"]), (&"a".into(), &"b".into()));
    let pairs = &found["pairs"];
    assert_eq!((&pairs["n_only_a"], &pairs["n_only_b"], &pairs["n_same"]), (&2.into(), &1.into(), &0.into()));
    assert_eq!(pairs["examples_b"], serde_json::json!([["b", "e"]]));

    // By the job file, by the name of a generation, and the other way round.
    let by_job = diff(&night, &["--config", "job.toml"]).expect_success().json();
    let generation = |side: &str| found[side]["generation"].as_str().unwrap().to_owned();
    let named = |side: &str| format!("results@{}", &generation(side)[..8]);
    let by_name = diff(&night, &[&named("a")]).expect_success().json();
    let both = diff(&night, &[&named("a"), &named("b")]).expect_success().json();
    for other in [by_job, by_name, both] {
        assert_eq!((&other["documents"], &other["pairs"], &other["a"]), (&found["documents"], pairs, &found["a"]));
    }
    let back = diff(&night, &[&named("b"), &named("a")]).expect_success().json();
    assert_eq!(counts(&back), counts(&found));
    assert_eq!(back["documents"]["changes"][3]["examples"][0]["doc_id"], "d");
    let same = diff(&night, &["results", &named("b")]).expect_success().json();
    assert_eq!((&same["status"], counts(&same)), (&"same".into(), [5, 0, 0, 0, 0, 0, 0]));
}

#[test]
fn two_configurations_of_a_night_are_compared_and_examples_are_cut_but_counts_are_not() {
    let night = Night::new("");
    let texts: Vec<String> = (0..10).map(|i| text(i, 60)).collect();
    let ids: Vec<String> = (0..40).map(|i| format!("d{i:02}")).collect();
    let rows: Vec<(&str, &str)> = ids.iter().zip(0..).map(|(id, i)| (id.as_str(), texts[i % 10].as_str())).collect();
    night.documents(DT, &rows).run(DT, &["--no-breakers"]).expect_success();
    let job = std::fs::read_to_string(night.path().join("job.toml")).unwrap();
    std::fs::write(night.path().join("job.toml"), job + "profile = \"paper\"\n").unwrap();
    let more = ["--store", "store-b", "--output", "results-b", "--create-store", "--no-breakers", "--pairs", "all"];
    night.run(DT, &more).expect_success();
    let found = diff(&night, &["results", "results-b"]).expect_success().json();
    assert_eq!(found["made_from_other"], serde_json::json!(["configuration"]), "{found}");
    // Ten pages of four copies each: 30 pairs as a forest, 60 in all.
    assert_eq!((&found["pairs"]["n_only_a"], &found["pairs"]["n_only_b"]), (&0.into(), &30.into()), "{found}");
    assert_eq!(found["pairs"]["examples_b"].as_array().unwrap().len(), 3);
    let all = diff(&night, &["results", "results-b", "--examples", "99"]).expect_success().json();
    assert_eq!(all["pairs"]["examples_b"].as_array().unwrap().len(), 30);

    let said = nearprint_in(night.path(), &["diff", "results", "results-b", "--dt", DT]).expect_success().stdout;
    for part in ["pairs are in B only", "Pairs in B only: 30 (the first 3)", "Made from other configuration."] {
        assert!(said.contains(part), "{part:?} is not in {said}");
    }
    let said = nearprint_in(night.path(), &["diff", "results", "results-b", "--dt", DT, "--md"]).expect_success();
    for part in ["# What changed in the night 2026-11-20", "| pairs are in B only | 30 |", "- d10 and d20"] {
        assert!(said.stdout.contains(part), "{part:?} is not in {}", said.stdout);
    }
}

#[test]
fn what_a_document_is_to_earlier_nights_is_compared_too() {
    let night = Night::new("");
    let [one, two] = [1, 2].map(|i| text(i, 60));
    night.documents(DT, &[("a", &one), ("b", &two)]).run(DT, &["--no-breakers"]).expect_success();
    let earlier = "2026-11-19";
    night.documents(earlier, &[("a", &one)]).run(earlier, &["--no-breakers", "--late"]).expect_success();
    night.run(DT, &["--no-breakers", "--replace"]).expect_success();
    let found = diff(&night, &["results"]).expect_success().json();
    assert_eq!((&found["status"], counts(&found)), (&"different".into(), [1, 0, 0, 0, 1, 0, 0]), "{found}");
    assert_eq!(changes(&found)[0].4, ["a"]);
}

#[test]
fn the_reason_of_a_pair_is_compared_too() {
    let night = Night::new("");
    // The sketches of the two are between the limit of the judge and that of the profile.
    let base = text(9, 200);
    let mut words: Vec<String> = base.split(' ').map(str::to_owned).collect();
    (0..13).for_each(|i| words[i * 200 / 13] = format!("e{i}"));
    night.documents(DT, &[("a", &base), ("b", &words.join(" "))]).run(DT, &["--no-breakers"]).expect_success();
    assert_eq!(night.published(DT, "pairs")[0][6], "edited");
    let job = std::fs::read_to_string(night.path().join("job.toml")).unwrap();
    std::fs::write(night.path().join("job.toml"), job + "[judge]\nmax_looks = 0\n").unwrap();
    night.run(DT, &["--no-breakers", "--replace"]).expect_success();
    assert_eq!(night.published(DT, "pairs")[0][6], "near");
    let pairs = &diff(&night, &["results"]).expect_success().json()["pairs"];
    assert_eq!([&pairs["n_same"], &pairs["n_details"]], [0, 1], "{pairs}");
}

#[test]
fn what_a_night_of_the_last_release_does_not_say_is_no_difference() {
    let night = of_the_last_release();
    let newest = "2026-11-19";
    night.run(newest, &["--no-breakers", "--replace"]).expect_success();
    let args = ["diff", "results", "--dt", newest, "--json"];
    let found = nearprint_in(night.path(), &args).expect_success().json();
    assert_eq!((&found["status"], counts(&found)), (&"same".into(), [3, 0, 0, 0, 0, 0, 0]), "{found}");
    assert_eq!(found["pairs"]["n_same"], 1);
}

#[test]
fn a_generation_that_is_not_there_is_named_with_those_that_are() {
    let night = Night::new("");
    night.documents(DT, &[("a", &text(1, 60))]).run(DT, &[]).expect_success();
    expect(&diff(&night, &["results"]), 64, &["no generation before its newest"]);
    expect(&diff(&night, &["results@0123abcd"]), 64, &["no generation begins with 0123abcd", "those that lie there"]);
    expect(&diff(&night, &["elsewhere"]), 66, &["no night 2026-11-20 in these results at elsewhere"]);
    expect(&diff(&night, &[]), 64, &["A"]);
    let night = replaced();
    let gc = ["store", "gc", "--config", "job.toml", "--grace-hours", "0"];
    nearprint_in(night.path(), &gc).expect_success();
    expect(&diff(&night, &["results"]), 66, &["store gc", "manifest of a generation"]);
    nearprint_in(night.path(), &["store", "drop-night", "store", "--dt", DT]).expect_success();
    night.documents("2026-11-21", &[("z", &text(8, 60))]).run("2026-11-21", &["--no-breakers"]).expect_success();
    expect(&diff(&night, &["results"]), 64, &["the night is not in the tables"]);
}
