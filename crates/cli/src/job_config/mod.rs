//! Job files, which are TOML. They name a profile and may override it. Unknown keys are refused.

mod faults;
mod input;
mod places;
mod profile;
pub mod schema;
mod settings;
pub mod watch;

use std::num::{NonZeroU16, NonZeroU32};
use std::path::{Path, PathBuf};

use nearprint_documents::{DuplicateIds, MAX_REPEATED_IDS, WarcId};
use nearprint_fingerprint::{FingerprintConfig, JudgeConfig};
use nearprint_night::Breakers;
use nearprint_pipeline::{ClusterRule, PairsMode, Resources, StubRules};
use nearprint_profile::{HtmlText, JoinConfig, SketchConfig};
use nearprint_storage::S3Config;
use nearprint_store::Writers;
use nearprint_tokenize::TokenizeConfig;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use toml::Table;

use crate::args::{BreakerArgs, Global};
use crate::bytes::Bytes;
use crate::exit_code::Failure;
use crate::job_folder::JobFolder;
use crate::time_zone::zone;

/// A job file of nearprint, in TOML. jobs/nightly.toml explains the keys with their defaults.
///
/// The schema of a job file is derived from this declaration. `x-digest` says what the value of a key is a part of. `night`: the digest
/// of a night, so another value makes another result of the same night, and a published night is refused. `profile`: the
/// configuration, so a store takes one value only. `none`: neither. The keys of a table have the word of the table. Tests hold all
/// keys to their words.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(title = "A job file of nearprint")]
pub struct JobConfig {
    /// The named profile from which the rest starts.
    #[schemars(extend("enum" = profile_names()), extend("x-digest" = "profile"))]
    pub profile: String,
    /// The folder of the crawl, whose nights are in folders `dt=DATE`, or a path with the date: `{dt}`, `{yyyy}/{mm}/{dd}`.
    #[schemars(schema_with = "path", extend("x-digest" = "night"))]
    pub documents: Option<String>,
    /// The version of the Delta table, or the snapshot of the Iceberg table, of documents. Without it, the newest is read.
    #[schemars(extend("x-digest" = "night"))]
    pub documents_version: Option<u64>,
    /// The fingerprints of all earlier nights.
    #[schemars(schema_with = "path", extend("x-digest" = "none"))]
    pub store: Option<String>,
    /// Other stores with which each night is joined.
    #[schemars(schema_with = "paths", extend("x-digest" = "night"))]
    pub references: Vec<String>,
    /// The root of the results.
    #[schemars(schema_with = "path", extend("x-digest" = "none"))]
    pub output: Option<String>,
    /// Whether a run makes a store where there is none.
    #[schemars(extend("x-digest" = "none"))]
    pub create_store: bool,
    /// The number of nights that the store keeps. Without it, the store keeps all.
    #[schemars(extend("x-digest" = "none"))]
    pub keep_nights: Option<NonZeroU32>,
    /// The column of the ids.
    #[schemars(extend("x-digest" = "night"))]
    pub id_column: String,
    /// The column of the texts.
    #[schemars(extend("x-digest" = "night"))]
    pub text_column: String,
    /// The column of the sources. Without it, the ids name them.
    #[schemars(extend("x-digest" = "night"))]
    pub source_column: Option<String>,
    /// The keep order: columns with asc or desc.
    #[schemars(extend("x-digest" = "night"))]
    pub keep: Option<Vec<String>>,
    /// The most rows that may be quarantined.
    #[schemars(extend("x-digest" = "none"))]
    max_bad_rows: u64,
    /// The most unreadable files that may be passed over.
    #[schemars(extend("x-digest" = "none"))]
    max_bad_files: u64,
    /// The most files in formats that are not read, such as CSV, that may be passed over.
    #[schemars(extend("x-digest" = "none"))]
    max_ignored_files: u64,
    /// The largest text, such as 512MiB or 4GB.
    #[schemars(extend("x-digest" = "night"))]
    max_doc_bytes: Bytes,
    /// The rule that says which row of an id stays. Without it, of pages in WARC files the newest, and other repeats fail.
    #[schemars(with = "DuplicateIds", extend("x-digest" = "night"))]
    on_duplicate_id: Option<DuplicateIds>,
    /// The column that says which row is the newest: a time or a number.
    #[schemars(extend("x-digest" = "night"))]
    newest_by: Option<String>,
    /// The largest share of the rows with an id that the rule may leave out.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-digest" = "none"))]
    max_repeated_ids: f64,
    /// Whether binary columns of Parquet files are taken for text.
    #[schemars(extend("x-digest" = "night"))]
    binary_as_utf8: bool,
    /// The id of a page in a WARC file.
    #[schemars(extend("x-digest" = "night"))]
    warc_id: WarcId,
    /// The text of a web page: main, all, or a selector.
    #[schemars(extend("x-digest" = "profile"))]
    html_text: HtmlText,
    /// Whether a night may have no files.
    #[schemars(extend("x-digest" = "none"))]
    allow_empty: bool,
    /// The time zone of today and yesterday, such as Asia/Shanghai.
    #[schemars(extend("x-digest" = "none"))]
    time_zone: Option<String>,
    /// The file that the night's folder must have.
    #[schemars(extend("x-digest" = "none"))]
    require_marker: Option<String>,
    /// The pairs to write.
    #[schemars(extend("x-digest" = "night"))]
    pub pairs: PairsMode,
    /// The most pairs that "all" may write.
    #[schemars(extend("x-digest" = "none"))]
    pub max_pairs: u64,
    /// The rule by which documents are dropped.
    #[schemars(extend("x-digest" = "night"))]
    pub clusters: ClusterRule,
    /// The largest share of its features that a near-duplicate may lose.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-digest" = "night"))]
    pub max_lost_share: Option<f64>,
    /// The file of words for jieba.
    #[schemars(schema_with = "path", extend("x-digest" = "profile"))]
    pub user_dictionary: Option<PathBuf>,
    /// The file of stop words.
    #[schemars(schema_with = "path", extend("x-digest" = "profile"))]
    pub stop_words: Option<PathBuf>,
    /// The idf table.
    #[schemars(schema_with = "path", extend("x-digest" = "profile"))]
    pub idf: Option<PathBuf>,
    /// The number of bits of a fingerprint; a store takes 32 or 64.
    #[schemars(extend("enum" = [32, 64, 128]), extend("x-digest" = "profile"))]
    bits: Option<i64>,
    /// The settings from text to features.
    #[schemars(with = "TokenizeConfig", extend("x-digest" = "profile"))]
    tokenize: Option<Table>,
    /// The settings from features to fingerprint.
    #[schemars(with = "FingerprintConfig", extend("x-digest" = "profile"))]
    fingerprint: Option<Table>,
    /// The settings of the sketch: 256 bits of least hashes.
    #[schemars(with = "SketchConfig", extend("x-digest" = "profile"))]
    sketch: Option<Table>,
    /// The distances that make a pair.
    #[schemars(with = "JoinConfig", extend("x-digest" = "night"))]
    join: Option<Table>,
    /// The rules of the judge, which reads the texts of pairs that sketches leave undecided.
    #[schemars(with = "JudgeConfig", extend("x-digest" = "night"))]
    judge: Option<Table>,
    /// The resources that a run may take.
    #[schemars(extend("x-digest" = "none"))]
    resources: ResourcesConfig,
    /// The settings by which s3:// is reached.
    #[schemars(extend("x-digest" = "none"))]
    s3: S3Config,
    /// What a stub is: a wall, a soft error, an interstitial.
    #[schemars(extend("x-digest" = "night"))]
    pub stubs: StubRules,
    /// The limits of nights that look unlike any crawl.
    #[schemars(extend("x-digest" = "none"))]
    pub breakers: Breakers,
    /// The files that a run writes beside its results.
    #[schemars(extend("x-digest" = "none"))]
    pub watch: WatchConfig,
    /// The places in which everything that is read must lie, and store and output.
    #[schemars(schema_with = "paths", extend("x-digest" = "none"))]
    roots: Vec<String>,
    /// The other places in which the log of a Delta table, or the metadata of an Iceberg table, may name files.
    #[schemars(schema_with = "paths", extend("x-digest" = "none"))]
    clone_roots: Vec<String>,
    /// Whether nobody else ever writes to the store.
    #[schemars(extend("x-digest" = "none"))]
    pub single_writer: bool,
    /// The file that a run locks.
    #[schemars(schema_with = "path", extend("x-digest" = "none"))]
    pub lock: Option<PathBuf>,
    /// The longest wait for the lock, in seconds.
    #[schemars(extend("x-digest" = "none"))]
    pub lock_wait: u64,
    /// The job file itself, its text, and its folder.
    #[serde(skip)]
    path: Option<PathBuf>,
    #[serde(skip)]
    text: String,
    #[serde(skip)]
    folder: JobFolder,
}

/// The names of the profiles, of which the schema lists all.
fn profile_names() -> Vec<&'static str> {
    nearprint_profile::profiles().map(|(name, ..)| *name).collect()
}

/// The schema of a path or URL, which begins at the folder of the job file if it is relative.
fn path(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "path" })
}

fn paths(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": path(generator) })
}

impl Default for JobConfig {
    fn default() -> Self {
        Self {
            profile: "default".to_owned(),
            documents: None,
            documents_version: None,
            store: None,
            references: Vec::new(),
            output: None,
            create_store: false,
            keep_nights: None,
            id_column: "id".to_owned(),
            text_column: "text".to_owned(),
            source_column: None,
            keep: None,
            max_bad_rows: 0,
            max_bad_files: 0,
            max_ignored_files: 0,
            max_doc_bytes: Bytes(64 << 20),
            on_duplicate_id: None,
            newest_by: None,
            max_repeated_ids: MAX_REPEATED_IDS,
            binary_as_utf8: false,
            warc_id: WarcId::Url,
            html_text: HtmlText::Main,
            allow_empty: false,
            time_zone: None,
            require_marker: None,
            pairs: PairsMode::Forest,
            max_pairs: crate::args::MAX_PAIRS,
            clusters: ClusterRule::Star,
            max_lost_share: None,
            user_dictionary: None,
            stop_words: None,
            idf: None,
            bits: None,
            tokenize: None,
            fingerprint: None,
            sketch: None,
            join: None,
            judge: None,
            resources: ResourcesConfig::default(),
            s3: S3Config::default(),
            stubs: StubRules::default(),
            breakers: Breakers::default(),
            watch: WatchConfig::default(),
            roots: Vec::new(),
            clone_roots: Vec::new(),
            single_writer: false,
            lock: None,
            lock_wait: 0,
            path: None,
            text: String::new(),
            folder: JobFolder::default(),
        }
    }
}

/// The files that a run writes beside its results, unless its command line names others. `{dt}` stands for the night.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WatchConfig {
    /// The file of metrics, as with --metrics-file.
    #[schemars(schema_with = "path")]
    pub metrics_file: Option<String>,
    /// The page of the night, as with --report.
    #[schemars(schema_with = "path")]
    pub report: Option<String>,
    /// The file of the summary, as with --summary-file.
    #[schemars(schema_with = "path")]
    pub summary_file: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct ResourcesConfig {
    /// The number of threads. Without it, one for each core.
    threads: Option<NonZeroU16>,
    /// The memory, such as 512MiB or 4GB.
    memory_limit: Option<Bytes>,
    /// The memory of the reduce, such as 512MiB or 4GB.
    reduce_memory: Option<Bytes>,
    /// The folder for temporary files.
    #[schemars(schema_with = "path")]
    spill_dir: Option<PathBuf>,
    /// Whether a run first checks the room in that folder, the output and the store.
    preflight: Option<bool>,
    /// The most bytes that the reduce may spill, such as 512MiB or 4GB.
    max_spill: Option<Bytes>,
}

impl JobConfig {
    /// Reads the job file if `path` names one, and returns the defaults otherwise.
    pub fn read_or_default(path: Option<&Path>) -> Result<Self, Failure> {
        path.map_or_else(|| Ok(Self::default()), Self::read)
    }

    pub fn writers(&self) -> Writers {
        if self.single_writer { Writers::One } else { Writers::Several }
    }

    /// Returns the time zone in which a day is today.
    pub fn time_zone(&self) -> Result<chrono_tz::Tz, Failure> {
        let named = self.time_zone.as_deref();
        named.map_or(Ok(chrono_tz::UTC), |name| zone("time_zone", name).map_err(Failure::from))
    }

    pub fn s3(&self) -> S3Config {
        self.s3.clone()
    }

    /// Returns the job's resources. Those of the command line take precedence.
    pub fn resources(&self, global: &Global) -> Resources {
        let own = &self.resources;
        Resources {
            threads: global.threads.or(own.threads.map(NonZeroU16::get)).map(usize::from),
            memory_limit: global.memory_limit.or(own.memory_limit).map(|b| b.0),
            reduce_memory: global.reduce_memory.or(own.reduce_memory).map(|b| b.0),
            spill_dir: global
                .spill_dir
                .as_deref()
                .map(|dir| self.folder.given_path(dir))
                .or_else(|| own.spill_dir.clone()),
            max_spill: global.max_spill.or(own.max_spill).map(|b| b.0 as u64),
            kernel: global.kernel.map(|kernel| kernel.name().to_owned()),
        }
    }

    /// Returns whether a run first checks that the spill folder has room.
    pub fn preflight(&self) -> bool {
        self.resources.preflight.unwrap_or(true)
    }

    /// Returns the job's breakers. Those of the command line take precedence.
    pub fn breakers(&self, args: &BreakerArgs) -> Breakers {
        if args.no_breakers {
            return Breakers::off();
        }
        let own = self.breakers;
        Breakers {
            max_cluster: args.max_cluster.unwrap_or(own.max_cluster),
            max_source_loss: args.max_source_loss.unwrap_or(own.max_source_loss),
            max_rate_change: args.max_rate_change.unwrap_or(own.max_rate_change),
            max_mean_lost_share: args.max_mean_lost_share.unwrap_or(own.max_mean_lost_share),
            min_document_share: args.min_document_share.unwrap_or(own.min_document_share),
            max_kept_fall: args.max_kept_fall.unwrap_or(own.max_kept_fall),
            min_kept_share: args.min_kept_share.unwrap_or(own.min_kept_share),
            max_source_fall: args.max_source_fall.unwrap_or(own.max_source_fall),
            max_text_share: args.max_text_share.unwrap_or(own.max_text_share),
            max_stub_share: args.max_stub_share.unwrap_or(own.max_stub_share),
            ..own
        }
    }
}
