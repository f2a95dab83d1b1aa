//! Measures the join in memory. It compares the plans and kernels with the textbook probe on pieces of a set of any
//! size.

use std::hint::black_box;
use std::time::Instant;

use nearprint_join::{
    ExistingRun, JoinCost, Kernel, KernelName, MapScratch, Queries, StepTimes, TablePlan, TogetherScratch, Workload,
};
use serde::Serialize;

use crate::data::{PIECE_ROWS, Sets};
use crate::reference::FourTables;
use crate::{Result, print};

/// The data, plans and kernels to measure.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Binary logarithm of the number of existing fingerprints.
    #[arg(long, default_value_t = 29)]
    log_existing: u32,
    /// Binary logarithm of the number of queries.
    #[arg(long, default_value_t = 16)]
    log_queries: u32,
    /// Largest distance of a pair.
    #[arg(long, default_value_t = 3)]
    max_distance: u32,
    /// Number of pieces of 2^20 existing fingerprints to join, spread evenly over the set.
    #[arg(long, default_value_t = 16)]
    pieces: u64,
    /// Binary logarithm of the number of fingerprints that are mapped at once.
    #[arg(long, default_value_t = 20)]
    log_piece: u32,
    /// Measure only this kernel [default: all that the processor supports].
    #[arg(long)]
    kernel: Option<KernelName>,
    /// Also measure every plan whose estimate is within this factor of the best.
    #[arg(long, default_value_t = 1.0)]
    within: f64,
    /// Measure no more plans of a kernel than these, the best ones by their estimates.
    #[arg(long, default_value_t = usize::MAX, hide_default_value = true)]
    most: usize,
    /// Map each piece by all threads together.
    #[arg(long)]
    together: bool,
    /// Leave out the textbook probe.
    #[arg(long)]
    no_reference: bool,
    /// Seed of the data.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Serialize)]
struct MeasuredKernel {
    operation: &'static str,
    log_existing: u32,
    log_queries: u32,
    max_distance: u32,
    kernel: &'static str,
    prefix_distances: Vec<u32>,
    estimated_ns: f64,
    ns_per_fingerprint: f64,
    /// How often each step of the cost model is taken for an existing fingerprint, in the order of `each_step`.
    steps: Vec<f64>,
    candidates_per_fingerprint: f64,
    n_pairs: u64,
    n_planted: u64,
    times_faster_than_textbook: Option<f64>,
}

/// Measures the join, and checks that all plans and kernels find the same number of pairs, and no fewer than were
/// planted.
pub fn run(args: &Args) -> Result<()> {
    let sets = Sets::new(
        args.log_existing,
        args.log_queries,
        1 << args.log_queries.saturating_sub(6),
        args.max_distance,
        args.seed,
    );
    let (pieces, n_planted) = pieces(&sets, args);
    let n_rows: u64 = pieces.iter().map(|p| p.len() as u64).sum();
    let textbook = (args.max_distance == 3 && !args.no_reference).then(|| {
        let tables = FourTables::build(sets.queries());
        let sample = &pieces[0][..pieces[0].len().min(1 << 20)];
        let started = Instant::now();
        black_box(tables.probe(sample, 3));
        started.elapsed().as_secs_f64() * 1e9 / sample.len() as f64
    });
    if let Some(ns) = textbook {
        print(
            &serde_json::json!({ "operation": "textbook", "log_queries": args.log_queries, "ns_per_fingerprint": ns }),
        )?;
    }
    let mut found_by_all = None;
    for kernel in kernels(args.kernel)? {
        let workload = Workload {
            n_queries: sets.queries().len(),
            existing: vec![ExistingRun { n_rows: 1 << args.log_existing, density_rows: 1 << args.log_existing }],
            piece_rows: 1 << args.log_piece,
            itself: false,
            memory_bytes: usize::MAX,
            threads: 1,
            pieces_under_way: 1,
            kernel,
        };
        let mut plans: Vec<(JoinCost, TablePlan)> =
            TablePlan::alternatives(64, args.max_distance).map(|plan| (JoinCost::of(&plan, &workload), plan)).collect();
        plans.sort_by(|(a, _), (b, _)| a.total_ns.total_cmp(&b.total_ns));
        let best = plans[0].0.total_ns;
        for (cost, plan) in plans.into_iter().filter(|(cost, _)| cost.total_ns <= best * args.within).take(args.most) {
            let queries = Queries::try_new(sets.queries().to_vec(), plan.clone(), kernel)?;
            let mut scratch = MapScratch::default();
            let mut n_pairs = 0;
            let mut shared = TogetherScratch::default();
            if args.together {
                let _ = queries.map_together(&[&pieces[0]], &mut shared, usize::MAX);
            } else {
                queries.map(&pieces[0], &mut scratch, |_| {});
            }
            let started = Instant::now();
            for piece in &pieces {
                if args.together {
                    n_pairs += queries.map_together(&[piece], &mut shared, usize::MAX).map_or(0, |p| p.len() as u64);
                } else {
                    queries.map(piece, &mut scratch, |_| n_pairs += 1);
                }
            }
            let ns = started.elapsed().as_secs_f64() * 1e9 / n_rows as f64;
            if n_pairs < n_planted || *found_by_all.get_or_insert(n_pairs) != n_pairs {
                return Err(format!("{plan:?} with {kernel:?} found {n_pairs} pairs of {n_planted} planted").into());
            }
            print(&MeasuredKernel {
                operation: "map",
                log_existing: args.log_existing,
                log_queries: args.log_queries,
                max_distance: args.max_distance,
                kernel: kernel.name().name(),
                prefix_distances: plan.tables().iter().map(|t| t.max_prefix_distance()).collect(),
                estimated_ns: cost.ns_per_fingerprint,
                ns_per_fingerprint: ns,
                steps: each_step().map(|step| JoinCost::with(&plan, &workload, &step).ns_per_fingerprint).to_vec(),
                candidates_per_fingerprint: cost.candidates_per_fingerprint,
                n_pairs,
                n_planted,
                times_faster_than_textbook: textbook.map(|t| t / ns),
            })?;
        }
    }
    Ok(())
}

/// Returns times by which each step alone counts, in the order in which evidence/benchmarks/plans.py names the steps.
fn each_step() -> [StepTimes; 11] {
    let none = StepTimes::default();
    [
        StepTimes { sort: 1.0, ..none },
        StepTimes { pass: 1.0, ..none },
        StepTimes { select_call: 1.0, ..none },
        StepTimes { select_vector: 1.0, ..none },
        StepTimes { fan_query: 1.0, ..none },
        StepTimes { fan_range: 1.0, ..none },
        StepTimes { fan_copy: 1.0, ..none },
        StepTimes { leaf_call: 1.0, ..none },
        StepTimes { pair_vector: 1.0, ..none },
        StepTimes { lanes: 1.0, ..none },
        StepTimes { lanes_byte: 1.0, ..none },
    ]
}

/// Returns the pieces of fingerprints to map, and the number of planted fingerprints in them.
fn pieces(sets: &Sets, args: &Args) -> (Vec<Vec<u64>>, u64) {
    let together = (1u64 << args.log_piece.max(PIECE_ROWS.ilog2())) / PIECE_ROWS;
    let n = (args.pieces / together).max(1).min((sets.n_pieces() / together).max(1));
    let apart = (sets.n_pieces() / together).max(1) / n * together;
    let mut n_planted = 0;
    let pieces = (0..n).map(|i| {
        let parts = (i * apart..i * apart + together.min(sets.n_pieces())).map(|index| sets.piece(index));
        parts.fold(Vec::new(), |mut piece, (values, planted)| {
            n_planted += planted as u64;
            piece.extend(values);
            piece
        })
    });
    (pieces.collect(), n_planted)
}

/// Returns the kernel of the given name, or all available kernels if there is no name.
pub fn kernels(name: Option<KernelName>) -> Result<Vec<Kernel>> {
    Ok(name.map_or_else(|| Ok(Kernel::available()), |name| Kernel::try_new(name).map(|kernel| vec![kernel]))?)
}
