//! A small night to try things on: documents from a seed, an earlier published night, the command, what it published, and the
//! invariants I1 to I5 that hold after every trial.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, FileTimes};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use parquet::file::properties::WriterProperties;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::folder::{Snapshot, parquet_with, places, snapshot_of, strings};
use crate::random::Random;
use crate::runner::{HUNG, Ran, Run};
use crate::server::Server;
use crate::{Result, delta, require, secrets};

/// The night that is published before a trial begins, and that of the trial.
pub const OLD: &str = "2026-11-19";
pub const NEW: &str = "2026-11-20";
/// A night after it that has its ids again, where the trial's run replaces [`NEW`] by itself.
pub const LATER: &str = "2026-11-21";

/// Where documents, store and results lie.
#[derive(Debug, Clone)]
pub enum Place {
    /// In the night's folder, named by relative paths, so that a copy of the folder is the same night.
    Local,
    S3 {
        server: Server,
        prefix: String,
    },
}

impl Place {
    pub fn backend(&self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::S3 { .. } => "rgw",
        }
    }

    /// A prefix of its own on the server.
    pub fn on(server: &Server, name: &str) -> Self {
        Self::S3 { server: server.clone(), prefix: format!("trials/{name}-{}", std::process::id()) }
    }
}

/// A description of the documents to make.
#[derive(Debug, Clone)]
pub struct Spec {
    pub seed: u64,
    /// Documents of each of the two nights.
    pub n_documents: usize,
    pub jsonl: bool,
    /// Length of ids; long ones make large files of few documents.
    pub id_bytes: usize,
    /// Added to the job file before `[s3]`.
    pub job: String,
    /// So many of the last documents have the text of the first.
    pub n_copies: usize,
    /// The part that the trial's run replaces.
    pub replaces: Replaces,
}

/// The part of [`NEW`] that is published already, and how the trial's run, with `--replace`, differs from that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replaces {
    /// Nothing is published, and the run replaces nothing.
    Nothing,
    /// The published night was made with another distance.
    OtherDistance,
    /// Nothing differs; a later night was joined with the published one.
    Unchanged,
    /// The same, but a file lies among the documents now that no run reads.
    IgnoredFile,
    /// The run is by another release.
    OtherRelease,
}

impl Replaces {
    /// Returns whether the run is of the inputs and configuration that are published.
    pub fn is_same_request(self) -> bool {
        matches!(self, Self::Unchanged | Self::IgnoredFile | Self::OtherRelease)
    }

    /// Returns whether the run publishes anything.
    pub fn publishes(self) -> bool {
        !matches!(self, Self::Unchanged | Self::IgnoredFile)
    }
}

impl Spec {
    pub fn new(seed: u64) -> Self {
        let n_documents = 30 + usize::try_from(seed * 7 % 31).unwrap_or(0);
        Self {
            seed,
            n_documents,
            jsonl: seed % 3 == 2,
            id_bytes: 24,
            job: String::new(),
            n_copies: 0,
            replaces: Replaces::Nothing,
        }
    }
}

/// A prepared night: [`OLD`] is published, [`NEW`] is there to be run.
#[derive(Debug)]
pub struct Night {
    pub nearprint: PathBuf,
    /// Holds `job.toml`, `spill/` and, on local disk, `documents/`, `store/` and `results/`.
    pub dir: PathBuf,
    pub place: Place,
    pub spec: Spec,
    /// Documents, store and results before the trial.
    pub base: Snapshot,
    /// The same after an undisturbed run of [`NEW`].
    pub reference: Snapshot,
    /// The time that that run took.
    pub seconds: f64,
}

/// The night that readers see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    Old,
    New,
}

impl Night {
    /// Writes the documents, publishes [`OLD`], and keeps what an undisturbed [`NEW`] publishes; then everything is put back.
    pub fn prepare(nearprint: &Path, dir: &Path, place: Place, spec: Spec) -> Result<Self> {
        std::fs::create_dir_all(dir.join("spill"))?;
        let none = Snapshot::new();
        let mut night = Self {
            nearprint: nearprint.to_owned(),
            dir: dir.to_owned(),
            place,
            spec,
            base: none.clone(),
            reference: none,
            seconds: 0.0,
        };
        night.base = documents(&night.spec)?;
        night.write_job("job.toml", None, "")?;
        night.restore()?;
        night.run_of("job.toml", OLD).run()?.ends_with(&[0], &[])?;
        night.publish_before()?;
        night.base = night.snapshot()?;
        let ran = night.new_run().run()?;
        ran.ends_with(&[0], &[])?;
        let summary = ran.summary();
        for key in ["n_new_existing", "n_new_new", "n_same_id", "n_drop"] {
            require!(summary[key].as_u64().unwrap_or(0) > 0, "the night is no trial, {key} is 0: {}", ran.stdout);
        }
        night.seconds = ran.seconds;
        night.reference = night.snapshot()?;
        let seen = night.readers(&night.reference)?;
        require!((seen == Seen::New) == night.spec.replaces.publishes(), "the reference itself is not seen");
        night.restore()?;
        Ok(night)
    }

    /// Publishes what the run replaces.
    fn publish_before(&mut self) -> Result<()> {
        let replaces = self.spec.replaces;
        if replaces == Replaces::OtherDistance {
            self.write_job_with("other.toml", None, "", "join = { max_distance = 5 }\n")?;
            return self.run_of("other.toml", NEW).run()?.ends_with(&[0], &[]);
        }
        if !replaces.is_same_request() {
            return Ok(());
        }
        self.run_of("job.toml", NEW).run()?.ends_with(&[0], &[])?;
        if replaces == Replaces::OtherRelease {
            return of_another_release(&self.nearprint, &self.dir.join(OTHER_RELEASE));
        }
        self.run_of("job.toml", LATER).run()?.ends_with(&[0], &[])?;
        if replaces == Replaces::IgnoredFile {
            let mut with_another = self.snapshot()?;
            with_another.insert(format!("documents/dt={NEW}/notes.txt"), b"no document".to_vec());
            self.put_back(&with_another)?;
        }
        Ok(())
    }

    /// The same night, prepared, in another folder. Local places only: on S3 the prefix is part of what is published.
    pub fn twin(&self, dir: &Path) -> Result<Self> {
        require!(matches!(self.place, Place::Local), "only local nights have twins");
        std::fs::create_dir_all(dir.join("spill"))?;
        let twin = Self {
            nearprint: self.nearprint.clone(),
            dir: dir.to_owned(),
            place: Place::Local,
            spec: self.spec.clone(),
            base: self.base.clone(),
            reference: self.reference.clone(),
            seconds: self.seconds,
        };
        if self.dir.join(OTHER_RELEASE).exists() {
            std::fs::copy(self.dir.join(OTHER_RELEASE), dir.join(OTHER_RELEASE))?;
        }
        twin.write_job("job.toml", None, "")?;
        twin.restore()?;
        Ok(twin)
    }

    /// A job file of this night: through another endpoint, such as a proxy's, and with more keys of `[s3]`.
    pub fn write_job(&self, name: &str, endpoint: Option<&str>, s3: &str) -> Result<()> {
        self.write_job_with(name, endpoint, s3, "")
    }

    /// The same with more top-level keys.
    pub fn write_job_with(&self, name: &str, endpoint: Option<&str>, s3: &str, top: &str) -> Result<()> {
        let root = match &self.place {
            Place::Local => String::new(),
            Place::S3 { server, prefix } => format!("s3://{}/{prefix}/", server.bucket),
        };
        let mut job = format!("{}{top}{}", places(&root), self.spec.job);
        if let Place::S3 { server, .. } = &self.place {
            let endpoint = endpoint.unwrap_or(&server.endpoint);
            job += &format!("[s3]\nendpoint = \"{endpoint}\"\n{s3}");
        }
        Ok(std::fs::write(self.dir.join(name), job)?)
    }

    /// Puts documents, store and results back to the state before the trial, and empties the spill folder.
    pub fn restore(&self) -> Result<()> {
        self.put_back(&self.base)
    }

    /// Makes documents, store and results what they are here.
    pub fn put_back(&self, state: &Snapshot) -> Result<()> {
        let spill = self.dir.join("spill");
        std::fs::remove_dir_all(&spill).or_else(ignore_missing)?;
        std::fs::create_dir_all(&spill)?;
        match &self.place {
            Place::Local => {
                for part in ["documents", "store", "results"] {
                    std::fs::remove_dir_all(self.dir.join(part)).or_else(ignore_missing)?;
                }
                for (name, content) in state {
                    write_file(&self.dir.join(name), content)?;
                }
                Ok(())
            }
            Place::S3 { server, prefix } => server.restore(prefix, state),
        }
    }

    /// Removes what lies on a server.
    pub fn clear(&self) -> Result<()> {
        match &self.place {
            Place::Local => Ok(()),
            Place::S3 { server, prefix } => server.restore(prefix, &Snapshot::new()),
        }
    }

    /// Every file of documents, store and results.
    pub fn snapshot(&self) -> Result<Snapshot> {
        match &self.place {
            Place::Local => snapshot_of(&self.dir, &["documents", "store", "results"]),
            Place::S3 { server, prefix } => server.read_all(prefix),
        }
    }

    /// `nearprint ARGS` in the night's folder.
    pub fn command(&self, args: &[&str]) -> Run {
        let run = Run::new(&self.nearprint, &self.dir, args).args(&["--spill-dir", "spill"]);
        match &self.place {
            // A local night needs no credentials: it gets some that must not be seen again.
            Place::Local => secrets::ENV.iter().fold(run, |run, (name, secret)| run.env(name, secret)),
            Place::S3 { .. } => run,
        }
    }

    pub fn run_of(&self, config: &str, dt: &str) -> Run {
        self.command(&["run", "--config", config, "--dt", dt, "--json"])
    }

    /// The run that trials disturb.
    pub fn new_run(&self) -> Run {
        self.new_run_by("job.toml")
    }

    /// The same by another job file.
    pub fn new_run_by(&self, config: &str) -> Run {
        let mut run = self.run_of(config, NEW);
        if self.spec.replaces == Replaces::OtherRelease {
            run.program = self.dir.join(OTHER_RELEASE);
        }
        run.args(if self.spec.replaces == Replaces::Nothing { &[] } else { &["--replace"] })
    }

    /// I1: what readers see is the old complete state or the new one. By the newest commit and, for plain readers, by the tables.
    pub fn readers(&self, now: &Snapshot) -> Result<Seen> {
        let commit = newest_commit(now).ok_or("no commit is left")?;
        let seen = if newest_commit(&self.base) == Some(commit) {
            Seen::Old
        } else if newest_commit(&self.reference) == Some(commit) {
            Seen::New
        } else {
            return Err(format!("the newest commit is neither the old nor the new one: {}", text(commit.1)).into());
        };
        complete(now)?;
        Ok(seen)
    }

    /// I2: what is published is sound. `nearprint check`, or `store check` of releases before it.
    pub fn check(&self) -> Result<()> {
        let has_check = Run::new(&self.nearprint, &self.dir, &["check", "--help"]).run()?.code == 0;
        let args: &[&str] = if has_check { &["check"] } else { &["store", "check"] };
        let ran = Run::new(&self.nearprint, &self.dir, args).args(&["--config", "job.toml", "--json"]).run()?;
        require!(ran.code == 0, "check: {}", ran.said());
        Ok(())
    }

    /// I4: nothing temporary is left.
    pub fn leftovers(&self, now: &Snapshot) -> Result<()> {
        let mut spill = Vec::new();
        for entry in std::fs::read_dir(self.dir.join("spill"))? {
            spill.push(entry?.file_name().to_string_lossy().into_owned());
        }
        require!(spill.is_empty(), "left in the spill folder: {}", spill.join(", "));
        let temporary: Vec<&str> = now.keys().map(String::as_str).filter(|key| is_temporary(key)).collect();
        require!(temporary.is_empty(), "temporary files are left: {}", temporary.join(", "));
        Ok(())
    }

    /// A run that failed in-process took back all that it had written.
    fn nothing_stays(&self, now: &Snapshot) -> Result<()> {
        let more: Vec<&String> = now.keys().filter(|key| !is_drawn(key) && !self.base.contains_key(*key)).collect();
        require!(more.is_empty(), "these files stay of a run that failed: {more:?}");
        Ok(())
    }

    /// I5: a plain run then publishes what an undisturbed one does, byte for byte, and leaves nothing else.
    pub fn rerun(&self) -> Result<()> {
        let mut ran = self.run_of("job.toml", NEW).run()?;
        if self.spec.replaces.is_same_request() {
            // Whatever the run that was killed had done, the night is published from these inputs.
            require!(ran.code == 0, "the rerun: {}", ran.said());
            self.check()?;
            if !self.spec.replaces.publishes() {
                let later = self.run_of("job.toml", LATER).run()?;
                require!(later.code == 0, "a rerun of the later night: {}", later.said());
            }
            ran = self.new_run().run()?;
        } else if self.spec.replaces == Replaces::OtherDistance && ran.code == 73 {
            ran = self.new_run().run()?;
        }
        require!(ran.code == 0, "the rerun: {}", ran.said());
        let now = self.snapshot()?;
        self.same_as_reference(&now).map_err(|e| format!("after the rerun {e}"))?;
        self.leftovers(&now).map_err(|e| format!("after the rerun {e}").into())
    }

    /// Every file is that of an undisturbed run, `_probe/` and what is drawn excepted.
    pub fn same_as_reference(&self, now: &Snapshot) -> Result<()> {
        let visible = |s: &Snapshot| -> BTreeSet<String> { s.keys().filter(|k| !is_drawn(k)).cloned().collect() };
        let (there, wanted) = (visible(now), visible(&self.reference));
        let more: Vec<&String> = there.difference(&wanted).collect();
        require!(more.is_empty(), "these files are too much: {more:?}");
        let missing: Vec<&String> = wanted.difference(&there).collect();
        require!(missing.is_empty(), "these files are missing: {missing:?}");
        let differing: Vec<&String> = wanted.iter().filter(|k| now.get(*k) != self.reference.get(*k)).collect();
        require!(differing.is_empty(), "these files differ: {differing:?}");
        Ok(())
    }

    /// Every file of an undisturbed run is there as it should be; more may lie beside them, that no commit names. Which nights
    /// share a version of a table depends on who is first; that the tables are right is for [`complete`] to say.
    pub fn has_reference(&self, now: &Snapshot) -> Result<()> {
        let visible = self.reference.iter().filter(|(key, _)| !is_drawn(key) && !key.contains("/_delta_log/"));
        let differing: Vec<&String> = visible.filter(|(k, v)| now.get(*k) != Some(*v)).map(|(k, _)| k).collect();
        require!(differing.is_empty(), "these files are missing or differ: {differing:?}");
        Ok(())
    }

    /// No secret was said or written, and I1, I2, I4 (where the run had the chance to tidy) and then I5: all that holds after a trial.
    pub fn holds_after(&self, ran: &Ran) -> Result<Seen> {
        let now = self.snapshot()?;
        secrets::nothing_said(&[&ran.stdout, &ran.stderr], &now)?;
        let seen = self.readers(&now)?;
        self.check()?;
        if ran.code != 137 && ran.code != HUNG {
            self.leftovers(&now)?;
        }
        if ran.code == 74 && seen == Seen::Old && matches!(self.place, Place::Local) {
            self.nothing_stays(&now)?;
        }
        if ran.code == 0 && self.spec.replaces.publishes() {
            require!(seen == Seen::New, "exit 0, but the night is not published");
        }
        self.rerun()?;
        self.check()?;
        Ok(seen)
    }
}

/// The binary of another release, in a night's folder.
const OTHER_RELEASE: &str = "nearprint-of-another-release";

/// Copies a binary with another version in it, as long as its own: it stands in every Parquet file as `nearprint 0.1.0`. An optimised
/// binary may have that text in two halves, so the last eight bytes of it are looked for.
pub fn of_another_release(nearprint: &Path, to: &Path) -> Result<()> {
    let mut binary = std::fs::read(nearprint)?;
    let whole = concat!("nearprint ", env!("CARGO_PKG_VERSION")).as_bytes();
    let own = &whole[whole.len() - 8..];
    let at: Vec<usize> = (0..binary.len() - own.len()).filter(|&at| binary[at..].starts_with(own)).collect();
    require!(!at.is_empty(), "the version does not stand in the binary");
    for at in at {
        binary[at + own.len() - 1] = b'9';
    }
    let written = to.with_extension("written");
    std::fs::copy(nearprint, &written)?;
    std::fs::write(&written, binary)?;
    // Other tests start processes meanwhile. Had this process open for writing what is to be run, one of them could have it open too,
    // and the system would not run it.
    let copied = Command::new("cp").arg(&written).arg(to).status()?;
    require!(copied.success(), "cp: {copied}");
    Ok(std::fs::remove_file(&written)?)
}

/// Returns whether the key differs from run to run by design: probes, and the identity that a store draws.
fn is_drawn(key: &str) -> bool {
    key.contains("/_probe/") || key.ends_with("/_store.json")
}

fn ignore_missing(error: std::io::Error) -> std::io::Result<()> {
    if error.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Names that only exist while something is being written.
fn is_temporary(key: &str) -> bool {
    key.split('/').any(|part| {
        let number = part.rsplit_once('#').is_some_and(|(_, n)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
        number || part.starts_with(".nearprint-") || part.ends_with(".tmp")
    })
}

/// Name and content of the newest commit.
pub fn newest_commit(now: &Snapshot) -> Option<(&String, &Vec<u8>)> {
    now.iter().rfind(|(key, _)| key.starts_with("store/_commits/") && key.ends_with(".json") && !is_temporary(key))
}

/// Every night that the newest commit names is whole, and plain readers are led to committed, whole generations only.
pub fn complete(now: &Snapshot) -> Result<()> {
    let Some((_, content)) = newest_commit(now) else {
        require!(!now.keys().any(|k| k.contains("/_delta_log/")), "a table without any commit");
        return Ok(());
    };
    let commit: Value = serde_json::from_slice(content).map_err(|e| format!("the newest commit: {e}"))?;
    let field = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let mut generations = BTreeSet::new();
    let (nights, segments) = committed(now, &commit)?;
    for night in &nights {
        let (dt, generation) = (field(night, "dt"), field(night, "gen"));
        let manifest = manifest(now, &dt, &generation)?;
        let folder = records(&dt, &generation);
        require!(sha256(manifest) == field(night, "manifest_sha256"), "{folder}: the manifest is another");
        published_files(now, &dt, &generation)?;
        files(now, &format!("store/runs/{}", field(&night["run"], "digest")), &night["run"])?;
        generations.insert(generation);
    }
    for segment in &segments {
        files(now, &format!("store/segments/{}", field(segment, "digest")), segment)?;
    }
    for of in commit["changes"]["outputs"].as_array().into_iter().flatten() {
        for file in of["added"].as_array().into_iter().flatten() {
            is_there(now, &format!("results/{}", file["name"].as_str().unwrap_or_default()), file)?;
        }
    }
    plain_readers(now, &generations)
}

/// The nights and segments of a commit, in it and in its pages.
pub fn committed(now: &Snapshot, commit: &Value) -> Result<(Vec<Value>, Vec<Value>)> {
    let list = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    let (mut nights, mut segments) = (Vec::new(), Vec::new());
    for digest in list(commit, "pages").iter().chain(commit["segments"].as_str().map(Value::from).as_ref()) {
        let name = format!("store/pages/{}.json", digest.as_str().unwrap_or_default());
        let page: Value = serde_json::from_slice(now.get(&name).ok_or(format!("{name} is missing"))?)?;
        nights.extend(list(&page, "nights"));
        segments.extend(list(&page, "segments"));
    }
    nights.extend(list(commit, "nights"));
    Ok((nights, segments))
}

/// The folder of a generation's manifest.
pub fn records(dt: &str, generation: &str) -> String {
    format!("results/_nearprint/dt={dt}/gen={generation}")
}

fn manifest<'a>(now: &'a Snapshot, dt: &str, generation: &str) -> Result<&'a Vec<u8>> {
    let name = format!("{}/manifest.json", records(dt, generation));
    Ok(now.get(&name).ok_or(format!("{name} is missing"))?)
}

/// The files of a generation are there as its manifest says; by path below the results, their sizes and rows.
fn published_files(now: &Snapshot, dt: &str, generation: &str) -> Result<BTreeMap<String, (u64, u64)>> {
    let manifest: Value = serde_json::from_slice(manifest(now, dt, generation)?)?;
    let mut paths = BTreeMap::new();
    for file in manifest["files"].as_array().ok_or("a manifest without a list of files")? {
        let name = file["name"].as_str().unwrap_or_default();
        let (dataset, part) =
            name.trim_end_matches(".parquet").split_once('/').ok_or(format!("a file called {name}"))?;
        let path = format!("{dataset}/dt={dt}/{part}-{generation}.parquet");
        is_there(now, &format!("results/{path}"), file)?;
        paths.insert(path, (file["bytes"].as_u64().unwrap_or(0), file["rows"].as_u64().unwrap_or(0)));
    }
    Ok(paths)
}

/// Each table has nights of whole generations only; they may be replaced meanwhile, but none that was never committed.
fn plain_readers(now: &Snapshot, committed: &BTreeSet<String>) -> Result<()> {
    for table in delta::TABLES {
        let (mut named, mut wanted) = (BTreeMap::new(), BTreeMap::new());
        for (path, add) in delta::active(now, &format!("results/{table}"))? {
            let dt = add["partitionValues"]["dt"].as_str().unwrap_or_default().to_owned();
            let generation = delta::generation(&path).ok_or(format!("{table} has {path}"))?.to_owned();
            let mut commits = now.iter().filter(|(k, _)| k.starts_with("store/_commits/"));
            let known = committed.contains(&generation) || commits.any(|(_, c)| text(c).contains(&generation));
            require!(known, "{table} has {path}, which no commit names");
            let of_table = published_files(now, &dt, &generation)?
                .into_iter()
                .filter(|(path, _)| path.split('/').next() == Some(table));
            wanted.extend(of_table);
            named.insert(format!("{table}/{path}"), (add["size"].as_u64().unwrap_or(0), delta::n_records(&add)?));
        }
        require!(named == wanted, "{table} has {named:?}, the manifests name {wanted:?}");
    }
    for (path, add) in delta::active(now, "results/changes")? {
        let content =
            now.get(&format!("results/changes/{path}")).ok_or(format!("changes has {path}, which is gone"))?;
        require!(add["size"].as_u64() == Some(content.len() as u64), "changes has {path} with another size");
    }
    Ok(())
}

/// The files that a manifest, run or segment lists are there with their SHA-256.
fn files(now: &Snapshot, folder: &str, record: &Value) -> Result<()> {
    for file in record["files"].as_array().ok_or(format!("{folder}: no list of files"))? {
        let name = format!("{folder}/{}", file["name"].as_str().unwrap_or_default());
        is_there(now, &name, file)?;
    }
    Ok(())
}

fn is_there(now: &Snapshot, name: &str, file: &Value) -> Result<()> {
    let content = now.get(name).ok_or(format!("{name} is missing"))?;
    require!(file["sha256"].as_str() == Some(sha256(content).as_str()), "{name} has another SHA-256");
    require!(file["bytes"].as_u64() == Some(content.len() as u64), "{name} has another size");
    Ok(())
}

pub fn sha256(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|b| format!("{b:02x}")).collect()
}

/// Writes a file with a fixed time: an input's time is part of what is published.
pub fn write_file(path: &Path, content: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut file = File::create(path)?;
    file.write_all(content)?;
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_000_000);
    Ok(file.set_times(FileTimes::new().set_modified(time).set_accessed(time))?)
}

/// A document: id and text.
pub type Document = (String, Option<String>);

/// The documents of both nights. [`NEW`] has exact copies and near-duplicates of its own and of [`OLD`]'s documents, ids of [`OLD`]
/// again, and texts that are NULL, blank and short.
fn documents(spec: &Spec) -> Result<Snapshot> {
    let mut random = Random::new(spec.seed);
    let old: Vec<Document> = night_documents(spec, "old", &[], &mut random);
    let new: Vec<Document> = night_documents(spec, "new", &old, &mut random);
    let mut files = Snapshot::new();
    let mut nights = vec![(OLD, old)];
    if spec.replaces.is_same_request() {
        let later = night_documents(spec, "later", &new, &mut random);
        nights.extend([(NEW, new), (LATER, later)]);
    } else {
        nights.push((NEW, new));
    }
    for (dt, rows) in nights {
        for (i, half) in rows.chunks(rows.len().div_ceil(2)).enumerate() {
            let (ending, content) = if spec.jsonl { ("jsonl", jsonl(half)) } else { ("parquet", parquet(half)?) };
            files.insert(format!("documents/dt={dt}/part-{i:05}.{ending}"), content);
        }
    }
    Ok(files)
}

/// One night's documents; `earlier` is the night before.
pub fn night_documents(spec: &Spec, night: &str, earlier: &[Document], random: &mut Random) -> Vec<Document> {
    let mut rows: Vec<Document> = Vec::new();
    for i in 0..spec.n_documents {
        let padding: String = (0..spec.id_bytes.div_ceil(12)).map(|_| format!("{:012x}", random.number())).collect();
        let mut id = format!("{night}-{i:05}-{}", &padding[..spec.id_bytes.saturating_sub(10).min(padding.len())]);
        let own: Vec<usize> = (0..rows.len()).filter(|&r| rows[r].1.is_some()).collect();
        let text = match i {
            _ if i + spec.n_copies >= spec.n_documents => rows[0].1.clone(),
            3 => None,
            4 => Some("   ".to_owned()),
            5 => Some("too short".to_owned()),
            _ if i % 9 == 6 => rows[own[pick(random, own.len())]].1.clone(),
            _ if i % 9 == 7 => rows[own[pick(random, own.len())]].1.as_deref().map(|t| one_word_changed(t, random)),
            _ if i % 9 == 8 && !earlier.is_empty() => {
                earlier[pick(random, earlier.len())].1.as_deref().map(|t| one_word_changed(t, random))
            }
            _ if i % 9 == 2 && !earlier.is_empty() => {
                id.clone_from(&earlier[i].0);
                Some(words(random, 80))
            }
            _ => {
                let n = 60 + pick(random, 60);
                Some(words(random, n))
            }
        };
        rows.push((id, text));
    }
    rows
}

fn pick(random: &mut Random, n: usize) -> usize {
    usize::try_from(random.below(n as u64)).unwrap_or(0)
}

fn words(random: &mut Random, n: usize) -> String {
    (0..n).map(|_| format!("w{:x}", random.number() % 100_000)).collect::<Vec<_>>().join(" ")
}

fn one_word_changed(text: &str, random: &mut Random) -> String {
    let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
    let at = pick(random, words.len());
    words[at] = format!("v{:x}", random.number() % 100_000);
    words.join(" ")
}

pub fn jsonl(rows: &[Document]) -> Vec<u8> {
    let line = |(id, text): &Document| serde_json::json!({"id": id, "text": text}).to_string() + "\n";
    rows.iter().map(line).collect::<String>().into_bytes()
}

/// Row groups of ten rows, so that there are several tasks.
fn parquet(rows: &[Document]) -> Result<Vec<u8>> {
    let ids = strings(&rows.iter().map(|r| Some(r.0.as_str())).collect::<Vec<_>>());
    let texts = strings(&rows.iter().map(|r| r.1.as_deref()).collect::<Vec<_>>());
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(10)).build();
    parquet_with(&[("id", ids), ("text", texts)], properties)
}
