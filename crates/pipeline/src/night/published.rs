//! A published night, as its manifest and the store describe it.

use nearprint_storage::{Storage, StorageError};
use nearprint_store::{Night, Store, generation_name, missing_store};

use super::manifest::Manifest;
use super::request::check_date;
use super::summary::{RunStatus, RunSummary};
use crate::engine::reduce::SpillStats;
use crate::error::Result;

/// Returns the number of the commit, and the later nights that were made without this one.
pub(crate) fn commit_and_stale(store: &Store, night: &Night) -> (u64, Vec<String>) {
    let info = store.info();
    let stale = info.nights.iter().filter(|n| n.stale && n.dt > night.dt).map(|n| n.dt.clone()).collect();
    (info.commit, stale)
}

pub(crate) async fn already_published(storage: &Storage, store: &Store, night: &Night) -> Result<RunSummary> {
    let place = storage.folder(&night.output)?;
    let generation = place.join(&generation_name(&night.gen_digest));
    let read = Manifest::read(&generation, night).await?;
    let (commit, stale) = commit_and_stale(store, night);
    Ok(RunSummary {
        status: RunStatus::AlreadyPublished,
        dt: night.dt.clone(),
        output: generation.url().to_owned(),
        commit,
        counts: read.counts,
        spill: SpillStats::default(),
        n_tables: 0,
        n_parts: 0,
        stale,
        n_mended_files: 0,
        newest_input: None,
        breakers: Vec::new(),
        measured: None,
    })
}

/// Returns a published night's summary, and the dates of the nights before it.
///
/// # Errors
/// [`StorageError::InputMissing`] if the night is not published.
pub async fn published_night(storage: &Storage, store_url: &str, dt: &str) -> Result<(RunSummary, Vec<String>)> {
    check_date(dt)?;
    let store = open_store(storage, store_url).await?;
    let night = store.night(dt).ok_or_else(|| StorageError::InputMissing {
        what: "published night",
        url: format!("{store_url} dt={dt}"),
        remedy: "run it first",
    })?;
    let earlier = store.before(dt).into_iter().map(|n| n.dt.clone()).collect();
    let summary = already_published(storage, &store, night).await?;
    Ok((RunSummary { status: RunStatus::Published, ..summary }, earlier))
}

pub(crate) async fn open_store(storage: &Storage, url: &str) -> Result<Store> {
    let opened = Store::open_existing(&storage.folder(url)?).await?;
    Ok(opened.ok_or_else(|| missing_store(url))?)
}
