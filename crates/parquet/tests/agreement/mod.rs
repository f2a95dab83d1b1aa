//! The guard of Parquet's metadata against the `parquet` crate's own parser: whatever the crate would read as a size, the guard
//! has seen. Used by `guard_agrees.rs` and by the fuzzers.
#![allow(dead_code, reason = "each user has a use for a part")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::missing_panics_doc, reason = "disagreement is a panic")]

#[path = "../../src/guard/thrift.rs"]
mod thrift;

use std::sync::{Arc, Mutex};

use bytes::{Buf, Bytes};
use parquet::basic::{Compression, GzipLevel, Repetition, Type as PhysicalType};
use parquet::column::page::{Page, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaDataReader};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::{SchemaDescriptor, Type};
use thrift::{PageKind, PageSizes};

/// The outcome for some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Both read them, as the same.
    Same,
    /// The guard refused them, whether the crate would read them or not.
    Refused,
    /// The guard let them pass, and the crate did not read them.
    Unread,
}

/// A column chunk that begins with a header; what is behind it is made up.
struct Recorder {
    header: Bytes,
    body: Bytes,
    asked: Mutex<Option<(u64, usize)>>,
}

impl Length for Recorder {
    fn len(&self) -> u64 {
        u64::MAX
    }
}

impl ChunkReader for Recorder {
    type T = bytes::buf::Reader<Bytes>;

    /// Behind the page that is asked for, or passed over, there is nothing.
    fn get_read(&self, start: u64) -> Result<Self::T> {
        let mut asked = self.asked.lock().unwrap();
        if start > 0 {
            asked.get_or_insert((start, usize::MAX));
        }
        Ok(if start == 0 { self.header.clone() } else { Bytes::new() }.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        *self.asked.lock().unwrap() = Some((start, length));
        Ok(self.body.clone())
    }
}

/// A column chunk whose first bytes are a header, and those of each page `body`.
fn chunk(header: &[u8], codec: Compression, body: Vec<u8>) -> (Arc<Recorder>, SerializedPageReader<Recorder>) {
    let column = Type::primitive_type_builder("c", PhysicalType::BYTE_ARRAY).with_repetition(Repetition::REQUIRED);
    let root = Type::group_type_builder("root").with_fields(vec![Arc::new(column.build().unwrap())]).build().unwrap();
    let descriptor = SchemaDescriptor::new(Arc::new(root)).column(0);
    let chunk = ColumnChunkMetaData::builder(descriptor).set_compression(codec).set_total_compressed_size(1 << 40);
    let header = Bytes::copy_from_slice(header);
    let recorder = Arc::new(Recorder { header, body: body.into(), asked: Mutex::new(None) });
    let pages = SerializedPageReader::new(Arc::clone(&recorder), &chunk.build().unwrap(), 0, None).unwrap();
    (recorder, pages)
}

/// Reads the page behind a header. Where it was sought, and how it was read.
fn read(header: &[u8], codec: Compression, body: Vec<u8>) -> (Option<(u64, usize)>, Result<Option<Page>>) {
    let (recorder, mut pages) = chunk(header, codec, body);
    let page = pages.get_next_page();
    let asked = *recorder.asked.lock().unwrap();
    (asked, page)
}

/// A page header as the guard and as the crate read it.
///
/// # Panics
/// Where the crate would take other sizes than the guard saw.
pub fn check_page_header(bytes: &[u8]) -> Outcome {
    // The crate would pass over lists of two billion booleans one by one.
    let Ok(sizes) = thrift::page_sizes(bytes) else { return Outcome::Refused };
    let (asked, page) = read(bytes, Compression::UNCOMPRESSED, Vec::new());
    let Some((start, length)) = asked else { return Outcome::Unread };
    if sizes.kind == PageKind::Index {
        assert_eq!((start, length), (sizes.whole_bytes(), usize::MAX), "where the next page begins");
        return Outcome::Same;
    }
    assert_eq!((start, length as u64), (sizes.header_bytes as u64, sizes.packed), "the place of the page");
    if let Ok(page) = page {
        check_counts(&sizes, &page.unwrap());
    }
    check_unpacked(bytes, &sizes);
    Outcome::Same
}

fn check_counts(sizes: &PageSizes, page: &Page) {
    let kind = match page {
        Page::DictionaryPage { .. } => PageKind::Dictionary,
        Page::DataPage { .. } => PageKind::Data,
        Page::DataPageV2 { .. } => PageKind::DataV2,
    };
    assert_eq!(sizes.kind, kind);
    assert_eq!(sizes.n_values, u64::from(page.num_values()), "values");
    assert_eq!(sizes.encoding, page.encoding() as u64, "encoding");
    if let Page::DataPageV2 { def_levels_byte_len, rep_levels_byte_len, is_compressed, .. } = page {
        assert_eq!(sizes.level_bytes, u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len), "levels");
        assert_eq!(sizes.is_packed, *is_compressed, "whether it is packed");
    }
}

/// Levels that are made up for a page.
const MAX_LEVELS: u64 = 1 << 20;

/// The reader unpacks an empty body behind the levels, and says how many bytes it expected.
fn check_unpacked(header: &[u8], sizes: &PageSizes) {
    const NOTHING: [u8; 20] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    if sizes.level_bytes > MAX_LEVELS || sizes.crc.is_some() {
        return;
    }
    let mut body = vec![0; usize::try_from(sizes.level_bytes).unwrap()];
    body.extend(NOTHING);
    let (_, page) = read(header, Compression::GZIP(GzipLevel::default()), body);
    let empty = sizes.unpacked == sizes.level_bytes;
    match page {
        Ok(_) => assert!(!sizes.is_packed || empty, "unpacked to nothing, {} expected", sizes.unpacked),
        Err(ParquetError::General(said)) if said.contains("doesn't match the expected one") => {
            let expected = format!("({} vs {})", sizes.level_bytes, sizes.unpacked);
            assert!(sizes.is_packed && said.contains(&expected), "{said}: {expected}");
        }
        // Numbers below 0, which no page has.
        Err(ParquetError::General(said)) => assert!(!said.contains("decompress"), "{said}"),
        Err(_) => {}
    }
}

/// A footer as the guard and as the crate read it. The crate is given those only that the guard lets pass: what it takes for
/// them is the caller's to measure.
pub fn check_footer(bytes: &[u8]) -> Outcome {
    match thrift::check_footer(bytes) {
        Err(_) => Outcome::Refused,
        Ok(_) if ParquetMetaDataReader::decode_metadata(bytes).is_ok() => Outcome::Same,
        Ok(_) => Outcome::Unread,
    }
}

/// Returns whether the crate reads a footer at all.
pub fn is_footer(bytes: &[u8]) -> bool {
    ParquetMetaDataReader::decode_metadata(bytes).is_ok()
}

/// The next page header of a chunk, and where it and its page end.
pub fn page_header(chunk: &[u8]) -> Option<(usize, usize)> {
    let sizes = thrift::page_sizes(chunk).ok()?;
    Some((sizes.header_bytes, usize::try_from(sizes.whole_bytes()).ok()?))
}
