//! The texts of documents of published nights, read again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::TryStreamExt;
use nearprint_documents::{DocumentColumns, Documents, WebPages, night_pattern};
use nearprint_fault::{ErrorKind, Fault, Result};
use nearprint_parquet::{BadColumn, Columns, ParquetFile, ReadLimits};
use nearprint_pipeline::{Resources, STUB};
use nearprint_storage::{Folder, InputFile, Progress, Storage};

use super::inputs::{NightFiles, NightInput, PublishedNights, is_of_place};
use super::manifest::Manifest;

/// A text that was looked for.
#[derive(Debug, Clone)]
pub enum Text {
    /// It is that of the document in this night.
    Found {
        /// The night.
        dt: String,
        /// The text.
        text: Arc<str>,
    },
    /// No file has it.
    NotFound,
    /// Files have changed since the run.
    Changed,
}

/// The texts of documents and keepers. A keeper is kept, so no id is in both.
#[derive(Debug, Default)]
pub struct Texts {
    /// The texts that were looked for.
    pub by_id: BTreeMap<String, Text>,
    /// Texts that no night has may be those of nights that were replaced or dropped.
    pub nights_are_gone: bool,
}

/// How the texts of published nights are read again: as in the run, also where a manifest does not say it.
#[derive(Debug, Clone)]
pub struct TextSource {
    /// The place of the documents: below it, the paths of HTML files are their ids.
    pub documents: Option<String>,
    /// The columns of the documents.
    pub columns: DocumentColumns,
    /// The size in bytes above which a text made its row no document.
    pub max_doc_bytes: u64,
}

impl TextSource {
    /// Returns the place of a night's documents.
    pub(crate) fn base(&self, storage: &Storage, dt: &str) -> Result<Option<Folder>> {
        let place = self.documents.as_ref().map(|documents| night_pattern(documents, dt));
        place.map(|place| storage.base_of(&place)).transpose()
    }

    /// Returns the columns, with the folder of the ids of HTML files, and the size above which a text made its row no document,
    /// of a night whose documents were in `base` if its manifest does not say where.
    pub(crate) fn as_read(&self, manifest: &Manifest, base: Option<&Folder>) -> (DocumentColumns, u64) {
        let mut columns = self.columns.clone();
        columns.web.root = manifest.html_root.clone().or_else(|| base.map(WebPages::root_of));
        (columns, manifest.max_doc_bytes.unwrap_or(self.max_doc_bytes))
    }
}

/// A published night whose texts are read again.
#[derive(Debug, Clone)]
pub struct NightSource {
    /// The night.
    pub dt: String,
    /// The store.
    pub store: String,
    /// How texts are read.
    pub texts: TextSource,
}

impl NightSource {
    /// Opens the night and those that it was joined with, and returns its own files too.
    ///
    /// # Errors
    /// The night is not published, or a manifest cannot be read.
    pub async fn open(&self, storage: &Storage) -> Result<(PublishedNights, NightFiles)> {
        let nights = PublishedNights::open(storage, &self.store, &self.dt).await?;
        let own = nights.files(&self.dt).await?;
        Ok((nights, own))
    }
}

/// Reads texts from the files that the manifests of nights name, and only from those that have not changed since.
#[derive(Debug)]
pub struct NightTexts<'a> {
    storage: &'a Storage,
    source: &'a TextSource,
    limits: ReadLimits,
    is_for_show: bool,
}

impl<'a> NightTexts<'a> {
    /// Creates a reader of texts, within the memory of a command.
    #[must_use]
    pub fn new(storage: &'a Storage, source: &'a TextSource, resources: &Resources) -> Self {
        let limits = ReadLimits::new(resources.memory_limit, resources.n_threads());
        Self { storage, source, limits, is_for_show: false }
    }

    /// Takes texts that cannot be read for texts that are not found: they are only shown, beside what is known without them.
    #[must_use]
    pub fn for_show(self) -> Self {
        Self { is_for_show: true, ..self }
    }
}

impl NightTexts<'_> {
    /// Finds the texts of documents in their night, and those of their keepers in the newest night that has them: a document
    /// that a night has again takes the place of its earlier state.
    ///
    /// # Errors
    /// A manifest, or a file that has not changed, cannot be read.
    pub async fn find(
        &self,
        nights: &PublishedNights,
        own: NightFiles,
        mut wanted: BTreeSet<&str>,
        mut keepers: BTreeSet<&str>,
        progress: &Progress,
    ) -> Result<Texts> {
        let mut texts = Texts { nights_are_gone: nights.n_gone > 0, ..Texts::default() };
        let mut own = Some(own);
        progress.start("read", "texts", (keepers.len() + wanted.len()) as u64);
        for dt in nights.dates() {
            if wanted.is_empty() && keepers.is_empty() {
                break;
            }
            let of_night = async {
                let files = match own.take() {
                    Some(files) => files,
                    None => nights.files(dt).await?,
                };
                for id in ids_among(&files.decisions, &keepers).await? {
                    wanted.extend(keepers.take(id.as_str()));
                }
                progress.advance(wanted.len() as u64);
                self.texts_of(dt, files, std::mem::take(&mut wanted)).await
            };
            match of_night.await {
                Ok(of_night) => texts.by_id.extend(of_night),
                // Earlier nights may have earlier texts of the same documents.
                Err(error) if self.is_for_show && is_unreadable(&error) => {
                    tracing::warn!(dt, %error, "the texts of this night and of those before it are not shown");
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(texts)
    }

    /// Returns the documents of a night's files that are as the run read them, without the rows that the night left out; and
    /// what texts are that are not among them.
    ///
    /// # Errors
    /// A file that has not changed cannot be read.
    pub async fn documents(&self, dt: &str, files: &NightFiles) -> Result<(Documents, Text)> {
        let (mut unchanged, mut changed, mut gone) = (Vec::new(), Vec::new(), Vec::new());
        for input in files.inputs(self.storage).await? {
            match input {
                NightInput::Unchanged(file) => unchanged.push(file),
                NightInput::Changed { url, reason } => changed.push((url, reason)),
                NightInput::Gone { url } => gone.push(url),
            }
        }
        if let Some((url, reason)) = changed.first().filter(|_| !self.is_for_show) {
            tracing::warn!(dt, n_files = changed.len(), url, "{reason}: no changed file is read");
        }
        if let Some(url) = gone.first().filter(|_| !self.is_for_show) {
            tracing::warn!(dt, n_files = gone.len(), url, "the night was made from files that are gone");
        }
        let missing = if changed.is_empty() { Text::NotFound } else { Text::Changed };
        let base = self.source.base(self.storage, dt)?;
        let (columns, max_doc_bytes) = self.source.as_read(&files.manifest, base.as_ref());
        let mut documents = Documents::of_files(unchanged, columns, max_doc_bytes).await?;
        documents.limit(self.limits.clone());
        documents.leave_out(files.left_out(self.storage).await?);
        Ok((documents, missing))
    }

    /// Returns the texts of documents of a night.
    ///
    /// # Errors
    /// A file that has not changed cannot be read.
    pub async fn texts_of(
        &self,
        dt: &str,
        files: NightFiles,
        wanted: BTreeSet<&str>,
    ) -> Result<BTreeMap<String, Text>> {
        if wanted.is_empty() {
            return Ok(BTreeMap::new());
        }
        let (documents, missing) = self.documents(dt, &files).await?;
        let mut found = documents.texts_of(wanted.clone()).await?;
        let mut text = |id: &str| match found.remove(id).flatten() {
            Some(text) => Text::Found { dt: dt.to_owned(), text: text.into() },
            None => missing.clone(),
        };
        Ok(wanted.into_iter().map(|id| (id.to_owned(), text(id))).collect())
    }
}

/// Returns whether an error is about files of a night, which others do without, and not about a server that does not answer.
#[must_use]
pub fn is_unreadable(error: &Fault) -> bool {
    let is_of_job = error.matter::<BadColumn>().is_some();
    !is_of_job && (error.kind() == ErrorKind::InputMissing || is_of_place(error))
}

/// Returns those of the ids that have a decision about a text of the night: a stub has the text of an earlier night.
async fn ids_among(decisions: &[InputFile], wanted: &BTreeSet<&str>) -> Result<Vec<String>> {
    let mut among = Vec::new();
    for file in decisions {
        if among.len() == wanted.len() {
            break;
        }
        let parquet = ParquetFile::open(file.clone()).await?;
        let mut batches = parquet.stream(parquet.whole(&["doc_id", "reason"]))?;
        while let Some(batch) = batches.try_next().await? {
            let columns = Columns { batch: &batch, file: &parquet.file.url };
            let rows = columns.strings("doc_id")?.iter().zip(columns.strings("reason")?);
            let found = rows.filter(|(_, reason)| *reason != Some(STUB)).filter_map(|(id, _)| id);
            among.extend(found.filter(|id| wanted.contains(id)).map(str::to_owned));
        }
    }
    Ok(among)
}
