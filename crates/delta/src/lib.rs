//! The logs of Delta Lake tables: commits, which are JSON lines, and checkpoints, which are Parquet files.
//!
//! [`LogNames`], [`Checkpoint`] and [`LogState`] read the log of any table. [`TableLog`] reads and writes that of a
//! dataset that nights publish as a table.

mod actions;
mod checkpoint;
mod deletion_vector;
mod names;
mod state;
mod table_log;

pub use actions::{Action, Add, DeletionVector, parse};
pub use checkpoint::Checkpoint;
pub use names::{LogNames, SIDECARS, commit_name, version_of};
pub use state::{LogState, path_of, unescaped};
pub use table_log::{RemovedFile, TableChange, TableFile, TableLog};
