//! `nearprint evaluate`.

use std::fmt::Write;

use nearprint_explain::legible;
use nearprint_fingerprint::FeatureHash;
use nearprint_measure::{ByResemblance, EvaluateRequest, Evaluation, ResemblanceRow, Score};
use nearprint_profile::ProfileConfig;
use nearprint_storage::LocalFile;

use super::{Outcome, Session, cell, counted, documents, grouped, if_exists, name_flags, refuse_beyond, warnings};
use crate::args::{EvaluateArgs, Global};
use crate::exit_code::Failure;
use crate::job_config::JobConfig;

pub(super) fn evaluate(global: &Global, args: &EvaluateArgs) -> Outcome {
    let job = JobConfig::read_or_default(args.profile.config.as_deref())?.with_profile_args(&args.profile)?;
    let mut profile = job.profile_config()?;
    if let Some(seed) = args.seed {
        set_seed(&mut profile, seed)?;
    }
    args.max_distance.map_or(Ok(()), |max_distance| refuse_beyond(profile.bits, max_distance))?;
    let session = Session::new(&job, global);
    let documents = args.documents.place(job.folder())?;
    let truth = job.folder().given(&args.truth);
    let ignore = args.ignore.as_ref().map(|place| job.folder().given(place));
    let file = args.plot.as_deref().map(|path| LocalFile::try_new(path, if_exists(args.replace))).transpose()?;
    let (repeats, columns) = job.repeats()?;
    let request = EvaluateRequest {
        documents,
        columns,
        repeats,
        truth,
        ignore,
        profile,
        analyzer_resources: job.analyzer_resources()?,
        max_distance: args.max_distance,
        by_resemblance: args.by_resemblance,
        by_grade: args.by_grade,
    };
    let mut evaluation = session.block_on(|storage, resources, progress| async move {
        nearprint_measure::evaluate(&storage, &request, &resources, &progress).await
    })?;
    name_flags("evaluate", &mut evaluation.warnings);
    let text = text(&evaluation);
    let report = session.report("evaluate", "done", &evaluation, text);
    let plotted = file.map_or(Ok(()), |file| plot(&file, &evaluation));
    // The scores are reported even if the plot could not be written.
    Ok(match plotted {
        Ok(()) => report,
        Err(failure) => report.but(failure),
    })
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

fn plot(file: &LocalFile, evaluation: &Evaluation) -> Result<(), Failure> {
    let svg = nearprint_measure::plot::svg(evaluation)
        .map_err(|e| Failure::new(crate::exit_code::BUG, format!("cannot draw the plot: {e}")))?;
    Ok(file.write(svg.as_bytes())?)
}

fn text(evaluation: &Evaluation) -> String {
    let mut out = String::new();
    let sketch = evaluation.max_sketch_distance.map_or(String::new(), |d| format!(", sketches within {d}"));
    let ignored = match evaluation.n_ignored {
        0 => String::new(),
        n => format!("; {} left out", counted(n, "id")),
    };
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "{}{ignored}\n{}{sketch}; in brackets 95 % intervals",
        documents(&evaluation.documents),
        counted(evaluation.own.score.n_positive, "positive pair")
    );
    if let Some(judge) = &evaluation.judge {
        let _ = writeln!(
            out,
            "the judge read {} of {} pairs that sketches left undecided; alike word by word: {}, one in the other: {}",
            grouped(judge.n_read),
            grouped(judge.n_undecided),
            grouped(judge.n_edited),
            grouped(judge.n_contained)
        );
    }
    warnings(&mut out, &evaluation.warnings);
    let own = evaluation.own.max_distance;
    let rows = evaluation.by_max_distance.iter();
    let rows = rows.map(|r| (r.max_distance.to_string(), &r.score, r.max_distance == own));
    table(&mut out, "max_distance", rows);
    let shown = evaluation.by_length.iter().filter(|r| r.own.n_found + r.own.n_gray + r.own.n_positive > 0);
    let range = |min: u32, max: Option<u32>| max.map_or(format!("{min} and more"), |max| format!("{min} to {max}"));
    let _ = writeln!(out, "\nAt distance {own}, by characters of the shorter text");
    table(&mut out, "length", shown.map(|r| (range(r.min_length, r.max_length), &r.own, false)));
    if !evaluation.by_max_sketch_distance.is_empty() {
        let judge = if evaluation.judge.is_some() { ", without the judge" } else { "" };
        let _ = writeln!(out, "\nAt distance {own}, by distance of the sketches{judge}");
        let own = evaluation.max_sketch_distance;
        let name = |d: Option<u16>| d.map_or("not compared".to_owned(), |d| d.to_string());
        let rows = evaluation.by_max_sketch_distance.iter();
        let rows = rows.map(|r| (name(r.max_sketch_distance), &r.score, r.max_sketch_distance == own));
        table(&mut out, "max_sketch_distance", rows);
    }
    if let Some(grades) = &evaluation.by_grade {
        let _ = writeln!(out, "\nAt distance {own}, by grade");
        let _ = writeln!(out, "{:>19}  {:<11}  {:>11} {:>9}", "grade", "share found", "pairs", "found");
        for row in grades {
            let (pairs, found) = (grouped(row.n_pairs), grouped(row.n_found));
            let _ = writeln!(out, "{:>19}  {:<11.3}  {pairs:>11} {found:>9}", legible(&row.grade), row.share);
        }
    }
    if let Some(shares) = &evaluation.by_resemblance {
        let _ = writeln!(out, "\nAt distance {own}, by exact resemblance of the texts");
        by_resemblance(&mut out, shares);
    }
    out
}

fn by_resemblance(out: &mut String, shares: &ByResemblance) {
    let _ =
        writeln!(out, "{:>19}  {:<19}  {:>11} {:>9} {:>9}", "resemblance", "share found", "pairs", "found", "clusters");
    for row in &shares.rows {
        // Nearly all pairs are below the first range, and three decimals would call any share of them nothing.
        let share = match row.from {
            0.0 if row.n_found > 0 => row.share.map_or(String::new(), |share| format!("{share:.1e}")),
            _ => cell(row.share, row.ci),
        };
        let clusters = if row.from > 0.0 { grouped(row.n_components) } else { String::new() };
        let _ = writeln!(
            out,
            "{:>19}  {share:<19}  {:>11} {:>9} {clusters:>9}",
            range_of(row),
            grouped(row.n_pairs),
            grouped(row.n_found),
        );
    }
}

fn range_of(row: &ResemblanceRow) -> String {
    match row.below {
        None => "1, the same".to_owned(),
        Some(below) if row.from > 0.0 => format!("{:.1} to below {below:.1}", row.from),
        Some(below) => format!("below {below:.1}"),
    }
}

/// Writes a table from rows of a name, a score, and whether the score is the profile's own.
fn table<'a>(out: &mut String, name: &str, rows: impl Iterator<Item = (String, &'a Score, bool)>) {
    let _ = writeln!(
        out,
        "{name:>19}  {:<19}  {:<19}  {:<19}  {:>7} {:>7} {:>7} {:>8}",
        "precision", "recall", "f1", "found", "true", "gray", "positive"
    );
    for (name, s, own) in rows {
        let _ = writeln!(
            out,
            "{name:>19}  {:<19}  {:<19}  {:<19}  {:>7} {:>7} {:>7} {:>8}{}",
            cell(Some(s.precision), s.ci.precision),
            cell(s.recall, s.ci.recall),
            cell(s.f1, s.ci.f1),
            s.n_found,
            s.n_true,
            s.n_gray,
            s.n_positive,
            if own { " <- the profile's" } else { "" }
        );
    }
}
