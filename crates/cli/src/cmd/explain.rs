//! `nearprint explain`.

use std::fmt::Write;
use std::path::Path;

use nearprint_documents::{DocumentPlace, TableVersions, files_of_all_nights};
use nearprint_explain::{
    ExplainRequest, ExplainTexts, ExplainedFeature, ExplainedPair, Explanation, legible, shown_id,
};

use super::explain_document::explain_document;
use super::pair_text::diff;
use super::{Outcome, Session, counted, grouped};
use crate::args::{ExplainArgs, Global};
use crate::documents::place;
use crate::exit_code::Failure;
use crate::job_config::JobConfig;

pub(super) fn explain(global: &Global, args: &ExplainArgs) -> Outcome {
    let job = JobConfig::read_or_default(args.profile.config.as_deref())?.with_profile_args(&args.profile)?;
    if let [id] = args.ids.as_slice() {
        return explain_document(global, args, &job, id);
    }
    let request = ExplainRequest {
        texts: texts(&job, args)?,
        profile: job.profile_config()?,
        analyzer_resources: job.analyzer_resources()?,
    };
    let session = Session::new(&job, global);
    let explanation =
        session.block_on(|storage, _, _| async move { nearprint_explain::explain(&storage, &request).await })?;
    let text = text(&explanation, args.features);
    Ok(session.report("explain", "done", &explanation, text))
}

fn texts(job: &JobConfig, args: &ExplainArgs) -> Result<ExplainTexts, Failure> {
    let documents = args.documents.as_ref().map(|place| job.folder().given(place));
    let given = place(job.folder(), documents, args.files_from.as_deref(), args.documents_version)?;
    if let Some(documents) = given.or_else(|| of_job(job, args)) {
        let (repeats, columns) = job.repeats()?;
        let columns = Box::new(columns);
        return Ok(ExplainTexts::Documents { documents, columns, repeats, ids: args.ids.clone() });
    }
    if !args.ids.is_empty() {
        return Err(Failure::usage("no documents: give --documents PATH, or --config with a job file that has them"));
    }
    let mut given: Vec<(String, String)> =
        (1..).zip(&args.text).map(|(n, text): (u32, &String)| (format!("text {n}"), text.clone())).collect();
    for path in &args.text_file {
        given.push((path.display().to_string(), read(path)?));
    }
    Ok(ExplainTexts::Given(given))
}

/// Returns the documents of the job, of all its nights, if the command asks for ids.
fn of_job(job: &JobConfig, args: &ExplainArgs) -> Option<DocumentPlace> {
    let documents = job.documents.as_ref().filter(|_| !args.ids.is_empty())?;
    let versions = TableVersions { version: job.documents_version, since: None };
    Some(DocumentPlace::Pattern { pattern: files_of_all_nights(documents), versions })
}

fn read(path: &Path) -> Result<String, Failure> {
    let said = || format!("--text-file {}", path.display());
    std::fs::read_to_string(path).map_err(|e| Failure::reading(&said(), &e))
}

/// The most deciding features that are shown for a bit.
const DECIDERS: usize = 3;

// Writing to a string cannot fail.
fn text(explanation: &Explanation, n_features: usize) -> String {
    let mut out = String::new();
    for (name, text) in names().zip(&explanation.texts) {
        let file = text.file.as_ref().map_or(String::new(), |file| format!("  in {}", legible(file)));
        let _ = writeln!(out, "{name}  {}{file}", shown_id(&text.id));
        let _ = writeln!(out, "   {}, {}", counted(text.length, "character"), counted(text.n_features, "feature"));
        match (&text.fingerprint, &text.reason) {
            (Some(fingerprint), _) => drop(writeln!(out, "   fingerprint {fingerprint}")),
            (None, reason) => {
                let reason = reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
                let _ = writeln!(out, "   no fingerprint ({}){reason}", text.status.words());
            }
        }
    }
    match &explanation.pair {
        Some(pair) => self::pair(&mut out, pair, n_features),
        None => {
            matrix(&mut out, "Distances of the fingerprints", &explanation.distances);
            matrix(&mut out, "Distances of the sketches", &explanation.sketch_distances);
        }
    }
    out
}

/// Returns the names of the texts: A to Z, then numbers from 27.
fn names() -> impl Iterator<Item = String> {
    ('A'..='Z').map(String::from).chain((27..).map(|n: u32| n.to_string()))
}

fn matrix(out: &mut String, title: &str, rows: &[Vec<Option<u32>>]) {
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{title}");
    let header: String = names().take(rows.len()).map(|name| format!("{name:>5}")).collect();
    let _ = writeln!(out, "   {header}");
    for (name, row) in names().zip(rows) {
        let cells: String = row.iter().map(|d| format!("{:>5}", d.map_or("-".to_owned(), |d| d.to_string()))).collect();
        let _ = writeln!(out, "{name:<3}{cells}");
    }
}

fn pair(out: &mut String, pair: &ExplainedPair, n_features: usize) {
    let verdict = match (pair.is_pair, pair.is_pair_across_nights) {
        (true, true) => "A pair",
        (true, false) => "A pair within a night, not across nights",
        (false, true) => "A pair across nights, not within a night",
        (false, false) => "Not a pair",
    };
    let _ = writeln!(out, "\n{verdict}: {}", legible(&pair.reasons.join("; ")));
    if let (Some(distance), Some(similarity)) = (pair.distance, pair.similarity_percent) {
        let sketch = pair.sketch_distance.map_or(String::new(), |d| format!(", sketch distance {d}"));
        let _ = writeln!(out, "Distance {distance}, similarity {similarity:.1} %{sketch}");
    }
    diff(out, pair, ["A", "B"]);
    let table = &pair.features;
    features(out, "shared", &table.shared, n_features, |f| format!("{:>9.3} {:>9.3}", f.weight_a, f.weight_b));
    features(out, "only in A", &table.only_a, n_features, |f| format!("{:>9.3} {:>9}", f.weight_a, ""));
    features(out, "only in B", &table.only_b, n_features, |f| format!("{:>9} {:>9.3}", "", f.weight_b));
    if !pair.differing_bits.is_empty() {
        let _ = writeln!(out, "\n bit    vote A    vote B  decided by (weight in A, in B)");
    }
    for bit in &pair.differing_bits {
        let decider = |f: &ExplainedFeature| format!("{} ({:.3}, {:.3})", f.feature, f.weight_a, f.weight_b);
        let deciders: Vec<String> = bit.features.iter().take(DECIDERS).map(decider).collect();
        let _ = writeln!(out, "{:>4} {:>9.3} {:>9.3}  {}", bit.bit, bit.vote_a, bit.vote_b, deciders.join(", "));
    }
}

fn features(
    out: &mut String,
    title: &str,
    rows: &[ExplainedFeature],
    n: usize,
    weights: fn(&ExplainedFeature) -> String,
) {
    let _ = writeln!(out, "\n{} {title}", counted(rows.len() as u64, "feature"));
    for row in rows.iter().take(n) {
        let _ = writeln!(out, "{}  {}", weights(row), row.feature);
    }
    if rows.len() > n {
        let _ = writeln!(out, "  … and {} more: --features N", grouped((rows.len() - n) as u64));
    }
}
