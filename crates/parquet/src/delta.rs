//! Numbers that are packed as deltas, in Parquet's encoding DELTA_BINARY_PACKED.

use parquet::errors::{ParquetError, Result as ParquetResult};

use crate::kernel::DeltaKernel;

/// The largest number of values that a block may have. Blocks of real writers have some hundreds.
const MAX_BLOCK_VALUES: usize = 1 << 20;

/// Decodes a page of DELTA_BINARY_PACKED values (Parquet format, Encodings, "Delta Encoding").
///
/// # Errors
/// The page is damaged, or has another number of values than `values`.
pub fn decode_deltas(page: &[u8], values: &mut [u64], kernel: DeltaKernel) -> ParquetResult<()> {
    let mut bytes = page;
    let block_values = length(&mut bytes)?;
    let n_miniblocks = length(&mut bytes)?;
    let n_values = length(&mut bytes)?;
    let mut last = zigzag(&mut bytes)?;
    let whole = n_miniblocks > 0
        && block_values <= MAX_BLOCK_VALUES
        && block_values.is_multiple_of(128)
        && block_values.is_multiple_of(n_miniblocks);
    let miniblock_values = if whole { block_values / n_miniblocks } else { 0 };
    if miniblock_values == 0 || !miniblock_values.is_multiple_of(32) || n_values != values.len() {
        return Err(damaged("the header of a page is not one of DELTA_BINARY_PACKED"));
    }
    let Some((first, mut rest)) = values.split_first_mut() else {
        return Ok(());
    };
    *first = last;
    while !rest.is_empty() {
        let min_delta = zigzag(&mut bytes)?;
        let widths = take(&mut bytes, n_miniblocks)?;
        for &width in widths {
            if rest.is_empty() {
                break;
            }
            let (now, later) = rest.split_at_mut(miniblock_values.min(rest.len()));
            // Writers may leave out the padding of the last miniblock.
            if width > 64 || bytes.len() < (now.len() * usize::from(width)).div_ceil(8) {
                return Err(damaged("a page ends too early"));
            }
            // The kernel also gets the bytes after the miniblock, because it loads whole vectors.
            last = kernel.unpack(bytes, u32::from(width), min_delta, last, now);
            rest = later;
            bytes = &bytes[(miniblock_values / 8 * usize::from(width)).min(bytes.len())..];
        }
    }
    Ok(())
}

/// Makes the error of a page that does not hold what its chunk promises.
pub fn damaged(reason: &str) -> ParquetError {
    ParquetError::General(reason.to_owned())
}

fn take<'a>(bytes: &mut &'a [u8], n: usize) -> ParquetResult<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(n).ok_or_else(|| damaged("a page ends too early"))?;
    *bytes = rest;
    Ok(taken)
}

/// Reads an unsigned LEB128 number.
fn varint(bytes: &mut &[u8]) -> ParquetResult<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = take(bytes, 1)?[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(damaged("a number in a page has no end"))
}

fn length(bytes: &mut &[u8]) -> ParquetResult<usize> {
    usize::try_from(varint(bytes)?).map_err(|_| damaged("a length in a page is too large"))
}

/// Reads a signed number in zigzag encoding, modulo 2^64.
fn zigzag(bytes: &mut &[u8]) -> ParquetResult<u64> {
    let value = varint(bytes)?;
    Ok((value >> 1) ^ (value & 1).wrapping_neg())
}
