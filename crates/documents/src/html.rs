//! Documents in HTML files: each file is one. It may be packed by gzip or zstd.

use std::io::{self, Read};
use std::ops::Range;

use arrow::datatypes::DataType;
use flate2::bufread::GzDecoder;
use futures::StreamExt;
use futures::stream::BoxStream;
use nearprint_fault::Result;
use nearprint_html::{Extractor, HtmlText, Syntax, decode, title_of};
use nearprint_storage::{InputFile, bad_file, bad_format, blocking};
use nearprint_warc::Packing;

use super::batch::{DocumentBatch, DocumentColumns, ReadContext};
use super::foreign;
use super::reader::{DocumentReader, Opened};
use super::warc::extractor;
use super::web_rows::{WebRow, column_types, to_documents, wants_title};
use crate::quarantine::BadReason;

/// Opens a file, and checks the columns and the selector.
pub fn open(file: InputFile, columns: DocumentColumns, _: ReadContext) -> Opened {
    Box::pin(async move {
        let extractor = extractor(&columns.web.html_text)?;
        let column_types = column_types(&file.url, &columns)?;
        Ok(Box::new(HtmlFile { file, column_types, extractor }) as Box<dyn DocumentReader>)
    })
}

#[derive(Debug)]
struct HtmlFile {
    file: InputFile,
    column_types: Vec<(String, DataType)>,
    extractor: Extractor,
}

impl DocumentReader for HtmlFile {
    fn file(&self) -> &InputFile {
        &self.file
    }

    fn column_types(&self) -> &[(String, DataType)] {
        &self.column_types
    }

    fn n_rows(&self) -> Option<u64> {
        Some(1)
    }

    fn read(
        &self,
        _: Range<usize>,
        columns: &DocumentColumns,
        keep_types: &[DataType],
        context: &ReadContext,
    ) -> BoxStream<'static, Result<DocumentBatch>> {
        let (file, columns, context) = (self.file.clone(), columns.clone(), context.clone());
        let (keep_types, extractor) = (keep_types.to_vec(), self.extractor.clone());
        let read = async move {
            let max_bytes = context.max_line_bytes();
            let packed = if file.size > max_bytes { None } else { Some(file.read_range(0..file.size).await?) };
            blocking("reading", move || {
                let body = packed.map_or(Ok(None), |packed| unpacked(&file.url, &packed, max_bytes))?;
                let mut row = WebRow { row: 1, id: Some(columns.web.id_of(&file.url).to_owned()), ..WebRow::default() };
                row.content_type = Some("text/html".to_owned());
                match body {
                    Some(body) => {
                        let html = decode(&body, None);
                        row.text = Some(extractor.text_of(&html, Syntax::Html).into_bytes());
                        row.title = wants_title(&columns).then(|| title_of(&html, Syntax::Html)).flatten();
                    }
                    None => row.fault = Some(BadReason::TooLarge),
                }
                to_documents(&file.url, vec![row], &columns, &keep_types, &context)
            })
            .await
        };
        futures::stream::once(read).boxed()
    }
}

/// Returns the text of the page in an HTML file, which may be packed by gzip or zstd.
///
/// # Errors
/// It cannot be unpacked, it has more than `max_bytes`, or the selector is none.
pub fn page_text(url: &str, bytes: &[u8], mode: &HtmlText, max_bytes: u64) -> Result<String> {
    let extractor = extractor(mode)?;
    let too_large = || bad_file(url, format!("it has more than {max_bytes} bytes"));
    let page = unpacked(url, bytes, max_bytes)?.ok_or_else(too_large)?;
    Ok(extractor.text_of(&decode(&page, None), Syntax::Html))
}

/// Returns the bytes of the page, or `None` if there are too many of them.
fn unpacked(url: &str, bytes: &[u8], max_bytes: u64) -> Result<Option<Vec<u8>>> {
    let beginning = &bytes[..bytes.len().min(foreign::BEGINNING)];
    if let Some(reason) = foreign::mispacked(url, bytes.len() as u64, beginning, b"<") {
        return Err(bad_format(url, reason));
    }
    if let Some(foreign) = foreign::by_content(bytes) {
        return Err(bad_format(url, foreign.reason(url)));
    }
    let mut page = Vec::new();
    let unpacked = match Packing::of(url) {
        Packing::Gzip => gunzip(bytes, max_bytes + 1, &mut page),
        Packing::Zstd => zstd::Decoder::with_buffer(bytes).and_then(|frames| read(frames, max_bytes + 1, &mut page)),
        Packing::Plain => read(bytes, max_bytes + 1, &mut page),
    };
    unpacked.map_err(|e| bad_file(url, e))?;
    if let Some(foreign) = foreign::by_content(&page) {
        return Err(bad_format(url, foreign.within()));
    }
    Ok((page.len() as u64 <= max_bytes).then_some(page))
}

/// Reads bytes up to the end, or until the page has `most` bytes.
fn read(bytes: impl Read, most: u64, page: &mut Vec<u8>) -> io::Result<()> {
    bytes.take(most.saturating_sub(page.len() as u64)).read_to_end(page).map(drop)
}

/// Unpacks the members of a gzip file, one after another, up to the zeros that may follow them, or until the page has
/// `most` bytes.
fn gunzip(mut bytes: &[u8], most: u64, page: &mut Vec<u8>) -> io::Result<()> {
    loop {
        let mut member = GzDecoder::new(bytes);
        read(&mut member, most, page)?;
        bytes = member.into_inner();
        if page.len() as u64 >= most || bytes.iter().all(|&byte| byte == 0) {
            return Ok(());
        }
    }
}
