//! Tokens, fingerprints and sketches by their definitions, as plainly as can be.

use std::collections::BTreeSet;

use nearprint_fingerprint::{BitRule, Fingerprint};
use unicode_normalization::char::is_combining_mark;
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};
use unicode_segmentation::UnicodeSegmentation;

pub(crate) fn is_han(c: char) -> bool {
    let ranges = [
        '\u{3005}'..='\u{3005}',
        '\u{3007}'..='\u{3007}',
        '\u{3400}'..='\u{4DBF}',
        '\u{4E00}'..='\u{9FFF}',
        '\u{F900}'..='\u{FAFF}',
        '\u{20000}'..='\u{2FA1F}',
        '\u{30000}'..='\u{33479}',
    ];
    ranges.iter().any(|range| range.contains(&c))
}

pub(crate) fn is_alphanumeric(c: char) -> bool {
    is_han(c) || c.is_alphanumeric()
}

/// Letters and numbers by their general category, and `_`.
pub(crate) fn is_python_word(c: char) -> bool {
    c == '_' || matches!(c.general_category_group(), GeneralCategoryGroup::Letter | GeneralCategoryGroup::Number)
}

/// The longest runs of characters of which `class` says the same.
fn runs<C: PartialEq>(text: &str, class: impl Fn(char) -> C) -> Vec<(C, String)> {
    let mut runs: Vec<(C, String)> = Vec::new();
    for c in text.chars() {
        match runs.last_mut() {
            Some((last, run)) if *last == class(c) => run.push(c),
            _ => runs.push((class(c), c.to_string())),
        }
    }
    runs
}

/// Each longest run of letters, digits, marks and `_` cut at the boundaries of UAX #29; every other character but white space alone.
pub(crate) fn words(text: &str) -> Vec<String> {
    let is_word_character = |c: char| is_alphanumeric(c) || is_combining_mark(c) || c == '_';
    let cut = |(is_word, run): (bool, String)| -> Vec<String> {
        if is_word {
            run.split_word_bounds().map(str::to_owned).collect()
        } else {
            run.chars().filter(|c| !c.is_whitespace()).map(String::from).collect()
        }
    };
    runs(text, is_word_character).into_iter().flat_map(cut).collect()
}

/// Runs of Han by `cut_han`, what lies between as words.
pub(crate) fn by_script(text: &str, cut_han: impl Fn(&str) -> Vec<String>) -> Vec<String> {
    runs(text, is_han).iter().flat_map(|(is_han, run)| if *is_han { cut_han(run) } else { words(run) }).collect()
}

pub(crate) fn pairs(run: &str) -> Vec<String> {
    windows(run, 2, |_| true)
}

/// Every window of `n` of the characters that are kept; all of them, if there are fewer.
pub(crate) fn windows(text: &str, n: usize, keep: impl Fn(char) -> bool) -> Vec<String> {
    let kept: Vec<char> = text.chars().filter(|&c| keep(c)).collect();
    if kept.is_empty() {
        return vec![];
    }
    kept.windows(n.min(kept.len())).map(|window| window.iter().collect()).collect()
}

pub(crate) fn utf16_windows(text: &str, n: usize) -> Vec<String> {
    let units: Vec<u16> = text.encode_utf16().collect();
    let shown = |window: &[u16]| char::decode_utf16(window.iter().copied()).map(|c| c.unwrap_or('?')).collect();
    units.windows(n).map(shown).collect()
}

/// Pieces of bytes, shown as characters.
pub(crate) fn byte_pieces(text: &str, n: usize) -> Vec<String> {
    text.as_bytes().chunks(n).map(|piece| piece.iter().copied().map(char::from).collect()).collect()
}

/// Adds up the votes on each bit.
pub(crate) fn simhash<F: Fingerprint>(hashes: &[(F, u64)], rule: BitRule) -> F {
    let wins = |bit: u32| {
        let votes = hashes.iter().map(|(hash, weight)| (hash.to_u128() >> bit & 1 == 1, *weight));
        if rule == BitRule::FloatPositive {
            let mut sum = 0.0;
            votes.for_each(|(is_for, weight)| sum += if is_for { weight as f64 } else { -(weight as f64) });
            return sum > 0.0;
        }
        let sum: i128 =
            votes.map(|(is_for, weight)| if is_for { i128::from(weight) } else { -i128::from(weight) }).sum();
        match rule {
            BitRule::Positive | BitRule::FloatPositive => sum > 0,
            BitRule::NonNegative => sum >= 0,
            BitRule::Negative => sum < 0,
            BitRule::AboveOne => sum > 1 << 16,
        }
    };
    F::from_u128((0..F::BITS).map(|bit| u128::from(wins(bit)) << bit).sum())
}

/// The fractional parts of the square roots of 2, 3, 5, 7, 11 and 13, in units of 2^-64.
const ROOTS: [u64; 6] = [
    0x6A09_E667_F3BC_C909,
    0xBB67_AE85_84CA_A73B,
    0x3C6E_F372_FE94_F82B,
    0xA54F_F53A_5F1D_36F1,
    0x510E_527F_ADE6_82D1,
    0x9B05_688C_2B3E_6C1F,
];

/// A bit of the least hash of each of 256 bins: of the tokens, each with its occurrence up to the fourth, and of the shingles.
pub(crate) fn sketch(hashes: &[u64], sequence: &[u32], width: usize) -> [u8; 32] {
    let fold = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        (product ^ product >> 64) as u64
    };
    let hash = |token: &u32| hashes[*token as usize];
    let mut elements: BTreeSet<u64> = BTreeSet::new();
    let mut seen = vec![0; hashes.len()];
    for token in sequence {
        let occurrence = &mut seen[*token as usize];
        if *occurrence < 4 {
            elements.insert(fold(hash(token), ROOTS[*occurrence]));
            *occurrence += 1;
        }
    }
    if width > 1 {
        elements.extend(sequence.windows(width).map(|window| {
            let step = |shingle: u64, token: &u32| fold(shingle ^ ROOTS[4], hash(token).rotate_left(32) ^ ROOTS[5]);
            window[1..].iter().fold(hash(&window[0]), step)
        }));
    }
    // The greatest hash stands for an empty bin.
    elements.remove(&u64::MAX);
    let mut bytes = [0; 32];
    if elements.is_empty() {
        return bytes;
    }
    let least_of =
        |bin: u8| elements.range(u64::from(bin) << 56..).next().copied().filter(|hash| hash >> 56 == u64::from(bin));
    for bin in 0..=255_u8 {
        let number = u64::from(bin);
        let value = least_of(bin).unwrap_or_else(|| {
            let others = (1..).flat_map(|round| mix(number << 32 | round).to_be_bytes());
            others.filter_map(least_of).next().expect("one bin is not empty")
        });
        bytes[usize::from(bin / 8)] |= ((mix(value ^ mix(number + 1)) & 1) as u8) << (bin % 8);
    }
    bytes
}

/// Stafford's variant 13 of Murmur3's finaliser.
fn mix(mut value: u64) -> u64 {
    value = (value ^ value >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    value = (value ^ value >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ value >> 31
}
