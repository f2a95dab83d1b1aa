//! Deleted rows of the files of a snapshot.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use arrow::array::AsArray;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use futures::TryStreamExt;
use nearprint_fault::Result;
use nearprint_parquet::{Columns, ParquetFile};
use nearprint_storage::{DeletedRows, Folder, bad_file, bad_format, known_scheme};
use roaring::RoaringTreemap;

use crate::manifests::{DataFile, DeleteFile, PartitionValue, SnapshotFiles, gone};

/// The columns of a file that deletes rows by their numbers.
const FILE_PATH: &str = "file_path";
const POSITION: &str = "pos";

/// Returns the deleted rows of those files of a snapshot that are wanted, by their paths with [known schemes](known_scheme).
/// `place` finds a file of the table by its path.
///
/// # Errors
/// A file that says which rows are deleted is gone or damaged, names values in place of rows, or lies where `place` does not
/// allow it.
pub async fn deleted_rows(
    files: &SnapshotFiles,
    place: impl Fn(&str) -> Result<Folder>,
) -> Result<BTreeMap<String, DeletedRows>> {
    // A table may name one file as `file:/a` and as `file:///a`.
    let sequences: BTreeMap<String, i64> =
        files.data.iter().map(|file| (known_scheme(&file.path), file.sequence)).collect();
    let mut rows: BTreeMap<String, RoaringTreemap> = BTreeMap::new();
    let mut vectors: BTreeMap<String, DeletedRows> = BTreeMap::new();
    for deletes in &files.deletes {
        // A file that was added after the deletes keeps its rows.
        let is_about = |file: &str| sequences.get(file).is_some_and(|&added| added <= deletes.sequence);
        if deletes.by_value {
            if files.data.iter().any(|file| deletes.is_about_values_of(file)) {
                let reason = "the Iceberg table deletes rows by their values (equality deletes): let its engine write the \
                              files anew, such as by rewrite_data_files";
                return Err(bad_format(place(&deletes.path)?.url(), reason));
            }
            continue;
        }
        let of = deletes.of.as_deref().map(known_scheme);
        if of.as_deref().is_some_and(|of| !is_about(of)) {
            continue;
        }
        let at = place(&deletes.path)?;
        match (deletes.format.as_str(), of, deletes.vector) {
            ("puffin", Some(of), Some((at_byte, bytes))) => {
                // A vector has all deleted rows of its file.
                let file = at.find().await?.ok_or_else(|| gone(&at))?;
                let vector = file.deletion_vector(at_byte, bytes).await?;
                if let Some((of, _)) = vectors.remove_entry(&of) {
                    return Err(bad_format(at.url(), format!("the Iceberg table has two deletion vectors of {of}")));
                }
                vectors.insert(of, vector);
            }
            ("parquet", ..) => positions(&at, is_about, &mut rows).await?,
            (format, ..) => {
                let reason =
                    format!("the Iceberg table has deletes in a file of the format {format}, which is not read");
                return Err(bad_format(at.url(), reason));
            }
        }
    }
    for (file, rows) in rows {
        if let Entry::Vacant(place) = vectors.entry(file) {
            let deleted = DeletedRows::of_numbers(rows).map_err(|reason| bad_file(place.key(), reason))?;
            place.insert(deleted);
        }
    }
    Ok(vectors)
}

/// Adds the numbers of rows, counted from 0, of the files that the deletes are about.
async fn positions(
    place: &Folder,
    is_about: impl Fn(&str) -> bool,
    rows: &mut BTreeMap<String, RoaringTreemap>,
) -> Result<()> {
    let parquet = ParquetFile::open(place.find().await?.ok_or_else(|| gone(place))?).await?;
    let mut batches = parquet.stream(parquet.whole(&[FILE_PATH, POSITION]))?;
    // The last path, as it is written and with a known scheme.
    let mut last: Option<(String, String)> = None;
    while let Some(batch) = batches.try_next().await? {
        let columns = Columns { batch: &batch, file: place.url() };
        let bad =
            |e: &dyn std::fmt::Display| bad_file(place.url(), format!("it has no deletes of an Iceberg table: {e}"));
        let files = cast(columns.get(FILE_PATH)?, &DataType::Utf8).map_err(|e| bad(&e))?;
        let numbers = cast(columns.get(POSITION)?, &DataType::Int64).map_err(|e| bad(&e))?;
        for (file, row) in files.as_string::<i32>().iter().zip(numbers.as_primitive::<Int64Type>()) {
            let row = row.and_then(|row| u64::try_from(row).ok());
            let (Some(file), Some(row)) = (file, row) else { return Err(bad(&"a row has no file or no number")) };
            // Rows of one file stand side by side.
            if last.as_ref().is_none_or(|(path, _)| path != file) {
                last = Some((file.to_owned(), known_scheme(file)));
            }
            let Some((_, file)) = last.as_ref().filter(|(_, file)| is_about(file)) else { continue };
            if !rows.contains_key(file) {
                rows.insert(file.clone(), RoaringTreemap::new());
            }
            rows.get_mut(file).map(|known| known.insert(row));
        }
    }
    Ok(())
}

impl DeleteFile {
    /// Returns whether deletes by values may be about a file: it was added before them, and is not of another partition for
    /// certain (Iceberg table specification, "Scan Planning").
    fn is_about_values_of(&self, file: &DataFile) -> bool {
        file.sequence < self.sequence && (self.partition.is_empty() || !self.is_of_another_partition(file))
    }

    fn is_of_another_partition(&self, file: &DataFile) -> bool {
        let mut values = self.partition.iter().zip(&file.partition);
        self.spec_id != file.spec_id || values.any(|((_, own), (_, other))| own.differs_from(other))
    }
}

impl PartitionValue {
    /// Returns whether this and another value of one field are different for certain.
    fn differs_from(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, other) | (other, Self::Null) => *other != Self::Null,
            (Self::Shown(own), Self::Shown(other)) | (Self::Derived(own), Self::Derived(other)) => own != other,
            _ => false,
        }
    }
}
