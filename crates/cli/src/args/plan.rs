//! The arguments of `nearprint plan`.

use clap::Args;

use super::numbers::{bits, count};
use crate::bytes::Bytes;

#[derive(Debug, Clone, Args)]
pub struct PlanArgs {
    /// Existing fingerprints, such as 8000000000 or 2^33
    #[arg(long, value_name = "N", value_parser = count)]
    pub existing_rows: u64,
    /// Query fingerprints
    #[arg(long, value_name = "N", value_parser = count)]
    pub query_rows: u64,
    /// Largest Hamming distance of a pair
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(0..=63))]
    pub max_distance: u32,
    /// Bits of the fingerprints
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = bits)]
    pub bits: u32,
    /// Sorted runs that the existing fingerprints are spread over: nights since the store was compacted
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub runs: u64,
    /// Also join the queries with each other
    #[arg(long = "self")]
    pub itself: bool,
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// The cluster of `plan --workers`.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "On a cluster")]
pub struct ClusterArgs {
    /// Plan for so many worker processes, of --threads threads each [default of --threads: 1]
    #[arg(long, value_name = "N", requires = "worker_memory", conflicts_with = "memory_limit",
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub workers: Option<u32>,
    /// Memory that a worker process may take, such as 16GiB
    #[arg(long, value_name = "BYTES", requires = "workers")]
    pub worker_memory: Option<Bytes>,
    /// Candidates are verified by sketches, as in a job with max_sketch_distance
    #[arg(long, requires = "workers")]
    pub sketches: bool,
}
