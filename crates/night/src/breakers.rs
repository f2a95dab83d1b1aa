//! Circuit breakers: a night that looks unlike any crawl is not published, and the summary says why.

use nearprint_fault::{Fault, Result, Words, key, percent, words};
use nearprint_join::LossLimit;
use nearprint_pipeline::{Decisions, HostCounts, NO_SOURCE, excerpt};
use nearprint_tasks::QueryBatch;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
/// The number of near-duplicates with a known lost share below which their mean is not looked at.
const MIN_NEAR: u64 = 100;
/// The number of sources or ids that evidence lists.
const LISTED: usize = 5;
/// The number of sources in a night's counts.
const LISTED_LOSING: usize = 10;

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

impl MeasuredNight {
    /// Measures a night, of whose sources the documents are counted. The comparison with the nights before is not in it.
    pub(crate) fn of(
        batch: &QueryBatch,
        decisions: &Decisions,
        hosts: &[HostCounts],
        breakers: &Breakers,
        loss: LossLimit,
    ) -> Self {
        Self {
            largest_cluster: largest_cluster(batch, decisions),
            lost_share: mean_loss(batch, decisions).filter(|_| loss != LossLimit::NONE),
            ..Self::of_hosts(hosts, breakers)
        }
    }

    /// Measures what the counts of the sources say.
    pub(crate) fn of_hosts(hosts: &[HostCounts], breakers: &Breakers) -> Self {
        Self {
            worst_sources: worst(hosts.iter().map(counted), breakers.min_source_documents),
            largest_text: largest_text(hosts, breakers.min_source_documents),
            ..Self::default()
        }
    }
}

/// Returns the source with enough documents of which the largest share has one text.
fn largest_text(hosts: &[HostCounts], min_documents: u64) -> Option<LargestText> {
    let large = hosts.iter().filter(|host| host.n_documents >= min_documents && host.n_of_largest_text > 1);
    #[allow(clippy::cast_precision_loss, reason = "a share of documents")]
    let text = |host: &HostCounts| LargestText {
        source: excerpt(&host.source),
        n_documents: host.n_documents,
        n_of_text: host.n_of_largest_text,
        share: host.n_of_largest_text as f64 / host.n_documents as f64,
    };
    // Of equal shares, the first source counts.
    large.map(text).reduce(|most, next| if next.share > most.share { next } else { most })
}

fn mean_loss(batch: &QueryBatch, decisions: &Decisions) -> Option<MeanLoss> {
    let known = batch.rows().filter(|&row| decisions.is_near(row)).filter_map(|row| decisions.lost_share(batch, row));
    let (n_near, sum) = known.fold((0, 0.0), |(n, sum), share| (n + 1, sum + share));
    #[allow(clippy::cast_precision_loss, reason = "a mean of shares")]
    let mean = sum / n_near as f64;
    Some(MeanLoss { n_near, mean }).filter(MeanLoss::is_enough)
}

fn largest_cluster(batch: &QueryBatch, decisions: &Decisions) -> Option<LargestCluster> {
    let first_row = |row: u32| decisions.cluster(row).filter(|&(_, n)| n > 1).map(|(first, _)| first);
    // The leading bits of the hash are enough to tell the texts of one cluster apart.
    let hash = |row: u32| {
        batch
            .text_hashes
            .get(row)
            .map_or(0, |&[a, b, c, d, e, f, g, h, ..]| u64::from_be_bytes([a, b, c, d, e, f, g, h]))
    };
    let mut texts: Vec<(u32, u64)> = batch.rows().filter_map(|row| Some((first_row(row)?, hash(row)))).collect();
    texts.sort_unstable();
    texts.dedup();
    let largest = texts.chunk_by(|a, b| a.0 == b.0).max_by_key(|texts| (texts.len(), std::cmp::Reverse(texts[0].0)))?;
    let first = largest[0].0;
    let members = batch.rows().filter(|&row| first_row(row) == Some(first));
    Some(LargestCluster {
        cluster_id: excerpt(&batch.id(first)),
        n_documents: decisions.cluster(first).map_or(0, |(_, n)| u64::from(n)),
        n_texts: largest.len() as u64,
        ids: members.take(LISTED).map(|row| excerpt(&batch.id(row))).collect(),
    })
}

/// Returns the sources that lost the most documents, whatever their size.
pub(crate) fn lost_most(hosts: &[HostCounts]) -> Vec<SourceCounts> {
    let mut losing: Vec<&HostCounts> = hosts.iter().filter(|host| host.n_near > 0).collect();
    losing.sort_by(|a, b| b.n_near.cmp(&a.n_near).then_with(|| a.source.cmp(&b.source)));
    let counts = |host: &&HostCounts| {
        let (source, (n_documents, n_near)) = counted(host);
        SourceCounts { source: excerpt(source), n_documents, n_near }
    };
    losing.iter().take(LISTED_LOSING).map(counts).collect()
}

/// Returns the documents of a source that were compared and are not exact copies.
fn counted(host: &HostCounts) -> (&str, Counted) {
    (&host.source, (host.n_keep + host.n_near, host.n_near))
}

/// Returns the sources of a manifest with enough documents that lose the largest shares, the worst first.
pub(crate) fn worst_listed(sources: &[SourceCounts], min_documents: u64) -> Vec<SourceLoss> {
    worst(sources.iter().map(|of| (of.source.as_str(), (of.n_documents, of.n_near))), min_documents)
}

fn worst<'a>(counted: impl Iterator<Item = (&'a str, Counted)>, min_documents: u64) -> Vec<SourceLoss> {
    #[allow(clippy::cast_precision_loss, reason = "a share of documents")]
    let loss = |(n, near): Counted| near as f64 / n.max(1) as f64;
    let mut losses: Vec<SourceLoss> = counted
        .filter(|(_, (n, near))| *n >= min_documents.max(1) && *near > 0)
        .map(|(source, counts)| SourceLoss {
            source: excerpt(source),
            n_documents: counts.0,
            n_near: counts.1,
            loss: loss(counts),
        })
        .collect();
    losses.sort_by(|a, b| b.loss.total_cmp(&a.loss).then_with(|| a.source.cmp(&b.source)));
    losses.truncate(LISTED);
    losses
}

/// The number of documents that were compared and are not exact copies, and how many of them are near-duplicates.
type Counted = (u64, u64);
