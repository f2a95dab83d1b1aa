//! Whether a page may be unpacked: what its header says of it, what its bytes unpack to, and how many values it lists.

use std::io::Read;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::column::page::Page;

use super::thrift::{PageKind, PageSizes};
use crate::delta::decode_deltas;

/// Why a page is not read.
type Check = Result<(), String>;

/// Pages of any file that is in order can be held, however little memory is allowed: writers end a page after 1,024 rows or
/// after one text.
pub const LEAST_PAGE_BYTES: u64 = 128 << 20;

/// Pages larger than this may not be more than [`MAX_RATIO`] times as large as their bytes in the file.
pub const RATIO_FREE_BYTES: u64 = 64 << 20;
pub const MAX_RATIO: u64 = 1000;

/// Values of a page whose lengths are listed before it.
const MAX_LISTED_VALUES: u64 = 16 << 20;

/// Refuses a page that says it unpacks to more than `limit`, whose reason is `limited_by`, or to far more than its bytes.
pub fn check_sizes(page: &PageSizes, limit: u64, limited_by: &str) -> Check {
    let PageSizes { unpacked, packed, .. } = *page;
    if unpacked > limit {
        return Err(format!(
            "a page of {packed} bytes unpacks to {unpacked}, more than the {limit} that may be held ({limited_by})"
        ));
    }
    if unpacked > RATIO_FREE_BYTES && unpacked / MAX_RATIO > packed {
        return Err(format!(
            "a page of {packed} bytes claims to unpack to {unpacked}, more than {MAX_RATIO} times as many"
        ));
    }
    Ok(())
}

/// Refuses a dictionary that says it has more values than bytes: a number takes four or more, a string its length before it, and
/// a short array of bytes one.
pub fn check_dictionary(page: &PageSizes) -> Check {
    if page.kind == PageKind::Dictionary && page.n_values > page.unpacked.max(page.packed) {
        return Err("a dictionary has fewer bytes than it says it has values".to_owned());
    }
    Ok(())
}

/// Tries those codecs that go on unpacking past what the header says.
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
            Err("a page unpacks to more than its header says".to_owned())
        }
        // What cannot be unpacked is reported by the reader.
        _ => Ok(()),
    }
}

const LZ4_FRAME: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];

/// Refuses a page that lists the lengths of more values than it has; all of them stand first. `has_levels`: before the values.
pub fn check_listed(page: &Page, has_levels: bool) -> Check {
    let values = values(page, has_levels).ok_or("the levels of a page are longer than it is")?;
    let listed = delta_count(values).ok_or("the lengths in a page have no header")?;
    let n_values = u64::from(page.num_values());
    if listed > n_values || n_values > MAX_LISTED_VALUES {
        return Err("a page lists more values than it has, or than can be held".to_owned());
    }
    Ok(())
}

/// Refuses a page of values that share prefixes, [checked](check_listed) before, if they take more than `limit` bytes written out.
pub fn check_written_out(page: &Page, has_levels: bool, limit: u64) -> Check {
    let damaged = || "the prefixes in a page are damaged".to_owned();
    let values = values(page, has_levels).ok_or_else(damaged)?;
    let listed = delta_count(values).and_then(|n| usize::try_from(n).ok()).ok_or_else(damaged)?;
    let mut prefixes = vec![0; listed];
    decode_deltas(values, &mut prefixes).map_err(|_| damaged())?;
    // Of 32 bits, as they are read.
    let shared: u64 = prefixes.iter().map(|prefix| prefix & u64::from(u32::MAX)).sum();
    if shared > limit {
        return Err(format!("the values of a page take {shared} bytes, more than the {limit} that may be held"));
    }
    Ok(())
}

/// Whether a page's values are listed by length, or by shared prefix and length.
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

/// How many numbers DELTA_BINARY_PACKED bytes say they hold: the third of four in their header.
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
