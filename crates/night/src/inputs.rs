//! The inputs of a published night: its files, and the earlier nights that it was joined with.

use std::collections::BTreeSet;

use futures::{StreamExt, TryStreamExt};
use nearprint_documents::{BadFile, FileRows, KnownFiles};
use nearprint_fault::{ErrorKind, Fault, Result};
use nearprint_profile::Configuration;
use nearprint_storage::{InputFile, Storage};
use nearprint_store::{Night, Store};

use super::manifest::{InputRecord, Manifest};
use super::published::{found_files, manifest_of, open_store, published, rows_of_quarantine};
use super::request::check_date;

/// The number of input files that are looked up at once.
pub(crate) const LOOK_UPS_AT_ONCE: usize = 16;

/// An input file of a published night, as it is now.
#[derive(Debug, Clone)]
pub enum NightInput {
    /// It is the one that the run read.
    Unchanged(InputFile),
    /// There is a file of this name, but it has another size or another version.
    Changed {
        /// The path or URL.
        url: String,
        /// The difference.
        reason: String,
    },
    /// There is no such file.
    Gone {
        /// The path or URL.
        url: String,
    },
}

impl NightInput {
    /// Compares an input file with the one that the run read.
    pub(crate) async fn of(storage: &Storage, recorded: InputRecord) -> Result<Self> {
        let Some(file) = storage.input(&recorded.url)?.find().await? else {
            return Ok(Self::Gone { url: recorded.url });
        };
        if file.size == recorded.bytes && file.version == recorded.version {
            return Ok(Self::Unchanged(file.without(recorded.deleted_rows)));
        }
        let reason = format!(
            "it has changed since the night was published ({} bytes of {} then, {} of {} now)",
            recorded.bytes, recorded.version, file.size, file.version
        );
        Ok(Self::Changed { url: recorded.url, reason })
    }
}

/// The files of a published night.
#[derive(Debug, Clone)]
pub struct NightFiles {
    /// The generation.
    pub generation: String,
    /// The files of the decisions: one row a document, sorted by `doc_id`.
    pub decisions: Vec<InputFile>,
    night: Night,
    pub(crate) manifest: Manifest,
}

impl NightFiles {
    /// Looks up the files that the run read, by path. Files that it passed over because they cannot be read are left out.
    ///
    /// # Errors
    /// A file cannot be looked up.
    pub(crate) async fn inputs(&self, storage: &Storage) -> Result<Vec<NightInput>> {
        let inputs = self.manifest.read_inputs();
        let inputs = futures::stream::iter(inputs).map(|input| NightInput::of(storage, input));
        inputs.buffered(LOOK_UPS_AT_ONCE).try_collect().await
    }

    /// Returns the rows that are no documents because another row has their id.
    ///
    /// # Errors
    /// A file of the quarantine is missing or damaged.
    pub(crate) async fn left_out(&self, storage: &Storage) -> Result<FileRows> {
        if !self.manifest.has_repeated_ids() {
            return Ok(FileRows::new());
        }
        rows_of_quarantine(&found_files(storage, &self.manifest, &self.night, "quarantine").await?).await
    }

    /// Returns the size in bytes of the files that the run read, as they lay there.
    #[must_use]
    pub fn input_bytes(&self) -> u64 {
        self.manifest.read_inputs().iter().map(|input| input.bytes).sum()
    }

    /// Returns the size in bytes above which a text made its row no document, if the manifest has it.
    #[must_use]
    pub fn max_doc_bytes(&self) -> Option<u64> {
        self.manifest.max_doc_bytes
    }
}

/// A published night, and the earlier nights that it was joined with.
#[derive(Debug)]
pub struct PublishedNights {
    storage: Storage,
    store: Store,
    dates: Vec<String>,
    /// The number of earlier nights that it was joined with and that were replaced or dropped since.
    pub n_gone: u64,
}

impl PublishedNights {
    /// Opens the store of a published night.
    ///
    /// # Errors
    /// The night is not published, or a manifest is damaged.
    pub async fn open(storage: &Storage, store_url: &str, dt: &str) -> Result<Self> {
        check_date("dt", dt)?;
        let store = open_store(storage, store_url).await?;
        let night = published(&store, dt)?;
        let manifest = manifest_of(storage, &store, night).await?;
        let joined: BTreeSet<&str> = manifest.joined.iter().map(String::as_str).collect();
        let was_joined = |night: &&&Night| joined.contains(night.joined_as());
        let before = store.before(dt);
        let earlier: Vec<&&Night> = before.iter().rev().filter(was_joined).collect();
        let n_gone = manifest.joined.len().saturating_sub(earlier.len()) as u64;
        let dates = std::iter::once(dt).chain(earlier.iter().map(|night| night.dt.as_str()));
        let dates = dates.map(str::to_owned).collect();
        Ok(Self { storage: storage.clone(), store, dates, n_gone })
    }

    /// Refuses a configuration that is not the store's, for those who compare texts by it.
    ///
    /// # Errors
    /// The store has fingerprints of another profile.
    pub fn refuse_other(&self, configuration: &Configuration) -> Result<()> {
        self.store.refuse_other_config(&configuration.digest(), |other| configuration.differences(other))
    }

    /// Returns the date of the night, and then those of the nights that it was joined with, from the newest to the
    /// oldest.
    #[must_use]
    pub fn dates(&self) -> &[String] {
        &self.dates
    }

    /// Returns the files of a published night of the store.
    ///
    /// # Errors
    /// The night is not published; its manifest, or a file of its decisions, is missing or damaged.
    pub async fn files(&self, dt: &str) -> Result<NightFiles> {
        let night = published(&self.store, dt)?;
        let manifest = manifest_of(&self.storage, &self.store, night).await?;
        let decisions = found_files(&self.storage, &manifest, night, "decisions").await?;
        Ok(NightFiles { generation: night.gen_digest.clone(), decisions, night: night.clone(), manifest })
    }
}

/// Looks up the inputs of a night: those that are as the run found them, and the others. A file that the run could not read is
/// none of the others: whatever became of it, the night is made without it.
pub(crate) async fn known_files(storage: &Storage, manifest: &Manifest) -> Result<(KnownFiles, Vec<NightInput>)> {
    let looked_up = manifest.inputs.iter().map(|input| async move {
        let bad = manifest.bad_files.iter().find(|bad| bad.url == input.url);
        match (NightInput::of(storage, input.clone()).await, bad) {
            (Ok(NightInput::Changed { .. } | NightInput::Gone { .. }), Some(bad)) => {
                former(storage, input, bad).map(Err)
            }
            (Err(error), Some(bad)) if is_of_place(&error) => former(storage, input, bad).map(Err),
            (found, _) => found.map(Ok),
        }
    });
    let looked_up: Vec<_> = looked_up.collect();
    let looked_up: Vec<std::result::Result<NightInput, (InputFile, String)>> =
        futures::stream::iter(looked_up).buffered(LOOK_UPS_AT_ONCE).try_collect().await?;
    let (ignored, html_root) = (manifest.ignored_inputs.clone(), manifest.html_root.clone());
    let mut known = KnownFiles { ignored, html_root, ..KnownFiles::default() };
    let mut lost = Vec::new();
    for input in looked_up {
        match input {
            Err(unusable) => known.unusable.push(unusable),
            Ok(NightInput::Unchanged(file)) => known.files.push(file),
            Ok(other) => lost.push(other),
        }
    }
    Ok((known, lost))
}

/// Returns whether an error is about what stands at a place, such as a link to itself, and not about a server that does not answer.
pub(crate) fn is_of_place(error: &Fault) -> bool {
    matches!(error.kind(), ErrorKind::BadData | ErrorKind::LocalIo | ErrorKind::Permission | ErrorKind::Usage)
}

/// Returns a file that the run could not read, with the reason, as its manifest has them.
fn former(storage: &Storage, input: &InputRecord, bad: &BadFile) -> Result<(InputFile, String)> {
    let mut file = storage.input(&input.url)?.former(input.bytes, input.version.clone());
    file.url.clone_from(&input.url);
    Ok((file.without(input.deleted_rows.clone()), bad.reason.clone()))
}
