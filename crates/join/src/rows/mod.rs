//! Rows behind equal fingerprints, and when two of them are near-duplicates.

pub mod column;
pub mod query_rows;
pub mod row_set;
pub mod verify;
