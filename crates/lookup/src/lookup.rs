//! A lookup: a state of a store, and the answers from it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use nearprint_fingerprint::Sketch;
use nearprint_join::{Origin, SketchDistance, Verifier};
use nearprint_profile::Outcome;
use nearprint_storage::Folder;
use nearprint_store::{Recrawls, Store, missing_store};

use crate::answer::{Answer, Decision, Match, State};
use crate::counts::Counts;
use crate::documents::{Document, documents, sketches};
use crate::error::{LookupError, Result};
use crate::near::{Near, scan};
use crate::nights::{Memory, OpenNight, OpenRun, TextHash};
use crate::query::{LookupOptions, LookupProfile, Query};

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
    n_live_rows: u64,
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
        let opened = Arc::new(Opened::of(store, &profile, None).await?);
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
        self.opened = Arc::new(Opened::of(store, &self.profile, Some(&self.opened)).await?);
        Ok(true)
    }

    /// Describes the state that answers come from.
    #[must_use]
    pub fn state(&self) -> State {
        let nights = &self.opened.nights;
        let rows = |night: &OpenNight| night.run.night.run.n_fingerprints;
        State {
            store: self.folder.url().to_owned(),
            commit: self.opened.store.sequence(),
            n_nights: nights.len() as u64,
            n_live_rows: self.opened.n_live_rows,
            n_indexed_rows: 0,
            n_scanned_rows: nights.iter().map(rows).sum(),
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

    /// Returns every document of the store within the limits, and no other.
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
        // A list, because the compiler does not see that a stream of a closure may go to another thread.
        let fetches: Vec<_> =
            of_night.into_iter().map(|near| self.matches(near, sketch, text_hash, counts)).collect();
        let matches: Vec<Vec<Match>> = futures::stream::iter(fetches).buffered(NIGHTS_AT_ONCE).try_collect().await?;
        Ok((answer, matches.concat()))
    }

    /// Returns the rows whose fingerprints are near, in no particular order.
    async fn candidates(&self, fingerprint: u64, counts: &Counts) -> Result<Vec<Near>> {
        let mut near = Vec::new();
        for (position, night) in self.opened.nights.iter().enumerate() {
            let limit = (self.options.kernel, self.options.max_distance);
            let found = scan(&night.run, &self.opened.store, &self.memory, fingerprint, limit, counts).await?;
            near.extend(found.into_iter().map(|(row, distance)| Near { night: position, row, distance }));
        }
        Ok(near)
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
        let parquet = run.fingerprints(&self.opened.store).await?;
        let rows: Vec<u32> = near.iter().map(|near| near.row).collect();
        let known = match sketch {
            Some(_) => sketches(parquet, &rows, counts).await?,
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
        let nights = self.opened.nights.iter().filter(|night| night.run.night.run.n_short > 0);
        let of_nights: Vec<_> = nights.map(|night| self.short_of(night, text_hash, counts)).collect();
        let matches: Vec<Vec<Match>> = futures::stream::iter(of_nights).buffered(NIGHTS_AT_ONCE).try_collect().await?;
        Ok((answer, matches.concat()))
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

impl Opened {
    /// Opens a state. Runs that `before` has stay open.
    async fn of(store: Store, profile: &LookupProfile, before: Option<&Self>) -> Result<Self> {
        store.refuse_other_config(profile.digest())?;
        let known: HashMap<&str, &Arc<OpenRun>> = before
            .into_iter()
            .flat_map(|before| &before.nights)
            .map(|night| (night.run.night.run.digest.as_str(), &night.run))
            .collect();
        let mut shadowed: BTreeMap<String, _> =
            store.all_nights(Origin::OWN).shadowed(&Recrawls::default()).await?.into_iter().collect();
        let mut nights = Vec::new();
        let mut n_live_rows = 0;
        for night in store.nights() {
            let digest = night.run.digest.as_str();
            let open = known.get(digest).filter(|open| open.night.dt == night.dt);
            let run = open.map_or_else(|| Arc::new(OpenRun::new(night.clone())), |open| Arc::clone(open));
            let shadowed: nearprint_join::RowSet = shadowed.remove(digest).unwrap_or_default();
            let n_rows = night.run.n_fingerprints;
            n_live_rows += n_rows - shadowed.n_below(n_rows);
            nights.push(OpenNight { run, shadowed });
        }
        Ok(Self { store, nights, n_live_rows })
    }
}
