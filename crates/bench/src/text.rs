//! From text to fingerprint and sketch, beside what others need to cut the same texts into words.
//!
//! All ways run over all texts in turn, round after round, on one pool of threads, so that whatever else the machine does falls on each
//! alike; a ratio is the median of the rounds' own ratios. On a machine that others use, processor time says more than the clock: both are
//! there. Memory comes from mimalloc, as in the `nearprint` command.

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

/// What to measure.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// JSONL files with a `text` a line, all read into memory before.
    #[arg(long, required = true, num_args = 1..)]
    documents: Vec<PathBuf>,
    /// Threads of the pool.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Rounds go on for so many seconds, and there are five at least.
    #[arg(long, default_value_t = 20.0)]
    seconds: f64,
    /// Only this profile, without references; may be given again.
    #[arg(long)]
    profile: Vec<String>,
}

/// Something that is done with a text.
struct Way {
    name: String,
    run: Box<Run>,
}

/// `None` where the text has no fingerprint.
type Run = dyn Fn(&str) -> Option<u64> + Sync;

impl Way {
    fn new(name: &str, run: impl Fn(&str) -> Option<u64> + Sync + 'static) -> Self {
        Self { name: name.to_owned(), run: Box::new(run) }
    }
}

/// One pass over all texts.
struct Pass {
    seconds: f64,
    /// Of all threads; none where the system does not tell.
    cpu_seconds: Option<f64>,
    n_some: usize,
    sum: u64,
}

#[derive(Serialize)]
struct Measured<'a> {
    operation: &'static str,
    way: &'a str,
    threads: usize,
    n_documents: usize,
    n_bytes: usize,
    rounds: usize,
    /// By the median.
    mb_per_second: f64,
    median_ns_per_byte: f64,
    min_ns_per_byte: f64,
    /// Of processor time, all threads together.
    cpu_ns_per_byte: Option<f64>,
    /// How many times as long as each reference, by the clock.
    times: BTreeMap<&'static str, f64>,
    /// The same of processor time.
    cpu_times: BTreeMap<&'static str, f64>,
    /// Texts long enough for a fingerprint; all, of a way that makes none.
    n_fingerprinted: usize,
    /// The fingerprints, or what else was counted, summed modulo 2^64: equal for programs that give the same.
    sum: String,
}

/// Measures; one line a way.
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

/// nearprint's profiles and its stages, and the references between them.
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

/// Text to fingerprint and, if the profile has one, sketch.
fn fingerprint(name: &str, config: ProfileConfig) -> Result<Way> {
    let fingerprinter = TextFingerprinter::try_new(config, &Resources::default())?;
    Ok(Way::new(name, move |text| match std::hint::black_box(fingerprinter.fingerprint(text)).outcome {
        Outcome::Fingerprinted { fingerprint, .. } => Some(fingerprint),
        _ => None,
    }))
}

/// Only cutting the text as it is into words, by other people's code.
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

/// How far the default profile gets in which time.
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

/// The passes of each way, the same number of each; the first round, in which tables are made and memory is asked for, is left out.
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

/// Processor time of the process's threads so far, by Linux's account in nanoseconds.
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
    fn line(&self, way: usize) -> Measured<'_> {
        let passes = &self.passes[way];
        let per_byte = 1e9 / self.n_bytes as f64;
        let seconds = || passes.iter().map(|pass| pass.seconds);
        let cpu: Option<Vec<f64>> = passes.iter().map(|pass| pass.cpu_seconds).collect();
        let median_ns_per_byte = median(seconds()) * per_byte;
        Measured {
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

    /// How many times as much of `amount` as each reference takes in the same round; the median.
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
