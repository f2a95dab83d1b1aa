//! One document: its history, and how its text differs from that of the document that represents it.

use std::collections::BTreeSet;

use nearprint_documents::{DocumentColumns, DocumentPlace, Documents, InputPolicy, TableVersions, night_pattern};
use nearprint_explain::{ExplainRequest, ExplainTexts, ExplainedPair, explain};
use nearprint_fault::{ErrorKind, Result, in_bytes};
use nearprint_night::{DocumentHistory, document_history, published_history, repeated_rows};
use nearprint_profile::ProfileConfig;
use nearprint_storage::Storage;
use nearprint_tokenize::Resources as AnalyzerResources;
use schemars::JsonSchema;
use serde::Serialize;

/// The document that is explained, and where its texts are.
#[derive(Debug, Clone)]
pub struct DocumentRequest {
    /// The store.
    pub store: String,
    /// The id of the document.
    pub id: String,
    /// The most documents that are named of those that it represents.
    pub n_examples: usize,
    /// The documents of the job, with `{dt}` or without. Without them, no texts are read.
    pub documents: Option<String>,
    /// The version of their Delta table.
    pub documents_version: Option<u64>,
    /// The columns of the documents.
    pub columns: DocumentColumns,
    /// The profile.
    pub profile: ProfileConfig,
    /// The contents of the user dictionary and the stop words.
    pub analyzer_resources: AnalyzerResources,
}

/// The history of a document, and the comparison of its text with that of the document that represents it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ExplainedDocument {
    /// The history.
    #[serde(flatten)]
    pub history: DocumentHistory,
    /// The comparison of the two texts as they were when the document was dropped, itself first. `None` if it was not
    /// dropped, or if the texts were not read.
    pub pair: Option<ExplainedPair>,
    /// The reason why the texts of a dropped document were not compared, if they were not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_compared: Option<String>,
    /// The texts can be compared by naming both ids.
    #[serde(skip)]
    pub is_left_out: bool,
}

/// The most bytes of documents, as their files are, that are searched for the two texts: about two seconds.
const MAX_BYTES: u64 = 256 << 20;

/// Explains one document by the published nights.
///
/// # Errors
/// No night has the id; a file of the store is damaged or cannot be read. Results and texts that are missing are said.
pub async fn explain_document(storage: &Storage, request: &DocumentRequest) -> Result<ExplainedDocument> {
    let history = document_history(storage, &request.store, &request.id, request.n_examples).await?;
    let mut explained = ExplainedDocument { history, pair: None, not_compared: None, is_left_out: false };
    match compared(storage, request, &explained.history).await? {
        Compared::Pair(pair) => explained.pair = Some(*pair),
        Compared::NoPair => {}
        Compared::Unread(reason) => explained.not_compared = Some(reason),
        Compared::LeftOut(reason) => (explained.not_compared, explained.is_left_out) = (Some(reason), true),
    }
    Ok(explained)
}

/// The comparison of a document with the one that represents it.
enum Compared {
    Pair(Box<ExplainedPair>),
    /// The document is represented by no document of the store.
    NoPair,
    /// The reason why a text cannot be read.
    Unread(String),
    /// The reason why the texts were not looked for.
    LeftOut(String),
}

async fn compared(storage: &Storage, request: &DocumentRequest, history: &DocumentHistory) -> Result<Compared> {
    let (Some(newest), Some(representative)) = (history.newest_state(), &history.representative) else {
        return Ok(Compared::NoPair);
    };
    let Some(then) = &representative.then else { return Ok(Compared::NoPair) };
    let Some(documents) = &request.documents else {
        return Ok(Compared::Unread("the job file names no documents".to_owned()));
    };
    let nights = BTreeSet::from([newest.dt.as_str(), then.dt.as_str()]);
    let mut bytes = 0;
    for dt in &nights {
        match published_history(storage, &request.store, dt, 0).await {
            Ok(of_night) => bytes += of_night.night.input_bytes,
            Err(error) if is_missing(error.kind()) => return Ok(Compared::Unread(error.to_string())),
            Err(error) => return Err(error),
        }
    }
    if bytes > MAX_BYTES {
        #[allow(clippy::cast_precision_loss, reason = "for people to read")]
        let size = in_bytes(bytes as f64);
        return Ok(Compared::LeftOut(format!("the documents of these nights have {size}, which would all be read")));
    }
    let mut texts = Vec::new();
    for (id, dt) in [(&history.id, &newest.dt), (&representative.id, &then.dt)] {
        match text(storage, request, &night_pattern(documents, dt), dt, id).await? {
            Ok(text) => texts.push((id.clone(), text)),
            Err(reason) => return Ok(Compared::Unread(reason)),
        }
    }
    let request = ExplainRequest {
        texts: ExplainTexts::Given(texts),
        profile: request.profile.clone(),
        analyzer_resources: request.analyzer_resources.clone(),
    };
    let explanation = explain(storage, &request).await?;
    for (text, known) in explanation.texts.iter().zip([newest.fingerprint, then.fingerprint]) {
        let found = text.fingerprint.as_ref().and_then(|hex| u64::from_str_radix(hex, 16).ok());
        if found != known {
            return Ok(Compared::Unread(format!(
                "the text of {} is another one by now than in the night, or the job has another profile than the store",
                nearprint_explain::shown_id(&text.id)
            )));
        }
    }
    Ok(explanation.pair.map_or(Compared::NoPair, |pair| Compared::Pair(Box::new(pair))))
}

fn is_missing(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::InputMissing | ErrorKind::BadData)
}

/// Returns the text of a document in a night, or the reason why it cannot be read.
async fn text(
    storage: &Storage,
    request: &DocumentRequest,
    pattern: &str,
    dt: &str,
    id: &str,
) -> Result<std::result::Result<String, String>> {
    // The text is only shown, so files that cannot be read are passed over, as in a run.
    let policy = InputPolicy { max_bad_files: u64::MAX, ..InputPolicy::default() };
    let place = DocumentPlace::Pattern {
        pattern: pattern.to_owned(),
        versions: TableVersions { version: request.documents_version, since: None },
    };
    let read = async {
        let mut documents = Documents::open(storage, &place, request.columns.clone(), &policy).await?;
        documents.leave_out(repeated_rows(storage, &request.store, dt).await?);
        documents.texts_of([id].into()).await
    };
    match read.await {
        Ok(found) => {
            let text = found.into_values().next().flatten();
            Ok(text.ok_or_else(|| format!("{pattern} has no text of {} any more", nearprint_explain::shown_id(id))))
        }
        Err(error) if is_missing(error.kind()) => Ok(Err(error.to_string())),
        Err(error) => Err(error),
    }
}
