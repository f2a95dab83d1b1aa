//! Table plans: the tables that find every pair, and the cost of using them.

pub mod cost;
pub mod lookup_plan;
pub mod near;
pub mod permutation;
pub mod table_plan;
