//! Job files, which are TOML. They name a profile and may override it. Unknown keys are refused.

use std::num::{NonZeroU16, NonZeroU32};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use nearprint_documents::{
    DocumentColumns, DuplicateIds, InputPolicy, KeepKey, LENGTH, MAX_REPEATED_IDS, Repeats, WarcId, WebPages,
};
use nearprint_fault::{Fault, foreign};
use nearprint_fingerprint::{FingerprintConfig, JudgeConfig};
use nearprint_night::{Breakers, usual_lost_share};
use nearprint_pipeline::{ClusterRule, PairsMode, Resources, StubRules};
use nearprint_profile::{
    self as profile, EarlierConfig, HtmlText, JoinConfig, ProfileConfig, ProfileError, SketchConfig, TextFingerprinter,
};
use nearprint_storage::{Roots, S3Config};
use nearprint_store::Writers;
use nearprint_tokenize::{Resources as AnalyzerResources, TokenizeConfig, TokenizerConfig};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use toml::{Table, Value};

use crate::args::{BreakerArgs, Global, InputArgs, ProfileArgs};
use crate::bytes::Bytes;
use crate::exit_code::{CONFIG, Failure};
use crate::finding::{Finding, parsed};
use crate::job_folder::JobFolder;
use crate::job_keys;
use crate::place::{Dates, Given, refuse_stream, refuse_unexpanded};
use crate::remedy::Remedy;
use crate::schema::{each, in_words, properties};
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
    /// The version of the Delta table of documents. Without it, the newest is read.
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
    /// The other places in which the log of a Delta table of documents may name files.
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

static PUBLISHED: LazyLock<serde_json::Value> = LazyLock::new(|| {
    let mut schema = declared();
    each(&mut schema, &mut |schema| drop(schema.remove(DIGEST)));
    schema
});

/// The word of a key's declaration that says which digest its value belongs to.
const DIGEST: &str = "x-digest";

/// The tables whose defaults are those of the named profile.
const OF_PROFILE: [&str; 5] = ["tokenize", "fingerprint", "sketch", "join", "judge"];

/// Returns the JSON Schema of a job file.
pub fn schema() -> &'static serde_json::Value {
    &PUBLISHED
}

/// Derives the schema of a job file from its declaration. No key is required: the command line may give what is missing, and the
/// profile has the rest of its tables.
fn declared() -> serde_json::Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = in_words(settings.into_generator().into_root_schema_for::<JobConfig>().to_value());
    optional(&mut schema);
    each(&mut schema, &mut |schema| {
        if !schema.get("default").is_some_and(|value| value.is_boolean() || value.is_number() || value.is_string()) {
            schema.remove("default");
        }
    });
    let keys = schema.as_object_mut().into_iter().flat_map(properties);
    for (_, table) in keys.filter(|(key, _)| OF_PROFILE.contains(&key.as_str())) {
        each(table, &mut |schema| drop(schema.remove("default")));
    }
    schema
}

/// Lets all keys of a table and of the tables in it be left out. What is inside a value is not.
fn optional(table: &mut serde_json::Value) {
    let serde_json::Value::Object(table) = table else { return };
    table.remove("required");
    properties(table).for_each(|(_, value)| optional(value));
}

/// The names of the profiles, of which the schema lists all.
fn profile_names() -> Vec<&'static str> {
    profile::profiles().map(|(name, ..)| *name).collect()
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

/// Describes what finds documents of earlier nights, as in "within 8 bits, or 2 words of the sketch within 8".
fn earlier_in_words(join: &JoinConfig) -> String {
    join.earlier.map_or_else(
        || "as within the night".to_owned(),
        |EarlierConfig { max_distance, words, max_word_distance }| {
            format!("within {max_distance} bits, or {words} words of the sketch within {max_word_distance}")
        },
    )
}

impl JobConfig {
    /// Reads a job file. Its relative paths are taken from its folder.
    ///
    /// # Errors
    /// The file cannot be read, or has faults. The failure lists all of them.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let (job, mut faults) = Self::read_with_faults(path)?;
        if faults.is_empty() {
            return Ok(job);
        }
        if !faults.iter().any(|fault| fault.is_of_syntax) {
            faults.extend(job.mended().1.iter().filter_map(|failure| job.fault(failure)));
            faults.sort_by_key(Finding::place);
        }
        Err(Failure::of_findings(path, faults))
    }

    /// Reads a job file and returns what can be read of it, together with its faults, in order. A key with a fault has its
    /// default.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read_with_faults(path: &Path) -> Result<(Self, Vec<Finding>), Failure> {
        let text = std::fs::read_to_string(path).map_err(|e| unread(path, &e))?;
        let (mut job, mut faults) = parsed::<Self>(&text, schema());
        job.path = Some(path.to_path_buf());
        job.folder = JobFolder::of(path);
        if faults.iter().all(|fault| !fault.is_of_syntax) {
            let unusable = job.unusable_paths().into_iter();
            faults.extend(unusable.map(|(key, reason)| Finding::of(&text, None, Fault::config(key, reason))));
        }
        let folder = job.folder.clone();
        for (_, file) in job.files() {
            *file = file.take().map(|file| folder.path(&file));
        }
        faults.sort_by_key(Finding::place);
        job.text = text;
        Ok((job, faults))
    }

    /// Returns a fault as one of the job file. It is about its own key or, if the file has no such key, about `key`.
    pub fn finding(&self, key: Option<&str>, fault: Fault) -> Finding {
        Finding::of(&self.text, key, fault)
    }

    /// Returns the failure as a fault of the job file, if it is about a value there.
    fn fault(&self, failure: &Failure) -> Option<Finding> {
        let is_of_file = failure.code == CONFIG && failure.fault.place().file.is_none();
        is_of_file.then(|| self.finding(None, failure.fault.clone())).filter(|fault| fault.line().is_some())
    }

    /// Returns a failure about a value of the job file with the place of its key in the file, and with all other faults of
    /// the file. Other failures stay as they are, such as those about a file or a flag.
    pub fn located(&self, failure: Failure) -> Failure {
        let (Some(path), Some(fault)) = (&self.path, self.fault(&failure)) else { return failure };
        let mut faults: Vec<Finding> = self.mended().1.iter().filter_map(|failure| self.fault(failure)).collect();
        if !faults.contains(&fault) {
            faults.push(fault);
        }
        faults.sort_by_key(Finding::place);
        Failure::of_findings(path, faults)
    }

    /// Returns the folder at which the relative paths of the job file begin.
    pub fn folder(&self) -> &JobFolder {
        &self.folder
    }

    /// Returns the keys that name places which a storage opens, each with its place. The storage takes a relative one from
    /// the folder of the job file. Its text stays as it is written, because it ends up in commits and manifests.
    fn places(&self) -> Vec<(&'static str, &str)> {
        let one = [("documents", &self.documents), ("store", &self.store), ("output", &self.output)];
        let several = [("references", &self.references), ("roots", &self.roots), ("clone_roots", &self.clone_roots)];
        let one = one.into_iter().filter_map(|(key, place)| Some((key, place.as_deref()?)));
        let several =
            several.into_iter().flat_map(|(key, places)| places.iter().map(move |place| (key, place.as_str())));
        one.chain(several).collect()
    }

    /// Returns the keys that name files and folders of this machine, each with its path. They begin at the folder of the job
    /// file too.
    fn files(&mut self) -> [(&'static str, &mut Option<PathBuf>); 5] {
        [
            ("user_dictionary", &mut self.user_dictionary),
            ("stop_words", &mut self.stop_words),
            ("idf", &mut self.idf),
            ("lock", &mut self.lock),
            ("resources.spill_dir", &mut self.resources.spill_dir),
        ]
    }

    /// Returns the keys of paths that would have to be expanded, and those of files that were written for a release which took
    /// relative paths from the working folder, each with the reason.
    fn unusable_paths(&mut self) -> Vec<(&'static str, String)> {
        let folder = self.folder.clone();
        let files =
            self.files().map(|(key, file)| (key, file.as_ref().map(|file| file.to_string_lossy().into_owned())));
        let files: Vec<(&str, &str)> = files.iter().filter_map(|(key, file)| Some((*key, file.as_deref()?))).collect();
        let mut unusable = Vec::new();
        for (key, path) in self.places().into_iter().chain(files.iter().copied()) {
            let dates = if key == "documents" { Dates::Allowed } else { Dates::None };
            let refused = refuse_stream(path).and_then(|()| refuse_unexpanded(path, dates));
            unusable.extend(refused.err().map(|reason| (key, reason)));
        }
        for (key, path) in files {
            unusable.extend(folder.former(path).map(|there| (key, begins_elsewhere(path, &there, &folder))));
        }
        unusable
    }

    /// Reads the job file if `path` names one, and returns the defaults otherwise.
    pub fn read_or_default(path: Option<&Path>) -> Result<Self, Failure> {
        path.map_or_else(|| Ok(Self::default()), Self::read)
    }

    /// Returns the job with the command's profile options applied.
    pub fn with_profile_args(mut self, args: &ProfileArgs) -> Result<Self, Failure> {
        if let Some(profile) = &args.profile {
            self.profile.clone_from(profile);
        }
        if let Some(column) = &args.id_column {
            self.id_column.clone_from(column);
        }
        if let Some(column) = &args.text_column {
            self.text_column.clone_from(column);
        }
        if let Some(id) = args.warc_id {
            self.warc_id = id.into();
        }
        if let Some(mode) = &args.html_text {
            self.html_text.clone_from(mode);
        }
        for text in &args.overrides {
            self.set(text)?;
        }
        Ok(self)
    }

    /// Adds one `a.b.c=value` to the override tables. The value is TOML or a bare word.
    fn set(&mut self, text: &str) -> Result<(), Failure> {
        let usage = |reason: &str| Failure::usage(format!("--set '{text}': {reason}"));
        let (key, value) = text.split_once('=').ok_or_else(|| usage("write key=value"))?;
        let mut value = toml::from_str::<Table>(&format!("v = {value}"))
            .ok()
            .and_then(|mut t| t.remove("v"))
            .unwrap_or_else(|| Value::String(value.to_owned()));
        let mut parts: Vec<&str> = key.split('.').collect();
        if parts == ["bits"] {
            self.bits = Some(value.as_integer().ok_or_else(|| usage("bits is 32, 64 or 128"))?);
            return Ok(());
        }
        let section = parts.remove(0);
        for part in parts.into_iter().rev() {
            value = Value::Table(Table::from_iter([(part.to_owned(), value)]));
        }
        let Value::Table(table) = value else {
            return Err(usage("name a key of a section, such as join.max_distance"));
        };
        let into = match section {
            "tokenize" => &mut self.tokenize,
            "fingerprint" => &mut self.fingerprint,
            "sketch" => &mut self.sketch,
            "join" => &mut self.join,
            "judge" => &mut self.judge,
            _ => {
                return Err(usage("the sections are tokenize, fingerprint, sketch, join, judge"));
            }
        };
        merge_table(into.get_or_insert_default(), table);
        Ok(())
    }

    /// Returns the named profile with the job's overrides, for a command that joins.
    pub fn profile_config(&self) -> Result<ProfileConfig, Failure> {
        let config = self.overridden(&profile::by_name(&self.profile)?, self.bits)?;
        config.join.verifier(config.bits)?;
        Ok(config)
    }

    /// Returns the profile and the contents of its files, which make an analyzer together.
    pub fn analyzed(&self) -> Result<(ProfileConfig, AnalyzerResources), Failure> {
        let (config, resources) = (self.profile_config()?, self.analyzer_resources()?);
        TextFingerprinter::try_new(config.clone(), &resources)?;
        Ok((config, resources))
    }

    /// Returns the same profile for a command that only fingerprints. If `bits` is given, it replaces the job's number
    /// of bits.
    pub fn fingerprint_profile(&self, bits: Option<u32>) -> Result<ProfileConfig, Failure> {
        match bits {
            None => self.overridden(&profile::by_name(&self.profile)?, self.bits),
            Some(bits) => {
                let named = profile::by_name_and_bits(&self.profile, bits).map_err(|e| match e {
                    ProfileError::Width { .. } => Failure::usage(format!("--{e}")),
                    other => other.into(),
                });
                self.overridden(&named?, None)
            }
        }
    }

    fn overridden(&self, base: &ProfileConfig, bits: Option<i64>) -> Result<ProfileConfig, Failure> {
        let mut base = base.clone();
        let named = self.tokenize.as_ref().and_then(|tokenize| tokenize.get("tokenizer")?.get("kind"));
        if let Some(Ok(kind)) = named.map(|kind| kind.clone().try_into()) {
            // What the profile's tokenizer uses, another one may refuse.
            base.tokenize.tokenizer = TokenizerConfig { kind, ..base.tokenize.tokenizer }.without_unused();
        }
        let mut merged = Table::try_from(&base).map_err(|e| Failure::config(e.to_string()))?;
        let invalid = |key: &str, error: &toml::de::Error| {
            // The whole error names the key within the section.
            let reason = foreign(error);
            Failure::from(Fault::config(key, format!("{reason}, in profile '{}' with its overrides", self.profile)))
        };
        for (key, section) in self.sections() {
            if let Some(section) = section {
                let into = merged.entry(key).or_insert_with(|| Value::Table(Table::new()));
                merge(into, Value::Table(section.clone()));
                merged.clone().try_into::<ProfileConfig>().map_err(|e| invalid(key, &e))?;
            }
        }
        if let Some(bits) = bits {
            merged.insert("bits".to_owned(), Value::Integer(bits));
        }
        let mut config: ProfileConfig = merged.try_into().map_err(|e| invalid("bits", &e))?;
        // The keys of earlier nights go with the profile's own distance.
        let names_earlier = self.join.as_ref().is_some_and(|join| join.contains_key("earlier"));
        if config.join.max_distance != base.join.max_distance && !names_earlier {
            config.join.earlier = None;
        }
        config.validate()?;
        Ok(config)
    }

    /// Returns the tables that override those of the profile.
    fn sections(&self) -> [(&'static str, &Option<Table>); 5] {
        [
            ("tokenize", &self.tokenize),
            ("fingerprint", &self.fingerprint),
            ("sketch", &self.sketch),
            ("join", &self.join),
            ("judge", &self.judge),
        ]
    }

    /// Returns the job with defaults in place of the values that are wrong for their meaning, and the failures that these
    /// values cause.
    pub fn mended(&self) -> (Self, Vec<Failure>) {
        let (mut job, mut failures) = (self.clone(), Vec::new());
        for key in self.keep.iter().flatten() {
            if let Err(failure) = keep_keys(std::slice::from_ref(key)) {
                failures.push(failure);
                job.keep.iter_mut().for_each(|keys| keys.retain(|other| other != key));
            }
        }
        if let Err(failure) = job.keep_order() {
            failures.push(failure);
            job.keep = None;
        }
        if let Err(failure) = job.checked_html_text() {
            failures.push(failure);
            job.html_text = HtmlText::Main;
        }
        if let Err(failure) = job.input() {
            failures.push(failure);
            (job.require_marker, job.max_repeated_ids) = (None, MAX_REPEATED_IDS);
        }
        if let Err(failure) = job.time_zone() {
            failures.push(failure);
            job.time_zone = None;
        }
        for (key, file) in
            [("user_dictionary", &mut job.user_dictionary), ("stop_words", &mut job.stop_words), ("idf", &mut job.idf)]
        {
            if let Err(failure) = content_of(key, file.as_deref()) {
                failures.push(failure);
                *file = None;
            }
        }
        let mut is_profile = true;
        while let Err(failure) = job.profile_config() {
            is_profile = false;
            let is_left = job.drop_section(&failure);
            failures.push(failure);
            if !is_left {
                break;
            }
        }
        // What is left of a profile may not go with its files.
        if let Err(failure) = job.analyzed() {
            if is_profile {
                failures.push(failure);
            }
            (job.tokenize, job.sketch) = (None, None);
            (job.user_dictionary, job.stop_words, job.idf) = (None, None, None);
        }
        if let Err(fault) = self.stubs.validate() {
            failures.push(Failure::from(fault));
            job.stubs = StubRules::default();
        }
        failures.extend(self.breakers.faults().into_iter().map(Failure::from));
        if !self.breakers.faults().is_empty() {
            job.breakers = Breakers::default();
        }
        (job, failures)
    }

    /// Takes the section out that a failure of the profile is about, or all of them if that is none. Returns `false` if
    /// nothing was left to take out.
    fn drop_section(&mut self, failure: &Failure) -> bool {
        let path = failure.fault.of_key().unwrap_or_default();
        let key = path.rsplit('.').next().unwrap_or(path).to_owned();
        let mut sections = [
            ("tokenize", &mut self.tokenize),
            ("fingerprint", &mut self.fingerprint),
            ("sketch", &mut self.sketch),
            ("join", &mut self.join),
            ("judge", &mut self.judge),
        ];
        let is_meant = |name: &str, section: &Option<Table>| {
            section.as_ref().is_some_and(|table| path.starts_with(name) || table.contains_key(&key))
        };
        if let Some((_, section)) = sections.iter_mut().find(|(name, section)| is_meant(name, section)) {
            **section = None;
            return true;
        }
        let was_left = sections.iter().any(|(_, section)| section.is_some()) || self.bits.is_some();
        sections.into_iter().for_each(|(_, section)| *section = None);
        self.bits = None;
        was_left
    }

    /// Returns which text of a web page is its document's.
    pub fn html_text(&self) -> &HtmlText {
        &self.html_text
    }

    /// Reads the user dictionary, the stop words and the idf table.
    pub fn analyzer_resources(&self) -> Result<AnalyzerResources, Failure> {
        Ok(AnalyzerResources {
            user_dictionary: content_of("user_dictionary", self.user_dictionary.as_deref())?,
            stop_words: content_of("stop_words", self.stop_words.as_deref())?,
            idf: content_of("idf", self.idf.as_deref())?,
        })
    }

    /// Returns the keys that name the places of the job's data and the files that it reads or locks, each with its place as a
    /// command line names it. No command writes a file of another kind there.
    pub fn guarded(&self) -> Vec<(&'static str, String)> {
        let places = self.places().into_iter().map(|(key, place)| (key, self.folder.typed(place)));
        let mut job = self.clone();
        let files = job.files().map(|(key, file)| Some((key, file.take()?.display().to_string())));
        let all = places.chain(files.into_iter().flatten());
        all.filter(|(key, _)| !UNGUARDED.contains(key)).collect()
    }

    /// Returns the settings that decide what a night keeps, as pairs of a key and its value, for people.
    pub fn settings(&self) -> Result<Vec<(String, String)>, Failure> {
        let profile = self.profile_config()?;
        let list = |values: &[String]| if values.is_empty() { "none".to_owned() } else { values.join(", ") };
        let keep = self.keep.as_deref().map_or_else(|| format!("{LENGTH} desc"), list);
        let lost_share = self.max_lost_share.unwrap_or_else(|| usual_lost_share(&profile, self.clusters));
        let off = |value: Option<u32>| value.map_or_else(|| "none".to_owned(), |value| value.to_string());
        let clusters = match self.clusters {
            ClusterRule::Star => "star",
            ClusterRule::Component => "component",
        };
        let on_duplicate_id = match self.on_duplicate_id {
            None => "keep_newest in WARC files, else fail",
            Some(DuplicateIds::Fail) => "fail",
            Some(DuplicateIds::KeepFirst) => "keep_first",
            Some(DuplicateIds::KeepLast) => "keep_last",
            Some(DuplicateIds::KeepNewest) => "keep_newest",
            Some(DuplicateIds::KeepBest) => "keep_best",
        };
        let settings = [
            ("profile", self.profile.clone()),
            ("bits", profile.bits.to_string()),
            ("join.max_distance", profile.join.max_distance.to_string()),
            ("join.max_sketch_distance", off(profile.join.max_sketch_distance)),
            ("join.earlier", earlier_in_words(&profile.join)),
            ("judge.max_looks", profile.judge().map_or_else(|| "none".to_owned(), |j| j.config.max_looks.to_string())),
            ("clusters", clusters.to_owned()),
            ("keep", keep),
            ("max_lost_share", lost_share.to_string()),
            ("source_column", self.source_column.clone().unwrap_or_else(|| "none: the host of the id".to_owned())),
            ("on_duplicate_id", on_duplicate_id.to_owned()),
        ];
        Ok(settings.map(|(key, value)| (key.to_owned(), value)).to_vec())
    }

    pub fn writers(&self) -> Writers {
        if self.single_writer { Writers::One } else { Writers::Several }
    }

    /// Returns the keys of the keep order, and the columns that they need. Without a list, longer documents come first.
    pub fn keep(&self) -> Result<(Vec<KeepKey>, DocumentColumns), Failure> {
        let keys = self.keep_order()?;
        let mut keep: Vec<String> = keys.iter().map(|k| k.column.clone()).filter(|c| c != LENGTH).collect();
        keep.extend(self.source_column.clone().filter(|source| !keep.contains(source)));
        let (id, text) = (self.id_column.clone(), self.text_column.clone());
        let html_text = self.checked_html_text()?.clone();
        let web = WebPages { warc_id: self.warc_id, html_text, root: None };
        let is_asked = self.on_duplicate_id == Some(DuplicateIds::KeepNewest);
        let newest_by = is_asked.then(|| self.newest_by.clone().unwrap_or_else(|| NEWEST_BY.to_owned()));
        Ok((keys, DocumentColumns { id, text, keep, newest_by, binary_as_utf8: self.binary_as_utf8, web }))
    }

    /// Returns the job with the roots of the command line, if there are any, instead of its own.
    pub fn with_roots(mut self, roots: &[Given]) -> Self {
        if !roots.is_empty() {
            self.roots = roots.iter().map(|root| self.folder.given(root)).collect();
        }
        self
    }

    /// Returns the places that a command with this job may access.
    pub fn roots(&self) -> Roots {
        Roots { roots: self.roots.clone(), clone_roots: self.clone_roots.clone() }
    }

    fn keep_order(&self) -> Result<Vec<KeepKey>, Failure> {
        self.keep.as_deref().map_or_else(|| keep_keys(&[format!("{LENGTH} desc")]), keep_keys)
    }

    fn checked_html_text(&self) -> Result<&HtmlText, Failure> {
        self.html_text.check().map_err(|e| Failure::from(Fault::config("html_text", e.to_string())))?;
        Ok(&self.html_text)
    }

    /// Returns the job with the command's input options applied.
    pub fn with_input_args(mut self, args: &InputArgs) -> Self {
        self.binary_as_utf8 |= args.binary_as_utf8;
        self.max_doc_bytes = args.max_doc_bytes.unwrap_or(self.max_doc_bytes);
        self.max_bad_rows = args.max_bad_rows.unwrap_or(self.max_bad_rows);
        self.max_bad_files = args.max_bad_files.unwrap_or(self.max_bad_files);
        self.max_ignored_files = args.max_ignored_files.unwrap_or(self.max_ignored_files);
        if args.strict {
            (self.max_bad_rows, self.max_bad_files, self.max_ignored_files) = (0, 0, 0);
        }
        self.on_duplicate_id = args.on_duplicate_id.map(Into::into).or(self.on_duplicate_id);
        self.max_repeated_ids = args.max_repeated_ids.unwrap_or(self.max_repeated_ids);
        self
    }

    /// Returns the time zone in which a day is today.
    pub fn time_zone(&self) -> Result<chrono_tz::Tz, Failure> {
        let named = self.time_zone.as_deref();
        named.map_or(Ok(chrono_tz::UTC), |name| zone("time_zone", name).map_err(Failure::from))
    }

    /// Returns the policy for rows and files that are set aside.
    pub fn input(&self) -> Result<InputPolicy, Failure> {
        if let Some(marker) = self.require_marker.as_ref().filter(|m| m.is_empty() || m.contains('/')) {
            return Err(Fault::config("require_marker", format!("'{marker}' is no file name, such as _SUCCESS")).into());
        }
        let share = self.max_repeated_ids;
        if !(0.0..=1.0).contains(&share) {
            let reason = format!("{share} is not a share: write a number from 0 to 1, 1 is off");
            return Err(Fault::config("max_repeated_ids", reason).into());
        }
        Ok(InputPolicy {
            max_bad_rows: self.max_bad_rows,
            max_bad_files: self.max_bad_files,
            max_ignored_files: self.max_ignored_files,
            max_doc_bytes: self.max_doc_bytes.0 as u64,
            on_duplicate_id: self.on_duplicate_id,
            max_repeated_ids: share,
            allow_empty: self.allow_empty,
            require_marker: self.require_marker.clone(),
        })
    }

    /// Returns the columns of ids and texts alone. The keep order is validated nevertheless, so that a job file is right or
    /// wrong for every command.
    pub fn columns(&self) -> Result<DocumentColumns, Failure> {
        let (_, columns) = self.keep()?;
        Ok(DocumentColumns { keep: Vec::new(), newest_by: None, ..columns })
    }

    /// Returns the rule for rows with one id, and the columns of ids and texts with those that the rule needs.
    pub fn repeats(&self) -> Result<(Repeats, DocumentColumns), Failure> {
        let (keys, columns) = self.keep()?;
        let (keep, columns) = match self.on_duplicate_id {
            Some(DuplicateIds::KeepBest) => (keys, columns),
            _ => (Vec::new(), DocumentColumns { keep: Vec::new(), ..columns }),
        };
        let InputPolicy { on_duplicate_id, max_repeated_ids, .. } = self.input()?;
        Ok((Repeats { on_duplicate_id, max_repeated_ids, keep }, columns))
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

    /// Returns the documents, which the command line may give instead.
    pub fn documents(&self, given: Option<&Given>) -> Result<String, Failure> {
        self.required("documents", given, self.documents.as_ref())
    }

    /// Returns the store, which the command line may give instead.
    pub fn store(&self, given: Option<&Given>) -> Result<String, Failure> {
        self.required("store", given, self.store.as_ref())
    }

    /// Returns the output, which the command line may give instead.
    pub fn output(&self, given: Option<&Given>) -> Result<String, Failure> {
        self.required("output", given, self.output.as_ref())
    }

    /// Returns a failure for each place that was written for a release which took relative paths from the working folder.
    pub fn misplaced(&self) -> Vec<Failure> {
        let places = self.places().into_iter().filter(|(key, _)| *key != "roots");
        places.filter_map(|(key, place)| self.own(key, place).err()).collect()
    }

    /// Describes a required key that is missing.
    pub fn missing(&self, key: &str) -> Failure {
        Failure::config(format!("no '{key}': set it in the job file or give --{key}"))
    }

    fn required(&self, key: &str, given: Option<&Given>, own: Option<&String>) -> Result<String, Failure> {
        match (given, own) {
            (Some(given), _) => Ok(self.folder.given(given)),
            (None, Some(own)) => self.own(key, own),
            (None, None) => Err(self.missing(key)),
        }
    }

    /// Returns the reference stores, which the command line may give instead.
    pub fn references(&self, given: &[Given]) -> Result<Vec<String>, Failure> {
        match given {
            [] => self.references.iter().map(|own| self.own("references", own)).collect(),
            given => Ok(given.iter().map(|given| self.folder.given(given)).collect()),
        }
    }

    /// Returns a place that the job file names. A place that was written for a release which took relative paths from the
    /// working folder is refused: a night there would be made without what lies at the former place.
    fn own(&self, key: &str, place: &str) -> Result<String, Failure> {
        match self.folder.former(place) {
            Some(there) => Err(Fault::config(key, begins_elsewhere(place, &there, &self.folder)).into()),
            None => Ok(place.to_owned()),
        }
    }
}

/// The keys of folders in which all the others may lie.
const UNGUARDED: [&str; 3] = ["roots", "clone_roots", "resources.spill_dir"];

/// Reads the file that a key names, if it names one.
fn content_of(key: &str, file: Option<&Path>) -> Result<Option<String>, Failure> {
    let Some(file) = file else { return Ok(None) };
    let unread = |e: std::io::Error| Failure::reading(&file.display().to_string(), &e).with(|fault| fault.key(key));
    std::fs::read_to_string(file).map(Some).map_err(unread)
}

/// Parses the keys of a keep order. `existing` is always the first key and `id` the last, so they need not stand there.
fn keep_keys(texts: &[String]) -> Result<Vec<KeepKey>, Failure> {
    let texts = texts.strip_prefix(&["existing".to_owned()]).unwrap_or(texts);
    let last = ["id", "id asc"].map(|id| [id.to_owned()]);
    let texts = last.iter().find_map(|id| texts.strip_suffix(id)).unwrap_or(texts);
    let keys: Vec<KeepKey> = texts.iter().map(|text| KeepKey::parse(text)).collect::<Result<_, _>>()?;
    for (key, text) in keys.iter().zip(texts) {
        let refused = |reason: &str| Err(Fault::config("keep", format!("'{text}' {reason}")).into());
        match key.column.as_str() {
            "existing" => return refused("is always first: write it first or not at all, and without an order"),
            "id" => return refused("is always last, and ascending: write 'id' last or not at all"),
            _ => {}
        }
    }
    Ok(keys)
}

/// The column that says which row is the newest, unless the job names another.
const NEWEST_BY: &str = "fetch_time";

/// The keys whose tables are single values. An override replaces such a table and does not merge with it.
const WHOLE: [&str; 2] = ["weight", "feature_hash"];

fn merge_table(into: &mut Table, from: Table) {
    for (key, value) in from {
        match into.get_mut(&key) {
            Some(old) if !WHOLE.contains(&key.as_str()) => merge(old, value),
            _ => drop(into.insert(key, value)),
        }
    }
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Table(into), Value::Table(from)) => merge_table(into, from),
        (into, from) => *into = from,
    }
}

/// Says of a path that lies below the working folder, and not below that of the job file, what became of it.
fn begins_elsewhere(path: &str, there: &Path, folder: &JobFolder) -> String {
    let (own, there) = (folder.base(), there.display());
    let here = std::env::current_dir().map_or_else(|_| "there".to_owned(), |here| format!("to {}", here.display()));
    format!(
        "there is no {path} in {}, the folder of this job file, but there is {there}: up to release 0.2.0, relative paths \
         began at the current folder; move the job file {here}, or write the whole path; if that is another one, start the \
         command in another folder",
        own.display()
    )
}

/// Describes a job file that cannot be read. For one that is missing, the one that was meant is named, or the command that
/// writes one where there is none.
fn unread(path: &Path, error: &std::io::Error) -> Failure {
    let failure = Failure::reading(&format!("job file {}", path.display()), error).at(path, None);
    let beside = match error.kind() {
        std::io::ErrorKind::NotFound => names_beside(path),
        _ => None,
    };
    let Some(beside) = beside else { return failure };
    let typed = path.to_string_lossy().into_owned();
    match meant(path, &beside) {
        Some(name) => {
            let meant = path.with_file_name(name).to_string_lossy().into_owned();
            failure
                .with(|fault| fault.remedy(format!("did you mean {meant}?")))
                .mended_by(Remedy::Instead(typed, meant))
        }
        None if beside.is_empty() => {
            failure.mended_by(Remedy::Command(vec!["config".to_owned(), "init".to_owned(), typed]))
        }
        None => failure,
    }
}

/// The usual name of a job file.
const USUAL_NAME: &str = "job.toml";

/// Returns the TOML files in the folder of a file, or `None` if there is no such folder.
fn names_beside(path: &Path) -> Option<Vec<String>> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let found = std::fs::read_dir(folder).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = found.filter(|name| name.ends_with(".toml")).collect();
    names.sort();
    Some(names)
}

/// Returns the job file that was meant: the one with a name like that of `path`, or the one with the usual name.
fn meant<'a>(path: &Path, beside: &'a [String]) -> Option<&'a String> {
    let stem = path.file_stem()?.to_str()?;
    let stems = beside.iter().filter_map(|name| name.strip_suffix(".toml"));
    let near = job_keys::nearest(stem, stems).map(|stem| format!("{stem}.toml"));
    let near = near.as_deref().unwrap_or(USUAL_NAME);
    beside.iter().find(|name| *name == near)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use serde_json::{Value, json};

    use super::{DIGEST, JobConfig, declared, schema};
    use crate::{Handle, night};

    /// The texts of a job file that name no path.
    const NO_PATHS: [&str; 15] = [
        "id_column",
        "text_column",
        "source_column",
        "keep",
        "max_doc_bytes",
        "newest_by",
        "time_zone",
        "require_marker",
        "tokenize.stop_words.drop_parts_of_speech",
        "resources.memory_limit",
        "resources.reduce_memory",
        "resources.max_spill",
        "s3.endpoint",
        "s3.region",
        "s3.profile",
    ];

    /// The keys below a part of the schema whose values are texts and not names of a list, and whether they are paths.
    fn texts(schema: &Value, path: &str, found: &mut Vec<(String, bool)>) {
        for (key, of_value) in schema["properties"].as_object().into_iter().flatten() {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            let item = if of_value["type"] == "array" { &of_value["items"] } else { of_value };
            let types = item["type"].as_array().cloned().unwrap_or_else(|| vec![item["type"].clone()]);
            if types.contains(&"string".into()) && item["enum"].is_null() {
                found.push((path.clone(), item["format"] == "path"));
            }
            texts(of_value, &path, found);
        }
    }

    #[test]
    fn every_text_of_a_job_file_is_known_as_a_path_that_begins_at_its_folder_or_as_none() {
        let mut found = Vec::new();
        texts(schema(), "", &mut found);
        let keys = |are_paths: bool| -> BTreeSet<&str> {
            found.iter().filter(|(_, is_path)| *is_path == are_paths).map(|(key, _)| key.as_str()).collect()
        };
        assert_eq!(keys(false), BTreeSet::from(NO_PATHS), "a new key: is it a path?");
        let place = || Some("x".to_owned());
        let mut job = JobConfig {
            documents: place(),
            store: place(),
            output: place(),
            references: place().into_iter().collect(),
            roots: place().into_iter().collect(),
            clone_roots: place().into_iter().collect(),
            ..JobConfig::default()
        };
        let files: Vec<&str> = job.files().into_iter().map(|(key, _)| key).collect();
        let known = job.places().into_iter().map(|(key, _)| key).chain(files);
        // These become flags, as paths that begin at the folder of the job file.
        let known: BTreeSet<&str> = known.chain(["watch.metrics_file", "watch.report", "watch.summary_file"]).collect();
        assert_eq!(keys(true), known, "its folder is not that of the job file");
    }

    /// The keys below a part of the declared schema that are no tables, each with its schema and its word, which may be that of its
    /// table.
    fn words(schema: &Value, path: &str, of_table: Option<&str>, found: &mut Vec<(String, Value, String)>) {
        for (key, of_value) in schema["properties"].as_object().into_iter().flatten() {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            let word = of_value[DIGEST].as_str().or(of_table);
            if of_value["properties"].is_object() {
                words(of_value, &path, word, found);
            } else {
                let word = word.unwrap_or_else(|| panic!("{path}: say in its declaration which digest it belongs to"));
                found.push((path, of_value.clone(), word.to_owned()));
            }
        }
    }

    /// Other values than the usual ones, where the schema does not tell which value is another one that is valid.
    const OTHERS: [(&str, &str); 50] = [
        ("profile", "'han-bigrams'"),
        ("documents", "'copied'"),
        ("references", "['reference/store']"),
        ("create_store", "false"),
        ("id_column", "'other'"),
        ("text_column", "'other'"),
        ("source_column", "'other'"),
        ("keep", "['other desc']"),
        ("max_doc_bytes", "'1MiB'"),
        ("newest_by", "'other'\non_duplicate_id = 'keep_newest'"),
        ("html_text", "'all'"),
        ("time_zone", "'Asia/Shanghai'"),
        ("require_marker", "'a.jsonl'"),
        ("user_dictionary", "'words.txt'"),
        ("stop_words", "'words.txt'"),
        ("idf", "'idf.txt'"),
        ("bits", "32"),
        ("roots", "['.']"),
        ("clone_roots", "['elsewhere']"),
        ("lock", "'lock'"),
        ("max_lost_share", "0.5"),
        ("tokenize.normalize.nfkc", "false"),
        ("tokenize.normalize.case_fold", "false"),
        ("tokenize.normalize.html_entities", "false"),
        ("tokenize.normalize.control_characters", "false"),
        ("tokenize.normalize.white_space", "false"),
        ("tokenize.tokenizer.kind", "'words'"),
        ("tokenize.tokenizer.drop_tokens_without_alphanumeric", "false"),
        ("tokenize.stop_words.drop_parts_of_speech", "['u']"),
        ("tokenize.features.weight", "'count'"),
        ("tokenize.features.shingle", "2\ntokenize.features.short_word = 0"),
        ("fingerprint.feature_hash", "{ xxh3 = { seed = 3 } }"),
        ("fingerprint.bit_rule", "'non_negative'"),
        ("sketch.tokenizer", "'pairs'"),
        ("sketch.shingle", "2"),
        ("resources.memory_limit", "'1GiB'"),
        ("resources.reduce_memory", "'1GiB'"),
        ("resources.max_spill", "'1GiB'"),
        ("resources.spill_dir", "'spill'"),
        ("resources.preflight", "false"),
        ("s3.endpoint", "'http://127.0.0.1:1'"),
        ("s3.region", "'x'"),
        ("s3.profile", "'x'"),
        ("watch.metrics_file", "'x.prom'"),
        ("watch.report", "'x-{dt}.html'"),
        ("watch.summary_file", "'x-{dt}.json'"),
        ("warc_id", "'url_time'"),
        ("join.max_distance", "3"),
        ("join.earlier.words", "3"),
        ("judge.max_sketch_distance", "70"),
    ];

    /// Keys of which another value is another history, or needs other documents: nothing is compared.
    const NOT_COMPARED: [(&str, &str); 8] = [
        ("idf", "the default profile has no use for it, and refuses it"),
        ("user_dictionary", "the same"),
        ("tokenize.stop_words.drop_parts_of_speech", "the same"),
        ("tokenize.tokenizer.hmm", "the same"),
        ("tokenize.tokenizer.ngram", "the same"),
        ("store", "another store has other nights"),
        ("output", "a store has its nights in one output"),
        ("documents_version", "only Delta tables have versions; their files are inputs of the night"),
    ];

    /// Another value of a key than its default.
    fn other(key: &str, schema: &Value) -> String {
        if let Some((_, value)) = OTHERS.iter().find(|(own, _)| *own == key) {
            return (*value).to_owned();
        }
        let default = &schema["default"];
        let mut names = schema["enum"].as_array().into_iter().flatten();
        match (names.rfind(|name| *name != default), schema["type"].as_str()) {
            (Some(name), _) => name.to_string(),
            (None, Some("boolean")) => (default != &json!(true)).to_string(),
            (None, Some("integer")) => (default.as_u64().unwrap_or(6) + 1).to_string(),
            (None, Some("number")) => "0.5".to_owned(),
            _ => panic!("{key}: add another value to OTHERS"),
        }
    }

    /// What a dry run makes of a night that is published, by the word of the key that is changed.
    fn outcome(folder: &Path, job: &str) -> Result<&'static str, String> {
        let file = folder.join("job.toml");
        std::fs::write(&file, job).unwrap();
        let arguments =
            ["--config".as_ref(), file.as_os_str(), "--dt".as_ref(), "2026-11-20".as_ref(), "--dry-run".as_ref()];
        match night(arguments.map(Into::into), &Handle::default(), None) {
            Ok(summary) if summary["status"] == "already_published" => Ok("none"),
            Ok(summary) => Err(format!("{summary}")),
            Err(failed) if failed.failure.message().contains("is published from other") => Ok("night"),
            Err(failed) if failed.failure.message().contains("start a new store") => Ok("profile"),
            Err(failed) => Err(failed.failure.message()),
        }
    }

    #[test]
    fn every_key_says_which_digest_it_belongs_to_and_another_value_changes_that_digest_and_no_other() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path();
        for place in ["documents/dt=2026-11-20", "copied/dt=2026-11-20", "spill"] {
            std::fs::create_dir_all(folder.join(place)).unwrap();
        }
        let row = |id: &str| json!({ "id": id, "text": format!("a text of {id}"), "other": id }).to_string() + "\n";
        for place in ["documents", "copied"] {
            std::fs::write(folder.join(format!("{place}/dt=2026-11-20/a.jsonl")), row("a") + &row("b")).unwrap();
        }
        std::fs::write(folder.join("words.txt"), "words\n").unwrap();
        std::fs::write(folder.join("idf.txt"), "words 1.5\n").unwrap();
        let job = |key: &str, value: &str| {
            let places =
                [("documents", "'documents'"), ("store", "'store'"), ("output", "'results'"), ("create_store", "true")];
            let own = [(key, value)];
            let lines =
                places.iter().filter(|(place, _)| *place != key).chain(own.iter().filter(|(key, _)| !key.is_empty()));
            lines.map(|(key, value)| format!("{key} = {value}\n")).collect::<String>()
        };
        for job in [
            job("", ""),
            job("", "").replace("'store'", "'reference/store'").replace("'results'", "'reference/results'"),
        ] {
            std::fs::write(folder.join("job.toml"), job).unwrap();
            let arguments = ["--config".into(), folder.join("job.toml").into(), "--dt".into(), "2026-11-20".into()];
            night(arguments, &Handle::default(), None).unwrap();
        }
        let mut keys = Vec::new();
        words(&declared(), "", None, &mut keys);
        let mut wrong = Vec::new();
        for (key, of_value, word) in keys {
            if NOT_COMPARED.iter().any(|(own, _)| *own == key) {
                continue;
            }
            let value = other(&key, &of_value);
            let found = outcome(folder, &job(&key, &value));
            if found.as_deref() != Ok(word.as_str()) {
                wrong.push(format!("{key} = {value}: said {word}, found {found:?}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
