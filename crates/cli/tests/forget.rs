//! Forgetting: old nights by their age, and documents by their ids. Afterwards the store joins as if it had never had them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::{self, Night, delta, expect, nearprint_in, not_checked, rows, snapshot, text};

fn date(day: u64) -> String {
    format!("2026-11-{day:02}")
}

fn run(night: &Night, day: u64, more: &[&str]) -> Value {
    night.run(&date(day), &[&["--no-breakers"], more].concat()).expect_success().json()
}

fn store(night: &Night, args: &[&str]) -> Value {
    let args = [&["store", args[0], "store"], &args[1..], &["--json"]].concat();
    nearprint_in(night.path(), &args).expect_success().json()
}

fn gc(night: &Night) -> Value {
    let args = ["store", "gc", "--config", "job.toml", "--grace-hours", "0", "--json"];
    nearprint_in(night.path(), &args).expect_success().json()
}

fn check(night: &Night) -> Value {
    nearprint_in(night.path(), &["check", "--config", "job.toml", "--json"]).json()
}

fn is_sound(night: &Night) {
    let found = check(night);
    assert_eq!(found["status"], "sound", "{found}");
    let found = store(night, &["check"]);
    assert_eq!(found["status"], "sound", "{found}");
}

fn no_night_is_stale(night: &Night) {
    let info = store(night, &["info"]);
    assert!(info["nights"].as_array().unwrap().iter().all(|n| n["stale"] == false), "{info}");
}

/// A store that has the documents of another one, without some nights and ids, and has only ever had these.
fn fresh(of: &Night, days: &[u64], without: &[&str]) -> Night {
    let night = Night::new("");
    for &day in days {
        let path = of.path().join(format!("documents/dt={}/part-0.parquet", date(day)));
        let all = rows(&path);
        let left: Vec<(&str, &str)> = all
            .iter()
            .filter(|row| !without.contains(&row[0].as_str()))
            .map(|row| (row[0].as_str(), row[1].as_str()))
            .collect();
        night.documents(&date(day), &left);
    }
    night
}

/// The bytes of a night's files in a table.
fn bytes(night: &Night, day: u64, table: &str) -> Vec<Vec<u8>> {
    night.table_files(&date(day), table).iter().map(|path| std::fs::read(path).unwrap()).collect()
}

fn same_results(one: &Night, other: &Night, day: u64) {
    for table in ["pairs", "decisions", "superseded", "skipped"] {
        assert_eq!(one.published(&date(day), table), other.published(&date(day), table), "{table} of {day}");
        assert!(!bytes(one, day, table).is_empty());
        assert_eq!(bytes(one, day, table), bytes(other, day, table), "{table} of {day}");
    }
}

/// Bytes of everything below the store.
fn store_bytes(night: &Night) -> usize {
    snapshot(&night.path().join("store")).values().map(Vec::len).sum()
}

/// Documents of a day: its own, some that the day before has too, a recrawl, short and empty ones.
fn rolling(night: &Night, day: u64) {
    let own: Vec<(String, String)> = (0..20).map(|i| (format!("d{day}-{i}"), text(day * 100 + i, 60))).collect();
    let near = |i: u64| text((day - 1) * 100 + i, 60).replacen(' ', " and ", 1);
    let mut all = own;
    all.push((format!("copy-{day}"), text((day - 1) * 100, 60)));
    all.push((format!("near-{day}"), near(1)));
    all.push((format!("d{}-2", day - 1), text(day * 100 + 50, 60)));
    all.push((format!("short-{day}"), format!("{day} 一二三")));
    all.push((format!("short-copy-{day}"), format!("{} 一二三", day - 1)));
    all.push((format!("empty-{day}"), " ".to_owned()));
    let all: Vec<(&str, &str)> = all.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect();
    night.documents(&date(day), &all);
}

#[test]
fn old_nights_are_forgotten_in_one_commit_and_later_ones_are_as_if_they_had_never_been() {
    let night = Night::new("");
    for day in 11..=16 {
        rolling(&night, day);
    }
    for day in 11..=15 {
        run(&night, day, &[]);
    }
    let before = snapshot(&night.path().join("results/decisions"));
    let done = store(&night, &["forget", "--before", &date(13)]);
    assert_eq!((done["status"].as_str(), done["commit"].as_u64()), (Some("forgotten"), Some(6)), "{done}");
    assert_eq!(done["nights"], serde_json::json!([date(11), date(12)]));
    assert_eq!((done["n_documents"].as_u64(), done["n_nights_left"].as_u64()), (Some(52), Some(3)));
    assert_eq!(store(&night, &["info"])["forgotten_before"], date(13).as_str());
    no_night_is_stale(&night);
    is_sound(&night);
    for day in [11, 12] {
        assert!(!night.is_in_tables(&date(day)), "its results go too");
    }
    assert!(night.is_in_tables(&date(13)));
    // Who reads a table at the version before still finds its files.
    let after = snapshot(&night.path().join("results/decisions"));
    assert!(before.iter().all(|(path, content)| after.get(path) == Some(content)));

    // A rerun of what is left finds it published, though it was joined with what is gone.
    let before = snapshot(&night.path().join("store"));
    for day in 13..=15 {
        assert_eq!(run(&night, day, &[])["status"], "already_published", "{day}");
    }
    let again = store(&night, &["forget", "--before", &date(13)]);
    assert_eq!((again["status"].as_str(), again["commit"].as_u64()), (Some("nothing_to_forget"), Some(6)));
    assert_eq!(snapshot(&night.path().join("store")), before);

    run(&night, 16, &[]);
    let plain = fresh(&night, &[13, 14, 15, 16], &[]);
    for day in 13..=16 {
        run(&plain, day, &[]);
    }
    same_results(&night, &plain, 16);
    no_night_is_stale(&night);

    let done = gc(&night);
    assert!(done["n_files"].as_u64() >= Some(20), "{done}");
    for name in snapshot(night.path()).into_keys().map(|path| path.display().to_string()) {
        // What changed in the corpus stays, so that who follows it finds all.
        let stays = ["documents/", "results/changes/"].iter().any(|folder| name.starts_with(folder));
        let is_gone = |day| name.contains(&date(day)) && !stays;
        assert!(!is_gone(11) && !is_gone(12), "{name}");
    }
    is_sound(&night);
    assert_eq!(check(&night)["n_unreferenced_files"], 0);
    // What is forgotten stays so, whatever a later commit does.
    let refused = night.run(&date(12), &["--late", "--no-breakers"]);
    expect(&refused, 64, &["has forgotten all nights before 2026-11-13"]);
    store(&night, &["drop-night", "--dt", &date(14)]);
    assert_eq!(store(&night, &["info"])["forgotten_before"], date(13).as_str());
    let info = store(&night, &["info"]);
    let stale: Vec<bool> = info["nights"].as_array().unwrap().iter().map(|n| n["stale"] == true).collect();
    assert_eq!(stale, [false, true, true], "a dropped night still makes later ones stale: {info}");
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let night = Night::new("");
    night.documents(&date(11), &[("a", &text(1, 60))]);
    run(&night, 11, &[]);
    let forget = |args: &[&str]| nearprint_in(night.path(), &[&["store", "forget", "store"], args].concat());
    expect(&forget(&["--before", "2062-11-11"]), 64, &["its newest night is 2026-11-11"]);
    expect(&forget(&["--before", "2026-02-30"]), 64, &["is not a date"]);
    assert_eq!(forget(&[]).code, 64);
    assert_eq!(forget(&["--before", "2026-11-11", "--ids", "ids"]).code, 64);
    expect(&forget(&["--ids", "nowhere"]), 66, &["--ids nowhere"]);
    std::fs::write(night.path().join("ids"), b"\xff\n").unwrap();
    expect(&forget(&["--ids", "ids"]), 65, &["UTF-8"]);
    std::fs::write(night.path().join("ids"), "\n").unwrap();
    assert_eq!(store(&night, &["forget", "--ids", "ids"])["status"], "nothing_to_forget");
    assert_eq!(store(&night, &["info"])["commit"], 1);
    expect(&nearprint_in(night.path(), &["store", "forget", "nowhere", "--ids", "ids"]), 66, &["store"]);
    std::fs::write(night.path().join("job.toml"), "keep_nights = 0\n").unwrap();
    expect(&night.run(&date(12), &[]), 78, &["keep_nights"]);
}

#[test]
fn an_id_with_line_breaks_is_named_by_json_lines_and_a_plain_list_that_may_mean_it_is_refused() {
    let night = Night::new("");
    let ids = ["x", "x\ny", "y", "z\r", "z", "7", "", "blank\n\n"];
    let rows: Vec<(&str, String)> = ids.iter().zip(1..).map(|(id, seed)| (*id, text(seed, 60))).collect();
    let rows: Vec<(&str, &str)> = rows.iter().map(|(id, text)| (*id, text.as_str())).collect();
    night.documents(&date(11), &rows);
    run(&night, 11, &[]);
    let forget = |name: &str, list: &str| {
        std::fs::write(night.path().join(name), list).unwrap();
        nearprint_in(night.path(), &["store", "forget", "store", "--ids", name, "--json"])
    };
    let left = || night.decisions(&date(11)).into_keys().collect::<Vec<_>>();
    let before = snapshot(&night.path().join("store"));
    for (list, escaped) in [
        ("x\ny\n", r#""x\ny""#),
        ("y\r\nother\r\nx", r#""x\ny""#),
        ("z\n", r#""z\r""#),
        ("x\nblank\n", r#""blank\n\n""#),
    ] {
        let said = forget("ids", list);
        let json_line = format!(r#"{{"id": {escaped}}}"#);
        expect(&said, 64, &[&date(11), escaped, &json_line, "a file whose name ends in .jsonl"]);
    }
    assert_eq!(snapshot(&night.path().join("store")), before);
    // A list that cannot mean such an id is taken.
    let done = forget("ids", "x\n\n7\nnobody\n").expect_success().json();
    assert_eq!((&done["n_found"], &done["n_not_found"]), (&2.into(), &1.into()), "{done}");
    assert_eq!(left(), ["", "blank\n\n", "x\ny", "y", "z", "z\r"]);
    let lines = "{\"id\": \"x\\ny\", \"text\": \"…\"}\n\n{\"id\":\"\"}\r\n{\"id\": \"z\\r\"}\n{\"id\": 7}";
    let done = forget("ids.jsonl", lines).expect_success().json();
    assert_eq!((&done["n_ids"], &done["n_found"]), (&4.into(), &3.into()), "7 is gone already: {done}");
    assert_eq!(left(), ["blank\n\n", "y", "z"]);
    is_sound(&night);
    for (line, number) in
        [("{\"id\": 1.5}", "line 1"), ("{\"id\": \"y\"}\nz", "line 2"), ("{\"doc_id\": \"y\"}", "line 1")]
    {
        expect(&forget("ids.jsonl", line), 65, &["--ids ids.jsonl: ", number, "no id: write {\"id\": …}"]);
    }
    assert_eq!(left(), ["blank\n\n", "y", "z"]);
}

#[test]
fn a_night_that_stays_as_it_is_says_that_its_counts_are_those_of_its_publication() {
    let night = Night::new("");
    for day in 11..=13 {
        night.documents(
            &date(day),
            &[(&format!("{day}-a"), &text(day, 60)), (&format!("{day}-b"), &text(day + 50, 60))],
        );
        assert_eq!(run(&night, day, &[])["counts_of"], "this_run");
    }
    std::fs::write(night.path().join("ids"), "11-a\n").unwrap();
    store(&night, &["forget", "--ids", "ids"]);
    run(&night, 12, &["--replace"]);
    let again = run(&night, 13, &["--replace"]);
    let (status, n_existing) = (again["status"].as_str(), again["n_existing"].as_u64());
    assert_eq!((status, n_existing, &again["counts_of"]), (Some("already_published"), Some(4), &"publication".into()));
    let run = ["run", "--config", "job.toml", "--dt", &date(13)];
    let said = nearprint_in(night.path(), &run).expect_success().stdout;
    assert!(said.contains("the counts are those of its publication"), "{said}");
}

#[test]
fn a_document_whose_canonical_one_went_with_its_night_represents_none_so_the_next_of_its_kind_is_kept() {
    let night = Night::new("");
    let same = text(1, 60);
    for (day, id) in [(11, "first"), (12, "second"), (13, "third"), (14, "fourth")] {
        night.documents(&date(day), &[(id, &same), (&format!("other-{day}"), &text(day, 60))]);
    }
    run(&night, 11, &[]);
    run(&night, 12, &[]);
    assert_eq!(night.decisions(&date(12))["second"][..2], ["drop", "first"]);
    store(&night, &["forget", "--before", &date(12)]);
    // Nobody who keeps the nights that are left has the text: it is kept again, and represents its kind from then on.
    run(&night, 13, &[]);
    assert_eq!(night.decisions(&date(13))["third"][0], "keep");
    assert_eq!(night.decisions(&date(12))["second"][..2], ["drop", "first"], "what was published stays");
    run(&night, 14, &[]);
    assert_eq!(night.decisions(&date(14))["fourth"][..2], ["drop", "third"]);
}

#[test]
fn a_rolling_store_stays_flat_and_joins_like_a_store_of_its_last_nights() {
    let night = Night::new("keep_nights = 4\n");
    let mut sizes = Vec::new();
    for day in 1..=12 {
        rolling(&night, day);
        let summary = run(&night, day, &[]);
        let forgotten = summary["forgotten"].as_array().map_or(0, Vec::len);
        assert_eq!(forgotten, usize::from(day > 4), "{summary}");
        assert_eq!(summary["commit"], store(&night, &["info"])["commit"], "one commit");
        assert_eq!(store(&night, &["info"])["n_nights"], day.min(4));
        // The rerun of a scheduler finds the night published, though it was joined with one more than is left.
        assert_eq!(run(&night, day, &[])["status"], "already_published");
        if day % 3 == 0 {
            store(&night, &["compact"]);
        }
        gc(&night);
        is_sound(&night);
        no_night_is_stale(&night);
        let info = store(&night, &["info"]);
        for segment in info["segments"].as_array().unwrap() {
            let (live, all) = (segment["n_live_runs"].as_u64().unwrap(), segment["n_runs"].as_u64().unwrap());
            assert!(2 * live >= all, "segments of forgotten nights go: {info}");
        }
        // Numbers of pruned commits stay in use, at some bytes each.
        sizes.push(store_bytes(&night) - 14 * snapshot(&night.path().join("store/_commits")).len());
    }
    let (least, most) = (sizes[5..].iter().min().unwrap(), sizes[5..].iter().max().unwrap());
    assert!(most - least < most / 5, "{sizes:?}");
    assert_eq!((sizes[8], sizes[11]), (sizes[8], sizes[8].max(sizes[11]).min(sizes[8] + sizes[8] / 20)), "{sizes:?}");

    rolling(&night, 13);
    run(&night, 13, &[]);
    let plain = fresh(&night, &[9, 10, 11, 12, 13], &[]);
    for day in 9..=13 {
        run(&plain, day, &[]);
    }
    same_results(&night, &plain, 13);

    // A night that is older than all that are kept would be forgotten by its own commit.
    let refused = night.run(&date(9), &["--late", "--no-breakers"]);
    expect(&refused, 64, &["has forgotten all nights before 2026-11-10"]);
    let job = std::fs::read_to_string(night.path().join("job.toml")).unwrap();
    std::fs::write(night.path().join("job.toml"), job.replace("keep_nights = 4", "keep_nights = 2")).unwrap();
    let refused = night.run(&date(11), &["--replace", "--no-breakers"]);
    expect(&refused, 64, &["would forget it at once", "keep_nights"]);
    // Fewer nights count from the next commit on; what is published is found published.
    assert_eq!(run(&night, 13, &[])["status"], "already_published");
    assert_eq!(store(&night, &["info"])["n_nights"], 4);
    rolling(&night, 14);
    assert_eq!(run(&night, 14, &[])["forgotten"], serde_json::json!([date(10), date(11), date(12)]));
    is_sound(&night);
}

#[test]
fn a_date_far_ahead_needs_a_flag_and_never_makes_the_store_forget() {
    let night = Night::new("keep_nights = 3\n");
    for day in 20..=22 {
        rolling(&night, day);
        run(&night, day, &[]);
    }
    let mistyped = "2062-11-24";
    night.documents(mistyped, &[("z", &text(9, 60))]);
    let before = snapshot(night.path());
    for more in [&["--no-breakers"][..], &["--dry-run"], &["--late", "--replace"]] {
        let refused = night.run(mistyped, more);
        expect(&refused, 64, &["2062-11-24 is more than 2 days after today", "newest input", "--dt", "--future"]);
        assert!(!refused.stderr.contains("hint: "), "{}", refused.stderr);
    }
    assert_eq!(snapshot(night.path()), before);
    night.run(mistyped, &["--future", "--dry-run"]).expect_success();

    let summary = night.run(mistyped, &["--future", "--no-breakers"]).expect_success().json();
    assert_eq!(summary["forgotten"].as_array().map_or(0, Vec::len), 0);
    let nights = |night: &Night| {
        let info = store(night, &["info"]);
        let all = info["nights"].as_array().unwrap().iter().map(|night| night["dt"].as_str().unwrap().to_owned());
        all.collect::<Vec<_>>()
    };
    let of = |days: std::ops::RangeInclusive<u64>| days.map(date).collect::<Vec<_>>();
    assert_eq!(nights(&night), [of(20..=22), vec![mistyped.to_owned()]].concat());
    // Whoever runs it again has published it already, or makes it anew because it is stale: both go without the flag.
    assert_eq!(night.run(mistyped, &["--no-breakers"]).expect_success().json()["status"], "already_published");
    rolling(&night, 23);
    assert_eq!(run(&night, 23, &["--late"])["forgotten"], serde_json::json!([date(20)]));
    nearprint_in(night.path(), &["run", "--config", "job.toml", "--stale", "--no-breakers"]).expect_success();
    assert_eq!(nights(&night), [of(21..=23), vec![mistyped.to_owned()]].concat());
    let all = nearprint_in(night.path(), &["store", "forget", "store", "--before", "2062-01-01"]);
    expect(&all, 64, &["its newest night is 2026-11-23"]);

    store(&night, &["drop-night", "--dt", mistyped]);
    assert_eq!(nights(&night), of(21..=23));
    rolling(&night, 24);
    assert_eq!(run(&night, 24, &[])["forgotten"], serde_json::json!([date(21)]));
    is_sound(&night);
}

/// Documents that were written in time make no night of the future.
#[test]
fn the_flag_for_dates_far_ahead_may_always_be_given() {
    let night = Night::new("keep_nights = 2\n");
    for day in 20..=22 {
        rolling(&night, day);
        let forgotten = run(&night, day, &["--future"])["forgotten"].clone();
        assert_eq!(forgotten.as_array().map_or(0, Vec::len), usize::from(day == 22));
    }
    assert!(!std::fs::read_to_string(night.path().join("store/_commits/00000003.json")).unwrap().contains("future"));
}

const GONE: [&str; 3] = ["forget-me/0", "forget-me/1", "forget-me/recrawled"];

/// Nights in which the forgotten documents are canonical, dropped, the smallest of a cluster, short, empty, recrawled.
fn with_documents_to_forget() -> Night {
    let night = Night::new("");
    let page = text(7, 200);
    night.documents(
        &date(11),
        &[
            ("forget-me/0", &page),
            ("a", &text(1, 60)),
            ("forget-me/recrawled", &text(2, 60)),
            ("r1", &text(3, 60)),
            ("r2", &text(4, 60)),
            ("x", &text(30, 60)),
            ("s1", "一二三"),
            ("zz", &text(31, 60)),
        ],
    );
    night.documents(
        &date(12),
        &[("b", &page), ("r1", &text(13, 60)), ("r3", &text(14, 60)), ("forget-me/1", "四五六"), ("y", &text(32, 60))],
    );
    night.documents(
        &date(13),
        &[
            ("forget-me/recrawled", &text(22, 60)),
            ("r2", &text(23, 60)),
            ("r3", &text(24, 60)),
            ("s3", "四五六"),
            ("forget-me/1", &text(25, 60)),
            ("z", &text(25, 60)),
            ("zy", &text(25, 60)),
            ("a0", &text(1, 60)),
        ],
    );
    night.documents(
        &date(14),
        &[
            ("c", &page),
            ("old-r1", &text(3, 60)),
            ("old-r2", &text(4, 60)),
            ("old-r3", &text(14, 60)),
            ("new-r3", &text(24, 60)),
            ("old-gone", &text(2, 60)),
            ("gone", &text(22, 60)),
            ("s4", "四五六"),
            ("s5", "一二三"),
            ("zzz", &text(25, 60)),
            ("xx", &text(30, 60)),
        ],
    );
    night
}

fn forget(night: &Night, ids: &[&str]) -> Value {
    std::fs::write(night.path().join("ids.txt"), ids.join("\n") + "\n\n").unwrap();
    let done = store(night, &["forget", "--ids", "ids.txt"]);
    std::fs::remove_file(night.path().join("ids.txt")).unwrap();
    done
}

/// The files of the store and the results that name an id: in a column, or in any of their bytes.
fn files_with(night: &Night, id: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for part in ["store", "results"] {
        for (path, content) in snapshot(&night.path().join(part)) {
            let path = night.path().join(part).join(path);
            let in_bytes = content.windows(id.len()).any(|window| window == id.as_bytes());
            let is_parquet = path.extension().is_some_and(|ending| ending == "parquet");
            if in_bytes || is_parquet && rows(&path).iter().flatten().any(|value| value.contains(id)) {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn forgotten_ids_are_in_no_file_and_joins_are_as_if_they_had_never_been() {
    let night = with_documents_to_forget();
    // The night of the 12th is late, so shadows are in both of two runs' files.
    for (day, more) in [(11, &[][..]), (13, &[]), (12, &["--late"])] {
        run(&night, day, more);
    }
    run(&night, 13, &["--replace"]);
    assert_eq!(store(&night, &["compact"])["status"], "compacted");
    assert_eq!(night.decisions(&date(12))["b"][..2], ["drop", "forget-me/0"]);
    assert_eq!(night.decisions(&date(13))["z"][..2], ["drop", "forget-me/1"]);
    assert!(!files_with(&night, "forget-me").is_empty());
    no_night_is_stale(&night);

    let done = forget(&night, &[&GONE[..], &["never-was", "forget-me"]].concat());
    assert_eq!((done["status"].as_str(), done["n_ids"].as_u64()), (Some("forgotten"), Some(5)), "{done}");
    assert_eq!((done["n_found"].as_u64(), done["n_not_found"].as_u64()), (Some(3), Some(2)), "{done}");
    assert_eq!(done["n_documents"], 5);
    assert_eq!(done["nights"], serde_json::json!([date(11), date(12), date(13)]));
    assert!(!done.to_string().contains("forget-me"), "{done}");
    assert_eq!(store(&night, &["info"])["segments"], serde_json::json!([]), "segments of these nights go");
    no_night_is_stale(&night);
    is_sound(&night);

    // What was published of others stays, without the name of the forgotten one.
    assert_eq!(night.decisions(&date(12))["b"][..2], ["keep", ""]);
    let left = night.decisions(&date(13));
    assert_eq!(left.keys().collect::<Vec<_>>(), ["a0", "r2", "r3", "s3", "z", "zy"]);
    for id in ["z", "zy"] {
        assert_eq!((left[id][0].as_str(), left[id][4].as_str(), left[id][5].as_str()), ("keep", "z", "2"), "{left:?}");
    }
    gc(&night);
    assert_eq!(files_with(&night, "forget-me"), Vec::<PathBuf>::new());
    is_sound(&night);
    assert_eq!(check(&night)["n_unreferenced_files"], 0);

    // Nothing brings them back but a replacement from documents that still have them.
    for day in [11, 12, 13] {
        assert_eq!(run(&night, day, &[])["status"], "already_published");
    }
    assert_eq!(files_with(&night, "forget-me"), Vec::<PathBuf>::new());
    let again = forget(&night, &GONE);
    assert_eq!((again["status"].as_str(), again["n_found"].as_u64()), (Some("nothing_to_forget"), Some(0)));

    let plain = fresh(&night, &[11, 12, 13, 14], &GONE);
    for (day, more) in [(11, &[][..]), (13, &[]), (12, &["--late"])] {
        run(&plain, day, more);
    }
    run(&plain, 13, &["--replace"]);
    for night in [&night, &plain] {
        run(night, 14, &["--pairs", "all"]);
    }
    same_results(&night, &plain, 14);
    let decided = night.decisions(&date(14));
    assert_eq!(decided["c"][..2], ["drop", "b"], "what it represented represents itself");
    assert_eq!(decided["old-r1"][0], "keep", "recrawled documents are still hidden by their newer state");
    assert_eq!(decided["new-r3"][..2], ["drop", "r3"]);
    // Once more after a compaction, as a segment without them.
    store(&night, &["compact"]);
    run(&night, 14, &["--pairs", "all", "--replace"]);
    same_results(&night, &plain, 14);
    is_sound(&night);

    let replaced = run(&night, 11, &["--replace"]);
    assert_eq!(replaced["status"], "published");
    assert!(night.decisions(&date(11)).contains_key("forget-me/0"));
    is_sound(&night);
}

#[test]
fn filter_leaves_out_forgotten_documents_that_the_input_still_has() {
    let night = with_documents_to_forget();
    for day in [11, 12, 13] {
        run(&night, day, &[]);
    }
    forget(&night, &GONE);
    let filter = |day: u64| {
        let args = ["filter", "--config", "job.toml", "--dt", &date(day), "--output", "left", "--json"];
        nearprint_in(night.path(), &args).expect_success().json()
    };
    let done = filter(11);
    assert_eq!((done["n_rows"].as_u64(), done["n_forgotten"].as_u64()), (Some(8), Some(2)), "{done}");
    let left = rows(&night.path().join(format!("left/dt={}/part-0.parquet", date(11))));
    let left: Vec<String> = left.into_iter().map(|row| row[0].clone()).collect();
    assert_eq!(left.len(), 6, "{left:?}");
    assert!(left.iter().all(|id| !GONE.contains(&id.as_str())));
    assert_eq!(filter(12)["n_forgotten"], 1);
}

/// The same folder elsewhere, times included.
fn copy_of(night: &Night) -> Night {
    let copy = Night { dir: tempfile::tempdir().unwrap() };
    let from = format!("{}/.", night.path().display());
    assert!(Command::new("cp").args(["-a", &from]).arg(copy.path()).status().unwrap().success());
    copy
}

/// Returns all that readers of a night find, by night: the decisions of the tables and the store's own.
fn readers(night: &Night) -> BTreeMap<u64, Vec<Vec<String>>> {
    let output = night.path().join("results");
    let of_table = |day: u64| {
        let files = delta::night(&output, "decisions", &date(day)).unwrap();
        files.iter().flat_map(|path| rows(&output.join(path))).collect()
    };
    (11..=13).map(|day| (day, of_table(day))).collect()
}

#[test]
fn a_command_killed_at_any_step_forgets_all_or_nothing_and_the_next_one_ends_its_work() {
    if Command::new("strace").arg("-V").output().is_err() {
        return not_checked("no strace");
    }
    let night = with_documents_to_forget();
    for day in [11, 12, 13] {
        run(&night, day, &[]);
    }
    std::fs::write(night.path().join("ids.txt"), GONE.join("\n")).unwrap();
    for args in [&["--ids", "ids.txt"][..], &["--before", "2026-11-13"]] {
        let args = [&["store", "forget", "store"], args].concat();
        let done = copy_of(&night);
        nearprint_in(done.path(), &args).expect_success();
        let (old, new) = (readers(&night), readers(&done));
        let gone = copy_of(&done);
        gc(&gone);
        assert_ne!(old, new);
        let before = snapshot(night.path());
        let written: Vec<PathBuf> =
            snapshot(done.path()).into_keys().filter(|path| !before.contains_key(path)).collect();
        let (mut n_old, mut n_new) = (0, 0);
        // Of the data files, which nothing names before the commit, every fifth.
        let is_data = |file: &PathBuf| file.extension().is_some_and(|ending| ending == "parquet");
        let (data, other): (Vec<&PathBuf>, Vec<&PathBuf>) = written.iter().partition(|file| is_data(file));
        for file in other.into_iter().chain(data.into_iter().step_by(5)) {
            let killed = copy_of(&night);
            kill_at(&killed.path().join(file), killed.path(), &args);
            let seen = readers(&killed);
            let step = file.display();
            for (day, rows) in &seen {
                assert!(rows == &old[day] || rows == &new[day], "{step}: {day}: {rows:?}");
            }
            let status = check(&killed)["status"].clone();
            assert!(status == "sound" || status == "behind", "{step}: {status}");
            *(if seen == old { &mut n_old } else { &mut n_new }) += 1;
            nearprint_in(killed.path(), &args).expect_success();
            assert_eq!(readers(&killed), new, "{step}");
            is_sound(&killed);
            gc(&killed);
            assert_eq!(
                snapshot(&killed.path().join("store/runs")),
                snapshot(&gone.path().join("store/runs")),
                "{step}"
            );
        }
        assert!(n_old > 0 && n_old + n_new > 5, "{n_old} {n_new}");
    }
}

/// Runs a command that is killed when a file is about to get its name.
fn kill_at(file: &Path, folder: &Path, args: &[&str]) {
    let done = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=rename,renameat,renameat2,link,linkat", "-e"])
        .args(["inject=rename,renameat,renameat2,link,linkat:signal=KILL", "-P"])
        .arg(file)
        .arg(support::NEARPRINT)
        .args(args)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(!done.status.success(), "{}", file.display());
}

#[test]
fn forgetting_beside_runs_loses_neither() {
    let base = with_documents_to_forget();
    for day in [11, 12, 13] {
        run(&base, day, &[]);
    }
    std::fs::write(base.path().join("ids.txt"), GONE.join("\n")).unwrap();
    for round in 0..6 {
        let night = copy_of(&base);
        let beside = night.command(&date(14), &["--no-breakers"]).start().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(60 * round));
        let args = match round % 2 {
            0 => ["store", "forget", "store", "--ids", "ids.txt"],
            _ => ["store", "forget", "store", "--before", "2026-11-13"],
        };
        nearprint_in(night.path(), &args).expect_success();
        beside.wait().unwrap().expect_success();
        is_sound(&night);
        no_night_is_stale(&night);
        let info = store(&night, &["info"]);
        assert_eq!(info["n_nights"], if round % 2 == 0 { 4 } else { 2 }, "{info}");
        gc(&night);
        let of_store =
            files_with(&night, "forget-me").into_iter().filter(|path| path.starts_with(night.path().join("store")));
        if round % 2 == 0 {
            // The new night may have been joined with them before they were forgotten, or after, but its run comes after.
            assert_eq!(of_store.count(), 0);
            let again = nearprint_in(night.path(), &["store", "forget", "store", "--ids", "ids.txt", "--json"]);
            assert_eq!(again.expect_success().json()["n_found"], 0);
        }
        is_sound(&night);
    }
}

#[test]
fn a_document_that_only_the_results_have_is_found_and_counted() {
    let night = Night::new("");
    let wall = text(900, 30);
    let pages: Vec<(String, String)> =
        (0..60).map(|i| (format!("https://a.example/{i}"), if i < 30 { text(i, 90) } else { wall.clone() })).collect();
    let pages: Vec<(&str, &str)> = pages.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect();
    night.documents(&date(11), &pages);
    let summary = run(&night, 11, &[]);
    assert_eq!(summary["by_reason"]["drop_stub"], 30, "{summary}");
    std::fs::write(night.path().join("ids"), "https://a.example/40\nhttps://a.example/3\nnobody\n").unwrap();
    let done = store(&night, &["forget", "--ids", "ids"]);
    let counts = ["n_ids", "n_found", "n_not_found", "n_documents"].map(|key| done[key].as_u64().unwrap());
    assert_eq!(counts, [3, 2, 1, 2], "{done}");
    assert_eq!(store(&night, &["forget", "--ids", "ids"])["n_found"], 0);
    is_sound(&night);
}

#[test]
fn a_night_that_is_made_anew_says_that_documents_of_it_were_forgotten() {
    let night = Night::new("");
    night.documents(&date(11), &[("a", &text(1, 60)), ("b", &text(2, 60))]);
    run(&night, 11, &[]);
    std::fs::write(night.path().join("ids"), "b\n").unwrap();
    store(&night, &["forget", "--ids", "ids"]);
    let said = night.run(&date(11), &["--replace", "--no-breakers"]).expect_success().stderr;
    assert!(
        said.contains("documents of it were forgotten by their ids") && said.contains("forget them again"),
        "{said}"
    );
    assert!(night.decisions(&date(11)).contains_key("b"));
    // Now it has none.
    let said = night.run(&date(11), &["--replace", "--no-breakers"]).expect_success().stderr;
    assert!(!said.contains("forgotten"), "{said}");
}

#[test]
fn explain_knows_what_a_later_night_decided_after_ids_of_both_nights_are_forgotten() {
    let (first, other, third, fourth) = (text(1, 60), text(2, 60), text(3, 60), text(4, 60));
    let night = Night::new("");
    night.documents(&date(20), &[("x", &format!("{first} one")), ("p", &first), ("z", &third)]);
    // What represented `p` has another text now, and another document has it.
    night.documents(&date(21), &[("x", &other), ("y", &format!("{first} two")), ("w", &fourth)]);
    run(&night, 20, &[]);
    run(&night, 21, &[]);
    let of = |id: &str| nearprint_in(night.path(), &["explain", "--config", "job.toml", id, "--json"]).json();
    assert_eq!(of("p")["representative"]["id"], "y", "{}", of("p"));
    forget(&night, &["w", "z"]);
    assert_eq!(of("p")["representative"]["id"], "y", "{}", of("p"));
    is_sound(&night);
}

#[test]
fn a_dry_run_joins_with_the_nights_that_stay_and_says_which_go() {
    let night = Night::new("keep_nights = 1\n");
    for day in [20, 21] {
        night.documents(&date(day), &[(&format!("d{day}"), &text(1, 60))]);
    }
    run(&night, 20, &[]);
    let would = night.run(&date(21), &["--dry-run"]).expect_success().json();
    assert_eq!(would["forgotten"], serde_json::json!(["2026-11-20"]));
    let done = run(&night, 21, &[]);
    assert_eq!((&would["n_existing"], &would["n_nights"]), (&done["n_existing"], &0.into()));
    assert_eq!(done["forgotten"], would["forgotten"]);
}
