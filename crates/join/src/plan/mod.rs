//! Which tables find every pair, and what they cost.

pub mod cost;
pub mod near;
pub mod permutation;
pub mod table_plan;
