//! Measures single queries on a store, and compares their answers with a scan of all its fingerprints.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use futures::{StreamExt, TryStreamExt};
use nearprint_fingerprint::Sketch;
use nearprint_join::{Kernel, near_values};
use nearprint_lookup::{Answer, Lookup, LookupOptions, LookupProfile, Query};
use nearprint_parquet::{DeltaKernel, fingerprint_column};
use nearprint_profile::{EarlierConfig, by_name};
use nearprint_storage::{Folder, Progress, Storage};
use nearprint_store::maintain::{IndexRequest, index};
use nearprint_store::{Store, Writers};
use rayon::prelude::*;

use crate::data::Rng;
use crate::files::{sketch, url};
use crate::{Result, print};

/// The queries to measure.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Store that `store` made.
    #[arg(long)]
    store: String,
    /// Number of queries. Half of them are near a fingerprint of the store, at distances around the limit.
    #[arg(long, default_value_t = 10_000)]
    queries: usize,
    /// Largest distance of a match; without it, documents are found by the keys of the default profile, and --max-sketch-distance
    /// is needed.
    #[arg(long, required_unless_present = "max_sketch_distance")]
    max_distance: Option<u32>,
    /// Largest distance of the sketches of a match; without it, queries have no sketches.
    #[arg(long)]
    max_sketch_distance: Option<u32>,
    /// Bytes of fingerprints that stay in memory from query to query.
    #[arg(long, default_value_t = 1 << 30)]
    memory_bytes: usize,
    /// Number of queries that are answered together when throughput is measured.
    #[arg(long, default_value_t = 16384)]
    at_once: usize,
    /// Compare the answers with a scan of all fingerprints, which takes 8 bytes of memory each.
    #[arg(long)]
    check: bool,
    /// Write an index of all nights first.
    #[arg(long)]
    index: bool,
    /// Seed of the queries.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// A query, and the fingerprint that it was made near to.
type AskedQuery = (u64, Option<Sketch>);

/// The fingerprints of a night.
struct Fingerprints {
    dt: String,
    values: Vec<u64>,
}

impl Args {
    /// Prints the latencies, what a query reads, the throughput, and how many answers equal those of a scan.
    pub fn run(&self) -> Result<()> {
        tokio::runtime::Runtime::new()?.block_on(self.measure())
    }

    async fn measure(&self) -> Result<()> {
        let storage = Storage::default();
        let folder = storage.folder(&self.store)?;
        if self.index {
            self.write_index(&folder).await?;
        }
        let nights = fingerprints(&folder).await?;
        let profile = Arc::new(LookupProfile::try_new(
            by_name("default")?,
            &nearprint_tokenize::Resources::default(),
            &nearprint_profile::HtmlText::Main,
        )?);
        let own = LookupOptions::of(profile.config()).within_distance(self.max_distance);
        let keys = own.keys;
        let (max_sketch_distance, memory_bytes) = (self.max_sketch_distance, self.memory_bytes);
        let options = LookupOptions { max_sketch_distance, memory_bytes, ..own };
        let queries = self.queries(&nights, keys.max_distance);
        let started = Instant::now();
        let lookup = Lookup::open(&folder, profile, options).await?;
        let open_seconds = started.elapsed().as_secs_f64();
        let first = Instant::now();
        lookup.answer(&query(&queries[0])).await?;
        let first_seconds = first.elapsed().as_secs_f64();
        let requests = storage.requests().total();
        let (mut answers, mut milliseconds) = (Vec::new(), Vec::new());
        for asked in &queries {
            let started = Instant::now();
            answers.push(lookup.answer(&query(asked)).await?);
            milliseconds.push(started.elapsed().as_secs_f64() * 1e3);
        }
        let requests = storage.requests().total() - requests;
        let started = Instant::now();
        let mut together = Vec::with_capacity(queries.len());
        for some in queries.chunks(self.at_once) {
            let answers = lookup.answers::<()>(some.iter().map(query).collect(), |answer| {
                together.push(answer);
                ControlFlow::Continue(())
            });
            let _ = answers.await?;
        }
        let seconds = started.elapsed().as_secs_f64();
        milliseconds.sort_by(f64::total_cmp);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a position in the list")]
        let at = |share: f64| milliseconds[((milliseconds.len() - 1) as f64 * share) as usize];
        let n = queries.len() as f64;
        let mean = |of: fn(&Answer) -> u64| answers.iter().map(of).sum::<u64>() as f64 / n;
        let n_alike = together
            .into_iter()
            .zip(&answers)
            .filter(|(together, alone)| together.as_ref().is_ok_and(|together| together.matches == alone.matches));
        let n_alike = n_alike.count();
        let equal = self.check.then(|| self.n_equal(&nights, keys, &queries, &answers));
        let state = lookup.state();
        print(&serde_json::json!({
            "operation": "lookup", "n_rows": state.n_live_rows, "n_indexed": state.n_indexed_rows,
            "n_scanned": state.n_scanned_rows, "max_distance": keys.max_distance, "n_words": keys.words,
            "max_sketch_distance": self.max_sketch_distance, "memory_bytes": self.memory_bytes,
            "n_queries": queries.len(), "n_equal_to_scan": equal, "n_equal_together": n_alike, "mean_matches": mean(|a| a.n_matches),
            "open_seconds": open_seconds, "first_seconds": first_seconds,
            "p50_ms": at(0.5), "p99_ms": at(0.99), "max_ms": at(1.0),
            "mean_pages": mean(|a| a.read.unwrap_or_default().pages_read),
            "mean_bytes": mean(|a| a.read.unwrap_or_default().bytes_read),
            "mean_requests": requests as f64 / n, "at_once": self.at_once, "queries_per_second": n / seconds,
        }))
    }

    async fn write_index(&self, folder: &Folder) -> Result<()> {
        let started = Instant::now();
        let store = Store::open(folder).await?;
        let request = IndexRequest { store: self.store.clone(), writers: Writers::One };
        let threads = rayon::current_num_threads();
        let written = index(&store, &request, threads, &std::env::temp_dir(), &Progress::default()).await?;
        print(&serde_json::json!({
            "operation": "index", "n_rows": written.n_rows, "seconds": started.elapsed().as_secs_f64(),
            "bytes": written.bytes, "bytes_per_fingerprint": written.bytes as f64 / written.n_rows as f64,
            "already_indexed": written.already_indexed,
        }))
    }

    fn queries(&self, nights: &[Fingerprints], max_distance: u32) -> Vec<AskedQuery> {
        let mut rng = Rng(self.seed);
        #[allow(clippy::cast_possible_truncation, reason = "less than a length")]
        let mut pick = |n: usize| (rng.next() % n.max(1) as u64) as usize;
        let chosen: Vec<Option<u64>> = (0..self.queries)
            .map(|i| {
                let night = &nights[pick(nights.len())].values;
                (i % 2 == 0).then(|| night[pick(night.len())])
            })
            .collect();
        let mut rng = Rng(!self.seed);
        let asked = chosen.into_iter().enumerate().map(|(i, near)| {
            let step = u32::try_from(i / 2).unwrap_or(0);
            let value = near.unwrap_or_else(|| rng.next());
            let fingerprint = if near.is_some() { rng.flip(value, step % (max_distance + 3)) } else { value };
            let of_sketch =
                self.max_sketch_distance.map(|limit| flipped(&sketch(value), step % (limit + 12), &mut rng));
            (fingerprint, of_sketch)
        });
        asked.collect()
    }

    /// Returns the number of answers that are those of a scan.
    fn n_equal(
        &self,
        nights: &[Fingerprints],
        keys: EarlierConfig,
        queries: &[AskedQuery],
        answers: &[Answer],
    ) -> usize {
        let mut expected = vec![BTreeMap::new(); queries.len()];
        for night in nights {
            for (query, value, distance) in scanned(&night.values, keys, queries) {
                let own = queries[query].1;
                let of_sketch = own.as_ref().map(|own| own.distance(&as_sketch(&sketch(value))));
                if of_sketch.zip(self.max_sketch_distance).is_none_or(|(distance, limit)| distance <= limit) {
                    expected[query].insert((night.dt.as_str(), url(value)), (distance, of_sketch));
                }
            }
        }
        let equal = expected.iter().zip(answers).filter(|(expected, answer)| {
            let found = answer.matches.iter().map(|m| ((m.dt.as_str(), m.id.clone()), (m.distance, m.sketch_distance)));
            answer.n_matches == answer.matches.len() as u64 && found.collect::<BTreeMap<_, _>>() == **expected
        });
        equal.count()
    }
}

/// Compares all fingerprints, and the words that are keys, with all queries, and returns the near ones: the position of the query,
/// the fingerprint and its distance. One that several keys find is there several times.
fn scanned(values: &[u64], keys: EarlierConfig, queries: &[AskedQuery]) -> Vec<(usize, u64, u32)> {
    // What is compared with all queries stays in a core's cache meanwhile.
    let of_chunk = values.par_chunks(1 << 14).map(|values| {
        let (mut near, mut scratch) = (Vec::new(), Vec::new());
        let words = (0..4u8).take(keys.words as usize);
        let words: Vec<(u8, Vec<u64>)> = words
            .map(|word| (word, values.iter().map(|value| as_sketch(&sketch(*value)).word(word)).collect()))
            .collect();
        for (query, (fingerprint, own)) in queries.iter().enumerate() {
            let mut found = |at: usize| near.push((query, values[at], (values[at] ^ fingerprint).count_ones()));
            let by_fingerprint = keys.max_distance;
            near_values(Kernel::best(), values, *fingerprint, by_fingerprint, &mut scratch, |at, _| found(at));
            for (own, (word, values)) in own.iter().flat_map(|own| words.iter().map(move |words| (own, words))) {
                let by_word = keys.max_word_distance;
                near_values(Kernel::best(), values, own.word(*word), by_word, &mut scratch, |at, _| found(at));
            }
        }
        near
    });
    of_chunk.flatten().collect()
}

fn query((fingerprint, sketch): &AskedQuery) -> Query {
    Query::Fingerprint { fingerprint: *fingerprint, sketch: *sketch }
}

fn as_sketch(bytes: &[u8]) -> Sketch {
    let mut sketch = [0; 32];
    sketch.copy_from_slice(bytes);
    Sketch(sketch)
}

fn flipped(bytes: &[u8], n: u32, rng: &mut Rng) -> Sketch {
    let mut sketch = as_sketch(bytes);
    for _ in 0..n {
        let bit = rng.next() % 256;
        sketch.0[(bit / 8) as usize] ^= 1 << (bit % 8);
    }
    sketch
}

/// Reads the fingerprints of all nights.
async fn fingerprints(folder: &Folder) -> Result<Vec<Fingerprints>> {
    let store = Store::open(folder).await?;
    let mut nights = Vec::new();
    for night in store.nights() {
        let parquet = store.open_file(night, "fingerprints").await?;
        let groups = futures::stream::iter(0..parquet.n_row_groups());
        let columns: Vec<_> =
            groups.map(|group| fingerprint_column::fetch(&parquet, group, 64)).buffered(4).try_collect().await?;
        let mut values = Vec::new();
        for column in columns {
            let from = values.len();
            values.resize(from + column.n_rows(), 0);
            column.decode(&parquet.file.url, &mut values[from..], DeltaKernel::best())?;
        }
        nights.push(Fingerprints { dt: night.dt.clone(), values });
    }
    Ok(nights)
}
