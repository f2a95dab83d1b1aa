//! The arguments of `nearprint join`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use nearprint_pipeline::PairsMode;

use super::file_names::local_path;
use super::numbers::bits;
use crate::place::{Given, place};

/// The default maximum number of pairs that `--pairs all` writes.
pub use nearprint_night::MAX_PAIRS;

#[derive(Debug, Clone, Args)]
#[command(after_help = JOIN_IDS)]
pub struct JoinArgs {
    /// Fingerprints of the new batch: file, folder, glob or s3:// prefix with doc_id and fingerprint
    #[arg(long, value_name = "PATH", value_parser = place)]
    pub queries: Given,
    /// Existing fingerprints, or a store
    #[arg(long, value_name = "PATH", value_parser = place)]
    pub existing: Option<Given>,
    /// Join the queries with each other
    #[arg(long = "self")]
    pub itself: bool,
    /// Folder for `pairs`
    #[arg(long, value_name = "DIR", value_parser = place)]
    pub output: Given,
    /// Largest Hamming distance of a pair
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(0..=63))]
    pub max_distance: u32,
    /// Largest sketch distance of a pair [default: sketches are not verified]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=255))]
    pub max_sketch_distance: Option<u32>,
    /// Words of 64 bits of the sketches that find existing documents too, within --max-word-distance
    #[arg(long, value_name = "N", default_value_t = 0, requires = "max_sketch_distance",
        value_parser = clap::value_parser!(u32).range(0..=4))]
    pub words: u32,
    /// Largest Hamming distance of such a word
    #[arg(long, value_name = "K", default_value_t = 8, requires = "words", value_parser = clap::value_parser!(u32).range(0..=63))]
    pub max_word_distance: u32,
    /// Bits of the fingerprints
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = bits)]
    pub bits: u32,
    /// Every pair, or a spanning forest of them
    #[arg(long, default_value = "forest")]
    pub pairs: Pairs,
    /// The most pairs that `--pairs all` may write
    #[arg(long, value_name = "N", default_value_t = MAX_PAIRS)]
    pub max_pairs: u64,
    /// Replace an output that exists
    #[arg(long)]
    pub replace: bool,
    /// Job file, for its [s3] and [resources]
    #[arg(long, short, value_name = "FILE", value_parser = local_path())]
    pub config: Option<PathBuf>,
}

const JOIN_IDS: &str = "A query and an existing row with the same id are one document, so they are no pair.
Ids are compared as texts: the integer 1 and the string \"1\" are the same id.";

/// The pairs to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Pairs {
    Forest,
    All,
}

impl From<Pairs> for PairsMode {
    fn from(pairs: Pairs) -> Self {
        match pairs {
            Pairs::Forest => Self::Forest,
            Pairs::All => Self::All,
        }
    }
}
