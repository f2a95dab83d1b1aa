//! `nearprint check` and `nearprint store gc`: what is published is whole, and what is not is gone.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{self, Night, Ran, delta, expect, nearprint_in, not_checked, snapshot, text};

const NIGHTS: [&str; 2] = ["2026-11-19", "2026-11-20"];

/// Two nights with pairs, a short text and an empty one.
fn two_nights() -> Night {
    let night = Night::new("");
    let same = text(1, 60);
    night.documents(NIGHTS[0], &[("a", &same), ("b", &same), ("c", &text(2, 60)), ("s", "short"), ("e", " ")]);
    night.documents(NIGHTS[1], &[("a", &text(3, 60)), ("d", &same), ("f", &text(4, 60))]);
    for dt in NIGHTS {
        night.run(dt, &[]).expect_success();
    }
    night
}

fn check(night: &Night) -> Ran {
    nearprint_in(night.path(), &["check", "--config", "job.toml", "--json"])
}

fn gc(night: &Night, more: &[&str]) -> Value {
    let args = [&["store", "gc", "--config", "job.toml", "--grace-hours", "0", "--json"], more].concat();
    nearprint_in(night.path(), &args).expect_success().json()
}

/// Every published file.
fn published(night: &Night) -> Vec<PathBuf> {
    support::published(night.path()).into_keys().collect()
}

fn flip(path: &Path, bit: usize) {
    let mut content = std::fs::read(path).unwrap();
    content[bit / 8] ^= 1 << (bit % 8);
    std::fs::write(path, content).unwrap();
}

#[test]
fn what_two_nights_published_is_sound() {
    let night = two_nights();
    let found = check(&night).expect_success().json();
    assert_eq!((found["status"].as_str(), found["n_commits"].as_u64()), (Some("sound"), Some(2)), "{found}");
    assert_eq!((found["n_nights"].as_u64(), found["n_files"].as_u64()), (Some(2), Some(31)), "{found}");
    assert_eq!(found["n_unreferenced_files"], 0, "{found}");
    let one = ["check", "--store", "store", "--dt", NIGHTS[0], "--json"];
    assert_eq!(nearprint_in(night.path(), &one).expect_success().json()["n_nights"], 1);
    let none = ["check", "--store", "store", "--dt", "2026-11-18", "--json"];
    assert_eq!(nearprint_in(night.path(), &none).code, 66);
}

#[test]
fn every_flipped_bit_is_found_in_the_file_that_has_it() {
    let night = two_nights();
    let mut n = 0;
    for (i, name) in published(&night).into_iter().enumerate() {
        let path = night.path().join(&name);
        let bits = std::fs::read(&path).unwrap().len() * 8;
        // Text files more often: a bit there may leave a file that still reads.
        let flips = if name.extension().is_some_and(|e| e == "parquet") { 2 } else { 12 };
        for j in 0..if bits == 0 { 0 } else { flips } {
            let bit = (i * 7919 + j * 104_729 + j * j * 31) % bits;
            flip(&path, bit);
            let said = check(&night);
            assert_eq!(said.code, 65, "bit {bit} of {}: {}{}", name.display(), said.stdout, said.stderr);
            let problems = said.json()["problems"].to_string();
            assert!(problems.contains(name.to_str().unwrap()), "bit {bit} of {}: {problems}", name.display());
            flip(&path, bit);
            n += 1;
        }
    }
    assert!(n > 60, "{n}");
    check(&night).expect_success();
}

/// Returns what `check` says to people, and the command after `Next`.
fn told(night: &Night, more: &[&str]) -> (String, Option<String>) {
    let said = nearprint_in(night.path(), &[&["check", "--config", "job.toml"], more].concat()).stdout;
    let next = said.lines().find_map(|line| line.strip_prefix("Next: nearprint ")).map(str::to_owned);
    (said, next)
}

/// Types a command without quotes in the night's folder.
fn typed(night: &Night, line: &str) {
    nearprint_in(night.path(), &line.split(' ').collect::<Vec<_>>()).expect_success();
}

#[test]
fn damage_says_what_it_is_of_and_the_command_that_repairs_it() {
    let night = two_nights();
    let info = nearprint_in(night.path(), &["store", "info", "store", "--json"]).expect_success().json();
    let run = info["nights"][0]["run"].as_str().unwrap();
    let run_file = night.path().join(format!("store/runs/{run}/ids/part-00000.parquet"));
    let result = night.table_files(NIGHTS[0], "decisions").remove(0);
    let manifest = night.generation(NIGHTS[0]).join("manifest.json");
    let of_results = (format!("the results of {}", NIGHTS[0]), "results");
    let of_run = (format!("the files of {} in the store", NIGHTS[0]), "run_files");
    for (file, (named, of)) in [(&result, &of_results), (&manifest, &of_results), (&run_file, &of_run)] {
        std::fs::remove_file(file).unwrap();
        let found = check(&night).json()["problems"].clone();
        assert_eq!((&found[0]["of"], &found[0]["dt"]), (&Value::from(*of), &Value::from(NIGHTS[0])), "{found}");
        let (said, next) = told(&night, &[]);
        let url = found[0]["file"].as_str().unwrap();
        assert_eq!(said.matches(url).count(), 1, "{said}");
        assert!(said.contains("gone") && !said.contains("os error"), "{said}");
        assert!(said.contains(&format!("damaged: {named}, 1 problem: ")), "{said}");
        assert_eq!(said.contains("store: the store itself is sound"), *of == "results", "{said}");
        let mends = format!("run --config job.toml --dt {} --replace", NIGHTS[0]);
        assert_eq!(next.as_ref(), Some(&mends), "{said}");
        assert_eq!(told(&night, &["--store", "store"]).1, None, "the job file may be of another store");
        typed(&night, &mends);
        assert_eq!(told(&night, &[]).1, None);
        check(&night).expect_success();
    }
}

#[test]
fn a_stale_night_says_so_and_a_damaged_one_is_mended_with_it() {
    let night = two_nights();
    night.documents("2026-11-18", &[("z", &text(2, 60))]).run("2026-11-18", &["--late"]).expect_success();
    let found = check(&night).expect_success().json();
    assert_eq!(found["status"], "sound", "{found}");
    assert_eq!(found["stale"], serde_json::json!(NIGHTS), "{found}");
    assert_eq!(found["next"], "nearprint run --config job.toml --stale", "{found}");
    let (said, next) = told(&night, &[]);
    assert!(said.contains("2026-11-19, 2026-11-20: stale: nights before"), "{said}");
    let anew = "run --config job.toml --stale";
    assert_eq!(next.as_deref(), Some(anew));
    let one = nearprint_in(night.path(), &["check", "--config", "job.toml", "--dt", "2026-11-18", "--json"]);
    assert_eq!(one.expect_success().json()["stale"], serde_json::json!([]));
    // The repair of a night that is stale too makes it anew.
    std::fs::remove_file(night.generation(NIGHTS[1]).join("manifest.json")).unwrap();
    let (said, next) = told(&night, &[]);
    assert!(said.contains("the night is stale too") && said.contains("--no-breakers"), "{said}");
    let mends = format!("run --config job.toml --dt {} --replace", NIGHTS[1]);
    assert_eq!(next.as_ref(), Some(&mends));
    // What it was made from is not guessed.
    let refused = nearprint_in(night.path(), &["run", "--config", "job.toml", "--stale", "--no-breakers"]);
    assert!(
        refused.code == 65 && refused.stderr.contains(&format!("--dt {} --replace", NIGHTS[1])),
        "{}",
        refused.stderr
    );
    typed(&night, &mends);
    let found = check(&night).expect_success().json();
    assert_eq!((&found["status"], &found["stale"]), (&"sound".into(), &serde_json::json!([])), "{found}");
}

#[test]
fn an_output_in_the_place_of_the_store_is_called_so_and_names_its_store() {
    let night = two_nights();
    for command in [&["store", "info", "results"][..], &["store", "gc", "results"], &["check", "--store", "results"]] {
        let said = nearprint_in(night.path(), command);
        assert_eq!(said.code, 66, "{}", said.stderr);
        assert!(
            said.error().contains("results is no store: it is an output, the results of the store /")
                && said.error().contains("/store: name that store"),
            "{}",
            said.stderr
        );
        let hint = said.stderr.lines().find_map(|line| line.strip_prefix("hint: nearprint ")).unwrap();
        typed(&night, hint);
    }
    // A store that lies elsewhere is named by its identity.
    std::fs::create_dir(night.path().join("elsewhere")).unwrap();
    std::fs::rename(night.path().join("store"), night.path().join("elsewhere/store")).unwrap();
    let said = nearprint_in(night.path(), &["store", "info", "results"]);
    let identity = std::fs::read_to_string(night.path().join("results/_store.json")).unwrap();
    let identity: Value = serde_json::from_str(&identity).unwrap();
    assert!(said.error().contains(identity["store"].as_str().unwrap()), "{}", said.stderr);
}

#[test]
fn every_digit_of_a_commit_counts() {
    let night = two_nights();
    let path = night.path().join("store/_commits/00000002.json");
    let whole = std::fs::read(&path).unwrap();
    let digits: Vec<usize> = (0..whole.len()).filter(|&i| whole[i].is_ascii_digit()).collect();
    for &i in digits.iter().step_by(17) {
        let mut changed = whole.clone();
        changed[i] = if whole[i] == b'7' { b'6' } else { b'7' };
        std::fs::write(&path, &changed).unwrap();
        assert_eq!(check(&night).code, 65, "byte {i}");
    }
    std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    assert_eq!(check(&night).code, 65, "without its line break");
    let refused = night.run(NIGHTS[1], &[]);
    assert_eq!(refused.code, 65, "a run does not build on it: {}", refused.stderr);
}

#[test]
fn commits_without_a_checksum_of_their_own_are_refused() {
    let night = two_nights();
    for number in [1, 2] {
        let path = night.path().join(format!("store/_commits/0000000{number}.json"));
        let whole = std::fs::read_to_string(&path).unwrap();
        let at = whole.find(",\"sha256\":\"").unwrap();
        let own = whole.rfind(",\"sha256\":\"").unwrap();
        assert!(at < own, "the commit's own comes last");
        std::fs::write(&path, format!("{}}}\n", &whole[..own])).unwrap();
    }
    assert_eq!(check(&night).code, 65);
    assert_eq!(night.run(NIGHTS[1], &[]).code, 65);
}

#[test]
fn a_night_that_was_committed_and_no_more_is_behind_and_completed_by_the_next_run() {
    let night = two_nights();
    let complete = snapshot(&night.path().join("results"));
    // The store's commit was the last thing that the run did; then it got as far as some of the tables.
    for tables in [&delta::TABLES[..], &["decisions"]] {
        for table in tables {
            std::fs::remove_file(night.path().join(format!("results/{table}/_delta_log/00000000000000000001.json")))
                .unwrap();
        }
        let found = check(&night).expect_success().json();
        assert_eq!((&found["status"], &found["behind"][0]), (&Value::from("behind"), &Value::from(NIGHTS[1])));
        // A run of any date completes it.
        night.run(NIGHTS[0], &[]).expect_success();
        assert_eq!(snapshot(&night.path().join("results")), complete);
    }
}

#[test]
fn gc_removes_what_no_commit_names_and_nothing_else() {
    let night = two_nights();
    night.documents(NIGHTS[1], &[("a", &text(3, 60)), ("d", &text(5, 60))]);
    night.run(NIGHTS[1], &["--replace"]).expect_success();
    // Of killed runs: a night that was never published, a probe, half-written files; and files of other people.
    let root = night.path().to_path_buf();
    let put = |name: &str| {
        std::fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
        std::fs::write(root.join(name), "x").unwrap();
    };
    let digest = "0123456789abcdef0123456789abcdef";
    let doomed = [
        format!("results/pairs/dt=2026-11-21/part-00000-{digest}.parquet"),
        format!("results/_nearprint/dt=2026-11-21/gen={digest}/manifest.json"),
        "results/_nearprint/_probe/0011223344556677".to_owned(),
        format!("store/runs/{digest}/ids/part-00000.parquet"),
        format!("store/segments/{digest}/part-00000.parquet"),
        "store/_probe/0011223344556677".to_owned(),
        format!("results/pairs/dt={}/.nearprint-abcdefghijklmnopqrstuvwx.tmp", NIGHTS[0]),
        "results/pairs/_delta_log/.nearprint-abcdefghijklmnopqrstuvwx.tmp".to_owned(),
    ];
    let spared = [
        "results/notes#1".to_owned(),
        format!("results/dt=2026-11-21/gen={digest}/pairs/part-00000.parquet"),
        "results/pairs/dt=2026-11-21/mine.parquet".to_owned(),
        "results/pairs/_delta_log/mine.crc".to_owned(),
        "store/readme".to_owned(),
    ];
    doomed.iter().chain(&spared).for_each(|name| put(name));
    let before = check(&night).expect_success().json();
    let n_unreferenced = before["n_unreferenced_files"].as_u64().unwrap();
    assert!(n_unreferenced > doomed.len() as u64, "{before}");

    let files = snapshot(&root);
    let listed = gc(&night, &["--dry-run"]);
    assert_eq!((listed["n_files"].as_u64(), snapshot(&root) == files), (Some(n_unreferenced), true), "{listed}");
    let young = nearprint_in(&root, &["store", "gc", "--config", "job.toml", "--json"]).expect_success().json();
    assert_eq!((young["n_files"].as_u64(), snapshot(&root) == files), (Some(0), true), "{young}");

    let done = gc(&night, &[]);
    assert_eq!(done["n_files"], n_unreferenced, "{done}");
    for name in &doomed {
        assert!(!root.join(name).exists(), "{name}");
    }
    for name in &spared {
        assert!(root.join(name).exists(), "{name}");
    }
    let after = check(&night).expect_success().json();
    assert_eq!((after["status"].as_str(), after["n_unreferenced_files"].as_u64()), (Some("sound"), Some(0)), "{after}");
    assert_eq!(gc(&night, &[])["n_files"], 0);
    for dt in NIGHTS {
        assert_eq!(night.run(dt, &[]).expect_success().json()["status"], "already_published");
    }
    // What was replaced can be made again, to the same names.
    night.documents(NIGHTS[1], &[("a", &text(3, 60)), ("d", &text(1, 60)), ("f", &text(4, 60))]);
    night.run(NIGHTS[1], &["--replace"]).expect_success();
    assert_eq!(check(&night).expect_success().json()["status"], "sound");
}

#[test]
fn a_run_does_not_make_anew_what_a_gc_is_deleting() {
    let night = two_nights();
    let generation = night.generation(NIGHTS[1]);
    let name = generation.file_name().unwrap().to_str().unwrap().to_owned();
    let folder = night.path().join("documents");
    let first = std::fs::read(folder.join("dt=2026-11-20/part-0.parquet")).unwrap();
    let modified = std::fs::metadata(folder.join("dt=2026-11-20/part-0.parquet")).unwrap().modified().unwrap();
    night.documents(NIGHTS[1], &[("a", &text(6, 60))]).run(NIGHTS[1], &["--replace"]).expect_success();
    // A `store gc` that announced its work, and was then killed before it deleted anything.
    let commits = night.path().join("store/_commits");
    let strace = std::process::Command::new("strace").arg("-V").output().is_ok();
    if !strace {
        return not_checked("no strace");
    }
    let killed = std::process::Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=rename,renameat,renameat2", "-e"])
        .args(["inject=rename,renameat,renameat2:signal=KILL", "-P"])
        .arg(generation.join("manifest.json"))
        .args([env!("CARGO_BIN_EXE_nearprint"), "store", "gc", "--config", "job.toml", "--grace-hours", "0"])
        .current_dir(night.path())
        .output()
        .unwrap();
    assert!(!killed.status.success());
    let newest = std::fs::read_to_string(commits.join("00000004.json")).unwrap();
    assert!(newest.contains("\"removing\"") && newest.contains(&name), "{newest}");
    assert_eq!(check(&night).expect_success().json()["status"], "sound");
    // The documents that were replaced, as they were: their generation is the one that is going.
    let file = folder.join("dt=2026-11-20/part-0.parquet");
    std::fs::write(&file, first).unwrap();
    std::fs::File::options().write(true).open(&file).unwrap().set_modified(modified).unwrap();
    let refused = night.run(NIGHTS[1], &["--replace"]);
    assert_eq!(refused.code, 75, "{}", refused.stderr);
    assert!(refused.error().contains("store gc"), "{}", refused.stderr);
    // Other nights are not concerned, and what was announced goes on to be announced.
    night.documents("2026-11-21", &[("z", &text(9, 60))]).run("2026-11-21", &[]).expect_success();
    assert!(std::fs::read_to_string(commits.join("00000005.json")).unwrap().contains(&name));
    gc(&night, &[]);
    assert!(!generation.exists());
    assert_eq!(check(&night).expect_success().json()["status"], "sound");
}

#[test]
fn a_table_of_changes_whose_log_is_lost_is_damaged_and_its_files_stay() {
    let night = two_nights();
    let (changes, lost) = (night.path().join("results/changes"), night.path().join("lost"));
    std::fs::rename(changes.join("_delta_log"), &lost).unwrap();
    let found = check(&night);
    assert_eq!(found.code, 65, "{}", found.stderr);
    let problems = found.json()["problems"].clone();
    assert_eq!((problems.as_array().unwrap().len(), &problems[0]["of"]), (1, &"changes".into()), "{problems}");
    let files = snapshot(&changes);
    gc(&night, &[]);
    assert_eq!(snapshot(&changes), files);
    std::fs::rename(&lost, changes.join("_delta_log")).unwrap();
    check(&night).expect_success();
    // No run writes a log that begins with its own set, and none adds a set that the table would lack.
    std::fs::rename(changes.join("_delta_log"), &lost).unwrap();
    let refused = night.documents("2026-11-21", &[("z", &text(9, 60))]).run("2026-11-21", &[]);
    expect(&refused, 65, &["results/changes: its log is gone", "move the folder `changes` away"]);
    assert!(!changes.join("_delta_log").exists());
    assert_eq!(check(&night).code, 65);
    std::fs::remove_dir_all(&lost).unwrap();
    // Without the folder, the table begins anew.
    std::fs::rename(&changes, &lost).unwrap();
    night.documents("2026-11-22", &[("y", &text(10, 60))]).run("2026-11-22", &[]).expect_success();
    check(&night).expect_success();
}

#[test]
fn what_a_killed_first_night_left_keeps_no_table_from_being_written() {
    let night = Night::new("");
    night.documents("2026-11-20", &[("a", &text(1, 60))]).run("2026-11-20", &[]).expect_success();
    let (results, left) = (night.path().join("results"), night.path().join("left"));
    std::fs::rename(&results, &left).unwrap();
    std::fs::remove_dir_all(night.path().join("store")).unwrap();
    // The files of a night that was never committed, and no log.
    for table in ["changes", "decisions", "pairs"] {
        let folder = format!("{table}/dt=2026-11-20");
        std::fs::create_dir_all(results.join(&folder)).unwrap();
        for file in std::fs::read_dir(left.join(&folder)).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), results.join(&folder).join(file.file_name())).unwrap();
        }
    }
    night.documents("2026-11-20", &[("b", &text(2, 60))]).run("2026-11-20", &[]).expect_success();
    for table in ["changes", "decisions", "pairs"] {
        assert!(results.join(table).join("_delta_log").is_dir(), "{table}");
    }
    check(&night).expect_success();
    night.documents("2026-11-21", &[("c", &text(3, 60))]).run("2026-11-21", &[]).expect_success();
    assert_eq!(check(&night).expect_success().json()["status"], "sound");
}
