//! Documents to an idf table.

use std::sync::Arc;

use futures::TryStreamExt;
use nearprint_tokenize::{Analyzer, IdfBuilder, Resources as AnalyzerResources};
use rayon::prelude::*;
use serde::Serialize;

use crate::error::{Result, StudyError};
use nearprint_dataset::InputPolicy;
use nearprint_dataset::{DocumentBatch, DocumentColumns, Documents};
use nearprint_profile::{ProfileConfig, ProfileError};
use nearprint_storage::Progress;
use nearprint_storage::Storage;
use nearprint_storage::blocking;

/// Documents, and how they are cut.
#[derive(Debug, Clone)]
pub struct IdfRequest {
    /// Path, folder, glob or `s3://` prefix.
    pub documents: String,
    /// Columns.
    pub columns: DocumentColumns,
    /// Text to tokens: only `tokenize` is used of it.
    pub profile: ProfileConfig,
    /// Contents of the user's dictionary and stop words.
    pub analyzer_resources: AnalyzerResources,
    /// Tokens of fewer documents are left out.
    pub min_documents: u64,
}

/// What the table came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct IdfSummary {
    /// Documents with a text.
    pub n_documents: u64,
    /// Lines of the table.
    pub n_features: u64,
}

/// Counts in how many documents each token occurs, and gives the table that `idf` in a job file takes.
///
/// Its bytes do not depend on threads, nor on the order and splitting of the documents. Memory grows with the distinct tokens.
///
/// # Errors
/// Bad input, a config that cannot be used, or documents that leave no token for the table.
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
            counts.merge(blocking("counting", move || Ok::<_, StudyError>(count(&analyzer, &batch))).await?);
        }
    }
    if counts.n_documents() == 0 {
        let (what, url) = ("document with a text", request.documents.clone());
        return Err(StudyError::InputMissing { what, url, remedy: "check the path and --text-column" });
    }
    let n_features = counts.n_features(request.min_documents) as u64;
    if n_features == 0 {
        let reason =
            format!("no token is in {} documents or more: lower it, or give more documents", request.min_documents);
        return Err(StudyError::Config { key: "--min-documents".to_owned(), reason });
    }
    let summary = IdfSummary { n_documents: counts.n_documents(), n_features };
    Ok((summary, counts.write(request.min_documents)))
}

/// Refuses rows that are no documents, as a run does: counts without them would be of other documents.
fn refuse_bad_rows(batch: &DocumentBatch, file: &str) -> Result<()> {
    let bad = (0..batch.rows.len()).find_map(|row| Some((row, batch.text(row).err()?)));
    bad.map_or(Ok(()), |(row, reason)| {
        let reason = format!("{}: mend the row or leave it out", reason.name());
        Err(StudyError::BadRow { file: file.to_owned(), row: batch.rows[row], reason })
    })
}

/// The counts of a batch; rows without a text are no documents.
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
