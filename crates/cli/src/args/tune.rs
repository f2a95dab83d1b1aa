//! The arguments of `nearprint tune`.

use std::path::PathBuf;

use clap::Args;

use super::file_names::{local_path, named_csv, named_html};
use super::numbers::at_least_one;
use super::profile::ProfileArgs;
use crate::place::{Given, place};

#[derive(Debug, Clone, Args)]
pub struct TuneArgs {
    /// Documents to draw pairs from: file, folder, glob, s3:// prefix, Delta or Iceberg table
    #[arg(long, value_name = "PATH", group = "place", requires = "sheet", value_parser = place)]
    pub documents: Option<Given>,
    /// Read the documents' paths or URLs from FILE, one a line; `-`: standard input
    #[arg(long, value_name = "FILE", group = "place", requires = "sheet", value_parser = local_path())]
    pub files_from: Option<PathBuf>,
    /// Version of the Delta table, or snapshot of the Iceberg table, that --documents names [default: the newest]
    #[arg(long, value_name = "N", requires = "documents", conflicts_with = "files_from")]
    pub documents_version: Option<u64>,
    /// Write the drawn pairs to this file, ready to be labelled
    #[arg(long, value_name = "FILE.csv", requires = "place", value_parser = named_csv)]
    pub sheet: Option<Given>,
    /// Also write the same pairs to this page, side by side
    #[arg(long, value_name = "FILE.html", requires = "sheet", value_parser = named_html)]
    pub html: Option<Given>,
    /// Most pairs of each distance on the sheet
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = at_least_one)]
    pub per_distance: usize,
    /// Largest distance of a pair on the sheet
    #[arg(long, value_name = "K", default_value_t = 12, value_parser = clap::value_parser!(u32).range(0..=63))]
    pub max_distance: u32,
    /// Replace a sheet that exists
    #[arg(long)]
    pub replace: bool,
    /// Estimate precision and recall from this sheet, whose column 'label' is filled
    #[arg(long, value_name = "FILE.csv", conflicts_with_all = ["sheet", "documents", "files_from", "html", "per_distance", "max_distance", "replace"], value_parser = place)]
    pub labels: Option<Given>,
    #[command(flatten)]
    pub profile: ProfileArgs,
}
