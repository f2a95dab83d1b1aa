//! `nearprint evaluate`.

use std::fmt::Write;

use nearprint_fingerprint::FeatureHash;
use nearprint_pipeline::{EvaluateRequest, Evaluation, ProfileConfig, Score};

use super::{Outcome, Session};
use crate::args::{EvaluateArgs, Global};
use crate::exit_code::Failure;
use crate::job_config::JobConfig;

pub(super) fn evaluate(global: &Global, args: &EvaluateArgs) -> Outcome {
    let job = JobConfig::read_or_default(args.profile.config.as_deref())?.with_profile_args(&args.profile)?;
    let (_, mut columns) = job.keep()?;
    columns.keep.clear();
    let mut profile = job.profile_config()?;
    if let Some(seed) = args.seed {
        set_seed(&mut profile, seed)?;
    }
    let request = EvaluateRequest {
        documents: args.documents.clone(),
        columns,
        truth: args.truth.clone(),
        ignore: args.ignore.clone(),
        profile,
        analyzer_resources: job.analyzer_resources()?,
        max_distance: args.max_distance,
    };
    let session = Session::new(&job, global);
    let work = nearprint_pipeline::evaluate(&session.storage, &request, &session.resources, &session.progress);
    let evaluation = session.block_on(work)?;
    let text = text(&evaluation);
    Ok(session.report("evaluate", "done", &evaluation, text))
}

fn set_seed(profile: &mut ProfileConfig, seed: u64) -> Result<(), Failure> {
    let FeatureHash::Xxh3 { seed: own } = &mut profile.fingerprint.feature_hash else {
        return Err(Failure::usage("--seed: this profile's feature hash has no seed"));
    };
    *own = seed;
    if let Some(sketch) = &mut profile.sketch {
        sketch.seed = seed;
    }
    Ok(())
}

fn text(evaluation: &Evaluation) -> String {
    let mut out = String::new();
    let sketch = evaluation.max_sketch_distance.map_or(String::new(), |d| format!(", sketches within {d}"));
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "{} documents, {} positive pairs{sketch}",
        evaluation.documents.n_documents, evaluation.n_positive
    );
    let _ = writeln!(out, "max_distance  precision  recall     f1   found    true    gray");
    for score in &evaluation.by_max_distance {
        let Score { max_distance, n_found, n_true, n_gray, precision, recall, f1 } = score;
        let own = if *max_distance == evaluation.own.max_distance { " <- the profile's" } else { "" };
        let _ = writeln!(
            out,
            "{max_distance:>12}  {precision:>9.3}  {recall:>6.3}  {f1:>5.3} {n_found:>7} {n_true:>7} {n_gray:>7}{own}"
        );
    }
    out
}
