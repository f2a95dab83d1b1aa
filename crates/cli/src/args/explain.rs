//! The arguments of `nearprint explain`.

use std::path::PathBuf;

use clap::Args;

use super::file_names::local_path;
use super::profile::ProfileArgs;
use crate::place::{Given, place};

#[derive(Debug, Clone, Args)]
#[command(after_help = EXPLAIN_EXAMPLES)]
pub struct ExplainArgs {
    /// One id: what each night of the store decided about the document; two or more: why their texts are near-duplicates
    #[arg(value_name = "ID", num_args = 1.., required_unless_present_any = ["text", "text_file"], conflicts_with_all = ["text", "text_file"])]
    pub ids: Vec<String>,
    /// Documents: file, folder, glob, s3:// prefix, Delta or Iceberg table [default: the job file's, of all nights]
    #[arg(long, value_name = "PATH", group = "place", requires = "ids", conflicts_with_all = ["text", "text_file"], value_parser = place)]
    pub documents: Option<Given>,
    /// Read the documents' paths or URLs from FILE, one a line; `-`: standard input
    #[arg(long, value_name = "FILE", group = "place", requires = "ids", conflicts_with_all = ["text", "text_file"], value_parser = local_path())]
    pub files_from: Option<PathBuf>,
    /// Version of the Delta table, or snapshot of the Iceberg table, that --documents names [default: the newest]
    #[arg(long, value_name = "N", requires = "documents", conflicts_with_all = ["files_from", "text", "text_file"])]
    pub documents_version: Option<u64>,
    /// A text, instead of a document; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub text: Vec<String>,
    /// A file with one text, instead of a document; may be repeated
    #[arg(long, value_name = "FILE", value_parser = local_path())]
    pub text_file: Vec<PathBuf>,
    /// Number of documents to name of those that the document of one ID represents
    #[arg(long, value_name = "N", default_value_t = 3, requires = "ids")]
    pub examples: usize,
    /// Number of features to list of each kind; --json lists all
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub features: usize,
    #[command(flatten)]
    pub profile: ProfileArgs,
}

const EXPLAIN_EXAMPLES: &str = "Examples:
  nearprint explain https://example.org/a --config job.toml
  nearprint explain https://example.org/a https://example.org/b --config job.toml
  nearprint explain --text-file a.txt --text-file b.txt";
