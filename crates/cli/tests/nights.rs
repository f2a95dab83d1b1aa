//! Nights in a row on one store.

use nearprint_harness::folder::places;

use crate::support::{self, Night, data_files, edited, nearprint_in, root, snapshot, text, write_documents};

fn sample(extra: &[&str], documents: Option<&str>) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let documents =
        documents.map_or_else(|| root().join("sample_data/documents").to_str().unwrap().to_owned(), str::to_owned);
    let job = format!(
        "documents = {documents:?}\nstore = \"store\"\noutput = \"results\"\ncreate_store = true\nkeep = [\"fetch_time asc\", \"length desc\"]\n"
    );
    std::fs::write(dir.path().join("job.toml"), job).unwrap();
    for dt in ["2026-11-19", "2026-11-20"] {
        let args: Vec<&str> = [&["run", "--config", "job.toml", "--dt", dt, "--json"], extra].concat();
        nearprint_in(dir.path(), &args).expect_success();
    }
    dir
}

#[test]
fn published_files_do_not_depend_on_threads_pairs_memory_or_the_order_and_splitting_of_input() {
    let expected = data_files(sample(&["--threads", "1"], None).path());
    assert!(expected.len() >= 16, "{:?}", expected.keys());
    assert_eq!(data_files(sample(&["--threads", "3"], None).path()), expected);
    assert_eq!(data_files(sample(&["--memory-limit", "256MiB", "--reduce-memory", "32MiB"], None).path()), expected);

    let shuffled = tempfile::tempdir().unwrap();
    for dt in ["2026-11-19", "2026-11-20"] {
        let mut lines: Vec<String> = support::rows(&root().join(format!("sample_data/documents/dt={dt}")))
            .iter()
            .map(|row| serde_json::json!({"id": row[0], "text": row[1], "fetch_time": row[3]}).to_string())
            .collect();
        lines.reverse();
        let folder = shuffled.path().join(format!("dt={dt}"));
        std::fs::create_dir_all(&folder).unwrap();
        for (i, piece) in lines.chunks(40).enumerate() {
            std::fs::write(folder.join(format!("piece-{i}.jsonl")), piece.join("\n")).unwrap();
        }
    }
    assert_eq!(data_files(sample(&[], Some(shuffled.path().to_str().unwrap())).path()), expected);
}

#[test]
fn nights_of_several_batches_of_rows_are_the_same_bytes_whatever_the_threads() {
    let files_of = |threads: &str| {
        let night = Night::new("");
        // Every fifth document repeats another one. The night that is made again lacks documents at its ends and between.
        let rows: Vec<(String, String)> =
            (0..20_000u32).map(|i| (format!("{i:05}"), format!("{} {i}", text(u64::from(i - i % 5), 12)))).collect();
        let rows: Vec<(&str, &str)> = rows.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect();
        let run = |rows: &[(&str, &str)], dt: &str, more: &[&str]| {
            let arguments = [&["--no-breakers", "--threads", threads], more].concat();
            night.documents(dt, rows).run(dt, &arguments).expect_success().json()
        };
        run(&rows[..100], "2026-11-19", &[]);
        run(&rows, "2026-11-20", &[]);
        let rest = [&rows[50..9_000], &rows[9_010..19_990]].concat();
        let again = run(&rest, "2026-11-20", &["--replace"]);
        assert_eq!(again["n_documents"].as_u64(), Some(19_930));
        // The files of the night as it was first would have the same names here.
        nearprint_in(night.path(), &["store", "gc", "--config", "job.toml", "--grace-hours", "0"]).expect_success();
        data_files(night.path())
    };
    let (one, three) = (files_of("1"), files_of("3"));
    assert!(one.len() >= 20, "{:?}", one.keys());
    let differ: Vec<_> = one.keys().filter(|name| one.get(*name) != three.get(*name)).collect();
    assert!(one.keys().eq(three.keys()) && differ.is_empty(), "{differ:?}");
}

#[test]
fn a_rerun_of_a_published_night_changes_nothing() {
    let dir = sample(&[], None);
    let before = snapshot(dir.path());
    let again =
        nearprint_in(dir.path(), &["run", "--config", "job.toml", "--dt", "2026-11-20", "--json"]).expect_success();
    assert_eq!(again.json()["status"], "already_published");
    assert_eq!(snapshot(dir.path()), before);
    let check = nearprint_in(dir.path(), &["store", "check", "store", "--json"]).expect_success().json();
    assert_eq!((check["status"].as_str(), check["n_files"].as_u64()), (Some("sound"), Some(12)));
}

#[test]
fn a_run_that_died_after_its_commit_is_completed_by_the_next_one() {
    let night = Night::new("");
    night.documents("2026-11-20", &[("a", &text(1, 40))]).run("2026-11-20", &[]).expect_success();
    let complete = snapshot(night.path());
    std::fs::remove_file(night.path().join("results/decisions/_delta_log/00000000000000000000.json")).unwrap();
    std::fs::remove_file(night.path().join("results/pairs/_delta_log/00000000000000000000.json")).unwrap();
    night.run("2026-11-20", &[]).expect_success();
    assert_eq!(snapshot(night.path()), complete);
}

#[test]
fn documents_are_kept_and_dropped_within_and_across_nights() {
    let night = Night::new("");
    let (one, two, three) = (text(1, 60), text(2, 60), text(3, 60));
    night.documents("2026-11-19", &[("b", &one), ("c", &one), ("z", &three), ("short1", "一二三")]);
    night.documents(
        "2026-11-20",
        &[("a", &one), ("d", &two), ("e", &edited(&two, 30)), ("f", "   "), ("short2", "一二三"), ("short3", "一二四")],
    );
    night.run("2026-11-19", &[]).expect_success();
    let summary = night.run("2026-11-20", &[]).expect_success().json();
    let first = night.decisions("2026-11-19");
    assert_eq!(first["b"], ["keep", "", "", "canonical", "b", "2"]);
    assert_eq!(first["c"], ["drop", "b", "0", "exact", "b", "2"]);
    assert_eq!(first["z"], ["keep", "", "", "unique", "z", "1"]);
    assert_eq!(first["short1"], ["keep", "", "", "too_short", "short1", "1"]);
    let second = night.decisions("2026-11-20");
    assert_eq!(second["a"], ["drop", "b", "0", "exact", "a", "1"]);
    assert_eq!(second["d"], ["keep", "", "", "canonical", "d", "2"]);
    assert_eq!(
        (&second["e"][0], &second["e"][1], &second["e"][3]),
        (&"drop".to_owned(), &"d".to_owned(), &"near".to_owned())
    );
    assert_eq!(second["f"], ["skip", "", "", "empty", "", ""]);
    assert_eq!(second["short2"], ["drop", "short1", "0", "exact", "short2", "1"]);
    assert_eq!(second["short3"], ["keep", "", "", "too_short", "short3", "1"]);
    assert_eq!(
        (summary["n_documents"].as_u64(), summary["n_empty"].as_u64(), summary["n_too_short"].as_u64()),
        (Some(6), Some(1), Some(2))
    );
    let skipped = night.published("2026-11-20", "skipped");
    assert_eq!(skipped, [["f", "empty"], ["short2", "too_short"], ["short3", "too_short"]]);
    let said =
        nearprint_in(night.path(), &["report", "--config", "job.toml", "--dt", "2026-11-20"]).expect_success().stdout;
    assert!(said.contains("2  below the feature floor, compared as whole texts: 1 kept, 1 dropped\n"), "{said}");
}

/// A page, the same with fifteen words more, and the page with one word changed.
fn growing() -> (String, String, String) {
    let page = text(1, 100);
    let (grown, other) = (format!("{page} {}", text(2, 15)), edited(&page, 50));
    (page, grown, other)
}

#[test]
fn a_page_that_an_earlier_one_does_not_contain_is_kept_and_supersedes_it() {
    let (page, grown, other) = growing();
    let night = Night::new("");
    night.documents("2026-11-19", &[("b", &page)]).run("2026-11-19", &[]).expect_success();
    night.documents("2026-11-20", &[("a", &other), ("c", &grown), ("d", &page)]);
    let summary = night.run("2026-11-20", &[]).expect_success().json();
    let (decisions, lost) = (night.decisions("2026-11-20"), night.lost_shares("2026-11-20"));
    assert_eq!((&decisions["c"][0], &decisions["c"][3]), (&"keep".to_owned(), &"fuller".to_owned()));
    assert_eq!((&decisions["d"][0], &decisions["d"][1], lost["d"]), (&"drop".to_owned(), &"b".to_owned(), 0.0));
    assert_eq!((&decisions["a"][0], &decisions["a"][3]), (&"drop".to_owned(), &"near".to_owned()));
    assert!((0.0..0.1).contains(&lost["a"]) && !lost.contains_key("c"), "{lost:?}");
    let superseded = night.published("2026-11-20", "superseded");
    let [row] = &superseded[..] else { panic!("{superseded:?}") };
    assert_eq!((row[0].as_str(), row[1].as_str()), ("b", "c"));
    let [earlier, new] = [&row[4], &row[5]].map(|share| share.parse::<f64>().unwrap());
    assert!(earlier <= 0.1 && new > 0.1, "{row:?}");
    assert_eq!((summary["n_superseded"].as_u64(), summary["by_reason"]["keep_fuller"].as_u64()), (Some(1), Some(1)));
    let report = ["report", "--config", "job.toml", "--dt", "2026-11-20"];
    let said = nearprint_in(night.path(), &report).expect_success().stdout;
    assert!(said.contains("1 fuller") && said.contains("1  earlier kept documents in fuller ones"), "{said}");
    assert!(said.contains(&format!(", losing {:.1} % of its features)", 100.0 * lost["a"])), "{said}");
    let check = nearprint_in(night.path(), &["check", "--config", "job.toml", "--json"]).expect_success().json();
    assert_eq!(check["status"], "sound", "{check}");
    // The next night knows both, and the fuller one contains what it has of them.
    night.documents("2026-11-21", &[("e", &grown)]).run("2026-11-21", &[]).expect_success();
    let third = night.decisions("2026-11-21");
    assert_eq!((&third["e"][1], &third["e"][3]), (&"c".to_owned(), &"exact".to_owned()));
    assert!(night.published("2026-11-21", "superseded").is_empty());
}

#[test]
fn with_a_lost_share_of_1_and_no_keep_order_the_earlier_page_wins_whatever_is_lost() {
    let (page, grown, _) = growing();
    let night = Night::new("keep = [\"existing\"]\nmax_lost_share = 1\n");
    night.documents("2026-11-19", &[("b", &page), ("c", &grown)]).run("2026-11-19", &[]).expect_success();
    night.documents("2026-11-20", &[("a", &grown)]).run("2026-11-20", &[]).expect_success();
    for (dt, id) in [("2026-11-19", "c"), ("2026-11-20", "a")] {
        let decisions = night.decisions(dt);
        assert_eq!((&decisions[id][1], &decisions[id][3]), (&"b".to_owned(), &"near".to_owned()));
        assert!(night.lost_shares(dt)[id] > 0.1, "{:?}", night.lost_shares(dt));
        assert!(night.published(dt, "superseded").is_empty());
    }
}

#[test]
fn within_a_night_the_longest_page_stays_unless_the_keep_order_says_otherwise() {
    let (page, _, _) = growing();
    let longer = format!("{page} more");
    for (job, canonical) in [("", "b"), ("keep = []\n", "a")] {
        let night = Night::new(job);
        night.documents("2026-11-20", &[("a", &page), ("b", &longer)]).run("2026-11-20", &[]).expect_success();
        assert_eq!(night.decisions("2026-11-20")[canonical][0], "keep", "{job}");
        assert_eq!(night.decisions("2026-11-20").values().filter(|row| row[1] == canonical).count(), 1, "{job}");
    }
}

#[test]
fn a_recrawl_replaces_its_earlier_version_and_stays_canonical() {
    let night = Night::new("");
    let (old, new) = (text(1, 60), text(2, 60));
    night.documents("2026-11-18", &[("m", &old), ("n", &new)]);
    // "m" shows another text now, and its old one has moved to "a"; "n" is as it was, and "b" copies it.
    night.documents("2026-11-19", &[("a", &old), ("b", &new), ("m", &text(3, 60)), ("n", &new)]);
    night.documents("2026-11-20", &[("c", &old), ("d", &text(3, 60))]);
    for dt in ["2026-11-18", "2026-11-19", "2026-11-20"] {
        let summary = night.run(dt, &[]).expect_success().json();
        assert_eq!(summary["n_same_id"], if dt == "2026-11-19" { 2 } else { 0 });
    }
    let second = night.decisions("2026-11-19");
    assert_eq!(second["a"][0], "keep", "nothing else shows its text any more");
    assert_eq!(second["m"][0], "keep");
    assert_eq!(second["n"][0], "keep");
    assert_eq!((second["b"][0].as_str(), second["b"][1].as_str()), ("drop", "n"));
    let third = night.decisions("2026-11-20");
    assert_eq!((third["c"][1].as_str(), third["d"][1].as_str()), ("a", "m"));
}

#[test]
fn a_late_night_needs_a_flag_and_makes_later_nights_stale_until_they_are_replaced() {
    let night = Night::new("");
    let shared = text(1, 60);
    night.documents("2026-11-18", &[("a", &shared)]).documents("2026-11-20", &[("b", &shared)]);
    night.run("2026-11-20", &[]).expect_success();
    assert_eq!(night.decisions("2026-11-20")["b"][0], "keep");

    let refused = night.run("2026-11-18", &[]);
    assert_eq!(refused.code, 64);
    assert!(refused.error().contains("--late"), "{}", refused.stderr);
    let late = night.run("2026-11-18", &["--late"]).expect_success().json();
    assert_eq!(late["stale"], serde_json::json!(["2026-11-20"]));

    let again = night.run("2026-11-20", &[]);
    assert_eq!(again.code, 73);
    assert!(again.error().contains("--replace"), "{}", again.stderr);
    let replaced = night.run("2026-11-20", &["--replace"]).expect_success().json();
    assert_eq!(replaced["stale"], serde_json::json!([]));
    assert_eq!(night.decisions("2026-11-20")["b"][1], "a");
    let info = nearprint_in(night.path(), &["store", "info", "store", "--json"]).expect_success().json();
    assert_eq!((info["commit"].as_u64(), info["n_nights"].as_u64()), (Some(3), Some(2)));
}

#[test]
fn the_keep_order_decides_which_of_equal_documents_is_kept() {
    let night = Night::new("keep = [\"length desc\"]\nmax_lost_share = 0.1\n");
    let base = text(5, 80);
    night.documents("2026-11-20", &[("a", &edited(&base, 3)), ("b", &base), ("c", &format!("{base} more"))]);
    night.run("2026-11-20", &[]).expect_success();
    let decisions = night.decisions("2026-11-20");
    let longest = if base.len() + 5 > edited(&base, 3).len() { "c" } else { "a" };
    assert_eq!(decisions[longest][0], "keep");
    assert!(
        ["a", "b", "c"].iter().filter(|id| **id != longest).all(|id| decisions[*id][1] == longest),
        "{decisions:?}"
    );
}

#[test]
fn ten_thousand_equal_documents_are_one_cluster_with_a_star_of_pairs() {
    let night = Night::new("");
    let same = text(9, 50);
    let ids: Vec<String> = (0..10_000).map(|i| format!("{i:05}")).collect();
    let rows: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), same.as_str())).collect();
    let summary = night.documents("2026-11-20", &rows).run("2026-11-20", &["--no-breakers"]).expect_success().json();
    assert_eq!(
        (summary["n_pairs"].as_u64(), summary["n_keep"].as_u64(), summary["largest_cluster"].as_u64()),
        (Some(9999), Some(1), Some(10_000))
    );
}

/// A Zstandard frame of one raw block (RFC 8878, section 3.1.1).
fn zstd_frame(content: &str) -> Vec<u8> {
    let size = u16::try_from(content.len() - 256).unwrap().to_le_bytes();
    let block = (u32::try_from(content.len()).unwrap() << 3 | 1).to_le_bytes();
    [&[0x28, 0xB5, 0x2F, 0xFD, 0x60], &size[..], &block[..3], content.as_bytes()].concat()
}

#[test]
fn jsonl_plain_gzip_and_zstd_read_as_parquet_does() {
    let night = Night::new("");
    let (a, b) = (text(1, 40), text(2, 40));
    write_documents(
        &night.path().join("documents/dt=2026-11-20/p.parquet"),
        &[(Some("1"), Some(&a)), (Some("2"), Some(&b)), (Some("3"), Some(&a))],
    );
    night.run("2026-11-20", &[]).expect_success();
    let expected = data_files(night.path());
    let line = |id: u32, text: &str| serde_json::json!({"id": id, "text": text, "other": [1]}).to_string() + "\n";
    let compress = |program: &str, content: &str, to: &std::path::Path| {
        use std::io::Write;
        let file = std::fs::File::create(to).unwrap();
        let mut child = std::process::Command::new(program)
            .arg("-c")
            .stdin(std::process::Stdio::piped())
            .stdout(file)
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(content.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success());
    };
    let json = Night::new("");
    let folder = json.path().join("documents/dt=2026-11-20");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("a.jsonl"), line(3, &a) + "\n\n").unwrap();
    compress("gzip", &line(1, &a), &folder.join("b.jsonl.gz"));
    std::fs::write(folder.join("c.ndjson.zst"), zstd_frame(&line(2, &b))).unwrap();
    json.run("2026-11-20", &[]).expect_success();
    assert_eq!(data_files(json.path()), expected);
}

/// Versions of a page, each with three more words replaced than the one before.
fn versions(seed: u64, n: usize) -> Vec<String> {
    let next = |text: &mut String, i: usize| {
        let now = text.clone();
        *text = edited(&edited(&edited(text, i * 9), i * 9 + 3), i * 9 + 6);
        Some(now)
    };
    (0..n).scan(text(seed, 120), next).collect()
}

#[test]
fn the_component_rule_keeps_one_document_of_a_chain_where_the_star_rule_keeps_what_is_too_far() {
    let ids: Vec<String> = (0..12).map(|i| format!("{i:02}")).collect();
    let [first, second] = [21, 22].map(|seed| versions(seed, 12));
    let rows = |texts: &[String]| -> Vec<(String, String)> { ids.iter().cloned().zip(texts.iter().cloned()).collect() };
    // The second night has the end of a chain that the first night has begun, and a chain of its own.
    let nights = [("2026-11-20", rows(&first[..5])), ("2026-11-21", rows(&[&first[5..], &second[..]].concat()[..12]))];
    let mut counts = Vec::new();
    for rule in ["star", "component"] {
        let night = Night::new("");
        for (dt, rows) in &nights {
            let rows: Vec<(String, &str)> =
                rows.iter().map(|(id, text)| (format!("{dt} {id}"), text.as_str())).collect();
            night.documents(dt, &rows.iter().map(|(id, text)| (id.as_str(), *text)).collect::<Vec<_>>());
        }
        night.run("2026-11-20", &[]).expect_success();
        std::fs::write(night.path().join("job.toml"), places("") + &format!("clusters = \"{rule}\"\n")).unwrap();
        counts.push(night.run("2026-11-21", &[]).expect_success().json());
    }
    let of = |rule: usize, key: &str| counts[rule][key].as_u64();
    let (star, component) = (of(0, "n_keep").unwrap(), of(1, "n_keep").unwrap());
    assert!(star > component, "star keeps {star}, component {component}: {}", counts[0]);
    assert_eq!(of(0, "n_kept_beyond_component"), Some(star - component));
    let kept = star - of(0, "n_kept_in_vain").unwrap();
    assert!((kept..12).contains(&of(0, "n_keep_bound").unwrap()), "{}", counts[0]);
    assert_eq!((of(1, "n_keep_bound"), of(1, "n_kept_beyond_component")), (None, None));
}

#[test]
fn verbose_runs_say_the_plan_of_the_join_and_what_it_came_to() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(root().join("sample_data"), folder.path().join("sample_data")).unwrap();
    let job = folder.path().join("jobs/sample.toml");
    std::fs::create_dir(folder.path().join("jobs")).unwrap();
    std::fs::copy(root().join("jobs/sample.toml"), &job).unwrap();
    let run = |dt: &str| {
        let words =
            ["-vv", "run", "--config", job.to_str().unwrap(), "--threads", "2", "--kernel", "scalar", "--dt", dt];
        let done = nearprint_in(folder.path(), &words);
        assert_eq!(done.code, 0, "{}", done.stderr);
        done.stderr
    };
    run("2026-11-19");
    let said = run("2026-11-20");
    let plan = said.lines().find_map(|line| line.split_once("DEBUG reduce plan=")).unwrap().1;
    let nodes: Vec<&str> =
        plan.split(" <- ").map(|node| node.split(':').next().unwrap().trim_start_matches('"')).collect();
    let sorted = ["AggregateExec", "SortPreservingMergeExec", "SortExec", "RepartitionExec", "UnionExec"];
    assert_eq!(nodes, [&sorted[..], &["ProbeExec", "JudgeExec"]].concat());
    let of_night = "bits=64, k=12, tables=1, slices=1";
    let of_earlier = "bits=64, k=8, tables=1, slices=1";
    let keys = format!("{of_night}; {of_earlier}; word=0, {of_earlier}; word=1, {of_earlier}");
    assert!(plan.contains(&format!("ProbeExec: {keys}, tasks=3 <-")), "{plan}");
    let came_to = said.lines().find_map(|line| line.split_once("DEBUG ProbeExec: ")).unwrap().1;
    let counts = "rows=538, candidates=140, sketches=52, sketch_pages=6, pairs=140";
    assert_eq!(came_to, format!("{keys}, tasks=3, {counts}"));
}

/// Each row of the table names what it counts; the summaries of both nights have these numbers.
#[test]
fn the_figures_beside_the_sample_data_are_those_of_its_nights() {
    let readme = std::fs::read_to_string(root().join("sample_data/README.md")).unwrap();
    let table = readme.split("<!-- counts -->").nth(1).unwrap().split("<!-- /counts -->").next().unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| ")).map(|line| line.trim_end_matches(" |"));
    let rows: Vec<Vec<&str>> =
        rows.map(|row| row.split(" | ").collect()).filter(|row: &Vec<_>| row.len() == 3).collect();
    let (folder, job) = (tempfile::tempdir().unwrap(), root().join("jobs/sample.toml"));
    for (at, dt) in ["2026-11-19", "2026-11-20"].into_iter().enumerate() {
        let place = ["--store", "store", "--output", "results", "--create-store", "--json"];
        let run = [&["run", "--config", job.to_str().unwrap(), "--dt", dt][..], &place].concat();
        let summary = nearprint_in(folder.path(), &run).expect_success().json();
        let of = |name: &str| match name {
            "documents" => summary["n_documents"].clone(),
            "of these, crawled again" => summary["n_same_id"].clone(),
            "existing fingerprints that are not replaced" => summary["n_existing"].clone(),
            "pairs (forest)" => summary["n_pairs"].clone(),
            "of these, within the night" => summary["n_new_new"].clone(),
            "of these, with the earlier night" => summary["n_new_existing"].clone(),
            "kept" => summary["n_keep"].clone(),
            "dropped" => summary["n_drop"].clone(),
            "skipped" => summary["n_skip"].clone(),
            "clusters of two or more" => summary["n_clusters"].clone(),
            "documents of the largest cluster" => summary["largest_cluster"].clone(),
            reason => {
                let reason = reason.strip_prefix("of these, ").unwrap().replace(' ', "_");
                let of = |decision: &str| summary["by_reason"][format!("{decision}_{reason}")].as_u64();
                (of("keep").or_else(|| of("drop")).unwrap_or(0)).into()
            }
        };
        for row in &rows[1..] {
            assert_eq!(row[at + 1], of(row[0]).to_string(), "{dt}: {}", row[0]);
        }
    }
    assert!(rows.len() > 15, "{rows:?}");
}
