//! The fingerprint store: one immutable sorted run a night, made visible by one numbered commit (docs/store-format.md).
//!
//! [`Store::open`] gives a store as its newest commit has it; [`RunWriter`] writes a run, [`Store::commit`] makes it visible. What a run
//! of the pipeline decided, and what it published, the store does not know: it takes rows and gives rows.

mod check;
mod commit;
mod compact;
mod error;
mod existing;
mod gc;
mod history;
mod identity;
mod info;
mod merge;
mod names;
mod reader;
mod shadows;
mod store;
mod writer;

/// What fuzz targets reach; no part of the interface.
#[cfg(fuzzing)]
pub mod fuzzing {
    /// Whether these bytes are a commit.
    pub fn is_commit(content: &[u8]) -> bool {
        crate::commit::Stored::parse("", content).is_ok()
    }
}

pub use check::{StoreProblem, StoreReport, check_content};
pub use commit::{Commit, JoinedRuns, Night, RunRecord, to_json};
pub use compact::{CompactRequest, CompactSummary};
pub use error::{Result, StoreError};
pub use existing::{Existing, ExistingDocuments, ExistingFile, RunFile};
pub use gc::{GcRequest, GcSummary, Leftover, RemovedFiles, gc};
pub use history::{CheckedCommits, was_published};
pub use identity::check_identities;
pub use info::{NightInfo, SegmentInfo, StoreInfo};
pub use names::generation_name;
pub use reader::{ExistingShort, OwnIds};
pub use shadows::{Recrawls, Shadow, Shadowed};
pub use store::{KeptRun, MadeBy, Store, missing_store};
pub use writer::{RunWriter, StagedRun, id_hash};
