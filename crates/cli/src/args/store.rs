//! The arguments of `nearprint store`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::file_names::local_path;
use super::inputs::InputArgs;
use super::run::BreakerArgs;
use crate::place::{Given, place};

#[derive(Debug, Clone, Subcommand)]
pub enum StoreCommand {
    /// Create an empty store for a first night
    Init(StoreArgs),
    /// List the nights, with what was kept and dropped, and show rows and bytes
    Info(StoreArgs),
    /// Re-read every file, and compare it with the newest commit
    Check(StoreArgs),
    /// Merge the fingerprints of all nights into one segment, which later joins read instead
    Compact(CompactArgs),
    /// Write sorted copies of all fingerprints, by which `query` finds a document at once
    Index(StoreArgs),
    /// Remove a night from the store: one with a wrong date, or one that should no longer count
    DropNight(DropNightArgs),
    /// Forget old nights, or single documents, as if the store had never had them
    Forget(ForgetArgs),
    /// Make all nights of a store again in the store of another job: for another profile or extractor
    Migrate(Box<MigrateArgs>),
    /// Delete everything that no commit names: replaced, dropped and forgotten nights, leftovers of killed runs, superseded
    /// segments and indexes, old commits
    Gc(GcArgs),
}

#[derive(Debug, Clone, Args)]
pub struct StoreArgs {
    /// The store [default: the job file's]
    #[arg(value_name = "STORE", required_unless_present = "config", value_parser = place)]
    pub store: Option<Given>,
    /// Job file
    #[arg(long, short, value_name = "FILE", value_parser = local_path())]
    pub config: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub struct CompactArgs {
    #[command(flatten)]
    pub place: StoreArgs,
    /// Approximate rows of a part of the segment; --spill-dir holds one part per thread [default: 16777216]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub part_rows: Option<u64>,
}

#[derive(Debug, Clone, Args)]
pub struct DropNightArgs {
    #[command(flatten)]
    pub place: StoreArgs,
    /// The night, such as 2026-11-20
    #[arg(long, value_name = "DATE", alias = "date")]
    pub dt: String,
}

#[derive(Debug, Clone, Args)]
#[command(group = clap::ArgGroup::new("what").required(true))]
pub struct ForgetArgs {
    #[command(flatten)]
    pub place: StoreArgs,
    /// Forget all nights before DATE, with their results
    #[arg(long, value_name = "DATE", group = "what")]
    pub before: Option<String>,
    /// Forget the documents whose ids FILE lists, in all nights and their results: one id a line or, if its name ends in
    /// .jsonl, one {"id": …} a line; `-`: standard input, one id a line
    #[arg(long, value_name = "FILE", value_parser = local_path(), group = "what")]
    pub ids: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub struct MigrateArgs {
    /// Job file of the new store, with its profile, store and output
    #[arg(long, short, value_name = "FILE", value_parser = local_path())]
    pub config: PathBuf,
    /// The old store, whose nights are made again from the inputs that their manifests name
    #[arg(long, value_name = "STORE", value_parser = place)]
    pub from: Given,
    /// Leave out the nights before DATE, such as nights whose inputs are gone
    #[arg(long, value_name = "DATE")]
    pub since: Option<String>,
    /// Create the new store if it does not exist
    #[arg(long)]
    pub create_store: bool,
    /// Check stores and inputs, say which nights would be made, and write nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub input: InputArgs,
    #[command(flatten)]
    pub breakers: BreakerArgs,
}

#[derive(Debug, Clone, Args)]
pub struct GcArgs {
    #[command(flatten)]
    pub place: StoreArgs,
    /// Root of results to clean, besides those of the store's nights [default: the job file's]
    #[arg(long, value_name = "PATH", value_parser = place)]
    pub output: Option<Given>,
    /// Keep files that were written, or that the newest commit named, in the last HOURS hours
    #[arg(long, value_name = "HOURS", default_value_t = 24)]
    pub grace_hours: u32,
    /// Only list, and delete nothing
    #[arg(long)]
    pub dry_run: bool,
}
