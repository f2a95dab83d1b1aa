//! The `join` command: it reads fingerprints datasets and writes pairs.

use std::sync::Arc;
use std::time::Instant;

use nearprint_fault::{Fault, Part, Result, key, words};
use nearprint_join::{LossLimit, Origin};
use nearprint_profile::JoinConfig;
use nearprint_storage::{IfExists, Progress, Storage};
use nearprint_store::{Existing, ExistingDocuments, ExistingFile, Store};
use nearprint_tasks::{MapCounts, dataset};
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::CommandContext;
use crate::operators::reduce::SpillStats;
use crate::overlaps;
use crate::resources::Resources;
use crate::stages::existing::ReferenceNames;
use crate::stages::join::{Join, NearDuplicates, PairCounts, PairRules, PairsMode};

/// The stages of a join of which the progress is shown: load, tables, join, publish.
const N_STEPS: u32 = 4;

/// The request of a join.
#[derive(Debug, Clone)]
pub struct JoinRequest {
    /// The dataset of the query batch.
    pub queries: String,
    /// The existing dataset, or a store.
    pub existing: Option<String>,
    /// The queries are joined with each other.
    pub itself: bool,
    /// The place of `pairs`.
    pub output: String,
    /// The bits of the fingerprints, 32 or 64.
    pub bits: u32,
    /// The distances of pairs.
    pub join: JoinConfig,
    /// The pairs that are written.
    pub pairs: PairsMode,
    /// The most pairs that `all` may write.
    pub max_pairs: u64,
    /// Says whether an existing output may be replaced.
    pub if_exists: IfExists,
}

/// The summary of the `join` command.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct JoinSummary {
    /// The place of the pairs.
    pub output: String,
    /// The number of query fingerprints.
    pub n_queries: u64,
    /// The number of distinct query fingerprints.
    pub n_distinct_queries: u64,
    /// The number of existing fingerprints.
    pub n_existing: u64,
    /// The pairs that were written.
    pub pairs: PairsMode,
    /// The counts of the pairs.
    #[serde(flatten)]
    pub counts: PairCounts,
    /// The number of permuted tables of the queries.
    pub n_tables: usize,
    /// The number of slices of the queries that were joined one after another, so that their tables fit the memory
    /// limit.
    pub n_parts: usize,
    /// The instructions of the join.
    pub kernel: &'static str,
    /// The candidates, and the data that was read for the join.
    pub map: MapCounts,
    /// The data that the reduce spilled.
    pub spill: SpillStats,
    /// The seconds of the join alone, from reading to pairs.
    pub join_seconds: f64,
}

/// Joins fingerprints datasets, and writes the pairs.
///
/// ```
/// use nearprint_pipeline::{JoinRequest, PairsMode, Resources, join};
/// use nearprint_storage::{IfExists, Progress, Storage};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let temp = tempfile::tempdir()?;
/// # let documents = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sample_data/documents/dt=2026-11-19");
/// # let fingerprints = temp.path().join("fingerprints").display().to_string();
/// # let output = temp.path().join("joined").display().to_string();
/// let (storage, resources, progress) = (Storage::default(), Resources::default(), Progress::default());
/// let profile = nearprint_profile::by_name("default")?;
/// # use nearprint_pipeline::{FingerprintRequest, fingerprint};
/// # let all = FingerprintRequest::of(&documents.into(), &Default::default(), &profile, &Default::default());
/// # fingerprint(&storage, &all, &fingerprints, IfExists::Refuse, &resources, &progress).await?;
/// // `fingerprints` is the output of `fingerprint`.
/// let request = JoinRequest {
///     queries: fingerprints,
///     existing: None,
///     itself: true,
///     output,
///     bits: profile.bits,
///     join: profile.join,
///     pairs: PairsMode::Forest,
///     max_pairs: 1_000_000,
///     if_exists: IfExists::Refuse,
/// };
/// let done = join(&storage, &request, &resources, &progress).await?;
/// assert_eq!((done.n_existing, done.counts.n_new_existing), (0, 0));
/// assert!((1..done.n_queries).contains(&done.counts.n_pairs));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// # Errors
/// The input is bad, the output exists, or there are more than `max_pairs` pairs.
pub async fn join(
    storage: &Storage,
    request: &JoinRequest,
    resources: &Resources,
    progress: &Progress,
) -> Result<JoinSummary> {
    if request.existing.is_none() && !request.itself {
        let reason =
            words!["nothing to join the queries with: give ", key("existing"), " PATH, ", key("self"), ", or both"];
        return Err(Fault::usage(reason));
    }
    let own_verifier = request.join.verifier(request.bits)?;
    let verifier = request.join.verifier_of_earlier(request.bits)?;
    let output = storage.folder(&request.output)?;
    let mut inputs = vec![("queries", request.queries.as_str())];
    inputs.extend(request.existing.as_deref().map(|existing| ("existing", existing)));
    overlaps::refuse_folder(storage, &output.join("pairs"), &request.output, &inputs)?;
    nearprint_parquet::refuse_existing(&output.join("pairs"), request.if_exists).await?;
    let needs_sketch = verifier.max_sketch_distance.is_some();
    let queries = match dataset::open(storage, &request.queries, needs_sketch).await {
        Ok(files) => files,
        Err(fault) => return Err(not_queries(storage, &request.queries, fault).await),
    };
    let existing = match &request.existing {
        Some(pattern) => existing_files(storage, pattern, needs_sketch).await?,
        None => Existing::default(),
    };
    dataset::refuse_mixed_configs(queries.iter().chain(existing.files.iter().map(|f| &f.parquet)))?;
    progress.begin(N_STEPS);
    progress.start("load queries", "fingerprints", 0);
    let batch = dataset::load(&queries, request.bits, needs_sketch, resources.counted_bytes()).await?;
    let started = Instant::now();
    let (itself, bits, decides, loss) = (request.itself, request.bits, None, LossLimit::NONE);
    let rules = PairRules { itself, bits, verifier, own_verifier, decides, loss };
    let join = Join { existing, references: ReferenceNames::default(), rules, judge: None, held_bytes: 0 };
    let near = NearDuplicates::new(batch, join, CommandContext { storage, resources, progress, engine: None }).await?;
    let temp = near.runner.temp.path();
    let (staged, counts, spill) = match request.pairs {
        PairsMode::All => near.write_all(temp, request.max_pairs).await?,
        PairsMode::Forest => {
            let (staged, counts, spill, _) = near.write_forest(temp).await?;
            (staged, counts, spill)
        }
    };
    let join_seconds = started.elapsed().as_secs_f64();
    nearprint_parquet::publish(&output, &staged, request.if_exists, progress).await?;
    Ok(JoinSummary {
        output: output.url().to_owned(),
        n_queries: near.batch.len() as u64,
        n_distinct_queries: near.rows.n_values() as u64,
        n_existing: near.n_existing(),
        pairs: request.pairs,
        counts,
        n_tables: near.n_tables(),
        n_parts: near.n_parts(),
        kernel: near.kernel(),
        map: near.map_counts(),
        spill,
        join_seconds,
    })
}

/// Returns the store at a place, if it is that of one.
async fn store_at(storage: &Storage, pattern: &str) -> Result<Option<Store>> {
    if pattern.contains(['*', '?', '[']) {
        return Ok(None);
    }
    Store::open_existing(&storage.folder(pattern)?).await
}

/// Returns the fault of queries that are no dataset: that they are a store, or else the one that was found.
async fn not_queries(storage: &Storage, queries: &str, found: Fault) -> Fault {
    match store_at(storage, queries).await {
        Ok(Some(_)) => {
            let reason = words![
                key("queries"),
                " ",
                Part::Place,
                " is a store, and only ",
                key("existing"),
                " may be one: give fingerprints, which `nearprint fingerprint` writes"
            ];
            Fault::usage(reason).at(queries)
        }
        _ => found,
    }
}

/// Returns the files of a dataset, or of a store's nights.
async fn existing_files(storage: &Storage, pattern: &str, needs_sketch: bool) -> Result<Existing> {
    if let Some(opened) = store_at(storage, pattern).await? {
        return opened.all_existing().await;
    }
    let files = dataset::open(storage, pattern, needs_sketch).await?;
    let numbered = dataset::are_numbered(&files)?;
    let mut n_live_rows = 0;
    let existing = files.into_iter().map(|parquet| {
        let numbered_from = numbered.then_some(n_live_rows);
        n_live_rows += parquet.n_rows();
        let documents = ExistingDocuments::Here { shadowed: Arc::default(), restored: Arc::default() };
        ExistingFile { parquet, documents, origin: Origin::OWN, numbered_from }
    });
    let files = existing.collect();
    Ok(Existing { files, n_live_rows })
}
