//! Reads what a report says from the files of a published night and from the documents.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::Array;
use arrow::datatypes::Int64Type;
use futures::TryStreamExt;
use nearprint_documents::{BadReason, Documents, InputPolicy, night_pattern};
use nearprint_explain::excerpts;
use nearprint_fault::{ErrorKind, Result};
use nearprint_night::{MeasuredNight, RunSummary, published_files, published_history, published_night, repeated_rows};
use nearprint_parquet::{Columns, ParquetFile};
use nearprint_storage::Storage;

use super::decisions::Decided;
use super::hosts::largest_hosts;
use super::night_report::{Example, NightReport, QuarantinedRow, ReportRequest};

/// The characters of an excerpt.
const EXCERPT_CHARS: usize = 90;
/// The characters of an excerpt before the first difference.
const CONTEXT_CHARS: usize = 30;
/// The characters of the excerpt of what stays of a cluster.
const CLUSTER_CHARS: usize = 160;
/// The most nights before that are looked at.
const NIGHTS_BEFORE: usize = 29;
/// The most nights before whose sources are looked at.
const HOST_NIGHTS: usize = 6;

/// Reads the results of a published night.
///
/// ```
/// use nearprint_documents::DocumentColumns;
/// use nearprint_night::Breakers;
/// # use nearprint_night::{RunRequest, run};
/// # use nearprint_pipeline::Resources;
/// use nearprint_storage::Storage;
/// use nearprint_report::{ReportRequest, report};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let temp = nearprint_storage::TempFolder::try_new(&std::env::temp_dir())?;
/// # let documents = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sample_data/documents").to_owned();
/// # let [store, output] = ["store", "results"].map(|name| temp.path().join(name).display().to_string());
/// # let profile = nearprint_profile::by_name("default")?;
/// # let request = RunRequest::new("2026-11-19", documents.as_str(), store.as_str(), output, profile);
/// # let request = RunRequest { create_store: true, breakers: Breakers::off(), ..request };
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
/// assert!(nearprint_report::night_page(&night, nearprint_report::PageLinks::None)?.contains("<h1>Night 2026-11-19</h1>"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// # Errors
/// Fails with a [`Fault`](nearprint_fault::Fault) if the night is not published, and if a file of
/// the night or a document cannot be read.
pub async fn report(storage: &Storage, request: &ReportRequest) -> Result<NightReport> {
    let (summary, earlier) = published_night(storage, &request.store, &request.dt).await?;
    let history = published_history(storage, &request.store, &request.dt, NIGHTS_BEFORE).await?;
    let mut decided = Decided::read(storage, request).await?;
    let mut examples = decided.take_candidates(request.n_examples);
    // An id of a reference store may be that of another document here.
    let own = examples.iter().filter(|example| example.reference.is_none());
    let mut clusters = decided.what_stays(storage, request).await?;
    let firsts: Vec<String> = clusters.iter().filter_map(|cluster| cluster.kept.first().cloned()).collect();
    let wanted =
        own.flat_map(|e| [e.doc_id.as_str(), &e.canonical_id]).chain(firsts.iter().map(String::as_str)).collect();
    let texts = find_texts(storage, request, &earlier, wanted).await?;
    for example in examples.iter_mut().filter(|example| example.reference.is_none()) {
        let both = texts.get(&example.doc_id).zip(texts.get(&example.canonical_id));
        example.excerpts = both.map(|(a, b)| excerpts(a, b, EXCERPT_CHARS, CONTEXT_CHARS));
        example.texts = both.map(|(a, b)| (a.clone(), b.clone()));
    }
    for cluster in &mut clusters {
        let text = cluster.kept.first().and_then(|id| texts.get(id));
        cluster.excerpt = text.map(|text| excerpts(text, text, CLUSTER_CHARS, 0).0);
    }
    let before: Vec<_> = history.before.iter().rev().map(|night| night.counts.clone()).collect();
    let measured = MeasuredNight::of_published(&summary.counts, &before, decided.mean_loss(), &request.breakers);
    let nights: Vec<&str> = history.before.iter().map(|night| night.dt.as_str()).collect();
    let nights = &nights[nights.len().saturating_sub(HOST_NIGHTS)..];
    let hosts = largest_hosts(storage, &request.store, &request.dt, nights).await?;
    let quarantine = read_quarantine(storage, request, summary.counts.documents.n_repeated_ids > 0).await?;
    Ok(NightReport {
        summary: RunSummary { measured: Some(measured), ..summary },
        is_stale: history.night.is_stale,
        hosts,
        quarantine,
        largest_clusters: decided.largest_clusters,
        clusters,
        examples: different(examples, request.n_examples),
        distributions: decided.distributions,
        history,
        breakers: request.breakers,
        settings: request.settings.clone(),
    })
}

/// Returns the first `n` examples with different texts. Each counts those that have the same two texts.
fn different(candidates: Vec<Example>, n: usize) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    for candidate in candidates {
        let has_same = |other: &Example| other.texts.is_some() && other.texts == candidate.texts;
        match examples.iter().position(has_same) {
            Some(same) => examples[same].n_same_texts += 1,
            None if examples.len() < n => examples.push(candidate),
            None => {}
        }
    }
    examples
}

/// Reads the first rows of a night's quarantine, without unknown revisits, and without those with a repeated id if
/// these are counted on their own.
async fn read_quarantine(
    storage: &Storage,
    request: &ReportRequest,
    without_repeats: bool,
) -> Result<Vec<QuarantinedRow>> {
    let mut rows = Vec::new();
    for file in published_files(storage, &request.store, &request.dt, "quarantine").await? {
        let parquet = ParquetFile::open(file).await?;
        let mut batches = parquet.stream(parquet.whole(&["file", "row", "reason", "id"]))?;
        while let Some(batch) = batches.try_next().await? {
            let columns = Columns { batch: &batch, file: &parquet.file.url };
            let (files, reasons, ids) = (columns.strings("file")?, columns.strings("reason")?, columns.strings("id")?);
            let numbers = columns.primitive::<Int64Type>("row")?;
            let is_shown = |&i: &usize| match reasons.value(i) {
                reason if reason == BadReason::RepeatedId.name() => !without_repeats,
                reason => reason != BadReason::UnknownRevisit.name(),
            };
            for i in (0..batch.num_rows()).filter(is_shown) {
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

/// Returns those of the ids that are stubs of a night.
async fn stubs_among(storage: &Storage, store: &str, dt: &str, wanted: &BTreeSet<&str>) -> Result<BTreeSet<String>> {
    let mut among = BTreeSet::new();
    for file in published_files(storage, store, dt, "stubs").await? {
        let parquet = ParquetFile::open(file).await?;
        let mut batches = parquet.stream(parquet.whole(&["doc_id"]))?;
        while let Some(batch) = batches.try_next().await? {
            let ids = Columns { batch: &batch, file: &parquet.file.url }.strings("doc_id")?;
            among.extend(ids.iter().flatten().filter(|id| wanted.contains(id)).map(str::to_owned));
        }
    }
    Ok(among)
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
        let mut documents = match opened {
            // The documents of earlier nights may have been moved away. Then their texts are not shown.
            Err(error) if error.kind() == ErrorKind::InputMissing => continue,
            other => other?,
        };
        documents.leave_out(repeated_rows(storage, &request.store, dt).await?);
        // The text of a stub is that of an earlier night.
        let stubs = stubs_among(storage, &request.store, dt, &wanted).await?;
        let here: BTreeSet<&str> = wanted.iter().copied().filter(|id| !stubs.contains(*id)).collect();
        for (id, text) in documents.texts_of(here).await? {
            if let Some(text) = text {
                wanted.remove(id.as_str());
                found.insert(id, text);
            }
        }
    }
    Ok(found)
}
