//! Parquet's compact Thrift, as far as it must be looked at before anything is allocated for it: the shape of a footer and of a
//! page index, and the sizes in a page's header.
//!
//! Readers reserve memory for what a list says it holds, and for the bytes that a page says it unpacks to. Both are claims of
//! the file. They are believed only where this module and the `parquet` crate cannot read the same bytes differently. The crate
//! goes by a field's number alone, cuts numbers down to their type, and takes the last of repeated fields; no writer needs any
//! of this. So a field that the crate reads must have its type, numbers must fit theirs, and fields must come in ascending
//! order: all else is refused.

/// A position in a serialised struct.
struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Structs in structs, deeper than any that Parquet defines.
const MAX_DEPTH: usize = 32;

/// Groups in groups of a schema: its reader calls itself for each.
const MAX_SCHEMA_DEPTH: usize = 32;

/// Names in the paths of all columns of a schema, each of which is held for itself.
const MAX_PATH_PARTS: usize = 1 << 18;

/// Row groups are numbered with 16 bits.
const MAX_ROW_GROUPS: usize = 1 << 15;

/// Fewer bytes than any struct in a list of a footer takes.
const MIN_STRUCT_BYTES: u64 = 2;

/// What is wrong with serialised bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// They end too early: more of them may mend it.
    Short,
    /// They are no Thrift, or claim what cannot be.
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

/// What a field that the crate reads must be.
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
    /// Whether a field of this type stands there.
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

/// A struct, and those of its fields that the crate reads; it passes over others by their type, as is done here.
#[derive(Debug)]
struct Struct {
    name: Name,
    fields: &'static [(i16, Kind)],
}

/// Structs that something is to be known of.
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
}

/// A field that was passed; number 0 is the begin of its struct.
#[derive(Debug, Clone, Copy)]
struct Seen {
    of: Name,
    id: i16,
    /// Of numbers and booleans; of others 0.
    value: i64,
    /// Where the field ends.
    end: usize,
}

type Show<'s> = dyn FnMut(Seen) -> Result<()> + 's;

macro_rules! structs {
    ($($constant:ident: $name:ident { $($id:literal: $kind:expr),* $(,)? })*) => {
        $(static $constant: Struct = Struct { name: Name::$name, fields: &[$(($id, $kind)),*] };)*
    };
}

// parquet.thrift, as far as the `parquet` crate reads it.
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
    PAGE_LOCATION: Other { 1: Kind::I64, 2: Kind::I32, 3: Kind::I64 }
    COLUMN_INDEX: Other {
        1: Kind::List(&Kind::Bool), 2: Kind::List(&Kind::Binary), 3: Kind::List(&Kind::Binary), 4: Kind::I32,
        5: Kind::List(&Kind::I64), 6: Kind::List(&Kind::I64), 7: Kind::List(&Kind::I64),
    }
    PAGE_HEADER: PageHeader {
        1: Kind::I32, 2: Kind::I32, 3: Kind::I32, 4: Kind::I32, 5: Kind::Struct(&DATA_PAGE), 6: Kind::Struct(&EMPTY),
        7: Kind::Struct(&DICTIONARY_PAGE), 8: Kind::Struct(&DATA_PAGE_V2),
    }
    // Statistics of a page are passed over.
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

    /// A number that its type holds.
    fn number<T: TryFrom<i64>>(&mut self) -> Result<i64> {
        let value = self.zigzag()?;
        T::try_from(value).map(|_| value).map_err(|_| Malformed::Wrong)
    }

    /// The next field's number and type; none at the struct's end.
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

    /// Passes a struct and shows its fields.
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

    /// Passes a struct whose fields nobody reads.
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

    /// How many elements a list has, which may all be there, and their type.
    fn list_head(&mut self) -> Result<(u64, u8)> {
        let head = self.byte()?;
        let wire = head & 15;
        let n = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
        let least = if wire == STRUCT { MIN_STRUCT_BYTES } else { 1 };
        // A list of 2^31 elements is longer than any footer.
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

    /// A boolean takes a byte here, and the crate passes over none: Parquet has lists of them in page indexes only.
    fn element(&mut self, wire: u8, depth: usize) -> Result<()> {
        if matches!(wire, BOOL_TRUE | BOOL_FALSE) { Err(Malformed::Wrong) } else { self.value(wire, depth + 1) }
    }

    fn require(&self, n: u64) -> Result<()> {
        if n > (self.bytes.len() - self.at) as u64 { Err(Malformed::Short) } else { Ok(()) }
    }
}

/// What is known of a footer before it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FooterShape {
    /// Whether a column is encrypted: then its description is too, or its pages alone are.
    pub has_encrypted_column: bool,
}

/// Whether a footer holds as much as its lists and its schema say.
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

/// Elements are given by how many children each has, a parent before its children: one tree, and no deep or huge one.
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

/// Whether an offset index of one column holds as much as its lists say.
pub fn check_offset_index(bytes: &[u8]) -> Result<()> {
    Walk::new(bytes).known(&OFFSET_INDEX, 0, &mut |_| Ok(()))
}

/// The same of a column index.
pub fn check_column_index(bytes: &[u8]) -> Result<()> {
    Walk::new(bytes).known(&COLUMN_INDEX, 0, &mut |_| Ok(()))
}

/// What is in a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageKind {
    /// Values, levels packed with them.
    Data,
    /// Nothing that is read.
    Index,
    /// Values that others point to.
    Dictionary,
    /// Values, levels before them.
    DataV2,
}

/// Where a page lies and what it says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageSizes {
    /// What is in it.
    pub kind: PageKind,
    /// Bytes of the header itself.
    pub header_bytes: usize,
    /// Bytes when unpacked.
    pub unpacked: u64,
    /// Bytes in the file.
    pub packed: u64,
    /// Values, NULLs among them.
    pub n_values: u64,
    /// The encoding's number in the format.
    pub encoding: u64,
    /// Checksum of the bytes in the file.
    pub crc: Option<u32>,
    /// Where in the header a checksum stands or would stand.
    pub before_crc: usize,
    /// Bytes of levels before the packed values of a page of version 2.
    pub level_bytes: u64,
    /// Whether the values of such a page are packed.
    pub is_packed: bool,
}

impl PageSizes {
    /// Bytes of header and page in the file.
    pub fn whole_bytes(&self) -> u64 {
        self.header_bytes as u64 + self.packed
    }
}

/// The fields of a page's header, as they are found.
#[derive(Debug, Default)]
struct Header {
    page_type: Option<i64>,
    unpacked: Option<i64>,
    packed: Option<i64>,
    crc: Option<i64>,
    before_crc: usize,
    /// The only one of the four descriptions.
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

/// A size or count that must be there.
fn size(value: Option<i64>) -> Result<u64> {
    value.and_then(|value| u64::try_from(value).ok()).ok_or(Malformed::Wrong)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "of 32 bits, whose sign says nothing")]
fn low_bits(crc: i64) -> u32 {
    crc as u32
}

/// The sizes in the page header that `bytes` begin with.
pub fn page_sizes(bytes: &[u8]) -> Result<PageSizes> {
    let mut walk = Walk::new(bytes);
    let mut header = Header::default();
    walk.known(&PAGE_HEADER, 0, &mut |seen| header.note(seen))?;
    header.finish(walk.at)
}
