//! Parquet files that no writer makes: bombs, false claims, unknown codecs, encryption. Page bodies are given as bytes, headers and the
//! footer are encoded here (Thrift's compact protocol, the few kinds that Parquet's metadata uses).

use std::io::{Read, Write};

use nearprint_harness::Result;

/// Codecs by their number in the format.
pub const UNCOMPRESSED: i64 = 0;
pub const LZO: i64 = 3;
pub const ZSTD: i64 = 6;

/// Encodings by their number in the format.
pub const PLAIN: i64 = 0;
pub const DELTA_BINARY_PACKED: i64 = 5;
pub const RLE_DICTIONARY: i64 = 8;

const INT64: i64 = 2;
const BYTE_ARRAY: i64 = 6;

/// A page: its body as it stands in the file, and what its header says.
#[derive(Debug, Clone)]
pub struct Page {
    pub dictionary: bool,
    pub encoding: i64,
    pub n_values: i64,
    pub uncompressed_bytes: i64,
    /// The number in the header, where it is not the truth.
    pub claimed_compressed_bytes: Option<i64>,
    pub body: Vec<u8>,
}

impl Page {
    pub fn data(encoding: i64, n_values: i64, uncompressed_bytes: i64, body: Vec<u8>) -> Self {
        Self { dictionary: false, encoding, n_values, uncompressed_bytes, claimed_compressed_bytes: None, body }
    }

    pub fn dictionary(n_values: i64, uncompressed_bytes: i64, body: Vec<u8>) -> Self {
        Self { dictionary: true, ..Self::data(PLAIN, n_values, uncompressed_bytes, body) }
    }
}

/// A column chunk of the only row group.
#[derive(Debug, Clone)]
pub struct Column {
    pub name: &'static str,
    /// Strings, else 64-bit integers.
    pub string: bool,
    pub optional: bool,
    pub codec: i64,
    pub encrypted: bool,
    pub pages: Vec<Page>,
}

impl Column {
    pub fn strings(name: &'static str, codec: i64, pages: Vec<Page>) -> Self {
        Self { name, string: true, optional: false, codec, encrypted: false, pages }
    }

    /// Integers 0, 1, 2, … in a few bytes a thousand.
    pub fn counting(name: &'static str, n: u64) -> Result<Self> {
        let page = Page::data(DELTA_BINARY_PACKED, n.try_into()?, 0, zstd_of(&counting(n))?);
        let page = Page { uncompressed_bytes: counting(n).len().try_into()?, ..page };
        Ok(Self { name, string: false, optional: false, codec: ZSTD, encrypted: false, pages: vec![page] })
    }

    /// NULL in each of `n` rows.
    pub fn nulls(name: &'static str, string: bool, n: u64) -> Result<Self> {
        let mut levels = Vec::new();
        varint(&mut levels, n << 1);
        levels.push(0);
        let mut body = u32::try_from(levels.len())?.to_le_bytes().to_vec();
        body.extend(levels);
        let page = Page::data(PLAIN, n.try_into()?, body.len().try_into()?, body);
        Ok(Self { name, string, optional: true, codec: UNCOMPRESSED, encrypted: false, pages: vec![page] })
    }

    /// The same string in each of `n` rows, once in a dictionary.
    pub fn repeated(name: &'static str, value: &[u8], n: u64) -> Result<Self> {
        let plain = plain_string(value)?;
        let mut indices = vec![1];
        varint(&mut indices, n << 1);
        indices.push(0);
        let packed = zstd_of(&indices)?;
        let pages = vec![
            Page::dictionary(1, plain.len().try_into()?, zstd_of(&plain)?),
            Page::data(RLE_DICTIONARY, n.try_into()?, indices.len().try_into()?, packed),
        ];
        Ok(Self::strings(name, ZSTD, pages))
    }
}

/// A string as PLAIN has it.
pub fn plain_string(value: &[u8]) -> Result<Vec<u8>> {
    let mut plain = u32::try_from(value.len())?.to_le_bytes().to_vec();
    plain.extend_from_slice(value);
    Ok(plain)
}

pub fn zstd_of(bytes: &[u8]) -> Result<Vec<u8>> {
    Ok(zstd::encode_all(bytes, 3)?)
}

/// One string of `n` times the same character, as PLAIN and zstd, without holding it.
pub fn zstd_of_one_long_string(character: u8, n: u64) -> Result<Vec<u8>> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 3)?;
    encoder.write_all(&u32::try_from(n)?.to_le_bytes())?;
    std::io::copy(&mut std::io::repeat(character).take(n), &mut encoder)?;
    Ok(encoder.finish()?)
}

/// 0, 1, 2, … as DELTA_BINARY_PACKED: all differences are 1, so that no bit is stored for them.
fn counting(n: u64) -> Vec<u8> {
    let mut packed = Vec::new();
    for part in [128, 4, n, 0] {
        varint(&mut packed, part);
    }
    for _ in 0..n.saturating_sub(1).div_ceil(128) {
        varint(&mut packed, 2);
        packed.extend([0; 4]);
    }
    packed
}

/// A file with one row group.
pub fn file(n_rows: u64, columns: &[Column]) -> Result<Vec<u8>> {
    let n_rows = i64::try_from(n_rows)?;
    let mut bytes = b"PAR1".to_vec();
    let mut chunks = Vec::new();
    for column in columns {
        let begin = bytes.len();
        let mut data_at = begin;
        for page in &column.pages {
            if !page.dictionary && data_at == begin {
                data_at = bytes.len();
            }
            bytes.extend(page_header(page)?);
            bytes.extend(&page.body);
        }
        chunks.push((i64::try_from(begin)?, i64::try_from(data_at)?, i64::try_from(bytes.len() - begin)?));
    }
    let footer = footer(n_rows, columns, &chunks)?;
    let length = u32::try_from(footer.len())?.to_le_bytes();
    bytes.extend(footer);
    bytes.extend(length);
    bytes.extend(b"PAR1");
    Ok(bytes)
}

fn page_header(page: &Page) -> Result<Vec<u8>> {
    let mut header = Thrift::default();
    header.int(1, if page.dictionary { 2 } else { 0 });
    header.int(2, page.uncompressed_bytes);
    header.int(3, page.claimed_compressed_bytes.unwrap_or(page.body.len().try_into()?));
    header.begin(if page.dictionary { 7 } else { 5 });
    header.int(1, page.n_values);
    header.int(2, page.encoding);
    if !page.dictionary {
        header.int(3, 3);
        header.int(4, 3);
    }
    header.end();
    Ok(header.finish())
}

fn footer(n_rows: i64, columns: &[Column], chunks: &[(i64, i64, i64)]) -> Result<Vec<u8>> {
    let mut footer = Thrift::default();
    footer.int(1, 2);
    footer.list(2, STRUCT, columns.len() + 1);
    footer.element();
    footer.string(4, "schema");
    footer.int(5, columns.len().try_into()?);
    footer.end();
    for column in columns {
        footer.element();
        footer.int(1, if column.string { BYTE_ARRAY } else { INT64 });
        footer.int(3, i64::from(column.optional));
        footer.string(4, column.name);
        if column.string {
            footer.int(6, 0);
        }
        footer.end();
    }
    footer.long(3, n_rows);
    footer.list(4, STRUCT, 1);
    footer.element();
    footer.list(1, STRUCT, columns.len());
    for (column, (begin, data_at, length)) in columns.iter().zip(chunks) {
        chunk(&mut footer, n_rows, column, *begin, *data_at, *length);
    }
    footer.long(2, chunks.iter().map(|c| c.2).sum());
    footer.long(3, n_rows);
    footer.end();
    footer.string(6, "crafted");
    Ok(footer.finish())
}

fn chunk(footer: &mut Thrift, n_rows: i64, column: &Column, begin: i64, data_at: i64, length: i64) {
    footer.element();
    footer.long(2, begin);
    footer.begin(3);
    footer.int(1, if column.string { BYTE_ARRAY } else { INT64 });
    footer.list(2, INTEGER, column.pages.len());
    for page in &column.pages {
        footer.bare(page.encoding);
    }
    footer.list(3, BINARY, 1);
    footer.bare_string(column.name);
    footer.int(4, column.codec);
    footer.long(5, n_rows);
    footer.long(6, column.pages.iter().map(|p| p.uncompressed_bytes).sum());
    footer.long(7, length);
    footer.long(9, data_at);
    if data_at != begin {
        footer.long(11, begin);
    }
    footer.end();
    if column.encrypted {
        // ColumnCryptoMetaData: encrypted with the key of the footer.
        footer.begin(8);
        footer.begin(1);
        footer.end();
        footer.end();
    }
    footer.end();
}

const INTEGER: u8 = 5;
const LONG: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// A struct in Thrift's compact protocol; fields come in the order of their numbers.
#[derive(Debug)]
struct Thrift {
    out: Vec<u8>,
    last: Vec<u8>,
}

impl Default for Thrift {
    fn default() -> Self {
        Self { out: Vec::new(), last: vec![0] }
    }
}

impl Thrift {
    /// Fields are at most 15 apart in all of Parquet's metadata.
    fn field(&mut self, id: u8, kind: u8) {
        if let Some(last) = self.last.last_mut() {
            self.out.push((id - *last) << 4 | kind);
            *last = id;
        }
    }

    fn int(&mut self, id: u8, value: i64) {
        self.field(id, INTEGER);
        self.bare(value);
    }

    fn long(&mut self, id: u8, value: i64) {
        self.field(id, LONG);
        self.bare(value);
    }

    fn string(&mut self, id: u8, value: &str) {
        self.field(id, BINARY);
        self.bare_string(value);
    }

    fn list(&mut self, id: u8, kind: u8, n: usize) {
        self.field(id, LIST);
        match u8::try_from(n) {
            Ok(n) if n < 15 => self.out.push(n << 4 | kind),
            _ => {
                self.out.push(0xf0 | kind);
                varint(&mut self.out, n as u64);
            }
        }
    }

    fn begin(&mut self, id: u8) {
        self.field(id, STRUCT);
        self.element();
    }

    fn element(&mut self) {
        self.last.push(0);
    }

    fn end(&mut self) {
        self.out.push(0);
        self.last.pop();
    }

    fn bare(&mut self, value: i64) {
        varint(&mut self.out, ((value << 1) ^ (value >> 63)).cast_unsigned());
    }

    fn bare_string(&mut self, value: &str) {
        varint(&mut self.out, value.len() as u64);
        self.out.extend(value.as_bytes());
    }

    fn finish(mut self) -> Vec<u8> {
        self.out.push(0);
        self.out
    }
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(u8::try_from(value & 0x7f).unwrap_or_default() | 0x80);
        value >>= 7;
    }
    out.push(u8::try_from(value).unwrap_or_default());
}
