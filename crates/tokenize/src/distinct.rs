use std::borrow::Cow;
use std::hash::BuildHasher;
use std::ops::Range;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// Memory that analysing one text after another uses again. One for each thread.
#[derive(Debug, Default)]
pub struct Scratch {
    pub(crate) spans: Vec<Range<usize>>,
    distinct: Vec<(Range<usize>, u64)>,
    sequence: Vec<u32>,
    /// The distinct tokens. Hashes are seeded anew by each process, and nothing depends on them.
    table: HashTable<Numbered>,
    hasher: RandomState,
}

/// The distinct tokens of one text, numbered by first occurrence.
#[derive(Debug)]
pub struct DistinctTokens<'a> {
    text: Cow<'a, str>,
    distinct: &'a [(Range<usize>, u64)],
    sequence: &'a [u32],
}

impl<'a> DistinctTokens<'a> {
    /// Each distinct token and how often it occurs, by number.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], u64)> {
        self.distinct.iter().map(|(range, count)| (&self.text.as_bytes()[range.clone()], *count))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.distinct.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.distinct.is_empty()
    }

    /// The text's tokens in order, by number.
    #[must_use]
    pub fn sequence(&self) -> &'a [u32] {
        self.sequence
    }
}

/// A table that has room for more than this many tokens, and eight times what a text needed, is not kept: emptying it would cost every
/// later text more than the text itself.
const KEPT_CAPACITY: usize = 1 << 14;

impl Scratch {
    /// Numbers the tokens that `self.spans` cut from `text`.
    pub(crate) fn number_tokens<'a>(&'a mut self, text: Cow<'a, str>) -> DistinctTokens<'a> {
        self.distinct.clear();
        self.sequence.clear();
        self.table.clear();
        for span in &self.spans {
            let number = number(text.as_bytes(), span, &mut self.table, &mut self.distinct, &self.hasher);
            self.sequence.push(number);
        }
        if self.table.capacity() > KEPT_CAPACITY.max(8 * self.distinct.len()) {
            self.table = HashTable::new();
        }
        DistinctTokens { text, distinct: &self.distinct, sequence: &self.sequence }
    }
}

/// The number of the token at `span`, a new one if it is the first of its kind; counted.
#[inline]
fn number(
    bytes: &[u8],
    span: &Range<usize>,
    table: &mut HashTable<Numbered>,
    distinct: &mut Vec<(Range<usize>, u64)>,
    hasher: &RandomState,
) -> u32 {
    let token = &bytes[span.clone()];
    let key = Key::of(token, hasher);
    let same = |other: &Numbered| {
        other.key == key
            && (token.len() <= SHORT
                || distinct.get(other.number as usize).is_some_and(|d| bytes[d.0.clone()] == *token))
    };
    match table.entry(key.hash(hasher), same, |other| other.key.hash(hasher)) {
        Entry::Occupied(entry) => {
            let number = entry.get().number;
            distinct[number as usize].1 += 1;
            number
        }
        Entry::Vacant(entry) => {
            // A text of less than 4 GiB has fewer tokens.
            let number = u32::try_from(distinct.len()).unwrap_or(u32::MAX);
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

/// First and last eight bytes of a short token, which may overlap, and its length; of a long one a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    first: u64,
    last: u64,
    len: u32,
}

impl Key {
    #[inline]
    fn of(token: &[u8], hasher: &RandomState) -> Self {
        let len = u32::try_from(token.len()).unwrap_or(u32::MAX);
        if let (Some(first), Some(last)) = (token.first_chunk::<8>(), token.last_chunk::<8>()) {
            if token.len() > SHORT {
                return Self { first: hasher.hash_one(token), last: 0, len };
            }
            return Self { first: u64::from_le_bytes(*first), last: u64::from_le_bytes(*last), len };
        }
        if let (Some(first), Some(last)) = (token.first_chunk::<4>(), token.last_chunk::<4>()) {
            return Self { first: u32::from_le_bytes(*first).into(), last: u32::from_le_bytes(*last).into(), len };
        }
        let [first, middle, last] = match token {
            [] => [0; 3],
            [a] => [*a, 0, 0],
            [a, b] => [*a, *b, 0],
            [a, b, c, ..] => [*a, *b, *c],
        };
        Self { first: u32::from_le_bytes([first, middle, last, 0]).into(), last: 0, len }
    }

    #[inline]
    fn hash(self, hasher: &RandomState) -> u64 {
        hasher.hash_one((self.first, self.last ^ u64::from(self.len)))
    }
}
