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

/// Returns whether more than half of the letters and digits of `text` are Han.
pub(crate) fn is_mostly_han(text: &str) -> bool {
    let (mut n_han, mut n_all) = (0_usize, 0_usize);
    for c in text.chars() {
        if is_han(c) {
            n_han += 1;
            n_all += 1;
        } else if c.is_alphanumeric() {
            n_all += 1;
        }
    }
    2 * n_han > n_all
}

/// Returns the number of bytes of the longest run of Han characters that begins at byte `at` of `text`.
pub(crate) fn han_run_len(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    let mut end = at;
    loop {
        while is_common_han_at(bytes, end) {
            end += 3;
        }
        match bytes.get(end) {
            // Every other Han character is U+3005 or above.
            Some(0xE3..) => match text[end..].chars().next().filter(|&c| is_han(c)) {
                Some(c) => end += c.len_utf8(),
                None => return end - at,
            },
            _ => return end - at,
        }
    }
}
