//! The work of a run as tasks: small serialisable descriptions of what to read, and the functions that do it. What a task gives
//! depends on its description, the specification that all tasks of a stage share, and the files alone, and all of it leaves as
//! batches. So a task can run anywhere, again, and in any order: here, in a process of its own, or on another engine.

mod class_pairs;
mod existing_documents;
mod existing_values;
mod fingerprint_task;
mod map_context;
mod map_counts;
mod map_task;
mod pair_writer;
mod runner;
mod spec;
mod stream;

pub(crate) use class_pairs::ClassPairs;
pub(crate) use fingerprint_task::{FileNote, append};
pub use fingerprint_task::{FingerprintContext, FingerprintSpec, FingerprintTask, fingerprint_task};
pub use map_context::{MapContext, MapTask};
pub(crate) use map_context::{Room, Want};
pub(crate) use map_counts::MapCounts;
pub use map_task::map_task;
pub(crate) use pair_writer::pair_schema;
pub(crate) use runner::FingerprintRunner;
pub use runner::{Elsewhere, TaskBatches, TaskRunner};
pub use spec::MapSpec;
pub use stream::TaskBatch;
