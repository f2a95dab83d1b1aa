//! One text, its fingerprint and its sketch, and their description in the summary.

use std::fmt::Write;

use nearprint_fault::counted;
use nearprint_fingerprint::{Sketch, TextWords};
use schemars::JsonSchema;
use serde::Serialize;

use nearprint_profile::{DissectedText, Outcome, ProfileConfig, TextFingerprinter};
use nearprint_tokenize::ONE;

/// Says whether a text has a fingerprint, and if not, why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TextStatus {
    /// It has one.
    Fingerprinted,
    /// It has fewer distinct features than the floor of its script.
    TooShort,
    /// Nothing is left of it after normalisation.
    Empty,
    /// The document has no text.
    NullText,
}

impl TextStatus {
    /// Returns the words for people.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Fingerprinted => "fingerprinted",
            Self::TooShort => "too short",
            Self::Empty => "empty",
            Self::NullText => "null text",
        }
    }
}

/// The description of one text.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ExplainedText {
    /// The id of the document, or the given name of the text.
    pub id: String,
    /// The file of the text. If several nights have the document, the file is that of the newest night. `None` means
    /// that the text was given directly.
    pub file: Option<String>,
    /// The outcome: the text has a fingerprint, or a reason for having none.
    pub status: TextStatus,
    /// The reason why the text has no fingerprint.
    pub reason: Option<String>,
    /// The number of characters of the normalised text.
    pub length: u64,
    /// The number of distinct features.
    pub n_features: u64,
    /// The fingerprint in hexadecimal.
    pub fingerprint: Option<String>,
    /// The sketch in hexadecimal, as it is stored.
    pub sketch: Option<String>,
}

/// A text as it was given or found, with its name.
#[derive(Debug)]
pub struct Named {
    pub id: String,
    pub file: Option<String>,
    /// The text. `None` means NULL.
    pub text: Option<String>,
}

/// A text and the results of its analysis.
#[derive(Debug)]
pub struct Taken {
    pub id: String,
    file: Option<String>,
    /// The analysed text. `None` means NULL.
    text: Option<DissectedText>,
    /// What the judge reads. `None` means that the profile has no judge, or the text no fingerprint.
    pub words: Option<TextWords>,
}

impl Taken {
    pub fn of(named: Named, fingerprinter: &TextFingerprinter) -> Self {
        let Named { id, file, text } = named;
        let dissected = text.as_ref().map(|text| fingerprinter.dissect(text));
        let has_judge = fingerprinter.config().judge().is_some();
        let is_judged = |t: &DissectedText| has_judge && matches!(t.outcome, Outcome::Fingerprinted { .. });
        let words = text.filter(|_| dissected.as_ref().is_some_and(is_judged)).and_then(|t| fingerprinter.words(&t));
        Self { id, file, text: dissected, words }
    }

    pub fn outcome(&self) -> Option<&Outcome> {
        self.text.as_ref().map(|t| &t.outcome)
    }

    pub fn fingerprint(&self) -> Option<u64> {
        match self.outcome()? {
            Outcome::Fingerprinted { fingerprint, .. } => Some(*fingerprint),
            _ => None,
        }
    }

    pub fn sketch(&self) -> Option<&Sketch> {
        match self.outcome()? {
            Outcome::Fingerprinted { sketch, .. } => sketch.as_ref(),
            _ => None,
        }
    }

    pub fn normalized(&self) -> &str {
        self.text.as_ref().map_or("", |t| &t.normalized)
    }

    /// Returns the features, and the number of units of weight that make 1.
    pub fn features(&self) -> (&[(Vec<u8>, u64)], u64) {
        self.text.as_ref().map_or((&[], ONE), |t| (&t.features, t.unit))
    }

    pub fn explained(&self, profile: &ProfileConfig) -> ExplainedText {
        let n_features = self.features().0.len() as u64;
        let floor = profile.tokenize.min_features;
        let (status, reason) = match self.outcome() {
            None => (TextStatus::NullText, Some("its text is NULL".to_owned())),
            Some(Outcome::Empty) => (TextStatus::Empty, Some("nothing is left of it after normalisation".to_owned())),
            Some(Outcome::TooShort { .. }) => (
                TextStatus::TooShort,
                Some(format!(
                    "it has {}; the floor is {} for Chinese, {} for other text without spaces between words, {} for other text",
                    counted(n_features, "distinct feature"),
                    floor.han,
                    floor.unspaced.unwrap_or(floor.other),
                    floor.other
                )),
            ),
            Some(Outcome::Fingerprinted { .. }) => (TextStatus::Fingerprinted, None),
        };
        let width = profile.bits as usize / 4;
        ExplainedText {
            id: self.id.clone(),
            file: self.file.clone(),
            status,
            reason,
            length: self.normalized().chars().count() as u64,
            n_features,
            fingerprint: self.fingerprint().map(|f| format!("{f:0width$x}")),
            sketch: self.sketch().map(|s| {
                s.0.iter().fold(String::new(), |mut hex, byte| {
                    let _ = write!(hex, "{byte:02x}");
                    hex
                })
            }),
        }
    }
}

pub fn distance(a: &Taken, b: &Taken) -> Option<u32> {
    Some((a.fingerprint()? ^ b.fingerprint()?).count_ones())
}

pub fn sketch_distance(a: &Taken, b: &Taken) -> Option<u32> {
    Some(a.sketch()?.distance(b.sketch()?))
}
