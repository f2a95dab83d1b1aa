use std::borrow::Cow;

use caseless::Caseless;
use unicode_normalization::char::is_combining_mark;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

use crate::config::NormalizeConfig;
use crate::script::is_alphanumeric;

/// Applies the configured steps, each in one pass over the text: this is the definition. The result borrows from the
/// text if there is nothing to change.
///
/// Removals come before NFKC because they bring characters together that then compose, and NFKC is repeated after case
/// folding, which can undo it. So the result is a fixed point of everything except the decoding of HTML entities.
pub(crate) fn normalize<'a>(text: &'a str, config: &NormalizeConfig) -> Cow<'a, str> {
    let steps: [(bool, Step); 9] = [
        (config.html_entities, decode_html_entities),
        (config.control_characters, remove_control_characters),
        (config.nfkc, nfkc),
        (config.lower_case, lower_case),
        (config.case_fold, case_fold),
        (config.nfkc && config.case_fold, nfkc),
        (config.special_characters, remove_special_characters),
        (config.nfkc && config.special_characters, nfkc),
        (config.white_space, collapse_white_space),
    ];
    steps.iter().filter(|(on, _)| *on).fold(Cow::Borrowed(text), |text, (_, step)| apply(text, *step))
}

type Step = for<'a> fn(&'a str) -> Cow<'a, str>;

fn apply(text: Cow<'_, str>, step: Step) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => step(text),
        Cow::Owned(text) => {
            let changed = match step(&text) {
                Cow::Owned(changed) => Some(changed),
                Cow::Borrowed(part) if part.len() == text.len() => None,
                Cow::Borrowed(part) => Some(part.to_owned()),
            };
            Cow::Owned(changed.unwrap_or(text))
        }
    }
}

pub(super) fn decode_html_entities(text: &str) -> Cow<'_, str> {
    // The text is searched here first, because the decoder examines each byte.
    if text.contains('&') { html_escape::decode_html_entities(text) } else { Cow::Borrowed(text) }
}

pub(super) fn nfkc(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || is_nfkc_quick(text.chars()) == IsNormalized::Yes {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.nfkc().collect())
    }
}

fn case_fold(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        let has_upper_case = text.bytes().any(|b| b.is_ascii_uppercase());
        return if has_upper_case { Cow::Owned(text.to_ascii_lowercase()) } else { Cow::Borrowed(text) };
    }
    if text.chars().default_case_fold().eq(text.chars()) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.chars().default_case_fold().collect())
    }
}

/// Python's `str.lower` and Rust's have the same rules.
fn lower_case(text: &str) -> Cow<'_, str> {
    let lower = text.to_lowercase();
    if lower == text { Cow::Borrowed(text) } else { Cow::Owned(lower) }
}

fn remove_control_characters(text: &str) -> Cow<'_, str> {
    keep_only(text, |c| !is_invisible(c))
}

fn remove_special_characters(text: &str) -> Cow<'_, str> {
    keep_only(text, |c| is_alphanumeric(c) || c.is_whitespace() || is_combining_mark(c))
}

fn keep_only(text: &str, keep: impl Fn(char) -> bool) -> Cow<'_, str> {
    if text.chars().all(&keep) { Cow::Borrowed(text) } else { Cow::Owned(text.chars().filter(|&c| keep(c)).collect()) }
}

/// Returns whether `c` is a control character other than white space, or an invisible format character (general
/// category Cf).
fn is_invisible(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control() && !c.is_whitespace();
    }
    match c {
        '\u{80}'..='\u{9F}' => !c.is_whitespace(),
        '\u{AD}' | '\u{61C}' | '\u{180E}' | '\u{FEFF}' => true,
        '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' => true,
        '\u{FFF9}'..='\u{FFFB}' | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E007F}' => true,
        _ => false,
    }
}

fn collapse_white_space(text: &str) -> Cow<'_, str> {
    if is_collapsed(text) {
        return Cow::Borrowed(text);
    }
    let mut collapsed = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !collapsed.is_empty() {
            collapsed.push(' ');
        }
        collapsed.push_str(word);
    }
    Cow::Owned(collapsed)
}

/// Returns whether the only white space is single spaces between other characters.
fn is_collapsed(text: &str) -> bool {
    let mut after_space = true;
    for c in text.chars() {
        if c.is_whitespace() && (c != ' ' || after_space) {
            return false;
        }
        after_space = c == ' ';
    }
    text.is_empty() || !after_space
}
