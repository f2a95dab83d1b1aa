//! The arguments of `nearprint evaluate`.

use std::path::PathBuf;

use clap::Args;

use super::file_names::named_svg;
use super::inputs::DocumentsArgs;
use super::profile::ProfileArgs;
use crate::place::{Given, place};

#[derive(Debug, Clone, Args)]
pub struct EvaluateArgs {
    #[command(flatten)]
    pub documents: DocumentsArgs,
    /// Labels: tab-separated id_a, id_b, label (pos, gray, neg), with a header
    #[arg(long, value_name = "FILE", value_parser = place)]
    pub truth: Given,
    /// Ids to leave out, one per line
    #[arg(long, value_name = "FILE", value_parser = place)]
    pub ignore: Option<Given>,
    /// List scores up to this distance [default: the profile's]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(0..=63))]
    pub max_distance: Option<u32>,
    /// Compare all texts as well, and list the share of pairs found by exact resemblance (Jaccard of shingles)
    #[arg(long)]
    pub by_resemblance: bool,
    /// List the share of pairs found by the column `grade` of the labels
    #[arg(long)]
    pub by_grade: bool,
    /// Draw the scores by distance and by sketch distance to an SVG file
    #[arg(long, value_name = "FILE.svg", value_parser = named_svg)]
    pub plot: Option<PathBuf>,
    /// Replace a plot that exists
    #[arg(long, requires = "plot")]
    pub replace: bool,
    /// Seed of the feature hashes
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub profile: ProfileArgs,
}
