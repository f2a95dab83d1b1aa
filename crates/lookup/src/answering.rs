//! The answers of a lookup: of one query by an index, of many also by a join.

use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::Arc;

use futures::future::FutureExt;
use futures::{Stream, StreamExt, TryStreamExt};
use nearprint_storage::{StorageError, blocking, in_pool, of_task, row_number};
use rayon::prelude::*;

use crate::answer::{Answer, ReadForAnswer};
use crate::batch::Batch;
use crate::counts::Counts;
use crate::error::{LookupError, Result};
use crate::listed::Listed;
use crate::lookup::{Lookup, Opened};
use crate::matching::{RunFile, at_once};
use crate::near::{Near, NearRows, scan};
use crate::nights::{OpenNight, OpenRun, TextHash};
use crate::query::{Query, WhenJoined};
use crate::wanted::{Fingerprinted, Wanted};

/// The nanoseconds in which a core reads and compares a page of an index, as measured.
const PAGE_NS: f64 = 7_000.0;
/// The nanoseconds in which a core compares a fingerprint that is in memory, as measured.
const SCANNED_ROW_NS: f64 = 0.5;
/// The nanoseconds that a join takes for each fingerprint on one core, at the least.
const LEAST_JOINED_ROW_NS: f64 = 0.4;

/// The most near rows whose documents are in memory for a query alone. They take about 20 MB.
const ROWS_AT_ONCE: usize = 1 << 16;

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
        let answer = self.answer_to(&self.wanted(query).await?, &counts).await?;
        let read = ReadForAnswer { pages_read: counts.pages(), bytes_read: counts.bytes() };
        Ok(Answer { read: Some(read), ..answer })
    }

    /// Returns what a query looks for. A long text takes seconds, in which a thread that others wait for must not
    /// compute.
    async fn wanted(&self, query: &Query) -> Result<Wanted> {
        let (profile, query) = (Arc::clone(&self.profile), query.clone());
        blocking("query", move || Wanted::of(&profile, &query)).await
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
                of_task("query", answered.await)
            }
        };
        futures::stream::iter(wanted).map(answer).buffered(2 * self.options.threads.max(1))
    }

    async fn answer_to(&self, wanted: &Wanted, counts: &Counts) -> Result<Answer> {
        let listed = match wanted {
            Wanted::Nothing => self.none(),
            Wanted::Same(text_hash) => {
                let same = Fingerprinted { fingerprint: 0, sketch: None, text_hash: Some(*text_hash) };
                self.listed(self.short(*text_hash).await?, &same, RunFile::Short, counts).await?
            }
            Wanted::Near(near) => {
                let rows = self.candidates(near.fingerprint, counts).await?;
                self.listed(rows, near, RunFile::Fingerprints, counts).await?
            }
        };
        Ok(self.answer_of(wanted, listed))
    }

    /// Reads the documents of near rows, some at a time, and keeps those that the answer lists.
    async fn listed(
        &self,
        mut rows: Vec<NearRows>,
        wanted: &Fingerprinted,
        file: RunFile,
        counts: &Counts,
    ) -> Result<Listed> {
        rows.sort_unstable();
        let mut rows = rows.into_iter().flat_map(NearRows::each).filter(|near| self.is_live(near, file));
        let (wanted, mut listed) = (std::slice::from_ref(wanted), self.none());
        loop {
            let some: Vec<Near> = rows.by_ref().take(self.options.max_near_rows.clamp(1, ROWS_AT_ONCE)).collect();
            if some.is_empty() {
                return Ok(listed);
            }
            let mut matching = self.matching(&some, wanted, counts).await?;
            let n_matches = matching.len() as u64;
            let night = |near: &Near| &*self.opened.nights[near.night].run.night.dt;
            matching.retain(|(near, sketch)| listed.has_place_for(near.distance, *sketch, night(near)));
            let matches = self.described(&matching, wanted, file, counts).await?;
            listed.add(n_matches, matches.into_iter().map(|(_, found)| found));
        }
    }

    fn none(&self) -> Listed {
        Listed::new(self.options.max_matches)
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
        let Some(mut rows) = batch.near(&runs, store, &self.memory, &counts).await? else {
            return Ok(Joined::TooMany);
        };
        rows.retain(|near| self.is_live(near, RunFile::Fingerprints));
        rows.sort_unstable();
        let matching = self.matching(&rows, &wanted_near, &counts).await?;
        if matching.len() > self.options.max_matching_rows {
            return Ok(Joined::TooMany);
        }
        let mut of_queries = vec![Vec::new(); wanted_near.len()];
        for (query, found) in self.described(&matching, &wanted_near, RunFile::Fingerprints, &counts).await? {
            of_queries[query as usize].push(found);
        }
        let is_near = |wanted: &&Wanted| matches!(wanted, Wanted::Near(_));
        let others = wanted.iter().filter(|wanted| !is_near(wanted)).copied().collect();
        let others: Vec<Answer> = self.one_by_one(others).try_collect().await?;
        let (mut of_queries, mut others) = (of_queries.into_iter(), others.into_iter());
        let answer = |wanted: &Wanted| match wanted {
            Wanted::Near(_) => of_queries.next().map(|matches| {
                let mut listed = self.none();
                listed.add(matches.len() as u64, matches);
                self.answer_of(wanted, listed)
            }),
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

    /// Returns the rows whose fingerprints are near, in no particular order.
    async fn candidates(&self, fingerprint: u64, counts: &Counts) -> Result<Vec<NearRows>> {
        let Opened { store, nights, indexes, scanned, .. } = &*self.opened;
        let limit = (self.options.kernel, self.options.max_distance);
        let mut scans = Vec::new();
        for &night in scanned {
            let run = (night, &*nights[night].run);
            scans.push(scan(run, store, &self.memory, fingerprint, limit, counts).boxed());
        }
        let mut near = at_once(scans).await?;
        for index in indexes {
            let found = index.tables.near(self.options.kernel, fingerprint, counts).await?;
            let of_night = |found: NearRows| index.nights[found.run].map(|night| NearRows { run: night, ..found });
            near.extend(found.into_iter().filter_map(of_night));
        }
        Ok(near)
    }

    /// Returns the rows of the short texts that have a hash.
    async fn short(&self, text_hash: TextHash) -> Result<Vec<NearRows>> {
        let mut of_nights = Vec::new();
        for (night, OpenNight { run, .. }) in self.opened.nights.iter().enumerate() {
            if run.night.run.n_short > 0 {
                of_nights.push(self.short_of(night, run, text_hash).boxed());
            }
        }
        at_once(of_nights).await
    }

    async fn short_of(&self, night: usize, run: &OpenRun, text_hash: TextHash) -> Result<Vec<NearRows>> {
        let hashes = run.short_hashes(&self.opened.store).await?;
        let first = hashes.partition_point(|hash| *hash < text_hash);
        let n_equal = hashes[first..].partition_point(|hash| *hash == text_hash);
        let mut rows = Vec::new();
        (first..first + n_equal).for_each(|row| NearRows::add(&mut rows, night, row_number(row), 0));
        Ok(rows)
    }

    fn answer_of(&self, wanted: &Wanted, listed: Listed) -> Answer {
        let (n_matches, matches) = listed.in_order();
        let (fingerprint, reason) = match wanted {
            Wanted::Near(near) => (Some(self.profile.hex(near.fingerprint)), None),
            Wanted::Same(_) => (None, Some("too_short")),
            Wanted::Nothing => (None, Some("empty")),
        };
        Answer { fingerprint, short: matches!(wanted, Wanted::Same(_)), reason, n_matches, matches, read: None }
    }
}
