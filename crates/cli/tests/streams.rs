//! Standard output and standard error that cannot be written to.

use std::fs::File;
use std::process::{Command, Output, Stdio};

use crate::support::{Night, text};

const PLAN: [&str; 7] = ["plan", "--existing-rows", "1000", "--query-rows", "10", "--max-distance", "3"];

fn nearprint_into(stdout: Stdio, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nearprint")).args(args).stdout(stdout).output().unwrap()
}

#[test]
fn a_full_disk_beneath_standard_output_is_said_in_one_line() {
    for more in [&[][..], &["--json"]] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let done = nearprint_into(full.into(), &[&PLAN, more].concat());
        let stderr = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(74), "{stderr}");
        let said: Vec<&str> = stderr.lines().filter(|line| line.starts_with("nearprint: error: ")).collect();
        assert!(matches!(said[..], [line] if line.contains("standard output: No space left")), "{stderr}");
    }
}

#[test]
fn a_reader_that_has_gone_away_changes_no_exit_code() {
    let missing = ["tune", "--labels", "nothing.csv"];
    for (args, code) in [(&PLAN[..], 0), (&missing[..], 66)] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let done = nearprint_into(writer.into(), &[args, &["--json"]].concat());
        let stderr = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(code), "{stderr}");
        assert_eq!(stderr.lines().filter(|l| l.starts_with("nearprint: error: ")).count(), usize::from(code != 0));
    }
}

#[test]
fn a_log_that_cannot_be_written_ends_no_night() {
    let night = Night::new("");
    let run = |dt: &str, stderr: Stdio| {
        night.documents(dt, &[("a", &text(1, 90))]);
        let args = ["run", "--config", "job.toml", "--create-store", "--json", "--dt", dt];
        let mut command = Command::new(env!("CARGO_BIN_EXE_nearprint"));
        let done = command.current_dir(night.path()).args(args).stderr(stderr).output().unwrap();
        (done.status.code(), String::from_utf8(done.stdout).unwrap())
    };
    let (code, said) = run("2026-11-19", File::options().write(true).open("/dev/full").unwrap().into());
    assert_eq!((code, said.contains("\"status\":\"published\"")), (Some(0), true), "{said}");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let (code, said) = run("2026-11-20", writer.into());
    assert_eq!((code, said.contains("\"status\":\"published\"")), (Some(0), true), "{said}");
}
