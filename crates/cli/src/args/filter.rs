//! The arguments of `nearprint filter`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use nearprint_documents::TextFormat;

use super::file_names::local_path;
use crate::place::{Given, place};

#[derive(Debug, Clone, Args)]
#[command(after_help = FILTER_EXAMPLES)]
pub struct FilterArgs {
    /// Job file of the nights' runs, for its store, documents and columns
    #[arg(long, short, value_name = "FILE", value_parser = local_path())]
    pub config: PathBuf,
    /// The night, or the first one; with --corpus, the last one; latest, today, yesterday
    #[arg(long, value_name = "DATE", alias = "date", required_unless_present = "corpus")]
    pub dt: Option<String>,
    /// The last night: all published nights from --dt to this one are filtered, each by its own decisions
    #[arg(long, value_name = "DATE", conflicts_with_all = ["corpus", "new"])]
    pub to: Option<String>,
    /// Write the corpus: of each document its newest state over all nights, if that is kept
    #[arg(long, group = "of_corpus")]
    pub corpus: bool,
    /// Write what the night changes in the corpus: new, changed and restored documents, and, in _removed, the ids to take
    /// away first
    #[arg(long, group = "of_corpus")]
    pub new: bool,
    /// With --corpus or --new: list in _gone, and leave out, documents of earlier nights whose input files are gone or have
    /// changed, or whose text is in no record of the store's nights
    #[arg(long, requires = "of_corpus")]
    pub allow_gone: bool,
    /// Folder to write to; the files of a night lie in its dt=DATE, under the names that they have among the documents
    #[arg(long, visible_alias = "out", value_name = "DIR", value_parser = place)]
    pub output: Given,
    /// Write the texts that were compared, and not the documents' files: id, url, title, host, fetch_time, script and text of each
    #[arg(long = "as", value_name = "FORMAT", conflicts_with = "flag")]
    pub texts: Option<TextForm>,
    /// Write the id of each row and a column `keep`, row by row, and not the documents
    #[arg(long)]
    pub flag: bool,
    /// Replace the nights' files if they exist
    #[arg(long)]
    pub replace: bool,
}

/// The format of a file of texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TextForm {
    Parquet,
    Jsonl,
}

impl TextForm {
    pub fn format(self) -> TextFormat {
        match self {
            Self::Parquet => TextFormat::Parquet,
            Self::Jsonl => TextFormat::Jsonl,
        }
    }
}

const FILTER_EXAMPLES: &str = "Examples:
  nearprint filter --config job.toml --dt 2026-11-20 --output survivors
  nearprint filter --config job.toml --corpus --output corpus
  nearprint filter --config job.toml --corpus --as parquet --output texts
  nearprint filter --config job.toml --new --dt 2026-11-20 --output new/2026-11-20
  nearprint filter --config job.toml --dt 2026-11-01 --to 2026-11-20 --output s3://crawl/survivors
  nearprint filter --config job.toml --dt 2026-11-20 --output flags --flag";
