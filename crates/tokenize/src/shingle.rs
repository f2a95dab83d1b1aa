use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

use crate::config::FeatureConfig;
use crate::tokens::Tokens;
use crate::weight::ONE;

/// The byte that joins the tokens of a shingle. Normalisation removes control characters, so no token contains it by
/// default.
const SEPARATOR: u8 = 0x1F;

/// The distinct features of one text with their weights, in the order of their first occurrence.
///
/// All features are ranges of one buffer of joined tokens, so a text costs the same few allocations however many
/// features it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Features {
    joined: Vec<u8>,
    features: Vec<(Range<usize>, u64)>,
    /// The number of units of weight that make 1.
    unit: u64,
}

impl Features {
    /// Iterates over each distinct feature, in UTF-8 (the tokens of a shingle are joined by one 0x1F byte), and its
    /// weight in units of 1/65536. Under [`Weight::TfIdf`](crate::Weight::TfIdf) the weights are in another unit, which
    /// is the same for all features of the text, and the heaviest feature comes first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], u64)> {
        self.features.iter().map(|(range, weight)| (&self.joined[range.clone()], *weight))
    }

    /// Returns the number of units of weight that make 1: 65536, or a power of two under [`Weight::TfIdf`](crate::Weight::TfIdf).
    #[must_use]
    pub fn unit(&self) -> u64 {
        self.unit
    }

    /// Distinct features with their weights, in this order.
    pub(crate) fn of<'a>(weighted: impl Iterator<Item = (&'a [u8], u64)>, unit: u64) -> Self {
        let mut new = Self { joined: Vec::new(), features: Vec::new(), unit };
        for (feature, weight) in weighted {
            let start = new.joined.len();
            new.joined.extend_from_slice(feature);
            new.features.push((start..new.joined.len(), weight));
        }
        new
    }

    /// Returns the number of distinct features.
    #[must_use]
    pub fn n_distinct(&self) -> usize {
        self.features.len()
    }
}

/// Returns the distinct shingles of `tokens` weighted by `config`. If there are fewer tokens than a shingle has, but at
/// least one, they make one shingle.
pub(crate) fn features(tokens: &Tokens<'_>, config: &FeatureConfig) -> Features {
    let (joined, token_ranges) = join(tokens);
    let mut features = count(&joined, shingles(&token_ranges, config.shingle.max(1)));
    for (feature, count) in &mut features {
        *count = config.weight_of_token(&joined[feature.clone()], *count);
    }
    Features { joined, features, unit: ONE }
}

/// Returns the tokens in one buffer with a separator between them, and the range of each.
fn join(tokens: &Tokens<'_>) -> (Vec<u8>, Vec<Range<usize>>) {
    let n_bytes: usize = tokens.iter().map(|token| token.len() + 1).sum();
    let mut joined = Vec::with_capacity(n_bytes);
    let mut ranges = Vec::with_capacity(tokens.len());
    for token in tokens.iter() {
        if !ranges.is_empty() {
            joined.push(SEPARATOR);
        }
        ranges.push(joined.len()..joined.len() + token.len());
        joined.extend_from_slice(token.as_bytes());
    }
    debug_assert_eq!(
        joined.len(),
        n_bytes.saturating_sub(1),
        "a separator stands between any two tokens, and nowhere else"
    );
    (joined, ranges)
}

/// Returns every window of `width` tokens, as one range of the joined buffer.
fn shingles(tokens: &[Range<usize>], width: usize) -> impl Iterator<Item = Range<usize>> {
    tokens.windows(width.min(tokens.len()).max(1)).map(|window| window[0].start..window[window.len() - 1].end)
}

/// Returns the distinct byte strings among `ranges`, by first occurrence, with the number of occurrences.
fn count(bytes: &[u8], ranges: impl Iterator<Item = Range<usize>>) -> Vec<(Range<usize>, u64)> {
    let mut distinct: Vec<(Range<usize>, u64)> = Vec::new();
    let mut seen: HashMap<&[u8], usize> = HashMap::with_capacity(ranges.size_hint().0 / 2);
    for range in ranges {
        match seen.entry(&bytes[range.clone()]) {
            Entry::Occupied(at) => distinct[*at.get()].1 += 1,
            Entry::Vacant(free) => {
                free.insert(distinct.len());
                distinct.push((range, 1));
            }
        }
    }
    distinct
}
