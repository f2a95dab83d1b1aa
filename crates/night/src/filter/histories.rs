//! What the nights of a store decided about each document, one document after another.
//!
//! The files of decisions are sorted by id, so a merge reads all of them side by side, and no map of all ids is needed.

use std::cmp::Ordering;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, HashSet};
use std::sync::Arc;

use arrow::array::{Array, BooleanArray, Date32Array, StringArray};
use arrow::datatypes::Date32Type;
use futures::{StreamExt, TryStreamExt};
use nearprint_fault::{Fault, Result};
use nearprint_parquet::schema::{DOC_ID, DROP, KEEP, LAST_CHANGED, REASON, RECRAWL, REVISIT, SKIP};
use nearprint_parquet::{Columns, PagedBatches, ParquetFile};
use nearprint_pipeline::{Resources, STUB};
use nearprint_storage::{InputFile, day_of_date};
use nearprint_store::{Night, damaged};

use crate::inputs::LOOK_UPS_AT_ONCE;
use crate::published::PublishedFiles;

/// The most and the fewest bytes of a column that are read ahead.
const MAX_READ_AHEAD: u64 = 1 << 20;
const MIN_READ_AHEAD: u64 = 64 << 10;

/// The share of the memory limit that bytes read ahead take together.
const READ_AHEAD_SHARE: u64 = 8;

/// A decision about a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Keep,
    Drop,
    Skip,
}

impl Decision {
    pub fn parse(text: &str, url: &str) -> Result<Self> {
        match text {
            KEEP => Ok(Self::Keep),
            DROP => Ok(Self::Drop),
            SKIP => Ok(Self::Skip),
            other => {
                let reason = format!("a decision is '{}', and none of keep, drop and skip", other.escape_debug());
                Err(damaged(url, reason))
            }
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Keep => KEEP,
            Self::Drop => DROP,
            Self::Skip => SKIP,
        }
    }
}

/// A row of a night's decisions: the state of a document in that night.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// The position of the night, by date.
    pub night: usize,
    /// The row among the night's decisions.
    pub row: u64,
    pub decision: Decision,
    /// The earlier state has the same text, according to the night. Known of the newest night, if that was asked for.
    pub is_same: bool,
    /// The night has found an earlier state, which nights that the store has forgotten since may have had. Known as `is_same` is.
    pub is_recrawl: bool,
    /// The record of the night is a revisit, and has no text.
    pub is_revisit: bool,
    /// The day of the night since which the document has had its text. Known if a night has revisits.
    pub last_changed: Option<i32>,
}

/// A decision that a later night made anew about a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Redecision {
    /// The position of the night that decided, and that of the night of the state.
    night: usize,
    of: usize,
    decision: Decision,
}

/// Returns those of a document's states that have a record with a text, up to one of them, the newest first.
pub fn with_records(states: &[State], last: State) -> impl Iterator<Item = State> {
    states.iter().rev().copied().filter(move |state| state.night <= last.night && !state.is_revisit)
}

/// All states of a document, and what was decided anew about them.
#[derive(Debug, Default)]
pub struct History {
    states: Vec<State>,
    redecided: Vec<Redecision>,
}

impl History {
    /// Returns all states, by night.
    pub fn states(&self) -> &[State] {
        &self.states
    }

    /// Returns the newest state as the first `n_nights` nights decided about it: the corpus has it if that is to keep
    /// it. `None` means that no night of these has the document.
    pub fn after(&self, n_nights: usize) -> Option<State> {
        let newest = *self.states.iter().rfind(|state| state.night < n_nights)?;
        let anew = self.redecided.iter().filter(|r| r.of == newest.night && r.night < n_nights);
        let decision = anew.max_by_key(|r| r.night).map_or(newest.decision, |r| r.decision);
        Some(State { decision, ..newest })
    }
}

/// A night whose decisions take part, by its files.
#[derive(Debug, Clone)]
pub struct DecidedNight {
    pub dt: String,
    pub decisions: Vec<InputFile>,
    /// The name of the night's run among those that nights were joined with.
    run: String,
    /// The runs that the night was joined with, if it has revisits.
    joined: HashSet<String>,
    /// The number of documents whose records are revisits.
    pub n_revisits: u64,
    /// The number of stubs. They are no states of their pages.
    pub n_stubs: u64,
    /// What the night decided anew about documents of earlier ones. Nights of release 0.2.0 have none.
    pub redecided: Vec<InputFile>,
}

impl DecidedNight {
    pub fn of(night: &Night, files: &PublishedFiles) -> Self {
        let (decisions, redecided) = (files.decisions.clone(), files.redecided.clone());
        let counts = &files.manifest.counts;
        let (n_revisits, n_stubs) = (counts.documents.n_revisits, counts.n_stubs());
        let joined = if n_revisits > 0 { files.manifest.joined.iter().cloned().collect() } else { HashSet::new() };
        let run = night.joined_as().to_owned();
        Self { dt: night.dt.clone(), decisions, run, joined, n_revisits, n_stubs, redecided }
    }

    /// Returns whether this night was made with another one as that is now, or is it.
    pub fn knows(&self, other: &Self) -> bool {
        self.dt == other.dt || self.joined.contains(&other.run)
    }
}

/// Histories in the order of ids.
#[derive(Debug)]
pub struct Histories {
    /// The files, that with the least id on top. None of them has ended.
    sources: BinaryHeap<Source>,
    id: String,
    history: History,
}

/// The footers of the files that a merge reads.
pub struct Footers {
    files: Vec<(Kind, usize, Vec<Arc<ParquetFile>>)>,
    days: Vec<Option<i32>>,
    read_ahead: u64,
}

/// What the rows of a source are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Decisions { with_recrawl: bool, with_revisits: bool, with_stubs: bool },
    Redecided,
}

impl Footers {
    /// Reads the footers of all files of these nights, which are ascending by date. `with_recrawl` says whether the newest
    /// night must know which of its texts are new.
    ///
    /// # Errors
    /// A file is damaged or cannot be read; the newest night does not know which of its texts are new.
    pub async fn read(nights: &[DecidedNight], with_recrawl: bool, resources: &Resources) -> Result<Self> {
        debug_assert!(nights.is_sorted_by(|a, b| a.dt < b.dt), "nights have positions by their dates");
        let newest = nights.len().saturating_sub(1);
        let with_revisits = nights.iter().any(|night| night.n_revisits > 0);
        let mut files = Vec::new();
        for (at, night) in nights.iter().enumerate() {
            let with_recrawl = with_recrawl && at == newest;
            let decisions = opened(&night.decisions).await?;
            let unknown = decisions.iter().find(|parquet| with_recrawl && !parquet.has_column(RECRAWL));
            if let Some(parquet) = unknown {
                return Err(unknown_recrawls(&parquet.file.url));
            }
            let with_stubs = night.n_stubs > 0;
            files.push((Kind::Decisions { with_recrawl, with_revisits, with_stubs }, at, decisions));
            files.push((Kind::Redecided, at, opened(&night.redecided).await?));
        }
        let with_parts = files.iter().filter(|(.., parts)| !parts.is_empty());
        let n_columns: u64 = with_parts.map(|(kind, ..)| kind.columns().len() as u64).sum();
        let share = resources.counted_bytes() as u64 / READ_AHEAD_SHARE / n_columns.max(1);
        let days = nights.iter().map(|night| day_of_date(&night.dt)).collect();
        Ok(Self { files, days, read_ahead: share.clamp(MIN_READ_AHEAD, MAX_READ_AHEAD) })
    }

    /// Returns the number of rows of the decisions of each night.
    pub fn n_decisions(&self) -> Vec<u64> {
        let decisions = self.files.iter().filter(|(kind, ..)| *kind != Kind::Redecided);
        decisions.map(|(.., parts)| parts.iter().map(|part| part.n_rows()).sum()).collect()
    }
}

async fn opened(files: &[InputFile]) -> Result<Vec<Arc<ParquetFile>>> {
    let opened = futures::stream::iter(files.to_vec()).map(ParquetFile::open_without_page_index);
    opened.buffered(LOOK_UPS_AT_ONCE).map_ok(Arc::new).try_collect().await
}

fn unknown_recrawls(url: &str) -> Fault {
    let reason = format!(
        "it does not say which documents are new or changed (column '{RECRAWL}'), because release 0.2.0 decided the night"
    );
    Fault::bad_data(url, reason).remedy("publish the night again with `nearprint run --replace`")
}

impl Histories {
    /// Begins to read. It waits for bytes, so it belongs on a thread that may block.
    ///
    /// # Errors
    /// A file is damaged or cannot be read.
    pub fn new(footers: Footers) -> Result<Self> {
        let days = Arc::new(footers.days);
        let mut sources = BinaryHeap::with_capacity(footers.files.len());
        for (kind, night, files) in footers.files {
            let mut source = Source {
                kind,
                night,
                files: files.into_iter(),
                days: Arc::clone(&days),
                read_ahead: footers.read_ahead,
                open: None,
                batch: Batch::default(),
                at: 0,
                row: 0,
            };
            if source.next_batch()? {
                sources.push(source);
            }
        }
        Ok(Self { sources, id: String::new(), history: History::default() })
    }

    /// Returns the next document. `None` comes after the last one.
    ///
    /// # Errors
    /// A file is damaged, is not sorted by id, or cannot be read.
    pub fn next_document(&mut self) -> Result<Option<(&str, &History)>> {
        let Some(first) = self.sources.peek() else { return Ok(None) };
        self.id.clear();
        self.id.push_str(first.id());
        self.history.states.clear();
        self.history.redecided.clear();
        while let Some(mut source) = self.sources.peek_mut() {
            if source.id() != self.id {
                break;
            }
            source.add_to(&mut self.history)?;
            if !source.next_row()? {
                PeekMut::pop(source);
            }
        }
        self.history.states.sort_unstable_by_key(|state| state.night);
        debug_assert!(
            self.history.states.is_sorted_by(|a, b| a.night < b.night),
            "a night has one row for each of its documents"
        );
        Ok(Some((&self.id, &self.history)))
    }
}

/// The rows of a dataset of a night.
#[derive(Debug)]
struct Source {
    kind: Kind,
    night: usize,
    files: std::vec::IntoIter<Arc<ParquetFile>>,
    /// The days of the nights, by position.
    days: Arc<Vec<Option<i32>>>,
    read_ahead: u64,
    open: Option<PagedBatches>,
    batch: Batch,
    /// The position in the batch.
    at: usize,
    /// The row in the dataset.
    row: u64,
}

#[derive(Debug)]
struct Batch {
    ids: StringArray,
    decisions: StringArray,
    /// Known if the night has stubs.
    reasons: Option<StringArray>,
    recrawl: Option<StringArray>,
    revisit: Option<BooleanArray>,
    last_changed: Option<Date32Array>,
    of: Option<Date32Array>,
}

impl Default for Batch {
    fn default() -> Self {
        let none = || StringArray::from(Vec::<&str>::new());
        Self {
            ids: none(),
            decisions: none(),
            reasons: None,
            recrawl: None,
            revisit: None,
            last_changed: None,
            of: None,
        }
    }
}

impl Source {
    fn id(&self) -> &str {
        self.batch.ids.value(self.at)
    }

    fn url(&self) -> &str {
        self.open.as_ref().map_or("", PagedBatches::url)
    }

    fn add_to(&self, history: &mut History) -> Result<()> {
        if self.batch.reasons.as_ref().is_some_and(|reasons| reasons.value(self.at) == STUB) {
            return Ok(());
        }
        let decision = Decision::parse(self.batch.decisions.value(self.at), self.url())?;
        match &self.batch.of {
            None => {
                let recrawl = self.batch.recrawl.as_ref().map(|recrawl| recrawl.value(self.at));
                let (is_same, is_recrawl) = (recrawl == Some("same"), recrawl.is_some_and(|recrawl| recrawl != "new"));
                let revisit = self.batch.revisit.as_ref().filter(|revisit| revisit.is_valid(self.at));
                let is_revisit = revisit.is_some_and(|revisit| revisit.value(self.at));
                let dates = self.batch.last_changed.as_ref().filter(|dates| dates.is_valid(self.at));
                // Where a state has no date, as all of release 0.2.0, it is that of its night.
                let last_changed = dates.map_or(self.days[self.night], |dates| Some(dates.value(self.at)));
                let (night, row) = (self.night, self.row);
                history.states.push(State { night, row, decision, is_same, is_recrawl, is_revisit, last_changed });
            }
            // States of nights that the store dropped or forgot are gone.
            Some(of) => {
                let of = Some(of.value(self.at));
                let of = self.days.iter().position(|&day| day == of);
                history.redecided.extend(of.map(|of| Redecision { night: self.night, of, decision }));
            }
        }
        Ok(())
    }

    /// Goes to the next row. Returns `false` after the last one.
    fn next_row(&mut self) -> Result<bool> {
        self.row += 1;
        self.at += 1;
        if self.at < self.batch.ids.len() {
            self.kind.refuse_disorder(self.batch.ids.value(self.at - 1), self.id(), self.url())?;
            return Ok(true);
        }
        self.next_batch()
    }

    fn next_batch(&mut self) -> Result<bool> {
        self.at = 0;
        loop {
            let batches = match &mut self.open {
                Some(batches) => batches,
                None => {
                    let Some(parquet) = self.files.next() else { return Ok(false) };
                    self.open.insert(PagedBatches::new(parquet, &self.kind.columns(), self.read_ahead)?)
                }
            };
            let Some(batch) = batches.next_batch()? else {
                self.open = None;
                continue;
            };
            let columns = Columns { batch: &batch, file: batches.url() };
            let next = self.kind.batch(&columns)?;
            if next.ids.is_empty() {
                continue;
            }
            if let Some(last) = self.batch.ids.len().checked_sub(1) {
                self.kind.refuse_disorder(self.batch.ids.value(last), next.ids.value(0), batches.url())?;
            }
            self.batch = next;
            return Ok(true);
        }
    }
}

impl Kind {
    fn columns(self) -> Vec<&'static str> {
        let mut columns = vec![DOC_ID, "decision"];
        match self {
            Self::Decisions { with_recrawl, with_revisits, with_stubs } => {
                columns.extend(with_recrawl.then_some(RECRAWL));
                columns.extend([REVISIT, LAST_CHANGED].into_iter().filter(|_| with_revisits));
                columns.extend(with_stubs.then_some(REASON));
            }
            Self::Redecided => columns.push("of_dt"),
        }
        columns
    }

    /// Refuses ids that do not ascend. An id may have been decided anew about several of its states.
    fn refuse_disorder(self, id: &str, next: &str, url: &str) -> Result<()> {
        match id.cmp(next) {
            Ordering::Less => Ok(()),
            Ordering::Equal if self == Self::Redecided => Ok(()),
            _ => Err(damaged(url, "its rows are not in the order of doc_id")),
        }
    }

    fn batch(self, columns: &Columns<'_>) -> Result<Batch> {
        let with_stubs = matches!(self, Self::Decisions { with_stubs: true, .. });
        let reasons = with_stubs.then(|| columns.strings(REASON).cloned()).transpose()?;
        let (recrawl, of) = match self {
            Self::Decisions { with_recrawl, .. } => {
                let recrawl = with_recrawl.then(|| columns.strings(RECRAWL).cloned()).transpose()?;
                // `store forget` writes NULL where there was no column.
                if recrawl.as_ref().is_some_and(|recrawl| recrawl.null_count() > 0) {
                    return Err(unknown_recrawls(columns.file));
                }
                (recrawl, None)
            }
            Self::Redecided => (None, Some(columns.primitive::<Date32Type>("of_dt")?.clone())),
        };
        let revisit = columns.optional(REVISIT, Columns::booleans)?.cloned();
        let last_changed = columns.optional(LAST_CHANGED, Columns::primitive::<Date32Type>)?.cloned();
        Ok(Batch {
            ids: columns.strings(DOC_ID)?.clone(),
            decisions: columns.strings("decision")?.clone(),
            reasons,
            recrawl,
            revisit,
            last_changed,
            of,
        })
    }
}

/// The source with the least id is the greatest, because a heap has its greatest element on top.
impl Ord for Source {
    fn cmp(&self, other: &Self) -> Ordering {
        other.id().cmp(self.id())
    }
}

impl PartialOrd for Source {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Source {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Source {}

#[cfg(test)]
mod tests {
    use super::{Decision, History, Redecision, State};

    #[test]
    fn what_was_decided_anew_counts_for_its_state_and_from_its_night_on() {
        let state = |night, decision| {
            let (is_same, is_recrawl, is_revisit, last_changed) = (false, false, false, None);
            State { night, row: 0, decision, is_same, is_recrawl, is_revisit, last_changed }
        };
        let anew = |night, of, decision| Redecision { night, of, decision };
        let history = History {
            states: vec![state(0, Decision::Drop), state(4, Decision::Drop)],
            redecided: vec![
                anew(3, 0, Decision::Drop),
                anew(2, 0, Decision::Keep),
                anew(5, 0, Decision::Keep),
                anew(6, 4, Decision::Keep),
            ],
        };
        let decisions: Vec<Option<Decision>> =
            (0..=7).map(|n_nights| history.after(n_nights).map(|state| state.decision)).collect();
        let (keep, drop) = (Some(Decision::Keep), Some(Decision::Drop));
        assert_eq!(decisions, [None, drop, drop, keep, drop, drop, drop, keep]);
        assert_eq!(history.after(5).map(|state| state.night), Some(4));
    }
}
