//! The memory of a join: what the query batch, its tables, the forest pass and the decisions take of the limit.

use std::sync::Arc;

use nearprint_fault::{Fault, Result};
use nearprint_join::{Forest, QueryRows};
use nearprint_storage::{in_memory, in_pool};
use nearprint_tasks::QueryBatch;

use crate::resources::Resources;
use crate::stages::decide::{ClusterRule, Decisions};

/// Refuses more documents than the driver of an engine can hold, before any work. What each document takes at least is
/// its fingerprint, the hash of its text, its place in the groups and in the forest, and its decision.
pub fn refuse_beyond_driver(n_documents: Option<u64>, resources: &Resources) -> Result<()> {
    let n = in_memory(n_documents.unwrap_or(0));
    let bytes = n.saturating_mul(LEAST_DOCUMENT_BYTES)
        + QueryRows::grouping_bytes::<u64>(n)
        + Forest::bytes_of(n, true)
        + Decisions::bytes_of(n);
    refuse_over(
        &format!("{n} documents of one night, which the driver holds, and their decisions"),
        bytes,
        resources.counted_bytes(),
    )
}

/// The bytes of a fingerprint and of the hash of a text.
const LEAST_DOCUMENT_BYTES: usize = 8 + 16;

/// Groups the rows, and drops the columns of the batch that will not be needed.
pub(super) fn group(
    mut batch: QueryBatch,
    decides: Option<ClusterRule>,
    resources: &Resources,
) -> Result<(QueryBatch, QueryRows, Vec<u64>)> {
    let mut given_up = None;
    if decides.is_none() {
        given_up = Some(std::mem::take(&mut batch.fingerprints));
        batch.forget_all_but_ids_and_sketches();
    }
    let height = batch.memory_bytes().saturating_add(QueryRows::grouping_bytes::<u64>(batch.len()));
    refuse_over("the query batch and its tables", height, resources.counted_bytes())?;
    let (sketches, n_features) = (Arc::clone(&batch.sketches), Arc::clone(&batch.n_features));
    let (rows, values) = in_pool(|| match given_up {
        Some(fingerprints) => QueryRows::group_counted(fingerprints, sketches, n_features),
        None => QueryRows::group_counted(&batch.fingerprints, sketches, n_features),
    })?;
    Ok((batch, rows, values))
}

fn refuse_over(what: &str, bytes: usize, limit: usize) -> Result<()> {
    if bytes <= limit {
        return Ok(());
    }
    Err(Fault::resources(format!("{what} take {bytes} bytes, {limit} are left of the limit")))
}

/// The memory that the batch, and all other data that is held, leave of the limit.
pub(super) struct Budget {
    left: usize,
}

impl Budget {
    pub(super) fn new(resources: &Resources, held: usize, n_rows: usize, decides: Option<ClusterRule>) -> Result<Self> {
        let limit = resources.counted_bytes();
        let pass = Forest::bytes_of(n_rows, decides.is_some());
        let deciding = if decides.is_some() { Decisions::bytes_of(n_rows) } else { 0 };
        refuse_over("the query batch and its decisions", held + pass + deciding, limit)?;
        Ok(Self { left: limit - held - pass })
    }

    pub(super) fn take(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes);
    }

    pub(super) fn for_tables(&self) -> usize {
        if self.left > usize::MAX / 2 { UNLIMITED_TABLE_BYTES } else { self.left - PAIR_BYTES.min(self.left / 2) }
    }

    pub(super) fn for_reduce(&self, resources: &Resources) -> usize {
        resources.reduce_bytes().min(self.left / 2)
    }

    pub(super) fn for_forest(&self, resources: &Resources) -> usize {
        self.left - self.for_reduce(resources)
    }
}

/// The bytes that tables leave to pairs and decisions, but at most half of those that there are.
const PAIR_BYTES: usize = 512 << 20;

/// The bytes of tables if there is no limit.
const UNLIMITED_TABLE_BYTES: usize = 4 << 30;
