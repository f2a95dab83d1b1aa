//! Killed at every step: before each call that changes a file, and before and after each S3 request.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use nearprint_harness::night::{Night, Place, Replaces, Seen, Spec};
use nearprint_harness::proxy::{Action, Proxy, Rule};
use nearprint_harness::row::{Row, Tally};
use nearprint_harness::runner::{Signal, signal};
use nearprint_harness::server::Server;
use nearprint_harness::tracer::{Act, Kind, trace};
use nearprint_harness::{Common, Result, require};

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub common: Common,
    /// Only about so many points of each sweep, spread evenly
    #[arg(long, value_name = "N")]
    pub points: Option<u64>,
    /// Number of points that are tried at once
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub workers: u64,
}

/// Calls that change what is on disk.
const CHANGES: [Kind; 3] = [Kind::Write, Kind::Sync, Kind::Name];

const REQUIRED: &str =
    "readers see the old or the new night whole; a plain rerun publishes the same bytes and leaves nothing else";

pub fn run(args: &Args) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (replaces, id, trial) in [
        (Replaces::Nothing, "F1", "kill -9 before each call that changes a file"),
        (Replaces::OtherDistance, "F1-replace", "the same of a run that replaces the night"),
        (
            Replaces::Unchanged,
            "F1-replace-same",
            "the same of a run that replaces the night by itself, before a later night",
        ),
        (Replaces::IgnoredFile, "F1-replace-ignored", "the same, and a file was added that no run reads"),
        (Replaces::OtherRelease, "F1-replace-release", "the same of a run by another release"),
    ] {
        if args.common.wants(id) {
            rows.push(local(args, replaces, Tally::new(id, trial, "local", REQUIRED)));
        }
    }
    if args.common.wants("D2") {
        let required =
            "before a file gets its name it is synced; its folder, and new folders' folders, before the commit";
        let mut tally = Tally::new("D2", "order of the calls of a local run", "local", required);
        tally.add(in_order(args));
        rows.push(tally.row());
    }
    for (id, trial, kill_after, replaces) in [
        ("F2-before", "kill -9 before each S3 request", false, Replaces::Nothing),
        ("F2-after", "kill -9 after each S3 request, before its answer", true, Replaces::Nothing),
        ("F2-replace", "the same of a run that replaces the night", true, Replaces::OtherDistance),
        ("F2-replace-same", "the same of a run that replaces the night by itself", true, Replaces::Unchanged),
        ("F2-replace-ignored", "the same, and an object was added that no run reads", true, Replaces::IgnoredFile),
        ("F2-replace-release", "the same of a run by another release", true, Replaces::OtherRelease),
    ] {
        let tally = Tally::new(id, trial, "rgw", REQUIRED);
        if !args.common.wants(id) {
            continue;
        }
        rows.push(match Server::from_env()? {
            None => tally.skipped("no S3 server named"),
            Some(server) => remote(args, &server, kill_after, replaces, tally),
        });
    }
    Ok(rows)
}

/// Points of a sweep, handed to the workers in turn.
struct Points {
    next: AtomicU64,
    step: u64,
    n: u64,
    seen: Mutex<(Tally, [u64; 2])>,
    /// The run commits anything.
    commits: bool,
}

impl Points {
    fn new(n: u64, wanted: Option<u64>, replaces: Replaces, tally: Tally) -> Self {
        let step = wanted.map_or(1, |wanted| (n / wanted.max(1)).max(1));
        Self { next: AtomicU64::new(0), step, n, seen: Mutex::new((tally, [0, 0])), commits: replaces.publishes() }
    }

    /// From 1.
    fn next(&self) -> Option<u64> {
        let point = 1 + self.next.fetch_add(1, Ordering::Relaxed) * self.step;
        (point <= self.n).then_some(point)
    }

    fn add(&self, seen: Result<Seen>) {
        let mut at = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(seen) = &seen {
            at.1[usize::from(*seen == Seen::New)] += 1;
        }
        at.0.add(seen.map(|seen| if seen == Seen::Old { "old night seen" } else { "new night seen" }.to_owned()));
    }

    /// A sweep that never saw one of both states did not go over the commit.
    fn row(self) -> Row {
        let (mut tally, [old, new]) = self.seen.into_inner().unwrap_or_else(PoisonError::into_inner);
        if self.commits && self.step == 1 && (old == 0 || new == 0) {
            tally.add(Err(format!("the sweep did not cross the commit: {old} points before it, {new} after")));
        }
        let mut row = tally.row();
        row.observed = format!("{} kill points, every {}: {}", self.n, self.step, row.observed);
        row
    }
}

fn failed(mut tally: Tally, error: &nearprint_harness::Error) -> Row {
    tally.add(Err(error));
    tally.row()
}

fn local(args: &Args, replaces: Replaces, tally: Tally) -> Row {
    let prepared = || -> Result<_> {
        let scratch = args.common.scratch()?;
        let spec = Spec { replaces, ..Spec::new(0) };
        let night = Night::prepare(&args.common.nearprint, &scratch.path().join("night"), Place::Local, spec)?;
        let whole = trace(&night.new_run(), &CHANGES, |_, _| Act::Go)?;
        whole.ran.ends_with(&[0], &[])?;
        // Threads make the number of calls vary a little: a few points past the end cost nothing.
        let n = whole.calls.len() as u64;
        require!(n > if replaces.publishes() { 50 } else { 20 }, "only {n} calls were seen");
        Ok((scratch, night, n))
    };
    let (scratch, night, n) = match prepared() {
        Ok(prepared) => prepared,
        Err(error) => return failed(tally, &error),
    };
    let points = Points::new(n, args.points, replaces, tally);
    std::thread::scope(|scope| {
        for worker in 0..args.workers {
            let (night, points, scratch) = (&night, &points, &scratch);
            scope.spawn(move || {
                let twin = night.twin(&scratch.path().join(format!("twin-{worker}")));
                while let Some(point) = points.next() {
                    points.add(
                        twin.as_ref().map_err(|e| e.to_string().into()).and_then(|twin| kill_at_call(twin, point)),
                    );
                }
            });
        }
    });
    points.row()
}

/// Checks what a power failure needs: names only for what is on disk, and the commit's only when all others are.
fn in_order(args: &Args) -> Result<String> {
    let scratch = args.common.scratch()?;
    let night = Night::prepare(&args.common.nearprint, scratch.path(), Place::Local, Spec::new(0))?;
    let traced = trace(&night.new_run(), &[Kind::Sync, Kind::Name], |_, _| Act::Go)?;
    traced.ran.ends_with(&[0], &[])?;
    let calls = traced.calls;
    let published = |path: &str| path.starts_with("store/") || path.starts_with("results/");
    let commit = calls
        .iter()
        .position(|c| c.from.is_some() && c.path.starts_with("store/_commits/") && c.path.ends_with(".json"))
        .ok_or("no commit was seen")?;
    let synced = |path: &str, within: std::ops::Range<usize>| {
        calls[within].iter().any(|c| c.kind == Kind::Sync && c.path == path)
    };
    let parent = |path: &str| path.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_owned());
    let mut n_names = 0;
    for (at, call) in calls.iter().enumerate().filter(|(_, c)| c.kind == Kind::Name && published(&c.path)) {
        let end = if at < commit { commit } else { calls.len() };
        let is_new_folder = call.name.starts_with("mkdir");
        if let Some(from) = &call.from {
            n_names += 1;
            require!(synced(from, 0..at), "{} {}: {from} was not synced before", call.name, call.path);
        }
        if is_new_folder || call.from.is_some() {
            let folder = parent(&call.path);
            require!(synced(&folder, at..end), "{} {}: {folder} was not synced after it", call.name, call.path);
        }
    }
    require!(n_names > 5, "only {n_names} names were made");
    Ok(format!("{n_names} files and their folders synced, {} calls", calls.len()))
}

fn kill_at_call(night: &Night, point: u64) -> Result<Seen> {
    night.restore()?;
    let mut at = None;
    let traced = trace(&night.new_run(), &CHANGES, |n, call| {
        if n as u64 == point {
            at = Some(call.clone());
            return Act::Kill;
        }
        Act::Go
    })?;
    let place = at.map_or("its end".to_owned(), |call| format!("{} {}", call.name, call.path));
    let ran = traced.ran;
    require!(ran.code == 137 || ran.code == 0, "before call {point} ({place}): {}", ran.said());
    night.holds_after(&ran).map_err(|e| format!("killed before call {point} ({place}): {e}").into())
}

fn remote(args: &Args, server: &Server, after: bool, replaces: Replaces, tally: Tally) -> Row {
    let worker = |i: u64| -> Result<_> {
        let scratch = args.common.scratch()?;
        let place = Place::on(server, &format!("kills-{after}-{replaces:?}-{i}"));
        let spec = Spec { replaces, ..Spec::new(0) };
        let night = Night::prepare(&args.common.nearprint, scratch.path(), place, spec)?;
        let proxy = Proxy::start(server.port()?, 0)?;
        night.write_job("proxy.toml", Some(&proxy.endpoint()), "")?;
        Ok((scratch, night, proxy))
    };
    let mut prepared = Vec::new();
    for i in 0..args.workers.max(1) {
        match worker(i) {
            Ok(worker) => prepared.push(worker),
            Err(error) => return failed(tally, &error),
        }
    }
    let n = {
        let (_, night, proxy) = &prepared[0];
        proxy.set(Vec::new(), 0);
        let ran = night.new_run_by("proxy.toml").run();
        if let Err(error) = ran.and_then(|ran| ran.ends_with(&[0], &[])) {
            return failed(tally, &error);
        }
        proxy.log().len() as u64
    };
    let points = Points::new(n, args.points, replaces, tally);
    std::thread::scope(|scope| {
        for (_, night, proxy) in &prepared {
            let points = &points;
            scope.spawn(move || {
                while let Some(point) = points.next() {
                    points.add(kill_at_request(night, proxy, point, after));
                }
            });
        }
    });
    for (_, night, _) in &prepared {
        // What is left of a trial's prefix harms no other trial.
        let _ = night.clear();
    }
    points.row()
}

fn kill_at_request(night: &Night, proxy: &Proxy, point: u64, after: bool) -> Result<Seen> {
    night.restore()?;
    let pid = Arc::new(Mutex::new(None));
    let at = Arc::new(Mutex::new(String::new()));
    let hook = {
        let (pid, at) = (Arc::clone(&pid), Arc::clone(&at));
        Arc::new(move |line: &str| {
            line.clone_into(&mut at.lock().unwrap_or_else(PoisonError::into_inner));
            // The run is started before it can make a request, but its number is noted a moment later.
            for _ in 0..1000 {
                if let Some(pid) = *pid.lock().unwrap_or_else(PoisonError::into_inner) {
                    let _ = signal(pid, Signal::SIGKILL);
                    return;
                }
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        })
    };
    let action = if after { Action::After(hook) } else { Action::Instead(hook) };
    proxy.set(vec![Rule::new(".", action)?.after(point - 1).times(1)], 0);
    let running = night.new_run_by("proxy.toml").start()?;
    *pid.lock().unwrap_or_else(PoisonError::into_inner) = Some(running.pid());
    let ran = running.wait()?;
    proxy.set(Vec::new(), 0);
    let place = at.lock().unwrap_or_else(PoisonError::into_inner).clone();
    require!(ran.code == 137 || ran.code == 0, "at request {point} ({place}): {}", ran.said());
    night.holds_after(&ran).map_err(|e| format!("killed at request {point} ({place}): {e}").into())
}
