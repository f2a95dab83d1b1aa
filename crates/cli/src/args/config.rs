//! The arguments of `nearprint config`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::file_names::local_path;
use crate::place::{Given, nights, place};

#[derive(Debug, Clone, Subcommand)]
pub enum ConfigCommand {
    /// Write a job file with comments to begin with
    Init(ConfigInitArgs),
    /// Check a job file: its keys, its values, and whether its places exist
    Check(ConfigCheckArgs),
    /// Print the JSON Schema of a job file
    Schema,
}

#[derive(Debug, Clone, Args)]
pub struct ConfigInitArgs {
    /// The job file to write
    #[arg(value_name = "FILE", default_value = "job.toml", value_parser = local_path())]
    pub file: PathBuf,
    /// Folder of the crawl [default: documents, beside FILE]
    #[arg(long, value_name = "PATH", value_parser = nights)]
    pub documents: Option<Given>,
    /// Fingerprints of all earlier nights [default: store, beside FILE]
    #[arg(long, value_name = "PATH", value_parser = place)]
    pub store: Option<Given>,
    /// Root of the results [default: results, beside FILE]
    #[arg(long, value_name = "PATH", value_parser = place)]
    pub output: Option<Given>,
}

#[derive(Debug, Clone, Args)]
pub struct ConfigCheckArgs {
    /// The job file
    #[arg(value_name = "FILE", value_parser = local_path())]
    pub file: PathBuf,
}
