//! What is measured of a night: the values that the breakers look at.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The number of near-duplicates with a known lost share below which their mean is not looked at.
const MIN_NEAR: u64 = 100;

/// The values that the breakers look at.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct MeasuredNight {
    /// The cluster with the most different texts. Reports do not measure it: published files do not say which texts are
    /// equal.
    pub largest_cluster: Option<LargestCluster>,
    /// The sources with enough documents that lose the largest shares, the worst first.
    pub worst_sources: Vec<SourceLoss>,
    /// The dropped documents. `None` means that there are no documents, or too few nights before.
    pub drop_rate: Option<DropRate>,
    /// What near-duplicates lose. `None` means that too few have a known lost share, or that they may lose any.
    pub lost_share: Option<MeanLoss>,
    /// The number of documents. `None` means that there are too few nights before, or that the night is empty and may
    /// be empty.
    pub documents: Option<DocumentShare>,
    /// The share that fell most against the nights before. `None` means that there are too few of them.
    pub fallen: Option<Fallen>,
    /// The smaller share of a night that is large enough and has too few nights before. `None` means that it is not so.
    pub smallest: Option<SmallShare>,
    /// The share of a source with enough documents that fell most. `None` means that no source has enough of them, in enough
    /// nights.
    pub fallen_source: Option<Fallen>,
    /// The source with enough documents of which the largest share has one text.
    pub largest_text: Option<LargestText>,
    /// The stubs. `None` means that there are no documents.
    pub stubs: Option<StubShare>,
}

/// What a share of documents is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShareOf {
    /// Kept documents.
    Kept,
    /// Different texts.
    Texts,
}

impl ShareOf {
    /// Returns what is said of the documents.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Kept => "are kept",
            Self::Texts => "have a text of their own",
        }
    }
}

/// A share that is smaller than in the nights before.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Fallen {
    /// What it is a share of.
    pub of: ShareOf,
    /// The source that it is of, or `None` if it is of the whole night.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The share among the documents.
    pub share: f64,
    /// The median share of the nights before.
    pub median: f64,
    /// The part of the median by which the share is smaller.
    pub fall: f64,
    /// The number of nights before that were looked at.
    pub n_nights: usize,
}

/// A share of a night that cannot be compared with nights before.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SmallShare {
    /// What it is a share of.
    pub of: ShareOf,
    /// The number of the night's documents.
    pub n_documents: u64,
    /// The share among them.
    pub share: f64,
}

/// The most frequent text of a source. Stubs do not count as documents that have it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LargestText {
    /// The value in the column of sources or, without such a column, the host that the ids name. `-` if there is
    /// neither.
    pub source: String,
    /// The number of its documents.
    pub n_documents: u64,
    /// The number of these that have the text.
    pub n_of_text: u64,
    /// The share of these.
    pub share: f64,
}

/// The stubs among the documents.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StubShare {
    /// The number of the night's documents.
    pub n_documents: u64,
    /// The number of stubs.
    pub n_stubs: u64,
    /// The share of these.
    pub share: f64,
    /// The pages whose texts most stubs have.
    pub ids: Vec<String>,
}

/// A cluster. Its exact copies count once as texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LargestCluster {
    /// The smallest id of the cluster.
    pub cluster_id: String,
    /// The number of documents.
    pub n_documents: u64,
    /// The number of different texts.
    pub n_texts: u64,
    /// Some ids of the cluster's documents.
    pub ids: Vec<String>,
}

/// The documents of a source that were compared and are not exact copies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourceCounts {
    /// The value in the column of sources or, without such a column, the host that the ids name. `-` if there is
    /// neither.
    pub source: String,
    /// The number of these documents: exact copies, stubs and skipped documents are not among them.
    pub n_documents: u64,
    /// The number of these documents that are dropped as near-duplicates.
    pub n_near: u64,
}

/// The loss of a source to near-duplicates.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SourceLoss {
    /// The value in the column of sources or, without such a column, the host that the ids name. `-` if there is
    /// neither.
    pub source: String,
    /// The number of documents that were compared and are not exact copies. Stubs and skipped documents are not compared.
    pub n_documents: u64,
    /// The number of these documents that are dropped as near-duplicates.
    pub n_near: u64,
    /// The share of these documents that are dropped.
    pub loss: f64,
}

/// The share of dropped documents, compared with the nights before.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DropRate {
    /// The share among the night's documents. Stubs do not count as dropped.
    pub share: f64,
    /// The median share of the nights before.
    pub median: f64,
    /// The difference between the two.
    pub change: f64,
    /// The number of nights before that were looked at.
    pub n_nights: usize,
}

/// The lost shares of the documents that are dropped as near-duplicates.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MeanLoss {
    /// The number of these documents whose lost share is known.
    pub n_near: u64,
    /// The mean of their lost shares.
    pub mean: f64,
}

/// The number of documents, compared with the nights before.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DocumentShare {
    /// The number of the night's documents.
    pub n_documents: u64,
    /// The median of the nights before that had any documents.
    pub median: f64,
    /// The night's number as a share of the median.
    pub share: f64,
    /// The number of nights before that the median is of.
    pub n_nights: usize,
}

impl MeanLoss {
    /// Returns whether the mean is of enough documents to be looked at.
    pub(crate) fn is_enough(&self) -> bool {
        self.n_near >= MIN_NEAR
    }
}
