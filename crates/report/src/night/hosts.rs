//! What the largest sources of a night gave, and what they gave in the nights before.

use std::collections::HashMap;

use nearprint_fault::Result;
use nearprint_night::published_files;
use nearprint_pipeline::{HostCounts, read_hosts};
use nearprint_storage::Storage;
use schemars::JsonSchema;
use serde::Serialize;

/// A source of a night, in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HostRecord {
    /// The source.
    pub source: String,
    /// The numbers of the night.
    #[serde(flatten)]
    pub counts: HostNumbers,
    /// The numbers of the nights before that have the source, oldest first.
    pub before: Vec<HostNight>,
}

/// What a source gave in a night before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HostNight {
    /// The night.
    pub dt: String,
    /// The numbers.
    #[serde(flatten)]
    pub counts: HostNumbers,
}

/// The documents of a source in a night.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HostNumbers {
    /// The number of documents.
    pub n_documents: u64,
    /// The number of these that are new, or changed.
    pub n_new_or_changed: u64,
    /// The number of these that are kept.
    pub n_keep: u64,
    /// The number of these that are dropped as near-duplicates.
    pub n_near: u64,
    /// The number of these that are dropped as exact copies.
    pub n_exact: u64,
    /// The number of these that are stubs.
    pub n_stub: u64,
}

/// The number of sources that a report has.
const LISTED: usize = 10;

/// The largest sources of a night.
#[derive(Debug, Default)]
pub(super) struct LargestHosts {
    /// The sources, the largest first.
    pub(super) hosts: Vec<HostRecord>,
    /// The number of all sources.
    pub(super) n_hosts: u64,
}

/// Reads the largest sources of a night, and what some nights before, oldest first, say of them. A night of release 0.2.0
/// says nothing.
pub(super) async fn largest_hosts(storage: &Storage, store: &str, dt: &str, before: &[&str]) -> Result<LargestHosts> {
    let (mut hosts, mut n_hosts): (Vec<HostRecord>, u64) = (Vec::new(), 0);
    read(storage, store, dt, |source, counts| {
        n_hosts += 1;
        let record = || HostRecord { source: source.to_owned(), counts, before: Vec::new() };
        let at = hosts.partition_point(|host| host.counts.n_documents >= counts.n_documents);
        if at < LISTED {
            hosts.insert(at, record());
            hosts.truncate(LISTED);
        }
    })
    .await?;
    let positions: HashMap<String, usize> =
        hosts.iter().enumerate().map(|(at, host)| (host.source.clone(), at)).collect();
    if hosts.is_empty() {
        return Ok(LargestHosts::default());
    }
    for dt in before {
        read(storage, store, dt, |source, counts| {
            if let Some(host) = positions.get(source).and_then(|&at| hosts.get_mut(at)) {
                host.before.push(HostNight { dt: (*dt).to_owned(), counts });
            }
        })
        .await?;
    }
    Ok(LargestHosts { hosts, n_hosts })
}

async fn read(storage: &Storage, store: &str, dt: &str, mut of: impl FnMut(&str, HostNumbers)) -> Result<()> {
    for file in published_files(storage, store, dt, "hosts").await? {
        read_hosts(file, |host| of(&host.source, HostNumbers::of(&host))).await?;
    }
    Ok(())
}

impl HostNumbers {
    fn of(host: &HostCounts) -> Self {
        Self {
            n_documents: host.n_documents,
            n_new_or_changed: host.n_new + host.n_changed,
            n_keep: host.n_keep,
            n_near: host.n_near,
            n_exact: host.n_exact,
            n_stub: host.n_stub,
        }
    }
}
