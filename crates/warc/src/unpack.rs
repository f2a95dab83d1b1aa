//! The encodings of HTTP bodies: chunks, and the content encodings gzip, deflate, br and zstd.

use std::io::Read;

use crate::fields::lines;

/// The bytes with which a member of gzip begins.
const GZIP: &[u8] = b"\x1f\x8b";
/// The bytes with which a frame of zstd begins.
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";

/// A body that cannot be decoded to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The encoding is damaged, or the body is cut off.
    Damaged,
    /// All chunks are whole, and the empty one that ends a body is missing: more of them may be, unless a packing in them ends.
    Unended,
    /// The decoded body is larger than it may be.
    TooLarge,
}

/// The bytes that were decoded, and the fault that kept others from being decoded.
pub type Decoded = (Vec<u8>, Option<Fault>);

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
fn join_chunks(body: &[u8]) -> Decoded {
    let mut joined = Vec::with_capacity(body.len());
    let mut rest = body;
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
    (joined, Some(Fault::Unended))
}

/// Returns the size of the chunk that begins the bytes, and where its data begins.
fn chunk(bytes: &[u8]) -> Option<(usize, usize)> {
    let line_end = memchr::memchr(b'\n', &bytes[..bytes.len().min(1 << 10)])?;
    let line = lines(&bytes[..line_end]).next()?;
    let digits = line.split(|&byte| byte == b';').next()?.trim_ascii();
    let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
    Some((usize::from_str_radix(digits, 16).ok()?, line_end + 1))
}

/// Decodes a body from one content encoding or transfer coding, whose name is in lower case. Returns `None` if the body is that of
/// the message as it is: it was stored decoded, as one that does not begin as its encoding has it, or the encoding is not known.
pub fn decode(body: &[u8], encoding: &str, max_bytes: u64) -> Option<Decoded> {
    // Some writers begin a body with empty lines. Bytes of other encodings may begin as these do.
    let n_line_ends = body.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    let behind = &body[n_line_ends..];
    let decoded = match encoding {
        "chunked" if chunk(behind).is_some() => join_chunks(behind),
        "gzip" | "x-gzip" if behind.starts_with(GZIP) => unpack_gzip(behind, max_bytes),
        "deflate" if is_zlib(body) => read_all(flate2::bufread::ZlibDecoder::new(body), max_bytes),
        "deflate" if !body.is_empty() => {
            let bare = read_all(flate2::bufread::DeflateDecoder::new(body), max_bytes);
            if bare.0.is_empty() && bare.1.is_some() { as_it_is(body)? } else { bare }
        }
        "br" if !body.is_empty() => {
            let unpacked = read_all(brotli::Decompressor::new(body, 16 << 10), max_bytes);
            // Brotli has no magic number: what looks like text is text.
            if unpacked.1.is_some() && begins_with_tag(body) {
                return None;
            }
            unpacked
        }
        "zstd" if behind.starts_with(ZSTD) => match zstd::Decoder::with_buffer(behind) {
            Ok(decoder) => read_all(decoder, max_bytes),
            Err(_) => (Vec::new(), Some(Fault::Damaged)),
        },
        "chunked" | "gzip" | "x-gzip" | "zstd" => as_it_is(body)?,
        _ => return None,
    };
    Some(decoded)
}

/// Returns `None` for a body that was stored decoded. One that no text begins like is damaged, or packed in another way than its
/// field says, and nothing of it can be read.
fn as_it_is(body: &[u8]) -> Option<Decoded> {
    is_noise(body).then(|| (Vec::new(), Some(Fault::Damaged)))
}

/// Returns whether bytes begin as no text in any character set does: as a packing, or with more than a few control characters.
fn is_noise(bytes: &[u8]) -> bool {
    let is_packed = [GZIP, ZSTD].iter().any(|magic| bytes.starts_with(magic) || magic.starts_with(bytes));
    let beginning = &bytes[..bytes.len().min(512)];
    // Line ends, tabs, form feeds, and the escapes of ISO 2022 stand in texts.
    let is_control = |&&byte: &&u8| byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b);
    let is_binary = beginning.iter().filter(is_control).count() * 50 > beginning.len();
    let is_wide = [&b"\xff\xfe"[..], b"\xfe\xff", b"<\0", b"\0<"].iter().any(|wide| bytes.starts_with(wide));
    !bytes.is_empty() && (is_packed || (is_binary && !is_wide))
}

/// Unpacks the members of gzip. What follows them and begins no member is passed over, as browsers do.
fn unpack_gzip(body: &[u8], max_bytes: u64) -> Decoded {
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

fn read_all(decoder: impl Read, max_bytes: u64) -> Decoded {
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
        let joined = |body: &[u8]| decode(body, "chunked", 100);
        assert_eq!(joined(b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"), Some((b"abcde".to_vec(), None)));
        assert_eq!(joined(b"<html>\n"), None);
        for cut in [&b"3\r\nabc\r\n"[..], b"3\r\nabc"] {
            assert_eq!(joined(cut), Some((b"abc".to_vec(), Some(Fault::Unended))));
        }
        assert_eq!(joined(b"3\r\nabc\r\nZ"), Some((b"abc".to_vec(), Some(Fault::Damaged))));
        assert_eq!(joined(b"9\r\nabc"), Some((b"abc".to_vec(), Some(Fault::Damaged))));
    }

    #[test]
    fn a_body_that_grows_too_large_is_cut_and_said_so() {
        use std::io::Read;
        let bomb = zstd::encode_all(std::io::repeat(b'a').take(1 << 20), 1).unwrap();
        let (body, fault) = decode(&bomb, "zstd", 100).unwrap();
        assert_eq!((body.len(), fault), (101, Some(Fault::TooLarge)));
        assert_eq!(decode(b"<p>plain</p>", "gzip", 100), None);
    }

    #[test]
    fn bytes_that_are_neither_of_their_encoding_nor_text_are_damaged() {
        let gzip = b"\x1f\x8b\x08\0\0\0\0\0\0\x03packed";
        let damaged = Some((Vec::new(), Some(Fault::Damaged)));
        for body in [&gzip[1..], &gzip[..1], b"\x28\xb5", b"\x1e\x8b\x08\0\0\0\0\0\0\x03packed"] {
            for encoding in ["gzip", "zstd", "chunked"] {
                assert_eq!(decode(body, encoding, 100), damaged, "{encoding} {body:?}");
            }
        }
        for encoding in ["zstd", "chunked", "deflate"] {
            assert_eq!(decode(gzip, encoding, 100), damaged, "{encoding}");
        }
        let japanese = b"\x1b$B%Z!<%8\x1b(B, page\x0c";
        let long = [b"a text with a control \x01 character, ".to_vec(), b"and more of it".repeat(9)].concat();
        for text in [&b""[..], b"(a text)", japanese, &long, b"\xff\xfe<\0p\0>\0", "\u{feff}Grüße".as_bytes()] {
            for encoding in ["gzip", "zstd", "chunked"] {
                assert_eq!(decode(text, encoding, 1000), None, "{encoding} {text:?}");
            }
        }
    }
}
