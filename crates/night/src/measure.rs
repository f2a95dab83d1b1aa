//! Measures a night, and compares it with the nights before.

use std::collections::HashMap;

use nearprint_fault::Result;
use nearprint_join::LossLimit;
use nearprint_pipeline::{Decisions, HostCounts, excerpt, read_hosts};
use nearprint_storage::Storage;
use nearprint_store::{Night, Store};
use nearprint_tasks::QueryBatch;

use super::breakers::{Breakers, MIN_TRAILING_NIGHTS};
use super::manifest::Manifest;
use super::measured::{
    DocumentShare, DropRate, Fallen, LargestCluster, LargestText, MeanLoss, MeasuredNight, ShareOf, SmallShare,
    SourceCounts, SourceLoss, StubShare,
};
use super::published::{dataset_files, generation, open_store, published};
use super::summary::{RunCounts, RunSummary};

impl MeasuredNight {
    /// Measures a published night, from the manifests and the datasets `hosts` of this night and of those before it.
    /// `lost_share` is what its decisions say. The cluster with the most different texts is not measured: published files do
    /// not say which texts are equal. Of a night of release 0.2.0, which has no `hosts`, only the sources are looked at that
    /// its manifest lists.
    ///
    /// # Errors
    /// The night is not published, or a file of its `hosts` cannot be read. What cannot be read of the nights before is left
    /// out, with a warning.
    pub async fn of_published(
        storage: &Storage,
        store: &str,
        night: &RunSummary,
        lost_share: Option<MeanLoss>,
        breakers: &Breakers,
    ) -> Result<Self> {
        let (store, counts) = (open_store(storage, store).await?, &night.counts);
        let files = dataset_files(storage, &store, published(&store, &night.dt)?, "hosts").await?;
        let has_hosts = !files.is_empty();
        let mut hosts = Vec::new();
        for file in files {
            let is_large = |host: &HostCounts| host.n_documents >= breakers.min_source_documents;
            read_hosts(file, |host| hosts.extend(Some(host).filter(is_large))).await?;
        }
        let mut measured = Self::of_hosts(&hosts, breakers);
        measured.lost_share = lost_share.filter(MeanLoss::is_enough);
        if !has_hosts {
            measured.worst_sources = worst_listed(&counts.sources, breakers.min_source_documents);
        }
        measured.compare(storage, &store, &night.dt, breakers, (counts, hosts.as_slice(), true)).await;
        Ok(measured)
    }

    /// Adds what counts alone say, and the comparison with those of the nights before.
    fn compared(self, counts: &RunCounts, before: &[RunCounts], breakers: &Breakers, allow_empty: bool) -> Self {
        let fallen = [ShareOf::Kept, ShareOf::Texts].into_iter().filter_map(|of| fallen(counts, before, of));
        let fallen = fallen.max_by(|a, b| a.fall.total_cmp(&b.fall));
        Self {
            drop_rate: drop_rate(counts, before),
            documents: document_share(counts, before, allow_empty),
            smallest: smallest(counts, breakers).filter(|_| fallen.is_none()),
            fallen,
            stubs: stub_share(counts),
            ..self
        }
    }

    /// Adds the comparison with the nights before, from their manifests and the counts of their sources. What cannot be read
    /// is a warning. `hosts` are the sources with enough documents, or more.
    pub(crate) async fn compare(
        &mut self,
        storage: &Storage,
        store: &Store,
        dt: &str,
        breakers: &Breakers,
        (counts, hosts, allow_empty): (&RunCounts, &[HostCounts], bool),
    ) {
        let mut before = Vec::new();
        let mut sources = SourceShares::of(hosts, breakers);
        for night in store.before(dt).into_iter().rev().take(breakers.trailing_nights) {
            match night_counts(storage, night).await {
                Ok(counts) => before.push(counts),
                Err(error) => {
                    tracing::warn!(night = night.dt, %error, "its manifest cannot be read: left out of the median")
                }
            }
            if let Err(error) = sources.add(storage, store, night).await {
                tracing::warn!(night = night.dt, %error, "its sources cannot be read: left out of their medians");
            }
        }
        self.fallen_source = sources.fallen();
        *self = std::mem::take(self).compared(counts, &before, breakers, allow_empty);
    }
}

/// Compares a share with its median over the nights before that had documents and know it.
fn fallen(counts: &RunCounts, before: &[RunCounts], of: ShareOf) -> Option<Fallen> {
    let shares: Vec<f64> = before.iter().filter_map(|counts| share_of(counts, of)).collect();
    let (share, n_nights) = (share_of(counts, of)?, shares.len());
    let median = median(shares).filter(|median| n_nights >= MIN_TRAILING_NIGHTS && *median > 0.0)?;
    Some(Fallen { of, source: None, share, median, fall: fall(share, median), n_nights })
}

/// Returns the part of a median by which a share is smaller.
fn fall(share: f64, median: f64) -> f64 {
    (1.0 - share / median).max(0.0)
}

/// Returns the smaller one of the shares of a night with enough documents.
fn smallest(counts: &RunCounts, breakers: &Breakers) -> Option<SmallShare> {
    let n_documents = counts.documents.n_documents;
    let small = |of| share_of(counts, of).map(|share| SmallShare { of, n_documents, share });
    let both = [ShareOf::Kept, ShareOf::Texts].into_iter().filter_map(small);
    let smaller = both.reduce(|least, next| if next.share < least.share { next } else { least });
    smaller.filter(|_| n_documents >= breakers.min_source_documents)
}

#[allow(clippy::cast_precision_loss, reason = "a share of documents")]
fn share_of(counts: &RunCounts, of: ShareOf) -> Option<f64> {
    let n = counts.documents.n_documents;
    let part = match of {
        ShareOf::Kept => Some(counts.decisions.n_keep),
        ShareOf::Texts => counts.n_texts,
    };
    part.filter(|_| n > 0).map(|part| part as f64 / n as f64)
}

#[allow(clippy::cast_precision_loss, reason = "a share of documents")]
fn stub_share(counts: &RunCounts) -> Option<StubShare> {
    let n_documents = counts.documents.n_documents;
    let n_stubs = counts.n_stubs();
    let ids = counts.stubs.iter().take(LISTED_PAGES).map(|class| class.stub_id.clone()).collect();
    (n_documents > 0).then(|| StubShare { n_documents, n_stubs, share: n_stubs as f64 / n_documents as f64, ids })
}

/// The number of pages that evidence lists.
const LISTED_PAGES: usize = 3;

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
    // Stubs are dropped for no other document.
    (n > 0).then(|| (counts.decisions.n_drop - counts.n_stubs()) as f64 / n as f64)
}

/// The shares of the sources with enough documents, in the nights before.
struct SourceShares<'a> {
    hosts: HashMap<&'a str, &'a HostCounts>,
    min_documents: u64,
    /// The shares of kept documents and of different texts.
    before: HashMap<&'a str, Vec<[f64; 2]>>,
}

impl<'a> SourceShares<'a> {
    fn of(hosts: &'a [HostCounts], breakers: &Breakers) -> Self {
        let min_documents = breakers.min_source_documents.max(1);
        let large = hosts.iter().filter(|host| host.n_documents >= min_documents);
        Self { hosts: large.map(|host| (host.source.as_str(), host)).collect(), min_documents, before: HashMap::new() }
    }

    /// Adds the shares of a night. Nothing is read if no source has enough documents tonight.
    async fn add(&mut self, storage: &Storage, store: &Store, night: &Night) -> Result<()> {
        if self.hosts.is_empty() {
            return Ok(());
        }
        let (hosts, before, min_documents) = (&self.hosts, &mut self.before, self.min_documents);
        for file in dataset_files(storage, store, night, "hosts").await? {
            read_hosts(file, |then| {
                if let Some((name, _)) =
                    hosts.get_key_value(then.source.as_str()).filter(|_| then.n_documents >= min_documents)
                {
                    before.entry(*name).or_default().push([then.kept_share(), then.texts_share()]);
                }
            })
            .await?;
        }
        Ok(())
    }

    /// Returns the share that fell most. Of equal falls, the first source's counts.
    fn fallen(&self) -> Option<Fallen> {
        let fallen = |(name, before): (&&str, &Vec<[f64; 2]>)| {
            let host = self.hosts.get(name)?;
            let now = [(ShareOf::Kept, host.kept_share()), (ShareOf::Texts, host.texts_share())];
            let of = |(at, (of, share)): (usize, (ShareOf, f64))| {
                let n_nights = before.len();
                let median = median(before.iter().map(|shares| shares[at]).collect());
                let median = median.filter(|median| n_nights >= MIN_TRAILING_NIGHTS && *median > 0.0)?;
                let source = Some(excerpt(name));
                Some(Fallen { of, source, share, median, fall: fall(share, median), n_nights })
            };
            now.into_iter().enumerate().filter_map(of).max_by(|a, b| a.fall.total_cmp(&b.fall))
        };
        let all = self.before.iter().filter_map(fallen);
        all.max_by(|a, b| a.fall.total_cmp(&b.fall).then_with(|| b.source.cmp(&a.source)))
    }
}

/// The number of sources or ids that evidence lists.
const LISTED: usize = 5;
/// The number of sources in a night's counts.
const LISTED_LOSING: usize = 10;

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
fn worst_listed(sources: &[SourceCounts], min_documents: u64) -> Vec<SourceLoss> {
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
