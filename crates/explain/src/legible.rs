//! Makes the text of documents safe to show.

/// Returns the text without characters that could control a terminal or change the direction of writing. A tab, a line
/// break or another separator becomes a blank, and any other control character or direction mark becomes U+FFFD.
#[must_use]
pub fn legible(text: &str) -> String {
    text.chars().map(legible_char).collect()
}

/// Returns the id of a document as people are shown it: legible, and two quotes if it is empty.
#[must_use]
pub fn shown_id(id: &str) -> String {
    if id.is_empty() { "\"\"".to_owned() } else { legible(id) }
}

fn legible_char(c: char) -> char {
    match c {
        '\t' | '\n' | '\r' | '\u{1f}' | '\u{2028}' | '\u{2029}' => ' ',
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        c if c.is_control() => '\u{fffd}',
        c => c,
    }
}
