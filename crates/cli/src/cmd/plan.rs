//! `nearprint plan`.

use nearprint_pipeline::PlanRequest;

use super::{Outcome, Session, grouped, in_bytes};
use crate::args::{Global, PlanArgs};
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
    let plan = nearprint_pipeline::plan(&request, &session.resources)?;
    let mut text = format!(
        "{} existing in {} sorted run{}, {} queries, max_distance {}\n{}\n",
        grouped(args.existing_rows),
        grouped(args.runs),
        if args.runs == 1 { "" } else { "s" },
        grouped(args.query_rows),
        args.max_distance,
        plan.strategy
    );
    for (number, table) in (1..).zip(&plan.tables) {
        text += &format!(
            "  table {number}: led by {} bits from bit {} up, {} of which may differ\n",
            table.prefix_bits, table.low_bit, table.max_prefix_distance
        );
    }
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
