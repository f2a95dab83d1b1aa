//! One document: its history, and how its text differs from that of the document that represents it.

use std::collections::{BTreeMap, BTreeSet};

use nearprint_explain::{ExplainRequest, ExplainTexts, ExplainedPair, explain, shown_id};
use nearprint_fault::{Result, in_bytes};
use nearprint_night::{
    DocumentHistory, NightFiles, NightTexts, PublishedNights, Text, TextSource, document_history, is_unreadable,
};
use nearprint_pipeline::Resources;
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
    /// How the texts are read.
    pub texts: TextSource,
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
pub async fn explain_document(
    storage: &Storage,
    request: &DocumentRequest,
    resources: &Resources,
) -> Result<ExplainedDocument> {
    let history = document_history(storage, &request.store, &request.id, request.n_examples).await?;
    let mut explained = ExplainedDocument { history, pair: None, not_compared: None, is_left_out: false };
    match compared(storage, request, &explained.history, resources).await? {
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

async fn compared(
    storage: &Storage,
    request: &DocumentRequest,
    history: &DocumentHistory,
    resources: &Resources,
) -> Result<Compared> {
    let (Some(newest), Some(representative)) = (history.newest_state(), &history.representative) else {
        return Ok(Compared::NoPair);
    };
    let Some(then) = &representative.then else { return Ok(Compared::NoPair) };
    let of_nights = [(&history.id, &newest.dt), (&representative.id, &then.dt)];
    let nights = match files_of(storage, &request.store, of_nights.map(|(_, dt)| dt.as_str())).await {
        Ok(nights) => nights,
        Err(error) if is_unreadable(&error) => return Ok(Compared::Unread(error.to_string())),
        Err(error) => return Err(error),
    };
    let bytes: u64 = nights.values().map(NightFiles::input_bytes).sum();
    if bytes > MAX_BYTES {
        #[allow(clippy::cast_precision_loss, reason = "for people to read")]
        let size = in_bytes(bytes as f64);
        return Ok(Compared::LeftOut(format!("the documents of these nights have {size}, which would all be read")));
    }
    let reader = NightTexts::new(storage, &request.texts, resources).for_show();
    let mut found = BTreeMap::new();
    for (dt, files) in nights {
        let wanted = of_nights.into_iter().filter(|(_, of)| **of == dt).map(|(id, _)| id.as_str()).collect();
        match reader.texts_of(&dt, files, wanted).await {
            Ok(texts) => found.extend(texts),
            // The texts are only shown.
            Err(error) if is_unreadable(&error) => return Ok(Compared::Unread(error.to_string())),
            Err(error) => return Err(error),
        }
    }
    let mut texts = Vec::new();
    for (id, dt) in of_nights {
        match found.remove(id) {
            Some(Text::Found { text, .. }) => texts.push((id.clone(), text.to_string())),
            Some(Text::Changed) => {
                let id = shown_id(id);
                let reason =
                    format!("files with documents of {dt} have changed since, and no other has a text of {id}");
                return Ok(Compared::Unread(reason));
            }
            Some(Text::NotFound) | None => {
                let reason = format!("no file with documents of {dt} has a text of {} any more", shown_id(id));
                return Ok(Compared::Unread(reason));
            }
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
                shown_id(&text.id)
            )));
        }
    }
    Ok(explanation.pair.map_or(Compared::NoPair, |pair| Compared::Pair(Box::new(pair))))
}

/// Returns the files of published nights, by date.
async fn files_of(storage: &Storage, store: &str, nights: [&str; 2]) -> Result<BTreeMap<String, NightFiles>> {
    let published = PublishedNights::open(storage, store, nights[0]).await?;
    let mut files = BTreeMap::new();
    for dt in BTreeSet::from(nights) {
        files.insert(dt.to_owned(), published.files(dt).await?);
    }
    Ok(files)
}
