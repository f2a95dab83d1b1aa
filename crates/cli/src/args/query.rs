//! The arguments of `nearprint query`.

use std::path::PathBuf;

use clap::Args;

use super::file_names::local_path;
use super::lookup::LookupArgs;

#[derive(Debug, Clone, Args)]
#[command(group = clap::ArgGroup::new("asked").required(true), after_help = QUERY_EXAMPLES)]
pub struct QueryArgs {
    #[command(flatten)]
    pub lookup: LookupArgs,
    /// The text of a document
    #[arg(long, value_name = "TEXT", group = "asked")]
    pub text: Option<String>,
    /// A file with the text of a document, or an HTML file; `-`: standard input
    #[arg(long, value_name = "FILE", group = "asked", value_parser = local_path())]
    pub file: Option<PathBuf>,
    /// The id of a document of the store: its neighbours, by its stored fingerprint, without itself
    #[arg(long, value_name = "ID", group = "asked")]
    pub id: Option<String>,
    /// A fingerprint, in hex or decimal
    #[arg(long, value_name = "NUMBER", group = "asked")]
    pub fingerprint: Option<String>,
    /// The sketch of --fingerprint, in hex; without it, sketches are not compared
    #[arg(long, value_name = "HEX", requires = "fingerprint", conflicts_with_all = ["text", "file", "id", "jsonl"])]
    pub sketch: Option<String>,
    /// Queries, one JSON object a line, {"id", "text"}, {"id", "document_id"} or {"id", "fingerprint", "sketch"}; `-`: standard input. The answers
    /// come one a line, in order
    #[arg(long, value_name = "FILE", group = "asked", value_parser = local_path())]
    pub jsonl: Option<PathBuf>,
    /// List the nearest N matches, and count the others; 0: list all
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub max_matches: usize,
}

const QUERY_EXAMPLES: &str = "Examples:
  nearprint query --config job.toml --file page.txt
  nearprint query --config job.toml --id https://example.org/a
  nearprint query --store s3://crawl/store --fingerprint 0x1f3a9c0042bd77e1 --max-distance 3
  nearprint query --config job.toml --jsonl - < pages.jsonl > answers.jsonl";
