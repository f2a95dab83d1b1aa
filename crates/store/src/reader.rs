//! Reading runs: the existing fingerprints of a join, the rows that later nights shadow, and the ids and short texts
//! that occur again.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use arrow::array::Array;
use arrow::datatypes::{UInt32Type, UInt64Type};
use futures::future::{BoxFuture, FutureExt};
use futures::stream::{self, Stream, StreamExt, TryStreamExt};
use nearprint_fault::{ErrorKind, Fault, Result};
use nearprint_join::Origin;
use nearprint_parquet::schema::{CANONICAL_ID, DOC_ID, TEXT_HASH};
use nearprint_parquet::{Columns, FileRecord, ParquetFile, Read, fixed, selection};

use crate::commit::{JoinedRuns, Night, SegmentRecord, is_worth_reading};
use crate::error::damaged;
use crate::existing::{Existing, ExistingDocuments, ExistingFile, ExistingShort, RunFile};
use crate::shadows::{Recrawls, Shadow, Shadowed};
use crate::store::Store;

/// The names of runs. Each is held in memory once.
#[derive(Debug, Default)]
struct Names(HashSet<Arc<str>>);

impl Names {
    fn of(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.0.get(name) {
            return Arc::clone(known);
        }
        let new: Arc<str> = name.into();
        self.0.insert(Arc::clone(&new));
        new
    }
}

/// A document that both the query batch and another night have.
struct SameId {
    row: u32,
    own_run_row: u32,
    run_row: u32,
    kept: bool,
}

/// The number of nights whose files are read at the same time: a distant bucket takes long to begin an answer.
const NIGHTS_AT_ONCE: usize = 8;

/// Runs some of the futures at the same time. Their results come in order.
fn at_once<'a, T: 'a>(futures: Vec<BoxFuture<'a, T>>) -> impl Stream<Item = T> + use<'a, T> {
    stream::iter(futures).buffered(NIGHTS_AT_ONCE)
}

impl Store {
    /// Opens a file of a night's run: `fingerprints`, `short`, `empty`, `ids` or `shadows`.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if the file is missing, or has another size than the
    /// commit records; an error if it cannot
    /// be read.
    pub async fn open_file(&self, night: &Night, name: &str) -> Result<ParquetFile> {
        let place = self.run_folder(&night.run.digest).join(&format!("{name}/part-00000.parquet"));
        let file = place.file().await.map_err(|e| match e.kind() {
            ErrorKind::InputMissing => damaged(place.url(), "the file is gone"),
            _ => e,
        })?;
        let recorded = night.run.files.iter().find(|f| f.name == format!("{name}/part-00000.parquet"));
        if recorded.is_none_or(|f| f.bytes != file.size) {
            return Err(damaged(&file.url, "its size is not the one that the store's commit records"));
        }
        ParquetFile::open(file).await
    }

    /// Returns the nights with which a night of date `dt` is joined: those of earlier dates.
    pub fn nights_before(&self, dt: &str) -> JoinedNights<'_> {
        JoinedNights { store: self, nights: self.before(dt), origin: Origin::OWN }
    }

    /// Returns all nights, as those with which documents of elsewhere are joined.
    pub fn all_nights(&self, origin: Origin) -> JoinedNights<'_> {
        JoinedNights { store: self, nights: self.nights().iter().collect(), origin }
    }

    /// Returns the fingerprints of all nights, with only the latest version of each document.
    ///
    /// # Errors
    /// A file of the store is damaged or cannot be read.
    pub async fn all_existing(&self) -> Result<Existing> {
        let nights = self.all_nights(Origin::OWN);
        let shadowed = nights.shadowed(&Recrawls::default()).await?;
        nights.existing(shadowed).await
    }

    /// Returns the files of segments, and those of runs that no segment covers. Each fingerprint is in exactly one of
    /// them.
    async fn files(&self, nights: &[&Night], origin: Origin, mut shadowed: Shadowed) -> Result<Existing> {
        let with_some: Vec<&Night> = nights.iter().copied().filter(|n| n.run.n_fingerprints > 0).collect();
        let opened: Vec<ParquetFile> =
            at_once(with_some.iter().map(|night| self.open_file(night, "fingerprints").boxed()).collect())
                .try_collect()
                .await?;
        let mut runs: BTreeMap<&str, RunFile> = BTreeMap::new();
        for (night, parquet) in with_some.into_iter().zip(opened) {
            // Of most runs, no row is shadowed.
            let shadowed = shadowed.remove(&night.run.digest).unwrap_or_default();
            runs.insert(&night.run.digest, RunFile { parquet, shadowed });
        }
        let n_live_rows = runs.values().map(RunFile::n_live_rows).sum();
        let mut files = Vec::new();
        for segment in self.segments() {
            files.extend(self.segment_files(segment, origin, &mut runs).await?);
        }
        let own = |RunFile { parquet, shadowed }| ExistingFile {
            parquet,
            documents: ExistingDocuments::Here { shadowed },
            origin,
            numbered_from: None,
        };
        files.extend(runs.into_values().map(own));
        Ok(Existing { files, n_live_rows })
    }

    /// Returns the files of a segment, and takes the runs that it covers out of `runs`. The list is empty if reading
    /// the runs themselves is less work.
    async fn segment_files(
        &self,
        segment: &SegmentRecord,
        origin: Origin,
        runs: &mut BTreeMap<&str, RunFile>,
    ) -> Result<Vec<ExistingFile>> {
        let covered = segment.runs.iter().filter_map(|digest| runs.get(digest.as_str()));
        let n_rows: u64 = covered.map(|run| run.parquet.n_rows()).sum();
        if !is_worth_reading(n_rows, segment) {
            return Ok(Vec::new());
        }
        let Some(parts) = self.open_segment(segment).await? else {
            return Ok(Vec::new());
        };
        let covered: Arc<Vec<Option<RunFile>>> =
            Arc::new(segment.runs.iter().map(|digest| runs.remove(digest.as_str())).collect());
        let part = |parquet| ExistingFile {
            parquet,
            documents: ExistingDocuments::InRuns { runs: Arc::clone(&covered) },
            origin,
            numbered_from: None,
        };
        Ok(parts.into_iter().map(part).collect())
    }

    /// Opens the files of a segment. Returns `None` if a file is missing or has another size, because the runs have the
    /// same data.
    async fn open_segment(&self, segment: &SegmentRecord) -> Result<Option<Vec<ParquetFile>>> {
        let opened: Vec<Option<ParquetFile>> =
            at_once(segment.files.iter().map(|recorded| self.open_part(segment, recorded).boxed()).collect())
                .try_collect()
                .await?;
        Ok(opened.into_iter().collect())
    }

    async fn open_part(&self, segment: &SegmentRecord, recorded: &FileRecord) -> Result<Option<ParquetFile>> {
        let place = self.segment_folder(&segment.digest).join(&recorded.name);
        let Some(file) = place.find().await?.filter(|file| file.size == recorded.bytes) else {
            let part = place.url();
            tracing::warn!(part, "a part of a segment is gone or damaged: reading the runs; mend with store compact");
            return Ok(None);
        };
        Ok(Some(ParquetFile::open(file).await?))
    }

    /// Returns the shadowed rows by run: the given ones, and those that the given nights shadow among each other.
    async fn shadowed<'a>(&'a self, nights: &[&'a Night], mut shadowed: Shadowed) -> Result<Shadowed> {
        let known: HashSet<&str> = nights.iter().map(|n| n.run.digest.as_str()).collect();
        let of_night = |&night: &&'a Night| async move { Ok::<_, Fault>((night, self.shadows(night).await?)) };
        let mut of_nights = at_once(nights.iter().map(|night| of_night(night).boxed()).collect());
        while let Some((night, found)) = of_nights.try_next().await? {
            for shadow in found {
                let [run, by] = [&*shadow.run, &*shadow.by].map(|named| match named {
                    "" => night.run.digest.as_str(),
                    other => other,
                });
                if known.contains(run) && known.contains(by) {
                    shadowed.entry(run.to_owned()).or_default().insert(shadow.row);
                }
            }
        }
        Ok(shadowed)
    }

    pub(crate) async fn shadows(&self, night: &Night) -> Result<Vec<Shadow>> {
        let (mut found, mut names) = (Vec::new(), Names::default());
        let parquet = self.open_file(night, "shadows").await?;
        let mut batches = parquet.stream(parquet.whole(&["run", "by", "row"]))?;
        while let Some(batch) = batches.try_next().await? {
            let columns = Columns { batch: &batch, file: &parquet.file.url };
            let (run, by, row) =
                (columns.strings("run")?, columns.strings("by")?, columns.primitive::<UInt32Type>("row")?);
            found.extend((0..batch.num_rows()).map(|i| Shadow {
                run: names.of(run.value(i)),
                by: names.of(by.value(i)),
                row: row.value(i),
            }));
        }
        Ok(found)
    }

    /// Finds the documents of a night with date `dt` that nights of other dates have too, and which of the two versions
    /// is shadowed. Ids are compared by a sorted column of their hashes, and fetched only if hashes are equal.
    ///
    /// # Errors
    /// A file of the store is damaged or cannot be read.
    pub async fn recrawls<'a>(&'a self, dt: &str, own: &'a OwnIds<'a>) -> Result<Recrawls> {
        let mut recrawls = Recrawls::default();
        let this: Arc<str> = "".into();
        let others = self.nights().iter().filter(|n| n.dt != dt);
        let of_night = |night: &'a Night| async move { Ok::<_, Fault>((night, self.same_ids(night, own).await?)) };
        let mut of_nights = at_once(others.map(|night| of_night(night).boxed()).collect());
        while let Some((night, found)) = of_nights.try_next().await? {
            let digest: Arc<str> = night.run.digest.as_str().into();
            for same in found {
                let (this, digest) = (Arc::clone(&this), Arc::clone(&digest));
                if night.dt.as_str() < dt {
                    recrawls.earlier.insert(same.row, same.kept);
                    recrawls.shadows.push(Shadow { run: digest, by: this, row: same.run_row });
                } else {
                    recrawls.shadows.push(Shadow { run: this, by: digest, row: same.own_run_row });
                }
            }
        }
        recrawls.shadows.sort_unstable();
        Ok(recrawls)
    }

    async fn same_ids(&self, night: &Night, own: &OwnIds<'_>) -> Result<Vec<SameId>> {
        let parquet = self.open_file(night, "ids").await?;
        let mut batches = parquet.stream(parquet.whole(&["id_hash", "row"]))?;
        // Each candidate is (row of that run, row of this run, row of the query batch).
        let mut candidates: Vec<(u32, u32, u32)> = Vec::new();
        let mut at = 0;
        while let Some(rows) = batches.try_next().await? {
            let columns = Columns { batch: &rows, file: &parquet.file.url };
            let (hashes, run_rows) =
                (columns.primitive::<UInt64Type>("id_hash")?, columns.primitive::<UInt32Type>("row")?);
            for (&hash, &run_row) in hashes.values().iter().zip(run_rows.values()) {
                at += own.by_hash[at..].partition_point(|o| o.0 < hash);
                let same = own.by_hash[at..].iter().take_while(|o| o.0 == hash);
                candidates.extend(same.map(|&(_, own_run_row, row)| (run_row, own_run_row, row)));
            }
        }
        candidates.sort_unstable();
        self.confirm(night, &candidates, own).await
    }

    /// Returns the first row of a run's short texts, and that of its documents without text.
    pub(crate) fn first_rows(&self, night: &Night) -> Result<(u32, u32)> {
        let (n_fingerprints, n_short) = (night.run.n_fingerprints, night.run.n_short);
        let too_many = |_| {
            let reason =
                format!("{n_fingerprints} fingerprints and {n_short} short texts are more than a run can have");
            damaged(self.run_folder(&night.run.digest).url(), reason)
        };
        let empty = u32::try_from(n_fingerprints.saturating_add(n_short)).map_err(too_many)?;
        Ok((u32::try_from(n_fingerprints).map_err(too_many)?, empty))
    }

    /// Returns those candidates, ascending, whose ids are equal, and not only the hashes of the ids.
    async fn confirm(&self, night: &Night, candidates: &[(u32, u32, u32)], own: &OwnIds<'_>) -> Result<Vec<SameId>> {
        let (short, empty) = self.first_rows(night)?;
        let mut same = Vec::new();
        for (name, rows) in [("fingerprints", 0..short), ("short", short..empty), ("empty", empty..u32::MAX)] {
            let from = candidates.partition_point(|c| c.0 < rows.start);
            let of_file = &candidates[from..candidates.partition_point(|c| c.0 < rows.end)];
            if !of_file.is_empty() {
                let parquet = self.open_file(night, name).await?;
                confirm_in(&parquet, rows.start, of_file, own, &mut same).await?;
            }
        }
        Ok(same)
    }
}

/// Works like [`Store::confirm`] for one file, whose first row is the row `first_row` of the run. The page index is
/// used to fetch the ids.
async fn confirm_in(
    parquet: &ParquetFile,
    first_row: u32,
    candidates: &[(u32, u32, u32)],
    own: &OwnIds<'_>,
    same: &mut Vec<SameId>,
) -> Result<()> {
    let mut wanted: Vec<u32> = candidates.iter().map(|c| c.0 - first_row).collect();
    wanted.dedup();
    let selected = Some(selection(&wanted, parquet.n_rows()));
    drop(wanted);
    let mut of_rows = candidates.chunk_by(|a, b| a.0 == b.0);
    let mut batches = parquet.stream(Read { rows: selected, ..parquet.whole(&[DOC_ID, CANONICAL_ID]) })?;
    while let Some(found) = batches.try_next().await? {
        let columns = Columns { batch: &found, file: &parquet.file.url };
        let ids = columns.strings(DOC_ID)?;
        // Documents without text are never canonical.
        let canonical = found.column_by_name(CANONICAL_ID);
        for (i, of_row) in (0..found.num_rows()).zip(&mut of_rows) {
            let kept = canonical.is_some_and(|c| c.is_null(i));
            let named = of_row.iter().filter(|(_, _, row)| *(own.id_of)(*row) == *ids.value(i));
            same.extend(named.map(|&(run_row, own_run_row, row)| SameId { row, own_run_row, run_row, kept }));
        }
    }
    if of_rows.next().is_some() {
        let reason = "it has fewer rows than the ids of its run name";
        return Err(damaged(&parquet.file.url, reason));
    }
    Ok(())
}

/// The ids of a night's own documents.
pub struct OwnIds<'a> {
    /// Sorted entries of ([`id_hash`](crate::id_hash), row of the run that is being made, row of the query batch).
    pub by_hash: &'a [(u64, u32, u32)],
    /// Returns the id at a row of the query batch.
    pub id_of: &'a (dyn Fn(u32) -> Cow<'a, str> + Sync),
}

/// Nights of a store with which a night is joined. The night may be of the same store, or of another.
#[derive(Debug)]
pub struct JoinedNights<'a> {
    store: &'a Store,
    nights: Vec<&'a Night>,
    origin: Origin,
}

impl JoinedNights<'_> {
    /// Returns the number of fingerprints of each night that has some, by date. Replaced versions of documents count too.
    #[must_use]
    pub fn n_fingerprints(&self) -> Vec<u64> {
        self.nights.iter().map(|night| night.run.n_fingerprints).filter(|&n| n > 0).collect()
    }

    /// Returns the digests of their runs, by date, as lists of joined runs name them.
    #[must_use]
    pub fn digests(&self) -> Vec<String> {
        self.nights.iter().map(|night| night.joined_as().to_owned()).collect()
    }

    /// Returns the digest of this list, which begins with the runs that the store has forgotten.
    #[must_use]
    pub fn digest(&self) -> String {
        JoinedRuns::of(self.store.forgotten_runs(), &self.digests())
    }

    /// Returns the rows that the join does not see: versions of documents that a later one of these nights replaced, or,
    /// in the night's own store alone, that the query batch itself replaces.
    ///
    /// # Errors
    /// A file of the store is damaged or cannot be read.
    pub async fn shadowed(&self, recrawls: &Recrawls) -> Result<Shadowed> {
        let replaced = if self.origin == Origin::OWN { recrawls.shadowed() } else { Shadowed::new() };
        self.store.shadowed(&self.nights, replaced).await
    }

    /// Returns the existing fingerprints of the join, without the shadowed ones.
    ///
    /// # Errors
    /// A file of the store is damaged or cannot be read.
    pub async fn existing(&self, shadowed: Shadowed) -> Result<Existing> {
        self.store.files(&self.nights, self.origin, shadowed).await
    }

    /// Returns the documents with short texts that are kept and not shadowed, and have one of the `wanted` text hashes.
    ///
    /// # Errors
    /// A file of the store is damaged or cannot be read.
    pub async fn existing_short(&self, wanted: &HashSet<[u8; 16]>, shadowed: &Shadowed) -> Result<ExistingShort> {
        let mut found = ExistingShort::default();
        if wanted.is_empty() {
            return Ok(found);
        }
        let nights = self.nights.iter().filter(|night| night.run.n_short > 0);
        let mut of_nights = at_once(nights.map(|night| self.short_of(night, wanted, shadowed).boxed()).collect());
        while let Some(of_night) = of_nights.try_next().await? {
            found.append(of_night);
        }
        Ok(found)
    }

    /// Works like [`existing_short`](Self::existing_short) for one night.
    async fn short_of(&self, night: &Night, wanted: &HashSet<[u8; 16]>, shadowed: &Shadowed) -> Result<ExistingShort> {
        let mut found = ExistingShort::default();
        let parquet = self.store.open_file(night, "short").await?;
        let mut batches = parquet.stream(parquet.whole(&[TEXT_HASH, DOC_ID, CANONICAL_ID]))?;
        let (mut run_row, _) = self.store.first_rows(night)?;
        let shadowed = shadowed.get(&night.run.digest);
        while let Some(rows) = batches.try_next().await? {
            let columns = Columns { batch: &rows, file: &parquet.file.url };
            let (hashes, ids, canonical) =
                (columns.bytes::<16>(TEXT_HASH)?, columns.strings(DOC_ID)?, columns.strings(CANONICAL_ID)?);
            for i in 0..rows.num_rows() {
                let hash: Option<[u8; 16]> = fixed(hashes, i);
                let live = canonical.is_null(i) && !shadowed.is_some_and(|s| s.contains(run_row));
                if let Some(hash) = hash.filter(|h| live && wanted.contains(h)) {
                    found.offer(hash, ids.value(i), self.origin);
                }
                run_row += 1;
            }
        }
        Ok(found)
    }
}
