//! Published datasets are Delta tables: what any reader of such tables finds after each thing that happens to a night.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::{self, Night, delta, nearprint_in, not_checked, rows, snapshot, text};

const DATES: [&str; 3] = ["2026-11-18", "2026-11-19", "2026-11-20"];

fn three_nights() -> Night {
    let night = Night::new("");
    let same = text(1, 60);
    night.documents(DATES[0], &[("a", &same), ("b", &same), ("c", &text(2, 60)), ("s", "short"), ("e", " ")]);
    night.documents(DATES[1], &[("d", &same), ("f", &text(4, 60))]);
    night.documents(DATES[2], &[("g", &same), ("h", &text(4, 60)), ("i", &text(5, 60)), ("j", &text(6, 60))]);
    for dt in DATES {
        night.run(dt, &[]).expect_success();
    }
    night
}

/// The `add` actions of a table's newest version.
fn active(night: &Night, table: &str) -> delta::Active {
    delta::active(
        &snapshot(night.path()).into_iter().map(|(k, v)| (k.display().to_string(), v)).collect(),
        &format!("results/{table}"),
    )
    .unwrap()
}

/// The rows of each night in a table: by its log, and in its files.
fn counts(night: &Night, table: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for (path, add) in active(night, table) {
        let n = rows(&night.path().join("results").join(table).join(&path)).len() as u64;
        assert_eq!(delta::n_records(&add).unwrap(), n, "{table}/{path}");
        *counts.entry(add["partitionValues"]["dt"].as_str().unwrap().to_owned()).or_default() += n;
    }
    counts
}

/// Every table has the rows that the manifests of the published nights count, and no others.
fn as_the_manifests_say(night: &Night) {
    let info = nearprint_in(night.path(), &["store", "info", "store", "--json"]).expect_success().json();
    let dates: Vec<&str> = info["nights"].as_array().unwrap().iter().map(|n| n["dt"].as_str().unwrap()).collect();
    for table in delta::TABLES {
        let expected = dates.iter().map(|dt| {
            let manifest = std::fs::read(night.generation(dt).join("manifest.json")).unwrap();
            let manifest: Value = serde_json::from_slice(&manifest).unwrap();
            let of_table = manifest["files"].as_array().unwrap().iter();
            let of_table = of_table.filter(|file| file["name"].as_str().unwrap().split('/').next() == Some(table));
            ((*dt).to_owned(), of_table.map(|file| file["rows"].as_u64().unwrap()).sum::<u64>())
        });
        assert_eq!(counts(night, table), expected.collect(), "{table}");
    }
}

fn n_versions(night: &Night, table: &str) -> usize {
    snapshot(&night.path().join(format!("results/{table}/_delta_log"))).len()
}

fn check(night: &Night) -> Value {
    nearprint_in(night.path(), &["check", "--config", "job.toml", "--json"]).json()
}

fn gc(night: &Night, more: &[&str]) -> Value {
    nearprint_in(night.path(), &[&["store", "gc", "--config", "job.toml", "--json"], more].concat())
        .expect_success()
        .json()
}

/// The rows that a plain glob finds.
fn by_glob(night: &Night) -> usize {
    let folder = night.path().join("results/decisions");
    let nights = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    nights.filter(|path| !path.ends_with("_delta_log")).map(|path| rows(&path).len()).sum()
}

#[test]
fn tables_have_the_nights_that_are_published_through_reruns_replacements_late_nights_and_gc() {
    let night = three_nights();
    as_the_manifests_say(&night);
    assert_eq!(
        counts(&night, "decisions"),
        BTreeMap::from([(DATES[0].into(), 5), (DATES[1].into(), 2), (DATES[2].into(), 4)])
    );
    assert_eq!(by_glob(&night), 11);
    let before = snapshot(&night.path().join("results"));
    night.run(DATES[2], &[]).expect_success();
    assert_eq!(snapshot(&night.path().join("results")), before, "a rerun changes nothing");

    // The query that everybody writes counted 7 rows here for a night of 4.
    night.documents(DATES[2], &[("g", &text(7, 60)), ("h", &text(4, 60)), ("i", &text(8, 60)), ("j", &text(9, 60))]);
    night.run(DATES[2], &["--replace"]).expect_success();
    as_the_manifests_say(&night);
    assert_eq!((counts(&night, "decisions")[DATES[2]], by_glob(&night)), (4, 15));
    // Removed and added in one version: no reader sees both generations, or none.
    let version = std::fs::read_to_string(night.path().join("results/decisions/_delta_log/00000000000000000003.json"));
    let version = version.unwrap();
    assert_eq!((version.matches("{\"remove\"").count(), version.matches("{\"add\"").count()), (1, 1), "{version}");

    night
        .documents("2026-11-17", &[("z", &text(6, 60)), ("y", &text(10, 60))])
        .run("2026-11-17", &["--late"])
        .expect_success();
    as_the_manifests_say(&night);
    assert_eq!(check(&night)["status"], "sound");

    // Readers of the version before find its files for as long as the grace says, and then the glob is right again.
    let waiting = gc(&night, &[]);
    assert_eq!((waiting["n_files"].as_u64(), waiting["n_waiting"].as_u64()), (Some(0), Some(15)), "{waiting}");
    assert!(waiting["waiting_until"].as_str().unwrap().ends_with('Z'), "{waiting}");
    let said = nearprint_in(night.path(), &["store", "gc", "--config", "job.toml"]).expect_success().stdout;
    assert!(said.contains("15 files with") && said.contains("wait until 2"), "{said}");
    assert_eq!(by_glob(&night), 17);
    let gone = gc(&night, &["--grace-hours", "0"]);
    assert!(gone["n_files"].as_u64() >= Some(11) && gone["n_waiting"] == 0, "{gone}");
    assert_eq!(by_glob(&night), 13);
    as_the_manifests_say(&night);
    assert_eq!(check(&night)["status"], "sound");

    nearprint_in(night.path(), &["store", "drop-night", "store", "--dt", DATES[1]]).expect_success();
    as_the_manifests_say(&night);
    assert_eq!(active(&night, "pairs").len(), 3);
}

#[test]
fn a_run_killed_between_its_commit_and_any_version_of_a_table_is_completed_by_the_next() {
    if Command::new("strace").arg("-V").output().is_err() {
        return not_checked("no strace");
    }
    for table in delta::TABLES {
        let night = three_nights();
        night.documents(DATES[2], &[("g", &text(7, 60)), ("h", &text(4, 60))]);
        let version = night.path().join(format!("results/{table}/_delta_log/00000000000000000003.json"));
        let killed = Command::new("strace")
            .args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=rename,renameat,renameat2,link,linkat", "-e"])
            .args(["inject=rename,renameat,renameat2,link,linkat:signal=KILL", "-P"])
            .arg(&version)
            .args([support::NEARPRINT, "run", "--config", "job.toml", "--dt", DATES[2], "--replace"])
            .current_dir(night.path())
            .output()
            .unwrap();
        assert!(!killed.status.success(), "{table}");
        assert_eq!(check(&night)["status"], "behind", "{table}");
        // Whatever each table has, it has of one generation.
        for table in delta::TABLES {
            assert_eq!(night.table_files(DATES[2], table).len(), 1);
        }
        night.documents("2026-11-21", &[("k", &text(11, 60))]).run("2026-11-21", &["--no-breakers"]).expect_success();
        as_the_manifests_say(&night);
        assert_eq!(check(&night)["status"], "sound", "{table}");
        assert_eq!(n_versions(&night, table), 5);
    }
}

#[test]
fn a_log_that_is_damaged_is_named_and_one_that_was_moved_away_is_written_anew() {
    let night = three_nights();
    let log = night.path().join("results/decisions/_delta_log");
    let version = log.join("00000000000000000001.json");
    let whole = std::fs::read_to_string(&version).unwrap();
    let size = whole.find("\"size\":").unwrap() + 7;
    let mut changed = whole.clone().into_bytes();
    changed[size] = if changed[size] == b'9' { b'8' } else { b'9' };
    for content in [changed, whole.as_bytes()[..whole.len() / 2].to_vec()] {
        std::fs::write(&version, content).unwrap();
        let found = check(&night);
        assert_eq!(found["status"], "damaged", "{found}");
        assert!(found["problems"].to_string().contains("00000000000000000001.json"), "{found}");
        let refused = night.run(DATES[0], &[]);
        assert_eq!(refused.code, 65, "{}", refused.stderr);
        assert!(refused.error().contains("move the folder `_delta_log` away"), "{}", refused.stderr);
        assert_eq!(nearprint_in(night.path(), &["store", "gc", "--config", "job.toml"]).code, 65);
    }
    std::fs::rename(&log, night.path().join("aside")).unwrap();
    assert_eq!(check(&night)["behind"], serde_json::json!(DATES));
    night.run(DATES[0], &[]).expect_success();
    as_the_manifests_say(&night);
    assert_eq!((check(&night)["status"].as_str(), n_versions(&night, "decisions")), (Some("sound"), 1));
}

#[test]
fn versions_of_other_programs_are_read_and_undone_where_they_contradict_the_store() {
    let night = three_nights();
    let log = night.path().join("results/decisions/_delta_log");
    // As engines note that they vacuumed; then somebody deletes a night.
    let vacuum = "{\"commitInfo\":{\"timestamp\":1,\"operation\":\"VACUUM START\",\"operationParameters\":{}}}\n";
    std::fs::write(log.join("00000000000000000003.json"), vacuum).unwrap();
    assert_eq!(check(&night)["status"], "sound");
    let path = active(&night, "decisions").into_keys().next().unwrap();
    let delete = format!(
        "{{\"commitInfo\":{{\"operation\":\"DELETE\"}}}}\n{{\"remove\":{{\"path\":\"{path}\",\"dataChange\":true}}}}\n"
    );
    std::fs::write(log.join("00000000000000000004.json"), delete).unwrap();
    assert_eq!(check(&night)["behind"], serde_json::json!([DATES[0]]));
    night.run(DATES[2], &[]).expect_success();
    as_the_manifests_say(&night);
    assert_eq!(check(&night)["status"], "sound");
}

#[test]
fn logs_depend_on_no_clock_and_name_no_place() {
    let night = three_nights();
    for table in delta::TABLES {
        for (name, content) in snapshot(&night.path().join(format!("results/{table}/_delta_log"))) {
            let text = String::from_utf8(content).unwrap();
            assert!(!text.contains(night.path().to_str().unwrap()) && !text.contains("results"), "{text}");
            let times: BTreeSet<&str> = ["\"timestamp\":", "\"modificationTime\":"]
                .iter()
                .flat_map(|key| text.split(key).skip(1).map(|rest| rest.split([',', '}']).next().unwrap()))
                .collect();
            // The end of the newest night, and the number of the version in milliseconds.
            let number: i64 = name.to_str().unwrap().trim_end_matches(".json").parse().unwrap();
            let day: i64 = [1_795_046_400_000, 1_795_132_800_000, 1_795_219_200_000][usize::try_from(number).unwrap()];
            assert_eq!(times, BTreeSet::from([(day + number).to_string().as_str()]), "{table} {text}");
        }
    }
    let copy = |night: &Night| -> BTreeMap<_, _> {
        snapshot(&night.path().join("results")).into_iter().filter(|(path, _)| has_log(path)).collect()
    };
    // The same nights in another output of another store, but for the identity of the table.
    let again = Night::new("");
    assert!(
        Command::new("cp").arg("-a").arg(night.path().join("documents")).arg(again.path()).status().unwrap().success()
    );
    for dt in DATES {
        again.run(dt, &[]).expect_success();
    }
    let plain = |content: Vec<u8>| -> Vec<String> {
        let lines: Vec<String> = String::from_utf8(content).unwrap().lines().map(str::to_owned).collect();
        lines.into_iter().filter(|line| line.contains("\"add\"") || line.contains("\"remove\"")).collect()
    };
    let (one, other) = (copy(&night), copy(&again));
    assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
    for ((path, one), other) in one.into_iter().zip(other.into_values()) {
        assert_eq!(plain(one), plain(other), "{}", path.display());
    }
}

/// Nights that make version 10 of each table and one more, of which version 2 replaces a night.
fn eleven_versions() -> Night {
    let night = Night::new("");
    let date = |day: u64| format!("2026-10-{day:02}");
    for day in 1..=11 {
        let dt = date(day);
        night
            .documents(&dt, &[("a", &text(day, 60)), ("b", &text(day, 60))])
            .run(&dt, &["--no-breakers"])
            .expect_success();
        if day == 2 {
            night.documents(&dt, &[("c", &text(50, 60))]).run(&dt, &["--replace", "--no-breakers"]).expect_success();
        }
    }
    night
}

fn checkpoint(night: &Night, table: &str) -> std::path::PathBuf {
    night.path().join(format!("results/{table}/_delta_log/00000000000000000010.checkpoint.parquet"))
}

#[test]
fn after_ten_versions_a_checkpoint_is_read_in_place_of_those_before_it() {
    let night = eleven_versions();
    as_the_manifests_say(&night);
    assert_eq!(check(&night)["status"], "sound");
    let log = |table: &str| night.path().join(format!("results/{table}/_delta_log"));
    for table in delta::TABLES {
        let last = std::fs::read_to_string(log(table).join("_last_checkpoint")).unwrap();
        // Protocol, metadata, a removed file and ten nights.
        assert_eq!(last, "{\"size\":13,\"version\":10}", "{table}");
        assert!(checkpoint(&night, table).is_file() && n_versions(&night, table) == 14, "{table}");
        // Nobody but `check` reads these.
        for version in 0..10 {
            std::fs::write(log(table).join(format!("{version:020}.json")), "x").unwrap();
        }
    }
    assert_eq!(check(&night)["status"], "damaged");
    night.documents("2026-10-12", &[("z", &text(60, 60))]).run("2026-10-12", &["--no-breakers"]).expect_success();
    let newest = std::fs::read_to_string(log("decisions").join("00000000000000000012.json")).unwrap();
    assert_eq!(newest.matches("{\"add\"").count(), 1, "{newest}");
    // The checkpoint knows which version removed the files of the replaced night, and so how long they have to stay.
    let waiting = gc(&night, &[]);
    assert_eq!((waiting["n_files"].as_u64(), waiting["n_waiting"].as_u64()), (Some(0), Some(15)), "{waiting}");
    assert_eq!(gc(&night, &["--grace-hours", "0"])["n_waiting"], 0);
}

#[test]
fn nothing_depends_on_a_checkpoint_and_whoever_writes_it_writes_the_same() {
    let night = eleven_versions();
    let before = snapshot(&night.path().join("results"));
    let rerun = || night.run("2026-10-01", &[]).expect_success();
    for table in delta::TABLES {
        std::fs::remove_file(checkpoint(&night, table)).unwrap();
        std::fs::remove_file(checkpoint(&night, table).with_file_name("_last_checkpoint")).unwrap();
    }
    assert_eq!(check(&night)["status"], "sound");
    rerun();
    assert_eq!(snapshot(&night.path().join("results")), before, "as another execution wrote it");

    let place = checkpoint(&night, "decisions");
    let whole = std::fs::read(&place).unwrap();
    let cut = whole[..whole.len() / 2].to_vec();
    let key = b"nearprint.checkpoint_sha256";
    let digest = whole.windows(key.len()).position(|at| at == key).unwrap() + key.len() + 8;
    let mut other = whole.clone();
    other[digest] = if whole[digest] == b'0' { b'1' } else { b'0' };
    for content in [cut, other, b"no Parquet".to_vec()] {
        std::fs::write(&place, &content).unwrap();
        let found = check(&night);
        assert_eq!(found["status"], "damaged", "{found}");
        assert!(found["problems"].to_string().contains("delete this checkpoint"), "{found}");
        let passed_over = rerun();
        assert!(passed_over.stderr.contains("reads the versions before it"), "{}", passed_over.stderr);
        as_the_manifests_say(&night);
    }
    std::fs::remove_file(&place).unwrap();
    rerun();
    assert_eq!((check(&night)["status"].as_str(), std::fs::read(&place).unwrap()), (Some("sound"), whole));
}

#[test]
fn a_run_killed_at_its_checkpoint_leaves_it_to_the_next() {
    if Command::new("strace").arg("-V").output().is_err() {
        return not_checked("no strace");
    }
    let night = eleven_versions();
    let before = snapshot(&night.path().join("results"));
    for name in ["00000000000000000010.checkpoint.parquet", "_last_checkpoint"] {
        for table in delta::TABLES {
            std::fs::remove_file(checkpoint(&night, table)).unwrap();
            std::fs::remove_file(checkpoint(&night, table).with_file_name("_last_checkpoint")).unwrap();
        }
        let killed = Command::new("strace")
            .args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=rename,renameat,renameat2,link,linkat", "-e"])
            .args(["inject=rename,renameat,renameat2,link,linkat:signal=KILL", "-P"])
            .arg(checkpoint(&night, "skipped").with_file_name(name))
            .args([support::NEARPRINT, "run", "--config", "job.toml", "--dt", "2026-10-01"])
            .current_dir(night.path())
            .output()
            .unwrap();
        assert!(!killed.status.success(), "{name}");
        assert_eq!(check(&night)["status"], "sound", "{name}");
        as_the_manifests_say(&night);
        night.run("2026-10-01", &[]).expect_success();
        let now = snapshot(&night.path().join("results"));
        let differ: Vec<_> =
            before.keys().chain(now.keys()).filter(|path| before.get(*path) != now.get(*path)).collect();
        // A hint that was not written is left to the next checkpoint.
        assert!(differ.iter().all(|path| path.ends_with("_last_checkpoint")), "{name}: {differ:?}");
    }
}

fn has_log(path: &Path) -> bool {
    path.to_string_lossy().contains("_delta_log")
}
