//! The fingerprint store (docs/store-format.md). Each night is an immutable sorted run, which one numbered commit makes
//! visible. In this crate, *run* always means a night's files, never an execution of a command.
//!
//! [`Store::open`] reads the state of the newest commit. [`RunWriter`] writes a run, and [`Store::commit`] makes it
//! visible. The store takes rows and returns rows. It does not know what the pipeline decided about documents, or what
//! it published.

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

/// Functions for the fuzz targets. They do not belong to the interface.
#[cfg(fuzzing)]
pub mod fuzzing {
    /// Returns whether these bytes are a commit.
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
