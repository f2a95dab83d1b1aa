//! Reports the results of a published night for a person to read.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::Array;
use arrow::datatypes::{Float64Type, Int32Type, Int64Type};
use futures::TryStreamExt;
use serde::Serialize;

use crate::error::Result;
use crate::excerpts::excerpts;
use nearprint_dataset::schema::{LOST_SHARE, REFERENCE};
use nearprint_dataset::{Columns, DocumentColumns, Documents, InputPolicy, ParquetFile};
use nearprint_pipeline::{RunSummary, night_pattern, published_files, published_night};
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
    /// The number of dropped documents to show, and of clusters.
    pub n_examples: usize,
}

/// The report on a published night.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NightReport {
    /// The summary of the run.
    #[serde(flatten)]
    pub summary: RunSummary,
    /// The largest clusters, as pairs of the smallest member id and the number of documents of the night.
    pub largest_clusters: Vec<(String, u64)>,
    /// A few dropped documents: near-duplicates before exact copies, and those that lose most before the others.
    pub examples: Vec<Example>,
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
}

/// The characters of an excerpt.
const EXCERPT_CHARS: usize = 90;
/// The characters of an excerpt before the first difference.
const CONTEXT_CHARS: usize = 30;

/// Reads the results of a published night.
///
/// ```
/// use nearprint_dataset::DocumentColumns;
/// # use nearprint_pipeline::{Breakers, Resources, RunRequest, run};
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
/// };
/// let night = report(&Storage::default(), &request).await?;
/// assert_eq!((night.summary.counts.documents.n_documents, night.examples.len()), (155, 2));
/// assert!(night.examples.iter().all(|example| example.reason == "near" && example.excerpts.is_some()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// # Errors
/// Fails with a [`PipelineError`](nearprint_pipeline::PipelineError) if the night is not published, and if a file of
/// the night or a document cannot be read.
pub async fn report(storage: &Storage, request: &ReportRequest) -> Result<NightReport> {
    let (summary, earlier) = published_night(storage, &request.store, &request.dt).await?;
    let (largest_clusters, mut examples) = read_decisions(storage, request).await?;
    // An id of a reference store may be that of another document here.
    let own = examples.iter().filter(|example| example.reference.is_none());
    let wanted: BTreeSet<&str> = own.flat_map(|e| [e.doc_id.as_str(), &e.canonical_id]).collect();
    let texts = find_texts(storage, request, &earlier, wanted).await?;
    for example in examples.iter_mut().filter(|example| example.reference.is_none()) {
        let both = texts.get(&example.doc_id).zip(texts.get(&example.canonical_id));
        example.excerpts = both.map(|(a, b)| excerpts(a, b, EXCERPT_CHARS, CONTEXT_CHARS));
    }
    Ok(NightReport { summary, largest_clusters, examples })
}

async fn read_decisions(storage: &Storage, request: &ReportRequest) -> Result<(Vec<(String, u64)>, Vec<Example>)> {
    let mut clusters: BTreeMap<String, u64> = BTreeMap::new();
    let (mut near, mut exact) = (Vec::new(), Vec::new());
    let n_examples = request.n_examples;
    for file in published_files(storage, &request.store, &request.dt, "decisions").await? {
        let parquet = ParquetFile::open(storage.folder(&file)?.file().await?).await?;
        let names: Vec<String> = parquet.schema().fields().iter().map(|f| f.name().clone()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut batches = parquet.stream(parquet.whole(&names))?;
        while let Some(batch) = batches.try_next().await? {
            let columns = Columns { batch: &batch, file: &parquet.file.url };
            let (ids, canonical, reasons) =
                (columns.strings("doc_id")?, columns.strings("canonical_id")?, columns.strings("reason")?);
            let distances = columns.signed::<Int32Type>("distance")?;
            // Nights of earlier releases have no lost shares.
            let lost = batch.column_by_name(LOST_SHARE);
            let lost = lost.map(|_| columns.primitive::<Float64Type>(LOST_SHARE)).transpose()?;
            // Nights of earlier releases have no references either.
            let references = batch.column_by_name(REFERENCE).map(|_| columns.strings(REFERENCE)).transpose()?;
            let (cluster, sizes) = (columns.strings("cluster_id")?, columns.signed::<Int64Type>("cluster_size")?);
            for i in 0..batch.num_rows() {
                if sizes.is_valid(i) && sizes.value(i) > 1 && cluster.value(i) == ids.value(i) {
                    clusters.insert(ids.value(i).to_owned(), sizes.value(i).unsigned_abs());
                }
                let list = if reasons.value(i) == "near" { &mut near } else { &mut exact };
                let lost_share = lost.filter(|lost| lost.is_valid(i)).map(|lost| lost.value(i));
                // An unknown share comes last; of equal ones the first document stays first.
                let at = list.partition_point(|example: &Example| example.lost_share >= lost_share);
                if canonical.is_valid(i) && at < n_examples {
                    let example = Example {
                        doc_id: ids.value(i).to_owned(),
                        canonical_id: canonical.value(i).to_owned(),
                        reference: references.as_ref().filter(|r| r.is_valid(i)).map(|r| r.value(i).to_owned()),
                        distance: distances.is_valid(i).then(|| distances.value(i)),
                        lost_share,
                        reason: reasons.value(i).to_owned(),
                        excerpts: None,
                    };
                    list.insert(at, example);
                    list.truncate(n_examples);
                }
            }
        }
    }
    let mut largest: Vec<(String, u64)> = clusters.into_iter().collect();
    largest.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    largest.truncate(n_examples);
    near.extend(exact);
    near.truncate(n_examples);
    Ok((largest, near))
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
