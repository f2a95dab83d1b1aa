//! Writes generated sets as Parquet files, measures the cost of merely reading them, and checks the pairs of a join.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{ArrayRef, AsArray, FixedSizeBinaryArray, RecordBatch, StringArray, UInt64Array};
use arrow::datatypes::{DataType, Field, Int32Type, Schema, SchemaRef, UInt64Type};
use nearprint_parquet::writer_properties;
use parquet::arrow::ArrowWriter;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use rayon::prelude::*;

use crate::data::{Rng, Sets};
use crate::{Result, print};

/// The set to write.
#[derive(Debug, clap::Args)]
pub struct Generate {
    /// Binary logarithm of the number of existing fingerprints.
    #[arg(long)]
    log_existing: u32,
    /// Binary logarithm of the number of queries.
    #[arg(long)]
    log_queries: u32,
    /// Number of queries that have a planted neighbour, at distances 0 to `--max-distance` in turn.
    #[arg(long, default_value_t = 10_000)]
    planted: usize,
    /// Largest planted distance.
    #[arg(long, default_value_t = 3)]
    max_distance: u32,
    /// Seed of the data.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Also write a `doc_id` like a URL, and a random `sketch`.
    #[arg(long)]
    documents: bool,
    /// Also write a random `sketch`.
    #[arg(long)]
    sketches: bool,
    /// Also write raw little-endian `existing.u64` and `queries.u64`.
    #[arg(long)]
    raw: bool,
    /// Folder for `existing/part-NNNNN.parquet` and `queries.parquet`.
    #[arg(long)]
    output: PathBuf,
}

/// The number of pieces of a file.
const FILE_PIECES: u64 = 16;

impl Generate {
    /// Writes the files of the set in parallel.
    pub fn run(&self) -> Result<()> {
        let sets = Sets::new(self.log_existing, self.log_queries, self.planted, self.max_distance, self.seed);
        let folder = self.output.join("existing");
        std::fs::create_dir_all(&folder)?;
        let started = Instant::now();
        let n_files = sets.n_pieces().div_ceil(FILE_PIECES);
        let rows: Vec<u64> = (0..n_files)
            .into_par_iter()
            .map(|file| {
                let pieces = file * FILE_PIECES..sets.n_pieces().min((file + 1) * FILE_PIECES);
                let path = folder.join(format!("part-{file:05}.parquet"));
                self.write(&path, self.documents, pieces.map(|piece| sets.piece(piece).0))
            })
            .collect::<Result<_>>()?;
        self.write(&self.output.join("queries.parquet"), false, std::iter::once(sets.queries().to_vec()))?;
        if self.raw {
            write_raw(&self.output.join("existing.u64"), (0..sets.n_pieces()).map(|piece| sets.piece(piece).0))?;
            write_raw(&self.output.join("queries.u64"), std::iter::once(sets.queries().to_vec()))?;
        }
        let n_rows: u64 = rows.iter().sum();
        let (column, all) = sizes(&folder)?;
        let bound = 64.0 - (n_rows as f64).log2() + 1.44;
        print(&serde_json::json!({
            "operation": "generate", "n_existing": n_rows, "n_planted": sets.n_planted(), "seconds": started.elapsed().as_secs_f64(),
            "column_bytes": column, "file_bytes": all, "bits_per_fingerprint": all as f64 * 8.0 / n_rows as f64,
            "entropy_bits": bound, "column_over_entropy": column as f64 * 8.0 / n_rows as f64 / bound,
            "files_over_entropy": all as f64 * 8.0 / n_rows as f64 / bound,
        }))
    }

    /// Writes a file and returns its number of rows. Without a `doc_id`, as for queries, the numbers of the rows are
    /// the ids.
    fn write(&self, path: &Path, with_ids: bool, pieces: impl Iterator<Item = Vec<u64>>) -> Result<u64> {
        let mut fields = vec![Field::new("fingerprint", DataType::UInt64, false)];
        if with_ids {
            fields.insert(0, Field::new("doc_id", DataType::Utf8, false));
        }
        if self.documents || self.sketches {
            fields.push(Field::new("sketch", DataType::FixedSizeBinary(32), false));
        }
        let schema: SchemaRef = Arc::new(Schema::new(fields));
        let properties = writer_properties(&schema, &[]);
        let file = BufWriter::new(File::create(path)?);
        let mut writer = ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties))?;
        let mut n_rows = 0;
        for piece in pieces {
            // A page ends at the end of a batch, so the rows of a batch are a multiple of those of a page.
            for values in piece.chunks(1 << 16) {
                n_rows += values.len() as u64;
                let columns = schema.fields().iter().map(|field| column(field.name(), values));
                writer.write(&RecordBatch::try_new(Arc::clone(&schema), columns.collect::<Result<_>>()?)?)?;
            }
        }
        writer.close()?;
        Ok(n_rows)
    }
}

/// Returns a column. The ids, which are URLs of about 60 characters, and the sketches depend only on the fingerprints.
pub fn column(name: &str, fingerprints: &[u64]) -> Result<ArrayRef> {
    Ok(match name {
        "doc_id" => Arc::new(StringArray::from_iter_values(fingerprints.iter().map(|&f| url(f)))),
        "sketch" => Arc::new(FixedSizeBinaryArray::try_from_iter(fingerprints.iter().map(|&f| sketch(f)))?),
        _ => Arc::new(UInt64Array::from(fingerprints.to_vec())),
    })
}

/// Returns a URL of about 60 characters.
pub fn url(fingerprint: u64) -> String {
    let mut rng = Rng(fingerprint);
    let (site, folder) = (rng.next() % 50_000, rng.next() % (1 << 24));
    format!("https://www.site-{site:05}.example/{folder:06x}/articles/{fingerprint:016x}.html")
}

/// Returns a random sketch, which depends on the fingerprint alone.
pub fn sketch(fingerprint: u64) -> Vec<u8> {
    let mut rng = Rng(!fingerprint);
    (0..4).flat_map(|_| rng.next().to_le_bytes()).collect()
}

/// Writes the numbers one after the other in little-endian order.
pub fn write_raw(path: &Path, pieces: impl Iterator<Item = Vec<u64>>) -> Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for piece in pieces {
        for value in piece {
            file.write_all(&value.to_le_bytes())?;
        }
    }
    Ok(file.flush()?)
}

fn parts(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files =
        std::fs::read_dir(folder)?.map(|entry| entry.map(|e| e.path())).collect::<std::io::Result<Vec<_>>>()?;
    files.retain(|file| file.extension().is_some_and(|e| e == "parquet"));
    files.sort();
    Ok(files)
}

/// Returns the bytes of the `fingerprint` column chunks, and those of the files.
fn sizes(folder: &Path) -> Result<(u64, u64)> {
    let (mut column, mut all) = (0, 0);
    for path in parts(folder)? {
        all += std::fs::metadata(&path)?.len();
        let footer = ParquetRecordBatchReaderBuilder::try_new(File::open(&path)?)?.metadata().clone();
        let chunks = footer.row_groups().iter().flat_map(|group| group.columns());
        column += chunks.filter(|c| c.column_path().string() == "fingerprint").map(|c| c.byte_range().1).sum::<u64>();
    }
    Ok((column, all))
}

/// The folder to read.
#[derive(Debug, clap::Args)]
pub struct Decode {
    /// Folder of Parquet files.
    folder: PathBuf,
    /// Number of threads.
    #[arg(long, default_value_t = 2)]
    threads: usize,
}

impl Decode {
    /// Reads and decodes the `fingerprint` column with the Parquet crate's own reader, with one task per row group.
    pub fn run(&self) -> Result<()> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads).build()?;
        let started = Instant::now();
        let mut groups: Vec<(PathBuf, usize)> = Vec::new();
        for path in parts(&self.folder)? {
            let n = ParquetRecordBatchReaderBuilder::try_new(File::open(&path)?)?.metadata().num_row_groups();
            groups.extend((0..n).map(|group| (path.clone(), group)));
        }
        let sums =
            pool.install(|| groups.par_iter().map(|(path, group)| read(path, *group)).collect::<Result<Vec<_>>>())?;
        let seconds = started.elapsed().as_secs_f64();
        let n_rows: u64 = sums.iter().map(|(n, _)| n).sum();
        print(&serde_json::json!({
            "operation": "decode", "threads": self.threads, "n_rows": n_rows, "seconds": seconds,
            "ns_per_fingerprint": seconds * 1e9 / n_rows as f64, "check": sums.iter().fold(0, |a, (_, x)| a ^ x),
        }))
    }
}

fn read(path: &Path, group: usize) -> Result<(u64, u64)> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path)?)?;
    let mask = ProjectionMask::columns(builder.parquet_schema(), ["fingerprint"]);
    let reader = builder.with_projection(mask).with_row_groups(vec![group]).with_batch_size(1 << 16).build()?;
    let (mut n, mut check) = (0, 0);
    for batch in reader {
        let batch = batch?;
        n += batch.num_rows() as u64;
        check ^= batch.column(0).as_primitive::<UInt64Type>().values().iter().fold(0, |a, x| a ^ x);
    }
    Ok((n, check))
}

/// The pairs to check.
#[derive(Debug, clap::Args)]
pub struct Check {
    /// Output folder of `nearprint join --pairs all`.
    output: PathBuf,
    /// Number of planted neighbours, as for `generate`.
    #[arg(long, default_value_t = 10_000)]
    planted: u64,
    /// Largest planted distance, as for `generate`.
    #[arg(long, default_value_t = 3)]
    max_distance: u64,
}

impl Check {
    /// Prints how many planted neighbours are among the pairs at their distance. Fails if one is missing.
    pub fn run(&self) -> Result<()> {
        let mut found = vec![false; usize::try_from(self.planted)?];
        let mut n_pairs = 0u64;
        for path in parts(&self.output.join("pairs"))? {
            for batch in ParquetRecordBatchReaderBuilder::try_new(File::open(path)?)?.build()? {
                let batch = batch?;
                n_pairs += batch.num_rows() as u64;
                let ids = batch.column_by_name("id_a").ok_or("no id_a")?.as_string::<i32>();
                let distances = batch.column_by_name("distance").ok_or("no distance")?.as_primitive::<Int32Type>();
                for (id, &distance) in ids.iter().flatten().zip(distances.values()) {
                    let query: u64 = id.parse()?;
                    if query < self.planted && u64::from(distance.unsigned_abs()) == query % (self.max_distance + 1) {
                        found[usize::try_from(query)?] = true;
                    }
                }
            }
        }
        let n_found = found.iter().filter(|&&f| f).count() as u64;
        print(&serde_json::json!({
            "operation": "check", "n_pairs": n_pairs, "n_planted": self.planted, "n_found": n_found, "n_missing": self.planted - n_found,
        }))?;
        if n_found == self.planted { Ok(()) } else { Err("planted pairs are missing".into()) }
    }
}
