//! The facts that a reader of a night should look at first, and how near the breakers came to stopping it.

use nearprint_night::{Breakers, Fallen, NO_SOURCE, RunCounts, TrippedBreaker};

use super::night_report::NightReport;
use nearprint_explain::legible;
use nearprint_fault::{counted, grouped, percent};

/// The note to readers of a stale night.
pub const STALE: &str = "The night is stale: nights before it were added, replaced or dropped since it was made. \
                         nearprint run --config FILE --stale makes all stale nights anew.";

/// The note to readers of a night without counts of its sources.
const NO_HOSTS: &str = "Release 0.2.0 published the night, without counts of its sources: what max_source_fall and \
                        max_text_share look at is unknown, and max_source_loss is that of the sources that lost most.";

/// Names a source of documents in a sentence.
#[must_use]
pub fn named_source(source: &str) -> String {
    match source {
        NO_SOURCE => "documents without a source".to_owned(),
        source => format!("source {}", legible(source)),
    }
}

/// A value that a breaker looks at.
pub(super) struct Watched {
    /// The key below `[breakers]`.
    pub(super) key: &'static str,
    pub(super) meaning: &'static str,
    pub(super) value: String,
    pub(super) limit: String,
    pub(super) standing: Closeness,
}

/// How a value stands to its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closeness {
    Usual,
    /// It has reached half of the limit.
    Near,
    /// It is beyond the limit: the night was run without breakers, or with other limits.
    Beyond,
    /// It may have reached half of the limit, or more: the published files do not tell.
    Unknown,
}

/// Returns the values that breakers look at, as far as published files tell them.
pub(super) fn watched(night: &NightReport) -> Vec<Watched> {
    let (breakers, counts) = (&night.breakers, &night.summary.counts);
    let measured = night.summary.measured.clone().unwrap_or_default();
    let tripped = |breakers: &Breakers| -> Vec<&'static str> {
        breakers.tripped(&measured).iter().map(TrippedBreaker::name).collect()
    };
    let (near, beyond) = (tripped(&breakers.near()), tripped(breakers));
    let shares = breakers.shares();
    let limit = |key: &str| {
        let of_key = shares.iter().find(|(name, ..)| *name == key);
        let on = of_key.filter(|(_, limit, off)| (limit - off).abs() >= f64::EPSILON);
        on.map_or_else(|| "off".to_owned(), |(_, limit, _)| percent(*limit))
    };
    let row = |key: &'static str, meaning, value: Option<String>| Watched {
        key,
        meaning,
        // What was not measured is too little to go by.
        value: value.unwrap_or_else(|| "too little to go by".to_owned()),
        limit: limit(key),
        standing: match () {
            () if beyond.contains(&key) => Closeness::Beyond,
            () if near.contains(&key) => Closeness::Near,
            () => Closeness::Usual,
        },
    };
    let fall =
        |fallen: &Fallen| format!("{} ({} → {})", percent(fallen.fall), percent(fallen.median), percent(fallen.share));
    // Counts of sources tell what no other published file does.
    let of_sources = |value: Option<String>| match value {
        None if has_no_hosts(counts) => Some("unknown: release 0.2.0 published the night".to_owned()),
        value => value,
    };
    vec![
        cluster(breakers, counts.decisions.largest_cluster),
        row(
            "max_source_loss",
            "the largest share that a source lost as near-duplicates",
            measured
                .worst_sources
                .first()
                .map(|worst| format!("{} of {}", percent(worst.loss), named_source(&worst.source))),
        ),
        row(
            "max_rate_change",
            "the change of the share of dropped documents, stubs not counted, against the median of the nights before",
            measured
                .drop_rate
                .as_ref()
                .map(|rate| format!("{} ({} → {})", percent(rate.change), percent(rate.median), percent(rate.share))),
        ),
        row(
            "max_mean_lost_share",
            "what a near-duplicate lost on average",
            measured.lost_share.as_ref().map(|loss| percent(loss.mean)),
        ),
        row(
            "min_document_share",
            "the documents as a share of the median of the nights before",
            measured.documents.as_ref().map(|documents| percent(documents.share)),
        ),
        row(
            "max_kept_fall",
            "the fall of the share of kept documents, or of different texts, against the median of the nights before",
            measured.fallen.as_ref().map(fall),
        ),
        row(
            "max_source_fall",
            "the largest fall of these shares of one source",
            of_sources(measured.fallen_source.as_ref().map(|fallen| {
                let source = fallen.source.as_deref().unwrap_or(NO_SOURCE);
                format!("{} of {}", fall(fallen), named_source(source))
            })),
        ),
        row(
            "min_kept_share",
            "the smaller share of kept documents and of different texts, where there is no such median",
            measured.smallest.as_ref().map(|small| percent(small.share)),
        ),
        row(
            "max_text_share",
            "the largest share of a source's documents that have one text",
            of_sources(
                measured
                    .largest_text
                    .as_ref()
                    .map(|text| format!("{} of {}", percent(text.share), named_source(&text.source))),
            ),
        ),
        row("max_stub_share", "the share of stubs", measured.stubs.as_ref().map(|stubs| percent(stubs.share))),
    ]
}

/// Returns what is known of the breaker of clusters: a cluster has no more different texts than documents.
fn cluster(breakers: &Breakers, n_documents: u64) -> Watched {
    let near = breakers.near().max_cluster;
    Watched {
        key: "max_cluster",
        meaning: "the different texts of a cluster, which a run alone counts",
        value: match n_documents {
            0 => "no cluster".to_owned(),
            n => format!("at most {}: the largest cluster has that many documents", grouped(n)),
        },
        limit: if near == 0 { "off".to_owned() } else { grouped(breakers.max_cluster) },
        standing: if near > 0 && n_documents > near { Closeness::Unknown } else { Closeness::Usual },
    }
}

/// Returns whether a night has no counts of its sources, as those of release 0.2.0.
fn has_no_hosts(counts: &RunCounts) -> bool {
    counts.by_recrawl.is_none()
}

/// Returns a line for each thing that a reader should look at. A usual night has none.
pub(super) fn notable(night: &NightReport) -> Vec<String> {
    let (counts, record) = (&night.summary.counts, &night.history.night);
    let mut lines = Vec::new();
    let mut say = |n: u64, line: String| lines.extend((n > 0).then_some(line));
    let documents = &counts.documents;
    say(u64::from(night.is_stale), STALE.to_owned());
    say(u64::from(documents.n_documents == 0), "The night has no documents.".to_owned());
    let n = documents.n_bad_files;
    say(n, format!("{} could not be read: none of the documents there were compared.", counted(n, "file")));
    let reasons = documents.bad_rows_by_reason.iter().map(|(reason, n)| format!("{} {reason}", grouped(*n)));
    let n = documents.n_bad_rows;
    let reasons = reasons.collect::<Vec<_>>().join(", ");
    let those = if n == 1 { "is no document" } else { "are no documents" };
    say(n, format!("{} that {those}, in quarantine: {reasons}.", counted(n, "row")));
    let n = documents.n_repeated_ids;
    say(n, format!("{} left out and in quarantine: another row has the id.", are(n, "row")));
    let n = documents.n_unknown_revisits;
    say(n, format!("{} in quarantine: the texts that they refer to are unknown.", counted(n, "revisit record")));
    let (n, n_restored) = (counts.n_orphaned, grouped(counts.n_restored));
    let orphaned = match n {
        1 => "1 document of an earlier night, whose representative is gone, was decided again".to_owned(),
        n => format!("{} documents of earlier nights, whose representatives are gone, were decided again", grouped(n)),
    };
    say(n, format!("{orphaned}: {n_restored} restored."));
    let n = counts.n_stubs();
    let largest = counts.stubs.first().map_or_else(String::new, |class| {
        format!(
            " {} of {} answer like {}.",
            grouped(class.n_documents),
            named_source(&class.source),
            legible(&class.stub_id)
        )
    });
    say(n, format!("{}: the pages keep their earlier texts.{largest}", counted(n, "stub")));
    let n = documents.n_unfinished_files;
    say(n, format!("{} still being written, by the name: passed over.", are(n, "file")));
    let n = documents.n_ignored_files.saturating_sub(n);
    say(n, format!("{} of other kinds: they were passed over.", counted(n, "file")));
    let n = documents.n_files_without_checksums;
    say(
        n,
        format!(
            "{} no checksums: damage there may go unseen.",
            if n == 1 { "1 file has".to_owned() } else { format!("{} files have", grouped(n)) }
        ),
    );
    say(
        record.n_forgotten,
        format!("{} forgotten since; the counts are those of the run.", are(record.n_forgotten, "document")),
    );
    say(u64::from(has_no_hosts(counts)), NO_HOSTS.to_owned());
    for (dt, reason) in &night.history.unread {
        lines.push(format!(
            "The manifest of {dt} cannot be read, so that night is not in the trend: {}",
            legible(reason)
        ));
    }
    for Watched { key, value, limit, standing, .. } in watched(night) {
        let stood = match standing {
            Closeness::Usual => continue,
            Closeness::Near => "was near",
            Closeness::Beyond => "was beyond its limit",
            Closeness::Unknown => "may have been near",
        };
        lines.push(format!("The breaker {key} {stood}: {value}; the limit is {limit}."));
    }
    lines
}

/// Formats `1 row is`, and `2 rows are`.
fn are(n: u64, what: &str) -> String {
    format!("{} {}", counted(n, what), if n == 1 { "is" } else { "are" })
}

/// Returns the share of a night's documents that were dropped, or `None` if it has none.
#[allow(clippy::cast_precision_loss, reason = "a share of documents")]
pub(super) fn dropped_share(n_drop: u64, n_documents: u64) -> Option<f64> {
    (n_documents > 0).then(|| n_drop as f64 / n_documents as f64)
}

/// Returns about how many bytes of the input the dropped documents take. Files may be compressed, and documents are not
/// equally long, so this is an estimate.
#[allow(clippy::cast_precision_loss, reason = "an estimate")]
pub(super) fn bytes_saved(night: &NightReport) -> f64 {
    let counts = &night.summary.counts;
    // A night without documents drops none.
    let share = dropped_share(counts.decisions.n_drop, counts.documents.n_documents).unwrap_or_default();
    share * night.history.night.input_bytes as f64
}

/// Returns how many of a night's recrawled documents have the same text as before, and how many another one: such as
/// `250 with the same text, 43 changed`. Nights of release 0.2.0 do not say it.
#[must_use]
pub fn recrawled(counts: &RunCounts) -> String {
    let by_recrawl = counts.by_recrawl.unwrap_or_default();
    let parts = [(by_recrawl.n_same, "with the same text"), (by_recrawl.n_changed, "changed")];
    let parts = parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{} {what}", grouped(*n)));
    parts.collect::<Vec<_>>().join(", ")
}

/// Returns the numbers of a prefix's reasons as words, such as `120 near, 3 exact`.
pub(super) fn reasons(night: &NightReport, prefix: &str) -> String {
    let by_reason = &night.summary.counts.decisions.by_reason;
    let named = by_reason.iter().filter_map(|(name, n)| Some((name.strip_prefix(prefix)?, n)));
    named.map(|(name, n)| format!("{} {}", grouped(*n), name.replace('_', " "))).collect::<Vec<_>>().join(", ")
}
