//! The judge: pairs of one night that sketches leave undecided are found by their texts.

use std::collections::BTreeMap;

use nearprint_fingerprint::hamming_distance;
use nearprint_profile::{self as profile, Outcome, TextFingerprinter};
use serde_json::Value;

use crate::support::{Night, expect, nearprint_in, text, write_documents};

const DAY: &str = "2026-11-20";
const LATER: &str = "2026-11-21";
const LOGIN: &str = "please sign in or open a free account to read on and come back tomorrow for more";

/// An article of 400 words, the same with words replaced all over, cut, cut with a line behind the cut, and another. Of many
/// articles, one is taken whose copies are within the fingerprint's distance and undecided by their sketches.
fn pages() -> Vec<(String, String)> {
    let fingerprinter = TextFingerprinter::try_new(profile::by_name("default").unwrap(), &Default::default()).unwrap();
    let parts = |text: &str| match fingerprinter.fingerprint(text).outcome {
        Outcome::Fingerprinted { fingerprint, sketch: Some(sketch), .. } => (fingerprint, sketch),
        other => panic!("{other:?}"),
    };
    let is_undecided = |a: &str, b: &str| {
        let ((x, s), (y, t)) = (parts(a), parts(b));
        hamming_distance(x, y) <= 12 && (37..=80).contains(&s.distance(&t))
    };
    let copies = |seed: u64| -> [String; 4] {
        let words: Vec<String> = text(seed, 400).split(' ').map(str::to_owned).collect();
        let edited = words.iter().enumerate();
        let edited = edited.map(|(at, word)| if at % 8 == 4 { format!("edit{at}") } else { word.clone() });
        let cut = words[..265].join(" ");
        [words.join(" "), edited.collect::<Vec<_>>().join(" "), format!("{cut} {LOGIN}"), cut]
    };
    let found =
        (0..2000).map(copies).find(|[article, others @ ..]| others.iter().all(|other| is_undecided(article, other)));
    let [article, edited, walled, cut] = found.unwrap();
    let pages =
        [("article", article), ("cut", cut), ("edited", edited), ("other", text(9999, 400)), ("walled", walled)];
    pages.map(|(id, text)| (url(id), text)).to_vec()
}

fn named(pages: &[(String, String)]) -> Vec<(&str, &str)> {
    pages.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect()
}

fn url(id: &str) -> String {
    format!("https://news.example/{id}")
}

/// The pairs of a night: both ids, and the reason.
fn pairs(night: &Night, dt: &str) -> Vec<[String; 3]> {
    night.published(dt, "pairs").into_iter().map(|row| [row[0].clone(), row[1].clone(), row[6].clone()]).collect()
}

fn pair(a: &str, b: &str, reason: &str) -> [String; 3] {
    [url(a), url(b), reason.to_owned()]
}

#[test]
fn copies_of_one_night_that_were_edited_or_cut_are_found_by_their_texts() {
    let night = Night::new("pairs = \"all\"\nmax_lost_share = 0.1\n");
    night.documents(DAY, &named(&pages()));
    let summary = night.run(DAY, &["--no-breakers"]).expect_success().json();
    let found = pairs(&night, DAY);
    for expected in [
        pair("article", "cut", "contained"),
        pair("article", "walled", "contained"),
        pair("article", "edited", "edited"),
    ] {
        assert!(found.contains(&expected), "{expected:?} in {found:?}");
    }
    assert!(!found.iter().any(|row| row[..2].contains(&url("other"))), "{found:?}");
    let judge = &summary["judge"];
    let counts = ["n_read", "n_edited", "n_contained"].map(|key| judge[key].as_u64().unwrap());
    assert!(counts[0] >= 3 && counts[1] >= 1 && counts[2] >= 2, "{judge}");

    // Both cut copies are dropped for the article. One loses nothing, and the other what stands behind the cut.
    let decided = night.decisions(DAY);
    let of = |id: &str, column: usize| decided[&url(id)][column].as_str();
    assert_eq!((of("cut", 0), of("cut", 1), of("cut", 3)), ("drop", &*url("article"), "contained"));
    assert_eq!((of("walled", 0), of("walled", 1), of("walled", 3)), ("drop", &*url("article"), "contained"));
    assert_eq!((of("article", 0), of("edited", 0), of("other", 0)), ("keep", "keep", "keep"));
    // In the numbers of their source, cut copies are near-duplicates: n_documents, n_keep, n_near, n_exact, n_stub, n_skip.
    let hosts = night.published(DAY, "hosts");
    let [n, keep, near, exact, stub, skip] =
        [1, 5, 6, 7, 8, 9].map(|column| hosts.iter().map(|row| row[column].parse::<u64>().unwrap()).sum::<u64>());
    assert_eq!((n, near >= 2, skip), (keep + near + exact + stub, true, 0), "{hosts:?}");
    let lost = night.lost_shares(DAY);
    assert!(lost[&url("cut")] < 0.001 && (0.03..0.1).contains(&lost[&url("walled")]), "{lost:?}");
    expect(&nearprint_in(night.path(), &["check", "--config", "job.toml"]), 0, &[]);

    // Wherever near-duplicates are reported, they are among them.
    let report = |more: &[&str]| {
        let args = [&["report", "--config", "job.toml", "--dt", DAY][..], more].concat();
        nearprint_in(night.path(), &args).expect_success()
    };
    let reported = report(&["--json"]).json();
    let of_losses = reported["distributions"]["near_by_lost_hundredth"].as_array().unwrap();
    let of_reason = |reason: &&str| reported["by_reason"][*reason].as_u64();
    let n_near: u64 = ["drop_near", "drop_contained"].iter().filter_map(of_reason).sum();
    assert_eq!(of_losses.iter().map(|n| n.as_u64().unwrap()).sum::<u64>(), n_near, "{reported}");
    assert!(report(&[]).stdout.contains("Dropped (contained at distance "), "{}", report(&[]).stdout);
    assert!(report(&[]).stdout.contains(", losing "), "{}", report(&[]).stdout);
    assert!(report(&["--format", "md"]).stdout.contains(&format!("| `{}` | `{}` |", url("walled"), url("article"))));
    report(&["--pages", "pages"]);
    let page = |name: &str| std::fs::read_to_string(night.path().join("pages").join(name)).unwrap();
    let of_page = format!("{n_near} of {n_near} dropped near-duplicates");
    assert!(page(&format!("{DAY}.html")).contains(&of_page), "{}", page(&format!("{DAY}.html")));
    assert!(!page("index.html").contains("<td class=\"n\">–</td>"), "{}", page("index.html"));
    let audited = nearprint_in(night.path(), &["audit", "--config", "job.toml", "--dt", DAY, "--json"]);
    assert_eq!(audited.expect_success().json()["near"]["n"], n_near);
    let drawn = ["review", "--config", "job.toml", "--dt", DAY, "--answers", "answers.jsonl"];
    nearprint_in(night.path(), &drawn);
    let answers = std::fs::read_to_string(night.path().join("answers.jsonl")).unwrap();
    let rows = answers.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    assert_eq!(rows.filter(|row| row["is_drop"] == true).count() as u64, n_near, "{answers}");
    let explained = nearprint_in(night.path(), &["explain", &url("walled"), "--config", "job.toml"]).expect_success();
    assert!(explained.stdout.contains(", loses "), "{}", explained.stdout);

    // `explain` says what decided.
    let place = night.path().join(format!("documents/dt={DAY}"));
    let said = nearprint_in(
        night.path(),
        &["explain", &url("article"), &url("walled"), "--documents", place.to_str().unwrap()],
    );
    let said = said.expect_success().stdout;
    assert!(
        said.contains("A pair") && said.contains("common beginning 0.9") && said.contains("the judge's 0.7"),
        "{said}"
    );
}

#[test]
fn the_longer_text_is_never_dropped_for_one_that_it_contains() {
    // Without a limit on what is lost, the star rule drops any document for one near it that comes before.
    let night = Night::new("max_lost_share = 1.0\nkeep = [\"length asc\"]\n");
    let pages: Vec<(String, String)> =
        pages().into_iter().filter(|(id, _)| id.contains("article") || id.contains("cut")).collect();
    night.documents(DAY, &named(&pages));
    let summary = night.run(DAY, &["--no-breakers"]).expect_success().json();
    // The cut, whose turn is first, could be dropped for the article: of such documents, one could be kept.
    assert_eq!(
        ["n_keep", "n_kept_in_vain", "n_keep_bound"].map(|key| summary[key].as_u64()),
        [Some(2), Some(1), Some(1)]
    );
    let decided = night.decisions(DAY);
    assert_eq!((&*decided[&url("cut")][0], &*decided[&url("article")][0]), ("keep", "keep"));
    assert_eq!(pairs(&night, DAY), [pair("article", "cut", "contained")]);
}

#[test]
fn the_texts_of_earlier_nights_are_gone_and_sketches_alone_decide() {
    let night = Night::new("");
    let all = pages();
    let (first, later): (Vec<_>, Vec<_>) = all.into_iter().partition(|(id, _)| id.ends_with("article"));
    night.documents(DAY, &named(&first));
    night.run(DAY, &["--no-breakers"]).expect_success();
    night.documents(LATER, &named(&later));
    night.run(LATER, &["--no-breakers"]).expect_success();
    let found = pairs(&night, LATER);
    assert!(!found.iter().any(|row| row[..2].contains(&url("article"))), "{found:?}");
    assert!(
        found.contains(&pair("cut", "walled", "near")) || found.contains(&pair("cut", "walled", "contained")),
        "{found:?}"
    );
}

#[test]
fn without_looks_a_night_has_the_pairs_of_the_sketches_alone() {
    let night = Night::new("pairs = \"all\"\n[judge]\nmax_looks = 0\n");
    night.documents(DAY, &named(&pages()));
    let summary = night.run(DAY, &["--no-breakers"]).expect_success().json();
    assert_eq!(summary["judge"], Value::Null);
    assert!(pairs(&night, DAY).iter().all(|row| row[2] == "near"));
}

/// Pages of one template: near one another in the fingerprint, and undecided by their sketches.
fn look_alikes(n: usize) -> Vec<(String, String)> {
    let words: Vec<String> = text(3, 200).split(' ').map(str::to_owned).collect();
    let page = |i: usize| {
        let of = |(at, word): (usize, &String)| {
            if at % 5 == 0 { format!("w{}", (at * 31 + i * 17) % 997) } else { word.clone() }
        };
        words.iter().enumerate().map(of).collect::<Vec<_>>().join(" ")
    };
    (0..n).map(|i| (url(&format!("{i:03}")), page(i))).collect()
}

#[test]
fn each_text_is_read_with_its_nearest_only_however_many_look_alikes_there_are() {
    let pages = look_alikes(120);
    let counts = |looks: u32| -> BTreeMap<String, u64> {
        let night = Night::new(&format!("[judge]\nmax_looks = {looks}\n"));
        night.documents(DAY, &named(&pages));
        let summary = night.run(DAY, &["--no-breakers"]).expect_success().json();
        serde_json::from_value(summary["judge"].clone()).unwrap()
    };
    let few = counts(2);
    assert!(few["n_undecided"] > 1000, "{few:?}");
    assert!((120..=240).contains(&few["n_read"]), "{few:?}");
    let all = counts(1000);
    assert_eq!((all["n_read"], all["n_undecided"]), (few["n_undecided"], few["n_undecided"]));
}

#[test]
fn what_the_judge_finds_depends_on_texts_alone_and_not_on_threads_files_or_their_order() {
    let mut pages = look_alikes(40);
    pages.extend(self::pages());
    let publish = |files: usize, threads: &str, backwards: bool| {
        let night = Night::new("pairs = \"all\"\n[judge]\nmax_looks = 3\n");
        let mut rows = named(&pages);
        if backwards {
            rows.reverse();
        }
        let per_file = rows.len().div_ceil(files);
        for (i, rows) in rows.chunks(per_file).enumerate() {
            let rows: Vec<(Option<&str>, Option<&str>)> =
                rows.iter().map(|(id, text)| (Some(*id), Some(*text))).collect();
            let folder = night.path().join(format!("documents/dt={DAY}"));
            std::fs::create_dir_all(&folder).unwrap();
            write_documents(&folder.join(format!("part-{i}.parquet")), &rows);
        }
        night.run(DAY, &["--no-breakers", "--threads", threads]).expect_success();
        (night.published(DAY, "pairs"), night.published(DAY, "decisions"))
    };
    let one = publish(1, "1", false);
    assert!(one.0.iter().any(|row| row[6] != "near"), "{:?}", one.0);
    assert_eq!(publish(3, "2", false), one);
    assert_eq!(publish(2, "2", true), one);
}
