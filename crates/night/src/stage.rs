//! A night up to its publication: documents are read, joined and decided, and what is published of them is written into a folder
//! of the run's own.

use std::path::Path;
use std::sync::Arc;

use nearprint_documents::{BadFile, Documents};
use nearprint_fault::{Fault, Result};
use nearprint_join::{Column, Origin, QueryRows};
use nearprint_parquet::StagedFile;
use nearprint_pipeline::{
    CommandContext, DecidedNight, DecidedOrphans, DecisionBasis, Decisions, ExistingOfAll, Families, FingerprintCounts,
    Fingerprinted, Join, JudgeCounts, NearDuplicates, NightJudge, NightsChange, PairCounts, PairRules, PairsMode,
    Redeciding, RemainingTime, RowSources, SpillStats, StubSearch, Stubs, TextsElsewhere, TextsOfRevisits, Tonight,
    count_hosts, existing_of_all, fingerprint_documents, recrawls as recrawls_of, refuse_beyond_driver, write_hosts,
    write_quarantine, write_run, write_skipped,
};
use nearprint_storage::in_pool;
use nearprint_store::{Night, RecrawlCounts, Recrawls};
use nearprint_tasks::QueryBatch;
use rayon::prelude::*;

use super::measure::lost_most;
use super::measured::MeasuredNight;
use super::plan::Plan;
use super::publish::Staged;
use super::references::JoinedReference;
use super::request::RunRequest;
use super::results_left::overruled;
use super::summary::RunCounts;

/// The stages of a night of which the progress is shown, with one join: fingerprint, earlier nights, tables, join, decide,
/// publish, and commit.
const N_STEPS: u32 = 7;

/// A night that is being made.
pub(crate) struct Staging<'a> {
    work: CommandContext<'a>,
    request: &'a RunRequest,
    plan: &'a Plan,
    /// The folder for what is published.
    folder: &'a Path,
    rules: PairRules,
    /// The nights that its commit makes the store forget.
    leaving: Vec<&'a Night>,
}

/// What is known of the night's documents since they were read.
struct NightRead {
    counts: FingerprintCounts,
    bad_files: Vec<BadFile>,
    recrawls: Recrawls,
    by_recrawl: RecrawlCounts,
    sources: RowSources,
    stubs: Stubs,
    files: Vec<StagedFile>,
}

/// The documents as they were joined and decided.
struct NightJoined {
    batch: Arc<QueryBatch>,
    rows: Arc<QueryRows>,
    decisions: Decisions,
    references: Vec<JoinedReference>,
    pairs: PairCounts,
    judge: Option<JudgeCounts>,
    spill: SpillStats,
    n_existing: u64,
    n_tables: usize,
    n_parts: usize,
    files: Vec<StagedFile>,
}

impl<'a> Staging<'a> {
    /// Prepares a night, whose results will be below a folder.
    ///
    /// # Errors
    /// Settings of the join do not go together.
    pub(crate) fn new(
        work: CommandContext<'a>,
        request: &'a RunRequest,
        plan: &'a Plan,
        folder: &'a Path,
    ) -> Result<Self> {
        Ok(Self { work, request, plan, folder, rules: request.pair_rules()?, leaving: plan.leaving(request) })
    }

    /// Does everything up to publication.
    ///
    /// # Errors
    /// The input is bad, a file of a store is damaged or cannot be read, or memory or disk are too small.
    pub(crate) async fn stage(&self, documents: Documents) -> Result<Staged> {
        if self.work.engine.is_some() {
            refuse_beyond_driver(documents.n_rows(), self.work.resources)?;
        }
        self.work.progress.begin(self.n_steps());
        let (batch, texts, read) = self.read(documents).await?;
        let joined = self.join(batch, texts, &read).await?;
        self.write(read, joined).await
    }

    fn n_steps(&self) -> u32 {
        let judge_steps = match (self.request.profile.judge(), self.work.engine) {
            (None, _) => 0,
            (Some(_), None) => 1,
            // The texts are read first.
            (Some(_), Some(_)) => 2,
        };
        N_STEPS + judge_steps + u32::from(self.request.pairs == PairsMode::All)
    }

    /// Reads and fingerprints the documents, and takes the stubs away. Returns the rest, and what brings the words of texts for
    /// the judge.
    async fn read(&self, documents: Documents) -> Result<(QueryBatch, Option<TextsElsewhere>, NightRead)> {
        let Self { work, request, plan, folder, .. } = self;
        let (ahead, earlier) = (self.expected_ahead().await?, self.texts_of_revisits());
        let fingerprints = &request.fingerprint_request();
        let mut done = fingerprint_documents(fingerprints, documents, Some(earlier), ahead, *work).await?;
        work.progress.start("earlier nights", "files", 0);
        let mut recrawls = recrawls_of(&plan.store, &done.batch, &request.dt).await?;
        let by_recrawl = recrawls.counts(done.batch.n_rows);
        let mut sources = RowSources::of(&done.batch);
        let search = StubSearch {
            store: &plan.store,
            batch: &done.batch,
            sources: &sources,
            recrawls: &recrawls,
            verifier: self.rules.own_verifier,
            rules: request.stubs,
            resources: work.resources,
        };
        let (stubs, rows) = search.find().await?;
        if stubs.n() > 0 {
            // From here on, the night does not have them.
            sources = sources.without(&rows);
            done.batch = done.batch.without(&rows);
            recrawls = recrawls_of(&plan.store, &done.batch, &request.dt).await?;
        }
        done.batch.put_first(|row| recrawls.is_incumbent(row));
        // Of equal texts, a record that has the text stays, rather than a revisit that has another document's.
        done.batch.put_revisits_last(|row| recrawls.is_same(row));
        // The keep order has been made of them.
        done.batch.lengths = Column::default();
        let mut files = write_skipped(&done.batch, folder, "skipped")?;
        files.extend(write_quarantine(&done, folder, "quarantine")?);
        files.extend(stubs.write(folder)?);
        let bad_files = done.bad_files();
        let Fingerprinted { batch, counts, texts, .. } = done;
        Ok((batch, texts, NightRead { counts, bad_files, recrawls, by_recrawl, sources, stubs, files }))
    }

    /// Joins the documents with those of earlier nights and with one another, and decides which are kept.
    async fn join(&self, batch: QueryBatch, texts: Option<TextsElsewhere>, read: &NightRead) -> Result<NightJoined> {
        let Self { work, request, plan, .. } = self;
        // A document that the commit forgets represents none of tonight.
        let own = plan.store.nights_before(&request.dt).without(&self.leaving);
        let stores: Vec<_> = plan.references.nights().chain([own]).collect();
        let ExistingOfAll { existing, short, n_live_rows } = existing_of_all(&stores, &read.recrawls, &batch).await?;
        let judge = request.profile.judge().map(|judge| NightJudge::new(judge, texts));
        let names = plan.references.names();
        let held_bytes = read.recrawls.memory_bytes() + read.sources.memory_bytes();
        let join = Join { existing, references: names.clone(), rules: self.rules, judge, held_bytes };
        let near = NearDuplicates::new(batch, join, *work).await?;
        let (files, pairs, spill, found) = write_pairs(&near, request, self.folder).await?;
        let (n_existing, n_tables, n_parts) = (near.n_existing(), near.n_tables(), near.n_parts());
        let judge = near.judge_counts();
        let (batch, rows) = near.into_batch();
        work.progress.start("decide", "documents", 0);
        let decisions = Decisions::new(&batch, &rows, found, short, names)?;
        let references = plan.references.joined(&n_live_rows);
        Ok(NightJoined {
            batch,
            rows,
            decisions,
            references,
            pairs,
            judge,
            spill,
            n_existing,
            n_tables,
            n_parts,
            files,
        })
    }

    /// Writes what the night publishes, with what it changes about documents of earlier nights.
    async fn write(&self, read: NightRead, joined: NightJoined) -> Result<Staged> {
        let Self { work, request, plan, folder, .. } = self;
        let NightRead { recrawls, sources, stubs, files: mut all, .. } = read;
        let NightJoined { batch, rows, decisions, files: pairs, .. } = joined;
        all.extend(pairs);
        let (batch, rows, decisions, recrawls) = (&batch, &rows, &decisions, &recrawls);
        let families = &Families::of_night(&plan.store.nights_before(&request.dt), batch, decisions, recrawls).await?;
        let run_folder = folder.join("run");
        // Neither reads what the other writes.
        let (written, run) = in_pool(|| {
            rayon::join(
                || decisions.write(batch, recrawls, |row| families.of_row(batch, decisions, row), &stubs, folder),
                || write_run(batch, decisions, recrawls, families, &plan.config_digest, &run_folder),
            )
        });
        all.extend(written?);
        let run = run?;
        let hosts = count_hosts(batch, &sources, decisions, recrawls, &stubs);
        all.extend(write_hosts(&hosts, folder)?);
        let redeciding = Redeciding {
            store: &plan.store,
            dt: &request.dt,
            leaving: &self.leaving,
            references: plan.references.nights().collect(),
            names: plan.references.names(),
            rules: self.rules,
        };
        let tonight = Tonight { batch, rows, decisions, recrawls, families, run: &run };
        let DecidedOrphans { files: redecided, redecisions, n_orphaned, n_restored } =
            redeciding.decide(tonight, folder, *work).await?;
        let run = run.redeciding(&run_folder, &plan.config_digest, &redecisions)?;
        all.extend(redecided);
        all.sort_by(|a, b| a.record.name.cmp(&b.record.name));
        let tonight = DecidedNight { batch, decisions, recrawls, redecisions: &redecisions, run: &run };
        let (store, dt) = (&plan.store, Some(request.dt.as_str()));
        let changes = NightsChange { store, dt, tonight: Some(tonight), leaving: &self.leaving }.write(folder).await?;
        let counts = RunCounts {
            documents: read.counts,
            n_existing: joined.n_existing,
            n_same_id: read.by_recrawl.n_same + read.by_recrawl.n_changed,
            by_recrawl: Some(read.by_recrawl),
            pairs: joined.pairs,
            judge: joined.judge,
            decisions: decisions.counts(&stubs),
            n_orphaned,
            n_restored,
            n_texts: Some(n_texts(batch)),
            stubs: stubs.largest(),
            sources: lost_most(&hosts),
        };
        let overruled = match plan.store.night(&request.dt).is_some_and(|night| run.is_like(&night.run)) {
            true => Vec::new(),
            false => overruled(work.storage, &plan.store, &request.dt, folder).await?,
        };
        Ok(Staged {
            files: all,
            run,
            changes,
            overruled,
            bad_files: read.bad_files,
            measured: MeasuredNight::of(batch, decisions, &hosts, &request.breakers, self.rules.loss),
            counts,
            hosts,
            references: joined.references,
            spill: joined.spill,
            n_tables: joined.n_tables,
            n_parts: joined.n_parts,
        })
    }

    /// Returns the nights that have the texts of revisits: those before the night, also those that its commit makes the store
    /// forget. When a night was made first, it may have forgotten some of these; what it made of a revisit then stands in for them.
    fn texts_of_revisits(&self) -> TextsOfRevisits<'a> {
        let Self { request, plan, .. } = self;
        let published = plan.store.night(&request.dt).filter(|_| plan.store.forgotten().is_some());
        let published = published.map(|night| plan.store.all_nights(Origin::OWN).only(&[night]));
        TextsOfRevisits { earlier: plan.store.nights_before(&request.dt), published }
    }

    /// Expects the time of the joins. An engine has another speed, and nothing is expected of it.
    async fn expected_ahead(&self) -> Result<Option<RemainingTime>> {
        let Self { work, request, plan, .. } = self;
        if work.engine.is_some() {
            return Ok(None);
        }
        let own = plan.store.nights_before(&request.dt).without(&self.leaving);
        let nights = plan.references.nights().chain([own]);
        let existing: Vec<u64> = nights.flat_map(|nights| nights.n_fingerprints()).collect();
        let limits = (self.rules.bits, self.rules.verifier, self.rules.own_verifier);
        let n_joins = 1 + u32::from(request.pairs == PairsMode::All);
        RemainingTime::new(&existing, limits, n_joins, work.resources).await.map(Some)
    }
}

/// Counts the different texts of a batch.
fn n_texts(batch: &QueryBatch) -> u64 {
    let mut hashes: Vec<&[u8; 16]> = batch.rows().filter_map(|row| batch.text_hashes.get(row)).collect();
    in_pool(|| hashes.par_sort_unstable());
    hashes.dedup();
    hashes.len() as u64
}

/// Writes the pairs. Decisions follow from the forest's candidates, whichever pairs are written.
async fn write_pairs(
    near: &NearDuplicates,
    request: &RunRequest,
    folder: &Path,
) -> Result<(Vec<StagedFile>, PairCounts, SpillStats, DecisionBasis)> {
    let (files, pairs, spill, found) = match request.pairs {
        PairsMode::Forest => near.write_forest(folder).await?,
        PairsMode::All => {
            let (files, counts, spill) = near.write_all(folder, request.max_pairs).await?;
            let (more, found) = near.forest_state().await?;
            (files, counts, spill.plus(more), found)
        }
    };
    let nothing = || Fault::internal("forest", "nothing to decide by");
    Ok((files, pairs, spill, found.ok_or_else(nothing)?))
}
