//! Documents in WACZ files: ZIP files of WARC files, which are stored in them as they are. So each is a stretch of the file
//! and is read as a WARC file. The directory of the ZIP file tells where they are; no other member is read.

use std::cell::RefCell;
use std::io;
use std::ops::Range;

use bytes::Bytes;
use futures::FutureExt;
use nearprint_fault::{Fault, Result};
use nearprint_storage::{InputFile, bad_file, bad_format, blocking};
use nearprint_warc::Packing;
use rawzip::{CompressionMethod, MAX_CENTRAL_DIRECTORY_RECORD_SIZE, ReaderAt, ZipArchive, ZipFileHeaderRecord};
use tokio::runtime::Handle;

use super::batch::{DocumentColumns, ReadContext};
use super::file_name::ending;
use super::filter::{FileFilter, FilterTarget, Filtered};
use super::foreign;
use super::reader::{DocumentReader, Opened};
use super::warc::{WarcFile, extractor};
use super::warc_file::{self, WarcPart};
use super::warc_filter::{copy_records, refuse_flags};
use super::web_rows::column_types;

/// The ending of the names of WACZ files.
pub const ENDING: &str = "wacz";

/// The folder in a WACZ that has the WARC files, and should have nothing else.
const ARCHIVE: &str = "archive/";

/// Bytes at the end of a file that are read first: most often, they have the whole directory.
const TAIL_BYTES: u64 = 256 << 10;
/// Bytes that a request reads at least.
const REQUEST_BYTES: usize = 4 << 10;
/// The most bytes at the end of a ZIP file in which the end of its directory begins: it has 22 bytes, and a comment.
const SEARCHED_BYTES: u64 = (64 << 10) + 22;
/// The largest directory. It names some hundred thousand members.
const MAX_DIRECTORY_BYTES: u64 = 16 << 20;

/// Opens a file, and checks its directory, the columns and the selector.
pub fn open(file: InputFile, columns: DocumentColumns, _: ReadContext) -> Opened {
    Box::pin(async move {
        let extractor = extractor(&columns.web.html_text)?;
        let column_types = column_types(&file.url, &columns)?;
        let parts = parts(&file).await?;
        Ok(Box::new(WarcFile::new(file, parts, column_types, extractor)) as Box<dyn DocumentReader>)
    })
}

/// Copies the records that a filter lets through, and all records that are no documents, into one WARC file.
pub fn filter(file: InputFile, filter: FileFilter, target: FilterTarget) -> Filtered {
    async move {
        refuse_flags(&file, filter.output)?;
        let parts = parts(&file).await?;
        if let Some(part) = parts.iter().find(|part| part.packing != Packing::Gzip) {
            let reason = "it is not packed by gzip, and the survivors of a WACZ are one file that is: unzip the WACZ, and \
                          run the night from its WARC files";
            return Err(bad_format(&file.url, part.said(reason.to_owned())));
        }
        copy_records(file, parts, filter, target).await
    }
    .boxed()
}

/// Returns the WARC files in a WACZ, in the order of their bytes, without those that are empty.
async fn parts(file: &InputFile) -> Result<Vec<WarcPart>> {
    let tail = file.size.saturating_sub(TAIL_BYTES);
    let held = (tail, file.read_range(tail..file.size).await?);
    let bytes = ZipBytes { file: file.clone(), runtime: Handle::current(), held: RefCell::new(held) };
    let file = file.clone();
    blocking("reading", move || in_order(&file, read_directory(&file, bytes)?)).await
}

fn read_directory(file: &InputFile, bytes: ZipBytes) -> Result<Vec<WarcPart>> {
    let unread = |error: rawzip::Error| of_zip(file, error);
    let mut buffer = vec![0; MAX_CENTRAL_DIRECTORY_RECORD_SIZE];
    let locator = ZipArchive::with_max_search_space(SEARCHED_BYTES);
    let zip = locator.locate_in_reader(bytes, &mut buffer, file.size).map_err(|(_, error)| unread(error))?;
    // The end of another ZIP file may lie within a file that was cut off.
    if zip.end_offset() != file.size {
        return Err(without_directory(file));
    }
    if zip.eocd_offset().saturating_sub(zip.directory_offset()) > MAX_DIRECTORY_BYTES {
        let reason = format!("its directory has more than {MAX_DIRECTORY_BYTES} bytes, which is not read");
        return Err(bad_format(&file.url, reason));
    }
    let (mut members, mut entries) = (Vec::new(), zip.entries(&mut buffer));
    while let Some(entry) = entries.next_entry().map_err(unread)? {
        members.extend(warc_member(file, &entry)?.map(|name| (name, entry.wayfinder())));
    }
    let part = |(member, entry): (String, _)| {
        let (start, end) =
            zip.get_entry(entry).map_err(|error| of_entry(file, &member, error))?.compressed_data_range();
        if end > zip.directory_offset() {
            return Err(bad_file(&file.url, format!("by its directory, {member} in it goes on past its end")));
        }
        let beginning = zip.get_ref().beginning(start..end).map_err(|error| of_io(file, error))?;
        let behind =
            zip.get_ref().first(end..file.size, MAX_DESCRIPTION_BYTES + 4).map_err(|error| of_io(file, error))?;
        if !is_followed(&behind) {
            let reason = format!(
                "by its directory, {member} in it ends at byte {end}, where nothing else begins, so records would be lost"
            );
            return Err(bad_file(&file.url, reason));
        }
        let packing = packing(&member, &beginning);
        Ok(WarcPart { member: Some(member), bytes: start..end, packing, beginning })
    };
    members.into_iter().map(part).collect()
}

/// The most bytes of the description of a member's size, which may stand behind it.
const MAX_DESCRIPTION_BYTES: usize = 24;

/// Returns whether what lies behind a member begins as another one, or the directory, does. A description of the member's size may come
/// before that, of 12 to 24 bytes (APPNOTE 6.3.10, section 4.3.9).
fn is_followed(behind: &[u8]) -> bool {
    const SIGNATURES: [&[u8]; 4] = [b"PK\x03\x04", b"PK\x01\x02", b"PK\x06\x06", b"PK\x05\x06"];
    let begins =
        |at: &usize| behind.get(*at..).is_some_and(|rest| SIGNATURES.iter().any(|mark| rest.starts_with(mark)));
    [0, 12, 16, 20, MAX_DESCRIPTION_BYTES].iter().any(begins)
}

fn in_order(file: &InputFile, mut parts: Vec<WarcPart>) -> Result<Vec<WarcPart>> {
    if parts.is_empty() {
        let reason = "there is no WARC file in it: if its datapackage.json names other WACZ files, read those";
        return Err(bad_format(&file.url, reason.to_owned()));
    }
    parts.retain(|part| part.size() > 0);
    parts.sort_by_key(|part| part.bytes.start);
    if let Some((a, b)) = parts.iter().zip(parts.iter().skip(1)).find(|(a, b)| a.bytes.end > b.bytes.start) {
        let names = [a, b].map(|part| part.member.as_deref().unwrap_or_default()).join(" and ");
        return Err(bad_file(&file.url, format!("by its directory, {names} in it have the same bytes")));
    }
    Ok(parts)
}

/// Returns the name of a member, if that is a WARC file.
///
/// # Errors
/// The member has pages that are not read.
fn warc_member(file: &InputFile, entry: &ZipFileHeaderRecord<'_>) -> Result<Option<String>> {
    let name = String::from_utf8_lossy(entry.file_path().as_ref()).escape_debug().to_string();
    let refused = |reason: &str| Err(bad_format(&file.url, format!("{name} in it {reason}")));
    let ending = ending(&name);
    if ending.as_deref() == Some(ENDING) {
        return refused("is a WACZ too, which is not read: unzip the outer one, and read those within");
    }
    if let Some(arc) = foreign::by_name(&name).filter(|foreign| foreign.is_arc()) {
        let reason = format!("{name} in it: {}; unzip the WACZ first", arc.reason(&name));
        return Err(bad_format(&file.url, reason));
    }
    if !ending.is_some_and(|ending| warc_file::ENDINGS.contains(&&*ending)) {
        if name.starts_with(ARCHIVE) && !entry.is_dir() {
            tracing::warn!(file = file.url, member = name, "not a WARC file by its name: passed over");
        }
        return Ok(None);
    }
    if entry.compression_method() != CompressionMethod::STORE || entry.flags().is_encrypted() {
        return refused(
            "is not stored as it is, but compressed or encrypted, so it cannot be read in parts: unzip the WACZ, and read the \
             WARC files",
        );
    }
    Ok(Some(name))
}

/// Returns how a WARC file is packed, by its first bytes, or else by its name.
fn packing(name: &str, beginning: &[u8]) -> Packing {
    let packed = Packing::PACKED.into_iter().find(|packing| beginning.starts_with(packing.magic()));
    let plain = beginning.starts_with(b"WARC/").then_some(Packing::Plain);
    packed.or(plain).unwrap_or_else(|| Packing::of(name))
}

fn of_zip(file: &InputFile, error: rawzip::Error) -> Fault {
    match error.into_kind() {
        rawzip::ErrorKind::IO(error) => of_io(file, error),
        rawzip::ErrorKind::MissingEndOfCentralDirectory | rawzip::ErrorKind::Eof => without_directory(file),
        other => bad_file(&file.url, format!("its directory, that of a ZIP file, is damaged ({other})")),
    }
}

fn of_entry(file: &InputFile, member: &str, error: rawzip::Error) -> Fault {
    let nowhere =
        || bad_file(&file.url, format!("its directory says where {member} in it begins, but nothing begins there"));
    match error.into_kind() {
        rawzip::ErrorKind::IO(error) => error.downcast::<Fault>().unwrap_or_else(|_| nowhere()),
        _ => nowhere(),
    }
}

/// Converts a failure of [`ZipBytes`]. That of the store keeps its kind; otherwise bytes are missing.
fn of_io(file: &InputFile, error: io::Error) -> Fault {
    error.downcast::<Fault>().unwrap_or_else(|_| without_directory(file))
}

fn without_directory(file: &InputFile) -> Fault {
    let reason = "it does not end with the directory of a ZIP file: it was cut off or is still being written, or it is no \
                  WACZ; fetch it again";
    bad_format(&file.url, reason.to_owned())
}

/// The bytes of a ZIP file. They must be read on a thread that may wait.
struct ZipBytes {
    file: InputFile,
    runtime: Handle,
    /// The place of the bytes that were read last, and these.
    held: RefCell<(u64, Bytes)>,
}

impl ZipBytes {
    /// Returns the first bytes of a stretch.
    fn beginning(&self, stretch: Range<u64>) -> io::Result<Vec<u8>> {
        self.first(stretch, foreign::BEGINNING)
    }

    fn first(&self, stretch: Range<u64>, most: usize) -> io::Result<Vec<u8>> {
        let n = stretch.end.saturating_sub(stretch.start).min(most as u64);
        let mut bytes = vec![0; usize::try_from(n).unwrap_or_default()];
        self.read_exact_at(&mut bytes, stretch.start)?;
        Ok(bytes)
    }
}

impl ReaderAt for ZipBytes {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let held = |(start, bytes): &(u64, Bytes)| {
            let from = usize::try_from(offset.checked_sub(*start)?).ok()?;
            bytes.get(from..).filter(|rest| !rest.is_empty()).map(|rest| bytes.slice_ref(rest))
        };
        if into.is_empty() || offset >= self.file.size {
            return Ok(0);
        }
        let found = held(&self.held.borrow());
        let found = match found {
            Some(found) => found,
            None => {
                let n = into.len().max(REQUEST_BYTES) as u64;
                let range = offset..self.file.size.min(offset.saturating_add(n));
                let read = self.runtime.block_on(self.file.read_range(range)).map_err(io::Error::other)?;
                *self.held.borrow_mut() = (offset, read.clone());
                read
            }
        };
        let n = found.len().min(into.len());
        into[..n].copy_from_slice(&found[..n]);
        Ok(n)
    }
}
