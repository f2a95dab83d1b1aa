//! The documents that were dropped for given ones, and the stored rows of documents that are decided again.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use arrow::array::RecordBatch;
use arrow::datatypes::UInt32Type;
use futures::future::FutureExt;
use futures::stream::TryStreamExt;
use nearprint_fault::Result;
use nearprint_parquet::schema::{CANONICAL_HASH, CANONICAL_ID, DOC_ID, FINGERPRINT, N_FEATURES, SKETCH, TEXT_HASH};
use nearprint_parquet::{Columns, ParquetFile, Read, fixed, selection};
use nearprint_storage::row_number;

use crate::commit::Night;
use crate::error::damaged;
use crate::interned::Names;
use crate::reader::{JoinedNights, OwnDocuments, at_once, between};
use crate::redecided::{DecisionColumns, NewDecision, Redecided, RedecidedRows, StoredDecision, StoredOutcome};
use crate::shadows::Shadowed;
use crate::store::Store;
use crate::writer::{canonical_hash, id_hash};

/// A dropped document of an earlier night.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dependent {
    /// The position of its night among the joined nights.
    pub night: usize,
    /// Its row in the run of that night.
    pub row: u32,
    /// The document that represents it as far as these nights know.
    pub canonical_id: Box<str>,
}

/// Rows of one file of a run, with their columns of ids, texts and fingerprints.
#[derive(Debug)]
pub struct StoredRows {
    /// The rows, as far as the file has such columns: `doc_id`, `fingerprint`, `sketch`, `text_hash`, `n_features`.
    pub batch: RecordBatch,
    /// Whether these documents are below the feature floor.
    pub are_short: bool,
}

/// A document of a run, with what became of it: in its night, or in a later one that decided it again.
#[derive(Debug)]
pub struct StoredDocument<'a> {
    /// Its row in the run.
    pub row: u32,
    /// Its id.
    pub id: &'a str,
    /// The hash of its normalised text. `None` means that it has no text, or that its text was not hashed.
    pub text_hash: Option<[u8; 16]>,
    /// What became of it.
    pub decision: StoredDecision,
}

/// What a search for dependents looks for, and the rows that take no part, or that later nights decided again.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The hashes of canonical documents, sorted.
    pub hashes: &'a [u32],
    /// Rows that are given, if they are dropped, whatever document of the own store represents them.
    pub also: &'a Shadowed,
    /// The rows whose documents later nights have again.
    pub shadowed: &'a Shadowed,
    /// What the nights decided again.
    pub redecided: &'a Redecided,
}

impl Wanted<'_> {
    fn has(&self, id: &str) -> bool {
        self.hashes.binary_search(&canonical_hash(id)).is_ok()
    }
}

impl JoinedNights<'_> {
    /// Returns the digest of the run of a night, by its position, and its date.
    #[must_use]
    pub fn run_and_date(&self, night: usize) -> (&str, &str) {
        let night = self.nights[night];
        (&night.run.digest, &night.dt)
    }

    /// Returns the live rows that are dropped for documents of the own store whose ids have wanted hashes, in order. The
    /// runs of release 0.2.0 do not say in which store a canonical document is, so they may give others too.
    ///
    /// # Errors
    /// A file of the store is damaged or cannot be read.
    pub async fn dependents(&self, wanted: Wanted<'_>) -> Result<Vec<Dependent>> {
        let of_nights = (0..self.nights.len()).map(|night| self.dependents_of(night, wanted).boxed());
        let mut of_nights = at_once(of_nights.collect());
        let mut all = Vec::new();
        while let Some(of_night) = of_nights.try_next().await? {
            all.extend(of_night);
        }
        debug_assert!(all.is_sorted_by(|a: &Dependent, b| a < b), "a row is given once");
        Ok(all)
    }

    async fn dependents_of(&self, position: usize, wanted: Wanted<'_>) -> Result<Vec<Dependent>> {
        let (store, night) = (self.store, self.nights[position]);
        let digest = &night.run.digest;
        let none = RedecidedRows::default();
        let redecided = wanted.redecided.of_run(digest).unwrap_or(&none);
        let is_live = |row: &u32| !wanted.shadowed.get(digest).is_some_and(|rows| rows.contains(*row));
        let also = wanted.also.get(digest);
        let is_also = |row: u32| also.is_some_and(|rows| rows.contains(row));
        let dependent = |row: u32, id: &str| Dependent { night: position, row, canonical_id: id.into() };
        let mut found = Vec::new();
        for (&row, decision) in redecided {
            if let Some(canonical) = &decision.canonical
                && is_live(&row)
                && canonical.is_own()
                && (wanted.has(&canonical.id) || is_also(row))
            {
                found.push(dependent(row, &canonical.id));
            }
        }
        let is_as_dropped = |row: &u32| is_live(row) && !redecided.contains_key(row);
        if night.run.has_file("dependents") {
            let mut rows = match wanted.hashes.is_empty() {
                true => Vec::new(),
                false => store.rows_by_hash(night, wanted.hashes).await?,
            };
            if also.is_some() {
                rows.extend(store.dependents(night).await?.into_iter().map(|(_, row)| row).filter(|&row| is_also(row)));
            }
            rows.retain(is_as_dropped);
            rows.sort_unstable();
            rows.dedup();
            store
                .canonical_ids(night, &rows, |row, id| {
                    if wanted.has(id) || is_also(row) {
                        found.push(dependent(row, id));
                    }
                })
                .await?;
        } else if !wanted.hashes.is_empty() || also.is_some() {
            store
                .all_canonical_ids(night, |row, id| {
                    if is_as_dropped(&row) && (wanted.has(id) || is_also(row)) {
                        found.push(dependent(row, id));
                    }
                })
                .await?;
        }
        found.sort_unstable();
        Ok(found)
    }

    /// Calls `each` with the id and the text hash of each document that these nights have and keep. Of an id, only the newest
    /// state counts.
    ///
    /// # Errors
    /// A file of the store is damaged or cannot be read.
    pub async fn kept_documents(
        &self,
        (shadowed, redecided): (&Shadowed, &Redecided),
        mut each: impl FnMut(&str, Option<[u8; 16]>),
    ) -> Result<()> {
        for (position, night) in self.nights.iter().enumerate() {
            let shadowed = shadowed.get(&night.run.digest);
            let kept = |document: StoredDocument<'_>| {
                let is_kept = document.decision.outcome == StoredOutcome::Keep;
                if is_kept && !shadowed.is_some_and(|rows| rows.contains(document.row)) {
                    each(document.id, document.text_hash);
                }
            };
            self.documents(position, None, redecided, kept).await?;
        }
        Ok(())
    }

    /// Calls `each` with the documents of one of these nights, by its position, in the order of its run: with those of some
    /// rows, which ascend, or with all.
    ///
    /// # Errors
    /// A file of the store is damaged or cannot be read.
    pub async fn documents(
        &self,
        night: usize,
        rows: Option<&[u32]>,
        redecided: &Redecided,
        mut each: impl FnMut(StoredDocument<'_>),
    ) -> Result<()> {
        let night = self.nights[night];
        let again = redecided.of_run(&night.run.digest);
        let columns = [&[DOC_ID, TEXT_HASH][..], &DecisionColumns::NAMES].concat();
        let mut names = Names::default();
        for (name, of_file) in self.store.datasets(night)? {
            let parquet = self.store.open_file(night, name).await?;
            let wanted = rows.map(|rows| within(rows, &of_file));
            let read = match &wanted {
                Some(wanted) if wanted.is_empty() => continue,
                Some(wanted) => of_rows(&parquet, &columns, wanted)?,
                None => parquet.whole(&columns),
            };
            let mut n_given = 0;
            let mut batches = parquet.stream(read)?;
            while let Some(batch) = batches.try_next().await? {
                let columns = Columns { batch: &batch, file: &parquet.file.url };
                let (ids, hashes) = (columns.strings(DOC_ID)?, columns.bytes::<16>(TEXT_HASH)?);
                let decisions = DecisionColumns::of(columns)?;
                for i in 0..batch.num_rows() {
                    let of_file_row = match &wanted {
                        Some(wanted) => wanted.get(n_given).copied(),
                        None => Some(row_number(n_given)),
                    };
                    let more = || damaged(&parquet.file.url, "it gave more rows than were asked for");
                    let row = of_file.start + of_file_row.ok_or_else(more)?;
                    let own = || decisions.row(i, &mut names);
                    let decision = again.and_then(|rows| rows.get(&row)).map_or_else(own, NewDecision::stored);
                    each(StoredDocument { row, id: ids.value(i), text_hash: fixed(hashes, i), decision });
                    n_given += 1;
                }
            }
            if let Some(wanted) = wanted {
                refuse_fewer(&parquet, n_given, wanted.len())?;
            }
        }
        Ok(())
    }

    /// Returns the rows of a night's run, which ascend, as they are stored.
    ///
    /// # Errors
    /// A file of the store is damaged or cannot be read.
    pub async fn stored_rows(&self, night: usize, rows: &[u32]) -> Result<Vec<StoredRows>> {
        let night = self.nights[night];
        let mut all = Vec::new();
        for (name, of_file) in documents_with_text(self.store, night)? {
            let wanted = within(rows, &of_file);
            if wanted.is_empty() {
                continue;
            }
            let parquet = self.store.open_file(night, name).await?;
            let columns = [DOC_ID, FINGERPRINT, SKETCH, TEXT_HASH, N_FEATURES];
            let mut n_given = 0;
            let mut batches = parquet.stream(of_rows(&parquet, &columns, &wanted)?)?;
            while let Some(batch) = batches.try_next().await? {
                n_given += batch.num_rows();
                all.push(StoredRows { batch, are_short: name == "short" });
            }
            refuse_fewer(&parquet, n_given, wanted.len())?;
        }
        Ok(all)
    }

    /// Adds the rows of these nights that a night of the store decided again, by the digests of their runs.
    ///
    /// # Errors
    /// A file of the store is damaged or cannot be read.
    pub async fn decided_again_by(&self, night: &Night, rows: &mut Shadowed) -> Result<()> {
        for redecision in self.redecisions_with(night).await? {
            if *redecision.by == *night.run.digest {
                rows.entry(redecision.run.to_string()).or_default().insert(redecision.row);
            }
        }
        Ok(())
    }

    /// Returns the rows whose documents later ones of these nights have again, or a night of the store besides them.
    ///
    /// # Errors
    /// A file of the store is damaged or cannot be read.
    pub async fn shadowed_with(&self, night: &Night) -> Result<Shadowed> {
        let nights: Vec<&Night> = self.nights.iter().copied().chain([night]).collect();
        self.store.shadowed(&nights, Shadowed::default()).await
    }

    /// Returns those of some ids that these nights have.
    ///
    /// # Errors
    /// A file of the store is damaged or cannot be read.
    pub async fn known_ids(&self, ids: &[&str]) -> Result<HashSet<String>> {
        let mut by_hash: Vec<(u64, u32, u32)> = ids.iter().zip(0..).map(|(id, row)| (id_hash(id), row, row)).collect();
        by_hash.sort_unstable();
        let id_of = |row: u32| Cow::Borrowed(ids[row as usize]);
        let own = OwnDocuments { by_hash: &by_hash, id_of: &id_of, text_hash_of: &|_| None };
        let mut known = HashSet::new();
        for night in &self.nights {
            let found = self.store.rows_of_ids(night, &own).await?;
            known.extend(found.into_iter().map(|row| ids[row as usize].to_owned()));
        }
        Ok(known)
    }
}

impl Store {
    /// Returns the dependents of a night's run, which has a file of them: the hashes of canonical documents of the own store,
    /// and the rows that are dropped for these, in the order of the file.
    pub(crate) async fn dependents(&self, night: &Night) -> Result<Vec<(u32, u32)>> {
        let parquet = self.open_file(night, "dependents").await?;
        let mut batches = parquet.stream(parquet.whole(&[CANONICAL_HASH, "row"]))?;
        let mut dependents = Vec::new();
        while let Some(batch) = batches.try_next().await? {
            let columns = Columns { batch: &batch, file: &parquet.file.url };
            let hashes = columns.primitive::<UInt32Type>(CANONICAL_HASH)?.values().iter().copied();
            dependents.extend(hashes.zip(columns.primitive::<UInt32Type>("row")?.values().iter().copied()));
        }
        Ok(dependents)
    }

    /// Returns the rows of a night's run that are dropped for documents whose ids may have these hashes, which are sorted.
    /// The rows are read only where a hash is found.
    async fn rows_by_hash(&self, night: &Night, hashes: &[u32]) -> Result<Vec<u32>> {
        let parquet = self.open_file(night, "dependents").await?;
        let (mut positions, mut position, mut at) = (Vec::new(), 0u32, 0);
        let mut batches = parquet.stream(parquet.whole(&[CANONICAL_HASH]))?;
        while let Some(batch) = batches.try_next().await? {
            let columns = Columns { batch: &batch, file: &parquet.file.url };
            for &hash in columns.primitive::<UInt32Type>(CANONICAL_HASH)?.values() {
                at += hashes[at..].partition_point(|wanted| *wanted < hash);
                if hashes.get(at) == Some(&hash) {
                    positions.push(position);
                }
                position += 1;
            }
        }
        let mut rows = Vec::with_capacity(positions.len());
        if positions.is_empty() {
            return Ok(rows);
        }
        let mut batches = parquet.stream(of_rows(&parquet, &["row"], &positions)?)?;
        while let Some(batch) = batches.try_next().await? {
            let columns = Columns { batch: &batch, file: &parquet.file.url };
            rows.extend_from_slice(columns.primitive::<UInt32Type>("row")?.values());
        }
        refuse_fewer(&parquet, rows.len(), positions.len())?;
        Ok(rows)
    }

    /// Calls `each` with rows of a night's run, which ascend, and the ids of their canonical documents.
    async fn canonical_ids(&self, night: &Night, rows: &[u32], mut each: impl FnMut(u32, &str)) -> Result<()> {
        for (name, of_file) in documents_with_text(self, night)? {
            let wanted = within(rows, &of_file);
            if wanted.is_empty() {
                continue;
            }
            let parquet = self.open_file(night, name).await?;
            let mut of_rows_left = wanted.iter();
            let mut batches = parquet.stream(of_rows(&parquet, &[CANONICAL_ID], &wanted)?)?;
            while let Some(batch) = batches.try_next().await? {
                let columns = Columns { batch: &batch, file: &parquet.file.url };
                for (canonical, row) in columns.strings(CANONICAL_ID)?.iter().zip(&mut of_rows_left) {
                    // Another row than one that is dropped is no dependent, whoever says so.
                    if let Some(id) = canonical {
                        each(of_file.start + row, id);
                    }
                }
            }
            refuse_fewer(&parquet, wanted.len() - of_rows_left.len(), wanted.len())?;
        }
        Ok(())
    }

    /// Calls `each` with all dropped rows of a night's run, and the ids of their canonical documents.
    pub(crate) async fn all_canonical_ids(&self, night: &Night, mut each: impl FnMut(u32, &str)) -> Result<()> {
        for (name, of_file) in documents_with_text(self, night)? {
            let parquet = self.open_file(night, name).await?;
            let mut row = of_file.start;
            let mut batches = parquet.stream(parquet.whole(&[CANONICAL_ID]))?;
            while let Some(batch) = batches.try_next().await? {
                let columns = Columns { batch: &batch, file: &parquet.file.url };
                for canonical in columns.strings(CANONICAL_ID)? {
                    if let Some(id) = canonical {
                        each(row, id);
                    }
                    row += 1;
                }
            }
        }
        Ok(())
    }
}

/// Returns the files of a run whose documents have a text, each with its rows of the run.
fn documents_with_text(store: &Store, night: &Night) -> Result<[(&'static str, Range<u32>); 2]> {
    let [fingerprints, short, _] = store.datasets(night)?;
    Ok([fingerprints, short])
}

/// Returns the rows of a file, counted from its first one, among ascending rows of the run.
pub(crate) fn within(rows: &[u32], of_file: &Range<u32>) -> Vec<u32> {
    between(rows, of_file, |row| *row).iter().map(|row| row - of_file.start).collect()
}

/// Returns the reading of some rows of a file, which ascend.
fn of_rows<'a>(parquet: &ParquetFile, columns: &'a [&'a str], rows: &[u32]) -> Result<Read<'a>> {
    if rows.last().is_some_and(|&row| u64::from(row) >= parquet.n_rows()) {
        return Err(damaged(&parquet.file.url, "it has fewer rows than its run names"));
    }
    Ok(Read { rows: Some(selection(rows, parquet.n_rows())), ..parquet.whole(columns) })
}

fn refuse_fewer(parquet: &ParquetFile, n_given: usize, n_wanted: usize) -> Result<()> {
    if n_given == n_wanted {
        return Ok(());
    }
    Err(damaged(&parquet.file.url, format!("gave {n_given} of {n_wanted} rows")))
}
