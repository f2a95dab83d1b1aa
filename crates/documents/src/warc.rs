//! Documents in WARC files: plain, gzip or zstd. Those of WET files are conversion records.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::datatypes::DataType;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use nearprint_fault::{Fault, Result};
use nearprint_html::{Extractor, HtmlText};
use nearprint_storage::{InputFile, bad_file, bad_format, blocking, in_memory};
use nearprint_warc::{Next, Packing, RecordLimits, Records};

use super::batch::{BATCH_ROWS, DocumentBatch, DocumentColumns, ReadContext};
use super::foreign;
use super::passed::PassedReason;
use super::reader::{DocumentReader, Opened};
use super::warc_file::{FilePieces, of_warc};
use super::warc_page::{Page, page_of};
use super::web_pages::Revisits;
use super::web_rows::{WebRow, column_types, to_documents};
use crate::quarantine::BadReason;

/// Opens a file, and checks the columns and the selector.
pub fn open(file: InputFile, columns: DocumentColumns, _: ReadContext) -> Opened {
    Box::pin(async move {
        let extractor = extractor(&columns.web.html_text)?;
        let beginning = foreign::beginning(&file).await;
        let foreign = foreign::by_beginning(&beginning).map(|foreign| foreign.reason(&file.url));
        let refused = foreign.or_else(|| foreign::mispacked(&file.url, file.size, &beginning, b"WARC/"));
        if let Some(reason) = refused {
            return Err(bad_format(&file.url, reason));
        }
        let column_types = column_types(&file.url, &columns)?;
        Ok(Box::new(WarcFile { file, beginning, column_types, extractor }) as Box<dyn DocumentReader>)
    })
}

/// Returns the extractor of the texts of pages.
///
/// # Errors
/// The selector is none that is understood.
pub fn extractor(mode: &HtmlText) -> Result<Extractor> {
    let refused = |e: nearprint_html::HtmlError| Fault::config("html_text".to_owned(), e.to_string());
    Extractor::try_new(mode).map_err(refused)
}

#[derive(Debug)]
struct WarcFile {
    file: InputFile,
    beginning: Vec<u8>,
    column_types: Vec<(String, DataType)>,
    extractor: Extractor,
}

/// Returns the limits of the reader of records.
pub fn limits(context: &ReadContext) -> RecordLimits {
    RecordLimits { max_block_bytes: context.max_line_bytes() }
}

/// The most bytes of a row group. A span of a crawl's file has some hundred pages.
const SPAN_BYTES: u64 = 16 << 20;

impl WarcFile {
    /// Returns the number of row groups. A plain file has no members where a span could begin.
    fn n_spans(&self) -> usize {
        let n = match Packing::of(&self.file.url) {
            Packing::Plain => 1,
            Packing::Gzip | Packing::Zstd => self.file.size.div_ceil(SPAN_BYTES).max(1),
        };
        in_memory(n)
    }

    /// Returns the bytes of some row groups, but none if they are the whole file: then there is nothing to join.
    fn span(&self, row_groups: &Range<usize>) -> Option<Range<u64>> {
        let span_bytes = self.file.size.div_ceil(self.n_spans() as u64);
        let start = |span: usize| (span as u64).saturating_mul(span_bytes).min(self.file.size);
        (*row_groups != (0..self.n_spans())).then(|| start(row_groups.start)..start(row_groups.end))
    }
}

/// The row groups of a packed file are equal stretches of its bytes, and have the records whose members begin in them. A
/// record may hold the bytes of another packed file, and only who reads from the file's beginning is sure to tell its
/// members from those of the file. So the row groups must be joined.
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

    fn row_group_ranges(&self, _max_rows: u64) -> Vec<Range<usize>> {
        std::iter::once(0..self.n_spans()).collect()
    }

    fn ranges_to_join(&self, _max_rows: u64) -> Vec<Range<usize>> {
        (0..self.n_spans()).map(|span| span..span + 1).collect()
    }

    fn read(
        &self,
        row_groups: Range<usize>,
        columns: &DocumentColumns,
        keep_types: &[DataType],
        context: &ReadContext,
    ) -> BoxStream<'static, Result<DocumentBatch>> {
        let packing = Packing::of(&self.file.url);
        let task = Arc::new(Task {
            url: self.file.url.clone(),
            beginning: self.beginning.clone(),
            extractor: self.extractor.clone(),
            columns: columns.clone(),
            keep_types: keep_types.to_vec(),
            context: context.clone(),
        });
        let (file, span) = (self.file.clone(), self.span(&row_groups));
        let batches = futures::stream::once(async move {
            let (limits, read_bytes) = (limits(&task.context), &task.context.read_bytes);
            let bytes = span.clone().unwrap_or(0..file.size);
            let records = Records::of_span(FilePieces::of_span(&file, &bytes, read_bytes), packing, limits, bytes);
            let reading = Reading { records, span, n_records: 0, n_broken: 0 };
            Ok::<_, Fault>(futures::stream::try_unfold(reading, move |mut reading| {
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
    /// The span that is read, if it is not the whole file.
    span: Option<Range<u64>>,
    /// The numbers of sound records and of broken ones so far.
    n_records: u64,
    n_broken: u64,
}

struct Task {
    url: String,
    beginning: Vec<u8>,
    extractor: Extractor,
    columns: DocumentColumns,
    keep_types: Vec<DataType>,
    context: ReadContext,
}

impl Task {
    fn next_batch(&self, reading: &mut Reading) -> Result<Option<DocumentBatch>> {
        let read = catch_unwind(AssertUnwindSafe(|| self.rows(reading))).unwrap_or_else(|panic| {
            let reason = format!("the reader failed on it ({})", nearprint_storage::panic_text(&*panic));
            Err(bad_file(&self.url, reason))
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
                None => {
                    self.end(reading)?;
                    break;
                }
                Some(Next::Broken(broken)) => {
                    reading.n_broken += 1;
                    let fault = if broken.cut_off { BadReason::CutOff } else { BadReason::BrokenRecord };
                    WebRow { row: broken.position + 1, fault: Some(fault), ..WebRow::default() }
                }
                Some(Next::Record(record)) => {
                    reading.n_records += 1;
                    match page_of(&record, self.columns.web.warc_id, &self.context, Some(&self.extractor)) {
                        Page::Row(row) => row,
                        Page::Revisit(row) if self.context.revisits == Revisits::Given => row,
                        Page::Revisit(_) => {
                            self.context.passed.add(PassedReason::Revisit);
                            continue;
                        }
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

    /// Ends the reading of the file, or of a span. Only the whole file can tell whether it has records.
    fn end(&self, reading: &Reading) -> Result<()> {
        match &reading.span {
            None if reading.n_records == 0 && reading.n_broken > 0 => return Err(self.without_records()),
            None => {}
            Some(span) => self.context.span.set(span.clone(), reading.records.seam()),
        }
        Ok(())
    }

    /// Returns the error of a file in which nothing but damage was found.
    fn without_records(&self) -> Fault {
        let shown = foreign::shown(&self.beginning);
        bad_format(&self.url, format!("it holds no whole WARC record (it begins with {shown}): fetch it again"))
    }
}
