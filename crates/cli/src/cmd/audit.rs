//! `nearprint audit`.

use std::fmt::Write;

use nearprint_explain::shown_id;
use nearprint_fault::and_more;
use nearprint_measure::{Audit, AuditRequest, Losses, LostShares};

use super::{Outcome, Session, counted, grouped, night_source};
use crate::args::{AuditArgs, Global};
use crate::exit_code::INPUT_MISSING;
use crate::job_config::JobConfig;

pub(super) fn audit(global: &Global, args: &AuditArgs) -> Outcome {
    let job = JobConfig::read(&args.config)?;
    let request = AuditRequest {
        night: night_source(&job, &args.dt)?,
        profile: job.profile_config()?,
        analyzer_resources: job.analyzer_resources()?,
        n_sample: args.sample,
        seed: args.seed,
        n_examples: args.examples,
    };
    let session = Session::new(&job, global);
    let audit = session.block_on(|storage, resources, progress| async move {
        nearprint_measure::audit(&storage, &request, &resources, &progress).await
    })?;
    let status = if audit.is_blind() { "unmeasured" } else { "done" };
    let report = session.report("audit", status, &audit, text(&audit));
    Ok(if audit.is_blind() { report.ended_with(INPUT_MISSING) } else { report })
}

fn text(audit: &Audit) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "{}: {} dropped, {} drawn, {} measured",
        audit.dt,
        grouped(audit.n_drops),
        grouped(audit.n_sampled),
        grouped(audit.all.n)
    );
    let missing = audit.unmeasured;
    for (n, what) in [
        (missing.n_not_found, "text not found"),
        (missing.n_changed, "file changed since the run"),
        (missing.n_keeper_not_found, "text of the document that stays not found"),
        (missing.n_keeper_changed, "its file changed since the run, or its night was replaced or dropped"),
        (missing.n_keeper_in_reference, "the document that stays is in a reference store, whose texts are not read"),
        (missing.n_keeper_forgotten, "the document that stays was forgotten"),
    ] {
        if n > 0 {
            let _ = writeln!(out, "  not measured: {}  {what}", grouped(n));
        }
    }
    if audit.is_blind() {
        let _ = writeln!(out, "Nothing could be measured: restore the files that the manifest of the night names");
    }
    for (name, losses) in [("All drops", &audit.all), ("Near-duplicates", &audit.near)] {
        if losses.n > 0 {
            table(&mut out, name, losses);
        }
    }
    let estimate = &audit.estimate;
    if let (Some(mean), Some(error), Some(within)) = (estimate.mean_estimate, estimate.mean_error, estimate.within_95) {
        let _ = writeln!(
            out,
            "\nPublished lost_share of {}: mean {mean:.3}, off by {error:+.3} on average; 95 % within ± {within:.3}",
            counted(estimate.n, "near-duplicate")
        );
    }
    examples(&mut out, audit);
    out
}

fn table(out: &mut String, name: &str, losses: &Losses) {
    let head = ["mean", "median", "90 %", "95 %", "99 %", "max", "lose 10 % or more [95 % interval]"];
    let [mean, median, p90, p95, p99, max, large] = head;
    let _ = writeln!(
        out,
        "\n{name}: {}; share that the document that stays lacks\n  {:<16} {mean:>6} {median:>6} {p90:>6} {p95:>6} {p99:>6} {max:>6}  {large}",
        grouped(losses.n),
        ""
    );
    for (name, shares) in [("word 3-grams", Some(&losses.words)), ("sketch features", losses.features.as_ref())] {
        if let Some(shares) = shares {
            let _ = writeln!(out, "  {name:<16} {}", row(shares));
        }
    }
    let longer = percent(losses.share_longer, losses.share_longer_ci);
    let _ = writeln!(out, "  longer by more than 2 %: {} ({longer})", grouped(losses.n_longer));
}

fn row(shares: &LostShares) -> String {
    let values = [shares.mean, shares.median, shares.p90, shares.p95, shares.p99, shares.max];
    let values = values.map(|value| value.map_or("-".to_owned(), |value| format!("{value:.3}")));
    let values: Vec<String> = values.iter().map(|value| format!("{value:>6}")).collect();
    let large = percent(shares.share_large, shares.share_large_ci);
    format!("{}  {} ({large})", values.join(" "), grouped(shares.n_large))
}

fn percent(share: Option<f64>, ci: Option<[f64; 2]>) -> String {
    match (share, ci) {
        (Some(share), Some([low, high])) => {
            format!("{:.1} % [{:.1} {:.1}]", 100.0 * share, 100.0 * low, 100.0 * high)
        }
        _ => "-".to_owned(),
    }
}

fn examples(out: &mut String, audit: &Audit) {
    for example in &audit.worst {
        let lost = |share: Option<f64>| share.map_or("unknown".to_owned(), |share| format!("{share:.3}"));
        let _ = writeln!(
            out,
            "\nDropped ({}){}, losing a share of {:.3} of its word 3-grams and {} of its features, estimated {}",
            example.reason,
            with_same_texts(example.n_same_texts),
            example.lost_words,
            lost(example.lost_share),
            lost(example.estimated_lost_share)
        );
        let (dropped, kept) = &example.excerpts;
        let rows = [
            ("drop", &audit.dt, &example.doc_id, example.length, dropped),
            ("keep", &example.canonical_dt, &example.canonical_id, example.canonical_length, kept),
        ];
        for (name, dt, id, length, text) in rows {
            let _ = writeln!(out, "  {name}  {dt}  {}  ({})", shown_id(id), counted(length, "character"));
            let _ = writeln!(out, "        {text}");
        }
    }
}

/// Says how many more documents are as a listed one is.
fn with_same_texts(n: u64) -> String {
    let more = and_more(n);
    if more.is_empty() { more } else { format!("{more} with the same texts") }
}
