//! Named profiles, which have all settings from text to pair, one file each. A new profile is one new file and one line
//! in the list of its folder.

mod default;
mod han_bigrams;
mod loose;
mod paper;
#[cfg(feature = "published")]
mod published;
mod strict;

use crate::config::ProfileConfig;
use crate::error::{ProfileError, Result};

/// The name of a profile, its description, the function that makes it, and the widths of fingerprints that its program
/// has, including the usual one.
pub type NamedProfile = (&'static str, &'static str, fn() -> ProfileConfig, &'static [u32]);

const OWN: &[NamedProfile] = &[
    ("default", default::ABOUT, default::profile, &[32, 64, 128]),
    ("strict", strict::ABOUT, strict::profile, &[32, 64, 128]),
    ("loose", loose::ABOUT, loose::profile, &[32, 64, 128]),
    ("han-bigrams", han_bigrams::ABOUT, han_bigrams::profile, &[32, 64, 128]),
    ("paper", paper::ABOUT, paper::profile, &[32, 64, 128]),
];

/// Returns all profiles: nearprint's own, then those of published programs.
pub fn profiles() -> impl Iterator<Item = &'static NamedProfile> {
    #[cfg(feature = "published")]
    let published = published::PROFILES;
    #[cfg(not(feature = "published"))]
    let published = &[];
    OWN.iter().chain(published)
}

/// Returns the profile of a name.
///
/// ```
/// use nearprint_profile::{ProfileConfig, by_name};
///
/// let profile = by_name("default")?;
/// assert_eq!((profile.bits, profile.join.max_distance), (64, 12));
/// ProfileConfig { bits: 32, ..profile }.validate()?;
/// assert!(by_name("no such profile").is_err());
/// # Ok::<(), nearprint_profile::ProfileError>(())
/// ```
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
        ("sing1ee", 32) => published::sing1ee::profile_of_32_bits(),
        _ => ProfileConfig { bits, ..make() },
    })
}

fn entry(name: &str) -> Result<&'static NamedProfile> {
    profiles().find(|(known, ..)| *known == name).ok_or_else(|| ProfileError::Config {
        key: "profile".to_owned(),
        reason: format!("no profile '{name}': use {}", profiles().map(|p| p.0).collect::<Vec<_>>().join(", ")),
    })
}
