//! The `fingerprint` command: it reads documents and writes a fingerprints dataset.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use nearprint_documents::Documents;
use nearprint_fault::Result;
use nearprint_parquet::schema::{CONFIG_DIGEST, FINGERPRINT, FINGERPRINTS, WIDE_FINGERPRINTS};
use nearprint_parquet::{BATCH_ROWS, DatasetWriter};
use nearprint_profile::ProfileConfig;
use nearprint_storage::{IfExists, Progress, Storage};
use nearprint_tasks::{QueryBatch, RowColumns};
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::CommandContext;
use crate::overlaps;
use crate::resources::Resources;
use crate::stages::fingerprint::{
    FingerprintCounts, FingerprintRequest, fingerprint_documents, fingerprint_order, internal, write_quarantine,
    write_skipped,
};

/// The summary of the `fingerprint` command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FingerprintSummary {
    /// The place of the dataset.
    pub output: String,
    /// The digest of the configuration.
    pub config_digest: String,
    /// The counts of the documents.
    #[serde(flatten)]
    pub counts: FingerprintCounts,
}

/// Fingerprints documents to `OUTPUT/part-00000.parquet`, …. Documents without a fingerprint are listed in
/// `OUTPUT/_skipped`, and rows that are not documents in `OUTPUT/_quarantine`.
///
/// ```
/// use nearprint_documents::DocumentColumns;
/// use nearprint_pipeline::{FingerprintRequest, Resources, fingerprint};
/// use nearprint_storage::{IfExists, InputFile, Progress, Storage};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let temp = tempfile::tempdir()?;
/// # let documents = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sample_data/documents/dt=2026-11-19");
/// # let fingerprints = temp.path().join("fingerprints").display().to_string();
/// let (columns, profile) = (DocumentColumns::default(), nearprint_profile::by_name("default")?);
/// let request = FingerprintRequest::of(&documents.into(), &columns, &profile, &nearprint_tokenize::Resources::default());
/// let (storage, resources, progress) = (Storage::default(), Resources::default(), Progress::default());
/// let done = fingerprint(&storage, &request, &fingerprints, IfExists::Refuse, &resources, &progress).await?;
/// assert_eq!(done.counts.n_documents, 155);
/// assert_eq!(done.counts.n_fingerprinted + done.counts.n_too_short, 155);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// # Errors
/// The input is bad, or the output has files that `if_exists` does not allow to replace.
pub async fn fingerprint(
    storage: &Storage,
    request: &FingerprintRequest,
    output_url: &str,
    if_exists: IfExists,
    resources: &Resources,
    progress: &Progress,
) -> Result<FingerprintSummary> {
    let output = storage.folder(output_url)?;
    request.documents.check(storage)?;
    let inputs: Vec<_> = request.documents.patterns().into_iter().map(|place| ("documents", place)).collect();
    overlaps::refuse_folder(storage, &output, output_url, &inputs)?;
    nearprint_parquet::refuse_existing(&output, if_exists).await?;
    let documents = Documents::open(storage, &request.documents, request.columns.clone(), &request.input).await?;
    let config_digest = request.profile.digest(&request.analyzer_resources, &request.columns.web.html_text)?;
    // Nobody reads the words of fingerprints that are written to a dataset.
    let profile = ProfileConfig { judge: None, ..request.profile.clone() };
    let request = &FingerprintRequest { profile, ..request.clone() };
    progress.begin(2);
    let work = CommandContext { storage, resources, progress, engine: None };
    let done = fingerprint_documents(request, documents, None, None, work).await?;
    let temp = resources.temp_dir()?;
    let metadata = [(CONFIG_DIGEST, config_digest.as_str())];
    let columns: &SchemaRef = if request.profile.bits == 128 { &WIDE_FINGERPRINTS } else { &FINGERPRINTS };
    let schema = done.batch.fingerprint_columns(columns);
    let mut writer = DatasetWriter::new(temp.path(), "", &schema, &metadata);
    for rows in fingerprint_order(&done.batch).chunks(BATCH_ROWS) {
        writer.write(fingerprint_rows(&done.batch, rows, &schema)?)?;
    }
    let mut staged = writer.finish()?;
    staged.extend(write_skipped(&done.batch, temp.path(), "_skipped")?);
    staged.extend(write_quarantine(&done, temp.path(), "_quarantine")?);
    nearprint_parquet::publish(&output, &staged, if_exists, progress).await?;
    Ok(FingerprintSummary { output: output.url().to_owned(), config_digest, counts: done.counts })
}

fn fingerprint_rows(batch: &QueryBatch, rows: &[u32], schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = RowColumns { batch, rows };
    let is_wide = schema.field_with_name(FINGERPRINT).is_ok_and(|field| !field.data_type().is_integer());
    let fingerprints = if is_wide { columns.wide_fingerprints()? } else { columns.fingerprints() };
    let arrays = vec![columns.ids(), fingerprints, columns.sketches()?, columns.text_hashes()?];
    RecordBatch::try_new(Arc::clone(schema), arrays).map_err(internal)
}
