//! `nearprint audit`: what the dropped documents of a night lost, measured on their texts.

use serde_json::Value;

use crate::support::{self, Night, Ran, expect, text};

const DATES: [&str; 3] = ["2026-11-18", "2026-11-19", "2026-11-20"];

fn audit(night: &Night, dt: &str, more: &[&str]) -> Ran {
    support::command(night.path(), &["audit", "--config", "job.toml", "--dt", dt, "--json"]).args(more).run().unwrap()
}

/// A text with more words at its end.
fn longer(text: &str, n_words: usize) -> String {
    format!("{text} {}", support::text(99, n_words))
}

/// A job that drops a near-duplicate whatever it loses.
fn lossy() -> Night {
    Night::new("max_lost_share = 1\nbreakers = { max_mean_lost_share = 1.0 }\n")
}

fn number(json: &Value, path: &str) -> f64 {
    json.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path} in {json}"))
}

#[test]
fn lost_words_are_counted_exactly_and_the_published_estimate_is_compared_with_the_features() {
    let night = lossy();
    let (page, other) = (text(1, 200), text(2, 200));
    night.documents(DATES[0], &[("old", &page), ("w", &text(3, 50))]);
    night.documents(DATES[1], &[("old", &other)]);
    // Of the 228 word 3-grams of "grown", the 198 of "old" of the second night are in that; "again" is a copy of it; of
    // "short" nothing is lost.
    let (grown, short) = (longer(&other, 30), other.rsplit_once(' ').unwrap().0.to_owned());
    night.documents(DATES[2], &[("again", &other), ("grown", &grown), ("short", &short), ("x", &text(4, 50))]);
    for dt in DATES {
        night.run(dt, &["--no-breakers"]).expect_success();
    }
    let found = audit(&night, DATES[2], &[]).expect_success().json();
    assert_eq!((&found["command"], &found["status"]), (&"audit".into(), &"done".into()));
    let count = |path: &str| found.pointer(path).and_then(Value::as_u64).unwrap();
    assert_eq!([count("/n_drops"), count("/n_sampled"), count("/all/n"), count("/near/n")], [3, 3, 3, 2], "{found}");
    assert_eq!((number(&found, "/near/words/max"), number(&found, "/near/words/median")), (30.0 / 228.0, 0.0));
    assert_eq!((count("/near/words/n_large"), count("/near/n_longer")), (1, 1));
    let [low, high] = ["/all/words/share_large_ci/0", "/all/words/share_large_ci/1"].map(|path| number(&found, path));
    assert!(0.0 < low && low < 1.0 / 3.0 && 1.0 / 3.0 < high && high < 1.0, "{found}");
    let worst = &found["worst"][0];
    assert_eq!((&worst["doc_id"], &worst["canonical_id"]), (&"grown".into(), &"old".into()));
    assert_eq!(worst["canonical_dt"], DATES[1], "a keeper's text is that of its newest night");
    // 30 words and 30 shingles of 230 words and 228 shingles.
    assert_eq!(number(worst, "/lost_share"), 60.0 / 458.0);
    assert_eq!(worst["estimated_lost_share"].as_f64(), Some(night.lost_shares(DATES[2])["grown"]));
    let error = (night.lost_shares(DATES[2])["grown"] - 60.0 / 458.0).abs();
    assert!(number(&found, "/estimate/max") >= error && number(&found, "/estimate/n") == 2.0, "{found}");
    let said = support::nearprint_in(night.path(), &["audit", "--config", "job.toml", "--dt", DATES[2]]);
    let said = said.expect_success().stdout;
    for part in ["3 dropped, 3 drawn, 3 measured", "Near-duplicates: 2", "0.132", "grown", "95 % within ±"] {
        assert!(said.contains(part), "{part:?} is not in {said}");
    }
}

/// A text with so many halves of it in capitals.
fn capitals(text: &str, n_halves: usize) -> String {
    let (upper, rest) = text.split_at(n_halves * text.len() / 2);
    upper.to_uppercase() + rest
}

#[test]
fn a_draw_depends_on_the_seed_alone_and_keepers_of_the_same_night_are_found() {
    let night = Night::new("");
    let texts: Vec<String> = (0..20).map(|i| text(i, 60)).collect();
    let ids: Vec<String> = (0..60).map(|i| format!("d{i:02}")).collect();
    // Copies that differ in capitals alone are measured and listed one by one.
    let copies: Vec<String> = (0..60).map(|i| capitals(&texts[i % 20], i / 20)).collect();
    let rows: Vec<(&str, &str)> = ids.iter().zip(&copies).map(|(id, text)| (id.as_str(), text.as_str())).collect();
    night.documents(DATES[0], &rows).run(DATES[0], &["--no-breakers"]).expect_success();
    let drawn = |more: &[&str]| {
        let found = audit(&night, DATES[0], &[&["--examples", "99"], more].concat()).expect_success().json();
        let ids: Vec<String> = found["worst"].as_array().unwrap().iter().map(|d| d["doc_id"].to_string()).collect();
        assert_eq!(number(&found, "/all/words/max"), 0.0, "copies lose nothing: {found}");
        (found["n_drops"].as_u64().unwrap(), ids)
    };
    let (n_drops, all) = drawn(&[]);
    assert_eq!((n_drops, all.len()), (40, 40));
    let (_, some) = drawn(&["--sample", "10"]);
    assert_eq!((some.len(), drawn(&["--sample", "10"]).1), (10, some.clone()));
    assert_ne!(drawn(&["--sample", "10", "--seed", "1"]).1, some);
    assert!(some.iter().all(|id| all.contains(id)));
}

#[test]
fn texts_that_are_gone_or_changed_are_counted_and_never_passed_over() {
    let night = lossy();
    let page = text(1, 200);
    night.documents(DATES[0], &[("old", &page)]);
    night.documents(DATES[1], &[("new", &longer(&page, 20)), ("copy", &page)]);
    for dt in &DATES[..2] {
        night.run(dt, &["--no-breakers"]).expect_success();
    }
    let count = |found: &Value, what: &str| found["unmeasured"][what].as_u64().unwrap();
    let whole = audit(&night, DATES[1], &[]).expect_success().json();
    assert_eq!(number(&whole, "/all/n"), 2.0);

    // The file of the first night has another text under the same id.
    night.documents(DATES[0], &[("old", &longer(&page, 20))]);
    let done = audit(&night, DATES[1], &[]);
    assert_eq!(done.code, 66, "{}", done.stderr);
    let changed = done.json();
    assert_eq!((count(&changed, "n_keeper_changed"), &changed["status"]), (2, &"unmeasured".into()), "{changed}");
    let file = |dt: &str| night.path().join(format!("documents/dt={dt}/part-0.parquet"));
    std::fs::remove_file(file(DATES[0])).unwrap();
    let gone = audit(&night, DATES[1], &[]).json();
    assert_eq!(count(&gone, "n_keeper_not_found"), 2, "{gone}");
    std::fs::remove_file(file(DATES[1])).unwrap();
    let done = audit(&night, DATES[1], &[]);
    assert_eq!((done.code, count(&done.json(), "n_not_found")), (66, 2), "{}", done.stderr);
    let said = support::nearprint_in(night.path(), &["audit", "--config", "job.toml", "--dt", DATES[1]]).stdout;
    assert!(said.contains("not measured: 2  text not found") && said.contains("Nothing could be measured"), "{said}");
}

#[test]
fn a_night_without_drops_is_no_failure_and_one_that_is_not_published_or_of_another_profile_is() {
    let night = Night::new("");
    night.documents(DATES[0], &[("a", &text(1, 60)), ("b", &text(2, 60))]).run(DATES[0], &[]).expect_success();
    let found = audit(&night, DATES[0], &[]).expect_success().json();
    assert_eq!((number(&found, "/n_drops"), number(&found, "/all/n")), (0.0, 0.0));
    assert_eq!(found["all"]["words"]["mean"], Value::Null);
    expect(&audit(&night, DATES[1], &[]), 66, &["published night", DATES[1]]);
    expect(&audit(&night, DATES[0], &["--sample", "0"]), 64, &["a number from 1 up"]);
    let job = std::fs::read_to_string(night.path().join("job.toml")).unwrap();
    std::fs::write(night.path().join("job.toml"), job + "profile = \"paper\"\n").unwrap();
    expect(&audit(&night, DATES[0], &[]), 78, &["another configuration"]);
}
