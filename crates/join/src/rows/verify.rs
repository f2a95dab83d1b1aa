//! The one place where a candidate becomes a pair.

use nearprint_fingerprint::{JudgeConfig, Sketch};
use serde::{Deserialize, Serialize};

/// What is compared of two documents to find candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Key {
    /// Their fingerprints.
    Fingerprint,
    /// A [word](Sketch::word) of their sketches.
    Word(u8),
}

impl Key {
    /// Returns the number of the word, if the key is one.
    #[must_use]
    pub fn word(self) -> Option<u8> {
        match self {
            Self::Fingerprint => None,
            Self::Word(word) => Some(word),
        }
    }
}

/// The words of sketches that are keys beside the fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WordKeys {
    /// The number of words: so many of the first ones, at most [`Sketch::WORDS`].
    pub n: u8,
    /// The largest Hamming distance of two words that counts.
    pub max_distance: u8,
}

impl WordKeys {
    /// No word is a key.
    pub const NONE: Self = Self { n: 0, max_distance: 0 };
}

/// The distances that make two documents near-duplicates: a candidate is near in any of the keys, and a pair is a candidate
/// whose sketches are near too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verifier {
    /// The largest Hamming distance of two fingerprints that counts.
    pub max_distance: u8,
    /// The words of sketches by which two documents whose fingerprints are not near are candidates too.
    pub words: WordKeys,
    /// The largest distance of two sketches that counts; `None` leaves sketches out.
    pub max_sketch_distance: Option<u16>,
    /// The largest distance of two sketches at which a judge reads the texts of two documents whose sketches are not near. `None`
    /// leaves the judge out.
    pub judged_to: Option<u16>,
}

/// What the distances of two documents say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nearness {
    /// They are near-duplicates.
    Near(SketchDistance),
    /// The judge decides, if it has the texts. The distance of the sketches.
    Undecided(u16),
    /// They are none.
    Far,
}

impl Nearness {
    fn near(self) -> Option<SketchDistance> {
        match self {
            Self::Near(sketches) => Some(sketches),
            Self::Undecided(_) | Self::Far => None,
        }
    }
}

/// The distance of two sketches, as far as it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SketchDistance {
    /// The sketches are not compared, because the fingerprints alone decide or the texts are the same.
    NotCompared,
    /// One of the two documents has no sketch. If sketches are verified, such a document matches nothing.
    Missing,
    /// The number of differing bits, out of 256.
    Bits(u16),
}

impl SketchDistance {
    /// Returns the number of differing bits, if both sketches were compared.
    #[must_use]
    pub fn bits(self) -> Option<u16> {
        match self {
            Self::Bits(bits) => Some(bits),
            Self::NotCompared | Self::Missing => None,
        }
    }

    fn of(a: Option<&Sketch>, b: Option<&Sketch>) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "a sketch has 256 bits")]
        a.zip(b).map_or(Self::Missing, |(a, b)| Self::Bits(a.distance(b) as u16))
    }
}

impl Verifier {
    /// Returns the limits of two documents whose texts a judge has: it also reads texts whose sketches alone would make a
    /// pair, unless they are as near as it asks for.
    #[must_use]
    pub fn with_judge(self, judge: &JudgeConfig) -> Self {
        let limit = |bits: u32| u16::try_from(bits).ok();
        let near = self.max_sketch_distance.min(limit(judge.min_sketch_distance));
        Self { max_sketch_distance: near, judged_to: limit(judge.max_sketch_distance), ..self }
    }

    /// Returns the first key in which two documents are near, with their fingerprints at this distance, or `None` if they are
    /// no candidates. The fingerprint comes before the words.
    ///
    /// ```
    /// use nearprint_fingerprint::Sketch;
    /// use nearprint_join::{Key, Verifier, WordKeys};
    ///
    /// let words = WordKeys { n: 2, max_distance: 1 };
    /// let verifier = Verifier { max_distance: 3, words, max_sketch_distance: Some(40), judged_to: None };
    /// let [a, b] = [[0; 32], [3; 32]].map(Sketch);
    /// let mut second = b;
    /// second.0[8..16].fill(0);
    /// assert_eq!(verifier.first_key(3, Some(&a), Some(&b)), Some(Key::Fingerprint));
    /// assert_eq!(verifier.first_key(4, Some(&a), Some(&second)), Some(Key::Word(1)));
    /// assert_eq!((verifier.first_key(4, Some(&a), Some(&b)), verifier.first_key(4, Some(&a), None)), (None, None));
    /// ```
    #[must_use]
    pub fn first_key(&self, distance: u8, a: Option<&Sketch>, b: Option<&Sketch>) -> Option<Key> {
        if distance <= self.max_distance {
            return Some(Key::Fingerprint);
        }
        let (a, b) = a.zip(b).filter(|_| self.words.n > 0)?;
        let is_near = |word: &u8| (a.word(*word) ^ b.word(*word)).count_ones() <= u32::from(self.words.max_distance);
        (0..self.words.n).find(is_near).map(Key::Word)
    }

    /// Returns whether two documents with near fingerprints, at these distances, are near-duplicates.
    ///
    /// ```
    /// use nearprint_join::{SketchDistance, Verifier, WordKeys};
    ///
    /// let verifier = Verifier { max_distance: 3, words: WordKeys::NONE, max_sketch_distance: Some(40), judged_to: None };
    /// assert!(verifier.allows(3, SketchDistance::Bits(40)));
    /// assert!(!verifier.allows(4, SketchDistance::Bits(0)));
    /// assert!(!verifier.allows(0, SketchDistance::Missing));
    /// assert!(Verifier { max_sketch_distance: None, ..verifier }.allows(0, SketchDistance::Missing));
    /// ```
    #[must_use]
    pub fn allows(&self, distance: u8, sketches: SketchDistance) -> bool {
        distance <= self.max_distance && self.allows_sketches(sketches)
    }

    fn allows_sketches(&self, sketches: SketchDistance) -> bool {
        match (self.max_sketch_distance, sketches) {
            (None, _) | (_, SketchDistance::NotCompared) => true,
            (Some(_), SketchDistance::Missing) => false,
            (Some(limit), SketchDistance::Bits(bits)) => bits <= limit,
        }
    }

    /// Returns what the distances of two documents say.
    ///
    /// ```
    /// use nearprint_fingerprint::{JudgeConfig, Sketch};
    /// use nearprint_join::{Nearness, SketchDistance, Verifier, WordKeys};
    ///
    /// let words = WordKeys::NONE;
    /// let verifier = Verifier { max_distance: 3, words, max_sketch_distance: Some(8), judged_to: Some(40) };
    /// let [a, b, c] = [[0; 32], [1; 32], [3; 32]].map(Sketch);
    /// let of = |distance, other| verifier.nearness(distance, Some(&a), Some(other));
    /// assert_eq!(of(3, &a), Nearness::Near(SketchDistance::Bits(0)));
    /// assert_eq!((of(3, &b), of(4, &b), of(3, &c)), (Nearness::Undecided(32), Nearness::Far, Nearness::Far));
    /// ```
    #[must_use]
    pub fn nearness(&self, distance: u8, a: Option<&Sketch>, b: Option<&Sketch>) -> Nearness {
        match self.first_key(distance, a, b) {
            Some(_) => self.nearness_of_candidates(a, b),
            None => Nearness::Far,
        }
    }

    fn nearness_of_candidates(&self, a: Option<&Sketch>, b: Option<&Sketch>) -> Nearness {
        let sketches = match self.max_sketch_distance {
            None => SketchDistance::NotCompared,
            Some(_) => SketchDistance::of(a, b),
        };
        if self.allows_sketches(sketches) {
            return Nearness::Near(sketches);
        }
        match sketches {
            SketchDistance::Bits(bits) if self.judged_to.is_some_and(|limit| bits <= limit) => {
                Nearness::Undecided(bits)
            }
            _ => Nearness::Far,
        }
    }

    /// Returns the distance of the sketches of two documents if the two are near-duplicates, and `None` if they are
    /// not.
    #[must_use]
    pub fn verify(&self, distance: u8, a: Option<&Sketch>, b: Option<&Sketch>) -> Option<SketchDistance> {
        self.nearness(distance, a, b).near()
    }

    /// Does the same as [`verify`](Self::verify), but only if `key` is the first key in which the two are near. So of joins by one
    /// key each, one finds a pair, and the others leave it out.
    #[must_use]
    pub fn verify_by(&self, key: Key, distance: u8, a: Option<&Sketch>, b: Option<&Sketch>) -> Option<SketchDistance> {
        let is_first = self.first_key(distance, a, b) == Some(key);
        if is_first { self.nearness_of_candidates(a, b).near() } else { None }
    }
}
