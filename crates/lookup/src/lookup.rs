//! A lookup: the state of a store that answers come from.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use nearprint_fault::Result;
use nearprint_join::{Origin, Verifier};
use nearprint_storage::Folder;
use nearprint_store::{Night, Recrawls, Store, damaged_commit, delta_kernel, missing_store};

use crate::answer::State;
use crate::budget::Budget;
use crate::nights::{Memory, OpenNight, OpenRun};
use crate::query::{LookupOptions, LookupProfile};
use crate::tables::Tables;

/// Answers queries from the state of a store at one commit. Clones share that state, and many threads may use one.
#[derive(Debug, Clone)]
pub struct Lookup {
    folder: Folder,
    pub(crate) profile: Arc<LookupProfile>,
    pub(crate) options: LookupOptions,
    pub(crate) verifier: Verifier,
    pub(crate) memory: Arc<Memory>,
    /// The bytes of the rows and answers of all queries under way, and those of their reads.
    pub(crate) rows: Budget,
    pub(crate) reads: Budget,
    pub(crate) opened: Arc<Opened>,
}

/// The state of a store at one commit.
#[derive(Debug)]
pub(crate) struct Opened {
    pub store: Store,
    pub nights: Vec<OpenNight>,
    pub indexes: Vec<Covered>,
    /// The positions of the nights that no index covers.
    pub scanned: Vec<usize>,
    /// The positions of the nights whose words no index covers, these among them; none if words are no keys.
    pub words_scanned: Vec<usize>,
    n_live_rows: u64,
}

impl Opened {
    /// Returns the number of rows in nights of which an index lacks a key.
    pub fn n_scanned_rows(&self) -> u64 {
        self.n_rows_of(if self.words_scanned.is_empty() { &self.scanned } else { &self.words_scanned })
    }

    /// Returns the number of rows of nights at some positions.
    pub fn n_rows_of(&self, nights: &[usize]) -> u64 {
        nights.iter().map(|&night| self.nights[night].n_rows()).sum()
    }
}

/// An index, and the nights whose rows it has.
#[derive(Debug)]
pub(crate) struct Covered {
    pub tables: Arc<Tables>,
    /// The position of the night of each run; `None` for a run that takes no part any more, or that another index has.
    pub nights: Vec<Option<usize>>,
}

impl Lookup {
    /// Opens a store in the state of its newest commit. Files are opened when a query first needs them.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](nearprint_fault::ErrorKind::Config) if the store was made by another profile, or if the
    /// options do not fit the profile; [`ErrorKind::InputMissing`](nearprint_fault::ErrorKind::InputMissing) if there is
    /// no store; [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if the store is damaged.
    pub async fn open(folder: &Folder, profile: Arc<LookupProfile>, options: LookupOptions) -> Result<Self> {
        let verifier = options.verifier(profile.config())?;
        let store = existing_store(folder).await?;
        let memory = Memory::new(options.memory_bytes);
        let (rows, reads) = (Budget::new(options.query_bytes / 2), Budget::new(options.query_bytes / 2));
        let opening = Opening { profile: &profile, options: &options, memory: &memory, reads: &reads, before: None };
        let opened = Arc::new(opening.open(store).await?);
        Ok(Self { folder: folder.clone(), profile, options, verifier, memory, rows, reads, opened })
    }

    /// Brings the lookup to the state of the newest commit, and returns whether that is another one. Files of runs that
    /// are still there stay open. Without a new commit, this takes two requests.
    ///
    /// # Errors
    /// Those of [`open`](Self::open), and one if the store was put back to an earlier state. The lookup stays in its state then.
    pub async fn refresh(&mut self) -> Result<bool> {
        let own = &self.opened.store;
        // A store that is gone, such as one whose disk is not mounted any more, has no newer commit either.
        let is_there = own.is_there().await?;
        if is_there && own.is_newest().await? {
            return Ok(false);
        }
        let store = existing_store(&self.folder).await?;
        if store.sequence() <= own.sequence() {
            let gone = || damaged_commit(self.folder.url(), format!("its commit {} is gone", own.sequence()));
            return if is_there || store.sequence() == own.sequence() { Ok(false) } else { Err(gone()) };
        }
        let Self { profile, options, memory, reads, opened, .. } = &*self;
        let opened = Opening { profile, options, memory, reads, before: Some(opened) }.open(store).await?;
        self.opened = Arc::new(opened);
        Ok(true)
    }

    /// Returns a lookup in the state of the newest commit that opens all files again: some that this one has open may have been
    /// mended or deleted.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub(crate) async fn opened_again(&self) -> Result<Self> {
        let Self { profile, options, memory, reads, .. } = self;
        let opening = Opening { profile, options, memory, reads, before: None };
        let opened = opening.open(existing_store(&self.folder).await?).await?;
        Ok(Self { opened: Arc::new(opened), ..self.clone() })
    }

    /// Describes the state that answers come from.
    #[must_use]
    pub fn state(&self) -> State {
        let nights = &self.opened.nights;
        let n_rows: u64 = nights.iter().map(OpenNight::n_rows).sum();
        let n_scanned_rows = self.opened.n_scanned_rows();
        State {
            store: self.folder.url().to_owned(),
            commit: self.opened.store.sequence(),
            n_nights: nights.len() as u64,
            n_live_rows: self.opened.n_live_rows,
            n_indexed_rows: n_rows - n_scanned_rows,
            n_scanned_rows,
            n_short: nights.iter().map(|night| night.run.night.run.n_short).sum(),
        }
    }

    /// Returns the profile that fingerprints texts.
    #[must_use]
    pub fn profile(&self) -> &LookupProfile {
        &self.profile
    }

    /// Returns the limits.
    #[must_use]
    pub fn options(&self) -> &LookupOptions {
        &self.options
    }
}

/// The settings with which a state is opened.
struct Opening<'a> {
    profile: &'a LookupProfile,
    options: &'a LookupOptions,
    memory: &'a Arc<Memory>,
    reads: &'a Budget,
    /// The state before this one. Runs and indexes that it has stay open.
    before: Option<&'a Opened>,
}

impl Opening<'_> {
    async fn open(&self, store: Store) -> Result<Opened> {
        let differences = |other: &str| self.profile.configuration().differences(other);
        store.refuse_other_config(self.profile.digest(), differences)?;
        let known: HashMap<&str, &Arc<OpenRun>> = self
            .before
            .into_iter()
            .flat_map(|before| &before.nights)
            .map(|night| (night.run.night.run.digest.as_str(), &night.run))
            .collect();
        let shadowed = store.all_nights(Origin::OWN).shadowed(&Recrawls::default()).await?;
        let mut redecided = store.all_nights(Origin::OWN).redecided().await?;
        // Of most nights, no row is shadowed.
        let kernel = delta_kernel(self.options.kernel);
        let mut open = |night: &Night| {
            let known = known.get(night.run.digest.as_str()).filter(|known| known.night.dt == night.dt);
            let run = known.map_or_else(|| Arc::new(OpenRun::new(night.clone(), kernel)), |known| Arc::clone(known));
            let shadowed = shadowed.get(&night.run.digest).cloned().unwrap_or_default();
            OpenNight { run, shadowed, redecided: redecided.take_run(&night.run.digest) }
        };
        let nights: Vec<OpenNight> = store.nights().iter().map(&mut open).collect();
        let indexes = self.indexes(&store, &nights).await?;
        let without = |n_words: u32| -> Vec<usize> {
            let complete = indexes.iter().filter(|index| index.tables.have_words(n_words));
            let covered: HashSet<usize> = complete.flat_map(|index| &index.nights).flatten().copied().collect();
            (0..nights.len()).filter(|night| !covered.contains(night)).collect()
        };
        let n_words = self.options.keys.words;
        let (scanned, words_scanned) = (without(0), if n_words > 0 { without(n_words) } else { Vec::new() });
        let live = |night: &OpenNight| {
            let n_rows = night.n_rows();
            n_rows - night.shadowed.n_below(n_rows)
        };
        let n_live_rows = nights.iter().map(live).sum();
        Ok(Opened { store, nights, indexes, scanned, words_scanned, n_live_rows })
    }

    async fn indexes(&self, store: &Store, nights: &[OpenNight]) -> Result<Vec<Covered>> {
        let digest = |night: &'_ OpenNight| night.run.night.run.digest.clone();
        let positions: HashMap<String, usize> = nights.iter().map(digest).zip(0..).collect();
        let known = self.before.into_iter().flat_map(|before| &before.indexes);
        let known: HashMap<&str, &Arc<Tables>> =
            known.map(|known| (known.tables.digest.as_str(), &known.tables)).collect();
        let mut taken = HashSet::new();
        let mut covered = Vec::new();
        for index in store.open_indexes().await? {
            let tables = match known.get(index.digest.as_str()) {
                Some(known) => Some(Arc::clone(known)),
                None => {
                    let bits = self.profile.config().bits;
                    Tables::of(index, bits, self.options, (self.memory, self.reads))?.map(Arc::new)
                }
            };
            let Some(tables) = tables else { continue };
            let position = |run: &String| positions.get(run).copied().filter(|night| taken.insert(*night));
            let nights = tables.runs.iter().map(position).collect();
            covered.push(Covered { tables, nights });
        }
        Ok(covered)
    }
}

async fn existing_store(folder: &Folder) -> Result<Store> {
    match Store::open_existing(folder).await? {
        Some(store) => Ok(store),
        None => Err(missing_store(folder).await),
    }
}
