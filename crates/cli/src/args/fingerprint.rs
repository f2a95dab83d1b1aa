//! The arguments of `nearprint fingerprint`.

use clap::Args;

use super::inputs::{DocumentsArgs, InputArgs};
use super::numbers::any_bits;
use super::profile::ProfileArgs;
use crate::place::{Given, place};

#[derive(Debug, Clone, Args)]
pub struct FingerprintArgs {
    #[command(flatten)]
    pub documents: DocumentsArgs,
    /// Folder of the dataset
    #[arg(long, value_name = "DIR", value_parser = place)]
    pub output: Given,
    /// Bits of the fingerprints, if the profile's program has them: 32, 64, or 128, which no join accepts
    #[arg(long, value_name = "N", value_parser = any_bits)]
    pub bits: Option<u32>,
    /// Replace an output that exists
    #[arg(long)]
    pub replace: bool,
    #[command(flatten)]
    pub input: InputArgs,
    #[command(flatten)]
    pub profile: ProfileArgs,
}
