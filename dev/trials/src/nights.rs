//! Thirty nights in a row, the rerun of a published one, and random sequences of nights.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::sequences;
use nearprint_harness::folder::{Snapshot, places, snapshot_of};
use nearprint_harness::night::{
    NEW, Night, Place, Spec, committed, jsonl, newest_commit, night_documents, records, write_file,
};
use nearprint_harness::proxy::Proxy;
use nearprint_harness::random::Random;
use nearprint_harness::row::{Row, Tally};
use nearprint_harness::runner::{Ran, Run};
use nearprint_harness::server::Server;
use nearprint_harness::tracer::{Act, Kind, trace};
use nearprint_harness::{Common, Result, delta, require};

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub common: Common,
    #[arg(long, value_name = "N", default_value_t = 30)]
    pub nights: u64,
    /// Documents of each night
    #[arg(long, value_name = "N", default_value_t = 2000)]
    pub documents: usize,
}

/// A compaction follows every so many nights.
const PERIOD: usize = 10;

pub fn run(args: &Args) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    if args.common.wants("L7") {
        let trial = format!("{} nights in a row, compacted and tidied every tenth", args.nights);
        let required = "memory, open files and temporary bytes flat, no orphans after gc";
        let mut tally = Tally::new("L7", &trial, "local", required);
        tally.add(in_a_row(args));
        rows.push(tally.row());
    }
    if args.common.wants("L8") {
        let required = "exit 0 already_published in under 5 s, nothing written";
        let mut tally = Tally::new("L8", "rerun of a published date", "local", required);
        tally.add(rerun_local(args));
        rows.push(tally.row());
        let mut tally = Tally::new("L8", "rerun of a published date", "rgw", required);
        rows.push(match Server::from_env()? {
            None => tally.skipped("no S3 server named"),
            Some(server) => {
                tally.add(rerun_remote(args, &server));
                tally.row()
            }
        });
    }
    if args.common.wants("L9") {
        rows.extend(sequences::run(&args.common)?);
    }
    Ok(rows)
}

fn in_a_row(args: &Args) -> Result<String> {
    let scratch = args.common.scratch()?;
    let dir = scratch.path();
    std::fs::create_dir_all(dir.join("spill"))?;
    std::fs::write(dir.join("job.toml"), places(""))?;
    let command =
        |words: &[&str]| Run::new(&args.common.nearprint, dir, words).args(&["--config", "job.toml", "--json"]);
    let spec = Spec { n_documents: args.documents, ..Spec::new(7) };
    let mut random = Random::new(7);
    let mut earlier = Vec::new();
    let mut took: Vec<Ran> = Vec::new();
    for i in 0..args.nights {
        let dt = format!("2026-{:02}-{:02}", 1 + i / 28, 1 + i % 28);
        let rows = night_documents(&spec, &format!("n{i:03}"), &earlier, &mut random);
        write_file(&dir.join(format!("documents/dt={dt}/part-0.jsonl")), &jsonl(&rows))?;
        earlier = rows;
        let ran = command(&["run", "--dt", &dt, "--spill-dir", "spill"]).run()?;
        ran.ends_with(&[0], &[]).map_err(|e| format!("night {i}: {e}"))?;
        let left = std::fs::read_dir(dir.join("spill"))?.count();
        require!(left == 0, "night {i} left {left} things in the spill folder");
        took.push(ran);
        if took.len().is_multiple_of(PERIOD) {
            command(&["store", "compact", "--spill-dir", "spill"])
                .run()?
                .ends_with(&[0], &[])
                .map_err(|e| format!("compact: {e}"))?;
            command(&["store", "gc", "--grace-hours", "0"])
                .run()?
                .ends_with(&[0], &[])
                .map_err(|e| format!("gc: {e}"))?;
        }
    }
    no_orphans(&snapshot_of(dir, &["store", "results"])?)?;
    command(&["check"]).run()?.ends_with(&[0], &[]).map_err(|e| format!("check: {e}"))?;
    flat(&took)
}

/// The last nights between two compactions take no more than the first, but for a little noise. Within such a period each
/// night opens the files of all that ran since the compaction, so that only whole periods compare.
fn flat(took: &[Ran]) -> Result<String> {
    require!(took.len() >= 2 * PERIOD, "{} nights are too few: two periods of {PERIOD} are compared", took.len());
    let (first, last) = (&took[..PERIOD], &took[took.len() - PERIOD..]);
    let most = |runs: &[Ran], what: fn(&Ran) -> u64| runs.iter().map(what).max().unwrap_or(0);
    let rss = |r: &Ran| r.peak_rss >> 10;
    let fds = |r: &Ran| r.peak_fds as u64;
    let (rss_first, rss_last) = (most(first, rss), most(last, rss));
    let (fds_first, fds_last) = (most(first, fds), most(last, fds));
    require!(rss_last <= rss_first * 5 / 4 + 32 * 1024, "memory grew from {rss_first} to {rss_last} KiB");
    require!(fds_last <= fds_first + 2 * took.len() as u64, "open files grew from {fds_first} to {fds_last}");
    Ok(format!("most memory {} then {} MiB, open files {fds_first} then {fds_last}", rss_first / 1024, rss_last / 1024))
}

/// Every file is named by the newest commit, or leads to one that is.
fn no_orphans(now: &Snapshot) -> Result<()> {
    let commit: Value = serde_json::from_slice(newest_commit(now).ok_or("no commit")?.1)?;
    let word = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let (mut folders, mut generations) = (BTreeSet::new(), BTreeSet::new());
    let (nights, segments) = committed(now, &commit)?;
    for night in &nights {
        folders.insert(format!("store/runs/{}/", word(&night["run"], "digest")));
        folders.insert(format!("{}/", records(&word(night, "dt"), &word(night, "gen"))));
        generations.insert(word(night, "gen"));
    }
    for segment in &segments {
        folders.insert(format!("store/segments/{}/", word(segment, "digest")));
    }
    let changes = delta::active(now, "results/changes")?;
    let known = |key: &str| {
        key.contains("/_delta_log/")
            || key.strip_prefix("results/changes/").is_some_and(|path| changes.contains_key(path))
            || key.starts_with("results/")
                && delta::generation(key).is_some_and(|gen_digest| generations.contains(gen_digest))
            || key.ends_with("/_store.json")
            || key.starts_with("store/_commits/")
            || key.starts_with("store/pages/")
            || folders.iter().any(|f| key.starts_with(f.as_str()))
    };
    let orphans: Vec<&String> = now.keys().filter(|k| !known(k)).collect();
    require!(orphans.is_empty(), "{} orphans, such as {}", orphans.len(), orphans[0]);
    Ok(())
}

fn already(ran: &Ran) -> Result<()> {
    ran.ends_with(&[0], &[])?;
    require!(ran.summary()["status"] == "already_published", "the rerun says {}", ran.stdout);
    require!(ran.seconds < 5.0, "it took {:.1} s", ran.seconds);
    Ok(())
}

fn rerun_local(args: &Args) -> Result<String> {
    let scratch = args.common.scratch()?;
    let night = Night::prepare(&args.common.nearprint, scratch.path(), Place::Local, Spec::new(0))?;
    night.new_run().run()?.ends_with(&[0], &[])?;
    let traced = trace(&night.new_run(), &[Kind::Write, Kind::Sync, Kind::Name], |_, _| Act::Go)?;
    already(&traced.ran)?;
    let writes: Vec<String> = traced
        .calls
        .iter()
        .filter(|c| !c.path.starts_with("spill"))
        .map(|c| format!("{} {}", c.name, c.path))
        .collect();
    require!(writes.is_empty(), "it wrote: {writes:?}");
    Ok(format!("{:.1} s, nothing written", traced.ran.seconds))
}

fn rerun_remote(args: &Args, server: &Server) -> Result<String> {
    let scratch = args.common.scratch()?;
    let night = Night::prepare(&args.common.nearprint, scratch.path(), Place::on(server, "rerun"), Spec::new(0))?;
    let proxy = Proxy::start(server.port()?, 0)?;
    night.write_job("proxy.toml", Some(&proxy.endpoint()), "")?;
    night.run_of("proxy.toml", NEW).run()?.ends_with(&[0], &[])?;
    proxy.set(Vec::new(), 0);
    let ran = night.run_of("proxy.toml", NEW).run()?;
    let log = proxy.log();
    night.clear()?;
    already(&ran)?;
    require!(!log.is_empty(), "the rerun made no request at all");
    let writes: Vec<&str> =
        log.iter().map(|l| l.line.as_str()).filter(|l| !l.starts_with("GET ") && !l.starts_with("HEAD ")).collect();
    require!(writes.is_empty(), "it wrote: {writes:?}");
    Ok(format!("{:.1} s, {} requests, nothing written", ran.seconds, log.len()))
}
