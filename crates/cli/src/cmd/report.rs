//! `nearprint report`.

use std::fmt::Write;

use nearprint_pipeline::Breakers;
use nearprint_study::{NightReport, ReportRequest, legible};

use super::{Outcome, Session, grouped};
use crate::args::{Global, ReportArgs};
use crate::job_config::JobConfig;

pub(super) fn report(global: &Global, args: &ReportArgs) -> Outcome {
    let job = JobConfig::read(&args.config)?;
    let request = ReportRequest {
        dt: args.dt.clone(),
        store: job.required("store", job.store.as_ref())?,
        documents: job.required("documents", job.documents.as_ref())?,
        columns: job.columns()?,
        n_examples: args.examples,
    };
    let session = Session::new(&job, global);
    let night = session.block_on(|storage, _, _| async move { nearprint_study::report(&storage, &request).await })?;
    let text = text(&night);
    Ok(session.report("report", "done", &night, text))
}

fn text(night: &NightReport) -> String {
    let mut out = super::run::text(&night.summary, &Breakers::off());
    // Writing to a string cannot fail.
    if !night.largest_clusters.is_empty() {
        let _ = writeln!(out, "\nLargest clusters");
    }
    for (id, n) in &night.largest_clusters {
        let _ = writeln!(out, "  {:>8}  {}", grouped(*n), legible(id));
    }
    for example in &night.examples {
        let distance = example.distance.map_or(String::new(), |d| format!(" at distance {d}"));
        let lost = example.lost_share.filter(|_| example.reason == "near");
        let lost = lost.map_or(String::new(), |share| format!(", losing a share of {share:.3}"));
        let _ = writeln!(out, "\nDropped ({}{distance}{lost})", example.reason);
        let (dropped, kept) = example.excerpts.clone().unwrap_or_default();
        for (name, id, text) in [("drop", &example.doc_id, dropped), ("keep", &example.canonical_id, kept)] {
            let store = example.reference.as_deref().filter(|_| name == "keep");
            let of = store.map_or(String::new(), |store| format!("  (reference {})", legible(store)));
            let _ = writeln!(out, "  {name}  {}{of}", legible(id));
            if !text.is_empty() {
                let _ = writeln!(out, "        {text}");
            }
        }
    }
    out
}
