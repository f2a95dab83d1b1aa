//! Parquet's compact Thrift, as far as it must be looked at before anything is allocated for it: the shape of a footer, and
//! the sizes in a page's header.
//!
//! Readers reserve memory for what a list says it holds, and for the bytes that a page says it unpacks to. Both are claims of
//! the file.

/// A position in a serialised struct.
struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Structs in structs, deeper than any that Parquet defines.
const MAX_DEPTH: usize = 32;

/// Fewer bytes than any struct in a list of a footer takes.
const MIN_STRUCT_BYTES: u64 = 2;

/// What is wrong with serialised bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Malformed {
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

    /// The next field's id and type; none at the struct's end.
    fn field(&mut self, last: i64) -> Result<Option<(i64, u8)>> {
        let head = self.byte()?;
        if head == 0 {
            return Ok(None);
        }
        let id = match head >> 4 {
            0 => self.zigzag()?,
            delta => last.checked_add(i64::from(delta)).ok_or(Malformed::Wrong)?,
        };
        Ok(Some((id, head & 15)))
    }

    fn structure(&mut self, depth: usize) -> Result<()> {
        let mut last = 0;
        while let Some((id, kind)) = self.field(last)? {
            self.value(kind, depth)?;
            last = id;
        }
        Ok(())
    }

    fn value(&mut self, kind: u8, depth: usize) -> Result<()> {
        if depth > MAX_DEPTH {
            return Err(Malformed::Wrong);
        }
        match kind {
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

    fn list(&mut self, depth: usize) -> Result<()> {
        let head = self.byte()?;
        let kind = head & 15;
        let n = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
        let least = if kind == STRUCT { MIN_STRUCT_BYTES } else { 1 };
        self.require(n.saturating_mul(least))?;
        (0..n).try_for_each(|_| self.element(kind, depth))
    }

    /// Shows each field of a struct, which is to be passed then.
    fn fields(&mut self, show: &mut dyn FnMut(&mut Self, i64, u8) -> Result<()>) -> Result<()> {
        let mut last = 0;
        while let Some((id, kind)) = self.field(last)? {
            show(self, id, kind)?;
            last = id;
        }
        Ok(())
    }

    /// The same of each struct of a list.
    fn structures(&mut self, show: &mut dyn FnMut(&mut Self, i64, u8) -> Result<()>) -> Result<()> {
        let head = self.byte()?;
        let n = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
        if head & 15 != STRUCT {
            return Err(Malformed::Wrong);
        }
        (0..n).try_for_each(|_| self.fields(show))
    }

    fn map(&mut self, depth: usize) -> Result<()> {
        let n = self.varint()?;
        if n == 0 {
            return Ok(());
        }
        self.require(n.saturating_mul(2))?;
        let kinds = self.byte()?;
        (0..n).try_for_each(|_| {
            self.element(kinds >> 4, depth)?;
            self.element(kinds & 15, depth)
        })
    }

    /// In lists and maps a boolean takes a byte of its own.
    fn element(&mut self, kind: u8, depth: usize) -> Result<()> {
        if matches!(kind, BOOL_TRUE | BOOL_FALSE) { self.pass(1) } else { self.value(kind, depth + 1) }
    }

    fn require(&self, n: u64) -> Result<()> {
        if n > (self.bytes.len() - self.at) as u64 { Err(Malformed::Short) } else { Ok(()) }
    }
}

/// Whether a footer holds as much as its lists say.
pub(crate) fn check_footer(bytes: &[u8]) -> Result<()> {
    Walk::new(bytes).structure(0)
}

/// Whether a column of a footer is encrypted: then its description is too, or its pages alone are.
pub(crate) fn has_encrypted_column(bytes: &[u8]) -> Result<bool> {
    const ROW_GROUPS: i64 = 4;
    const COLUMNS: i64 = 1;
    const CRYPTO_METADATA: i64 = 8;
    let mut encrypted = false;
    Walk::new(bytes).fields(&mut |walk, id, kind| match (id, kind) {
        (ROW_GROUPS, LIST) => walk.structures(&mut |walk, id, kind| match (id, kind) {
            (COLUMNS, LIST) => walk.structures(&mut |walk, id, kind| {
                encrypted |= id == CRYPTO_METADATA;
                walk.value(kind, 0)
            }),
            _ => walk.value(kind, 0),
        }),
        _ => walk.value(kind, 0),
    })?;
    Ok(encrypted)
}

/// Where a page lies and what it says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageSizes {
    /// Bytes of the header itself.
    pub(crate) header_bytes: usize,
    /// Bytes when unpacked.
    pub(crate) unpacked: u64,
    /// Bytes in the file.
    pub(crate) packed: u64,
    /// Checksum of the bytes in the file.
    pub(crate) crc: Option<u32>,
    /// Where in the header a checksum stands or would stand.
    pub(crate) before_crc: usize,
    /// Bytes of levels before the packed values of a page of version 2.
    pub(crate) level_bytes: u64,
    /// Whether the values of such a page are packed.
    pub(crate) is_packed: bool,
}

/// The sizes in the page header that `bytes` begin with.
pub(crate) fn page_sizes(bytes: &[u8]) -> Result<PageSizes> {
    const DATA_PAGE_V2: i64 = 8;
    let mut walk = Walk::new(bytes);
    let (mut unpacked, mut packed, mut crc) = (None, None, None);
    let (mut level_bytes, mut is_packed, mut before_crc) = (0, true, 0);
    let mut last = 0;
    while let Some((id, kind)) = walk.field(last)? {
        match (id, kind) {
            (2, I32) => unpacked = Some(walk.zigzag()?),
            (3, I32) => {
                packed = Some(walk.zigzag()?);
                before_crc = walk.at;
            }
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the low 32 bits, as they are")]
            (4, I32) => crc = Some(walk.zigzag()? as u32),
            (DATA_PAGE_V2, STRUCT) => (level_bytes, is_packed) = version_2(&mut walk)?,
            (_, kind) => walk.value(kind, 0)?,
        }
        last = id;
    }
    let size = |value: Option<i64>| value.and_then(|v| u64::try_from(v).ok()).ok_or(Malformed::Wrong);
    let (unpacked, packed) = (size(unpacked)?, size(packed)?);
    Ok(PageSizes { header_bytes: walk.at, unpacked, packed, crc, before_crc, level_bytes, is_packed })
}

/// Bytes of levels, and whether values are packed.
fn version_2(walk: &mut Walk<'_>) -> Result<(u64, bool)> {
    let (mut level_bytes, mut is_packed, mut last) = (0u64, true, 0);
    while let Some((id, kind)) = walk.field(last)? {
        match (id, kind) {
            (5 | 6, I32) => {
                let bytes = u64::try_from(walk.zigzag()?).map_err(|_| Malformed::Wrong)?;
                level_bytes = level_bytes.saturating_add(bytes);
            }
            (7, BOOL_FALSE) => is_packed = false,
            (_, kind) => walk.value(kind, 1)?,
        }
        last = id;
    }
    Ok((level_bytes, is_packed))
}
