//! Inverse document frequencies, which say how rare a word is: the built-in table, and the reading and making of other
//! tables.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
#[cfg(feature = "published")]
use std::sync::OnceLock;

#[cfg(feature = "published")]
use crate::cppjieba::unpack;
use crate::error::TokenizeError;
use crate::partial_sort::keep_heaviest;
use crate::shingle::Features;
use crate::weight::{ONE, Top};

/// jieba's `idf.txt` as cppjieba has it (`idf.utf8`, MIT, see `cppjieba/LICENSE`; 258,826 words), sorted and
/// compressed.
#[cfg(feature = "published")]
const BUILTIN: &[u8] = include_bytes!("cppjieba/idf.txt.zst");

/// The mean over that table, summed in the order of the original file: the sum over the sorted one differs in its last
/// bits.
#[cfg(feature = "published")]
const BUILTIN_MEAN: f64 = 11.739204307083542;

/// The largest idf that a table may hold, which keeps weights far from overflow. The logarithm of any number of
/// documents is below 45.
const MAX_IDF: f64 = 1_000.0;

/// Inverse document frequencies of words.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct IdfTable {
    idf: HashMap<String, f64>,
    /// The idf of a word that is not in the table: the mean over its lines, as cppjieba takes it.
    mean: f64,
}

impl IdfTable {
    /// Reads a table of lines `word idf`, separated by a tab or spaces, like jieba's own table. Blank lines and a byte
    /// order mark are ignored. A feature may contain spaces: the number is the part after the last white space.
    ///
    /// # Errors
    /// [`TokenizeError::Idf`] at the first line that is malformed, at the second line of a word, or if the table has no
    /// words.
    pub(crate) fn parse(text: &str) -> Result<Self, TokenizeError> {
        let mut idf: HashMap<String, f64> = HashMap::new();
        let mut sum = 0.0;
        for (at, line) in text.trim_start_matches('\u{FEFF}').lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let refuse = |reason| TokenizeError::Idf { line: at + 1, text: line.to_owned(), reason };
            let (word, number) = entry(line).map_err(refuse)?;
            if idf.insert(word.to_owned(), number).is_some() {
                return Err(refuse("a word that the table has already"));
            }
            sum += number;
        }
        if idf.is_empty() {
            return Err(TokenizeError::Idf { line: 1, text: String::new(), reason: "no word in the whole table" });
        }
        let mean = sum / idf.len() as f64;
        Ok(Self { idf, mean })
    }

    /// Returns the table that is used if the user gives none. It is decoded once in a process (some tens of
    /// milliseconds and megabytes).
    #[cfg(feature = "published")]
    pub(crate) fn builtin() -> Arc<Self> {
        static TABLE: OnceLock<Arc<IdfTable>> = OnceLock::new();
        #[expect(clippy::expect_used, reason = "a constant of the crate: an empty table would give other weights")]
        let parsed = || Self::parse(&unpack(BUILTIN)).expect("the table in the crate has a word and its number a line");
        Arc::clone(TABLE.get_or_init(|| Arc::new(Self { mean: BUILTIN_MEAN, ..parsed() })))
    }

    #[cfg(not(feature = "published"))]
    pub(crate) fn builtin() -> Arc<Self> {
        unreachable!("weights by a built-in table are refused where there is none")
    }

    fn of(&self, feature: &[u8]) -> f64 {
        let word = std::str::from_utf8(feature);
        debug_assert!(word.is_ok(), "features that are weighed are tokens, and byte pieces are refused");
        word.ok().and_then(|word| self.idf.get(word)).copied().unwrap_or(self.mean)
    }

    /// Gives each feature its count times its idf, and keeps the heaviest of them as `top` says, the heaviest first.
    ///
    /// The products are cppjieba's, in double precision. Their unit is the finest power of two that leaves the heaviest
    /// within 63 bits, so that rounding to it takes nothing from any product unless the heaviest is hundreds of times
    /// as heavy.
    pub(crate) fn weigh(&self, features: &Features, top: Top, text_bytes: usize) -> Features {
        let product = |weight: u64, idf: f64| (weight / ONE) as f64 * idf;
        let mut ranked: Vec<(&[u8], f64)> =
            features.iter().map(|(feature, weight)| (feature, product(weight, self.of(feature)))).collect();
        // What weighs nothing is no feature: a text of such words alone has none.
        ranked.retain(|&(_, weight)| weight > 0.0);
        ranked.sort_unstable_by_key(|&(feature, _)| feature);
        let n = top.limit(text_bytes).unwrap_or(ranked.len());
        keep_heaviest(&mut ranked, n, |&(_, weight)| weight);
        let unit = unit(ranked.first().map_or(0.0, |&(_, heaviest)| heaviest));
        Features::of(ranked.into_iter().map(|(feature, weight)| (feature, in_units(weight, unit))), in_units(1.0, unit))
    }
}

/// Returns the number of units that make 1, which is a power of two.
fn unit(heaviest: f64) -> f64 {
    let mut unit = 1.0;
    while unit < MOST_UNITS && heaviest * unit < MOST_UNITS {
        unit *= 2.0;
    }
    unit
}

/// Twice this many units still fit 64 bits.
const MOST_UNITS: f64 = (1_u64 << 62) as f64;

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the unit keeps weights below 2^63")]
fn in_units(weight: f64, unit: f64) -> u64 {
    (weight * unit).round() as u64
}

/// The word and its number.
fn entry(line: &str) -> Result<(&str, f64), &'static str> {
    let (word, number) =
        line.trim_end().rsplit_once(char::is_whitespace).ok_or("no white space between a word and its number")?;
    let word = word.trim_end();
    if word.is_empty() {
        return Err("no word before the number");
    }
    match number.parse::<f64>() {
        Ok(idf) if (0.0..=MAX_IDF).contains(&idf) => Ok((word, idf)),
        Ok(_) => Err("a number that is not between 0 and 1000"),
        Err(_) => Err("no number at the end"),
    }
}

/// A builder of an idf table: count the documents that have each feature, then [`write`](Self::write) the table.
///
/// The result does not depend on the order of documents, and builders of parts of them can be [merged](Self::merge).
///
/// ```
/// use nearprint_tokenize::IdfBuilder;
///
/// let mut idf = IdfBuilder::default();
/// idf.add(["common", "rare"]);
/// idf.add(["common", "common"]);
/// assert_eq!(idf.write(1), "common\t1.000000\nrare\t1.405465\n");
/// assert_eq!(idf.write(2), "common\t1.000000\n");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IdfBuilder {
    n_documents: u64,
    document_frequency: BTreeMap<String, u64>,
}

impl IdfBuilder {
    /// Counts a document by its features; repeated features count once.
    pub fn add<'a>(&mut self, features: impl IntoIterator<Item = &'a str>) {
        self.n_documents += 1;
        let distinct: HashSet<&str> = features.into_iter().collect();
        for feature in distinct {
            match self.document_frequency.get_mut(feature) {
                Some(count) => *count += 1,
                None => drop(self.document_frequency.insert(feature.to_owned(), 1)),
            }
        }
    }

    /// Adds the counts of another builder, which counted other documents.
    pub fn merge(&mut self, other: Self) {
        self.n_documents += other.n_documents;
        for (feature, count) in other.document_frequency {
            *self.document_frequency.entry(feature).or_default() += count;
        }
    }

    /// Returns the number of documents counted so far.
    #[must_use]
    pub fn n_documents(&self) -> u64 {
        self.n_documents
    }

    /// Returns the number of distinct features that at least `min_documents` documents have and that a table can hold.
    #[must_use]
    pub fn n_features(&self, min_documents: u64) -> usize {
        self.kept(min_documents).count()
    }

    /// Returns the table, with a line for each feature in the order of the features' bytes: `feature`, a tab, and its
    /// idf with six decimals.
    ///
    /// The idf of a feature that df of N documents have is ln((1 + N) / (1 + df)) + 1, which is scikit-learn's smoothed
    /// form. It acts as though one more document had every feature, so that no idf is infinite, and a feature that all
    /// documents have gets 1, so that no feature is without weight. Features of fewer than `min_documents` documents
    /// are left out; when the table is used they get its mean, as names and misspellings do. Features with a line
    /// break, with white space at an end, or with a byte order mark at the start are left out too, because the file
    /// cannot represent them.
    #[must_use]
    pub fn write(&self, min_documents: u64) -> String {
        let mut table = String::new();
        for (feature, &count) in self.kept(min_documents) {
            let idf = ((1 + self.n_documents) as f64 / (1 + count) as f64).ln() + 1.0;
            table.push_str(&format!("{feature}\t{idf:.6}\n"));
        }
        table
    }

    fn kept(&self, min_documents: u64) -> impl Iterator<Item = (&String, &u64)> {
        self.document_frequency.iter().filter(move |&(feature, &count)| {
            let can_be_told = feature.trim() == feature && !feature.is_empty() && !feature.contains(['\n', '\r']);
            count >= min_documents && can_be_told && !feature.starts_with('\u{FEFF}')
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_in_the_crate_is_complete() {
        let table = IdfTable::parse(&unpack(BUILTIN)).unwrap();
        assert_eq!(table.idf.len(), 258_826);
        assert!((table.mean - BUILTIN_MEAN).abs() < 1e-9);
        assert_eq!(table.of("劳动防护".as_bytes()), 13.900677652);
    }
}
