//! Rows of a file that do not count.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use roaring::RoaringTreemap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The rows of a file that its table has deleted, counted from 0. The file still holds them. Clones share them.
///
/// As text, it is a 64-bit Roaring bitmap in the portable format, in base64.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct DeletedRows(Arc<Rows>);

struct Rows {
    bitmap: RoaringTreemap,
    text: String,
}

/// The first bytes of a deletion vector, which say that its bitmap is in the portable format.
const MAGIC: [u8; 4] = [0xD1, 0xD3, 0x39, 0x64];

impl DeletedRows {
    /// Reads a bitmap in the portable format.
    ///
    /// # Errors
    /// The reason why the bytes are no such bitmap.
    pub fn of_bitmap(bytes: &[u8]) -> Result<Self, String> {
        let mut rest = bytes;
        let rows = RoaringTreemap::deserialize_from(&mut rest).map_err(|e| format!("no Roaring bitmap: {e}"))?;
        if rest.is_empty() {
            Self::of_rows(rows)
        } else {
            Err(format!("{} bytes follow the Roaring bitmap", rest.len()))
        }
    }

    /// Reads a deletion vector as tables of Delta Lake and of Iceberg have it in their files: the bytes of what follows and
    /// the CRC-32 of that, big-endian, around a magic number and the bitmap.
    ///
    /// # Errors
    /// The reason why the bytes are none.
    pub fn of_framed(bytes: &[u8]) -> Result<Self, String> {
        let short = || format!("{} bytes are too few for a deletion vector", bytes.len());
        let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(short)?;
        let (vector, checksum) = rest.split_last_chunk::<4>().ok_or_else(short)?;
        if u32::from_be_bytes(*length) as usize != vector.len() {
            return Err(format!("the deletion vector says that it has {} bytes", u32::from_be_bytes(*length)));
        }
        if u32::from_be_bytes(*checksum) != crc32fast::hash(vector) {
            return Err("the deletion vector has not its checksum".to_owned());
        }
        Self::of_vector(vector)
    }

    /// Reads a deletion vector: a magic number and the bitmap.
    ///
    /// # Errors
    /// The reason why the bytes are none.
    pub fn of_vector(bytes: &[u8]) -> Result<Self, String> {
        match bytes.split_first_chunk::<4>() {
            Some((&MAGIC, bitmap)) => Self::of_bitmap(bitmap),
            _ => Err("the deletion vector has another form: its first bytes are not D1 D3 39 64".to_owned()),
        }
    }

    fn of_rows(rows: RoaringTreemap) -> Result<Self, String> {
        let mut bytes = Vec::with_capacity(rows.serialized_size());
        rows.serialize_into(&mut bytes).map_err(|e| e.to_string())?;
        Ok(Self(Arc::new(Rows { bitmap: rows, text: STANDARD.encode(bytes) })))
    }

    /// Takes the numbers of rows, counted from 0, in any order.
    ///
    /// # Errors
    /// The bitmap cannot be written to memory.
    pub fn of_numbers(rows: impl IntoIterator<Item = u64>) -> Result<Self, String> {
        Self::of_rows(rows.into_iter().collect())
    }

    /// Returns whether a row, counted from 0, is deleted.
    #[must_use]
    pub fn contains(&self, row: u64) -> bool {
        self.0.bitmap.contains(row)
    }

    /// Returns the number of deleted rows.
    #[must_use]
    pub fn n(&self) -> u64 {
        self.0.bitmap.len()
    }

    /// Returns the last deleted row, counted from 0.
    #[must_use]
    pub fn last(&self) -> Option<u64> {
        self.0.bitmap.max()
    }
}

impl TryFrom<String> for DeletedRows {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let bytes = STANDARD.decode(&text).map_err(|e| format!("deleted rows are no base64: {e}"))?;
        Self::of_bitmap(&bytes)
    }
}

impl From<DeletedRows> for String {
    fn from(rows: DeletedRows) -> Self {
        rows.0.text.clone()
    }
}

impl PartialEq for DeletedRows {
    fn eq(&self, other: &Self) -> bool {
        self.0.text == other.0.text
    }
}

impl Eq for DeletedRows {}

impl PartialOrd for DeletedRows {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for DeletedRows {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.text.cmp(&other.0.text)
    }
}

/// Writes the number of rows.
impl fmt::Debug for DeletedRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeletedRows({})", self.n())
    }
}

#[cfg(test)]
mod tests {
    use super::DeletedRows;

    #[test]
    fn deleted_rows_are_the_same_after_their_text_and_other_bytes_are_refused() {
        let rows = DeletedRows::of_numbers([7, 1 << 40, 0, 7]).unwrap();
        assert_eq!((rows.n(), rows.last()), (3, Some(1 << 40)));
        assert!(rows.contains(0) && rows.contains(7) && !rows.contains(1));
        let text = String::from(rows.clone());
        assert_eq!(DeletedRows::try_from(text.clone()).unwrap(), rows);
        for damaged in ["", "!", "AAAA", &text[..text.len() - 4], &format!("{text}AAAA")] {
            assert!(DeletedRows::try_from(damaged.to_owned()).is_err(), "{damaged}");
        }
    }

    #[test]
    fn a_damaged_deletion_vector_is_refused() {
        let rows = DeletedRows::of_numbers([3, 4, 5]).unwrap();
        let vector =
            [&super::MAGIC[..], &base64::Engine::decode(&super::STANDARD, String::from(rows.clone())).unwrap()]
                .concat();
        let length = u32::try_from(vector.len()).unwrap().to_be_bytes();
        let framed = [&length[..], &vector, &crc32fast::hash(&vector).to_be_bytes()].concat();
        assert_eq!(DeletedRows::of_framed(&framed).unwrap(), rows);
        for at in 0..framed.len() {
            let mut damaged = framed.clone();
            damaged[at] ^= 1;
            assert!(DeletedRows::of_framed(&damaged).is_err(), "{at}");
            assert!(DeletedRows::of_framed(&framed[..at]).is_err(), "{at}");
        }
    }
}
