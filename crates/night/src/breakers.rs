//! Circuit breakers: a night that looks unlike any crawl is not published, and the summary says why.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use nearprint_documents::url_host;
use nearprint_fault::{Fault, Result, Words, key, words};
use nearprint_join::LossLimit;
use nearprint_pipeline::Decisions;
use nearprint_tasks::{QueryBatch, Sources};
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
    /// The largest difference between the share of dropped documents and its median over the nights before. 1 means
    /// any.
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
            max_mean_lost_share: 0.03,
            min_document_share: 0.1,
            trailing_nights: 7,
        }
    }
}

/// The number of near-duplicates with a known lost share below which their mean is not looked at.
const MIN_NEAR: u64 = 100;
/// The number of sources or ids that evidence lists.
const LISTED: usize = 5;
/// The number of sources in a night's counts.
const LISTED_LOSING: usize = 10;
/// The number of characters of an id in evidence.
const ID_CHARS: usize = 100;
/// The source of documents that have no value in the column of sources, or whose ids are not URLs.
pub const NO_SOURCE: &str = "-";

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
            ..Self::default()
        }
    }

    /// Returns stricter breakers: the upper limits are halved, and `min_document_share` is doubled. A breaker that is
    /// off stays off.
    #[must_use]
    pub fn near(&self) -> Self {
        let half = |share: f64| if share < 1.0 { share / 2.0 } else { share };
        Self {
            max_cluster: self.max_cluster.div_ceil(2),
            max_source_loss: half(self.max_source_loss),
            max_rate_change: half(self.max_rate_change),
            max_mean_lost_share: half(self.max_mean_lost_share),
            min_document_share: (self.min_document_share * 2.0).min(1.0),
            ..*self
        }
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
        let shares = [
            ("max_source_loss", self.max_source_loss, 1),
            ("max_rate_change", self.max_rate_change, 1),
            ("max_mean_lost_share", self.max_mean_lost_share, 1),
            ("min_document_share", self.min_document_share, 0),
        ];
        let wrong = shares.into_iter().filter(|(_, share, _)| !(0.0..=1.0).contains(share));
        let fault = |(key, share, off): (&str, f64, u8)| {
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
        let evidence = [
            cluster.map(Evidence::Cluster),
            sources.map(Evidence::SourceLoss),
            rate.map(Evidence::RateChange),
            loss.map(Evidence::MeanLostShare),
            documents.map(Evidence::DocumentShare),
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
        }
    }

    /// Returns the ids of documents that the evidence names. Long ids are cut.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        let ids: &[String] = match &self.evidence {
            Evidence::Cluster(cluster) => &cluster.ids,
            Evidence::SourceLoss(_)
            | Evidence::RateChange(_)
            | Evidence::MeanLostShare(_)
            | Evidence::DocumentShare(_) => &[],
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
                let source = match source.as_str() {
                    NO_SOURCE => "without a source".to_owned(),
                    source => format!("of source '{source}'"),
                };
                format!(
                    "{n_near} of {n_documents} documents {source} are dropped as near-duplicates, {} of them is allowed",
                    percent(limit)
                )
            }
            Evidence::MeanLostShare(MeanLoss { n_near, mean }) => format!(
                "{n_near} documents that are dropped as near-duplicates lose {} of their features on average, {} is allowed",
                percent(*mean),
                percent(limit)
            ),
            Evidence::DocumentShare(DocumentShare { n_documents, median, .. }) => format!(
                "{n_documents} documents, the median of the nights before is {median}, {} of it is the least",
                percent(limit)
            ),
            Evidence::RateChange(DropRate { share, median, .. }) => format!(
                "{} of the documents are dropped, the median of the nights before is {}, a change of {} is allowed",
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

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// The values that the breakers look at.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct MeasuredNight {
    /// The cluster with the most different texts.
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
    /// The number of these documents.
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
    /// The number of documents that were compared and are not exact copies.
    pub n_documents: u64,
    /// The number of these documents that are dropped as near-duplicates.
    pub n_near: u64,
    /// The share of these documents that are dropped.
    pub loss: f64,
}

/// The share of dropped documents, compared with the nights before.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DropRate {
    /// The share among the night's documents.
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
        counted: &[(Cow<'_, str>, Counted)],
        breakers: &Breakers,
        loss: LossLimit,
    ) -> Self {
        Self {
            largest_cluster: largest_cluster(batch, decisions),
            worst_sources: worst_sources(counted, breakers.min_source_documents),
            drop_rate: None,
            lost_share: mean_loss(batch, decisions).filter(|_| loss != LossLimit::NONE),
            documents: None,
        }
    }
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

/// Counts the documents of each source.
pub(crate) fn counted_sources<'a>(batch: &'a QueryBatch, decisions: &Decisions) -> Vec<(Cow<'a, str>, Counted)> {
    match &batch.sources {
        Some(sources) => by_source(batch, decisions, sources),
        None => by_host(batch, decisions),
    }
}

/// Returns the sources that lost the most documents, whatever their size.
pub(crate) fn lost_most(counted: &[(Cow<'_, str>, Counted)]) -> Vec<SourceCounts> {
    let mut losing: Vec<_> = counted.iter().filter(|(_, (_, n_near))| *n_near > 0).collect();
    losing.sort_by(|(a, of_a), (b, of_b)| of_b.1.cmp(&of_a.1).then_with(|| a.cmp(b)));
    let counts = |&(source, (n_documents, n_near)): &&(Cow<'_, str>, Counted)| SourceCounts {
        source: excerpt(source),
        n_documents: *n_documents,
        n_near: *n_near,
    };
    losing.iter().take(LISTED_LOSING).map(counts).collect()
}

fn worst_sources(counted: &[(Cow<'_, str>, Counted)], min_documents: u64) -> Vec<SourceLoss> {
    worst(counted.iter().map(|(source, counts)| (&**source, *counts)), min_documents)
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
pub(crate) type Counted = (u64, u64);

fn count(batch: &QueryBatch, decisions: &Decisions, mut counts_of: impl FnMut(u32, Counted)) {
    for row in batch.rows() {
        let near = decisions.is_near(row);
        if near || decisions.is_kept(row) {
            counts_of(row, (1, u64::from(near)));
        }
    }
}

fn add(to: &mut Counted, more: Counted) {
    *to = (to.0 + more.0, to.1 + more.1);
}

fn by_source<'a>(batch: &QueryBatch, decisions: &Decisions, sources: &'a Sources) -> Vec<(Cow<'a, str>, Counted)> {
    let none = sources.names.len();
    let mut counted = vec![Counted::default(); none + 1];
    count(batch, decisions, |row, found| {
        add(&mut counted[sources.of_rows.get(row).map_or(none, |&source| source as usize)], found);
    });
    let names = sources.names.iter().map(String::as_str).chain([NO_SOURCE]);
    names.map(Cow::Borrowed).zip(counted).collect()
}

/// Counts documents by host. The case of a host does not matter.
fn by_host(batch: &QueryBatch, decisions: &Decisions) -> Vec<(Cow<'static, str>, Counted)> {
    let mut counted: HashMap<String, Counted> = HashMap::new();
    count(batch, decisions, |row, found| {
        let id = batch.id(row);
        let host = url_host(without_time(&id)).unwrap_or(NO_SOURCE);
        match counted.get_mut(host) {
            Some(counts) => add(counts, found),
            None => drop(counted.insert(host.to_owned(), found)),
        }
    });
    let mut folded: BTreeMap<String, Counted> = BTreeMap::new();
    for (host, counts) in counted {
        add(folded.entry(host.to_ascii_lowercase()).or_default(), counts);
    }
    folded.into_iter().map(|(host, counts)| (Cow::Owned(host), counts)).collect()
}

/// Returns the URL of an id of `warc_id = "url_time"`, which has a time and a blank before it, and other ids whole.
fn without_time(id: &str) -> &str {
    let is_time = |time: &str| time.contains('T') && time.starts_with(|c: char| c.is_ascii_digit());
    id.split_once(' ').filter(|(time, _)| is_time(time)).map_or(id, |(_, url)| url)
}

fn excerpt(id: &str) -> String {
    if id.chars().nth(ID_CHARS).is_none() {
        return id.to_owned();
    }
    id.chars().take(ID_CHARS).chain(['…']).collect()
}
