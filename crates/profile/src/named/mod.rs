//! Named profiles: everything from text to pair, one file each. A new profile is one new file and one line in [`PROFILES`].

#[cfg(feature = "published")]
mod cppjieba;
mod default;
#[cfg(feature = "published")]
mod gaoya;
#[cfg(feature = "published")]
mod hanlp_java;
#[cfg(feature = "published")]
mod java;
#[cfg(feature = "published")]
mod mllearning;
mod paper;
#[cfg(feature = "published")]
mod python_simhash;
#[cfg(feature = "published")]
mod seomoz;
#[cfg(feature = "published")]
mod simhash_crate;
#[cfg(feature = "published")]
mod sing1ee;

#[cfg(feature = "published")]
use nearprint_fingerprint::FingerprintConfig;
#[cfg(feature = "published")]
use nearprint_tokenize::{TokenizeConfig, TokenizerConfig, TokenizerKind};

use crate::config::ProfileConfig;
use crate::error::{ProfileError, Result};

/// Name, what it is, how it is made, and the widths of fingerprints that its program has, the usual one among them.
pub type NamedProfile = (&'static str, &'static str, fn() -> ProfileConfig, &'static [u32]);

/// All profiles.
pub const PROFILES: &[NamedProfile] = &[
    ("default", default::ABOUT, default::profile, &[32, 64, 128]),
    ("paper", paper::ABOUT, paper::profile, &[32, 64, 128]),
    #[cfg(feature = "published")]
    ("java", java::ABOUT, java::profile, &[32, 64, 128]),
    #[cfg(feature = "published")]
    ("hanlp-java", hanlp_java::ABOUT, hanlp_java::profile, &[32, 64, 128]),
    #[cfg(feature = "published")]
    ("cppjieba", cppjieba::ABOUT, cppjieba::profile, &[64]),
    #[cfg(feature = "published")]
    ("gaoya", gaoya::ABOUT, gaoya::profile, &[64, 128]),
    #[cfg(feature = "published")]
    ("mllearning", mllearning::ABOUT, mllearning::profile, &[32]),
    #[cfg(feature = "published")]
    ("mllearning-bytes2", mllearning::ABOUT_BYTES2, mllearning::profile_bytes2, &[32]),
    #[cfg(feature = "published")]
    ("python-simhash", python_simhash::ABOUT, python_simhash::profile, &[32, 64, 128]),
    #[cfg(feature = "published")]
    ("seomoz", seomoz::ABOUT, seomoz::profile, &[64]),
    #[cfg(feature = "published")]
    ("simhash-crate", simhash_crate::ABOUT, simhash_crate::profile, &[64]),
    #[cfg(feature = "published")]
    ("sing1ee", sing1ee::ABOUT, sing1ee::profile, &[32, 64]),
];

/// Every token of the text as it is, by its count, and any text with a token: what the published programs have in common.
#[cfg(feature = "published")]
fn as_it_is(kind: TokenizerKind) -> TokenizeConfig {
    let java = java::profile().tokenize;
    TokenizeConfig { tokenizer: TokenizerConfig { kind, ..java.tokenizer }, ..java }
}

/// A published program's fingerprint, with neither its search nor a sketch: pairs within the distance of the paper.
#[cfg(feature = "published")]
fn published(bits: u32, tokenize: TokenizeConfig, fingerprint: FingerprintConfig) -> ProfileConfig {
    ProfileConfig { bits, tokenize, fingerprint, ..java::profile() }
}

/// The profile of a name.
///
/// # Errors
/// [`ProfileError::Config`] with the names that there are.
pub fn by_name(name: &str) -> Result<ProfileConfig> {
    entry(name).map(|(_, _, make, _)| make())
}

/// The same with fingerprints of `bits` bits, as its program makes them.
///
/// # Errors
/// [`ProfileError::Width`] with the widths that the program has; as [`by_name`].
pub fn by_name_and_bits(name: &str, bits: u32) -> Result<ProfileConfig> {
    let (_, _, make, widths) = entry(name)?;
    if !widths.contains(&bits) {
        return Err(ProfileError::Width { name: name.to_owned(), bits, widths });
    }
    Ok(match (name, bits) {
        #[cfg(feature = "published")]
        ("sing1ee", 32) => sing1ee::profile_of_32_bits(),
        _ => ProfileConfig { bits, ..make() },
    })
}

fn entry(name: &str) -> Result<&'static NamedProfile> {
    PROFILES.iter().find(|(known, ..)| *known == name).ok_or_else(|| ProfileError::Config {
        key: "profile".to_owned(),
        reason: format!("no profile '{name}': use {}", PROFILES.iter().map(|p| p.0).collect::<Vec<_>>().join(", ")),
    })
}
