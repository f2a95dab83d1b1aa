//! The logs of Delta Lake tables: commits, which are JSON lines, and checkpoints, which are Parquet files. Both the tables
//! that nights publish and the tables of documents are read here.

mod actions;
mod checkpoint;
mod names;
mod state;

pub use actions::{Action, Add, Metadata, Protocol, Remove, parse};
pub use checkpoint::{Checkpoint, digest};
pub use names::{LogNames, checkpoint_name, commit_name, version_of};
pub use state::{LogState, unescaped};
