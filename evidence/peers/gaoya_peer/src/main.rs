//! Measures gaoya's `SimHashIndex` on raw little-endian u64 fingerprints.
//!
//! `gaoya_peer INDEXED.u64 BLOCKS DISTANCE QUERIES.u64...` puts the precomputed fingerprints of the first file into an index and
//! asks it for each fingerprint of every further file. `self` as a query file stands for the indexed fingerprints themselves; of
//! those, pairs are counted once and no fingerprint is paired with itself. One JSON object per line on stdout, one thread.
use std::process::ExitCode;
use std::time::Instant;

use gaoya::simhash::SimHashIndex;

/// Reads a file of raw little-endian u64.
fn read(path: &str) -> Result<Vec<u64>, String> {
    let bytes = std::fs::read(path).map_err(|e| format!("{path}: {e}"))?;
    if bytes.len() % 8 != 0 {
        return Err(format!("{path}: its size is no multiple of 8"));
    }
    Ok(bytes.chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().expect("8 bytes"))).collect())
}

/// Counts the pairs of queries and indexed fingerprints.
fn cross(index: &SimHashIndex<u64, u32>, queries: &[u64]) -> usize {
    queries.iter().map(|query| index.query(query).len()).sum()
}

/// Counts the pairs among the indexed fingerprints, each once.
fn within(index: &SimHashIndex<u64, u32>, indexed: &[u64]) -> usize {
    let earlier =
        |(id, query): (usize, &u64)| index.query(query).into_iter().filter(|&&other| (other as usize) < id).count();
    indexed.iter().enumerate().map(earlier).sum()
}

/// Prints one measurement.
fn print(operation: &str, n_indexed: usize, n: usize, seconds: f64, n_pairs: Option<usize>) {
    let pairs = n_pairs.map_or("null".to_owned(), |n| n.to_string());
    println!(
        r#"{{"operation": "{operation}", "n_indexed": {n_indexed}, "n": {n}, "seconds": {seconds:.6}, "n_pairs": {pairs}}}"#
    );
}

/// Builds the index and runs every query file.
fn run(arguments: &[String]) -> Result<(), String> {
    let [indexed, blocks, distance, queries @ ..] = arguments else {
        return Err("usage: gaoya_peer INDEXED.u64 BLOCKS DISTANCE [QUERIES.u64 | self]...".into());
    };
    let indexed = read(indexed)?;
    let blocks: usize = blocks.parse().map_err(|e| format!("BLOCKS: {e}"))?;
    let distance: usize = distance.parse().map_err(|e| format!("DISTANCE: {e}"))?;
    if blocks <= distance + 1 {
        return Err(format!("BLOCKS must exceed DISTANCE + 1 = {}", distance + 1));
    }
    let start = Instant::now();
    // gaoya reports what lies strictly below the distance that it is given.
    let mut index = SimHashIndex::new(blocks, distance + 1);
    for (id, fingerprint) in indexed.iter().enumerate() {
        let id = u32::try_from(id).map_err(|_| "more than 2^32 fingerprints")?;
        index.insert(id, *fingerprint);
    }
    print("build", indexed.len(), indexed.len(), start.elapsed().as_secs_f64(), None);
    for path in queries {
        let (start, n, n_pairs);
        if path == "self" {
            start = Instant::now();
            n_pairs = within(&index, &indexed);
            n = indexed.len();
        } else {
            let fingerprints = read(path)?;
            start = Instant::now();
            n_pairs = cross(&index, &fingerprints);
            n = fingerprints.len();
        }
        print("query", indexed.len(), n, start.elapsed().as_secs_f64(), Some(n_pairs));
    }
    // Freeing many small vectors takes long and is nobody's question.
    std::mem::forget(index);
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("gaoya_peer: {message}");
            ExitCode::FAILURE
        }
    }
}
