//! Turns one text into its fingerprint by a profile.

use std::cell::RefCell;
use std::sync::LazyLock;

use nearprint_fingerprint::{
    DistinctHashes, FeatureHash, Sketch, TextWords, simhash, simhash_of_hashes, sketch_and_count, sketch_elements,
    token_hash,
};
use nearprint_tokenize::{Analyzer, DistinctTokens, Resources, Scratch, TokenizerKind, WordsAndPairs};
use xxhash_rust::xxh3::xxh3_128;

use crate::config::{ProfileConfig, SketchConfig};
use crate::error::Result;

/// Fingerprints texts; all threads can share one.
#[derive(Debug)]
pub struct TextFingerprinter {
    config: ProfileConfig,
    analyzer: Analyzer,
    /// Cuts the tokens of the sketch, if they are not those of the fingerprint.
    sketch_analyzer: Option<Analyzer>,
}

/// The result of fingerprinting a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FingerprintedText {
    /// The fingerprint and sketch of the text, or the reason why it has none.
    pub outcome: Outcome,
    /// The number of characters of the normalised text.
    pub length: u64,
    /// The words that the judge reads, as [`TextWords::to_bytes`] returns them, if the text has a fingerprint and the
    /// profile a judge.
    pub words: Option<Vec<u8>>,
}

/// A text taken apart, as [`TextFingerprinter::dissect`] returns it.
#[derive(Debug, Clone)]
pub struct DissectedText {
    /// The normalised text.
    pub normalized: String,
    /// Each distinct feature with its weight; empty if the text has no features.
    pub features: Vec<(Vec<u8>, u64)>,
    /// The number of units of weight that make 1.
    pub unit: u64,
    /// The outcome that [`TextFingerprinter::fingerprint`] returns.
    pub outcome: Outcome,
}

/// A fingerprint, or the reason why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing is left of the text after normalisation.
    Empty,
    /// The text has fewer distinct features than the floor, and is compared by `text_hash` alone.
    TooShort {
        /// The hash of the normalised text.
        text_hash: [u8; 16],
    },
    /// The text has enough features to be fingerprinted.
    Fingerprinted {
        /// The SimHash; a 32-bit one is zero-extended, and of a 128-bit one this is the high half.
        fingerprint: u64,
        /// The low half of a 128-bit SimHash; `None` for narrower ones.
        low_half: Option<u64>,
        /// The sketch, if the profile has one.
        sketch: Option<Sketch>,
        /// The number of distinct features that the sketch sees, which are its elements.
        n_features: Option<u32>,
        /// The hash of the normalised text.
        text_hash: [u8; 16],
    },
}

impl TextFingerprinter {
    /// Makes a fingerprinter for `config`; `resources` are the contents of the user's files.
    ///
    /// # Errors
    /// [`ProfileError`](crate::ProfileError) if the config or a file cannot be used.
    pub fn try_new(config: ProfileConfig, resources: &Resources) -> Result<Self> {
        config.validate()?;
        let analyzer = Analyzer::try_new(&config.tokenize, resources)?;
        let stop_words = Resources { user_dictionary: None, idf: None, ..resources.clone() };
        let sketch_analyzer =
            config.sketch_tokenize().map(|tokenize| Analyzer::try_new(&tokenize, &stop_words)).transpose()?;
        Ok(Self { config, analyzer, sketch_analyzer })
    }

    /// Returns the profile.
    #[must_use]
    pub fn config(&self) -> &ProfileConfig {
        &self.config
    }

    /// Returns the fingerprint of a text, which depends only on the text and the config.
    ///
    /// # Panics
    /// May panic if the normalised text has 4 GiB or more.
    #[must_use]
    pub fn fingerprint(&self, text: &str) -> FingerprintedText {
        let normalized = self.analyzer.normalize(text);
        let (outcome, words) = self.outcome(&normalized);
        let length = if outcome == Outcome::Empty { 0 } else { normalized.chars().count() as u64 };
        FingerprintedText { outcome, length, words }
    }

    /// Returns the words that the judge reads of a text, also of one that has too few to be fingerprinted. `None` if the
    /// profile makes no sketches.
    ///
    /// # Panics
    /// May panic if the normalised text has 4 GiB or more.
    #[must_use]
    pub fn words(&self, text: &str) -> Option<TextWords> {
        let wide = self.config.sketch.as_ref()?;
        let normalized = self.analyzer.normalize(text);
        SCRATCH.with_borrow_mut(|ThreadScratch { tokens: scratch, hashed }| {
            let tokens = self.sketch_analyzer.as_ref().unwrap_or(&self.analyzer).distinct_tokens(&normalized, scratch);
            hashed.hash_tokens(&tokens, wide.seed);
            Some(TextWords::new(&hashed.tokens, tokens.sequence()))
        })
    }

    /// Returns the hash of a normalised text, if it is wanted, and the words that [`fingerprint`](Self::fingerprint) gives.
    /// `None` also if it gives none.
    ///
    /// # Panics
    /// May panic if the normalised text has 4 GiB or more.
    #[must_use]
    pub fn words_if(&self, text: &str, is_wanted: impl FnOnce(&[u8; 16]) -> bool) -> Option<([u8; 16], Vec<u8>)> {
        let normalized = self.analyzer.normalize(text);
        let text_hash = Some(hash_of(&normalized)).filter(is_wanted)?;
        self.outcome(&normalized).1.map(|words| (text_hash, words))
    }

    fn outcome(&self, normalized: &str) -> (Outcome, Option<Vec<u8>>) {
        if normalized.trim().is_empty() {
            return (Outcome::Empty, None);
        }
        let text_hash = hash_of(normalized);
        SCRATCH.with_borrow_mut(|scratch| match self.fingerprint_normalized(normalized, scratch) {
            None => (Outcome::TooShort { text_hash }, None),
            Some((Value { fingerprint, low_half }, wide)) => {
                debug_assert!(
                    low_half.is_some() == (self.config.bits == 128),
                    "fingerprints of 128 bits, and no others, have a second half"
                );
                debug_assert!(
                    fingerprint.checked_shr(self.config.bits).is_none_or(|above| above == 0),
                    "a fingerprint has no bit above its width"
                );
                let (wide, words) = wide
                    .map_or((None, None), |Sketched { sketch, n_features, words }| (Some((sketch, n_features)), words));
                let (sketch, n_features) = wide.unzip();
                (Outcome::Fingerprinted { fingerprint, low_half, sketch, n_features, text_hash }, words)
            }
        })
    }

    /// Returns the fingerprint and the sketch, if there are enough features.
    fn fingerprint_normalized(
        &self,
        normalized: &str,
        scratch: &mut ThreadScratch,
    ) -> Option<(Value, Option<Sketched>)> {
        let config = &self.config.tokenize.features;
        let ThreadScratch { tokens: scratch, hashed } = scratch;
        if !self.analyzer.features_are_tokens(config) {
            let features = self.analyzer.features(&self.analyzer.tokens(normalized), config);
            if !self.analyzer.has_enough(normalized, features.n_distinct()) {
                return None;
            }
            return Some((self.simhash(features.iter()), self.sketch(normalized, scratch, hashed)));
        }
        let own_tokens = self.sketch_analyzer.is_some() && self.cuts_apart(normalized);
        if let (true, Some(wide)) = (own_tokens, &self.config.sketch)
            && let Some(both) = self.words_and_pairs(normalized, scratch)
        {
            let has_enough = self.analyzer.has_enough(normalized, both.n_tokens());
            return has_enough.then(|| self.fingerprint_both(&both, wide, hashed));
        }
        let tokens = self.analyzer.distinct_tokens(normalized, scratch);
        if !self.analyzer.has_enough(normalized, tokens.len()) {
            return None;
        }
        let features = tokens.iter().map(|(token, count)| (token, config.weight_of_token(token, count)));
        let Some(wide) = &self.config.sketch else { return Some((self.simhash(features), None)) };
        let same_hash = self.has_hash_of(wide);
        if same_hash || !own_tokens {
            hashed.hash_tokens(&tokens, wide.seed);
        }
        let fingerprint = if same_hash {
            let weights = features.map(|(_, weight)| weight);
            simhash_of_hashes::<u64>(hashed.tokens.iter().copied().zip(weights), &self.config.fingerprint).into()
        } else {
            self.simhash(features)
        };
        let sketch = if own_tokens {
            self.sketch(normalized, scratch, hashed)
        } else {
            Some(hashed.sketch_of(&tokens, wide, self.config.judge().is_some()))
        };
        Some((fingerprint, sketch))
    }

    /// Returns the words of the sketch together with the pairs of the fingerprint, if they can be cut at once.
    fn words_and_pairs<'a>(&self, normalized: &'a str, scratch: &'a mut Scratch) -> Option<WordsAndPairs<'a>> {
        let analyzer = self.sketch_analyzer.as_ref().filter(|_| self.has_pairs_and_words())?;
        analyzer.words_and_pairs(normalized, scratch)
    }

    fn fingerprint_both(
        &self,
        both: &WordsAndPairs<'_>,
        wide: &SketchConfig,
        hashed: &mut Hashed,
    ) -> (Value, Option<Sketched>) {
        let config = &self.config.tokenize.features;
        hashed.hash_tokens(both.words(), wide.seed);
        let weight = |(token, count)| (token, config.weight_of_token(token, count));
        let fingerprint = if self.has_hash_of(wide) {
            let unpaired = both.unpaired().map(|(at, word, n)| (hashed.tokens[at], config.weight_of_token(word, n)));
            let pairs = both.pairs().map(weight).map(|(pair, weight)| (token_hash(pair, wide.seed), weight));
            simhash_of_hashes::<u64>(unpaired.chain(pairs), &self.config.fingerprint).into()
        } else {
            self.simhash(both.unpaired().map(|(_, word, count)| (word, count)).chain(both.pairs()).map(weight))
        };
        (fingerprint, Some(hashed.sketch_of(both.words(), wide, self.config.judge().is_some())))
    }

    /// Returns whether the fingerprint and the sketch use the same hash: tokens that they share are then hashed once.
    fn has_hash_of(&self, wide: &SketchConfig) -> bool {
        self.config.bits == 64 && self.config.fingerprint.feature_hash == FeatureHash::Xxh3 { seed: wide.seed }
    }

    /// Returns whether the tokens of the sketch may differ from those of the fingerprint.
    fn cuts_apart(&self, normalized: &str) -> bool {
        !self.has_pairs_and_words() || Analyzer::has_pairs(normalized)
    }

    /// Returns whether the fingerprint is made of pairs, and the sketch of words with the same settings.
    fn has_pairs_and_words(&self) -> bool {
        let kinds = (self.config.tokenize.tokenizer.kind, self.config.sketch.as_ref().and_then(|s| s.tokenizer));
        kinds == (TokenizerKind::Pairs, Some(TokenizerKind::Words))
    }

    /// Returns the sketch, if the profile has one.
    fn sketch(&self, normalized: &str, scratch: &mut Scratch, hashed: &mut Hashed) -> Option<Sketched> {
        let wide = self.config.sketch.as_ref()?;
        let tokens = self.sketch_analyzer.as_ref().unwrap_or(&self.analyzer).distinct_tokens(normalized, scratch);
        hashed.hash_tokens(&tokens, wide.seed);
        Some(hashed.sketch_of(&tokens, wide, self.config.judge().is_some()))
    }

    fn simhash<'a>(&self, features: impl Iterator<Item = (&'a [u8], u64)>) -> Value {
        let config = &self.config.fingerprint;
        match self.config.bits {
            32 => u64::from(simhash::<u32>(features, config)).into(),
            128 => Value::of_halves(simhash(features, config)),
            _ => simhash::<u64>(features, config).into(),
        }
    }

    /// Returns the hashes of the distinct features that the sketch of a text sees, in ascending order, also for a text
    /// that has too few of them to be fingerprinted. Returns `None` if the profile makes no sketches.
    ///
    /// ```
    /// use nearprint_profile::{TextFingerprinter, by_name};
    ///
    /// let fingerprinter = TextFingerprinter::try_new(by_name("default")?, &Default::default())?;
    /// let of = |text| fingerprinter.sketch_features(text).unwrap();
    /// // Three words and one shingle; a second "a" and a second "rose" are features of their own, with two shingles.
    /// assert_eq!((of("a rose is").len(), of("A rose is, a rose!").len()), (4, 8));
    /// # Ok::<(), nearprint_profile::ProfileError>(())
    /// ```
    ///
    /// # Panics
    /// May panic if the normalised text has 4 GiB or more.
    #[must_use]
    pub fn sketch_features(&self, text: &str) -> Option<Vec<u64>> {
        let wide = self.config.sketch.as_ref()?;
        let normalized = self.analyzer.normalize(text);
        SCRATCH.with_borrow_mut(|ThreadScratch { tokens: scratch, hashed }| {
            let tokens = self.sketch_analyzer.as_ref().unwrap_or(&self.analyzer).distinct_tokens(&normalized, scratch);
            hashed.hash_tokens(&tokens, wide.seed);
            let counts = tokens.iter().map(|(_, count)| count);
            Some(sketch_elements(&hashed.tokens, counts, tokens.sequence(), wide.shingle))
        })
    }

    /// Returns the fingerprint of a text and the data that it was made from.
    ///
    /// # Panics
    /// May panic if the normalised text has 4 GiB or more.
    pub fn dissect(&self, text: &str) -> DissectedText {
        let normalized = self.analyzer.normalize(text);
        let features = self.analyzer.features(&self.analyzer.tokens(&normalized), &self.config.tokenize.features);
        let unit = features.unit();
        let features = features.iter().map(|(feature, weight)| (feature.to_vec(), weight)).collect();
        let (outcome, _) = self.outcome(&normalized);
        DissectedText { features, unit, outcome, normalized: normalized.into_owned() }
    }
}

/// A fingerprint in the form of [`Outcome::Fingerprinted`].
struct Value {
    fingerprint: u64,
    low_half: Option<u64>,
}

impl From<u64> for Value {
    fn from(fingerprint: u64) -> Self {
        Self { fingerprint, low_half: None }
    }
}

impl Value {
    #[expect(clippy::cast_possible_truncation, reason = "the halves are what is wanted")]
    fn of_halves(fingerprint: u128) -> Self {
        Self { fingerprint: (fingerprint >> 64) as u64, low_half: Some(fingerprint as u64) }
    }
}

/// The number of hashes that memory is kept for.
const KEPT_HASHES: usize = 1 << 20;

/// Returns the hash of a normalised text: big-endian, so that bytes sort as the number does.
fn hash_of(normalized: &str) -> [u8; 16] {
    xxh3_128(normalized.as_bytes()).to_be_bytes()
}

/// A sketch, the number of its distinct elements, and the words that the judge reads, if there is one.
struct Sketched {
    sketch: Sketch,
    n_features: u32,
    words: Option<Vec<u8>>,
}

/// The memory that a thread reuses for each text.
#[derive(Default)]
struct ThreadScratch {
    tokens: Scratch,
    hashed: Hashed,
}

#[derive(Default)]
struct Hashed {
    /// The hash of each distinct token.
    tokens: Vec<u64>,
    shingles: DistinctHashes,
}

impl Hashed {
    fn hash_tokens(&mut self, tokens: &DistinctTokens<'_>, seed: u64) {
        if self.tokens.capacity() > KEPT_HASHES {
            self.tokens = Vec::new();
        }
        self.tokens.clear();
        self.tokens.extend(tokens.iter().map(|(token, _)| token_hash(token, seed)));
    }

    /// Returns the sketch of the tokens that were hashed last.
    fn sketch_of(&mut self, tokens: &DistinctTokens<'_>, config: &SketchConfig, has_judge: bool) -> Sketched {
        debug_assert_eq!(self.tokens.len(), tokens.len(), "the hashes are those of these tokens");
        let counts = tokens.iter().map(|(_, count)| count);
        let (sketch, n_features) =
            sketch_and_count(&self.tokens, counts, tokens.sequence(), config.shingle, &mut self.shingles);
        let words = has_judge.then(|| TextWords::to_bytes(&self.tokens, tokens.sequence()));
        Sketched { sketch, n_features, words }
    }
}

/// Returns the fingerprint of a text by the default profile, which has 64 bits. Returns `None` if the text is empty or
/// has too few distinct features to be compared by a fingerprint.
///
/// # Panics
/// If the normalised text has 4 GiB or more.
#[must_use]
pub fn fingerprint(text: &str) -> Option<u64> {
    static DEFAULT: LazyLock<TextFingerprinter> = LazyLock::new(|| {
        let made = crate::named::by_name("default").and_then(|p| TextFingerprinter::try_new(p, &Resources::default()));
        made.unwrap_or_else(|error| unreachable!("the default profile is valid: {error}"))
    });
    match DEFAULT.fingerprint(text).outcome {
        Outcome::Fingerprinted { fingerprint, .. } => Some(fingerprint),
        Outcome::Empty | Outcome::TooShort { .. } => None,
    }
}

thread_local! {
    static SCRATCH: RefCell<ThreadScratch> = RefCell::default();
}
