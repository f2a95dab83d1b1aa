//! `nearprint query`.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use nearprint_documents::{holds_one_document, is_document_name, page_text};
use nearprint_explain::{legible, shown_id};
use nearprint_fault::{ErrorKind, Fault, foreign};
use nearprint_join::Kernel;
use nearprint_lookup::{
    Answer, BadQuestion, JsonQuery, Lookup, LookupOptions, LookupProfile, Query, State, parse_sketch,
};
use nearprint_profile::HtmlText;
use nearprint_storage::{Storage, blocking};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::{Outcome, Session, counted, grouped, refuse_beyond};
use crate::args::{Global, LookupArgs, ProfileArgs, QueryArgs};
use crate::exit_code::{BAD_DATA, Failure};
use crate::job_config::JobConfig;
use crate::summary::{json_line, write_line};

/// The path that stands for standard input.
const STDIN: &str = "-";

/// What some editors begin a file of UTF-8 with. It is no part of the text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The largest HTML file that is a query.
const MAX_PAGE_BYTES: u64 = 256 << 20;
/// The longest line of queries.
const MAX_LINE_BYTES: usize = 64 << 20;

pub(super) fn query(global: &Global, args: &QueryArgs) -> Outcome {
    let job = job(&args.lookup)?;
    let opening = Opening::new(global, &job, &args.lookup, args.max_matches)?;
    let session = Session::new(&job, global);
    match &args.jsonl {
        Some(path) => stream(&session, opening, path),
        None => {
            let query = single(args, &opening.profile, job.html_text())?;
            one(&session, opening, query)
        }
    }
}

/// Reads the job, with the options that choose a profile.
pub(super) fn job(args: &LookupArgs) -> Result<JobConfig, Failure> {
    if args.config.is_none() && args.store.is_none() {
        return Err(Failure::usage("no store: give --config FILE or --store PATH"));
    }
    JobConfig::read_or_default(args.config.as_deref())?.with_profile_args(&ProfileArgs {
        config: args.config.clone(),
        profile: args.profile.clone(),
        overrides: args.overrides.clone(),
        id_column: None,
        text_column: None,
        warc_id: None,
        html_text: args.html_text.clone(),
    })
}

fn options(
    global: &Global,
    args: &LookupArgs,
    max_matches: usize,
    profile: &LookupProfile,
) -> Result<LookupOptions, Failure> {
    let own = LookupOptions::of(profile.config());
    args.max_distance.map_or(Ok(()), |max_distance| refuse_beyond(profile.config().bits, max_distance))?;
    let kernel = global.kernel.map_or(Ok(own.kernel), Kernel::try_new);
    let own = match &global.memory_limit {
        Some(limit) => own.within(limit.0),
        None => own,
    };
    Ok(LookupOptions {
        max_sketch_distance: args.max_sketch_distance.or(own.max_sketch_distance),
        max_matches,
        threads: global.threads.map_or(own.threads, usize::from),
        kernel: kernel?,
        ..own.within_distance(args.max_distance)
    })
}

/// The query that the flags give.
fn single(args: &QueryArgs, profile: &LookupProfile, html_text: &HtmlText) -> Result<Query, Failure> {
    if let Some(text) = &args.text {
        return Ok(Query::Text(text.clone()));
    }
    if let Some(path) = &args.file {
        return text_of(path, html_text).map(Query::Text);
    }
    if let Some(id) = &args.id {
        return Ok(Query::Document(id.clone()));
    }
    let Some(fingerprint) = &args.fingerprint else {
        return Err(Failure::usage("give --text, --file, --id, --fingerprint or --jsonl"));
    };
    let sketch = args.sketch.as_deref().map(parse_sketch).transpose()?;
    let fingerprint = profile.parse_fingerprint(fingerprint)?;
    Ok(Query::Fingerprint { fingerprint, sketch })
}

/// Returns the text of a file, which is UTF-8; of an HTML file, the text that the store's nights take from pages.
fn text_of(path: &Path, html_text: &HtmlText) -> Result<String, Failure> {
    let name = path.display().to_string();
    let failed = |e: std::io::Error| Failure::reading(&format!("--file {name}"), &e);
    if is_document_name(&name) && !holds_one_document(&name) {
        let reason = "it holds many documents: give a file with one text or page, or queries in JSON lines by --jsonl";
        return Err(Failure::usage(format!("--file {name}: {reason}")));
    }
    let mut bytes = Vec::new();
    if path == Path::new(STDIN) {
        std::io::stdin().read_to_end(&mut bytes).map_err(failed)?;
    } else {
        bytes = std::fs::read(path).map_err(failed)?;
    }
    if holds_one_document(&name) || begins_as_html(&bytes) {
        return Ok(page_text(&name, &bytes, html_text, MAX_PAGE_BYTES)?);
    }
    if bytes.starts_with(b"WARC/") {
        let reason = "it is a WARC file, which holds many documents: give a file with one text or page";
        return Err(Failure::usage(format!("--file {name}: {reason}")));
    }
    String::from_utf8(bytes).map_err(|_| failed(std::io::Error::new(std::io::ErrorKind::InvalidData, "not UTF-8")))
}

/// Returns whether the bytes begin as those of an HTML page do, whatever the name of their file.
fn begins_as_html(bytes: &[u8]) -> bool {
    const BEGINNING: usize = 1 << 10;
    let beginning = &bytes[..bytes.len().min(BEGINNING)];
    let beginning = beginning.strip_prefix(BYTE_ORDER_MARK).unwrap_or(beginning).to_ascii_lowercase();
    let beginning = beginning.trim_ascii_start();
    let is_xhtml = || beginning.starts_with(b"<?xml") && beginning.windows(5).any(|tag| tag == b"<html");
    let begins = |tag: &[u8]| beginning.starts_with(tag);
    begins(b"<!doctype html") || begins(b"<html") || begins(b"<head") || begins(b"<body") || is_xhtml()
}

/// A store that is about to be opened.
pub(super) struct Opening {
    url: String,
    profile: Arc<LookupProfile>,
    options: LookupOptions,
}

impl Opening {
    pub(super) fn new(
        global: &Global,
        job: &JobConfig,
        args: &LookupArgs,
        max_matches: usize,
    ) -> Result<Self, Failure> {
        let url = job.store(args.store.as_ref())?;
        let profile = LookupProfile::try_new(job.profile_config()?, &job.analyzer_resources()?, job.html_text())?;
        let options = options(global, args, max_matches, &profile)?;
        Ok(Self { url, profile: Arc::new(profile), options })
    }

    pub(super) async fn open(self, storage: &Storage) -> Result<Lookup, Fault> {
        Lookup::open(&storage.folder(&self.url)?, self.profile, self.options).await
    }
}

/// The summary of one query.
#[derive(Serialize, JsonSchema)]
pub(super) struct OneSummary {
    #[serde(flatten)]
    state: State,
    #[serde(flatten)]
    answer: Answer,
}

fn one(session: &Session, opening: Opening, query: Query) -> Outcome {
    let summary = session.block_on(|storage, _, _| async move {
        let lookup = opening.open(&storage).await?;
        let answer = lookup.answer(&query).await?;
        Ok::<_, Fault>(OneSummary { state: lookup.state(), answer })
    })?;
    let status = if summary.answer.n_matches > 0 { "found" } else { "no_match" };
    Ok(session.report("query", status, &summary, one_text(&summary)))
}

// Writing to a string cannot fail.
fn one_text(summary: &OneSummary) -> String {
    let OneSummary { state, answer } = summary;
    let mut out = String::new();
    let query = match (&answer.fingerprint, answer.reason) {
        (Some(fingerprint), _) => format!("fingerprint {fingerprint}"),
        (None, Some("empty")) if answer.document.is_some() => "no text".to_owned(),
        (None, Some("empty")) => "no text: it is empty after normalisation".to_owned(),
        (None, _) => "too short for a fingerprint: equal texts only".to_owned(),
    };
    let found = match answer.n_matches {
        0 => "no match".to_owned(),
        1 => "1 match".to_owned(),
        n => format!("{} matches", grouped(n)),
    };
    if let Some(document) = &answer.document {
        let canonical = represented(", ", document.canonical_id.as_deref(), document.reference.as_deref());
        let (dt, decision) = (&document.dt, document.decision.name());
        let _ = writeln!(out, "{}  {dt}  {decision}{canonical}", shown_id(&document.id));
    }
    let _ = writeln!(out, "{query}: {found} in {} (commit {})", state.store, state.commit);
    if !answer.matches.is_empty() {
        let _ = writeln!(out, "  distance  sketch  night       decision  id");
    }
    for found in &answer.matches {
        let sketch = found.sketch_distance.map_or_else(|| "-".to_owned(), |distance| distance.to_string());
        let exact = if found.exact { "  same text" } else { "" };
        let canonical = represented("  ", found.canonical_id.as_deref(), found.reference.as_deref());
        let _ = writeln!(
            out,
            "  {:>8}  {sketch:>6}  {}  {:<8}  {}{canonical}{exact}",
            found.distance,
            found.dt,
            found.decision.name(),
            shown_id(&found.id)
        );
    }
    let more = answer.n_matches - answer.matches.len() as u64;
    if more > 0 {
        let _ = writeln!(out, "  and {} more: --max-matches N", grouped(more));
    }
    if state.n_indexed_rows == 0 && state.n_scanned_rows > MANY_ROWS {
        let _ = writeln!(
            out,
            "  {} were scanned: `nearprint store index` makes this faster",
            grouped(state.n_scanned_rows)
        );
    }
    out
}

/// The number of fingerprints from which an index pays.
const MANY_ROWS: u64 = 1 << 20;

/// A line of queries.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct Line {
    id: Option<Value>,
    #[serde(flatten)]
    asked: JsonQuery,
}

/// The answer to a line, or what is wrong with the line.
#[derive(Serialize)]
struct LineAnswer {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Value>,
    #[serde(flatten)]
    answer: Option<Answer>,
    /// The line, counted from 1, if it is no query.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// The summary of a stream of queries.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct StreamSummary {
    /// The number of lines that are not blank.
    n_queries: u64,
    /// The number of queries that have matches.
    n_with_matches: u64,
    /// The number of matches, including those that are not listed.
    n_matches: u64,
    /// The number of lines that are no query.
    n_bad_lines: u64,
    /// The first line that is no query, and what is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_bad_line: Option<String>,
    #[serde(flatten)]
    state: Option<State>,
}

fn stream(session: &Session, opening: Opening, path: &Path) -> Outcome {
    let (name, input) = open_lines(path)?;
    let summary = session.block_on(move |storage, _, _| async move {
        let lookup = opening.open(&storage).await?;
        let (sent, lines) = mpsc::channel(BLOCKS_AHEAD);
        let ahead = Ahead { sent, room: Arc::new(Semaphore::new(BYTES_AHEAD)), handle: Handle::current() };
        let reading = blocking("read", move || {
            read_lines(&name, input, &ahead);
            Ok::<(), Fault>(())
        });
        let answering = answer_all(lookup, lines);
        let (read, answered) = tokio::join!(reading, answering);
        read?;
        answered
    })?;
    let status = if summary.n_bad_lines == 0 { "done" } else { "bad_lines" };
    let report = session.report("query", status, &summary, String::new());
    let Some(first) = &summary.first_bad_line else { return Ok(report) };
    let lines = counted(summary.n_bad_lines, "line");
    Ok(report.but(Failure::new(BAD_DATA, format!("{lines} could not be answered; first: {first}"))))
}

/// Lines that are not blank, each with its number, and the room that they take while they wait.
struct Block {
    lines: Vec<(u64, Vec<u8>)>,
    _room: OwnedSemaphorePermit,
}

/// The bytes of the lines that are read before they are passed on, but for the last line.
const BLOCK_BYTES: usize = 1 << 20;
/// The number of blocks, and the bytes of their lines, that wait to be answered. They are answered together. A block of
/// more bytes waits alone.
const BLOCKS_AHEAD: usize = 16;
const BYTES_AHEAD: usize = 16 << 20;

/// Where blocks wait to be answered.
struct Ahead {
    /// Blocks, or why no more can be read.
    sent: mpsc::Sender<Result<Block, Fault>>,
    room: Arc<Semaphore>,
    handle: Handle,
}

impl Ahead {
    /// Waits for room, and sends lines of `n_bytes` bytes. Returns `None` if nobody takes them any more.
    fn send(&self, lines: Vec<(u64, Vec<u8>)>, n_bytes: usize) -> Option<()> {
        #[allow(clippy::cast_possible_truncation, reason = "at most 16 Mi")]
        let wanted = n_bytes.min(BYTES_AHEAD) as u32;
        let room = self.handle.block_on(Arc::clone(&self.room).acquire_many_owned(wanted)).ok()?;
        self.sent.blocking_send(Ok(Block { lines, _room: room })).ok()
    }
}

type Lines = BufReader<Box<dyn Read + Send>>;

fn open_lines(path: &Path) -> Result<(String, Lines), Failure> {
    if path == Path::new(STDIN) {
        let input: Box<dyn Read + Send> = Box::new(std::io::stdin());
        return Ok(("standard input".to_owned(), BufReader::with_capacity(BLOCK_BYTES, input)));
    }
    let name = path.display().to_string();
    let failed = |e: std::io::Error| Failure::reading(&format!("--jsonl {name}"), &e);
    let file = std::fs::File::open(path).map_err(failed)?;
    // A folder can be opened, and only reading fails.
    if file.metadata().map_err(failed)?.is_dir() {
        return Err(failed(std::io::ErrorKind::IsADirectory.into()));
    }
    Ok((name, BufReader::with_capacity(BLOCK_BYTES, Box::new(file))))
}

/// Sends all lines, in blocks: of about a mebibyte, or of what there is before reading may have to wait. Reading ends
/// if nobody takes them any more.
fn read_lines(name: &str, mut input: Lines, ahead: &Ahead) {
    let (mut block, mut n_bytes) = (Vec::new(), 0);
    for number in 1.. {
        let mut line = Vec::new();
        let read = match input.by_ref().take(MAX_LINE_BYTES as u64 + 1).read_until(b'\n', &mut line) {
            Ok(n) if n > MAX_LINE_BYTES => {
                let reason = format!("{name}: line {number} is longer than {MAX_LINE_BYTES} bytes: cut the text");
                Err(Fault::new(ErrorKind::BadData, reason))
            }
            read => read.map_err(|error| Fault::new(ErrorKind::LocalIo, format!("{name}: {error}"))),
        };
        n_bytes += line.len();
        if number == 1 && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        let is_line = matches!(read, Ok(n) if n > 0);
        if is_line && !line.iter().all(u8::is_ascii_whitespace) {
            block.push((number, line));
        }
        let is_full = n_bytes >= BLOCK_BYTES || !input.buffer().contains(&b'\n');
        if (is_full || !is_line) && !block.is_empty() {
            if ahead.send(std::mem::take(&mut block), n_bytes).is_none() {
                return;
            }
            n_bytes = 0;
        }
        if let Err(error) = read {
            // If nobody takes it, another error came before.
            let _ = ahead.sent.blocking_send(Err(error));
        }
        if !is_line {
            return;
        }
    }
}

/// Answers the lines that there are together, and writes the answers in their order.
async fn answer_all(lookup: Lookup, mut blocks: mpsc::Receiver<Result<Block, Fault>>) -> Result<StreamSummary, Fault> {
    let mut summary = StreamSummary { state: Some(lookup.state()), ..StreamSummary::default() };
    let mut read = Vec::new();
    while blocks.recv_many(&mut read, BLOCKS_AHEAD).await > 0 {
        let (mut lines, mut failed) = (Vec::new(), None);
        for block in read.drain(..) {
            match block {
                Ok(block) => lines.extend(block.lines),
                Err(error) => failed = Some(error),
            }
        }
        while !lines.is_empty() {
            let rest = lines.split_off(lines.len().min(LINES_TOGETHER));
            if !answer_lines(&lookup, lines, &mut summary).await? {
                return Ok(summary);
            }
            lines = rest;
        }
        if let Some(error) = failed {
            return Err(error);
        }
    }
    Ok(summary)
}

/// Describes an error in the JSON of one line. The parser sees this line alone, so its number of the line says nothing.
fn in_line(error: &serde_json::Error) -> String {
    let said = foreign(error);
    let (line, column) = (error.line(), error.column());
    match said.strip_suffix(&format!(" at line {line} column {column}")) {
        Some(what) => format!("{what} at column {column}"),
        None => said,
    }
}

/// The most lines that are answered together.
const LINES_TOGETHER: usize = 1 << 14;

/// Answers lines, and writes the answers in their order. Returns whether anybody still reads them.
async fn answer_lines(lookup: &Lookup, lines: Vec<(u64, Vec<u8>)>, summary: &mut StreamSummary) -> Result<bool, Fault> {
    let (mut read, mut queries) = (Vec::with_capacity(lines.len()), Vec::with_capacity(lines.len()));
    for (number, line) in lines {
        let bad = |id, reason: String| LineAnswer { id, answer: None, line: Some(number), error: Some(reason) };
        let line: Line = match serde_json::from_slice(line.trim_ascii_end()) {
            Ok(line) => line,
            Err(error) => {
                read.push(bad(None, format!("not a JSON object of a query: {}", in_line(&error))));
                continue;
            }
        };
        match line.asked.query(lookup.profile()) {
            Ok(query) => {
                queries.push(query);
                read.push(LineAnswer { id: line.id, answer: None, line: Some(number), error: None });
            }
            Err(error) if error.matter() == Some(&BadQuestion::Query) => read.push(bad(line.id, error.to_string())),
            Err(error) => return Err(error),
        }
    }
    let mut read = read.into_iter();
    let mut write = |answered: LineAnswer| {
        summary.note(&answered);
        match written(&answered) {
            Ok(true) => ControlFlow::Continue(()),
            end => ControlFlow::Break(end),
        }
    };
    let mut each = |answer: Result<Answer, Fault>| {
        for mut line in read.by_ref() {
            // Lines that are no queries stand before the one that this is the answer to.
            if line.error.is_some() {
                write(line)?;
                continue;
            }
            match answer {
                Ok(answer) => (line.answer, line.line) = (Some(answer), None),
                Err(error) if error.matter() == Some(&BadQuestion::Query) => line.error = Some(error.to_string()),
                Err(error) => return ControlFlow::Break(Err(error)),
            }
            return write(line);
        }
        let reason = "an answer has no query".to_owned();
        ControlFlow::Break(Err(Fault::internal("query", reason)))
    };
    if let ControlFlow::Break(end) = lookup.answers(queries, &mut each).await? {
        return end;
    }
    for line in read {
        if let ControlFlow::Break(end) = write(line) {
            return end;
        }
    }
    Ok(true)
}

/// Writes the answer to a line. Returns whether anybody still reads.
fn written(answered: &LineAnswer) -> Result<bool, Fault> {
    let line = serde_json::to_value(answered);
    let line = line.map_err(|e| Fault::internal("query", e))?;
    write_line(&json_line(&line)).map_err(|error| Fault::new(ErrorKind::LocalIo, format!("standard output: {error}")))
}

impl StreamSummary {
    fn note(&mut self, answered: &LineAnswer) {
        self.n_queries += 1;
        if let Some(answer) = &answered.answer {
            self.n_with_matches += u64::from(answer.n_matches > 0);
            self.n_matches += answer.n_matches;
        }
        if let (Some(line), Some(error)) = (answered.line, &answered.error) {
            self.n_bad_lines += 1;
            self.first_bad_line.get_or_insert_with(|| format!("line {line}: {error}"));
        }
    }
}

/// Says which document represents another one, after `before`.
fn represented(before: &str, canonical_id: Option<&str>, reference: Option<&str>) -> String {
    let of = reference.map_or_else(String::new, |store| format!(" of reference {}", legible(store)));
    canonical_id.map_or_else(String::new, |id| format!("{before}represented by {}{of}", shown_id(id)))
}
