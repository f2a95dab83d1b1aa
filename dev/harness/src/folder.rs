//! A scratch folder with a job, its documents, and what must hold after each run of it.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow::util::display::array_value_to_string;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use serde_json::Value;

use crate::Result;
use crate::delta;
use crate::measured::{Options, mib};
use crate::random::text;
use crate::runner::{Ran, Run};

/// Every file or object below a place, by its path from there.
pub type Snapshot = BTreeMap<String, Vec<u8>>;

/// The night of the trials.
pub const DT: &str = "2026-11-20";

/// The fault of a run, in words.
pub type Outcome<T = ()> = std::result::Result<T, String>;

/// That something is as it should be.
pub fn expect(right: bool, otherwise: impl FnOnce() -> String) -> Outcome {
    if right { Ok(()) } else { Err(otherwise()) }
}

/// One row of a dataset, values by column.
pub type Record = BTreeMap<String, String>;

/// Lines of a job file whose documents, store and results lie below `root`, which is empty or ends with `/`.
pub fn places(root: &str) -> String {
    format!(
        "documents = \"{root}documents\"\nstore = \"{root}store\"\noutput = \"{root}results\"\ncreate_store = true\n"
    )
}

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
        std::fs::write(dir.path().join("job.toml"), places("") + job)?;
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

    /// `nearprint ARGS` in the folder.
    pub fn command(&self, args: &[&str]) -> Run {
        Run::new(&self.nearprint, self.path(), args).timeout(self.limit_seconds)
    }

    pub fn run(&self, more: &[&str]) -> Result<Ran> {
        let args = ["run", "--config", "job.toml", "--dt", DT, "--spill-dir", "spill", "--json"];
        self.command(&args).args(more).run()
    }

    /// A refusal: the code, one line that has all `parts`, perhaps a hint after it, the same in the summary, nothing published, nothing left.
    pub fn refused(&self, done: &Ran, codes: &[i32], parts: &[&str]) -> Outcome {
        if let Some(defect) = done.defect() {
            return Err(defect);
        }
        if !codes.contains(&done.code) {
            return Err(format!("{}, expected {codes:?}", done.said()));
        }
        let error = done.error();
        if let Some(part) = parts.iter().find(|part| !error.contains(**part)) {
            return Err(format!("'{part}' is not in the message: {}", done.said()));
        }
        let last = done.stderr.lines().rfind(|line| !line.starts_with("hint: ")).unwrap_or_default();
        if !last.starts_with("nearprint: error: ") {
            return Err(format!("the error is not the last line: {}", done.stderr));
        }
        if done.summary()["exit_code"] != done.code {
            return Err(format!("the summary has another exit code: {}", done.stdout));
        }
        if let Some(found) = self.published() {
            return Err(format!("{found} was published"));
        }
        self.nothing_left()
    }

    /// A night that is published, sound, and the same when run again.
    pub fn published_soundly(&self, done: &Ran, more: &[&str]) -> Outcome<Value> {
        if done.code != 0 {
            return Err(format!("{}, expected 0", done.said()));
        }
        let summary = done.summary();
        if summary["status"] != "published" {
            return Err(format!("status {}", summary["status"]));
        }
        self.nothing_left()?;
        let said = |e: crate::Error| e.to_string();
        let check = self.command(&["store", "check", "store", "--json"]).run().map_err(said)?;
        if check.code != 0 {
            return Err(format!("store check: {}", check.said()));
        }
        let again = self.run(more).map_err(said)?;
        if again.summary()["status"] != "already_published" {
            return Err(format!("a rerun: {}", again.said()));
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
        current(&self.path().join("results"), DT)
    }

    pub fn manifest(&self) -> Result<Value> {
        Ok(serde_json::from_str(&std::fs::read_to_string(self.generation()?.join("manifest.json"))?)?)
    }

    /// Rows of a published dataset.
    pub fn dataset(&self, name: &str) -> Result<Vec<Record>> {
        let rows = published_rows(&self.path().join("results"), DT, name)?;
        Ok(rows.into_iter().map(|row| row.into_iter().collect()).collect())
    }

    /// Decision by id.
    pub fn decisions(&self) -> Result<BTreeMap<String, String>> {
        let of = |mut record: Record| Some((record.remove("doc_id")?, record.remove("decision")?));
        Ok(self.dataset("decisions")?.into_iter().filter_map(of).collect())
    }
}

/// Checks that a run held at most `limit` bytes.
pub fn within(done: &Ran, limit: u64) -> Outcome {
    if done.peak_rss <= limit {
        return Ok(());
    }
    Err(format!("{} MiB held, {} allowed; {}", mib(done.peak_rss), mib(limit), done.said()))
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

/// Strings as Parquet, without any look at them.
pub fn raw_strings(rows: &[(&[u8], &[u8])], properties: WriterProperties) -> Result<Vec<u8>> {
    let schema = parquet::schema::parser::parse_message_type(
        "message m { required binary id (UTF8); required binary text (UTF8); }",
    )?;
    let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for side in [0, 1] {
        let values: Vec<ByteArray> =
            rows.iter().map(|r| ByteArray::from(if side == 0 { r.0 } else { r.1 }.to_vec())).collect();
        let mut column = group.next_column()?.ok_or("no column")?;
        column.typed::<ByteArrayType>().write_batch(&values, None, None)?;
        column.close()?;
    }
    group.close()?;
    Ok(writer.into_inner()?)
}

/// The generation of a published night: the folder of its manifest, by the table of decisions.
pub fn current(output: &Path, dt: &str) -> Result<PathBuf> {
    let files = delta::night(output, "decisions", dt)?;
    let generation = files.first().and_then(|path| delta::generation(path)).ok_or(format!("{dt} is in no table"))?;
    Ok(output.join(format!("_nearprint/dt={dt}/gen={generation}")))
}

/// Rows of a night in a table.
pub fn published_rows(output: &Path, dt: &str, table: &str) -> Result<Vec<Vec<(String, String)>>> {
    let files = delta::night(output, table, dt)?;
    Ok(files.iter().map(|path| rows(&output.join(path))).collect::<Result<Vec<_>>>()?.concat())
}

/// Rows of a Parquet file, or of those of a folder in the order of their names, as columns and values; NULL is empty.
pub fn rows(path: &Path) -> Result<Vec<Vec<(String, String)>>> {
    if path.is_dir() {
        return Ok(files_below(path).iter().map(|f| rows(f)).collect::<Result<Vec<_>>>()?.concat());
    }
    let mut all = Vec::new();
    for batch in ParquetRecordBatchReaderBuilder::try_new(File::open(path)?)?.build()? {
        let batch = batch?;
        let names: Vec<String> = batch.schema().fields().iter().map(|f| f.name().clone()).collect();
        for row in 0..batch.num_rows() {
            let mut values = Vec::new();
            for (name, column) in names.iter().zip(batch.columns()) {
                let value = if column.is_null(row) { String::new() } else { array_value_to_string(column, row)? };
                values.push((name.clone(), value));
            }
            all.push(values);
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
            let path = entry.path();
            let kind = if path.is_dir() { &mut open } else { &mut found };
            kind.push(path);
        }
    }
    found.sort();
    found
}

/// Every file below these parts of a folder, by its path from the folder; a part that is not there has none.
pub fn snapshot_of(folder: &Path, parts: &[&str]) -> Result<Snapshot> {
    let files = parts.iter().flat_map(|part| files_below(&folder.join(part)));
    let named = |path: PathBuf| -> Result<(String, Vec<u8>)> {
        Ok((path.strip_prefix(folder)?.display().to_string(), std::fs::read(&path)?))
    };
    files.map(named).collect()
}

/// Parquet files of store and results, by path without the generation's name: what must not depend on threads, order or splitting.
pub fn data_files(files: Snapshot) -> Snapshot {
    let plain = |key: String| match delta::generation(&key) {
        Some(generation) if key.starts_with("results/") => key.replace(&format!("-{generation}"), ""),
        _ => key,
    };
    let published = files.into_iter().filter(|(k, _)| k.ends_with(".parquet") && !k.starts_with("documents/"));
    published.map(|(key, content)| (plain(key), content)).collect()
}
