//! The arguments of `nearprint review`.

use std::path::PathBuf;

use clap::Args;

use super::file_names::local_path;
use super::numbers::at_least_one;
use crate::place::{Given, place};

#[derive(Debug, Clone, Args)]
pub struct ReviewArgs {
    /// Job file of the night's run
    #[arg(long, short, value_name = "FILE", value_parser = local_path())]
    pub config: PathBuf,
    /// The night to look at; latest, today, yesterday. Without it, review reports the answers given so far
    #[arg(long, value_name = "DATE", alias = "date")]
    pub dt: Option<String>,
    /// Table of pairs and answers, JSON lines; answers are added to it
    #[arg(long, value_name = "FILE.jsonl", value_parser = place)]
    pub answers: Given,
    /// Number of pairs to draw of the night [default: 60]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub sample: Option<usize>,
    /// Seed of the draw; the same seed draws the same pairs [default: 0]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}
