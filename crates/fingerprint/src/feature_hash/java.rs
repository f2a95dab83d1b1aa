//! The word hash of the Java SimHash articles, over UTF-16 code units:
//!
//! ```text
//! x = first << 7;   for each unit: x = (x · 1000003) xor unit, masked to the fingerprint's bits;   x xor length
//! ```
//!
//! The Java works on `BigInteger`s and masks after each step. Products and exclusive ors never carry downwards, so the narrower hashes are
//! the low bits of the wider ones: 128 bits are computed, wrapping, and truncated once at the end. The article's last step, -1 becomes -2,
//! never happens: the masked value is not negative.

use std::iter::repeat_n;

use crate::fingerprint::Fingerprint;

const MULTIPLIER: u128 = 1_000_003;
/// The length, in UTF-16 units, that [`pad3`] extends words to.
const MIN_UNITS: usize = 3;

/// Articles 000 and 003: the word as it is.
pub(super) fn plain<F: Fingerprint>(feature: &[u8]) -> F {
    F::from_u128(hash_units(&String::from_utf8_lossy(feature), 0))
}

/// Article 002: at least three units; 0 for a blank word.
pub(super) fn pad3<F: Fingerprint>(feature: &[u8]) -> F {
    let word = String::from_utf8_lossy(feature);
    if word.chars().all(is_java_whitespace) {
        return F::ZERO;
    }
    F::from_u128(hash_units(&word, MIN_UNITS))
}

/// The 128-bit hash of `word`, which counts as extended to `min_units` by copies of its first unit; 0 for an empty word.
fn hash_units(word: &str, min_units: usize) -> u128 {
    let Some(first) = word.encode_utf16().next() else {
        return 0;
    };
    let n_units = word.encode_utf16().count();
    let padding = repeat_n(first, min_units.saturating_sub(n_units));
    let mixed = word
        .encode_utf16()
        .chain(padding)
        .fold(u128::from(first) << 7, |x, unit| x.wrapping_mul(MULTIPLIER) ^ u128::from(unit));
    mixed ^ n_units.max(min_units) as u128
}

/// `Character.isWhitespace`: Unicode's space, line and paragraph separators without the no-break ones, and nine control characters.
fn is_java_whitespace(c: char) -> bool {
    match c {
        '\u{1C}'..='\u{1F}' => true,
        '\u{85}' | '\u{A0}' | '\u{2007}' | '\u{202F}' => false,
        _ => c.is_whitespace(),
    }
}
