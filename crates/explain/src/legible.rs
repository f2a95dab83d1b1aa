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

/// Returns whether an id is the address of a web page and may become a link: its scheme is `http` or `https`, a host follows,
/// and nothing in it could be taken for something else than a part of the address.
///
/// ```
/// use nearprint_explain::is_web_address;
///
/// assert!(is_web_address("https://example.org/文?a=1#b") && is_web_address("http://localhost:8080"));
/// assert!(!is_web_address("javascript:hit()") && !is_web_address("https://javascript:hit()"));
/// assert!(!is_web_address("https://example.org@evil.example/") && !is_web_address("https://a.example/\"onclick"));
/// ```
#[must_use]
pub fn is_web_address(id: &str) -> bool {
    let Some(rest) = id.strip_prefix("https://").or_else(|| id.strip_prefix("http://")) else { return false };
    let (host, path) = rest.find(['/', '?', '#']).map_or((rest, ""), |at| rest.split_at(at));
    let (host, port) = host.split_once(':').map_or((host, None), |(host, port)| (host, Some(port)));
    let is_host = !host.is_empty() && host.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '-'));
    let is_port = port.is_none_or(|port| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()));
    let is_usual =
        |c: char| !c.is_whitespace() && !matches!(c, '<' | '>' | '"' | '\'' | '`' | '\\') && legible_char(c) == c;
    is_host && is_port && path.chars().all(is_usual)
}

fn legible_char(c: char) -> char {
    match c {
        '\t' | '\n' | '\r' | '\u{1f}' | '\u{2028}' | '\u{2029}' => ' ',
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        c if c.is_control() => '\u{fffd}',
        c => c,
    }
}
