//! `nearprint join`, against lists of exact answers and against the all-pairs oracle.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, clippy::print_stdout, reason = "tests")]

mod support;

use nearprint_join::{naive, reduce};
use support::{nearprint, root, rows, text, write_fingerprints};

const LISTED: [(&str, u32); 8] = [
    ("worst_blocks", 6),
    ("ball_radius2", 3),
    ("chains", 6),
    ("signed_edge", 6),
    ("tiny_0", 6),
    ("tiny_1", 6),
    ("tiny_2", 6),
    ("heavy_block_one", 4),
];

fn join(args: &[&str]) -> (tempfile::TempDir, serde_json::Value, Vec<Vec<String>>) {
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().join("out");
    let args: Vec<&str> = [&["join", "--json", "--output", folder.to_str().unwrap()], args].concat();
    let summary = nearprint(&args).expect_success().json();
    let pairs = rows(&folder.join("pairs"));
    (out, summary, pairs)
}

#[test]
fn the_self_join_of_every_listed_set_gives_exactly_the_listed_pairs() {
    let data = root().join("crates/cli/tests/data/fingerprints");
    for (name, max_distance) in LISTED {
        let set = data.join(format!("{name}.parquet"));
        let listed = rows(&data.join(format!("{name}.pairs.parquet")));
        for k in 0..=max_distance {
            let (_out, _, pairs) = join(&[
                "--queries",
                set.to_str().unwrap(),
                "--self",
                "--pairs",
                "all",
                "--max-distance",
                &k.to_string(),
            ]);
            let got: Vec<Vec<String>> = pairs.iter().map(|p| p[..3].to_vec()).collect();
            let within = listed.iter().filter(|p| p[2].parse::<u32>().unwrap() <= k).cloned();
            assert_eq!(got, reduce([within.collect()]), "{name}, k = {k}");
        }
    }
}

#[test]
fn pairs_with_existing_files_in_any_order_equal_the_oracle_and_leave_out_the_own_id() {
    let dir = tempfile::tempdir().unwrap();
    let value = |seed: u64| u64::from_str_radix(&text(seed, 4).replace(['w', ' '], "")[..15], 16).unwrap();
    let queries: Vec<(String, u64)> = (0..300).map(|i| (format!("q{i:03}"), value(i % 250))).collect();
    // Flips of query values, unsorted, over three row groups; ids 0 to 99 are queries' own.
    let existing: Vec<(String, u64)> = (0..2500u64)
        .map(|i| {
            let id = if i < 100 { format!("q{i:03}") } else { format!("e{:04}", i * 7919 % 10_000) };
            (id, value(i % 400) ^ (1 << (i % 61)) ^ (1 << (i * 3 % 64)))
        })
        .collect();
    write_fingerprints(&dir.path().join("queries.parquet"), &queries);
    write_fingerprints(&dir.path().join("existing/a.parquet"), &existing[..1300]);
    write_fingerprints(&dir.path().join("existing/b.parquet"), &existing[1300..]);
    for k in [0, 2, 5] {
        let paths = [dir.path().join("queries.parquet"), dir.path().join("existing")];
        let (_out, summary, pairs) = join(&[
            "--queries",
            paths[0].to_str().unwrap(),
            "--existing",
            paths[1].to_str().unwrap(),
            "--pairs",
            "all",
            "--max-distance",
            &k.to_string(),
        ]);
        let values = |rows: &[(String, u64)]| rows.iter().map(|r| r.1).collect::<Vec<_>>();
        let expected = naive::cross_pairs(&values(&queries), &values(&existing), k)
            .into_iter()
            .map(|(q, e, d)| {
                vec![
                    queries[q].0.clone(),
                    existing[e].0.clone(),
                    d.to_string(),
                    String::new(),
                    "new_existing".to_owned(),
                ]
            })
            .filter(|p| p[0] != p[1]);
        assert_eq!(pairs, reduce([expected.collect()]), "k = {k}");
        assert_eq!(summary["n_existing"], 2500);
    }
}

#[test]
fn a_reduce_that_spills_gives_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let rows: Vec<(String, u64)> = (0..1500u64).map(|i| (format!("document-{i:06}"), i % 3)).collect();
    write_fingerprints(&dir.path().join("set.parquet"), &rows);
    let set = dir.path().join("set.parquet");
    let common = ["--queries", set.to_str().unwrap(), "--self", "--pairs", "all", "--max-distance", "2", "--verbose"];
    let (free, unlimited, _) = join(&common);
    let (bound, limited, _) = join(&[&common[..], &["--reduce-memory", "16MiB", "--threads", "2"]].concat());
    assert_eq!(unlimited["n_pairs"], 1500 * 1499 / 2);
    assert_eq!(unlimited["spill"]["n_spills"], 0);
    assert!(limited["spill"]["n_spills"].as_u64().unwrap() > 0, "{limited}");
    let bytes = |out: &tempfile::TempDir| support::snapshot(&out.path().join("out/pairs"));
    assert_eq!(bytes(&free), bytes(&bound));
}

#[test]
fn a_forest_has_one_pair_fewer_than_documents_for_each_component() {
    let data = root().join("crates/cli/tests/data/fingerprints/ball_radius2.parquet");
    let (_out, summary, pairs) = join(&["--queries", data.to_str().unwrap(), "--self", "--max-distance", "3"]);
    assert_eq!(pairs.len(), 560);
    assert_eq!(summary["n_new_new"], 560);
}

#[test]
fn more_pairs_than_allowed_stop_before_anything_is_written() {
    let out = tempfile::tempdir().unwrap();
    let data = root().join("crates/cli/tests/data/fingerprints/ball_radius2.parquet");
    let folder = out.path().join("out");
    let done = nearprint(&[
        "join",
        "--queries",
        data.to_str().unwrap(),
        "--self",
        "--max-distance",
        "3",
        "--pairs",
        "all",
        "--max-pairs",
        "1000",
        "--output",
        folder.to_str().unwrap(),
    ]);
    assert_eq!(done.code, 65);
    assert!(done.error().contains("more than 1000 pairs"), "{}", done.stderr);
    assert!(!folder.exists());
}
