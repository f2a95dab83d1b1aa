//! The titles of pages.

use super::dom::{Content, Dom, Holds};
use crate::mode::Syntax;

/// The bytes at the beginning of a page in which a title is looked for, if no body begins there.
const HEAD_BYTES: usize = 256 << 10;

/// Returns the title of a page: the text of the first element `title` before the body, with each run of white space as one
/// blank. `None` if it has none, or an empty one.
#[must_use]
pub fn title_of(html: &str, syntax: Syntax) -> Option<String> {
    let mut end = html.len().min(HEAD_BYTES);
    while !html.is_char_boundary(end) {
        end -= 1;
    }
    let head = &html[..end];
    let body = head.as_bytes().windows(5).position(|tag| tag.eq_ignore_ascii_case(b"<body"));
    let dom = Dom::parse(&head[..body.unwrap_or(end)], Holds::Known, syntax);
    let nodes = dom.nodes();
    let title = nodes.iter().position(|node| node.name() == "title")?;
    let texts = nodes.iter().filter(|node| node.parent == title).filter_map(|node| match &node.content {
        Content::Text(text) => Some(text.to_string()),
        Content::Element { .. } => None,
    });
    let text: String = texts.collect();
    let words: Vec<&str> = text.split_whitespace().collect();
    (!words.is_empty()).then(|| words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::title_of;
    use crate::mode::Syntax;

    #[test]
    fn a_title_is_that_of_the_head_on_one_line() {
        for (html, title) in [
            ("<html><head><title>\n A &amp; B\tof  <i> </title></head><body><p>x</p>", Some("A & B of <i>")),
            ("<TITLE>First</TITLE><title>Second</title><p>x</p>", Some("First")),
            ("<head></head><BODY><svg><title>An icon</title></svg>", None),
            ("<title> </title><p>x</p>", None),
            ("no page", None),
        ] {
            assert_eq!(title_of(html, Syntax::Html).as_deref(), title, "{html}");
        }
    }
}
