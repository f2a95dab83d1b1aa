//! Characters by script: which are cut into pairs, and which make up words. docs/fingerprint-format.md has the frozen
//! ranges. A change of them changes the fingerprints of texts in these scripts in every store.

/// Returns whether `c` is a Han character: the unified ideographs and their extensions, the compatibility ideographs,
/// `々` and `〇`.
pub(crate) fn is_han(c: char) -> bool {
    matches!(
        c,
        '\u{4E00}'..='\u{9FFF}'
            | '\u{3005}'
            | '\u{3007}'
            | '\u{3400}'..='\u{4DBF}'
            | '\u{F900}'..='\u{FAFF}'
            | '\u{20000}'..='\u{2FA1F}'
            | '\u{30000}'..='\u{33479}'
    )
}

/// Returns whether the character at byte `at` is one of U+4E00 to U+9FFF, which make up nearly all Han of nearly all
/// texts. Each has three bytes, the first of which is enough to decide. `at` is the beginning of a character, or the
/// end.
#[inline]
pub(crate) fn is_common_han_at(bytes: &[u8], at: usize) -> bool {
    match bytes.get(at) {
        Some(0xE5..=0xE9) => true,
        Some(0xE4) => bytes.get(at + 1).is_some_and(|&second| second >= 0xB8),
        _ => false,
    }
}

/// Returns whether `c` is a letter or digit of any script.
pub(crate) fn is_alphanumeric(c: char) -> bool {
    is_han(c) || c.is_alphanumeric()
}

/// Returns whether `c` is a letter or a mark of a script that puts no spaces between words: Han, Hiragana, Katakana,
/// Thai, Lao, Myanmar or Khmer.
#[inline]
pub(crate) fn is_unspaced(c: char) -> bool {
    is_han(c)
        || matches!(
            c,
            '\u{3041}'..='\u{309A}' // Hiragana, and the marks of voiced sounds
                | '\u{309D}'..='\u{309F}'
                | '\u{30A1}'..='\u{30FA}' // Katakana
                | '\u{30FC}'..='\u{30FF}'
                | '\u{31F0}'..='\u{31FF}'
                | '\u{FF66}'..='\u{FF9F}'
                | '\u{1AFF0}'..='\u{1AFFE}'
                | '\u{1B000}'..='\u{1B16F}'
                | '\u{0E01}'..='\u{0E3A}' // Thai
                | '\u{0E40}'..='\u{0E4E}'
                | '\u{0E81}'..='\u{0ECE}' // Lao
                | '\u{0EDC}'..='\u{0EDF}'
                | '\u{1000}'..='\u{103F}' // Myanmar
                | '\u{1050}'..='\u{108F}'
                | '\u{109A}'..='\u{109D}'
                | '\u{A9E0}'..='\u{A9EF}'
                | '\u{A9FA}'..='\u{A9FE}'
                | '\u{AA60}'..='\u{AA76}'
                | '\u{AA7A}'..='\u{AA7F}'
                | '\u{1780}'..='\u{17D3}' // Khmer
                | '\u{17D7}'
                | '\u{17DC}'
                | '\u{17DD}'
        )
}

/// Returns whether `text` has a character of a [script without spaces](is_unspaced).
pub(crate) fn has_unspaced(text: &str) -> bool {
    // The first bytes of these characters are 0xE0 and above; 0xE2 begins dashes and quotation marks, which many texts
    // have.
    let may_begin = |byte: u8| u8::from(byte >= 0xE0) & u8::from(byte != 0xE2);
    let is_unspaced_at = |at: usize| text[at..].chars().next().is_some_and(is_unspaced);
    (0..).step_by(64).zip(text.as_bytes().chunks(64)).any(|(start, bytes)| {
        bytes.iter().fold(0, |any, &byte| any | may_begin(byte)) != 0
            && (start..).zip(bytes).any(|(at, &byte)| may_begin(byte) != 0 && is_unspaced_at(at))
    })
}

/// The script of most letters and digits of a text, as far as the floor needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MainScript {
    /// More than half are Han.
    Han,
    /// More than half are of scripts without spaces, and no more than half are Han.
    Unspaced,
    Other,
}

/// Returns the main script of `text`.
pub(crate) fn main_script(text: &str) -> MainScript {
    let (mut n_han, mut n_unspaced, mut n_all) = (0_usize, 0_usize, 0_usize);
    for c in text.chars() {
        if is_han(c) {
            n_han += 1;
            n_unspaced += 1;
            n_all += 1;
        } else if c.is_alphanumeric() {
            n_unspaced += usize::from(is_unspaced(c));
            n_all += 1;
        }
    }
    if 2 * n_han > n_all {
        MainScript::Han
    } else if 2 * n_unspaced > n_all {
        MainScript::Unspaced
    } else {
        MainScript::Other
    }
}

/// Returns the number of letters that the length of a word counts: two for each character of a [script
/// without spaces](is_unspaced) and for each Hangul syllable, and one for every other character.
pub(crate) fn n_letters(token: &str) -> usize {
    let letters = |c: char| if is_unspaced(c) || matches!(c, '\u{AC00}'..='\u{D7A3}') { 2 } else { 1 };
    token.chars().map(letters).sum()
}

/// Returns the number of bytes of the longest run of characters of `is_of_run`, which has all Han characters, that
/// begins at byte `at` of `text`.
pub(crate) fn run_len(text: &str, at: usize, is_of_run: impl Fn(char) -> bool) -> usize {
    let bytes = text.as_bytes();
    let mut end = at;
    loop {
        while is_common_han_at(bytes, end) {
            end += 3;
        }
        match bytes.get(end) {
            // Han characters and those of other scripts without spaces have three bytes or four.
            Some(0xE0..) => match text[end..].chars().next().filter(|&c| is_of_run(c)) {
                Some(c) => end += c.len_utf8(),
                None => return end - at,
            },
            _ => return end - at,
        }
    }
}
