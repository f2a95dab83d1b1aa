//! What other libraries say.

/// Returns what another library says, on one line and without backticks. In messages of nearprint a key stands in
/// backticks; a field that a parser names is no such key.
#[must_use]
pub fn foreign(said: &(impl std::fmt::Display + ?Sized)) -> String {
    one_line(&said.to_string()).replace('`', "'")
}

/// Replaces every stretch of white space in a text with one blank.
#[must_use]
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns a word of a command line. A word that a shell would take apart is quoted.
///
/// ```
/// assert_eq!(nearprint_fault::quoted("it's 1.json"), r"'it'\''s 1.json'");
/// ```
#[must_use]
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
