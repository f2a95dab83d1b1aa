//! What a commit changes in the corpus: the documents whose newest state in the store, with its decision, becomes another.
//!
//! ```text
//! tonight's documents, each with its state before ─────────────────────────┐
//! documents of a replaced or dropped night, with the states that follow  ──┼─► changes, by id
//! documents that were decided again, documents of nights that leave ───────┘
//! ```
//!
//! Invariant: the sets of changes of all commits, one after another, give the newest state of each document that the nights
//! of the store have.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Date32Array, Int64Array, RecordBatch, StringArray};
use nearprint_fault::{ErrorKind, Fault, Result};
use nearprint_join::Origin;
use nearprint_parquet::schema::CHANGES as SCHEMA;
use nearprint_parquet::{BATCH_ROWS, CHANGES, DatasetWriter, StagedFile};
use nearprint_storage::{day_of_date, row_number};
use nearprint_store::maintain::ForgottenIds;
use nearprint_store::{
    JoinedNights, NewCanonical, NewDecision, Night, OwnDocuments, Recrawls, Redecided, Redecision, Shadowed, StagedRun,
    Store, StoredDecision, StoredOutcome, id_hash,
};
use nearprint_tasks::QueryBatch;

use crate::stages::decide::Decisions;
use crate::stages::made_ahead::write_in_order;

/// A night that is ready to be committed.
#[derive(Clone, Copy)]
pub struct DecidedNight<'a> {
    /// Its documents.
    pub batch: &'a QueryBatch,
    /// The decisions about them.
    pub decisions: &'a Decisions,
    /// The documents that other nights have too.
    pub recrawls: &'a Recrawls,
    /// What it decided again.
    pub redecisions: &'a [Redecision],
    /// Its run files.
    pub run: &'a StagedRun,
}

/// A commit that changes the nights of a store.
#[derive(Clone, Copy)]
pub struct NightsChange<'a> {
    /// The store before the commit.
    pub store: &'a Store,
    /// The night that is added, replaced or dropped. `None` means that nights leave, and no more.
    pub dt: Option<&'a str>,
    /// The night as it is added, or put in the place of what the store has of this date.
    pub tonight: Option<DecidedNight<'a>>,
    /// The nights that leave because of their age.
    pub leaving: &'a [&'a Night],
}

/// A document whose state in the corpus changes.
#[derive(Debug)]
struct Change<'a> {
    id: Cow<'a, str>,
    kind: &'static str,
    text_changed: bool,
    /// The night of the state that it has from then on, in days since 1970-01-01.
    of_day: Option<i32>,
    after: Option<StoredDecision>,
    before: Option<StoredDecision>,
}

const ADDED: &str = "added";
const UPDATED: &str = "updated";
const REMOVED: &str = "removed";
const RESTORED: &str = "restored";

/// Whether the nights that go can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Going {
    Known,
    Damaged,
}

/// What a night that is replaced or dropped has of a document.
struct OldState {
    text_hash: Option<[u8; 16]>,
    decision: StoredDecision,
}

/// What the nights of the store said before the commit, and what they say after it.
struct Views {
    /// The rows whose documents later nights have again, or tonight.
    shadowed: Shadowed,
    before: Redecided,
    after: Redecided,
}

impl NightsChange<'_> {
    /// Writes the changes below a folder, by id. All rows have the number of the set that they are. If a night that goes is
    /// damaged, which is a reason to replace or drop it, nobody knows what went with it: a warning says so.
    ///
    /// # Errors
    /// A file of another night is damaged or cannot be read; the disk is full.
    pub async fn write(self, folder: &Path) -> Result<Vec<StagedFile>> {
        let goes = !self.leaving.is_empty() || self.dt.is_some_and(|dt| self.store.night(dt).is_some());
        match self.written(folder, Going::Known).await {
            Err(error) if goes && error.kind() == ErrorKind::BadData => {
                let written = self.written(folder, Going::Damaged).await?;
                tracing::warn!(%error, "`changes` lacks what goes with a damaged night: who follows it begins anew with the corpus");
                Ok(written)
            }
            written => written,
        }
    }

    async fn written(mut self, folder: &Path, going: Going) -> Result<Vec<StagedFile>> {
        let published = self.dt.and_then(|dt| self.store.night(dt));
        let is_published = published.zip(self.tonight).is_some_and(|(night, tonight)| tonight.run.is_like(&night.run));
        // Run files that are published already stay, and all that later nights say about them. What was overruled of what they
        // decided again counts once more.
        let is_overruled = published.is_some_and(|night| !night.overruled.is_empty());
        let new = self.tonight.filter(|_| !is_published || is_overruled).map_or(&[][..], |tonight| tonight.redecisions);
        let none = Recrawls::default();
        let recrawls = self.tonight.map_or(&none, |tonight| tonight.recrawls);
        let replaced = published.filter(|_| !is_published);
        self.tonight = self.tonight.filter(|_| !is_published);
        let own = || self.store.all_nights(Origin::OWN);
        let left = own().without(self.leaving).without(replaced.as_slice());
        let all = match going {
            Going::Known => own(),
            Going::Damaged => own().without(self.leaving).without(published.as_slice()),
        };
        let views = Views {
            shadowed: all.shadowed(recrawls).await?,
            before: all.redecided().await?,
            after: match going {
                Going::Known => left.redecided_with(self.dt, new).await?,
                Going::Damaged => all.redecided_with(self.dt, new).await?,
            },
        };
        let (mut old, mut others) = (HashMap::new(), Vec::new());
        match going {
            Going::Known => {
                if let Some(night) = replaced {
                    old = self.old_states(&all, night, &views).await?;
                }
                others.extend(self.fallen_back(&old, &views).await?);
                others.extend(self.decided_again(&left, replaced, new, &views).await?);
                others.extend(self.of_leaving(&all, &views).await?);
            }
            Going::Damaged => others.extend(self.decided_again(&all, None, new, &views).await?),
        }
        others.sort_by(|a, b| a.id.cmp(&b.id));
        debug_assert!(others.is_sorted_by(|a, b| a.id < b.id), "a document changes in one way");
        let mut rows = ChangeRows::new(self.store, folder)?;
        let mut others = others.into_iter().peekable();
        if let Some(tonight) = self.tonight {
            let of_day = self.dt.map(day_of).transpose()?;
            let n_rows = tonight.batch.n_rows;
            let change = |row| self.of_tonight(tonight, row, of_day, &old, &views).transpose();
            let changes = |first| (first..n_rows).take(BATCH_ROWS).filter_map(change).collect::<Result<Vec<_>>>();
            write_in_order((0..n_rows).step_by(BATCH_ROWS), changes, |changes| {
                for change in changes {
                    while let Some(other) = others.next_if(|other| other.id < change.id) {
                        rows.push(other)?;
                    }
                    rows.push(change)?;
                }
                Ok(())
            })?;
        }
        for other in others {
            rows.push(other)?;
        }
        rows.finish()
    }

    /// Returns the newest states that a night has which is replaced or dropped, by id.
    async fn old_states(
        &self,
        all: &JoinedNights<'_>,
        night: &Night,
        views: &Views,
    ) -> Result<HashMap<String, OldState>> {
        let mut old = HashMap::new();
        let shadowed = views.shadowed.get(&night.run.digest);
        all.documents(self.position(night)?, None, &views.before, |document| {
            if !shadowed.is_some_and(|rows| rows.contains(document.row)) {
                let state = OldState { text_hash: document.text_hash, decision: document.decision };
                old.insert(document.id.to_owned(), state);
            }
        })
        .await?;
        Ok(old)
    }

    fn position(&self, night: &Night) -> Result<usize> {
        let position = self.store.nights().iter().position(|there| there.dt == night.dt);
        position.ok_or_else(|| defect("a night of the store is not in it"))
    }

    fn is_leaving(&self, night: &Night) -> bool {
        self.leaving.iter().any(|leaving| leaving.dt == night.dt)
    }

    /// Returns the changes of documents that a replaced night has no more, or a dropped one: an earlier state counts again,
    /// or none.
    async fn fallen_back<'b>(&self, old: &'b HashMap<String, OldState>, views: &Views) -> Result<Vec<Change<'b>>> {
        let is_tonight = |id: &str| self.tonight.is_some_and(|tonight| tonight.batch.row_of(id).is_some());
        let mut gone: Vec<(&String, &OldState)> = old.iter().filter(|(id, _)| !is_tonight(id)).collect();
        gone.sort_unstable_by_key(|(id, _)| *id);
        let (Some(dt), false) = (self.dt, gone.is_empty()) else { return Ok(Vec::new()) };
        let mut by_hash: Vec<(u64, u32, u32)> =
            (0..).zip(&gone).map(|(row, (id, _))| (id_hash(id), row, row)).collect();
        by_hash.sort_unstable();
        let id_of = |row: u32| Cow::Borrowed(gone[row as usize].0.as_str());
        let text_hash_of = |row: u32| gone[row as usize].1.text_hash;
        let own = OwnDocuments { by_hash: &by_hash, id_of: &id_of, text_hash_of: &text_hash_of };
        let earlier = self.store.recrawls(dt, &own).await?;
        let mut changes = Vec::new();
        for (row, (id, old)) in gone.iter().enumerate() {
            let before = Some(old.decision.clone());
            let state = earlier.state_before(row_number(row)).map(|state| (state, &self.store.nights()[state.night]));
            changes.push(match state.filter(|(_, night)| !self.is_leaving(night)) {
                None => Change::removed(id.as_str().into(), old.decision.clone()),
                Some((state, night)) => {
                    let again = views.after.of_row(&night.run.digest, state.run_row);
                    let after = again.map_or_else(|| state.decision.clone(), NewDecision::stored);
                    let (id, of_day) = (id.as_str().into(), Some(day_of(&night.dt)?));
                    Change { id, kind: UPDATED, text_changed: !state.is_same, of_day, after: Some(after), before }
                }
            });
        }
        let is_other = |change: &Change<'_>| change.text_changed || change.before != change.after;
        changes.retain(is_other);
        Ok(changes)
    }

    /// Returns the changes of documents of other nights that the night decides again, or that a night decided again which is
    /// replaced or dropped.
    async fn decided_again(
        &self,
        left: &JoinedNights<'_>,
        replaced: Option<&Night>,
        new: &[Redecision],
        views: &Views,
    ) -> Result<Vec<Change<'static>>> {
        let former = match replaced {
            Some(night) => left.redecisions_with(night).await?,
            None => Vec::new(),
        };
        let by_replaced = |said: &&Redecision| replaced.is_some_and(|night| *said.by == *night.run.digest);
        let mut of_runs: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
        for said in new.iter().chain(former.iter().filter(by_replaced)) {
            of_runs.entry(&said.run).or_default().insert(said.row);
        }
        let mut changes = Vec::new();
        for (position, night) in left.nights().enumerate() {
            let digest = &night.run.digest;
            let Some(rows) = of_runs.get(digest.as_str()) else { continue };
            let shadowed = views.shadowed.get(digest);
            let is_live = |row: &u32| !shadowed.is_some_and(|rows| rows.contains(*row));
            let rows: Vec<u32> = rows.iter().copied().filter(is_live).collect();
            let of_day = Some(day_of(&night.dt)?);
            left.documents(position, Some(&rows), &Redecided::default(), |document| {
                let decided = |view: &Redecided| {
                    let again = view.of_row(digest, document.row);
                    again.map_or_else(|| document.decision.clone(), NewDecision::stored)
                };
                let (before, after) = (decided(&views.before), decided(&views.after));
                if before != after {
                    let is_restored = after.outcome == StoredOutcome::Keep && before.outcome != StoredOutcome::Keep;
                    let kind = if is_restored { RESTORED } else { UPDATED };
                    let id = document.id.to_owned().into();
                    let (before, after) = (Some(before), Some(after));
                    changes.push(Change { id, kind, text_changed: false, of_day, after, before });
                }
            })
            .await?;
        }
        Ok(changes)
    }

    /// Returns the changes of the documents that only nights have which leave.
    async fn of_leaving(&self, all: &JoinedNights<'_>, views: &Views) -> Result<Vec<Change<'static>>> {
        let mut changes = Vec::new();
        for night in self.leaving {
            let shadowed = views.shadowed.get(&night.run.digest);
            all.documents(self.position(night)?, None, &views.before, |document| {
                if !shadowed.is_some_and(|rows| rows.contains(document.row)) {
                    changes.push(Change::removed(document.id.to_owned().into(), document.decision));
                }
            })
            .await?;
        }
        Ok(changes)
    }

    /// Returns the change of a document of tonight, unless its state stays as it is, or a later night has the document.
    fn of_tonight<'b>(
        &self,
        tonight: DecidedNight<'b>,
        row: u32,
        of_day: Option<i32>,
        old: &HashMap<String, OldState>,
        views: &Views,
    ) -> Result<Option<Change<'b>>> {
        let DecidedNight { batch, decisions, recrawls, .. } = tonight;
        if recrawls.has_later(row) {
            return Ok(None);
        }
        let id = batch.id(row);
        let earlier = recrawls.state_before(row);
        let (before, is_same) = match (old.get(&*id), earlier) {
            (Some(old), _) => (Some(old.decision.clone()), has_text_of(batch, row, old)),
            (None, Some(state)) => {
                let digest = &self.store.nights()[state.night].run.digest;
                let again = views.before.of_row(digest, state.run_row);
                (Some(again.map_or_else(|| state.decision.clone(), NewDecision::stored)), state.is_same)
            }
            (None, None) => (None, false),
        };
        let after = decided(batch, decisions, row)?;
        if is_same && before.as_ref() == Some(&after) {
            return Ok(None);
        }
        let kind = if before.is_some() { UPDATED } else { ADDED };
        Ok(Some(Change { id, kind, text_changed: !is_same, of_day, after: Some(after), before }))
    }
}

/// Documents that are about to be forgotten.
#[derive(Clone, Copy)]
pub struct Forgetting<'a> {
    /// The store before the commit.
    pub store: &'a Store,
    /// Their ids.
    pub ids: &'a ForgottenIds,
    /// The documents that they represented in their own nights, by date.
    pub represented: &'a HashMap<String, HashSet<String>>,
}

impl Forgetting<'_> {
    /// Writes what the commit changes in the corpus besides that these documents are gone, below a folder: documents that
    /// they represented are restored. The rows name none of them.
    ///
    /// # Errors
    /// A file of the store is damaged or cannot be read; the disk is full.
    pub async fn write(self, folder: &Path) -> Result<Vec<StagedFile>> {
        let all = self.store.all_nights(Origin::OWN);
        let (shadowed, redecided) = (all.shadowed(&Recrawls::default()).await?, all.redecided().await?);
        let mut restored = Vec::new();
        for (position, night) in self.store.nights().iter().enumerate() {
            let (represented, shadowed) = (self.represented.get(&night.dt), shadowed.get(&night.run.digest));
            if represented.is_none() && redecided.of_run(&night.run.digest).is_none() {
                continue;
            }
            let of_day = Some(day_of(&night.dt)?);
            all.documents(position, None, &redecided, |document| {
                let StoredOutcome::Drop(canonical) = &document.decision.outcome else { return };
                let is_orphan = self.ids.has(&canonical.id) || represented.is_some_and(|of| of.contains(document.id));
                let is_live = !shadowed.is_some_and(|rows| rows.contains(document.row));
                if is_orphan && is_live && !self.ids.has(document.id) {
                    let reason = Some(nearprint_store::RESTORED.into());
                    let after = Some(StoredDecision { outcome: StoredOutcome::Keep, reason });
                    let (id, before) = (document.id.to_owned().into(), Some(document.decision));
                    restored.push(Change { id, kind: RESTORED, text_changed: false, of_day, after, before });
                }
            })
            .await?;
        }
        restored.sort_by(|a: &Change<'_>, b| a.id.cmp(&b.id));
        let mut rows = ChangeRows::new(self.store, folder)?;
        rows.forgotten = Some(self.ids);
        for change in restored {
            rows.push(change)?;
        }
        rows.finish()
    }
}

impl<'a> Change<'a> {
    fn removed(id: Cow<'a, str>, before: StoredDecision) -> Self {
        Self { id, kind: REMOVED, text_changed: true, of_day: None, after: None, before: Some(before) }
    }
}

/// Returns whether a document of tonight has the text of an old state, or like it none.
fn has_text_of(batch: &QueryBatch, row: u32, old: &OldState) -> bool {
    match (batch.text_hashes.get(row), &old.text_hash) {
        (Some(now), Some(before)) => now == before,
        (None, None) => old.decision.outcome == StoredOutcome::Skip,
        _ => false,
    }
}

/// Returns the decision about a document of tonight in the form that stored ones have.
fn decided(batch: &QueryBatch, decisions: &Decisions, row: u32) -> Result<StoredDecision> {
    let canonical: Option<NewCanonical> = decisions.canonical(batch, row)?;
    let outcome = match canonical {
        Some(canonical) => StoredOutcome::Drop(canonical),
        None if decisions.is_kept(row) => StoredOutcome::Keep,
        None => StoredOutcome::Skip,
    };
    Ok(StoredDecision { outcome, reason: Some(decisions.reason(row).into()) })
}

/// Writes changes in the order in which they come.
struct ChangeRows<'a> {
    number: i64,
    writer: DatasetWriter,
    rows: Vec<Change<'a>>,
    /// The documents that no row may name as canonical.
    forgotten: Option<&'a ForgottenIds>,
}

impl<'a> ChangeRows<'a> {
    /// Begins the set after those of a store.
    fn new(store: &Store, folder: &Path) -> Result<Self> {
        let number = i64::try_from(store.n_change_sets() + 1);
        let number = number.map_err(|_| defect("more sets of changes than there can be"))?;
        let writer = DatasetWriter::new(folder, CHANGES.name, &SCHEMA, &[]);
        Ok(Self { number, writer, rows: Vec::new(), forgotten: None })
    }

    fn push(&mut self, change: Change<'a>) -> Result<()> {
        self.rows.push(change);
        if self.rows.len() < BATCH_ROWS { Ok(()) } else { self.flush() }
    }

    fn finish(mut self) -> Result<Vec<StagedFile>> {
        if !self.rows.is_empty() {
            self.flush()?;
        }
        self.writer.finish()
    }

    fn flush(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.rows);
        let mut arrays: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_iter_values(rows.iter().map(|_| self.number))),
            Arc::new(StringArray::from_iter_values(rows.iter().map(|change| &*change.id))),
            Arc::new(StringArray::from_iter_values(rows.iter().map(|change| change.kind))),
            Arc::new(rows.iter().map(|change| Some(change.text_changed)).collect::<BooleanArray>()),
            Arc::new(rows.iter().map(|change| change.of_day).collect::<Date32Array>()),
        ];
        let is_named = |id: &str| !self.forgotten.is_some_and(|ids| ids.has(id));
        arrays.extend(decision_columns(rows.iter().map(|change| change.after.as_ref()), is_named));
        arrays.extend(decision_columns(rows.iter().map(|change| change.before.as_ref()), is_named));
        let batch = RecordBatch::try_new(Arc::clone(&SCHEMA), arrays).map_err(|e| defect(&e.to_string()))?;
        self.writer.write(batch)
    }
}

/// Returns the columns `decision`, `canonical_id`, `reference` and `reason` of some decisions. Only ids that may be named are.
fn decision_columns<'a>(
    decisions: impl Iterator<Item = Option<&'a StoredDecision>> + Clone,
    is_named: impl Fn(&str) -> bool,
) -> [ArrayRef; 4] {
    let canonical = |decision: Option<&'a StoredDecision>| match &decision?.outcome {
        StoredOutcome::Drop(canonical) => Some(canonical),
        StoredOutcome::Keep | StoredOutcome::Skip => None,
    };
    let names = decisions.clone().map(|decision| Some(decision?.outcome.name()));
    let ids = decisions.clone().map(|decision| Some(&*canonical(decision)?.id).filter(|id| is_named(id)));
    let references = decisions.clone().map(|decision| canonical(decision)?.reference.as_deref());
    let reasons = decisions.map(|decision| decision?.reason.as_deref());
    [
        Arc::new(names.collect::<StringArray>()),
        Arc::new(ids.collect::<StringArray>()),
        Arc::new(references.collect::<StringArray>()),
        Arc::new(reasons.collect::<StringArray>()),
    ]
}

fn day_of(dt: &str) -> Result<i32> {
    day_of_date(dt).ok_or_else(|| defect(&format!("night '{dt}' has no date")))
}

fn defect(reason: &str) -> Fault {
    Fault::internal("changes", reason)
}
