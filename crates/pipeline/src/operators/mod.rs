//! DataFusion plan nodes: each carries batches of one task a partition; the work itself is in [`tasks`](crate::tasks).

mod fingerprint_exec;
mod forest_exec;
mod probe_exec;
mod task_exec;

pub(crate) use fingerprint_exec::FingerprintTasks;
pub(crate) use forest_exec::{ForestPass, ForestState, Gathered, KeptExisting};
pub(crate) use probe_exec::ProbeTasks;
pub(crate) use task_exec::TaskExec;
