//! The speed of this machine, against the scale of the cost model.

use std::time::Instant;

use nearprint_fault::{Fault, Result};
use nearprint_join::{ExistingRun, JoinCost, Kernel, Queries, TablePlan, TogetherScratch, Workload};

/// The sizes of the map that is measured, as binary logarithms, and its distance. It takes lists of queries, sorts and
/// compares in about the proportions of a large join, in less than a tenth of a second.
const LOG_EXISTING: u32 = 19;
const LOG_QUERIES: u32 = 15;
const MAX_DISTANCE: u32 = 8;
/// The time of a large map over that of the small one, about: less of it stays in caches. evidence/benchmarks compares
/// estimates with measurements.
const LARGE_OVER_SMALL: f64 = 1.2;
/// The number of measurements. The fastest counts: the first one gets its memory from the system.
const N_ROUNDS: usize = 3;

/// Returns the time that a map takes here, judged by a small one, as a multiple of the time that the cost model expects.
/// The model knows the proportions of its steps; what they take depends on the processor, the kernel, and on how much
/// of a core each thread has. More threads than there are cores are taken for those of a larger machine.
///
/// # Errors
/// [`ErrorKind::Usage`](nearprint_fault::ErrorKind::Usage) if the plan does not suit the kernel.
/// [`ErrorKind::LocalIo`](nearprint_fault::ErrorKind::LocalIo) if the threads cannot be started.
pub(crate) fn measured_over_model(kernel: Kernel, threads: usize) -> Result<f64> {
    let threads = threads.min(std::thread::available_parallelism().map_or(1, usize::from));
    let existing = evenly(LOG_EXISTING, 1);
    let workload = Workload {
        n_queries: 1 << LOG_QUERIES,
        existing: vec![ExistingRun { n_rows: 1 << LOG_EXISTING, density_rows: 1 << LOG_EXISTING }],
        piece_rows: existing.len(),
        itself: false,
        memory_bytes: usize::MAX,
        threads,
        pieces_under_way: 1,
        kernel,
    };
    let plan = TablePlan::choose(u64::BITS, MAX_DISTANCE, &workload);
    let expected =
        JoinCost::of(&plan, &workload).ns_per_fingerprint * f64::from(1_u32 << LOG_EXISTING) / threads as f64;
    let queries = Queries::try_new(evenly(LOG_QUERIES, 2), plan, kernel)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|e| Fault::resources(format!("cannot start {threads} threads: {e}")))?;
    let mut scratch = TogetherScratch::default();
    let fastest = pool.install(|| {
        let rounds = (0..N_ROUNDS).map(|_| {
            let started = Instant::now();
            let _ = std::hint::black_box(queries.map_together(&[&existing], &mut scratch, usize::MAX));
            started.elapsed()
        });
        // There are rounds, so one is the fastest.
        rounds.min().unwrap_or_default()
    });
    Ok(LARGE_OVER_SMALL * fastest.as_secs_f64() * 1e9 / expected)
}

/// Returns `2^log` values in ascending order, one in each equal part of all values, by splitmix64.
fn evenly(log: u32, seed: u64) -> Vec<u64> {
    let value = |i: u64| {
        let mut z = (i + (seed << 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (i << (u64::BITS - log)) | ((z ^ (z >> 31)) >> log)
    };
    (0..1 << log).map(value).collect()
}
