//! Documents whose representative is gone are decided again: no text of a live page is lost over nights.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::support::{Night, nearprint_in, text};

/// What the corpus says about a document: its night, decision, canonical document and reason.
pub type State = [String; 4];

/// The corpus by its definition: of each id the newest row of `decisions`, with the newest row of `redecided` that is about
/// the state of that night.
pub fn corpus(night: &Night, dts: &[&str]) -> BTreeMap<String, State> {
    let mut corpus: BTreeMap<String, State> = BTreeMap::new();
    for dt in dts {
        for (id, row) in night.decisions(dt) {
            let [decision, canonical, _, reason] = [0, 1, 2, 3].map(|column: usize| row[column].clone());
            corpus.insert(id, [(*dt).to_owned(), decision, canonical, reason]);
        }
    }
    for dt in dts {
        for row in night.published(dt, "redecided") {
            if let Some(state) = corpus.get_mut(&row[0])
                && state[0] == row[1]
            {
                *state = [row[1].clone(), row[2].clone(), row[3].clone(), row[5].clone()];
            }
        }
    }
    corpus
}

fn state(corpus: &BTreeMap<String, State>, id: &str) -> [String; 3] {
    let [_, decision, canonical, reason] = corpus[id].clone();
    [decision, canonical, reason]
}

/// The rows of `redecided` that a night published, without distances and shares.
fn redecided(night: &Night, dt: &str) -> Vec<[String; 7]> {
    let rows = night.published(dt, "redecided").into_iter();
    rows.map(|row| [0, 1, 2, 3, 5, 8, 9].map(|column: usize| row[column].clone())).collect()
}

fn check(night: &Night) {
    for command in [&["check", "--config", "job.toml", "--json"][..], &["store", "check", "store", "--json"]] {
        let checked = nearprint_in(night.path(), command).expect_success().json();
        assert_eq!(checked["status"], "sound", "{checked}");
    }
}

fn run(night: &Night, dt: &str, more: &[&str]) -> Value {
    night.run(dt, &[&["--no-breakers"], more].concat()).expect_success().json()
}

const FIRST: &str = "2026-11-20";
const SECOND: &str = "2026-11-21";
const THIRD: &str = "2026-11-22";

/// Night 1 of `users`: b and its mirror, which is dropped for it.
fn mirrored(job: &str) -> Night {
    let night = Night::new(job);
    let fox = text(1, 60);
    night.documents(FIRST, &[("b", &fox), ("mirror", &fox), ("other", &text(9, 60))]);
    run(&night, FIRST, &[]);
    assert_eq!(state(&corpus(&night, &[FIRST]), "mirror"), ["drop", "b", "exact"]);
    night
}

/// The middle night decided nothing and was decided nothing about, and comes back as it was.
#[test]
fn a_later_night_is_no_longer_stale_once_it_is_made_again_after_an_earlier_one_came_back() {
    let night = mirrored("");
    night.documents(SECOND, &[("c", &text(3, 60))]);
    run(&night, SECOND, &[]);
    night.documents(THIRD, &[("b", &text(2, 60))]);
    assert_eq!(run(&night, THIRD, &[])["n_restored"], 1);
    nearprint_in(night.path(), &["store", "drop-night", "--config", "job.toml", "--dt", SECOND]).expect_success();
    run(&night, SECOND, &["--late"]);
    let stale = || {
        let checked = nearprint_in(night.path(), &["check", "--config", "job.toml", "--json"]).expect_success().json();
        assert_eq!(checked["status"], "sound", "{checked}");
        checked["stale"].clone()
    };
    assert_eq!(stale(), serde_json::json!([THIRD]));
    nearprint_in(night.path(), &["run", "--config", "job.toml", "--stale", "--no-breakers"]).expect_success();
    assert_eq!(stale(), serde_json::json!([]));
    assert_eq!(state(&corpus(&night, &[FIRST, SECOND, THIRD]), "mirror"), ["keep", "", "restored"]);
}

#[test]
fn a_mirror_whose_representative_says_something_else_is_kept_again() {
    for (new, cause) in [(text(2, 60), "changed"), (" ".to_owned(), "empty"), (text(9, 60), "changed")] {
        let night = mirrored("");
        night.documents(SECOND, &[("b", &new)]);
        let done = run(&night, SECOND, &[]);
        assert_eq!((done["n_orphaned"].as_u64(), done["n_restored"].as_u64()), (Some(1), Some(1)), "{cause}");
        let [row] = &redecided(&night, SECOND)[..] else { panic!("{:?}", redecided(&night, SECOND)) };
        assert_eq!(row.each_ref(), ["mirror", FIRST, "keep", "", "restored", "b", cause]);
        assert_eq!(state(&corpus(&night, &[FIRST, SECOND]), "mirror"), ["keep", "", "restored"]);
        check(&night);
        // From then on it represents others.
        night.documents(THIRD, &[("copy", &text(1, 60))]);
        run(&night, THIRD, &[]);
        assert_eq!(night.decisions(THIRD)["copy"][..2], ["drop", "mirror"]);
        assert!(redecided(&night, THIRD).is_empty());
        check(&night);
    }
}

#[test]
fn a_night_whose_representatives_stay_what_they_are_decides_nothing_again() {
    let night = mirrored("");
    night.documents(SECOND, &[("b", &text(1, 60)), ("new", &text(3, 60))]);
    let done = run(&night, SECOND, &[]);
    assert_eq!((done["n_orphaned"].as_u64(), done["n_restored"].as_u64()), (None, None));
    assert!(redecided(&night, SECOND).is_empty());
    check(&night);
}

#[test]
fn a_representative_that_is_dropped_for_another_page_leaves_its_mirrors_to_be_decided_again() {
    // b is near c, which the night has for the first time, fuller than b; the keep order takes c first.
    let words = text(1, 100);
    let night = Night::new("keep = [\"rank\"]\n");
    let write = |dt: &str, rows: &[(&str, &str, i64)]| {
        let lines =
            rows.iter().map(|(id, text, rank)| format!("{{\"id\":\"{id}\",\"text\":\"{text}\",\"rank\":{rank}}}\n"));
        let folder = night.path().join(format!("documents/dt={dt}"));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("part-0.jsonl"), lines.collect::<String>()).unwrap();
    };
    // a and b are kept far from each other; night 2 has both again with the text of a, and b is dropped for a.
    write(FIRST, &[("a", &text(3, 60), 0), ("b", &words, 1), ("mirror", &words, 2)]);
    run(&night, FIRST, &[]);
    assert_eq!(night.decisions(FIRST)["mirror"][..2], ["drop", "b"]);
    write(SECOND, &[("a", &words, 0), ("b", &words, 1)]);
    run(&night, SECOND, &[]);
    assert_eq!(night.decisions(SECOND)["b"][..2], ["drop", "a"]);
    let [row] = &redecided(&night, SECOND)[..] else { panic!("{:?}", redecided(&night, SECOND)) };
    assert_eq!(row.each_ref(), ["mirror", FIRST, "drop", "a", "exact", "b", "dropped"]);
    // a changes later, and finds its dependents of both nights.
    write(THIRD, &[("a", &text(4, 60), 0)]);
    run(&night, THIRD, &[]);
    let corpus = corpus(&night, &[FIRST, SECOND, THIRD]);
    assert_eq!(state(&corpus, "b"), ["keep", "", "restored"]);
    assert_eq!(state(&corpus, "mirror"), ["drop", "b", "exact"]);
    check(&night);
}

#[test]
fn of_several_orphans_the_fullest_is_restored_and_a_page_of_tonight_comes_before_them() {
    let (fox, near) = (text(1, 100), format!("{} more", text(1, 100)));
    for tonight in [None, Some(("new", near.as_str()))] {
        let night = Night::new("");
        night.documents(FIRST, &[("b", &format!("{fox} and still more")), ("m1", &fox), ("m2", &near), ("m3", &fox)]);
        run(&night, FIRST, &[]);
        let mut second = vec![("b", "This page has moved, and it says so in some more words than five or so.")];
        second.extend(tonight);
        night.documents(SECOND, &second);
        run(&night, SECOND, &[]);
        let corpus = corpus(&night, &[FIRST, SECOND]);
        let canonical = if tonight.is_some() { "new" } else { "m2" };
        let expected = if tonight.is_some() { ["drop", "new", "exact"] } else { ["keep", "", "restored"] };
        assert_eq!(state(&corpus, "m2"), expected);
        for id in ["m1", "m3"] {
            assert_eq!(state(&corpus, id), ["drop", canonical, "near"]);
        }
        check(&night);
    }
}

#[test]
fn short_texts_are_decided_again_by_equal_texts() {
    let night = Night::new("");
    night.documents(FIRST, &[("b", "one two"), ("m1", "one two"), ("m2", "one two")]);
    run(&night, FIRST, &[]);
    night.documents(SECOND, &[("b", "three four")]);
    let done = run(&night, SECOND, &[]);
    assert_eq!((done["n_orphaned"].as_u64(), done["n_restored"].as_u64()), (Some(2), Some(1)));
    let now = corpus(&night, &[FIRST, SECOND]);
    assert_eq!(state(&now, "m1"), ["keep", "", "restored"]);
    assert_eq!(state(&now, "m2"), ["drop", "m1", "exact"]);
    night.documents(THIRD, &[("m1", "five six"), ("new", "one two")]);
    run(&night, THIRD, &[]);
    // m1, which represented it, has another text now: the page of tonight that has the text comes first.
    assert_eq!(state(&corpus(&night, &[FIRST, SECOND, THIRD]), "m2"), ["drop", "new", "exact"]);
    check(&night);
}

#[test]
fn what_a_forgotten_night_represented_is_decided_again_by_the_night_that_forgets_it() {
    let night = Night::new("keep_nights = 2\n");
    let (fox, other) = (text(1, 60), text(2, 60));
    night.documents(FIRST, &[("b", &fox), ("c", &other)]);
    run(&night, FIRST, &[]);
    night.documents(SECOND, &[("m1", &fox), ("m2", &fox), ("m3", &other)]);
    run(&night, SECOND, &[]);
    // The third night forgets the first. Its own page with a text of that is kept, and represents what lost c.
    night.documents(THIRD, &[("new", &other)]);
    let done = run(&night, THIRD, &[]);
    assert_eq!(done["forgotten"], serde_json::json!([FIRST]));
    let expected = |night: &Night| {
        let now = corpus(night, &[SECOND, THIRD]);
        assert_eq!(state(&now, "new"), ["keep", "", "canonical"]);
        assert_eq!(state(&now, "m1"), ["keep", "", "restored"]);
        assert_eq!(state(&now, "m2"), ["drop", "m1", "exact"]);
        assert_eq!(state(&now, "m3"), ["drop", "new", "exact"]);
        let causes: Vec<String> = redecided(night, THIRD).into_iter().map(|row| row[6].clone()).collect();
        assert_eq!(causes, ["forgotten"; 3]);
        check(night);
    };
    expected(&night);
    // Made again, the night does not find what it forgot, and knows it all the same.
    let before = redecided(&night, THIRD);
    std::fs::write(night.path().join("documents/dt=2026-11-22/notes.txt"), "no document").unwrap();
    run(&night, THIRD, &["--replace"]);
    assert_eq!(redecided(&night, THIRD), before);
    expected(&night);
}

#[test]
fn a_restored_document_is_found_by_queries_and_hides_nothing_after_its_nights_are_compacted_or_dropped() {
    let night = mirrored("");
    let query = |text: &str| {
        let args = ["query", "--config", "job.toml", "--json", "--text", text];
        nearprint_in(night.path(), &args).expect_success().json()["matches"].clone()
    };
    night.documents(SECOND, &[("b", &text(2, 60))]);
    run(&night, SECOND, &[]);
    let found = query(&text(1, 60));
    assert_eq!((&found[0]["id"], &found[0]["decision"]), (&"mirror".into(), &"keep".into()), "{found}");
    nearprint_in(night.path(), &["store", "compact", "store"]).expect_success();
    night.documents(THIRD, &[("copy", &text(1, 60))]);
    run(&night, THIRD, &[]);
    assert_eq!(night.decisions(THIRD)["copy"][..2], ["drop", "mirror"]);
    nearprint_in(night.path(), &["store", "drop-night", "store", "--dt", SECOND]).expect_success();
    // The first night's b represents its mirror again, and the third night is stale.
    let found = query(&text(1, 60));
    let of = |id: &str| found.as_array().unwrap().iter().find(|found| found["id"] == id).cloned().unwrap();
    assert_eq!((of("mirror")["canonical_id"].clone(), of("b")["decision"].clone()), ("b".into(), "keep".into()));
    nearprint_in(night.path(), &["run", "--config", "job.toml", "--stale", "--no-breakers"]).expect_success();
    assert_eq!(night.decisions(THIRD)["copy"][..2], ["drop", "b"]);
    check(&night);
}

#[test]
fn what_was_decided_again_outlives_forgotten_documents_and_names_none_of_them() {
    let fox = text(1, 60);
    for forgotten in ["m1", "b"] {
        let night = Night::new("");
        night.documents(FIRST, &[("a", &text(5, 60)), ("b", &fox), ("m1", &fox), ("m2", &fox)]);
        run(&night, FIRST, &[]);
        night.documents(SECOND, &[("b", &text(2, 60))]);
        run(&night, SECOND, &[]);
        assert_eq!(state(&corpus(&night, &[FIRST, SECOND]), "m2"), ["drop", "m1", "exact"]);
        std::fs::write(night.path().join("ids"), format!("{forgotten}\n")).unwrap();
        nearprint_in(night.path(), &["store", "forget", "store", "--ids", "ids"]).expect_success();
        check(&night);
        for row in redecided(&night, SECOND) {
            assert!(row.iter().all(|value| value != forgotten), "{row:?}");
        }
        // m2 represents itself now, and so does m1 if it is there: neither text is lost.
        night.documents(THIRD, &[("copy", &fox)]);
        run(&night, THIRD, &[]);
        let representative = if forgotten == "b" { "m1" } else { "m2" };
        assert_eq!(night.decisions(THIRD)["copy"][..2], ["drop", representative]);
        check(&night);
    }
}

#[test]
fn an_orphan_that_would_lose_too_much_with_its_fuller_mirror_is_restored_beside_it() {
    let page = text(1, 100);
    let grown = format!("{page} {}", text(2, 15));
    let night = Night::new("max_lost_share = 0.04\n");
    // Both were dropped for b, which has all of them.
    night.documents(FIRST, &[("b", &format!("{grown} and")), ("m1", &grown), ("m2", &page)]);
    run(&night, FIRST, &[]);
    let first = corpus(&night, &[FIRST]);
    assert_eq!((state(&first, "m1")[1].as_str(), state(&first, "m2")[1].as_str()), ("b", "b"));
    // Tonight's page is near, and lacks what the fuller one has.
    night.documents(SECOND, &[("b", &text(3, 60)), ("new", &page)]);
    run(&night, SECOND, &[]);
    let now = corpus(&night, &[FIRST, SECOND]);
    assert_eq!(state(&now, "m1"), ["keep", "", "restored"]);
    assert_eq!(state(&now, "m2"), ["drop", "new", "exact"]);
    check(&night);
}
