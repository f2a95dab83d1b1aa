//! The encodings of HTTP bodies: chunks, and the content encodings gzip, deflate, br and zstd.

use std::borrow::Cow;
use std::io::Read;

use crate::fields::lines;

/// The bytes with which a member of gzip begins.
const GZIP: &[u8] = b"\x1f\x8b";

/// A body that cannot be decoded to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The encoding is damaged, or the body is cut off.
    Damaged,
    /// The decoded body is larger than it may be.
    TooLarge,
}

/// The bytes that were decoded, and the fault that kept others from being decoded.
pub type Decoded<'a> = (Cow<'a, [u8]>, Option<Fault>);

/// Returns whether bytes begin as a page does, with a tag, perhaps behind a byte order mark and blanks.
#[must_use]
pub fn begins_with_tag(bytes: &[u8]) -> bool {
    match bytes {
        [0xff, 0xfe, rest @ ..] => rest.starts_with(b"<\0"),
        [0xfe, 0xff, rest @ ..] => rest.starts_with(b"\0<"),
        _ => bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start().starts_with(b"<"),
    }
}

/// Joins the chunks of a body that begins with one.
fn join_chunks(body: &[u8]) -> (Vec<u8>, Option<Fault>) {
    let mut joined = Vec::with_capacity(body.len());
    let mut rest = body;
    // The chunk that ends a body is often missing.
    while !rest.is_empty() {
        let Some((size, after)) = chunk(rest) else { return (joined, Some(Fault::Damaged)) };
        if size == 0 {
            return (joined, None);
        }
        let Some(data) = rest.get(after..).filter(|data| data.len() >= size) else {
            joined.extend_from_slice(&rest[after..]);
            return (joined, Some(Fault::Damaged));
        };
        joined.extend_from_slice(&data[..size]);
        let behind = &data[size..];
        rest = behind.strip_prefix(b"\r\n").or_else(|| behind.strip_prefix(b"\n")).unwrap_or(behind);
    }
    (joined, None)
}

/// Returns the size of the chunk that begins the bytes, and where its data begins.
fn chunk(bytes: &[u8]) -> Option<(usize, usize)> {
    let line_end = memchr::memchr(b'\n', &bytes[..bytes.len().min(1 << 10)])?;
    let line = lines(&bytes[..line_end]).next()?;
    let digits = line.split(|&byte| byte == b';').next()?.trim_ascii();
    let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
    Some((usize::from_str_radix(digits, 16).ok()?, line_end + 1))
}

/// Decodes a body from one content encoding or transfer coding, whose name is in lower case. A body that does not begin as its
/// encoding has it was stored decoded, and is returned as it is; so is one of an encoding that is not known.
pub fn decode<'a>(body: Cow<'a, [u8]>, encoding: &str, max_bytes: u64) -> Decoded<'a> {
    // Some writers begin a body with empty lines. Bytes of other encodings may begin as these do.
    let n_line_ends = body.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    let behind = &body[n_line_ends..];
    let decoded = match encoding {
        "chunked" if chunk(behind).is_some() => join_chunks(behind),
        "gzip" | "x-gzip" if behind.starts_with(GZIP) => unpack_gzip(behind, max_bytes),
        "deflate" if is_zlib(&body) => read_all(flate2::bufread::ZlibDecoder::new(&*body), max_bytes),
        "deflate" if !body.is_empty() => {
            let bare = read_all(flate2::bufread::DeflateDecoder::new(&*body), max_bytes);
            if bare.0.is_empty() && bare.1.is_some() { return (body, None) } else { bare }
        }
        "br" if !body.is_empty() => {
            let unpacked = read_all(brotli::Decompressor::new(&*body, 16 << 10), max_bytes);
            // Brotli has no magic number: what looks like text is text.
            if unpacked.1.is_some() && begins_with_tag(&body) {
                return (body, None);
            } else {
                unpacked
            }
        }
        "zstd" if behind.starts_with(b"\x28\xb5\x2f\xfd") => match zstd::Decoder::with_buffer(behind) {
            Ok(decoder) => read_all(decoder, max_bytes),
            Err(_) => (Vec::new(), Some(Fault::Damaged)),
        },
        _ => return (body, None),
    };
    (decoded.0.into(), decoded.1)
}

/// Unpacks the members of gzip. What follows them and begins no member is passed over, as browsers do.
fn unpack_gzip(body: &[u8], max_bytes: u64) -> (Vec<u8>, Option<Fault>) {
    let mut unpacker = flate2::bufread::GzDecoder::new(body);
    let mut bytes = Vec::new();
    loop {
        let fault = read_on(&mut unpacker, &mut bytes, max_bytes);
        let rest = *unpacker.get_ref();
        if fault.is_some() || !rest.starts_with(GZIP) {
            return (bytes, fault);
        }
        unpacker.reset(rest);
    }
}

fn is_zlib(body: &[u8]) -> bool {
    matches!(body, [method, flags, ..] if method & 0x0f == 8 && (u16::from(*method) << 8 | u16::from(*flags)) % 31 == 0)
}

fn read_all(decoder: impl Read, max_bytes: u64) -> (Vec<u8>, Option<Fault>) {
    let mut bytes = Vec::new();
    let fault = read_on(decoder, &mut bytes, max_bytes);
    (bytes, fault)
}

/// Adds what a decoder gives to bytes of which there may be `max_bytes`.
fn read_on(decoder: impl Read, bytes: &mut Vec<u8>, max_bytes: u64) -> Option<Fault> {
    let left = max_bytes.saturating_sub(bytes.len() as u64);
    let read = decoder.take(left.saturating_add(1)).read_to_end(bytes);
    debug_assert!(
        bytes.len() as u64 <= max_bytes.saturating_add(1),
        "no more is unpacked than shows that there is too much"
    );
    match read {
        Ok(_) if bytes.len() as u64 > max_bytes => Some(Fault::TooLarge),
        Ok(_) => None,
        Err(_) => Some(Fault::Damaged),
    }
}

#[cfg(test)]
mod tests {
    use super::{Fault, decode};

    #[test]
    fn chunks_are_joined_and_a_body_without_them_stays() {
        let joined = |body: &'static [u8]| decode(body.into(), "chunked", 100);
        assert_eq!(joined(b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"), (b"abcde".as_slice().into(), None));
        assert_eq!(joined(b"3\r\nabc\r\n"), (b"abc".as_slice().into(), None));
        assert_eq!(joined(b"<html>\n"), (b"<html>\n".as_slice().into(), None));
        assert_eq!(joined(b"3\r\nabc\r\nZ"), (b"abc".as_slice().into(), Some(Fault::Damaged)));
        assert_eq!(joined(b"9\r\nabc"), (b"abc".as_slice().into(), Some(Fault::Damaged)));
    }

    #[test]
    fn a_body_that_grows_too_large_is_cut_and_said_so() {
        let bomb = zstd::encode_all(std::io::repeat(b'a').take(1 << 20), 1).unwrap();
        use std::io::Read;
        let (body, fault) = decode(bomb.into(), "zstd", 100);
        assert_eq!((body.len(), fault), (101, Some(Fault::TooLarge)));
        let (body, fault) = decode(b"<p>plain</p>".as_slice().into(), "gzip", 100);
        assert_eq!((&*body, fault), (b"<p>plain</p>".as_slice(), None));
    }
}
