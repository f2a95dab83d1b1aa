//! HTTP messages, as responses are stored in records.

use std::borrow::Cow;

use crate::fields::{Fields, behind_empty_lines, header_end, lines};
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
    /// Takes the block of a response apart. Returns `None` if it does not begin with a status line. Interim responses, such as 100
    /// and 103, are passed over if another one follows.
    #[must_use]
    pub fn parse(block: &'a [u8]) -> Option<Self> {
        let mut message = Self::first(block)?;
        while (100..200).contains(&message.status)
            && let Some(next) = Self::first(message.body)
        {
            message = next;
        }
        Some(message)
    }

    fn first(block: &'a [u8]) -> Option<Self> {
        // The reason behind the status may be in any character set. Empty lines before it are passed over.
        let block = behind_empty_lines(block);
        let (name, first_line) = lines(block).next()?.split_first_chunk::<5>()?;
        if !name.eq_ignore_ascii_case(b"HTTP/") {
            return None;
        }
        let mut words = first_line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let status = std::str::from_utf8(words.nth(1)?).ok()?.parse().ok()?;
        // A header that no empty line ends has no body.
        let end = header_end(block).unwrap_or(block.len());
        let line_end = memchr::memchr(b'\n', block).map_or(block.len(), |at| at + 1).min(end);
        Some(Self { status, fields: Fields::new(&block[line_end..end]), body: &block[end..] })
    }

    /// Returns the body without its transfer codings and content encodings. Empty lines before an encoded body are passed over.
    #[must_use]
    pub fn body(&self, max_bytes: u64) -> Body<'a> {
        let mut encodings = self.listed("content-encoding");
        encodings.extend(self.listed("transfer-encoding"));
        let (mut body, mut fault, mut is_unpacked) = (Cow::Borrowed(self.body), None, true);
        for encoding in encodings.iter().rev() {
            let Some((decoded, more)) = unpack::decode(&body, encoding, max_bytes) else {
                is_unpacked &= !unpack::is_packing(encoding);
                continue;
            };
            // A packing that ends is whole, also in chunks that do not.
            let before = fault.filter(|&fault| more.is_some() || fault != Fault::Unended);
            (body, fault) = (Cow::Owned(decoded), before.or(more));
        }
        match fault {
            _ if body.len() as u64 > max_bytes => Body::TooLarge,
            // Nothing of it can be read.
            None if !is_unpacked && unpack::is_noise(&body) => Body::Beginning(Cow::Borrowed(&[])),
            None => Body::Whole(body),
            Some(Fault::TooLarge) => Body::TooLarge,
            Some(Fault::Damaged | Fault::Unended) => Body::Beginning(body),
        }
    }

    /// Returns the values of all fields of a name, each of which may have several, in lower case and without parameters.
    fn listed(&self, name: &str) -> Vec<String> {
        let values = self.fields.all(name).collect::<Vec<_>>().join(",").to_ascii_lowercase();
        let bare = |value: &str| value.split(';').next().map(|value| value.trim().trim_matches('"').to_owned());
        values.split(',').filter_map(bare).filter(|value| !value.is_empty()).collect()
    }
}
