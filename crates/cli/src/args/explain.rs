//! The arguments of `nearprint explain`.

use std::path::PathBuf;

use clap::Args;

use super::file_names::local_path;
use super::profile::ProfileArgs;
use crate::place::{Given, place};

#[derive(Debug, Clone, Args)]
pub struct ExplainArgs {
    /// Ids of two or more documents
    #[arg(value_name = "ID", num_args = 2.., required_unless_present_any = ["text", "text_file"], conflicts_with_all = ["text", "text_file"])]
    pub ids: Vec<String>,
    /// Documents: file, folder, glob, s3:// prefix or Delta table [default: the job file's, of all nights]
    #[arg(long, value_name = "PATH", group = "place", requires = "ids", conflicts_with_all = ["text", "text_file"], value_parser = place)]
    pub documents: Option<Given>,
    /// Read the documents' paths or URLs from FILE, one a line; `-`: standard input
    #[arg(long, value_name = "FILE", group = "place", requires = "ids", conflicts_with_all = ["text", "text_file"], value_parser = local_path())]
    pub files_from: Option<PathBuf>,
    /// Version of the Delta table that --documents names [default: the newest]
    #[arg(long, value_name = "N", requires = "documents", conflicts_with_all = ["files_from", "text", "text_file"])]
    pub documents_version: Option<u64>,
    /// A text, instead of a document; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub text: Vec<String>,
    /// A file with one text, instead of a document; may be repeated
    #[arg(long, value_name = "FILE", value_parser = local_path())]
    pub text_file: Vec<PathBuf>,
    /// Number of features to list of each kind; --json lists all
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub features: usize,
    #[command(flatten)]
    pub profile: ProfileArgs,
}
