//! The comparison of a night with the nights before it.

use nearprint_fault::Result;
use nearprint_storage::Storage;
use nearprint_store::{Night, Store};

use super::breakers::{Breakers, DocumentShare, DropRate, MeanLoss, MeasuredNight, worst_listed};
use super::manifest::Manifest;
use super::published::generation;
use super::request::RunRequest;
use super::summary::RunCounts;

/// The number of nights before that a median needs.
const MIN_TRAILING_NIGHTS: usize = 3;

impl MeasuredNight {
    /// Measures a published night from what its manifest and those of the nights before it say, the newest of these first.
    /// `lost_share` is what its decisions say. The largest cluster is not measured, and of sources only those that the
    /// manifest lists.
    #[must_use]
    pub fn of_published(
        counts: &RunCounts,
        before: &[RunCounts],
        lost_share: Option<MeanLoss>,
        breakers: &Breakers,
    ) -> Self {
        let before = &before[..before.len().min(breakers.trailing_nights)];
        Self {
            largest_cluster: None,
            worst_sources: worst_listed(&counts.sources, breakers.min_source_documents),
            drop_rate: drop_rate(counts, before),
            lost_share: lost_share.filter(MeanLoss::is_enough),
            documents: document_share(counts, before, true),
        }
    }

    /// Adds the comparison with the nights before, from their manifests. A manifest that cannot be read is a warning.
    pub(crate) async fn compare(&mut self, storage: &Storage, store: &Store, request: &RunRequest, counts: &RunCounts) {
        let mut before = Vec::new();
        for night in store.before(&request.dt).into_iter().rev().take(request.breakers.trailing_nights) {
            match night_counts(storage, night).await {
                Ok(counts) => before.push(counts),
                Err(error) => {
                    tracing::warn!(night = night.dt, %error, "its manifest cannot be read: left out of the median")
                }
            }
        }
        self.drop_rate = drop_rate(counts, &before);
        self.documents = document_share(counts, &before, request.input.allow_empty);
    }
}

fn drop_rate(counts: &RunCounts, before: &[RunCounts]) -> Option<DropRate> {
    let shares: Vec<f64> = before.iter().filter_map(drop_share).collect();
    let (share, n_nights) = (drop_share(counts)?, shares.len());
    let median = median(shares).filter(|_| n_nights >= MIN_TRAILING_NIGHTS)?;
    Some(DropRate { share, median, change: (share - median).abs(), n_nights })
}

/// Compares the number of documents. Nights without documents are left out of the median.
#[allow(clippy::cast_precision_loss, reason = "a share of documents")]
fn document_share(counts: &RunCounts, before: &[RunCounts], allow_empty: bool) -> Option<DocumentShare> {
    let n_documents = counts.documents.n_documents;
    let usual: Vec<f64> = before.iter().map(|c| c.documents.n_documents as f64).filter(|&n| n > 0.0).collect();
    let n_nights = usual.len();
    let enough = if n_documents == 0 { n_nights > 0 && !allow_empty } else { n_nights >= MIN_TRAILING_NIGHTS };
    let median = median(usual).filter(|_| enough)?;
    Some(DocumentShare { n_documents, median, share: n_documents as f64 / median, n_nights })
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    debug_assert!(values.iter().all(|value| value.is_finite()), "a median is of numbers that can be compared");
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    let lower = if values.len() % 2 == 1 { upper } else { *values.get(middle.checked_sub(1)?)? };
    Some(f64::midpoint(lower, upper))
}

async fn night_counts(storage: &Storage, night: &Night) -> Result<RunCounts> {
    Ok(Manifest::read(&generation(storage, night)?, night).await?.counts)
}

#[allow(clippy::cast_precision_loss, reason = "a share of documents")]
fn drop_share(counts: &RunCounts) -> Option<f64> {
    let n = counts.documents.n_documents;
    (n > 0).then(|| counts.decisions.n_drop as f64 / n as f64)
}
