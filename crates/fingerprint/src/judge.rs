//! The judge: reads two texts word by word, and says whether they are alike. It decides the pairs that sketches do not.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::sketch::{DistinctHashes, MAX_OCCURRENCE, add_shingles};

/// The words of a text in their order: the tokens that its sketch sees.
///
/// Words are compared by their hashes of 64 bits. Two different words among a million have the same hash with a
/// probability below 0.0000001.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextWords {
    /// The hashes of the distinct words, in ascending order.
    hashes: Vec<u64>,
    /// The text, as positions in `hashes`.
    sequence: Vec<u32>,
}

impl TextWords {
    /// Returns the words of a text. `hashes` has the [hash](crate::token_hash) of each distinct word, in any order, and
    /// `sequence` has the words of the text, as positions in `hashes`.
    ///
    /// # Panics
    /// If `sequence` has a position that `hashes` does not have.
    #[must_use]
    pub fn new(hashes: &[u64], sequence: &[u32]) -> Self {
        let mut order: Vec<(u64, u32)> = hashes.iter().copied().zip(0..).collect();
        order.sort_unstable();
        let mut ranks = vec![0; hashes.len()];
        let mut sorted: Vec<u64> = Vec::with_capacity(hashes.len());
        let mut rank = 0;
        for (hash, at) in order {
            if sorted.last() != Some(&hash) {
                rank += u32::from(!sorted.is_empty());
                sorted.push(hash);
            }
            ranks[at as usize] = rank;
        }
        Self { hashes: sorted, sequence: sequence.iter().map(|&at| ranks[at as usize]).collect() }
    }

    /// Appends a text to bytes from which [`of_bytes`](Self::of_bytes) reads it back: the numbers of distinct words and of
    /// words, the hashes, and the positions, of two bytes if that is enough, little endian. The words are those of
    /// [`new`](Self::new).
    pub fn append_bytes(hashes: &[u64], sequence: &[u32], bytes: &mut Vec<u8>) {
        bytes.extend((hashes.len() as u64).to_le_bytes());
        bytes.extend((sequence.len() as u64).to_le_bytes());
        hashes.iter().for_each(|hash| bytes.extend(hash.to_le_bytes()));
        match u16::try_from(hashes.len()) {
            #[expect(clippy::cast_possible_truncation, reason = "positions are below the number of hashes")]
            Ok(_) => sequence.iter().for_each(|&at| bytes.extend((at as u16).to_le_bytes())),
            Err(_) => sequence.iter().for_each(|at| bytes.extend(at.to_le_bytes())),
        }
    }

    /// Reads back a text that [`append_bytes`](Self::append_bytes) wrote. `None` means that these are not its bytes.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let (n_hashes, bytes) = bytes.split_first_chunk::<8>()?;
        let (n_words, bytes) = bytes.split_first_chunk::<8>()?;
        let [n_hashes, n_words] = [n_hashes, n_words].map(|n| usize::try_from(u64::from_le_bytes(*n)));
        let (n_hashes, n_words) = (n_hashes.ok()?, n_words.ok()?);
        let (hashes, positions) = bytes.split_at_checked(n_hashes.checked_mul(8)?)?;
        let hashes: Vec<u64> = hashes.as_chunks::<8>().0.iter().map(|hash| u64::from_le_bytes(*hash)).collect();
        let sequence: Vec<u32> = if u16::try_from(n_hashes).is_ok() {
            positions.as_chunks::<2>().0.iter().map(|at| u16::from_le_bytes(*at).into()).collect()
        } else {
            positions.as_chunks::<4>().0.iter().map(|at| u32::from_le_bytes(*at)).collect()
        };
        let is_whole = sequence.len() == n_words && sequence.iter().all(|&at| (at as usize) < hashes.len());
        is_whole.then(|| Self::new(&hashes, &sequence))
    }

    /// Returns the number of words, each occurrence counted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sequence.len()
    }

    /// Returns whether there are no words.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sequence.is_empty()
    }

    /// Returns the hashes of the words of the text, in order.
    fn in_order(&self) -> impl ExactSizeIterator<Item = u64> + DoubleEndedIterator {
        self.sequence.iter().map(|&at| self.hashes[at as usize])
    }

    /// Returns the number of occurrences of each distinct word.
    fn counts(&self) -> Vec<u64> {
        let mut counts = vec![0; self.hashes.len()];
        self.sequence.iter().for_each(|&at| counts[at as usize] += 1);
        counts
    }

    /// Returns the distinct shingles of `width` words.
    fn shingles(&self, width: usize) -> DistinctHashes {
        let mut shingles = DistinctHashes::with_room(self.len().max(1));
        add_shingles(&self.hashes, &self.sequence, width, |shingle| shingles.add(shingle));
        shingles
    }

    /// Returns the number of distinct features that the sketch of the text sees.
    fn n_features(&self, shingle: usize) -> usize {
        let n_tokens: usize = self.counts().into_iter().map(in_features).sum();
        n_tokens + if shingle > 1 { self.shingles(shingle).len() } else { 0 }
    }
}

/// Returns how many occurrences of a word are features.
fn in_features(count: u64) -> usize {
    usize::try_from(count).map_or(MAX_OCCURRENCE, |count| count.min(MAX_OCCURRENCE))
}

/// Returns the number of distinct shingles of `width` words that both texts have, and of those of the text that has fewer.
/// A text that is shorter is one shingle.
fn shared_shingles(a: &TextWords, b: &TextWords, width: usize) -> (usize, usize) {
    if a.len().min(b.len()) < width {
        let (one, other) = if a.len() <= b.len() { (a, b) } else { (b, a) };
        // Only a text of the same length has it as its own shingle.
        let is_same = !one.is_empty() && one.len() == other.len() && one.in_order().eq(other.in_order());
        return (usize::from(is_same), usize::from(!one.is_empty()));
    }
    let (of_a, mut in_both, mut of_b) =
        (a.shingles(width), DistinctHashes::with_room(b.len()), DistinctHashes::with_room(b.len()));
    add_shingles(&b.hashes, &b.sequence, width, |shingle| {
        of_b.add(shingle);
        if of_a.contains(shingle) {
            in_both.add(shingle);
        }
    });
    (in_both.len(), of_a.len().min(of_b.len()))
}

/// Returns the number of distinct features of sketches that both texts have.
fn shared_features(a: &TextWords, b: &TextWords, shingle: usize) -> usize {
    let (x, y) = (a.counts(), b.counts());
    let n_tokens: usize = both(&a.hashes, &b.hashes).map(|(i, j)| in_features(x[i].min(y[j]))).sum();
    let has_shingles = shingle > 1 && a.len().min(b.len()) >= shingle;
    n_tokens + if has_shingles { shared_shingles(a, b, shingle).0 } else { 0 }
}

/// The number of words of a shingle by which containment is counted.
const SHINGLE: usize = 3;

/// The rules of the judge.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JudgeConfig {
    /// The largest distance of two sketches at which the texts are near-duplicates without a look.
    #[schemars(range(max = 255))]
    pub min_sketch_distance: u32,
    /// The largest distance of two sketches at which the texts are read.
    #[schemars(range(max = 255))]
    pub max_sketch_distance: u32,
    /// The least edit similarity of two texts that are alike: twice the number of words that both have in one order,
    /// divided by the number of words of both.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub min_edit_similarity: f64,
    /// The least share of the shorter text's runs of three words that the longer text has, if it contains the shorter.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub min_contained: f64,
    /// The least share of the shorter text that is the beginning of both, word by word, if it is a copy that was cut.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub min_opening: f64,
    /// The number of pairs of a document, the nearest by their sketches, for which its text is read. With 0 there is no judge.
    pub max_looks: u32,
}

/// The rules of the judge, with what they need of the sketch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judge {
    /// The rules.
    pub config: JudgeConfig,
    /// The number of tokens of a shingle of the sketch.
    pub shingle: usize,
}

impl Judge {
    /// Returns the verdict about two texts, or `None` if they are not alike. See [`judge`].
    #[must_use]
    pub fn of(&self, a: &TextWords, b: &TextWords) -> Option<Verdict> {
        judge(a, b, self.shingle, &self.config)
    }

    /// Returns what the judge measures of two texts.
    #[must_use]
    pub fn measures(&self, a: &TextWords, b: &TextWords) -> Measures {
        Measures::of(a, b, self.shingle)
    }
}

/// What the judge measures of two texts. The first text comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measures {
    /// The number of words of each text.
    pub n_words: [usize; 2],
    /// The number of words that both texts have in one order: the length of a longest common subsequence. `None` if the
    /// texts are too long for it: the words that remain between their equal beginnings and equal ends, of each text that
    /// the other one has at all, make more than [`MAX_COMPARED`] pairs.
    pub n_common: Option<usize>,
    /// The number of words at the beginning of both texts.
    pub n_opening: usize,
    /// The number of distinct runs of three words that both texts have, and of those of the text that has fewer.
    pub n_contained: (usize, usize),
    /// The number of distinct features of sketches that both texts have, and of those of each text.
    pub n_shared: (u32, [u32; 2]),
}

/// The most pairs of words that are compared for two texts.
pub const MAX_COMPARED: usize = 1 << 32;

/// The reason for which two texts are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Alike {
    /// The texts have nearly the same words in the same order.
    Edited,
    /// The longer text contains the shorter one, or begins as it does.
    Contained,
}

impl Alike {
    /// Returns the name of the reason in datasets and summaries.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Edited => "edited",
            Self::Contained => "contained",
        }
    }
}

impl Measures {
    /// Measures two texts. `shingle` is the number of tokens of a shingle of their sketches.
    #[must_use]
    pub fn of(a: &TextWords, b: &TextWords, shingle: usize) -> Self {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Self {
            n_words: [a.len(), b.len()],
            n_common: n_common(a, b),
            n_opening: n_opening(a, b),
            n_contained: shared_shingles(a, b, SHINGLE),
            n_shared: (count(shared_features(a, b, shingle)), [a, b].map(|text| count(text.n_features(shingle)))),
        }
    }

    /// Returns the edit similarity: twice the number of words that both texts have in one order, divided by the number of
    /// words of both. `None` if it was not counted.
    #[must_use]
    pub fn edit_similarity(&self) -> Option<f64> {
        Some(share(2 * self.n_common?, self.n_words[0] + self.n_words[1]))
    }

    /// Returns the share of the runs of three words, of the text that has fewer, that the other text has.
    #[must_use]
    pub fn contained(&self) -> f64 {
        share(self.n_contained.0, self.n_contained.1)
    }

    /// Returns the share of the shorter text that is the beginning of both.
    #[must_use]
    pub fn opening(&self) -> f64 {
        share(self.n_opening, self.n_words[0].min(self.n_words[1]))
    }

    /// Returns the share of each text's features that the other one lacks.
    #[must_use]
    pub fn lost_shares(&self) -> [f64; 2] {
        let (shared, of) = self.n_shared;
        of.map(|n| share((n - shared.min(n)) as usize, n as usize))
    }

    /// Returns why the texts are alike, or `None` if they are not.
    #[must_use]
    pub fn alike(&self, config: &JudgeConfig) -> Option<Alike> {
        if self.edit_similarity().is_some_and(|similarity| similarity >= config.min_edit_similarity) {
            return Some(Alike::Edited);
        }
        let contained = self.contained() >= config.min_contained || self.opening() >= config.min_opening;
        contained.then_some(Alike::Contained)
    }
}

#[allow(clippy::cast_precision_loss, reason = "numbers of words are below 2^53")]
fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// The verdict of the judge about two texts that are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// Why they are alike.
    pub alike: Alike,
    /// The number of distinct features of sketches that both texts have.
    pub n_shared: u32,
}

/// Judges two texts. The result is that of [`Measures`], and most texts that are not alike are told from fewer numbers.
///
/// ```
/// use nearprint_fingerprint::{Alike, JudgeConfig, TextWords, judge, token_hash};
///
/// let words = |text: &str| {
///     let hashes: Vec<u64> = text.split(' ').map(|word| token_hash(word.as_bytes(), 0)).collect();
///     TextWords::new(&hashes, &(0..).zip(&hashes).map(|(at, _)| at).collect::<Vec<_>>())
/// };
/// let config = JudgeConfig {
///     min_sketch_distance: 28,
///     max_sketch_distance: 80,
///     min_edit_similarity: 0.8,
///     min_contained: 0.95,
///     min_opening: 0.7,
///     max_looks: 16,
/// };
/// let whole = words("the ferry leaves the old harbour at nine and comes back at noon");
/// let alike = |text| judge(&whole, &words(text), 3, &config).map(|verdict| verdict.alike);
/// assert_eq!(alike("the ferry leaves the new harbour at ten and comes back at noon"), Some(Alike::Edited));
/// assert_eq!(alike("the ferry leaves the old harbour please log in"), None);
/// assert_eq!(alike("the ferry leaves the old harbour at read more"), Some(Alike::Contained));
/// ```
#[must_use]
pub fn judge(a: &TextWords, b: &TextWords, shingle: usize, config: &JudgeConfig) -> Option<Verdict> {
    let alike = alike(a, b, config)?;
    let n_shared = shared_features(a, b, shingle);
    Some(Verdict { alike, n_shared: u32::try_from(n_shared).unwrap_or(u32::MAX) })
}

fn alike(a: &TextWords, b: &TextWords, config: &JudgeConfig) -> Option<Alike> {
    let (n_both, shorter) = (a.len() + b.len(), a.len().min(b.len()));
    let n_same = n_same(a, b);
    // No order of words has more of them in common than there are in both.
    if share(2 * n_same, n_both) >= config.min_edit_similarity
        && n_common(a, b).is_some_and(|n| share(2 * n, n_both) >= config.min_edit_similarity)
    {
        return Some(Alike::Edited);
    }
    if share(n_opening(a, b), shorter) >= config.min_opening {
        return Some(Alike::Contained);
    }
    let (n_contained, of) = shared_shingles(a, b, SHINGLE);
    (share(n_contained, of) >= config.min_contained).then_some(Alike::Contained)
}

/// Returns the number of words that both texts have, in whatever order: of each word, the lesser number of occurrences.
fn n_same(a: &TextWords, b: &TextWords) -> usize {
    let (x, y) = (a.counts(), b.counts());
    let of = both(&a.hashes, &b.hashes).map(|(i, j)| x[i].min(y[j]));
    usize::try_from(of.sum::<u64>()).unwrap_or(usize::MAX)
}

/// Returns the positions of the values that two ascending lists of distinct values have in common.
fn both<'a, T: Ord>(a: &'a [T], b: &'a [T]) -> impl Iterator<Item = (usize, usize)> + 'a {
    let (mut i, mut j) = (0, 0);
    std::iter::from_fn(move || {
        while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
            let order = x.cmp(y);
            let found = (i, j);
            i += usize::from(order.is_le());
            j += usize::from(order.is_ge());
            if order.is_eq() {
                return Some(found);
            }
        }
        None
    })
}

fn n_opening(a: &TextWords, b: &TextWords) -> usize {
    a.in_order().zip(b.in_order()).take_while(|(x, y)| x == y).count()
}

/// Returns the length of a longest common subsequence of two texts' words, if they are not too long.
///
/// The equal beginnings and ends of the texts are in one of them. Between these, a row of the table of the dynamic program
/// is one bit a word of the first text: 64 words of it pass by all words of the second one at a time, with the carries of
/// the 64 before.
///
/// Source: Hyyrö, "Bit-Parallel LCS-length Computation Revisited" (AWOCA 2004), section 3.
fn n_common(a: &TextWords, b: &TextWords) -> Option<usize> {
    let n_opening = n_opening(a, b);
    let rest = a.len().min(b.len()) - n_opening;
    let n_ending = a.in_order().rev().zip(b.in_order().rev()).take(rest).take_while(|(x, y)| x == y).count();
    // The place of each word of one text among the words of the other. A word that the other lacks is in no subsequence.
    let (mut in_b, mut in_a) = (vec![None; a.hashes.len()], vec![None; b.hashes.len()]);
    for (number, (i, j)) in both(&a.hashes, &b.hashes).enumerate() {
        (in_b[i], in_a[j]) = (Some(number), Some(number));
    }
    let between = |of: &TextWords, numbers: &[Option<usize>]| -> Vec<usize> {
        of.sequence[n_opening..of.len() - n_ending].iter().filter_map(|&at| numbers[at as usize]).collect()
    };
    let (x, y) = (between(a, &in_b), between(b, &in_a));
    if x.len().saturating_mul(y.len()) > MAX_COMPARED {
        return None;
    }
    Some(n_opening + n_ending + common_subsequence(&x, &y, a.hashes.len().min(b.hashes.len())))
}

/// Returns the length of a longest common subsequence of two sequences of numbers below `n_numbers`.
fn common_subsequence(a: &[usize], b: &[usize], n_numbers: usize) -> usize {
    // Bit i of a number's mask is set where the strip has the number at place i.
    let mut masks = vec![0u64; n_numbers];
    let mut carries = vec![false; b.len()];
    let mut length = 0;
    for strip in a.chunks(64) {
        strip.iter().enumerate().for_each(|(i, &number)| masks[number] |= 1 << i);
        let mut row = u64::MAX;
        for (&number, carry) in b.iter().zip(&mut carries) {
            let matches = row & masks[number];
            let (sum, over) = row.overflowing_add(matches);
            let (sum, again) = sum.overflowing_add(u64::from(*carry));
            *carry = over | again;
            row = sum | (row & !matches);
        }
        let used = u64::MAX >> (64 - strip.len());
        length += (!row & used).count_ones() as usize;
        strip.iter().for_each(|&number| masks[number] = 0);
    }
    length
}
