//! Documents in WARC files: plain, gzip or zstd. Those of WET files are conversion records.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::datatypes::DataType;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use nearprint_html::HtmlText;
use nearprint_storage::{InputFile, blocking};
use nearprint_warc::{Limits, Next, Packing, Records};

use super::batch::{BATCH_ROWS, DocumentBatch, DocumentColumns, ReadContext};
use super::foreign;
use super::reader::{DocumentReader, Opened};
use super::warc_file::{FilePieces, of_warc};
use super::warc_page::{Page, page_of};
use super::web_rows::{WebRow, column_types, to_documents};
use crate::error::{DatasetError, Result};
use crate::quarantine::BadReason;

/// Opens a file, and checks the columns and the selector.
pub fn open(file: InputFile, columns: DocumentColumns, _: ReadContext) -> Opened {
    Box::pin(async move {
        check_mode(&columns.web.html_text)?;
        if let Some(foreign) = foreign::by_content(&file).await {
            return Err(DatasetError::bad_format(&file.url, foreign.reason(&file.url)));
        }
        let column_types = column_types(&file.url, &columns)?;
        Ok(Box::new(WarcFile { file, column_types }) as Box<dyn DocumentReader>)
    })
}

/// Checks the selector of the texts.
pub fn check_mode(mode: &HtmlText) -> Result<()> {
    let refused =
        |e: nearprint_html::HtmlError| DatasetError::Config { key: "html_text".to_owned(), reason: e.to_string() };
    mode.check().map_err(refused)
}

#[derive(Debug)]
struct WarcFile {
    file: InputFile,
    column_types: Vec<(String, DataType)>,
}

/// Returns the limits of the reader of records.
pub fn limits(context: &ReadContext) -> Limits {
    Limits { max_block_bytes: context.max_line_bytes() }
}

/// A file is one row group. A record may hold the bytes of another packed file, and only who reads from the file's
/// beginning tells its members from those of the file.
impl DocumentReader for WarcFile {
    fn file(&self) -> &InputFile {
        &self.file
    }

    fn column_types(&self) -> &[(String, DataType)] {
        &self.column_types
    }

    fn n_rows(&self) -> Option<u64> {
        None
    }

    fn read(
        &self,
        _: Range<usize>,
        columns: &DocumentColumns,
        keep_types: &[DataType],
        context: &ReadContext,
    ) -> BoxStream<'static, Result<DocumentBatch>> {
        let packing = Packing::of(&self.file.url);
        let whole = 0..self.file.size;
        let task = Arc::new(Task {
            url: self.file.url.clone(),
            columns: columns.clone(),
            keep_types: keep_types.to_vec(),
            context: context.clone(),
        });
        let file = self.file.clone();
        let batches = futures::stream::once(async move {
            let records = Records::new(FilePieces::new(&file), packing, whole, limits(&task.context));
            Ok::<_, DatasetError>(futures::stream::try_unfold(records, move |mut records| {
                let task = Arc::clone(&task);
                // Pages are unpacked and parsed on a thread of their own, because that computes for a long time.
                blocking("reading", move || Ok(task.next_batch(&mut records)?.map(|batch| (batch, records))))
            }))
        });
        batches.try_flatten().boxed()
    }
}

struct Task {
    url: String,
    columns: DocumentColumns,
    keep_types: Vec<DataType>,
    context: ReadContext,
}

impl Task {
    fn next_batch(&self, records: &mut Records<FilePieces>) -> Result<Option<DocumentBatch>> {
        let read = catch_unwind(AssertUnwindSafe(|| self.rows(records))).unwrap_or_else(|panic| {
            let reason = format!("the reader failed on it ({})", nearprint_storage::panic_text(&*panic));
            Err(DatasetError::bad_file(&self.url, reason))
        });
        let rows = read?;
        let batch =
            (!rows.is_empty()).then(|| to_documents(&self.url, rows, &self.columns, &self.keep_types, &self.context));
        batch.transpose()
    }

    fn rows(&self, records: &mut Records<FilePieces>) -> Result<Vec<WebRow>> {
        let mut rows = Vec::new();
        let mut bytes = 0;
        while rows.len() < BATCH_ROWS && bytes < self.context.limits.batch_bytes {
            let row = match records.next_record().map_err(|error| of_warc(&self.url, error))? {
                None => break,
                Some(Next::Broken(broken)) => {
                    WebRow { row: broken.position + 1, fault: Some(BadReason::BrokenRecord), ..WebRow::default() }
                }
                Some(Next::Record(record)) => match page_of(&record, &self.columns.web, &self.context, true) {
                    Page::Row(row) => row,
                    Page::Passed(reason) => {
                        self.context.passed.add(reason);
                        continue;
                    }
                },
            };
            bytes += row.text.as_ref().map_or(0, |text| text.len() as u64);
            rows.push(row);
        }
        Ok(rows)
    }
}
