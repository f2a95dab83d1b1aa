//! The arguments of `nearprint filter`.

use std::path::PathBuf;

use clap::Args;

use super::file_names::local_path;
use crate::place::{Given, place};

#[derive(Debug, Clone, Args)]
#[command(after_help = FILTER_EXAMPLES)]
pub struct FilterArgs {
    /// Job file of the nights' runs, for its store, documents and columns
    #[arg(long, short, value_name = "FILE", value_parser = local_path())]
    pub config: PathBuf,
    /// The night, or the first one; latest, today, yesterday
    #[arg(long, value_name = "DATE", alias = "date")]
    pub dt: String,
    /// The last night: all published nights from --dt to this one are filtered
    #[arg(long, value_name = "DATE")]
    pub to: Option<String>,
    /// Folder to write to; the files of a night lie in its dt=DATE, under the names that they have among the documents
    #[arg(long, visible_alias = "out", value_name = "DIR", value_parser = place)]
    pub output: Given,
    /// Write the id of each row and a column `keep`, row by row, and not the documents
    #[arg(long)]
    pub flag: bool,
    /// Replace the nights' files if they exist
    #[arg(long)]
    pub replace: bool,
}

const FILTER_EXAMPLES: &str = "Examples:
  nearprint filter --config job.toml --dt 2026-11-20 --output survivors
  nearprint filter --config job.toml --dt 2026-11-01 --to 2026-11-20 --output s3://crawl/survivors
  nearprint filter --config job.toml --dt 2026-11-20 --output flags --flag";
