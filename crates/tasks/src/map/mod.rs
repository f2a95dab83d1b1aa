//! Map tasks: they probe with existing fingerprints, or with those of the batch itself, and find pairs.

mod batch_ids;
mod batch_parts;
mod class_pairs;
mod context;
mod counts;
mod existing_documents;
mod existing_values;
mod expand;
mod map_itself;
mod map_piece;
mod one_at_a_time;
mod pair_writer;
mod piece_words;
mod spec;
mod task;
mod undecided;

pub use batch_ids::{BatchIds, StoredIds};
pub use batch_parts::PlacesInBatch;
pub(crate) use class_pairs::class_pair_schema;
pub use class_pairs::{ClassPairs, DirectedPairs};
pub use context::{FileRowGroups, MapContext, MapTask, Room, Want};
pub use counts::MapCounts;
pub use pair_writer::{judged_pairs, pair_schema};
pub use spec::{LoadedJoin, MapSpec};
pub use task::map_task;
pub use undecided::Undecided;
pub(crate) use undecided::undecided_schema;
