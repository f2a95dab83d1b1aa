//! nearprint touches what is its own and nothing else: temporary folders, stores, outputs, and what `store gc` deletes.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use crate::changes::{assert_changes_fold, sets};
use crate::support::{self, Night, Signal, command, delta, expect, nearprint_in, snapshot, text};

const DT: &str = "2026-11-20";

fn private_folder(path: &Path) {
    std::fs::create_dir_all(path).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).unwrap();
}

fn one_night(job: &str) -> Night {
    let night = Night::new(job);
    night.documents(DT, &[("a", &text(1, 60)), ("b", &text(1, 60)), ("c", &text(2, 60))]);
    night
}

#[test]
fn private_folders_named_as_mktemp_names_them_are_not_taken_for_those_of_a_killed_run() {
    let night = one_night("[resources]\nspill_dir = \"spill\"\n");
    let spill = night.path().join("spill");
    // `mktemp -d -t nearprint-XXXXXX`, with a wrapper's work in it; a store under umask 077; the full form of a name, with somebody's file.
    let mine =
        ["nearprint-Ab12Cd", "nearprint-stores", "nearprint-abcdefghijklmnopqrstuvwx"].map(|name| spill.join(name));
    for folder in &mine {
        private_folder(folder);
        std::fs::write(folder.join("job.toml"), "mine").unwrap();
    }
    night.run(DT, &["--store", "spill/nearprint-stores"]).expect_success();
    assert!(mine.iter().all(|folder| folder.join("job.toml").exists()));
    // A rerun finds its store.
    let again = night.run(DT, &["--store", "spill/nearprint-stores"]).expect_success();
    assert_eq!(again.json()["status"], "already_published");
}

/// The folder that a run which was killed left, with its marker.
fn left_by_a_killed_run(night: &Night) -> PathBuf {
    let spill = night.path().join("spill");
    std::fs::create_dir_all(&spill).unwrap();
    let rows: Vec<(String, String)> = (0..20_000).map(|i| (format!("d{i}"), text(i, 30))).collect();
    let rows: Vec<(&str, &str)> = rows.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect();
    night.documents("2026-11-19", &rows);
    let run = night.command("2026-11-19", &[]).start().unwrap();
    let began = Instant::now();
    let marked = loop {
        let found = std::fs::read_dir(&spill).unwrap().map(|e| e.unwrap().path()).next();
        if let Some(folder) = found.filter(|f| std::fs::metadata(f.join(MARKER)).is_ok_and(|m| m.len() > 0)) {
            break folder;
        }
        assert!(began.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(2));
    };
    run.signal(Signal::SIGKILL).unwrap();
    run.wait().unwrap();
    std::fs::remove_dir_all(night.path().join("documents/dt=2026-11-19")).unwrap();
    marked
}

const MARKER: &str = ".nearprint-temporary-folder";

#[test]
fn only_the_folder_that_a_marker_names_goes_and_never_one_that_holds_a_place_of_the_job() {
    let night = one_night("[resources]\nspill_dir = \"spill\"\n");
    let dead = left_by_a_killed_run(&night);
    // A copy has another name and inode; the dead folder itself holds the store of this run, then its output, then its job file.
    let copy = night.path().join("spill/nearprint-bbbbbbbbbbbbbbbbbbbbbbbb");
    assert!(Command::new("cp").arg("-a").arg(&dead).arg(&copy).status().unwrap().success());
    let inside = |name: &str| dead.join(name).to_str().unwrap().to_owned();
    night.run(DT, &["--store", &inside("store"), "--output", "results1"]).expect_success();
    assert!(dead.join("store/_commits/00000001.json").exists());
    night.run(DT, &["--store", "store1", "--output", &inside("results")]).expect_success();
    assert!(!delta::night(&dead.join("results"), "decisions", DT).unwrap().is_empty());
    let job = std::fs::read_to_string(night.path().join("job.toml")).unwrap();
    let spill = night.path().join("spill").display().to_string();
    std::fs::write(dead.join("job.toml"), job.replace("\"spill\"", &format!("{spill:?}"))).unwrap();
    let other = ["run", "--config", &inside("job.toml"), "--dt", DT, "--documents", "documents"];
    nearprint_in(night.path(), &[&other[..], &["--store", "store2", "--output", "results2"]].concat()).expect_success();
    assert!(dead.join("job.toml").exists());
    // Where nothing of the job lies in it, it goes, and the copy stays.
    night.run(DT, &[]).expect_success();
    assert_eq!((dead.exists(), copy.exists()), (false, true));
}

#[test]
fn a_store_that_is_not_there_is_not_made_unless_one_says_so() {
    let night = one_night("");
    let job = std::fs::read_to_string(night.path().join("job.toml")).unwrap();
    std::fs::write(night.path().join("job.toml"), job.replace("create_store = true\n", "")).unwrap();
    expect(&night.run(DT, &[]), 66, &["no store at store", "mounted", "--create-store", "store init"]);
    assert!(!night.path().join("store").exists() && !night.path().join("results").exists());
    let made = nearprint_in(night.path(), &["store", "init", "store", "--json"]).expect_success().json();
    assert_eq!(made["status"], "made");
    assert_eq!(nearprint_in(night.path(), &["store", "init", "store", "--json"]).json()["status"], "already_there");
    let info = nearprint_in(night.path(), &["store", "info", "store"]);
    expect(&info, 66, &["no night in the store at", "has no night yet", "run one first"]);
    night.run(DT, &[]).expect_success();
    // The disk is not mounted any more, or the path is mistyped: also where the job says create_store.
    std::fs::write(night.path().join("job.toml"), job).unwrap();
    let before = snapshot(&night.path().join("results"));
    expect(
        &night.run(DT, &["--store", "stroe"]),
        73,
        &["another store publishes into it", "check the place of the store"],
    );
    expect(&night.run("2026-11-21", &["--store", "stroe"]), 73, &[]);
    assert!(!night.path().join("stroe").exists());
    assert_eq!(snapshot(&night.path().join("results")), before);
}

#[test]
fn two_stores_do_not_publish_into_one_output_and_gc_leaves_anothers_alone() {
    let night = one_night("");
    night.run(DT, &[]).expect_success();
    let in_other = ["--store", "other", "--output", "results-of-other"];
    night.run(DT, &in_other).expect_success();
    expect(&night.run(DT, &["--store", "other", "--replace"]), 73, &["another store publishes into it"]);
    // One store may have several outputs.
    night.documents("2026-11-21", &[("z", &text(9, 60))]);
    night.run("2026-11-21", &["--output", "second"]).expect_success();
    let whole = snapshot(&night.path().join("results-of-other"));
    let named = ["store", "gc", "store", "--output", "results-of-other", "--grace-hours", "0"];
    expect(&nearprint_in(night.path(), &named), 73, &["another store publishes into it"]);
    // Results of before outputs bore a store's name are not looked at.
    std::fs::remove_file(night.path().join("results-of-other/_store.json")).unwrap();
    let done = nearprint_in(night.path(), &[&named[..], &["--json"]].concat()).expect_success().json();
    assert_eq!(done["foreign_outputs"][0], "results-of-other");
    assert_eq!(snapshot(&night.path().join("results-of-other")).len(), whole.len() - 1);
}

#[test]
fn a_damaged_identity_is_told_by_its_fields_and_not_by_flags_of_the_same_name() {
    let night = one_night("");
    night.run(DT, &[]).expect_success();
    std::fs::write(night.path().join("store/_store.json"), "{\"version\": 1, \"stores\": \"x\"}").unwrap();
    let done = night.run(DT, &["--store", "store"]);
    assert!(done.error().contains("expected one of 'version', 'store', 'sha256'"), "{}", done.stderr);
}

#[test]
fn a_night_that_is_published_here_but_unknown_to_the_store_is_refused_unless_replaced() {
    let night = one_night("");
    night.run(DT, &[]).expect_success();
    let store = night.path().join("store");
    let early = night.path().join("early");
    assert!(Command::new("cp").arg("-a").arg(&store).arg(&early).status().unwrap().success());
    night.documents("2026-11-21", &[("z", &text(9, 60))]);
    night.run("2026-11-21", &[]).expect_success();
    // The store is put back to what it was a night ago.
    std::fs::remove_dir_all(&store).unwrap();
    std::fs::rename(&early, &store).unwrap();
    night.documents("2026-11-21", &[("z", &text(9, 60)), ("y", &text(8, 60))]);
    expect(&night.run("2026-11-21", &[]), 73, &["does not know", "--replace"]);
    // Whoever follows the changes of the results would miss what it adds, so the table begins anew.
    expect(&night.run("2026-11-21", &["--replace"]), 65, &["set of changes 2", "move the folder `changes` away"]);
    std::fs::rename(night.path().join("results/changes"), night.path().join("changes")).unwrap();
    night.run("2026-11-21", &["--replace"]).expect_success();
}

#[test]
fn gc_deletes_files_that_nearprint_writes_and_no_others() {
    let night = one_night("");
    night.run(DT, &[]).expect_success();
    let replaced = night.generation(DT).strip_prefix(night.path()).unwrap().display().to_string();
    night.documents(DT, &[("a", &text(5, 60))]).run(DT, &["--replace"]).expect_success();
    let run = "store/runs/0123456789abcdef0123456789abcdef";
    let mine = [
        format!("{replaced}/notes.md"),
        format!("results/pairs/dt={DT}/mine.parquet"),
        format!("results/pairs/dt={DT}/part-00000.parquet"),
        "results/pairs/_delta_log/mine.json".to_owned(),
        format!("{run}/readme"),
        format!("{run}/ids/part-of-mine.parquet"),
        "store/_probe/mine".to_owned(),
        "store/_commits/backup#1".to_owned(),
        format!("results/dt={DT}/.nearprint-notes.tmp"),
        format!("results/dt={DT}/table#12"),
    ];
    for name in &mine {
        let path = night.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "mine").unwrap();
    }
    nearprint_in(night.path(), &["store", "gc", "store", "--grace-hours", "0"]).expect_success();
    // A run that writes to a folder removes what killed writers left there, and nothing that only looks like it.
    night.documents(DT, &[("a", &text(6, 60))]).run(DT, &["--replace"]).expect_success();
    for name in &mine {
        assert!(night.path().join(name).exists(), "{name}");
    }
    assert!(!night.path().join(&replaced).join("manifest.json").exists(), "what is nearprint's went");
}

/// Sets when a file was written.
fn backdate(path: &Path, age: Duration) {
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now().checked_sub(age).unwrap()).unwrap();
}

#[test]
fn a_gc_that_slept_until_others_took_it_for_dead_deletes_nothing_more() {
    let night = one_night("");
    night.run(DT, &[]).expect_success();
    let documents = night.path().join(format!("documents/dt={DT}/part-0.parquet"));
    let (first, modified) =
        (std::fs::read(&documents).unwrap(), std::fs::metadata(&documents).unwrap().modified().unwrap());
    let generation = night.generation(DT);
    night.documents(DT, &[("q", &text(6, 60))]).run(DT, &["--replace"]).expect_success();
    // Enough to delete that it can be stopped in between.
    let digest = generation.to_str().unwrap().rsplit_once('=').unwrap().1.to_owned();
    let files = night.path().join(format!("results/decisions/dt={DT}"));
    for i in 0..30_000 {
        std::fs::write(files.join(format!("part-{:05}-{digest}.parquet", i + 10)), "x").unwrap();
    }
    let args = ["store", "gc", "--config", "job.toml", "--grace-hours", "0", "--json"];
    let gc = command(night.path(), &args).start().unwrap();
    let commits = night.path().join("store/_commits");
    let began = Instant::now();
    while !commits.join("00000003.json").exists() || generation.join("manifest.json").exists() {
        assert!(began.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
    }
    gc.signal(Signal::SIGSTOP).unwrap();
    let n_left = std::fs::read_dir(&files).unwrap().count();
    assert!(n_left > 1000, "stopped too late: {n_left}");
    // An hour later somebody makes the very night again that it deletes.
    backdate(&commits.join("00000003.json"), Duration::from_secs(2 * 3600));
    std::fs::write(&documents, first).unwrap();
    std::fs::File::options().write(true).open(&documents).unwrap().set_modified(modified).unwrap();
    night.run(DT, &["--replace"]).expect_success();
    assert!(generation.join("manifest.json").exists());
    gc.signal(Signal::SIGCONT).unwrap();
    let done = gc.wait().unwrap();
    let check = nearprint_in(night.path(), &["check", "--config", "job.toml", "--json"]);
    assert_eq!((check.code, check.json()["status"].as_str()), (0, Some("sound")), "{}", check.stdout);
    assert_eq!(done.code, 75, "{}", done.stderr);
    assert!(done.stderr.contains("took this `store gc` for dead"));
}

#[test]
fn folders_that_vanish_empty_under_a_writer_are_made_again() {
    let night = Night::new("");
    let over = AtomicBool::new(false);
    let roots = [night.path().join("store"), night.path().join("results")];
    std::thread::scope(|scope| {
        // As `store gc` does, but all the time.
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let mut open: Vec<PathBuf> = roots.to_vec();
                while let Some(folder) = open.pop() {
                    let below = std::fs::read_dir(&folder).into_iter().flatten().flatten();
                    open.extend(below.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path()));
                    let _ = std::fs::remove_dir(&folder);
                }
            }
        });
        for day in 10..18 {
            let dt = format!("2026-11-{day}");
            night.documents(&dt, &[("a", &text(day, 60))]);
            let done = night.run(&dt, &[]);
            assert!([0, 75].contains(&done.code), "{}", done.stderr);
        }
        over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_store_whose_commits_are_lost_does_not_begin_anew() {
    let night = one_night("");
    night.run(DT, &[]).expect_success();
    std::fs::rename(night.path().join("store/_commits"), night.path().join("lost")).unwrap();
    night.documents("2026-11-21", &[("z", &text(9, 60))]);
    expect(&night.run("2026-11-21", &[]), 73, &["has no commit", "restore its _commits"]);
    std::fs::rename(night.path().join("lost"), night.path().join("store/_commits")).unwrap();
    // A file that only looks like a commit's is none.
    std::fs::write(night.path().join("store/_commits/7.json"), "mine").unwrap();
    night.run("2026-11-21", &[]).expect_success();
}

#[test]
fn a_store_that_has_segments_and_no_commits_begins_in_no_output() {
    let night = one_night("");
    night.run(DT, &[]).expect_success();
    let run = |dt: &str, more: &[&str]| night.documents(dt, &[("z", &text(9, 60))]).run(dt, more);
    run("2026-11-21", &[]).expect_success();
    nearprint_in(night.path(), &["store", "compact", "store"]).expect_success();
    let (commits, identity) = (night.path().join("store/_commits"), night.path().join("store/_store.json"));
    std::fs::rename(&commits, night.path().join("lost")).unwrap();
    let lost = ["no commit", "restore its _commits"];
    for _ in 0..2 {
        let fresh = ["--output", "fresh"];
        for more in [&fresh[..], &[&fresh[..], &["--create-store"]].concat(), &[&fresh[..], &["--dry-run"]].concat()] {
            expect(&run("2026-11-22", more), 73, &lost);
        }
        expect(&nearprint_in(night.path(), &["store", "init", "store"]), 73, &lost);
        expect(&nearprint_in(night.path(), &["check", "--config", "job.toml"]), 73, &lost);
        // Without its identity it is no other store.
        if identity.exists() {
            std::fs::rename(&identity, night.path().join("identity")).unwrap();
        }
    }
    std::fs::rename(night.path().join("lost"), &commits).unwrap();
    std::fs::rename(night.path().join("identity"), &identity).unwrap();
    run("2026-11-22", &[]).expect_success();
}

/// Two first nights were killed before their commits.
#[test]
fn run_files_without_a_commit_are_no_store_that_is_lost() {
    let night = one_night("");
    for name in ["0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"] {
        std::fs::create_dir_all(night.path().join("store/runs").join(name)).unwrap();
    }
    let done = night.run(DT, &[]).expect_success();
    assert!(done.stderr.contains("if nights were published, stop, and restore its _commits"), "{}", done.stderr);
    assert!(!night.documents("2026-11-21", &[("z", &text(9, 60))]).run("2026-11-21", &[]).stderr.contains("_commits"));
}

#[test]
fn a_store_that_has_lost_its_identity_is_damaged_and_no_new_one_is_drawn() {
    let night = one_night("");
    night.run(DT, &[]).expect_success();
    let identity = night.path().join("store/_store.json");
    std::fs::remove_file(&identity).unwrap();
    let checked = nearprint_in(night.path(), &["check", "--config", "job.toml", "--json"]);
    let found = checked.json();
    assert_eq!(
        (checked.code, &found["status"], &found["problems"][0]["of"]),
        (65, &"damaged".into(), &"identity".into())
    );
    night.documents("2026-11-21", &[("z", &text(9, 60))]);
    for more in [&[][..], &["--output", "fresh"], &["--dry-run"]] {
        expect(&night.run("2026-11-21", more), 65, &["store/_store.json", "copy that of one of its outputs there"]);
    }
    assert!(!identity.exists());
    std::fs::copy(night.path().join("results/_store.json"), &identity).unwrap();
    night.run("2026-11-21", &[]).expect_success();
    nearprint_in(night.path(), &["check", "--config", "job.toml"]).expect_success();
}

#[test]
fn no_store_is_begun_in_an_output_or_a_file() {
    let night = one_night("");
    night.run(DT, &[]).expect_success();
    night.documents("2026-11-21", &[("z", &text(9, 60))]);
    let is_output = ["results is no store: it is an output", "name that store"];
    for more in [&[][..], &["--create-store"], &["--dry-run"]] {
        let done = night.run("2026-11-21", &[&["--store", "results", "--output", "other"], more].concat());
        expect(&done, 66, &is_output);
    }
    expect(&nearprint_in(night.path(), &["store", "init", "results"]), 66, &is_output);
    std::fs::write(night.path().join("file"), "mine").unwrap();
    expect(&nearprint_in(night.path(), &["store", "init", "file"]), 73, &["file"]);
}

/// The store's nights come back as they were while another night is made; the sets of changes in between do not.
#[test]
fn a_night_follows_all_sets_of_changes_that_others_made_meanwhile() {
    let night = one_night("[resources]\nspill_dir = \"spill\"\n");
    let spill = night.path().join("spill");
    std::fs::create_dir(&spill).unwrap();
    night.run(DT, &[]).expect_success();
    let rows: Vec<(String, String)> = (0..20_000).map(|i| (format!("d{i}"), text(i, 30))).collect();
    let rows: Vec<(&str, &str)> = rows.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect();
    let making = night.documents("2026-11-21", &rows).command("2026-11-21", &[]).start().unwrap();
    // The folder is made after the store was opened.
    while std::fs::read_dir(&spill).unwrap().next().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    making.signal(Signal::SIGSTOP).unwrap();
    nearprint_in(night.path(), &["store", "drop-night", "store", "--dt", DT]).expect_success();
    night.run(DT, &[]).expect_success();
    making.signal(Signal::SIGCONT).unwrap();
    let done = making.wait().unwrap();
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stderr.contains("joining again"), "{}", done.stderr);
    let numbers: Vec<i64> = sets(&night.path().join("results")).into_keys().collect();
    assert_eq!(numbers, [1, 2, 3, 4], "{}", done.stderr);
    assert_changes_fold(&night, &[DT, "2026-11-21"], "four commits");
}

#[test]
fn an_output_that_is_not_mounted_is_not_begun_anew() {
    let night = one_night("");
    night.run(DT, &[]).expect_success();
    night.documents("2026-11-21", &[("z", &text(9, 60))]);
    let results = night.path().join("results");
    std::fs::rename(&results, night.path().join("mounted")).unwrap();
    std::fs::create_dir(&results).unwrap();
    for dt in [DT, "2026-11-21"] {
        expect(&night.run(dt, &[]), 66, &["no results of earlier nights at results", "mounted"]);
        assert_eq!(std::fs::read_dir(&results).unwrap().count(), 0, "nothing is written to the mount point");
    }
    let of_night = ["--config", "job.toml", "--dt", DT];
    for command in [&["report"][..], &["check"], &["audit"], &["filter", "--output", "kept"]] {
        let said = nearprint_in(night.path(), &[command, &of_night].concat());
        expect(&said, 66, &["no results of earlier nights at results", "mounted"]);
    }
    std::fs::remove_dir(&results).unwrap();
    std::fs::rename(night.path().join("mounted"), &results).unwrap();
    night.run("2026-11-21", &[]).expect_success();
    // Removed on purpose: the store's name is enough.
    std::fs::remove_dir_all(&results).unwrap();
    std::fs::create_dir(&results).unwrap();
    std::fs::copy(night.path().join("store/_store.json"), results.join("_store.json")).unwrap();
    night.documents("2026-11-22", &[("y", &text(8, 60))]).run("2026-11-22", &[]).expect_success();
}

#[test]
fn a_night_that_is_dropped_while_it_is_replaced_is_not_called_published() {
    let night = Night::new("");
    let rows: Vec<(String, String)> = (0..20_000).map(|i| (format!("d{i}"), text(i, 30))).collect();
    let rows: Vec<(&str, &str)> = rows.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect();
    night.documents(DT, &rows).run(DT, &[]).expect_success();
    let replacing = night.command(DT, &["--replace"]).start().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    replacing.signal(Signal::SIGSTOP).unwrap();
    nearprint_in(night.path(), &["store", "drop-night", "store", "--dt", DT]).expect_success();
    replacing.signal(Signal::SIGCONT).unwrap();
    let done = replacing.wait().unwrap();
    let info = nearprint_in(night.path(), &["store", "info", "store", "--json"]).expect_success().json();
    let is_there = info["nights"].as_array().unwrap().iter().any(|n| n["dt"] == DT);
    assert_eq!((done.code == 0, night.is_in_tables(DT)), (is_there, is_there), "{}", done.stderr);
}

/// A folder in the place of the manifest fails the night after its tables are written.
#[test]
fn a_night_that_fails_takes_back_what_it_wrote_and_no_more() {
    let night = one_night("");
    night.run(DT, &[]).expect_success();
    let generation = night.generation(DT).file_name().unwrap().to_str().unwrap().to_owned();
    let part = format!("decisions/dt={DT}/part-00000-{}.parquet", generation.strip_prefix("gen=").unwrap());
    let published = support::published(night.path());
    let there = |folder: &str| {
        let files = snapshot(&night.path().join(folder)).into_keys();
        files.map(|file| file.display().to_string()).collect::<Vec<_>>()
    };
    let again = ["--store", "store-2", "--output", "results-2"];
    let in_its_way = night.path().join(format!("results-2/_nearprint/dt={DT}/{generation}/manifest.json"));
    std::fs::create_dir_all(in_its_way.join("empty")).unwrap();
    let failed = night.run(DT, &again);
    expect(&failed, 64, &["manifest.json: cannot write", "Is a directory"]);
    assert_eq!(there("results-2"), ["_store.json"]);
    assert_eq!(there("store-2"), ["_store.json"]);
    assert!(!night.path().join("results-2/pairs").exists(), "empty folders go too");

    // Somebody else has written this file of the same generation.
    let others = night.path().join("results-2").join(&part);
    std::fs::create_dir_all(others.parent().unwrap()).unwrap();
    std::fs::copy(night.path().join("results").join(&part), others).unwrap();
    assert_eq!(night.run(DT, &again).code, 64);
    assert_eq!(there("results-2"), ["_store.json", &part]);

    std::fs::remove_dir_all(in_its_way).unwrap();
    night.run(DT, &again).expect_success();
    assert_eq!(support::published(night.path()), published);
}

/// A folder in the place of the next commit fails the commit alone.
#[test]
fn a_night_whose_commit_fails_leaves_the_published_generation_and_nothing_else() {
    let night = one_night("");
    night.run(DT, &[]).expect_success();
    let published = support::published(night.path());
    night.documents(DT, &[("a", &text(1, 60)), ("d", &text(4, 60))]);
    let commit = night.path().join("store/_commits/00000002.json");
    std::fs::create_dir_all(commit.join("empty")).unwrap();
    let failed = night.run(DT, &["--replace", "--no-breakers"]);
    assert_ne!(failed.code, 0, "{}", failed.stdout);
    std::fs::remove_dir_all(commit).unwrap();
    assert_eq!(support::published(night.path()), published, "{}", failed.stderr);
}

#[test]
fn stale_nights_of_another_output_are_left_to_their_own_job() {
    let night = Night::new("");
    for (day, seed) in [("2026-11-20", 1), ("2026-11-21", 2), ("2026-11-22", 3)] {
        night.documents(day, &[("a", &text(seed, 60)), (day, &text(seed + 9, 60))]);
    }
    night.run("2026-11-20", &[]).expect_success();
    night.run("2026-11-21", &["--output", "second"]).expect_success();
    night.run("2026-11-22", &[]).expect_success();
    night.documents("2026-11-20", &[("b", &text(7, 60))]);
    night.run("2026-11-20", &["--replace", "--no-breakers"]).expect_success();
    let second = snapshot(&night.path().join("second"));
    let stale = ["run", "--config", "job.toml", "--stale", "--no-breakers", "--json"];
    let would = nearprint_in(night.path(), &[&stale[..], &["--dry-run"]].concat()).expect_success();
    assert_eq!(would.json()["stale"], serde_json::json!(["2026-11-22"]));
    let done = nearprint_in(night.path(), &stale).expect_success();
    assert!(done.stderr.contains("stale, and published in another output"), "{}", done.stderr);
    let done = done.json();
    assert_eq!((&done["n_published"], &done["stale"]), (&1.into(), &serde_json::json!(["2026-11-21"])));
    assert_eq!(snapshot(&night.path().join("second")), second, "the other job's results stay as they are");
    let of_other = nearprint_in(night.path(), &[&stale[..], &["--output", "second"]].concat()).expect_success().json();
    assert_eq!(of_other["nights"][0]["dt"], "2026-11-21");
}
