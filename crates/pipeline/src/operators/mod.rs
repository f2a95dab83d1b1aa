//! The join inside DataFusion: map tasks under one reduce, as all pairs or as a spanning forest.

pub(crate) mod forest_pass;
pub(crate) mod probe_exec;
pub(crate) mod reduce;
mod reduce_pool;
pub(crate) mod slice_turns;
pub(crate) mod task_exec;
