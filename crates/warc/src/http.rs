//! HTTP messages, as responses are stored in records.

use std::borrow::Cow;

use crate::fields::{Fields, header_end, lines};
use crate::unpack::{self, Fault};

/// An HTTP message as it was stored.
#[derive(Debug, Clone, Copy)]
pub struct HttpMessage<'a> {
    /// The status code, such as 200.
    pub status: u16,
    /// The fields of the header.
    pub fields: Fields<'a>,
    body: &'a [u8],
}

/// The decoded body of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body<'a> {
    /// The whole body.
    Whole(Cow<'a, [u8]>),
    /// The beginning of the body: the rest is missing or damaged.
    Beginning(Cow<'a, [u8]>),
    /// The body is larger than it may be.
    TooLarge,
}

impl<'a> HttpMessage<'a> {
    /// Takes the block of a response apart. Returns `None` if it does not begin with a status line.
    #[must_use]
    pub fn parse(block: &'a [u8]) -> Option<Self> {
        // The reason behind the status may be in any character set.
        let first_line = lines(block).next()?.strip_prefix(b"HTTP/")?;
        let mut words = first_line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let status = std::str::from_utf8(words.nth(1)?).ok()?.parse().ok()?;
        // A header that no empty line ends has no body.
        let end = header_end(block).unwrap_or(block.len());
        let line_end = memchr::memchr(b'\n', block).map_or(block.len(), |at| at + 1).min(end);
        Some(Self { status, fields: Fields::new(&block[line_end..end]), body: &block[end..] })
    }

    /// Returns the body without chunks and content encodings.
    #[must_use]
    pub fn body(&self, max_bytes: u64) -> Body<'a> {
        let is_chunked =
            self.fields.all("transfer-encoding").any(|value| value.to_ascii_lowercase().contains("chunked"));
        let (mut body, mut fault) = if is_chunked { unpack::join_chunks(self.body) } else { (self.body.into(), None) };
        let encodings: Vec<String> = self
            .fields
            .all("content-encoding")
            .flat_map(|value| value.split(',').map(str::to_owned).collect::<Vec<_>>())
            .collect();
        for encoding in encodings.iter().rev() {
            let (decoded, more) = unpack::decode(body, encoding, max_bytes);
            (body, fault) = (decoded, fault.or(more));
        }
        match fault {
            _ if body.len() as u64 > max_bytes => Body::TooLarge,
            None => Body::Whole(body),
            Some(Fault::TooLarge) => Body::TooLarge,
            Some(Fault::Damaged) => Body::Beginning(body),
        }
    }
}
