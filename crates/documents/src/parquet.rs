//! Documents in Parquet files.

use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, FixedSizeBinaryArray, Int64Array, RecordBatch, StringArray,
    StringBuilder,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Fields, TimeUnit};
use arrow::error::ArrowError;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt};
use nearprint_fault::{Fault, Result};
use nearprint_parquet::{
    BadColumn, Columns, GroupState, MAX_VALUE_BYTES, PagedRowGroup, ParquetFile, ReadLimits, ambiguous_column,
    column_type, count, joined_row_groups, of_arrow, of_parquet,
};
use nearprint_storage::{DeletedRows, InputFile, Unreadable, bad_file, bad_format, blocking, caught, panicked};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowSelection, RowSelector};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_field_levels};
use parquet::basic::{Compression, ConvertedType, Repetition, Type as PhysicalType};
use parquet::schema::types::{SchemaDescriptor, Type};
use tokio::runtime::Handle;

use super::batch::{BATCH_ROWS, DocumentBatch, DocumentColumns, ReadContext};
use super::column_ids::refuse_renamed;
use super::keep_column::{keep_type, keep_type_name, to_keep_type};
use super::nested;
use super::newest::newness;
use super::reader::{DocumentReader, Opened, RowFault};
use super::{foreign, hint};
use crate::quarantine::BadReason;

/// A document file, with the facts of its footer by which tasks are planned.
#[derive(Debug)]
pub struct ParquetDocuments {
    file: InputFile,
    column_types: Vec<(String, DataType)>,
    row_groups: Vec<RowGroup>,
    /// Kept as long as the footers of all files are small; otherwise it is read again.
    footer: Option<Arc<ParquetFile>>,
}

#[derive(Debug, Clone, Copy)]
struct RowGroup {
    rows: u64,
    /// Bytes of the unpacked texts, according to the footer.
    text_bytes: u64,
}

/// Opens a file and checks its columns.
pub fn open(file: InputFile, columns: DocumentColumns, _: ReadContext) -> Opened {
    Box::pin(async move { Ok(Box::new(ParquetDocuments::open(file, &columns).await?) as Box<dyn DocumentReader>) })
}

impl ParquetDocuments {
    /// Reads the footer and checks the columns.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if the file is not a readable Parquet file;
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if a column cannot be used.
    pub async fn open(file: InputFile, columns: &DocumentColumns) -> Result<Self> {
        let parquet = match ParquetFile::open_without_page_index(file.clone()).await {
            Err(error) if error.matter() == Some(&Unreadable::Damaged) => {
                return Err(misnamed(&file).await.unwrap_or(error));
            }
            opened => opened?,
        };
        refuse_renamed(&parquet, columns)?;
        let mut column_types = vec![(columns.id.clone(), id_type(&parquet, columns)?)];
        require_text(&parquet, columns)?;
        for column in columns.kept() {
            column_types.push((column.clone(), keep_column_type(&parquet, columns, column)?));
        }
        let row_groups = row_groups(&parquet, &columns.text)?;
        Ok(Self { file, column_types, row_groups, footer: Some(Arc::new(parquet)) })
    }

    /// Reads the footer and checks the column of ids alone. Read with the same columns, which are returned, the file's
    /// documents have their ids for texts, if these are strings, and no other column is read.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    pub async fn of_ids(
        file: InputFile,
        columns: &DocumentColumns,
    ) -> Result<(Self, Arc<ParquetFile>, DocumentColumns)> {
        let parquet = Arc::new(ParquetFile::open_without_page_index(file.clone()).await?);
        let ids = DocumentColumns { text: columns.id.clone(), keep: Vec::new(), newest_by: None, ..columns.clone() };
        let column_types = vec![(ids.id.clone(), id_type(&parquet, &ids)?)];
        let row_groups = row_groups(&parquet, &ids.id)?;
        Ok((Self { file, column_types, row_groups, footer: Some(Arc::clone(&parquet)) }, parquet, ids))
    }
}

/// Returns the error of a file that is of another format than its name says, if its first bytes tell.
async fn misnamed(file: &InputFile) -> Option<Fault> {
    let foreign = foreign::by_beginning(&foreign::beginning(file).await)?;
    Some(bad_format(&file.url, foreign.reason(&file.url)))
}

impl DocumentReader for ParquetDocuments {
    fn file(&self) -> &InputFile {
        &self.file
    }

    /// Returns the number of rows that the footer states, without deleted ones, but at most the number of the file's bytes.
    /// Work and memory are planned by it, and no document takes less than a byte.
    fn n_rows(&self) -> Option<u64> {
        let n_rows = self.row_groups.iter().map(|group| group.rows).sum::<u64>();
        let n_deleted = self.file.deleted_rows.as_ref().map_or(0, DeletedRows::n);
        Some(n_rows.saturating_sub(n_deleted).min(self.file.size))
    }

    fn column_types(&self) -> &[(String, DataType)] {
        &self.column_types
    }

    /// Returns the size of the footer in memory.
    fn held_bytes(&self) -> usize {
        self.footer.as_ref().map_or(0, |parquet| parquet.footer().memory_size())
    }

    fn release(&mut self) {
        self.footer = None;
    }

    /// Returns the row group, counted from 0, of a row, counted from 1.
    fn row_group_of(&self, row: u64) -> Option<u32> {
        let mut end = 0;
        let ends = self.row_groups.iter().map(|group| {
            end += group.rows;
            end
        });
        (0..).zip(ends).find(|&(_, end)| row <= end).map(|(group, _)| group)
    }

    fn explain(
        &self,
        _: u64,
        reason: BadReason,
        columns: &DocumentColumns,
        _: &ReadContext,
    ) -> BoxFuture<'static, Option<RowFault>> {
        // All columns have the types of their files, and one that does not fit is among those of `keep` and `newest_by`.
        let named: Vec<String> = columns.kept().map(|name| format!("'{name}'")).collect();
        let fault = (reason == BadReason::WrongType).then(|| RowFault {
            what: format!("column {} has a number above 2^63 - 1, or a time that cannot be used", named.join(" or ")),
            remedy: "write times like 2026-11-20T03:00:00Z and smaller numbers, or name other columns with keep and newest_by"
                .to_owned(),
        });
        std::future::ready(fault).boxed()
    }

    /// Returns ranges of consecutive row groups that have at most `max_rows` rows together, or a single row group that
    /// has more.
    fn row_group_ranges(&self, max_rows: u64) -> Vec<Range<usize>> {
        joined_row_groups(self.row_groups.iter().map(|group| group.rows).enumerate(), max_rows)
    }

    fn read(
        &self,
        row_groups: Range<usize>,
        columns: &DocumentColumns,
        keep_types: &[DataType],
        context: &ReadContext,
    ) -> BoxStream<'static, Result<DocumentBatch>> {
        let first_row = self.row_groups[..row_groups.start].iter().map(|group| group.rows).sum::<u64>() + 1;
        let groups: Vec<(usize, RowGroup)> =
            row_groups.clone().zip(self.row_groups[row_groups].iter().copied()).collect();
        let (file, footer) = (self.file.clone(), self.footer.clone());
        let (columns, keep_types, context) = (columns.clone(), keep_types.to_vec(), context.clone());
        let opened = async move {
            let parquet = match footer {
                Some(parquet) => parquet,
                None => Arc::new(ParquetFile::open_without_page_index(file).await?),
            };
            let task = TaskReader {
                shape: Arc::new(caught(&parquet.file.url, || Shape::new(&parquet, &columns))?),
                groups: groups.into_iter(),
                first_row,
                columns,
                keep_types,
                context,
                parquet,
                group: None,
            };
            Ok::<_, Fault>(futures::stream::try_unfold(task, |mut task| async move {
                if task.group.is_none() && !task.begin_group().await? {
                    return Ok(None);
                }
                blocking("reading", move || {
                    let batch = task.next()?;
                    Ok(Some((batch, task)))
                })
                .await
            }))
        };
        let (deleted, url) = (self.file.deleted_rows.clone(), self.file.url.clone());
        let counting = move |batch: DocumentBatch| match &deleted {
            Some(deleted) => batch.without(deleted).map_err(|error| of_arrow(&url, error)),
            None => Ok(batch),
        };
        let batches = futures::stream::once(opened).try_flatten().map(move |batch| batch.and_then(&counting));
        // A row group ends with an empty batch.
        batches.try_filter(|batch| futures::future::ready(!batch.rows.is_empty())).boxed()
    }
}

fn row_groups(parquet: &ParquetFile, text: &str) -> Result<Vec<RowGroup>> {
    let group = |i: usize| {
        // The size only serves to estimate how many rows fit, so a negative one may count as 0.
        let text_bytes = parquet.column_chunk(i, text).map_or(0, |c| c.uncompressed_size().max(0).unsigned_abs());
        RowGroup { rows: parquet.row_group_rows(i), text_bytes }
    };
    let file = &parquet.file;
    let groups: Vec<RowGroup> = caught(&file.url, || Ok((0..parquet.n_row_groups()).map(group).collect()))?;
    let (n_rows, deleted) = (groups.iter().map(|group| group.rows).sum::<u64>(), file.deleted_rows.as_ref());
    match deleted.and_then(DeletedRows::last) {
        Some(last) if last >= n_rows => Err(bad_file(
            &file.url,
            format!("it has {n_rows} rows, and its table says that row {} is deleted", last + 1),
        )),
        _ => Ok(groups),
    }
}

/// The columns to read and their types.
#[derive(Debug)]
struct Shape {
    /// The file's schema with text as plain bytes. If the reader knew that they are text, it would fail at the first
    /// value that is not UTF-8.
    schema: SchemaDescriptor,
    mask: ProjectionMask,
    leaves: Vec<usize>,
    hint: Fields,
}

impl Shape {
    fn new(parquet: &ParquetFile, columns: &DocumentColumns) -> Result<Self> {
        let of_parquet = |e| of_parquet(&parquet.file.url, e);
        let wanted: Vec<&String> = [&columns.id, &columns.text].into_iter().chain(columns.kept()).collect();
        let schema = parquet.footer().file_metadata().schema_descr();
        let fields = schema.root_schema().get_fields();
        let fields = fields.iter().map(plain_bytes).collect::<parquet::errors::Result<Vec<_>>>().map_err(of_parquet)?;
        let root = Type::group_type_builder("schema").with_fields(fields).build().map_err(of_parquet)?;
        let mut leaves: Vec<usize> = wanted.into_iter().filter_map(|name| nested::leaf(schema, name)).collect();
        leaves.sort_unstable();
        leaves.dedup();
        Ok(Self {
            mask: ProjectionMask::leaves(schema, leaves.iter().copied()),
            hint: hinted(parquet.schema().fields(), schema.root_schema().get_fields()),
            schema: SchemaDescriptor::new(Arc::new(root)),
            leaves,
        })
    }
}

/// Returns columns as they are read: strings, also those within them, are views of bytes, and times of 96 bits are in
/// microseconds, since nanoseconds of 64 bits wrap around after 2262. `types` has the same columns as the file has them.
fn hinted(fields: &Fields, types: &[Arc<Type>]) -> Fields {
    let hinted = |field: &Arc<Field>| {
        let of_file = types.iter().find(|of_file| of_file.name() == field.name());
        let field = field.as_ref().clone();
        match (field.data_type(), of_file) {
            (DataType::Utf8 | DataType::Binary, _) => field.with_data_type(DataType::BinaryView),
            (DataType::Struct(inner), Some(of_file)) if of_file.is_group() => {
                let inner = hinted(inner, of_file.get_fields());
                field.with_data_type(DataType::Struct(inner))
            }
            (DataType::Timestamp(..), Some(of_file))
                if of_file.is_primitive() && of_file.get_physical_type() == PhysicalType::INT96 =>
            {
                field.with_data_type(DataType::Timestamp(TimeUnit::Microsecond, None))
            }
            _ => field,
        }
    };
    fields.iter().map(hinted).collect()
}

/// Returns a column of strings without the annotation that its values are strings, also if they lie within it.
fn plain_bytes(field: &Arc<Type>) -> parquet::errors::Result<Arc<Type>> {
    let info = field.get_basic_info();
    let is_struct =
        field.is_group() && info.logical_type_ref().is_none() && info.converted_type() == ConvertedType::NONE;
    if is_struct && info.has_repetition() && info.repetition() != Repetition::REPEATED {
        let inner = field.get_fields().iter().map(plain_bytes).collect::<parquet::errors::Result<Vec<_>>>()?;
        let group = Type::group_type_builder(field.name()).with_repetition(info.repetition()).with_fields(inner);
        return Ok(Arc::new(group.build()?));
    }
    let flat = info.has_repetition() && info.repetition() != Repetition::REPEATED;
    if !field.is_primitive() || field.get_physical_type() != PhysicalType::BYTE_ARRAY || !flat {
        return Ok(Arc::clone(field));
    }
    let plain = Type::primitive_type_builder(field.name(), PhysicalType::BYTE_ARRAY);
    Ok(Arc::new(plain.with_repetition(info.repetition()).build()?))
}

/// A reader of the row groups of a task.
struct TaskReader {
    parquet: Arc<ParquetFile>,
    shape: Arc<Shape>,
    groups: std::vec::IntoIter<(usize, RowGroup)>,
    group: Option<GroupReader>,
    /// The number of the first row of the next row group, counted from 1.
    first_row: u64,
    columns: DocumentColumns,
    keep_types: Vec<DataType>,
    context: ReadContext,
}

struct GroupReader {
    index: usize,
    group: RowGroup,
    rows_done: u64,
    batch_rows: usize,
    known: (u64, bytes::Bytes),
    open: Option<(ParquetRecordBatchReader, Arc<GroupState>)>,
}

impl TaskReader {
    /// Begins the next row group. Returns `false` if there is none.
    async fn begin_group(&mut self) -> Result<bool> {
        let Some((index, group)) = self.groups.next() else {
            return Ok(false);
        };
        self.shape.leaves.iter().try_for_each(|&leaf| self.parquet.chunk_range(index, leaf).map(drop))?;
        let known = AssertUnwindSafe(PagedRowGroup::small(&self.parquet, index, &self.shape.leaves)).catch_unwind();
        let url = &self.parquet.file.url;
        let known = match known.await {
            Ok(known) => known.map_err(|e| of_parquet(url, e))?,
            Err(panic) => return Err(panicked(url, &*panic)),
        };
        let batch_rows = batch_rows(group, &self.context.limits);
        self.group = Some(GroupReader { index, group, rows_done: 0, batch_rows, known, open: None });
        Ok(true)
    }

    /// Returns the next batch of the row group, or one without rows at its end.
    fn next(&mut self) -> Result<DocumentBatch> {
        let url = self.parquet.file.url.clone();
        let Some(mut group) = self.group.take() else {
            return Ok(DocumentBatch::empty());
        };
        let batch = caught(&url, || self.next_of(&mut group))?;
        let n = batch.rows.len() as u64;
        group.rows_done += n;
        if n > 0 && group.rows_done <= group.group.rows {
            self.group = Some(group);
            return Ok(batch);
        }
        if group.rows_done != group.group.rows {
            let reason =
                format!("row group {} has not the {} rows that its footer says", group.index, group.group.rows);
            return Err(bad_file(url, reason));
        }
        self.first_row += group.group.rows;
        Ok(batch)
    }

    fn next_of(&self, group: &mut GroupReader) -> Result<DocumentBatch> {
        loop {
            let (reader, state) = match &mut group.open {
                Some(open) => open,
                closed => closed.insert(self.open(group.index, group.batch_rows, &group.known, group.rows_done)?),
            };
            state.begin_batch();
            let next = reader.next();
            if state.unchecked.load(Ordering::Relaxed) {
                self.context.unchecked.set();
            }
            match next {
                None => return Ok(DocumentBatch::empty()),
                Some(Ok(batch)) => return self.to_documents(&batch, self.first_row + group.rows_done),
                Some(Err(error)) => {
                    let fewer = state.fewer_rows.load(Ordering::Relaxed);
                    let failure = state.take_failure();
                    group.open = None;
                    match failure {
                        Some(failure) => return Err(failure),
                        None if fewer > 0 => group.batch_rows = fewer,
                        None => return Err(self.in_row_group(group.index, error)),
                    }
                }
            }
        }
    }

    fn in_row_group(&self, row_group: usize, error: ArrowError) -> Fault {
        let fault = of_arrow(&self.parquet.file.url, error);
        if fault.matter() == Some(&Unreadable::Damaged) { fault.row_group(row_group) } else { fault }
    }

    fn open(
        &self,
        row_group: usize,
        batch_rows: usize,
        known: &(u64, bytes::Bytes),
        skip: u64,
    ) -> Result<(ParquetRecordBatchReader, Arc<GroupState>)> {
        let of_parquet = |e| of_parquet(&self.parquet.file.url, e);
        refuse_codec(&self.parquet, row_group, &self.shape.leaves)?;
        let Shape { schema, mask, hint, .. } = self.shape.as_ref();
        let levels = parquet_to_arrow_field_levels(schema, mask.clone(), Some(hint)).map_err(of_parquet)?;
        let state = Arc::new(GroupState::new(&self.context.limits, batch_rows, Handle::current()));
        let (parquet, known) = (Arc::clone(&self.parquet), known.clone());
        let pages = PagedRowGroup { parquet, row_group, state: Arc::clone(&state), known };
        let rest = |rows| RowSelection::from(vec![RowSelector::skip(count(skip)), RowSelector::select(rows)]);
        let selection = (skip > 0).then(|| rest(count(self.parquet.row_group_rows(row_group).saturating_sub(skip))));
        let reader = ParquetRecordBatchReader::try_new_with_row_groups(&levels, &pages, batch_rows, selection);
        let reader = reader.map_err(|e| state.take_failure().unwrap_or_else(|| of_parquet(e)))?;
        Ok((reader, state))
    }

    fn to_documents(&self, batch: &RecordBatch, first_row: u64) -> Result<DocumentBatch> {
        let url = &self.parquet.file.url;
        let found = |name: &str| match nested::column(batch, name).map_err(|error| of_arrow(url, error))? {
            Some(column) => Ok(column),
            None => Columns { batch, file: url }.get(name).cloned(),
        };
        let mut faults = vec![None; batch.num_rows()];
        let ids = ids(url, &found(&self.columns.id)?, &mut faults)?;
        let texts = found(&self.columns.text)?;
        let texts = texts.as_binary_view_opt().cloned().unwrap_or_else(|| BinaryViewArray::new_null(texts.len()));
        let mut keep = Vec::new();
        for (name, data_type) in self.columns.kept().zip(&self.keep_types) {
            let values = found(name)?;
            let values = match values.as_binary_view_opt() {
                Some(bytes) => Arc::new(strings(bytes, &mut faults)) as ArrayRef,
                None => values,
            };
            let unreadable = |e| bad_file(url, format!("column '{name}': {e}"));
            keep.push(to_keep_type(&values, data_type, &mut faults).map_err(unreadable)?);
        }
        let newest_by = match keep.split_off(self.columns.keep.len().min(keep.len())).pop() {
            Some(values) => newness(&values, &mut faults).map_err(|error| of_arrow(url, error))?,
            None => Int64Array::new_null(batch.num_rows()),
        };
        let rows = (first_row..).take(batch.num_rows()).collect();
        let max_doc_bytes = self.context.max_doc_bytes;
        Ok(DocumentBatch { ids, texts, keep, newest_by, rows, faults, revisits: None, max_doc_bytes })
    }
}

/// Returns the rows of a batch. If its texts are as long as the average of the row group, they take half of the batch's
/// share of memory.
fn batch_rows(group: RowGroup, limits: &ReadLimits) -> usize {
    let rows = (limits.batch_bytes / 2).saturating_mul(group.rows.max(1)) / group.text_bytes.max(1);
    count(rows).clamp(1, BATCH_ROWS)
}

/// Refuses columns whose codec cannot be read.
///
/// # Errors
/// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData), which names the column and the codec.
pub fn refuse_codec(parquet: &ParquetFile, row_group: usize, leaves: &[usize]) -> Result<()> {
    for &leaf in leaves {
        let chunk = parquet.footer().row_group(row_group).column(leaf);
        if chunk.compression() == Compression::LZO {
            let reason =
                format!("column '{}' is compressed with LZO: write it with another codec", chunk.column_path());
            return Err(bad_file(&parquet.file.url, reason));
        }
    }
    Ok(())
}

/// Returns ids as text. Ids of 16 bytes are written as UUIDs.
fn ids(url: &str, values: &ArrayRef, faults: &mut [Option<BadReason>]) -> Result<StringArray> {
    if let Some(bytes) = values.as_binary_view_opt() {
        return Ok(strings(bytes, faults));
    }
    id_texts(values).map_err(|e| of_arrow(url, e))
}

/// Returns ids, which are texts, integers or values of 16 bytes, as text. Those of 16 bytes are written as UUIDs.
///
/// # Errors
/// The values have another type.
pub fn id_texts(values: &dyn Array) -> std::result::Result<StringArray, ArrowError> {
    match values.as_fixed_size_binary_opt().filter(|bytes| bytes.value_length() == 16) {
        Some(bytes) => Ok(uuids(bytes)),
        None => Ok(cast(values, &DataType::Utf8)?.as_string::<i32>().clone()),
    }
}

/// Returns values as text. A value that is not text becomes NULL, and its row gets the reason as a fault.
fn strings(values: &BinaryViewArray, faults: &mut [Option<BadReason>]) -> StringArray {
    let mut text = StringBuilder::with_capacity(values.len(), 0);
    for (value, fault) in values.iter().zip(faults) {
        let value = value.map(|bytes| match bytes.len() {
            n if n > MAX_VALUE_BYTES => Err(BadReason::TooLarge),
            _ => std::str::from_utf8(bytes).map_err(|_| BadReason::InvalidUtf8),
        });
        match value.transpose() {
            Ok(value) => text.append_option(value),
            Err(reason) => {
                fault.get_or_insert(reason);
                text.append_null();
            }
        }
    }
    text.finish()
}

/// Returns values of 16 bytes as UUIDs.
fn uuids(values: &FixedSizeBinaryArray) -> StringArray {
    let uuid = |bytes: &[u8]| {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| hex[part].to_owned()).join("-")
    };
    values.iter().map(|value| value.map(uuid)).collect()
}

fn wrong_type(parquet: &ParquetFile, column: &str, got: &DataType, expected: &'static str) -> Fault {
    column_type(parquet.file.url.clone(), column.to_owned(), keep_type_name(got), expected)
}

/// Adds to the error of a missing column which columns look like those that are meant.
fn with_hint(parquet: &ParquetFile, columns: &DocumentColumns, error: Fault) -> Fault {
    let named = |fits: fn(&DataType) -> bool| -> Vec<String> {
        let fields = parquet.schema().fields().iter().filter(|field| fits(field.data_type()));
        fields.map(|field| field.name().clone()).collect()
    };
    let ids =
        named(|t| t.is_integer() || matches!(t, DataType::Utf8 | DataType::Binary | DataType::FixedSizeBinary(16)));
    let texts = named(|t| matches!(t, DataType::Utf8 | DataType::Binary));
    let (Some(BadColumn::Missing { present }), Some(column)) = (error.matter(), &error.place().column) else {
        return error;
    };
    let nested = hint::nested(column, present);
    let remedy = nested.unwrap_or_else(|| hint::remedy(columns, column, &ids, &texts));
    error.remedy(remedy)
}

/// Returns the type of a column, which may lie within another one. The name of a column that is read must be its own.
fn data_type<'a>(parquet: &'a ParquetFile, column: &str, remedy: &'static str) -> Result<&'a DataType> {
    let fields = parquet.schema().fields();
    if nested::is_ambiguous(fields, column) {
        return Err(ambiguous_column(&parquet.file.url, column));
    }
    nested::data_type(fields, column).map_or_else(|| parquet.data_type(column, remedy), Ok)
}

fn id_type(parquet: &ParquetFile, columns: &DocumentColumns) -> Result<DataType> {
    match data_type(parquet, &columns.id, "set id_column or rename it").map_err(|e| with_hint(parquet, columns, e))? {
        DataType::Utf8 | DataType::FixedSizeBinary(16) => Ok(DataType::Utf8),
        DataType::Binary if columns.binary_as_utf8 => Ok(DataType::Utf8),
        t if t.is_integer() => Ok(DataType::Int64),
        other => Err(wrong_type(parquet, &columns.id, other, "string or integer")),
    }
}

fn require_text(parquet: &ParquetFile, columns: &DocumentColumns) -> Result<()> {
    match data_type(parquet, &columns.text, "set text_column or rename it")
        .map_err(|e| with_hint(parquet, columns, e))?
    {
        DataType::Utf8 => Ok(()),
        DataType::Binary if columns.binary_as_utf8 => Ok(()),
        DataType::Binary => Err(wrong_type(
            parquet,
            &columns.text,
            &DataType::Binary,
            "string (or set binary_as_utf8, if its bytes are UTF-8)",
        )),
        other => Err(wrong_type(parquet, &columns.text, other, "string")),
    }
}

fn keep_column_type(parquet: &ParquetFile, columns: &DocumentColumns, column: &str) -> Result<DataType> {
    let got = data_type(parquet, column, hint::of_kept(columns, column))?;
    keep_type(got).ok_or_else(|| wrong_type(parquet, column, got, "a number, string, date or timestamp"))
}
