//! The settings that a fingerprint and a join depend on.

use nearprint_fingerprint::{FingerprintConfig, Judge, JudgeConfig, Sketch};
use nearprint_join::{Verifier, WordKeys};
use nearprint_tokenize::{FeatureConfig, TokenizeConfig, TokenizerConfig, TokenizerKind, Top, Weight};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{ProfileError, Result};

/// The version of the algorithm. It is raised with every change that gives some text another fingerprint, sketch or
/// text hash, or some batch other pairs or decisions. If only one tokenizer changes,
/// [`TokenizerConfig::rules_version`](nearprint_tokenize::TokenizerConfig::rules_version) is raised instead.
pub const ALGORITHM_VERSION: u32 = 2;

/// All settings from text to fingerprint to pair, as a named profile has them ([`by_name`](crate::by_name)).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProfileConfig {
    /// The number of bits of a fingerprint: 32 or 64, or 128, which no store and no join accepts.
    pub bits: u32,
    /// The settings from text to features.
    pub tokenize: TokenizeConfig,
    /// The settings from features to fingerprint.
    pub fingerprint: FingerprintConfig,
    /// The settings of the sketch that verifies a pair; `None` in profiles without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sketch: Option<SketchConfig>,
    /// The distances that make a pair.
    pub join: JoinConfig,
    /// The rules by which texts are judged that sketches leave undecided; `None` in profiles without a judge. Texts of one
    /// night are judged, those of earlier nights are gone. Where sketches are not compared, no text is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<JudgeConfig>,
    /// The largest share of its features that a document may lose when it is dropped for another one, where sketches tell it
    /// and the star rule decides.
    #[serde(default = "usual_lost_share")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub max_lost_share: f64,
}

/// The settings of the sketch, which is 256 bits of least hashes of tokens and shingles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SketchConfig {
    /// The number of tokens of a shingle, at least 1; 1 leaves shingles out.
    #[schemars(range(min = 1))]
    pub shingle: usize,
    /// The seed of the hash of the tokens.
    #[serde(default)]
    pub seed: u64,
    /// The tokenizer that cuts the tokens of the sketch, with the other settings of the profile: one that needs no
    /// dictionary. Without it, the sketch has the tokens of the fingerprint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<TokenizerKind>,
}

/// The distances that make a pair.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JoinConfig {
    /// The largest Hamming distance of two fingerprints. With `earlier`, this is that of two documents of one night.
    pub max_distance: u32,
    /// The largest distance of two sketches. Without it, sketches are not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_sketch_distance: Option<u32>,
    /// What finds the pairs with documents of earlier nights, in place of `max_distance`. Their sketches have to be near too. A
    /// job with another `max_distance` than its profile has none, unless it writes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<EarlierConfig>,
}

/// The keys by which documents of earlier nights are found: two documents are compared if they are near in any of them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EarlierConfig {
    /// The largest Hamming distance of two fingerprints.
    pub max_distance: u32,
    /// The number of words of 64 bits of the sketch that are keys too: the first ones, at most 4.
    #[schemars(range(max = 4))]
    pub words: u32,
    /// The largest Hamming distance of two such words.
    pub max_word_distance: u32,
}

/// Returns the lost share of profiles that have no other. evidence/judge has the measurement behind it.
pub(crate) fn usual_lost_share() -> f64 {
    0.08
}

impl JoinConfig {
    /// Returns the limits in the form that the join takes.
    ///
    /// # Errors
    /// [`ProfileError::Config`] if `bits` is not 32 or 64, if `max_distance` is not below `bits`, or if
    /// `max_sketch_distance` is not below 256.
    pub fn verifier(&self, bits: u32) -> Result<Verifier> {
        let invalid = |key: &str, reason: String| ProfileError::Config { key: key.to_owned(), reason };
        if !matches!(bits, 32 | 64) {
            let reason = format!("stores and joins take fingerprints of 32 or 64 bits, not {bits}: set bits = 64");
            return Err(invalid("bits", reason));
        }
        let max_distance = distance_below("max_distance", self.max_distance, "fingerprint", bits)?;
        let sketch_limit = |d: u32| match u16::try_from(d) {
            Ok(limit) if limit < 256 => Ok(limit),
            _ => Err(invalid("max_sketch_distance", format!("{d} is not below the sketch's 256 bits"))),
        };
        let max_sketch_distance = self.max_sketch_distance.map(sketch_limit).transpose()?;
        Ok(Verifier { max_distance, words: WordKeys::NONE, max_sketch_distance, judged_to: None })
    }

    /// Returns the limits of a pair with a document of an earlier night, in the form that the join takes.
    ///
    /// # Errors
    /// As [`verifier`](Self::verifier), and [`ProfileError::Config`] if `earlier` has a distance that its key cannot have, or words
    /// where sketches are not compared.
    pub fn verifier_of_earlier(&self, bits: u32) -> Result<Verifier> {
        let own = self.verifier(bits)?;
        let Some(earlier) = self.earlier else { return Ok(own) };
        let invalid = |reason: String| ProfileError::Config { key: "join.earlier.words".to_owned(), reason };
        let max_distance = distance_below("join.earlier.max_distance", earlier.max_distance, "fingerprint", bits)?;
        let of_words = distance_below("join.earlier.max_word_distance", earlier.max_word_distance, "word", u64::BITS)?;
        let n = u8::try_from(earlier.words)
            .ok()
            .filter(|&n| n <= Sketch::WORDS)
            .ok_or_else(|| invalid(format!("{} is more than the sketch's {} words", earlier.words, Sketch::WORDS)))?;
        if n > 0 && own.max_sketch_distance.is_none() {
            let reason = format!("{n}, but sketches are not compared: set join.max_sketch_distance, or write 0");
            return Err(invalid(reason));
        }
        let words = if n > 0 { WordKeys { n, max_distance: of_words } } else { WordKeys::NONE };
        Ok(Verifier { max_distance, words, ..own })
    }
}

/// Returns a distance of a key, which is named in an error, if it is below the bits of what it is a distance of.
fn distance_below(key: &str, distance: u32, of: &str, bits: u32) -> Result<u8> {
    let fits = u8::try_from(distance).ok().filter(|&k| u32::from(k) < bits);
    let reason = || format!("{distance} is not below the {of}'s {bits} bits");
    fits.ok_or_else(|| ProfileError::Config { key: key.to_owned(), reason: reason() })
}

impl ProfileConfig {
    /// Returns the judge with what it needs of the sketch, if the profile has both, compares sketches, and lets the judge
    /// look at pairs. Sketches that make a pair as far as the judge would read leave it nothing to decide.
    #[must_use]
    pub fn judge(&self) -> Option<Judge> {
        let near = self.join.max_sketch_distance?;
        let config = self.judge.filter(|config| config.max_looks > 0 && near < config.max_sketch_distance)?;
        Some(Judge { config, shingle: self.sketch.as_ref()?.shingle })
    }

    /// Returns the limits of two documents whose texts are at hand, as those of one night are: with those of the judge.
    ///
    /// # Errors
    /// As [`JoinConfig::verifier`].
    pub fn verifier_with_texts(&self) -> Result<Verifier> {
        let verifier = self.join.verifier(self.bits)?;
        Ok(self.judge().map_or(verifier, |judge| verifier.with_judge(&judge.config)))
    }

    /// Checks the rules that the types cannot express.
    ///
    /// # Errors
    /// [`ProfileError::Config`], which names the key.
    pub fn validate(&self) -> Result<()> {
        let invalid =
            |key: &str, reason: &str| Err(ProfileError::Config { key: key.to_owned(), reason: reason.to_owned() });
        if !matches!(self.bits, 32 | 64 | 128) {
            return invalid("bits", "fingerprints have 32 or 64 bits, or 128, which stores and joins do not take");
        }
        if let Err(error) = self.fingerprint.validate(self.bits) {
            return invalid("fingerprint.feature_hash", &error.to_string());
        }
        let floor = self.tokenize.min_features.smallest();
        if let Weight::TfIdf { top: Top::Best(best) } = self.tokenize.features.weight
            && (best as usize) < floor
        {
            let reason = format!(
                "{best} features are fewer than tokenize.min_features asks for, {floor}: no text would have a fingerprint"
            );
            return invalid("tokenize.features.weight", &reason);
        }
        if self.sketch.as_ref().is_some_and(|s| s.shingle == 0) {
            return invalid("sketch.shingle", "a shingle has at least one token");
        }
        if let Some(kind @ (TokenizerKind::Mixed | TokenizerKind::Jieba | TokenizerKind::Cppjieba)) =
            self.sketch.as_ref().and_then(|s| s.tokenizer)
        {
            return invalid("sketch.tokenizer", &format!("`{kind}` needs a dictionary: use `words` or `pairs`"));
        }
        if self.sketch.is_none() && self.join.max_sketch_distance.is_some() {
            let reason = "this profile makes no sketches: leave it out, or set [sketch] shingle = 2";
            return invalid("join.max_sketch_distance", reason);
        }
        if !(0.0..=1.0).contains(&self.max_lost_share) {
            return invalid(
                "max_lost_share",
                &format!("{} is not a share: write a number from 0 to 1", self.max_lost_share),
            );
        }
        self.validate_judge()?;
        // The widest have no join whose distances could be wrong.
        if self.bits == 128 { Ok(()) } else { self.join.verifier_of_earlier(self.bits).map(drop) }
    }

    fn validate_judge(&self) -> Result<()> {
        let Some(judge) = &self.judge else { return Ok(()) };
        let invalid = |key: &str, reason: String| Err(ProfileError::Config { key: format!("judge.{key}"), reason });
        if judge.max_sketch_distance >= Sketch::BITS {
            let reason = format!("{} is not below the sketch's {} bits", judge.max_sketch_distance, Sketch::BITS);
            return invalid("max_sketch_distance", reason);
        }
        if judge.min_sketch_distance > judge.max_sketch_distance {
            let (min, max) = (judge.min_sketch_distance, judge.max_sketch_distance);
            return invalid("min_sketch_distance", format!("{min} is above judge.max_sketch_distance = {max}"));
        }
        let shares = [
            ("min_edit_similarity", judge.min_edit_similarity),
            ("min_contained", judge.min_contained),
            ("min_opening", judge.min_opening),
        ];
        for (key, share) in shares {
            if !(share > 0.0 && share <= 1.0) {
                return invalid(key, format!("{share} is not a share: above 0, and at most 1"));
            }
        }
        Ok(())
    }

    /// Returns the settings by which the tokens of the sketch are cut, if they are not those of the fingerprint.
    pub(crate) fn sketch_tokenize(&self) -> Option<TokenizeConfig> {
        let kind = self.sketch.as_ref()?.tokenizer.filter(|&kind| kind != self.tokenize.tokenizer.kind)?;
        let mut tokenize = self.tokenize.clone();
        tokenize.tokenizer = TokenizerConfig { kind, ..tokenize.tokenizer }.without_unused();
        tokenize.stop_words.drop_parts_of_speech.clear();
        tokenize.features = FeatureConfig::default();
        Some(tokenize)
    }
}
