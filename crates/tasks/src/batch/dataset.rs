//! Fingerprints datasets: nearprint's own, and datasets of others that have only `fingerprint`, with or without
//! `doc_id`. If there is no `doc_id`, the number of the row in the dataset, from 0, stands in for it.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, UInt64Type};
use futures::TryStreamExt;
use nearprint_fault::{Fault, Result, key, words};
use nearprint_parquet::fingerprint_column::check_fingerprints;
use nearprint_parquet::schema::{CONFIG_DIGEST, DOC_ID, FINGERPRINT, SKETCH, SKETCH_BYTES, WIDE_BYTES};
use nearprint_parquet::{Columns, ParquetFile, column_type, of_arrow};
use nearprint_storage::Storage;

use super::collect::{CollectPolicy, Collecting};
use super::query_batch::{FILE, QueryBatch, ROW};

/// Opens the Parquet files of a path, folder, glob or prefix, and checks their columns.
///
/// # Errors
/// There is no Parquet file, a file cannot be read, or a column is missing or has the wrong type.
pub async fn open(storage: &Storage, pattern: &str, needs_sketch: bool) -> Result<Vec<ParquetFile>> {
    let listed = storage.files(pattern, "fingerprints").await?;
    let named = listed.len() == 1 && listed[0].url == pattern;
    let mut files = Vec::new();
    for file in listed.into_iter().filter(|f| named || f.url.ends_with(".parquet")) {
        let parquet = ParquetFile::open(file).await?;
        check_columns(&parquet, needs_sketch)?;
        files.push(parquet);
    }
    if files.is_empty() {
        let remedy = "no file there ends in .parquet";
        return Err(Fault::input_missing("fingerprints", pattern.to_owned(), remedy));
    }
    Ok(files)
}

fn check_columns(parquet: &ParquetFile, needs_sketch: bool) -> Result<()> {
    let file = &parquet.file.url;
    let wrong = |column: &str, got: &DataType, expected: &'static str| {
        let column = column.to_owned();
        Err(column_type(file.clone(), column, got.to_string(), expected))
    };
    if parquet.has_column(DOC_ID) {
        match parquet.data_type(DOC_ID, "rename it")? {
            DataType::Utf8 => {}
            t if t.is_integer() => {}
            other => return wrong(DOC_ID, other, "string or integer"),
        }
    }
    match parquet.data_type(FINGERPRINT, "a fingerprints dataset has fingerprint, and doc_id or row numbers")? {
        DataType::UInt64 => {}
        DataType::FixedSizeBinary(WIDE_BYTES) => {
            let reason = words![
                "its fingerprints have 128 bits and joins take 32 or 64: fingerprint the documents with ",
                key("bits"),
                " 64"
            ];
            return Err(Fault::refused(file.clone(), reason.to_owned()));
        }
        other => return wrong(FINGERPRINT, other, "UInt64"),
    }
    if needs_sketch {
        match parquet.data_type(SKETCH, words!["leave out ", key("max_sketch_distance")])? {
            DataType::FixedSizeBinary(SKETCH_BYTES) => {}
            other => return wrong(SKETCH, other, "FixedSizeBinary(32)"),
        }
    }
    Ok(())
}

/// Returns whether row numbers stand in for ids.
///
/// # Errors
/// [`ErrorKind::Config`](nearprint_fault::ErrorKind::Config) if some of the files have `doc_id` and others do not.
pub fn are_numbered<'a>(files: impl IntoIterator<Item = &'a ParquetFile>) -> Result<bool> {
    let mut numbered = None;
    for parquet in files {
        let this = !parquet.has_column(DOC_ID);
        if *numbered.get_or_insert(this) != this {
            let reason = "only some files of the dataset have doc_id: write the files with one schema".to_owned();
            return Err(Fault::refused(parquet.file.url.clone(), reason));
        }
    }
    Ok(numbered.unwrap_or(false))
}

/// Refuses to join files that say they were made with different configurations.
///
/// # Errors
/// [`ErrorKind::Config`](nearprint_fault::ErrorKind::Config) if two files name different configurations.
pub fn refuse_mixed_configs<'a>(files: impl Iterator<Item = &'a ParquetFile>) -> Result<()> {
    let mut first: Option<(String, String)> = None;
    for parquet in files {
        let Some(digest) = parquet.key_value(CONFIG_DIGEST) else { continue };
        let (file, expected) = first.get_or_insert_with(|| (parquet.file.url.clone(), digest.clone()));
        if *expected != digest {
            let reason = format!("made with another configuration than {file}: fingerprint both with one profile");
            return Err(Fault::refused(parquet.file.url.clone(), reason));
        }
    }
    Ok(())
}

/// Loads the columns of a dataset that a join needs as the query batch.
///
/// # Errors
/// [`ErrorKind::LocalIo`](nearprint_fault::ErrorKind::LocalIo) if the batch would take more than `max_bytes`. An error
/// also occurs if a file cannot be read, a fingerprint has more than `bits` bits, or a `doc_id` is NULL or repeated.
pub async fn load(files: &[ParquetFile], bits: u32, needs_sketch: bool, max_bytes: usize) -> Result<QueryBatch> {
    are_numbered(files)?;
    let columns: &[&str] = if needs_sketch { &[DOC_ID, FINGERPRINT, SKETCH] } else { &[DOC_ID, FINGERPRINT] };
    let mut collecting = Collecting::new(&[], None, max_bytes);
    for (position, parquet) in (0..).zip(files) {
        let mut stream = parquet.stream(parquet.whole(columns))?;
        let mut first_row = 1;
        while let Some(batch) = stream.try_next().await? {
            collecting.push(&as_fingerprinted(&parquet.file.url, (position, first_row), bits, &batch)?)?;
            first_row += batch.num_rows() as u64;
        }
    }
    let batch = collecting.finish(&CollectPolicy::default(), |file| files[file as usize].file.url.clone())?;
    match batch.bad_rows.first() {
        None => Ok(batch),
        Some(bad) => Err(Fault::bad_data(
            files[bad.file as usize].file.url.clone(),
            "doc_id is NULL: leave such rows out".to_owned(),
        )
        .row(bad.row)),
    }
}

/// Returns a batch of the dataset with the columns that [`Collecting`] takes. Rows count from `first_row` on, and the
/// first row of a file is 1.
fn as_fingerprinted(url: &str, (file, first_row): (u32, u64), bits: u32, batch: &RecordBatch) -> Result<RecordBatch> {
    let columns = Columns { batch, file: url };
    let fingerprints = columns.primitive::<UInt64Type>(FINGERPRINT)?;
    check_fingerprints(url, first_row, bits, fingerprints)?;
    let n = batch.num_rows();
    let mut fields = vec![
        Field::new(FINGERPRINT, DataType::UInt64, true),
        Field::new(FILE, DataType::UInt32, false),
        Field::new(ROW, DataType::UInt64, false),
    ];
    let mut arrays: Vec<ArrayRef> = vec![
        Arc::new(fingerprints.clone()),
        Arc::new(UInt32Array::from(vec![file; n])),
        Arc::new(UInt64Array::from_iter_values((first_row..).take(n))),
    ];
    if batch.column_by_name(DOC_ID).is_some() {
        fields.push(Field::new(DOC_ID, DataType::Utf8, true));
        arrays.push(Arc::new(columns.ids(DOC_ID)?));
    }
    if let Some(sketches) = batch.column_by_name(SKETCH) {
        fields.push(Field::new(SKETCH, sketches.data_type().clone(), true));
        arrays.push(Arc::clone(sketches));
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map_err(|e| of_arrow(url, e))
}
