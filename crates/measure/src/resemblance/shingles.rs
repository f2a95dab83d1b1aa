//! Shingles of texts, and the resemblance of two sets of them.

use std::cmp::Ordering;

use nearprint_fault::Result;
use nearprint_profile::ProfileError;
use nearprint_tokenize::{Analyzer, Resources, TokenizeConfig, TokenizerConfig, TokenizerKind};
use xxhash_rust::xxh3::xxh3_64;

/// The number of tokens in a shingle that begins with a word.
const WORDS: usize = 3;
/// The number of tokens in a shingle that begins with a character of a script without spaces.
const CHARACTERS: usize = 5;

/// Cuts texts into shingles.
///
/// The text is normalised as by the default profile (NFKC, case folding, HTML entities, white space) and cut into
/// Unicode words as by the tokenizer `words`; in scripts without spaces, each character is a word. Every word begins a
/// shingle of 3 words, and every character of a script without spaces begins one of 5, so a text in two languages needs
/// no decision. A shingle that would reach beyond the end of the text does not count, but a text too short for any is
/// one shingle.
#[derive(Debug)]
pub struct Shingler {
    analyzer: Analyzer,
}

impl Shingler {
    /// Prepares the normalisation and the tokenizer.
    ///
    /// # Errors
    /// The analyzer cannot be built.
    pub fn try_new() -> Result<Self> {
        let tokenizer = TokenizerConfig { kind: TokenizerKind::Words, ..TokenizerConfig::default() };
        let config = TokenizeConfig { tokenizer, ..TokenizeConfig::default() };
        let analyzer = Analyzer::try_new(&config, &Resources::default()).map_err(ProfileError::from)?;
        Ok(Self { analyzer })
    }

    /// Returns the shingles of a text. A text without a letter or digit has none.
    ///
    /// ```
    /// use nearprint_measure::resemblance::Shingler;
    ///
    /// let shingler = Shingler::try_new()?;
    /// let a = shingler.shingles("The cat sat on the mat.");
    /// let b = shingler.shingles("the CAT sat on the sofa");
    /// // They share "the cat sat", "cat sat on" and "sat on the", of five in all.
    /// assert_eq!(a.resemblance(&b).value(), 0.6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn shingles(&self, text: &str) -> ShingleSet {
        const HASH_BYTES: usize = size_of::<u64>();
        let text = self.analyzer.normalize(text);
        let tokens = self.analyzer.tokens(&text);
        let hashes: Vec<u8> = tokens.iter().flat_map(|token| xxh3_64(token.as_bytes()).to_le_bytes()).collect();
        let of_tokens = |(first, token): (usize, &str)| {
            let n_tokens = if is_without_spaces(token) { CHARACTERS } else { WORDS };
            hashes.get(HASH_BYTES * first..HASH_BYTES * (first + n_tokens)).map(xxh3_64)
        };
        let mut shingles: Vec<u64> = tokens.iter().enumerate().filter_map(of_tokens).collect();
        if shingles.is_empty() && !hashes.is_empty() {
            shingles.push(xxh3_64(&hashes));
        }
        ShingleSet::new(shingles)
    }
}

/// Returns whether a token is in a script whose words are not separated: Han, hiragana, Thai, Lao, Burmese or Khmer.
/// Katakana is left out, because the tokenizer cuts it into runs, not into characters.
fn is_without_spaces(token: &str) -> bool {
    let is_one = |c| {
        matches!(c, '\u{0E00}'..='\u{0EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}' | '\u{3005}'..='\u{3007}'
            | '\u{3041}'..='\u{309F}' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}'
            | '\u{20000}'..='\u{3347F}')
    };
    token.chars().next().is_some_and(is_one)
}

/// The distinct shingles of a text.
///
/// Each is held as a hash of 64 bits. Two different shingles among ten million have the same hash with a probability
/// below 0.000003, so a resemblance is exact for all practical purposes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShingleSet(Vec<u64>);

impl ShingleSet {
    /// Makes a set of hashed shingles, which may be in any order and may repeat.
    #[must_use]
    pub fn new(mut shingles: Vec<u64>) -> Self {
        shingles.sort_unstable();
        shingles.dedup();
        shingles.shrink_to_fit();
        Self(shingles)
    }

    /// Returns the number of distinct shingles.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no shingles.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the hashed shingles in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> {
        self.0.iter().copied()
    }

    /// Returns the resemblance of two sets. It takes time in proportion to the sum of their sizes.
    #[must_use]
    pub fn resemblance(&self, other: &Self) -> Resemblance {
        let (a, b) = (&self.0, &other.0);
        let (mut i, mut j, mut n_shared) = (0, 0, 0);
        while i < a.len() && j < b.len() {
            let order = a[i].cmp(&b[j]);
            i += usize::from(order != Ordering::Greater);
            j += usize::from(order != Ordering::Less);
            n_shared += u64::from(order == Ordering::Equal);
        }
        Resemblance { n_shared, n_all: (a.len() + b.len()) as u64 - n_shared }
    }
}

/// The resemblance of two texts: the share of their shingles that both have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resemblance {
    /// The shingles that both texts have.
    pub n_shared: u64,
    /// The shingles that at least one of the two has.
    pub n_all: u64,
}

impl Resemblance {
    /// Returns the resemblance as a number from 0 to 1. It is 0 if there are no shingles.
    #[allow(clippy::cast_precision_loss, reason = "a ratio of counts")]
    #[must_use]
    pub fn value(self) -> f64 {
        if self.n_all == 0 { 0.0 } else { self.n_shared as f64 / self.n_all as f64 }
    }

    /// Returns the resemblance in whole parts of 1 / `n_parts`, rounded down without an error of rounding.
    pub(crate) fn parts(self, n_parts: u64) -> u64 {
        (n_parts * self.n_shared).checked_div(self.n_all).unwrap_or(0)
    }
}
