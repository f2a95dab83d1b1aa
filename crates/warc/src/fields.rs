//! Named fields, as the headers of records and of HTTP messages have them.

use std::borrow::Cow;

/// The fields of a header: lines of a name, a colon and a value. A line that begins with white space goes on with the
/// value before it. Lines without a colon are passed over, as browsers do.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// Takes the lines after the first line of a header.
    #[must_use]
    pub fn new(lines: &'a [u8]) -> Self {
        Self(lines)
    }

    /// Returns the value of the first field of this name, in any case. Bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Cow<'a, str>> {
        self.all(name).next()
    }

    /// Returns the value of the first field of this name, which is an address: bytes that are not UTF-8 are percent-encoded, so that two
    /// addresses that differ in such bytes stay two.
    #[must_use]
    pub fn address(&self, name: &str) -> Option<Cow<'a, str>> {
        self.values(name, percent_encoded).next()
    }

    /// Returns the values of all fields of this name, in order. Bytes that are not UTF-8 are replaced.
    pub fn all(&self, name: &str) -> impl Iterator<Item = Cow<'a, str>> {
        self.values(name, String::from_utf8_lossy)
    }

    fn values(&self, name: &str, text: fn(&'a [u8]) -> Cow<'a, str>) -> impl Iterator<Item = Cow<'a, str>> {
        let mut lines = lines(self.0).peekable();
        std::iter::from_fn(move || {
            loop {
                let line = lines.next()?;
                let Some(colon) = memchr::memchr(b':', line) else { continue };
                if !line[..colon].trim_ascii().eq_ignore_ascii_case(name.as_bytes()) {
                    continue;
                }
                let mut value = text(line[colon + 1..].trim_ascii());
                while let Some(more) = lines.next_if(|line| line.first().is_some_and(|&b| b == b' ' || b == b'\t')) {
                    let (value, more) = (value.to_mut(), text(more.trim_ascii()));
                    if !value.is_empty() && !more.is_empty() {
                        value.push(' ');
                    }
                    value.push_str(&more);
                }
                return Some(value);
            }
        })
    }
}

fn percent_encoded(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let chunk = |chunk: std::str::Utf8Chunk<'_>| {
        let others = chunk.invalid().iter().map(|byte| format!("%{byte:02X}"));
        [chunk.valid().to_owned()].into_iter().chain(others).collect::<String>()
    };
    Cow::Owned(bytes.utf8_chunks().map(chunk).collect())
}

/// Returns the lines, without their ends.
pub fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

/// Returns the bytes behind the empty lines with which they begin.
pub fn behind_empty_lines(bytes: &[u8]) -> &[u8] {
    let n_line_ends = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    &bytes[n_line_ends..]
}

/// Returns where the header ends that begins the bytes: the offset behind its empty line.
pub fn header_end(bytes: &[u8]) -> Option<usize> {
    memchr::memchr_iter(b'\n', bytes).find_map(|at| match &bytes[at + 1..] {
        [b'\n', ..] => Some(at + 2),
        [b'\r', b'\n', ..] => Some(at + 3),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::{Fields, header_end};

    #[test]
    fn fields_are_found_in_any_case_and_go_on_over_lines() {
        let fields = Fields::new(b"a: 1\r\nno colon\r\nB :x\r\n  y\r\nA:2\r\n\r\n");
        assert_eq!(fields.get("b").as_deref(), Some("x y"));
        assert_eq!(fields.all("A").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(fields.get("c"), None);
        let folded = Fields::new(b"uri:\r\n http://x.org/\r\nlength: \r\n\t386\r\n \r\n\r\n");
        assert_eq!(folded.address("uri").as_deref(), Some("http://x.org/"));
        assert_eq!(folded.get("length").as_deref(), Some("386"));
    }

    #[test]
    fn addresses_whose_bytes_are_not_utf_8_stay_different() {
        let fields = Fields::new("Grüße: http://x.org/grün\r\n".as_bytes());
        assert_eq!(fields.address("Grüße").as_deref(), Some("http://x.org/grün"));
        let fields = Fields::new(b"uri: http://x.org/caf\xe9/\xc3\xa9?\xf0\x9f\r\n");
        assert_eq!(fields.address("URI").as_deref(), Some("http://x.org/caf%E9/\u{e9}?%F0%9F"));
        assert_eq!(fields.get("URI").as_deref(), Some("http://x.org/caf\u{fffd}/\u{e9}?\u{fffd}"));
        assert_eq!(fields.address("url"), None);
    }

    #[test]
    fn a_header_ends_with_an_empty_line_of_either_kind() {
        assert_eq!(header_end(b"a\r\nb\r\n\r\nrest"), Some(8));
        assert_eq!(header_end(b"a\nb\n\nrest"), Some(5));
        assert_eq!(header_end(b"a\r\nb\r\n"), None);
    }
}
