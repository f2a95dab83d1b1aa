//! The states of single documents: what the run files of each night have of an id. They are found by page indexes, so a
//! night costs a few pages, however many documents it has.

use arrow::array::{Date32Array, StringArray};
use arrow::datatypes::{Date32Type, UInt32Type, UInt64Type};
use futures::future::FutureExt;
use futures::stream::TryStreamExt;
use nearprint_fault::Result;
use nearprint_join::Origin;
use nearprint_parquet::schema::{
    CANONICAL_ID, DOC_ID, FINGERPRINT, FIRST_SEEN, LAST_CHANGED, REFERENCE, SKETCH, TEXT_HASH,
};
use nearprint_parquet::sketch_column::{ReadCounts, SketchBytes, SketchPages, fetch_known};
use nearprint_parquet::{Columns, ParquetFile, Read, Sought, fixed, selection, value};
use nearprint_storage::date_of_day;

use crate::commit::Night;
use crate::dependents::within;
use crate::reader::at_once;
use crate::store::Store;
use crate::writer::id_hash;

/// A state of a document: what the run files of a night have of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentState {
    /// The id.
    pub id: String,
    /// The night.
    pub dt: String,
    /// The row of the run file that has it: of `fingerprints`, `short` or `empty`, by its content.
    pub row: u32,
    /// What became of its text.
    pub content: StateContent,
    /// The document that represents it, or `None` if it is kept.
    pub canonical_id: Option<String>,
    /// The reference store that has that document, as the job names it. `None` if it is this store.
    pub reference: Option<String>,
    /// A later night decided it again, so that `canonical_id` is not that of its own night.
    pub is_decided_again: bool,
    /// The first night that had the id, if the run files say it.
    pub first_seen: Option<String>,
    /// The night in which the text came to be what it is, if the run files say it.
    pub last_changed: Option<String>,
}

/// What became of the text of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateContent {
    /// It has a fingerprint.
    Fingerprinted {
        /// The fingerprint; one of 32 bits is zero-extended.
        fingerprint: u64,
        /// The hash of the normalised text, if it is known.
        text_hash: Option<[u8; 16]>,
    },
    /// It is below the floor of features, and is compared by this hash alone.
    Short {
        /// The hash of the normalised text.
        text_hash: Option<[u8; 16]>,
    },
    /// There is none.
    Empty,
}

impl DocumentState {
    /// Returns the hash of the normalised text, or `None` if there is no text or it was not hashed.
    #[must_use]
    pub fn text_hash(&self) -> Option<[u8; 16]> {
        match self.content {
            StateContent::Fingerprinted { text_hash, .. } | StateContent::Short { text_hash } => text_hash,
            StateContent::Empty => None,
        }
    }
}

/// The run files that have documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum File {
    Fingerprints,
    Short,
    Empty,
}

impl Store {
    /// Returns the states of documents with some ids in all nights, the newest first; states of one night are in order of
    /// id.
    ///
    /// # Errors
    /// A file of the store is damaged or cannot be read.
    pub async fn states(&self, ids: &[&str]) -> Result<Vec<DocumentState>> {
        let nights = self.nights().iter().rev().map(|night| self.states_in(night, ids).boxed());
        let mut of_nights = at_once(nights.collect());
        let mut states = Vec::new();
        while let Some(of_night) = of_nights.try_next().await? {
            states.extend(of_night);
        }
        self.decide_again(&mut states).await?;
        Ok(states)
    }

    /// Brings states up to what later nights decided again about them.
    async fn decide_again(&self, states: &mut [DocumentState]) -> Result<()> {
        let redecided = self.all_nights(Origin::OWN).redecided().await?;
        for state in states {
            let Some(night) = self.night(&state.dt) else { continue };
            let (short, _) = self.first_rows(night)?;
            let row = match state.content {
                StateContent::Fingerprinted { .. } => state.row,
                StateContent::Short { .. } => short + state.row,
                StateContent::Empty => continue,
            };
            if let Some(decision) = redecided.of_row(&night.run.digest, row) {
                let canonical = decision.canonical.as_ref();
                state.canonical_id = canonical.map(|canonical| canonical.id.to_string());
                state.reference = canonical.and_then(|canonical| canonical.reference.as_deref().map(str::to_owned));
                state.is_decided_again = true;
            }
        }
        Ok(())
    }

    async fn states_in(&self, night: &Night, ids: &[&str]) -> Result<Vec<DocumentState>> {
        let rows = self.rows_with_hashes(night, ids).await?;
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let mut states = Vec::new();
        for (file, (name, of_file)) in
            [File::Fingerprints, File::Short, File::Empty].into_iter().zip(self.datasets(night)?)
        {
            let wanted = within(&rows, &of_file);
            if !wanted.is_empty() {
                let parquet = self.open_file(night, name).await?;
                states.extend(read(&parquet, file, &night.dt, &wanted).await?);
            }
        }
        // Equal hashes do not prove equal ids.
        states.retain(|state| ids.contains(&state.id.as_str()));
        states.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(states)
    }

    /// Returns the rows of a night's run whose ids have the hash of one of these, ascending.
    async fn rows_with_hashes(&self, night: &Night, ids: &[&str]) -> Result<Vec<u32>> {
        let hashes: Vec<u64> = ids.iter().map(|id| id_hash(id)).collect();
        let wanted: Vec<Sought<'_>> = hashes.iter().map(|hash| Sought::Number(*hash)).collect();
        let parquet = self.open_file(night, "ids").await?;
        let mut rows = Vec::new();
        let Some(read) = parquet.that_may_have("id_hash", &wanted, &["id_hash", "row"]) else { return Ok(rows) };
        let mut batches = parquet.stream(read)?;
        while let Some(batch) = batches.try_next().await? {
            let columns = Columns { batch: &batch, file: &parquet.file.url };
            let of_batch = columns.primitive::<UInt64Type>("id_hash")?.values();
            let of_rows = columns.primitive::<UInt32Type>("row")?.values();
            rows.extend(of_batch.iter().zip(of_rows).filter(|(hash, _)| hashes.contains(hash)).map(|(_, row)| *row));
        }
        rows.sort_unstable();
        rows.dedup();
        Ok(rows)
    }

    /// Returns the sketch of a state, or `None` if it has none.
    ///
    /// # Errors
    /// The state is of no night of the store; a file of the store is damaged or cannot be read.
    pub async fn sketch_of(&self, state: &DocumentState) -> Result<Option<SketchBytes>> {
        let (Some(night), StateContent::Fingerprinted { .. }) = (self.night(&state.dt), state.content) else {
            return Ok(None);
        };
        let parquet = self.open_file(night, "fingerprints").await?;
        if !parquet.has_column(SKETCH) {
            return Ok(None);
        }
        let found = fetch_known(&parquet, &SketchPages::of(&parquet), &[state.row], &ReadCounts::default()).await?;
        Ok(found.into_iter().flatten().next())
    }
}

/// Reads the states at some rows of a file, which ascend.
async fn read(parquet: &ParquetFile, file: File, dt: &str, rows: &[u32]) -> Result<Vec<DocumentState>> {
    let columns: &[&str] = match file {
        File::Fingerprints => &[FINGERPRINT, DOC_ID, TEXT_HASH, CANONICAL_ID, REFERENCE, FIRST_SEEN, LAST_CHANGED],
        File::Short => &[TEXT_HASH, DOC_ID, CANONICAL_ID, REFERENCE, FIRST_SEEN, LAST_CHANGED],
        File::Empty => &[DOC_ID, FIRST_SEEN, LAST_CHANGED],
    };
    let selected = Some(selection(rows, parquet.n_rows()));
    let mut batches = parquet.stream(Read { rows: selected, ..parquet.whole(columns) })?;
    let (mut states, mut of_rows) = (Vec::new(), rows.iter());
    while let Some(batch) = batches.try_next().await? {
        let columns = Columns { batch: &batch, file: &parquet.file.url };
        let (ids, hashes) = (columns.strings(DOC_ID)?, columns.bytes::<16>(TEXT_HASH)?);
        let optional = |name: &str| columns.optional(name, Columns::strings);
        let (canonical, references) = (optional(CANONICAL_ID)?, optional(REFERENCE)?);
        let date = |name: &str| columns.optional(name, Columns::primitive::<Date32Type>);
        let (first_seen, last_changed) = (date(FIRST_SEEN)?, date(LAST_CHANGED)?);
        let fingerprints = match file {
            File::Fingerprints => Some(columns.primitive::<UInt64Type>(FINGERPRINT)?),
            File::Short | File::Empty => None,
        };
        for (i, &row) in (0..batch.num_rows()).zip(&mut of_rows) {
            let text_hash = fixed(hashes, i);
            let content = match (fingerprints, file) {
                (Some(values), _) => StateContent::Fingerprinted { fingerprint: values.value(i), text_hash },
                (None, File::Empty) => StateContent::Empty,
                (None, _) => StateContent::Short { text_hash },
            };
            let text = |column: Option<&StringArray>| column.and_then(|column| value(column, i)).map(str::to_owned);
            let day = |days: Option<&Date32Array>| days.and_then(|days| value(days, i)).and_then(date_of_day);
            states.push(DocumentState {
                id: ids.value(i).to_owned(),
                dt: dt.to_owned(),
                row,
                content,
                canonical_id: text(canonical),
                reference: text(references),
                is_decided_again: false,
                first_seen: day(first_seen),
                last_changed: day(last_changed),
            });
        }
    }
    Ok(states)
}
