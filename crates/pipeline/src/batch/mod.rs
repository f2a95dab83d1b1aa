//! The query batch in memory: tonight's documents, in id order, after fingerprinting.

pub(crate) mod collect;
pub(crate) mod dataset;
mod decimal_order;
pub(crate) mod query_batch;

pub use query_batch::{KeepKey, LENGTH, QueryBatch};
