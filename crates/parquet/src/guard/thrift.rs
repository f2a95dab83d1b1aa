//! A walk through Parquet's compact Thrift that comes before any allocation. It checks the shape of footers and page
//! indexes, and reads the sizes in page headers.
//!
//! Readers reserve memory for the number of elements that a list claims to have, and for the bytes to which a page
//! claims to unpack. Such claims are believed only if this module and the `parquet` crate cannot read the same bytes
//! differently. The crate identifies fields by their numbers alone, truncates numbers to their types, and takes the
//! last of repeated fields. No writer needs any of this. So a field that the crate reads must have its type, a number
//! must fit its type, and fields must come in ascending order. Everything else is refused.

use parquet::file::page_index::offset_index::PageLocation;

/// A position in a serialised struct.
struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// The largest depth of structs within structs. Parquet defines no deeper ones.
const MAX_DEPTH: usize = 32;

/// The largest depth of groups within groups in a schema. The reader of the schema recurses into each of them.
const MAX_SCHEMA_DEPTH: usize = 32;

/// The largest number of names in the paths of all columns together. The reader holds each path on its own.
const MAX_PATH_PARTS: usize = 1 << 18;

/// The largest number of row groups. The format numbers them with signed integers of 16 bits.
const MAX_ROW_GROUPS: usize = 1 << 15;

/// A lower bound for the bytes of a struct in a list of a footer.
const MIN_STRUCT_BYTES: u64 = 2;

/// The fault of serialised bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// They end too early. More bytes may make them complete.
    Short,
    /// They are not Thrift, or claim something impossible.
    Wrong,
}

type Result<T> = std::result::Result<T, Malformed>;

const BOOL_TRUE: u8 = 1;
const BOOL_FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;

/// The type that a field must have if the crate reads it.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Bool,
    Byte,
    I16,
    I32,
    I64,
    Double,
    Binary,
    Struct(&'static Struct),
    List(&'static Kind),
}

impl Kind {
    /// Returns whether a field's type on the wire is this one.
    fn is(self, wire: u8) -> bool {
        match self {
            Self::Bool => matches!(wire, BOOL_TRUE | BOOL_FALSE),
            Self::Byte => wire == BYTE,
            Self::I16 => wire == I16,
            Self::I32 => wire == I32,
            Self::I64 => wire == I64,
            Self::Double => wire == DOUBLE,
            Self::Binary => wire == BINARY,
            Self::Struct(_) => wire == STRUCT,
            Self::List(_) => wire == LIST,
        }
    }
}

/// A struct, with the fields that the crate reads. The crate skips all other fields by their type, and so does this
/// module.
#[derive(Debug)]
struct Struct {
    name: Name,
    fields: &'static [(i16, Kind)],
}

/// The structs whose fields are examined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    Other,
    SchemaElement,
    RowGroup,
    ColumnChunk,
    PageHeader,
    DataPage,
    DictionaryPage,
    DataPageV2,
    PageLocation,
}

/// A field that was passed. The number 0 stands for the beginning of its struct.
#[derive(Debug, Clone, Copy)]
struct Seen {
    of: Name,
    id: i16,
    /// The value of a number or boolean; 0 for other types.
    value: i64,
    /// The position after the field.
    end: usize,
}

type Show<'s> = dyn FnMut(Seen) -> Result<()> + 's;

macro_rules! structs {
    ($($constant:ident: $name:ident { $($id:literal: $kind:expr),* $(,)? })*) => {
        $(static $constant: Struct = Struct { name: Name::$name, fields: &[$(($id, $kind)),*] };)*
    };
}

// The part of parquet.thrift that the `parquet` crate reads.
structs! {
    FILE_METADATA: Other {
        1: Kind::I32, 2: Kind::List(&Kind::Struct(&SCHEMA_ELEMENT)), 3: Kind::I64, 4: Kind::List(&Kind::Struct(&ROW_GROUP)),
        5: Kind::List(&Kind::Struct(&KEY_VALUE)), 6: Kind::Binary, 7: Kind::List(&Kind::Struct(&COLUMN_ORDER)),
    }
    SCHEMA_ELEMENT: SchemaElement {
        1: Kind::I32, 2: Kind::I32, 3: Kind::I32, 4: Kind::Binary, 5: Kind::I32, 6: Kind::I32, 7: Kind::I32, 8: Kind::I32,
        9: Kind::I32, 10: Kind::Struct(&LOGICAL_TYPE),
    }
    LOGICAL_TYPE: Other {
        1: Kind::Struct(&EMPTY), 2: Kind::Struct(&EMPTY), 3: Kind::Struct(&EMPTY), 4: Kind::Struct(&EMPTY),
        5: Kind::Struct(&DECIMAL), 6: Kind::Struct(&EMPTY), 7: Kind::Struct(&TIME), 8: Kind::Struct(&TIME),
        10: Kind::Struct(&INTEGER), 11: Kind::Struct(&EMPTY), 12: Kind::Struct(&EMPTY), 13: Kind::Struct(&EMPTY),
        14: Kind::Struct(&EMPTY), 15: Kind::Struct(&EMPTY), 16: Kind::Struct(&VARIANT), 17: Kind::Struct(&GEOMETRY),
        18: Kind::Struct(&GEOGRAPHY),
    }
    EMPTY: Other {}
    DECIMAL: Other { 1: Kind::I32, 2: Kind::I32 }
    TIME: Other { 1: Kind::Bool, 2: Kind::Struct(&TIME_UNIT) }
    TIME_UNIT: Other { 1: Kind::Struct(&EMPTY), 2: Kind::Struct(&EMPTY), 3: Kind::Struct(&EMPTY) }
    INTEGER: Other { 1: Kind::Byte, 2: Kind::Bool }
    VARIANT: Other { 1: Kind::Byte }
    GEOMETRY: Other { 1: Kind::Binary }
    GEOGRAPHY: Other { 1: Kind::Binary, 2: Kind::I32 }
    KEY_VALUE: Other { 1: Kind::Binary, 2: Kind::Binary }
    COLUMN_ORDER: Other { 1: Kind::Struct(&EMPTY) }
    ROW_GROUP: RowGroup {
        1: Kind::List(&Kind::Struct(&COLUMN_CHUNK)), 2: Kind::I64, 3: Kind::I64, 4: Kind::List(&Kind::Struct(&SORTING_COLUMN)),
        5: Kind::I64, 7: Kind::I16,
    }
    SORTING_COLUMN: Other { 1: Kind::I32, 2: Kind::Bool, 3: Kind::Bool }
    COLUMN_CHUNK: ColumnChunk {
        1: Kind::Binary, 2: Kind::I64, 3: Kind::Struct(&COLUMN_METADATA), 4: Kind::I64, 5: Kind::I32, 6: Kind::I64, 7: Kind::I32,
    }
    COLUMN_METADATA: Other {
        1: Kind::I32, 2: Kind::List(&Kind::I32), 4: Kind::I32, 5: Kind::I64, 6: Kind::I64, 7: Kind::I64, 9: Kind::I64,
        10: Kind::I64, 11: Kind::I64, 12: Kind::Struct(&STATISTICS), 13: Kind::List(&Kind::Struct(&PAGE_ENCODING_STATS)),
        14: Kind::I64, 15: Kind::I32, 16: Kind::Struct(&SIZE_STATISTICS), 17: Kind::Struct(&GEOSPATIAL_STATISTICS),
    }
    STATISTICS: Other {
        1: Kind::Binary, 2: Kind::Binary, 3: Kind::I64, 4: Kind::I64, 5: Kind::Binary, 6: Kind::Binary, 7: Kind::Bool,
        8: Kind::Bool,
    }
    PAGE_ENCODING_STATS: Other { 1: Kind::I32, 2: Kind::I32, 3: Kind::I32 }
    SIZE_STATISTICS: Other { 1: Kind::I64, 2: Kind::List(&Kind::I64), 3: Kind::List(&Kind::I64) }
    GEOSPATIAL_STATISTICS: Other { 1: Kind::Struct(&BOUNDING_BOX), 2: Kind::List(&Kind::I32) }
    BOUNDING_BOX: Other {
        1: Kind::Double, 2: Kind::Double, 3: Kind::Double, 4: Kind::Double, 5: Kind::Double, 6: Kind::Double, 7: Kind::Double,
        8: Kind::Double,
    }
    OFFSET_INDEX: Other { 1: Kind::List(&Kind::Struct(&PAGE_LOCATION)), 2: Kind::List(&Kind::I64) }
    PAGE_LOCATION: PageLocation { 1: Kind::I64, 2: Kind::I32, 3: Kind::I64 }
    COLUMN_INDEX: Other {
        1: Kind::List(&Kind::Bool), 2: Kind::List(&Kind::Binary), 3: Kind::List(&Kind::Binary), 4: Kind::I32,
        5: Kind::List(&Kind::I64), 6: Kind::List(&Kind::I64), 7: Kind::List(&Kind::I64),
    }
    PAGE_HEADER: PageHeader {
        1: Kind::I32, 2: Kind::I32, 3: Kind::I32, 4: Kind::I32, 5: Kind::Struct(&DATA_PAGE), 6: Kind::Struct(&EMPTY),
        7: Kind::Struct(&DICTIONARY_PAGE), 8: Kind::Struct(&DATA_PAGE_V2),
    }
    // The statistics of a page are skipped.
    DATA_PAGE: DataPage { 1: Kind::I32, 2: Kind::I32, 3: Kind::I32, 4: Kind::I32 }
    DICTIONARY_PAGE: DictionaryPage { 1: Kind::I32, 2: Kind::I32, 3: Kind::Bool }
    DATA_PAGE_V2: DataPageV2 {
        1: Kind::I32, 2: Kind::I32, 3: Kind::I32, 4: Kind::I32, 5: Kind::I32, 6: Kind::I32, 7: Kind::Bool,
    }
}

impl<'a> Walk<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn byte(&mut self) -> Result<u8> {
        let byte = *self.bytes.get(self.at).ok_or(Malformed::Short)?;
        self.at += 1;
        Ok(byte)
    }

    fn pass(&mut self, n: u64) -> Result<()> {
        let n = usize::try_from(n).map_err(|_| Malformed::Short)?;
        let end = self.at.checked_add(n).filter(|&end| end <= self.bytes.len());
        self.at = end.ok_or(Malformed::Short)?;
        Ok(())
    }

    fn varint(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed::Wrong)
    }

    fn zigzag(&mut self) -> Result<i64> {
        let value = self.varint()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    /// Reads a number, which must fit its type.
    fn number<T: TryFrom<i64>>(&mut self) -> Result<i64> {
        let value = self.zigzag()?;
        T::try_from(value).map(|_| value).map_err(|_| Malformed::Wrong)
    }

    /// Returns the number and type of the next field, or `None` at the end of the struct.
    fn field(&mut self, last: i16) -> Result<Option<(i16, u8)>> {
        let head = self.byte()?;
        if head == 0 {
            return Ok(None);
        }
        let id = match head >> 4 {
            0 => i16::try_from(self.zigzag()?).ok(),
            delta => last.checked_add(i16::from(delta)),
        };
        id.filter(|&id| id > last).map(|id| Some((id, head & 15))).ok_or(Malformed::Wrong)
    }

    /// Passes a struct, and shows each of its fields to `show`.
    fn known(&mut self, of: &'static Struct, depth: usize, show: &mut Show<'_>) -> Result<()> {
        show(Seen { of: of.name, id: 0, value: 0, end: self.at })?;
        let mut last = 0;
        while let Some((id, wire)) = self.field(last)? {
            let value = match of.fields.iter().find(|field| field.0 == id) {
                Some((_, kind)) if kind.is(wire) => self.known_value(*kind, wire, depth, show)?,
                Some(_) => return Err(Malformed::Wrong),
                None => self.value(wire, depth).map(|()| 0)?,
            };
            show(Seen { of: of.name, id, value, end: self.at })?;
            last = id;
        }
        Ok(())
    }

    fn known_value(&mut self, kind: Kind, wire: u8, depth: usize, show: &mut Show<'_>) -> Result<i64> {
        match kind {
            Kind::Bool => return Ok(i64::from(wire == BOOL_TRUE)),
            Kind::I16 => return self.number::<i16>(),
            Kind::I32 => return self.number::<i32>(),
            Kind::I64 => return self.zigzag(),
            Kind::Byte | Kind::Double | Kind::Binary => self.value(wire, depth)?,
            Kind::Struct(of) => self.known(of, depth + 1, show)?,
            Kind::List(element) => self.known_list(*element, depth, show)?,
        }
        Ok(0)
    }

    fn known_list(&mut self, element: Kind, depth: usize, show: &mut Show<'_>) -> Result<()> {
        let (n, wire) = self.list_head()?;
        if n > 0 && !element.is(wire) {
            return Err(Malformed::Wrong);
        }
        (0..n).try_for_each(|_| match element {
            Kind::Bool => self.pass(1),
            other => self.known_value(other, wire, depth, show).map(drop),
        })
    }

    /// Passes a struct whose fields are not read.
    fn structure(&mut self, depth: usize) -> Result<()> {
        let mut last = 0;
        while let Some((id, wire)) = self.field(last)? {
            self.value(wire, depth)?;
            last = id;
        }
        Ok(())
    }

    fn value(&mut self, wire: u8, depth: usize) -> Result<()> {
        if depth > MAX_DEPTH {
            return Err(Malformed::Wrong);
        }
        match wire {
            BOOL_TRUE | BOOL_FALSE => Ok(()),
            BYTE => self.pass(1),
            I16 | I32 | I64 => self.varint().map(drop),
            DOUBLE => self.pass(8),
            BINARY => {
                let n = self.varint()?;
                self.pass(n)
            }
            LIST | SET => self.list(depth),
            MAP => self.map(depth),
            STRUCT => self.structure(depth + 1),
            _ => Err(Malformed::Wrong),
        }
    }

    /// Returns the number of a list's elements and their type. The rest of the bytes is long enough for so many
    /// elements.
    fn list_head(&mut self) -> Result<(u64, u8)> {
        let head = self.byte()?;
        let wire = head & 15;
        let n = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
        let least = if wire == STRUCT { MIN_STRUCT_BYTES } else { 1 };
        // A list of 2^31 elements would be longer than any footer.
        i32::try_from(n).map_err(|_| Malformed::Wrong)?;
        self.require(n * least)?;
        Ok((n, wire))
    }

    fn list(&mut self, depth: usize) -> Result<()> {
        let (n, wire) = self.list_head()?;
        (0..n).try_for_each(|_| self.element(wire, depth))
    }

    fn map(&mut self, depth: usize) -> Result<()> {
        let n = self.varint()?;
        if n == 0 {
            return Ok(());
        }
        i32::try_from(n).map_err(|_| Malformed::Wrong)?;
        self.require(n * 2)?;
        let kinds = self.byte()?;
        (0..n).try_for_each(|_| {
            self.element(kinds >> 4, depth)?;
            self.element(kinds & 15, depth)
        })
    }

    /// Passes an element of a list or map that is not read. Booleans are refused: each takes one byte here, but the
    /// crate would skip none. Parquet has lists of booleans only in page indexes, where they are read.
    fn element(&mut self, wire: u8, depth: usize) -> Result<()> {
        if matches!(wire, BOOL_TRUE | BOOL_FALSE) { Err(Malformed::Wrong) } else { self.value(wire, depth + 1) }
    }

    fn require(&self, n: u64) -> Result<()> {
        if n > (self.bytes.len() - self.at) as u64 { Err(Malformed::Short) } else { Ok(()) }
    }
}

/// Facts about a footer that are known before it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FooterShape {
    /// A column is encrypted. Its description may be encrypted as well, or only its pages.
    pub has_encrypted_column: bool,
}

/// Checks that a footer holds as much as its lists and its schema claim.
///
/// # Errors
/// [`Malformed`] if the footer is cut off or damaged, or has too many row groups or columns.
pub fn check_footer(bytes: &[u8]) -> Result<FooterShape> {
    const CRYPTO_METADATA: i16 = 8;
    const NUM_CHILDREN: i16 = 5;
    let (mut schema, mut n_row_groups, mut has_encrypted_column) = (Vec::new(), 0, false);
    Walk::new(bytes).known(&FILE_METADATA, 0, &mut |seen| {
        match (seen.of, seen.id) {
            (Name::SchemaElement, 0) => schema.push(0),
            (Name::SchemaElement, NUM_CHILDREN) => {
                if let Some(last) = schema.last_mut() {
                    *last = usize::try_from(seen.value).map_err(|_| Malformed::Wrong)?;
                }
            }
            (Name::RowGroup, 0) => n_row_groups += 1,
            (Name::ColumnChunk, CRYPTO_METADATA) => has_encrypted_column = true,
            _ => {}
        }
        if n_row_groups > MAX_ROW_GROUPS { Err(Malformed::Wrong) } else { Ok(()) }
    })?;
    check_schema(&schema)?;
    Ok(FooterShape { has_encrypted_column })
}

/// Checks that the elements of a schema form one tree that is neither too deep nor too large. Each element is given by
/// the number of its children, and stands before them.
fn check_schema(children: &[usize]) -> Result<()> {
    let mut open: Vec<usize> = vec![1];
    let mut path_parts = 0;
    for &n in children {
        while open.last() == Some(&0) {
            open.pop();
        }
        *open.last_mut().ok_or(Malformed::Wrong)? -= 1;
        path_parts += open.len();
        if n > children.len() || open.len() > MAX_SCHEMA_DEPTH || path_parts > MAX_PATH_PARTS {
            return Err(Malformed::Wrong);
        }
        open.push(n);
    }
    if open.iter().all(|&n| n == 0) { Ok(()) } else { Err(Malformed::Wrong) }
}

/// Reads the offset index of one column: the positions of its pages.
///
/// # Errors
/// [`Malformed`] if the index is cut off or damaged, or if a page lacks its position, its size or its first row.
pub fn page_locations(bytes: &[u8]) -> Result<Vec<PageLocation>> {
    const ALL_FIELDS: i16 = 3;
    let mut pages: Vec<PageLocation> = Vec::new();
    let mut n_fields = ALL_FIELDS;
    Walk::new(bytes).known(&OFFSET_INDEX, 0, &mut |seen| {
        if seen.of != Name::PageLocation {
            return Ok(());
        }
        match (seen.id, pages.last_mut()) {
            (0, _) if n_fields != ALL_FIELDS => return Err(Malformed::Wrong),
            (0, _) => {
                pages.push(PageLocation { offset: 0, compressed_page_size: 0, first_row_index: 0 });
                n_fields = 0;
            }
            (1, Some(page)) => (page.offset, n_fields) = (seen.value, n_fields + 1),
            (2, Some(page)) => {
                page.compressed_page_size = i32::try_from(seen.value).map_err(|_| Malformed::Wrong)?;
                n_fields += 1;
            }
            (3, Some(page)) => (page.first_row_index, n_fields) = (seen.value, n_fields + 1),
            _ => {}
        }
        Ok(())
    })?;
    if n_fields == ALL_FIELDS { Ok(pages) } else { Err(Malformed::Wrong) }
}

/// Checks that the column index of one column holds as much as its lists claim.
///
/// # Errors
/// [`Malformed`] if the index is cut off or damaged.
pub fn check_column_index(bytes: &[u8]) -> Result<()> {
    Walk::new(bytes).known(&COLUMN_INDEX, 0, &mut |_| Ok(()))
}

/// The content of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageKind {
    /// Values, packed together with their levels.
    Data,
    /// An index, which is not read.
    Index,
    /// Values to which other pages point.
    Dictionary,
    /// Values, with unpacked levels before them.
    DataV2,
}

/// The sizes in a page's header, and some more of its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageSizes {
    /// The content of the page.
    pub kind: PageKind,
    /// The size of the header in bytes.
    pub header_bytes: usize,
    /// The size of the unpacked page in bytes.
    pub unpacked: u64,
    /// The size of the page in the file, in bytes.
    pub packed: u64,
    /// The number of values, including NULLs.
    pub n_values: u64,
    /// The number of the encoding in the format.
    pub encoding: u64,
    /// The checksum of the page's bytes in the file.
    pub crc: Option<u32>,
    /// The position in the header at which the checksum stands, or would stand.
    pub before_crc: usize,
    /// The size of the levels before the packed values, in bytes. Only pages of version 2 have such levels.
    pub level_bytes: u64,
    /// The values of such a page are packed.
    pub is_packed: bool,
}

impl PageSizes {
    /// Returns the bytes that header and page take in the file.
    pub fn whole_bytes(&self) -> u64 {
        self.header_bytes as u64 + self.packed
    }
}

/// The fields of a page's header that were found so far.
#[derive(Debug, Default)]
struct Header {
    page_type: Option<i64>,
    unpacked: Option<i64>,
    packed: Option<i64>,
    crc: Option<i64>,
    before_crc: usize,
    /// The one of the four descriptions that was found. There may be only one.
    described: Option<PageKind>,
    n_values: Option<i64>,
    encoding: Option<i64>,
    level_bytes: u64,
    is_unpacked: bool,
}

impl Header {
    fn note(&mut self, seen: Seen) -> Result<()> {
        let value = Some(seen.value);
        match (seen.of, seen.id) {
            (Name::PageHeader, 1) => self.page_type = value,
            (Name::PageHeader, 2) => self.unpacked = value,
            (Name::PageHeader, 3) => (self.packed, self.before_crc) = (value, seen.end),
            (Name::PageHeader, 4) => self.crc = value,
            (Name::PageHeader, 5) => self.describe(PageKind::Data)?,
            (Name::PageHeader, 6) => self.describe(PageKind::Index)?,
            (Name::PageHeader, 7) => self.describe(PageKind::Dictionary)?,
            (Name::PageHeader, 8) => self.describe(PageKind::DataV2)?,
            (Name::DataPage | Name::DictionaryPage | Name::DataPageV2, 1) => self.n_values = value,
            (Name::DataPage | Name::DictionaryPage, 2) | (Name::DataPageV2, 4) => self.encoding = value,
            (Name::DataPageV2, 5 | 6) => self.level_bytes += size(value)?,
            (Name::DataPageV2, 7) => self.is_unpacked = seen.value == 0,
            _ => {}
        }
        Ok(())
    }

    fn describe(&mut self, kind: PageKind) -> Result<()> {
        if self.described.replace(kind).is_some() { Err(Malformed::Wrong) } else { Ok(()) }
    }

    fn finish(self, header_bytes: usize) -> Result<PageSizes> {
        let kind = match (self.page_type, self.described) {
            (Some(0), Some(PageKind::Data)) => PageKind::Data,
            (Some(1), Some(PageKind::Index) | None) => PageKind::Index,
            (Some(2), Some(PageKind::Dictionary)) => PageKind::Dictionary,
            (Some(3), Some(PageKind::DataV2)) => PageKind::DataV2,
            _ => return Err(Malformed::Wrong),
        };
        let (unpacked, packed) = (size(self.unpacked)?, size(self.packed)?);
        if self.level_bytes > unpacked.min(packed) {
            return Err(Malformed::Wrong);
        }
        let counted = |value: Option<i64>| if kind == PageKind::Index { Ok(0) } else { size(value) };
        Ok(PageSizes {
            kind,
            header_bytes,
            unpacked,
            packed,
            n_values: counted(self.n_values)?,
            encoding: counted(self.encoding)?,
            crc: self.crc.map(low_bits),
            before_crc: self.before_crc,
            level_bytes: self.level_bytes,
            is_packed: !self.is_unpacked,
        })
    }
}

/// Returns a size or count, which must be there and must not be negative.
fn size(value: Option<i64>) -> Result<u64> {
    value.and_then(|value| u64::try_from(value).ok()).ok_or(Malformed::Wrong)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "of 32 bits, whose sign says nothing")]
fn low_bits(crc: i64) -> u32 {
    crc as u32
}

/// Reads the page header at the beginning of `bytes`.
///
/// # Errors
/// [`Malformed::Short`] if the header is cut off, or [`Malformed::Wrong`] if it is damaged.
pub fn page_sizes(bytes: &[u8]) -> Result<PageSizes> {
    let mut walk = Walk::new(bytes);
    let mut header = Header::default();
    walk.known(&PAGE_HEADER, 0, &mut |seen| header.note(seen))?;
    header.finish(walk.at)
}
