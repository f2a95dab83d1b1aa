//! Measures the way from text to fingerprint and sketch, compared with other programs that cut the same texts into
//! words.
//!
//! In every round, all ways process all texts in turn on the same pool of threads, so that other work of the machine
//! affects all ways alike. A ratio is the median of the ratios of the rounds. On a shared machine, processor time is
//! more reliable than the clock, so the output has both.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::Instant;

use jieba_rs::Jieba;
use nearprint_profile as profile;
use nearprint_profile::{Outcome, ProfileConfig, TextFingerprinter};
use nearprint_tokenize::{Analyzer, Resources, Scratch, TokenizerKind};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use serde::{Deserialize, Serialize};
use unicode_segmentation::UnicodeSegmentation;

use crate::{Result, print};

/// The texts and profiles to measure.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// JSONL files with a `text` on each line; all are read into memory first.
    #[arg(long, required = true, num_args = 1..)]
    documents: Vec<PathBuf>,
    /// Number of threads.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Duration of the measurement; there are at least five rounds.
    #[arg(long, default_value_t = 20.0)]
    seconds: f64,
    /// Measure only this profile, without references; may be repeated.
    #[arg(long)]
    profile: Vec<String>,
}

/// A way to process a text.
struct Way {
    name: String,
    run: Box<Run>,
}

/// The function of a way. It returns `None` if the text has no fingerprint.
type Run = dyn Fn(&str) -> Option<u64> + Sync;

impl Way {
    fn new(name: &str, run: impl Fn(&str) -> Option<u64> + Sync + 'static) -> Self {
        Self { name: name.to_owned(), run: Box::new(run) }
    }
}

/// One pass over all texts.
struct Pass {
    seconds: f64,
    /// The processor time of all threads. `None` means that the system does not report it.
    cpu_seconds: Option<f64>,
    n_some: usize,
    sum: u64,
}

#[derive(Serialize)]
struct MeasuredTexts<'a> {
    operation: &'static str,
    way: &'a str,
    threads: usize,
    n_documents: usize,
    n_bytes: usize,
    rounds: usize,
    /// The throughput of the median round.
    mb_per_second: f64,
    median_ns_per_byte: f64,
    min_ns_per_byte: f64,
    /// The median processor time of all threads together.
    cpu_ns_per_byte: Option<f64>,
    /// The ratio of the time to that of each reference, by the clock.
    times: BTreeMap<&'static str, f64>,
    /// The ratio of the processor time to that of each reference.
    cpu_times: BTreeMap<&'static str, f64>,
    /// The number of texts that are long enough for a fingerprint. For a way that makes no fingerprints, it is the
    /// number of all texts.
    n_fingerprinted: usize,
    /// The sum of the fingerprints, or of the way's other results, modulo 2^64. Programs with the same results have the
    /// same sum.
    sum: String,
}

/// Measures all ways, and prints one line per way.
pub fn run(args: &Args) -> Result<()> {
    let texts = args.documents.iter().map(|path| read(path)).collect::<Result<Vec<_>>>()?.concat();
    let n_bytes = texts.iter().map(String::len).sum();
    let ways = if args.profile.is_empty() { all_ways()? } else { ways_of_profiles(&args.profile)? };
    let pool = ThreadPoolBuilder::new().num_threads(args.threads).build()?;
    let passes = measure(&ways, &texts, &pool, args.seconds);
    let measured =
        Measurements { ways: &ways, passes: &passes, n_documents: texts.len(), n_bytes, threads: args.threads };
    (0..ways.len()).try_for_each(|way| print(&measured.line(way)))
}

fn read(path: &Path) -> Result<Vec<String>> {
    #[derive(Deserialize)]
    struct Document {
        text: String,
    }
    let lines = BufReader::new(File::open(path).map_err(|e| format!("{}: {e}", path.display()))?).lines();
    lines.map(|line| Ok(serde_json::from_str::<Document>(&line?)?.text)).collect()
}

const JIEBA: &str = "jieba";
const JIEBA_HMM: &str = "jieba hmm";
const UAX29_WORDS: &str = "uax29 words";
const UAX29_BOUNDS: &str = "uax29 bounds";

/// Returns nearprint's profiles, the references, and nearprint's stages.
fn all_ways() -> Result<Vec<Way>> {
    let mut ways = ways_of_profiles(&["default".to_owned(), "paper".to_owned()])?;
    let mut mixed = profile::by_name("default")?;
    mixed.tokenize.tokenizer.kind = TokenizerKind::Mixed;
    ways.push(fingerprint("default with mixed", mixed)?);
    ways.extend(references());
    ways.extend(stages()?);
    Ok(ways)
}

fn ways_of_profiles(names: &[String]) -> Result<Vec<Way>> {
    names.iter().map(|name| fingerprint(name, profile::by_name(name)?)).collect()
}

/// Returns the way from text to fingerprint and, if the profile has one, sketch.
fn fingerprint(name: &str, config: ProfileConfig) -> Result<Way> {
    let fingerprinter = TextFingerprinter::try_new(config, &Resources::default())?;
    Ok(Way::new(name, move |text| match std::hint::black_box(fingerprinter.fingerprint(text)).outcome {
        Outcome::Fingerprinted { fingerprint, .. } => Some(fingerprint),
        _ => None,
    }))
}

/// Returns the references, which only cut the unchanged text into words, by other libraries.
fn references() -> [Way; 4] {
    let cut = |hmm| {
        let jieba = Jieba::new();
        move |text: &str| Some(jieba.cut(text, hmm).len() as u64)
    };
    [
        Way::new(JIEBA, cut(false)),
        Way::new(JIEBA_HMM, cut(true)),
        Way::new(UAX29_WORDS, |text| Some(text.unicode_words().count() as u64)),
        Way::new(UAX29_BOUNDS, |text| Some(text.split_word_bounds().count() as u64)),
    ]
}

/// Returns the first stages of the default profile, to show how its time is divided.
fn stages() -> Result<[Way; 2]> {
    thread_local!(static SCRATCH: std::cell::RefCell<Scratch> = std::cell::RefCell::default());
    let config = profile::by_name("default")?.tokenize;
    let analyzer = || Analyzer::try_new(&config, &Resources::default());
    let (first, second) = (analyzer()?, analyzer()?);
    Ok([
        Way::new("normalise", move |text| Some(first.normalize(text).len() as u64)),
        Way::new("normalise, distinct tokens", move |text| {
            let normalized = second.normalize(text);
            Some(SCRATCH.with_borrow_mut(|scratch| second.distinct_tokens(&normalized, scratch).len() as u64))
        }),
    ])
}

/// Returns the passes of the ways, which are equally many for each way. The first round is left out, because it makes
/// tables and allocates memory.
fn measure(ways: &[Way], texts: &[String], pool: &ThreadPool, seconds: f64) -> Vec<Vec<Pass>> {
    let mut passes: Vec<Vec<Pass>> = ways.iter().map(|_| Vec::new()).collect();
    for way in ways {
        pass(way, texts, pool);
    }
    let started = Instant::now();
    while passes[0].len() < MIN_ROUNDS || started.elapsed().as_secs_f64() < seconds {
        for (way, passes) in ways.iter().zip(&mut passes) {
            passes.push(pass(way, texts, pool));
        }
    }
    passes
}

const MIN_ROUNDS: usize = 5;

fn pass(way: &Way, texts: &[String], pool: &ThreadPool) -> Pass {
    let add = |a: (usize, u64), b: (usize, u64)| (a.0 + b.0, a.1.wrapping_add(b.1));
    let of_text = |text: &String| (way.run)(text).map_or((0, 0), |value| (1, value));
    let (cpu_before, started) = (cpu_seconds(), Instant::now());
    let (n_some, sum) = pool.install(|| texts.par_iter().map(of_text).reduce(|| (0, 0), add));
    let seconds = started.elapsed().as_secs_f64();
    let cpu_seconds = cpu_seconds().zip(cpu_before).map(|(after, before)| after - before);
    Pass { seconds, cpu_seconds, n_some, sum }
}

/// Returns the processor time of all threads of the process so far, from the nanosecond counters of Linux.
fn cpu_seconds() -> Option<f64> {
    let threads = std::fs::read_dir("/proc/self/task").ok()?;
    let of_thread = |thread: std::io::Result<std::fs::DirEntry>| -> Option<f64> {
        let account = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        account.split(' ').next()?.parse().ok()
    };
    threads.map(of_thread).sum::<Option<f64>>().map(|ns| ns / 1e9)
}

struct Measurements<'a> {
    ways: &'a [Way],
    passes: &'a [Vec<Pass>],
    n_documents: usize,
    n_bytes: usize,
    threads: usize,
}

impl Measurements<'_> {
    fn line(&self, way: usize) -> MeasuredTexts<'_> {
        let passes = &self.passes[way];
        let per_byte = 1e9 / self.n_bytes as f64;
        let seconds = || passes.iter().map(|pass| pass.seconds);
        let cpu: Option<Vec<f64>> = passes.iter().map(|pass| pass.cpu_seconds).collect();
        let median_ns_per_byte = median(seconds()) * per_byte;
        MeasuredTexts {
            operation: "text",
            way: &self.ways[way].name,
            threads: self.threads,
            n_documents: self.n_documents,
            n_bytes: self.n_bytes,
            rounds: passes.len(),
            mb_per_second: 1e3 / median_ns_per_byte,
            median_ns_per_byte,
            min_ns_per_byte: seconds().fold(f64::INFINITY, f64::min) * per_byte,
            cpu_ns_per_byte: cpu.map(|cpu| median(cpu.into_iter()) * per_byte),
            times: self.ratios(way, |pass| Some(pass.seconds)),
            cpu_times: self.ratios(way, |pass| pass.cpu_seconds),
            n_fingerprinted: passes[0].n_some,
            sum: format!("{:016x}", passes[0].sum),
        }
    }

    /// Returns the median ratio of `amount` to that of each reference in the same round.
    fn ratios(&self, way: usize, amount: impl Fn(&Pass) -> Option<f64>) -> BTreeMap<&'static str, f64> {
        let ratio = |reference: &'static str| {
            let reference_passes = &self.passes[self.ways.iter().position(|way| way.name == reference)?];
            let rounds = self.passes[way].iter().zip(reference_passes);
            let of_rounds: Option<Vec<f64>> = rounds.map(|(own, other)| Some(amount(own)? / amount(other)?)).collect();
            Some((reference, median(of_rounds?.into_iter())))
        };
        [JIEBA, JIEBA_HMM, UAX29_WORDS, UAX29_BOUNDS].into_iter().filter_map(ratio).collect()
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) }
}
