//! From one text to its fingerprint, by a profile.

use std::cell::RefCell;

use nearprint_fingerprint::{FeatureHash, Fingerprint, Sketch, simhash, simhash_of_hashes, sketch, token_hash};
use nearprint_tokenize::{Analyzer, DistinctTokens, Resources, Scratch};
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
        SCRATCH.with_borrow_mut(|scratch| {
            let ThreadScratch { tokens, hashes } = scratch;
            let tokens = self.analyzer.distinct_tokens(&normalized, tokens);
            let outcome = match self.fingerprint_tokens(&normalized, &tokens, hashes) {
                None => Outcome::TooShort { text_hash },
                Some((fingerprint, sketch)) => Outcome::Fingerprinted { fingerprint, sketch, text_hash },
            };
            FingerprintedText { outcome, length }
        })
    }

    /// Fingerprint and sketch, if the text has enough features.
    fn fingerprint_tokens(
        &self,
        normalized: &str,
        tokens: &DistinctTokens<'_>,
        hashes: &mut Vec<u64>,
    ) -> Option<(u64, Option<Sketch>)> {
        let features = &self.config.tokenize.features;
        if features.shingle > 1 {
        }
        None
    }
}
