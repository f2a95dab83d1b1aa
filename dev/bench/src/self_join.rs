//! Measures the self-join in memory, on one thread: that of distinct values (`seconds`), and that of rows by one call
//! (`row_seconds`). The sets are uniform, or skewed on purpose.

use std::time::Instant;

use nearprint_join::{JoinCost, Kernel, MapScratch, Queries, TablePlan, Workload, naive, pairs_within};

use crate::data::Rng;
use crate::files::write_raw;
use crate::{Result, print};

/// The set to join with itself.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Binary logarithm of the number of fingerprints.
    #[arg(long, default_value_t = 20)]
    log_rows: u32,
    /// Largest distance of a pair.
    #[arg(long, default_value_t = 3)]
    max_distance: u32,
    /// Number of fingerprints of the uniform set that have a planted neighbour.
    #[arg(long, default_value_t = 10_000)]
    planted: usize,
    /// Distribution of the fingerprints.
    #[arg(long, value_enum, default_value = "uniform")]
    spread: Spread,
    /// Also write the fingerprints to this file as raw little-endian numbers.
    #[arg(long)]
    raw: Option<std::path::PathBuf>,
    /// Seed of the data.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// The distribution of fingerprints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Spread {
    /// Uniform, with planted neighbours.
    Uniform,
    /// Half of the fingerprints share the 16 bits from bit 16 up.
    HalfBlock,
    /// Half of the fingerprints share the leading 16 bits.
    HalfPrefix,
    /// A point and all fingerprints that differ from it in up to 3 bits, 43,745 together.
    Ball,
}

impl Args {
    /// Measures the self-join, and checks the number of pairs.
    pub fn run(&self) -> Result<()> {
        let values = self.values();
        if let Some(path) = &self.raw {
            write_raw(path, std::iter::once(values.clone()))?;
        }
        let workload = Workload {
            n_queries: values.len(),
            existing: Vec::new(),
            piece_rows: values.len(),
            itself: true,
            memory_bytes: usize::MAX,
            threads: 1,
            pieces_under_way: 1,
            kernel: Kernel::best(),
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
        pool.install(|| {
            let started = Instant::now();
            let plan = TablePlan::choose(64, self.max_distance, &workload);
            let cost = JoinCost::of(&plan, &workload);
            let prefix_distances: Vec<u32> = plan.tables().iter().map(|t| t.max_prefix_distance()).collect();
            let queries = Queries::try_new(values.clone(), plan, Kernel::best())?;
            let built = started.elapsed().as_secs_f64();
            let n_values = queries.values().len();
            let mut n_pairs = 0u64;
            queries.map_self(0..n_values, &mut MapScratch::default(), |_| n_pairs += 1);
            let seconds = started.elapsed().as_secs_f64();
            drop(queries);
            let started = Instant::now();
            let n_row_pairs = pairs_within(&values, self.max_distance)?.len();
            let row_seconds = started.elapsed().as_secs_f64();
            let expected = self.expected(&values);
            if expected.is_some_and(|expected| expected != n_pairs) {
                return Err(format!("{n_pairs} pairs of {expected:?}").into());
            }
            print(&serde_json::json!({
                "operation": "self", "spread": format!("{:?}", self.spread), "n_rows": n_values,
                "max_distance": self.max_distance, "kernel": Kernel::best().name().name(), "threads": 1,
                "prefix_distances": prefix_distances, "seconds": seconds, "build_seconds": built,
                "estimated_seconds": cost.total_ns / 1e9, "ns_per_fingerprint": seconds * 1e9 / values.len() as f64,
                "n_pairs": n_pairs, "expected_pairs": expected, "row_seconds": row_seconds, "n_row_pairs": n_row_pairs,
            }))
        })
    }

    fn values(&self) -> Vec<u64> {
        let mut rng = Rng(self.seed);
        let mut values: Vec<u64> = (0..1u64 << self.log_rows).map(|_| rng.next()).collect();
        let point = rng.next();
        match self.spread {
            Spread::Uniform => {
                // The neighbours replace the last values, so that the number of values stays the same.
                let last = values.len() - self.planted.min(values.len() / 2);
                for i in 0..values.len() - last {
                    let n_bits = u32::try_from(i).unwrap_or(0) % (self.max_distance.max(1)) + 1;
                    values[last + i] = rng.flip(values[i], n_bits.min(self.max_distance));
                }
            }
            Spread::HalfBlock => share(&mut values, point, 0xFFFF << 16),
            Spread::HalfPrefix => share(&mut values, point, 0xFFFF << 48),
            Spread::Ball => values = ball(point),
        }
        values
    }

    /// Returns the expected number of pairs, if it is known. For the ball, all fingerprints are compared with each
    /// other. For the uniform set of up to 2^20 fingerprints and distances up to 3, it is the number of planted pairs,
    /// because even 2^22 fingerprints have less than one expected pair by chance.
    fn expected(&self, values: &[u64]) -> Option<u64> {
        match self.spread {
            Spread::Ball => {
                Some(naive::cross_pairs(values, values, self.max_distance).iter().filter(|(a, b, _)| a < b).count()
                    as u64)
            }
            Spread::Uniform if self.log_rows <= 20 && self.max_distance <= 3 => {
                Some(self.planted.min(values.len() / 2) as u64)
            }
            _ => None,
        }
    }
}

/// Copies the bits of `mask` from `point` to every other value.
fn share(values: &mut [u64], point: u64, mask: u64) {
    for value in values.iter_mut().step_by(2) {
        *value = (*value & !mask) | (point & mask);
    }
}

/// Returns a point and all values that differ from it in up to 3 bits.
fn ball(point: u64) -> Vec<u64> {
    let mut values = vec![point];
    for a in 0..64 {
        values.push(point ^ 1 << a);
        for b in 0..a {
            values.push(point ^ 1 << a ^ 1 << b);
            values.extend((0..b).map(|c| point ^ 1 << a ^ 1 << b ^ 1 << c));
        }
    }
    values
}
