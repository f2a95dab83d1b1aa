//! The answers of a store.

use std::sync::Arc;

use async_trait::async_trait;
use nearprint_documents::{
    DocumentColumns, DocumentPlace, Documents, InputPolicy, Repeats, TableVersions, night_pattern,
};
use nearprint_explain::{ExplainRequest, ExplainTexts, Explanation, explain};
use nearprint_fault::{ErrorKind, Fault, Result};
use nearprint_lookup::{Answer, JsonQuery, Lookup, SharedLookup, State, Taken, Turn};
use nearprint_storage::{Storage, is_date};
use nearprint_tokenize::Resources as AnalyzerResources;
use tokio::sync::Semaphore;

use crate::answers::{Answers, Side};

/// The answers of a store. Each comes from one commit, even if a new one is opened meanwhile.
#[derive(Debug)]
pub struct StoreAnswers {
    lookup: SharedLookup,
    storage: Storage,
    texts: Option<DocumentTexts>,
    analyzer_resources: AnalyzerResources,
    /// One comparison computes at a time, even if nobody waits for it any more: nothing stops it.
    comparing: Arc<Semaphore>,
}

/// Where the texts of documents are.
#[derive(Debug, Clone)]
pub struct DocumentTexts {
    /// The documents of a job: a folder with the nights' folders, or a pattern with `{dt}`.
    pub documents: String,
    /// The version of the Delta table; `None` stands for its newest.
    pub version: Option<u64>,
    /// The columns.
    pub columns: DocumentColumns,
    /// The treatment of bad rows and files.
    pub policy: InputPolicy,
    /// The rule for rows with one id.
    pub repeats: Repeats,
}

/// The names of the two sides of a comparison, for sides that are texts.
const SIDES: [&str; 2] = ["text a", "text b"];

impl StoreAnswers {
    /// Answers from a lookup. Without `texts`, nothing is compared. `analyzer_resources` are those of the lookup's
    /// profile.
    #[must_use]
    pub fn new(
        lookup: Lookup,
        storage: Storage,
        texts: Option<DocumentTexts>,
        analyzer_resources: AnalyzerResources,
    ) -> Self {
        let comparing = Arc::new(Semaphore::new(1));
        Self { lookup: SharedLookup::new(lookup), storage, texts, analyzer_resources, comparing }
    }

    /// Returns the name and the text of a side.
    async fn side(&self, side: Side, name: &str) -> Result<(String, String)> {
        match side {
            Side { text: Some(text), id: None, dt: None } => Ok((name.to_owned(), text)),
            Side { text: None, id: Some(id), dt: Some(dt) } if is_date(&dt) => {
                let text = self.text_of(&id, &dt).await?;
                Ok((id, text))
            }
            _ => Err(Fault::usage("a side of a comparison is {\"text\"}, or {\"id\", \"dt\"} with a date")),
        }
    }

    async fn text_of(&self, id: &str, dt: &str) -> Result<String> {
        let texts = self.texts.as_ref().ok_or_else(no_texts)?;
        let pattern = night_pattern(&texts.documents, dt);
        let place = DocumentPlace::Pattern {
            pattern: pattern.clone(),
            versions: TableVersions { version: texts.version, since: None },
        };
        let documents = Documents::open(&self.storage, &place, texts.columns.clone(), &texts.policy);
        let documents = documents.await?;
        let lookup = self.lookup.get();
        let length_of = |text: &str| lookup.profile().length(text);
        let found = documents.newest_texts_of([id].into(), &texts.repeats, &length_of).await?;
        found.into_values().next().and_then(|found| found.text).ok_or_else(|| {
            let moved = format!("or its file in {pattern} was moved or deleted");
            let reason = format!("no such document in {dt}: '{}'; {moved}", id.escape_debug());
            Fault::new(ErrorKind::InputMissing, reason)
        })
    }
}

#[async_trait]
impl Answers for StoreAnswers {
    async fn answer(&self, asked: JsonQuery, turn: Turn) -> Result<(Answer, Taken)> {
        let lookup = self.lookup.get();
        let query = asked.query(lookup.profile())?;
        let is_alone = turn.is_alone();
        let error = match lookup.answer_in_turn(&query, turn).await {
            Err(error) if matches!(error.kind(), ErrorKind::TryAgain | ErrorKind::BadData) => error,
            answered => return answered,
        };
        // A file was mended, or deleted after a commit that is not followed yet.
        let newer = match self.lookup.after(&lookup).await {
            Ok(Some(newer)) => newer,
            Ok(None) => return Err(error),
            // The store is gone, and no document that the client asked for.
            Err(gone) if gone.kind() == ErrorKind::InputMissing => return Err(error),
            Err(other) => return Err(other),
        };
        tracing::warn!(%error, commit = newer.state().commit, "the store's files are opened again");
        // The turn has passed: others may have taken the memory that this query would wait for, and wait for its answer.
        if is_alone { newer.answer_in_turn(&query, Turn::default()).await } else { Err(error) }
    }

    async fn explain(&self, a: Side, b: Side) -> Result<Explanation> {
        let [name_a, name_b] = SIDES;
        let texts = vec![self.side(a, name_a).await?, self.side(b, name_b).await?];
        let request = ExplainRequest {
            texts: ExplainTexts::Given(texts),
            profile: self.lookup.get().profile().config().clone(),
            analyzer_resources: self.analyzer_resources.clone(),
        };
        let storage = self.storage.clone();
        let internal = |reason: String| Fault::internal("explain", reason);
        let turn = Arc::clone(&self.comparing).acquire_owned().await.map_err(|error| internal(error.to_string()))?;
        // Long texts take seconds, in which a thread that others wait for must not compute.
        let handle = tokio::runtime::Handle::current();
        let compute = move || {
            let _turn = turn;
            handle.block_on(explain(&storage, &request))
        };
        Ok(tokio::task::spawn_blocking(compute).await.map_err(|error| internal(error.to_string()))??)
    }

    async fn refresh(&self) -> Result<bool> {
        Ok(self.lookup.refresh().await?)
    }

    fn state(&self) -> State {
        self.lookup.get().state()
    }

    fn has_texts(&self) -> bool {
        self.texts.is_some()
    }
}

fn no_texts() -> Fault {
    Fault::usage("the server knows no documents").remedy("start it with `--config` and a job file that names them")
}
