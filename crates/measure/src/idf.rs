//! Builds an idf table from documents.

use std::sync::Arc;

use futures::TryStreamExt;
use nearprint_documents::{DocumentBatch, DocumentColumns, DocumentPlace, Documents, FileRows, InputPolicy, Repeats};
use nearprint_fault::{ErrorKind, Fault, Result, key, words};
use nearprint_pipeline::{FingerprintRequest, Resources, fingerprint_batch};
use nearprint_profile::{JoinConfig, ProfileConfig, ProfileError};
use nearprint_storage::{Progress, Storage, blocking};
use nearprint_tokenize::{Analyzer, IdfBuilder, Resources as AnalyzerResources, Weight};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

/// The documents to count, and the way to cut them into tokens.
#[derive(Debug, Clone)]
pub struct IdfRequest {
    /// The place of the documents.
    pub documents: DocumentPlace,
    /// The columns of the documents.
    pub columns: DocumentColumns,
    /// The rule for rows with one id.
    pub repeats: Repeats,
    /// The profile, of which only `tokenize` is used.
    pub profile: ProfileConfig,
    /// The contents of the user dictionary and the stop words.
    pub analyzer_resources: AnalyzerResources,
    /// The least number of documents of a token. Tokens that occur in fewer documents are left out.
    pub min_documents: u64,
}

/// Summary of the `idf build` command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct IdfSummary {
    /// The documents with a text.
    pub n_documents: u64,
    /// The rows with an id of another row that the rule for repeated ids left out.
    pub n_repeated_ids: u64,
    /// The tokens in the table.
    pub n_features: u64,
}

/// Counts in how many documents each token occurs, and returns the table for the key `idf` of a job file.
///
/// The bytes of the table depend neither on the number of threads nor on the order of the documents and their division
/// into files. The documents are read twice: which rows are documents is known once all have been read. The memory grows with
/// the number of distinct tokens, and that of documents.
///
/// ```
/// use nearprint_documents::{DocumentColumns, Repeats};
/// use nearprint_measure::{IdfRequest, build_idf};
/// use nearprint_pipeline::Resources;
/// use nearprint_storage::{Progress, Storage};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let temp = nearprint_storage::TempFolder::try_new(&std::env::temp_dir())?;
/// # let documents = temp.path().join("pages.jsonl").display().to_string();
/// std::fs::write(&documents, "{\"id\": 1, \"text\": \"common rare\"}\n{\"id\": 2, \"text\": \"Common, common\"}\n")?;
/// let request = IdfRequest {
///     documents: documents.into(),
///     columns: DocumentColumns::default(),
///     repeats: Repeats::default(),
///     profile: nearprint_profile::by_name("default")?,
///     analyzer_resources: nearprint_tokenize::Resources::default(),
///     min_documents: 1,
/// };
/// let (storage, resources, progress) = (Storage::default(), Resources::default(), Progress::default());
/// let (summary, table) = build_idf(&storage, &request, &resources, &progress).await?;
/// assert_eq!((summary.n_documents, summary.n_features), (2, 2));
/// assert_eq!(table, "common\t1.000000\nrare\t1.405465\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// # Errors
/// The input is bad, the config cannot be used, or the documents leave no token for the table.
pub async fn build_idf(
    storage: &Storage,
    request: &IdfRequest,
    resources: &Resources,
    progress: &Progress,
) -> Result<(IdfSummary, String)> {
    let analyzer = Arc::new(
        Analyzer::try_new(&request.profile.tokenize, &request.analyzer_resources).map_err(ProfileError::from)?,
    );
    let policy = InputPolicy::default();
    let open = || Documents::open(storage, &request.documents, request.columns.clone(), &policy);
    let (left_out, n_repeated_ids) = left_out(request, open().await?, resources, progress).await?;
    let mut documents = open().await?;
    documents.leave_out(left_out);
    progress.start("count", "documents", documents.n_rows().unwrap_or(0));
    let mut counts = IdfBuilder::default();
    for range in documents.ranges() {
        let mut batches = documents.read(&range).batches;
        while let Some(batch) = batches.try_next().await? {
            progress.advance(batch.rows.len() as u64);
            let analyzer = Arc::clone(&analyzer);
            counts.merge(blocking("counting", move || Ok::<_, Fault>(count(&analyzer, &batch))).await?);
        }
    }
    if counts.n_documents() == 0 {
        let (what, url) = ("document with a text", request.documents.name().to_owned());
        return Err(Fault::input_missing(what, url, words!["check the path and ", key("text_column")]));
    }
    let n_features = counts.n_features(request.min_documents) as u64;
    if n_features == 0 {
        let n = request.min_documents;
        let reason = words![
            key("min_documents"),
            format!(": no token is in {n} documents or more: lower it, or give more documents")
        ];
        return Err(Fault::new(ErrorKind::Config, reason));
    }
    let summary = IdfSummary { n_documents: counts.n_documents(), n_repeated_ids, n_features };
    Ok((summary, counts.write(request.min_documents)))
}

/// Returns the rows that the rule for repeated ids leaves out, and their number. Refuses input as a run does: counts of other
/// rows would describe other documents.
async fn left_out(
    request: &IdfRequest,
    documents: Documents,
    resources: &Resources,
    progress: &Progress,
) -> Result<(FileRows, u64)> {
    let IdfRequest { documents: place, columns, repeats, profile, analyzer_resources, .. } = request;
    // The table by which the features may be weighed is not there yet, and nobody asks which documents are near.
    let mut profile = ProfileConfig { sketch: None, judge: None, ..profile.clone() };
    profile.join = JoinConfig { max_sketch_distance: None, earlier: None, ..profile.join };
    profile.tokenize.features.weight = Weight::Count;
    let request = FingerprintRequest::of(place, columns, &profile, analyzer_resources).with_repeats(repeats);
    let done = fingerprint_batch(&request, documents, resources, progress).await?;
    Ok((done.left_out(), done.counts.n_repeated_ids))
}

/// Counts the tokens of a batch. Rows without a text, and those that are left out, do not count as documents.
fn count(analyzer: &Analyzer, batch: &DocumentBatch) -> IdfBuilder {
    let add = |mut counts: IdfBuilder, row: usize| {
        if let Ok(Some(text)) = batch.text(row) {
            counts.add(analyzer.tokens(&analyzer.normalize(text)).iter());
        }
        counts
    };
    let merge = |mut a: IdfBuilder, b: IdfBuilder| {
        a.merge(b);
        a
    };
    (0..batch.rows.len()).into_par_iter().fold(IdfBuilder::default, add).reduce(IdfBuilder::default, merge)
}
