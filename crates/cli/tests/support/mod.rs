//! The binary under test, and what it works on. All else is of `nearprint_harness`, which tests and trials share.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, UInt64Array};
pub use nearprint_harness::delta;
use nearprint_harness::folder::{self, Snapshot, parquet_with, places, snapshot_of};
pub use nearprint_harness::folder::{raw_strings, strings};
use nearprint_harness::measured::mib;
pub use nearprint_harness::random::text;
pub use nearprint_harness::runner::{Ran, Run, Running, Signal};
pub use nearprint_harness::schema;
use parquet::file::properties::WriterProperties;

pub const NEARPRINT: &str = env!("CARGO_BIN_EXE_nearprint");

/// `nearprint ARGS` in a folder.
pub fn command(folder: &Path, args: &[&str]) -> Run {
    Run::new(Path::new(NEARPRINT), folder, args).timeout(600)
}

/// A text with its word at `i` replaced.
pub fn edited(base: &str, i: usize) -> String {
    let mut words: Vec<&str> = base.split(' ').collect();
    words[i] = "edited";
    words.join(" ")
}

/// Asserts the exit code of a command that failed, and parts of its error.
pub fn expect(done: &Ran, code: i32, parts: &[&str]) {
    assert_eq!(done.code, code, "{}{}", done.stdout, done.stderr);
    for part in parts {
        assert!(done.error().contains(part), "{part:?} is not in {}", done.stderr);
    }
}

/// `nearprint ARGS` in a folder, as somebody who may not read and write everywhere, unlike root.
pub fn as_nobody(folder: &Path, args: &[&str]) -> Ran {
    let ids = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    command(folder, args).wrapped(&ids).run().unwrap()
}

pub fn nearprint_in(folder: &Path, args: &[&str]) -> Ran {
    command(folder, args).run().unwrap()
}

pub fn nearprint(args: &[&str]) -> Ran {
    nearprint_in(Path::new(env!("CARGO_MANIFEST_DIR")), args)
}

/// Runs the binary, and gives its largest memory in MiB.
pub fn with_peak_mib(folder: &Path, args: &[&str]) -> (Ran, u64) {
    let done = nearprint_in(folder, args);
    let peak = mib(done.peak_rss);
    (done, peak)
}

/// Says that this machine lacks what a test needs. Unlike what a test that passes prints, it is seen.
pub fn not_checked(why: &str) {
    std::io::stderr().write_all(format!("NOT CHECKED: {why}\n").as_bytes()).unwrap();
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
        std::fs::write(dir.path().join("job.toml"), places("") + job).unwrap();
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

    /// The run of a night.
    pub fn command(&self, dt: &str, more: &[&str]) -> Run {
        command(self.path(), &["run", "--config", "job.toml", "--dt", dt, "--json"]).args(more)
    }

    pub fn run(&self, dt: &str, more: &[&str]) -> Ran {
        let done = self.command(dt, more).run().unwrap();
        if done.code == 0 {
            self.assert_manifests_are_described(dt);
        }
        done
    }

    /// Holds the manifests of a night to the published schema. Tests may have damaged some, which are no JSON then.
    fn assert_manifests_are_described(&self, dt: &str) {
        let generations = std::fs::read_dir(self.path().join(format!("results/_nearprint/dt={dt}")));
        for generation in generations.into_iter().flatten() {
            let manifest = std::fs::read(generation.unwrap().path().join("manifest.json")).unwrap_or_default();
            if let Ok(manifest) = serde_json::from_slice(&manifest) {
                let said = schema::manifest(&manifest);
                assert!(said.is_ok(), "{}", said.unwrap_err());
            }
        }
    }

    /// The folder with the manifest of a night's current generation.
    pub fn generation(&self, dt: &str) -> PathBuf {
        folder::current(&self.path().join("results"), dt).unwrap()
    }

    /// Rows of a dataset of the night's current generation.
    pub fn published(&self, dt: &str, dataset: &str) -> Vec<Vec<String>> {
        self.published_in("results", dt, dataset)
    }

    /// Rows of a dataset of a night in an output.
    pub fn published_in(&self, output: &str, dt: &str, dataset: &str) -> Vec<Vec<String>> {
        let rows = folder::published_rows(&self.path().join(output), dt, dataset).unwrap();
        rows.into_iter().map(|row| row.into_iter().map(|(_, value)| value).collect()).collect()
    }

    /// The files of a night in a table.
    pub fn table_files(&self, dt: &str, table: &str) -> Vec<PathBuf> {
        let output = self.path().join("results");
        delta::night(&output, table, dt).unwrap().into_iter().map(|path| output.join(path)).collect()
    }

    /// Returns whether a night is in a table.
    pub fn is_in_tables(&self, dt: &str) -> bool {
        delta::TABLES.iter().any(|table| !self.table_files(dt, table).is_empty())
    }

    /// Decisions by id: (decision, canonical, distance, reason, cluster, size).
    pub fn decisions(&self, dt: &str) -> BTreeMap<String, Vec<String>> {
        self.published(dt, "decisions").into_iter().map(|row| (row[0].clone(), row[1..7].to_vec())).collect()
    }

    /// Lost shares by id, where there are any.
    pub fn lost_shares(&self, dt: &str) -> BTreeMap<String, f64> {
        let rows = self.published(dt, "decisions").into_iter();
        rows.filter_map(|row| Some((row[0].clone(), row[7].parse().ok()?))).collect()
    }
}

/// Whether SIGHUP ends what this process starts. Below nohup, it does not.
pub fn hangs_up() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    let is_so = u64::from_str_radix(ignored.trim(), 16).unwrap() & 1 == 0;
    if !is_so {
        eprintln!("NOT CHECKED: SIGHUP (the tests were started with nohup)");
    }
    is_so
}

pub fn write_documents(path: &Path, rows: &[(Option<&str>, Option<&str>)]) {
    let (ids, texts): (Vec<_>, Vec<_>) = rows.iter().copied().unzip();
    write_parquet(path, &[("id", strings(&ids)), ("text", strings(&texts))]);
}

pub fn write_fingerprints(path: &Path, rows: &[(String, u64)]) {
    let ids: Vec<Option<&str>> = rows.iter().map(|r| Some(r.0.as_str())).collect();
    let fingerprints: ArrayRef = Arc::new(rows.iter().map(|r| r.1).collect::<UInt64Array>());
    write_parquet(path, &[("doc_id", strings(&ids)), ("fingerprint", fingerprints)]);
}

/// Small row groups, so that there are several tasks.
pub fn write_parquet(path: &Path, columns: &[(&str, ArrayRef)]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(1000)).build();
    std::fs::write(path, parquet_with(columns, properties).unwrap()).unwrap();
}

/// All rows of a Parquet file, or of the files of a folder in name order, as text; null is empty.
pub fn rows(path: &Path) -> Vec<Vec<String>> {
    let values = |row: Vec<(String, String)>| row.into_iter().map(|(_, value)| value).collect();
    folder::rows(path).unwrap().into_iter().map(values).collect()
}

/// Every file below these parts of a folder, all of which are there.
fn files(folder: &Path, parts: &[&str]) -> Snapshot {
    assert!(parts.iter().all(|part| folder.join(part).is_dir()), "{parts:?} of {}", folder.display());
    snapshot_of(folder, parts).unwrap()
}

fn by_path(files: Snapshot) -> BTreeMap<PathBuf, Vec<u8>> {
    files.into_iter().map(|(name, content)| (PathBuf::from(name), content)).collect()
}

/// Every file below a folder with its content.
pub fn snapshot(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    by_path(files(folder, &[""]))
}

/// Every file of store and results with its content.
pub fn published(night: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    by_path(files(night, &["store", "results"]))
}

/// Published data files, by path without the generation's name: what must not depend on threads, order or splitting.
pub fn data_files(night: &Path) -> Snapshot {
    folder::data_files(files(night, &["store", "results"]))
}
