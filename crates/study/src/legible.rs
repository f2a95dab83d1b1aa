//! Text of documents as it may be shown.

/// The text with nothing in it that could drive a terminal or turn the direction of what follows: white space becomes a blank, a control
/// character U+FFFD.
#[must_use]
pub fn legible(text: &str) -> String {
    text.chars().map(legible_char).collect()
}

fn legible_char(c: char) -> char {
    match c {
        '\t' | '\n' | '\r' | '\u{1f}' | '\u{2028}' | '\u{2029}' => ' ',
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        c if c.is_control() => '\u{fffd}',
        c => c,
    }
}
