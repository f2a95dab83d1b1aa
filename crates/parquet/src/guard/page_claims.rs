//! Checks whether a page may be unpacked. They look at the claims of its header, at the size of its unpacked bytes, and
//! at the number of values that it lists.

use std::io::Read;

use bytes::Bytes;
use nearprint_fault::{Words, words};
use parquet::basic::{Compression, Encoding};
use parquet::column::page::Page;

use super::thrift::{PageKind, PageSizes};
use crate::delta::decode_deltas;
use crate::kernel::DeltaKernel;

/// The result of a check. The error is the reason for which a page is not read.
type Check = Result<(), Words>;

/// The size up to which a page is accepted, however small the memory limit is. The pages of any sound file are smaller:
/// writers end a page after 1,024 rows or after one text.
pub const LEAST_PAGE_BYTES: u64 = 128 << 20;

/// Up to this size, a page may unpack to any multiple of its bytes in the file. A larger one may unpack to at most
/// [`MAX_RATIO`] times its bytes.
pub const RATIO_FREE_BYTES: u64 = 64 << 20;
pub const MAX_RATIO: u64 = 1000;

/// The largest number of values in a page that lists their lengths first.
const MAX_LISTED_VALUES: u64 = 16 << 20;

/// Refuses a page that claims to unpack to more than `limit` bytes, or to far more than its bytes in the file.
/// `limited_by` says where the limit comes from.
pub fn check_sizes(page: &PageSizes, limit: u64, limited_by: impl FnOnce() -> Words) -> Check {
    let PageSizes { unpacked, packed, .. } = *page;
    if unpacked > limit {
        let held = format!("a page of {packed} bytes unpacks to {unpacked}, more than the {limit} that may be held (");
        return Err(words![held, limited_by(), ")"]);
    }
    if unpacked > RATIO_FREE_BYTES && unpacked / MAX_RATIO > packed {
        let more = format!("more than {MAX_RATIO} times as many");
        return Err(format!("a page of {packed} bytes claims to unpack to {unpacked}, {more}").into());
    }
    Ok(())
}

/// Refuses a dictionary that claims to have more values than bytes. A number takes four bytes or more, a string has its
/// length before it, and a fixed-length array takes at least one byte.
pub fn check_dictionary(page: &PageSizes) -> Check {
    if page.kind == PageKind::Dictionary && page.n_values > page.unpacked.max(page.packed) {
        return Err("a dictionary has fewer bytes than it says it has values".into());
    }
    Ok(())
}

/// Refuses a page that unpacks to more bytes than its header says. Only pages are tried whose codec would not stop at
/// that size.
pub fn check_unpacked(codec: Compression, bytes: &[u8], page: &PageSizes) -> Check {
    let Some(packed) = usize::try_from(page.level_bytes).ok().and_then(|levels| bytes.get(levels..)) else {
        return Ok(());
    };
    let reader: Box<dyn Read + '_> = match codec {
        _ if !page.is_packed || packed.is_empty() => return Ok(()),
        Compression::GZIP(_) => Box::new(flate2::read::MultiGzDecoder::new(packed)),
        Compression::BROTLI(_) => Box::new(brotli::Decompressor::new(packed, 4096)),
        Compression::LZ4 if packed.starts_with(&LZ4_FRAME) => Box::new(lz4_flex::frame::FrameDecoder::new(packed)),
        _ => return Ok(()),
    };
    let more = std::io::copy(&mut reader.take(page.unpacked + 1), &mut std::io::sink());
    match more {
        Ok(n) if n.saturating_add(page.level_bytes) > page.unpacked => {
            Err("a page unpacks to more than its header says".into())
        }
        // If the bytes cannot be unpacked, the reader reports that.
        _ => Ok(()),
    }
}

const LZ4_FRAME: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];

/// Refuses a page that lists more lengths than it has values, or too many. All lengths stand before the values.
/// `has_levels` says whether levels stand before both.
pub fn check_listed(page: &Page, has_levels: bool) -> Check {
    let values = values(page, has_levels).ok_or("the levels of a page are longer than it is")?;
    let listed = delta_count(values).ok_or("the lengths in a page have no header")?;
    let n_values = u64::from(page.num_values());
    if listed > n_values || n_values > MAX_LISTED_VALUES {
        return Err("a page lists more values than it has, or than can be held".into());
    }
    Ok(())
}

/// Refuses a page of values that share prefixes if the prefixes take more than `limit` bytes when written out.
/// [`check_listed`] must have accepted the page.
pub fn check_written_out(page: &Page, has_levels: bool, limit: u64) -> Check {
    let damaged = || "the prefixes in a page are damaged".to_owned();
    let values = values(page, has_levels).ok_or_else(damaged)?;
    let listed = delta_count(values).and_then(|n| usize::try_from(n).ok()).ok_or_else(damaged)?;
    let mut prefixes = vec![0; listed];
    decode_deltas(values, &mut prefixes, DeltaKernel::best()).map_err(|_| damaged())?;
    // The reader takes the lengths for numbers of 32 bits.
    let shared: u64 = prefixes.iter().map(|prefix| prefix & u64::from(u32::MAX)).sum();
    if shared > limit {
        return Err(format!("the values of a page take {shared} bytes, more than the {limit} that may be held").into());
    }
    Ok(())
}

/// Returns whether an encoding lists the lengths of its values, or their shared prefixes and lengths.
pub fn is_listed(encoding: Encoding) -> bool {
    matches!(encoding, Encoding::DELTA_LENGTH_BYTE_ARRAY | Encoding::DELTA_BYTE_ARRAY)
}

fn values(page: &Page, has_levels: bool) -> Option<&[u8]> {
    let bytes: &Bytes = page.buffer();
    match page {
        Page::DataPageV2 { def_levels_byte_len, rep_levels_byte_len, .. } => {
            bytes.get((*def_levels_byte_len as usize).checked_add(*rep_levels_byte_len as usize)?..)
        }
        _ if has_levels => {
            let (length, rest) = bytes.split_first_chunk::<4>()?;
            rest.get(u32::from_le_bytes(*length) as usize..)
        }
        _ => Some(bytes),
    }
}

/// Returns how many numbers DELTA_BINARY_PACKED bytes claim to hold. That is the third of the four numbers in their
/// header.
fn delta_count(bytes: &[u8]) -> Option<u64> {
    let mut bytes = bytes.iter();
    let mut number = || {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = *bytes.next()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    };
    number()?;
    number()?;
    number()
}
