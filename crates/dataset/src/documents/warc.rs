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
        let beginning = foreign::beginning(&file).await;
        let foreign = foreign::by_beginning(&beginning).map(|foreign| foreign.reason(&file.url));
        let refused = foreign.or_else(|| foreign::mispacked(&file.url, file.size, &beginning, b"WARC/"));
        if let Some(reason) = refused {
            return Err(DatasetError::bad_format(&file.url, reason));
        }
        let column_types = column_types(&file.url, &columns)?;
        Ok(Box::new(WarcFile { file, beginning, column_types }) as Box<dyn DocumentReader>)
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
    beginning: Vec<u8>,
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
        (self.file.size == 0).then_some(0)
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
            beginning: self.beginning.clone(),
            columns: columns.clone(),
            keep_types: keep_types.to_vec(),
            context: context.clone(),
        });
        let file = self.file.clone();
        let batches = futures::stream::once(async move {
            let records =
                Records::new(FilePieces::new(&file, &task.context.read_bytes), packing, whole, limits(&task.context));
            let reading = Reading { records, n_records: 0, n_broken: 0 };
            Ok::<_, DatasetError>(futures::stream::try_unfold(reading, move |mut reading| {
                let task = Arc::clone(&task);
                // Pages are unpacked and parsed on a thread of their own, because that computes for a long time.
                blocking("reading", move || Ok(task.next_batch(&mut reading)?.map(|batch| (batch, reading))))
            }))
        });
        batches.try_flatten().boxed()
    }
}

struct Reading {
    records: Records<FilePieces>,
    /// The numbers of sound records and of broken ones so far.
    n_records: u64,
    n_broken: u64,
}

struct Task {
    url: String,
    beginning: Vec<u8>,
    columns: DocumentColumns,
    keep_types: Vec<DataType>,
    context: ReadContext,
}

impl Task {
    fn next_batch(&self, reading: &mut Reading) -> Result<Option<DocumentBatch>> {
        let read = catch_unwind(AssertUnwindSafe(|| self.rows(reading))).unwrap_or_else(|panic| {
            let reason = format!("the reader failed on it ({})", nearprint_storage::panic_text(&*panic));
            Err(DatasetError::bad_file(&self.url, reason))
        });
        let rows = read?;
        let batch =
            (!rows.is_empty()).then(|| to_documents(&self.url, rows, &self.columns, &self.keep_types, &self.context));
        batch.transpose()
    }

    fn rows(&self, reading: &mut Reading) -> Result<Vec<WebRow>> {
        let mut rows = Vec::new();
        let mut bytes = 0;
        while rows.len() < BATCH_ROWS && bytes < self.context.limits.batch_bytes {
            let row = match reading.records.next_record().map_err(|error| of_warc(&self.url, error))? {
                None if reading.n_records == 0 && reading.n_broken > 0 => return Err(self.without_records()),
                None => break,
                Some(Next::Broken(broken)) => {
                    reading.n_broken += 1;
                    let fault = if broken.cut_off { BadReason::CutOff } else { BadReason::BrokenRecord };
                    WebRow { row: broken.position + 1, fault: Some(fault), ..WebRow::default() }
                }
                Some(Next::Record(record)) => {
                    reading.n_records += 1;
                    match page_of(&record, &self.columns.web, &self.context, true) {
                        Page::Row(row) => row,
                        Page::Passed(reason) => {
                            self.context.passed.add(reason);
                            continue;
                        }
                    }
                }
            };
            bytes += row.text.as_ref().map_or(0, |text| text.len() as u64);
            rows.push(row);
        }
        Ok(rows)
    }

    /// Returns the error of a file in which nothing but damage was found.
    fn without_records(&self) -> DatasetError {
        let shown = foreign::shown(&self.beginning);
        DatasetError::bad_format(
            &self.url,
            format!("it holds no whole WARC record (it begins with {shown}): fetch it again"),
        )
    }
}
