//! `nearprint plan`.

use nearprint_pipeline::{
    ClusterPlan, ClusterRequest, PlanRequest, PlannedTable, measured_over_model, plan_on_cluster,
};

use super::{Outcome, Session, counted, grouped, in_bytes};
use crate::args::{ClusterArgs, Global, PlanArgs};
use crate::job_config::JobConfig;

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
        return on_cluster(&session, &request, &args.cluster);
    }
    let plan = nearprint_pipeline::plan(&request, &session.resources)?;
    let mut text = format!("{}{}\n{}", of_sizes(&request), plan.strategy, of_tables(&plan.tables));
    text += &format!(
        "compared      {:.1} queries per existing fingerprint\nchance pairs  {:.1} of uniform fingerprints\nreads         \
         {} of fingerprints; with sketches, {} more for {:.0} candidates by chance, in {:.0} pages\nmemory        {} MiB \
         for tables and {} thread{}\nestimate      {:.1} s: {:.1} ns per existing fingerprint and core ({}), {:.1} of it \
         reading\n",
        plan.candidates_per_fingerprint,
        plan.chance_pairs,
        in_bytes(plan.fingerprint_bytes),
        in_bytes(plan.sketches.bytes),
        plan.sketches.candidates,
        plan.sketches.pages,
        plan.memory_bytes.div_ceil(1 << 20),
        plan.threads,
        if plan.threads == 1 { "" } else { "s" },
        plan.estimated_seconds,
        plan.estimated_ns_per_fingerprint,
        plan.kernel,
        plan.decode_ns_per_fingerprint,
    );
    Ok(session.report("plan", "done", &plan, text))
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
        format!(
            "  table {number}: led by {} from bit {} up, {} of which may differ\n",
            counted(table.prefix_bits.into(), "bit"),
            table.low_bit,
            table.max_prefix_distance
        )
    };
    (1..).zip(tables).map(line).collect()
}

fn on_cluster(session: &Session, request: &PlanRequest, args: &ClusterArgs) -> Outcome {
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
    let text = of_sizes(request)
        + &of_cluster(&cluster)
        + &format!("{}\n{}", plan.strategy, of_tables(&plan.tables))
        + &in_words(&plan, args.measured_over_model.is_some());
    Ok(session.report("plan", "done", &plan, text))
}

fn of_cluster(cluster: &ClusterRequest) -> String {
    format!(
        "on {} of {}, with {} and {} a second each\n",
        counted(cluster.workers as u64, "worker"),
        counted(cluster.threads as u64, "thread"),
        in_bytes(as_f64(cluster.worker_memory)),
        in_bytes(as_f64(usize::try_from(cluster.bandwidth).unwrap_or(usize::MAX))),
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
                "{} for {:.0} pairs, if {:.0} % of the queries make pairs; chance makes {:.0}",
                in_bytes(bytes.shuffled),
                plan.pairs,
                100.0 * plan.near_duplicates,
                plan.chance_pairs
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
