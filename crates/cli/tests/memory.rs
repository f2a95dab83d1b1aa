//! A command stays within the memory and the spill folder that it may take, or says what it would need.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use parquet::arrow::ArrowWriter;

use crate::support::{Night, Ran, nearprint, snapshot, text, write_fingerprints};

const MIB: u64 = 1 << 20;

/// Fingerprints without ids, of which no two are near.
fn write_numbered(path: &Path, n: u64) {
    let values =
        (1..=n).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29).wrapping_mul(0xD6E8_FEB8_6659_FD93));
    let column: ArrayRef = Arc::new(UInt64Array::from_iter_values(values));
    let batch = RecordBatch::try_from_iter([("fingerprint", column)]).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

fn self_join(set: &Path, more: &[&str]) -> Ran {
    let out = set.with_file_name("out");
    let args = ["join", "--json", "--self", "--max-distance", "2", "--queries", set.to_str().unwrap()];
    let done = nearprint(&[&args[..], &["--output", out.to_str().unwrap()], more].concat());
    if done.code != 0 {
        assert!(!out.exists(), "something was published");
    }
    done
}

#[test]
fn a_million_fingerprints_are_joined_within_the_limit() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set.parquet");
    write_numbered(&set, 1_000_000);
    let summary = self_join(&set, &["--memory-limit", "192MiB", "--threads", "2"]).expect_success().json();
    assert_eq!(summary["n_queries"], 1_000_000);
    let peak = summary["peak_rss_bytes"].as_u64().unwrap();
    assert!(peak < 192 * MIB, "{} MiB", peak / MIB);
}

/// Fingerprints with ids: random ones, and for every thousandth of them three more, 1 to 3 bits and one of all sets away.
fn write_planted(path: &Path, n: u64, seed: u64) {
    let random = |i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    let (mut values, mut rows) = (Vec::new(), Vec::new());
    for i in 0..n {
        let value = random(i * 97 + 1);
        values.push(random(value ^ seed));
        if i % 1000 == 0 {
            let (a, b, c) = (seed * 7 % 64, (i + 21) % 64, (i * 5 + 43) % 64);
            values.extend([value ^ (1 << a), value ^ (1 << a) ^ (1 << b), value ^ (1 << a) ^ (1 << b) ^ (1 << c)]);
        }
    }
    rows.extend(values.into_iter().enumerate().map(|(i, value)| (format!("{seed}-{i:07}"), value)));
    write_fingerprints(path, &rows);
}

#[test]
fn a_join_in_parts_writes_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    write_planted(&path("queries.parquet"), 300_000, 1);
    write_planted(&path("existing.parquet"), 200_000, 2);
    let (queries, existing) = (path("queries.parquet"), path("existing.parquet"));
    let both = ["--self", "--existing", existing.to_str().unwrap()];
    let cases = [
        (&both[..1], "all", "3", "36MiB"),
        (&both[1..], "all", "3", "36MiB"),
        (&both[..], "forest", "3", "36MiB"),
        (&both[..], "all", "6", "48MiB"),
    ];
    for (against, mode, distance, limit) in cases {
        let join = |out: &Path, more: &[&str]| {
            let args = ["join", "--json", "--queries", queries.to_str().unwrap(), "--output", out.to_str().unwrap()];
            let how = ["--pairs", mode, "--max-distance", distance];
            nearprint(&[&args[..], &how, against, more].concat()).expect_success().json()
        };
        let (whole, parts) = (path("whole"), path("parts"));
        assert_eq!(join(&whole, &[])["n_parts"], 1);
        let summary = join(&parts, &["--memory-limit", limit, "--threads", "2"]);
        assert!(summary["n_parts"].as_u64().unwrap() > 2, "{against:?}, {mode}, {distance}: {summary}");
        assert!(summary["n_pairs"].as_u64().unwrap() > 200, "{against:?}, {mode}, {distance}: {summary}");
        assert_eq!(snapshot(&whole), snapshot(&parts), "{against:?}, {mode}, {distance}");
        std::fs::remove_dir_all(&whole).unwrap();
        std::fs::remove_dir_all(&parts).unwrap();
    }
}

#[test]
fn a_batch_that_does_not_fit_is_refused_before_it_is_loaded() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set.parquet");
    write_numbered(&set, 1_000_000);
    let done = self_join(&set, &["--memory-limit", "16MiB", "--threads", "2"]);
    assert_eq!(done.code, 74);
    assert!(done.error().contains("the query batch and its tables take"), "{}", done.stderr);
    assert!(done.error().contains("raise --memory-limit"), "{}", done.stderr);
}

#[test]
fn a_reduce_that_reaches_max_spill_stops_and_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set.parquet");
    let rows: Vec<(String, u64)> = (0..1500u64).map(|i| (format!("document-{i:06}"), i % 3)).collect();
    write_fingerprints(&set, &rows);
    let spill = dir.path().join("spill");
    std::fs::create_dir(&spill).unwrap();
    let spilling = ["--pairs", "all", "--reduce-memory", "16MiB", "--threads", "2"];
    let spilling = [&spilling[..], &["--spill-dir", spill.to_str().unwrap()]].concat();
    let done = self_join(&set, &[&spilling[..], &["--max-spill", "100KB"]].concat());
    assert_eq!(done.code, 74, "{}", done.stderr);
    assert!(done.error().contains("--max-spill"), "{}", done.stderr);
    assert_eq!(std::fs::read_dir(&spill).unwrap().count(), 0);
    let allowed = self_join(&set, &[&spilling[..], &["--max-spill", "1GiB"]].concat()).expect_success().json();
    assert!(allowed["spill"]["n_spills"].as_u64().unwrap() > 0, "{allowed}");
}

#[test]
fn more_pairs_than_allowed_stop_the_mappers_before_anything_spills() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set.parquet");
    let rows: Vec<(String, u64)> = (0..1500u64).map(|i| (format!("document-{i:06}"), i % 3)).collect();
    write_fingerprints(&set, &rows);
    let spilling = ["--pairs", "all", "--reduce-memory", "16MiB", "--threads", "2", "--max-spill", "1KB"];
    let done = self_join(&set, &[&spilling[..], &["--max-pairs", "20000"]].concat());
    assert_eq!(done.code, 65, "{}", done.stderr);
    assert!(done.error().contains("more than 20000 pairs"), "{}", done.stderr);
}

#[test]
fn more_near_pairs_than_the_star_rule_has_memory_for_end_the_night_before_it_publishes() {
    let night = Night::new("");
    let words: Vec<String> = text(1, 300).split(' ').map(str::to_owned).collect();
    let edited = |i: usize| {
        let mut words = words.clone();
        words[i % 300] = format!("edited{}", i / 300);
        words.join(" ")
    };
    let documents: Vec<(String, String)> = (0..3000).map(|i| (format!("{i:05}"), edited(i))).collect();
    let rows: Vec<(&str, &str)> = documents.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect();
    night.documents("2026-11-20", &rows);
    let done = night.run("2026-11-20", &["--no-breakers", "--memory-limit", "24MiB"]);
    assert_eq!(done.code, 74, "{}", done.stderr);
    assert!(done.error().contains("the star rule over more than"), "{}", done.stderr);
    assert!(!night.path().join("results").exists());
    let summary = night.run("2026-11-20", &["--no-breakers"]).expect_success().json();
    assert_eq!(summary["n_keep"], 1);
    // What no forest needs never reaches the reduce.
    assert_eq!(summary["spill"]["n_spills"], 0);
}
