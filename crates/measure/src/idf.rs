//! Builds an idf table from documents.

use std::sync::Arc;

use futures::TryStreamExt;
use nearprint_documents::{DocumentBatch, DocumentColumns, DocumentPlace, Documents, InputPolicy};
use nearprint_fault::{ErrorKind, Fault, Result, key, words};
use nearprint_profile::{ProfileConfig, ProfileError};
use nearprint_storage::{Progress, Storage, blocking};
use nearprint_tokenize::{Analyzer, IdfBuilder, Resources as AnalyzerResources};
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
    /// The tokens in the table.
    pub n_features: u64,
}

/// Counts in how many documents each token occurs, and returns the table for the key `idf` of a job file.
///
/// The bytes of the table depend neither on the number of threads nor on the order of the documents and their division
/// into files. The memory grows with the number of distinct tokens.
///
/// ```
/// use nearprint_documents::DocumentColumns;
/// use nearprint_storage::{Progress, Storage};
/// use nearprint_measure::{IdfRequest, build_idf};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let temp = nearprint_storage::TempFolder::try_new(&std::env::temp_dir())?;
/// # let documents = temp.path().join("pages.jsonl").display().to_string();
/// std::fs::write(&documents, "{\"id\": 1, \"text\": \"common rare\"}\n{\"id\": 2, \"text\": \"Common, common\"}\n")?;
/// let request = IdfRequest {
///     documents: documents.into(),
///     columns: DocumentColumns::default(),
///     profile: nearprint_profile::by_name("default")?,
///     analyzer_resources: nearprint_tokenize::Resources::default(),
///     min_documents: 1,
/// };
/// let (summary, table) = build_idf(&Storage::default(), &request, &Progress::default()).await?;
/// assert_eq!((summary.n_documents, summary.n_features), (2, 2));
/// assert_eq!(table, "common\t1.000000\nrare\t1.405465\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// # Errors
/// The input is bad, the config cannot be used, or the documents leave no token for the table.
pub async fn build_idf(storage: &Storage, request: &IdfRequest, progress: &Progress) -> Result<(IdfSummary, String)> {
    let analyzer = Arc::new(
        Analyzer::try_new(&request.profile.tokenize, &request.analyzer_resources).map_err(ProfileError::from)?,
    );
    let documents =
        Documents::open(storage, &request.documents, request.columns.clone(), &InputPolicy::default()).await?;
    progress.start("count", "documents", documents.n_rows().unwrap_or(0));
    let mut counts = IdfBuilder::default();
    for range in documents.ranges() {
        let mut batches = documents.read(&range).batches;
        while let Some(batch) = batches.try_next().await? {
            progress.advance(batch.rows.len() as u64);
            refuse_bad_rows(&batch, &range.file)?;
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
    let summary = IdfSummary { n_documents: counts.n_documents(), n_features };
    Ok((summary, counts.write(request.min_documents)))
}

/// Refuses rows that are no documents, as a run does. Counts without these rows would describe other documents.
fn refuse_bad_rows(batch: &DocumentBatch, file: &str) -> Result<()> {
    let bad = (0..batch.rows.len()).find_map(|row| Some((row, batch.text(row).err()?)));
    bad.map_or(Ok(()), |(row, reason)| {
        let reason = format!("{}: mend the row or leave it out", reason.name());
        Err(Fault::bad_data(file.to_owned(), reason).row(batch.rows[row]))
    })
}

/// Counts the tokens of a batch. Rows without a text do not count as documents.
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
