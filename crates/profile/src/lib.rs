//! From a text to its fingerprint, by a named profile: normalise, cut, weigh, fingerprint, sketch.
//!
//! ```text
//! text ─► nearprint-tokenize ─► features ─► nearprint-fingerprint ─► fingerprint, sketch
//!                   └──────── a ProfileConfig says how ────────┘
//! ```
//!
//! One text, by the default profile:
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
//! Many texts, by a profile of one's own, with all that there is to know of each:
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
//! Pure: no I/O, no threads, no Arrow.

mod config;
mod error;
mod named;
mod text;

pub use config::{ALGORITHM_VERSION, JoinConfig, ProfileConfig, SketchConfig};
pub use error::{ProfileError, Result};
pub use named::{NamedProfile, PROFILES, by_name, by_name_and_bits};
pub use text::{DissectedText, FingerprintedText, Outcome, TextFingerprinter, fingerprint};
