//! The work of a night as tasks: small serialisable descriptions of the input, and the functions that do the work.
//!
//! The output of a task depends only on its description, on the specification that all tasks of a stage share, and on
//! the files. All output leaves as batches. So a task can run anywhere, more than once, and in any order: in this
//! process, in a process of its own, or on another engine. This crate does not depend on the engine.
//!
//! ```text
//! FingerprintSpec ─► FingerprintContext ─┐
//!                       FingerprintTask ─┴─► fingerprint_task ─► TaskBatch::{Rows, Notes}
//! MapSpec, query batch ─────► MapContext ─┐
//!                                MapTask ─┴─► map_task ────────► TaskBatch::{Rows, Notes}
//! ```
//!
//! In a worker of an [`Engine`], a [`LoadedJoin`] stands for the second context, and the batches travel as
//! [messages](messages_of).

mod batch;
mod engine;
mod file_reading;
mod fingerprint_task;
mod map;
mod messages;
mod query_slices;
mod stream;

pub use batch::{
    ArrivingWords, CollectPolicy, Collecting, InOrder, KeepKey, LENGTH, NightWords, QueryBatch, RepeatedIds,
    RowColumns, SkipReason, Sources, TextOf, WordSpill, WordsOfTexts, batch_of_stored, dataset,
};
pub use engine::{Engine, Weighed, Workers};
pub use file_reading::FileReading;
pub use fingerprint_task::{
    FileNote, FingerprintContext, FingerprintSpec, FingerprintTask, SentWords, WantedTexts, fingerprint_task,
};
pub use map::{
    BatchIds, ClassPairs, DirectedPairs, FileRowGroups, LoadedJoin, MapContext, MapCounts, MapSpec, MapTask,
    PlacesInBatch, Room, StoredIds, Undecided, Want, judged_pairs, map_task, pair_schema,
};
pub use messages::{Form, Messages, messages_of, received};
pub use query_slices::{KeyJoin, KeyQueries, QuerySlices, SliceTables};
pub use stream::{TaskBatch, TaskBatches};
