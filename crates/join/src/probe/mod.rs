//! The map phase: permuted tables of the queries, probed by sorted fingerprints.

pub mod permuted_table;
pub mod queries;
pub mod radix_sort;
pub mod reduce;
pub mod walk;
