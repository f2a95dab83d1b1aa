//! The judge of a night: reads the texts of the pairs that sketches leave undecided.
//!
//! ```text
//! map tasks ─► undecided pairs of classes, the nearest of each ─► looks at their texts ─► judged pairs ─► reduce
//! ```

use std::fmt::{Display, Formatter};
use std::sync::{Arc, OnceLock};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use nearprint_fault::{Fault, Result};
use nearprint_fingerprint::{Alike, Judge, TextWords};
use nearprint_join::{JudgedPair, JudgedPairs, QueryRows, UndecidedPair};
use nearprint_storage::{Progress, blocking, in_pool, locked};
use nearprint_tasks::{MapContext, QueryBatch, Undecided, WordsOfTexts, judged_pairs, pair_schema};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::operators::probe_exec::Notes;
use crate::operators::task_exec::Tasks;
use crate::stages::texts_elsewhere::TextsElsewhere;

/// What a night's judge read, and what it found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JudgeCounts {
    /// The number of pairs of the night's texts whose sketches left it open whether they are near-duplicates. Texts with
    /// equal fingerprints, sketches and numbers of features count as one.
    pub n_undecided: u64,
    /// The number of these pairs that were read: for each text the nearest, as many as `judge.max_looks` allows.
    pub n_read: u64,
    /// The number of pairs that were near-duplicates by their words in order.
    pub n_edited: u64,
    /// The number of pairs of which one text contains the other, or begins as it does.
    pub n_contained: u64,
}

impl JudgeCounts {
    /// Counts the pairs that a judge found.
    #[must_use]
    pub fn of(n_undecided: u64, n_read: u64, found: &JudgedPairs) -> Self {
        let n_of = |alike| found.iter().filter(|judged| judged.verdict.alike == alike).count() as u64;
        Self { n_undecided, n_read, n_edited: n_of(Alike::Edited), n_contained: n_of(Alike::Contained) }
    }
}

/// The judge of a join. It reads once, however many passes the join has.
pub struct NightJudge {
    pub(crate) judge: Judge,
    /// What brings the words of texts that are not with the documents.
    texts: Option<TextsElsewhere>,
    done: OnceLock<Done>,
}

#[derive(Debug, Clone)]
struct Done {
    pairs: Arc<JudgedPairs>,
    n_undecided: u64,
    n_read: u64,
}

impl NightJudge {
    /// Makes a judge that has read nothing. `texts` brings words that are not with the documents.
    #[must_use]
    pub fn new(judge: Judge, texts: Option<TextsElsewhere>) -> Self {
        Self { judge, texts, done: OnceLock::new() }
    }

    /// Returns whether the pairs are read already.
    pub(crate) fn is_done(&self) -> bool {
        self.done.get().is_some()
    }

    /// Returns the pairs that were taken for near-duplicates; none before the judge has read.
    pub(crate) fn pairs(&self) -> Arc<JudgedPairs> {
        self.done.get().map(|done| Arc::clone(&done.pairs)).unwrap_or_default()
    }

    /// Returns the counts.
    pub(crate) fn counts(&self) -> JudgeCounts {
        let of = |done: &Done| JudgeCounts::of(done.n_undecided, done.n_read, &done.pairs);
        self.done.get().map(of).unwrap_or_default()
    }

    /// Brings the words of the pairs of a pass, if they are not with the documents.
    async fn bring(
        &self,
        (batch, MapContext { rows, progress, .. }): (&QueryBatch, &MapContext),
        undecided: &[UndecidedPair],
        max_bytes: usize,
    ) -> Result<Option<WordsOfTexts>> {
        let Some(texts) = &self.texts else { return Ok(None) };
        // A pair is read if both its texts have words here.
        let first = |class| first_with_words(batch, rows, class);
        let can_be_read = |pair: &&UndecidedPair| first(pair.a).is_some() && first(pair.b).is_some();
        let mut classes: Vec<u32> = undecided.iter().filter(can_be_read).flat_map(|pair| [pair.a, pair.b]).collect();
        classes.sort_unstable();
        classes.dedup();
        let n_documents = classes.iter().map(|&class| rows.members(class).len()).sum();
        let hash = |class| batch.text_hashes.get(first(class)?).copied();
        let mut wanted: Vec<[u8; 16]> = classes.into_iter().filter_map(hash).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let held_bytes = size_of_val(undecided);
        texts.words(&wanted, (n_documents, batch.len()), max_bytes.saturating_sub(held_bytes), progress).await
    }

    /// Reads the pairs of a pass. `n_undecided` is the number of pairs that its map tasks counted. `brought` are the words that
    /// are not with the documents.
    fn read(
        &self,
        (batch, MapContext { rows, progress, .. }): (&QueryBatch, &MapContext),
        undecided: Vec<UndecidedPair>,
        n_undecided: u64,
        brought: Option<&WordsOfTexts>,
    ) -> Result<()> {
        progress.start("judge", "pairs", undecided.len() as u64);
        let first = |class| first_with_words(batch, rows, class);
        let read = |row: u32| match (&batch.words, &brought) {
            (Some(words), _) => words.read(row),
            (None, Some(words)) => batch.text_hashes.get(row).map_or(Ok(None), |hash| words.read(hash)),
            (None, None) => Ok(None),
        };
        let (pairs, n_read) = in_pool(|| read_undecided(&self.judge, read, first, undecided, progress))?;
        let done = Done { pairs: Arc::new(JudgedPairs::new(pairs)), n_undecided, n_read };
        self.done.set(done).map_err(|_| Fault::internal("judge", "the pairs of a join were read twice"))
    }
}

/// Reads pairs of classes, and returns those whose texts are alike and the number of pairs that were read. `read` gives the
/// words of a row, and `first` the row whose words stand for those of a class, or `None` if the night has no words of it.
///
/// # Errors
/// The words of a row cannot be read.
pub fn read_undecided(
    judge: &Judge,
    read: impl Fn(u32) -> Result<Option<TextWords>> + Sync,
    first: impl Fn(u32) -> Option<u32> + Sync,
    mut pairs: Vec<UndecidedPair>,
    progress: &Progress,
) -> Result<(Vec<JudgedPair>, u64)> {
    pairs.sort_unstable_by_key(|pair| (pair.a, pair.b));
    let words_of = |class: u32| first(class).map_or(Ok(None), &read);
    let of_first: Vec<&[UndecidedPair]> = pairs.chunk_by(|x, y| x.a == y.a).collect();
    let read = of_first.into_par_iter().map(|pairs| {
        progress.advance(pairs.len() as u64);
        let (mut alike, mut n_read) = (Vec::new(), 0);
        let Some(one) = words_of(pairs[0].a)? else { return Ok((alike, n_read)) };
        for &pair in pairs {
            let Some(other) = words_of(pair.b)? else { continue };
            n_read += 1;
            alike.extend(judge.of(&one, &other).map(|verdict| JudgedPair { pair, verdict }));
        }
        Ok((alike, n_read))
    });
    let read: Vec<(Vec<JudgedPair>, u64)> = read.collect::<Result<_>>()?;
    let n_read = read.iter().map(|(_, n)| n).sum();
    Ok((read.into_iter().flat_map(|(alike, _)| alike).collect(), n_read))
}

/// Returns the first row of a class that has its text in this night.
fn first_with_words(batch: &QueryBatch, rows: &QueryRows, class: u32) -> Option<u32> {
    rows.members(class).iter().copied().find(|&row| batch.have_words.get(row).is_some())
}

/// The pairs of a pass that the judge takes for near-duplicates, once the map tasks have told all that is undecided.
pub(crate) struct JudgeTask {
    pub(crate) judge: Arc<NightJudge>,
    pub(crate) batch: Arc<QueryBatch>,
    pub(crate) context: Arc<MapContext>,
    pub(crate) undecided: Arc<Undecided>,
    /// The most bytes that the pairs, and what is known of their texts, may take.
    pub(crate) max_bytes: usize,
    pub(crate) told: watch::Receiver<bool>,
    pub(crate) notes: Arc<Notes>,
}

impl Display for JudgeTask {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "looks={}", self.judge.judge.config.max_looks)
    }
}

impl Tasks for JudgeTask {
    const NAME: &'static str = "JudgeExec";

    fn schema(&self) -> SchemaRef {
        pair_schema(self.context.want)
    }

    fn n_tasks(&self) -> usize {
        1
    }

    fn run(self: Arc<Self>, _: usize) -> BoxStream<'static, Result<RecordBatch>> {
        let own = Arc::clone(&self);
        let judged = async move {
            let mut told = own.told.clone();
            told.wait_for(|told| *told).await.map_err(|_| Fault::try_again("the run was cancelled".to_owned()))?;
            if !own.judge.is_done() {
                let (reading, undecided) = (Arc::clone(&own), own.undecided.take());
                let brought = own.judge.bring((&own.batch, &own.context), &undecided, own.max_bytes).await?;
                blocking::<_, Fault>("judge", move || {
                    let JudgeTask { judge, batch, context, notes, .. } = &*reading;
                    let n_undecided = locked(&notes.counts).n_undecided;
                    judge.read((batch, context), undecided, n_undecided, brought.as_ref())
                })
                .await?;
            }
            Ok::<_, Fault>(judged_pairs(&own.context, &own.judge.pairs()))
        };
        let batches = futures::stream::once(judged).try_flatten();
        batches.try_filter_map(move |batch| futures::future::ready(self.notes.take(batch))).boxed()
    }
}
