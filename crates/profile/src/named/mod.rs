//! Named profiles, which have all settings from text to pair, one file each. A new profile is one new file and one line
//! in [`PROFILES`].

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

/// The name of a profile, its description, the function that makes it, and the widths of fingerprints that its program
/// has, including the usual one.
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

/// Makes the tokenizing that the published programs share: every token of the text as it is, weighted by its count, and
/// any text that has a token.
#[cfg(feature = "published")]
fn as_it_is(kind: TokenizerKind) -> TokenizeConfig {
    let java = java::profile().tokenize;
    TokenizeConfig { tokenizer: TokenizerConfig { kind, ..java.tokenizer }, ..java }
}

/// Makes the profile of a published program's fingerprint, without its search and without a sketch: a pair is two
/// documents within the distance of the paper.
#[cfg(feature = "published")]
fn published(bits: u32, tokenize: TokenizeConfig, fingerprint: FingerprintConfig) -> ProfileConfig {
    ProfileConfig { bits, tokenize, fingerprint, ..java::profile() }
}

/// Returns the profile of a name.
///
/// # Errors
/// [`ProfileError::Config`], which lists the existing names, if there is no such profile.
pub fn by_name(name: &str) -> Result<ProfileConfig> {
    entry(name).map(|(_, _, make, _)| make())
}

/// Returns the profile of a name with fingerprints of `bits` bits, as its program makes them.
///
/// # Errors
/// [`ProfileError::Width`], which lists the widths that the program has, if it does not have this one; the same as
/// those of [`by_name`].
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
