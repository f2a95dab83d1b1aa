//! Stubs: one text that many addresses of a source answer with, in place of what their pages say.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::support::{Night, Ran, expect, nearprint_in, rows, snapshot, text};

const DAYS: [&str; 5] = ["2026-11-17", "2026-11-18", "2026-11-19", "2026-11-20", "2026-11-21"];
const LOGIN: &str = "Please sign in to continue. This article is for subscribers only. User name, password, forgot your \
                     password? Create an account, or go back to the front page of our newspaper.";
const BANNER: &str = "We value your privacy. We and our partners store information on a device, such as cookies, and process \
                      personal data for advertising, measurement and research. Accept all, reject all, manage preferences.";

type Pages = Vec<(String, String)>;

fn url(host: &str, page: usize) -> String {
    format!("https://{host}/story/{page}")
}

fn articles(host: &str, n: usize) -> Pages {
    (0..n).map(|i| (url(host, i), text(i as u64, 150))).collect()
}

/// The pages, of which some answer with another text.
fn answering(pages: &Pages, which: std::ops::Range<usize>, with: impl Fn(&str) -> String) -> Pages {
    let answer = |(i, (url, text)): (usize, &(String, String))| {
        (url.clone(), if which.contains(&i) { with(url) } else { text.clone() })
    };
    pages.iter().enumerate().map(answer).collect()
}

fn run(night: &Night, dt: &str, pages: &Pages, more: &[&str]) -> Ran {
    let pages: Vec<(&str, &str)> = pages.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect();
    night.documents(dt, &pages);
    night.run(dt, more)
}

/// The documents that a night takes for stubs.
fn stubs(night: &Night, dt: &str) -> BTreeSet<String> {
    let decided = night.decisions(dt);
    let of_decisions: BTreeSet<String> =
        decided.into_iter().filter(|(_, row)| row[..4] == ["drop", "", "", "stub"]).map(|(id, _)| id).collect();
    let of_dataset: BTreeSet<String> = night.published(dt, "stubs").into_iter().map(|row| row[0].clone()).collect();
    assert_eq!(of_decisions, of_dataset, "decisions and the dataset name the same");
    of_decisions
}

fn corpus(night: &Night) -> BTreeMap<String, String> {
    let output = tempfile::tempdir().unwrap();
    let place = output.path().join("corpus");
    let args = ["filter", "--config", "job.toml", "--corpus", "--output", place.to_str().unwrap()];
    nearprint_in(night.path(), &args).expect_success();
    parquet_rows(&place).into_iter().map(|row| (row[0].clone(), row[1].clone())).collect()
}

/// The rows of all files of a folder that has other files too.
fn parquet_rows(folder: &Path) -> Vec<Vec<String>> {
    let files = snapshot(folder).into_keys().filter(|path| path.extension().is_some_and(|ending| ending == "parquet"));
    files
        .filter(|path| !path.components().any(|part| part.as_os_str() == "_delta_log"))
        .flat_map(|file| rows(&folder.join(file)))
        .collect()
}

fn as_map(pages: &Pages) -> BTreeMap<String, String> {
    pages.iter().cloned().collect()
}

#[test]
fn a_wall_before_some_pages_leaves_their_articles_where_they_were() {
    let night = Night::new("");
    let pages = articles("news.example", 30);
    run(&night, DAYS[0], &pages, &[]).expect_success();
    let walled = answering(&pages, 0..12, |_| LOGIN.to_owned());
    let summary = run(&night, DAYS[1], &walled, &[]).expect_success().json();
    let expected: BTreeSet<String> = (0..12).map(|i| url("news.example", i)).collect();
    assert_eq!(stubs(&night, DAYS[1]), expected);
    let found = &summary["stubs"][0];
    assert_eq!((&summary["by_reason"]["drop_stub"], &found["n_documents"]), (&12.into(), &12.into()));
    assert_eq!((&found["signal"], &found["source"]), (&"collapse".into(), &"news.example".into()));
    assert_eq!(corpus(&night), as_map(&pages), "each article is there as it was");

    // The store has the articles too: copies on another host are dropped for them.
    let copies = articles("mirror.example", 30);
    run(&night, DAYS[2], &copies, &["--no-breakers"]).expect_success();
    let decided = night.decisions(DAYS[2]);
    for i in 0..30 {
        let row = &decided[&url("mirror.example", i)];
        assert_eq!((row[0].as_str(), row[1].as_str(), row[3].as_str()), ("drop", &*url("news.example", i), "exact"));
    }

    // The wall falls: the pages are what they were, and not changed since.
    let summary = run(&night, DAYS[3], &pages, &["--no-breakers"]).expect_success().json();
    assert_eq!((&summary["n_same"], &summary["by_reason"]["drop_stub"]), (&30.into(), &Value::Null));
    assert_eq!(corpus(&night), as_map(&pages));
    let said = nearprint_in(night.path(), &["explain", &url("news.example", 3), "--config", "job.toml"]);
    let said = said.expect_success().stdout;
    assert!(said.contains("in 3 of 4 nights") && said.contains("2026-11-18  drop  stub "), "{said}");
    expect(&nearprint_in(night.path(), &["check", "--config", "job.toml"]), 0, &[]);
}

#[test]
fn a_crawl_that_became_one_banner_is_stopped_and_replaces_nothing_if_it_is_let_through() {
    let night = Night::new("[breakers]\nmin_source_documents = 100\n");
    // Of 200 addresses, 60 have a text of their own.
    let pages: Pages = (0..200).map(|i| (url("news.example", i), text(i as u64 % 60, 150))).collect();
    for dt in &DAYS[..4] {
        let summary = run(&night, dt, &pages, &[]).expect_success().json();
        assert_eq!((&summary["n_keep"], &summary["breakers"]), (&60.into(), &serde_json::json!([])), "{summary}");
    }
    let before = corpus(&night);
    assert_eq!(before.len(), 60);
    let banner = answering(&pages, 0..200, |_| BANNER.to_owned());
    let stopped = run(&night, DAYS[4], &banner, &[]);
    expect(&stopped, 65, &["200 of 200 documents are stubs", "a fall of 100.0 %"]);
    let names: Vec<Value> =
        stopped.json()["breakers"].as_array().unwrap().iter().map(|breaker| breaker["name"].clone()).collect();
    assert_eq!(names, ["max_rate_change", "max_kept_fall", "max_source_fall", "max_stub_share"]);
    let published = night.run(DAYS[4], &["--no-breakers"]).expect_success().json();
    assert_eq!((&published["n_keep"], &published["n_drop"]), (&0.into(), &200.into()));
    assert_eq!(corpus(&night), before);
    let report = ["report", "--config", "job.toml", "--dt", DAYS[4], "--html", "page.html"];
    let said = nearprint_in(night.path(), &report).expect_success().stdout;
    for line in [
        "100.0 % of the documents are stubs: more than 50.0 % stops a night, and this is beyond it (max_stub_share)\n",
        "0.0 % dropped (stubs not counted), 70.0 % in the nights before: more than a change",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    let earlier = "documents that only earlier nights have, or that are stubs now, compared with these\n";
    assert!(said.contains(earlier), "each page keeps its state and is compared: {said}");
    let page = std::fs::read_to_string(night.path().join("page.html")).unwrap();
    assert!(page.contains("The breaker max_stub_share was beyond its limit: 100.0 %; the limit is 50.0 %."), "{page}");
    let new = tempfile::tempdir().unwrap();
    let place = new.path().join("new");
    let args =
        ["filter", "--config", "job.toml", "--new", "--dt", DAYS[4], "--json", "--output", place.to_str().unwrap()];
    let written = nearprint_in(night.path(), &args).expect_success().json();
    assert_eq!((&written["n_keep"], &written["n_removed"]), (&0.into(), &0.into()), "{written}");
}

#[test]
fn a_night_that_stops_for_different_walls_gives_no_command_that_compares_them() {
    let night = Night::new("");
    let pages = articles("news.example", 40);
    run(&night, DAYS[0], &pages, &[]).expect_success();
    let walled = answering(&answering(&pages, 0..20, |_| LOGIN.to_owned()), 20..40, |_| BANNER.to_owned());
    let stopped = run(&night, DAYS[1], &walled, &[]);
    expect(&stopped, 65, &["40 of 40 documents are stubs"]);
    let summary = stopped.json();
    let walls = summary["breakers"][0]["evidence"]["ids"].as_array().map(Vec::len);
    assert_eq!((walls, &summary["next"]), (Some(2), &Value::Null), "{summary}");
}

#[test]
fn a_page_that_lists_the_largest_sources_and_walls_says_of_how_many() {
    let night = Night::new("");
    let host = |i: usize| format!("h{:02}.example", i % 11);
    let pages: Pages = (0..132).map(|i| (url(&host(i), i), text(i as u64, 150))).collect();
    run(&night, DAYS[0], &pages, &[]).expect_success();
    let wall = |(i, (url, _)): (usize, &(String, String))| (url.clone(), format!("{LOGIN} This is {}.", host(i)));
    run(&night, DAYS[1], &pages.iter().enumerate().map(wall).collect(), &["--no-breakers"]).expect_success();
    let report = ["report", "--config", "job.toml", "--dt", DAYS[1], "--html", "page.html", "--json"];
    let reported = nearprint_in(night.path(), &report).expect_success().json();
    assert_eq!((reported["hosts"].as_array().map(Vec::len), &reported["n_hosts"]), (Some(10), &11.into()));
    let page = std::fs::read_to_string(night.path().join("page.html")).unwrap();
    for caption in [
        "The largest sources: 10 of 11; the dataset hosts has all",
        "Stubs: pages keep their earlier texts. 120 of 132 stubs; the dataset stubs has all",
    ] {
        assert!(page.contains(caption), "{caption}: {page}");
    }
}

#[test]
fn walls_that_name_the_address_are_stubs_and_a_page_that_goes_on_as_it_was_is_none() {
    let night = Night::new("");
    let mut pages = articles("news.example", 40);
    run(&night, DAYS[0], &pages, &[]).expect_success();
    // One page says less than before, and one says something else.
    pages[38].1 = text(38, 150).split(' ').take(90).collect::<Vec<_>>().join(" ");
    pages[39].1 = text(1039, 150);
    let named = |url: &str| format!("Access to {url} was denied on 2026-11-18 at noon. {LOGIN}");
    run(&night, DAYS[1], &answering(&pages, 0..12, named), &["--no-breakers"]).expect_success();
    assert_eq!(stubs(&night, DAYS[1]), (0..12).map(|i| url("news.example", i)).collect());
}

#[test]
fn a_wall_of_more_different_texts_than_are_sampled_is_found_on_all_its_pages() {
    let night = Night::new("");
    let pages = articles("news.example", 400);
    run(&night, DAYS[0], &pages, &[]).expect_success();
    let named = |url: &str| format!("Access to {url} was denied on 2026-11-18 at noon. {LOGIN}");
    run(&night, DAYS[1], &answering(&pages, 0..300, named), &["--no-breakers"]).expect_success();
    assert_eq!(stubs(&night, DAYS[1]), (0..300).map(|i| url("news.example", i)).collect());
}

#[test]
fn a_share_that_is_none_is_refused() {
    let night = Night::new("[stubs]\nmin_share = 3\n");
    expect(&run(&night, DAYS[0], &articles("news.example", 1), &[]), 78, &["stubs.min_share", "3 is not a share"]);
}

#[test]
fn in_a_first_night_a_text_of_many_addresses_is_a_stub_and_one_page_under_many_queries_is_none() {
    let night = Night::new("");
    let mut pages = answering(&articles("news.example", 100), 0..30, |_| BANNER.to_owned());
    pages.extend((0..60).map(|i| (format!("https://news.example/one?session={i:04}"), format!("{LOGIN} {BANNER}"))));
    // Few addresses, another source with a small share, long texts, and ids that are no URLs.
    pages.extend(answering(&articles("few.example", 40), 0..19, |_| BANNER.to_owned()));
    pages.extend(answering(&articles("long.example", 40), 0..30, |_| text(9000, 400)));
    pages.extend((0..60).map(|i| (format!("row {i}"), BANNER.to_owned())));
    run(&night, DAYS[0], &pages, &["--no-breakers"]).expect_success();
    // The banner has 30 of 160 addresses, which is less than a fifth.
    assert_eq!(stubs(&night, DAYS[0]), BTreeSet::new());
    let job = std::fs::read_to_string(night.path().join("job.toml")).unwrap();
    std::fs::write(night.path().join("job.toml"), job + "[stubs]\nmin_share = 0.15\n").unwrap();
    night.run(DAYS[0], &["--replace", "--no-breakers"]).expect_success();
    assert_eq!(stubs(&night, DAYS[0]), (0..30).map(|i| url("news.example", i)).collect());
    let row = night.published(DAYS[0], "stubs")[0].clone();
    assert_eq!(row[1..5], ["news.example", "share", "https://news.example/story/0", "30"]);
    // Nothing represents a stub, not even itself.
    let said = nearprint_in(night.path(), &["diff", "results", "--dt", DAYS[0]]).expect_success().stdout;
    let (_, stubs) = said.split_once("drop exact → drop stub").unwrap();
    let (stubs, _) = stubs.split_once("\n\n").unwrap_or((stubs, ""));
    assert!(stubs.contains(", then by no document)") && !stubs.contains("by itself"), "{said}");
}

#[test]
fn pages_that_look_alike_are_no_stubs() {
    let night = Night::new("");
    let product = |i: usize, day: usize| {
        let name = text(i as u64, 6);
        format!(
            "{name}. In stock, {} euros. Free delivery from 50 euros, returns within 30 days. Pay by card, transfer or on \
             account. Rated by our customers. Add to basket. Compare. Recommend this product to friends.",
            (i * 37 + day * 5) % 90
        )
    };
    for (day, dt) in DAYS[..3].iter().enumerate() {
        let mut pages: Pages = (0..150).map(|i| (format!("https://shop.example/p/{i}"), product(i, day))).collect();
        // A redesign puts another head over every page.
        let head = text(5000 + day as u64, 120);
        pages.extend((0..60).map(|i| (url("news.example", i), format!("{head} {}", text(i as u64, 80)))));
        // Mirrors, and five versions of eight pages.
        pages.extend((0..60).map(|i| (format!("https://news.example/print/{i}"), text(100 + i, 80))));
        pages.extend((0..60).map(|i| (format!("https://mirror.example/{i}"), text(100 + i, 80))));
        pages.extend((0..40).map(|i| (format!("https://docs.example/{}/{}", i % 5, i / 5), text(200 + i / 5, 80))));
        run(&night, dt, &pages, &["--no-breakers"]).expect_success();
        assert_eq!(stubs(&night, dt), BTreeSet::new(), "{dt}");
    }
}

#[test]
fn a_night_that_is_made_again_puts_back_what_its_wall_had_replaced() {
    let night = Night::new("[stubs]\nfind = false\n");
    let pages = articles("news.example", 30);
    run(&night, DAYS[0], &pages, &[]).expect_success();
    run(&night, DAYS[1], &answering(&pages, 0..12, |_| LOGIN.to_owned()), &["--no-breakers"]).expect_success();
    assert_eq!(corpus(&night).len(), 19, "twelve articles are one wall");
    let job = std::fs::read_to_string(night.path().join("job.toml")).unwrap();
    std::fs::write(night.path().join("job.toml"), job.replace("find = false", "find = true")).unwrap();
    night.run(DAYS[1], &["--replace", "--no-breakers"]).expect_success();
    assert_eq!(corpus(&night), as_map(&pages));
    // Who follows the changes has the same.
    let mut followed: BTreeMap<String, String> = BTreeMap::new();
    let mut changes = parquet_rows(&night.path().join("results/changes"));
    changes.sort_by_key(|row| row[0].parse::<u64>().unwrap());
    for row in changes {
        followed.insert(row[1].clone(), row[5].clone());
    }
    assert_eq!(followed.values().filter(|decision| *decision == "keep").count(), 30, "{followed:?}");
}

#[test]
fn forgotten_documents_leave_no_trace_among_stubs() {
    let night = Night::new("");
    let pages = articles("news.example", 30);
    run(&night, DAYS[0], &pages, &[]).expect_success();
    run(&night, DAYS[1], &answering(&pages, 0..12, |_| LOGIN.to_owned()), &[]).expect_success();
    let gone = url("news.example", 0);
    std::fs::write(night.path().join("gone.txt"), format!("{gone}\n")).unwrap();
    let args = ["store", "forget", "store", "--ids", "gone.txt", "--json"];
    nearprint_in(night.path(), &args).expect_success();
    assert_eq!(stubs(&night, DAYS[1]), (1..12).map(|i| url("news.example", i)).collect());
    let manifest = std::fs::read_to_string(night.generation(DAYS[1]).join("manifest.json")).unwrap();
    assert!(!manifest.contains(&format!("{gone}\"")), "{manifest}");
}

#[test]
fn the_counts_of_hosts_add_up_to_those_of_the_night() {
    let night = Night::new("");
    let mut pages = articles("news.example", 30);
    pages.extend(articles("Mirror.example", 10));
    pages.push(("no url".to_owned(), text(77, 100)));
    run(&night, DAYS[0], &pages, &["--no-breakers"]).expect_success();
    let mut pages = answering(&pages, 0..12, |_| LOGIN.to_owned());
    pages[20].1 = text(999, 150);
    let summary = run(&night, DAYS[1], &pages, &["--no-breakers"]).expect_success().json();
    let hosts = night.published(DAYS[1], "hosts");
    let names: Vec<&str> = hosts.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(names, ["-", "mirror.example", "news.example"]);
    let sum = |column: usize| -> u64 { hosts.iter().map(|row| row[column].parse::<u64>().unwrap()).sum() };
    let counts = ["n_documents", "n_new", "n_same", "n_keep"];
    assert_eq!([1, 2, 3, 5].map(sum), counts.map(|name| summary[name].as_u64().unwrap()), "{hosts:?}");
    assert_eq!(sum(4) + sum(8), summary["n_changed"].as_u64().unwrap(), "a stub is no change of its page");
    assert_eq!(sum(6) + sum(7) + sum(8), summary["n_drop"].as_u64().unwrap());
    assert_eq!(hosts[2][8], "12");
    // 18 articles and one of the mirrors' are different texts of the source: the wall is none.
    assert_eq!((hosts[2][10].as_str(), hosts[2][11].as_str()), ("18", "1"));
}

#[test]
fn an_audit_compares_dropped_pages_with_what_their_stubs_said_before() {
    let night = Night::new("");
    let pages = articles("news.example", 30);
    run(&night, DAYS[0], &pages, &[]).expect_success();
    let mut walled = answering(&pages, 0..12, |_| LOGIN.to_owned());
    walled.extend(articles("mirror.example", 12));
    run(&night, DAYS[1], &walled, &["--no-breakers"]).expect_success();
    assert_eq!(stubs(&night, DAYS[1]).len(), 12);
    let audited = nearprint_in(night.path(), &["audit", "--config", "job.toml", "--dt", DAYS[1], "--json"]);
    let found = audited.expect_success().json();
    assert_eq!((&found["n_drops"], &found["all"]["n"]), (&12.into(), &12.into()), "{found}");
    assert_eq!(found["all"]["words"]["max"], 0.0, "{found}");
    assert!(found["worst"].as_array().unwrap().iter().all(|worst| worst["canonical_dt"] == DAYS[0]), "{found}");
}
