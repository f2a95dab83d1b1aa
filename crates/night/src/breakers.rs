//! Circuit breakers: a night that looks unlike any crawl is not published, and the summary says why.

use nearprint_fault::{Fault, Result, Words, key, percent, words};
use nearprint_pipeline::NO_SOURCE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::measured::{
    DocumentShare, DropRate, Fallen, LargestCluster, LargestText, MeanLoss, MeasuredNight, SmallShare, SourceLoss,
    StubShare,
};

/// The limits that stop a night before it is published. They do not change the results.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Breakers {
    /// The most documents of different texts that one cluster may have. 0 means any number.
    pub max_cluster: u64,
    /// The largest share of a source's documents, without exact copies, that may be dropped as near-duplicates. 1 means
    /// all.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub max_source_loss: f64,
    /// The number of documents below which a source is not looked at.
    pub min_source_documents: u64,
    /// The largest difference between the share of dropped documents, stubs not counted, and its median over the nights
    /// before. 1 means any.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub max_rate_change: f64,
    /// The largest mean of the lost shares of the documents that are dropped as near-duplicates. 1 means any. Nights in
    /// which a document may lose any share are not looked at.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub max_mean_lost_share: f64,
    /// The smallest share that the night's number of documents may be of the median of the nights before. 0 means any.
    /// A night without documents after nights that had some has too small a share, however few these were, unless it
    /// may be empty.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub min_document_share: f64,
    /// The largest fall of the share of kept documents, or of different texts, as a part of its median over the nights
    /// before. 1 means any.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub max_kept_fall: f64,
    /// The smallest share of the documents that must be kept, and have a text of their own, where there is no median. 0
    /// means any. Nights with fewer than `min_source_documents` documents are not looked at.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub min_kept_share: f64,
    /// The largest fall of the same shares of one source. 1 means any.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub max_source_fall: f64,
    /// The largest share of a source's documents that may have one text. 1 means all.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub max_text_share: f64,
    /// The largest share of the documents that may be stubs. 1 means all.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub max_stub_share: f64,
    /// The number of nights before that are looked at.
    pub trailing_nights: usize,
}

impl Default for Breakers {
    fn default() -> Self {
        Self {
            max_cluster: 10_000,
            max_source_loss: 0.95,
            min_source_documents: 1000,
            max_rate_change: 0.3,
            max_mean_lost_share: 0.06,
            min_document_share: 0.1,
            max_kept_fall: 0.8,
            min_kept_share: 0.02,
            max_source_fall: 0.9,
            max_text_share: 0.9,
            max_stub_share: 0.5,
            trailing_nights: 7,
        }
    }
}

/// The number of nights before that a median needs.
pub(crate) const MIN_TRAILING_NIGHTS: usize = 3;

impl Breakers {
    /// Returns breakers that never trip.
    #[must_use]
    pub fn off() -> Self {
        Self {
            max_cluster: 0,
            max_source_loss: 1.0,
            max_rate_change: 1.0,
            max_mean_lost_share: 1.0,
            min_document_share: 0.0,
            max_kept_fall: 1.0,
            min_kept_share: 0.0,
            max_source_fall: 1.0,
            max_text_share: 1.0,
            max_stub_share: 1.0,
            ..Self::default()
        }
    }

    /// Returns stricter breakers: the upper limits are halved, and the lower ones are doubled. A breaker that is off stays
    /// off.
    #[must_use]
    pub fn near(&self) -> Self {
        let half = |share: f64| if share < 1.0 { share / 2.0 } else { share };
        Self {
            max_cluster: self.max_cluster.div_ceil(2),
            max_source_loss: half(self.max_source_loss),
            max_rate_change: half(self.max_rate_change),
            max_mean_lost_share: half(self.max_mean_lost_share),
            min_document_share: (self.min_document_share * 2.0).min(1.0),
            max_kept_fall: half(self.max_kept_fall),
            min_kept_share: (self.min_kept_share * 2.0).min(1.0),
            max_source_fall: half(self.max_source_fall),
            max_text_share: half(self.max_text_share),
            max_stub_share: half(self.max_stub_share),
            ..*self
        }
    }

    /// Returns the limits that are shares: the key of each below `[breakers]`, its value, and the value that turns it off.
    #[must_use]
    pub fn shares(&self) -> [(&'static str, f64, f64); 9] {
        [
            ("max_source_loss", self.max_source_loss, 1.0),
            ("max_rate_change", self.max_rate_change, 1.0),
            ("max_mean_lost_share", self.max_mean_lost_share, 1.0),
            ("min_document_share", self.min_document_share, 0.0),
            ("max_kept_fall", self.max_kept_fall, 1.0),
            ("min_kept_share", self.min_kept_share, 0.0),
            ("max_source_fall", self.max_source_fall, 1.0),
            ("max_text_share", self.max_text_share, 1.0),
            ("max_stub_share", self.max_stub_share, 1.0),
        ]
    }

    /// Checks the values of the breakers.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](nearprint_fault::ErrorKind::Config) if a share is not a number from 0 to 1.
    pub fn validate(&self) -> Result<()> {
        self.faults().into_iter().next().map_or(Ok(()), Err)
    }

    /// Returns an error for each limit that is no share.
    #[must_use]
    pub fn faults(&self) -> Vec<Fault> {
        let wrong = self.shares().into_iter().filter(|(_, share, _)| !(0.0..=1.0).contains(share));
        let fault = |(key, share, off): (&str, f64, f64)| {
            let reason = format!("{share} is not a share: write a number from 0 to 1, {off} is off");
            Fault::config(format!("breakers.{key}"), reason)
        };
        wrong.map(fault).collect()
    }

    /// Returns the breakers whose limits the measured values exceed.
    #[must_use]
    pub fn tripped(&self, measured: &MeasuredNight) -> Vec<TrippedBreaker> {
        let cluster = measured.largest_cluster.clone();
        let cluster = cluster.filter(|cluster| self.max_cluster > 0 && cluster.n_texts > self.max_cluster);
        let mut lossy = measured.worst_sources.iter().filter(|source| source.loss > self.max_source_loss).cloned();
        let sources = lossy.next().map(|worst| LossySources { worst, others: lossy.collect() });
        let rate = measured.drop_rate.clone().filter(|rate| rate.change > self.max_rate_change);
        let loss = measured.lost_share.clone().filter(|loss| loss.mean > self.max_mean_lost_share);
        let documents = measured.documents.clone().filter(|documents| documents.share < self.min_document_share);
        let fall = measured.fallen.clone().filter(|fallen| fallen.fall > self.max_kept_fall);
        let small = measured.smallest.clone().filter(|small| small.share < self.min_kept_share);
        let fallen = measured.fallen_source.clone().filter(|fallen| fallen.fall > self.max_source_fall);
        let text = measured.largest_text.clone().filter(|text| text.share > self.max_text_share);
        let stubs = measured.stubs.clone().filter(|stubs| stubs.share > self.max_stub_share);
        let evidence = [
            cluster.map(Evidence::Cluster),
            sources.map(Evidence::SourceLoss),
            rate.map(Evidence::RateChange),
            loss.map(Evidence::MeanLostShare),
            documents.map(Evidence::DocumentShare),
            fall.map(Evidence::KeptFall),
            small.map(Evidence::KeptShare),
            fallen.map(Evidence::SourceFall),
            text.map(Evidence::TextShare),
            stubs.map(Evidence::StubShare),
        ];
        evidence
            .into_iter()
            .flatten()
            .map(|evidence| TrippedBreaker { limit: evidence.limit(self), evidence })
            .collect()
    }
}

/// A breaker that stopped a night.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(into = "ToldBreaker")]
pub struct TrippedBreaker {
    /// The limit of the key.
    pub limit: f64,
    /// The data that the value was measured on. It says which breaker this is.
    pub evidence: Evidence,
}

/// The data by which a breaker stopped a night.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Evidence {
    /// Of `max_cluster`.
    Cluster(LargestCluster),
    /// Of `max_source_loss`.
    SourceLoss(LossySources),
    /// Of `max_rate_change`.
    RateChange(DropRate),
    /// Of `max_mean_lost_share`.
    MeanLostShare(MeanLoss),
    /// Of `min_document_share`.
    DocumentShare(DocumentShare),
    /// Of `max_kept_fall`.
    KeptFall(Fallen),
    /// Of `min_kept_share`.
    KeptShare(SmallShare),
    /// Of `max_source_fall`.
    SourceFall(Fallen),
    /// Of `max_text_share`.
    TextShare(LargestText),
    /// Of `max_stub_share`.
    StubShare(StubShare),
}

/// The sources that lose more than is allowed. Summaries have them as one list, the worst first.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(into = "Vec<SourceLoss>")]
pub struct LossySources {
    /// The source that loses the largest share.
    pub worst: SourceLoss,
    /// The other ones, the worst of them first.
    pub others: Vec<SourceLoss>,
}

impl From<LossySources> for Vec<SourceLoss> {
    fn from(sources: LossySources) -> Self {
        std::iter::once(sources.worst).chain(sources.others).collect()
    }
}

/// A breaker that stopped a night, as summaries have it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "TrippedBreaker")]
struct ToldBreaker {
    /// The key below `[breakers]`.
    name: &'static str,
    /// The limit of the key.
    limit: f64,
    /// The measured value.
    value: f64,
    /// The data that the value was measured on.
    evidence: Evidence,
}

impl From<TrippedBreaker> for ToldBreaker {
    fn from(tripped: TrippedBreaker) -> Self {
        let (name, value) = (tripped.name(), tripped.value());
        Self { name, limit: tripped.limit, value, evidence: tripped.evidence }
    }
}

impl Evidence {
    #[allow(clippy::cast_precision_loss, reason = "for people to read")]
    fn limit(&self, breakers: &Breakers) -> f64 {
        match self {
            Self::Cluster(_) => breakers.max_cluster as f64,
            Self::SourceLoss(_) => breakers.max_source_loss,
            Self::RateChange(_) => breakers.max_rate_change,
            Self::MeanLostShare(_) => breakers.max_mean_lost_share,
            Self::DocumentShare(_) => breakers.min_document_share,
            Self::KeptFall(_) => breakers.max_kept_fall,
            Self::KeptShare(_) => breakers.min_kept_share,
            Self::SourceFall(_) => breakers.max_source_fall,
            Self::TextShare(_) => breakers.max_text_share,
            Self::StubShare(_) => breakers.max_stub_share,
        }
    }
}

impl TrippedBreaker {
    /// Returns the key below `[breakers]`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match &self.evidence {
            Evidence::Cluster(_) => "max_cluster",
            Evidence::SourceLoss(_) => "max_source_loss",
            Evidence::RateChange(_) => "max_rate_change",
            Evidence::MeanLostShare(_) => "max_mean_lost_share",
            Evidence::DocumentShare(_) => "min_document_share",
            Evidence::KeptFall(_) => "max_kept_fall",
            Evidence::KeptShare(_) => "min_kept_share",
            Evidence::SourceFall(_) => "max_source_fall",
            Evidence::TextShare(_) => "max_text_share",
            Evidence::StubShare(_) => "max_stub_share",
        }
    }

    /// Returns the measured value.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "for people to read")]
    pub fn value(&self) -> f64 {
        match &self.evidence {
            Evidence::Cluster(cluster) => cluster.n_texts as f64,
            Evidence::SourceLoss(sources) => sources.worst.loss,
            Evidence::RateChange(rate) => rate.change,
            Evidence::MeanLostShare(loss) => loss.mean,
            Evidence::DocumentShare(documents) => documents.share,
            Evidence::KeptFall(fallen) | Evidence::SourceFall(fallen) => fallen.fall,
            Evidence::KeptShare(small) => small.share,
            Evidence::TextShare(text) => text.share,
            Evidence::StubShare(stubs) => stubs.share,
        }
    }

    /// Returns the ids of documents of the cluster that the evidence names. Long ids are cut.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        let ids: &[String] = match &self.evidence {
            Evidence::Cluster(cluster) => &cluster.ids,
            // Of each class of stubs, only one page is named.
            _ => &[],
        };
        ids.iter().map(String::as_str)
    }

    /// Returns the message that says why the night was stopped, and how to let it pass.
    #[must_use]
    pub fn message(&self) -> Words {
        let (name, limit) = (self.name(), self.limit);
        let what = match &self.evidence {
            Evidence::Cluster(LargestCluster { cluster_id, n_texts, ids, .. }) => {
                let ids: Vec<String> = ids.iter().map(|id| format!("'{id}'")).collect();
                let ids = ids.join(", ");
                format!("cluster '{cluster_id}' has {n_texts} different texts, {limit} allowed; some of it: {ids}")
            }
            Evidence::SourceLoss(LossySources { worst: SourceLoss { source, n_documents, n_near, .. }, .. }) => {
                let source = of_source(source);
                format!(
                    "{n_near} of {n_documents} documents {source} are dropped as near-duplicates, at most {} of them may be",
                    percent(limit)
                )
            }
            Evidence::MeanLostShare(MeanLoss { n_near, mean }) => format!(
                "{n_near} documents that are dropped as near-duplicates lose {} of their features on average, {} is allowed",
                percent(*mean),
                percent(limit)
            ),
            Evidence::DocumentShare(DocumentShare { n_documents, median, .. }) => format!(
                "{n_documents} documents; the median of the nights before is {median}, and a night must have at least {} of it",
                percent(limit)
            ),
            Evidence::KeptFall(fallen) | Evidence::SourceFall(fallen) => {
                let of = fallen.source.as_ref().map_or_else(String::new, |source| format!(" {}", of_source(source)));
                format!(
                    "{} of the documents{of} {}, the median of the nights before is {}: a fall of {}, {} is allowed",
                    percent(fallen.share),
                    fallen.of.words(),
                    percent(fallen.median),
                    percent(fallen.fall),
                    percent(limit)
                )
            }
            Evidence::KeptShare(small) => format!(
                "{} of {} documents {}; the limit is {} while fewer than {MIN_TRAILING_NIGHTS} earlier nights can be compared",
                percent(small.share),
                small.n_documents,
                small.of.words(),
                percent(limit)
            ),
            Evidence::TextShare(LargestText { source, n_documents, n_of_text, .. }) => format!(
                "{n_of_text} of {n_documents} documents {} have one text, at most {} of them may have it",
                of_source(source),
                percent(limit)
            ),
            Evidence::StubShare(StubShare { n_documents, n_stubs, ids, .. }) => {
                let ids: Vec<String> = ids.iter().map(|id| format!("'{id}'")).collect();
                format!(
                    "{n_stubs} of {n_documents} documents are stubs, at most {} of them may be; they answer like {}",
                    percent(limit),
                    ids.join(", ")
                )
            }
            Evidence::RateChange(DropRate { share, median, .. }) => format!(
                "{} of the documents are dropped (stubs not counted); the median of the nights before is {}, and a change of {} is allowed",
                percent(*share),
                percent(*median),
                percent(limit)
            ),
        };
        let change = if name.starts_with("min") { "lower" } else { "raise" };
        words![
            format!("{what}: look at them, then {change} "),
            key(format!("breakers.{name}")),
            ", or run once with ",
            key("no_breakers")
        ]
    }
}

fn of_source(source: &str) -> String {
    match source {
        NO_SOURCE => "without a source".to_owned(),
        source => format!("of source '{source}'"),
    }
}
