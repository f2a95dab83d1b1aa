//! The dataset `changes`: what each commit changes in the corpus.
//!
//! A commit that changes nights names the files of its own set of changes, and the table follows it. The next such commit
//! takes the place of that name, so the table follows each commit before anybody makes the next one.

use std::collections::BTreeMap;

use nearprint_delta::TableLog;
use nearprint_fault::{Fault, Result};
use nearprint_parquet::{CHANGES, FileRecord, StagedFile, upload_new};
use nearprint_pipeline::{NightsChange, Resources};
use nearprint_storage::{Folder, NewFiles, Progress, Storage};
use nearprint_store::{ChangeSet, ChangedOutput, Night, Store, maintain, others_committed};

use crate::tables::{is_root_of, newest_set_there, roll_all_forward, roll_forward};

/// The number of times that the work is done anew while others commit.
const MAX_ATTEMPTS: usize = 5;

/// Returns the set of changes after those of a store, with the files of one output, of which `records` are staged.
///
/// # Errors
/// The output's table [cannot go on](newest_set_there), or cannot be read.
pub(crate) async fn next_set(
    storage: &Storage,
    store: &Store,
    (output, dt): (&Folder, &str),
    records: &[FileRecord],
) -> Result<ChangeSet> {
    let there = newest_set_there(storage, store, output, &TableLog::open(output, &CHANGES).await?).await?;
    let number = store.n_change_sets() + 1;
    let has_rows = records.iter().any(|record| record.rows > 0);
    let mut newest = store.changes().map_or_else(BTreeMap::new, |set| newest_of_others(storage, store, set, output));
    newest.insert(output.url().to_owned(), if has_rows { number } else { there });
    let of = ChangedOutput { after: Some(there), ..ChangedOutput::adding(output.url(), dt, records) };
    Ok(ChangeSet { number, outputs: vec![of], newest })
}

/// Returns what a set of changes says of the tables of other outputs in which a store has nights.
pub(crate) fn newest_of_others(
    storage: &Storage,
    store: &Store,
    set: &ChangeSet,
    output: &Folder,
) -> BTreeMap<String, u64> {
    let has_nights = |root: &str| store.nights().iter().any(|night| night.output_root() == root);
    let others = set.newest.iter().filter(|(root, _)| has_nights(root) && !is_root_of(storage, root, output));
    others.map(|(root, &number)| (root.clone(), number)).collect()
}

/// Returns the staged files of a set of changes under the names that the set has for them below the output.
///
/// # Errors
/// [`ErrorKind::TryAgain`](nearprint_fault::ErrorKind::TryAgain) if `store gc` is deleting files of these names.
pub(crate) fn named_changes(store: &Store, staged: &[StagedFile], set: &ChangeSet) -> Result<Vec<StagedFile>> {
    for name in set.names() {
        store.refuse_removing(&name)?;
    }
    let records = set.outputs.iter().flat_map(|output| &output.added);
    let named =
        |(file, record): (&StagedFile, &FileRecord)| StagedFile { record: record.clone(), path: file.path.clone() };
    Ok(staged.iter().zip(records).map(named).collect())
}

/// The nights that leave a store.
#[derive(Debug)]
pub(crate) enum Leave {
    /// The night of a date, which was wrong.
    Dropped(String),
    /// All nights before a date, because of their age.
    Before(String),
}

impl Leave {
    fn nights(&self, store: &Store) -> Result<Vec<Night>> {
        Ok(match self {
            Self::Dropped(dt) => vec![maintain::night_of(store, dt)?.clone()],
            Self::Before(date) => maintain::forgettable(store, date)?.into_iter().cloned().collect(),
        })
    }

    /// Returns what changes in the corpus; `nights` are those that leave.
    fn change<'a>(&'a self, store: &'a Store, nights: &'a [&'a Night]) -> NightsChange<'a> {
        let (dt, leaving) = match self {
            Self::Dropped(dt) => (Some(dt.as_str()), &[][..]),
            Self::Before(_) => (None, nights),
        };
        NightsChange { store, dt, tonight: None, leaving }
    }

    async fn commit(&self, store: &Store, changes: ChangeSet) -> Result<bool> {
        match self {
            Self::Dropped(dt) => maintain::drop_night(store, dt, changes).await,
            Self::Before(date) => maintain::forget_before(store, date, changes).await,
        }
    }
}

/// Commits that nights leave a store, together with what that changes in the corpus, again and again if others are faster.
/// Returns the nights. Nothing is committed if there are none.
///
/// # Errors
/// No such night may leave; a file of the store is damaged, or cannot be read or written; others commit again and again.
pub(crate) async fn commit_leaving(
    storage: &Storage,
    folder: &Folder,
    resources: &Resources,
    leave: &Leave,
) -> Result<Vec<Night>> {
    for _ in 0..MAX_ATTEMPTS {
        let store = Store::open(folder).await?;
        roll_all_forward(storage, &store, store.nights()).await?;
        let nights = leave.nights(&store)?;
        let Some(output) = nights.last().map(|night| night.output_root().to_owned()) else { return Ok(nights) };
        let named: Vec<&Night> = nights.iter().collect();
        let changes = leave.change(&store, &named);
        let temp = resources.temp_dir()?;
        let staged = changes.write(temp.path()).await?;
        let records: Vec<FileRecord> = staged.iter().map(|file| file.record.clone()).collect();
        let dt = changes
            .dt
            .or(store.changed_night())
            .ok_or_else(|| Fault::internal("changes", "nights without a commit"))?;
        let output = storage.folder(&output)?;
        let set = next_set(storage, &store, (&output, dt), &records).await?;
        let mut written = NewFiles::default();
        let named = named_changes(&store, &staged, &set)?;
        upload_new(&output, &named, &mut written, "publish", &Progress::default()).await?;
        written.keep();
        if leave.commit(&store, set).await? {
            roll_all_forward(storage, &Store::open(folder).await?, &nights).await?;
            return Ok(nights);
        }
        written.delete();
        tracing::warn!("somebody else committed meanwhile: looking again");
    }
    Err(others_committed(MAX_ATTEMPTS))
}

/// Brings the tables of other outputs that the newest set of changes names to the state of the store. One that cannot be
/// written is a warning: whoever follows it misses this set.
pub(crate) async fn roll_others_forward(storage: &Storage, store: &Store, output: &Folder) {
    for of in store.changes().into_iter().flat_map(|set| &set.outputs) {
        let rolled = async {
            let other = storage.folder(&of.output)?;
            if !other.is_same_place(output) {
                roll_forward(storage, store.folder(), &other, None).await?;
            }
            Ok::<_, Fault>(())
        };
        if let Err(error) = rolled.await {
            tracing::warn!(output = of.output, %error, "its table `changes` lacks a set of changes");
        }
    }
}
