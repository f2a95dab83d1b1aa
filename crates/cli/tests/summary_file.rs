//! `--summary-file`: what a scheduler reads when a command has ended, however it ended.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use crate::support::{Night, Signal, nearprint_in, text};

const FILE: [&str; 2] = ["--summary-file", "summary.json"];

fn night() -> Night {
    let night = Night::new("");
    night.documents("2026-11-19", &[("a", &text(1, 40)), ("b", &text(2, 40))]);
    night
}

fn summary(folder: &Path) -> serde_json::Value {
    let text = fs::read_to_string(folder.join("summary.json")).unwrap();
    assert!(text.ends_with("}\n") && text.lines().count() == 1, "{text}");
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_file_is_the_last_line_of_standard_output_after_success_and_after_failure() {
    let night = night();
    for (dt, code) in [("2026-11-19", 0), ("2026-11-20", 66)] {
        let done = night.run(dt, &FILE);
        assert_eq!(done.code, code, "{}", done.stderr);
        let file = fs::read_to_string(night.path().join("summary.json")).unwrap();
        assert_eq!(Some(file.trim_end()), done.stdout.lines().last());
        let summary = summary(night.path());
        assert_eq!((&summary["command"], &summary["dt"]), (&"run".into(), &dt.into()));
    }
    assert_eq!(summary(night.path())["exit_code"], 66);
    let left = fs::read_dir(night.path()).unwrap().filter(|entry| {
        let name = entry.as_ref().unwrap().file_name().into_string().unwrap();
        name.starts_with(".nearprint-")
    });
    assert_eq!(left.count(), 0);
}

#[test]
fn it_is_written_without_json_and_by_every_command() {
    let night = night();
    nearprint_in(night.path(), &[&["store", "init", "store"], &FILE[..]].concat()).expect_success();
    assert_eq!(summary(night.path())["command"], "store init");
    let done = nearprint_in(night.path(), &["--summary-file=summary.json", "store", "info", "nowhere"]);
    assert_eq!(done.code, 66, "{}", done.stderr);
    assert_eq!(summary(night.path())["command"], "store info");
    assert_eq!(summary(night.path())["exit_code"], 66);
}

#[test]
fn a_command_line_that_is_refused_leaves_what_can_be_read_of_it() {
    let night = night();
    let done = nearprint_in(night.path(), &[&["run", "--dt", "2026-11-19", "--no-such"], &FILE[..]].concat());
    assert_eq!(done.code, 64, "{}", done.stderr);
    let summary = summary(night.path());
    assert_eq!((&summary["command"], &summary["dt"]), (&"run".into(), &"2026-11-19".into()), "{summary}");
    assert_eq!((&summary["status"], &summary["exit_code"]), (&"failed".into(), &64.into()));
}

#[test]
fn a_command_line_that_is_refused_leaves_no_summary_among_the_documents() {
    let night = night();
    let file = "documents/dt=2026-11-19/s.json";
    let there = night.path().join(file);
    fs::create_dir_all(there.parent().unwrap()).unwrap();
    // What the first wrong argument stands before, and what it stands behind; the documents may be those of a flag.
    let (wrong, asked) = (["--memory-limit", "much"], ["--summary-file", file]);
    for job in ["--config job.toml", "-c job.toml", "-c=job.toml", "-vqcjob.toml", "--documents documents"] {
        let job: Vec<&str> = job.split(' ').collect();
        let before = [&["run"], &job[..], &wrong, &asked].concat();
        let behind = [&["run"], &wrong[..], &asked, &job].concat();
        for arguments in [before, behind] {
            let done = nearprint_in(night.path(), &arguments);
            assert_eq!(done.code, 64, "{}", done.stderr);
            assert!(
                done.stderr.contains("--summary-file documents") && done.stderr.contains("--memory-limit"),
                "{}",
                done.stderr
            );
            assert!(!there.exists(), "{arguments:?}");
        }
    }
    let of_others =
        ["config check --bogus --summary-file FILE job.toml", "filter --bogus --summary-file FILE --out documents"];
    for line in of_others {
        let done = nearprint_in(night.path(), &line.replace("FILE", file).split(' ').collect::<Vec<_>>());
        assert_eq!(done.code, 64, "{}", done.stderr);
        assert!(!there.exists(), "{line}");
    }
}

#[test]
fn a_file_that_cannot_be_written_is_refused_before_the_work() {
    let night = night();
    fs::create_dir(night.path().join("folder.json")).unwrap();
    for (file, code, message) in [
        ("nowhere/summary.json", 74, "no such folder"),
        ("folder.json", 73, "no regular file"),
        ("summary.parquet", 64, "ends in .json"),
    ] {
        let done = night.run("2026-11-19", &["--summary-file", file]);
        assert_eq!(done.code, code, "{}", done.stderr);
        assert!(done.stderr.contains(message), "{}", done.stderr);
        assert!(!night.path().join("store").exists());
    }
}

#[test]
fn a_stopped_run_leaves_its_summary_and_a_killed_one_none_of_an_earlier_run() {
    let night = night();
    for (signal, code) in [(Signal::SIGTERM, Some(143)), (Signal::SIGKILL, None)] {
        night.run("2026-11-19", &FILE).expect_success();
        let held = fs::File::create(night.path().join("lock")).unwrap();
        held.lock().unwrap();
        let waiting = ["--lock-file", "lock", "--lock-wait", "60"];
        let running = night.command("2026-11-19", &FILE).args(&waiting).start().unwrap();
        while night.path().join("summary.json").exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
        // The handler of the signal is set soon after.
        std::thread::sleep(Duration::from_millis(500));
        running.signal(signal).unwrap();
        running.wait().unwrap();
        match code {
            Some(code) => assert_eq!(summary(night.path())["exit_code"], code),
            None => assert!(!night.path().join("summary.json").exists()),
        }
    }
}

#[test]
fn a_link_is_replaced_and_not_the_file_it_points_to() {
    let night = night();
    fs::write(night.path().join("target"), "the target").unwrap();
    symlink("target", night.path().join("summary.json")).unwrap();
    night.run("2026-11-19", &FILE).expect_success();
    assert_eq!(summary(night.path())["status"], "published");
    assert_eq!(fs::read_to_string(night.path().join("target")).unwrap(), "the target");
}
