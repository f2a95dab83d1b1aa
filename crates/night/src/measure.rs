//! The comparison of a night with the nights before it.

use std::collections::HashMap;

use nearprint_fault::Result;
use nearprint_pipeline::{HostCounts, excerpt, read_hosts};
use nearprint_storage::Storage;
use nearprint_store::{Night, Store};

use super::breakers::{
    Breakers, DocumentShare, DropRate, Fallen, MIN_TRAILING_NIGHTS, MeanLoss, MeasuredNight, ShareOf, SmallShare,
    StubShare, worst_listed,
};
use super::manifest::Manifest;
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
    let ids = counts.stubs.iter().take(LISTED).map(|class| class.stub_id.clone()).collect();
    (n_documents > 0).then(|| StubShare { n_documents, n_stubs, share: n_stubs as f64 / n_documents as f64, ids })
}

/// The number of pages that evidence lists.
const LISTED: usize = 3;

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
