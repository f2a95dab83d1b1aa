//! Rows of the query batch as Arrow columns.

use std::sync::Arc;

use arrow::array::{ArrayRef, FixedSizeBinaryArray, StringArray, UInt32Array, UInt64Array};
use nearprint_fault::{Fault, Result};
use nearprint_parquet::schema::{SKETCH_BYTES, TEXT_HASH_BYTES, WIDE_BYTES};

use super::query_batch::{QueryBatch, defect};

/// Rows of a query batch, whose values become columns of a dataset.
#[derive(Debug, Clone, Copy)]
pub struct RowColumns<'a> {
    /// The batch.
    pub batch: &'a QueryBatch,
    /// Rows of the batch, in the order of the columns.
    pub rows: &'a [u32],
}

impl RowColumns<'_> {
    /// Returns the document ids.
    ///
    /// # Panics
    /// May panic if the batch has no such row.
    #[must_use]
    pub fn ids(&self) -> ArrayRef {
        Arc::new(StringArray::from_iter_values(self.rows.iter().map(|&row| self.batch.id(row))))
    }

    /// Returns the fingerprints, or the high halves of 128-bit ones.
    #[must_use]
    pub fn fingerprints(&self) -> ArrayRef {
        Arc::new(self.rows.iter().map(|&row| self.batch.fingerprints.get(row).copied()).collect::<UInt64Array>())
    }

    /// Returns the 128-bit fingerprints, big-endian.
    ///
    /// # Errors
    /// [`ErrorKind::Bug`](nearprint_fault::ErrorKind::Bug) if a row has no fingerprint of 128 bits.
    pub fn wide_fingerprints(&self) -> Result<ArrayRef> {
        let missing = |row| Fault::internal("write", format!("row {row} of the batch has no fingerprint of 128 bits"));
        let halves = |&row: &u32| {
            let high = self.batch.fingerprints.get(row)?;
            Some([high.to_be_bytes(), self.batch.low_halves.get(row)?.to_be_bytes()])
        };
        let whole = self.rows.iter().map(|row| halves(row).ok_or_else(|| missing(*row))).collect::<Result<Vec<_>>>()?;
        fixed_size_binary(whole.iter().map(|halves| Some(halves.as_flattened())), WIDE_BYTES)
    }

    /// Returns the sketches.
    ///
    /// # Errors
    /// [`ErrorKind::Bug`](nearprint_fault::ErrorKind::Bug) if Arrow refuses them.
    pub fn sketches(&self) -> Result<ArrayRef> {
        let sketches = self.rows.iter().map(|&row| self.batch.sketches.get(row).map(|sketch| sketch.0.as_slice()));
        fixed_size_binary(sketches, SKETCH_BYTES)
    }

    /// Returns the numbers of distinct features.
    #[must_use]
    pub fn n_features(&self) -> ArrayRef {
        Arc::new(self.rows.iter().map(|&row| self.batch.n_features.get(row).copied()).collect::<UInt32Array>())
    }

    /// Returns the hashes of the normalised texts.
    ///
    /// # Errors
    /// [`ErrorKind::Bug`](nearprint_fault::ErrorKind::Bug) if Arrow refuses them.
    pub fn text_hashes(&self) -> Result<ArrayRef> {
        let hashes = self.rows.iter().map(|&row| self.batch.text_hashes.get(row).map(<[u8; 16]>::as_slice));
        fixed_size_binary(hashes, TEXT_HASH_BYTES)
    }
}

/// Returns values of `n_bytes` bytes each, and nulls, as a column.
///
/// # Errors
/// [`ErrorKind::Bug`](nearprint_fault::ErrorKind::Bug) if a value has another number of bytes.
pub(crate) fn fixed_size_binary<'a>(values: impl Iterator<Item = Option<&'a [u8]>>, n_bytes: i32) -> Result<ArrayRef> {
    Ok(Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, n_bytes).map_err(defect)?))
}
