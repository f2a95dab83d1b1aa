//! The migration of a store: its nights are made again in the store of another job, in order of date, from the inputs that
//! their manifests name.

use nearprint_fault::{Fault, Result, key, words};
use nearprint_pipeline::Resources;
use nearprint_storage::{Progress, Storage, redact};
use nearprint_store::maintain::output_roots;
use nearprint_store::{Night, Store};
use schemars::JsonSchema;
use serde::Serialize;

use super::again::{N_LISTED, from_inputs_of};
use super::inputs::known_files;
use super::lost_inputs::{LostInputs, Remedies};
use super::manifest::Manifest;
use super::plan::{self, Opened};
use super::preflight;
use super::published::{manifest_of, open_store, published};
use super::request::{RunRequest, check_date};
use super::tables::roll_forward;

/// The request to make the nights of a store again in another one.
#[derive(Debug, Clone)]
pub struct MigrationRequest {
    /// The new job, as if each night were run. Its `dt`, `inputs`, `late`, `future` and `replace` do not count.
    pub run: RunRequest,
    /// The old store.
    pub from: String,
    /// The first date that is made. `None` means that of the old store's first night.
    pub since: Option<String>,
}

/// What a migration is about, and how far it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MigrationState {
    /// The old store. It and its results stay as they are.
    pub from: String,
    /// The new store.
    pub store: String,
    /// The root of the new results.
    pub output: String,
    /// The nights that the new store had before this execution, made from the same inputs and configuration.
    pub n_there: u64,
    /// The nights that are still to be made, by date.
    pub remaining: Vec<String>,
    /// The nights that were there and are stale: nights before them were added, replaced or dropped since.
    pub stale: Vec<String>,
    /// The nights of the old store that `--since` leaves out.
    pub n_left_out: u64,
    /// The nights of the old store that the new one has forgotten by their age.
    pub n_forgotten_nights: u64,
    /// The date before which the old store has forgotten all nights. They are not made again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forgotten_before: Option<String>,
    /// The documents of the old nights that were forgotten by their ids. Their inputs may still have them, and the new store
    /// has them then.
    pub n_forgotten_documents: u64,
    /// The pages that the new nights lack and the old ones have: revisit records of texts that are in no night of the new store.
    pub n_lost_revisits: u64,
}

/// A migration whose places and inputs are checked.
///
/// ```
/// use nearprint_night::{Migration, MigrationRequest, RunRequest, run};
/// use nearprint_pipeline::Resources;
/// use nearprint_storage::{Progress, Storage};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let temp = tempfile::tempdir()?;
/// # let documents = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sample_data/documents").to_owned();
/// # let [old, old_results, store, output] =
/// #     ["old", "old-results", "store", "results"].map(|name| temp.path().join(name).display().to_string());
/// # let (storage, resources, progress) = (Storage::default(), Resources::default(), Progress::default());
/// let job = |store, output, profile| {
///     let request = RunRequest::new("2026-11-19", documents.clone(), store, output, profile);
///     RunRequest { create_store: true, ..request }
/// };
/// let request = job(old.clone(), old_results, nearprint_profile::by_name("han-bigrams")?);
/// run(&storage, &request, &resources, &progress).await?;
///
/// let new = job(store, output, nearprint_profile::by_name("default")?);
/// let request = MigrationRequest { run: new, from: old, since: None };
/// let migration = Migration::open(&storage, &request, &resources, &progress).await?;
/// assert_eq!(migration.state.remaining, ["2026-11-19"]);
/// for dt in &migration.state.remaining {
///     run(&storage, &migration.night(dt).await?, &resources, &progress).await?;
/// }
/// let again = Migration::open(&storage, &request, &resources, &progress).await?;
/// assert_eq!((again.state.n_there, again.state.remaining.len()), (1, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct Migration {
    storage: Storage,
    old: Store,
    run: RunRequest,
    /// What is to be done.
    pub state: MigrationState,
}

/// The nights of the old store, compared with the new store.
#[derive(Default)]
struct Compared {
    n_there: u64,
    stale: Vec<String>,
    /// Nights of the new store that are made from something else, with what it is.
    others: Vec<String>,
    n_forgotten_nights: u64,
    n_forgotten_documents: u64,
    n_lost_revisits: u64,
    remaining: Vec<String>,
    lost: LostInputs,
}

impl Migration {
    /// Compares the stores, and the inputs of all nights that are still to be made with the manifests of the old store.
    /// Nothing is written.
    ///
    /// # Errors
    /// A store is missing or cannot be read, the new one has another configuration or is not apart from the old one.
    /// [`ErrorKind::OutputExists`](nearprint_fault::ErrorKind::OutputExists) if the new store has one of the dates from
    /// something else, and [`ErrorKind::Usage`](nearprint_fault::ErrorKind::Usage) if it has a later night than one that
    /// is to be made, or if `since` leaves out all nights. [`ErrorKind::InputMissing`](nearprint_fault::ErrorKind::InputMissing)
    /// if inputs are gone, or else [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if some have changed: the error
    /// counts all of them.
    pub async fn open(
        storage: &Storage,
        request: &MigrationRequest,
        resources: &Resources,
        progress: &Progress,
    ) -> Result<Self> {
        let MigrationRequest { run, from, since } = request;
        since.as_deref().map_or(Ok(()), |since| check_date("since", since))?;
        storage.refuse_outside("from", from)?;
        let old = open_store(storage, from).await?;
        refuse_overlaps(storage, run, &old)?;
        let is_wanted = |night: &&Night| since.as_ref().is_none_or(|since| night.dt >= *since);
        let wanted: Vec<&Night> = old.nights().iter().filter(is_wanted).collect();
        if let (Some(since), [.., newest], []) = (since, old.nights(), wanted.as_slice()) {
            return Err(after_newest(since, newest));
        }
        let mut run = RunRequest { inputs: None, late: false, future: false, replace: false, ..run.clone() };
        // The marker says that a crawl has arrived, which it has.
        run.input.require_marker = None;
        if let Some(first) = wanted.first() {
            run.dt.clone_from(&first.dt);
            run.check(storage, &resources.temp_parent())?;
        }
        let new = plan::open(storage, &run).await?;
        progress.begin(1);
        progress.start("inputs of all nights", "nights", wanted.len() as u64);
        let mut compared = Compared::default();
        for night in &wanted {
            run.dt.clone_from(&night.dt);
            compared.add(storage, &old, night, &new, &run).await?;
            progress.advance(1);
        }
        let Compared {
            n_there,
            stale,
            others,
            n_forgotten_nights,
            n_forgotten_documents,
            n_lost_revisits,
            remaining,
            lost,
        } = compared;
        refuse_others(&new.store, &others)?;
        refuse_out_of_order(&new.store, &remaining)?;
        lost.refuse(N_LISTED, remedies())?;
        let state = MigrationState {
            from: old.folder().url().to_owned(),
            store: new.store.folder().url().to_owned(),
            output: new.output.url().to_owned(),
            n_there,
            remaining,
            stale,
            n_left_out: (old.nights().len() - wanted.len()) as u64,
            n_forgotten_nights,
            forgotten_before: old.forgotten().map(|forgotten| forgotten.before.clone()),
            n_forgotten_documents,
            n_lost_revisits,
        };
        Ok(Self { storage: storage.clone(), old, run, state })
    }

    /// Completes the newest night of the new store: an execution that was killed after its commit may have left the tables
    /// without it, and files beside it.
    ///
    /// # Errors
    /// The new store cannot be read, or the tables cannot be written.
    pub async fn complete(&self) -> Result<()> {
        let store = Store::open(&self.storage.folder(&self.run.store)?).await?;
        let Some(night) = store.nights().last() else { return Ok(()) };
        let output = self.storage.folder(&self.run.output)?;
        preflight::tidy_output(&output, &night.dt).await;
        store.tidy(night).await;
        roll_forward(&self.storage, store.folder(), &output, None).await.map(drop)
    }

    /// Returns the number of pages that a night lacks, which was just made, and the old night has: revisit records of texts that are
    /// in no night of the new store.
    ///
    /// # Errors
    /// One of the stores lacks the night, or its manifest cannot be read.
    pub async fn n_lost_revisits(&self, dt: &str) -> Result<u64> {
        let new = open_store(&self.storage, &self.run.store).await?;
        let made = manifest_of(&self.storage, &new, published(&new, dt)?).await?;
        let manifest = manifest_of(&self.storage, &self.old, published(&self.old, dt)?).await?;
        Ok(n_lost_revisits(&manifest, &made))
    }

    /// Returns the run of a night of the old store in the new one, from the inputs that the old manifest names.
    ///
    /// # Errors
    /// The old store has no such night, its manifest cannot be read, or inputs are gone or have changed.
    pub async fn night(&self, dt: &str) -> Result<RunRequest> {
        let night = published(&self.old, dt)?;
        let manifest = manifest_of(&self.storage, &self.old, night).await?;
        let request = RunRequest { dt: dt.to_owned(), future: night.future, ..self.run.clone() };
        from_inputs_of(&self.storage, &manifest, request, remedies()).await
    }
}

impl Compared {
    /// Compares a night of the old store with the new store. `run` has its date.
    async fn add(
        &mut self,
        storage: &Storage,
        old: &Store,
        night: &Night,
        new: &Opened,
        run: &RunRequest,
    ) -> Result<()> {
        let dt = night.dt.as_str();
        let there = new.store.night(dt);
        if there.is_none() && new.store.forgotten().is_some_and(|forgotten| dt < forgotten.before.as_str()) {
            self.n_forgotten_nights += 1;
            return Ok(());
        }
        let manifest = manifest_of(storage, old, night).await?;
        self.n_forgotten_documents += manifest.n_forgotten();
        let Some(there) = there else {
            self.remaining.push(dt.to_owned());
            let (known, lost) = known_files(storage, &manifest).await?;
            self.lost.add(dt, lost, known.files.len());
            return Ok(());
        };
        let made = manifest_of(storage, &new.store, there).await?;
        match difference(storage, (&manifest, &made), there, new, run)? {
            Some(other) => self.others.push(format!("{dt} (from {other})")),
            None => {
                self.n_there += 1;
                self.n_lost_revisits += n_lost_revisits(&manifest, &made);
            }
        }
        if new.store.is_stale(there) {
            self.stale.push(dt.to_owned());
        }
        Ok(())
    }
}

/// Returns the number of pages that a night of the new store lacks and the old one has, since their texts are in no night of the
/// new store.
fn n_lost_revisits(old: &Manifest, new: &Manifest) -> u64 {
    let [old, new] = [old, new].map(|manifest| &manifest.counts.documents);
    // A store of release 0.2.0 has no page of a revisit record.
    new.n_unknown_revisits.saturating_sub(old.n_unknown_revisits).min(old.n_revisits)
}

/// Says in what a night of the new store differs from the one that the migration makes. The earlier nights and the states of
/// references do not count, since both may change during a migration.
fn difference(
    storage: &Storage,
    (old, manifest): (&Manifest, &Manifest),
    there: &Night,
    new: &Opened,
    run: &RunRequest,
) -> Result<Option<&'static str>> {
    let inputs = old.sorted_inputs();
    if inputs != manifest.sorted_inputs() {
        return Ok(Some("other inputs"));
    }
    let states = manifest.states();
    let is_same_list = states.iter().map(|(name, _)| *name).eq(run.references.iter().map(String::as_str));
    if !is_same_list {
        return Ok(Some("other references"));
    }
    if run.at_release_of(there).digest(&new.config_digest, &inputs, &manifest.joined, &states)? != there.request {
        return Ok(Some("another configuration"));
    }
    let is_here = storage.folder(there.output_root())?.is_same_place(&new.output);
    Ok((!is_here).then_some("here, but in another output"))
}

fn remedies() -> Remedies {
    let leave_out = || words![", or leave out the nights before a date with ", key("since"), "; nothing was written"];
    let restore =
        "the old night was made from it: restore it (a relative path is one below the folder of the job file)";
    Remedies {
        gone: words![restore, leave_out()],
        changed: words!["restore it", leave_out()],
        several: words!["restore them", leave_out()],
    }
}

/// Refuses a new store and new results that are not apart from the old ones, and the old store as a reference: all its
/// documents would be dropped for themselves.
fn refuse_overlaps(storage: &Storage, run: &RunRequest, old: &Store) -> Result<()> {
    let refused =
        |key: &str, url: &str, why: String| Err(Fault::config(key.to_owned(), format!("'{}' {why}", redact(url))));
    let old_results = output_roots(old, storage, None)?.into_iter();
    let old_results = old_results.map(|folder| ("the results of the old store", folder));
    for (what, folder) in std::iter::once(("the old store", old.folder().clone())).chain(old_results) {
        for (key, url) in [("store", &run.store), ("output", &run.output)] {
            if storage.folder(url)?.overlaps(&folder) {
                let why = "the old nights stay as they are, so name a new place in the job file";
                return refused(key, url, format!("is, holds or lies in {what}, '{}': {why}", folder.url()));
            }
        }
    }
    for url in &run.references {
        if storage.folder(url)?.is_same_place(old.folder()) {
            return refused("references", url, "is the old store: leave it out".to_owned());
        }
    }
    Ok(())
}

/// A first date that leaves out all nights.
fn after_newest(since: &str, newest: &Night) -> Fault {
    Fault::usage(words![
        key("since"),
        format!(
            " {since} is after the newest night of the old store, {}: name an earlier date; nothing was written",
            newest.dt
        )
    ])
}

/// Refuses nights of the new store that are made from something else: nothing replaces them.
fn refuse_others(store: &Store, others: &[String]) -> Result<()> {
    if others.is_empty() {
        return Ok(());
    }
    let (first, more) = others.split_at(N_LISTED.min(others.len()));
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    let reason = format!(
        "the new store has {} that the migration would make otherwise: {}{more}",
        if others.len() == 1 { "a night".to_owned() } else { format!("{} nights", others.len()) },
        first.join(", ")
    );
    let remedy =
        "take them out with `nearprint store drop-night`, or name another store and output; nothing was written";
    Err(Fault::output_exists(store.folder().url(), reason).remedy(remedy))
}

/// Refuses to make a night that is older than the newest one of the new store: its later nights would have been made
/// without it.
fn refuse_out_of_order(store: &Store, remaining: &[String]) -> Result<()> {
    match (remaining.first(), store.nights().last()) {
        (Some(dt), Some(newest)) if newest.dt > *dt => Err(Fault::usage(format!(
            "{dt} is still to be made, and the new store has the later night {}: take the later nights out with \
             `nearprint store drop-night`, so that they are made in their turn, or make {dt} with `nearprint run --late` and \
             the new job file, and then `nearprint run --stale`; nothing was written",
            newest.dt
        ))),
        _ => Ok(()),
    }
}
