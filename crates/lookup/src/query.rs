//! Queries: a text or a fingerprint, and the limits within which a document matches.

use std::num::NonZero;

use nearprint_fault::{Fault, Result};
use nearprint_fingerprint::Sketch;
use nearprint_join::{Kernel, Verifier};
use nearprint_profile::{
    Configuration, EarlierConfig, HtmlText, JoinConfig, Outcome, ProfileConfig, TextFingerprinter,
};
use nearprint_tokenize::Resources;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use crate::error::{BadQuestion, bad_query};

/// A question to a store: which documents are near this one?
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Query {
    /// A text. It is fingerprinted by the profile of the store. A text below the profile's floor of features is looked
    /// up by its hash.
    Text(String),
    /// The document of the store with this id, by its stored fingerprint and sketch. It is no match of itself.
    Document(String),
    /// A fingerprint.
    Fingerprint {
        /// The fingerprint; one of 32 bits is zero-extended.
        fingerprint: u64,
        /// The sketch. Without it, sketches are not compared.
        sketch: Option<Sketch>,
    },
}

/// A question in JSON: `text`, `document_id`, or `fingerprint` and perhaps its `sketch`. Other fields are ignored, and so is a
/// `document_id` beside one of the others, or one that is no text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct JsonQuery {
    /// The text.
    pub text: Option<String>,
    /// The id of a document of the store, instead of a text.
    #[serde(deserialize_with = "text_or_none")]
    pub document_id: Option<String>,
    /// The fingerprint, instead of a text.
    pub fingerprint: Option<FingerprintText>,
    /// The sketch of the fingerprint: 64 hex digits. Without it, sketches are not compared.
    pub sketch: Option<String>,
}

/// Reads a text. Another value is none.
fn text_or_none<'de, D: Deserializer<'de>>(field: D) -> std::result::Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Field {
        Text(String),
        Other(IgnoredAny),
    }
    Ok(match Field::deserialize(field)? {
        Field::Text(text) => Some(text),
        Field::Other(_) => None,
    })
}

/// A fingerprint in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "a fingerprint is a whole number of 64 bits, or hex digits as a string")]
pub enum FingerprintText {
    /// The value.
    Number(u64),
    /// Hex with all digits or after `0x`, or decimal with more or fewer digits.
    Text(String),
}

impl JsonQuery {
    /// Returns the query that is asked.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](nearprint_fault::ErrorKind::Usage) if the question is none, or its fingerprint or sketch
    /// cannot be read.
    pub fn query(self, profile: &LookupProfile) -> Result<Query> {
        match self {
            // Whoever has the text or the fingerprint asks for it, whatever document the row names.
            Self { text: Some(text), fingerprint: None, .. } => Ok(Query::Text(text)),
            Self { text: None, document_id: Some(id), fingerprint: None, .. } => Ok(Query::Document(id)),
            Self { text: None, fingerprint: Some(fingerprint), sketch, .. } => {
                let sketch = sketch.as_deref().map(parse_sketch).transpose()?;
                let fingerprint = match fingerprint {
                    FingerprintText::Number(value) => value,
                    FingerprintText::Text(text) => profile.parse_fingerprint(&text)?,
                };
                Ok(Query::Fingerprint { fingerprint, sketch })
            }
            _ => {
                let reason = "write \"text\", \"document_id\", or \"fingerprint\" and perhaps \"sketch\"".to_owned();
                Err(bad_query("the question".to_owned(), reason))
            }
        }
    }
}

/// The limits of a lookup, and what it may use.
#[derive(Debug, Clone, PartialEq)]
pub struct LookupOptions {
    /// The keys by which documents are found: those that are near in any of them. Without a sketch of its own, a query has no
    /// words, and is compared by its fingerprint alone.
    pub keys: EarlierConfig,
    /// The largest distance of two sketches that match, for queries that have a sketch; `None` compares no sketches,
    /// and only reports their distances.
    pub max_sketch_distance: Option<u32>,
    /// The most matches that an answer lists; 0 lists all of them. The answer counts those that it leaves out.
    pub max_matches: usize,
    /// The bytes of fingerprints that stay in memory between queries. Beyond, they are read and decoded again.
    pub memory_bytes: usize,
    /// The bytes that all queries under way which are answered alone take together: half of them for near rows and for
    /// answers that nobody has taken yet, half for what is read. Queries wait for their turn.
    pub query_bytes: usize,
    /// The most bytes of the matches that an answer lists, in memory and in JSON. An answer with more is an error.
    pub max_answer_bytes: usize,
    /// The instructions that compare fingerprints.
    pub kernel: Kernel,
    /// When many queries at once are joined with the fingerprints of the store.
    pub joined: WhenJoined,
    /// The near rows of a join that are held with their sketches: about 100 bytes each. If a join has more, fewer queries
    /// are joined at once. A query alone holds at most 65,536, whatever it finds.
    pub max_near_rows: usize,
    /// The matching rows of a join that are held with their documents: about 300 bytes each. If a join has more, fewer
    /// queries are joined at once.
    pub max_matching_rows: usize,
    /// The bytes that a join may take beside these rows and beside the fingerprints that stay in memory.
    pub join_bytes: usize,
    /// The threads of a join. Twice as many queries are answered alone at the same time.
    pub threads: usize,
}

/// When many queries at once are joined with all fingerprints of the store. The answers are the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WhenJoined {
    /// If that takes less time than to answer them one by one, as estimated.
    #[default]
    IfFaster,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The near rows of a join that are held, by default, and about the bytes of each.
const MAX_NEAR_ROWS: usize = 1 << 20;
const NEAR_ROW_BYTES: usize = 100;
/// The matching rows of a join that are held, by default, and about the bytes of each.
const MAX_MATCHING_ROWS: usize = 1 << 18;
const MATCHING_ROW_BYTES: usize = 300;
/// The bytes of a join, by default: 256 MiB.
const JOIN_BYTES: usize = 256 << 20;

/// The bytes of all queries under way, by default: 1 GiB.
const QUERY_BYTES: usize = 1 << 30;

/// The fingerprints that stay in memory, by default: 1 GiB.
const MEMORY_BYTES: usize = 1 << 30;

impl LookupOptions {
    /// Returns the keys and distances by which a night of a profile finds documents of earlier nights, without a limit to the
    /// number of matches.
    #[must_use]
    pub fn of(profile: &ProfileConfig) -> Self {
        Self {
            keys: profile.join.earlier.unwrap_or_else(|| fingerprints_within(profile.join.max_distance)),
            max_sketch_distance: profile.join.max_sketch_distance,
            max_matches: 0,
            memory_bytes: MEMORY_BYTES,
            query_bytes: QUERY_BYTES,
            max_answer_bytes: usize::MAX,
            kernel: Kernel::best(),
            joined: WhenJoined::default(),
            max_near_rows: MAX_NEAR_ROWS,
            max_matching_rows: MAX_MATCHING_ROWS,
            join_bytes: JOIN_BYTES,
            threads: std::thread::available_parallelism().map_or(1, NonZero::get),
        }
    }

    /// Returns the options with another distance of fingerprints, if there is one. These are the only key then.
    #[must_use]
    pub fn within_distance(self, max_distance: Option<u32>) -> Self {
        Self { keys: max_distance.map_or(self.keys, fingerprints_within), ..self }
    }

    /// Returns the options for a process that may take `limit` bytes.
    #[must_use]
    pub fn within(self, limit: usize) -> Self {
        Self {
            memory_bytes: self.memory_bytes.min(limit / 2),
            query_bytes: limit / 4,
            max_answer_bytes: limit / 8,
            join_bytes: self.join_bytes.min(limit / 4),
            max_near_rows: self.max_near_rows.min(limit / 8 / NEAR_ROW_BYTES),
            max_matching_rows: self.max_matching_rows.min(limit / 8 / MATCHING_ROW_BYTES),
            ..self
        }
    }

    /// Checks the distances, which must fit the profile.
    pub(crate) fn verifier(&self, profile: &ProfileConfig) -> Result<Verifier> {
        if profile.sketch.is_none() && self.max_sketch_distance.is_some() {
            let reason = "this profile makes no sketches: leave it out".to_owned();
            return Err(Fault::config("max_sketch_distance", reason).about(BadQuestion::Setting));
        }
        let (max_distance, max_sketch_distance) = (self.keys.max_distance, self.max_sketch_distance);
        let earlier = Some(self.keys).filter(|keys| keys.words > 0);
        Ok(JoinConfig { max_distance, max_sketch_distance, earlier }.verifier_of_earlier(profile.bits)?)
    }
}

/// Returns the fingerprints as the only key.
fn fingerprints_within(max_distance: u32) -> EarlierConfig {
    EarlierConfig { max_distance, words: 0, max_word_distance: 0 }
}

/// A profile that fingerprints queries, and the digest by which it is recognised as a store's own.
#[derive(Debug)]
pub struct LookupProfile {
    fingerprinter: TextFingerprinter,
    configuration: Configuration,
    digest: String,
}

impl LookupProfile {
    /// Makes the profile of a configuration; `resources` are the contents of the user's files, and `html_text` is the
    /// text that the store's nights took from web pages.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](nearprint_fault::ErrorKind::Config) if the configuration or a file cannot be used.
    pub fn try_new(config: ProfileConfig, resources: &Resources, html_text: &HtmlText) -> Result<Self> {
        let configuration = Configuration::new(&config, resources, html_text);
        let digest = configuration.digest();
        Ok(Self { fingerprinter: TextFingerprinter::try_new(config, resources)?, configuration, digest })
    }

    /// Returns the configuration.
    #[must_use]
    pub fn config(&self) -> &ProfileConfig {
        self.fingerprinter.config()
    }

    /// Returns everything that a store of this profile has in common with it.
    pub(crate) fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    /// Returns the digest that a store of this profile has.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Returns the number of characters of a text after normalisation.
    #[must_use]
    pub fn length(&self, text: &str) -> u64 {
        self.fingerprinter.fingerprint(text).length
    }

    /// Returns the fingerprint and sketch of a text, or the reason why it has none.
    #[must_use]
    pub fn outcome(&self, text: &str) -> Outcome {
        self.fingerprinter.fingerprint(text).outcome
    }

    /// Returns a fingerprint as text: in hex, with all digits.
    #[must_use]
    pub fn hex(&self, fingerprint: u64) -> String {
        if self.config().bits == 32 { format!("{fingerprint:08x}") } else { format!("{fingerprint:016x}") }
    }

    /// Reads a fingerprint in hex, with all digits as answers have it or after `0x`, or in decimal with more or fewer
    /// digits.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](nearprint_fault::ErrorKind::Usage) if the text is no fingerprint of this profile.
    pub fn parse_fingerprint(&self, text: &str) -> Result<u64> {
        let bits = self.config().bits;
        let refused = |reason: String| bad_query(format!("fingerprint '{text}'"), reason);
        let all_digits = text.len() == bits as usize / 4;
        let is_decimal = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        // The parser takes a sign too, and a fingerprint has none.
        let is_hex = |digits: &str| digits.bytes().all(|b| b.is_ascii_hexdigit());
        let value = match text.strip_prefix("0x") {
            Some(digits) if is_hex(digits) => u64::from_str_radix(digits, 16).ok(),
            None if all_digits && is_hex(text) => u64::from_str_radix(text, 16).ok(),
            None if is_decimal => text.parse().ok(),
            _ => None,
        };
        let value = value.filter(|&value| bits == 64 || u32::try_from(value).is_ok());
        value.ok_or_else(|| refused(format!("write a fingerprint of {bits} bits: {} hex digits, or decimal", bits / 4)))
    }
}

/// Reads a sketch, which is 64 hex digits.
///
/// # Errors
/// [`ErrorKind::Usage`](nearprint_fault::ErrorKind::Usage) if the text is something else.
pub fn parse_sketch(text: &str) -> Result<Sketch> {
    let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let byte = |pair: &[u8; 2]| Some(digit(pair[0])? << 4 | digit(pair[1])?);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let bytes: Option<Vec<u8>> = if rest.is_empty() { pairs.iter().map(byte).collect() } else { None };
    let sketch = bytes.and_then(|bytes| Sketch::try_from(bytes.as_slice()).ok());
    let refused = || bad_query(format!("sketch '{text}'"), "write 64 hex digits".to_owned());
    sketch.ok_or_else(refused)
}
