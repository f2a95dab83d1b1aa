//! A few of the trials of docs/reliability.md, in a minute: all of them are run by scripts/reliability.sh.
#![allow(clippy::print_stderr, reason = "tests")]

use std::path::PathBuf;

use nearprint_trials::row::Row;
use nearprint_trials::{Common, Result, faults, kills, nights, races};

fn common(seeds: u64, only: &[&str]) -> Common {
    Common {
        nearprint: PathBuf::from(env!("CARGO_BIN_EXE_nearprint")),
        results: None,
        work: None,
        seeds,
        only: only.iter().map(|&id| id.to_owned()).collect(),
    }
}

/// Rows that cannot be tried here say so and pass.
fn all_green(rows: &[Row]) {
    assert!(!rows.is_empty(), "no such trials");
    for row in rows.iter().filter(|row| row.runs == 0) {
        eprintln!("{} {} ({}): {}", row.id, row.trial, row.backend, row.observed);
    }
    let red: Vec<&Row> = rows.iter().filter(|row| row.runs > 0 && !row.is_green()).collect();
    assert!(red.is_empty(), "{red:#?}");
}

#[test]
fn a_run_killed_at_any_step_leaves_the_old_or_the_new_night_and_the_next_run_tidies_up() -> Result<()> {
    let args = kills::Args { common: common(1, &["F1", "F2-before"]), points: Some(20), workers: 2 };
    all_green(&kills::run(&args)?);
    Ok(())
}

#[test]
fn faults_end_with_their_exit_code_and_publish_all_or_nothing() -> Result<()> {
    let rows = ["F3", "F4", "F5", "F6", "F10", "F11", "F15", "F16", "F20", "F26", "F30"];
    let args = faults::Args { common: common(1, &rows), rgw_dir: None, outage: 0 };
    all_green(&faults::run(&args)?);
    Ok(())
}

#[test]
fn of_several_runs_at_once_one_publishes() -> Result<()> {
    for (backend, rounds) in [("local", 20), ("rgw", 5)] {
        let args = races::Args { common: common(1, &[]), rounds, backend: backend.to_owned() };
        all_green(&races::run(&args)?);
    }
    Ok(())
}

#[test]
fn a_rerun_of_a_published_night_writes_nothing() -> Result<()> {
    all_green(&nights::run(&nights::Args { common: common(1, &["L8"]), nights: 0, documents: 0 })?);
    Ok(())
}
