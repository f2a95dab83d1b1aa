//! A few of the trials of bad input, in half a minute: all of them are run by `nearprint-trials bad-input`.

use std::path::Path;

use nearprint_harness::Common;
use nearprint_harness::measured::Options;
use nearprint_harness::row::Row;
use nearprint_trials::{bad_input, mutants};

fn options(nearprint: &str, scale: f64, only: &[&str]) -> Options {
    Options { common: Common::new(Path::new(nearprint), 1, only), jobs: 2, scale, seed: 1 }
}

fn all_are_green(rows: &[Row]) {
    assert!(!rows.is_empty());
    let red: Vec<&Row> = rows.iter().filter(|r| !r.is_green()).collect();
    assert!(red.is_empty(), "{red:#?}");
}

#[test]
fn damaged_files_are_refused_or_read_as_they_were() {
    all_are_green(&mutants::run(&options(env!("CARGO_BIN_EXE_nearprint"), 0.02, &["B2", "B3", "B4", "B5"])).unwrap());
}

#[test]
fn files_that_no_crawl_should_have_are_named_or_set_aside() {
    let quick = ["B1", "B6", "B9", "B12-jsonl", "B14", "B15", "B17-limit", "B25", "B30"];
    all_are_green(&bad_input::run_quick(&options(env!("CARGO_BIN_EXE_nearprint"), 1.0, &quick)));
}

#[test]
fn a_program_that_does_nothing_passes_no_trial() {
    let idle = options("/bin/true", 0.001, &[]);
    let mut rows = bad_input::run_quick(&idle);
    rows.extend(mutants::run(&idle).unwrap());
    let green: Vec<&Row> = rows.iter().filter(|r| r.passed > 0).collect();
    assert!(rows.len() > 20 && green.is_empty(), "{green:#?}");
}
