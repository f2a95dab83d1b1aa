use std::fmt;
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The weight of 1, in the fixed-point unit of all weights: 1/65536.
pub const ONE: u64 = 1 << 16;

/// The rule for the weight of a feature. Weights are integers, so that their sums do not depend on the order of
/// summing.
///
/// In a job file it is written as `"count"`, `"log_count"`, `"set"`, `{ capped_count = { cap = 6 } }`, `"byte_length"`
/// or `{ tf_idf = { top = "auto" } }`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Weight {
    /// The number of occurrences c (tf, the mode of Manku et al. 2007).
    Count,
    /// 1 + ln c, rounded to the unit.
    LogCount,
    /// 1, regardless of the number of occurrences.
    Set,
    /// min(c, cap). Article 002's rule is a cap of 6: it skips a word whose count is already above 5.
    CappedCount {
        /// The largest number of occurrences that count, at least 1.
        #[schemars(range(min = 1))]
        cap: u32,
    },
    /// c times the number of bytes of the token, which is the feature: mllearning's SimHash. It weighs tokens only, no
    /// shingles.
    ByteLength,
    /// c times the token's inverse document frequency from the user's table ([`Resources::idf`](crate::Resources::idf))
    /// or, if there is none, from jieba's own. A token that the table lacks has the mean over the table, as in
    /// cppjieba. It weighs tokens only, no shingles.
    TfIdf {
        /// The number of features that are kept, the heaviest first.
        #[serde(default)]
        top: Top,
    },
}

/// The name in a job file.
impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Count => "count",
            Self::LogCount => "log_count",
            Self::Set => "set",
            Self::CappedCount { .. } => "capped_count",
            Self::ByteLength => "byte_length",
            Self::TfIdf { .. } => "tf_idf",
        })
    }
}

/// The number of features of a text that count, the heaviest first.
///
/// GNU's C++ library determines which of several equally heavy features are among them; cppjieba's published values
/// depend on this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Top {
    /// All features.
    #[default]
    All,
    /// The number that yanyiwu's simhash takes for a text of this many bytes: bytes / 120, at least 5 and at most 200.
    Auto,
    /// At most this many features, at least 1. In a job file it is written as `{ best = 5 }`.
    Best(u32),
}

impl Top {
    /// Returns the number of features for a text of this many bytes; `None` for all.
    pub(crate) fn limit(self, text_bytes: usize) -> Option<usize> {
        match self {
            Self::All => None,
            Self::Auto => Some((text_bytes / 120).clamp(5, 200)),
            Self::Best(n) => Some(n as usize),
        }
    }
}

impl Weight {
    /// Returns whether the weight is a function of the count alone.
    pub(crate) fn is_of_count(self) -> bool {
        !matches!(self, Self::ByteLength | Self::TfIdf { .. })
    }

    /// Returns the weight of a feature that occurs `count` times (at least once), in units of 1/65536. For weights that
    /// also depend on the feature, returns the factor that they multiply.
    ///
    /// # Panics
    /// Debug builds panic if `count` is 2^48 or more.
    #[must_use]
    pub fn of(self, count: u64) -> u64 {
        debug_assert!(count < 1 << 48, "a text has fewer tokens: the unit leaves room for as many");
        match self {
            Self::Count | Self::ByteLength | Self::TfIdf { .. } => count * ONE,
            Self::LogCount => log_count(count),
            Self::Set => ONE,
            Self::CappedCount { cap } => count.min(u64::from(cap)) * ONE,
        }
    }
}

/// round((1 + ln c)·65536). No c up to a million comes near enough to a rounding boundary for a platform's last bit of
/// `ln` to matter (tested), so this too is the same everywhere.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "1 + ln c lies in 1..46 for any positive u64"
)]
fn compute_log_count(count: u64) -> u64 {
    let c = count.max(1) as f64;
    ((1.0 + c.ln()) * ONE as f64).round() as u64
}

/// The same, of small counts from a table.
fn log_count(count: u64) -> u64 {
    static SMALL: LazyLock<[u64; 64]> = LazyLock::new(|| std::array::from_fn(|count| compute_log_count(count as u64)));
    let small = usize::try_from(count).ok().and_then(|count| SMALL.get(count));
    small.copied().unwrap_or_else(|| compute_log_count(count))
}
