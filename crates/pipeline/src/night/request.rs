//! What a run is asked to do.

use std::path::{Path, PathBuf};

use nearprint_dataset::{DocumentColumns, InputPolicy, is_date};
use nearprint_profile::ProfileConfig;
use nearprint_storage::{Roots, Storage};
use nearprint_tokenize::Resources as AnalyzerResources;

use super::breakers::Breakers;
use crate::batch::KeepKey;
use crate::error::{PipelineError, Result};
use crate::stages::decide::ClusterRule;
use crate::stages::fingerprint::FingerprintRequest;
use crate::stages::join::PairsMode;

/// A night's work.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// The night, `YYYY-MM-DD`.
    pub dt: String,
    /// Root of the documents: the night's lie under `dt=<date>/`, or where `{dt}` says.
    pub documents: String,
    /// The store.
    pub store: String,
    /// Root of the results.
    pub output: String,
    /// Columns.
    pub columns: DocumentColumns,
    /// Keys of the keep order, after existing documents and before the id.
    pub keep: Vec<KeepKey>,
    /// Which of the columns to keep names a document's source; none where ids do.
    pub source_column: Option<String>,
    /// Text to pair.
    pub profile: ProfileConfig,
    /// Contents of the user's dictionary and stop words.
    pub analyzer_resources: AnalyzerResources,
    /// Which rows and files are set aside, and how many may be.
    pub input: InputPolicy,
    /// Which pairs are written.
    pub pairs: PairsMode,
    /// The most pairs that `all` may write.
    pub max_pairs: u64,
    /// Which documents of a cluster are dropped.
    pub clusters: ClusterRule,
    /// Allows a date older than the newest.
    pub late: bool,
    /// Replaces a published night.
    pub replace: bool,
    /// Nobody else writes to the store: a server that cannot tell who was first will do.
    pub single_writer: bool,
    /// What stops the night before it is published.
    pub breakers: Breakers,
    /// Where documents, store and output must lie.
    pub roots: Roots,
    /// Refuses a spill folder without room for the night.
    pub preflight: bool,
    /// Makes the store where there is none; otherwise a place without a store is an error.
    pub create_store: bool,
    /// The job file: no temporary folder that holds it is ever removed.
    pub job_file: Option<PathBuf>,
}

impl RunRequest {
    /// Where its documents, store, output and job file are on local disks.
    pub(crate) fn local_places(&self, storage: &Storage) -> Vec<PathBuf> {
        let documents = night_pattern(&self.documents, &self.dt);
        let places = [&documents, &self.store, &self.output].into_iter().filter_map(|url| storage.base_of(url).ok());
        places.filter_map(|place| place.local_path().map(Path::to_path_buf)).chain(self.job_file.clone()).collect()
    }

    pub(crate) fn refuse_outside_roots(&self, storage: &Storage) -> Result<()> {
        let documents = night_pattern(&self.documents, &self.dt);
        for (key, url) in [("documents", &documents), ("store", &self.store), ("output", &self.output)] {
            self.roots.refuse_outside(storage, key, url)?;
        }
        Ok(())
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

/// The documents of a night, as a pattern of files: `documents` with the date in place of `{dt}`, or with `dt=<date>` after it.
#[must_use]
pub fn night_pattern(documents: &str, dt: &str) -> String {
    if documents.contains("{dt}") {
        documents.replace("{dt}", dt)
    } else {
        format!("{}/dt={dt}", documents.trim_end_matches('/'))
    }
}

/// Refuses what is no date that there is, as `YYYY-MM-DD`.
pub(crate) fn check_date(dt: &str) -> Result<()> {
    if is_date(dt) {
        return Ok(());
    }
    Err(PipelineError::Usage { reason: format!("--dt '{}' is not a date like 2026-11-20", dt.escape_debug()) })
}
