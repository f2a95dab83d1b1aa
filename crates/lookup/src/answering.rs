//! The answers of a lookup: of one query by an index, of many also by a join.

use std::ops::ControlFlow;
use std::pin::pin;

use futures::future::{BoxFuture, FutureExt};
use futures::{Stream, StreamExt, TryStreamExt};
use nearprint_fingerprint::Sketch;
use nearprint_join::SketchDistance;
use nearprint_storage::{StorageError, blocking, in_pool};
use rayon::prelude::*;

use crate::answer::{Answer, Decision, Match, ReadForAnswer};
use crate::batch::Batch;
use crate::counts::Counts;
use crate::documents::{Document, documents, sketches};
use crate::error::{LookupError, Result};
use crate::lookup::{Lookup, Opened};
use crate::near::{Near, scan};
use crate::nights::{OpenNight, OpenRun, TextHash};
use crate::query::{Query, WhenJoined};
use crate::tables::NearRow;
use crate::wanted::{Fingerprinted, Wanted};

/// The number of nights that are read at the same time.
const NIGHTS_AT_ONCE: usize = 8;
/// The nanoseconds in which a core reads and compares a page of an index, as measured.
const PAGE_NS: f64 = 7_000.0;
/// The nanoseconds in which a core compares a fingerprint that is in memory, as measured.
const SCANNED_ROW_NS: f64 = 0.5;
/// The nanoseconds that a join takes for each fingerprint on one core, at the least.
const LEAST_JOINED_ROW_NS: f64 = 0.4;

/// What became of the attempt to join queries.
enum Joined {
    Answers(Vec<Answer>),
    /// More rows are near than a join holds.
    TooMany,
    /// One by one, the queries take less time.
    DoesNotPay,
}

impl Lookup {
    /// Returns every document of the store within the limits, and no other. Many queries may be answered at the same
    /// time.
    ///
    /// # Errors
    /// [`LookupError::Query`] if the fingerprint has more bits than the profile's; an error if a file of the store is
    /// damaged or cannot be read.
    pub async fn answer(&self, query: &Query) -> Result<Answer> {
        let counts = Counts::default();
        let answer = self.answer_to(&Wanted::of(&self.profile, query)?, &counts).await?;
        let read = ReadForAnswer { pages_read: counts.pages(), bytes_read: counts.bytes() };
        Ok(Answer { read: Some(read), ..answer })
    }

    /// Answers many queries as [`answer`](Self::answer) answers each, and calls `each` with the answers in the order of
    /// the queries, until it breaks. If there are so many that a join with all fingerprints of the store takes less
    /// time, they are joined. The answers do not say what was read. A query that is refused has its own error.
    ///
    /// # Errors
    /// An error if a file of the store is damaged or cannot be read. The answers before it were given.
    pub async fn answers<B>(
        &self,
        queries: Vec<Query>,
        mut each: impl FnMut(Result<Answer>) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        let lookup = self.clone();
        let wanted = blocking("query", move || {
            let of = |query: &Query| Wanted::of(&lookup.profile, query);
            let wanted: Vec<Result<Wanted>> = in_pool(|| queries.par_iter().map(of).collect());
            Ok::<_, LookupError>(wanted)
        });
        let all = wanted.await?;
        // A query that is refused looks for nothing, and has its error in place of the answer.
        let wanted: Vec<Wanted> = all.iter().map(|of| *of.as_ref().unwrap_or(&Wanted::Nothing)).collect();
        let mut all = all.into_iter();
        let mut give = |answer: Answer| match all.next() {
            Some(Err(error)) => each(Err(error)),
            _ => each(Ok(answer)),
        };
        // Ranges of queries that are still to be answered, the first of them last.
        let whole = 0..wanted.len();
        let mut ranges = vec![whole];
        while let Some(range) = ranges.pop() {
            match self.joined(&wanted[range.clone()]).await? {
                Joined::Answers(of_range) => {
                    if let Some(broken) = of_range.into_iter().map(&mut give).find(ControlFlow::is_break) {
                        return Ok(broken);
                    }
                }
                Joined::TooMany if range.len() > 1 => {
                    let middle = range.start + range.len() / 2;
                    ranges.extend([middle..range.end, range.start..middle]);
                }
                Joined::TooMany | Joined::DoesNotPay => {
                    let mut of_range = pin!(self.one_by_one(wanted[range].to_vec()));
                    while let Some(answer) = of_range.try_next().await? {
                        if let broken @ ControlFlow::Break(_) = give(answer) {
                            return Ok(broken);
                        }
                    }
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Answers each query alone, several at the same time, and gives the answers in their order.
    fn one_by_one(&self, wanted: Vec<Wanted>) -> impl Stream<Item = Result<Answer>> + Send {
        let lookup = self.clone();
        let answer = move |wanted: Wanted| {
            let lookup = lookup.clone();
            async move {
                let answered = tokio::spawn(async move { lookup.answer_to(&wanted, &Counts::default()).await });
                let panicked =
                    |e: tokio::task::JoinError| StorageError::Internal { stage: "query", reason: e.to_string() };
                answered.await.map_err(panicked)?
            }
        };
        futures::stream::iter(wanted).map(answer).buffered(2 * self.options.threads.max(1))
    }

    async fn answer_to(&self, wanted: &Wanted, counts: &Counts) -> Result<Answer> {
        let matches = match wanted {
            Wanted::Nothing => Vec::new(),
            Wanted::Same(text_hash) => self.short(*text_hash, counts).await?,
            Wanted::Near(near) => {
                let rows = self.candidates(near.fingerprint, counts).await?;
                let matches = self.matches(rows, std::slice::from_ref(near), counts).await?;
                matches.into_iter().map(|(_, found)| found).collect()
            }
        };
        Ok(self.listed(wanted, matches))
    }

    /// Joins queries with all fingerprints, if that takes less time than to answer them one by one.
    async fn joined(&self, wanted: &[Wanted]) -> Result<Joined> {
        let near = |wanted: &Wanted| if let Wanted::Near(near) = wanted { Some(*near) } else { None };
        let wanted_near: Vec<Fingerprinted> = wanted.iter().filter_map(near).collect();
        let [first, _, ..] = wanted_near.as_slice() else { return Ok(Joined::DoesNotPay) };
        let Opened { store, nights, .. } = &*self.opened;
        let n_rows: u64 = nights.iter().map(OpenNight::n_rows).sum();
        #[allow(clippy::cast_precision_loss, reason = "an estimate")]
        let (alone, least) = match self.options.joined {
            WhenJoined::IfFaster => {
                let alone = wanted_near.len() as f64 * self.nanoseconds_alone(first.fingerprint);
                (alone, LEAST_JOINED_ROW_NS * n_rows as f64)
            }
            WhenJoined::Always => (f64::INFINITY, 0.0),
            WhenJoined::Never => return Ok(Joined::DoesNotPay),
        };
        if alone < least {
            return Ok(Joined::DoesNotPay);
        }
        let asked: Vec<(u64, u32)> = wanted_near.iter().map(|near| near.fingerprint).zip(0..).collect();
        let (batch, joined) = Batch::new(asked, self.profile.config().bits, n_rows, &self.options);
        if alone < joined {
            return Ok(Joined::DoesNotPay);
        }
        let (counts, runs) = (Counts::default(), nights.iter().map(|night| &*night.run).collect::<Vec<&OpenRun>>());
        let Some(rows) = batch.near(&runs, store, &self.memory, &counts).await? else {
            return Ok(Joined::TooMany);
        };
        let mut of_queries = vec![Vec::new(); wanted_near.len()];
        for (query, found) in self.matches(rows, &wanted_near, &counts).await? {
            of_queries[query as usize].push(found);
        }
        let is_near = |wanted: &&Wanted| matches!(wanted, Wanted::Near(_));
        let others = wanted.iter().filter(|wanted| !is_near(wanted)).copied().collect();
        let others: Vec<Answer> = self.one_by_one(others).try_collect().await?;
        let (mut of_queries, mut others) = (of_queries.into_iter(), others.into_iter());
        let answer = |wanted: &Wanted| match wanted {
            Wanted::Near(_) => of_queries.next().map(|matches| self.listed(wanted, matches)),
            Wanted::Same(_) | Wanted::Nothing => others.next(),
        };
        let answers: Vec<Answer> = wanted.iter().filter_map(answer).collect();
        if answers.len() != wanted.len() {
            let reason = format!("{} answers for {} queries", answers.len(), wanted.len());
            return Err(StorageError::Internal { stage: "query", reason }.into());
        }
        Ok(Joined::Answers(answers))
    }

    /// Estimates the nanoseconds that a query alone takes on one core.
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    fn nanoseconds_alone(&self, fingerprint: u64) -> f64 {
        let n_pages: usize = self.opened.indexes.iter().map(|index| index.tables.n_pages(fingerprint)).sum();
        PAGE_NS * n_pages as f64 + SCANNED_ROW_NS * self.opened.n_scanned_rows() as f64
    }

    /// Returns the matches among near rows, each with the number of its query.
    async fn matches(
        &self,
        mut rows: Vec<Near>,
        wanted: &[Fingerprinted],
        counts: &Counts,
    ) -> Result<Vec<(u32, Match)>> {
        rows.retain(|near| !self.opened.nights[near.night].shadowed.contains(near.row));
        rows.sort_unstable();
        let mut of_nights = Vec::new();
        for of_night in rows.chunk_by(|a, b| a.night == b.night) {
            of_nights.push(self.matches_of_night(of_night, wanted, counts).boxed());
        }
        at_once(of_nights).await
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
                index.nights[run].map(|night| Near { night, row, query: 0, distance })
            };
            near.extend(found.into_iter().filter_map(of_night));
        }
        Ok(near)
    }

    async fn scanned(&self, night: usize, fingerprint: u64, counts: &Counts) -> Result<Vec<Near>> {
        let Opened { store, nights, .. } = &*self.opened;
        let limit = (self.options.kernel, self.options.max_distance);
        let found = scan(&nights[night].run, store, &self.memory, fingerprint, limit, counts).await?;
        Ok(found.into_iter().map(|(row, distance)| Near { night, row, query: 0, distance }).collect())
    }

    /// Returns those of the near rows of one night, which ascend, whose sketches match.
    async fn matches_of_night(
        &self,
        rows: &[Near],
        wanted: &[Fingerprinted],
        counts: &Counts,
    ) -> Result<Vec<(u32, Match)>> {
        let Some(first) = rows.first() else { return Ok(Vec::new()) };
        let run = &self.opened.nights[first.night].run;
        let (parquet, pages) = run.with_sketches(&self.opened.store).await?;
        let of_query = |near: &Near| &wanted[near.query as usize];
        let compared: Vec<u32> =
            distinct(rows.iter().filter(|near| of_query(near).sketch.is_some()).map(|near| near.row));
        let known = sketches(parquet, pages, &compared, counts).await?;
        let sketch_distance = |near: &Near| {
            let sketch = of_query(near).sketch?;
            let known = known[compared.partition_point(|&row| row < near.row)]?;
            Some(sketch.distance(&known))
        };
        let matching = rows.iter().map(|near| (near, sketch_distance(near)));
        let matching: Vec<(&Near, Option<u32>)> =
            matching.filter(|(near, distance)| self.allows(of_query(near).sketch.is_some(), *distance)).collect();
        let found = distinct(matching.iter().map(|(near, _)| near.row));
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let documents = documents(parquet, &found, counts).await?;
        let matched = |(near, sketch_distance): (&Near, Option<u32>)| {
            let document = &documents[found.partition_point(|&row| row < near.row)];
            let text_hash = of_query(near).text_hash;
            let exact = text_hash.is_some() && text_hash == document.text_hash;
            (near.query, matched(document, &run.night.dt, (near.distance, sketch_distance), exact))
        };
        Ok(matching.into_iter().map(matched).collect())
    }

    /// Returns whether a document at this sketch distance matches. Without a sketch of its own, a query compares none.
    fn allows(&self, has_sketch: bool, sketch_distance: Option<u32>) -> bool {
        let bits = sketch_distance.and_then(|bits| u16::try_from(bits).ok());
        let compared = bits.map_or(SketchDistance::Missing, SketchDistance::Bits);
        self.verifier.allows(0, if has_sketch { compared } else { SketchDistance::NotCompared })
    }

    async fn short(&self, text_hash: TextHash, counts: &Counts) -> Result<Vec<Match>> {
        let mut of_nights = Vec::new();
        for night in &self.opened.nights {
            if night.run.night.run.n_short > 0 {
                of_nights.push(self.short_of(night, text_hash, counts).boxed());
            }
        }
        at_once(of_nights).await
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
        Ok(found.iter().map(|document| matched(document, &night.run.night.dt, (0, None), true)).collect())
    }

    fn listed(&self, wanted: &Wanted, mut matches: Vec<Match>) -> Answer {
        let n_matches = matches.len() as u64;
        matches.sort_by(|a, b| order(a).cmp(&order(b)));
        if self.options.max_matches > 0 {
            matches.truncate(self.options.max_matches);
        }
        let (fingerprint, reason) = match wanted {
            Wanted::Near(near) => (Some(self.profile.hex(near.fingerprint)), None),
            Wanted::Same(_) => (None, Some("too_short")),
            Wanted::Nothing => (None, Some("empty")),
        };
        Answer { fingerprint, short: matches!(wanted, Wanted::Same(_)), reason, n_matches, matches, read: None }
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

fn matched(document: &Document, dt: &str, (distance, sketch_distance): (u32, Option<u32>), exact: bool) -> Match {
    let (id, canonical_id) = (document.id.clone(), document.canonical_id.clone());
    let decision = if canonical_id.is_some() { Decision::Drop } else { Decision::Keep };
    Match { id, dt: dt.to_owned(), distance, sketch_distance, decision, canonical_id, exact }
}

/// Returns the distinct ones of ascending rows.
fn distinct(rows: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut rows: Vec<u32> = rows.collect();
    rows.dedup();
    rows
}
