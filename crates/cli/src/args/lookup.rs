//! The store that is searched, for `query` and `serve`.

use std::path::PathBuf;

use clap::Args;
use nearprint_profile::HtmlText;

use super::file_names::local_path;
use super::profile::profile_help;
use crate::place::{Given, place};

/// The store that is searched, and the limits within which its documents match.
#[derive(Debug, Clone, Args)]
pub struct LookupArgs {
    /// Store, instead of the job file's
    #[arg(long, value_name = "PATH", value_parser = place)]
    pub store: Option<Given>,
    /// Job file, for its store, its profile and its distances
    #[arg(long, short, value_name = "FILE", value_parser = local_path())]
    pub config: Option<PathBuf>,
    /// Largest Hamming distance of a match, in place of the keys by which nights find earlier documents
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(0..=63))]
    pub max_distance: Option<u32>,
    /// Largest sketch distance of a match [default: the profile's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=255))]
    pub max_sketch_distance: Option<u32>,
    #[arg(long, value_name = "NAME", help = profile_help())]
    pub profile: Option<String>,
    /// Override one key of the profile, such as tokenize.features.weight=count; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// Text of web pages in the store: main, all, or selector=CSS [default: the job file's, or main]
    #[arg(long, value_name = "TEXT")]
    pub html_text: Option<HtmlText>,
}
