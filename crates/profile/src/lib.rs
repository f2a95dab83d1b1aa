//! Turns a text into its fingerprint by a named profile: normalise, cut, weigh, fingerprint, sketch.
//!
//! ```text
//! text ─► nearprint-tokenize ─► features ─► nearprint-fingerprint ─► fingerprint, sketch
//!                   └──────── a ProfileConfig says how ────────┘
//! ```
//!
//! Fingerprint one text by the default profile:
//!
//! ```
//! let text = "Near-duplicate pages differ in a date, a counter or an advertisement, and in nothing that a reader would miss.";
//! let a = nearprint_profile::fingerprint(text).ok_or("too short")?;
//! let b = nearprint_profile::fingerprint(&text.to_uppercase()).ok_or("too short")?;
//! assert_eq!(a, b);
//! assert_eq!(nearprint_profile::fingerprint("too short"), None);
//! # Ok::<(), &str>(())
//! ```
//!
//! Fingerprint many texts by a profile of your own, with all results for each text:
//!
//! ```
//! use nearprint_profile::{Outcome, ProfileConfig, TextFingerprinter, by_name};
//! use nearprint_tokenize::Resources;
//!
//! let profile = ProfileConfig { bits: 32, ..by_name("default")? };
//! let fingerprinter = TextFingerprinter::try_new(profile, &Resources::default())?;
//! assert_eq!(fingerprinter.fingerprint(" \n").outcome, Outcome::Empty);
//! # Ok::<(), nearprint_profile::ProfileError>(())
//! ```
//!
//! The crate does no I/O, starts no threads and uses no Arrow type.

mod config;
mod configuration;
mod error;
mod named;
mod text;

pub use config::{ALGORITHM_VERSION, EarlierConfig, JoinConfig, ProfileConfig, SketchConfig};
pub use configuration::{Configuration, Difference};
pub use error::{ProfileError, Result};
pub use named::{NamedProfile, by_name, by_name_and_bits, profiles};
pub use nearprint_html::HtmlText;
pub use text::{DissectedText, FingerprintedText, Outcome, TextFingerprinter, fingerprint};
