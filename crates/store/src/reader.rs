//! Reading runs: the existing fingerprints of a join, the rows that later nights shadow, and the ids and short texts
//! that occur again.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::Array;
use arrow::datatypes::{Date32Type, UInt32Type, UInt64Type};
use futures::future::{BoxFuture, FutureExt};
use futures::stream::{self, Stream, StreamExt, TryStreamExt};
use nearprint_fault::{ErrorKind, Fault, Result};
use nearprint_join::{Origin, RowSet};
use nearprint_parquet::schema::{
    CANONICAL_ID, DOC_ID, FAMILY_ID, FIRST_SEEN, LAST_CHANGED, REASON, REFERENCE, TEXT_HASH,
};
use nearprint_parquet::{Columns, FileRecord, ParquetFile, Read, fixed, selection, value};
use nearprint_storage::{day_of_date, in_memory};

use crate::commit::{JoinedRuns, Night, SegmentRecord, is_worth_reading};
use crate::error::damaged;
use crate::existing::{Existing, ExistingDocuments, ExistingFile, ExistingShort, RunFile};
use crate::interned::Names;
use crate::redecided::{DecisionColumns, NewCanonical, NewDecision, Redecided, Redecision, StoredDecision};
use crate::shadows::{Recrawled, Recrawls, Shadow, Shadowed};
use crate::store::Store;

/// A document that both the query batch and another night have. The dates are those of the other night's state.
pub(crate) struct SameId {
    pub(crate) row: u32,
    own_run_row: u32,
    pub(crate) run_row: u32,
    /// What became of it in that night.
    decision: StoredDecision,
    first_seen: i32,
    last_changed: i32,
}

/// The newest earlier state of a document of the query batch.
struct NewestState {
    /// The position of its night.
    night: u32,
    /// The state, but `first_seen` is the earliest of all earlier states.
    state: SameId,
}

/// The number of nights whose files are read at the same time: a distant bucket takes long to begin an answer.
const NIGHTS_AT_ONCE: usize = 8;

/// Runs some of the futures at the same time. Their results come in order.
pub(crate) fn at_once<'a, T: 'a>(futures: Vec<BoxFuture<'a, T>>) -> impl Stream<Item = T> + use<'a, T> {
    stream::iter(futures).buffered(NIGHTS_AT_ONCE)
}

impl Store {
    /// Opens a file of a night's run: `fingerprints`, `short`, `empty`, `ids`, `shadows`, and if the run has them `dependents`
    /// and `redecided`.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if the file is missing, or has another size than the
    /// commit records; an error if it cannot be read.
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

    /// Returns the nights that the commit of a night of date `dt` makes the store forget, if it keeps `keep_nights` nights.
    /// `is_future` says whether the night is one of the [future](Night::future).
    #[must_use]
    pub fn leaving(&self, dt: &str, is_future: bool, keep_nights: Option<NonZeroU32>) -> Vec<&Night> {
        let Some(n) = keep_nights.filter(|_| !is_future) else {
            return Vec::new();
        };
        let others = self.nights().iter().filter(|night| !night.future && night.dt != dt);
        let mut counting: Vec<&str> = others.map(|night| night.dt.as_str()).chain([dt]).collect();
        counting.sort_unstable();
        let oldest = counting.len().checked_sub(in_memory(u64::from(n.get()))).and_then(|at| counting.get(at));
        oldest.map_or_else(Vec::new, |oldest| self.before(oldest))
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
        nights.existing(shadowed, &nights.redecided().await?).await
    }

    /// Returns the files of segments, and those of runs that no segment covers. Each fingerprint is in exactly one of
    /// them.
    async fn files(
        &self,
        nights: &[&Night],
        origin: Origin,
        mut shadowed: Shadowed,
        redecided: &Redecided,
    ) -> Result<Existing> {
        let with_some: Vec<&Night> = nights.iter().copied().filter(|n| n.run.n_fingerprints > 0).collect();
        let opened: Vec<ParquetFile> =
            at_once(with_some.iter().map(|night| self.open_file(night, "fingerprints").boxed()).collect())
                .try_collect()
                .await?;
        let mut runs: BTreeMap<&str, RunFile> = BTreeMap::new();
        for (night, parquet) in with_some.into_iter().zip(opened) {
            // Of most runs, no row is shadowed.
            let shadowed = Arc::new(shadowed.remove(&night.run.digest).unwrap_or_default());
            let restored = Arc::new(redecided.restored(&night.run.digest));
            runs.insert(&night.run.digest, RunFile { parquet, shadowed, restored });
        }
        let n_live_rows = runs.values().map(RunFile::n_live_rows).sum();
        let mut files = Vec::new();
        for segment in self.segments() {
            files.extend(self.segment_files(segment, origin, &mut runs).await?);
        }
        let own = |RunFile { parquet, shadowed, restored }| ExistingFile {
            parquet,
            documents: ExistingDocuments::Here { shadowed, restored },
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
    pub(crate) async fn shadowed<'a>(&'a self, nights: &[&'a Night], mut shadowed: Shadowed) -> Result<Shadowed> {
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

    /// Returns what a night's run says about rows that were decided again.
    pub(crate) async fn redecisions(&self, night: &Night) -> Result<Vec<Redecision>> {
        if !night.run.redecides() {
            return Ok(Vec::new());
        }
        let (mut found, mut names) = (Vec::new(), Names::default());
        let parquet = self.open_file(night, "redecided").await?;
        let mut batches =
            parquet.stream(parquet.whole(&["run", "by", "row", CANONICAL_ID, REASON, REFERENCE, DOC_ID, FAMILY_ID]))?;
        while let Some(batch) = batches.try_next().await? {
            let columns = Columns { batch: &batch, file: &parquet.file.url };
            let (run, by, row) =
                (columns.strings("run")?, columns.strings("by")?, columns.primitive::<UInt32Type>("row")?);
            let (ids, reasons) = (columns.strings(CANONICAL_ID)?, columns.strings(REASON)?);
            let references = columns.strings(REFERENCE)?;
            let (named, families) = (columns.strings(DOC_ID)?, columns.strings(FAMILY_ID)?);
            for i in 0..batch.num_rows() {
                let reference = value(references, i).map(|name| names.of(name));
                let canonical = value(ids, i).map(|id| NewCanonical { id: id.into(), reference });
                found.push(Redecision {
                    run: names.of(run.value(i)),
                    by: names.of(by.value(i)),
                    row: row.value(i),
                    decision: NewDecision {
                        canonical,
                        reason: names.of(reasons.value(i)),
                        id: named.value(i).into(),
                        family: names.of(families.value(i)),
                    },
                });
            }
        }
        Ok(found)
    }

    /// Returns what some nights decided again about each other's rows, with the names of both runs.
    pub(crate) async fn redecisions_of(&self, nights: &[&Night]) -> Result<Vec<Redecision>> {
        let known: HashMap<&str, &Night> = nights.iter().map(|n| (n.run.digest.as_str(), *n)).collect();
        let counts = |said: &Redecision| match (known.get(&*said.run), known.get(&*said.by)) {
            (Some(of), Some(by)) => !by.overruled.contains(&of.dt),
            _ => false,
        };
        let of_night = |&night: &&Night| {
            let night: Night = night.clone();
            async move { Ok::<_, Fault>((self.redecisions(&night).await?, night)) }
        };
        let mut all = Vec::new();
        let redeciding = nights.iter().filter(|night| night.run.redecides());
        let mut of_nights = at_once(redeciding.map(|night| of_night(night).boxed()).collect());
        while let Some((found, night)) = of_nights.try_next().await? {
            let own: Arc<str> = night.run.digest.as_str().into();
            let named = |run: Arc<str>| if run.is_empty() { Arc::clone(&own) } else { run };
            let found = found.into_iter();
            let found = found.map(|r| Redecision { run: named(r.run), by: named(r.by), ..r });
            all.extend(found.filter(counts));
        }
        Ok(all)
    }

    /// Finds the documents of a night with date `dt` that nights of other dates have too, and which of the two versions
    /// is shadowed. Ids are compared by a sorted column of their hashes, and fetched only if hashes are equal. Of the texts,
    /// those of the newest earlier states alone are compared.
    ///
    /// # Errors
    /// A file of the store is damaged or cannot be read.
    pub async fn recrawls<'a>(&'a self, dt: &str, own: &'a OwnDocuments<'a>) -> Result<Recrawls> {
        let (mut shadows, mut newest) = (Vec::new(), BTreeMap::<u32, NewestState>::new());
        let mut later = RowSet::default();
        let redecided = self.nights_before(dt).redecided().await?;
        let this: Arc<str> = "".into();
        let others = (0..).zip(self.nights()).filter(|(_, night)| night.dt != dt);
        let of_night = |number: u32, night: &'a Night| async move {
            Ok::<_, Fault>((number, night, self.same_ids(night, own).await?))
        };
        let mut of_nights = at_once(others.map(|(number, night)| of_night(number, night).boxed()).collect());
        // The nights come by date, so the state that comes last is the newest.
        while let Some((night, of, found)) = of_nights.try_next().await? {
            let digest: Arc<str> = of.run.digest.as_str().into();
            for same in found {
                let (this, digest) = (Arc::clone(&this), Arc::clone(&digest));
                if of.dt.as_str() < dt {
                    let again = redecided.of_row(&of.run.digest, same.run_row);
                    let decision = again.map_or(same.decision, NewDecision::stored);
                    shadows.push(Shadow { run: digest, by: this, row: same.run_row });
                    let before = newest.get(&same.row).map_or(same.first_seen, |before| before.state.first_seen);
                    let state = SameId { decision, first_seen: before.min(same.first_seen), ..same };
                    newest.insert(state.row, NewestState { night, state });
                } else {
                    later.insert(same.row);
                    shadows.push(Shadow { run: this, by: digest, row: same.own_run_row });
                }
            }
        }
        let same_texts = self.same_texts(&newest, own).await?;
        let night = day_of_date(dt).ok_or_else(|| Fault::internal("recrawls", format!("'{dt}' is no date")))?;
        let earlier = newest.into_values().map(|NewestState { night, state }| Recrawled {
            row: state.row,
            first_seen: state.first_seen,
            last_changed: state.last_changed,
            is_same: same_texts.contains(state.row),
            night,
            run_row: state.run_row,
            decision: state.decision,
        });
        Ok(Recrawls::new(night, earlier.collect(), later, shadows))
    }

    /// Returns the rows of the query batch that have the text of their newest earlier state, or like it none.
    async fn same_texts<'a>(
        &'a self,
        newest: &BTreeMap<u32, NewestState>,
        own: &'a OwnDocuments<'a>,
    ) -> Result<RowSet> {
        let mut of_nights: BTreeMap<u32, Vec<(u32, u32)>> = BTreeMap::new();
        for NewestState { night, state } in newest.values() {
            of_nights.entry(*night).or_default().push((state.run_row, state.row));
        }
        let of_night = |(night, states)| self.same_texts_of(&self.nights()[night as usize], states, own).boxed();
        let mut found = at_once(of_nights.into_iter().map(of_night).collect());
        let mut same = RowSet::default();
        while let Some(rows) = found.try_next().await? {
            rows.into_iter().for_each(|row| same.insert(row));
        }
        Ok(same)
    }

    /// Works like [`same_texts`](Self::same_texts) for states of one night: pairs of a row of its run and one of the query
    /// batch.
    async fn same_texts_of(
        &self,
        night: &Night,
        mut states: Vec<(u32, u32)>,
        own: &OwnDocuments<'_>,
    ) -> Result<Vec<u32>> {
        states.sort_unstable();
        let mut same = Vec::new();
        for (name, rows) in self.datasets(night)? {
            let of_file = between(&states, &rows, |state| state.0);
            if name == "empty" {
                same.extend(of_file.iter().map(|(_, row)| *row).filter(|&row| (own.text_hash_of)(row).is_none()));
            } else if !of_file.is_empty() {
                let parquet = self.open_file(night, name).await?;
                let wanted: Vec<u32> = of_file.iter().map(|state| state.0 - rows.start).collect();
                let selected = Some(selection(&wanted, parquet.n_rows()));
                let mut of_rows = of_file.iter();
                let mut batches = parquet.stream(Read { rows: selected, ..parquet.whole(&[TEXT_HASH]) })?;
                while let Some(found) = batches.try_next().await? {
                    let hashes = Columns { batch: &found, file: &parquet.file.url }.bytes::<16>(TEXT_HASH)?;
                    let of_rows = (0..found.num_rows()).zip(&mut of_rows).map(|(i, (_, row))| (i, *row));
                    same.extend(
                        of_rows.filter(|&(i, row)| fixed(hashes, i) == (own.text_hash_of)(row)).map(|(_, row)| row),
                    );
                }
            }
        }
        Ok(same)
    }

    /// Returns the rows of the query batch that `own` names and a night has, one for each row of the night.
    pub(crate) async fn rows_of_ids(&self, night: &Night, own: &OwnDocuments<'_>) -> Result<Vec<u32>> {
        Ok(self.same_ids(night, own).await?.into_iter().map(|same| same.row).collect())
    }

    pub(crate) async fn same_ids(&self, night: &Night, own: &OwnDocuments<'_>) -> Result<Vec<SameId>> {
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

    /// Returns the files of a run that have documents, each with its rows of the run.
    pub(crate) fn datasets(&self, night: &Night) -> Result<[(&'static str, Range<u32>); 3]> {
        let (short, empty) = self.first_rows(night)?;
        Ok([("fingerprints", 0..short), ("short", short..empty), ("empty", empty..u32::MAX)])
    }

    /// Returns those candidates, ascending, whose ids are equal, and not only the hashes of the ids.
    async fn confirm(
        &self,
        night: &Night,
        candidates: &[(u32, u32, u32)],
        own: &OwnDocuments<'_>,
    ) -> Result<Vec<SameId>> {
        let day = day_of_date(&night.dt).ok_or_else(|| {
            let reason = format!("its night '{}' has no date", night.dt);
            damaged(self.run_folder(&night.run.digest).url(), reason)
        })?;
        let mut same = Vec::new();
        for (name, rows) in self.datasets(night)? {
            let of_file = between(candidates, &rows, |candidate| candidate.0);
            if !of_file.is_empty() {
                let parquet = self.open_file(night, name).await?;
                confirm_in(&parquet, (rows.start, day), of_file, own, &mut same).await?;
            }
        }
        Ok(same)
    }
}

/// Returns those of some ascending items whose rows lie in a range.
pub(crate) fn between<'a, T>(items: &'a [T], rows: &Range<u32>, row_of: impl Fn(&T) -> u32) -> &'a [T] {
    let from = items.partition_point(|item| row_of(item) < rows.start);
    &items[from..items.partition_point(|item| row_of(item) < rows.end)]
}

/// Works like [`Store::confirm`] for one file, whose first row is the row `first_row` of the run of the night `day`. The
/// page index is used to fetch the ids.
async fn confirm_in(
    parquet: &ParquetFile,
    (first_row, day): (u32, i32),
    candidates: &[(u32, u32, u32)],
    own: &OwnDocuments<'_>,
    same: &mut Vec<SameId>,
) -> Result<()> {
    let mut wanted: Vec<u32> = candidates.iter().map(|c| c.0 - first_row).collect();
    wanted.dedup();
    let selected = Some(selection(&wanted, parquet.n_rows()));
    drop(wanted);
    let mut of_rows = candidates.chunk_by(|a, b| a.0 == b.0);
    let wanted = [&[DOC_ID, FIRST_SEEN, LAST_CHANGED][..], &DecisionColumns::NAMES].concat();
    let mut names = Names::default();
    let mut batches = parquet.stream(Read { rows: selected, ..parquet.whole(&wanted) })?;
    while let Some(found) = batches.try_next().await? {
        let columns = Columns { batch: &found, file: &parquet.file.url };
        let ids = columns.strings(DOC_ID)?;
        let decisions = DecisionColumns::of(columns)?;
        let (first_seen, last_changed) = (dates(columns, FIRST_SEEN, day)?, dates(columns, LAST_CHANGED, day)?);
        for (i, of_row) in (0..found.num_rows()).zip(&mut of_rows) {
            let (first_seen, last_changed) = (first_seen(i), last_changed(i));
            let named = of_row.iter().filter(|(_, _, row)| *(own.id_of)(*row) == *ids.value(i));
            let state = |&(run_row, own_run_row, row): &(u32, u32, u32)| SameId {
                row,
                own_run_row,
                run_row,
                decision: decisions.row(i, &mut names),
                first_seen,
                last_changed,
            };
            same.extend(named.map(state));
        }
    }
    if of_rows.next().is_some() {
        let reason = "it has fewer rows than the ids of its run name";
        return Err(damaged(&parquet.file.url, reason));
    }
    Ok(())
}

/// Returns the dates in a column of a night's run. Where there is none, as in all runs of release 0.2.0, it is that of the
/// night.
fn dates<'a>(columns: Columns<'a>, name: &str, day: i32) -> Result<impl Fn(usize) -> i32 + use<'a>> {
    let there = columns.optional(name, Columns::primitive::<Date32Type>)?;
    Ok(move |i| there.and_then(|dates| value(dates, i)).unwrap_or(day))
}

/// A night's own documents.
pub struct OwnDocuments<'a> {
    /// Sorted entries of ([`id_hash`](crate::id_hash), row of the run that is being made, row of the query batch).
    pub by_hash: &'a [(u64, u32, u32)],
    /// Returns the id at a row of the query batch.
    pub id_of: &'a (dyn Fn(u32) -> Cow<'a, str> + Sync),
    /// Returns the hash of the normalised text at a row of the query batch, or `None` if it has no text.
    pub text_hash_of: &'a (dyn Fn(u32) -> Option<[u8; 16]> + Sync),
}

/// Nights of a store with which a night is joined. The night may be of the same store, or of another.
#[derive(Debug)]
pub struct JoinedNights<'a> {
    pub(crate) store: &'a Store,
    pub(crate) nights: Vec<&'a Night>,
    origin: Origin,
}

impl JoinedNights<'_> {
    /// Leaves some of the nights alone.
    #[must_use]
    pub fn only(mut self, these: &[&Night]) -> Self {
        self.nights.retain(|night| these.iter().any(|this| this.dt == night.dt));
        self
    }

    /// Leaves out some of the nights.
    #[must_use]
    pub fn without(mut self, others: &[&Night]) -> Self {
        self.nights.retain(|night| !others.iter().any(|other| other.dt == night.dt));
        self
    }

    /// Returns the nights, by date.
    pub fn nights(&self) -> impl Iterator<Item = &Night> {
        self.nights.iter().copied()
    }

    /// Returns what these nights and one more night of the store decided again about each other's rows.
    ///
    /// # Errors
    /// A file of the store is damaged or cannot be read.
    pub async fn redecisions_with(&self, night: &Night) -> Result<Vec<Redecision>> {
        let nights: Vec<&Night> = self.nights.iter().copied().chain([night]).collect();
        self.store.redecisions_of(&nights).await
    }

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

    /// Returns what these nights decided again about each other's rows. Of each row, the latest night counts.
    ///
    /// # Errors
    /// A file of the store is damaged or cannot be read.
    pub async fn redecided(&self) -> Result<Redecided> {
        self.redecided_with(None, &[]).await
    }

    /// Works like [`redecided`](Self::redecided) for these nights and one more, of the date `dt`, which is not among them and
    /// decided `new` again. Without a date there is nothing new.
    ///
    /// # Errors
    /// A file of the store is damaged or cannot be read.
    pub async fn redecided_with(&self, dt: Option<&str>, new: &[Redecision]) -> Result<Redecided> {
        let dates = self.nights.iter().map(|n| (n.run.digest.as_str(), n.dt.as_str()));
        // What is new does not name its own run.
        let dates: HashMap<&str, &str> = dates.chain(dt.map(|dt| ("", dt))).collect();
        let mut all = self.store.redecisions_of(&self.nights).await?;
        all.extend_from_slice(new);
        all.sort_by_key(|redecision| dates.get(&*redecision.by));
        let mut redecided = Redecided::default();
        for Redecision { run, row, decision, .. } in all {
            redecided.insert(&run, row, decision);
        }
        Ok(redecided)
    }

    /// Returns the existing fingerprints of the join, without the shadowed ones.
    ///
    /// # Errors
    /// A file of the store is damaged or cannot be read.
    pub async fn existing(&self, shadowed: Shadowed, redecided: &Redecided) -> Result<Existing> {
        self.store.files(&self.nights, self.origin, shadowed, redecided).await
    }

    /// Returns the documents with short texts that are kept and not shadowed, and have one of the `wanted` text hashes.
    ///
    /// # Errors
    /// A file of the store is damaged or cannot be read.
    pub async fn existing_short(
        &self,
        wanted: &HashSet<[u8; 16]>,
        shadowed: &Shadowed,
        redecided: &Redecided,
    ) -> Result<ExistingShort> {
        let mut found = ExistingShort::default();
        if wanted.is_empty() {
            return Ok(found);
        }
        let nights = self.nights.iter().filter(|night| night.run.n_short > 0);
        let mut of_nights =
            at_once(nights.map(|night| self.short_of(night, wanted, (shadowed, redecided)).boxed()).collect());
        while let Some(of_night) = of_nights.try_next().await? {
            found.append(of_night);
        }
        Ok(found)
    }

    /// Works like [`existing_short`](Self::existing_short) for one night.
    async fn short_of(
        &self,
        night: &Night,
        wanted: &HashSet<[u8; 16]>,
        (shadowed, redecided): (&Shadowed, &Redecided),
    ) -> Result<ExistingShort> {
        let mut found = ExistingShort::default();
        let parquet = self.store.open_file(night, "short").await?;
        let mut batches = parquet.stream(parquet.whole(&[TEXT_HASH, DOC_ID, CANONICAL_ID]))?;
        let (mut run_row, _) = self.store.first_rows(night)?;
        let (shadowed, restored) = (shadowed.get(&night.run.digest), redecided.restored(&night.run.digest));
        while let Some(rows) = batches.try_next().await? {
            let columns = Columns { batch: &rows, file: &parquet.file.url };
            let (hashes, ids, canonical) =
                (columns.bytes::<16>(TEXT_HASH)?, columns.strings(DOC_ID)?, columns.strings(CANONICAL_ID)?);
            for i in 0..rows.num_rows() {
                let hash: Option<[u8; 16]> = fixed(hashes, i);
                let kept = canonical.is_null(i) || restored.contains(run_row);
                let live = kept && !shadowed.is_some_and(|s| s.contains(run_row));
                if let Some(hash) = hash.filter(|h| live && wanted.contains(h)) {
                    found.offer(hash, ids.value(i), self.origin);
                }
                run_row += 1;
            }
        }
        Ok(found)
    }
}
