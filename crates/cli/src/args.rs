//! The arguments of the command line.

#![allow(rustdoc::broken_intra_doc_links, reason = "clap shows these lines as they stand")]

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::{PathBufValueParser, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use nearprint_dataset::{DocumentPlace, HtmlText, WarcId};
use nearprint_join::KernelName;
use nearprint_pipeline::PairsMode;
use nearprint_profile::profiles;
use nearprint_study::DiffPlace;

use crate::asked::Asked;
use crate::bytes::Bytes;
use crate::documents;
use crate::exit_code::Failure;
use crate::place::{local, nights, place};

/// The default maximum number of pairs that `--pairs all` writes.
pub const MAX_PAIRS: u64 = 50_000_000;

/// Finds near-duplicate documents in nightly crawls: SimHash fingerprints, joined exactly.
///
/// Start with `nearprint config init`.
#[derive(Debug, Parser)]
#[command(name = "nearprint", version, arg_required_else_help = true, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done or already published, 64 usage, 65 bad data, 66 input missing, 69 store unavailable, \
70 bug, 73 output exists, 74 local disk or memory, 75 try again, 77 permission, 78 bad config, 130/143 signals.";

/// The options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Print one JSON summary as the last line
    #[arg(long, global = true)]
    pub json: bool,
    /// Write the JSON summary to FILE too, also after a failure; replaces what an earlier command wrote
    #[arg(long, global = true, value_name = "FILE", value_parser = named_json())]
    pub summary_file: Option<PathBuf>,
    /// Threads [default: all cores]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Memory limit, such as 4GiB; a command that needs less uses less [default: unlimited]
    #[arg(long, global = true, value_name = "BYTES")]
    pub memory_limit: Option<Bytes>,
    /// Memory for the reduce alone, within --memory-limit; beyond it, the reduce spills to disk [default: 1GiB]
    #[arg(long, global = true, value_name = "BYTES")]
    pub reduce_memory: Option<Bytes>,
    /// Folder for temporary files [default: the system's]
    #[arg(long, global = true, value_name = "DIR", value_parser = local_path())]
    pub spill_dir: Option<PathBuf>,
    /// Most bytes that the reduce may hold in --spill-dir at once [default: unlimited]
    #[arg(long, global = true, value_name = "BYTES")]
    pub max_spill: Option<Bytes>,
    /// Instruction set of the join [default: the best that the processor has]
    #[arg(long, global = true, value_name = "NAME", value_parser = kernel_name())]
    pub kernel: Option<KernelName>,
    /// Log more; give it twice to log still more
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Show no progress, and log warnings and errors only
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Format of the log lines on standard error
    #[arg(long, global = true, value_name = "FORMAT", default_value = "text")]
    pub log_format: LogFormat,
}

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people
    Text,
    /// One JSON object a line
    Json,
}

#[derive(Debug, Subcommand)]
#[expect(clippy::large_enum_variant, reason = "a process has one command")]
pub enum Command {
    /// Run a night: fingerprint its documents, join, decide, publish, advance the store
    Run(RunArgs),
    /// Fingerprint documents into a fingerprints dataset
    Fingerprint(FingerprintArgs),
    /// Build an idf table for TF-IDF weights
    #[command(subcommand)]
    Idf(IdfCommand),
    /// Join fingerprints datasets into pairs
    Join(JoinArgs),
    /// Show the plan of a join of given sizes, and about how long the join would take
    Plan(PlanArgs),
    /// Score a profile on labelled documents
    Evaluate(EvaluateArgs),
    /// Choose distances for your own documents: draw pairs to label, then read the labels back
    Tune(TuneArgs),
    /// Explain why a profile takes texts for near-duplicates, or does not
    Explain(ExplainArgs),
    /// Show the results of a published night
    Report(ReportArgs),
    /// Measure what a published night lost: compare sampled dropped documents with those that stay in their place
    Audit(AuditArgs),
    /// Show what changed between two generations of a night, in one output or in two
    Diff(DiffArgs),
    /// Write the surviving documents of published nights, in the formats of their files
    Filter(FilterArgs),
    /// Re-read everything that a store published, and compare it with the commits
    Check(CheckArgs),
    /// Find the documents of a store that are near a text or a fingerprint
    Query(QueryArgs),
    /// Answer such queries over HTTP, with a page to ask from, until SIGTERM
    Serve(ServeArgs),
    /// Create, inspect and maintain a store
    #[command(subcommand)]
    Store(StoreCommand),
    /// Write, check and describe job files
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print the completions of a shell
    Completions(CompletionsArgs),
    /// Write the manual pages
    Man(ManArgs),
}

impl Command {
    /// Returns the name of the command, and its night if it has one.
    pub fn asked(&self) -> Asked {
        let (command, dt) = match self {
            Self::Run(args) => ("run", args.dt.clone()),
            Self::Fingerprint(_) => ("fingerprint", None),
            Self::Idf(IdfCommand::Build(_)) => ("idf build", None),
            Self::Join(_) => ("join", None),
            Self::Plan(_) => ("plan", None),
            Self::Evaluate(_) => ("evaluate", None),
            Self::Tune(_) => ("tune", None),
            Self::Explain(_) => ("explain", None),
            Self::Report(args) => ("report", Some(args.dt.clone())),
            Self::Audit(args) => ("audit", Some(args.dt.clone())),
            Self::Diff(args) => ("diff", Some(args.dt.clone())),
            Self::Filter(args) => ("filter", Some(args.dt.clone())),
            Self::Check(args) => ("check", args.dt.clone()),
            Self::Config(ConfigCommand::Init(_)) => ("config init", None),
            Self::Config(ConfigCommand::Check(_)) => ("config check", None),
            Self::Config(ConfigCommand::Schema) => ("config schema", None),
            Self::Completions(_) => ("completions", None),
            Self::Man(_) => ("man", None),
            Self::Query(_) => ("query", None),
            Self::Serve(_) => ("serve", None),
            Self::Store(StoreCommand::Index(_)) => ("store index", None),
            Self::Store(StoreCommand::Info(_)) => ("store info", None),
            Self::Store(StoreCommand::Check(_)) => ("store check", None),
            Self::Store(StoreCommand::Compact(_)) => ("store compact", None),
            Self::Store(StoreCommand::Gc(_)) => ("store gc", None),
            Self::Store(StoreCommand::Init(_)) => ("store init", None),
            Self::Store(StoreCommand::Forget(_)) => ("store forget", None),
            Self::Store(StoreCommand::DropNight(args)) => ("store drop-night", Some(args.dt.clone())),
        };
        Asked { command: command.to_owned(), dt }
    }
}

#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// Job file
    #[arg(long, short, value_name = "FILE", value_parser = local_path())]
    pub config: PathBuf,
    /// The night, such as 2026-11-20
    #[arg(long, value_name = "DATE", required_unless_present = "stale", alias = "date")]
    pub dt: Option<String>,
    /// Publish all stale nights again, in order of date, with what was added before them; the first failure ends it
    #[arg(long, conflicts_with_all = ["dt", "late", "files_from", "dry_run"])]
    pub stale: bool,
    /// Say what the run would do and write nothing: reads listings, footers and the store, and checks permissions
    #[arg(long)]
    pub dry_run: bool,
    /// Allow a date older than the store's newest
    #[arg(long)]
    pub late: bool,
    /// Publish a night again that is already published
    #[arg(long)]
    pub replace: bool,
    /// Create the store if it does not exist, as a first night requires
    #[arg(long)]
    pub create_store: bool,
    /// Documents, instead of the job file's
    #[arg(long, value_name = "PATH", value_parser = nights)]
    pub documents: Option<String>,
    /// Read the paths or URLs of the night's documents from FILE, one a line, instead of the job file's documents;
    /// `-`: standard input
    #[arg(long, value_name = "FILE", value_parser = local_path(), conflicts_with = "documents")]
    pub files_from: Option<PathBuf>,
    /// Version of the Delta table of documents, instead of the job file's [default: the newest]
    #[arg(long, value_name = "N", conflicts_with = "files_from")]
    pub documents_version: Option<u64>,
    /// Store, instead of the job file's
    #[arg(long, value_name = "PATH", value_parser = place)]
    pub store: Option<String>,
    /// Reference store: the night is joined with it too, and nothing is written there; may be repeated; instead of the
    /// job file's
    #[arg(long = "reference", value_name = "PATH", value_parser = place)]
    pub references: Vec<String>,
    /// Output, instead of the job file's
    #[arg(long, value_name = "PATH", value_parser = place)]
    pub output: Option<String>,
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
    /// Refuse documents, store, references and output that do not lie below PATH; may be repeated; instead of the job file's
    #[arg(long = "root", value_name = "PATH", value_parser = place)]
    pub roots: Vec<String>,
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
    /// Write a page about the published night, which replaces a file of this name
    #[arg(long, value_name = "FILE.html", value_parser = named_html, conflicts_with_all = ["stale", "dry_run"])]
    pub report: Option<String>,
    #[command(flatten)]
    pub watch: WatchArgs,
}

/// What tells others about a run.
#[derive(Debug, Clone, Args)]
pub struct WatchArgs {
    /// Replace FILE with metrics for Prometheus, also after a failure; for node_exporter's textfile collector
    #[arg(long, value_name = "FILE", value_parser = named_prom())]
    pub metrics_file: Option<PathBuf>,
    /// Send OpenLineage events to a URL, or append them to a file
    #[arg(long, value_name = "URL|FILE", value_parser = place)]
    pub openlineage: Option<String>,
    /// Namespace of the job in OpenLineage events
    #[arg(long, value_name = "NAME", env = "OPENLINEAGE_NAMESPACE", default_value = "nearprint")]
    pub openlineage_namespace: String,
    /// Parent of the run in OpenLineage events: NAMESPACE/JOB/RUN_ID
    #[arg(long, value_name = "PARENT", env = "OPENLINEAGE_PARENT_ID")]
    pub openlineage_parent: Option<String>,
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
    /// Publish regardless of the breakers
    #[arg(long)]
    pub no_breakers: bool,
}

/// The treatment of bad rows and files, instead of the job file's.
#[derive(Debug, Clone, Args)]
pub struct InputArgs {
    /// Most rows that may be quarantined because they are no documents; more fail the run
    #[arg(long, value_name = "N")]
    pub max_bad_rows: Option<u64>,
    /// Most unreadable files that may be passed over; more fail the run
    #[arg(long, value_name = "N")]
    pub max_bad_files: Option<u64>,
    /// Quarantine rows with larger texts, such as 64MiB
    #[arg(long, value_name = "BYTES")]
    pub max_doc_bytes: Option<Bytes>,
    /// Treatment of rows whose id an earlier row has
    #[arg(long, value_name = "POLICY")]
    pub on_duplicate_id: Option<OnDuplicateId>,
    /// Read binary columns of Parquet files as UTF-8
    #[arg(long)]
    pub binary_as_utf8: bool,
    /// Allow no bad row and no bad file, regardless of the job file
    #[arg(long, conflicts_with_all = ["max_bad_rows", "max_bad_files"])]
    pub strict: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum OnDuplicateId {
    /// Fail the run
    Fail,
    /// Keep the first row in the order of file paths and rows, and quarantine the others
    #[value(name = "keep_first", alias = "keep-first")]
    KeepFirst,
}

/// The place of the documents.
#[derive(Debug, Clone, Args)]
pub struct DocumentsArgs {
    /// Documents: file, folder, glob, s3:// prefix or Delta table
    #[arg(long, value_name = "PATH", value_parser = place, required_unless_present = "files_from")]
    pub documents: Option<String>,
    /// Read the documents' paths or URLs from FILE, one a line; `-`: standard input
    #[arg(long, value_name = "FILE", value_parser = local_path(), conflicts_with = "documents")]
    pub files_from: Option<PathBuf>,
    /// Version of the Delta table that --documents names [default: the newest]
    #[arg(long, value_name = "N", requires = "documents", conflicts_with = "files_from")]
    pub documents_version: Option<u64>,
}

impl DocumentsArgs {
    /// Returns the place of the documents.
    pub fn place(&self) -> Result<DocumentPlace, Failure> {
        let place = documents::place(self.documents.as_ref(), self.files_from.as_deref(), self.documents_version)?;
        place.ok_or_else(|| Failure::usage("give --documents or --files-from"))
    }
}

/// The profile, and the columns of the documents.
#[derive(Debug, Clone, Args)]
pub struct ProfileArgs {
    /// Job file with profile, columns and overrides
    #[arg(long, short, value_name = "FILE", value_parser = local_path())]
    pub config: Option<PathBuf>,
    #[arg(long, value_name = "NAME", help = profile_help())]
    pub profile: Option<String>,
    /// Override one key of the profile, such as tokenize.features.weight=count; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// Column of the ids
    #[arg(long, value_name = "NAME")]
    pub id_column: Option<String>,
    /// Column of the texts
    #[arg(long, value_name = "NAME")]
    pub text_column: Option<String>,
    /// Id of a document in a WARC file [default: url]
    #[arg(long, value_name = "ID")]
    pub warc_id: Option<WarcIdArg>,
    /// Text of a web page: main, all, or selector=CSS [default: main]
    #[arg(long, value_name = "TEXT")]
    pub html_text: Option<HtmlText>,
}

/// The id of a document in a WARC file.
#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum WarcIdArg {
    /// The URL of the page
    Url,
    /// The time of the record, a blank, and the URL of the page
    UrlTime,
    /// The id of the record
    RecordId,
}

impl From<WarcIdArg> for WarcId {
    fn from(id: WarcIdArg) -> Self {
        match id {
            WarcIdArg::Url => Self::Url,
            WarcIdArg::UrlTime => Self::UrlTime,
            WarcIdArg::RecordId => Self::RecordId,
        }
    }
}

#[derive(Debug, Clone, Args)]
pub struct FingerprintArgs {
    #[command(flatten)]
    pub documents: DocumentsArgs,
    /// Folder of the dataset
    #[arg(long, value_name = "DIR", value_parser = place)]
    pub output: String,
    /// Bits of the fingerprints, if the profile's program has them: 32, 64, or 128, which no join accepts
    #[arg(long, value_name = "N", value_parser = any_bits)]
    pub bits: Option<u32>,
    /// Replace an output that exists
    #[arg(long)]
    pub replace: bool,
    #[command(flatten)]
    pub input: InputArgs,
    #[command(flatten)]
    pub profile: ProfileArgs,
}

#[derive(Debug, Clone, Subcommand)]
pub enum IdfCommand {
    /// Count in how many documents each token occurs, and write the table
    Build(IdfBuildArgs),
}

#[derive(Debug, Clone, Args)]
pub struct IdfBuildArgs {
    #[command(flatten)]
    pub documents: DocumentsArgs,
    /// The table, a local file for the job's `idf`
    #[arg(long, value_name = "FILE", value_parser = local_path())]
    pub output: PathBuf,
    /// Leave out tokens that occur in fewer documents
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub min_documents: u64,
    /// Replace a table that exists
    #[arg(long)]
    pub replace: bool,
    #[command(flatten)]
    pub profile: ProfileArgs,
}

#[derive(Debug, Clone, Args)]
pub struct JoinArgs {
    /// Fingerprints of the new batch: file, folder, glob or s3:// prefix with doc_id and fingerprint
    #[arg(long, value_name = "PATH", value_parser = place)]
    pub queries: String,
    /// Existing fingerprints, or a store
    #[arg(long, value_name = "PATH", value_parser = place)]
    pub existing: Option<String>,
    /// Join the queries with each other
    #[arg(long = "self")]
    pub itself: bool,
    /// Folder for `pairs`
    #[arg(long, value_name = "DIR", value_parser = place)]
    pub output: String,
    /// Largest Hamming distance of a pair
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(0..=63))]
    pub max_distance: u32,
    /// Largest sketch distance of a pair [default: sketches are not verified]
    #[arg(long, value_name = "N")]
    pub max_sketch_distance: Option<u32>,
    /// Bits of the fingerprints
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = bits)]
    pub bits: u32,
    /// Every pair, or a spanning forest of them
    #[arg(long, default_value = "forest")]
    pub pairs: Pairs,
    /// The most pairs that `--pairs all` may write
    #[arg(long, value_name = "N", default_value_t = MAX_PAIRS)]
    pub max_pairs: u64,
    /// Replace an output that exists
    #[arg(long)]
    pub replace: bool,
    /// Job file, for its [s3] and [resources]
    #[arg(long, short, value_name = "FILE", value_parser = local_path())]
    pub config: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub struct PlanArgs {
    /// Existing fingerprints, such as 8000000000 or 2^33
    #[arg(long, value_name = "N", value_parser = count)]
    pub existing_rows: u64,
    /// Query fingerprints
    #[arg(long, value_name = "N", value_parser = count)]
    pub query_rows: u64,
    /// Largest Hamming distance of a pair
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(0..=63))]
    pub max_distance: u32,
    /// Bits of the fingerprints
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = bits)]
    pub bits: u32,
    /// Sorted runs that the existing fingerprints are spread over: nights since the store was compacted
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub runs: u64,
    /// Also join the queries with each other
    #[arg(long = "self")]
    pub itself: bool,
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// The cluster of `plan --workers`.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "On a cluster")]
pub struct ClusterArgs {
    /// Plan for so many worker processes, of --threads threads each [default of --threads: 1]
    #[arg(long, value_name = "N", requires_all = ["worker_memory", "bandwidth"], conflicts_with = "memory_limit",
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub workers: Option<u32>,
    /// Memory that a worker process may take, such as 16GiB
    #[arg(long, value_name = "BYTES", requires = "workers")]
    pub worker_memory: Option<Bytes>,
    /// Bytes that a worker process reads from storage in a second, such as 200MB
    #[arg(long, value_name = "BYTES", requires = "workers")]
    pub bandwidth: Option<Bytes>,
    /// Candidates are verified by sketches, as in a job with max_sketch_distance
    #[arg(long, requires = "workers")]
    pub sketches: bool,
    /// Share of the queries that make pairs, which are shuffled
    #[arg(long, value_name = "SHARE", default_value_t = 0.3, requires = "workers", value_parser = share)]
    pub near_duplicates: f64,
    /// Time of a worker over that of the cost model, as plan --workers prints it where it runs [default: measured here]
    #[arg(long, value_name = "X", requires = "workers", value_parser = positive)]
    pub measured_over_model: Option<f64>,
}

#[derive(Debug, Clone, Args)]
pub struct EvaluateArgs {
    #[command(flatten)]
    pub documents: DocumentsArgs,
    /// Labels: tab-separated id_a, id_b, label (pos, gray, neg), with a header
    #[arg(long, value_name = "FILE", value_parser = place)]
    pub truth: String,
    /// Ids to leave out, one per line
    #[arg(long, value_name = "FILE", value_parser = place)]
    pub ignore: Option<String>,
    /// List scores up to this distance [default: the profile's]
    #[arg(long, value_name = "K")]
    pub max_distance: Option<u32>,
    /// Compare all texts as well, and list the share of pairs found by exact resemblance (Jaccard of shingles)
    #[arg(long)]
    pub by_resemblance: bool,
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

#[derive(Debug, Clone, Args)]
pub struct ExplainArgs {
    /// Ids of two or more documents
    #[arg(value_name = "ID", num_args = 2.., required_unless_present_any = ["text", "text_file"], conflicts_with_all = ["text", "text_file"])]
    pub ids: Vec<String>,
    /// Documents: file, folder, glob, s3:// prefix or Delta table [default: the job file's, of all nights]
    #[arg(long, value_name = "PATH", group = "place", requires = "ids", conflicts_with_all = ["text", "text_file"], value_parser = place)]
    pub documents: Option<String>,
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

#[derive(Debug, Clone, Args)]
pub struct TuneArgs {
    /// Documents to draw pairs from: file, folder, glob, s3:// prefix or Delta table
    #[arg(long, value_name = "PATH", group = "place", requires = "sheet", value_parser = place)]
    pub documents: Option<String>,
    /// Read the documents' paths or URLs from FILE, one a line; `-`: standard input
    #[arg(long, value_name = "FILE", group = "place", requires = "sheet", value_parser = local_path())]
    pub files_from: Option<PathBuf>,
    /// Version of the Delta table that --documents names [default: the newest]
    #[arg(long, value_name = "N", requires = "documents", conflicts_with = "files_from")]
    pub documents_version: Option<u64>,
    /// Write the drawn pairs to this file, ready to be labelled
    #[arg(long, value_name = "FILE.csv", requires = "place", value_parser = named_csv)]
    pub sheet: Option<String>,
    /// Also write the same pairs to this page, side by side
    #[arg(long, value_name = "FILE.html", requires = "sheet", value_parser = named_html)]
    pub html: Option<String>,
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
    pub labels: Option<String>,
    #[command(flatten)]
    pub profile: ProfileArgs,
}

#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// Job file
    #[arg(long, short, value_name = "FILE", value_parser = local_path())]
    pub config: PathBuf,
    /// The night
    #[arg(long, value_name = "DATE", alias = "date")]
    pub dt: String,
    /// Number of dropped documents and of clusters to show [default: 5, on a page 20]
    #[arg(long, value_name = "N")]
    pub examples: Option<usize>,
    /// Write the report as a page too, which replaces a file of this name
    #[arg(long, value_name = "FILE.html", value_parser = named_html)]
    pub html: Option<String>,
    /// Format of the report on standard output
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: ReportFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// For a terminal
    Text,
    /// Markdown: small tables for chats and continuous integration
    Md,
}

#[derive(Debug, Clone, Args)]
pub struct AuditArgs {
    /// Job file of the night's run
    #[arg(long, short, value_name = "FILE", value_parser = local_path())]
    pub config: PathBuf,
    /// The night
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

#[derive(Debug, Clone, Args)]
#[command(after_help = DIFF_EXAMPLES)]
pub struct DiffArgs {
    /// Results: the `output` of a job, or OUTPUT@GENERATION with the first digits of a generation [default: the job
    /// file's output]
    #[arg(value_name = "A", required_unless_present = "config", value_parser = generation)]
    pub a: Option<DiffPlace>,
    /// Results to compare with A [default: A's newest generation with the one before it]
    #[arg(value_name = "B", value_parser = generation)]
    pub b: Option<DiffPlace>,
    /// The night
    #[arg(long, value_name = "DATE", alias = "date")]
    pub dt: String,
    /// Job file, for its output and [s3]
    #[arg(long, short, value_name = "FILE", value_parser = local_path())]
    pub config: Option<PathBuf>,
    /// Most examples of each kind of change; the counts are always complete
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub examples: usize,
    /// Write Markdown
    #[arg(long, conflicts_with = "json")]
    pub md: bool,
}

const DIFF_EXAMPLES: &str = "Examples:
  nearprint diff results --dt 2026-11-19                    what the last --replace of the night changed
  nearprint diff results-a results-b --dt 2026-11-19        two configurations of one night
  nearprint diff results@5f0c9a2e --dt 2026-11-19           a generation, and the newest one";

#[derive(Debug, Clone, Args)]
#[command(after_help = FILTER_EXAMPLES)]
pub struct FilterArgs {
    /// Job file of the nights' runs, for its store, documents and columns
    #[arg(long, short, value_name = "FILE", value_parser = local_path())]
    pub config: PathBuf,
    /// The night, or the first one
    #[arg(long, value_name = "DATE", alias = "date")]
    pub dt: String,
    /// The last night: all published nights from --dt to this one are filtered
    #[arg(long, value_name = "DATE")]
    pub to: Option<String>,
    /// Folder to write to; the files of a night lie in its dt=DATE, under the names that they have among the documents
    #[arg(long, visible_alias = "out", value_name = "DIR", value_parser = place)]
    pub output: String,
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

/// The store that is searched, and the limits within which its documents match.
#[derive(Debug, Clone, Args)]
pub struct LookupArgs {
    /// Store, instead of the job file's
    #[arg(long, value_name = "PATH", value_parser = place)]
    pub store: Option<String>,
    /// Job file, for its store, its profile and its distances
    #[arg(long, short, value_name = "FILE", value_parser = local_path())]
    pub config: Option<PathBuf>,
    /// Largest Hamming distance of a match [default: the profile's]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(0..=63))]
    pub max_distance: Option<u32>,
    /// Largest sketch distance of a match [default: the profile's]
    #[arg(long, value_name = "N")]
    pub max_sketch_distance: Option<u32>,
    #[arg(long, value_name = "NAME", help = profile_help())]
    pub profile: Option<String>,
    /// Override one key of the profile, such as tokenize.features.weight=count; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// Text of web pages in the store: main, all, or selector=CSS [default: the job file's, or main]
    #[arg(long, value_name = "TEXT")]
    pub html_text: Option<HtmlText>,
}

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
    /// A fingerprint, in hex or decimal
    #[arg(long, value_name = "NUMBER", group = "asked")]
    pub fingerprint: Option<String>,
    /// The sketch of --fingerprint, in hex; without it, sketches are not compared
    #[arg(long, value_name = "HEX", requires = "fingerprint", conflicts_with_all = ["text", "file", "jsonl"])]
    pub sketch: Option<String>,
    /// Queries, one JSON object a line, {"id", "text"} or {"id", "fingerprint", "sketch"}; `-`: standard input. The answers
    /// come one a line, in order
    #[arg(long, value_name = "FILE", group = "asked", value_parser = local_path())]
    pub jsonl: Option<PathBuf>,
    /// List the nearest N matches, and count the others; 0: list all
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub max_matches: usize,
}

const QUERY_EXAMPLES: &str = "Examples:
  nearprint query --config job.toml --file page.txt
  nearprint query --store s3://crawl/store --fingerprint 0x1f3a9c0042bd77e1 --max-distance 3
  nearprint query --config job.toml --jsonl - < pages.jsonl > answers.jsonl";

/// `--max-body` beyond this would let a few requests take all memory.
const MAX_BODY: usize = 1 << 30;

#[derive(Debug, Clone, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub struct ServeArgs {
    #[command(flatten)]
    pub lookup: LookupArgs,
    /// List the nearest N matches, and count the others; 0: list all
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub max_matches: usize,
    /// Address and port; one that other machines can reach needs --token-file
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8099", value_parser = listen_address)]
    pub listen: SocketAddr,
    /// File with the token that requests must carry, `Authorization: Bearer TOKEN`
    #[arg(long, value_name = "FILE", value_parser = local_path())]
    pub token_file: Option<PathBuf>,
    /// Largest body of a request, and largest line of a stream
    #[arg(long, value_name = "BYTES", default_value = "1MiB", value_parser = body_bytes)]
    pub max_body: Bytes,
    /// Most requests at the same time; more are told to try again (503)
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..))]
    pub max_requests: u16,
}

fn body_bytes(text: &str) -> Result<Bytes, String> {
    let bytes: Bytes = text.parse()?;
    if bytes.0 > MAX_BODY { Err("at most 1GiB".to_owned()) } else { Ok(bytes) }
}

/// Parses an address with its port. A name is not looked up, because it may mean several addresses.
fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let port = || text.rsplit(':').next().and_then(|port| port.parse::<u16>().ok());
    let meant = || format!("write an address and a port, such as 127.0.0.1:{}", port().unwrap_or(8099));
    text.parse().map_err(|_| meant())
}

const SERVE_EXAMPLES: &str = "Examples:
  nearprint serve --config job.toml
  nearprint serve --config job.toml --listen 0.0.0.0:8099 --token-file /etc/nearprint/token
  curl -H 'Content-Type: application/json' -d '{\"text\": \"…\"}' http://127.0.0.1:8099/query";

#[derive(Debug, Clone, Subcommand)]
pub enum StoreCommand {
    /// Create an empty store for a first night
    Init(StoreArgs),
    /// Show the nights, rows and bytes
    Info(StoreArgs),
    /// Re-read every file, and compare it with the newest commit
    Check(StoreArgs),
    /// Merge the fingerprints of all nights into one segment, which later joins read instead
    Compact(CompactArgs),
    /// Write sorted copies of all fingerprints, by which `query` finds a document at once
    Index(StoreArgs),
    /// Remove a night from the store: one with a wrong date, or one that should no longer count
    DropNight(DropNightArgs),
    /// Forget old nights, or single documents, as if the store had never had them
    Forget(ForgetArgs),
    /// Delete everything that no commit names: replaced, dropped and forgotten nights, leftovers of killed runs, superseded
    /// segments and indexes, old commits
    Gc(GcArgs),
}

#[derive(Debug, Clone, Subcommand)]
pub enum ConfigCommand {
    /// Write a job file with comments to begin with
    Init(ConfigInitArgs),
    /// Check a job file: its keys, its values, and whether its places exist
    Check(ConfigCheckArgs),
    /// Print the JSON Schema of a job file
    Schema,
}

#[derive(Debug, Clone, Args)]
pub struct ConfigInitArgs {
    /// The job file to write
    #[arg(value_name = "FILE", default_value = "job.toml", value_parser = local_path())]
    pub file: PathBuf,
    /// Folder of the crawl
    #[arg(long, value_name = "PATH", default_value = "documents", value_parser = nights)]
    pub documents: String,
    /// Fingerprints of all earlier nights
    #[arg(long, value_name = "PATH", default_value = "store", value_parser = place)]
    pub store: String,
    /// Root of the results
    #[arg(long, value_name = "PATH", default_value = "results", value_parser = place)]
    pub output: String,
}

#[derive(Debug, Clone, Args)]
pub struct ConfigCheckArgs {
    /// The job file
    #[arg(value_name = "FILE", value_parser = local_path())]
    pub file: PathBuf,
}

#[derive(Debug, Clone, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Clone, Args)]
pub struct ManArgs {
    /// Folder for nearprint.1 and a page for each command [default: the page of nearprint on standard output]
    #[arg(value_name = "DIR", value_parser = local_path())]
    pub dir: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub struct DropNightArgs {
    #[command(flatten)]
    pub place: StoreArgs,
    /// The night, such as 2062-11-20
    #[arg(long, value_name = "DATE", alias = "date")]
    pub dt: String,
}

#[derive(Debug, Clone, Args)]
#[command(group = clap::ArgGroup::new("what").required(true))]
pub struct ForgetArgs {
    #[command(flatten)]
    pub place: StoreArgs,
    /// Forget all nights before DATE, with their results
    #[arg(long, value_name = "DATE", group = "what")]
    pub before: Option<String>,
    /// Forget the documents whose ids FILE lists, one a line, in all nights and their results; `-`: standard input
    #[arg(long, value_name = "FILE", value_parser = local_path(), group = "what")]
    pub ids: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub struct GcArgs {
    #[command(flatten)]
    pub place: StoreArgs,
    /// Root of results to clean, besides those of the store's nights [default: the job file's]
    #[arg(long, value_name = "PATH", value_parser = place)]
    pub output: Option<String>,
    /// Keep files that were written, or that the newest commit named, in the last HOURS hours
    #[arg(long, value_name = "HOURS", default_value_t = 24)]
    pub grace_hours: u32,
    /// Only list, and delete nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Clone, Args)]
pub struct CheckArgs {
    /// Job file
    #[arg(long, short, value_name = "FILE", required_unless_present = "store", value_parser = local_path())]
    pub config: Option<PathBuf>,
    /// Store, instead of the job file's
    #[arg(long, value_name = "PATH", value_parser = place)]
    pub store: Option<String>,
    /// This night only [default: all]
    #[arg(long, value_name = "DATE", alias = "date")]
    pub dt: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub struct CompactArgs {
    #[command(flatten)]
    pub place: StoreArgs,
    /// Approximate rows of a part of the segment; --spill-dir holds one part per thread [default: 16777216]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub part_rows: Option<u64>,
}

#[derive(Debug, Clone, Args)]
pub struct StoreArgs {
    /// The store [default: the job file's]
    #[arg(value_name = "STORE", required_unless_present = "config", value_parser = place)]
    pub store: Option<String>,
    /// Job file
    #[arg(long, short, value_name = "FILE", value_parser = local_path())]
    pub config: Option<PathBuf>,
}

/// The pairs to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Pairs {
    Forest,
    All,
}

impl From<Pairs> for PairsMode {
    fn from(pairs: Pairs) -> Self {
        match pairs {
            Pairs::Forest => Self::Forest,
            Pairs::All => Self::All,
        }
    }
}

fn profile_help() -> String {
    let names: Vec<&str> = profiles().map(|(name, ..)| *name).collect();
    format!("Named profile: {}", names.join(", "))
}

/// Accepts only the name of an SVG file, so that a slip on the command line does not overwrite documents.
fn named_svg(text: &str) -> Result<PathBuf, String> {
    ending(text, ".svg").map(PathBuf::from)
}

fn named_csv(text: &str) -> Result<String, String> {
    ending(text, ".csv")
}

fn named_html(text: &str) -> Result<String, String> {
    ending(text, ".html")
}

fn ending(text: &str, end: &str) -> Result<String, String> {
    let text = &place(text)?;
    if text.ends_with(end) { Ok(text.clone()) } else { Err(format!("name a file that ends in {end}")) }
}

/// The least digits that name a generation.
const GENERATION_DIGITS: std::ops::RangeInclusive<usize> = 4..=32;

/// Parses the root of results, with or without the first digits of a generation.
fn generation(text: &str) -> Result<DiffPlace, String> {
    let is_generation = |digits: &str| {
        GENERATION_DIGITS.contains(&digits.len()) && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    };
    let (output, digits) = match text.rsplit_once('@').filter(|(_, digits)| is_generation(digits)) {
        Some((output, digits)) => (output, Some(digits.to_owned())),
        None => (text, None),
    };
    Ok(DiffPlace { output: place(output)?, generation: digits })
}

/// Accepts only the name of a JSON file, so that a slip on the command line does not overwrite documents.
fn named_json() -> impl TypedValueParser<Value = PathBuf> {
    local_path().try_map(|path| with_extension(path, "json"))
}

/// Accepts only the name of a file that node_exporter reads.
fn named_prom() -> impl TypedValueParser<Value = PathBuf> {
    local_path().try_map(|path| with_extension(path, "prom"))
}

fn with_extension(path: PathBuf, extension: &str) -> Result<PathBuf, String> {
    match path.extension() {
        Some(end) if end == extension => Ok(path),
        _ => Err(format!("name a file that ends in .{extension}")),
    }
}

fn kernel_name() -> impl TypedValueParser<Value = KernelName> {
    PossibleValuesParser::new(KernelName::ALL.map(KernelName::name)).try_map(|name| name.parse())
}

fn local_path() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(local)
}

fn share(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| "a number from 0 to 1".to_owned())
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&n| n > 0).ok_or_else(|| "a number from 1 up".to_owned())
}

/// Parses a number, or a power of two such as 2^33.
fn count(text: &str) -> Result<u64, String> {
    let power = || 2u64.checked_pow(text.strip_prefix("2^")?.parse().ok()?);
    text.parse().ok().or_else(power).ok_or_else(|| "a number such as 1000000 or 2^20".to_owned())
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "a number above 0".to_owned())
}

fn any_bits(text: &str) -> Result<u32, String> {
    if text == "128" { Ok(128) } else { bits(text).map_err(|_| "fingerprints have 32, 64 or 128 bits".to_owned()) }
}

fn bits(text: &str) -> Result<u32, String> {
    match text {
        "32" => Ok(32),
        "64" => Ok(64),
        _ => Err("fingerprints have 32 or 64 bits".to_owned()),
    }
}
