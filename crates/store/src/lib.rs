//! The fingerprint store (docs/store-format.md). Each night is an immutable sorted run, which one numbered commit makes
//! visible. In this crate, *run* always means a night's files, never an execution of a command.
//!
//! [`Store::open`] reads the state of the newest commit. [`RunWriter`] writes a run, and [`Store::commit`] makes it
//! visible. [`maintain`] has what keeps a store in order. The store takes rows and returns rows. It does not know what the pipeline decided about documents, or what
//! it published.
//!
//! ```
//! use std::sync::Arc;
//!
//! use arrow::array::{ArrayRef, RecordBatch, StringArray, UInt64Array, new_null_array};
//! use nearprint_parquet::schema::RUN;
//! use nearprint_parquet::upload;
//! use nearprint_storage::{Progress, Storage};
//! use nearprint_store::maintain::check;
//! use nearprint_store::{ChangeSet, JoinedRuns, MadeBy, Night, NightChanges, RunWriter, Store, id_hash};
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! # let temp = nearprint_storage::TempFolder::try_new(&std::env::temp_dir())?;
//! # let (spill, url) = (temp.path().join("run"), temp.path().join("store").display().to_string());
//! // The run of a night with two documents, which have neither sketches nor text hashes.
//! let made_by = MadeBy { config_digest: "of the configuration".to_owned(), algorithm: 2 };
//! let ids: ArrayRef = Arc::new(StringArray::from(vec!["a.html", "b.html"]));
//! let fingerprints: ArrayRef = Arc::new(UInt64Array::from(vec![3, 5]));
//! let null = |column: usize| new_null_array(RUN.field(column).data_type(), 2);
//! let columns = [fingerprints, ids].into_iter().chain((2..RUN.fields().len()).map(null)).collect();
//! let rows = RecordBatch::try_new(Arc::clone(&RUN), columns)?;
//! let mut writer = RunWriter::try_new(&spill, &made_by.config_digest, &RUN)?;
//! writer.fingerprints(rows)?;
//! let mut hashes = [(id_hash("a.html"), 0), (id_hash("b.html"), 1)];
//! hashes.sort();
//! let run = writer.finish(hashes.into_iter(), &[], Some(&[]))?;
//!
//! // First the files, then the commit that makes them visible.
//! let progress = Progress::default();
//! let store = Store::open(&Storage::default().folder(&url)?).await?;
//! upload(&store.run_folder(&run.record.digest), &run.files, "publish", &progress).await?;
//! let night = Night {
//!     dt: "2026-11-20".to_owned(),
//!     run: run.record,
//!     joined: JoinedRuns::of(None, &Vec::new()),
//!     joined_as: None,
//!     output: "out/results/_nearprint/dt=2026-11-20".to_owned(),
//!     request: "of the request".to_owned(),
//!     gen_digest: "of the generation".to_owned(),
//!     manifest_sha256: "of the manifest".to_owned(),
//!     future: false,
//!     redecides: false,
//!     has_stubs: false,
//!     overruled: Vec::new(),
//! };
//! let set = ChangeSet { number: 1, ..ChangeSet::default() };
//! let changes = NightChanges { set, overruled: Vec::new() };
//! assert!(store.commit(&night, &changes, None, &made_by).await?);
//!
//! let newest = Store::open(store.folder()).await?;
//! assert_eq!((newest.sequence(), newest.info().n_fingerprints), (1, 2));
//! assert_eq!(newest.all_existing().await?.n_live_rows, 2);
//! assert!(check(&newest, &progress).await?.problems.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```

mod commit;
mod delta_kernel;
mod dependents;
mod error;
mod existing;
mod families;
mod identity;
mod index;
mod info;
mod interned;
pub mod maintain;
mod merge;
mod names;
mod reader;
mod redecided;
mod shadows;
mod states;
mod store;
mod texts;
mod words;
mod writer;

/// Functions for the fuzz targets. They do not belong to the interface.
#[cfg(fuzzing)]
pub mod fuzzing {
    /// Returns whether these bytes are a commit.
    pub fn is_commit(content: &[u8]) -> bool {
        crate::commit::Stored::parse("", content).is_ok()
    }
}

pub use commit::{ChangeSet, ChangedOutput, Commit, Forgotten, JoinedRuns, Night, RunRecord, to_json};
pub use delta_kernel::delta_kernel;
pub use dependents::{Dependent, StoredDocument, StoredRows, Wanted};
pub use error::{
    Damage, IsOutput, NoSuchNight, damaged, damaged_commit, file_and_reason, is_about_content, others_committed,
    with_repair,
};
pub use existing::{Existing, ExistingDocuments, ExistingFile, ExistingShort, RunFile, ShortDocument};
pub use families::StoredFamily;
pub use identity::{identity_in, missing_store};
pub use index::{OpenIndex, OpenTables};
pub use info::{NightInfo, SegmentInfo, StoreInfo};
pub use names::{MANIFEST, RECORDS, generation_name, night_records, run_name};
pub use reader::{JoinedNights, OwnDocuments};
pub use redecided::{
    NewCanonical, NewDecision, RESTORED, Redecided, RedecidedRows, Redecision, StoredDecision, StoredOutcome,
};
pub use shadows::{EarlierState, HistoryColumns, Recrawl, RecrawlCounts, RecrawlHistory, Recrawls, Shadow, Shadowed};
pub use states::{DocumentState, StateContent};
pub use store::{KeptRun, MadeBy, NightChanges, Store, Writers, probe_conditional_put};
pub use texts::NewestTexts;
pub use words::{Words, words_of};
pub use writer::{RunWriter, StagedRun, canonical_hash, id_hash};
