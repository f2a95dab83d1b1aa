//! A guard for the column chunks of fingerprints datasets. It checks their bytes when they arrive, before anything is
//! unpacked.
//!
//! A read fetches whole chunks, or single pages that a page index names. Both are sequences of whole pages. The guard
//! walks through their headers. No page may claim more than can be held, more values than its chunk has, or another
//! position than the index gives it.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use nearprint_fault::{Fault, Result, Words, key, words};
use nearprint_storage::{bad_file, damaged_file};
use parquet::basic::{Compression, Type as PhysicalType};
use parquet::column::page::{Page, PageReader};
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::serialized_reader::SerializedPageReader;

use super::page_claims::{
    LEAST_PAGE_BYTES, check_dictionary, check_listed, check_sizes, check_unpacked, check_written_out, is_listed,
};
use super::thrift::{PageKind, PageSizes, page_sizes};

/// The chunks that a read may fetch.
#[derive(Debug, Clone, Default)]
pub struct PageGuard {
    url: String,
    /// The chunks by their positions. No two of them overlap.
    chunks: BTreeMap<u64, GuardedChunk>,
}

/// A column chunk, as the footer describes it.
#[derive(Debug, Clone)]
pub struct GuardedChunk {
    /// The end of the chunk in the file.
    pub end: u64,
    /// The row group of the chunk.
    pub row_group: usize,
    /// The number of rows in the row group.
    pub rows: u64,
    /// The chunk's entry in the footer.
    pub metadata: ColumnChunkMetaData,
    /// Rows of a batch. Each of them has a value of its own.
    pub batch_rows: u64,
    /// The positions of the pages of values, according to the file's index.
    pub located: Option<Vec<PageLocation>>,
}

impl PageGuard {
    /// Creates a guard for chunks of one file, each given with its position.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if the values of a chunk are too long to be held, or
    /// if two chunks overlap.
    pub fn new(url: &str, all: impl IntoIterator<Item = (u64, GuardedChunk)>) -> Result<Self> {
        let mut chunks = BTreeMap::new();
        for (start, chunk) in all {
            chunk.check_width().map_err(|reason| chunk.refused(url, reason))?;
            if start < chunk.end && chunks.insert(start, chunk).is_some() {
                return Err(bad_file(url, OVERLAP));
            }
        }
        let ends = chunks.values().map(|chunk: &GuardedChunk| chunk.end);
        if chunks.keys().skip(1).zip(ends).any(|(&next, end)| next < end) {
            return Err(bad_file(url, OVERLAP));
        }
        Ok(Self { url: url.to_owned(), chunks })
    }

    /// Checks the pages in the bytes from `start` on.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if a page is refused, with its row group and column
    /// in the reason, or if the bytes lie outside the chunks.
    pub fn check(&self, start: u64, bytes: &Bytes) -> Result<()> {
        let chunk = self.chunks.range(..=start).next_back();
        let Some((&first, chunk)) = chunk.filter(|(_, chunk)| start + bytes.len() as u64 <= chunk.end) else {
            return Err(bad_file(&self.url, "its pages lie outside their column chunks"));
        };
        let checked = chunk.check(start..start + bytes.len() as u64, first..chunk.end, bytes);
        checked.map_err(|reason| chunk.refused(&self.url, reason))
    }
}

const OVERLAP: &str = "two of its column chunks lie in the same place";

type Check = std::result::Result<(), Words>;

impl GuardedChunk {
    fn refused(&self, url: &str, reason: Words) -> Fault {
        let column = self.metadata.column_path().string();
        damaged_file(url, words![format!("row group {}, column '{column}': ", self.row_group), reason])
    }

    /// Checks the length of fixed-length values. A NULL among them takes as much memory as any other.
    fn check_width(&self) -> Check {
        let width = match self.metadata.column_type() {
            PhysicalType::FIXED_LEN_BYTE_ARRAY => self.metadata.column_descr().type_length(),
            _ => 0,
        };
        self.check_value(u64::from(width.max(0).unsigned_abs()))
    }

    /// Checks that each row of a batch can have a value of this many bytes.
    fn check_value(&self, bytes: u64) -> Check {
        let longest = LEAST_PAGE_BYTES / self.batch_rows.max(1);
        if bytes <= longest {
            return Ok(());
        }
        Err(format!("a value of {bytes} bytes may stand in every row: none may be longer than {longest}").into())
    }

    /// Checks the pages in `bytes`. They lie at `fetched` in the file, inside the range `whole` of their chunk.
    fn check(&self, fetched: Range<u64>, whole: Range<u64>, bytes: &Bytes) -> Check {
        let (mut at, mut n_values) = (0, 0u64);
        while at < bytes.len() {
            let page = page_sizes(&bytes[at..]).map_err(|_| "the header of a page is damaged")?;
            let end = usize::try_from(page.whole_bytes()).ok().and_then(|n| at.checked_add(n));
            let end = end.filter(|&end| end <= bytes.len()).ok_or("a page ends past its column chunk")?;
            self.check_place(fetched.start + at as u64, whole.start, &page)?;
            self.check_page(&bytes.slice(at..end), &page)?;
            if matches!(page.kind, PageKind::Data | PageKind::DataV2) {
                n_values = n_values.saturating_add(page.n_values);
            }
            at = end;
        }
        if fetched == whole && self.is_flat() && n_values != self.rows {
            return Err(format!("its pages have {n_values} values, its footer says {}", self.rows).into());
        }
        Ok(())
    }

    /// Returns whether each row has exactly one value or NULL.
    fn is_flat(&self) -> bool {
        self.metadata.column_descr().max_rep_level() == 0
    }

    /// Checks that a page of values has the position and the number of values that the index gives it. A page before
    /// all others must be a dictionary.
    fn check_place(&self, at: u64, first: u64, page: &PageSizes) -> Check {
        let Some(located) = &self.located else { return Ok(()) };
        let place = located.binary_search_by_key(&at, |place| place.offset.unsigned_abs());
        let fits = match place {
            Ok(i) => {
                let next = located.get(i + 1).map_or(self.rows, |next| next.first_row_index.unsigned_abs());
                let rows = next - located[i].first_row_index.unsigned_abs();
                u64::from(located[i].compressed_page_size.unsigned_abs()) == page.whole_bytes()
                    && matches!(page.kind, PageKind::Data | PageKind::DataV2)
                    && (!self.is_flat() || page.n_values == rows)
            }
            Err(before) => before == 0 && at == first && page.kind == PageKind::Dictionary,
        };
        if fits { Ok(()) } else { Err("its pages are not those that its page index names".into()) }
    }

    fn check_page(&self, whole: &Bytes, page: &PageSizes) -> Check {
        let codec = self.metadata.compression();
        if codec == Compression::LZO {
            return Err("it is compressed with LZO: write it with another codec".into());
        }
        check_sizes(page, LEAST_PAGE_BYTES, || words!["whatever ", key("memory_limit")])?;
        check_dictionary(page)?;
        let body = whole.get(page.header_bytes..).ok_or("a page ends within its header")?;
        check_unpacked(codec, body, page)?;
        if page.kind == PageKind::Dictionary {
            return self.check_dictionary_values(whole);
        }
        // The numbers of the encodings that list lengths in the page. No header says how many lengths there are.
        const LISTED: [u64; 2] = [6, 7];
        if !LISTED.contains(&page.encoding) {
            return Ok(());
        }
        let unpacked = self.unpacked(whole).map_err(|e| e.to_string())?;
        self.check_values(&unpacked.ok_or("a page is missing")?)
    }

    /// Checks the longest string of a dictionary. The reader copies it for each row that points to it.
    fn check_dictionary_values(&self, whole: &Bytes) -> Check {
        if self.metadata.column_type() != PhysicalType::BYTE_ARRAY {
            return Ok(());
        }
        let unpacked = self.unpacked(whole).map_err(|e| e.to_string())?.ok_or("a page is missing")?;
        let (mut rest, mut longest) = (&unpacked.buffer()[..], 0);
        while let Some((length, values)) = rest.split_first_chunk::<4>() {
            let length = u32::from_le_bytes(*length);
            longest = longest.max(length);
            // The reader does not read a string that is longer than the rest of the page.
            rest = values.get(length as usize..).unwrap_or(&[]);
        }
        self.check_value(u64::from(longest))
    }

    fn check_values(&self, page: &Page) -> Check {
        let has_levels = self.metadata.column_descr().max_def_level() > 0;
        if !is_listed(page.encoding()) {
            return Err("a page has another encoding than its header says".into());
        }
        check_listed(page, has_levels)?;
        if page.encoding() == parquet::basic::Encoding::DELTA_BYTE_ARRAY {
            check_written_out(page, has_levels, LEAST_PAGE_BYTES)?;
        }
        Ok(())
    }

    /// Unpacks a single page whose size was checked.
    fn unpacked(&self, whole: &Bytes) -> ParquetResult<Option<Page>> {
        let alone = self.metadata.clone().into_builder();
        let length = i64::try_from(whole.len())?;
        let alone = alone.set_data_page_offset(0).set_dictionary_page_offset(None).set_total_compressed_size(length);
        SerializedPageReader::new(std::sync::Arc::new(whole.clone()), &alone.build()?, 0, None)?.get_next_page()
    }
}
