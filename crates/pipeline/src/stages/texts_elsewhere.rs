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

/// The bytes that a text takes: where its words stand, its hash, and half of it as a number, as text and as text of the engine.
const BYTES_OF_TEXT: usize = ArrivingWords::BYTES_OF_TEXT + 16 + 8 + 2 * 20;

impl TextsElsewhere {
    /// Brings the words of different texts, by their hashes. `n_documents` has the number of documents that have these texts, and
    /// that of all documents. What is known of the texts may take `max_bytes` of memory; the words are in a file. `None` means that
    /// no texts were asked for.
    ///
    /// # Errors
    /// The engine fails, a document has changed since it was fingerprinted, or the texts are too many.
    pub(crate) async fn words(
        &self,
        wanted: &[[u8; 16]],
        n_documents: (usize, usize),
        max_bytes: usize,
        progress: &Progress,
    ) -> Result<Option<WordsOfTexts>> {
        progress.start("texts to judge", "texts", wanted.len() as u64);
        if wanted.is_empty() {
            return Ok(None);
        }
        let held_bytes = wanted.len().saturating_mul(BYTES_OF_TEXT);
        if held_bytes > max_bytes {
            let n = wanted.len();
            let reason = format!(
                "the {n} texts that the judge reads take {held_bytes} bytes, {max_bytes} are left of the limit"
            );
            let remedy = words!["raise ", key("memory_limit"), ", or lower ", key("judge.max_looks")];
            return Err(Fault::resources(reason).remedy(remedy));
        }
        let spec = FingerprintSpec { words: SentWords::Only(WantedTexts::of(wanted.iter())), ..self.spec.clone() };
        // Of the bytes of all documents, so many are those of these texts, with all their copies.
        let all: u128 = self.tasks.iter().map(|weighed| u128::from(weighed.bytes)).sum();
        let returned_bytes = all * n_documents.0 as u128 / n_documents.1.max(1) as u128;
        let tasks = Weighed::sharing(self.tasks.clone(), u64::try_from(returned_bytes).unwrap_or(u64::MAX));
        let messages = self.engine.fingerprint(&spec, tasks, &self.storage, progress);
        let mut batches = received(messages, self.tasks.len(), &Form::Batches)?;
        let mut arriving = ArrivingWords::new(wanted.len(), WordSpill::create(self.resources.temp_dir()?)?);
        while let Some(batch) = batches.try_next().await? {
            // What the notes say of the files is known.
            if let TaskBatch::Rows(rows) = batch {
                arriving.push(&rows)?;
            }
        }
        let n_missing = wanted.iter().filter(|hash| !arriving.has(hash)).count();
        if n_missing > 0 {
            let n = wanted.len();
            let reason =
                format!("{n_missing} of the {n} texts that the judge reads are gone: documents changed meanwhile");
            return Err(Fault::try_again(reason));
        }
        arriving.finish().map(Some)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use nearprint_documents::{DocumentColumns, Revisits};
    use nearprint_fault::{ErrorKind, Result};
    use nearprint_storage::{Progress, Storage};
    use nearprint_tasks::{
        Engine, FingerprintSpec, FingerprintTask, MapTask, Messages, SentWords, Weighed, WordsOfTexts, Workers,
    };

    use super::{BYTES_OF_TEXT, TextsElsewhere};
    use crate::resources::Resources;

    /// An engine of which nothing is asked.
    struct Idle;

    impl Engine for Idle {
        fn workers(&self) -> Result<Workers> {
            unreachable!("nothing is asked")
        }

        fn fingerprint(
            &self,
            _: &FingerprintSpec,
            _: Vec<Weighed<FingerprintTask>>,
            _: &Storage,
            _: &Progress,
        ) -> Messages {
            unreachable!("nothing is asked")
        }

        fn map(&self, _: &Path, _: Vec<Weighed<MapTask>>, _: &Storage, _: &Progress) -> Messages {
            unreachable!("nothing is asked")
        }
    }

    async fn words(n_wanted: u8, max_bytes: usize) -> Result<Option<WordsOfTexts>> {
        let spec = FingerprintSpec {
            columns: DocumentColumns::default(),
            keep_types: Vec::new(),
            profile: nearprint_profile::by_name("default")?,
            analyzer_resources: nearprint_tokenize::Resources::default(),
            max_doc_bytes: 1 << 20,
            passes_over_files: false,
            revisits: Revisits::PassedOver,
            words: SentWords::Marks,
            memory_limit: None,
            threads: 1,
        };
        let (storage, resources, tasks) = (Storage::default(), Resources::default(), Vec::new());
        let texts = TextsElsewhere { engine: Arc::new(Idle), storage, resources, spec, tasks };
        let wanted: Vec<[u8; 16]> = (0..n_wanted).map(|text| [text; 16]).collect();
        texts.words(&wanted, (wanted.len(), 1000), max_bytes, &Progress::default()).await
    }

    #[tokio::test]
    async fn no_document_is_read_again_if_no_text_is_wanted() {
        assert!(words(0, 0).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn texts_that_the_limit_does_not_hold_are_refused_with_the_settings_that_help() {
        let refused = words(10, 10 * BYTES_OF_TEXT - 1).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::LocalIo);
        let message = refused.to_string();
        assert!(
            message.contains("the 10 texts that the judge reads take") && message.contains("judge.max_looks"),
            "{message}"
        );
    }
}
