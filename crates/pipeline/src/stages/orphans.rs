//! Orphans: dropped documents of earlier nights whose canonical documents are gone since tonight. They are decided again,
//! so that no text of a live page is lost.
//!
//! ```text
//! recrawls, decisions ─► canonical documents that are gone ─► dependents ─► orphans
//! earlier nights, references, tonight's run files ─► join with the orphans ─► decisions ─► redecided
//! ```

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use nearprint_fault::{ErrorKind, Fault, Result};
use nearprint_join::{Origin, QueryRows};
use nearprint_parquet::schema::{DOC_ID, REDECIDED};
use nearprint_parquet::{Columns, DatasetWriter, ParquetFile, StagedFile};
use nearprint_storage::{Progress, day_of_date};
use nearprint_store::{
    Dependent, ExistingDocuments, ExistingFile, JoinedNights, NewDecision, Night, Recrawls, Redecided, Redecision,
    Shadowed, StagedRun, Store, StoredRows, Wanted, canonical_hash,
};
use nearprint_tasks::{QueryBatch, SkipReason, batch_of_stored};

use crate::context::CommandContext;
use crate::stages::decide::Decisions;
use crate::stages::decisions_written::DecidedAgain;
use crate::stages::existing::{ExistingOfAll, ReferenceNames, existing_of_all};
use crate::stages::families::Families;
use crate::stages::join::{Join, NearDuplicates, PairRules};

/// Tonight's documents, as the run has decided and staged them.
#[derive(Clone, Copy)]
pub struct Tonight<'a> {
    /// The documents.
    pub batch: &'a Arc<QueryBatch>,
    /// Their classes.
    pub rows: &'a Arc<QueryRows>,
    /// The decisions about them.
    pub decisions: &'a Decisions,
    /// The documents that other nights have too.
    pub recrawls: &'a Recrawls,
    /// Their families.
    pub families: &'a Families,
    /// The run files, without what was decided again.
    pub run: &'a StagedRun,
}

/// What orphans are searched in and decided by.
pub struct Redeciding<'a> {
    /// The night's own store.
    pub store: &'a Store,
    /// The night.
    pub dt: &'a str,
    /// The nights that the night's commit makes the store forget.
    pub leaving: &'a [&'a Night],
    /// The nights of the reference stores.
    pub references: Vec<JoinedNights<'a>>,
    /// The names of the reference stores.
    pub names: ReferenceNames,
    /// What makes a pair, and by which rule documents are dropped: as in the night.
    pub rules: PairRules,
}

/// The documents that a night decided again.
#[derive(Debug, Default)]
pub struct DecidedOrphans {
    /// The published files.
    pub files: Vec<StagedFile>,
    /// What the night's run files say about them, sorted.
    pub redecisions: Vec<Redecision>,
    /// Their number.
    pub n_orphaned: u64,
    /// The number of those that are kept now.
    pub n_restored: u64,
}

/// A dropped document of an earlier night whose canonical one is gone.
#[derive(Debug)]
struct Orphan {
    dropped: Dependent,
    /// What became of the canonical document.
    cause: &'static str,
}

const CHANGED: &str = "changed";
const EMPTY: &str = "empty";
const DROPPED: &str = "dropped";
const FORGOTTEN: &str = "forgotten";

impl Redeciding<'_> {
    /// Finds the orphans of tonight, decides them again, and writes the decisions below a folder. Without orphans, no
    /// more than what tonight itself knows is looked at. The pass runs in this process, whatever engine the night has.
    ///
    /// # Errors
    /// A file of a store is damaged or cannot be read; the disk is full; the orphans take more memory than there is.
    pub async fn decide(self, tonight: Tonight<'_>, folder: &Path, work: CommandContext<'_>) -> Result<DecidedOrphans> {
        let orphans = self.orphans(tonight).await?;
        if orphans.is_empty() {
            let files = DatasetWriter::new(folder, "redecided", &REDECIDED, &[]).finish()?;
            return Ok(DecidedOrphans { files, ..DecidedOrphans::default() });
        }
        tracing::info!(n = orphans.len(), "documents whose canonical documents are gone are decided again");
        self.decide_again(orphans, tonight, folder, work).await
    }

    /// Returns the orphans in order of their nights and rows.
    async fn orphans(&self, tonight: Tonight<'_>) -> Result<Vec<Orphan>> {
        let (mut gone, mut vanished) = (gone(tonight), HashSet::new());
        let remade = self.store.night(self.dt).filter(|_| self.store.forgotten().is_some());
        if let Some(published) = remade {
            // When this night was made first, it may have forgotten what its documents were before. What they were in it then
            // stands in for that.
            let were = self.store.all_nights(Origin::OWN).only(&[published]);
            let was = |id: &str, text_hash: Option<[u8; 16]>| match tonight.batch.row_of(id) {
                Some(row) if tonight.recrawls.has(row) => {}
                Some(row) => {
                    let is_same = tonight.batch.text_hashes.get(row).copied() == text_hash;
                    gone.extend(cause(tonight, row, is_same).map(|cause| (row, cause)));
                }
                None => drop(vanished.insert(id.to_owned())),
            };
            passed_over(were.kept_documents((&Shadowed::default(), &Redecided::default()), was).await)?;
        }
        let before = self.store.nights_before(self.dt);
        // With the nights that leave, the rows that take no part are the same, and more is known of these nights.
        let left = self.store.nights_before(self.dt).without(self.leaving);
        let mut also = Shadowed::default();
        if let Some(published) = remade {
            // Neither does it find again what it decided again then, nor documents that it had then and has no more, so that
            // their earlier states count again.
            also = passed_over(left.shadowed_with(published).await)?;
            passed_over(left.decided_again_by(published, &mut also).await)?;
        }
        if gone.is_empty() && vanished.is_empty() && self.leaving.is_empty() && also.is_empty() {
            return Ok(Vec::new());
        }
        let (shadowed, redecided) = (before.shadowed(tonight.recrawls).await?, before.redecided().await?);
        let leaving = self.store.nights_before(self.dt).only(self.leaving);
        let mut hashes: Vec<u32> = gone.keys().map(|&row| canonical_hash(&tonight.batch.id(row))).collect();
        hashes.extend(vanished.iter().map(|id| canonical_hash(id)));
        leaving.kept_documents((&shadowed, &redecided), |id, _| hashes.push(canonical_hash(id))).await?;
        hashes.sort_unstable();
        hashes.dedup();
        let wanted = Wanted { hashes: &hashes, also: &also, shadowed: &shadowed, redecided: &redecided };
        let dependents = left.dependents(wanted).await?;
        // A canonical document that tonight does not have is gone only with its night.
        let not_tonight = dependents.iter().filter(|of| tonight.batch.row_of(&of.canonical_id).is_none());
        let named: HashSet<&str> = not_tonight.clone().map(|of| &*of.canonical_id).collect();
        let mut forgotten: HashSet<String> = HashSet::new();
        let forget = |id: &str, _| {
            if named.contains(id) {
                forgotten.insert(id.to_owned());
            }
        };
        leaving.kept_documents((&shadowed, &redecided), forget).await?;
        let is_of_also =
            |of: &&Dependent| also.get(left.run_and_date(of.night).0).is_some_and(|rows| rows.contains(of.row));
        let may_be_gone = |of: &&Dependent| is_of_also(of) || vanished.contains(&*of.canonical_id);
        let unknown: BTreeSet<&str> = not_tonight.filter(may_be_gone).map(|of| &*of.canonical_id).collect();
        let unknown: Vec<&str> = unknown.into_iter().filter(|id| !forgotten.contains(*id)).collect();
        let known = left.known_ids(&unknown).await?;
        forgotten.extend(unknown.into_iter().filter(|id| !known.contains(*id)).map(str::to_owned));
        // The state for which it was dropped went when this night was made first.
        let is_lost = |of: &Dependent, row: u32| is_of_also(&of) && !tonight.recrawls.has(row);
        let cause = |of: &Dependent| match tonight.batch.row_of(&of.canonical_id) {
            Some(row) => gone.get(&row).copied().or_else(|| is_lost(of, row).then_some(FORGOTTEN)),
            None => forgotten.contains(&*of.canonical_id).then_some(FORGOTTEN),
        };
        Ok(dependents.into_iter().filter_map(|of| cause(&of).map(|cause| Orphan { dropped: of, cause })).collect())
    }

    async fn decide_again(
        self,
        orphans: Vec<Orphan>,
        tonight: Tonight<'_>,
        folder: &Path,
        work: CommandContext<'_>,
    ) -> Result<DecidedOrphans> {
        let left = self.store.nights_before(self.dt).without(self.leaving);
        let mut stored = Vec::new();
        for of_night in orphans.chunk_by(|a, b| a.dropped.night == b.dropped.night) {
            let rows: Vec<u32> = of_night.iter().map(|orphan| orphan.dropped.row).collect();
            stored.extend(left.stored_rows(of_night[0].dropped.night, &rows).await?);
        }
        let ids = ids_of(&stored)?;
        let batch = batch_of_stored(&stored, work.resources.counted_bytes())?;
        drop(stored);
        // The orphans in the order of the batch, which is that of their ids.
        let mut at: Vec<usize> = (0..orphans.len()).collect();
        at.sort_by(|a, b| ids[*a].cmp(&ids[*b]));
        let in_order = at.iter().zip(batch.rows()).all(|(at, row)| *batch.id(row) == *ids[*at]);
        if !in_order || ids.len() != batch.len() {
            return Err(defect("orphans do not have the rows that they were given"));
        }
        let mut stores = self.references;
        stores.push(self.store.nights_before(self.dt).without(self.leaving));
        let ExistingOfAll { mut existing, mut short, .. } = existing_of_all(&stores, tonight.recrawls, &batch).await?;
        if let Some(file) = tonights_file(tonight.run, work).await? {
            existing.n_live_rows += file.parquet.n_rows();
            existing.files.push(file);
        }
        for (hash, id) in kept_short(tonight) {
            short.offer(hash, &id, Origin::OWN);
        }
        let held_bytes = tonight.batch.memory_bytes()
            + tonight.rows.memory_bytes()
            + tonight.recrawls.memory_bytes()
            + Decisions::bytes_of(tonight.batch.len());
        let references = self.names;
        let join = Join { existing, references: references.clone(), rules: self.rules, judge: None, held_bytes };
        let progress = Progress::default();
        let work = CommandContext { progress: &progress, engine: None, ..work };
        let near = NearDuplicates::new(batch, join, work).await?;
        let (_, found) = near.forest_state().await?;
        let (batch, rows) = near.into_batch();
        let found = found.ok_or_else(|| defect("nothing to decide by"))?;
        let decisions = Decisions::new(&batch, &rows, found, short, references)?;
        let families = families_of(&left, tonight, (&batch, &decisions), (&orphans, &at)).await?;
        let day_of = |night: usize| {
            let dt = left.run_and_date(night).1;
            day_of_date(dt).ok_or_else(|| defect(&format!("night '{dt}' has no date")))
        };
        let (mut again, mut redecisions, mut n_restored) = (Vec::new(), Vec::new(), 0);
        let this: Arc<str> = "".into();
        for ((&at, row), family) in at.iter().zip(batch.rows()).zip(&families) {
            let Orphan { dropped, cause } = &orphans[at];
            let canonical = decisions.canonical(&batch, row)?;
            n_restored += u64::from(canonical.is_none());
            let run = left.run_and_date(dropped.night).0.into();
            let (reason, id) = (decisions.reason_again(row).into(), batch.id(row).as_ref().into());
            let decision = NewDecision { canonical, reason, id, family: Arc::clone(family) };
            redecisions.push(Redecision { run, by: Arc::clone(&this), row: dropped.row, decision });
            let (day, former_canonical_id) = (day_of(dropped.night)?, &*dropped.canonical_id);
            again.push(DecidedAgain { day, former_canonical_id, cause, family });
        }
        redecisions.sort_unstable();
        let files = decisions.write_redecided(&batch, &again, folder)?;
        let n_orphaned = again.len() as u64;
        Ok(DecidedOrphans { files, redecisions, n_orphaned, n_restored })
    }
}

/// Returns the families of orphans, which are at these positions in the order of the batch, as they are decided.
async fn families_of(
    left: &JoinedNights<'_>,
    tonight: Tonight<'_>,
    (batch, decisions): (&QueryBatch, &Decisions),
    (orphans, at): (&[Orphan], &[usize]),
) -> Result<Vec<Arc<str>>> {
    let canonical = batch.rows().filter_map(|row| decisions.own_existing_canonical(batch, row));
    let wanted: HashSet<String> =
        batch.rows().map(|row| batch.id(row).into_owned()).chain(canonical.map(str::to_owned)).collect();
    let known = match left.have_families() {
        true => left.families(|id| wanted.contains(id)).await?,
        false => HashMap::new(),
    };
    let own = |row: u32| match known.get(&*batch.id(row)) {
        Some(family) => Arc::clone(family),
        None => Arc::from(&*orphans[at[row as usize]].dropped.canonical_id),
    };
    let of = |id: &str| match tonight.batch.row_of(id) {
        Some(row) => tonight.families.named(row).cloned(),
        None => known.get(id).cloned(),
    };
    Families::of_orphans(batch, decisions, own, of)
}

/// Returns the rows of tonight whose earlier state was kept with another text, or is not kept any more, and what became of
/// it.
fn gone(tonight: Tonight<'_>) -> HashMap<u32, &'static str> {
    let kept_before = tonight.recrawls.earlier().filter(|(_, earlier)| earlier.is_kept());
    kept_before.filter_map(|(row, earlier)| Some((row, cause(tonight, row, earlier.is_same)?))).collect()
}

/// Returns what became of a row of tonight that was kept, unless it is kept with the same text still.
fn cause(tonight: Tonight<'_>, row: u32, is_same: bool) -> Option<&'static str> {
    match tonight.batch.text_hashes.get(row) {
        None => Some(EMPTY),
        Some(_) if !is_same => Some(CHANGED),
        Some(_) if !tonight.decisions.is_kept(row) => Some(DROPPED),
        Some(_) => None,
    }
}

/// Returns the ids of stored rows, in their order.
fn ids_of(stored: &[StoredRows]) -> Result<Vec<String>> {
    let mut ids = Vec::new();
    for rows in stored {
        let columns = Columns { batch: &rows.batch, file: "stored rows" };
        ids.extend(columns.strings(DOC_ID)?.iter().flatten().map(str::to_owned));
    }
    Ok(ids)
}

/// Returns tonight's fingerprints as existing ones. `None` means that no document of tonight has one.
async fn tonights_file(run: &StagedRun, work: CommandContext<'_>) -> Result<Option<ExistingFile>> {
    let staged = run.files.iter().find(|file| file.record.name.starts_with("fingerprints/"));
    let Some(staged) = staged.filter(|file| file.record.rows > 0) else {
        return Ok(None);
    };
    let file = work.storage.folder(&staged.path.display().to_string())?.file().await?;
    Ok(Some(ExistingFile {
        parquet: ParquetFile::open(file).await?,
        documents: ExistingDocuments::Here { shadowed: Arc::default(), restored: Arc::default() },
        origin: Origin::OWN,
        numbered_from: None,
    }))
}

/// Returns the text hashes and ids of tonight's kept documents below the feature floor.
fn kept_short(tonight: Tonight<'_>) -> impl Iterator<Item = ([u8; 16], String)> {
    let Tonight { batch, decisions, .. } = tonight;
    let short = |row: &u32| batch.skipped.get(*row) == Some(&SkipReason::TooShort) && decisions.is_kept(*row);
    batch.rows().filter(short).filter_map(|row| Some((*batch.text_hashes.get(row)?, batch.id(row).into_owned())))
}

fn defect(reason: &str) -> Fault {
    Fault::internal("orphans", reason)
}

/// Passes over the damage of a night that is being replaced: nothing else can say what it would have said, and the night that stands
/// in its place must be made all the same.
fn passed_over<T: Default>(read: Result<T>) -> Result<T> {
    match read {
        Err(error) if error.kind() == ErrorKind::BadData => {
            tracing::warn!(%error, "documents whose canonical documents go with it are not decided again");
            Ok(T::default())
        }
        other => other,
    }
}
