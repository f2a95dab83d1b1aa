//! Filtering Parquet files. Columns are copied one after another as values and levels, below Arrow's types, so that a
//! copy has exactly the schema of the file, whatever its columns are, and a row group takes no more memory than a few
//! pages of one column.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::Array;
use futures::{FutureExt, TryStreamExt};
use nearprint_fault::{Fault, Result, key, words};
use nearprint_parquet::{GroupState, PagedRowGroup, ParquetFile, ReadLimits, count, of_parquet};
use nearprint_storage::{InputFile, bad_file, blocking, caught};
use parquet::arrow::arrow_reader::RowGroups;
use parquet::basic::{Repetition, Type as PhysicalType};
use parquet::column::reader::{ColumnReaderImpl, get_column_reader, get_typed_column_reader};
use parquet::data_type::{
    BoolType, ByteArrayType, DataType, DoubleType, FixedLenByteArrayType, FloatType, Int32Type, Int64Type, Int96Type,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use tokio::runtime::Handle;

use super::filter::{FileFilter, FilterOutput, FilterTarget, Filtered, Judge, RowCounts};
use super::parquet::{ParquetDocuments, refuse_codec};
use super::reader::DocumentReader;

/// The name of the column that says whether a document is kept.
const KEEP: &str = "keep";

/// The largest number of rows of a column that are copied at once.
const BATCH_ROWS: usize = 8192;

/// Copies the rows of a file that a filter lets through. The copy has the schema, the metadata, the codecs and the row
/// groups of the file, but no row groups without rows.
pub fn filter(file: InputFile, filter: FileFilter, target: FilterTarget) -> Filtered {
    copy(file, filter, target).boxed()
}

async fn copy(file: InputFile, filter: FileFilter, target: FilterTarget) -> Result<RowCounts> {
    let (documents, parquet, columns) = ParquetDocuments::of_ids(file, &filter.columns).await?;
    let url = parquet.file.url.clone();
    let mut copy = Copy::try_new(parquet, &filter, target)?;
    let context = filter.context();
    let mut judge = Judge::new(filter);
    let mut first_row = 1;
    for group in 0..copy.parquet.n_row_groups() {
        let n_rows = copy.parquet.row_group_rows(group);
        let mut kept = Vec::with_capacity(count(n_rows.min(1 << 20)));
        let mut batches = documents.read(group..group + 1, &columns, &[], &context);
        while let Some(batch) = batches.try_next().await? {
            for (at, &row) in batch.rows.iter().enumerate() {
                let id = || (!batch.ids.is_null(at)).then(|| batch.ids.value(at));
                // The reader leaves out rows that the file's table has deleted.
                kept.resize(count(row - first_row), false);
                kept.push(judge.keeps(&url, row, id)?);
            }
        }
        kept.resize(count(n_rows), false);
        first_row += n_rows;
        copy = blocking("filtering", move || {
            let url = copy.parquet.file.url.clone();
            caught(&url, || copy.row_group(group, &kept).map(|()| copy))
        })
        .await?;
    }
    blocking("writing", move || copy.finish()).await?;
    judge.finish(&url)
}

/// A copy that is being written.
struct Copy {
    parquet: Arc<ParquetFile>,
    /// The columns that are copied.
    leaves: Vec<usize>,
    output: FilterOutput,
    limits: ReadLimits,
    writer: SerializedFileWriter<File>,
    /// The name of the copy in messages.
    name: String,
}

impl Copy {
    fn try_new(parquet: Arc<ParquetFile>, filter: &FileFilter, target: FilterTarget) -> Result<Self> {
        let (schema, leaves) = match filter.output {
            FilterOutput::Survivors => {
                let schema = parquet.footer().file_metadata().schema_descr();
                (schema.root_schema_ptr(), (0..schema.num_columns()).collect())
            }
            FilterOutput::Flags => flags_schema(&parquet, &filter.columns.id)?,
        };
        let properties = properties(&parquet, &leaves, filter.output);
        let name = target.name;
        let writer = SerializedFileWriter::new(target.file, schema, Arc::new(properties));
        let writer = writer.map_err(|e| cannot_write(&name, e))?;
        Ok(Self { parquet, leaves, output: filter.output, limits: filter.limits.clone(), writer, name })
    }

    /// Copies the rows of a row group of which `kept` says that they are kept.
    fn row_group(&mut self, group: usize, kept: &[bool]) -> Result<()> {
        refuse_codec(&self.parquet, group, &self.leaves)?;
        let all = vec![true; if self.output == FilterOutput::Flags { kept.len() } else { 0 }];
        let copied = if self.output == FilterOutput::Flags { &all } else { kept };
        if !copied.contains(&true) {
            return Ok(());
        }
        let name = &self.name;
        let failed = |e| cannot_write(name, e);
        let mut rows = self.writer.next_row_group().map_err(failed)?;
        let missing = || Fault::internal("filter", "a column has no writer");
        for &leaf in &self.leaves {
            let mut column = rows.next_column().map_err(failed)?.ok_or_else(missing)?;
            let source = Source { parquet: &self.parquet, group, leaf, limits: &self.limits, target: name };
            source.copy_any(copied, &mut column)?;
            column.close().map_err(failed)?;
        }
        if self.output == FilterOutput::Flags {
            let mut column = rows.next_column().map_err(failed)?.ok_or_else(missing)?;
            column.typed::<BoolType>().write_batch(kept, None, None).map_err(failed)?;
            column.close().map_err(failed)?;
        }
        rows.close().map_err(failed)?;
        Ok(())
    }

    fn finish(self) -> Result<()> {
        let Self { mut writer, name, .. } = self;
        writer.finish().map(drop).map_err(|e| cannot_write(&name, e))
    }
}

/// Returns a schema of the ids as the file has them and of the flags, and the column of the ids.
fn flags_schema(parquet: &ParquetFile, id: &str) -> Result<(Arc<Type>, Vec<usize>)> {
    if id == KEEP {
        return Err(Fault::config(
            "id_column",
            words![
                format!("the flags have a column '{KEEP}' too: filter without "),
                key("flag"),
                ", or rename the column of ids"
            ],
        ));
    }
    let of_parquet = |e| of_parquet(&parquet.file.url, e);
    let schema = parquet.footer().file_metadata().schema_descr();
    let is_id = |leaf: &usize| schema.column(*leaf).path().parts() == [id.to_owned()];
    let leaf = (0..schema.num_columns()).find(is_id);
    let leaf = leaf.ok_or_else(|| {
        let lies = format!("column '{id}' lies in another column, or has columns inside: filter without ");
        Fault::config("id_column", words![lies, key("flag")])
    })?;
    let keep = Type::primitive_type_builder(KEEP, PhysicalType::BOOLEAN).with_repetition(Repetition::REQUIRED).build();
    let fields = vec![schema.get_column_root_ptr(leaf), Arc::new(keep.map_err(of_parquet)?)];
    let root = Type::group_type_builder("schema").with_fields(fields).build().map_err(of_parquet)?;
    Ok((Arc::new(root), vec![leaf]))
}

/// Returns properties by which the copy is packed like the file, and has statistics and indexes where the file has some.
fn properties(parquet: &ParquetFile, leaves: &[usize], output: FilterOutput) -> WriterProperties {
    let footer = parquet.footer();
    let metadata = footer.file_metadata().key_value_metadata().cloned().filter(|_| output == FilterOutput::Survivors);
    let mut builder = WriterProperties::builder().set_key_value_metadata(metadata);
    let Some(group) = footer.row_groups().first() else { return builder.build() };
    if output == FilterOutput::Survivors {
        let sorted = group.sorting_columns().cloned();
        builder = builder.set_sorting_columns(
            sorted.filter(|sorted| footer.row_groups().iter().all(|group| group.sorting_columns() == Some(sorted))),
        );
    }
    let chunks = leaves.iter().map(|&leaf| group.column(leaf));
    builder = builder.set_offset_index_disabled(chunks.clone().all(|chunk| chunk.offset_index_offset().is_none()));
    chunks.fold(builder, like).build()
}

fn like(builder: WriterPropertiesBuilder, chunk: &ColumnChunkMetaData) -> WriterPropertiesBuilder {
    let statistics = match (chunk.column_index_offset(), chunk.statistics()) {
        (Some(_), _) => EnabledStatistics::Page,
        (None, Some(_)) => EnabledStatistics::Chunk,
        (None, None) => EnabledStatistics::None,
    };
    let path = || chunk.column_path().clone();
    let builder = builder.set_column_compression(path(), chunk.compression());
    let builder = builder.set_column_dictionary_enabled(path(), chunk.dictionary_page_offset().is_some());
    builder.set_column_statistics_enabled(path(), statistics)
}

pub fn cannot_write(name: &str, error: ParquetError) -> Fault {
    match error {
        ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(io) => Fault::io(name)(*io),
            Err(other) => Fault::internal("filter", format!("{name}: {other}")),
        },
        other => Fault::internal("filter", format!("{name}: {other}")),
    }
}

/// A column of a row group.
struct Source<'a> {
    parquet: &'a Arc<ParquetFile>,
    group: usize,
    leaf: usize,
    limits: &'a ReadLimits,
    /// The name of the copy in messages.
    target: &'a str,
}

impl Source<'_> {
    fn copy_any(&self, kept: &[bool], column: &mut SerializedColumnWriter<'_>) -> Result<()> {
        match self.chunk().column_type() {
            PhysicalType::BOOLEAN => self.copy::<BoolType>(kept, column),
            PhysicalType::INT32 => self.copy::<Int32Type>(kept, column),
            PhysicalType::INT64 => self.copy::<Int64Type>(kept, column),
            PhysicalType::INT96 => self.copy::<Int96Type>(kept, column),
            PhysicalType::FLOAT => self.copy::<FloatType>(kept, column),
            PhysicalType::DOUBLE => self.copy::<DoubleType>(kept, column),
            PhysicalType::BYTE_ARRAY => self.copy::<ByteArrayType>(kept, column),
            PhysicalType::FIXED_LEN_BYTE_ARRAY => self.copy::<FixedLenByteArrayType>(kept, column),
        }
    }

    /// Copies the values of the rows that are kept. If the pages of a batch take more memory than its share, the column
    /// is read again from there on, in smaller batches.
    fn copy<D: DataType>(&self, kept: &[bool], column: &mut SerializedColumnWriter<'_>) -> Result<()> {
        self.parquet.chunk_range(self.group, self.leaf)?;
        let descriptor = self.chunk().column_descr();
        let mut values = Values::<D>::new(descriptor.max_def_level(), descriptor.max_rep_level());
        let (mut n_done, mut batch_rows) = (0, self.batch_rows());
        'opened: loop {
            let state = Arc::new(GroupState::new(self.limits, batch_rows, Handle::current()));
            let mut reader = self.open::<D>(&state)?;
            let mut n_to_skip = n_done;
            loop {
                state.begin_batch();
                let read = match n_to_skip {
                    0 => values.read(&mut reader, batch_rows),
                    skip => reader.skip_records(skip.min(batch_rows)),
                };
                match read {
                    Ok(0) => break 'opened,
                    Ok(n) if n_to_skip > 0 => n_to_skip -= n,
                    Ok(n) => {
                        let kept = kept.get(n_done..n_done + n);
                        kept.and_then(|kept| values.retain(kept)).ok_or_else(|| self.wrong_rows())?;
                        values.write(column).map_err(|e| cannot_write(self.target, e))?;
                        n_done += n;
                    }
                    Err(error) => match (state.take_failure(), state.fewer_rows.load(Ordering::Relaxed)) {
                        (Some(failure), _) => return Err(failure),
                        (None, 0) => return Err(of_parquet(&self.parquet.file.url, error)),
                        (None, fewer) => {
                            batch_rows = fewer;
                            continue 'opened;
                        }
                    },
                }
            }
        }
        if n_done == kept.len() { Ok(()) } else { Err(self.wrong_rows()) }
    }

    fn open<D: DataType>(&self, state: &Arc<GroupState>) -> Result<ColumnReaderImpl<D>> {
        let known = (0, bytes::Bytes::new());
        let (parquet, row_group) = (Arc::clone(self.parquet), self.group);
        let pages = PagedRowGroup { parquet, row_group, state: Arc::clone(state), known };
        let of_parquet = |e| of_parquet(&self.parquet.file.url, e);
        let mut chunks = pages.column_chunks(self.leaf).map_err(of_parquet)?;
        let nothing = || Fault::internal("filter", "a column has no chunk");
        let chunk = chunks.next().ok_or_else(nothing)?.map_err(of_parquet)?;
        Ok(get_typed_column_reader::<D>(get_column_reader(self.chunk().column_descr_ptr(), chunk)))
    }

    fn chunk(&self) -> &ColumnChunkMetaData {
        self.parquet.footer().row_group(self.group).column(self.leaf)
    }

    /// Returns the rows of a batch. If the rows are as long as the average of the row group, their pages take half of the
    /// batch's share of memory.
    fn batch_rows(&self) -> usize {
        let bytes = self.chunk().uncompressed_size().max(1).unsigned_abs();
        let rows = self.parquet.row_group_rows(self.group).max(1);
        count((self.limits.batch_bytes / 2).saturating_mul(rows) / bytes).clamp(1, BATCH_ROWS)
    }

    fn wrong_rows(&self) -> Fault {
        let (column, group) = (self.chunk().column_path().string(), self.group);
        let rows = self.parquet.row_group_rows(group);
        let reason = format!("column '{column}' of row group {group} has not the {rows} rows that its footer says");
        bad_file(&self.parquet.file.url, reason)
    }
}

/// Values of a column with their levels.
struct Values<D: DataType> {
    values: Vec<D::T>,
    definition: Vec<i16>,
    repetition: Vec<i16>,
    max_definition: i16,
    max_repetition: i16,
}

impl<D: DataType> Values<D> {
    fn new(max_definition: i16, max_repetition: i16) -> Self {
        Self { values: Vec::new(), definition: Vec::new(), repetition: Vec::new(), max_definition, max_repetition }
    }

    /// Reads the next rows in place of those before, and returns their number.
    fn read(&mut self, reader: &mut ColumnReaderImpl<D>, rows: usize) -> parquet::errors::Result<usize> {
        self.values.clear();
        self.definition.clear();
        self.repetition.clear();
        let definition = (self.max_definition > 0).then_some(&mut self.definition);
        let repetition = (self.max_repetition > 0).then_some(&mut self.repetition);
        reader.read_records(rows, definition, repetition, &mut self.values).map(|(rows, ..)| rows)
    }

    /// Keeps the values and levels of the rows that `kept` says. Returns `None` if there are more rows.
    fn retain(&mut self, kept: &[bool]) -> Option<()> {
        if kept.iter().all(|&keep| keep) {
            return Some(());
        }
        let n_levels = if self.max_definition > 0 { self.definition.len() } else { self.values.len() };
        let (mut n_rows, mut value) = (0usize, 0);
        let (mut n_levels_kept, mut n_values_kept) = (0, 0);
        for level in 0..n_levels {
            if self.repetition.get(level).is_none_or(|&repetition| repetition == 0) {
                n_rows += 1;
            }
            let row = n_rows.checked_sub(1);
            let keep = *kept.get(row?)?;
            if self.definition.get(level).is_none_or(|&definition| definition == self.max_definition) {
                if keep {
                    self.values.swap(n_values_kept, value);
                    n_values_kept += 1;
                }
                value += 1;
            }
            if keep {
                move_level(&mut self.definition, level, n_levels_kept);
                move_level(&mut self.repetition, level, n_levels_kept);
                n_levels_kept += 1;
            }
        }
        debug_assert!(
            n_values_kept <= n_levels_kept && n_levels_kept <= n_levels,
            "a value has a level, and none is added"
        );
        self.values.truncate(n_values_kept);
        self.definition.truncate(n_levels_kept);
        self.repetition.truncate(n_levels_kept);
        Some(())
    }

    fn write(&self, column: &mut SerializedColumnWriter<'_>) -> parquet::errors::Result<()> {
        let definition = (self.max_definition > 0).then_some(self.definition.as_slice());
        let repetition = (self.max_repetition > 0).then_some(self.repetition.as_slice());
        column.typed::<D>().write_batch(&self.values, definition, repetition).map(drop)
    }
}

fn move_level(levels: &mut [i16], from: usize, to: usize) {
    if let Some(&level) = levels.get(from) {
        levels[to] = level;
    }
}
