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
    /// The distinct tokens of at most [`WHOLE`] bytes.
    short: Numbers<u128>,
    /// The other distinct tokens. Hashes are seeded anew by each process, and nothing depends on them.
    long: HashTable<u32>,
    hasher: RandomState,
    /// The distinct pairs of words, and the number of their occurrences.
    pairs: Vec<(Range<usize>, u64)>,
    /// The pairs, each as the numbers of its words.
    pair_numbers: Numbers<u64>,
    /// By word, the number of its occurrences that are in no pair.
    unpaired: Vec<u64>,
}

/// Numbers of keys, found by open addressing.
#[derive(Debug)]
struct Numbers<K> {
    /// A key stands in the first free place from the one that its hash names; free places have [`Key::NONE`]. Their number
    /// is a power of two.
    keys: Vec<K>,
    /// The number of the key in the same place. Those of free places mean nothing.
    numbers: Vec<u32>,
    /// Drawn anew by each process, so that nobody can write a text whose tokens all have one hash. Nothing else depends on
    /// them.
    seeds: [u64; 2],
}

/// A number that stands for a token, or for nothing.
trait Key: Copy + Eq {
    const NONE: Self;

    /// Returns the two halves.
    fn halves(self) -> [u64; 2];
}

impl Key for u64 {
    const NONE: Self = 0;

    #[inline]
    fn halves(self) -> [u64; 2] {
        [self, 0]
    }
}

impl Key for u128 {
    const NONE: Self = 0;

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the halves are what is wanted")]
    fn halves(self) -> [u64; 2] {
        [self as u64, (self >> 64) as u64]
    }
}

impl<K> Default for Numbers<K> {
    fn default() -> Self {
        let random = RandomState::default();
        Self { keys: Vec::new(), numbers: Vec::new(), seeds: [random.hash_one(0_u64), random.hash_one(1_u64)] }
    }
}

impl<K: Key> Numbers<K> {
    /// Forgets all keys, and makes room for `n`.
    fn clear_for(&mut self, n: usize) {
        // At least a third of the places stay free.
        let n_places = (n + n / 2 + 1).next_power_of_two();
        self.keys.clear();
        self.keys.resize(n_places, K::NONE);
        if self.numbers.len() < n_places {
            self.numbers.resize(n_places, 0);
        }
    }

    /// Returns the number of a key, which is `next` if the key is new.
    #[inline]
    fn number(&mut self, key: K, next: u32) -> u32 {
        debug_assert!(key != K::NONE, "free places have no key");
        let last = self.keys.len() - 1;
        let mut at = self.hash(key) & last;
        loop {
            match self.keys[at] {
                known if known == key => return self.numbers[at],
                known if known == K::NONE => {
                    (self.keys[at], self.numbers[at]) = (key, next);
                    return next;
                }
                _ => at = (at + 1) & last,
            }
        }
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the halves are what is wanted")]
    fn hash(&self, key: K) -> usize {
        let [low, high] = key.halves();
        let product = u128::from(low ^ self.seeds[0]) * u128::from(high ^ self.seeds[1]);
        (product as u64 ^ (product >> 64) as u64) as usize
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

/// The words of a text, and its tokens if each two neighbouring Han characters are a pair.
#[derive(Debug)]
pub struct WordsAndPairs<'a> {
    words: DistinctTokens<'a>,
    /// By word, the number of its occurrences that are in no pair.
    unpaired: &'a [u64],
    pairs: &'a [(Range<usize>, u64)],
}

impl<'a> WordsAndPairs<'a> {
    /// Returns the words.
    #[must_use]
    pub fn words(&self) -> &DistinctTokens<'a> {
        &self.words
    }

    /// Iterates over each distinct word that is a token beside the pairs, its place among the words, and the number of
    /// these occurrences.
    pub fn unpaired(&self) -> impl Iterator<Item = (usize, &[u8], u64)> {
        let words = self.words.iter().zip(self.unpaired).enumerate();
        words.filter(|(_, (_, count))| **count > 0).map(|(at, ((word, _), &count))| (at, word, count))
    }

    /// Iterates over each distinct pair and the number of its occurrences.
    pub fn pairs(&self) -> impl ExactSizeIterator<Item = (&[u8], u64)> {
        self.pairs.iter().map(|(range, count)| (&self.words.text.as_bytes()[range.clone()], *count))
    }

    /// Returns the number of distinct tokens beside and among the pairs.
    #[must_use]
    pub fn n_tokens(&self) -> usize {
        self.unpaired.iter().filter(|count| **count > 0).count() + self.pairs.len()
    }
}

/// A table of long tokens that has room for more than this many, and eight times what a text needed, is not kept: emptying
/// it would cost every later text more than the text itself. The other tables are emptied as far as a text needs them.
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
        self.number(&text);
        DistinctTokens { text, distinct: &self.distinct, sequence: &self.sequence }
    }

    /// Numbers the tokens, which are words, and the pairs of Han characters that are tokens side by side.
    pub(crate) fn number_words_and_pairs<'a>(&'a mut self, text: &'a str) -> WordsAndPairs<'a> {
        self.number(text);
        let bytes = text.as_bytes();
        self.pairs.clear();
        self.pair_numbers.clear_for(self.spans.len());
        self.unpaired.clear();
        self.unpaired.extend(self.distinct.iter().map(|(_, count)| count));
        let is_han = |span: &Range<usize>| is_common_han_at(bytes, span.start);
        let (mut is_second, mut is_first_han) = (false, self.spans.first().is_some_and(is_han));
        for (spans, words) in self.spans.windows(2).zip(self.sequence.windows(2)) {
            let is_second_han = is_han(&spans[1]);
            let is_pair = is_first_han && is_second_han && spans[0].end == spans[1].start;
            if is_pair {
                let next = number_of(self.pairs.len());
                // Numbers are below 2^32 - 1, so that no key is 0.
                let number = self.pair_numbers.number(u64::from(words[0] + 1) << 32 | u64::from(words[1]), next);
                count(&mut self.pairs, spans[0].start..spans[1].end, number, next);
            }
            self.unpaired[words[0] as usize] -= u64::from(is_pair || is_second);
            (is_second, is_first_han) = (is_pair, is_second_han);
        }
        if let (true, Some(&last)) = (is_second, self.sequence.last()) {
            self.unpaired[last as usize] -= 1;
        }
        let words = DistinctTokens { text: Cow::Borrowed(text), distinct: &self.distinct, sequence: &self.sequence };
        WordsAndPairs { words, unpaired: &self.unpaired, pairs: &self.pairs }
    }

    fn number(&mut self, text: &str) {
        self.distinct.clear();
        self.sequence.clear();
        self.short.clear_for(self.spans.len());
        self.long.clear();
        assert!(u32::try_from(text.len()).is_ok(), "a text of 4 GiB or more, whose tokens have no 32-bit numbers");
        let bytes = text.as_bytes();
        for span in &self.spans {
            let next = number_of(self.distinct.len());
            let number = match whole_key(bytes, span) {
                Some(key) => self.short.number(key, next),
                None => number_of_long(bytes, span, &mut self.long, &self.distinct, &self.hasher),
            };
            count(&mut self.distinct, span.clone(), number, next);
            self.sequence.push(number);
        }
        debug_assert_eq!(
            self.distinct.iter().map(|(_, count)| count).sum::<u64>(),
            self.spans.len() as u64,
            "each token is counted once"
        );
        if self.long.capacity() > KEPT_CAPACITY.max(8 * self.distinct.len()) {
            self.long = HashTable::new();
        }
    }
}

/// Counts a token that has this number; `next` is that of a new one.
#[inline]
fn count(distinct: &mut Vec<(Range<usize>, u64)>, span: Range<usize>, number: u32, next: u32) {
    if number == next {
        distinct.push((span, 0));
    }
    distinct[number as usize].1 += 1;
}

/// Returns the number of the next token after so many.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "longer texts are refused")]
fn number_of(n_before: usize) -> u32 {
    n_before as u32
}

/// Tokens of at most so many bytes are keys themselves.
const WHOLE: usize = 15;

/// Returns the bytes of a token of at most [`WHOLE`] bytes and, above them, their number.
#[inline]
fn whole_key(bytes: &[u8], span: &Range<usize>) -> Option<u128> {
    if span.len() > WHOLE {
        return None;
    }
    // Words have all lengths in no order: reading what follows them too, and masking it, is faster than to tell lengths
    // apart.
    let first = match bytes[span.start..].first_chunk() {
        Some(sixteen) => u128::from_le_bytes(*sixteen),
        None => {
            let mut padded = [0; 16];
            padded[..span.len()].copy_from_slice(&bytes[span.clone()]);
            u128::from_le_bytes(padded)
        }
    };
    Some(first & ((1 << (8 * span.len())) - 1) | (span.len() as u128) << 120)
}

/// The number of the token at `span`, that of the next one if it is the first of its kind.
fn number_of_long(
    bytes: &[u8],
    span: &Range<usize>,
    table: &mut HashTable<u32>,
    distinct: &[(Range<usize>, u64)],
    hasher: &RandomState,
) -> u32 {
    let of = |number: u32| &bytes[distinct[number as usize].0.clone()];
    let token = &bytes[span.clone()];
    match table.entry(hasher.hash_one(token), |&other| of(other) == token, |&other| hasher.hash_one(of(other))) {
        Entry::Occupied(entry) => *entry.get(),
        Entry::Vacant(entry) => *entry.insert(number_of(distinct.len())).get(),
    }
}
