/// Whether `c` is a Han character: the unified ideographs and their extensions, the compatibility ideographs, `々` and `〇`.
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

/// Whether `c` is a letter or digit of any script.
pub(crate) fn is_alphanumeric(c: char) -> bool {
    is_han(c) || c.is_alphanumeric()
}

/// Whether more than half of the letters and digits of `text` are Han.
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

/// The maximal runs of `text` in which all characters are Han, or none is: `(is Han, byte offset, run)`, in order, covering it.
pub(crate) fn han_runs(text: &str) -> impl Iterator<Item = (bool, usize, &str)> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = &text[start..];
        let han = is_han(rest.chars().next()?);
        let end = rest.find(|c| is_han(c) != han).unwrap_or(rest.len());
        let run = (han, start, &rest[..end]);
        start += end;
        Some(run)
    })
}
