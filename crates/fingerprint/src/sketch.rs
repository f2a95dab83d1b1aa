//! The sketch: 256 bits that are stored beside the fingerprint and read only to verify candidates.

use std::hash::{BuildHasher, RandomState};

use crate::error::FingerprintError;
use crate::feature_hash::xxh3;

/// A sketch of 256 bits, as it is stored: bit i is bit i mod 8 of byte i / 8. Two texts of Jaccard similarity J differ
/// in about (1 − J) / 2 of the bits.
///
/// `Ord` is the order of the bytes.
///
/// ```
/// use nearprint_fingerprint::Sketch;
///
/// assert_eq!(Sketch([0; 32]).distance(&Sketch([0b101; 32])), 64);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Sketch(pub [u8; 32]);

impl Sketch {
    /// The number of bits.
    pub const BITS: u32 = 256;

    /// The number of words of 64 bits.
    pub const WORDS: u8 = 4;

    /// Returns a word of the sketch: 8 bytes, the least significant first.
    ///
    /// # Panics
    /// If there is no such word.
    #[inline]
    #[must_use]
    pub fn word(&self, number: u8) -> u64 {
        let (words, _) = self.0.as_chunks::<8>();
        u64::from_le_bytes(words[usize::from(number)])
    }

    /// Returns the number of bits in which the two sketches differ, from 0 to 256. This distance is a metric.
    #[inline]
    pub fn distance(&self, other: &Self) -> u32 {
        let (mine, _) = self.0.as_chunks::<8>();
        let (theirs, _) = other.0.as_chunks::<8>();
        mine.iter().zip(theirs).map(|(&a, &b)| (u64::from_ne_bytes(a) ^ u64::from_ne_bytes(b)).count_ones()).sum()
    }
}

impl TryFrom<&[u8]> for Sketch {
    type Error = FingerprintError;

    /// Reads back the 32 bytes of a sketch; any other length is refused.
    fn try_from(bytes: &[u8]) -> Result<Self, FingerprintError> {
        bytes.try_into().map(Self).map_err(|_| FingerprintError::SketchLength { got: bytes.len() })
    }
}

/// Returns the sketch of a text's tokens: one bit of each of 256 least hashes of its *elements*.
///
/// Elements are the tokens, each with the number of its occurrence up to [`MAX_OCCURRENCE`], and the distinct shingles
/// of `width` tokens. So the sketch depends on the order of the tokens and on how often each occurs. The hashes of the
/// elements fall into 256 bins; a bin's bit is one bit of its least hash, mixed. An empty bin takes the least hash of
/// another bin, which a hash of its own number finds, and mixes it anew, so that copies become independent bits. The
/// order of the elements does not matter.
///
/// `token_hashes` has the [hash](token_hash) of each distinct token, `counts` has the number of its occurrences, and
/// `sequence` has the tokens of the text, as positions in `token_hashes`. A text without tokens would get a sketch of
/// all 0, and must not be sketched.
///
/// Each element costs a multiplication, and the bins cost as much as some hundred elements.
///
/// Source: Li, Owen, Zhang, "One Permutation Hashing" (NIPS 2012), sections 2 and 3; Shrivastava, "Optimal
/// Densification for Fast and Accurate Minwise Hashing" (ICML 2017), section 5; one bit a value: Li and König, "b-Bit
/// Minwise Hashing" (WWW 2010), section 2.
///
/// ```
/// use nearprint_fingerprint::{sketch, token_hash};
///
/// let words = ["a", "rose", "is"].map(|word| token_hash(word.as_bytes(), 0));
/// let rose = sketch(&words, [2, 2, 1], &[0, 1, 2, 0, 1], 2);
/// assert_eq!(rose.distance(&rose), 0);
/// assert!(rose.distance(&sketch(&words, [2, 2, 1], &[1, 0, 2, 1, 0], 2)) > 0);
/// ```
///
/// # Panics
/// If `sequence` has a position that `token_hashes` does not have, and `width` is more than 1.
pub fn sketch(token_hashes: &[u64], counts: impl IntoIterator<Item = u64>, sequence: &[u32], width: usize) -> Sketch {
    let mut bins = Bins::default();
    add_tokens(token_hashes, counts, |token| bins.add(token));
    add_shingles(token_hashes, sequence, width, |shingle| bins.add(shingle));
    bins.into_sketch()
}

/// Returns the hashes of the distinct elements that the [sketch] of a text's tokens sees, in ascending order. Two
/// different elements of a text of a million have the same hash with a probability below 0.0000001.
///
/// ```
/// use nearprint_fingerprint::{sketch_elements, token_hash};
///
/// // "a rose is a rose" has a second "a", a second "rose" and the shingle "is a", which "a rose is" lacks.
/// let words = ["a", "rose", "is"].map(|word| token_hash(word.as_bytes(), 0));
/// let long = sketch_elements(&words, [2, 2, 1], &[0, 1, 2, 0, 1], 2);
/// let short = sketch_elements(&words, [1, 1, 1], &[0, 1, 2], 2);
/// assert_eq!((long.len(), short.len()), (8, 5));
/// assert!(short.iter().all(|element| long.contains(element)));
/// ```
///
/// # Panics
/// As [`sketch`].
pub fn sketch_elements(
    token_hashes: &[u64],
    counts: impl IntoIterator<Item = u64>,
    sequence: &[u32],
    width: usize,
) -> Vec<u64> {
    let mut elements = Vec::new();
    add_tokens(token_hashes, counts, |token| elements.push(token));
    add_shingles(token_hashes, sequence, width, |shingle| elements.push(shingle));
    elements.sort_unstable();
    elements.dedup();
    elements
}

/// Returns the [sketch] of a text's tokens, and the number of its distinct elements. `shingles` is memory that is
/// reused from text to text.
///
/// ```
/// use nearprint_fingerprint::{DistinctHashes, sketch, sketch_and_count, token_hash};
///
/// // "a rose is a rose": 5 occurrences of tokens, and the shingles "a rose", "rose is" and "is a".
/// let words = ["a", "rose", "is"].map(|word| token_hash(word.as_bytes(), 0));
/// let (rose, n_elements) = sketch_and_count(&words, [2, 2, 1], &[0, 1, 2, 0, 1], 2, &mut DistinctHashes::default());
/// assert_eq!((rose, n_elements), (sketch(&words, [2, 2, 1], &[0, 1, 2, 0, 1], 2), 8));
/// ```
///
/// # Panics
/// As [`sketch`].
pub fn sketch_and_count(
    token_hashes: &[u64],
    counts: impl IntoIterator<Item = u64>,
    sequence: &[u32],
    width: usize,
    shingles: &mut DistinctHashes,
) -> (Sketch, u32) {
    let mut bins = Bins::default();
    let n_tokens = add_tokens(token_hashes, counts, |token| bins.add(token));
    shingles.clear_for(if width > 1 { sequence.len() } else { 0 });
    add_shingles(token_hashes, sequence, width, |shingle| {
        bins.add(shingle);
        shingles.add(shingle);
    });
    (bins.into_sketch(), n_tokens.saturating_add(shingles.n))
}

/// Counts distinct hashes, in memory that is reused.
#[derive(Debug, Default)]
pub struct DistinctHashes {
    /// A table whose number of places is a power of two, and at least one and a half times that of the hashes. A hash
    /// stands in the first free place from the one that `first` gives it; [`EMPTY`] stands in free places.
    places: Vec<u64>,
    first: Places,
    n: u32,
}

/// The places of hashes in a table whose number of places is a power of two.
///
/// They are the top bits of a product with a factor that each process draws anew, so that nobody can write a text whose hashes
/// crowd at one place. Nothing else depends on them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places {
    factor: u64,
    shift: u32,
}

impl Default for Places {
    fn default() -> Self {
        Self { factor: RandomState::new().hash_one(0_u64) | 1, shift: u64::BITS - 1 }
    }
}

impl Places {
    /// Returns the places in a table of `n`, a power of two above 1.
    pub(crate) fn among(self, n: usize) -> Self {
        debug_assert!(n.is_power_of_two() && n > 1, "a place is named by whole bits");
        Self { shift: u64::BITS - n.ilog2(), ..self }
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "a place fits, since the table is in memory")]
    pub(crate) fn of(self, hash: u64) -> usize {
        (hash.wrapping_mul(self.factor) >> self.shift) as usize
    }
}

/// The number of places that memory is kept for.
const KEPT_PLACES: usize = 1 << 20;

/// The largest number of places of a table of which three quarters are free: half a megabyte.
const MAX_SPARSE_PLACES: usize = 1 << 16;

impl DistinctHashes {
    /// Returns a table with room for `n` hashes.
    pub(crate) fn with_room(n: usize) -> Self {
        let mut made = Self::default();
        made.clear_for(n);
        made
    }

    /// Returns the number of hashes.
    pub(crate) fn len(&self) -> usize {
        self.n as usize
    }

    pub(crate) fn contains(&self, hash: u64) -> bool {
        let Some(last) = self.places.len().checked_sub(1) else { return false };
        let mut at = self.first.of(hash);
        while self.places[at] != hash {
            if self.places[at] == EMPTY {
                return false;
            }
            at = (at + 1) & last;
        }
        true
    }

    /// Makes the table empty, with room for `n` hashes.
    fn clear_for(&mut self, n: usize) {
        if self.places.capacity() > KEPT_PLACES {
            self.places = Vec::new();
        }
        self.places.clear();
        // At least a third of the places stay free. The tables of most texts have three quarters free, because the place of a hash
        // is then seldom taken, which cannot be predicted.
        let n_places = (n + n / 2 + 1).max((4 * n + 1).min(MAX_SPARSE_PLACES));
        let n_places = n_places.next_power_of_two().max(2);
        self.places.resize(n_places, EMPTY);
        self.first = self.first.among(n_places);
        self.n = 0;
    }

    #[inline]
    pub(crate) fn add(&mut self, hash: u64) {
        debug_assert!((self.n as usize) < self.places.len(), "a free place ends the search for a hash");
        let last = self.places.len() - 1;
        let mut at = self.first.of(hash);
        // No bin sees EMPTY either.
        while self.places[at] != hash {
            if self.places[at] == EMPTY {
                self.places[at] = hash;
                self.n += 1;
                return;
            }
            at = (at + 1) & last;
        }
    }
}

/// Adds the hash of each occurrence of a token that is an element, and returns their number.
#[inline]
fn add_tokens(token_hashes: &[u64], counts: impl IntoIterator<Item = u64>, mut add: impl FnMut(u64)) -> u32 {
    let mut n = 0;
    for (hash, count) in token_hashes.iter().zip(counts) {
        for (_, occurrence) in (0..count).zip(OCCURRENCE) {
            add(fold(*hash, occurrence));
            n += 1;
        }
    }
    n
}

/// The number of occurrences of a token that are elements. Later occurrences are not, because long texts would
/// otherwise consist of their most frequent words.
pub const MAX_OCCURRENCE: usize = 4;

/// Returns the hash of a token that [`sketch`] takes, which is XXH3-64.
#[inline]
pub fn token_hash(token: &[u8], seed: u64) -> u64 {
    xxh3::hash(token, seed)
}

/// Adds the hash of every window of `width` tokens.
pub(crate) fn add_shingles(token_hashes: &[u64], sequence: &[u32], width: usize, mut add: impl FnMut(u64)) {
    debug_assert!(
        sequence.iter().all(|&token| (token as usize) < token_hashes.len()),
        "a sequence is of tokens that were numbered"
    );
    let hash = |token: &u32| token_hashes[*token as usize];
    match width {
        0 | 1 => {}
        2 => {
            let Some((first, rest)) = sequence.split_first() else { return };
            let mut before = hash(first);
            for token in rest {
                let next = hash(token);
                add(follow(before, next));
                before = next;
            }
        }
        3 => {
            for window in sequence.array_windows() {
                let [first, second, third] = window.each_ref().map(hash);
                add(follow(follow(first, second), third));
            }
        }
        _ => sequence.windows(width).for_each(|window| {
            let rest = window[1..].iter().fold(hash(&window[0]), |shingle, token| follow(shingle, hash(token)));
            add(rest);
        }),
    }
}

/// Odd numbers without pattern: the fractional parts of the square roots of 2, 3, 5, 7, 11 and 13.
const OCCURRENCE: [u64; MAX_OCCURRENCE] =
    [0x6A09_E667_F3BC_C909, 0xBB67_AE85_84CA_A73B, 0x3C6E_F372_FE94_F82B, 0xA54F_F53A_5F1D_36F1];
const SECOND: u64 = 0x510E_527F_ADE6_82D1;
const REDRAW: u64 = 0x9B05_688C_2B3E_6C1F;

/// Returns the hash of the shingle `first` with one more token.
#[inline]
fn follow(first: u64, next: u64) -> u64 {
    fold(first ^ SECOND, next.rotate_left(32) ^ REDRAW)
}

/// Returns the exclusive or of the product's halves: each bit of the result depends on every bit of both factors.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "the halves are what is wanted")]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

const BINS: usize = 256;

/// The least hash of each bin; [`EMPTY`] in bins that have none.
struct Bins {
    least: [u64; BINS],
}

const EMPTY: u64 = u64::MAX;

impl Default for Bins {
    fn default() -> Self {
        Self { least: [EMPTY; BINS] }
    }
}

impl Bins {
    /// Adds a hash to its bin, which the leading 8 bits name.
    #[inline]
    fn add(&mut self, hash: u64) {
        let least = &mut self.least[bin_of(hash)];
        *least = hash.min(*least);
    }

    fn into_sketch(mut self) -> Sketch {
        let has_value = self.least.map(|least| least != EMPTY);
        if has_value == [false; BINS] {
            return Sketch([0; 32]);
        }
        for number in (0..BINS).filter(|&number| !has_value[number]) {
            self.least[number] = self.least[donor(number, &has_value)];
        }
        let mut bytes = [0; 32];
        let (eights, _) = self.least.as_chunks::<8>();
        for ((byte, values), donors) in bytes.iter_mut().zip(eights).zip(DONORS.as_chunks::<8>().0) {
            let bits = values.iter().zip(donors).map(|(value, donors)| mix(value ^ donors.mark) & 1);
            *byte = bits.zip(0..).fold(0, |byte, (bit, at)| byte | u8::from(bit == 1) << at);
        }
        Sketch(bytes)
    }
}

/// Returns the bin whose value the empty bin `number` takes: the first bin with a value, in an order of its own. At
/// least one bin has a value.
fn donor(number: usize, has_value: &[bool; BINS]) -> usize {
    let first = DONORS[number].first.as_chunks::<8>().0;
    let rounds = first.iter().copied().chain((1 + FIRST_ROUNDS as u64..).map(|round| donors(number, round)));
    for bins in rounds {
        // All eight are examined, because the place where a loop would end cannot be predicted.
        let ready = (0..8).fold(0_u8, |ready, at| ready | u8::from(has_value[usize::from(bins[at])]) << at);
        if ready != 0 {
            return usize::from(bins[ready.trailing_zeros() as usize]);
        }
    }
    0
}

/// The constants of an empty bin, computed once for all texts.
#[derive(Clone, Copy)]
struct Donors {
    /// Makes the bits of bins with equal values independent.
    mark: u64,
    /// The beginning of its order of bins.
    first: [u8; 8 * FIRST_ROUNDS],
}

const FIRST_ROUNDS: usize = 4;

static DONORS: [Donors; BINS] = {
    let mut table = [Donors { mark: 0, first: [0; 8 * FIRST_ROUNDS] }; BINS];
    let mut number = 0;
    while number < BINS {
        table[number].mark = mix(number as u64 + 1);
        let mut at = 0;
        while at < 8 * FIRST_ROUNDS {
            table[number].first[at] = donors(number, 1 + at as u64 / 8)[at % 8];
            at += 1;
        }
        number += 1;
    }
    table
};

/// Returns eight bins, which differ from round to round; rounds count from 1.
const fn donors(number: usize, round: u64) -> [u8; 8] {
    mix((number as u64) << 32 | round).to_be_bytes()
}

#[inline]
fn bin_of(hash: u64) -> usize {
    usize::from(hash.to_be_bytes()[0])
}

/// Murmur3's finaliser in Stafford's variant 13: a change of any bit changes each other with probability one half.
#[inline]
const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::Places;

    #[test]
    fn hashes_that_somebody_chose_for_their_low_or_high_bits_have_places_of_their_own() {
        for shift in [0, 10, 20, 48] {
            // One factor of a hundred is an unlucky one.
            let n_distinct = (0..8).map(|_| {
                let places = Places::default().among(1 << 14);
                let distinct: HashSet<usize> = (1..=1_u64 << 10).map(|n| places.of(n << shift)).collect();
                assert!(distinct.iter().all(|&place| place < 1 << 14));
                distinct.len()
            });
            assert!(n_distinct.max().is_some_and(|n| n > 256), "{shift}");
        }
    }
}
