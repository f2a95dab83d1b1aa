//! `nearprint-trials`: runs trials against a `nearprint` binary, one JSON row a line; `table` makes the Markdown tables from them.
#![allow(clippy::print_stdout, reason = "a program that prints what it saw")]

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use nearprint_trials::measured::Options;
use nearprint_trials::row::Row;
use nearprint_trials::{Common, Result};

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
    /// B1 to B28: documents that no crawl should have
    BadInput(Options),
    /// S1 to S13: what an attacker could try
    Security(Options),
    /// Single bits flipped in published files: `check` must name each
    Flips(Options),
    /// Secrets given in every way: none may be said or written
    Canary(Options),
    /// L1 to L6, F7: sizes, with seconds and memory
    Loads(Options),
}

fn main() -> Result<ExitCode> {
    let (results, rows) = match Cli::parse().command {
        Trials::Night(args) => (args.results.clone(), nearprint_trials::night::run(&args)?),
        Trials::BadInput(args) => (args.common.results.clone(), nearprint_trials::bad_input::run(&args)?),
        Trials::Security(args) => (args.common.results.clone(), nearprint_trials::security::run(&args)?),
        Trials::Flips(args) => (args.common.results.clone(), nearprint_trials::flips::run(&args)?),
        Trials::Canary(args) => (args.common.results.clone(), nearprint_trials::canary::run(&args)?),
        Trials::Loads(args) => (args.common.results.clone(), nearprint_trials::loads::run(&args)?),
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
