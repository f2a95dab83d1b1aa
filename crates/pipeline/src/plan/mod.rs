//! How a join is cut: tables, and parts of the queries.

pub(crate) mod join_plan;
pub(crate) mod query_parts;

pub use join_plan::{PlanRequest, PlanSummary, PlannedTable, plan};
