//! Writing datasets. The same rows give Parquet files with the same bytes, whoever computed the rows.

use std::fs::File;
use std::io::BufWriter;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::compute::BatchCoalescer;
use arrow::datatypes::{Field, SchemaRef};
use nearprint_fault::{Fault, Result};
use nearprint_storage::HashingWriter;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::columns::BATCH_ROWS;
use crate::page_checksums::copy_with_checksums;
use crate::schema::{CANONICAL_HASH, DOC_ID, FINGERPRINT, N_FEATURES, PERMUTED, PLACE, SKETCH, TEXT_HASH};

/// The largest number of rows in a row group. Its fingerprint column then takes at most 8 MiB.
const ROW_GROUP_ROWS: usize = 1 << 20;
/// The largest number of rows in a data page.
const PAGE_ROWS: usize = 4096;
/// The largest number of rows in a data page of an index. A query reads and decodes whole pages, in many places.
pub const INDEX_PAGE_ROWS: usize = 1024;
/// The number of rows after which the writer looks whether a page is full. All numbers of rows in full pages are multiples
/// of it.
const PAGE_STEP_ROWS: usize = 128;
/// The bytes of values after which a page of sketches is full: 128 of them. A candidate costs one such page.
const SKETCH_PAGE_BYTES: usize = 4 << 10;
/// The bytes of values after which a page of text hashes is full: 512 of them.
const TEXT_HASH_PAGE_BYTES: usize = 8 << 10;
/// The bytes of values, before compression, after which a page of numbers of features is full: 512 of them.
const N_FEATURES_PAGE_BYTES: usize = 2 << 10;
/// The bytes of values, before compression, after which a page of ids is full. A pair costs one such page.
const ID_PAGE_BYTES: usize = 32 << 10;
/// The number of rows after which a published dataset begins a new file.
pub const FILE_ROWS: u64 = 16 << 20;

/// A file of a dataset, as a manifest records it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct FileRecord {
    /// The path below the dataset's folder.
    pub name: String,
    /// The number of rows.
    pub rows: u64,
    /// The size in bytes.
    pub bytes: u64,
    /// The SHA-256 in hex.
    pub sha256: String,
}

/// A file in the spill folder that is complete and waits to be published.
#[derive(Debug, Clone)]
pub struct StagedFile {
    /// The manifest's record of the file.
    pub record: FileRecord,
    /// The path in the spill folder.
    pub path: PathBuf,
}

/// Writes sorted batches to files in a local folder.
///
/// Invariant: the bytes depend on the rows alone. Because a Parquet writer ends pages at the ends of the batches that
/// it gets, the rows are first arranged in batches of one size.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow::array::{ArrayRef, RecordBatch, StringArray};
/// use nearprint_parquet::DatasetWriter;
/// use nearprint_parquet::schema::SKIPPED;
///
/// # let temp = tempfile::tempdir()?;
/// let ids: ArrayRef = Arc::new(StringArray::from(vec!["a.html", "b.html"]));
/// let reasons: ArrayRef = Arc::new(StringArray::from(vec!["empty", "too_short"]));
/// let mut writer = DatasetWriter::new(temp.path(), "skipped", &SKIPPED, &[]);
/// writer.write(RecordBatch::try_new(Arc::clone(&SKIPPED), vec![ids, reasons])?)?;
/// let files = writer.finish()?;
/// assert_eq!((files[0].record.name.as_str(), files[0].record.rows), ("skipped/part-00000.parquet", 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DatasetWriter {
    schema: SchemaRef,
    properties: WriterProperties,
    folder: PathBuf,
    name: String,
    rows_per_file: u64,
    coalescer: BatchCoalescer,
    open: Option<OpenFile>,
    done: Vec<StagedFile>,
}

struct OpenFile {
    /// Writes to a file beside the final one. The pages of that file have no checksums yet.
    writer: ArrowWriter<BufWriter<File>>,
    path: PathBuf,
    rows: u64,
}

impl DatasetWriter {
    /// Creates a writer of files `NAME/part-00000.parquet`, … below `folder`. `name` may have slashes or be empty.
    pub fn new(folder: &Path, name: &str, schema: &SchemaRef, metadata: &[(&str, &str)]) -> Self {
        Self {
            schema: schema.clone(),
            properties: writer_properties(schema, metadata),
            folder: folder.to_path_buf(),
            name: name.to_owned(),
            rows_per_file: FILE_ROWS,
            coalescer: BatchCoalescer::new(schema.clone(), BATCH_ROWS),
            open: None,
            done: Vec::new(),
        }
    }

    /// Makes the writer put all rows into one file.
    pub fn in_one_file(self) -> Self {
        Self { rows_per_file: u64::MAX, ..self }
    }

    /// Writes the next rows.
    ///
    /// # Errors
    /// [`ErrorKind::LocalIo`](nearprint_fault::ErrorKind::LocalIo) if the disk fails;
    /// [`ErrorKind::Bug`](nearprint_fault::ErrorKind::Bug) if the rows do not have the writer's schema.
    pub fn write(&mut self, batch: RecordBatch) -> Result<()> {
        self.coalescer.push_batch(batch).map_err(|e| self.internal(&e))?;
        self.write_completed()
    }

    /// Writes the remaining rows and returns the files. A dataset without rows is one file without rows, so that
    /// readers find its columns.
    ///
    /// # Errors
    /// [`ErrorKind::LocalIo`](nearprint_fault::ErrorKind::LocalIo) if the disk fails;
    /// [`ErrorKind::Bug`](nearprint_fault::ErrorKind::Bug) if a file cannot be encoded.
    pub fn finish(mut self) -> Result<Vec<StagedFile>> {
        self.coalescer.finish_buffered_batch().map_err(|e| self.internal(&e))?;
        self.write_completed()?;
        if self.done.is_empty() {
            self.open()?;
        }
        self.close()?;
        Ok(self.done)
    }

    fn write_completed(&mut self) -> Result<()> {
        while let Some(batch) = self.coalescer.next_completed_batch() {
            let (path, rows_per_file) = (self.folder.clone(), self.rows_per_file);
            let open = self.open()?;
            debug_assert!(open.rows < rows_per_file, "a file that is full was closed");
            debug_assert!(
                batch.num_rows() <= BATCH_ROWS,
                "batches have one size, so that bytes depend on the rows alone"
            );
            open.writer.write(&batch).map_err(|e| write_error(&path, e))?;
            open.rows += batch.num_rows() as u64;
            if open.rows >= rows_per_file {
                self.close()?;
            }
        }
        Ok(())
    }

    fn open(&mut self) -> Result<&mut OpenFile> {
        if self.open.is_none() {
            let path = self.folder.join(self.file_name());
            let parent = path.parent().unwrap_or(&self.folder);
            create_folder(parent)?;
            let unchecked = path.with_extension("unchecked");
            let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&unchecked);
            let file = file.map_err(Fault::io(unchecked))?;
            let writer = ArrowWriter::try_new(
                BufWriter::with_capacity(1 << 20, file),
                self.schema.clone(),
                Some(self.properties.clone()),
            );
            self.open = Some(OpenFile { writer: writer.map_err(|e| write_error(&path, e))?, path, rows: 0 });
        }
        self.open.as_mut().ok_or(Fault::internal("write", "no open file"))
    }

    fn file_name(&self) -> String {
        let part = format!("part-{:05}.parquet", self.done.len());
        if self.name.is_empty() { part } else { format!("{}/{part}", self.name) }
    }

    fn close(&mut self) -> Result<()> {
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        let of_parquet = |e| write_error(&open.path, e);
        let unchecked = open.writer.into_inner().map_err(of_parquet)?;
        let unchecked = unchecked.into_inner().map_err(|e| Fault::io(&open.path)(e.into_error()))?;
        let file =
            File::options().write(true).create_new(true).mode(0o600).open(&open.path).map_err(Fault::io(&open.path))?;
        let sink = HashingWriter::new(BufWriter::with_capacity(1 << 20, file));
        let sink = copy_with_checksums(&unchecked, sink, self.properties.clone()).map_err(of_parquet)?;
        let (buffered, bytes, sha256) = sink.finish();
        buffered.into_inner().map_err(|e| Fault::io(&open.path)(e.into_error()))?;
        let unchecked = open.path.with_extension("unchecked");
        std::fs::remove_file(&unchecked).map_err(Fault::io(unchecked))?;
        let record = FileRecord { name: self.file_name(), rows: open.rows, bytes, sha256: sha256.0 };
        debug_assert_eq!(record.sha256.len(), 64, "a SHA-256 has 64 hexadecimal digits");
        self.done.push(StagedFile { record, path: open.path });
        Ok(())
    }

    fn internal(&self, error: &arrow::error::ArrowError) -> Fault {
        Fault::internal("write", format!("{}: {error}", self.name))
    }
}

/// Returns whether a name has the form of a dataset's files: `part-00000.parquet`.
pub fn is_part_name(name: &str) -> bool {
    let number = name.strip_prefix("part-").and_then(|rest| rest.strip_suffix(".parquet"));
    number.is_some_and(|n| n.len() == 5 && n.bytes().all(|b| b.is_ascii_digit()))
}

/// Creates a folder, unless it exists. The folder above it must exist: the temporary folder of a command that was
/// stopped must not be created again.
///
/// # Errors
/// An error of the disk.
pub fn create_folder(path: &Path) -> Result<()> {
    match std::fs::create_dir(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(Fault::io(path)(error)),
        _ => Ok(()),
    }
}

fn write_error(path: &Path, error: parquet::errors::ParquetError) -> Fault {
    match error {
        parquet::errors::ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(source) => Fault::io(path)(*source),
            Err(other) => Fault::internal("write", other),
        },
        other => Fault::internal("write", other),
    }
}

/// Returns the properties with which nearprint writes the columns of its datasets. Sorted numbers are stored as deltas
/// without compression, which is near the entropy bound and fast to decode. Sketches and text hashes are random bits,
/// which nothing compresses. Unique strings and hashes are stored without a dictionary. Everything else is compressed
/// with zstd.
///
/// Pages are as small as it pays for columns of which single rows are fetched. In files that are sorted by fingerprint,
/// the bounds of such a column say nothing about a page, so its pages have none.
#[must_use]
pub fn writer_properties(schema: &SchemaRef, metadata: &[(&str, &str)]) -> WriterProperties {
    let pairs = metadata.iter().map(|(k, v)| KeyValue::new((*k).to_owned(), Some((*v).to_owned())));
    let is_index = schema.column_with_name(PERMUTED).is_some();
    let builder = WriterProperties::builder()
        .set_created_by(concat!("nearprint ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_data_page_row_count_limit(if is_index { INDEX_PAGE_ROWS } else { PAGE_ROWS })
        .set_write_batch_size(PAGE_STEP_ROWS)
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_key_value_metadata((!metadata.is_empty()).then(|| pairs.collect()));
    schema.fields().iter().fold(builder, |builder, field| with_column(builder, schema, field)).build()
}

fn with_column(builder: WriterPropertiesBuilder, schema: &SchemaRef, field: &Field) -> WriterPropertiesBuilder {
    let column = ColumnPath::from(field.name().as_str());
    let bounds = if schema.column_with_name(FINGERPRINT).is_some() && field.name() != FINGERPRINT {
        EnabledStatistics::Chunk
    } else {
        EnabledStatistics::Page
    };
    let unique = |builder: WriterPropertiesBuilder| builder.set_column_dictionary_enabled(column.clone(), false);
    let packed = |builder: WriterPropertiesBuilder| {
        let builder = builder.set_column_encoding(column.clone(), Encoding::DELTA_BINARY_PACKED);
        builder.set_column_compression(column.clone(), Compression::UNCOMPRESSED)
    };
    match field.name().as_str() {
        FINGERPRINT | CANONICAL_HASH | "id_hash" if field.data_type().is_integer() => packed(unique(builder)),
        PERMUTED => packed(unique(builder)),
        PLACE => packed(unique(builder)).set_column_statistics_enabled(column, EnabledStatistics::None),
        SKETCH => unique(builder)
            .set_column_compression(column.clone(), Compression::UNCOMPRESSED)
            .set_column_data_page_size_limit(column.clone(), SKETCH_PAGE_BYTES)
            .set_column_statistics_enabled(column, EnabledStatistics::None),
        TEXT_HASH => unique(builder)
            .set_column_compression(column.clone(), Compression::UNCOMPRESSED)
            .set_column_data_page_size_limit(column.clone(), TEXT_HASH_PAGE_BYTES)
            .set_column_statistics_enabled(column, bounds),
        N_FEATURES => unique(builder)
            .set_column_data_page_size_limit(column.clone(), N_FEATURES_PAGE_BYTES)
            .set_column_statistics_enabled(column, bounds),
        DOC_ID => unique(builder)
            .set_column_data_page_size_limit(column.clone(), ID_PAGE_BYTES)
            .set_column_statistics_enabled(column, bounds),
        FINGERPRINT | "id_a" | "id_b" | "row" => unique(builder),
        _ => builder,
    }
}
