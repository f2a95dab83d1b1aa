//! `nearprint-trials`: runs trials against a `nearprint` binary, one JSON row a line; `table` makes the Markdown tables from them.
#![allow(clippy::print_stdout, reason = "a program that prints what it saw")]

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use nearprint_harness::measured::Options;
use nearprint_harness::row::Row;
use nearprint_harness::{Common, Result};
use nearprint_trials::{bad_input, canary, faults, flips, kills, loads, nights, races, security, table, undisturbed};

#[derive(Debug, Parser)]
#[command(name = "nearprint-trials", arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Trials,
}

#[derive(Debug, Subcommand)]
enum Trials {
    /// An undisturbed night: what all other trials compare with
    Night(Common),
    /// F3 to F30: errors of the disk, the network, the server and the clock
    Faults(faults::Args),
    /// F1, F2: killed at every call that changes a file, and at every S3 request
    Kills(kills::Args),
    /// F24, F25: several runs at once
    Races(races::Args),
    /// L7 to L9: many nights in a row, a rerun, and random sequences with an oracle
    Nights(nights::Args),
    /// B1 to B30: documents that no crawl should have
    BadInput(Options),
    /// S1 to S15: what an attacker could try
    Security(Options),
    /// Single bits flipped in published files: `check` must name each
    Flips(Options),
    /// Secrets given in every way: none may be said or written
    Canary(Options),
    /// L1 to L6, F7: sizes, with seconds and memory
    Loads(Options),
    /// The tables of evidence/reliability
    Table(table::Args),
}

fn main() -> Result<ExitCode> {
    let (results, rows) = match Cli::parse().command {
        Trials::Night(args) => (args.results.clone(), undisturbed::run(&args)?),
        Trials::Faults(args) => (args.common.results.clone(), faults::run(&args)?),
        Trials::Kills(args) => (args.common.results.clone(), kills::run(&args)?),
        Trials::Races(args) => (args.common.results.clone(), races::run(&args)?),
        Trials::Nights(args) => (args.common.results.clone(), nights::run(&args)?),
        Trials::BadInput(args) => (args.common.results.clone(), bad_input::run(&args)?),
        Trials::Security(args) => (args.common.results.clone(), security::run(&args)),
        Trials::Flips(args) => (args.common.results.clone(), flips::run(&args)),
        Trials::Canary(args) => (args.common.results.clone(), canary::run(&args)?),
        Trials::Loads(args) => (args.common.results.clone(), loads::run(&args)),
        Trials::Table(args) => {
            print!("{}", table::markdown(&args)?);
            return Ok(ExitCode::SUCCESS);
        }
    };
    for row in &rows {
        println!("{}", serde_json::to_string(row)?);
    }
    if let Some(results) = results {
        append(&results, &rows)?;
    }
    Ok(if rows.iter().all(Row::is_green) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn append(results: &Path, rows: &[Row]) -> Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(results)?;
    for row in rows {
        writeln!(file, "{}", serde_json::to_string(row)?)?;
    }
    Ok(())
}
