//! The words of texts that an engine reads a second time, for the judge. Most texts are in no undecided pair, and their words need
//! not travel.

use std::fmt::{Debug, Formatter};
use std::sync::Arc;

use futures::TryStreamExt;
use nearprint_fault::{Fault, Result, key, words};
use nearprint_storage::{Progress, Storage};
use nearprint_tasks::{
    ArrivingWords, Engine, FingerprintSpec, FingerprintTask, Form, SentWords, TaskBatch, WantedTexts, Weighed,
    WordSpill, WordsOfTexts, received,
};

use crate::resources::Resources;

/// The texts of a night whose documents an engine has fingerprinted, and how it reads them again.
pub struct TextsElsewhere {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) storage: Storage,
    pub(crate) resources: Resources,
    /// The specification by which the documents were fingerprinted, and the tasks whose documents count.
    pub(crate) spec: FingerprintSpec,
    pub(crate) tasks: Vec<Weighed<FingerprintTask>>,
}

impl Debug for TextsElsewhere {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextsElsewhere").field("tasks", &self.tasks).finish_non_exhaustive()
    }
}

impl TextsElsewhere {
    /// Brings the words of different texts of a night of `n_documents`, by their hashes. They may take `max_bytes` of memory; the
    /// words themselves are in a file.
    ///
    /// # Errors
    /// The engine fails, a document has changed since it was fingerprinted, or the texts are too many.
    pub(crate) async fn words(
        &self,
        wanted: &[[u8; 16]],
        n_documents: usize,
        max_bytes: usize,
        progress: &Progress,
    ) -> Result<WordsOfTexts> {
        let bytes = wanted.len().saturating_mul(ArrivingWords::BYTES_OF_TEXT);
        if bytes > max_bytes {
            let n = wanted.len();
            let reason =
                format!("the {n} texts that the judge reads take {bytes} bytes, {max_bytes} are left of the limit");
            let remedy = words!["raise ", key("memory_limit"), ", or lower ", key("judge.max_looks")];
            return Err(Fault::resources(reason).remedy(remedy));
        }
        progress.start("texts to judge", "texts", wanted.len() as u64);
        let spec = FingerprintSpec { words: SentWords::Only(WantedTexts::of(wanted.iter())), ..self.spec.clone() };
        // About as many bytes of words as of documents.
        let all: u128 = self.tasks.iter().map(|weighed| u128::from(weighed.bytes)).sum();
        let bytes = all * wanted.len() as u128 / n_documents.max(1) as u128;
        let tasks = Weighed::sharing(self.tasks.clone(), u64::try_from(bytes).unwrap_or(u64::MAX));
        let messages = self.engine.fingerprint(&spec, tasks, &self.storage, progress);
        let mut batches = received(messages, self.tasks.len(), &Form::Batches)?;
        let mut arriving = ArrivingWords::new(WordSpill::create(self.resources.temp_dir()?)?);
        while let Some(batch) = batches.try_next().await? {
            // What the notes say of the files is known.
            if let TaskBatch::Rows(rows) = batch {
                arriving.push(&rows)?;
            }
        }
        let n_missing = wanted.iter().filter(|hash| !arriving.has(hash)).count();
        if n_missing > 0 {
            let reason = format!("{n_missing} of {} texts are gone that were there a while ago", wanted.len());
            return Err(Fault::try_again(reason));
        }
        arriving.finish()
    }
}
