//! Nobody watches: runs that are killed, that meet each other, or that are asked for what they must not do.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{
    NEARPRINT, Night, Running, Signal, command, delta, hangs_up, nearprint_in, not_checked, snapshot, text,
};

const DT: &str = "2026-11-20";

fn start(night: &Night, more: &[&str]) -> Running {
    night.command(DT, more).start().unwrap()
}

fn many_documents(night: &Night, n: u64) {
    let texts: Vec<(String, String)> = (0..n).map(|i| (format!("{i:06}"), text(i / 2, 60))).collect();
    let rows: Vec<(&str, &str)> = texts.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect();
    night.documents(DT, &rows);
}

fn temporary(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect()
}

#[test]
fn the_temporary_folders_of_a_killed_run_are_removed_by_the_next_one_and_no_others() {
    let night = Night::new("[resources]\nspill_dir = \"spill\"\n");
    let spill = night.path().join("spill");
    std::fs::create_dir(&spill).unwrap();
    many_documents(&night, 30_000);
    let killed = start(&night, &[]);
    let began = Instant::now();
    while temporary(&spill).is_empty() {
        assert!(began.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(2));
    }
    for folder in temporary(&spill) {
        assert_eq!(std::fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
    }
    killed.signal(Signal::SIGKILL).unwrap();
    killed.wait().unwrap();
    assert!(!temporary(&spill).is_empty());
    assert!(!night.is_in_tables(DT));
    // Not ours: a folder that is in use, one of another form, a link, a file.
    let in_use = spill.join("nearprint-inuseinuseinuseinuseinus");
    std::fs::create_dir(&in_use).unwrap();
    std::fs::set_permissions(&in_use, std::fs::Permissions::from_mode(0o700)).unwrap();
    let lock = std::fs::File::open(&in_use).unwrap();
    lock.lock().unwrap();
    let elsewhere = night.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::write(elsewhere.join("mine"), "x").unwrap();
    std::os::unix::fs::symlink(&elsewhere, spill.join("nearprint-linklinklinklinklinklink")).unwrap();
    std::fs::create_dir(spill.join("nearprint-other-name")).unwrap();
    std::fs::write(spill.join("nearprint-filefilefilefilefilefile"), "x").unwrap();
    night.run(DT, &[]).expect_success();
    let mut left: Vec<String> =
        temporary(&spill).iter().map(|p| p.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    left.sort();
    let expected = [
        "nearprint-filefilefilefilefilefile",
        "nearprint-inuseinuseinuseinuseinus",
        "nearprint-linklinklinklinklinklink",
        "nearprint-other-name",
    ];
    assert_eq!(left, expected);
    assert!(elsewhere.join("mine").exists());
    drop(lock);
    // A rerun that finds the night published removes them too.
    assert_eq!(night.run(DT, &[]).expect_success().json()["status"], "already_published");
    assert!(!in_use.exists());
}

#[test]
fn temporary_files_are_private_whatever_the_umask() {
    let night = Night::new("[resources]\nspill_dir = \"spill\"\nreduce_memory = \"8MiB\"\n");
    let spill = night.path().join("spill");
    std::fs::create_dir(&spill).unwrap();
    many_documents(&night, 30_000);
    let mut run = Command::new("sh")
        .args(["-c", "umask 000; exec \"$0\" run --config job.toml --dt 2026-11-20", NEARPRINT])
        .current_dir(night.path())
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut n_files = 0;
    while run.try_wait().unwrap().is_none() {
        for folder in temporary(&spill) {
            let mut open = vec![folder];
            while let Some(path) = open.pop() {
                // Files come and go.
                let Ok(metadata) = std::fs::symlink_metadata(&path) else { continue };
                let mode = metadata.mode() & 0o777;
                if metadata.is_dir() {
                    assert!(path.parent() != Some(&spill) || mode == 0o700, "{mode:o} {}", path.display());
                    open.extend(std::fs::read_dir(&path).into_iter().flatten().flatten().map(|e| e.path()));
                } else {
                    assert_eq!(mode, 0o600, "{}", path.display());
                    n_files += 1;
                }
            }
        }
    }
    assert!(run.wait().unwrap().success());
    assert!(n_files > 0);
}

#[test]
fn a_spill_folder_without_room_is_refused_before_the_work() {
    let night = Night::new("[resources]\nspill_dir = \"spill\"\n");
    let spill = night.path().join("spill");
    std::fs::create_dir(&spill).unwrap();
    many_documents(&night, 10);
    let mount = |args: &[&str]| Command::new(args[0]).args(&args[1..]).arg(&spill).output();
    if !mount(&["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs"]).is_ok_and(|done| done.status.success()) {
        return not_checked("cannot mount");
    }
    let refused = night.run(DT, &[]);
    let job = std::fs::read_to_string(night.path().join("job.toml")).unwrap();
    std::fs::write(night.path().join("job.toml"), job + "preflight = false\n").unwrap();
    let allowed = night.run(DT, &[]);
    assert!(mount(&["umount"]).unwrap().status.success());
    assert_eq!(refused.code, 74, "{}", refused.stderr);
    assert!(refused.error().contains("67111744 bytes are needed"), "{}", refused.stderr);
    assert!(refused.error().contains("--spill-dir"), "{}", refused.stderr);
    allowed.expect_success();
}

#[test]
fn sigterm_ends_a_run_with_143_and_leaves_nothing() {
    let mut n_stopped = 0;
    for milliseconds in [30, 120, 300, 700] {
        let night = Night::new("[resources]\nspill_dir = \"spill\"\n");
        let spill = night.path().join("spill");
        std::fs::create_dir(&spill).unwrap();
        many_documents(&night, 20_000);
        let child = start(&night, &[]);
        std::thread::sleep(Duration::from_millis(milliseconds));
        child.signal(Signal::SIGTERM).unwrap();
        let began = Instant::now();
        let done = child.wait().unwrap();
        assert!(began.elapsed() < Duration::from_secs(10));
        let left = temporary(&spill);
        assert_eq!(left, Vec::<PathBuf>::new(), "after {milliseconds} ms: {}: {}", done.code, done.stderr);
        // A fast machine is done before the last signals.
        let is_published = night.is_in_tables(DT);
        assert!(matches!(done.code, 143 | 0), "{}: {}", done.code, done.stderr);
        assert_eq!(is_published, done.code == 0, "{}: {}", done.code, done.stderr);
        n_stopped += u32::from(done.code != 0);
    }
    assert!(n_stopped > 0, "every run was over before its signal");
}

#[test]
fn sighup_ends_a_run_as_sigterm_does_with_a_code_of_its_own() {
    if !hangs_up() {
        return;
    }
    let night = Night::new("[resources]\nspill_dir = \"spill\"\n");
    let spill = night.path().join("spill");
    std::fs::create_dir(&spill).unwrap();
    many_documents(&night, 20_000);
    let mut child = start(&night, &[]);
    while !child.stderr().unwrap().contains("fingerprint (") {
        assert!(!child.ended().unwrap(), "it ended before it began");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.signal(Signal::SIGHUP).unwrap();
    let done = child.wait().unwrap();
    assert_eq!((done.code, temporary(&spill)), (129, Vec::new()), "{}", done.stderr);
    // A process that is merely killed has this code too.
    assert!(done.stderr.contains("stopped by SIGHUP"), "{}", done.stderr);
    assert!(!night.is_in_tables(DT));
}

#[test]
fn nohup_keeps_a_run_from_hanging_up_and_a_file_above_the_limit_of_the_system_is_74() {
    let night = Night::new("");
    many_documents(&night, 20_000);
    let run = |script: &str| {
        let args = ["-c", script, "sh", NEARPRINT, "run", "--config", "job.toml", "--create-store", "--dt", DT];
        let done = Command::new("sh").args(args).current_dir(night.path()).output().unwrap();
        (done.status.code(), String::from_utf8(done.stderr).unwrap())
    };
    let (code, said) = run("ulimit -f 8; exec \"$@\"");
    assert_eq!(code, Some(74), "{said}");
    assert!(said.lines().any(|line| line.starts_with("nearprint: error: ")), "{said}");
    let until_it_works = "i=0; until grep -q fingerprint log || [ $i -ge 1000 ]; do i=$((i+1)); sleep 0.01; done";
    let (code, said) = run(&format!("trap '' HUP; \"$@\" 2>log & {until_it_works}; kill -HUP $! && wait $!"));
    assert_eq!(code, Some(0), "{said}");
}

/// Starts a run and waits until it says that it decides.
fn start_and_wait_until_it_decides(night: &Night) -> Running {
    let mut run = start(night, &[]);
    while !run.stderr().unwrap().contains("decide (documents)") {
        assert!(!run.ended().unwrap(), "it ended before it decided");
        std::thread::sleep(Duration::from_millis(1));
    }
    run
}

#[test]
fn sigterm_while_a_run_decides_and_writes_ends_it_before_it_goes_on_to_publish() {
    for milliseconds in [0, 150, 400] {
        let night = Night::new("[resources]\nspill_dir = \"spill\"\n");
        let spill = night.path().join("spill");
        std::fs::create_dir(&spill).unwrap();
        let texts: Vec<(String, String)> = (0..100_000).map(|i| (format!("{i:06}"), text(i, 10))).collect();
        let rows: Vec<(&str, &str)> = texts.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect();
        night.documents(DT, &rows);
        let run = start_and_wait_until_it_decides(&night);
        std::thread::sleep(Duration::from_millis(milliseconds));
        run.signal(Signal::SIGTERM).unwrap();
        let done = run.wait().unwrap();
        assert_eq!(done.code, 143, "after {milliseconds} ms: {}", done.stderr);
        let error = done.stderr.lines().rfind(|line| !line.starts_with("hint: ")).unwrap_or_default();
        assert!(error.ends_with("stopped by SIGTERM before the end: run it again"), "{}", done.stderr);
        assert!(!night.path().join("store/_commits").exists(), "after {milliseconds} ms");
        assert_eq!(temporary(&spill), Vec::<PathBuf>::new(), "after {milliseconds} ms");
        // Deciding takes far longer than a signal; how far it is later depends on the machine.
        let published = night.path().join(format!("results/decisions/dt={DT}"));
        assert!(milliseconds > 0 || !published.exists(), "it went on to publish");
    }
}

#[test]
fn runs_of_one_date_at_once_publish_it_once() {
    let night = Night::new("");
    many_documents(&night, 300);
    let runs: Vec<Running> = (0..6).map(|_| start(&night, &["--threads", "1"])).collect();
    let status = |run: Running| run.wait().unwrap().expect_success().json()["status"].as_str().unwrap().to_owned();
    let mut statuses: Vec<String> = runs.into_iter().map(status).collect();
    statuses.sort_unstable();
    // Equal commits are one, of which each run would say that it is its own if it did not look who wrote it.
    assert_eq!((statuses[5].as_str(), statuses[4].as_str()), ("published", "already_published"), "{statuses:?}");
    assert_eq!(std::fs::read_dir(night.path().join("store/_commits")).unwrap().count(), 1);
    let check = nearprint_in(night.path(), &["check", "--config", "job.toml", "--json"]).expect_success().json();
    assert_eq!((check["status"].as_str(), check["n_unreferenced_files"].as_u64()), (Some("sound"), Some(0)), "{check}");
}

#[test]
fn of_runs_of_one_date_with_other_settings_one_wins_and_the_others_say_so() {
    let night = Night::new("");
    many_documents(&night, 300);
    let job = std::fs::read_to_string(night.path().join("job.toml")).unwrap();
    std::fs::write(night.path().join("other.toml"), format!("{job}clusters = \"component\"\n")).unwrap();
    let start = |config: &str| {
        let args = ["run", "--config", config, "--dt", DT, "--json", "--threads", "1"];
        command(night.path(), &args).start().unwrap()
    };
    let runs = [start("job.toml"), start("other.toml")];
    let mut codes: Vec<i32> = runs.into_iter().map(|run| run.wait().unwrap().code).collect();
    codes.sort_unstable();
    assert_eq!(codes, [0, 73]);
    nearprint_in(night.path(), &["check", "--config", "job.toml"]).expect_success();
}

#[test]
fn a_lock_that_another_run_holds_is_waited_for_and_then_named() {
    let night = Night::new("lock = \"run.lock\"\n");
    many_documents(&night, 10);
    let path = night.path().join("run.lock");
    let held = std::fs::File::create(&path).unwrap();
    held.lock().unwrap();
    let refused = night.run(DT, &[]);
    assert_eq!(refused.code, 75);
    assert!(refused.error().contains("run.lock"), "{}", refused.stderr);
    let waiting = start(&night, &["--lock-wait", "60"]);
    std::thread::sleep(Duration::from_millis(300));
    drop(held);
    waiting.wait().unwrap().expect_success();
    let other = night.path().join("other.lock");
    night.run(DT, &["--lock-file", "other.lock"]).expect_success();
    assert_eq!(std::fs::metadata(&other).unwrap().mode() & 0o777, 0o600);
    std::os::unix::fs::symlink(night.path().join("job.toml"), night.path().join("link.lock")).unwrap();
    let link = night.run(DT, &["--lock-file", "link.lock"]);
    assert_eq!(link.code, 74, "{}", link.stderr);
}

#[test]
fn places_outside_of_the_roots_are_refused() {
    let night = Night::new("");
    many_documents(&night, 10);
    let root = night.path().to_str().unwrap().to_owned();
    let inside = night.path().join("documents").to_str().unwrap().to_owned();
    let outside = tempfile::tempdir().unwrap();
    let link = night.path().join("documents/link");
    std::os::unix::fs::symlink(outside.path(), &link).unwrap();
    let refused = |more: &[&str], key: &str| {
        let done = night.run(DT, more);
        assert_eq!(done.code, 64, "{more:?}: {}", done.stderr);
        assert!(done.error().contains(key) && done.error().contains("--root"), "{}", done.stderr);
    };
    refused(&["--root", &inside], "store");
    refused(&["--root", &inside, "--store", "documents/s", "--output", "documents/../o"], "output");
    refused(&["--root", &inside, "--store", "documents/s", "--output", "documents/link/o"], "output");
    refused(&["--root", &root, "--documents", "/etc"], "documents");
    refused(&["--root", &root, "--documents", "file:///etc/*"], "documents");
    refused(&["--root", &root, "--documents", "s3://bucket/documents"], "documents");
    refused(&["--root", "s3://bucket/a", "--documents", "s3://bucket/ab"], "documents");
    assert!(!night.path().join("store").exists());
    night.run(DT, &["--root", "/nowhere", "--root", &root]).expect_success();
    // A file that is a link to one elsewhere.
    std::fs::write(outside.path().join("secret.jsonl"), "{\"id\": 1, \"text\": \"x\"}\n").unwrap();
    let linked = night.path().join(format!("documents/dt={DT}/linked.jsonl"));
    std::os::unix::fs::symlink(outside.path().join("secret.jsonl"), linked).unwrap();
    refused(&["--root", &root, "--replace"], "input");
}

#[test]
fn ids_never_make_paths() {
    let night = Night::new("");
    let ids = ["../../etc/x", "/etc/passwd", "a\0b", "..", "gen=../x", "dt=1/../..", "s3://b/k", "C:\\x", "\u{202e}x"];
    let texts: Vec<String> = (0..ids.len() as u64).map(|i| text(i / 2, 60)).collect();
    let documents: Vec<(&str, &str)> = ids.iter().zip(&texts).map(|(id, text)| (*id, text.as_str())).collect();
    night.documents(DT, &documents).run(DT, &[]).expect_success();
    for name in snapshot(night.path()).into_keys() {
        let name = name.to_str().unwrap().to_owned();
        let records = format!("results/_nearprint/dt={DT}/gen=");
        let of_tables = delta::TABLES
            .into_iter()
            .chain(["changes"])
            .map(|table| [format!("results/{table}/dt={DT}/part-"), format!("results/{table}/_delta_log/0")]);
        let own = [
            "job.toml",
            "documents/",
            "store/_commits/",
            "store/runs/",
            "store/_store.json",
            "results/_store.json",
            &records,
        ];
        let of_tables: Vec<String> = of_tables.flatten().collect();
        let mut own = own.into_iter().chain(of_tables.iter().map(String::as_str));
        assert!(own.any(|o| name.starts_with(o)), "{name}");
        assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b"/_-=.".contains(&b)), "{name}");
    }
    let mut published: Vec<String> = night.decisions(DT).into_keys().collect();
    published.sort();
    let mut expected = ids.map(str::to_owned).to_vec();
    expected.sort();
    assert_eq!(published, expected);
}

#[test]
fn a_night_without_documents_ends_with_the_code_that_was_asked_for() {
    let night = Night::new("");
    assert_eq!(night.run(DT, &[]).code, 66);
    let skipped = night.run(DT, &["--empty-exit-code", "99"]);
    assert_eq!((skipped.code, skipped.json()["exit_code"].as_u64()), (99, Some(99)));
    many_documents(&night, 10);
    night.run(DT, &["--empty-exit-code", "99"]).expect_success();
}

#[test]
fn a_late_crawl_has_a_code_of_its_own_and_what_is_missing_otherwise_has_not() {
    let night = Night::new("require_marker = \"_SUCCESS\"\n");
    let late = ["--late-exit-code", "75"];
    let run = |more: &[&str]| night.run(DT, &[&late[..], more].concat());
    assert_eq!(run(&[]).code, 75);
    assert_eq!(Night::new("").run(DT, &["--late-exit-code", "75", "--empty-exit-code", "99"]).code, 99);
    many_documents(&night, 10);
    let unmarked = run(&["--empty-exit-code", "99"]);
    assert_eq!((unmarked.code, unmarked.json()["exit_code"].as_u64()), (75, Some(75)), "{}", unmarked.stderr);
    // A folder of nights that is missing is a disk that is not mounted.
    assert_eq!(run(&["--documents", "elsewhere"]).code, 66);
    let no_config = command(night.path(), &["run", "--config", "none.toml", "--dt", DT, "--late-exit-code", "75"]);
    assert_eq!(no_config.run().unwrap().code, 66);
    std::fs::write(night.path().join(format!("documents/dt={DT}/_SUCCESS")), "").unwrap();
    let job = std::fs::read_to_string(night.path().join("job.toml")).unwrap();
    std::fs::write(night.path().join("job.toml"), job.replace("create_store = true", "")).unwrap();
    assert_eq!(run(&[]).code, 66, "no store");
    for wrong in [&["--late-exit-code", "0"][..], &["--empty-exit-code", "0"]] {
        assert_eq!(night.run(DT, wrong).code, 64, "a night that was not run has no code of success");
    }
    let stale = command(night.path(), &["run", "--config", "job.toml", "--stale", "--late-exit-code", "75"]);
    assert_eq!(stale.run().unwrap().code, 64);
    run(&["--create-store"]).expect_success();
}

#[test]
fn a_rerun_writes_nothing_and_says_when_its_newest_input_was_written() {
    let night = Night::new("");
    many_documents(&night, 10);
    let first = night.run(DT, &[]).expect_success().json();
    let newest = first["newest_input"].as_str().unwrap().to_owned();
    assert!(newest.len() == 20 && newest.ends_with('Z'), "{newest}");
    let times = |folder: &str| {
        let all = snapshot(&night.path().join(folder)).into_keys();
        all.map(|name| std::fs::metadata(night.path().join(folder).join(name)).unwrap().ctime_nsec())
            .collect::<Vec<_>>()
    };
    let before = (times("store"), times("results"));
    let again = night.run(DT, &[]).expect_success().json();
    assert_eq!((again["status"].as_str(), again["newest_input"].as_str()), (Some("already_published"), Some(&*newest)));
    assert_eq!((times("store"), times("results")), before);
}
