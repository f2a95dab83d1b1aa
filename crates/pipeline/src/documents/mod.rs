//! Documents: rows of Parquet or JSONL files with an id, a text and, where asked for, keep-order columns.

mod jsonl;
mod keep_column;
mod parquet;

use std::collections::{BTreeMap, BTreeSet};

use ::arrow::array::{Array, ArrayRef, StringArray};
use ::arrow::datatypes::DataType;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};

use crate::error::{PipelineError, Result};
use crate::storage::{InputFile, Storage};
use crate::tasks::FingerprintTask;
use jsonl::JsonlFile;
pub(crate) use keep_column::keep_type_name;
use parquet::ParquetDocuments;

/// Which columns hold what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentColumns {
    /// Strings or integers, unique.
    pub id: String,
    /// Strings.
    pub text: String,
    /// Columns of the keep order.
    pub keep: Vec<String>,
}

impl Default for DocumentColumns {
    fn default() -> Self {
        Self { id: "id".to_owned(), text: "text".to_owned(), keep: Vec::new() }
    }
}

/// Rows of a file, in its order.
#[derive(Debug, Clone)]
pub(crate) struct DocumentBatch {
    /// Ids as text; null where the file has none.
    pub ids: StringArray,
    pub texts: StringArray,
    /// One array for each keep-order column: Int64, Float64 or Utf8.
    pub keep: Vec<ArrayRef>,
    /// Each row's number in the file, from 1; the line of a text file.
    pub rows: Vec<u64>,
}

/// Document files whose columns were checked against each other; nothing of their rows is read yet.
#[derive(Debug, Default)]
pub struct Documents {
    files: BTreeMap<String, DocumentFile>,
    columns: DocumentColumns,
    keep_types: Vec<DataType>,
    /// Files that are neither Parquet nor JSONL, passed over.
    pub ignored: Vec<String>,
}

#[derive(Debug)]
enum DocumentFile {
    Parquet(ParquetDocuments),
    Jsonl(JsonlFile),
}

/// Rows of a batch: enough to keep every core in work, few enough that long texts stay bounded.
const BATCH_ROWS: usize = 1024;

/// Row groups are joined into one task up to this many rows.
const TASK_ROWS: u64 = 200_000;

impl Documents {
    /// Opens the files of a path, folder, glob or S3 prefix: reads every footer, or first line, and checks that columns are
    /// there and of one type.
    ///
    /// # Errors
    /// Naming file and column.
    pub async fn open(storage: &Storage, pattern: &str, columns: DocumentColumns) -> Result<Self> {
        let listed = storage.files(pattern, "documents").await?;
        let one_file = listed.len() == 1 && listed[0].url == pattern;
        let (mut files, mut ignored) = (BTreeMap::new(), Vec::new());
        for file in listed {
            match Format::of(&file.url) {
                Some(Format::Parquet) => {
                    files
                        .insert(file.url.clone(), DocumentFile::Parquet(ParquetDocuments::open(file, &columns).await?));
                }
                Some(Format::Jsonl) => {
                    files.insert(file.url.clone(), DocumentFile::Jsonl(JsonlFile::open(file, &columns).await?));
                }
                None if one_file => {
                    return Err(PipelineError::bad_file(
                        file.url,
                        "its name ends neither in .parquet nor in .jsonl or .ndjson, .gz or .zst allowed",
                    ));
                }
                None => ignored.push(file.url),
            }
        }
        if files.is_empty() {
            let remedy = "the files there are neither .parquet nor .jsonl[.gz|.zst]";
            return Err(PipelineError::InputMissing { what: "documents", url: pattern.to_owned(), remedy });
        }
        let keep_types = one_schema(&files, &columns)?;
        Ok(Self { files, columns, keep_types, ignored })
    }

    /// The files, by path.
    pub fn files(&self) -> impl Iterator<Item = &InputFile> {
        self.files.values().map(|f| match f {
            DocumentFile::Parquet(f) => f.file(),
            DocumentFile::Jsonl(f) => &f.file,
        })
    }

    /// Rows of all files; none where a JSONL file does not say.
    pub(crate) fn n_rows(&self) -> Option<u64> {
        self.files
            .values()
            .map(|f| match f {
                DocumentFile::Parquet(f) => Some(f.n_rows()),
                DocumentFile::Jsonl(_) => None,
            })
            .sum()
    }

    /// Type of each keep-order column.
    pub(crate) fn keep_types(&self) -> &[DataType] {
        &self.keep_types
    }

    /// The work, cut into tasks: row groups of Parquet files, whole JSONL files.
    #[must_use]
    pub fn tasks(&self) -> Vec<FingerprintTask> {
        let cut = self.files.iter().flat_map(|(url, file)| {
            match file {
                DocumentFile::Parquet(f) => f.row_group_ranges(TASK_ROWS),
                DocumentFile::Jsonl(_) => std::iter::once(0..1).collect(),
            }
            .into_iter()
            .map(move |row_groups| FingerprintTask { file: url.clone(), row_groups })
        });
        cut.collect()
    }

    /// The rows of a task, in file order.
    pub(crate) fn read(&self, task: &FingerprintTask) -> Result<BoxStream<'static, Result<DocumentBatch>>> {
        match self.files.get(&task.file) {
            Some(DocumentFile::Parquet(f)) => f.read(task.row_groups.clone(), &self.columns, &self.keep_types),
            Some(DocumentFile::Jsonl(f)) => Ok(f.read(&self.columns, &self.keep_types).boxed()),
            None => {
                Err(PipelineError::Internal { stage: "read", reason: format!("no file {} in this run", task.file) })
            }
        }
    }
}

impl Documents {
    /// The texts of these ids, none for NULL; ids that are not there are left out. Reads no further than it must, and keeps no
    /// other texts.
    pub(crate) async fn texts_of(&self, mut wanted: BTreeSet<&str>) -> Result<BTreeMap<String, Option<String>>> {
        let mut found = BTreeMap::new();
        for task in self.tasks() {
            let mut batches = self.read(&task)?;
            while !wanted.is_empty()
                && let Some(batch) = batches.try_next().await?
            {
                for i in (0..batch.ids.len()).filter(|&i| batch.ids.is_valid(i)) {
                    if wanted.remove(batch.ids.value(i)) {
                        let text = batch.texts.is_valid(i).then(|| batch.texts.value(i).to_owned());
                        found.insert(batch.ids.value(i).to_owned(), text);
                    }
                }
            }
        }
        Ok(found)
    }
}

#[derive(Debug, Clone, Copy)]
enum Format {
    Parquet,
    Jsonl,
}

impl Format {
    fn of(url: &str) -> Option<Self> {
        let name = url.rsplit('/').next().unwrap_or(url).to_ascii_lowercase();
        let plain = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
        match plain.rsplit_once('.')?.1 {
            "parquet" => Some(Self::Parquet),
            "jsonl" | "ndjson" => Some(Self::Jsonl),
            _ => None,
        }
    }
}

/// Every column has one type in all files, whole numbers and others taken for one; gives the keep-order columns'.
fn one_schema(files: &BTreeMap<String, DocumentFile>, columns: &DocumentColumns) -> Result<Vec<DataType>> {
    let mut first: BTreeMap<&str, (&str, DataType)> = BTreeMap::new();
    for (url, file) in files {
        let types = match file {
            DocumentFile::Parquet(f) => f.column_types(),
            DocumentFile::Jsonl(f) => &f.column_types,
        };
        for (column, data_type) in types {
            let (first_file, known) = first.entry(column).or_insert((url, data_type.clone()));
            *known = one_type(known, data_type).ok_or_else(|| PipelineError::SchemaDrift {
                file: url.clone(),
                column: column.clone(),
                got: keep_type_name(data_type),
                first_file: (*first_file).to_owned(),
                first: keep_type_name(known),
            })?;
        }
    }
    Ok(columns.keep.iter().map(|c| first.get(c.as_str()).map_or(DataType::Utf8, |(_, t)| t.clone())).collect())
}

fn one_type(a: &DataType, b: &DataType) -> Option<DataType> {
    match (a, b) {
        _ if a == b => Some(a.clone()),
        (DataType::Int64, DataType::Float64) | (DataType::Float64, DataType::Int64) => Some(DataType::Float64),
        _ => None,
    }
}
