//! `nearprint-bench` measures the join on generated data with known results, and fingerprinting on your own texts. It
//! prints one JSON object per line, or rows of tab-separated values.
#![allow(clippy::cast_precision_loss, reason = "nanoseconds and counts as numbers to divide")]
#![allow(clippy::print_stdout, reason = "a program that prints what it measured")]

mod data;
mod files;
mod kernels;
mod lookup;
mod measures;
mod nights;
mod reference;
mod s3;
mod self_join;
mod store;
mod text;

use clap::Parser;
use serde::Serialize;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Measures the join and fingerprinting.
#[derive(Debug, clap::Parser)]
enum Command {
    /// Measures plans and kernels of the join in memory against the textbook probe.
    Kernels(kernels::Args),
    /// Measures the self-join in memory, on one thread.
    #[command(name = "self")]
    SelfJoin(self_join::Args),
    /// Writes a generated set as Parquet.
    Generate(files::Generate),
    /// Reads and decodes the column of a set with the Parquet crate's own reader.
    Decode(files::Decode),
    /// Looks for the planted pairs of a set among those of a join.
    Check(files::Check),
    /// Writes documents of many nights.
    Nights(nights::Args),
    /// Makes a store of generated fingerprints.
    Store(store::Args),
    /// Measures single queries on a store, and compares their answers with a scan.
    Lookup(lookup::Args),
    /// Measures fingerprints and sketches of texts, compared with merely cutting the same texts into words.
    Text(text::Args),
    /// Measures the pairs of documents that a judge may have to decide.
    Measures(measures::Args),
    /// Reads all bytes of objects in ranges, and decodes nothing.
    S3Read(s3::Read),
    /// Writes the files of a folder to an object store.
    S3Upload(s3::Upload),
}

fn main() -> Result<()> {
    match Command::parse() {
        Command::Kernels(args) => kernels::run(&args),
        Command::Generate(args) => args.run(),
        Command::Decode(args) => args.run(),
        Command::Check(args) => args.run(),
        Command::SelfJoin(args) => args.run(),
        Command::Nights(args) => args.run(),
        Command::Store(args) => args.run(),
        Command::Lookup(args) => args.run(),
        Command::Text(args) => text::run(&args),
        Command::Measures(args) => args.run(),
        Command::S3Read(args) => args.run(),
        Command::S3Upload(args) => args.run(),
    }
}

fn print(value: &impl Serialize) -> Result<()> {
    println!("{}", serde_json::to_string(value)?);
    Ok(())
}
