//! Which rows of which nights are in the corpus, and which ones a night adds to it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, RecordBatch, StringBuilder};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use nearprint_documents::Fate;
use nearprint_fault::{Fault, Result};
use nearprint_join::Origin;
use nearprint_parquet::schema::{DOC_ID, TEXT_HASH};
use nearprint_parquet::{BATCH_ROWS, Columns, DatasetWriter, StagedFile, fixed};
use nearprint_pipeline::Resources;
use nearprint_storage::{Progress, blocking, in_memory};
use nearprint_store::Store;

use super::histories::{DecidedNight, Decision, Footers, Histories, History, State, with_records};
use super::request::REMOVED;

/// The columns of the ids to take away, sorted by `doc_id`. `decision` is what the document is now: a document to `keep`
/// has another text, and is among those to add.
static REMOVED_COLUMNS: LazyLock<SchemaRef> = LazyLock::new(|| {
    let column = |name: &str| Field::new(name, DataType::Utf8, false);
    Arc::new(Schema::new(vec![column(DOC_ID), column("decision")]))
});

/// The fates of the rows of a night's decisions, in half a byte each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NightFates {
    packed: Vec<u8>,
    n_rows: u64,
    /// The number of rows of each fate.
    counts: [u64; FATES.len()],
}

/// All fates, by their codes.
const FATES: [Fate; 6] = [Fate::Drop, Fate::Keep, Fate::Skip, Fate::Replaced, Fate::Unchanged, Fate::Forgotten];

const fn code(fate: Fate) -> u8 {
    match fate {
        Fate::Drop => 0,
        Fate::Keep => 1,
        Fate::Skip => 2,
        Fate::Replaced => 3,
        Fate::Unchanged => 4,
        Fate::Forgotten => 5,
    }
}

impl NightFates {
    /// The rows of a byte.
    const PER_BYTE: u64 = 2;

    /// Creates the fates of `n_rows` rows. Until another is set, each is dropped.
    fn new(n_rows: u64) -> Self {
        let packed = vec![code(Fate::Drop); in_memory(n_rows.div_ceil(Self::PER_BYTE))];
        let mut counts = [0; FATES.len()];
        counts[usize::from(code(Fate::Drop))] = n_rows;
        Self { packed, n_rows, counts }
    }

    fn set(&mut self, row: u64, fate: Fate) {
        debug_assert!(row < self.n_rows, "a row is one of those of the footers");
        let (byte, shift) = Self::place(row);
        let Some(packed) = self.packed.get_mut(byte) else { return };
        debug_assert_eq!(*packed >> shift & 0xF, code(Fate::Drop), "the fate of a row is set once");
        *packed |= code(fate) << shift;
        self.counts[usize::from(code(Fate::Drop))] -= 1;
        self.counts[usize::from(code(fate))] += 1;
    }

    /// Returns the fate of a row, or `None` if the night has no such row.
    pub fn get(&self, row: u64) -> Option<Fate> {
        let (byte, shift) = Self::place(row);
        let packed = self.packed.get(byte).filter(|_| row < self.n_rows)?;
        FATES.get(usize::from(packed >> shift & 0xF)).copied()
    }

    fn place(row: u64) -> (usize, u64) {
        (in_memory(row / Self::PER_BYTE), row % Self::PER_BYTE * 4)
    }

    /// Returns the number of rows of a fate.
    pub fn n(&self, fate: Fate) -> u64 {
        self.counts[usize::from(code(fate))]
    }

    pub fn n_rows(&self) -> u64 {
        self.n_rows
    }
}

/// What a command takes of the nights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// The newest kept state of each document.
    Corpus,
    /// What the newest night adds to the corpus and takes away from it. If that is stale, it does not know which texts
    /// are the same as before, so all of its recrawled documents are taken away and added. If the store has forgotten nights, earlier
    /// states of recrawled documents may be gone with them.
    New { is_stale: bool, has_forgotten: bool },
}

/// What is taken of the nights.
#[derive(Debug)]
pub struct Choice {
    /// The fates of the rows, by night.
    pub fates: Vec<NightFates>,
    /// The files of the ids to take away, which lie in the temporary folder; `None` if the whole corpus is taken.
    pub removed: Option<Vec<StagedFile>>,
    /// The documents that would be written if a night had a record with their text, sorted.
    pub without_record: Vec<WithoutRecord>,
}

/// A document that the corpus has by a revisit record, and whose text is in no record of the nights.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WithoutRecord {
    /// The day of the night since which it has had its text.
    pub day: i32,
    pub id: String,
}

/// Decides about all rows of the nights of a store, which are ascending by date.
///
/// # Errors
/// A file of decisions or of the store is damaged or cannot be read; the memory limit does not allow the fates; the newest night does
/// not know which documents are new.
pub async fn choose(
    store: &Store,
    nights: &[DecidedNight],
    taken: Taken,
    resources: &Resources,
    temp: &Path,
    progress: &Progress,
) -> Result<Choice> {
    let footers = Footers::read(nights, matches!(taken, Taken::New { .. }), resources).await?;
    let n_rows = footers.n_decisions();
    let n_all: u64 = n_rows.iter().sum();
    if n_all.div_ceil(NightFates::PER_BYTE) > resources.counted_bytes() as u64 {
        let reason = format!("{n_all} decisions of {} nights take half a byte each", nights.len());
        return Err(Fault::resources(reason));
    }
    progress.start("corpus", "decisions", n_all);
    let (progress, temp) = (progress.clone(), temp.to_path_buf());
    let (max_bytes, decided) = (resources.counted_bytes(), nights.to_vec());
    let decide = move || decide_all(footers, (&decided, &n_rows), taken, temp, max_bytes, &progress);
    let (mut choice, unsure) = blocking("corpus", decide).await?;
    compare(store, nights, &unsure, &mut choice).await?;
    choice.without_record.sort_unstable();
    Ok(choice)
}

/// A document that the corpus has by a revisit record, of which it is not known yet which other record has its text.
struct Unsure {
    id: String,
    verdict: Verdict,
    /// The newest state: the revisit.
    now: State,
    states: Vec<State>,
}

impl Unsure {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.id.len() + self.states.len() * (size_of::<State>() + size_of::<TextOf<'_>>())
    }
}

/// A state by the position of its night and the id of its document, with the hash of its text.
type TextOf<'a> = ((usize, &'a str), [u8; 16]);

/// Finds the records with the texts of some documents by the hashes that the store has, and decides about their rows.
async fn compare(store: &Store, nights: &[DecidedNight], unsure: &[Unsure], choice: &mut Choice) -> Result<()> {
    let mut hashes: HashMap<(usize, &str), [u8; 16]> = HashMap::new();
    for (at, decided) in nights.iter().enumerate() {
        let is_asked = |document: &&Unsure| document.states.iter().any(|state| state.night == at);
        let ids: Vec<&str> = unsure.iter().filter(is_asked).map(|document| document.id.as_str()).collect();
        let Some(night) = store.night(&decided.dt).filter(|_| !ids.is_empty()) else { continue };
        for rows in store.all_nights(Origin::OWN).only(&[night]).newest_texts(&ids).await?.stored {
            let columns = Columns { batch: &rows.batch, file: &decided.dt };
            let (of_rows, texts) = (columns.strings(DOC_ID)?, columns.bytes::<16>(TEXT_HASH)?);
            for (row, id) in of_rows.iter().enumerate() {
                // The documents ascend by id, as their histories did.
                let known = id.and_then(|id| ids.binary_search(&id).ok()).and_then(|known| ids.get(known));
                hashes.extend(known.zip(fixed::<16>(texts, row)).map(|(&id, hash)| ((at, id), hash)));
            }
        }
    }
    for Unsure { id, verdict, now, states } in unsure {
        let hash = |state: &State| hashes.get(&(state.night, id.as_str()));
        let text = hash(now);
        let written = with_records(states, *now).find(|state| text.is_some() && hash(state) == text);
        choice.settle(id, states, &Verdict { written, ..*verdict })?;
    }
    Ok(())
}

fn decide_all(
    footers: Footers,
    (nights, n_rows): (&[DecidedNight], &[u64]),
    taken: Taken,
    temp: PathBuf,
    max_bytes: usize,
    progress: &Progress,
) -> Result<(Choice, Vec<Unsure>)> {
    let fates = n_rows.iter().map(|&n| NightFates::new(n)).collect();
    let mut choice = Choice { fates, removed: None, without_record: Vec::new() };
    let mut removed = matches!(taken, Taken::New { .. }).then(|| Removed::new(&temp));
    let (mut unsure, mut bytes): (Vec<Unsure>, usize) = (Vec::new(), 0);
    let mut histories = Histories::new(footers)?;
    while let Some((id, history)) = histories.next_document()? {
        let mut verdict = Verdict::of(history, n_rows.len(), taken);
        if let (Some(decision), Some(removed)) = (verdict.removed, &mut removed) {
            removed.add(id, decision)?;
        }
        let states = history.states();
        progress.advance(states.len() as u64);
        match verdict.record(states, nights) {
            Record::Unknown(now) => {
                let document = Unsure { id: id.to_owned(), verdict, now, states: states.to_vec() };
                bytes += document.bytes();
                unsure.push(document);
            }
            Record::Known(written) => {
                verdict.written = written;
                bytes += choice.settle(id, states, &verdict)?;
            }
        }
        if bytes > max_bytes {
            return Err(Fault::resources(
                "the documents whose texts are in records of other nights do not fit".to_owned(),
            ));
        }
    }
    choice.removed = removed.map(Removed::finish).transpose()?;
    Ok((choice, unsure))
}

impl Choice {
    /// Sets the fates of all states of a document. If no record has its text, it is listed; returns the bytes that this takes.
    fn settle(&mut self, id: &str, states: &[State], verdict: &Verdict) -> Result<usize> {
        for state in states {
            if let Some(night) = self.fates.get_mut(state.night) {
                night.set(state.row, verdict.fate(state));
            }
        }
        let Some(day) = verdict.without_record(id)? else { return Ok(0) };
        self.without_record.push(WithoutRecord { day, id: id.to_owned() });
        Ok(id.len() + size_of::<WithoutRecord>())
    }
}

/// What is known of the record that is to be written of a document.
enum Record {
    /// It is that of this state, or none.
    Known(Option<State>),
    /// The texts of this state, which is a revisit, and of earlier ones must be compared.
    Unknown(State),
}

/// What becomes of a document.
#[derive(Clone, Copy)]
struct Verdict {
    /// The newest state, and its fate. All other states are replaced.
    newest: Option<(State, Fate)>,
    /// The state whose record is written, if the newest one is to be kept and a night has the record; once that is known.
    written: Option<State>,
    /// What the document is now, if it is to be taken away.
    removed: Option<Decision>,
}

impl Verdict {
    fn of(history: &History, n_nights: usize, taken: Taken) -> Self {
        let Some(now) = history.after(n_nights) else { return Self { newest: None, written: None, removed: None } };
        let (is_new, removed) = match taken {
            Taken::Corpus => (true, None),
            Taken::New { is_stale, has_forgotten } => {
                let before = history.after(n_nights.saturating_sub(1));
                let was_kept = before.is_some_and(|before| before.decision == Decision::Keep);
                let is_changed = now.night + 1 == n_nights && (is_stale || !now.is_same);
                // What a document was in a night that the store has forgotten, nobody knows any more.
                let is_forgotten = has_forgotten && before.is_none() && now.is_recrawl;
                let may_be_held = was_kept || (is_forgotten && now.decision != Decision::Keep);
                let goes = may_be_held && (is_changed || now.decision != Decision::Keep);
                (!was_kept || is_changed, goes.then_some(now.decision))
            }
        };
        let fate = match now.decision {
            Decision::Keep if is_new => Fate::Keep,
            Decision::Keep => Fate::Unchanged,
            Decision::Drop => Fate::Drop,
            Decision::Skip => Fate::Skip,
        };
        Self { newest: Some((now, fate)), written: None, removed }
    }

    /// Returns the record with the text that is to be written: of a revisit, that of a state since which the text has not changed, if
    /// the night of the revisit was made with the state's night as it is now. Where that was made again, only the texts tell.
    fn record(&self, states: &[State], nights: &[DecidedNight]) -> Record {
        let now = match self.newest {
            Some((now, Fate::Keep)) if now.is_revisit => now,
            Some((now, Fate::Keep)) => return Record::Known(Some(now)),
            _ => return Record::Known(None),
        };
        let knows = |other: &State| {
            let of = |state: &State| nights.get(state.night);
            of(&now).zip(of(other)).is_some_and(|(night, other)| night.knows(other))
        };
        let mut with_records = with_records(states, now).peekable();
        if with_records.peek().is_none() {
            return Record::Known(None);
        }
        let is_sure = |other: &State| other.last_changed == now.last_changed && knows(other);
        with_records.find(is_sure).map_or(Record::Unknown(now), |state| Record::Known(Some(state)))
    }

    /// Returns the day since which a document has had its text, if that is to be written and no night has a record with it.
    fn without_record(&self, id: &str) -> Result<Option<i32>> {
        match self.newest {
            Some((now, Fate::Keep)) if self.written.is_none() => {
                let unknown =
                    || Fault::internal("corpus", format!("'{}' has its text since no day", id.escape_debug()));
                now.last_changed.map(Some).ok_or_else(unknown)
            }
            _ => Ok(None),
        }
    }

    fn fate(&self, state: &State) -> Fate {
        let is_written = self.written.is_some_and(|written| written.night == state.night);
        match self.newest {
            _ if is_written => Fate::Keep,
            // The row of another night is written, or of none.
            Some((_, Fate::Keep)) => Fate::Replaced,
            Some((newest, fate)) if newest.night == state.night => fate,
            _ => Fate::Replaced,
        }
    }
}

/// Counts the rows that a document has among the kept ones of several nights, without the newest of them.
///
/// # Errors
/// A file of decisions is damaged or cannot be read.
pub async fn n_repeated(nights: &[DecidedNight], resources: &Resources, progress: &Progress) -> Result<u64> {
    let footers = Footers::read(nights, false, resources).await?;
    progress.start("repeated", "decisions", footers.n_decisions().iter().sum());
    let progress = progress.clone();
    let count = move || {
        let mut n_repeated = 0;
        let mut histories = Histories::new(footers)?;
        while let Some((_, history)) = histories.next_document()? {
            let n_kept =
                history.states().iter().filter(|state| state.decision == Decision::Keep && !state.is_revisit).count()
                    as u64;
            n_repeated += n_kept.saturating_sub(1);
            progress.advance(history.states().len() as u64);
        }
        Ok::<_, Fault>(n_repeated)
    };
    blocking("repeated", count).await
}

/// Writes the ids to take away.
struct Removed {
    writer: DatasetWriter,
    ids: StringBuilder,
    decisions: StringBuilder,
    n: usize,
}

impl Removed {
    fn new(temp: &Path) -> Self {
        let writer = DatasetWriter::new(temp, REMOVED, &REMOVED_COLUMNS, &[]);
        Self { writer, ids: StringBuilder::new(), decisions: StringBuilder::new(), n: 0 }
    }

    fn add(&mut self, id: &str, decision: Decision) -> Result<()> {
        self.ids.append_value(id);
        self.decisions.append_value(decision.name());
        self.n += 1;
        if self.n == BATCH_ROWS { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        self.n = 0;
        let columns: Vec<ArrayRef> = vec![Arc::new(self.ids.finish()), Arc::new(self.decisions.finish())];
        let batch = RecordBatch::try_new(Arc::clone(&REMOVED_COLUMNS), columns);
        self.writer.write(batch.map_err(|e| Fault::internal("corpus", e))?)
    }

    fn finish(mut self) -> Result<Vec<StagedFile>> {
        self.write()?;
        self.writer.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{FATES, Fate, NightFates};

    #[test]
    fn each_row_has_the_fate_that_was_set_and_fates_are_counted() {
        let mut fates = NightFates::new(13);
        let wanted: Vec<Fate> = (0..13).map(|row| FATES[row * 5 % FATES.len()]).collect();
        for (row, &fate) in (0..).zip(&wanted) {
            fates.set(row, fate);
        }
        assert_eq!((0..13).map(|row| fates.get(row)).collect::<Option<Vec<Fate>>>(), Some(wanted.clone()));
        assert_eq!(fates.get(13), None);
        for fate in FATES {
            assert_eq!(fates.n(fate), wanted.iter().filter(|&&wanted| wanted == fate).count() as u64);
        }
    }
}
