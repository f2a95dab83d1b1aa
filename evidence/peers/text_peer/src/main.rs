//! Measures published Rust programs that fingerprint texts, on one thread: the crate simhash, and gaoya's SimHash and MinHash.
//!
//! `text_peer SECONDS FILE.jsonl...` reads the texts into memory and then runs each program over all of them in turn, round after
//! round, until the seconds are over, three times at least and once before. One JSON object per line on stdout. Memory comes from
//! mimalloc, as in nearprint.
use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use gaoya::minhash::{MinHasher, MinHasher32};
use gaoya::simhash::{SimHash, SimSipHasher64};
use gaoya::text::whitespace_split;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Name, settings, and the program.
type Way = (&'static str, &'static str, Box<dyn Fn(&str) -> u64>);

fn ways() -> [Way; 3] {
    // The keys that nearprint's profile gaoya has.
    let sim_hash = SimHash::<SimSipHasher64, u64, 64>::new(SimSipHasher64::new(5, 6));
    let min_hasher = MinHasher32::new(42 * 3);
    [
        ("simhash 0.3.0", "simhash(text), SipHash-2-4", Box::new(simhash::simhash)),
        (
            "gaoya 0.2.2 SimHash",
            "SimHash of 64 bits with SimSipHasher64, whitespace_split",
            Box::new(move |text| sim_hash.create_signature(whitespace_split(text))),
        ),
        (
            "gaoya 0.2.2 MinHash",
            "MinHasher32::new(42 * 3), whitespace_split of the lower-cased text, as in its README",
            Box::new(move |text| {
                let text = text.to_lowercase();
                black_box(min_hasher.create_signature(whitespace_split(&text))).into_iter().map(u64::from).sum()
            }),
        ),
    ]
}

/// The texts of all files.
fn read(paths: &[String]) -> Result<Vec<String>, Box<dyn Error>> {
    let mut texts = Vec::new();
    for path in paths {
        let lines = std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
        for line in lines.lines() {
            let document: serde_json::Value = serde_json::from_str(line)?;
            texts.push(document["text"].as_str().ok_or("a line without text")?.to_owned());
        }
    }
    Ok(texts)
}

/// Seconds and processor seconds of one pass over all texts.
type Pass = (f64, Option<f64>);

/// A pass, and the sum of what it gives.
fn pass(way: &Way, texts: &[String]) -> (Pass, u64) {
    let (start, cpu_start) = (Instant::now(), cpu_seconds());
    let sum = texts.iter().fold(0, |sum: u64, text| sum.wrapping_add((way.2)(text)));
    let seconds = start.elapsed().as_secs_f64();
    ((seconds, cpu_seconds().zip(cpu_start).map(|(end, start)| end - start)), sum)
}

/// Processor time of this thread so far, by Linux's account in nanoseconds.
fn cpu_seconds() -> Option<f64> {
    let account = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    account.split(' ').next()?.parse::<f64>().ok().map(|ns| ns / 1e9)
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Prints one measurement; medians are of the passes of this process.
fn print(way: &Way, texts: &[String], passes: &[Pass], sum: u64) {
    let n_bytes: usize = texts.iter().map(String::len).sum();
    let ns = |seconds: f64| seconds * 1e9 / n_bytes as f64;
    let seconds = sorted(passes.iter().map(|pass| pass.0));
    let cpu = sorted(passes.iter().filter_map(|pass| pass.1));
    let median = ns(seconds[seconds.len() / 2]);
    let line = serde_json::json!({
        "peer": way.0, "settings": way.1, "threads": 1, "n_documents": texts.len(), "n_bytes": n_bytes, "rounds": passes.len(),
        "mb_per_second": 1e3 / median, "median_ns_per_byte": median, "min_ns_per_byte": ns(seconds[0]),
        "cpu_ns_per_byte": cpu.get(cpu.len() / 2).map(|&seconds| ns(seconds)), "sum": format!("{sum:016x}"),
    });
    println!("{line}");
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [limit, paths @ ..] = arguments.as_slice() else {
        return Err("usage: text_peer SECONDS FILE.jsonl...".into());
    };
    let (limit, texts, ways) = (limit.parse::<f64>()?, read(paths)?, ways());
    let sums = ways.iter().map(|way| pass(way, &texts).1).collect::<Vec<_>>();
    let mut passes = vec![Vec::new(); ways.len()];
    let start = Instant::now();
    while passes[0].len() < 3 || start.elapsed().as_secs_f64() < limit {
        ways.iter().zip(&mut passes).for_each(|(way, passes)| passes.push(pass(way, &texts).0));
    }
    for ((way, passes), sum) in ways.iter().zip(&passes).zip(sums) {
        print(way, &texts, passes, sum);
    }
    Ok(())
}
