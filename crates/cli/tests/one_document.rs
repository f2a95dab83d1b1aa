//! `explain ID`: what became of one document, by the published nights.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::support::{Night, Ran, edited, expect, nearprint_in, text};

const DAYS: [&str; 4] = ["2026-11-18", "2026-11-19", "2026-11-20", "2026-11-21"];
const A: &str = "https://example.org/a";
const B: &str = "https://example.org/b";
const C: &str = "https://example.org/c";

fn explain(night: &Night, id: &str, more: &[&str]) -> Ran {
    nearprint_in(night.path(), &[&["explain", id, "--config", "job.toml"], more].concat())
}

fn explained(night: &Night, id: &str) -> Value {
    explain(night, id, &["--json"]).expect_success().json()
}

/// Night 1 has a; night 2 drops b for it; night 3 has b alone; night 4 is still to come.
fn published() -> Night {
    let night = Night::new("max_lost_share = 1\n");
    let (one, near) = (text(1, 150), edited(&text(1, 150), 70));
    night.documents(DAYS[0], &[(A, &one), (C, &text(3, 150))]).run(DAYS[0], &[]).expect_success();
    night.documents(DAYS[1], &[(B, &near), (C, &text(4, 150))]).run(DAYS[1], &[]).expect_success();
    night.documents(DAYS[2], &[(B, &near)]).run(DAYS[2], &["--no-breakers"]).expect_success();
    night
}

#[test]
fn one_id_gives_the_decisions_of_all_its_nights_the_document_that_stays_and_the_difference() {
    let night = published();
    let said = explain(&night, B, &[]).expect_success().stdout;
    for part in [
        "https://example.org/b: dropped on 2026-11-20 (near)\n",
        "in 2 of 3 nights of store (commit 3); first seen on 2026-11-19, its text is that of 2026-11-19",
        "  2026-11-20  drop  near       same     https://example.org/a  (distance ",
        "  2026-11-19  drop  near       new      https://example.org/a  (distance ",
        "https://example.org/a stands: 2026-11-18 kept it\n",
        "{+edited+}",
    ] {
        assert!(said.replace("[-edited-]", "{+edited+}").contains(part), "{part:?} is not in {said}");
    }
    let json = explained(&night, B);
    assert_eq!((&json["status"], &json["representative"]["standing"]), (&"dropped".into(), &"kept".into()));
    assert_eq!(json["pair"]["distance"], json["nights"][0]["distance"]);
    let of_table: BTreeMap<_, _> = night.decisions(DAYS[1]);
    assert_eq!(json["nights"][1]["distance"].to_string(), of_table[B][2]);

    let kept = explained(&night, A);
    assert_eq!(kept["represents"], serde_json::json!({ "n_documents": 1, "examples": [B] }));
    let shown = explain(&night, A, &["--examples", "0"]).expect_success().stdout;
    assert!(shown.contains("It represents 1 document\n  and 1 more: --examples N\n"), "{shown}");
    let changed = explained(&night, C);
    let texts: Vec<&str> =
        changed["nights"].as_array().unwrap().iter().map(|night| night["recrawl"].as_str().unwrap()).collect();
    assert_eq!((texts, changed["last_changed"].as_str()), (vec!["changed", "new"], Some(DAYS[1])));
    assert_eq!(changed["first_seen"], DAYS[0]);
}

#[test]
fn what_becomes_of_the_document_that_stays_is_said() {
    let night = published();
    let standing = |night: &Night| {
        let json = explained(night, B);
        let then = json["representative"]["then"]["text_changed"].as_bool();
        (json["representative"]["standing"].as_str().unwrap().to_owned(), then)
    };
    assert_eq!(standing(&night), ("kept".to_owned(), Some(false)));
    let next = |rows: &[(&str, &str)]| {
        night.documents(DAYS[3], rows).run(DAYS[3], &["--replace", "--no-breakers"]).expect_success();
    };
    next(&[(A, &edited(&text(1, 150), 20))]);
    assert_eq!(standing(&night).0, "kept", "the new text is near as well");
    let other = text(7, 150);
    for (of_a, cause) in [(other.as_str(), "changed"), ("", "empty"), (&text(4, 150), "dropped for c")] {
        next(&[(A, of_a)]);
        let json = explained(&night, B);
        let newest = &json["nights"][0];
        let decided = [&newest["decision"], &newest["reason"], &newest["decided_again_on"]];
        assert_eq!(decided, ["keep", "restored", DAYS[3]], "{cause}: {newest}");
        assert_eq!((&json["status"], &json["representative"]), (&"kept".into(), &Value::Null), "{cause}");
        let said = explain(&night, B, &[]).expect_success().stdout;
        assert!(said.starts_with("https://example.org/b: kept on 2026-11-21 (restored)\n"), "{said}");
        assert!(said.contains("  2026-11-20  keep  restored   same       decided again on 2026-11-21"), "{said}");
        let found = nearprint_in(night.path(), &["query", "--config", "job.toml", "--id", B, "--json"]);
        assert_eq!(found.expect_success().json()["document"]["canonical_id"], Value::Null, "{cause}");
    }
    nearprint_in(night.path(), &["store", "drop-night", "store", "--dt", DAYS[3]]).expect_success();
    nearprint_in(night.path(), &["store", "drop-night", "store", "--dt", DAYS[0]]).expect_success();
    assert_eq!(standing(&night), ("gone".to_owned(), None));
    let said = explain(&night, B, &[]).expect_success().stdout;
    assert!(said.contains("https://example.org/a stands no more: no night has it"), "{said}");
    assert!(
        said.contains("  2026-11-19  drop  near       new      https://example.org/a") && said.contains("  stale\n"),
        "{said}"
    );
}

#[test]
fn an_id_that_no_night_has_is_told_with_the_ids_that_are_like_it() {
    let night = Night::new("");
    let ids: Vec<String> = (0..3000).map(|i| format!("https://www.example.org/page/{i:05}/")).collect();
    let texts: Vec<String> = (0..3000).map(|i| text(i, 30)).collect();
    let rows: Vec<(&str, &str)> = ids.iter().zip(&texts).map(|(id, text)| (id.as_str(), text.as_str())).collect();
    night.documents(DAYS[0], &rows).run(DAYS[0], &[]).expect_success();
    for typed in [
        "https://www.example.org/page/00042",
        "http://example.org/page/00042/",
        "https://WWW.example.org/page/00042/",
        "https://www.example.org/page/00042/#top",
        "https://www.example.org/page%2F00042/",
        "https://www.example.org/page/00042/?from=mail",
    ] {
        let unknown = explain(&night, typed, &[]);
        let meant = "https://www.example.org/page/00042/";
        expect(&unknown, 66, &["no night of store has the document", &format!("did you mean '{meant}'?")]);
        assert!(unknown.stderr.contains(&format!("nearprint explain {meant} --config job.toml")), "{}", unknown.stderr);
    }
    let slip = explain(&night, "https://www.example.org/page/0123x/", &[]);
    expect(
        &slip,
        66,
        &["did you mean 'https://www.example.org/page/01230/', 'https://www.example.org/page/01231/' or"],
    );
    expect(&explain(&night, "nothing like it", &[]), 66, &["check the id"]);
    expect(&explain(&night, "", &[]), 66, &["check the id"]);
}

#[test]
fn each_of_many_documents_is_found_by_the_page_indexes() {
    let night = Night::new("");
    // A common beginning that is longer than the bounds of pages.
    let begin = "https://example.org/a/rather/long/path/that/all/of/these/pages/have/in/common/";
    let ids: Vec<String> = (0..9000).map(|i| format!("{begin}{}", i * 7919 % 9001)).collect();
    let texts: Vec<String> = (0..9000).map(|i| if i % 3 == 0 { format!("short {i}") } else { text(i, 20) }).collect();
    let mut rows: Vec<(&str, &str)> = ids.iter().zip(&texts).map(|(id, text)| (id.as_str(), text.as_str())).collect();
    rows.push(("empty", ""));
    night.documents(DAYS[0], &rows).run(DAYS[0], &[]).expect_success();
    let decisions = night.decisions(DAYS[0]);
    for id in ids.iter().step_by(1501).map(String::as_str).chain(["empty"]) {
        let of_night = &explained(&night, id)["nights"][0];
        assert_eq!(
            (&of_night["decision"], &of_night["reason"]),
            (&decisions[id][0].clone().into(), &decisions[id][3].clone().into()),
            "{id}"
        );
    }
}

#[test]
fn results_that_are_gone_are_said_and_the_store_answers() {
    let night = published();
    fs::remove_dir_all(night.path().join("results/_nearprint")).unwrap();
    let json = explained(&night, B);
    assert_eq!((&json["nights"][0]["decision"], &json["nights"][0]["reason"]), (&"drop".into(), &Value::Null));
    assert!(json["nights"][0]["unread"].as_str().unwrap().contains("manifest"), "{json}");
    assert_eq!(json["representative"]["standing"], "kept");
    assert!(json["pair"].is_null() && json["not_compared"].is_string(), "{json}");
    let json = explained(&night, A);
    assert!(json["represents"].is_null() && json["not_counted"].is_string(), "{json}");
}

#[test]
fn texts_that_changed_since_the_night_are_not_compared() {
    let night = published();
    night.documents(DAYS[0], &[(A, &text(8, 150))]);
    let json = explained(&night, B);
    let said = json["not_compared"].as_str().unwrap();
    assert!(said.contains("have changed since, and no other has a text of https://example.org/a"), "{said}");
    fs::remove_dir_all(night.path().join(format!("documents/dt={}", DAYS[0]))).unwrap();
    let said = explain(&night, B, &[]).expect_success().stdout;
    assert!(said.contains("The texts were not compared: ") && said.contains(DAYS[0]), "{said}");
}

#[test]
fn one_id_needs_a_job_and_takes_no_other_documents() {
    let night = published();
    expect(&nearprint_in(night.path(), &["explain", A]), 64, &["give --config, or two ids"]);
    expect(&explain(&night, A, &["--documents", "documents"]), 64, &["or give two ids"]);
    let evil = "https://example.org/\u{1b}[31m";
    night.documents(DAYS[3], &[(evil, &text(1, 150))]).run(DAYS[3], &["--no-breakers"]).expect_success();
    let said = explain(&night, evil, &[]).expect_success().stdout;
    assert!(said.starts_with("https://example.org/\u{fffd}[31m: dropped") && !said.contains('\u{1b}'), "{said}");
}
