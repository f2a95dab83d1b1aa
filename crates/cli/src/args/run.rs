//! The arguments of `nearprint run`.

use std::path::PathBuf;

use clap::Args;

use super::file_names::{local_path, named_html, named_prom};
use super::inputs::InputArgs;
use super::join::Pairs;
use super::numbers::share;
use crate::place::{Given, nights, place};

#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// Job file
    #[arg(long, short, value_name = "FILE", value_parser = local_path())]
    pub config: PathBuf,
    /// The night, such as 2026-11-20; today, yesterday: in the job file's time zone
    #[arg(long, value_name = "DATE", required_unless_present = "stale", alias = "date")]
    pub dt: Option<String>,
    /// Publish all stale nights of the output again, in order of date, from the files that they were made from and with what was added
    /// before them; the first failure ends it
    #[arg(long, conflicts_with_all = ["dt", "late", "future", "documents", "files_from", "documents_version", "documents_since"])]
    pub stale: bool,
    /// Say what the run would do and write nothing: reads listings, footers and the store, and checks permissions; with
    /// --stale, say which nights it would run
    #[arg(long)]
    pub dry_run: bool,
    /// Allow a date older than the store's newest
    #[arg(long)]
    pub late: bool,
    /// Allow a date that is more than two days after today and after the newest input
    #[arg(long)]
    pub future: bool,
    /// Publish a night again that is already published
    #[arg(long)]
    pub replace: bool,
    /// Create the store if it does not exist, as a first night requires
    #[arg(long)]
    pub create_store: bool,
    /// Documents, instead of the job file's
    #[arg(long, value_name = "PATH", value_parser = nights)]
    pub documents: Option<Given>,
    /// Read the paths or URLs of the night's documents from FILE, one a line, instead of the job file's documents;
    /// `-`: standard input
    #[arg(long, value_name = "FILE", value_parser = local_path(), conflicts_with = "documents")]
    pub files_from: Option<PathBuf>,
    /// Version of the Delta table of documents, or snapshot of the Iceberg table, instead of the job file's [default: the
    /// newest]
    #[arg(long, value_name = "N", conflicts_with = "files_from")]
    pub documents_version: Option<u64>,
    /// Read only files that the table of documents did not have at version or snapshot N
    #[arg(long, value_name = "N", conflicts_with = "files_from")]
    pub documents_since: Option<u64>,
    /// Store, instead of the job file's
    #[arg(long, value_name = "PATH", value_parser = place)]
    pub store: Option<Given>,
    /// Reference store: the night is joined with it too, and nothing is written there; may be repeated; instead of the
    /// job file's
    #[arg(long = "reference", value_name = "PATH", value_parser = place)]
    pub references: Vec<Given>,
    /// Output, instead of the job file's
    #[arg(long, value_name = "PATH", value_parser = place)]
    pub output: Option<Given>,
    /// Pairs to write, instead of the job file's
    #[arg(long)]
    pub pairs: Option<Pairs>,
    /// The most pairs that `--pairs all` may write
    #[arg(long, value_name = "N")]
    pub max_pairs: Option<u64>,
    #[command(flatten)]
    pub input: InputArgs,
    #[command(flatten)]
    pub breakers: BreakerArgs,
    /// Refuse store, output, and whatever is read, that do not lie below PATH; may be repeated; instead of the job file's
    #[arg(long = "root", value_name = "PATH", value_parser = place)]
    pub roots: Vec<Given>,
    /// Accept an S3 server that ignores If-None-Match; nobody else may write to the store
    #[arg(long)]
    pub single_writer: bool,
    /// Hold a lock on this file during the run, instead of the job file's
    #[arg(long, value_name = "FILE", value_parser = local_path())]
    pub lock_file: Option<PathBuf>,
    /// Longest wait for the lock, before the run ends with 75 [default: 0]
    #[arg(long, value_name = "SECONDS")]
    pub lock_wait: Option<u64>,
    /// Exit code if the night has no documents
    #[arg(long, value_name = "N", default_value_t = crate::exit_code::INPUT_MISSING, conflicts_with = "stale",
        value_parser = clap::value_parser!(u8).range(1..))]
    pub empty_exit_code: u8,
    /// Exit code if the crawl has not arrived: the night has no documents, or its `require_marker` is missing
    #[arg(long, value_name = "N", default_value_t = crate::exit_code::INPUT_MISSING, conflicts_with = "stale",
        value_parser = clap::value_parser!(u8).range(1..))]
    pub late_exit_code: u8,
    /// Write a page about the published night, which replaces an earlier one of this name
    #[arg(long, value_name = "FILE.html", value_parser = named_html, conflicts_with_all = ["stale", "dry_run"])]
    pub report: Option<Given>,
    /// Replace FILE with metrics for Prometheus, also after a failure; for node_exporter's textfile collector
    #[arg(long, value_name = "FILE", value_parser = named_prom())]
    pub metrics_file: Option<PathBuf>,
}

/// The breakers, instead of the job file's.
#[derive(Debug, Clone, Args)]
pub struct BreakerArgs {
    /// Stop if a cluster has more than N different texts; 0: never
    #[arg(long, value_name = "N")]
    pub max_cluster: Option<u64>,
    /// Stop if a source loses more than this share to near-duplicates; 1: never
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub max_source_loss: Option<f64>,
    /// Stop if the share of dropped documents differs by more than this from the median of earlier nights; 1: never
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub max_rate_change: Option<f64>,
    /// Stop if near-duplicates lose more than this share of their features on average; 1: never
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub max_mean_lost_share: Option<f64>,
    /// Stop if there are fewer documents than this share of the median of the earlier nights; 0: never
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub min_document_share: Option<f64>,
    /// Stop if the share of kept documents, or of different texts, falls by more than this part of its median; 1: never
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub max_kept_fall: Option<f64>,
    /// Where too few nights can be compared, stop if either share is smaller than this; 0: never
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub min_kept_share: Option<f64>,
    /// Stop if either share of one source falls by more than this part of its median; 1: never
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub max_source_fall: Option<f64>,
    /// Stop if more than this share of a source's documents has one text; 1: never
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub max_text_share: Option<f64>,
    /// Stop if more than this share of the documents are stubs; 1: never
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub max_stub_share: Option<f64>,
    /// Publish regardless of the breakers
    #[arg(long)]
    pub no_breakers: bool,
}
