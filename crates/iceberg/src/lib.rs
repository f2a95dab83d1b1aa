//! The metadata of Apache Iceberg tables, versions 1 to 3 of the format: which files a snapshot has, and which rows of them
//! are deleted (Iceberg table specification, "Table Metadata", "Manifests", "Delete Formats").
//!
//! A [`Table`] is one file of metadata, in JSON. Each of its snapshots names a list of manifests, and these name the files of
//! data and of deletes; both are Avro files.

mod deletes;
mod manifests;
mod table;

pub use deletes::deleted_rows;
pub use manifests::{DataFile, DeleteFile, PartitionValue, SnapshotFiles};
pub use table::{PartitionField, Schema, Snapshot, Table, newest_metadata};
