//! Places on local disk and S3, and how to read and write them: writes that are complete or absent, retries,
//! credentials, locks, temporary folders.
//!
//! [`Storage`] opens a [`Folder`] by its path or URL. [`Storage::files`] returns the [`InputFile`]s that a pattern
//! names, each bound to the version that was listed.
//!
//! ```
//! use nearprint_storage::Storage;
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! # let temp = tempfile::tempdir()?;
//! # let url = temp.path().display().to_string();
//! let storage = Storage::default();
//! for name in ["a.txt", "b.txt", "_draft.txt"] {
//!     storage.folder(&url)?.join(name).put("text".into()).await?;
//! }
//! let files = storage.files(&format!("{url}/*.txt"), "texts").await?;
//! let names: Vec<&str> = files.iter().filter_map(|file| file.url.rsplit('/').next()).collect();
//! assert_eq!(names, ["a.txt", "b.txt"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```

mod backend;
mod bounds;
mod date;
mod deleted_rows;
mod digest;
mod error;
mod folder;
mod input;
mod inventory;
mod listing;
mod local;
mod locked;
mod new_file;
mod new_files;
mod output_file;
mod place;
mod pool;
mod progress;
mod redact;
mod roots;
mod row_number;
mod run_lock;
mod runtime;
mod s3;
mod storage;
mod table_format;
mod tables;
mod temp_folder;

pub use date::{date_of_day, day_of_date, is_date, utc};
pub use deleted_rows::DeletedRows;
pub use digest::{HashingWriter, Sha256Hex};
pub use error::{FailedRequest, Unreadable, bad_file, bad_format, caught, damaged_file, panicked, utf8};
pub use folder::Folder;
pub use input::{ColumnIds, InputFile};
pub use inventory::FoundFile;
pub use listing::{Listing, is_hidden};
pub use local::is_scratch_name;
pub use locked::locked;
pub use new_file::NewFile;
pub use new_files::NewFiles;
pub use output_file::{IfExists, LocalFile, OutputFile};
pub use pool::{in_pool, use_pool};
pub use progress::{Progress, Snapshot, for_people as stage_for_people};
pub use redact::redact;
pub use roots::Roots;
pub use row_number::{in_memory, row_number};
pub use run_lock::RunLock;
pub use runtime::{blocking, lack_of_threads, of_task, panic_text};
pub use s3::{Requests, S3Config};
pub use storage::Storage;
pub use table_format::{TableFormat, is_uuid};
pub use tables::known_scheme;
pub use temp_folder::{TempFolder, remove_dead, remove_temp_folders};
