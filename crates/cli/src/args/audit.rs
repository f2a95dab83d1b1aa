//! The arguments of `nearprint audit`.

use std::path::PathBuf;

use clap::Args;

use super::file_names::local_path;
use super::numbers::at_least_one;

#[derive(Debug, Clone, Args)]
pub struct AuditArgs {
    /// Job file of the night's run
    #[arg(long, short, value_name = "FILE", value_parser = local_path())]
    pub config: PathBuf,
    /// The night; latest, today, yesterday
    #[arg(long, value_name = "DATE", alias = "date")]
    pub dt: String,
    /// Number of dropped documents to draw
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = at_least_one)]
    pub sample: usize,
    /// Seed of the draw; the same seed draws the same documents
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Number of documents to show, those that lose most
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub examples: usize,
}
