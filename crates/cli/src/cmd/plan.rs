//! `nearprint plan`.

use nearprint_pipeline::{ClusterRequest, PlanRequest, PlanSummary, PlannedTable, plan_on_cluster};

use super::{Outcome, Session, counted, grouped, in_bytes, refuse_beyond};
use crate::args::{ClusterArgs, Global, PlanArgs};
use crate::job_config::JobConfig;
use crate::progress::time;

pub(super) fn plan(global: &Global, args: &PlanArgs) -> Outcome {
    refuse_beyond(args.bits, args.max_distance)?;
    let session = Session::new(&JobConfig::read_or_default(None)?, global);
    let request = PlanRequest {
        existing_rows: args.existing_rows,
        query_rows: args.query_rows,
        bits: args.bits,
        max_distance: args.max_distance,
        runs: args.runs,
        itself: args.itself,
    };
    if args.cluster.workers.is_some() {
        return on_cluster(&session, &request, &args.cluster, global.verbose > 0);
    }
    let plan = nearprint_pipeline::plan(&request, &session.resources)?;
    let mut text = of_sizes(&request);
    text += &format!(
        "takes         about {} on {} with {} MiB for tables{}\nreads         {} of fingerprints; with sketches, {} \
         more\nby chance     {} pairs that are near without being near-duplicates, if fingerprints were random\n",
        seconds(plan.estimated_seconds),
        counted(plan.threads as u64, "thread"),
        plan.memory_bytes.div_ceil(1 << 20),
        in_slices(plan.n_parts),
        in_bytes(plan.fingerprint_bytes),
        in_bytes(plan.sketches.bytes),
        rounded(plan.chance_pairs),
    );
    if global.verbose > 0 {
        text += &details(&plan);
    }
    Ok(session.report("plan", "done", &plan, text))
}

fn seconds(seconds: f64) -> String {
    if seconds < 10.0 { format!("{seconds:.1} s") } else { time(seconds) }
}

fn in_parts(n_parts: usize, itself: bool) -> String {
    let n_pairs = (n_parts * (n_parts - 1) / 2) as u64;
    match (n_parts, itself) {
        (1, _) => String::new(),
        (_, false) => format!(", the batch in {n_parts} parts, one after another"),
        (_, true) => format!(
            ", the batch in {n_parts} parts, one after another; beside them, {} of parts are joined",
            counted(n_pairs, "pair")
        ),
    }
}

fn in_slices(n_slices: usize) -> String {
    if n_slices > 1 { format!(", the queries in {n_slices} slices, one after another") } else { String::new() }
}

/// Describes how the join would be done, and what the estimates rest on.
fn details(plan: &PlanSummary) -> String {
    format!(
        "{}\n{}compared      {:.1} queries with each existing fingerprint\nsketches      read for {} candidates by chance, in \
         {} pages\nspeed         {:.1} ns for an existing fingerprint on a core ({}), {:.1} of it reading\n",
        plan.strategy,
        of_tables(&plan.tables),
        plan.candidates_per_fingerprint,
        rounded(plan.sketches.candidates),
        rounded(plan.sketches.pages),
        plan.estimated_ns_per_fingerprint,
        plan.kernel,
        plan.decode_ns_per_fingerprint,
    )
}

/// Formats an expected number.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "for people")]
fn rounded(n: f64) -> String {
    match n {
        n if n < 10.0 => format!("{n:.1}"),
        n if n < 1e15 => grouped(n.round() as u64),
        n => format!("{n:.1e}"),
    }
}

fn of_sizes(request: &PlanRequest) -> String {
    format!(
        "{} existing in {} sorted run{}, {} queries, max_distance {}\n",
        grouped(request.existing_rows),
        grouped(request.runs),
        if request.runs == 1 { "" } else { "s" },
        grouped(request.query_rows),
        request.max_distance,
    )
}

fn of_tables(tables: &[PlannedTable]) -> String {
    let line = |(number, table): (usize, &PlannedTable)| {
        let (low, high) = (table.low_bit, table.low_bit + table.prefix_bits.saturating_sub(1));
        format!(
            "  table {number}: sorted by bits {low} to {high}, at most {} of which differ in a pair that it finds\n",
            table.max_prefix_distance
        )
    };
    (1..).zip(tables).map(line).collect()
}

fn on_cluster(session: &Session, request: &PlanRequest, args: &ClusterArgs, verbose: bool) -> Outcome {
    let cluster = ClusterRequest {
        workers: args.workers.unwrap_or(1) as usize,
        threads: session.resources.threads.unwrap_or(1),
        worker_memory: args.worker_memory.map_or(0, |bytes| bytes.0),
        sketches: args.sketches,
    };
    let plan = plan_on_cluster(request, &cluster, &session.resources)?;
    let mut text = of_sizes(request);
    text += &format!(
        "on {} of {}, with {} each\ntasks         {} of {}; {} for the busiest worker{}\nmemory        {} of a worker, beside \
         its virtual machine{}\n",
        counted(cluster.workers as u64, "worker"),
        counted(cluster.threads as u64, "thread"),
        in_bytes(as_f64(cluster.worker_memory)),
        grouped(plan.n_tasks),
        counted(plan.piece_rows as u64, "fingerprint"),
        grouped(plan.tasks_of_worker),
        in_parts(plan.n_parts, request.itself),
        in_bytes(as_f64(plan.memory_bytes)),
        // The program itself takes more than the quarter of little memory that is left to it.
        if plan.memory_bytes > cluster.worker_memory { ": more than it is given" } else { "" },
    );
    if verbose {
        text += &format!("{}\n{}", plan.strategy, of_tables(&plan.tables));
    }
    Ok(session.report("plan", "done", &plan, text))
}

#[allow(clippy::cast_precision_loss, reason = "for people")]
fn as_f64(n: usize) -> f64 {
    n as f64
}
