//! The request of a run, and the checks of it before any file is read.

use std::borrow::Cow;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use nearprint_documents::{
    DocumentColumns, DocumentPlace, DuplicateIds, InputPolicy, KnownFiles, NightPlace, all_nights, night_pattern,
};
use nearprint_fault::{Fault, Result, key, words};
use nearprint_fingerprint::Judge;
use nearprint_join::LossLimit;
use nearprint_parquet::PublishedDataset;
use nearprint_pipeline::{ClusterRule, FingerprintRequest, PairRules, PairsMode, StubRules};
use nearprint_profile::{ALGORITHM_VERSION, Configuration, ProfileConfig};
use nearprint_storage::{Folder, Sha256Hex, Storage, is_date, redact};
use nearprint_store::{Night, Writers};
use nearprint_tasks::KeepKey;
use nearprint_tokenize::Resources as AnalyzerResources;

use super::breakers::Breakers;
use super::manifest::InputRecord;
use super::references::{Written, refuse_written};

/// The request of a night's work.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// The night, `YYYY-MM-DD`.
    pub dt: String,
    /// The root of the documents, or a list of the night's own. Below a root, a night's documents are under
    /// `dt=<date>/`, or at the place of `{dt}`.
    pub documents: DocumentPlace,
    /// The night's files, instead of those that are at the place of its documents. `None` means that they are looked for.
    pub inputs: Option<KnownFiles>,
    /// The store.
    pub store: String,
    /// Reference stores, of the same configuration. The night is joined with all their nights too, and documents that
    /// they have represent the night's. Of existing documents that are equally near and have equal ids, the first
    /// reference's comes first, and the own store's last. Nothing is ever written there.
    pub references: Vec<String>,
    /// The root of the results.
    pub output: String,
    /// The columns of the documents.
    pub columns: DocumentColumns,
    /// The keys of the keep order, which come after existing documents and before the id.
    pub keep: Vec<KeepKey>,
    /// The column, among those to keep, that names a document's source. `None` means that the ids name it.
    pub source_column: Option<String>,
    /// The profile by which texts become fingerprints and pairs.
    pub profile: ProfileConfig,
    /// The contents of the user's dictionary and stop words.
    pub analyzer_resources: AnalyzerResources,
    /// The rows and files that are set aside, and the most that may be.
    pub input: InputPolicy,
    /// The pairs that are written.
    pub pairs: PairsMode,
    /// The most pairs that `all` may write.
    pub max_pairs: u64,
    /// The rule by which documents of a cluster are dropped.
    pub clusters: ClusterRule,
    /// The largest lost share with which a document is dropped as a near-duplicate, from 0 to 1: the share of its
    /// features that its canonical document lacks. 1 means any. `None` means that of the profile, or 1 if sketches are
    /// not compared or the rule is not the star rule, because the share is then not known.
    pub max_lost_share: Option<f64>,
    /// What a stub is.
    pub stubs: StubRules,
    /// Whether the date may be older than the newest night.
    pub late: bool,
    /// Whether the date may be more than two days after today and after the newest input. Such a night forgets none, and
    /// never counts among the `keep_nights` newest.
    pub future: bool,
    /// Whether a published night is replaced.
    pub replace: bool,
    /// The number of nights that the store keeps: the newest, with this one. The commit of the night forgets all others.
    /// `None` means all.
    pub keep_nights: Option<NonZeroU32>,
    /// The processes that write to the store.
    pub writers: Writers,
    /// The limits that stop the night before it is published.
    pub breakers: Breakers,
    /// Whether a spill folder without room for the night is refused.
    pub preflight: bool,
    /// Whether a missing store is made. Otherwise, a place without a store is an error.
    pub create_store: bool,
    /// The job file. No temporary folder that holds it is ever removed.
    pub job_file: Option<PathBuf>,
}

/// Returns the largest lost share with which a document is dropped, unless the request has another: that of the profile, or 1,
/// any, where the share is not known.
#[must_use]
pub fn usual_lost_share(profile: &ProfileConfig, clusters: ClusterRule) -> f64 {
    let is_known = profile.join.max_sketch_distance.is_some() && clusters == ClusterRule::Star;
    if is_known { profile.max_lost_share } else { LossLimit::NONE.0 }
}

/// The largest lost share of release 0.2.0, whatever the profile, where it is known and the job has no other.
const USUAL_LOST_SHARE_OF_RELEASE_0_2: f64 = 0.04;

/// Returns the judge of the named profile that has a profile's fingerprints.
fn usual_judge(profile: &ProfileConfig) -> Result<Option<Judge>> {
    let default = ProfileConfig { bits: profile.bits, ..nearprint_profile::by_name("default")? };
    let ProfileConfig { tokenize, fingerprint, sketch, .. } = &default;
    let is_default = (tokenize, fingerprint, sketch) == (&profile.tokenize, &profile.fingerprint, &profile.sketch);
    Ok(default.judge().filter(|_| is_default && profile.join.max_sketch_distance.is_some()))
}

/// The most pairs that `all` may write, unless the request has another number.
pub const MAX_PAIRS: u64 = 50_000_000;

impl RunRequest {
    /// Makes the request of a night that nothing but what is required is said of: its documents have the usual columns, of two
    /// near-duplicates the one with the smaller id stays, the store keeps all nights, and it must be there.
    ///
    /// ```
    /// use nearprint_night::RunRequest;
    ///
    /// let profile = nearprint_profile::by_name("default")?;
    /// let request = RunRequest::new("2026-11-20", "crawl", "store", "results", profile);
    /// let request = RunRequest { create_store: true, ..request };
    /// # Ok::<(), nearprint_profile::ProfileError>(())
    /// ```
    #[must_use]
    pub fn new(
        dt: impl Into<String>,
        documents: impl Into<DocumentPlace>,
        store: impl Into<String>,
        output: impl Into<String>,
        profile: ProfileConfig,
    ) -> Self {
        Self {
            dt: dt.into(),
            documents: documents.into(),
            inputs: None,
            store: store.into(),
            references: Vec::new(),
            output: output.into(),
            columns: DocumentColumns::default(),
            keep: Vec::new(),
            source_column: None,
            profile,
            analyzer_resources: AnalyzerResources::default(),
            input: InputPolicy::default(),
            pairs: PairsMode::default(),
            max_pairs: MAX_PAIRS,
            clusters: ClusterRule::default(),
            max_lost_share: None,
            stubs: StubRules::default(),
            late: false,
            future: false,
            replace: false,
            keep_nights: None,
            writers: Writers::default(),
            breakers: Breakers::default(),
            preflight: true,
            create_store: false,
            job_file: None,
        }
    }

    /// Returns what makes a pair of the night, and by which rule documents are dropped.
    ///
    /// # Errors
    /// Distances of the profile do not go together, or the lost share cannot be limited.
    pub(crate) fn pair_rules(&self) -> Result<PairRules> {
        let (join, bits) = (&self.profile.join, self.profile.bits);
        let (verifier, own_verifier) = (join.verifier_of_earlier(bits)?, join.verifier(bits)?);
        let (decides, loss) = (Some(self.clusters), self.loss_limit()?);
        Ok(PairRules { itself: true, bits, verifier, own_verifier, decides, loss })
    }

    /// Returns the largest lost share with which a document is dropped.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](nearprint_fault::ErrorKind::Config) if it is not a number from 0 to 1, or below 1 where
    /// the lost share is not known.
    pub(crate) fn loss_limit(&self) -> Result<LossLimit> {
        let refused = |reason: String| Err(Fault::config("max_lost_share", reason));
        let compares = self.profile.join.max_sketch_distance.is_some();
        let known = compares && self.clusters == ClusterRule::Star;
        match self.max_lost_share {
            None => Ok(LossLimit(usual_lost_share(&self.profile, self.clusters))),
            Some(share) if !(0.0..=1.0).contains(&share) => {
                refused(format!("{share} is not a share: write a number from 0 to 1, 1 is off"))
            }
            Some(share) if share < 1.0 && !compares => refused(format!(
                "{share}, but what a document loses is estimated from sketches, and these are not compared: set join.max_sketch_distance, or write 1 or leave it out"
            )),
            Some(share) if share < 1.0 && !known => refused(format!(
                "{share}, but only the star rule looks at what a document loses: set clusters = \"star\", or write 1 or leave it out"
            )),
            Some(share) => Ok(LossLimit(share)),
        }
    }

    /// Returns the request with which a published night is compared: what the job leaves out is what it was in the release that
    /// made the night. So a night stays published when a default changes.
    pub(crate) fn at_release_of(&self, night: &Night) -> Cow<'_, Self> {
        if !night.run.is_of_release_0_2() {
            return Cow::Borrowed(self);
        }
        let mut at_release = self.clone();
        // That release found documents of earlier nights as it found those of the same night.
        at_release.profile.join.earlier = None;
        // Of its results, none depended on sources.
        at_release.source_column = None;
        let is_known = usual_lost_share(&self.profile, self.clusters) < LossLimit::NONE.0;
        if self.max_lost_share.is_none() && is_known {
            at_release.max_lost_share = Some(USUAL_LOST_SHARE_OF_RELEASE_0_2);
        }
        Cow::Owned(at_release)
    }

    /// Returns the digest of everything that the night's results depend on, except the release that writes them.
    /// `references` has the names and the [states](super::references::References::states) of the references.
    pub(crate) fn digest(
        &self,
        config_digest: &str,
        inputs: &[InputRecord],
        joined: &[String],
        references: &[(&str, String)],
    ) -> Result<String> {
        let keep: Vec<(&str, bool)> = self.keep.iter().map(|k| (k.column.as_str(), k.descending)).collect();
        let mut parts = serde_json::json!({
            "algorithm": ALGORITHM_VERSION,
            "dt": self.dt,
            "config_digest": config_digest,
            "inputs": inputs,
            "joined": joined,
            "columns": self.columns,
            "max_doc_bytes": self.input.max_doc_bytes,
            // The rule of the formats counts as none, so that nights from before there was one keep their digests: without a
            // rule, only nights without repeated ids are published, and these are the same with any rule.
            "on_duplicate_id": self.input.on_duplicate_id.unwrap_or(DuplicateIds::Fail),
            "keep": keep,
            "join": self.profile.join,
            "pairs": self.pairs,
            "clusters": self.clusters,
        });
        // Left out at 1, so that nights from before there was a limit keep their digests.
        let LossLimit(max_lost_share) = self.loss_limit()?;
        if max_lost_share < 1.0 {
            parts["max_lost_share"] = max_lost_share.into();
        }
        // Left out where it is the usual one, so that nights from before there was one keep their digests.
        if self.stubs != StubRules::default() {
            parts["stubs"] = serde_json::json!(self.stubs);
        }
        // Left out where it is the usual one, so that nights from before there was one keep their digests.
        if self.profile.judge() != usual_judge(&self.profile)? {
            parts["judge"] = serde_json::json!(self.profile.judge);
        }
        // Another column of sources is among the columns, which `keep` may have too.
        if let Some(source) =
            self.source_column.as_ref().filter(|source| self.keep.iter().any(|k| k.column == **source))
        {
            parts["source"] = source.as_str().into();
        }
        // Left out if there are none, so that nights without references keep their digests.
        if !references.is_empty() {
            parts["references"] = serde_json::json!(references);
        }
        Ok(Sha256Hex::of(parts.to_string().as_bytes()).0[..32].to_owned())
    }

    /// Returns the places of its documents, store, references, output and job file that are on local disks.
    pub(crate) fn local_places(&self, storage: &Storage) -> Vec<PathBuf> {
        let documents = self.night_documents();
        let references = self.references.iter().map(String::as_str);
        let urls = documents.patterns().into_iter().chain([self.store.as_str(), &self.output]).chain(references);
        let places = urls.filter_map(|url| storage.base_of(url).ok());
        places.filter_map(|place| place.local_path().map(Path::to_path_buf)).chain(self.job_file.clone()).collect()
    }

    /// Returns everything that the fingerprints of the night depend on.
    pub(crate) fn configuration(&self) -> Configuration {
        Configuration::new(&self.profile, &self.analyzer_resources, &self.columns.web.html_text)
    }

    /// Refuses a date that does not exist, a profile or a limit that cannot be used, and places that lie outside the
    /// storage's roots or in each other.
    ///
    /// # Errors
    /// A value is refused. The error names the key or flag.
    pub(crate) fn check(&self, storage: &Storage, spill: &Path) -> Result<()> {
        self.faults(storage, spill).into_iter().next().map_or(Ok(()), Err)
    }

    /// Returns what [`check`](Self::check) refuses, all of it.
    pub(crate) fn faults(&self, storage: &Storage, spill: &Path) -> Vec<Fault> {
        let of_values = [
            check_date("dt", &self.dt),
            self.profile.validate().map_err(Fault::from),
            self.breakers.validate(),
            self.stubs.validate(),
            self.loss_limit().map(drop),
            self.documents.check(storage),
        ];
        let documents = self.night_documents();
        let documents = documents.patterns().into_iter().map(|url| ("documents", url));
        let references = self.references.iter().map(|url| ("references", url.as_str()));
        let places = documents.chain([("store", self.store.as_str()), ("output", &self.output)]).chain(references);
        let outside = places.map(|(key, url)| storage.refuse_outside(key, url));
        let all = of_values.into_iter().chain(outside).chain([self.refuse_overlaps(storage, spill)]);
        all.filter_map(Result::err).collect()
    }

    /// Refuses a run whose nights could reach its own store or results. Also refuses results and a store of which one
    /// lies in the other, or in whose place there is a file, and references that a run would write into.
    fn refuse_overlaps(&self, storage: &Storage, spill: &Path) -> Result<()> {
        let (store, output) = (storage.folder(&self.store)?, storage.folder(&self.output)?);
        store.refuse_file_in_its_way()?;
        output.refuse_file_in_its_way()?;
        let results = PublishedDataset::tables()
            .map(|dataset| ("output", &self.output, output.join(dataset.name).join(&format!("dt={}", self.dt))));
        let places: Vec<_> = results.chain([("store", &self.store, store.clone())]).collect();
        let spill = spill.display().to_string();
        let spilled = storage.folder(&spill)?;
        let is_list = matches!(self.documents, DocumentPlace::List(_));
        for documents in self.documents.patterns() {
            for (key, url, place) in &places {
                if nights_reach(storage, documents, place)? {
                    let why = "the next run would read what this one writes";
                    return Err(overlap(key, url, "documents", documents, why));
                }
            }
            // The crawl's folder may have what is spilled, but no night may.
            let reaches_spill = if is_list {
                nights_reach(storage, documents, &spilled)
            } else {
                any_night_reaches(storage, &NightPlace::parse(documents), &spilled)
            };
            if reaches_spill? {
                let why = "another run would read what this one spills";
                return Err(overlap("resources.spill_dir", &spill, "documents", documents, why));
            }
        }
        if store.overlaps(&output) {
            let why = "no command may take the files of one for those of the other";
            return Err(overlap("output", &self.output, "store", &self.store, why));
        }
        let written = Written { store: &self.store, output: &self.output, spill: &spill };
        refuse_written(storage, &self.references, &written)
    }

    /// Returns whether the night is what a table at one place got since a version.
    pub(crate) fn is_of_a_whole_table(&self) -> bool {
        match &self.documents {
            DocumentPlace::Pattern { pattern, versions } => {
                versions.since.is_some() && !NightPlace::parse(pattern).has_date()
            }
            DocumentPlace::List(_) => false,
        }
    }

    /// Returns the place of the night's documents.
    pub(crate) fn night_documents(&self) -> DocumentPlace {
        match &self.documents {
            DocumentPlace::Pattern { pattern, versions } if !self.is_of_a_whole_table() => {
                DocumentPlace::Pattern { pattern: night_pattern(pattern, &self.dt), versions: *versions }
            }
            // What a table got since a version is the night, unless the path says where the date is.
            place => place.clone(),
        }
    }

    pub(crate) fn fingerprint_request(&self) -> FingerprintRequest {
        FingerprintRequest {
            documents: self.documents.clone(),
            columns: self.columns.clone(),
            keep: self.keep.clone(),
            source: self.source_column.clone(),
            profile: self.profile.clone(),
            analyzer_resources: self.analyzer_resources.clone(),
            input: self.input.clone(),
        }
    }
}

/// Returns whether a place is one of the documents of some night, or lies below them, hidden or not. `documents` may have
/// placeholders and wildcards; all that lies below a root without placeholders counts.
///
/// # Errors
/// `documents` is malformed, or its URL is not supported.
pub fn is_among_documents(storage: &Storage, documents: &str, place: &Folder) -> Result<bool> {
    storage.covers(&all_nights(documents), place)
}

/// Refuses the value of a key if it is not an existing date in the form `YYYY-MM-DD`.
pub(crate) fn check_date(name: &'static str, date: &str) -> Result<()> {
    if is_date(date) {
        return Ok(());
    }
    let is_shaped = date.len() == 10
        && date.bytes().enumerate().all(|(i, b)| if i == 4 || i == 7 { b == b'-' } else { b.is_ascii_digit() });
    let why = if is_shaped { ": there is no such day" } else { "" };
    Err(Fault::usage(words![key(name), format!(" '{}' is not a date like 2026-11-20{why}", date.escape_debug())]))
}

/// Returns whether some night's documents could lie at a place or below it. A root without placeholders belongs to the crawl
/// as a whole.
fn nights_reach(storage: &Storage, documents: &str, place: &Folder) -> Result<bool> {
    let nights = NightPlace::parse(documents);
    if !nights.has_date() {
        return storage.reaches(documents, place);
    }
    any_night_reaches(storage, &nights, place)
}

/// Returns whether the documents of some night could lie at a place or below it.
fn any_night_reaches(storage: &Storage, nights: &NightPlace, place: &Folder) -> Result<bool> {
    let nights = nights.of_any_night();
    let nights = nights.trim_end_matches('/');
    Ok(storage.reaches(nights, place)? || storage.reaches(&format!("{nights}/**"), place)?)
}

fn overlap(key: &str, url: &str, other: &str, other_url: &str, why: &str) -> Fault {
    let reason = format!(
        "'{}' holds or lies in {other} = '{}': {why}; name a folder outside of it",
        redact(url),
        redact(other_url)
    );
    Fault::config(key.to_owned(), reason)
}
