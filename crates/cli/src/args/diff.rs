//! The arguments of `nearprint diff`.

use std::path::PathBuf;

use clap::Args;

use super::file_names::local_path;
use crate::place::{Given, place};

/// Results, and the first digits of one of their generations, if these are given.
#[derive(Debug, Clone)]
pub struct GivenGeneration {
    pub output: Given,
    pub generation: Option<String>,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = DIFF_EXAMPLES)]
pub struct DiffArgs {
    /// Results: the `output` of a job, or OUTPUT@GENERATION with the first digits of a generation [default: the job
    /// file's output]
    #[arg(value_name = "A", required_unless_present = "config", value_parser = generation)]
    pub a: Option<GivenGeneration>,
    /// Results to compare with A [default: A's newest generation with the one before it]
    #[arg(value_name = "B", value_parser = generation)]
    pub b: Option<GivenGeneration>,
    /// The night; latest, today, yesterday
    #[arg(long, value_name = "DATE", alias = "date")]
    pub dt: String,
    /// Job file, for its output and [s3]
    #[arg(long, short, value_name = "FILE", value_parser = local_path())]
    pub config: Option<PathBuf>,
    /// Most examples of each kind of change; the counts are always complete
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub examples: usize,
    /// Write Markdown
    #[arg(long, conflicts_with = "json")]
    pub md: bool,
}

const DIFF_EXAMPLES: &str = "Examples:
  nearprint diff results --dt 2026-11-19                    what the last --replace of the night changed
  nearprint diff results-a results-b --dt 2026-11-19        two configurations of one night
  nearprint diff results@5f0c9a2e --dt 2026-11-19           a generation, and the newest one";

/// The least digits that name a generation.
const GENERATION_DIGITS: std::ops::RangeInclusive<usize> = 4..=32;

/// Parses the root of results, with or without the first digits of a generation.
fn generation(text: &str) -> Result<GivenGeneration, String> {
    let is_generation = |digits: &str| {
        GENERATION_DIGITS.contains(&digits.len()) && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    };
    let (output, digits) = match text.rsplit_once('@').filter(|(_, digits)| is_generation(digits)) {
        Some((output, digits)) => (output, Some(digits.to_owned())),
        None => (text, None),
    };
    Ok(GivenGeneration { output: place(output)?, generation: digits })
}
