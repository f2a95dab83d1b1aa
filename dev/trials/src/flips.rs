//! D3: a single bit flipped in any published file is found by `check`, which names the file.

use std::path::{Path, PathBuf};

use nearprint_harness::Result;
use nearprint_harness::folder::{DT, Folder, Outcome, files_below};
use nearprint_harness::measured::{self, Checks, Options, on_threads};
use nearprint_harness::random::text;
use nearprint_harness::row::Row;
use nearprint_harness::runner::{Ran, Run};

const NIGHTS: [&str; 2] = ["2026-11-19", DT];
/// Random flips, and how many of them at least hit files of less than this many bytes.
const FLIPS: u64 = 1000;
const SMALL_FILES: u64 = 50;
const SMALL: usize = 4096;

const CHECK: [&str; 6] = ["check", "--config", "job.toml", "--spill-dir", "spill", "--json"];

pub fn run(options: &Options) -> Vec<Row> {
    let trial = "single bits flipped in published files: two nights and a compaction";
    let required = "65 naming the file each time; 0 before and after";
    vec![measured::row("D3", trial, required, |checks| flips(options, checks))]
}

fn flips(options: &Options, checks: &mut Checks) -> Result<()> {
    let folder = published(options)?;
    let nearprint = options.nearprint()?;
    let copies: Vec<tempfile::TempDir> =
        (0..options.jobs.max(1)).map(|_| copy_of(&folder, options)).collect::<Result<_>>()?;
    let files = published_files(folder.path());
    if files.is_empty() {
        return Err("nothing was published".into());
    }
    let sizes: Vec<usize> =
        files.iter().map(|f| Ok(std::fs::metadata(folder.path().join(f))?.len().try_into()?)).collect::<Result<_>>()?;
    checks.note(format!("{} files of {} bytes", files.len(), sizes.iter().sum::<usize>()));
    let before = Run::new(&nearprint, folder.path(), &CHECK).run()?;
    checks.count("before", clean(&before));
    let places = draw(options, &sizes);
    let per_copy = places.len().div_ceil(copies.len());
    let outcomes = on_threads(copies.len(), copies.len(), |i| {
        let own = places.iter().skip(i * per_copy).take(per_copy);
        own.map(|flip| one(&nearprint, copies[i].path(), &files[flip.file], flip)).collect::<Result<Vec<_>>>()
    })?;
    for (what, outcome) in outcomes.into_iter().flatten() {
        checks.count(&what, outcome);
    }
    for copy in &copies {
        let after = Run::new(&nearprint, copy.path(), &CHECK).run()?;
        checks.count("after", clean(&after));
    }
    Ok(())
}

struct Flip {
    file: usize,
    byte: usize,
    bit: u8,
}

/// Places weighted by bytes, and some in small files.
fn draw(options: &Options, sizes: &[usize]) -> Vec<Flip> {
    let mut rng = fastrand::Rng::with_seed(options.seed);
    let small: Vec<usize> = (0..sizes.len()).filter(|&i| sizes[i] > 0 && sizes[i] < SMALL).collect();
    let total: usize = sizes.iter().sum();
    let mut flips = Vec::new();
    for i in 0..options.scaled(FLIPS) {
        let (file, byte) = if i < options.scaled(SMALL_FILES) && !small.is_empty() {
            let file = small[rng.usize(..small.len())];
            (file, rng.usize(..sizes[file]))
        } else {
            let mut at = rng.usize(..total.max(1));
            let mut file = 0;
            while file + 1 < sizes.len() && at >= sizes[file] {
                at -= sizes[file];
                file += 1;
            }
            (file, at)
        };
        flips.push(Flip { file, byte, bit: rng.u8(..8) });
    }
    flips
}

/// Flips, checks, and flips back.
fn one(nearprint: &Path, copy: &Path, file: &Path, flip: &Flip) -> Result<(String, Outcome)> {
    let path = copy.join(file);
    let whole = std::fs::read(&path)?;
    let mut flipped = whole.clone();
    flipped[flip.byte] ^= 1 << flip.bit;
    std::fs::write(&path, flipped)?;
    let done = Run::new(nearprint, copy, &CHECK).run()?;
    std::fs::write(&path, whole)?;
    let name = file.display().to_string();
    let named = done.stdout.contains(&name) || done.stderr.contains(&name);
    let outcome = match done.defect() {
        Some(defect) => Err(defect),
        None if done.code != 65 => Err(format!("{}, expected 65", done.said())),
        None if !named => Err(format!("the file is not named: {} {}", done.said(), done.stdout.trim_end())),
        None => Ok(()),
    };
    Ok((format!("byte {} bit {} of {name}", flip.byte, flip.bit), outcome))
}

fn clean(done: &Ran) -> Outcome {
    if done.code == 0 && done.summary().is_object() { Ok(()) } else { Err(done.said()) }
}

/// Two nights with recrawls, short and empty documents and quarantine, then a compaction.
fn published(options: &Options) -> Result<Folder> {
    let folder = Folder::new(options, "max_bad_rows = 1\n")?;
    for (night, first) in NIGHTS.into_iter().zip([0, 150]) {
        let mut lines = String::from("{\"id\":null,\"text\":\"no id\"}\n");
        for i in first..first + 300_u64 {
            let body = match i % 20 {
                0 => String::new(),
                1 => "short".to_owned(),
                2 | 3 => text(7, 60),
                _ => text(i, 60),
            };
            lines.push_str(&serde_json::json!({"id": format!("doc-{i:05}"), "text": body}).to_string());
            lines.push('\n');
        }
        let place = folder.path().join(format!("documents/dt={night}"));
        std::fs::create_dir_all(&place)?;
        std::fs::write(place.join("part-0.jsonl"), lines)?;
        let args = ["run", "--config", "job.toml", "--dt", night, "--spill-dir", "spill", "--json"];
        expect_done(&folder.command(&args).run()?)?;
    }
    expect_done(&folder.command(&["store", "compact", "store", "--spill-dir", "spill", "--json"]).run()?)?;
    Ok(folder)
}

fn expect_done(done: &Ran) -> Result<()> {
    if done.code == 0 { Ok(()) } else { Err(done.said().into()) }
}

/// Everything under store and results, by path from the folder.
fn published_files(folder: &Path) -> Vec<PathBuf> {
    let below = ["store", "results"].into_iter().flat_map(|part| files_below(&folder.join(part)));
    below.filter_map(|f| f.strip_prefix(folder).ok().map(Path::to_path_buf)).collect()
}

/// The job names its places by relative paths, so a copy is as good.
fn copy_of(folder: &Folder, options: &Options) -> Result<tempfile::TempDir> {
    let copy = options.scratch()?;
    for file in files_below(folder.path()) {
        let to = copy.path().join(file.strip_prefix(folder.path())?);
        std::fs::create_dir_all(to.parent().ok_or("no folder")?)?;
        std::fs::copy(&file, to)?;
    }
    std::fs::create_dir_all(copy.path().join("spill"))?;
    Ok(copy)
}
