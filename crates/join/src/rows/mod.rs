//! The rows behind equal fingerprints, and the test of whether two rows are near-duplicates.

pub mod column;
pub mod judged;
pub mod lost_share;
pub mod query_rows;
pub mod row_set;
pub mod search;
pub mod undecided;
pub mod verify;
pub mod word_rows;
