//! The datasets that nights publish, and the names of their files (docs/results.md).
//!
//! Each dataset is a Delta Lake table of its own below the output. A file's name ends in the generation that it belongs
//! to, because a replaced night has files of two generations until `store gc` deletes the older ones.

use std::sync::LazyLock;

use arrow::datatypes::SchemaRef;

use crate::schema::{
    CHANGES as CHANGES_SCHEMA, DECISIONS, HOSTS, PAIRS, QUARANTINE, REDECIDED, SKIPPED, STUBS, SUPERSEDED,
};
use crate::writer::is_part_name;

/// The column by which the tables are partitioned: the night's date.
pub const DT: &str = "dt";

/// The folder of a table's log, below the table.
pub const DELTA_LOG: &str = "_delta_log";

/// A dataset that every night publishes.
#[derive(Debug, Clone, Copy)]
pub struct PublishedDataset {
    /// The name of the dataset, and of the table's folder below the output.
    pub name: &'static str,
    /// The columns in the files. The table has [`DT`] besides.
    pub schema: &'static LazyLock<SchemaRef>,
}

/// All datasets that nights publish, in the order in which their tables come to name a night. The decisions come last,
/// so a night that is there is in all other tables too.
pub static PUBLISHED: &[PublishedDataset] = &[
    PublishedDataset { name: "pairs", schema: &PAIRS },
    PublishedDataset { name: "superseded", schema: &SUPERSEDED },
    PublishedDataset { name: "skipped", schema: &SKIPPED },
    PublishedDataset { name: "quarantine", schema: &QUARANTINE },
    PublishedDataset { name: "redecided", schema: &REDECIDED },
    PublishedDataset { name: "stubs", schema: &STUBS },
    PublishedDataset { name: "hosts", schema: &HOSTS },
    PublishedDataset { name: "decisions", schema: &DECISIONS },
];

/// The dataset of what commits change in the corpus. It belongs to no night: each commit that changes nights adds to it, and
/// a night that is replaced takes nothing away.
pub static CHANGES: PublishedDataset = PublishedDataset { name: "changes", schema: &CHANGES_SCHEMA };

impl PublishedDataset {
    /// Returns all datasets that are tables: those of nights, and [`CHANGES`].
    pub fn tables() -> impl Iterator<Item = &'static Self> {
        PUBLISHED.iter().chain([&CHANGES])
    }

    /// Returns the dataset of a file, which is given by its path below the output or as the manifest names it.
    #[must_use]
    pub fn of(path: &str) -> Option<&'static Self> {
        let name = path.split('/').next()?;
        Self::tables().find(|dataset| dataset.name == name)
    }
}

/// Returns the path below the output of a file that a night's manifest names `DATASET/part-NNNNN.parquet`.
///
/// ```
/// use nearprint_parquet::published_path;
///
/// let path = published_path("pairs/part-00000.parquet", "2026-11-20", "0123456789abcdef0123456789abcdef");
/// assert_eq!(path, "pairs/dt=2026-11-20/part-00000-0123456789abcdef0123456789abcdef.parquet");
/// ```
#[must_use]
pub fn published_path(name: &str, dt: &str, generation: &str) -> String {
    let (dataset, file) = name.split_once('/').unwrap_or(("", name));
    let stem = file.strip_suffix(".parquet").unwrap_or(file);
    format!("{dataset}/{DT}={dt}/{stem}-{generation}.parquet")
}

/// The night and the generation in the name of a published file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublishedName<'a> {
    /// The date.
    pub dt: &'a str,
    /// The generation: 32 hex digits.
    pub generation: &'a str,
}

impl<'a> PublishedName<'a> {
    /// Parses a path below the folder of a table. Returns `None` if [`published_path`] does not make such paths.
    #[must_use]
    pub fn parse(path: &'a str) -> Option<Self> {
        let (folder, file) = path.split_once('/')?;
        let dt = folder.strip_prefix(DT)?.strip_prefix('=')?;
        let (part, generation) = file.strip_suffix(".parquet")?.rsplit_once('-')?;
        let is_digest = generation.len() == 32 && generation.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        (is_digest && is_part_name(&format!("{part}.parquet"))).then_some(Self { dt, generation })
    }
}
