//! Reports the results of a published night for a person to read: as values, as a page and as Markdown.

mod decisions;
mod markdown;
mod notable;
mod page;

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::Array;
use arrow::datatypes::Int64Type;
use futures::TryStreamExt;
use serde::Serialize;

pub use self::decisions::Distributions;
pub use self::markdown::night_markdown;
pub use self::page::night_page;

use self::decisions::Decided;
use crate::error::Result;
use crate::excerpts::excerpts;
use nearprint_dataset::{Columns, DocumentColumns, Documents, InputPolicy, ParquetFile};
use nearprint_pipeline::{
    Breakers, Measured, NightHistory, RunSummary, night_pattern, published_files, published_history, published_night,
};
use nearprint_storage::{ErrorKind, Storage};

/// The night to report, and the place of its documents.
#[derive(Debug, Clone)]
pub struct ReportRequest {
    /// The night.
    pub dt: String,
    /// The store.
    pub store: String,
    /// The root of the documents, as in the run.
    pub documents: String,
    /// The columns of the documents, as in the run.
    pub columns: DocumentColumns,
    /// The number of dropped documents to show, of clusters, and of quarantined rows.
    pub n_examples: usize,
    /// The job's breakers.
    pub breakers: Breakers,
    /// The job's settings, as pairs of a key and its value. A manifest has only their digest.
    pub settings: Vec<(String, String)>,
}

/// The report on a published night.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NightReport {
    /// The summary of the run. What the breakers look at is measured anew, from published files alone.
    #[serde(flatten)]
    pub summary: RunSummary,
    /// The largest clusters, as pairs of the smallest member id and the number of documents of the night.
    pub largest_clusters: Vec<(String, u64)>,
    /// A few dropped documents: near-duplicates before exact copies, and those that lose most before the others.
    pub examples: Vec<Example>,
    /// How the near-duplicates and clusters are distributed.
    pub distributions: Distributions,
    /// The first quarantined rows.
    pub quarantine: Vec<QuarantinedRow>,
    /// The night's manifest and those of the nights before.
    #[serde(skip)]
    pub history: NightHistory,
    /// The job's breakers.
    #[serde(skip)]
    pub breakers: Breakers,
    /// The job's settings, as in the request.
    #[serde(skip)]
    pub settings: Vec<(String, String)>,
}

/// A row that is no document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QuarantinedRow {
    /// The file.
    pub file: String,
    /// The number of the row in its file, or in its row group, from 0.
    pub row: i64,
    /// Why it is no document.
    pub reason: String,
    /// The id of the row, if it has one.
    pub id: Option<String>,
}

/// A dropped document, and the canonical document that represents it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Example {
    /// The dropped document.
    pub doc_id: String,
    /// The canonical document.
    pub canonical_id: String,
    /// The reference store that has the canonical document. `None` means that it is of the night, or of an earlier one.
    pub reference: Option<String>,
    /// The Hamming distance of the two.
    pub distance: Option<i32>,
    /// The share of its features that the document loses with the canonical one. `None` means that it is unknown.
    pub lost_share: Option<f64>,
    /// `exact` or `near`.
    pub reason: String,
    /// Excerpts of the two texts around their first difference, or from their beginning. `None` means that a text was
    /// not found; those of reference stores are not looked for.
    pub excerpts: Option<(String, String)>,
    /// The two whole texts, if both were found.
    #[serde(skip)]
    pub texts: Option<(String, String)>,
}

/// The characters of an excerpt.
const EXCERPT_CHARS: usize = 90;
/// The characters of an excerpt before the first difference.
const CONTEXT_CHARS: usize = 30;
/// The most nights before that are looked at.
const NIGHTS_BEFORE: usize = 29;

/// Reads the results of a published night.
///
/// ```
/// use nearprint_dataset::DocumentColumns;
/// use nearprint_pipeline::Breakers;
/// # use nearprint_pipeline::{Resources, RunRequest, run};
/// use nearprint_storage::Storage;
/// use nearprint_study::{ReportRequest, report};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let temp = nearprint_storage::TempFolder::try_new(&std::env::temp_dir())?;
/// # let documents = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sample_data/documents").to_owned();
/// # let [store, output] = ["store", "results"].map(|name| temp.path().join(name).display().to_string());
/// # let (columns, profile, breakers) = (Default::default(), nearprint_profile::by_name("default")?, Breakers::off());
/// # let request = RunRequest {
/// #     dt: "2026-11-19".to_owned(), documents: documents.clone().into(), store: store.clone(),
/// #     references: Vec::new(), output, columns, keep: Vec::new(), source_column: None, profile,
/// #     analyzer_resources: Default::default(), input: Default::default(), pairs: Default::default(),
/// #     max_pairs: 1_000_000, clusters: Default::default(), max_lost_share: None, late: false, replace: false, keep_nights: None,
/// #     writers: Default::default(), breakers, roots: Default::default(), preflight: false, create_store: true,
/// #     job_file: None,
/// # };
/// # run(&Storage::default(), &request, &Resources::default(), &Default::default()).await?;
/// // The night of this date is published in `store`.
/// let request = ReportRequest {
///     dt: "2026-11-19".to_owned(),
///     store,
///     documents,
///     columns: DocumentColumns::default(),
///     n_examples: 2,
///     breakers: Breakers::default(),
///     settings: Vec::new(),
/// };
/// let night = report(&Storage::default(), &request).await?;
/// assert_eq!((night.summary.counts.documents.n_documents, night.examples.len()), (155, 2));
/// assert!(night.examples.iter().all(|example| example.reason == "near" && example.excerpts.is_some()));
/// assert!(nearprint_study::night_page(&night)?.contains("<h1>Night 2026-11-19</h1>"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// # Errors
/// Fails with a [`PipelineError`](nearprint_pipeline::PipelineError) if the night is not published, and if a file of
/// the night or a document cannot be read.
pub async fn report(storage: &Storage, request: &ReportRequest) -> Result<NightReport> {
    let (summary, earlier) = published_night(storage, &request.store, &request.dt).await?;
    let history = published_history(storage, &request.store, &request.dt, NIGHTS_BEFORE).await?;
    let mut decided = Decided::read(storage, request).await?;
    let mut examples = decided.take_examples(request.n_examples);
    // An id of a reference store may be that of another document here.
    let own = examples.iter().filter(|example| example.reference.is_none());
    let wanted: BTreeSet<&str> = own.flat_map(|e| [e.doc_id.as_str(), &e.canonical_id]).collect();
    let texts = find_texts(storage, request, &earlier, wanted).await?;
    for example in examples.iter_mut().filter(|example| example.reference.is_none()) {
        let both = texts.get(&example.doc_id).zip(texts.get(&example.canonical_id));
        example.excerpts = both.map(|(a, b)| excerpts(a, b, EXCERPT_CHARS, CONTEXT_CHARS));
        example.texts = both.map(|(a, b)| (a.clone(), b.clone()));
    }
    let before: Vec<_> = history.before.iter().rev().map(|night| night.counts.clone()).collect();
    let measured = Measured::of_published(&summary.counts, &before, decided.mean_loss(), &request.breakers);
    Ok(NightReport {
        summary: RunSummary { measured: Some(measured), ..summary },
        quarantine: read_quarantine(storage, request).await?,
        largest_clusters: decided.largest_clusters,
        examples,
        distributions: decided.distributions,
        history,
        breakers: request.breakers,
        settings: request.settings.clone(),
    })
}

/// Reads the first rows of a night's quarantine.
async fn read_quarantine(storage: &Storage, request: &ReportRequest) -> Result<Vec<QuarantinedRow>> {
    let mut rows = Vec::new();
    for file in published_files(storage, &request.store, &request.dt, "quarantine").await? {
        let parquet = ParquetFile::open(storage.folder(&file)?.file().await?).await?;
        let mut batches = parquet.stream(parquet.whole(&["file", "row", "reason", "id"]))?;
        while let Some(batch) = batches.try_next().await? {
            let columns = Columns { batch: &batch, file: &parquet.file.url };
            let (files, reasons, ids) = (columns.strings("file")?, columns.strings("reason")?, columns.strings("id")?);
            let numbers = columns.signed::<Int64Type>("row")?;
            for i in 0..batch.num_rows() {
                if rows.len() == request.n_examples {
                    return Ok(rows);
                }
                rows.push(QuarantinedRow {
                    file: files.value(i).to_owned(),
                    row: numbers.value(i),
                    reason: reasons.value(i).to_owned(),
                    id: ids.is_valid(i).then(|| ids.value(i).to_owned()),
                });
            }
        }
    }
    Ok(rows)
}

/// Finds the texts of the `wanted` ids. It searches the documents of the night, and then those of earlier nights from
/// the newest to the oldest, until all texts are found.
async fn find_texts(
    storage: &Storage,
    request: &ReportRequest,
    earlier: &[String],
    mut wanted: BTreeSet<&str>,
) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for dt in std::iter::once(&request.dt).chain(earlier.iter().rev()) {
        if wanted.is_empty() {
            break;
        }
        // The texts are only shown, so files that cannot be read are passed over here, as in a run.
        let policy = InputPolicy { max_bad_files: u64::MAX, ..InputPolicy::default() };
        let place = night_pattern(&request.documents, dt).into();
        let opened = Documents::open(storage, &place, request.columns.clone(), &policy).await;
        let documents = match opened {
            // The documents of earlier nights may have been moved away. Then their texts are not shown.
            Err(error) if error.kind() == ErrorKind::InputMissing => continue,
            other => other?,
        };
        for (id, text) in documents.texts_of(wanted.clone()).await? {
            if let Some(text) = text {
                wanted.remove(id.as_str());
                found.insert(id, text);
            }
        }
    }
    Ok(found)
}
