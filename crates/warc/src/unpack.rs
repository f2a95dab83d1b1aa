//! The encodings of HTTP bodies: chunks, and the content encodings gzip, deflate, br and zstd.

use std::io::Read;

use crate::fields::{behind_empty_lines, lines};

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
        let Some((size, after)) = chunk(rest) else {
            let is_cut = b"0\r\n".starts_with(rest);
            return (joined, Some(if is_cut { Fault::Unended } else { Fault::Damaged }));
        };
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
    let behind = behind_empty_lines(body);
    let decoded = match encoding {
        "chunked" if chunk(behind).is_some() => join_chunks(behind),
        "gzip" | "x-gzip" if behind.starts_with(GZIP) => unpack_gzip(behind, max_bytes),
        "deflate" if is_zlib(body) => read_all(flate2::bufread::ZlibDecoder::new(body), max_bytes),
        "deflate" if !body.is_empty() => {
            let bare = read_all(flate2::bufread::DeflateDecoder::new(body), max_bytes);
            if bare.0.is_empty() && bare.1.is_some() {
                return None;
            }
            bare
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
        _ => return None,
    };
    Some(decoded)
}

/// Returns whether an encoding, by its name in lower case, packs bytes.
pub fn is_packing(encoding: &str) -> bool {
    matches!(encoding, "gzip" | "x-gzip" | "deflate" | "br" | "zstd")
}

/// The beginnings of files that are no texts and are often sent as if they were pages: PNG, JPEG, GIF, WebP, ZIP, fonts, icons, BMP,
/// TIFF, Ogg and MP3.
const OTHER_FILES: [&[u8]; 14] = [
    b"\x89PNG",
    b"\xff\xd8\xff",
    b"GIF8",
    b"RIFF",
    b"PK\x03\x04",
    b"wOFF",
    b"wOF2",
    b"\0\0\x01\0",
    b"BM",
    b"II*\0",
    b"MM\0*",
    b"OggS",
    b"ID3",
    b"%PDF",
];

/// Returns whether bytes that were not packed as they should be look like what is left of a packing: they begin as another one does, or
/// with control characters as no text has them.
pub fn is_noise(bytes: &[u8]) -> bool {
    let begins = |magic: &[u8]| bytes.starts_with(magic) || (bytes.len() > 1 && magic.starts_with(bytes));
    if [GZIP, ZSTD].into_iter().any(begins) || bytes == &GZIP[..1] {
        return true;
    }
    if OTHER_FILES.iter().any(|magic| bytes.starts_with(magic)) || begins_with_tag(bytes) {
        return false;
    }
    let beginning = &bytes[..bytes.len().min(512)];
    // Line ends, tabs, form feeds, and the shifts and escapes of ISO 2022 stand in texts.
    let is_control = |byte: u8| byte < 0x20 && !matches!(byte, b'\t'..=b'\r' | 0x0e | 0x0f | 0x1b);
    let n_controls = beginning.iter().filter(|&&byte| is_control(byte)).count();
    // In UTF-16, every other byte of markup is zero.
    let zeros = [0, 1].map(|first| beginning.iter().skip(first).step_by(2).filter(|&&byte| byte == 0).count());
    let is_wide = zeros[0].abs_diff(zeros[1]) * 5 > beginning.len()
        || bytes.starts_with(b"\xff\xfe")
        || bytes.starts_with(b"\xfe\xff");
    // A stray one or two are a fault of the text.
    let shares = [(3, 20), (8, 50)];
    shares.iter().any(|&(least, share)| n_controls >= least && n_controls * share > beginning.len()) && !is_wide
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
    use super::{Fault, decode, is_noise};

    #[test]
    fn chunks_are_joined_and_a_body_without_them_stays() {
        let joined = |body: &[u8]| decode(body, "chunked", 100);
        assert_eq!(joined(b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"), Some((b"abcde".to_vec(), None)));
        assert_eq!(joined(b"<html>\n"), None);
        for cut in [&b"3\r\nabc\r\n"[..], b"3\r\nabc", b"3\r\nabc\r\n0", b"3\r\nabc\r\n0\r"] {
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
    fn what_is_left_of_a_packing_is_told_from_texts_and_other_files() {
        let gzip = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x4b\x4c\x4a\x06\0\xc2\x41\x24\x35\x03\0\0\0";
        for noise in [&gzip[..], &gzip[1..], &gzip[..1], b"\x28\xb5", b"\x28\xb5\x2f\xfd\0"] {
            assert!(is_noise(noise), "{noise:?}");
        }
        let flipped = [&b"\x1e"[..], &gzip[1..]].concat();
        assert!(is_noise(&flipped));
        let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        let long = [b"a text with a control \x01 character, ".to_vec(), b"and more of it".repeat(9)].concat();
        for text in [
            &b""[..],
            b"(",
            b"(a text)",
            b"<p>ok\0</p>",
            b"\x1b$B%Z!<%8\x1b(B, page\x0c",
            b"\x1b$)C\x0e\x3b\x71\x0f text",
            &long,
            &wide("\n <p>a page in wide characters</p>"),
            &wide("\u{feff}日本語のページ"),
            "\u{feff}Grüße".as_bytes(),
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x10\0\0\0\x10\x08\x06\0\0\0",
        ] {
            assert!(!is_noise(text), "{text:?}");
        }
    }
}
