//! Runs the real binary, and reads and writes what it works on.
#![allow(dead_code, reason = "shared by several test binaries")]

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, StringArray, UInt64Array};
use arrow::util::display::array_value_to_string;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::properties::WriterProperties;

/// What the binary said.
pub struct Output {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Output {
    fn of(done: std::process::Output) -> Self {
        Self {
            code: done.status.code().unwrap_or(-1),
            stdout: String::from_utf8(done.stdout).unwrap(),
            stderr: String::from_utf8(done.stderr).unwrap(),
        }
    }

    /// The last line of standard output, as JSON.
    pub fn json(&self) -> serde_json::Value {
        let last = self.stdout.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|e| panic!("{e} in {last:?}; {}", self.stderr))
    }

    pub fn expect_success(self) -> Self {
        assert_eq!(self.code, 0, "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// The one line that reports the failure.
    pub fn error(&self) -> &str {
        self.stderr.lines().find(|l| l.starts_with("nearprint: error: ")).unwrap_or_default()
    }
}

pub fn nearprint(args: &[&str]) -> Output {
    nearprint_in(Path::new(env!("CARGO_MANIFEST_DIR")), args)
}

pub fn nearprint_in(folder: &Path, args: &[&str]) -> Output {
    Output::of(Command::new(env!("CARGO_BIN_EXE_nearprint")).args(args).current_dir(folder).output().unwrap())
}

/// Runs the binary, and gives its largest memory in MiB, as far as that was seen in time.
pub fn with_peak_mib(folder: &Path, args: &[&str]) -> (Output, u64) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nearprint"));
    let child = command.args(args).current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let done = std::thread::spawn(move || child.wait_with_output().unwrap());
    let mut peak = 0;
    while !done.is_finished() {
        let status = std::fs::read_to_string(&status).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
        let kib = line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0);
        peak = peak.max(kib / 1024);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    (Output::of(done.join().unwrap()), peak)
}

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A scratch folder with a job file whose documents, store and output lie in it.
pub struct Night {
    pub dir: tempfile::TempDir,
}

impl Night {
    pub fn new(job: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let places = "documents = \"documents\"\nstore = \"store\"\noutput = \"results\"\ncreate_store = true\n";
        std::fs::write(dir.path().join("job.toml"), format!("{places}{job}")).unwrap();
        std::fs::create_dir(dir.path().join("documents")).unwrap();
        Self { dir }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn documents(&self, dt: &str, rows: &[(&str, &str)]) -> &Self {
        let rows: Vec<(Option<&str>, Option<&str>)> = rows.iter().map(|(id, text)| (Some(*id), Some(*text))).collect();
        write_documents(&self.path().join(format!("documents/dt={dt}/part-0.parquet")), &rows);
        self
    }

    pub fn run(&self, dt: &str, more: &[&str]) -> Output {
        let args: Vec<&str> =
            ["run", "--config", "job.toml", "--dt", dt, "--json"].into_iter().chain(more.iter().copied()).collect();
        nearprint_in(self.path(), &args)
    }

    /// Rows of a dataset of the night's current generation.
    pub fn published(&self, dt: &str, dataset: &str) -> Vec<Vec<String>> {
        let night = self.path().join(format!("results/dt={dt}"));
        let current = std::fs::read_to_string(night.join("_current")).unwrap();
        rows(&night.join(current.trim()).join(dataset))
    }

    /// Decisions by id: (decision, canonical, distance, reason, cluster, size).
    pub fn decisions(&self, dt: &str) -> BTreeMap<String, Vec<String>> {
        self.published(dt, "decisions").into_iter().map(|row| (row[0].clone(), row[1..].to_vec())).collect()
    }
}

/// A text long enough for a fingerprint, its words drawn from a seed.
pub fn text(seed: u64, n_words: usize) -> String {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut words = Vec::new();
    for _ in 0..n_words {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        words.push(format!("w{:x}", state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 44));
    }
    words.join(" ")
}

pub fn write_documents(path: &Path, rows: &[(Option<&str>, Option<&str>)]) {
    let ids: ArrayRef = Arc::new(rows.iter().map(|r| r.0).collect::<StringArray>());
    let texts: ArrayRef = Arc::new(rows.iter().map(|r| r.1).collect::<StringArray>());
    write_parquet(path, &[("id", ids), ("text", texts)]);
}

pub fn write_fingerprints(path: &Path, rows: &[(String, u64)]) {
    let ids: ArrayRef = Arc::new(rows.iter().map(|r| Some(r.0.as_str())).collect::<StringArray>());
    let fingerprints: ArrayRef = Arc::new(rows.iter().map(|r| r.1).collect::<UInt64Array>());
    write_parquet(path, &[("doc_id", ids), ("fingerprint", fingerprints)]);
}

/// Small row groups, so that there are several tasks.
pub fn write_parquet(path: &Path, columns: &[(&str, ArrayRef)]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.iter().map(|(n, c)| (*n, Arc::clone(c), true))).unwrap();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(1000)).build();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// All rows of a Parquet file, or of the files of a folder in name order, as text; null is empty.
pub fn rows(path: &Path) -> Vec<Vec<String>> {
    if path.is_dir() {
        let mut files: Vec<PathBuf> = std::fs::read_dir(path).unwrap().map(|f| f.unwrap().path()).collect();
        files.sort();
        return files.iter().flat_map(|f| rows(f)).collect();
    }
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap().build().unwrap();
    let mut all = Vec::new();
    for batch in reader {
        let batch = batch.unwrap();
        for row in 0..batch.num_rows() {
            let value = |column: &ArrayRef| {
                if column.is_null(row) { String::new() } else { array_value_to_string(column, row).unwrap() }
            };
            all.push(batch.columns().iter().map(value).collect());
        }
    }
    all
}

/// Every file below a folder with its content.
pub fn snapshot(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.insert(path.strip_prefix(folder).unwrap().to_path_buf(), std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// Published data files, by path without the generation's name: what must not depend on threads, order or splitting.
pub fn data_files(night: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for (path, content) in ["store", "results"].into_iter().flat_map(|part| {
        snapshot(&night.join(part)).into_iter().map(move |(path, content)| (Path::new(part).join(path), content))
    }) {
        let text = path.to_string_lossy().into_owned();
        if text.ends_with(".parquet") {
            let parts: Vec<&str> = text.split('/').filter(|p| !p.starts_with("gen=")).collect();
            files.insert(parts.join("/"), content);
        }
    }
    files
}
