//! Reads what a report says from the files of a published night and from the documents.

use std::sync::Arc;

use arrow::datatypes::Int64Type;
use futures::TryStreamExt;
use nearprint_documents::BadReason;
use nearprint_explain::excerpts;
use nearprint_fault::Result;
use nearprint_night::{
    MeasuredNight, NightTexts, RunSummary, Text, Texts, published_files, published_history, published_night,
};
use nearprint_parquet::{Columns, ParquetFile, value};
use nearprint_pipeline::Resources;
use nearprint_storage::{Progress, Storage};

use super::decisions::Decided;
use super::hosts::{LargestHosts, largest_hosts};
use super::night_report::{Example, LargeCluster, NightReport, QuarantinedRow, ReportRequest};

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
/// use nearprint_night::{Breakers, NightSource, TextSource};
/// # use nearprint_night::{RunRequest, run};
/// use nearprint_pipeline::Resources;
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
/// let texts = TextSource { documents: Some(documents), columns: DocumentColumns::default(), max_doc_bytes: 16 << 20 };
/// let request = ReportRequest {
///     night: NightSource { dt: "2026-11-19".to_owned(), store, texts },
///     n_examples: 2,
///     breakers: Breakers::default(),
///     settings: Vec::new(),
/// };
/// let night = report(&Storage::default(), &request, &Resources::default(), &Default::default()).await?;
/// assert_eq!((night.summary.counts.documents.n_documents, night.examples.len()), (155, 2));
/// assert!(night.examples.iter().all(|example| example.reason == "near" && example.excerpts.is_some()));
/// assert!(nearprint_report::night_page(&night, nearprint_report::PageLinks::None)?.contains("<h1>Night 2026-11-19</h1>"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// # Errors
/// Fails with a [`Fault`](nearprint_fault::Fault) if the night is not published, and if a file of the night cannot be
/// read. Texts that cannot be read are not shown.
pub async fn report(
    storage: &Storage,
    request: &ReportRequest,
    resources: &Resources,
    progress: &Progress,
) -> Result<NightReport> {
    let (store, dt) = (&request.night.store, &request.night.dt);
    let summary = published_night(storage, store, dt).await?;
    let history = published_history(storage, store, dt, NIGHTS_BEFORE).await?;
    let mut decided = Decided::read(storage, request).await?;
    let mut examples = decided.take_examples(request.n_examples);
    let mut clusters = decided.what_stays(storage, request).await?;
    let texts = texts_of(storage, request, (&examples, &clusters), resources, progress).await?;
    let text_of = |id: &String| match texts.by_id.get(id) {
        Some(Text::Found { text, .. }) => Some(text),
        _ => None,
    };
    for example in examples.iter_mut().filter(|example| example.reference.is_none()) {
        let both = text_of(&example.doc_id).zip(text_of(&example.canonical_id));
        example.excerpts = both.map(|(a, b)| excerpts(a, b, EXCERPT_CHARS, CONTEXT_CHARS));
        example.texts = both.map(|(a, b)| (Arc::clone(a), Arc::clone(b)));
    }
    for cluster in &mut clusters {
        let text = cluster.kept.first().and_then(text_of);
        cluster.excerpt = text.map(|text| excerpts(text, text, CLUSTER_CHARS, 0).0);
    }
    let loss = decided.mean_loss();
    let measured = MeasuredNight::of_published(storage, store, &summary, loss, &request.breakers).await?;
    let nights: Vec<&str> = history.before.iter().map(|night| night.dt.as_str()).collect();
    let nights = &nights[nights.len().saturating_sub(HOST_NIGHTS)..];
    let LargestHosts { hosts, n_hosts } = largest_hosts(storage, store, dt, nights).await?;
    let quarantine = read_quarantine(storage, request, summary.counts.documents.n_repeated_ids > 0).await?;
    Ok(NightReport {
        summary: RunSummary { measured: Some(measured), ..summary },
        is_stale: history.night.is_stale,
        hosts,
        n_hosts,
        quarantine,
        largest_clusters: decided.largest_clusters,
        clusters,
        examples,
        distributions: decided.distributions,
        history,
        breakers: request.breakers,
        settings: request.settings.clone(),
    })
}

/// Reads the texts of examples, of what stays in their place, and of what is shown of clusters.
async fn texts_of(
    storage: &Storage,
    request: &ReportRequest,
    (examples, clusters): (&[Example], &[LargeCluster]),
    resources: &Resources,
    progress: &Progress,
) -> Result<Texts> {
    // An id of a reference store may be that of another document here.
    let own = || examples.iter().filter(|example| example.reference.is_none());
    let dropped = own().map(|example| example.doc_id.as_str()).collect();
    let first = clusters.iter().filter_map(|cluster| cluster.kept.first());
    let kept = own().map(|example| &example.canonical_id).chain(first).map(String::as_str).collect();
    if examples.is_empty() && clusters.is_empty() {
        return Ok(Texts::default());
    }
    let (nights, files) = request.night.open(storage).await?;
    let texts = NightTexts::new(storage, &request.night.texts, resources).for_show();
    texts.find(&nights, files, dropped, kept, progress).await
}

/// Reads the first rows of a night's quarantine, without unknown revisits, and without those with a repeated id if
/// these are counted on their own.
async fn read_quarantine(
    storage: &Storage,
    request: &ReportRequest,
    without_repeats: bool,
) -> Result<Vec<QuarantinedRow>> {
    let mut rows = Vec::new();
    for file in published_files(storage, &request.night.store, &request.night.dt, "quarantine").await? {
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
                    id: value(ids, i).map(str::to_owned),
                });
            }
        }
    }
    Ok(rows)
}
