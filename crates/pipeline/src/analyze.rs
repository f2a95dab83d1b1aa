//! From one text to its fingerprint, by a profile.

use nearprint_fingerprint::{Sketch, simhash, sketch};
use nearprint_tokenize::{Analyzer, FeatureConfig, Resources, Weight};
use xxhash_rust::xxh3::xxh3_128;

use crate::config::ProfileConfig;
use crate::error::Result;

/// Fingerprints texts; shared by all threads.
#[derive(Debug)]
pub struct TextFingerprinter {
    config: ProfileConfig,
    analyzer: Analyzer,
}

/// What a text came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FingerprintedText {
    /// Its fingerprint and sketch, or why it has none.
    pub outcome: Outcome,
    /// Characters of the normalised text.
    pub length: u64,
}

/// A text taken apart.
#[derive(Debug, Clone)]
pub(crate) struct DissectedText {
    /// The normalised text.
    pub(crate) normalized: String,
    /// Each distinct feature with its weight in units of 1/65536; none of an empty text.
    pub(crate) features: Vec<(Vec<u8>, u64)>,
    /// As [`TextFingerprinter::fingerprint`] has it.
    pub(crate) outcome: Outcome,
}

/// A fingerprint, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing is left of the text after normalisation.
    Empty,
    /// Fewer distinct features than the floor: compared by `text_hash` alone.
    TooShort {
        /// Hash of the normalised text.
        text_hash: [u8; 16],
    },
    /// Enough to fingerprint.
    Fingerprinted {
        /// The SimHash; 32-bit ones zero-extended.
        fingerprint: u64,
        /// The wider SimHash, where the profile has one.
        sketch: Option<Sketch>,
        /// Hash of the normalised text.
        text_hash: [u8; 16],
    },
}

impl TextFingerprinter {
    /// A fingerprinter for `config`; `resources` are the contents of the user's files.
    ///
    /// # Errors
    /// A config or file that cannot be used.
    pub fn try_new(config: ProfileConfig, resources: &Resources) -> Result<Self> {
        config.validate()?;
        let analyzer = Analyzer::try_new(&config.tokenize, resources)?;
        Ok(Self { config, analyzer })
    }

    /// The profile.
    #[must_use]
    pub fn config(&self) -> &ProfileConfig {
        &self.config
    }

    /// The fingerprint of a text. Depends on the text and the config only.
    #[must_use]
    pub fn fingerprint(&self, text: &str) -> FingerprintedText {
        let normalized = self.analyzer.normalize(text);
        let length = normalized.chars().count() as u64;
        if normalized.trim().is_empty() {
            return FingerprintedText { outcome: Outcome::Empty, length: 0 };
        }
        // Big-endian, so that bytes sort as the number does.
        let text_hash = xxh3_128(normalized.as_bytes()).to_be_bytes();
        let tokens = self.analyzer.tokens(&normalized);
        let features = tokens.features(&self.config.tokenize.features);
        if !self.analyzer.has_enough(&normalized, &features) {
            return FingerprintedText { outcome: Outcome::TooShort { text_hash }, length };
        }
        let sketch = self.config.sketch.as_ref().map(|wide| {
            let shingles = tokens.features(&FeatureConfig { shingle: wide.shingle, weight: Weight::Set });
            sketch(shingles.iter(), wide.seed)
        });
        let fingerprint = match self.config.bits {
            32 => u64::from(simhash::<u32>(features.iter(), &self.config.fingerprint)),
            _ => simhash::<u64>(features.iter(), &self.config.fingerprint),
        };
        FingerprintedText { outcome: Outcome::Fingerprinted { fingerprint, sketch, text_hash }, length }
    }

    /// The fingerprint of a text, and what it was made from.
    pub(crate) fn dissect(&self, text: &str) -> DissectedText {
        let normalized = self.analyzer.normalize(text);
        let features = self.analyzer.tokens(&normalized).features(&self.config.tokenize.features);
        let features = features.iter().map(|(feature, weight)| (feature.to_vec(), weight)).collect();
        let outcome = self.fingerprint(text).outcome;
        DissectedText { features, outcome, normalized: normalized.into_owned() }
    }
}
