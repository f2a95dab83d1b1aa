//! The map phase: sorted fingerprints probe permuted tables of the queries.

pub mod crossing;
pub mod fan;
pub mod near_values;
pub mod permuted_table;
pub mod prefixes;
pub mod queries;
pub mod radix_sort;
pub mod reduce;
pub mod together;
pub mod walk;
