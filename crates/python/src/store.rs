//! Single queries on a store.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::UInt64Type;
use nearprint_fault::Fault;
use nearprint_fingerprint::Sketch;
use nearprint_join::JoinError;
use nearprint_lookup::{Answer, BadQuestion, Lookup, LookupOptions, LookupProfile, Match, Query, SharedLookup};
use nearprint_profile::{HtmlText, ProfileError, by_name};
use nearprint_storage::{Storage, use_pool};
use nearprint_tokenize::Resources;
use pyo3::prelude::*;
use pyo3::types::PyString;
use tokio::runtime::Runtime;

use crate::call::{Cancelled, Integer, interruptible, no_threads, pool, threads_of};
use crate::error::{Problem, Result};
use crate::input::{Input, Texts, integer, numbers};
use crate::join::{BITS, limit};
use crate::output::Table;

/// A store that answers which of its documents are near a text or a fingerprint. It is opened in the state of its newest
/// commit, and stays there until `refresh`. Several threads may ask it at once.
///
/// Args:
///     path: the store: a folder, or s3://bucket/prefix.
///     profile: the name of the store's profile.
///     html_text: the text that the store's nights took from web pages: "main", "all", or "selector=" and a CSS selector.
///     max_distance: the largest Hamming distance of a match; by default, documents are found by the keys by which nights
///         find earlier documents.
///     max_sketch_distance: the largest distance of two sketches, for queries that are texts; the profile's by default.
///     threads: the most threads of a call, all cores by default.
///
/// Raises:
///     ValueError: there is no such profile, a distance does not fit it, `threads` is out of range, or `html_text` is none
///         of these.
///     Error: there is no store, or it has another profile, or it cannot be read.
///
/// >>> import nearprint, os, tempfile
/// >>> folder = tempfile.TemporaryDirectory()
/// >>> os.makedirs(f"{folder.name}/crawl/dt=2026-11-20")
/// >>> text = "The quick brown fox jumps over the lazy dog near the old river bank."
/// >>> with open(f"{folder.name}/crawl/dt=2026-11-20/pages.jsonl", "w") as pages:
/// ...     _ = pages.write('{"id": "a", "text": "%s"}\n' % text)
/// >>> with open(f"{folder.name}/job.toml", "w") as job:
/// ...     _ = job.write("".join(f'{key} = "{folder.name}/{key}"\n' for key in ["store", "output"]))
/// >>> done = nearprint.run(f"{folder.name}/job.toml", "2026-11-20", documents=f"{folder.name}/crawl", create_store=True)
/// >>> store = nearprint.Store(f"{folder.name}/store")
/// >>> [(match["id"], match["distance"], match["decision"]) for match in store.query(text.upper()).to_pylist()]
/// [('a', 0, 'keep')]
/// >>> len(store.query(nearprint.fingerprint(text) ^ 0b111)), len(store.query("too short"))
/// (1, 0)
/// >>> store.refresh()
/// False
/// >>> folder.cleanup()
#[pyclass(frozen, module = "nearprint")]
pub struct Store {
    lookup: Arc<SharedLookup>,
    threads: Option<usize>,
}

/// The query, before it is read.
enum Questions {
    One(Query),
    Column(Box<Input<'static>>),
}

#[pymethods]
impl Store {
    #[new]
    #[pyo3(signature = (path, profile="default", *, html_text="main", max_distance=None, max_sketch_distance=None, threads=None))]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        profile: &str,
        html_text: &str,
        max_distance: Option<Integer>,
        max_sketch_distance: Option<Integer>,
        threads: Option<Integer>,
    ) -> PyResult<Self> {
        let given = |name: &str, distance: Option<Integer>, bits: u32| {
            distance.map(|distance| limit(name, distance.0, bits)).transpose().map_err(|e| e.raised(py))
        };
        let max_distance = given("max_distance", max_distance, BITS)?;
        let max_sketch_distance = given("max_sketch_distance", max_sketch_distance, Sketch::BITS)?;
        let threads = threads.map(threads_of).transpose().map_err(|e| e.raised(py))?;
        let config = by_name(profile).map_err(|e| Problem::from(e).raised(py))?;
        let html_text: HtmlText =
            html_text.parse().map_err(|e| Problem::value(format!("html_text: {e}")).raised(py))?;
        let lookup = interruptible(py, move |_| {
            let profile = LookupProfile::try_new(config, &Resources::default(), &html_text).map_err(failed)?;
            let own = LookupOptions::of(profile.config());
            let options = LookupOptions {
                max_sketch_distance: max_sketch_distance.or(own.max_sketch_distance),
                threads: threads.unwrap_or(own.threads),
                ..own.within_distance(max_distance)
            };
            let path = path.to_str().ok_or_else(|| Problem::value("path: it is no Unicode text"))?;
            let folder = Storage::default().folder(path).map_err(failed)?;
            runtime(threads)?.block_on(Lookup::open(&folder, Arc::new(profile), options)).map_err(failed)
        })?;
        Ok(Self { lookup: Arc::new(SharedLookup::new(lookup)), threads })
    }

    /// Return every document of the store that is near, and no other.
    ///
    /// Args:
    ///     what: a text; a fingerprint (an integer), for which sketches are not compared; or a column of n texts or n
    ///         fingerprints. A null finds nothing.
    ///
    /// Returns:
    ///     A table with a row for each match: `query` (the row of the column, 0 for a single value), `id`, `dt` (its
    ///     night), `distance`, `sketch_distance` (null if sketches were not compared), `decision` ("keep" or "drop"),
    ///     `canonical_id` (the document that represents a dropped one), `reference` (the reference store that has it, null
    ///     if it is the store itself) and `exact` (whether the normalised texts are the same). The rows are in the order of the queries, and then by distance, sketch distance, night and id.
    ///
    /// Raises:
    ///     TypeError: `what` is nothing of these.
    ///     ValueError: a fingerprint has more bits than the profile's.
    ///     Error: the store is damaged or cannot be read.
    fn query(&self, py: Python<'_>, what: &Bound<'_, PyAny>) -> PyResult<Table> {
        let asked = asked(what).map_err(|e| e.raised(py))?;
        let (lookup, threads) = (self.lookup.get(), self.threads);
        interruptible(py, move |cancelled| {
            let queries = match asked {
                Questions::One(query) => vec![Some(query)],
                Questions::Column(input) => queries(*input)?,
            };
            let answers = runtime(threads)?.block_on(answers(lookup, queries, cancelled.clone()))?;
            Ok(Table::from(table(&answers)?))
        })
    }

    /// Bring the store to the state of its newest commit, and return whether that is another one.
    ///
    /// Raises:
    ///     Error: the store cannot be read. It stays in its state then.
    fn refresh(&self, py: Python<'_>) -> PyResult<bool> {
        let (lookup, threads) = (Arc::clone(&self.lookup), self.threads);
        interruptible(py, move |_| runtime(threads)?.block_on(lookup.refresh()).map_err(failed))
    }

    fn __repr__(&self) -> String {
        let state = self.lookup.get().state();
        format!("<nearprint.Store {}: commit {}, {} nights>", state.store, state.commit, state.n_nights)
    }
}

fn asked(what: &Bound<'_, PyAny>) -> Result<Questions> {
    if let Ok(text) = what.cast::<PyString>() {
        return Ok(Questions::One(Query::Text(text.to_str()?.to_owned())));
    }
    if let Some(number) = integer(what)? {
        let range = |_| Problem::value("what: a fingerprint of a store has at most 64 bits and no sign");
        let fingerprint = number.extract::<u64>().map_err(range)?;
        return Ok(Questions::One(Query::Fingerprint { fingerprint, sketch: None }));
    }
    Ok(Questions::Column(Box::new(Input::of("what", what)?)))
}

/// Reads a column of texts or of fingerprints.
fn queries(input: Input<'_>) -> Result<Vec<Option<Query>>> {
    let mut queries = Vec::new();
    for array in input.columns() {
        let array = array?;
        if array.data_type().is_integer() {
            let values = numbers("what", &array)?;
            let of = |fingerprint| Query::Fingerprint { fingerprint, sketch: None };
            queries.extend(values.as_primitive::<UInt64Type>().iter().map(|value| value.map(of)));
        } else {
            let texts = Texts::of("what", &array)?;
            queries.extend(texts.texts().into_iter().map(|text| text.map(|text| Query::Text(text.to_owned()))));
        }
    }
    Ok(queries)
}

/// The queries that are answered together. Between two such groups a call can be cancelled.
const AT_ONCE: usize = 1 << 12;

async fn answers(lookup: Lookup, queries: Vec<Option<Query>>, cancelled: Cancelled) -> Result<Vec<Answer>> {
    let mut all = Vec::with_capacity(queries.len());
    for some in queries.chunks(AT_ONCE) {
        let mut asked = some.iter();
        let each = |answer: std::result::Result<Answer, Fault>| {
            // A null finds nothing.
            all.extend(asked.by_ref().take_while(|query| query.is_none()).map(|_| Answer::default()));
            match answer {
                Ok(_) if cancelled.is_set() => return ControlFlow::Break(None),
                Ok(answer) => all.push(answer),
                Err(error) => return ControlFlow::Break(Some(failed(error))),
            }
            ControlFlow::Continue(())
        };
        match lookup.answers(some.iter().flatten().cloned().collect(), each).await.map_err(failed)? {
            ControlFlow::Continue(()) => all.extend(asked.map(|_| Answer::default())),
            // Nobody waits for the answers of a call that was cancelled.
            ControlFlow::Break(None) => break,
            ControlFlow::Break(Some(problem)) => return Err(problem),
        }
    }
    Ok(all)
}

fn table(answers: &[Answer]) -> Result<RecordBatch> {
    let matches = (0i64..).zip(answers).flat_map(|(query, answer)| answer.matches.iter().map(move |m| (query, m)));
    let matches: Vec<(i64, &Match)> = matches.collect();
    let rows = || matches.iter().copied();
    let distance = |distance: u32| distance.cast_signed();
    let columns: [(&str, ArrayRef); 9] = [
        ("query", Arc::new(Int64Array::from_iter_values(rows().map(|(query, _)| query)))),
        ("id", Arc::new(StringArray::from_iter_values(rows().map(|(_, m)| &m.id)))),
        ("dt", Arc::new(StringArray::from_iter_values(rows().map(|(_, m)| &m.dt)))),
        ("distance", Arc::new(Int32Array::from_iter_values(rows().map(|(_, m)| distance(m.distance))))),
        ("sketch_distance", Arc::new(rows().map(|(_, m)| m.sketch_distance.map(distance)).collect::<Int32Array>())),
        ("decision", Arc::new(StringArray::from_iter_values(rows().map(|(_, m)| m.decision.name())))),
        ("canonical_id", Arc::new(rows().map(|(_, m)| m.canonical_id.as_deref()).collect::<StringArray>())),
        ("reference", Arc::new(rows().map(|(_, m)| m.reference.as_deref()).collect::<StringArray>())),
        ("exact", Arc::new(rows().map(|(_, m)| Some(m.exact)).collect::<BooleanArray>())),
    ];
    Ok(RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true)))?)
}

/// Makes the threads of one call.
fn runtime(threads: Option<usize>) -> Result<Runtime> {
    let pool = Arc::new(pool(threads)?);
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(pool.current_num_threads()).on_thread_start(move || use_pool(Arc::clone(&pool)));
    builder.enable_all().build().map_err(|e| no_threads(&e))
}

/// Makes the problem of an error of a lookup. What is wrong with the arguments is a `ValueError`.
fn failed(error: Fault) -> Problem {
    let is_of_arguments = error.matter::<BadQuestion>().is_some()
        || error.cause::<ProfileError>().is_some()
        || error.cause::<JoinError>().is_some();
    if is_of_arguments { Problem::value(error) } else { nearprint_cli::Failure::from(error).into() }
}
