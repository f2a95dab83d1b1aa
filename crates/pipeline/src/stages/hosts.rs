//! What each source gave in a night, so that a crawler can lower one that gives nothing new.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{Float64Type, Int64Type};
use futures::TryStreamExt;
use nearprint_fault::{Fault, Result};
use nearprint_parquet::schema::{HOSTS, LOST_SHARE, SOURCE};
use nearprint_parquet::{BATCH_ROWS, Columns, DatasetWriter, ParquetFile, StagedFile, value};
use nearprint_storage::InputFile;
use nearprint_store::{Recrawl, Recrawls};
use nearprint_tasks::QueryBatch;
use rayon::prelude::*;

use crate::stages::decide::{Decisions, Outcome};
use crate::stages::sources::RowSources;
use crate::stages::stubs::Stubs;

/// The documents of a source in a night, in numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostCounts {
    /// The value in the column of sources or, without such a column, the host that the ids name. `-` if there is neither.
    pub source: String,
    /// The number of documents.
    pub n_documents: u64,
    /// The number of documents, but for stubs, whose ids no earlier night has.
    pub n_new: u64,
    /// The number of documents, but for stubs, with the same text as before.
    pub n_same: u64,
    /// The number of documents, but for stubs, with another text than before.
    pub n_changed: u64,
    /// The number of kept documents.
    pub n_keep: u64,
    /// The number of documents that are dropped as near-duplicates.
    pub n_near: u64,
    /// The number of documents that are dropped as exact copies.
    pub n_exact: u64,
    /// The number of stubs.
    pub n_stub: u64,
    /// The number of documents without text.
    pub n_skip: u64,
    /// The number of different texts, of all documents but stubs.
    pub n_texts: u64,
    /// The number of documents that have the most frequent one of these texts.
    pub n_of_largest_text: u64,
    /// The mean lost share of the near-duplicates, or `None` if none is known.
    pub lost_share: Option<f64>,
}

/// Counts the documents of each source that has some, in order of the names. `sources` are those of the batch, which has no
/// stubs.
pub fn count_hosts(
    batch: &QueryBatch,
    sources: &RowSources,
    decisions: &Decisions,
    recrawls: &Recrawls,
    stubs: &Stubs,
) -> Vec<HostCounts> {
    let named = |name: &String| HostCounts { source: name.clone(), ..HostCounts::default() };
    let mut hosts: Vec<HostCounts> = sources.names.iter().map(named).collect();
    let mut losses = vec![(0u64, 0.0); hosts.len()];
    let mut texts: Vec<(u32, u64)> = Vec::with_capacity(batch.len());
    for row in batch.rows() {
        let source = sources.of_rows[row as usize];
        let host = &mut hosts[source as usize];
        host.n_documents += 1;
        match recrawls.history(row).recrawl {
            Recrawl::New => host.n_new += 1,
            Recrawl::Same => host.n_same += 1,
            Recrawl::Changed => host.n_changed += 1,
        }
        match decisions.outcome(row) {
            Outcome::Unique | Outcome::Canonical | Outcome::Fuller | Outcome::TooShort => host.n_keep += 1,
            Outcome::Near | Outcome::Contained => host.n_near += 1,
            Outcome::Exact => host.n_exact += 1,
            Outcome::Skip(_) => host.n_skip += 1,
        }
        if let Some(share) = decisions.lost_share(batch, row).filter(|_| decisions.is_near(row)) {
            let (n, sum) = &mut losses[source as usize];
            (*n, *sum) = (*n + 1, *sum + share);
        }
        // The leading bits of the hash are enough to tell the texts of one source apart.
        if let Some(&[a, b, c, d, e, f, g, h, ..]) = batch.text_hashes.get(row) {
            texts.push((source, u64::from_be_bytes([a, b, c, d, e, f, g, h])));
        }
    }
    texts.par_sort_unstable();
    for text in texts.chunk_by(|a, b| a == b) {
        let host = &mut hosts[text[0].0 as usize];
        host.n_texts += 1;
        host.n_of_largest_text = host.n_of_largest_text.max(text.len() as u64);
    }
    for (host, (n, sum)) in hosts.iter_mut().zip(losses) {
        #[allow(clippy::cast_precision_loss, reason = "a mean of shares")]
        let mean = (n > 0).then(|| sum / n as f64);
        host.lost_share = mean;
    }
    for source in stubs.sources() {
        let host = &mut hosts[source as usize];
        (host.n_documents, host.n_stub) = (host.n_documents + 1, host.n_stub + 1);
    }
    hosts.retain(|host| host.n_documents > 0);
    hosts.sort_unstable_by(|a, b| a.source.cmp(&b.source));
    hosts
}

impl HostCounts {
    /// Returns the share of its documents that are kept.
    #[must_use]
    pub fn kept_share(&self) -> f64 {
        share(self.n_keep, self.n_documents)
    }

    /// Returns the number of its different texts as a share of its documents.
    #[must_use]
    pub fn texts_share(&self) -> f64 {
        share(self.n_texts, self.n_documents)
    }
}

#[allow(clippy::cast_precision_loss, reason = "a share of documents")]
fn share(n: u64, of: u64) -> f64 {
    n as f64 / of.max(1) as f64
}

/// Writes the dataset of the counts below a folder.
///
/// # Errors
/// The disk is full.
pub fn write_hosts(hosts: &[HostCounts], folder: &Path) -> Result<Vec<StagedFile>> {
    let mut writer = DatasetWriter::new(folder, "hosts", &HOSTS, &[]);
    for hosts in hosts.chunks(BATCH_ROWS) {
        let counts = |of: fn(&HostCounts) -> u64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(hosts.iter().map(|host| of(host).cast_signed())))
        };
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from_iter_values(hosts.iter().map(|host| &host.source))),
            counts(|host| host.n_documents),
            counts(|host| host.n_new),
            counts(|host| host.n_same),
            counts(|host| host.n_changed),
            counts(|host| host.n_keep),
            counts(|host| host.n_near),
            counts(|host| host.n_exact),
            counts(|host| host.n_stub),
            counts(|host| host.n_skip),
            counts(|host| host.n_texts),
            counts(|host| host.n_of_largest_text),
            Arc::new(hosts.iter().map(|host| host.lost_share).collect::<Float64Array>()),
        ];
        let rows = RecordBatch::try_new(Arc::clone(&HOSTS), arrays);
        writer.write(rows.map_err(|e| Fault::internal("hosts", e))?)?;
    }
    writer.finish()
}

/// Reads a file of the dataset, a source after another.
///
/// # Errors
/// The file is damaged or cannot be read.
pub async fn read_hosts(file: InputFile, mut of: impl FnMut(HostCounts)) -> Result<()> {
    let parquet = ParquetFile::open(file).await?;
    let names: Vec<&str> = HOSTS.fields().iter().map(|field| field.name().as_str()).collect();
    let mut batches = parquet.stream(parquet.whole(&names))?;
    while let Some(batch) = batches.try_next().await? {
        let columns = Columns { batch: &batch, file: &parquet.file.url };
        let (sources, losses) = (columns.strings(SOURCE)?, columns.primitive::<Float64Type>(LOST_SHARE)?);
        let counts = |name: &str| columns.primitive::<Int64Type>(name);
        let (n_documents, n_new, n_same) = (counts("n_documents")?, counts("n_new")?, counts("n_same")?);
        let (n_changed, n_keep, n_near) = (counts("n_changed")?, counts("n_keep")?, counts("n_near")?);
        let (n_exact, n_stub, n_skip) = (counts("n_exact")?, counts("n_stub")?, counts("n_skip")?);
        let (n_texts, n_of_largest_text) = (counts("n_texts")?, counts("n_of_largest_text")?);
        for row in 0..batch.num_rows() {
            let count = |counts: &Int64Array| counts.value(row).cast_unsigned();
            of(HostCounts {
                source: sources.value(row).to_owned(),
                n_documents: count(n_documents),
                n_new: count(n_new),
                n_same: count(n_same),
                n_changed: count(n_changed),
                n_keep: count(n_keep),
                n_near: count(n_near),
                n_exact: count(n_exact),
                n_stub: count(n_stub),
                n_skip: count(n_skip),
                n_texts: count(n_texts),
                n_of_largest_text: count(n_of_largest_text),
                lost_share: value(losses, row),
            });
        }
    }
    Ok(())
}
