//! Documents in WARC files: plain, gzip or zstd. Those of WET files are conversion records.

use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::DataType;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt};
use nearprint_fault::{Fault, Result};
use nearprint_html::{Extractor, HtmlText};
use nearprint_storage::{InputFile, bad_format, blocking, caught};
use nearprint_warc::{Next, Packing, RecordLimits, Records, Seam};

use super::batch::{BATCH_ROWS, DocumentBatch, DocumentColumns, ReadContext};
use super::foreign;
use super::passed::PassedReason;
use super::reader::{DocumentReader, Opened, RowFault, warn_of_zeros};
use super::warc_file::{FilePieces, WarcPart};
use super::warc_page::{Page, Taken, page_of};
use super::web_pages::Revisits;
use super::web_rows::{WebRow, column_types, to_documents, wants_title};
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
        let part = WarcPart::of_file(&file, beginning);
        Ok(Box::new(WarcFile::new(file, vec![part], column_types, extractor)) as Box<dyn DocumentReader>)
    })
}

/// Returns the extractor of the texts of pages.
///
/// # Errors
/// The selector is none that is understood.
pub fn extractor(mode: &HtmlText) -> Result<Extractor> {
    let refused = |e: nearprint_html::HtmlError| Fault::config("html_text", e.to_string());
    Extractor::try_new(mode).map_err(refused)
}

/// A file with WARC files in it, most often one: itself.
#[derive(Debug)]
pub struct WarcFile {
    file: InputFile,
    /// The WARC files, in the order of their bytes.
    parts: Vec<Arc<WarcPart>>,
    /// The row groups: the number of a WARC file, and positions in it.
    spans: Vec<(usize, Range<u64>)>,
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
    /// Creates the reader of a file with these WARC files.
    pub fn new(
        file: InputFile,
        parts: Vec<WarcPart>,
        column_types: Vec<(String, DataType)>,
        extractor: Extractor,
    ) -> Self {
        debug_assert!(parts.is_sorted_by(|a, b| a.bytes.end <= b.bytes.start), "they do not overlap");
        let spans = parts.iter().enumerate().flat_map(|(part, of)| spans(of).map(move |span| (part, span))).collect();
        Self { file, parts: parts.into_iter().map(Arc::new).collect(), spans, column_types, extractor }
    }

    /// Returns the span that some row groups are, but none if they are the whole file: then there is nothing to join.
    fn span(&self, row_groups: &Range<usize>) -> Option<Span> {
        let groups = self.spans.get(row_groups.clone()).filter(|groups| groups.len() < self.spans.len())?;
        let ((part, first), (last_part, last)) = (groups.first()?, groups.last()?);
        debug_assert_eq!(part, last_part, "row groups that are read together are of one WARC file");
        let before = part.checked_sub(1).and_then(|before| self.parts.get(before));
        let start = before.map_or(0, |before| before.bytes.end);
        let is_last = *part + 1 == self.parts.len();
        let part = Arc::clone(self.parts.get(*part)?);
        let end = if is_last { self.file.size } else { part.bytes.end };
        Some(Span { part, positions: first.start..last.end, covers: start..end })
    }
}

/// Cuts a WARC file into spans. A plain one has no members where a span could begin.
fn spans(part: &WarcPart) -> impl Iterator<Item = Range<u64>> + use<> {
    let size = part.size();
    let n = match part.packing {
        Packing::Plain => 1,
        Packing::Gzip | Packing::Zstd => size.div_ceil(SPAN_BYTES).max(1),
    };
    let bytes = size.div_ceil(n);
    (0..n).map(move |span| {
        let start = |span: u64| span.saturating_mul(bytes).min(size);
        start(span)..start(span + 1)
    })
}

/// A span of a WARC file that is read.
struct Span {
    part: Arc<WarcPart>,
    /// The positions in the WARC file.
    positions: Range<u64>,
    /// The bytes of the file for which the WARC file stands where spans are joined: it, and what is between the WARC file
    /// before and it. So the spans of all WARC files cover the file.
    covers: Range<u64>,
}

impl Span {
    /// Returns the place in the file of a place in the WARC file, where spans are joined.
    fn joining(&self, position: u64) -> u64 {
        match position {
            0 => self.covers.start,
            position if position >= self.part.size() => self.covers.end,
            position => self.part.place(position),
        }
    }
}

/// The row groups of a packed file are equal stretches of its bytes, and have the records whose members begin in them. A
/// record may hold the bytes of another packed file, and only who reads from the file's beginning is sure to tell its
/// members from those of the file. So the row groups must be joined. Of a WACZ, each member has row groups of its own.
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
        std::iter::once(0..self.spans.len()).collect()
    }

    fn ranges_to_join(&self, _max_rows: u64) -> Vec<Range<usize>> {
        (0..self.spans.len()).map(|span| span..span + 1).collect()
    }

    /// Names the member of a WACZ.
    fn explain(
        &self,
        row: u64,
        _reason: BadReason,
        _columns: &DocumentColumns,
        _context: &ReadContext,
    ) -> BoxFuture<'static, Option<RowFault>> {
        let place = row.saturating_sub(1);
        let part = self.parts.iter().rev().find(|part| part.bytes.start <= place);
        let fault = part.and_then(|part| {
            let what = format!("byte {} of {} in it", place - part.bytes.start, part.member.as_ref()?);
            Some(RowFault { what, remedy: "mend the rows".to_owned() })
        });
        std::future::ready(fault).boxed()
    }

    fn read(
        &self,
        row_groups: Range<usize>,
        columns: &DocumentColumns,
        keep_types: &[DataType],
        context: &ReadContext,
    ) -> BoxStream<'static, Result<DocumentBatch>> {
        let task = Arc::new(Task {
            url: self.file.url.clone(),
            extractor: self.extractor.clone(),
            columns: columns.clone(),
            keep_types: keep_types.to_vec(),
            context: context.clone(),
        });
        let readings: Vec<_> = match self.span(&row_groups) {
            Some(span) => vec![(Arc::clone(&span.part), Some(span))],
            None => self.parts.iter().map(|part| (Arc::clone(part), None)).collect(),
        };
        let file = self.file.clone();
        let batches = futures::stream::iter(readings).then(move |(part, span)| {
            let (task, file) = (Arc::clone(&task), file.clone());
            async move {
                let positions = span.as_ref().map_or(0..part.size(), |span: &Span| span.positions.clone());
                let records = part.records(&file, positions, limits(&task.context), &task.context.read_bytes);
                let reading = Reading { records, part, span, n_records: 0, n_broken: 0 };
                Ok::<_, Fault>(futures::stream::try_unfold(reading, move |mut reading| {
                    let task = Arc::clone(&task);
                    // Pages are unpacked and parsed on a thread of their own, because that computes for a long time.
                    blocking("reading", move || Ok(task.next_batch(&mut reading)?.map(|batch| (batch, reading))))
                }))
            }
        });
        batches.try_flatten().boxed()
    }
}

struct Reading {
    records: Records<FilePieces>,
    part: Arc<WarcPart>,
    /// The span that is read, if it is not the whole file.
    span: Option<Span>,
    /// The numbers of sound records and of broken ones so far.
    n_records: u64,
    n_broken: u64,
}

struct Task {
    url: String,
    extractor: Extractor,
    columns: DocumentColumns,
    keep_types: Vec<DataType>,
    context: ReadContext,
}

impl Task {
    fn next_batch(&self, reading: &mut Reading) -> Result<Option<DocumentBatch>> {
        let rows = caught(&self.url, || self.rows(reading))?;
        let batch =
            (!rows.is_empty()).then(|| to_documents(&self.url, rows, &self.columns, &self.keep_types, &self.context));
        batch.transpose()
    }

    fn rows(&self, reading: &mut Reading) -> Result<Vec<WebRow>> {
        let mut rows = Vec::new();
        let mut bytes = 0;
        while rows.len() < BATCH_ROWS && bytes < self.context.limits.batch_bytes {
            let mut row = match reading.records.next_record().map_err(|error| reading.part.fault(&self.url, error))? {
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
                    let taken = Taken { extractor: &self.extractor, title: wants_title(&self.columns) };
                    match page_of(&record, self.columns.web.warc_id, &self.context, Some(taken)) {
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
            row.row = reading.part.place(row.row);
            bytes += row.text.as_ref().map_or(0, |text| text.len() as u64);
            rows.push(row);
        }
        Ok(rows)
    }

    /// Ends the reading of a WARC file, or of a span. Only the whole WARC file can tell whether it has records.
    fn end(&self, reading: &Reading) -> Result<()> {
        warn_of_zeros(&self.url, reading.records.n_zeros());
        match &reading.span {
            None if reading.n_records == 0 && reading.n_broken > 0 => return Err(self.without_records(&reading.part)),
            None => {}
            Some(span) => {
                let at = |position| span.joining(position);
                let seam =
                    reading.records.seam().map(|Seam { first, next }| Seam { first: first.map(at), next: at(next) });
                self.context.span.set(at(span.positions.start)..at(span.positions.end), seam);
            }
        }
        Ok(())
    }

    /// Returns the error of a WARC file in which nothing but damage was found.
    fn without_records(&self, part: &WarcPart) -> Fault {
        let shown = foreign::shown(&part.beginning);
        let reason = format!("it holds no whole WARC record (it begins with {shown}): fetch it again");
        bad_format(&self.url, part.said(reason))
    }
}
