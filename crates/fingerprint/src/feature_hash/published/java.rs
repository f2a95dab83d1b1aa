//! The word hash of the Java SimHash articles, over UTF-16 code units:
//!
//! ```text
//! x = first << 7;   for each unit: x = (x · 1000003) xor unit, masked to the fingerprint's bits;   x xor length
//! ```
//!
//! The Java program works on `BigInteger`s and masks after each step. Products and exclusive ors never carry downwards,
//! so the narrower hashes are the low bits of the wider ones: this module computes 128 bits, wrapping, and truncates
//! once at the end. The article's last step, which turns -1 into -2, never takes effect, because the masked value is
//! not negative.

use std::iter::repeat_n;

use crate::fingerprint::Fingerprint;

const MULTIPLIER: u128 = 1_000_003;
/// The length, in UTF-16 units, that [`pad3`] extends words to.
const MIN_UNITS: usize = 3;

/// Hashes the word as it is (articles 000 and 003).
pub(super) fn plain<F: Fingerprint>(feature: &[u8]) -> F {
    F::from_u128(hash_units(&String::from_utf8_lossy(feature), 0))
}

/// Hashes the word extended to at least three units; a blank word has the hash 0 (article 002).
pub(super) fn pad3<F: Fingerprint>(feature: &[u8]) -> F {
    let word = String::from_utf8_lossy(feature);
    if word.chars().all(is_java_whitespace) {
        return F::ZERO;
    }
    F::from_u128(hash_units(&word, MIN_UNITS))
}

/// Returns the 128-bit hash of `word` extended to `min_units` by copies of its first unit; an empty word has the hash
/// 0.
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

/// Does the same as Java's `Character.isWhitespace`: it accepts Unicode's space, line and paragraph separators except
/// the no-break ones, and nine control characters.
fn is_java_whitespace(c: char) -> bool {
    match c {
        '\u{1C}'..='\u{1F}' => true,
        '\u{85}' | '\u{A0}' | '\u{2007}' | '\u{202F}' => false,
        _ => c.is_whitespace(),
    }
}
