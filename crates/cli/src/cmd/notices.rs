//! Notices: things that a person should look at after a night.

use nearprint_explain::shown_id;
use nearprint_fault::percent;
use nearprint_night::{Breakers, MeasuredNight, RunSummary, TrippedBreaker};
use nearprint_report::named_source;

use super::{counted, grouped};

/// Returns a line for everything about a night that a person should look at. A usual night has none.
pub fn noticed(summary: &RunSummary, breakers: &Breakers) -> Vec<String> {
    let documents = &summary.counts.documents;
    let mut lines = Vec::new();
    let mut some = |n: u64, line: &dyn Fn() -> String| {
        if n > 0 {
            lines.push(line());
        }
    };
    some(documents.n_bad_rows, &|| {
        let those = if documents.n_bad_rows == 1 { "is not a document" } else { "are not documents" };
        format!("{} that {those}: see the dataset quarantine", counted(documents.n_bad_rows, "row"))
    });
    some(documents.n_bad_files, &|| {
        format!("{} that cannot be read: the manifest has the reasons", counted(documents.n_bad_files, "file"))
    });
    let n_unfinished = documents.n_unfinished_files;
    some(n_unfinished, &|| format!("{} still being written by the name, not read", counted(n_unfinished, "file")));
    let n_other = documents.n_ignored_files.saturating_sub(n_unfinished);
    some(n_other, &|| format!("{} of other kinds among the documents, not read", counted(n_other, "file")));
    let counts = &summary.counts;
    some(counts.n_orphaned, &|| {
        let orphaned = match counts.n_orphaned {
            1 => "1 earlier document, whose representative is gone, was decided again".to_owned(),
            n => format!("{} earlier documents, whose representatives are gone, were decided again", grouped(n)),
        };
        format!("{orphaned}: {} restored, see the dataset redecided", grouped(counts.n_restored))
    });
    some(counts.n_stubs(), &|| {
        let stubs = counted(counts.n_stubs(), "stub");
        let largest = counts.stubs.first().map_or_else(String::new, |class| {
            let (n, source) = (grouped(class.n_documents), named_source(&class.source));
            format!("; {n} pages of {source} answer like {}", shown_id(&class.stub_id))
        });
        format!("{stubs}, whose pages keep their earlier texts: see the dataset stubs{largest}")
    });
    some(summary.stale.len() as u64, &|| {
        let nights = counted(summary.stale.len() as u64, "later night");
        format!("{nights} made without this one, stale now: {}", summary.stale.join(", "))
    });
    if let Some(measured) = &summary.measured {
        lines.extend(near_limits(measured, breakers, &summary.breakers));
    }
    lines
}

/// Describes the measured values that came near to the limit of a breaker, or are beyond it. Those that stopped the night are
/// in its error.
fn near_limits(measured: &MeasuredNight, breakers: &Breakers, stopped: &[TrippedBreaker]) -> Vec<String> {
    let (near, beyond) = (breakers.near().tripped(measured), breakers.tripped(measured));
    let mut lines = Vec::new();
    let mut line = |name: &str, limit: &dyn std::fmt::Display, value: String| {
        let is_in = |list: &[TrippedBreaker]| list.iter().any(|breaker| breaker.name() == name);
        let is_usual = !is_in(&near) && !is_in(&beyond);
        if is_usual || is_in(stopped) {
            return;
        }
        let bound = if name.starts_with("min") { "less" } else { "more" };
        lines.push(if is_in(&beyond) {
            format!("{value}: {bound} than {limit} stops a night, and this is beyond it ({name})")
        } else {
            format!("{value}: {bound} than {limit} would have stopped the night ({name})")
        });
    };
    if let Some(cluster) = &measured.largest_cluster {
        let value =
            format!("{} in cluster {}", counted(cluster.n_texts, "different text"), shown_id(&cluster.cluster_id));
        line("max_cluster", &grouped(breakers.max_cluster), value);
    }
    if let Some(worst) = measured.worst_sources.first() {
        let value = format!("{} of {} are near-duplicates", percent(worst.loss), named_source(&worst.source));
        line("max_source_loss", &percent(breakers.max_source_loss), value);
    }
    if let Some(rate) = &measured.drop_rate {
        let (share, median) = (percent(rate.share), percent(rate.median));
        let value = format!("{share} dropped (stubs not counted), {median} in the nights before");
        line("max_rate_change", &format!("a change of {}", percent(breakers.max_rate_change)), value);
    }
    if let Some(loss) = &measured.lost_share {
        let value = format!("near-duplicates lose {} of their features on average", percent(loss.mean));
        line("max_mean_lost_share", &percent(breakers.max_mean_lost_share), value);
    }
    if let Some(documents) = &measured.documents {
        let n = counted(documents.n_documents, "document");
        let value = format!("{n}, {} in the nights before", documents.median);
        line("min_document_share", &format!("{} of that", percent(breakers.min_document_share)), value);
    }
    let fallen = [("max_kept_fall", &measured.fallen, breakers.max_kept_fall)];
    let fallen = fallen.into_iter().chain([("max_source_fall", &measured.fallen_source, breakers.max_source_fall)]);
    for (name, fallen, limit) in fallen {
        let Some(fallen) = fallen else { continue };
        let of = fallen.source.as_ref().map_or_else(String::new, |source| format!(" of {}", named_source(source)));
        let (share, median) = (percent(fallen.share), percent(fallen.median));
        let value = format!("{share} of the documents{of} {}, {median} in the nights before", fallen.of.words());
        line(name, &format!("a fall of {}", percent(limit)), value);
    }
    if let Some(small) = &measured.smallest {
        let value = format!("{} of the documents {}", percent(small.share), small.of.words());
        line("min_kept_share", &percent(breakers.min_kept_share), value);
    }
    if let Some(text) = &measured.largest_text {
        let value = format!("{} of {} have one text", percent(text.share), named_source(&text.source));
        line("max_text_share", &percent(breakers.max_text_share), value);
    }
    if let Some(stubs) = &measured.stubs {
        let value = format!("{} of the documents are stubs", percent(stubs.share));
        line("max_stub_share", &percent(breakers.max_stub_share), value);
    }
    lines
}
