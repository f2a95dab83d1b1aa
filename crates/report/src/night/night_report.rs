//! The request for a report on a night, and its content.

use std::collections::BTreeMap;
use std::sync::Arc;

use nearprint_night::{Breakers, NightHistory, NightSource, RunSummary};
use nearprint_pipeline::is_near_duplicate;
use schemars::JsonSchema;
use serde::Serialize;

use super::hosts::HostRecord;

/// The night to report.
#[derive(Debug, Clone)]
pub struct ReportRequest {
    /// The night.
    pub night: NightSource,
    /// The number of dropped documents to show, of clusters, and of quarantined rows.
    pub n_examples: usize,
    /// The job's breakers.
    pub breakers: Breakers,
    /// The job's settings, as pairs of a key and its value. A manifest has only their digest.
    pub settings: Vec<(String, String)>,
}

/// The report on a published night.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct NightReport {
    /// The summary of the run. What the breakers look at is measured anew, from published files alone.
    #[serde(flatten)]
    pub summary: RunSummary,
    /// True if nights of earlier dates were added, replaced or dropped since the night was joined with them.
    pub is_stale: bool,
    /// The largest clusters, as pairs of the smallest member id and the number of documents of the night.
    pub largest_clusters: Vec<(String, u64)>,
    /// What stays of these clusters.
    pub clusters: Vec<LargeCluster>,
    /// A few dropped documents: near-duplicates before exact copies, and those that lose most before the others.
    pub examples: Vec<Example>,
    /// The distributions of the near-duplicates and clusters.
    pub distributions: Distributions,
    /// The sources with most documents, and what they gave in the nights before. Empty if release 0.2.0 published the night.
    pub hosts: Vec<HostRecord>,
    /// The number of all sources. 0 if release 0.2.0 published the night.
    pub n_hosts: u64,
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

/// A cluster, and what stays of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LargeCluster {
    /// The smallest id of the cluster.
    pub cluster_id: String,
    /// The number of documents of the night.
    pub n_documents: u64,
    /// The number of these that are kept.
    pub n_keep: u64,
    /// The first of them by id.
    pub kept: Vec<String>,
    /// The beginning of the text of the first. `None` means that it was not found.
    pub excerpt: Option<String>,
}

/// A row that is no document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
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
    /// `exact`, `near` or `contained`.
    pub reason: String,
    /// Excerpts of the two texts around their first difference, or from their beginning. `None` means that a text was
    /// not found; those of reference stores are not looked for.
    pub excerpts: Option<(String, String)>,
    /// The number of other documents that are dropped for the same one, with the same reason, distance and lost share, as all
    /// with the same text are. They are no examples of their own.
    pub n_alike: u64,
    /// The two whole texts, if both were found.
    #[serde(skip)]
    pub texts: Option<(Arc<str>, Arc<str>)>,
}

impl Example {
    /// Returns whether it is a near-duplicate of the canonical document, and no exact copy.
    #[must_use]
    pub fn is_near(&self) -> bool {
        is_near_duplicate(&self.reason)
    }
}

/// The distributions of the near-duplicates and clusters of a night.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Distributions {
    /// The numbers of near-duplicates by Hamming distance from their canonical documents, from distance 0.
    pub near_by_distance: Vec<u64>,
    /// The numbers of near-duplicates by lost share, in hundredths rounded down, from 0.
    pub near_by_lost_hundredth: Vec<u64>,
    /// The number of near-duplicates whose lost share is unknown.
    pub n_unknown_lost_share: u64,
    /// The numbers of clusters by size: for each power of two that is a lower end, the clusters from it to below the next.
    pub clusters_by_size: BTreeMap<u64, u64>,
}
