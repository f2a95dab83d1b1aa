//! `nearprint join`.

use nearprint_pipeline::JoinRequest;
use nearprint_profile::{EarlierConfig, JoinConfig};

use super::{Outcome, Session, counted, grouped, if_exists, in_bytes, refuse_beyond};
use crate::args::{Global, JoinArgs};
use crate::job_config::JobConfig;

pub(super) fn join(global: &Global, args: &JoinArgs) -> Outcome {
    let job = JobConfig::read_or_default(args.config.as_deref())?;
    refuse_beyond(args.bits, args.max_distance)?;
    let request = JoinRequest {
        queries: job.folder().given(&args.queries),
        existing: args.existing.as_ref().map(|place| job.folder().given(place)),
        itself: args.itself,
        output: job.folder().given(&args.output),
        bits: args.bits,
        join: JoinConfig {
            max_distance: args.max_distance,
            max_sketch_distance: args.max_sketch_distance,
            earlier: (args.words > 0).then_some(EarlierConfig {
                max_distance: args.max_distance,
                words: args.words,
                max_word_distance: args.max_word_distance,
            }),
        },
        pairs: args.pairs.into(),
        max_pairs: args.max_pairs,
        if_exists: if_exists(args.replace),
    };
    let session = Session::new(&job, global);
    let summary = session.block_on(|storage, resources, progress| async move {
        nearprint_pipeline::join(&storage, &request, &resources, &progress).await
    })?;
    let by_distance: Vec<String> = (0..)
        .zip(&summary.counts.by_distance)
        .filter(|(_, n)| **n > 0)
        .map(|(d, n): (u32, &u64)| format!("{} at distance {d}", grouped(*n)))
        .collect();
    let listed = if by_distance.is_empty() { String::new() } else { format!(" ({})", by_distance.join(", ")) };
    #[allow(clippy::cast_precision_loss, reason = "for people")]
    let read = match summary.map.n_sketches {
        0 => String::new(),
        _ => format!(
            "; {} verified, {} of sketches read",
            counted(summary.map.n_candidates, "candidate"),
            in_bytes(summary.map.sketch_bytes as f64)
        ),
    };
    let text = format!(
        "{}/pairs: {}{listed}; queries: {}, existing: {}{read}\n",
        summary.output,
        counted(summary.counts.n_pairs, "pair"),
        grouped(summary.n_queries),
        grouped(summary.n_existing)
    );
    Ok(session.report("join", "done", &summary, text))
}
