//! Deletion vectors: which rows of a file do not count.

use nearprint_fault::Result;
use nearprint_storage::{DeletedRows, Folder, Storage, bad_file, known_scheme};

use crate::actions::DeletionVector;
use crate::checkpoint::gone;
use crate::state::unescaped;

/// The characters of a UUID in Z85.
const UUID_CHARACTERS: usize = 20;
/// The bytes around a vector in a file: its length before it, and its checksum after it.
const FRAME_BYTES: u64 = 8;

impl DeletionVector {
    /// Returns the rows that it names, of the file at `path` of a table.
    ///
    /// # Errors
    /// The vector is damaged or gone, or has a form that is not known; its file lies where the storage's roots do not
    /// allow it.
    pub async fn rows(&self, storage: &Storage, table: &Folder, path: &str) -> Result<DeletedRows> {
        let bad = |reason: String| bad_file(table.url(), format!("the deletion vector of {path}: {reason}"));
        let rows = match self.storage_type.as_str() {
            "i" => self.inline().map_err(bad)?,
            "u" => self.read(&storage.input(table.join(&self.relative_path().map_err(bad)?).url())?).await?,
            "p" => self.read(&storage.file_of_table(table, &self.whole_path())?).await?,
            other => return Err(bad(format!("its storage type is '{other}', which is not known"))),
        };
        if rows.n() == self.cardinality {
            Ok(rows)
        } else {
            Err(bad(format!("it has {} rows, and the log says {}", rows.n(), self.cardinality)))
        }
    }

    fn inline(&self) -> std::result::Result<DeletedRows, String> {
        let bytes = z85::decode(&self.path_or_inline_dv).map_err(|e| format!("no Z85: {e}"))?;
        let vector = usize::try_from(self.size_in_bytes).ok().and_then(|n| bytes.get(..n));
        DeletedRows::of_vector(vector.ok_or_else(|| format!("it has {} bytes", bytes.len()))?)
    }

    /// Returns the path below the table, which has the name of a UUID.
    fn relative_path(&self) -> std::result::Result<String, String> {
        let text = &self.path_or_inline_dv;
        let at = text.len().checked_sub(UUID_CHARACTERS).filter(|&at| text.is_char_boundary(at));
        let (prefix, id) = text.split_at(at.ok_or_else(|| format!("'{text}' names no file"))?);
        let id = z85::decode(id).map_err(|e| format!("'{text}' names no file: {e}"))?;
        let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        if prefix.split('/').any(|name| name == "..") {
            return Err(format!("'{text}' leads out of the table"));
        }
        let uuid = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| hex.get(part).unwrap_or_default().to_owned());
        let name = format!("deletion_vector_{}.bin", uuid.join("-"));
        Ok(if prefix.is_empty() { name } else { format!("{prefix}/{name}") })
    }

    /// Returns the path of a file that may lie anywhere.
    fn whole_path(&self) -> String {
        known_scheme(&unescaped(&self.path_or_inline_dv))
    }

    async fn read(&self, place: &Folder) -> Result<DeletedRows> {
        let bytes = self.size_in_bytes.saturating_add(FRAME_BYTES);
        place.find().await?.ok_or_else(|| gone(place))?.deletion_vector(self.offset.unwrap_or(0), bytes).await
    }
}

#[cfg(test)]
mod tests {
    use super::DeletionVector;

    #[test]
    fn the_name_of_a_file_of_vectors_is_a_uuid_in_z85() {
        // The example of the Delta protocol, section "Deletion Vectors".
        let vector = |path: &str| DeletionVector {
            storage_type: "u".to_owned(),
            path_or_inline_dv: path.to_owned(),
            offset: Some(4),
            size_in_bytes: 40,
            cardinality: 6,
        };
        let path = vector("ab^-aqEH.-t@S}K{vb[*k^").relative_path().unwrap();
        assert_eq!(path, "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin");
        for bad in ["", "^-aqEH", "../^-aqEH.-t@S}K{vb[*k^", "ab\u{e9}-aqEH.-t@S}K{vb[*k"] {
            assert!(vector(bad).relative_path().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_vector_in_the_log_itself_is_decoded_up_to_its_size() {
        // Rows 3 and 7: magic, one bitmap, its key, and the bitmap in the portable format (RoaringFormatSpec).
        let vector =
            b"\xD1\xD3\x39\x64\x01\0\0\0\0\0\0\0\0\0\0\0\x3A\x30\0\0\x01\0\0\0\0\0\x01\0\x10\0\0\0\x03\0\x07\0";
        let inline = |bytes: &[u8], size: usize| DeletionVector {
            storage_type: "i".to_owned(),
            path_or_inline_dv: z85::encode(bytes),
            offset: None,
            size_in_bytes: size as u64,
            cardinality: 2,
        };
        let padded = [&vector[..], &[0; 4]].concat();
        for bytes in [&vector[..], &padded] {
            let rows = inline(bytes, vector.len()).inline().unwrap();
            assert_eq!((0..100).filter(|&row| rows.contains(row)).collect::<Vec<u64>>(), [3, 7]);
        }
        assert!(inline(vector, vector.len() + 1).inline().is_err());
        assert!(inline(&padded, padded.len()).inline().is_err());
    }
}
