//! `nearprint store compact`: a segment changes how a join reads a store, and nothing of what comes out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use nearprint_harness::night::sha256;

use crate::support::{self, Night, Running, command, nearprint_in, snapshot, text, write_fingerprints};

/// Documents of a night: copies and edits of what other nights have, recrawls of two nights before, a text without a
/// fingerprint, and one that is gone.
fn documents(night: &Night, day: u64, version: u64) {
    let edited = |seed: u64, n_edits: u64| {
        let text = text(seed, 80);
        let mut words: Vec<&str> = text.split(' ').collect();
        for edit in 0..n_edits {
            words[usize::try_from((seed * 7 + edit * 31) % 80).unwrap()] = "edited";
        }
        words.join(" ")
    };
    let mut rows: Vec<(String, String)> =
        (0..40).map(|i| (format!("d{day}-{i:02}"), edited((i + 9 * day + 3 * version) % 90, (i + day) % 4))).collect();
    for (before, i) in [(1, 3), (1, 11), (2, 5), (2, 17), (3, 20)] {
        rows.push((format!("d{}-{i:02}", day - before), edited((i + 7 * day) % 90, i % 2)));
    }
    rows.push((format!("d{}-30", day - 1), "一二三".to_owned()));
    rows.push((format!("d{}-31", day - 1), String::new()));
    let rows: Vec<(&str, &str)> = rows.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect();
    night.documents(&format!("2026-11-{day}"), &rows);
}

fn date(day: u64) -> String {
    format!("2026-11-{day}")
}

/// A store with some nights.
fn nights(days: &[u64]) -> Night {
    let night = Night::new("");
    for &day in days {
        documents(&night, day, 0);
        night.run(&date(day), &[]).expect_success();
    }
    night
}

/// The same folder elsewhere, times included: they are what inputs are told apart by.
fn copy_of(night: &Night) -> Night {
    let copy = Night { dir: tempfile::tempdir().unwrap() };
    let from = format!("{}/.", night.path().display());
    assert!(Command::new("cp").args(["-a", &from]).arg(copy.path()).status().unwrap().success());
    copy
}

fn compact(night: &Night, more: &[&str]) -> serde_json::Value {
    let args: Vec<&str> = ["store", "compact", "store", "--json"].into_iter().chain(more.iter().copied()).collect();
    nearprint_in(night.path(), &args).expect_success().json()
}

fn check(night: &Night) -> serde_json::Value {
    nearprint_in(night.path(), &["store", "check", "store", "--json"]).json()
}

fn info(night: &Night) -> serde_json::Value {
    nearprint_in(night.path(), &["store", "info", "store", "--json"]).expect_success().json()
}

/// Parts of all segments, by name.
fn parts(night: &Night) -> Vec<PathBuf> {
    let folder = night.path().join("store/segments");
    snapshot(&folder).into_keys().map(|name| folder.join(name)).collect()
}

fn newest_commit(night: &Night) -> PathBuf {
    let folder = night.path().join("store/_commits");
    folder.join(snapshot(&folder).into_keys().next_back().unwrap())
}

fn expect_equal(plain: &Night, compacted: &Night, when: &str) {
    for part in ["results", "store/runs"] {
        let (one, other) = (snapshot(&plain.path().join(part)), snapshot(&compacted.path().join(part)));
        let differing: Vec<&PathBuf> = one.keys().filter(|path| one.get(*path) != other.get(*path)).collect();
        assert!(differing.is_empty() && one.len() == other.len(), "{when}: {part}: {differing:?}");
    }
}

/// Runs a night on both stores, and expects the same files, counts, manifest and all.
fn run_both(plain: &Night, compacted: &Night, day: u64, more: &[&str]) {
    let mut told = Vec::new();
    for night in [plain, compacted] {
        let mut summary = night.run(&date(day), more).expect_success().json();
        for passing in ["elapsed_ms", "stage_ms", "peak_rss_bytes", "commit", "spill"] {
            summary.as_object_mut().unwrap().remove(passing);
        }
        told.push(summary);
    }
    assert_eq!(told[0], told[1]);
    expect_equal(plain, compacted, &format!("{day} {more:?}"));
}

#[test]
fn later_late_and_replaced_nights_publish_the_same_bytes_on_a_compacted_store() {
    let plain = nights(&[13, 14, 16]);
    for day in [15, 17, 18, 19] {
        documents(&plain, day, 0);
    }
    let compacted = copy_of(&plain);
    let summary = compact(&compacted, &["--part-rows", "40", "--threads", "2"]);
    assert_eq!((summary["status"].as_str(), summary["n_runs"].as_u64()), (Some("compacted"), Some(3)));
    assert_eq!(summary["n_parts"].as_u64(), Some(4), "{summary}");
    run_both(&plain, &compacted, 17, &[]);
    // Two of the segment's three runs take part, then one of them, by itself.
    run_both(&plain, &compacted, 15, &["--late", "--pairs", "all"]);
    for night in [&plain, &compacted] {
        documents(night, 14, 1);
        let file = night.path().join("documents/dt=2026-11-14/part-0.parquet");
        let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_800_000_000);
        std::fs::File::options().write(true).open(file).unwrap().set_modified(time).unwrap();
    }
    run_both(&plain, &compacted, 14, &["--replace"]);
    run_both(&plain, &compacted, 18, &["--pairs", "all"]);
    assert_eq!(info(&compacted)["segments"][0]["n_live_runs"], 2);
    compact(&compacted, &["--threads", "1"]);
    assert_eq!(info(&compacted)["segments"][0]["n_live_runs"], 6);
    run_both(&plain, &compacted, 19, &[]);
    assert!(plain.decisions(&date(19)).values().filter(|d| d[0] == "drop").count() > 5, "the nights share texts");
    assert_eq!(check(&compacted)["status"], "sound", "{}", check(&compacted));
}

#[test]
fn a_damaged_run_is_refused_and_nothing_becomes_visible() {
    let night = nights(&[13, 14]);
    let runs = night.path().join("store/runs");
    let file = snapshot(&runs).into_keys().find(|name| name.to_str().unwrap().contains("fingerprints")).unwrap();
    let content = std::fs::read(runs.join(&file)).unwrap();
    std::fs::write(runs.join(&file), &content[1..]).unwrap();
    let refused = nearprint_in(night.path(), &["store", "compact", "store", "--json"]);
    assert_eq!(refused.code, 65);
    assert!(refused.error().contains("the store is damaged"), "{}", refused.stderr);
    assert_eq!(info(&night)["segments"], serde_json::json!([]));
}

/// All pairs and a forest of a join with the store: files, existing fingerprints, number of pairs. Queries are near what the
/// store has: every other row of it, a bit or two away.
fn joined(night: &Night, max_distance: &str) -> Vec<(BTreeMap<PathBuf, Vec<u8>>, u64, u64)> {
    let runs = night.path().join("store/runs");
    let files = snapshot(&runs).into_keys().filter(|name| name.to_str().unwrap().contains("fingerprints"));
    let stored: Vec<u64> =
        files.flat_map(|name| support::rows(&runs.join(name))).map(|row| row[0].parse().unwrap()).collect();
    let queries: Vec<(String, u64)> =
        (0u32..).zip(stored.iter().step_by(2)).map(|(i, f)| (format!("q{i}"), f ^ 1 << (i % 64) ^ 1)).collect();
    write_fingerprints(&night.path().join("queries.parquet"), &queries);
    let join = |pairs: &str| {
        let args = ["join", "--queries", "queries.parquet", "--existing", "store", "--output", "out", "--replace"];
        let more = ["--max-distance", max_distance, "--pairs", pairs, "--json"];
        let summary = nearprint_in(night.path(), &[&args[..], &more[..]].concat()).expect_success().json();
        let count = |name: &str| summary[name].as_u64().unwrap();
        (snapshot(&night.path().join("out")), count("n_existing"), count("n_pairs"))
    };
    ["all", "forest"].map(join).into()
}

#[test]
fn a_join_with_a_store_gives_the_same_pairs_before_and_after() {
    let night = nights(&[13, 14, 15]);
    let before = joined(&night, "3");
    assert!(before[0].2 > 60, "{} pairs", before[0].2);
    compact(&night, &["--part-rows", "50"]);
    assert!(joined(&night, "3") == before);
}

#[test]
fn parts_of_runs_with_many_pages_hold_every_row_once_and_give_the_same_pairs() {
    let night = Night::new("");
    for day in [13u64, 14, 15] {
        let rows: Vec<(String, String)> =
            (0..5000).map(|i| (format!("d{day}-{i}"), text((i * 31 + day * 3000) % 12_000, 40))).collect();
        let rows: Vec<(&str, &str)> = rows.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect();
        night.documents(&date(day), &rows).run(&date(day), &[]).expect_success();
    }
    let before = joined(&night, "2");
    assert!(before[0].2 > 1000, "{} pairs", before[0].2);
    let summary = compact(&night, &["--part-rows", "2000"]);
    assert_eq!((summary["n_rows"].as_u64(), summary["n_parts"].as_u64()), (Some(15_000), Some(8)));
    assert_eq!(check(&night)["status"], "sound");
    let sizes: Vec<usize> = parts(&night).iter().map(|part| support::rows(part).len()).collect();
    assert!(sizes.iter().all(|n| (500..4000).contains(n)), "{sizes:?}");
    assert!(joined(&night, "2") == before);
}

#[test]
fn fingerprints_of_32_bits_are_cut_by_their_own_leading_bits() {
    let night = Night::new("bits = 32\n");
    for day in [13, 14] {
        documents(&night, day, 0);
        night.run(&date(day), &[]).expect_success();
    }
    compact(&night, &["--part-rows", "30"]);
    let sizes: Vec<usize> = parts(&night).iter().map(|part| support::rows(part).len()).collect();
    assert!(sizes.len() == 4 && sizes.iter().all(|&n| n > 5), "{sizes:?}");
    assert_eq!(check(&night)["status"], "sound");
}

#[test]
fn a_second_compaction_changes_nothing_and_says_so() {
    let night = nights(&[13, 14]);
    let first = compact(&night, &[]);
    let before = snapshot(night.path());
    let again = compact(&night, &[]);
    assert_eq!(snapshot(night.path()), before);
    assert_eq!((again["status"].as_str(), again["already_compact"].as_bool()), (Some("already_compact"), Some(true)));
    for same in ["segment", "commit", "n_rows", "bytes"] {
        assert_eq!(first[same], again[same], "{same}");
    }
    let alone = nights(&[13]);
    let nothing = compact(&alone, &[]);
    assert_eq!((nothing["status"].as_str(), nothing["commit"].as_u64()), (Some("already_compact"), Some(1)));
}

#[test]
fn a_commit_without_segments_reads_and_writes_as_it_did() {
    let night = nights(&[13, 14]);
    let commit = std::fs::read_to_string(newest_commit(&night)).unwrap();
    assert!(!commit.contains("segments"), "{commit}");
}

#[test]
fn an_interrupted_compaction_is_resumed_to_the_same_bytes() {
    let night = nights(&[13, 14]);
    compact(&night, &["--part-rows", "30", "--threads", "1"]);
    let complete = snapshot(night.path());
    let parts = parts(&night);
    assert_eq!(parts.len(), 4);
    // Dead before its commit, with some parts written.
    std::fs::remove_file(newest_commit(&night)).unwrap();
    std::fs::remove_file(&parts[2]).unwrap();
    let resumed = compact(&night, &["--part-rows", "30", "--threads", "2"]);
    assert_eq!((resumed["n_parts"].as_u64(), resumed["n_parts_resumed"].as_u64()), (Some(4), Some(3)));
    assert_eq!(snapshot(night.path()), complete);
    // Dead just before its commit.
    std::fs::remove_file(newest_commit(&night)).unwrap();
    assert_eq!(compact(&night, &["--part-rows", "30"])["n_parts_resumed"], 4);
    assert_eq!(snapshot(night.path()), complete);
}

#[test]
fn a_part_that_is_gone_costs_time_only_and_is_mended_by_compacting_again() {
    let night = nights(&[13, 14]);
    compact(&night, &["--part-rows", "30"]);
    let complete = snapshot(&night.path().join("store"));
    let part = parts(&night).remove(1);
    let content = std::fs::read(&part).unwrap();
    documents(&night, 15, 0);

    let unreadable = vec![0; content.len()];
    std::fs::write(&part, unreadable).unwrap();
    let refused = night.run(&date(15), &[]);
    assert_eq!(refused.code, 65, "the segment is read: {}", refused.stderr);
    assert!(refused.error().contains("store/segments/"), "{}", refused.stderr);

    std::fs::remove_file(&part).unwrap();
    let plain = copy_of(&night);
    std::fs::remove_dir_all(plain.path().join("store/segments")).unwrap();
    let mended = compact(&night, &[]);
    assert_eq!((mended["already_compact"].as_bool(), mended["n_parts_resumed"].as_u64()), (Some(true), Some(3)));
    assert_eq!(snapshot(&night.path().join("store")), complete);
    let warned = plain.run(&date(15), &[]).expect_success();
    assert!(warned.stderr.contains("mend with store compact"), "{}", warned.stderr);
    night.run(&date(15), &[]).expect_success();
    expect_equal(&plain, &night, "with and without the segment's files");
}

#[test]
fn two_compactions_and_a_night_at_once_leave_one_sound_state() {
    let night = nights(&[13, 14]);
    documents(&night, 15, 0);
    let compaction = ["store", "compact", "store", "--json", "--part-rows", "30"];
    let compactions = [command(night.path(), &compaction), command(night.path(), &compaction)];
    let runs = compactions.into_iter().chain([night.command("2026-11-15", &[])]);
    let running: Vec<Running> = runs.map(|run| run.start().unwrap()).collect();
    for run in running {
        run.wait().unwrap().expect_success();
    }
    let state = info(&night);
    assert_eq!((state["n_nights"].as_u64(), state["segments"].as_array().unwrap().len()), (Some(3), 1), "{state}");
    assert_eq!(check(&night)["status"], "sound");
}

#[test]
fn store_check_finds_a_flipped_byte_and_rows_that_are_not_the_runs() {
    let night = nights(&[13, 14]);
    compact(&night, &["--part-rows", "30"]);
    let sound = check(&night);
    assert_eq!((sound["status"].as_str(), sound["n_files"].as_u64()), (Some("sound"), Some(16)));
    let damaged = |file: &Path, part: &str| {
        let found = check(&night);
        let said = found["problems"][0].to_string();
        assert!(said.contains(file.file_name().unwrap().to_str().unwrap()) && said.contains(part), "{found}");
        assert_eq!(found["problems"].as_array().unwrap().len(), 1, "{found}");
    };
    let file = parts(&night).remove(1);
    let content = std::fs::read(&file).unwrap();
    let mut flipped = content.clone();
    flipped[40] ^= 1;
    std::fs::write(&file, flipped).unwrap();
    damaged(&file, "SHA-256");

    // A part that its commit agrees with, and its runs do not: rows of another segment.
    std::fs::write(&file, content).unwrap();
    let other = nights(&[13, 15]);
    compact(&other, &["--part-rows", "30"]);
    std::fs::copy(&parts(&other)[1], &file).unwrap();
    let name = file.file_name().unwrap().to_str().unwrap();
    // The record of the part as the commit's page of segments has it, and its rows.
    let page = |night: &Night| {
        let commit: serde_json::Value = serde_json::from_slice(&std::fs::read(newest_commit(night)).unwrap()).unwrap();
        night.path().join(format!("store/pages/{}.json", commit["segments"].as_str().unwrap()))
    };
    let record = |night: &Night| {
        let text = std::fs::read_to_string(page(night)).unwrap();
        let start = text.rfind(&format!("{{\"name\":\"{name}\"")).unwrap();
        let record = text[start..=start + text[start..].find('}').unwrap()].to_owned();
        let value: serde_json::Value = serde_json::from_str(&record).unwrap();
        (text, record, value["rows"].as_u64().unwrap())
    };
    let ((state, own, own_rows), (_, foreign, foreign_rows)) = (record(&night), record(&other));
    let n_rows = info(&night)["segments"][0]["n_rows"].as_u64().unwrap();
    let forged = state
        .replace(&own, &foreign)
        .replace(&format!("\"n_rows\":{n_rows}"), &format!("\"n_rows\":{}", n_rows - own_rows + foreign_rows));
    // Page and commit are named and signed by what is in them.
    let digest = sha256(forged.as_bytes())[..32].to_owned();
    let old_digest = page(&night).file_stem().unwrap().to_str().unwrap().to_owned();
    std::fs::write(page(&night).with_file_name(format!("{digest}.json")), forged).unwrap();
    let commit = std::fs::read_to_string(newest_commit(&night)).unwrap().replace(&old_digest, &digest);
    let bare = commit[..commit.rfind(",\"sha256\"").unwrap()].to_owned() + "}\n";
    let signed = bare.replace("}\n", &format!(",\"sha256\":\"{}\"}}\n", sha256(bare.as_bytes())));
    std::fs::write(newest_commit(&night), signed).unwrap();
    damaged(&file, "where the runs give");
}
