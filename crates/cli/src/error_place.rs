//! The file, column and row that an error is about.

use nearprint_delta::DeltaError;
use nearprint_documents::DocumentsError;
use nearprint_parquet::DatasetError;
use nearprint_pipeline::PipelineError;
use nearprint_storage::StorageError;
use nearprint_store::StoreError;
use nearprint_tasks::TaskError;

/// The file, column and row that an error is about, as far as it is about one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErrorPlace {
    /// The path or URL of a file, or of the place where files were expected.
    pub file: Option<String>,
    /// The column.
    pub column: Option<String>,
    /// The number of the row, counted from 1. For a text file it is the line.
    pub row: Option<u64>,
}

impl ErrorPlace {
    pub(crate) fn of(error: &PipelineError) -> Self {
        match error {
            PipelineError::NightsMissing { url }
            | PipelineError::NightMissing { url, .. }
            | PipelineError::OutputExists { url, .. }
            | PipelineError::StaleNight { output: url, .. }
            | PipelineError::InputChanged { url, .. } => Self::file(url),
            PipelineError::NightNotPublished { store, .. } => Self::file(store),
            PipelineError::NoSpace { path, .. } => Self::file(&path.display().to_string()),
            PipelineError::Documents(error) => Self::of_documents(error),
            PipelineError::Delta(error) => Self::of_delta(error),
            PipelineError::Dataset(error) => Self::of_dataset(error),
            PipelineError::Task(error) => Self::of_task(error),
            PipelineError::Store(error) => Self::of_store(error),
            PipelineError::Storage(error) => Self::of_storage(error),
            _ => Self::default(),
        }
    }

    fn of_task(error: &TaskError) -> Self {
        match error {
            TaskError::Refused { url, .. } => Self::file(url),
            TaskError::Elsewhere { file, column, row, .. } => {
                Self { file: file.clone(), column: column.clone(), row: *row }
            }
            TaskError::Dataset(error) => Self::of_dataset(error),
            TaskError::Storage(error) => Self::of_storage(error),
            _ => Self::default(),
        }
    }

    fn of_store(error: &StoreError) -> Self {
        match error {
            StoreError::Damaged { file, .. } | StoreError::DamagedCommit { file, .. } => Self::file(file),
            StoreError::Refused { url, .. }
            | StoreError::IsOutput { url, .. }
            | StoreError::AmbiguousId { store: url, .. }
            | StoreError::OutputExists { url, .. } => Self::file(url),
            StoreError::Delta(error) => Self::of_delta(error),
            StoreError::Dataset(error) => Self::of_dataset(error),
            StoreError::Storage(error) => Self::of_storage(error),
            _ => Self::default(),
        }
    }

    fn of_delta(error: &DeltaError) -> Self {
        match error {
            DeltaError::Table { file, .. } => Self::file(file),
            DeltaError::Dataset(error) => Self::of_dataset(error),
            _ => Self::default(),
        }
    }

    fn of_documents(error: &DocumentsError) -> Self {
        match error {
            DocumentsError::EmptyList { list: file }
            | DocumentsError::DocumentsMissing { url: file }
            | DocumentsError::NoDocuments { url: file, .. }
            | DocumentsError::OtherFiles { url: file, .. }
            | DocumentsError::NoMarker { url: file } => Self::file(file),
            DocumentsError::Listed { list, line, .. } => Self { row: Some(*line), ..Self::file(list) },
            DocumentsError::SchemaDrift { file, column, .. } => {
                Self { column: Some(column.to_string()), ..Self::file(file) }
            }
            DocumentsError::Dataset(error) => Self::of_dataset(error),
            _ => Self::default(),
        }
    }

    fn of_dataset(error: &DatasetError) -> Self {
        match error {
            DatasetError::BadFile { file, .. } | DatasetError::BadFormat { file, .. } => Self::file(file),
            DatasetError::ColumnType { file, column, .. } => Self { column: Some(column.clone()), ..Self::file(file) },
            DatasetError::MissingColumn { file, column, .. } => {
                Self { column: Some(column.to_string()), ..Self::file(file) }
            }
            DatasetError::BadRow { file, row, .. } => Self { row: Some(*row), ..Self::file(file) },
            DatasetError::Storage(error) => Self::of_storage(error),
            _ => Self::default(),
        }
    }

    fn of_storage(error: &StorageError) -> Self {
        match error {
            StorageError::BadFile { file, .. } => Self::file(file),
            StorageError::NotUtf8 { file, line } => Self { row: Some(*line as u64), ..Self::file(file) },
            StorageError::InputMissing { url, .. }
            | StorageError::Table { url, .. }
            | StorageError::OutputExists { url, .. }
            | StorageError::ObjectStore { url, .. } => Self::file(url),
            StorageError::Io { path, .. } => Self::file(&path.display().to_string()),
            _ => Self::default(),
        }
    }

    fn file(file: &str) -> Self {
        Self { file: Some(file.to_owned()), ..Self::default() }
    }
}
