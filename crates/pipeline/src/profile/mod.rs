//! Named profiles: everything from text to pair, one file each. A new profile is one new file and one line in [`PROFILES`].

mod cppjieba;
mod default;
mod gaoya;
mod hanlp_java;
mod java;
mod mllearning;
mod paper;
mod python_simhash;
mod seomoz;
mod simhash_crate;
mod sing1ee;

use nearprint_fingerprint::FingerprintConfig;
use nearprint_tokenize::{TokenizeConfig, TokenizerConfig, TokenizerKind};

use crate::config::ProfileConfig;
use crate::error::{PipelineError, Result};

/// Name, what it is, and how it is made.
type Profile = (&'static str, &'static str, fn() -> ProfileConfig);

/// All profiles.
pub const PROFILES: &[Profile] = &[
    ("default", default::ABOUT, default::profile),
    ("paper", paper::ABOUT, paper::profile),
    ("java", java::ABOUT, java::profile),
    ("hanlp-java", hanlp_java::ABOUT, hanlp_java::profile),
    ("cppjieba", cppjieba::ABOUT, cppjieba::profile),
    ("gaoya", gaoya::ABOUT, gaoya::profile),
    ("mllearning", mllearning::ABOUT, mllearning::profile),
    ("mllearning-bytes2", mllearning::ABOUT_BYTES2, mllearning::profile_bytes2),
    ("python-simhash", python_simhash::ABOUT, python_simhash::profile),
    ("seomoz", seomoz::ABOUT, seomoz::profile),
    ("simhash-crate", simhash_crate::ABOUT, simhash_crate::profile),
    ("sing1ee", sing1ee::ABOUT, sing1ee::profile),
];

/// Every token of the text as it is, by its count, and any text with a token: what the published programs have in common.
fn as_it_is(kind: TokenizerKind) -> TokenizeConfig {
    let java = java::profile().tokenize;
    TokenizeConfig { tokenizer: TokenizerConfig { kind, ..java.tokenizer }, ..java }
}

/// A published program's fingerprint, with neither its search nor a sketch: pairs within the distance of the paper.
fn published(bits: u32, tokenize: TokenizeConfig, fingerprint: FingerprintConfig) -> ProfileConfig {
    ProfileConfig { bits, tokenize, fingerprint, ..java::profile() }
}

/// The profile of a name.
///
/// # Errors
/// [`PipelineError::Config`] listing the names there are.
pub fn by_name(name: &str) -> Result<ProfileConfig> {
    let found = PROFILES.iter().find(|(known, ..)| *known == name);
    found.map(|(_, _, make)| make()).ok_or_else(|| PipelineError::Config {
        key: "profile".to_owned(),
        reason: format!("no profile '{name}': use {}", PROFILES.iter().map(|p| p.0).collect::<Vec<_>>().join(", ")),
    })
}
