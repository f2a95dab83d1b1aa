//! Measures the pairs of documents that a judge may have to decide, for evidence/judge.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use arrow::array::AsArray;
use nearprint_fingerprint::{FeatureHash, Measures, Sketch, TextWords, hamming_distance};
use nearprint_profile::{Outcome, ProfileConfig, TextFingerprinter, by_name};
use nearprint_tokenize::Resources;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use rayon::prelude::*;
use serde::Deserialize;

use crate::Result;

/// The documents and the pairs to measure.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A JSONL or Parquet file with an `id` and a `text` for each document, or a folder of such files.
    #[arg(long)]
    documents: PathBuf,
    /// Seed of the fingerprint and of the sketch; without it, the default profile's.
    #[arg(long)]
    seed: Option<u64>,
    /// Largest distance of two fingerprints.
    #[arg(long, default_value_t = 16)]
    max_distance: u32,
    /// Largest distance of two sketches whose fingerprints are within `--max-distance`.
    #[arg(long, default_value_t = 100)]
    max_sketch_distance: u32,
    /// Largest distance of a word of 64 bits of two sketches, which is enough alone.
    #[arg(long, default_value_t = 9)]
    max_word_distance: u32,
    /// Number of threads.
    #[arg(long, default_value_t = 1)]
    threads: usize,
}

/// The first row. Of two texts, `n_shingles` is the number of distinct runs of three words of the one that has fewer, and
/// `n_contained` is how many of them the other one has; `rare_share` is their resemblance, in which a feature of f of N
/// documents weighs ln(N / f).
const COLUMNS: &str = "id_a\tid_b\tdistance\tsketch_distance\tword_0\tword_1\tword_2\tword_3\tn_words_a\tn_words_b\tn_common\t\
    n_opening\tn_run\tn_contained\tn_shingles\tn_shared\tn_features_a\tn_features_b\trare_share";

impl Args {
    /// Prints one row of tab-separated values for each pair, in the order of the documents.
    pub fn run(&self) -> Result<()> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads).build()?;
        let documents = read(&self.documents)?;
        let reader = Reader::try_new(self.profile()?)?;
        let mut texts: Vec<Text> =
            pool.install(|| documents.par_iter().filter_map(|document| reader.text(document)).collect());
        weigh(&mut texts);
        let rows: Vec<String> = pool.install(|| {
            let of_text = |at: usize| {
                let (first, others) = (&texts[at], &texts[at + 1..]);
                others.iter().filter_map(|other| self.row(first, other, reader.shingle)).collect::<Vec<_>>()
            };
            (0..texts.len()).into_par_iter().flat_map_iter(of_text).collect()
        });
        let mut out = BufWriter::new(std::io::stdout().lock());
        writeln!(out, "{COLUMNS}")?;
        rows.iter().try_for_each(|row| writeln!(out, "{row}"))?;
        Ok(out.flush()?)
    }

    fn profile(&self) -> Result<ProfileConfig> {
        let mut config = by_name("default")?;
        if let Some(seed) = self.seed {
            config.fingerprint.feature_hash = FeatureHash::Xxh3 { seed };
            config.sketch.iter_mut().for_each(|sketch| sketch.seed = seed);
        }
        Ok(config)
    }

    /// Returns the row of two texts, if they are near enough.
    fn row(&self, a: &Text, b: &Text, shingle: usize) -> Option<String> {
        let distance = hamming_distance(a.fingerprint, b.fingerprint);
        let of_words = word_distances(&a.sketch, &b.sketch);
        let sketch_distance: u32 = of_words.iter().sum();
        let near = distance <= self.max_distance && sketch_distance <= self.max_sketch_distance;
        if !near && of_words.iter().all(|&bits| bits > self.max_word_distance) {
            return None;
        }
        let measures = Measures::of(&a.words, &b.words, shingle);
        let ([n_words_a, n_words_b], (n_contained, n_shingles)) = (measures.n_words, measures.n_contained);
        let (n_shared, [n_features_a, n_features_b]) = measures.n_shared;
        let n_common = measures.n_common.map_or_else(String::new, |n| n.to_string());
        let [word_0, word_1, word_2, word_3] = of_words;
        Some(format!(
            "{}\t{}\t{distance}\t{sketch_distance}\t{word_0}\t{word_1}\t{word_2}\t{word_3}\t{n_words_a}\t{n_words_b}\t{n_common}\t\
             {}\t{}\t{n_contained}\t{n_shingles}\t{n_shared}\t{n_features_a}\t{n_features_b}\t{:.6}",
            a.id,
            b.id,
            measures.n_opening,
            longest_run(
                &a.sequence,
                &b.sequence,
                measures.n_opening,
                measures.n_common.unwrap_or(n_words_a.min(n_words_b))
            ),
            rare_share(&a.features, &b.features),
        ))
    }
}

/// Returns the distances of the four words of 64 bits of two sketches.
fn word_distances(a: &Sketch, b: &Sketch) -> [u32; 4] {
    [0, 1, 2, 3].map(|word| (a.word(word) ^ b.word(word)).count_ones())
}

/// A document.
#[derive(Deserialize)]
struct Document {
    id: String,
    text: String,
}

fn read(path: &Path) -> Result<Vec<Document>> {
    if path.is_dir() {
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(path)?.map(|entry| entry.map(|e| e.path())).collect::<std::io::Result<_>>()?;
        files.retain(|file| file.extension().is_some_and(|kind| kind == "jsonl" || kind == "parquet"));
        files.sort();
        return Ok(files.iter().map(|file| read(file)).collect::<Result<Vec<_>>>()?.into_iter().flatten().collect());
    }
    let file = File::open(path).map_err(|e| format!("{}: {e}", path.display()))?;
    if path.extension().is_some_and(|kind| kind == "parquet") {
        return read_parquet(file);
    }
    BufReader::new(file).lines().map(|line| Ok(serde_json::from_str(&line?)?)).collect()
}

fn read_parquet(file: File) -> Result<Vec<Document>> {
    let mut documents = Vec::new();
    for batch in ParquetRecordBatchReaderBuilder::try_new(file)?.build()? {
        let batch = batch?;
        let column = |name: &str| batch.column_by_name(name).ok_or_else(|| format!("no column `{name}`"));
        let (ids, texts) = (column("id")?.as_string::<i32>(), column("text")?.as_string::<i32>());
        let own = ids.iter().flatten().zip(texts.iter().flatten());
        documents.extend(own.map(|(id, text)| Document { id: id.to_owned(), text: text.to_owned() }));
    }
    Ok(documents)
}

/// A text with all that its rows need.
struct Text {
    id: String,
    fingerprint: u64,
    sketch: Sketch,
    words: TextWords,
    /// The hashes of the words, in order.
    sequence: Vec<u64>,
    /// The hashes of the distinct features of the sketch, in ascending order, with their weights.
    features: Vec<(u64, f64)>,
}

struct Reader {
    fingerprinter: TextFingerprinter,
    shingle: usize,
}

impl Reader {
    fn try_new(config: ProfileConfig) -> Result<Self> {
        let shingle = config.sketch.as_ref().ok_or("the profile makes no sketches")?.shingle;
        Ok(Self { fingerprinter: TextFingerprinter::try_new(config, &Resources::default())?, shingle })
    }

    /// Returns the text of a document, if it is long enough for a fingerprint.
    fn text(&self, document: &Document) -> Option<Text> {
        let outcome = self.fingerprinter.fingerprint(&document.text).outcome;
        let Outcome::Fingerprinted { fingerprint, sketch: Some(sketch), .. } = outcome else { return None };
        let words = self.fingerprinter.words(&document.text)?;
        let sequence: Vec<u64> = words.in_order().collect();
        let features =
            self.fingerprinter.sketch_features(&document.text)?.into_iter().map(|feature| (feature, 0.0)).collect();
        Some(Text { id: document.id.clone(), fingerprint, sketch, words, sequence, features })
    }
}

/// Sets the weight of each feature: the logarithm of the number of documents by the number of those that have it.
fn weigh(texts: &mut [Text]) {
    let mut n_documents: HashMap<u64, f64> = HashMap::new();
    texts
        .iter()
        .flat_map(|text| &text.features)
        .for_each(|&(feature, _)| *n_documents.entry(feature).or_default() += 1.0);
    let n = texts.len() as f64;
    texts
        .iter_mut()
        .flat_map(|text| &mut text.features)
        .for_each(|(feature, weight)| *weight = (n / n_documents[feature]).ln());
}

/// Returns the weight of the features that both texts have, as a share of the weight of those that either has.
fn rare_share(a: &[(u64, f64)], b: &[(u64, f64)]) -> f64 {
    let mut others = b.iter().peekable();
    let mut is_shared = |feature: u64| {
        while others.next_if(|other| other.0 < feature).is_some() {}
        others.peek().is_some_and(|other| other.0 == feature)
    };
    let weight = |features: &[(u64, f64)]| -> f64 { features.iter().map(|feature| feature.1).sum() };
    let shared: f64 = a.iter().filter(|feature| is_shared(feature.0)).map(|feature| feature.1).sum();
    let either = weight(a) + weight(b) - shared;
    if either > 0.0 { shared / either } else { 1.0 }
}

/// Returns the number of words of the longest run that both texts have, which is known to be `at_least` and `at_most`.
///
/// A run of one length is also one of all lesser lengths, so the length is found by halving. Runs are compared by hashes,
/// which the hash of the run before makes with a multiplication.
fn longest_run(a: &[u64], b: &[u64], at_least: usize, at_most: usize) -> usize {
    let (mut common, mut too_long) = (at_least, at_most + 1);
    while too_long - common > 1 {
        let length = usize::midpoint(common, too_long);
        let mut runs: Vec<u64> = hashes_of_runs(a, length).collect();
        runs.sort_unstable();
        if hashes_of_runs(b, length).any(|run| runs.binary_search(&run).is_ok()) {
            common = length;
        } else {
            too_long = length;
        }
    }
    common
}

fn hashes_of_runs(words: &[u64], length: usize) -> impl Iterator<Item = u64> + '_ {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let gone = (0..length).fold(1, |power: u64, _| power.wrapping_mul(FACTOR));
    let mut hash = 0u64;
    words.iter().enumerate().filter_map(move |(at, &word)| {
        hash = hash.wrapping_mul(FACTOR).wrapping_add(word);
        if at >= length {
            hash = hash.wrapping_sub(words[at - length].wrapping_mul(gone));
        }
        (at + 1 >= length).then_some(hash)
    })
}
