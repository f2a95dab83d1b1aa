//! A scratch folder with a job, its documents, and what must hold after each run of it.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow::util::display::array_value_to_string;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::properties::WriterProperties;
use serde_json::Value;

use crate::Result;
use crate::measured::{Call, Done, Options, mib};

/// Every file or object below a place, by its path from there.
pub type Snapshot = BTreeMap<String, Vec<u8>>;

/// The night of the trials.
pub const DT: &str = "2026-11-20";

/// What was wrong with a run, in words.
pub type Outcome<T = ()> = std::result::Result<T, String>;

/// One row of a dataset, values by column.
pub type Record = BTreeMap<String, String>;

/// `documents`, `store`, `results` and `spill` beside `job.toml`.
#[derive(Debug)]
pub struct Folder {
    pub dir: tempfile::TempDir,
    nearprint: PathBuf,
    pub limit_seconds: u64,
}

impl Folder {
    /// With more lines for the job file.
    pub fn new(options: &Options, job: &str) -> Result<Self> {
        let dir = options.scratch()?;
        let places = "documents = \"documents\"\nstore = \"store\"\noutput = \"results\"\ncreate_store = true\n";
        std::fs::write(dir.path().join("job.toml"), format!("{places}{job}"))?;
        std::fs::create_dir_all(dir.path().join(format!("documents/dt={DT}")))?;
        std::fs::create_dir(dir.path().join("spill"))?;
        let nearprint = options.nearprint()?;
        Ok(Self { dir, nearprint, limit_seconds: 60 })
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// A file of the night.
    pub fn place(&self, name: &str) -> PathBuf {
        self.path().join(format!("documents/dt={DT}/{name}"))
    }

    pub fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let place = self.place(name);
        std::fs::create_dir_all(place.parent().ok_or("no folder")?)?;
        Ok(std::fs::write(place, bytes)?)
    }

    /// One good document.
    pub fn good(&self) -> Result<()> {
        self.put("part-0.parquet", &parquet_of(&[(Some("good"), Some(&text(1, 40)))])?)
    }

    pub fn call(&self) -> Call<'_> {
        Call::new(&self.nearprint, self.path()).limit(self.limit_seconds)
    }

    pub fn run(&self, more: &[&str]) -> Result<Done> {
        let args = ["run", "--config", "job.toml", "--dt", DT, "--spill-dir", "spill", "--json"];
        self.call().run(&[&args[..], more].concat())
    }

    /// A refusal: the code, one line that has all `parts`, the same in the summary, nothing published, nothing left.
    pub fn refused(&self, done: &Done, codes: &[i32], parts: &[&str]) -> Outcome {
        if let Some(defect) = done.defect() {
            return Err(defect);
        }
        if !codes.contains(&done.code) {
            return Err(format!("{}, expected {codes:?}", done.brief()));
        }
        let error = done.error();
        if let Some(part) = parts.iter().find(|part| !error.contains(**part)) {
            return Err(format!("'{part}' is not in the message: {}", done.brief()));
        }
        if !done.err().lines().last().unwrap_or_default().starts_with("nearprint: error: ") {
            return Err(format!("the error is not the last line: {}", done.err()));
        }
        if done.summary()["exit_code"] != done.code {
            return Err(format!("the summary has another exit code: {}", done.out()));
        }
        if let Some(found) = self.published() {
            return Err(format!("{found} was published"));
        }
        self.nothing_left()
    }

    /// A night that is published, sound, and the same when run again.
    pub fn published_soundly(&self, done: &Done, more: &[&str]) -> Outcome<Value> {
        if done.code != 0 {
            return Err(format!("{}, expected 0", done.brief()));
        }
        let summary = done.summary();
        if summary["status"] != "published" {
            return Err(format!("status {}", summary["status"]));
        }
        self.nothing_left()?;
        let said = |e: crate::Error| e.to_string();
        let check = self.call().run(&["store", "check", "store", "--json"]).map_err(said)?;
        if check.code != 0 {
            return Err(format!("store check: {}", check.brief()));
        }
        let again = self.run(more).map_err(said)?;
        if again.summary()["status"] != "already_published" {
            return Err(format!("a rerun: {}", again.brief()));
        }
        Ok(summary)
    }

    /// Something published where nothing must be.
    fn published(&self) -> Option<String> {
        let commits = files_below(&self.path().join("store/_commits"));
        let results = files_below(&self.path().join("results"));
        commits.into_iter().chain(results).next().map(|p| p.display().to_string())
    }

    fn nothing_left(&self) -> Outcome {
        match std::fs::read_dir(self.path().join("spill")).ok().and_then(|mut d| d.next()) {
            Some(Ok(entry)) => Err(format!("left behind: {}", entry.path().display())),
            _ => Ok(()),
        }
    }

    fn generation(&self) -> Result<PathBuf> {
        let night = self.path().join(format!("results/dt={DT}"));
        let current = std::fs::read_to_string(night.join("_current"))?;
        Ok(night.join(current.trim()))
    }

    pub fn manifest(&self) -> Result<Value> {
        Ok(serde_json::from_str(&std::fs::read_to_string(self.generation()?.join("manifest.json"))?)?)
    }

    /// Rows of a published dataset.
    pub fn dataset(&self, name: &str) -> Result<Vec<Record>> {
        records(&self.generation()?.join(name))
    }

    /// Decision by id.
    pub fn decisions(&self) -> Result<BTreeMap<String, String>> {
        let of = |mut record: Record| Some((record.remove("doc_id")?, record.remove("decision")?));
        Ok(self.dataset("decisions")?.into_iter().filter_map(of).collect())
    }
}

/// Whether a run held at most `limit` bytes.
pub fn within(done: &Done, limit: u64) -> Outcome {
    if done.peak_rss <= limit {
        return Ok(());
    }
    Err(format!("{} MiB held, {} allowed; {}", mib(done.peak_rss), mib(limit), done.brief()))
}

/// A text that is long enough for a fingerprint, its words drawn from a seed.
pub fn text(seed: u64, n_words: usize) -> String {
    let mut rng = fastrand::Rng::with_seed(seed);
    let words: Vec<String> = (0..n_words).map(|_| format!("w{:x}", rng.u32(..1 << 20))).collect();
    words.join(" ")
}

pub fn strings(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(values.iter().copied().collect::<StringArray>())
}

/// Documents as Parquet.
pub fn parquet_of(rows: &[(Option<&str>, Option<&str>)]) -> Result<Vec<u8>> {
    let (ids, texts): (Vec<_>, Vec<_>) = rows.iter().copied().unzip();
    parquet_with(&[("id", strings(&ids)), ("text", strings(&texts))], WriterProperties::default())
}

/// Columns as Parquet, all nullable.
pub fn parquet_with(columns: &[(&str, ArrayRef)], properties: WriterProperties) -> Result<Vec<u8>> {
    let batch = RecordBatch::try_from_iter_with_nullable(columns.iter().map(|(n, c)| (*n, Arc::clone(c), true)))?;
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties))?;
    writer.write(&batch)?;
    Ok(writer.into_inner()?)
}

/// Rows of a Parquet file, or of those of a folder in the order of their names.
pub fn records(path: &Path) -> Result<Vec<Record>> {
    if path.is_dir() {
        return Ok(files_below(path).iter().map(|f| records(f)).collect::<Result<Vec<_>>>()?.concat());
    }
    let mut all = Vec::new();
    for batch in ParquetRecordBatchReaderBuilder::try_new(File::open(path)?)?.build()? {
        let batch = batch?;
        let names: Vec<String> = batch.schema().fields().iter().map(|f| f.name().clone()).collect();
        for row in 0..batch.num_rows() {
            let mut record = Record::new();
            for (name, column) in names.iter().zip(batch.columns()) {
                let value = if column.is_null(row) { String::new() } else { array_value_to_string(column, row)? };
                record.insert(name.clone(), value);
            }
            all.push(record);
        }
    }
    Ok(all)
}

/// Files at any depth, sorted.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(&next).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(entry.path()),
                _ => found.push(entry.path()),
            }
        }
    }
    found.sort();
    found
}
