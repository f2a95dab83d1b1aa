//! `nearprint store`: init, info, check, compact, index, drop-night, forget and gc. `store migrate` has a file of its own.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use nearprint_explain::legible;
use nearprint_night::{
    DropNightRequest, ForgetBeforeRequest, ForgetIdsRequest, ForgetIdsSummary, ListedNight, StoreContents,
};
use nearprint_store::SegmentInfo;
use nearprint_store::maintain::{
    CompactRequest, CompactSummary, GcRequest, GcSummary, IndexRequest, IndexSummary, StoreReport,
};
use nearprint_tasks::Engine;
use schemars::JsonSchema;
use serde::Serialize;

use super::check::problems;
use super::migrate::migrate;
use super::{Outcome, Session, counted, grouped};
use crate::args::{CompactArgs, DropNightArgs, ForgetArgs, GcArgs, Global, StoreArgs, StoreCommand};
use crate::command_line::command_line;
use crate::documents::read_ids;
use crate::exit_code::{BAD_DATA, Failure};
use crate::job_config::JobConfig;

/// The summary of `store init`.
#[derive(Serialize, JsonSchema)]
pub(super) struct Made {
    /// The store.
    store: String,
}

pub(super) fn store(global: &Global, command: &StoreCommand, engine: Option<&Arc<dyn Engine>>) -> Outcome {
    match command {
        StoreCommand::Init(args) => init(global, args),
        StoreCommand::Info(args) => info(global, args),
        StoreCommand::Check(args) => check(global, args),
        StoreCommand::Compact(args) => compact(global, args),
        StoreCommand::DropNight(args) => drop_night(global, args),
        StoreCommand::Forget(args) => forget(global, args),
        StoreCommand::Migrate(args) => migrate(global, args, engine),
        StoreCommand::Gc(args) => gc(global, args),
        StoreCommand::Index(args) => index(global, args),
    }
}

/// Returns the job of a command, its session, and the place of its store.
fn open(global: &Global, args: &StoreArgs) -> Result<(JobConfig, Session, String), Failure> {
    let job = JobConfig::read_or_default(args.config.as_deref())?;
    let (session, url) = (Session::new(&job, global), job.store(args.store.as_ref())?);
    Ok((job, session, url))
}

fn init(global: &Global, args: &StoreArgs) -> Outcome {
    let (job, session, url) = open(global, args)?;
    let (writers, place) = (job.writers(), url.clone());
    let is_new = session
        .block_on(|storage, _, _| async move { nearprint_night::store_init(&storage, &place, writers).await })?;
    let status = if is_new { "made" } else { "already_there" };
    let text = format!("{url}: {}\n", status.replace('_', " "));
    Ok(session.report("store init", status, &Made { store: url }, text))
}

fn drop_night(global: &Global, args: &DropNightArgs) -> Outcome {
    let (job, session, store) = open(global, &args.place)?;
    let request = DropNightRequest { store, dt: args.dt.clone(), writers: job.writers() };
    let summary = session.block_on(|storage, resources, _| async move {
        nearprint_night::store_drop_night(&storage, &request, &resources).await
    })?;
    let mut text = format!("{}: dropped {} (commit {})\n", summary.store, summary.dt, summary.commit);
    if summary.stale.is_empty() {
        return Ok(session.report("store drop-night", "done", &summary, text));
    }
    let stale = summary.stale.join(", ");
    let config = args.place.config.as_deref().map(std::path::Path::to_string_lossy);
    let again = config.map(|config| command_line(["run", "--config", &*config, "--stale"]));
    let how = if again.is_some() { "" } else { "; `nearprint run --stale` with their job file makes them anew" };
    let _ = writeln!(text, "  stale      {stale}: made with this night{how}");
    Ok(session.report("store drop-night", "done", &summary, text).then(again))
}

fn forget(global: &Global, args: &ForgetArgs) -> Outcome {
    let (job, session, store) = open(global, &args.place)?;
    let writers = job.writers();
    match (&args.before, &args.ids) {
        (Some(before), _) => forget_before(&session, ForgetBeforeRequest { store, before: before.clone(), writers }),
        (None, Some(ids)) => forget_ids(&session, ForgetIdsRequest { store, ids: read_ids(ids)?, writers }),
        (None, None) => Err(Failure::usage("name --before or --ids")),
    }
}

fn forget_before(session: &Session, request: ForgetBeforeRequest) -> Outcome {
    let summary = session.block_on(|storage, resources, _| async move {
        nearprint_night::store_forget_before(&storage, &request, &resources).await
    })?;
    let (store, commit, before) = (&summary.store, summary.commit, &summary.before);
    let (status, text) = match (summary.nights.first(), summary.nights.last()) {
        (Some(first), Some(last)) => {
            let nights = counted(summary.nights.len() as u64, "night");
            let documents = counted(summary.n_documents, "document");
            let left = counted(summary.n_nights_left, "night");
            let dates = if first == last { first.clone() } else { format!("{first} to {last}") };
            let which = format!("{nights} with {documents}, {dates}");
            ("forgotten", format!("{store}: forgot {which}; {left} left (commit {commit})\n"))
        }
        _ => ("nothing_to_forget", format!("{store}: no night before {before} (commit {commit})\n")),
    };
    Ok(session.report("store forget", status, &summary, text))
}

fn forget_ids(session: &Session, request: ForgetIdsRequest) -> Outcome {
    let summary = session.block_on(|storage, resources, progress| async move {
        nearprint_night::store_forget_ids(&storage, &request, &resources, &progress).await
    })?;
    let status = if summary.is_committed() { "forgotten" } else { "nothing_to_forget" };
    Ok(session.report("store forget", status, &summary, forget_ids_text(&summary)))
}

fn forget_ids_text(summary: &ForgetIdsSummary) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{}: forgot {} of {} ({} not found): {}; {} of the store, results of {} (commit {})",
        summary.store,
        grouped(summary.n_found),
        counted(summary.n_ids, "id"),
        grouped(summary.n_not_found),
        counted(summary.n_documents, "document"),
        counted(summary.nights.len() as u64, "night"),
        counted(summary.results.len() as u64, "night"),
        summary.commit
    );
    if summary.n_represented > 0 {
        let n = counted(summary.n_represented, "document");
        let _ = writeln!(out, "  {n} that they represented represent themselves in the store from now on");
    }
    if summary.is_committed() {
        let _ = writeln!(
            out,
            "  the former files stay until `store gc` deletes them: 24 hours from now, or at once with --grace-hours 0"
        );
    }
    out
}

fn info(global: &Global, args: &StoreArgs) -> Outcome {
    let (_, session, url) = open(global, args)?;
    let info =
        session.block_on(|storage, _, _| async move { nearprint_night::store_contents(&storage, &url).await })?;
    let text = info_text(&info);
    Ok(session.report("store info", "done", &info, text))
}

fn info_text(StoreContents { info, nights }: &StoreContents) -> String {
    let mut out = String::new();
    // Only a store with a commit gets here, and that has a digest.
    let digest = info.config_digest.as_deref().unwrap_or_default();
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "{}: commit {}, {}, {}, {}, {}, config {}",
        info.store,
        info.commit,
        counted(info.n_nights, "night"),
        counted(info.n_fingerprints, "fingerprint"),
        counted(info.n_short, "short text"),
        counted(info.bytes, "byte"),
        digest.get(..12).unwrap_or(digest)
    );
    if !nights.is_empty() {
        let _ = writeln!(
            out,
            "  {:<10}  {:>13}  {:>13}  {:>13}  {:>9}  {:>13}  {:>16}",
            "night", "documents", "keep", "drop", "skip", "recrawled", "bytes"
        );
    }
    for night in nights {
        out.push_str(&night_text(night));
    }
    if let Some(before) = &info.forgotten_before {
        let _ = writeln!(out, "  all nights before {before} are forgotten");
    }
    for segment in &info.segments {
        out.push_str(&derived_text("segment", segment));
    }
    for index in &info.indexes {
        out.push_str(&derived_text("index", index));
    }
    out
}

/// Formats the line of a night, which ends with what a reader should know of it.
fn night_text(ListedNight { night, counts, unread }: &ListedNight) -> String {
    let columns = match counts {
        Some(counts) => {
            let [documents, keep, drop, same_id] =
                [counts.n_documents, counts.n_keep, counts.n_drop, counts.n_same_id].map(grouped);
            let skip = grouped(counts.n_skip);
            format!("{documents:>13}  {keep:>13}  {drop:>13}  {skip:>9}  {same_id:>13}")
        }
        None => format!("{:>13}  {:>13}  {:>13}  {:>9}  {:>13}", "-", "-", "-", "-", "-"),
    };
    let n_forgotten = counts.map_or(0, |counts| counts.n_forgotten);
    let forgotten = (n_forgotten > 0).then(|| format!("{} forgotten since", counted(n_forgotten, "document")));
    let stale = night.stale.then(|| "stale: earlier nights changed since".to_owned());
    let unread = unread.as_ref().map(|reason| format!("its manifest cannot be read: {}", legible(reason)));
    let notes: Vec<String> = [stale, forgotten, unread].into_iter().flatten().collect();
    let line = format!("  {}  {columns}  {:>16}  {}", night.dt, grouped(night.bytes), notes.join("; "));
    format!("{}\n", line.trim_end())
}

fn derived_text(what: &str, derived: &SegmentInfo) -> String {
    let replaced = derived.n_runs - derived.n_live_runs;
    let replaced = if replaced > 0 { format!("  {replaced} replaced or forgotten since") } else { String::new() };
    format!(
        "  {what:<10}  {:>14} fingerprints  {:>10} runs   {:>16} bytes  {}{replaced}\n",
        grouped(derived.n_rows),
        grouped(derived.n_runs),
        grouped(derived.bytes),
        derived.digest
    )
}

fn check(global: &Global, args: &StoreArgs) -> Outcome {
    let (_, session, url) = open(global, args)?;
    let found = session.block_on(|storage, _, progress| async move {
        nearprint_night::store_check(&storage, &url, &progress).await
    })?;
    let text = check_text(&found);
    let sound = found.problems.is_empty();
    let report = session.report("store check", if sound { "sound" } else { "damaged" }, &found, text);
    Ok(if sound { report } else { report.ended_with(BAD_DATA) })
}

fn check_text(found: &StoreReport) -> String {
    let mut out = problems(&found.problems, &[]);
    let verdict =
        if found.problems.is_empty() { "sound".to_owned() } else { format!("{} damaged", found.problems.len()) };
    let _ = writeln!(
        out,
        "{}: {verdict}; {}, {}, {} read",
        found.store,
        counted(found.n_files, "file"),
        counted(found.bytes, "byte"),
        counted(found.n_rows, "row")
    );
    out
}

fn compact(global: &Global, args: &CompactArgs) -> Outcome {
    let (job, session, url) = open(global, &args.place)?;
    let mut request = CompactRequest::of(url);
    request.writers = job.writers();
    request.part_rows = args.part_rows.unwrap_or(request.part_rows);
    let summary = session.block_on(|storage, resources, progress| async move {
        nearprint_night::store_compact(&storage, &request, &resources, &progress).await
    })?;
    let status = if summary.already_compact { "already_compact" } else { "compacted" };
    Ok(session.report("store compact", status, &summary, compact_text(&summary, status)))
}

fn compact_text(summary: &CompactSummary, status: &str) -> String {
    let Some(segment) = &summary.segment else {
        return format!("{}: nothing to compact: fewer than two nights have fingerprints\n", summary.store);
    };
    format!(
        "{}: {}: {} of {} in {} ({} made before), {}, segment {segment} (commit {})\n",
        summary.store,
        status.replace('_', " "),
        counted(summary.n_rows, "fingerprint"),
        counted(summary.n_runs, "run"),
        counted(summary.n_parts, "part"),
        grouped(summary.n_parts_resumed),
        counted(summary.bytes, "byte"),
        summary.commit
    )
}

fn index(global: &Global, args: &StoreArgs) -> Outcome {
    let (job, session, store) = open(global, args)?;
    let request = IndexRequest { store, writers: job.writers() };
    let summary = session.block_on(|storage, resources, progress| async move {
        nearprint_night::store_index(&storage, &request, &resources, &progress).await
    })?;
    let status = if summary.already_indexed { "already_indexed" } else { "indexed" };
    Ok(session.report("store index", status, &summary, index_text(&summary, status)))
}

fn index_text(summary: &IndexSummary, status: &str) -> String {
    let Some(index) = &summary.index else {
        return format!("{}: nothing to index: no night has fingerprints\n", summary.store);
    };
    format!(
        "{}: {}: {} of {} in {} ({} made before), {}, index {index} (commit {})\n",
        summary.store,
        status.replace('_', " "),
        counted(summary.n_rows, "fingerprint"),
        counted(summary.n_runs, "run"),
        counted(summary.n_tables, "table"),
        grouped(summary.n_tables_resumed),
        counted(summary.bytes, "byte"),
        summary.commit
    )
}

fn gc(global: &Global, args: &GcArgs) -> Outcome {
    let (job, session, store) = open(global, &args.place)?;
    let request = GcRequest {
        store,
        output: args.output.as_ref().map(|place| job.folder().given(place)).or_else(|| job.output.clone()),
        grace: Duration::from_secs(u64::from(args.grace_hours) * 3600),
        dry_run: args.dry_run,
        writers: job.writers(),
    };
    let summary =
        session.block_on(|storage, _, _| async move { nearprint_night::store_gc(&storage, &request).await })?;
    let status = if summary.dry_run { "listed" } else { "done" };
    Ok(session.report("store gc", status, &summary, gc_text(&summary)))
}

fn gc_text(summary: &GcSummary) -> String {
    let mut out = String::new();
    for removed in &summary.removed {
        let _ = writeln!(
            out,
            "  {:>8} files  {:>16} bytes  {}",
            grouped(removed.n_files),
            grouped(removed.bytes),
            removed.place
        );
    }
    let more = summary.n_removed.saturating_sub(summary.removed.len() as u64);
    if more > 0 {
        let _ = writeln!(out, "  and {} more", grouped(more));
    }
    let _ = writeln!(
        out,
        "{}: {} with {} {} (commit {})",
        summary.store,
        counted(summary.n_files, "file"),
        counted(summary.bytes, "byte"),
        if summary.dry_run { "would be deleted" } else { "deleted" },
        summary.commit
    );
    if let Some(until) = &summary.waiting_until {
        let _ = writeln!(
            out,
            "{} with {} bytes wait until {until} for readers of earlier results (--grace-hours)",
            counted(summary.n_waiting, "file"),
            grouped(summary.waiting_bytes)
        );
    }
    for key in &summary.uploads {
        let aborted = if summary.dry_run { "would be aborted" } else { "aborted" };
        let _ = writeln!(out, "{aborted}: the unfinished upload of {key}");
    }
    if summary.n_pruned_commits > 0 {
        let pruned = if summary.dry_run { "would be pruned" } else { "pruned" };
        let _ = writeln!(out, "{} {pruned}", counted(summary.n_pruned_commits, "unneeded commit"));
    }
    for output in &summary.foreign_outputs {
        let _ = writeln!(
            out,
            "did not search {output}: this store's _store.json is not there or cannot be read (a run writes it)"
        );
    }
    if summary.n_left > 0 {
        let _ = writeln!(out, "{} left: run it again", counted(summary.n_left, "file"));
    }
    out
}
