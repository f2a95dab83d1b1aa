//! `nearprint plan`.

use nearprint_pipeline::{
    ClusterPlan, ClusterRequest, PlanRequest, PlanSummary, PlannedTable, measured_over_model, plan_on_cluster,
};
use nearprint_storage::in_memory;

use super::{Outcome, Session, counted, grouped, in_bytes};
use crate::args::{ClusterArgs, Global, PlanArgs};
use crate::job_config::JobConfig;
use crate::progress::time;

pub(super) fn plan(global: &Global, args: &PlanArgs) -> Outcome {
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
        in_parts(plan.n_parts),
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

fn in_parts(n_parts: usize) -> String {
    if n_parts > 1 { format!(", the queries in {n_parts} parts, one after another") } else { String::new() }
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
    if n < 10.0 { format!("{n:.1}") } else { grouped(n.round() as u64) }
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
    let threads = session.resources.threads.unwrap_or(1);
    let speed = match args.measured_over_model {
        Some(given) => given,
        None => measured_over_model(&session.resources, threads)?,
    };
    let bytes = |given: Option<crate::bytes::Bytes>| given.map_or(0, |bytes| bytes.0);
    let cluster = ClusterRequest {
        workers: args.workers.unwrap_or(1) as usize,
        threads,
        worker_memory: bytes(args.worker_memory),
        bandwidth: bytes(args.bandwidth) as u64,
        sketches: args.sketches,
        near_duplicates: args.near_duplicates,
        measured_over_model: speed,
    };
    let plan = plan_on_cluster(request, &cluster)?;
    let tables = if verbose { format!("{}\n{}", plan.strategy, of_tables(&plan.tables)) } else { String::new() };
    let text =
        of_sizes(request) + &of_cluster(&cluster) + &in_words(&plan, args.measured_over_model.is_some()) + &tables;
    Ok(session.report("plan", "done", &plan, text))
}

fn of_cluster(cluster: &ClusterRequest) -> String {
    format!(
        "on {} of {}, with {} and {} a second each\n",
        counted(cluster.workers as u64, "worker"),
        counted(cluster.threads as u64, "thread"),
        in_bytes(as_f64(cluster.worker_memory)),
        in_bytes(as_f64(in_memory(cluster.bandwidth))),
    )
}

/// Describes a plan line by line.
fn in_words(plan: &ClusterPlan, speed_is_given: bool) -> String {
    let (bytes, seconds) = (&plan.bytes, &plan.seconds);
    let speed =
        if speed_is_given { "as given" } else { "measured on this machine: workers may be slower, or less busy" };
    let lines = [
        (
            "tasks",
            format!(
                "{} of {}; {} for the busiest worker",
                grouped(plan.n_tasks),
                counted(plan.piece_rows as u64, "fingerprint"),
                grouped(plan.tasks_of_worker)
            ),
        ),
        (
            "reads",
            format!(
                "{}, in {:.0} requests: {} of fingerprints, {} of sketches, {} for documents of pairs",
                in_bytes(bytes.read),
                plan.requests,
                in_bytes(bytes.fingerprints),
                in_bytes(bytes.sketches),
                in_bytes(bytes.documents)
            ),
        ),
        ("of a worker", format!("{} at most", in_bytes(bytes.read_by_worker))),
        ("batch", format!("{} to each worker", in_bytes(bytes.batch))),
        (
            "shuffles",
            format!(
                "{} for {} pairs, if {:.0} % of the queries make pairs; chance makes {}",
                in_bytes(bytes.shuffled),
                rounded(plan.pairs),
                100.0 * plan.near_duplicates,
                rounded(plan.chance_pairs)
            ),
        ),
        (
            "memory",
            format!(
                "{} of a worker, {} of the driver, beside their virtual machines",
                in_bytes(as_f64(bytes.worker_memory)),
                in_bytes(as_f64(bytes.driver_memory))
            ),
        ),
        (
            "estimate",
            format!(
                "{:.0} s: load {:.1}, map {:.1} while it reads {:.1}, shuffle {:.1}, driver {:.1}, engine {:.1}",
                seconds.total, seconds.load, seconds.map, seconds.read, seconds.shuffle, seconds.driver, seconds.engine
            ),
        ),
        ("waits for", plan.limit.name().to_owned()),
        ("speed", format!("{:.2} times the time of the cost model, {speed}", plan.measured_over_model)),
    ];
    lines.into_iter().map(|(name, line)| format!("{name:<14}{line}\n")).collect()
}

#[allow(clippy::cast_precision_loss, reason = "for people")]
fn as_f64(n: usize) -> f64 {
    n as f64
}
