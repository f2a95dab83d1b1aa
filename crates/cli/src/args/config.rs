//! The arguments of `nearprint config`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::file_names::local_path;
use crate::place::{nights, place};

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
    /// Folder of the crawl
    #[arg(long, value_name = "PATH", default_value = "documents", value_parser = nights)]
    pub documents: String,
    /// Fingerprints of all earlier nights
    #[arg(long, value_name = "PATH", default_value = "store", value_parser = place)]
    pub store: String,
    /// Root of the results
    #[arg(long, value_name = "PATH", default_value = "results", value_parser = place)]
    pub output: String,
}

#[derive(Debug, Clone, Args)]
pub struct ConfigCheckArgs {
    /// The job file
    #[arg(value_name = "FILE", value_parser = local_path())]
    pub file: PathBuf,
}
