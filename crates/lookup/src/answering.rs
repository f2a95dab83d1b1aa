//! The answers of a lookup: of one query by an index, of many also by a join.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::{Arc, Mutex};

use futures::future::FutureExt;
use futures::{Stream, StreamExt, TryStreamExt};
use nearprint_fault::{Fault, Result};
use nearprint_fingerprint::Sketch;
use nearprint_join::Key;
use nearprint_storage::{blocking, in_pool, locked, of_task, row_number};
use rayon::prelude::*;

use crate::answer::{Answer, ReadForAnswer};
use crate::batch::Batch;
use crate::budget::{Taken, Turn, Turns};
use crate::counts::Counts;
use crate::lookup::{Lookup, Opened};
use crate::matching::{RunFile, at_once};
use crate::near::{Asked, Near, NearRows, each_once, scan};
use crate::nearest::{NearestMatches, match_bytes};
use crate::nights::{OpenNight, OpenRun, TextHash};
use crate::query::{Query, WhenJoined};
use crate::stored::Stored;
use crate::tables::IndexedRows;
use crate::target::{Fingerprinted, Target};

/// The nanoseconds in which a core reads and compares a page of an index, as measured.
const PAGE_NS: f64 = 7_000.0;
/// The nanoseconds in which a core compares a fingerprint that is in memory, as measured.
const SCANNED_ROW_NS: f64 = 0.5;
/// The nanoseconds that a join takes for each fingerprint on one core, at the least.
const LEAST_JOINED_ROW_NS: f64 = 0.4;

/// The nanoseconds in which a sketch is read for one of its words, from a local disk that has none of it in memory, as measured.
const SKETCH_READ_NS: f64 = 50.0;

/// The most near rows of a query alone that are held at once, and the bytes of each: as a row that is near, as one that
/// matches, and as one of its night.
const ROWS_AT_ONCE: usize = 1 << 16;
const ROW_BYTES: usize = 100;
/// The most stretches of near rows that a query keeps while it waits for its turn. Others are looked for again.
const STRETCHES_THAT_WAIT: usize = 1 << 10;
/// The bytes that a text takes until it has a fingerprint, for each of its own.
const TEXT_BYTES: usize = 16;

/// The outcome of the attempt to join queries.
enum Joined {
    Answers(Vec<Answer>),
    /// More rows are near than a join holds.
    TooMany,
    /// One by one, the queries take less time.
    DoesNotPay,
}

/// Returns what documents of the store look for, by their ids.
fn targets(stored: HashMap<String, Stored>) -> HashMap<String, Target> {
    stored.into_iter().map(|(id, stored)| (id, stored.target)).collect()
}

impl Lookup {
    /// Returns every document of the store within the limits, and no other. Many queries may be answered at the same
    /// time.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](nearprint_fault::ErrorKind::Usage) if the fingerprint has more bits than the profile's;
    /// [`ErrorKind::LocalIo`](nearprint_fault::ErrorKind::LocalIo) if the answer lists more matches than the options
    /// have memory for; an error if a file of the store is damaged or cannot be read.
    pub async fn answer(&self, query: &Query) -> Result<Answer> {
        self.answer_in_turn(query, Turn::default()).await.map(|(answer, _)| answer)
    }

    /// Answers as [`answer`](Self::answer) does. The query takes the memory of its rows when its turn has come. Whoever
    /// asks keeps what it took as long as the answer. Answers that are given in an order need [`Turns`]; others take the
    /// default.
    ///
    /// # Errors
    /// Those of [`answer`](Self::answer).
    pub async fn answer_in_turn(&self, query: &Query, turn: Turn) -> Result<(Answer, Taken)> {
        let counts = Counts::default();
        let stored = match query {
            Query::Document(id) => self.stored(&[id]).await?,
            Query::Text(_) | Query::Fingerprint { .. } => HashMap::new(),
        };
        let document = stored.values().next().map(|stored| stored.document.clone());
        let (answer, taken) = self.answer_to(&self.wanted(query, targets(stored)).await?, &counts, turn).await?;
        let read = ReadForAnswer { pages_read: counts.pages(), bytes_read: counts.bytes() };
        Ok((Answer { document, read: Some(read), ..answer }, taken))
    }

    /// Returns what a query looks for. A long text takes seconds, in which a thread that others wait for must not
    /// compute.
    async fn wanted(&self, query: &Query, stored: HashMap<String, Target>) -> Result<Target> {
        let n_bytes = if let Query::Text(text) = query { text.len() } else { 0 };
        let taken = self.reads.take(n_bytes.saturating_mul(TEXT_BYTES)).await?;
        let (profile, query) = (Arc::clone(&self.profile), query.clone());
        let wanted = move || {
            // It is computed even if nobody waits for it any more.
            let _taken = taken;
            Target::of(&profile, &query, &stored)
        };
        blocking("query", wanted).await
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
        let id = |query: &'_ Query| match query {
            Query::Document(id) => Some(id.clone()),
            Query::Text(_) | Query::Fingerprint { .. } => None,
        };
        let ids: Vec<Option<String>> = queries.iter().map(id).collect();
        let asked: Vec<&str> = ids.iter().flatten().map(String::as_str).collect();
        let stored = if asked.is_empty() { HashMap::new() } else { self.stored(&asked).await? };
        let document = |id: &Option<String>| Some(stored.get(id.as_ref()?)?.document.clone());
        let mut documents = ids.iter().map(document).collect::<Vec<_>>().into_iter();
        let (lookup, stored) = (self.clone(), targets(stored));
        let wanted = blocking("query", move || {
            let of = |query: &Query| Target::of(&lookup.profile, query, &stored);
            let wanted: Vec<Result<Target>> = in_pool(|| queries.par_iter().map(of).collect());
            Ok::<_, Fault>(wanted)
        });
        let all = wanted.await?;
        // A query that is refused looks for nothing, and has its error in place of the answer.
        let wanted: Vec<Target> = all.iter().map(|of| *of.as_ref().unwrap_or(&Target::Nothing)).collect();
        let mut all = all.into_iter();
        let mut give = |answer: Answer| {
            let document = documents.next().flatten();
            match all.next() {
                Some(Err(error)) => each(Err(error)),
                _ => each(Ok(Answer { document, ..answer })),
            }
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
                    while let Some((answer, _taken)) = of_range.try_next().await? {
                        if let broken @ ControlFlow::Break(_) = give(answer) {
                            return Ok(broken);
                        }
                    }
                }
            }
        }
        debug_assert_eq!(all.len(), 0, "each query has got its answer or its error");
        Ok(ControlFlow::Continue(()))
    }

    /// Answers each query alone, several at the same time, and gives the answers in their order.
    fn one_by_one(&self, wanted: Vec<Target>) -> impl Stream<Item = Result<(Answer, Taken)>> + Send {
        // Whoever takes the answers waits for nobody.
        let (lookup, mut turns) = (self.clone(), Turns::new(usize::MAX));
        let answer = move |wanted: Target| {
            let (lookup, turn) = (lookup.clone(), turns.another());
            async move {
                let answered = tokio::spawn(async move { lookup.answer_to(&wanted, &Counts::default(), turn).await });
                of_task("query", answered.await)
            }
        };
        futures::stream::iter(wanted).map(answer).buffered(2 * self.options.threads.max(1))
    }

    async fn answer_to(&self, wanted: &Target, counts: &Counts, turn: Turn) -> Result<(Answer, Taken)> {
        let (listed, taken) = match wanted {
            Target::Nothing => (self.none(), Taken::default()),
            Target::Same { text_hash, itself } => {
                let same = Fingerprinted { fingerprint: 0, sketch: None, text_hash: Some(*text_hash), itself: *itself };
                let rows = self.short(*text_hash).await?;
                let taken = self.rows.take_in_turn(self.row_bytes(&rows, RunFile::Short).await?, turn).await?;
                (self.listed(rows, &same, RunFile::Short, counts).await?, taken)
            }
            Target::Near(near) => {
                let mut rows = self.candidates(near, counts).await?;
                let bytes = self.row_bytes(&rows, RunFile::Fingerprints).await?;
                let is_kept = rows.len() <= STRETCHES_THAT_WAIT;
                if !is_kept {
                    rows = Vec::new();
                }
                let taken = self.rows.take_in_turn(bytes, turn).await?;
                if !is_kept {
                    rows = self.candidates(near, &Counts::default()).await?;
                }
                (self.listed(rows, near, RunFile::Fingerprints, counts).await?, taken)
            }
        };
        let mut taken = taken;
        taken.keep(listed.bytes());
        Ok((self.answer_of(wanted, listed), taken))
    }

    /// Returns the bytes that near rows, which are sorted, take while their documents are read, and those that the answer
    /// lists.
    async fn row_bytes(&self, rows: &[NearRows], file: RunFile) -> Result<usize> {
        let n_rows = rows.iter().map(|near| near.rows.n as usize).fold(0, usize::saturating_add);
        let n_listed = if self.options.max_matches == 0 { n_rows } else { n_rows.min(self.options.max_matches) };
        let listed = n_listed.saturating_mul(match_bytes(self.document_bytes(rows, file).await?));
        let held = ROW_BYTES * n_rows.min(self.rows_at_once()) + 2 * size_of_val(rows);
        Ok(held + listed.min(self.options.max_answer_bytes))
    }

    fn rows_at_once(&self) -> usize {
        self.options.max_near_rows.min(ROWS_AT_ONCE).min(self.rows.bytes() / 4 / ROW_BYTES).max(1)
    }

    /// Reads the documents of near rows, which are sorted, some at a time, and keeps those that the answer lists.
    async fn listed(
        &self,
        rows: Vec<NearRows>,
        wanted: &Fingerprinted,
        file: RunFile,
        counts: &Counts,
    ) -> Result<NearestMatches> {
        let is_match = |near: &Near| self.is_live(near, file) && !wanted.is_itself(near);
        let mut rows = rows.into_iter().flat_map(NearRows::each).filter(is_match);
        let (wanted, listed) = (std::slice::from_ref(wanted), Mutex::new(vec![self.none()]));
        loop {
            let some: Vec<Near> = rows.by_ref().take(self.rows_at_once()).collect();
            if some.is_empty() {
                break;
            }
            let mut matching = self.matching(&some, wanted, counts).await?;
            drop(some);
            {
                let listed = &mut locked(&listed)[0];
                listed.count(matching.len() as u64);
                matching.retain(|found| listed.has_place_for(self.distances(found)));
            }
            self.list(&matching, (wanted, &listed), file, counts).await?;
        }
        let listed = locked(&listed).pop();
        listed.ok_or_else(|| Fault::internal("query", "no list"))
    }

    fn none(&self) -> NearestMatches {
        NearestMatches::new(self.options.max_matches, self.options.max_answer_bytes)
    }

    /// Joins queries with all fingerprints, if that takes less time than to answer them one by one.
    async fn joined(&self, wanted: &[Target]) -> Result<Joined> {
        let near = |wanted: &Target| if let Target::Near(near) = wanted { Some(*near) } else { None };
        let wanted_near: Vec<Fingerprinted> = wanted.iter().filter_map(near).collect();
        let [first, _, ..] = wanted_near.as_slice() else { return Ok(Joined::DoesNotPay) };
        let Opened { store, nights, .. } = &*self.opened;
        let n_rows: u64 = nights.iter().map(OpenNight::n_rows).sum();
        #[allow(clippy::cast_precision_loss, reason = "an estimate")]
        let (alone, least) = match self.options.joined {
            WhenJoined::IfFaster => {
                let alone = wanted_near.len() as f64 * self.nanoseconds_alone(first);
                (alone, LEAST_JOINED_ROW_NS * n_rows as f64)
            }
            WhenJoined::Always => (f64::INFINITY, 0.0),
            WhenJoined::Never => return Ok(Joined::DoesNotPay),
        };
        if alone < least {
            return Ok(Joined::DoesNotPay);
        }
        let asked = self.asked_by_key(&wanted_near);
        let of_key = |(key, asked)| Batch::new(key, asked, self.profile.config().bits, n_rows, &self.options);
        let batches: Vec<Batch> = asked.into_iter().map(of_key).collect();
        let has_words = wanted_near.iter().any(|near| near.sketch.is_some());
        let is_read = |night: &&OpenNight| has_words && !night.run.has_words_in_memory();
        let n_read: u64 = nights.iter().filter(is_read).map(OpenNight::n_rows).sum();
        #[allow(clippy::cast_precision_loss, reason = "an estimate")]
        let reading = f64::from(self.verifier.words.n) * SKETCH_READ_NS * n_read as f64;
        if alone < reading + batches.iter().map(Batch::nanoseconds).sum::<f64>() {
            return Ok(Joined::DoesNotPay);
        }
        let (counts, runs) = (Counts::default(), nights.iter().map(|night| &*night.run).collect::<Vec<&OpenRun>>());
        let mut rows = Vec::new();
        for batch in batches {
            let Some(more) = batch.near(&runs, store, (&self.memory, &self.reads), &counts).await? else {
                return Ok(Joined::TooMany);
            };
            rows.extend(more);
            // Of a row that several keys have found, what the fingerprints say of it comes first.
            rows.sort_unstable_by_key(|near: &Near| (near.night, near.row, near.query, near.distance.is_none()));
            rows.dedup_by_key(|near| (near.night, near.row, near.query));
            if rows.len() > self.options.max_near_rows {
                return Ok(Joined::TooMany);
            }
        }
        let is_itself = |near: &Near| wanted_near[near.query as usize].is_itself(near);
        rows.retain(|near| self.is_live(near, RunFile::Fingerprints) && !is_itself(near));
        let matching = self.matching(&rows, &wanted_near, &counts).await?;
        if matching.len() > self.options.max_matching_rows {
            return Ok(Joined::TooMany);
        }
        let mut of_queries: Vec<NearestMatches> = wanted_near.iter().map(|_| self.none()).collect();
        matching.iter().for_each(|found| of_queries[found.query as usize].count(1));
        let of_queries = Mutex::new(of_queries);
        self.list(&matching, (&wanted_near, &of_queries), RunFile::Fingerprints, &counts).await?;
        let mut of_queries = std::mem::take(&mut *locked(&of_queries)).into_iter();
        let is_near = |wanted: &&Target| matches!(wanted, Target::Near(_));
        let others = wanted.iter().filter(|wanted| !is_near(wanted)).copied().collect();
        let others = self.one_by_one(others).map_ok(|(answer, _)| answer);
        let mut others = others.try_collect::<Vec<Answer>>().await?.into_iter();
        let answer = |wanted: &Target| match wanted {
            Target::Near(_) => of_queries.next().map(|listed| self.answer_of(wanted, listed)),
            Target::Same { .. } | Target::Nothing => others.next(),
        };
        let answers: Vec<Answer> = wanted.iter().filter_map(answer).collect();
        if answers.len() != wanted.len() {
            let reason = format!("{} answers for {} queries", answers.len(), wanted.len());
            return Err(Fault::internal("query", reason));
        }
        Ok(Joined::Answers(answers))
    }

    /// Returns what the queries are joined by: for each key, its values and the numbers of their queries. Without a sketch, a
    /// query has no words.
    fn asked_by_key(&self, wanted: &[Fingerprinted]) -> Vec<(Key, Vec<(u64, u32)>)> {
        let fingerprints = (Key::Fingerprint, wanted.iter().map(|near| near.fingerprint).zip(0..).collect());
        let words = (0..self.verifier.words.n).map(|word| {
            let of_query = |(near, query): (&Fingerprinted, u32)| Some((near.sketch?.word(word), query));
            (Key::Word(word), wanted.iter().zip(0..).filter_map(of_query).collect())
        });
        std::iter::once(fingerprints).chain(words).collect()
    }

    /// Returns the fingerprint of a query, and after it the words that are keys, if it has a sketch.
    fn values_of(&self, near: &Fingerprinted) -> Vec<u64> {
        let words = |sketch: Sketch| (0..self.verifier.words.n).map(move |word| sketch.word(word));
        std::iter::once(near.fingerprint).chain(near.sketch.into_iter().flat_map(words)).collect()
    }

    /// Estimates the nanoseconds that a query alone takes on one core.
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    fn nanoseconds_alone(&self, near: &Fingerprinted) -> f64 {
        let Opened { indexes, scanned, words_scanned, .. } = &*self.opened;
        let values = self.values_of(near);
        let n_pages: usize = indexes.iter().map(|index| index.tables.n_pages(&values)).sum();
        let of_words = (values.len() - 1) as u64 * self.opened.n_rows_of(words_scanned);
        PAGE_NS * n_pages as f64 + SCANNED_ROW_NS * (self.opened.n_rows_of(scanned) + of_words) as f64
    }

    /// Returns the rows that are near in a key, each once, sorted.
    async fn candidates(&self, near: &Fingerprinted, counts: &Counts) -> Result<Vec<NearRows>> {
        let Opened { store, nights, indexes, scanned, words_scanned, .. } = &*self.opened;
        let (kernel, keys, values) = (self.options.kernel, self.options.keys, self.values_of(near));
        let (fingerprint, words) = (Asked::Fingerprint(values[0]), &values[1..]);
        let mut scans = Vec::new();
        let mut scanning = |night: usize, asked, max_distance| {
            let run = (night, &*nights[night].run);
            scans.push(scan(run, store, (&self.memory, &self.reads), asked, (kernel, max_distance), counts).boxed());
        };
        scanned.iter().for_each(|&night| scanning(night, fingerprint, keys.max_distance));
        if !words.is_empty() {
            words_scanned.iter().for_each(|&night| scanning(night, Asked::Words(words), keys.max_word_distance));
        }
        let mut found = at_once(scans).await?;
        for index in indexes {
            // Words of which it lacks one are scanned.
            let asked = if index.tables.have_words(keys.words) { &values[..] } else { &values[..1] };
            let near = index.tables.near(kernel, asked, counts).await?;
            let of_night =
                |IndexedRows { run, rows }: IndexedRows| index.nights[run].map(|night| NearRows { night, rows });
            found.extend(near.into_iter().filter_map(of_night));
        }
        Ok(each_once(found))
    }

    /// Returns the rows of the short texts that have a hash, sorted.
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
        (first..first + n_equal).for_each(|row| NearRows::add(&mut rows, night, row_number(row), Some(0)));
        Ok(rows)
    }

    fn answer_of(&self, wanted: &Target, listed: NearestMatches) -> Answer {
        let (n_matches, matches) = listed.in_order();
        let (fingerprint, reason) = match wanted {
            Target::Near(near) => (Some(self.profile.hex(near.fingerprint)), None),
            Target::Same { .. } => (None, Some("too_short")),
            Target::Nothing => (None, Some("empty")),
        };
        let short = matches!(wanted, Target::Same { .. });
        Answer { fingerprint, short, reason, document: None, n_matches, matches, read: None }
    }
}
