//! The inner loop of the join: which rows of a range lie within a distance of one fingerprint.

pub mod scalar;
