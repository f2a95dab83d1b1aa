//! A lookup: a state of a store, and the answers from it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use futures::{StreamExt, TryStreamExt};
use nearprint_fingerprint::Sketch;
use nearprint_join::{Origin, SketchDistance, Verifier};
use nearprint_profile::Outcome;
use nearprint_storage::Folder;
use nearprint_store::{Night, Recrawls, Store, missing_store};

use crate::answer::{Answer, Decision, Match, State};
use crate::counts::Counts;
use crate::documents::{Document, documents, sketches};
use crate::error::{LookupError, Result};
use crate::near::{Near, scan};
use crate::nights::{Memory, OpenNight, OpenRun, TextHash};
use crate::query::{LookupOptions, LookupProfile, Query};
use crate::tables::{NearRow, Tables};

/// Answers queries from the state of a store at one commit. Clones share that state, and many threads may use one.
#[derive(Debug, Clone)]
pub struct Lookup {
    folder: Folder,
    profile: Arc<LookupProfile>,
    options: LookupOptions,
    verifier: Verifier,
    memory: Arc<Memory>,
    opened: Arc<Opened>,
}

/// The state of a store at one commit.
#[derive(Debug)]
struct Opened {
    store: Store,
    nights: Vec<OpenNight>,
    indexes: Vec<Covered>,
    /// The positions of the nights that no index covers.
    scanned: Vec<usize>,
    n_live_rows: u64,
}

/// An index, and the nights whose rows it has.
#[derive(Debug)]
struct Covered {
    tables: Arc<Tables>,
    /// The position of the night of each run; `None` for a run that takes no part any more, or that another index has.
    nights: Vec<Option<usize>>,
}

/// The number of nights that are read at the same time.
const NIGHTS_AT_ONCE: usize = 8;

impl Lookup {
    /// Opens a store in the state of its newest commit. Files are opened when a query first needs them.
    ///
    /// # Errors
    /// [`LookupError::Store`] if the store was made by another profile, or is damaged; [`LookupError::Storage`] if
    /// there is no store; [`LookupError::Config`] or [`LookupError::Profile`] if the options do not fit the profile.
    pub async fn open(folder: &Folder, profile: Arc<LookupProfile>, options: LookupOptions) -> Result<Self> {
        let verifier = options.verifier(profile.config())?;
        let store = Store::open_existing(folder).await?.ok_or_else(|| missing_store(folder.url()))?;
        let memory = Memory::new(options.memory_bytes);
        let opening = Opening { profile: &profile, options: &options, memory: &memory, before: None };
        let opened = Arc::new(opening.open(store).await?);
        Ok(Self { folder: folder.clone(), profile, options, verifier, memory, opened })
    }

    /// Brings the lookup to the state of the newest commit, and returns whether that is another one. Files of runs that
    /// are still there stay open. Without a new commit, this takes one request.
    ///
    /// # Errors
    /// Those of [`open`](Self::open). The lookup stays in its state then.
    pub async fn refresh(&mut self) -> Result<bool> {
        if self.opened.store.is_newest().await? {
            return Ok(false);
        }
        let store = Store::open_existing(&self.folder).await?.ok_or_else(|| missing_store(self.folder.url()))?;
        if store.sequence() <= self.opened.store.sequence() {
            return Ok(false);
        }
        let Self { profile, options, memory, opened, .. } = &*self;
        let opened = Opening { profile, options, memory, before: Some(opened) }.open(store).await?;
        self.opened = Arc::new(opened);
        Ok(true)
    }

    /// Describes the state that answers come from.
    #[must_use]
    pub fn state(&self) -> State {
        let nights = &self.opened.nights;
        let rows = |night: &OpenNight| night.run.night.run.n_fingerprints;
        let n_rows: u64 = nights.iter().map(rows).sum();
        let n_scanned_rows = self.opened.scanned.iter().map(|&night| rows(&nights[night])).sum();
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

    /// Returns every document of the store within the limits, and no other. Many queries may be answered at the same
    /// time.
    ///
    /// # Errors
    /// [`LookupError::Query`] if the fingerprint has more bits than the profile's; an error if a file of the store is
    /// damaged or cannot be read.
    pub async fn answer(&self, query: &Query) -> Result<Answer> {
        let counts = Counts::default();
        let (answer, matches) = match query {
            Query::Fingerprint { fingerprint, sketch } => {
                self.refuse_too_wide(*fingerprint)?;
                self.near(*fingerprint, sketch.as_ref(), None, &counts).await?
            }
            Query::Text(text) => match self.profile.outcome(text) {
                Outcome::Empty => (Answer { reason: Some("empty"), ..Answer::default() }, Vec::new()),
                Outcome::TooShort { text_hash } => self.short(text_hash, &counts).await?,
                Outcome::Fingerprinted { fingerprint, sketch, text_hash, .. } => {
                    self.near(fingerprint, sketch.as_ref(), Some(text_hash), &counts).await?
                }
            },
        };
        Ok(self.listed(answer, matches, &counts))
    }

    fn refuse_too_wide(&self, fingerprint: u64) -> Result<()> {
        let bits = self.profile.config().bits;
        if bits == u64::BITS || fingerprint >> bits == 0 {
            return Ok(());
        }
        let reason = format!("the fingerprints of this profile have {bits} bits");
        Err(LookupError::Query { query: format!("fingerprint {fingerprint:x}"), reason })
    }

    async fn near(
        &self,
        fingerprint: u64,
        sketch: Option<&Sketch>,
        text_hash: Option<TextHash>,
        counts: &Counts,
    ) -> Result<(Answer, Vec<Match>)> {
        let answer = Answer { fingerprint: Some(self.profile.hex(fingerprint)), ..Answer::default() };
        let mut near = self.candidates(fingerprint, counts).await?;
        near.retain(|near| !self.opened.nights[near.night].shadowed.contains(near.row));
        near.sort_unstable();
        let of_night: Vec<&[Near]> = near.chunk_by(|a, b| a.night == b.night).collect();
        let mut fetches = Vec::new();
        for near in of_night {
            fetches.push(self.matches(near, sketch, text_hash, counts).boxed());
        }
        Ok((answer, at_once(fetches).await?))
    }

    /// Returns the rows whose fingerprints are near, in no particular order.
    async fn candidates(&self, fingerprint: u64, counts: &Counts) -> Result<Vec<Near>> {
        let Opened { indexes, scanned, .. } = &*self.opened;
        let mut scans = Vec::new();
        for &night in scanned {
            scans.push(self.scanned(night, fingerprint, counts).boxed());
        }
        let mut near = at_once(scans).await?;
        for index in indexes {
            let found = index.tables.near(self.options.kernel, fingerprint, counts).await?;
            let of_night = |found: NearRow| {
                let NearRow { run, row, distance } = found;
                index.nights[run].map(|night| Near { night, row, distance })
            };
            near.extend(found.into_iter().filter_map(of_night));
        }
        Ok(near)
    }

    async fn scanned(&self, night: usize, fingerprint: u64, counts: &Counts) -> Result<Vec<Near>> {
        let Opened { store, nights, .. } = &*self.opened;
        let limit = (self.options.kernel, self.options.max_distance);
        let found = scan(&nights[night].run, store, &self.memory, fingerprint, limit, counts).await?;
        Ok(found.into_iter().map(|(row, distance)| Near { night, row, distance }).collect())
    }

    /// Returns those of the near rows of one night, which ascend, whose sketches match.
    async fn matches(
        &self,
        near: &[Near],
        sketch: Option<&Sketch>,
        text_hash: Option<TextHash>,
        counts: &Counts,
    ) -> Result<Vec<Match>> {
        let Some(first) = near.first() else { return Ok(Vec::new()) };
        let run = &self.opened.nights[first.night].run;
        let (parquet, pages) = run.with_sketches(&self.opened.store).await?;
        let rows: Vec<u32> = near.iter().map(|near| near.row).collect();
        let known = match sketch {
            Some(_) => sketches(parquet, pages, &rows, counts).await?,
            None => vec![None; rows.len()],
        };
        let mut near: Vec<(&Near, Option<u32>)> =
            near.iter().zip(known).map(|(n, s)| (n, distance(sketch, s))).collect();
        near.retain(|(_, sketch_distance)| self.allows(sketch.is_some(), *sketch_distance));
        if near.is_empty() {
            return Ok(Vec::new());
        }
        let rows: Vec<u32> = near.iter().map(|(near, _)| near.row).collect();
        let found = documents(parquet, &rows, counts).await?;
        let matched = |((near, sketch_distance), document): ((&Near, Option<u32>), Document)| {
            let exact = text_hash.is_some() && text_hash == document.text_hash;
            matched(document, &run.night.dt, (near.distance, sketch_distance), exact)
        };
        Ok(near.into_iter().zip(found).map(matched).collect())
    }

    /// Returns whether a document at this sketch distance matches. Without a sketch of its own, a query compares none.
    fn allows(&self, has_sketch: bool, sketch_distance: Option<u32>) -> bool {
        let bits = sketch_distance.and_then(|bits| u16::try_from(bits).ok());
        let compared = bits.map_or(SketchDistance::Missing, SketchDistance::Bits);
        self.verifier.allows(0, if has_sketch { compared } else { SketchDistance::NotCompared })
    }

    async fn short(&self, text_hash: TextHash, counts: &Counts) -> Result<(Answer, Vec<Match>)> {
        let answer = Answer { short: true, reason: Some("too_short"), ..Answer::default() };
        let mut of_nights = Vec::new();
        for night in &self.opened.nights {
            if night.run.night.run.n_short > 0 {
                of_nights.push(self.short_of(night, text_hash, counts).boxed());
            }
        }
        Ok((answer, at_once(of_nights).await?))
    }

    async fn short_of(&self, night: &OpenNight, text_hash: TextHash, counts: &Counts) -> Result<Vec<Match>> {
        let store = &self.opened.store;
        let hashes = night.run.short_hashes(store).await?;
        let first = hashes.partition_point(|hash| *hash < text_hash);
        let n_equal = hashes[first..].partition_point(|hash| *hash == text_hash);
        // The rows of short texts follow those of fingerprints, and all of them together are counted in 32 bits.
        let row_of_run = |row: usize| u32::try_from(night.run.night.run.n_fingerprints + row as u64);
        let is_live = |row: &usize| row_of_run(*row).is_ok_and(|row| !night.shadowed.contains(row));
        let live = (first..first + n_equal).filter(is_live);
        let rows: Vec<u32> = live.filter_map(|row| u32::try_from(row).ok()).collect();
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let found = documents(night.run.short(store).await?, &rows, counts).await?;
        Ok(found.into_iter().map(|document| matched(document, &night.run.night.dt, (0, None), true)).collect())
    }

    fn listed(&self, answer: Answer, mut matches: Vec<Match>, counts: &Counts) -> Answer {
        let n_matches = matches.len() as u64;
        matches.sort_by(|a, b| order(a).cmp(&order(b)));
        if self.options.max_matches > 0 {
            matches.truncate(self.options.max_matches);
        }
        Answer { n_matches, matches, pages_read: counts.pages(), bytes_read: counts.bytes(), ..answer }
    }
}

/// Does what some nights need at the same time. The results come in the order of the futures.
async fn at_once<T>(futures: Vec<BoxFuture<'_, Result<Vec<T>>>>) -> Result<Vec<T>> {
    let mut of_nights = futures::stream::iter(futures).buffered(NIGHTS_AT_ONCE);
    let mut all = Vec::new();
    while let Some(of_night) = of_nights.try_next().await? {
        all.extend(of_night);
    }
    Ok(all)
}

/// The order of an answer. Documents without a sketch come after those with one.
fn order(found: &Match) -> (u32, u32, &str, &str) {
    (found.distance, found.sketch_distance.unwrap_or(Sketch::BITS + 1), &found.dt, &found.id)
}

fn distance(query: Option<&Sketch>, existing: Option<Sketch>) -> Option<u32> {
    query.zip(existing).map(|(a, b)| a.distance(&b))
}

fn matched(document: Document, dt: &str, (distance, sketch_distance): (u32, Option<u32>), exact: bool) -> Match {
    let Document { id, canonical_id, .. } = document;
    let decision = if canonical_id.is_some() { Decision::Drop } else { Decision::Keep };
    Match { id, dt: dt.to_owned(), distance, sketch_distance, decision, canonical_id, exact }
}

/// What a state is opened with.
struct Opening<'a> {
    profile: &'a LookupProfile,
    options: &'a LookupOptions,
    memory: &'a Arc<Memory>,
    /// The state before this one. Runs and indexes that it has stay open.
    before: Option<&'a Opened>,
}

impl Opening<'_> {
    async fn open(&self, store: Store) -> Result<Opened> {
        store.refuse_other_config(self.profile.digest())?;
        let known: HashMap<&str, &Arc<OpenRun>> = self
            .before
            .into_iter()
            .flat_map(|before| &before.nights)
            .map(|night| (night.run.night.run.digest.as_str(), &night.run))
            .collect();
        let shadowed = store.all_nights(Origin::OWN).shadowed(&Recrawls::default()).await?;
        let open = |night: &Night| {
            let known = known.get(night.run.digest.as_str()).filter(|known| known.night.dt == night.dt);
            let run = known.map_or_else(|| Arc::new(OpenRun::new(night.clone())), |known| Arc::clone(known));
            OpenNight { run, shadowed: shadowed.get(&night.run.digest).cloned().unwrap_or_default() }
        };
        let nights: Vec<OpenNight> = store.nights().iter().map(open).collect();
        let indexes = self.indexes(&store, &nights).await?;
        let covered: HashSet<usize> = indexes.iter().flat_map(|index| &index.nights).flatten().copied().collect();
        let scanned = (0..nights.len()).filter(|night| !covered.contains(night)).collect();
        let live = |night: &OpenNight| {
            let n_rows = night.run.night.run.n_fingerprints;
            n_rows - night.shadowed.n_below(n_rows)
        };
        let n_live_rows = nights.iter().map(live).sum();
        Ok(Opened { store, nights, indexes, scanned, n_live_rows })
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
                    Tables::of(&index, bits, self.options.max_distance, self.memory)?.map(Arc::new)
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
