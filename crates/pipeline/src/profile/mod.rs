//! Named profiles: everything from text to pair, one file each. A new profile is one new file and one line in [`PROFILES`].

mod default;
mod hanlp_java;
mod java;
mod paper;

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
];

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
