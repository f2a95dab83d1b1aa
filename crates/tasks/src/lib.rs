//! The work of a night as tasks: small serialisable descriptions of what to read, and the functions that do it.
//!
//! What a task gives depends on its description, the specification that all tasks of a stage share, and the files alone.
//! All of it leaves as batches. So a task can run anywhere, again, and in any order: in this process, in a process of its
//! own, or on another engine. This crate does not know the engine.
//!
//! ```text
//! FingerprintSpec ─► FingerprintContext ─┐
//!                       FingerprintTask ─┴─► fingerprint_task ─► TaskBatch::{Rows, Notes}
//! MapSpec, query batch ─────► MapContext ─┐
//!                                MapTask ─┴─► map_task ────────► TaskBatch::{Rows, Notes}
//! ```

mod batch;
mod error;
mod fingerprint_task;
mod map;
mod query_parts;
mod runner;
mod stream;

pub use batch::{CollectPolicy, Collecting, KeepKey, LENGTH, QueryBatch, RowColumns, SkipReason, Sources, dataset};
pub use error::{Result, TaskError};
pub use fingerprint_task::{FileNote, FingerprintContext, FingerprintSpec, FingerprintTask, fingerprint_task};
pub use map::{ClassPairs, MapContext, MapCounts, MapSpec, MapTask, Room, Want, map_task, pair_schema};
pub use query_parts::{PartTables, QueryParts};
pub use runner::{Elsewhere, FingerprintRunner, TaskBatches, TaskRunner};
pub use stream::TaskBatch;
