use std::borrow::Cow;
use std::hash::BuildHasher;
use std::ops::Range;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::script::is_common_han_at;

/// The memory that is reused to analyse one text after another. Each thread has its own.
#[derive(Debug, Default)]
pub struct Scratch {
    pub(crate) spans: Vec<Range<usize>>,
    distinct: Vec<(Range<usize>, u64)>,
    sequence: Vec<u32>,
    /// The distinct tokens. Hashes are seeded anew by each process, and nothing depends on them.
    table: HashTable<Numbered>,
    hasher: RandomState,
    han: HanNumbers,
}

/// The numbers of the tokens that are one common Han character each, found without a hash.
#[derive(Debug, Default)]
struct HanNumbers {
    /// By character, the number plus one; 0 for those that the text does not have. Empty until a text has one.
    numbers: Vec<u32>,
    /// The characters that have a number.
    numbered: Vec<u16>,
}

/// The number of characters from U+4E00 to U+9FFF.
const N_COMMON_HAN: usize = 0x5200;

impl HanNumbers {
    fn clear(&mut self) {
        for character in self.numbered.drain(..) {
            self.numbers[usize::from(character)] = 0;
        }
    }

    /// Returns the number of the token at `span`, which is the character at this place from U+4E00 on; counted.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "number_tokens refuses longer texts")]
    fn number(&mut self, character: u16, span: &Range<usize>, distinct: &mut Vec<(Range<usize>, u64)>) -> u32 {
        if self.numbers.is_empty() {
            self.numbers.resize(N_COMMON_HAN, 0);
        }
        let number = &mut self.numbers[usize::from(character)];
        if let Some(known) = number.checked_sub(1) {
            distinct[known as usize].1 += 1;
            return known;
        }
        distinct.push((span.clone(), 1));
        *number = distinct.len() as u32;
        self.numbered.push(character);
        *number - 1
    }
}

/// The distinct tokens of one text, numbered by first occurrence.
#[derive(Debug)]
pub struct DistinctTokens<'a> {
    text: Cow<'a, str>,
    distinct: &'a [(Range<usize>, u64)],
    sequence: &'a [u32],
}

impl<'a> DistinctTokens<'a> {
    /// Iterates over each distinct token and the number of its occurrences, by number.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], u64)> {
        self.distinct.iter().map(|(range, count)| (&self.text.as_bytes()[range.clone()], *count))
    }

    /// Returns the number of distinct tokens.
    #[must_use]
    pub fn len(&self) -> usize {
        self.distinct.len()
    }

    /// Returns whether there are no tokens.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.distinct.is_empty()
    }

    /// Returns the text's tokens in order, by number.
    #[must_use]
    pub fn sequence(&self) -> &'a [u32] {
        self.sequence
    }
}

/// A table that has room for more than this many tokens, and eight times what a text needed, is not kept: emptying it
/// would cost every later text more than the text itself.
const KEPT_CAPACITY: usize = 1 << 14;

/// Tokens that memory is kept for: a text with more gets memory of its own, which goes with the next text.
const KEPT_TOKENS: usize = 1 << 20;

impl Scratch {
    /// Makes the memory ready for the next text.
    pub(crate) fn clear(&mut self) {
        if self.spans.capacity() > KEPT_TOKENS {
            *self = Self::default();
        }
        self.spans.clear();
    }

    /// Numbers the tokens that `self.spans` cut from `text`.
    pub(crate) fn number_tokens<'a>(&'a mut self, text: Cow<'a, str>) -> DistinctTokens<'a> {
        self.distinct.clear();
        self.sequence.clear();
        self.han.clear();
        self.table.clear();
        assert!(u32::try_from(text.len()).is_ok(), "a text of 4 GiB or more, whose tokens have no 32-bit numbers");
        for span in &self.spans {
            let bytes = text.as_bytes();
            let number = match common_han(bytes, span) {
                Some(character) => self.han.number(character, span, &mut self.distinct),
                None => number(bytes, span, &mut self.table, &mut self.distinct, &self.hasher),
            };
            self.sequence.push(number);
        }
        debug_assert_eq!(
            self.distinct.iter().map(|(_, count)| count).sum::<u64>(),
            self.spans.len() as u64,
            "each token is counted once"
        );
        if self.table.capacity() > KEPT_CAPACITY.max(8 * self.distinct.len()) {
            self.table = HashTable::new();
        }
        DistinctTokens { text, distinct: &self.distinct, sequence: &self.sequence }
    }
}

/// Returns the place of the token at `span` among the common Han characters, if it is one of them and no more.
#[inline]
fn common_han(bytes: &[u8], span: &Range<usize>) -> Option<u16> {
    let &[first, second, third] = bytes[span.clone()].as_array()?;
    let character = u16::from(first & 0x0F) << 12 | u16::from(second & 0x3F) << 6 | u16::from(third & 0x3F);
    is_common_han_at(bytes, span.start).then(|| character - 0x4E00)
}

/// The number of the token at `span`, a new one if it is the first of its kind; counted. `bytes` are fewer than 2^32,
/// and so are tokens.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "number_tokens refuses longer texts")]
fn number(
    bytes: &[u8],
    span: &Range<usize>,
    table: &mut HashTable<Numbered>,
    distinct: &mut Vec<(Range<usize>, u64)>,
    hasher: &RandomState,
) -> u32 {
    let key = Key::of(bytes, span, hasher);
    let same_bytes = |other: &Range<usize>| bytes[other.clone()] == bytes[span.clone()];
    let same = |other: &Numbered| {
        other.key == key
            && (span.len() <= SHORT || distinct.get(other.number as usize).is_some_and(|d| same_bytes(&d.0)))
    };
    match table.entry(key.hash(hasher), same, |other| other.key.hash(hasher)) {
        Entry::Occupied(entry) => {
            let number = entry.get().number;
            distinct[number as usize].1 += 1;
            number
        }
        Entry::Vacant(entry) => {
            let number = distinct.len() as u32;
            entry.insert(Numbered { key, number });
            distinct.push((span.clone(), 1));
            number
        }
    }
}

#[derive(Debug)]
struct Numbered {
    key: Key,
    number: u32,
}

/// Tokens of at most so many bytes are told apart by their keys alone.
const SHORT: usize = 16;

/// The bytes of a short token, padded with zeros, and its length; of a long one a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    first: u64,
    second: u64,
    len: u32,
}

impl Key {
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "number_tokens refuses longer texts")]
    fn of(bytes: &[u8], span: &Range<usize>, hasher: &RandomState) -> Self {
        let len = span.len() as u32;
        if span.len() > SHORT {
            return Self { first: hasher.hash_one(&bytes[span.clone()]), second: 0, len };
        }
        // Words have all lengths in no order: reading what follows them too, and masking it, is faster than to tell
        // lengths apart.
        let [first, second] = match bytes[span.start..].first_chunk() {
            Some(whole) => halves(whole),
            None => {
                let mut padded = [0; SHORT];
                padded[..span.len()].copy_from_slice(&bytes[span.clone()]);
                halves(&padded)
            }
        };
        Self { first: first & low_bytes(span.len()), second: second & low_bytes(span.len().saturating_sub(8)), len }
    }

    #[inline]
    fn hash(self, hasher: &RandomState) -> u64 {
        hasher.hash_one((self.first, self.second ^ u64::from(self.len)))
    }
}

/// 16 bytes as two numbers.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the halves are what is wanted")]
fn halves(bytes: &[u8; SHORT]) -> [u64; 2] {
    let both = u128::from_le_bytes(*bytes);
    [both as u64, (both >> 64) as u64]
}

/// The mask of the lowest `n` bytes, all for 8 and more.
#[inline]
fn low_bytes(n: usize) -> u64 {
    if n >= 8 { u64::MAX } else { (1 << (8 * n)) - 1 }
}
