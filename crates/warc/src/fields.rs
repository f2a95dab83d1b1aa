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

    /// Returns the values of all fields of this name, in order.
    pub fn all(&self, name: &str) -> impl Iterator<Item = Cow<'a, str>> {
        let mut lines = lines(self.0).peekable();
        std::iter::from_fn(move || {
            loop {
                let line = lines.next()?;
                let Some(colon) = memchr::memchr(b':', line) else { continue };
                if !line[..colon].trim_ascii().eq_ignore_ascii_case(name.as_bytes()) {
                    continue;
                }
                let mut value = String::from_utf8_lossy(line[colon + 1..].trim_ascii());
                while let Some(more) = lines.next_if(|line| line.first().is_some_and(|&b| b == b' ' || b == b'\t')) {
                    let value = value.to_mut();
                    value.push(' ');
                    value.push_str(&String::from_utf8_lossy(more.trim_ascii()));
                }
                return Some(value);
            }
        })
    }
}

/// Returns the lines, without their ends.
pub fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
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
    }

    #[test]
    fn a_header_ends_with_an_empty_line_of_either_kind() {
        assert_eq!(header_end(b"a\r\nb\r\n\r\nrest"), Some(8));
        assert_eq!(header_end(b"a\nb\n\nrest"), Some(5));
        assert_eq!(header_end(b"a\r\nb\r\n"), None);
    }
}
