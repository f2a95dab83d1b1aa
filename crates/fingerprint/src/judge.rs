//! The judge: reads two texts word by word, and says whether they are alike. It decides the pairs that sketches do not.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::sketch::{DistinctHashes, MAX_OCCURRENCE, Places, add_shingles};

/// The words of a text in their order: the tokens that its sketch sees.
///
/// Words are compared by their hashes of 64 bits. Two different words among a million have the same hash with a
/// probability below 0.0000001.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextWords {
    /// The hashes of the distinct words.
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
        assert!(sequence.iter().all(|&at| (at as usize) < hashes.len()), "a sequence is of words that were numbered");
        Self { hashes: hashes.to_vec(), sequence: sequence.to_vec() }
    }

    /// Returns the bytes of a text from which [`of_bytes`](Self::of_bytes) reads it back: the numbers of distinct words and of
    /// words, the hashes, and the positions, of one, two or four bytes as the number of distinct words needs, little endian.
    /// The words are those of [`new`](Self::new).
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "positions are below the number of hashes, which the width allows"
    )]
    pub fn to_bytes(hashes: &[u64], sequence: &[u32]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(16 + 8 * hashes.len() + width_of(hashes.len()) * sequence.len());
        bytes.extend((hashes.len() as u64).to_le_bytes());
        bytes.extend((sequence.len() as u64).to_le_bytes());
        // The lengths are known, so that the compiler copies whole runs.
        bytes.resize(16 + 8 * hashes.len(), 0);
        let places = bytes[16..].as_chunks_mut::<8>().0.iter_mut();
        places.zip(hashes).for_each(|(place, hash)| *place = hash.to_le_bytes());
        match width_of(hashes.len()) {
            1 => bytes.extend(sequence.iter().map(|&at| at as u8)),
            2 => bytes.extend(sequence.iter().flat_map(|&at| (at as u16).to_le_bytes())),
            _ => bytes.extend(sequence.iter().flat_map(|at| at.to_le_bytes())),
        }
        bytes
    }

    /// Reads back a text from its [bytes](Self::to_bytes). `None` means that these are not its bytes.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let (n_hashes, bytes) = bytes.split_first_chunk::<8>()?;
        let (n_words, bytes) = bytes.split_first_chunk::<8>()?;
        let [n_hashes, n_words] = [n_hashes, n_words].map(|n| usize::try_from(u64::from_le_bytes(*n)));
        let (n_hashes, n_words) = (n_hashes.ok()?, n_words.ok()?);
        let (hashes, positions) = bytes.split_at_checked(n_hashes.checked_mul(8)?)?;
        let hashes: Vec<u64> = hashes.as_chunks::<8>().0.iter().map(|hash| u64::from_le_bytes(*hash)).collect();
        let sequence: Vec<u32> = match width_of(n_hashes) {
            1 => positions.iter().map(|&at| at.into()).collect(),
            2 => positions.as_chunks::<2>().0.iter().map(|at| u16::from_le_bytes(*at).into()).collect(),
            _ => positions.as_chunks::<4>().0.iter().map(|at| u32::from_le_bytes(*at)).collect(),
        };
        let is_whole = sequence.len() == n_words && sequence.iter().all(|&at| (at as usize) < hashes.len());
        is_whole.then_some(Self { hashes, sequence })
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
    pub fn in_order(&self) -> impl ExactSizeIterator<Item = u64> {
        self.sequence.iter().map(|&at| self.hashes[at as usize])
    }
}

/// Returns the number of bytes of a position among `n` hashes.
fn width_of(n: usize) -> usize {
    match n {
        0..=0x100 => 1,
        0x101..=0x1_0000 => 2,
        _ => 4,
    }
}

/// Two texts whose words have numbers in common.
struct TwoTexts {
    /// The words of each text, as numbers, in order.
    words: [Vec<u32>; 2],
    /// The hash of each number.
    hashes: Vec<u64>,
    /// How often each number occurs in each text.
    counts: Vec<[u32; 2]>,
}

/// Gives hashes their numbers, in the order in which they come first.
struct Numbers {
    hashes: Vec<u64>,
    /// A table of at least twice as many places as there are hashes, a power of two. A number stands in the first free
    /// place from the one that `first` gives its hash, raised by one; 0 stands in free places.
    places: Vec<u32>,
    first: Places,
}

impl Numbers {
    fn with_room(n: usize) -> Self {
        let n_places = (2 * n + 2).next_power_of_two();
        Self { hashes: Vec::with_capacity(n), places: vec![0; n_places], first: Places::default().among(n_places) }
    }

    #[expect(clippy::cast_possible_truncation, reason = "positions have 32 bits")]
    fn of(&mut self, hash: u64) -> u32 {
        let last = self.places.len() - 1;
        let mut at = self.first.of(hash);
        loop {
            match self.places[at] {
                0 => {
                    self.hashes.push(hash);
                    self.places[at] = self.hashes.len() as u32;
                    return self.places[at] - 1;
                }
                number if self.hashes[number as usize - 1] == hash => return number - 1,
                _ => at = (at + 1) & last,
            }
        }
    }
}

impl TwoTexts {
    fn new(a: &TextWords, b: &TextWords) -> Self {
        let mut numbers = Numbers::with_room(a.hashes.len() + b.hashes.len());
        let words = [a, b].map(|text| {
            let of: Vec<u32> = text.hashes.iter().map(|&hash| numbers.of(hash)).collect();
            text.sequence.iter().map(|&at| of[at as usize]).collect::<Vec<u32>>()
        });
        let mut counts = vec![[0; 2]; numbers.hashes.len()];
        for (side, words) in words.iter().enumerate() {
            words.iter().for_each(|&number| counts[number as usize][side] += 1);
        }
        Self { words, hashes: numbers.hashes, counts }
    }

    /// Returns the number of words of each text.
    fn n_words(&self) -> [usize; 2] {
        self.words.each_ref().map(Vec::len)
    }

    fn n_in_shorter(&self) -> usize {
        self.words[0].len().min(self.words[1].len())
    }

    /// Returns the number of words that both texts have, in whatever order: of each word, the lesser number of occurrences.
    fn n_same(&self) -> usize {
        self.counts.iter().map(|[x, y]| *x.min(y) as usize).sum()
    }

    fn n_opening(&self) -> usize {
        self.words[0].iter().zip(&self.words[1]).take_while(|(x, y)| x == y).count()
    }

    /// Returns the distinct shingles of `width` words of a text.
    fn shingles(&self, side: usize, width: usize) -> DistinctHashes {
        let mut shingles = DistinctHashes::with_room(self.words[side].len().max(1));
        add_shingles(&self.hashes, &self.words[side], width, |shingle| shingles.add(shingle));
        shingles
    }

    /// Returns the number of distinct shingles of `width` words that both texts have, and of those of the text that has fewer.
    /// A text that is shorter is one shingle.
    fn shared_shingles(&self, width: usize) -> (usize, usize) {
        let shorter = self.n_in_shorter();
        if shorter < width {
            // Only a text of the same length has it as its own shingle.
            let is_same = shorter > 0 && self.words[0] == self.words[1];
            return (usize::from(is_same), usize::from(shorter > 0));
        }
        let of_a = self.shingles(0, width);
        let [mut in_both, mut of_b] = [(); 2].map(|()| DistinctHashes::with_room(self.words[1].len()));
        add_shingles(&self.hashes, &self.words[1], width, |shingle| {
            of_b.add(shingle);
            if of_a.contains(shingle) {
                in_both.add(shingle);
            }
        });
        (in_both.len(), of_a.len().min(of_b.len()))
    }

    /// Returns the number of distinct features of sketches that both texts have.
    fn shared_features(&self, shingle: usize) -> u32 {
        let n_tokens: usize = self.counts.iter().map(|[x, y]| in_features(*x.min(y))).sum();
        let has_shingles = shingle > 1 && self.n_in_shorter() >= shingle;
        counted(n_tokens + if has_shingles { self.shared_shingles(shingle).0 } else { 0 })
    }

    /// Returns the number of distinct features that the sketch of a text sees.
    fn n_features(&self, side: usize, shingle: usize) -> u32 {
        let n_tokens: usize = self.counts.iter().map(|counts| in_features(counts[side])).sum();
        counted(n_tokens + if shingle > 1 { self.shingles(side, shingle).len() } else { 0 })
    }

    /// Returns the length of a longest common subsequence of two texts' words, if they are not too long.
    ///
    /// The equal beginnings and ends of the texts are in one of them. Between these, a row of the table of the dynamic program
    /// is one bit a word of the first text: 64 words of it pass by all words of the second one at a time, with the carries of
    /// the 64 before.
    ///
    /// Source: Hyyrö, "Bit-Parallel LCS-length Computation Revisited" (AWOCA 2004), section 3.
    fn n_common(&self) -> Option<usize> {
        let [a, b] = &self.words;
        let n_opening = self.n_opening();
        let rest = self.n_in_shorter() - n_opening;
        let n_ending = a.iter().rev().zip(b.iter().rev()).take(rest).take_while(|(x, y)| x == y).count();
        // A word that the other text lacks is in no subsequence.
        let is_in_both = |number: &u32| self.counts[*number as usize].iter().all(|&count| count > 0);
        let [x, y] = [a, b].map(|words| -> Vec<u32> {
            words[n_opening..words.len() - n_ending].iter().copied().filter(is_in_both).collect()
        });
        if x.len().saturating_mul(y.len()) > MAX_COMPARED {
            return None;
        }
        Some(n_opening + n_ending + common_subsequence(&x, &y, self.hashes.len()))
    }
}

/// Returns how many occurrences of a word are features.
fn in_features(count: u32) -> usize {
    (count as usize).min(MAX_OCCURRENCE)
}

fn counted(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
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
    /// Judges two texts; `None` if they are not alike. The verdict is that of [`Measures`], and most texts that are not alike
    /// are told from fewer numbers.
    ///
    /// ```
    /// use nearprint_fingerprint::{Alike, Judge, JudgeConfig, TextWords, token_hash};
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
    /// let (judge, whole) = (Judge { config, shingle: 3 }, words("the ferry leaves the old harbour at nine and comes back at noon"));
    /// let alike = |text| judge.of(&whole, &words(text)).map(|verdict| verdict.alike);
    /// assert_eq!(alike("the ferry leaves the new harbour at ten and comes back at noon"), Some(Alike::Edited));
    /// assert_eq!(alike("the ferry leaves the old harbour please log in"), None);
    /// assert_eq!(alike("the ferry leaves the old harbour at read more"), Some(Alike::Contained));
    /// ```
    #[must_use]
    pub fn of(&self, a: &TextWords, b: &TextWords) -> Option<Verdict> {
        let texts = TwoTexts::new(a, b);
        let alike = self.alike(&texts)?;
        Some(Verdict { alike, n_shared: texts.shared_features(self.shingle) })
    }

    fn alike(&self, texts: &TwoTexts) -> Option<Alike> {
        let config = &self.config;
        let n_both = texts.n_words().iter().sum();
        // No order of words has more of them in common than there are in both.
        let is_edited = |n_common| share(2 * n_common, n_both) >= config.min_edit_similarity;
        if is_edited(texts.n_same()) && texts.n_common().is_some_and(is_edited) {
            return Some(Alike::Edited);
        }
        if share(texts.n_opening(), texts.n_in_shorter()) >= config.min_opening {
            return Some(Alike::Contained);
        }
        let (n_contained, of) = texts.shared_shingles(SHINGLE);
        (share(n_contained, of) >= config.min_contained).then_some(Alike::Contained)
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
        let texts = TwoTexts::new(a, b);
        Self {
            n_words: texts.n_words(),
            n_common: texts.n_common(),
            n_opening: texts.n_opening(),
            n_contained: texts.shared_shingles(SHINGLE),
            n_shared: (texts.shared_features(shingle), [0, 1].map(|side| texts.n_features(side, shingle))),
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

/// Returns the length of a longest common subsequence of two sequences of numbers below `n_numbers`.
fn common_subsequence(a: &[u32], b: &[u32], n_numbers: usize) -> usize {
    // Bit i of a number's mask is set where the strip has the number at place i.
    let mut masks = vec![0u64; n_numbers];
    let mut carries = vec![false; b.len()];
    let mut length = 0;
    for strip in a.chunks(64) {
        strip.iter().enumerate().for_each(|(i, &number)| masks[number as usize] |= 1 << i);
        let mut row = u64::MAX;
        for (&number, carry) in b.iter().zip(&mut carries) {
            let matches = row & masks[number as usize];
            let (sum, over) = row.overflowing_add(matches);
            let (sum, again) = sum.overflowing_add(u64::from(*carry));
            *carry = over | again;
            row = sum | (row & !matches);
        }
        let used = u64::MAX >> (64 - strip.len());
        length += (!row & used).count_ones() as usize;
        strip.iter().for_each(|&number| masks[number as usize] = 0);
    }
    length
}
