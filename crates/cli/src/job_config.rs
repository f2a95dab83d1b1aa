//! Job files, which are TOML. They name a profile and may override it. Unknown keys are refused.

use std::num::{NonZeroU16, NonZeroU32};
use std::path::{Path, PathBuf};

use nearprint_dataset::{DocumentColumns, DuplicateIds, HtmlText, InputPolicy, WarcId, WebPages};
use nearprint_pipeline::{Breakers, ClusterRule, PairsMode, PipelineError, Resources};
use nearprint_profile::{self as profile, ProfileConfig, ProfileError};
use nearprint_storage::{Roots, S3Config, foreign};
use nearprint_store::Writers;
use nearprint_tasks::{KeepKey, LENGTH};
use nearprint_tokenize::Resources as AnalyzerResources;
use serde::Deserialize;
use toml::{Table, Value};

use crate::args::{BreakerArgs, Global, InputArgs, OnDuplicateId, ProfileArgs};
use crate::bytes::Bytes;
use crate::exit_code::{CONFIG, Failure};
use crate::job_keys::{self, line_and_column};
use crate::place::{Dates, refuse_stream, refuse_unexpanded, refuse_unexpanded_path};
use crate::remedy::Remedy;

/// A job file.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JobConfig {
    pub profile: String,
    pub documents: Option<String>,
    pub documents_version: Option<u64>,
    pub store: Option<String>,
    pub references: Vec<String>,
    pub output: Option<String>,
    pub create_store: bool,
    pub keep_nights: Option<NonZeroU32>,
    pub id_column: String,
    pub text_column: String,
    pub source_column: Option<String>,
    pub keep: Option<Vec<String>>,
    max_bad_rows: u64,
    max_bad_files: u64,
    max_doc_bytes: Bytes,
    on_duplicate_id: DuplicateIds,
    binary_as_utf8: bool,
    warc_id: WarcId,
    html_text: HtmlText,
    allow_empty: bool,
    require_marker: Option<String>,
    pub pairs: PairsMode,
    pub max_pairs: u64,
    pub clusters: ClusterRule,
    pub max_lost_share: Option<f64>,
    pub user_dictionary: Option<PathBuf>,
    pub stop_words: Option<PathBuf>,
    pub idf: Option<PathBuf>,
    bits: Option<i64>,
    tokenize: Option<Table>,
    fingerprint: Option<Table>,
    sketch: Option<Table>,
    join: Option<Table>,
    resources: ResourcesConfig,
    s3: S3Config,
    pub breakers: Breakers,
    roots: Vec<String>,
    clone_roots: Vec<String>,
    pub single_writer: bool,
    pub lock: Option<PathBuf>,
    /// The longest wait for the lock, in seconds.
    pub lock_wait: u64,
    /// The job file itself.
    #[serde(skip)]
    path: Option<PathBuf>,
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
            max_doc_bytes: Bytes(64 << 20),
            on_duplicate_id: DuplicateIds::Fail,
            binary_as_utf8: false,
            warc_id: WarcId::Url,
            html_text: HtmlText::Main,
            allow_empty: false,
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
            resources: ResourcesConfig::default(),
            s3: S3Config::default(),
            breakers: Breakers::default(),
            roots: Vec::new(),
            clone_roots: Vec::new(),
            single_writer: false,
            lock: None,
            lock_wait: 0,
            path: None,
        }
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ResourcesConfig {
    threads: Option<NonZeroU16>,
    memory_limit: Option<Bytes>,
    reduce_memory: Option<Bytes>,
    spill_dir: Option<PathBuf>,
    preflight: Option<bool>,
    max_spill: Option<Bytes>,
}

impl JobConfig {
    /// Reads a job file.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(path).map_err(|e| unread(path, &e))?;
        let parsed = toml::from_str(&text);
        if let Some(unknown) = job_keys::unknown(&text) {
            return Err(at_offset(path, &text, Some(unknown.offset), &unknown.reason));
        }
        let job: Self = parsed.map_err(|e| toml_failure(path, &text, &e))?;
        let unexpanded = |(key, reason)| Failure::config(format!("{}: {key}: {reason}", path.display())).at(path, None);
        job.refuse_unexpanded().map_err(unexpanded)?;
        Ok(Self { path: Some(path.to_path_buf()), ..job })
    }

    /// Returns a failure about a value of the job file with the place of its key in the file. Other failures stay as they
    /// are, such as those about a file or a flag.
    pub fn located(&self, failure: Failure) -> Failure {
        let found = || {
            let path = self.path.as_ref().filter(|_| failure.code == CONFIG && failure.place.file.is_none())?;
            let text = std::fs::read_to_string(path).ok()?;
            let offset = job_keys::offset_of(&text, failure.message.split_once(": ")?.0)?;
            Some(at_offset(path, &text, Some(offset), &failure.message))
        };
        found().unwrap_or(failure)
    }

    /// Returns an error for the first path that would have to be expanded, with its key and the reason.
    fn refuse_unexpanded(&self) -> Result<(), (&'static str, String)> {
        let dated = self.documents.iter().map(|place| ("documents", place, Dates::Allowed));
        let roots = self.roots.iter().map(|place| ("roots", place, Dates::None));
        let clones = self.clone_roots.iter().map(|place| ("clone_roots", place, Dates::None));
        let store = self.store.iter().map(|place| ("store", place, Dates::None));
        let references = self.references.iter().map(|place| ("references", place, Dates::None));
        let output = self.output.iter().map(|place| ("output", place, Dates::None));
        for (key, place, dates) in dated.chain(store).chain(references).chain(output).chain(roots).chain(clones) {
            refuse_stream(place).and_then(|()| refuse_unexpanded(place, dates)).map_err(|reason| (key, reason))?;
        }
        let paths = [
            ("user_dictionary", &self.user_dictionary),
            ("stop_words", &self.stop_words),
            ("idf", &self.idf),
            ("lock", &self.lock),
            ("resources.spill_dir", &self.resources.spill_dir),
        ];
        for (key, path) in paths {
            path.as_deref().map_or(Ok(()), refuse_unexpanded_path).map_err(|reason| (key, reason))?;
        }
        Ok(())
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
            _ => {
                return Err(usage("the sections are tokenize, fingerprint, sketch, join"));
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
        let mut merged = Table::try_from(base).map_err(|e| Failure::config(e.to_string()))?;
        let sections = [
            ("tokenize", &self.tokenize),
            ("fingerprint", &self.fingerprint),
            ("sketch", &self.sketch),
            ("join", &self.join),
        ];
        for (name, section) in sections {
            if let Some(section) = section {
                let into = merged.entry(name).or_insert_with(|| Value::Table(Table::new()));
                merge(into, Value::Table(section.clone()));
            }
        }
        if let Some(bits) = bits {
            merged.insert("bits".to_owned(), Value::Integer(bits));
        }
        let invalid = |e: toml::de::Error| {
            let file = self.path.as_ref().map_or(String::new(), |path| format!("{}: ", path.display()));
            let reason = foreign(&e);
            Failure::config(format!("{file}profile '{}' with its overrides: {reason}", self.profile))
        };
        let config: ProfileConfig = merged.try_into().map_err(invalid)?;
        config.validate()?;
        Ok(config)
    }

    /// Returns which text of a web page is its document's.
    pub fn html_text(&self) -> &HtmlText {
        &self.html_text
    }

    /// Reads the user dictionary, the stop words and the idf table.
    pub fn analyzer_resources(&self) -> Result<AnalyzerResources, Failure> {
        let read = |path: &Option<PathBuf>, key: &str| match path {
            None => Ok(None),
            Some(path) => std::fs::read_to_string(path)
                .map(Some)
                .map_err(|e| Failure::reading(&format!("{key} {}", path.display()), &e)),
        };
        Ok(AnalyzerResources {
            user_dictionary: read(&self.user_dictionary, "user_dictionary")?,
            stop_words: read(&self.stop_words, "stop_words")?,
            idf: read(&self.idf, "idf")?,
        })
    }

    /// Returns the local files that a command with this job reads, each with the key that names it, and its path.
    pub fn files_read(&self) -> Vec<(&'static str, String)> {
        let named = [
            ("user_dictionary", self.user_dictionary.as_deref()),
            ("stop_words", self.stop_words.as_deref()),
            ("idf", self.idf.as_deref()),
        ];
        named.into_iter().filter_map(|(key, path)| Some((key, path?.display().to_string()))).collect()
    }

    /// Returns the settings that decide what a night keeps, as pairs of a key and its value, for people.
    pub fn settings(&self) -> Result<Vec<(String, String)>, Failure> {
        let profile = self.profile_config()?;
        let list = |values: &[String]| if values.is_empty() { "none".to_owned() } else { values.join(", ") };
        let keep = self.keep.as_deref().map_or_else(|| format!("{LENGTH} desc"), list);
        let by_default = |value: Option<String>| value.unwrap_or_else(|| "the default".to_owned());
        let off = |value: Option<u32>| value.map_or_else(|| "none".to_owned(), |value| value.to_string());
        let clusters = match self.clusters {
            ClusterRule::Star => "star",
            ClusterRule::Component => "component",
        };
        let settings = [
            ("profile", self.profile.clone()),
            ("bits", profile.bits.to_string()),
            ("join.max_distance", profile.join.max_distance.to_string()),
            ("join.max_sketch_distance", off(profile.join.max_sketch_distance)),
            ("clusters", clusters.to_owned()),
            ("keep", keep),
            ("max_lost_share", by_default(self.max_lost_share.map(|share| share.to_string()))),
            ("source_column", self.source_column.clone().unwrap_or_else(|| "none".to_owned())),
        ];
        Ok(settings.map(|(key, value)| (key.to_owned(), value)).to_vec())
    }

    pub fn writers(&self) -> Writers {
        if self.single_writer { Writers::One } else { Writers::Several }
    }

    /// Returns the keys of the keep order, and the columns that they need. `existing` is always the first key and `id`
    /// the last, so the job file need not list them. Without a list, longer documents come first.
    pub fn keep(&self) -> Result<(Vec<KeepKey>, DocumentColumns), Failure> {
        let longest_first = [format!("{LENGTH} desc")];
        let mut texts = self.keep.as_deref().unwrap_or(&longest_first);
        texts = texts.strip_prefix(&["existing".to_owned()]).unwrap_or(texts);
        let last = ["id", "id asc"].map(|id| [id.to_owned()]);
        texts = last.iter().find_map(|id| texts.strip_suffix(id)).unwrap_or(texts);
        let keys: Vec<KeepKey> =
            texts.iter().map(|text| KeepKey::parse(text)).collect::<Result<_, _>>().map_err(PipelineError::from)?;
        for (key, text) in keys.iter().zip(texts) {
            let refused = |reason: &str| Err(Failure::config(format!("keep: '{text}' {reason}")));
            match key.column.as_str() {
                "existing" => return refused("is always first: write it first or not at all, and without an order"),
                "id" => return refused("is always last, and ascending: write 'id' last or not at all"),
                _ => {}
            }
        }
        let mut keep: Vec<String> = keys.iter().map(|k| k.column.clone()).filter(|c| c != LENGTH).collect();
        keep.extend(self.source_column.clone().filter(|source| !keep.contains(source)));
        let (id, text) = (self.id_column.clone(), self.text_column.clone());
        self.html_text.check().map_err(|e| Failure::config(format!("html_text: {e}")))?;
        let web = WebPages { warc_id: self.warc_id, html_text: self.html_text.clone(), root: None };
        Ok((keys, DocumentColumns { id, text, keep, binary_as_utf8: self.binary_as_utf8, web }))
    }

    /// Returns the job with the roots of the command line, if there are any, instead of its own.
    pub fn with_roots(mut self, roots: &[String]) -> Self {
        if !roots.is_empty() {
            self.roots = roots.to_vec();
        }
        self
    }

    /// Returns the places that a command with this job may access.
    pub fn roots(&self) -> Roots {
        Roots { roots: self.roots.clone(), clone_roots: self.clone_roots.clone() }
    }

    /// Returns the job with the command's input options applied.
    pub fn with_input_args(mut self, args: &InputArgs) -> Self {
        self.binary_as_utf8 |= args.binary_as_utf8;
        self.max_doc_bytes = args.max_doc_bytes.unwrap_or(self.max_doc_bytes);
        self.max_bad_rows = args.max_bad_rows.unwrap_or(self.max_bad_rows);
        self.max_bad_files = args.max_bad_files.unwrap_or(self.max_bad_files);
        if args.strict {
            (self.max_bad_rows, self.max_bad_files) = (0, 0);
        }
        match args.on_duplicate_id {
            Some(OnDuplicateId::Fail) => self.on_duplicate_id = DuplicateIds::Fail,
            Some(OnDuplicateId::KeepFirst) => self.on_duplicate_id = DuplicateIds::KeepFirst,
            None => {}
        }
        self
    }

    /// Returns the policy for rows and files that are set aside.
    pub fn input(&self) -> Result<InputPolicy, Failure> {
        if let Some(marker) = self.require_marker.as_ref().filter(|m| m.is_empty() || m.contains('/')) {
            return Err(Failure::config(format!("require_marker: '{marker}' is no file name, such as _SUCCESS")));
        }
        Ok(InputPolicy {
            max_bad_rows: self.max_bad_rows,
            max_bad_files: self.max_bad_files,
            max_doc_bytes: self.max_doc_bytes.0 as u64,
            on_duplicate_id: self.on_duplicate_id,
            allow_empty: self.allow_empty,
            require_marker: self.require_marker.clone(),
        })
    }

    /// Returns the columns without those of the keep order. The keep order is validated nevertheless, so that a job
    /// file is right or wrong for every command.
    pub fn columns(&self) -> Result<DocumentColumns, Failure> {
        let (_, columns) = self.keep()?;
        Ok(DocumentColumns { keep: Vec::new(), ..columns })
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
            spill_dir: global.spill_dir.clone().or_else(|| own.spill_dir.clone()),
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
            ..own
        }
    }

    /// Returns the value of a required key.
    pub fn required(&self, key: &'static str, value: Option<&String>) -> Result<String, Failure> {
        value.cloned().ok_or_else(|| Failure::config(format!("no '{key}': set it in the job file or give --{key}")))
    }
}

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
            let message = format!("{}: did you mean {meant}?", failure.message);
            Failure { message, ..failure }.mended_by(Remedy::Instead(typed, meant))
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

/// The command that checks a job file once it is mended.
fn checked(path: &Path) -> Remedy {
    Remedy::Command(["config", "check", &*path.to_string_lossy()].map(str::to_owned).to_vec())
}

/// Makes a failure from a fault of a job file. The message has the line and the column if the position is known.
fn at_offset(path: &Path, text: &str, offset: Option<usize>, reason: &str) -> Failure {
    let place = offset.map(|offset| line_and_column(text, offset));
    let at = place.map_or(String::new(), |(line, column)| format!(" line {line}, column {column}:"));
    let failure = Failure::config(format!("{}:{at} {reason}", path.display())).at(path, place.map(|(line, _)| line));
    failure.mended_by(checked(path))
}

fn toml_failure(path: &Path, text: &str, error: &toml::de::Error) -> Failure {
    let offset = error.span().map(|span| span.start.min(text.len()));
    let message = in_words(&without_value(&foreign(error.message())));
    // A message about a value does not name its key.
    let line =
        offset.and_then(|offset| text[..offset].rsplit('\n').next().map(|before| &text[offset - before.len()..]));
    let key = line.and_then(|line| line.lines().next()?.split_once('=')).map(|(key, _)| key.trim());
    let key = key.filter(|key| !message.contains(key)).map_or(String::new(), |key| format!("{key}: "));
    at_offset(path, text, offset, &format!("{key}{message}"))
}

/// Says in words of a job file what the parser says in words of its language.
fn in_words(message: &str) -> String {
    message.replace(
        "invalid type: unit variant, expected newtype variant",
        "this name needs a value: write { NAME = VALUE }",
    )
}

/// Removes a string of the wrong type from the message, because it may be a secret in the wrong place.
fn without_value(message: &str) -> String {
    let around = message.split_once("string \"").zip(message.rsplit_once("\", expected"));
    around.map_or_else(|| message.to_owned(), |((before, _), (_, after))| format!("{before}string, expected{after}"))
}
