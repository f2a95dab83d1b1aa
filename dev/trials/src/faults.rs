//! The fault matrix: what goes wrong around a run, on local disk and on S3, each row over many seeds.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::errno::Errno;

use nearprint_harness::folder::{Snapshot, data_files};
use nearprint_harness::night::{NEW, Night, OLD, Place, Seen, Spec, complete};
use nearprint_harness::proxy::{Action, Hook, Logged, Proxy, Rule};
use nearprint_harness::random::Random;
use nearprint_harness::row::{Row, Tally};
use nearprint_harness::runner::{Ran, Run, Signal, signal};
use nearprint_harness::server::Server;
use nearprint_harness::tracer::{Act, Call, Kind, trace};
use nearprint_harness::{Common, Result, require};

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub common: Common,
    /// Where scripts/start-rgw.sh keeps the server: F23 kills it and starts it again
    #[arg(long, value_name = "DIR")]
    pub rgw_dir: Option<PathBuf>,
    /// Seconds for which F23 leaves the server dead
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    pub outage: u64,
}

/// One seed of a row.
type Trial = fn(&Bench) -> Result<String>;

/// A row: its name, what is done, where, what is required, one seed of it, and the most seeds that are worth their time.
struct Fault {
    id: &'static str,
    trial: &'static str,
    backend: &'static str,
    required: &'static str,
    run: Trial,
    most: u64,
}

const COMMIT: &str = r"^PUT \S*/store/_commits/\d+\.json";
const COMPLETE: &str = r"^POST \S*uploadId=";

const fn fault(
    id: &'static str,
    trial: &'static str,
    backend: &'static str,
    required: &'static str,
    run: Trial,
) -> Fault {
    Fault { id, trial, backend, required, run, most: u64::MAX }
}

const FAULTS: &[Fault] = &[
    fault("F3", "SIGTERM at a random time", "local", "143 within 10 s, nothing left", sigterm_local),
    fault("F3", "SIGTERM at a random request", "rgw", "143 within 10 s, uploads aborted", sigterm_remote),
    Fault {
        most: 3,
        ..fault("F3", "SIGTERM during an upload in parts", "rgw", "143, the upload is aborted", terminated_at_part)
    },
    Fault {
        most: 3,
        ..fault("F2", "kill -9 during an upload in parts", "rgw", "gc aborts the upload; same bytes", killed_at_part)
    },
    fault("F4", "ENOSPC from the nth write on", "local", "74 naming the path, nothing stays", disk_full),
    fault(
        "F4",
        "ENOSPC at the nth write, once",
        "local",
        "74 naming the path, nothing stays, or 0 where it was not needed",
        disk_full_once,
    ),
    fault("F4", "a small file system", "local", "74 naming the path, nothing stays, or 0 where it fits", small_disk),
    fault("F5", "EIO at the nth fsync", "local", "74, and 75 at the commit itself", failed_sync),
    fault("F5", "EIO at the nth read", "local", "74 naming the path", failed_read),
    fault("F6", "inodes used up", "local", "74 naming the path, nothing stays, or 0 where they suffice", few_inodes),
    fault("F8", "--max-spill reached", "local", "74 naming --max-spill", spill_limit),
    fault("F9", "503 on 10 % of requests", "rgw", "0, same bytes, retries counted", slow_down_10),
    fault("F9", "503 on 30 % of requests", "rgw", "0, same bytes, retries counted", slow_down_30),
    fault("F10", "503 for ever, from the nth request on", "rgw", "69 within retry_seconds + 10 s", unavailable),
    fault("F11", "429, 500, 502, 504, once for each kind of request", "rgw", "0, same bytes", each_error_once),
    fault("F12", "reset and cut bodies on 5 % of GETs, and at least once", "rgw", "0, same bytes", resets),
    Fault {
        most: 10,
        ..fault("F13", "no answer to the nth request", "rgw", "0 within 60 s (timeout_seconds = 3)", black_hole)
    },
    Fault { most: 10, ..fault("F13", "a body at 1 KB/s", "rgw", "0 within 60 s (timeout_seconds = 3)", trickle) },
    fault("F14", "a flipped bit in a GET of the store", "rgw", "0 with the same bytes, or 65 or 75", flipped_store),
    fault(
        "F14",
        "a flipped bit in a GET of documents without checksums",
        "rgw",
        "0, 65 or 75; what is published is whole",
        flipped_documents,
    ),
    fault("F15", "lost reply to the commit", "rgw", "0, same bytes", lost_commit),
    fault("F16", "409 to the commit, once", "rgw", "0, same bytes", conflict_once),
    fault("F16", "409 to the commit, for ever", "rgw", "75, files kept", conflict_for_ever),
    fault(
        "F17",
        "lost reply to the commit, then nothing but 503",
        "rgw",
        "75 saying that the state is unknown; a rerun says 0",
        unknown_commit,
    ),
    Fault { most: 5, ..fault("F18", "lost reply to CompleteMultipartUpload", "rgw", "0, same bytes", lost_complete) },
    Fault {
        most: 5,
        ..fault("F18", "the same, and then 404 as Garage says", "rgw", "0, same bytes", lost_complete_then_gone)
    },
    Fault {
        most: 5,
        ..fault("F19", "200 with an error to CompleteMultipartUpload", "rgw", "0, same bytes", complete_error)
    },
    fault("F20", "403 ExpiredToken, once", "rgw", "0, same bytes", expired_once),
    fault("F20", "403 ExpiredToken from the nth request on", "rgw", "77 saying that they expired", expired_for_ever),
    fault("F21", "403 QuotaExceeded to PUTs", "rgw", "77 saying quota and the object", over_quota),
    fault("F21", "403 AccessDenied to PUTs", "rgw", "77 saying the object", read_only),
    fault("F22", "a store that ignores If-None-Match", "rgw", "78; with --single-writer 0", careless_store),
    Fault { most: 5, ..fault("F23", "radosgw killed and started again", "rgw", "0, same bytes", gateway_restart) },
    Fault {
        most: 5,
        ..fault("F23", "object store daemon stopped for a while", "rgw", "0, same bytes", daemon_stopped)
    },
    fault("F26", "an input replaced after the listing", "local", "75 naming it", input_replaced_local),
    fault("F26", "an input deleted after the listing", "local", "75 naming it", input_deleted_local),
    fault("F26", "an input replaced after the listing", "rgw", "75 naming it", input_replaced),
    fault("F26", "an input deleted after the listing", "rgw", "75 naming it", input_deleted),
    fault(
        "F27",
        "clock a year back and ahead, over the hours that DST skips and repeats, TZ=Pacific/Apia",
        "local",
        "0, same bytes",
        clock,
    ),
    Fault { most: 4, ..fault("F27", "clock a year back and ahead", "rgw", "77 saying skew", clock_skew) },
    fault("F28", "1, 2 and 8 threads, spilling or not, rows in other files", "local", "same bytes", threads),
    Fault { most: 1, ..fault("F30", "missing bucket, missing prefix", "rgw", "66 each, told apart", missing) },
];

pub fn run(args: &Args) -> Result<Vec<Row>> {
    let scratch = args.common.scratch()?;
    let server = Server::from_env()?;
    let mut benches: HashMap<(&str, u64), Result<Bench>> = HashMap::new();
    let mut rows = Vec::new();
    for fault in FAULTS.iter().filter(|f| args.common.wants(f.id)) {
        let mut tally = Tally::new(fault.id, fault.trial, fault.backend, fault.required);
        if fault.backend == "rgw" && server.is_none() {
            rows.push(tally.skipped("no S3 server named"));
            continue;
        }
        let mut skipped = None;
        for seed in 0..args.common.seeds.min(fault.most) {
            let bench = benches.entry((fault.backend, seed)).or_insert_with(|| {
                let dir = scratch.path().join(format!("{}-{seed}", fault.backend));
                Bench::new(args, &dir, server.as_ref().filter(|_| fault.backend == "rgw"), seed)
            });
            let seen = match bench {
                Err(error) => Err(format!("seed {seed} cannot be prepared: {error}").into()),
                Ok(bench) => bench.night.restore().and_then(|()| (fault.run)(bench)),
            };
            match seen {
                Err(error) if error.downcast_ref::<Skip>().is_some() => {
                    skipped = Some(error.to_string());
                    break;
                }
                seen => tally.add(seen.map_err(|e| format!("seed {seed}: {e}"))),
            }
        }
        let row = match skipped {
            Some(why) => tally.skipped(&why),
            None => tally.row(),
        };
        eprintln_row(&row);
        rows.push(row);
    }
    for bench in benches.into_values().flatten() {
        // What is left of a trial's prefix harms no other trial.
        let _ = bench.night.clear();
    }
    Ok(rows)
}

#[allow(clippy::print_stderr, reason = "a program that says how far it is")]
fn eprintln_row(row: &Row) {
    let mark = if row.is_green() { "ok " } else { "RED" };
    eprintln!("{mark} {} {} {}: {}/{} {}", row.id, row.backend, row.trial, row.passed, row.runs, row.observed);
}

/// This trial cannot run here.
#[derive(Debug)]
struct Skip(String);

impl std::fmt::Display for Skip {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Skip {}

fn skip<T>(why: &str) -> Result<T> {
    Err(Box::new(Skip(why.to_owned())))
}

/// A prepared night, and the proxy before its server.
struct Bench {
    night: Night,
    proxy: Option<Proxy>,
    seed: u64,
    /// Requests of an undisturbed run.
    n_requests: u64,
    rgw_dir: Option<PathBuf>,
    outage: u64,
}

impl Bench {
    fn new(args: &Args, dir: &Path, server: Option<&Server>, seed: u64) -> Result<Self> {
        let place = server.map_or(Place::Local, |s| Place::on(s, &format!("faults-{seed}")));
        let night = Night::prepare(&args.common.nearprint, dir, place, Spec::new(seed))?;
        let (rgw_dir, outage) = (args.rgw_dir.clone(), args.outage);
        let mut bench = Self { night, proxy: None, seed, n_requests: 0, rgw_dir, outage };
        if let Some(server) = server {
            let proxy = Proxy::start(server.port()?, seed)?;
            bench.proxy = Some(proxy);
            bench.job("")?;
            bench.disturbed(Vec::new())?.ends_with(&[0], &[])?;
            bench.n_requests = bench.proxy()?.log().len() as u64;
        }
        Ok(bench)
    }

    fn proxy(&self) -> Result<&Proxy> {
        Ok(self.proxy.as_ref().ok_or("no proxy")?)
    }

    /// The job through the proxy.
    fn job(&self, s3: &str) -> Result<()> {
        self.night.write_job("proxy.toml", Some(&self.proxy()?.endpoint()), s3)
    }

    /// A random number from the seed and the row.
    fn draw(&self, salt: u64, below: u64) -> u64 {
        let mut random = Random::new(self.seed * 1000 + salt);
        random.number();
        random.below(below.max(1))
    }

    /// A run through the proxy under these rules.
    fn disturbed(&self, rules: Vec<Rule>) -> Result<Ran> {
        self.disturbed_by(rules, &[])
    }

    fn disturbed_by(&self, rules: Vec<Rule>, args: &[&str]) -> Result<Ran> {
        let proxy = self.proxy()?;
        proxy.set(rules, self.seed);
        let ran = self.night.new_run_by("proxy.toml").args(args).run()?;
        proxy.calm();
        Ok(ran)
    }

    fn log(&self) -> Result<Vec<Logged>> {
        Ok(self.proxy()?.log())
    }

    /// Exit 0, the same bytes as undisturbed, and a rule that struck.
    fn unharmed(&self, ran: &Ran) -> Result<String> {
        ran.ends_with(&[0], &[])?;
        require!(self.proxy()?.n_struck() > 0, "no rule struck: the trial tried nothing");
        self.night.same_as_reference(&self.night.snapshot()?)?;
        self.night.holds_after(ran)?;
        Ok("exit 0, same bytes".to_owned())
    }

    /// One of these exits, an error that says these words, and the invariants.
    fn refused(&self, ran: &Ran, codes: &[i32], needles: &[&str]) -> Result<Seen> {
        ran.ends_with(codes, needles)?;
        self.night.holds_after(ran)
    }
}

fn exit(ran: &Ran, seen: Seen) -> String {
    let state = if seen == Seen::Old { "old night seen" } else { "new night seen" };
    format!("exit {}, {state}", ran.code)
}

// F3

fn terminated(bench: &Bench, ran: &Ran, since: std::time::Instant) -> Result<String> {
    let seconds = since.elapsed().as_secs_f64();
    require!(seconds < 10.0, "it took {seconds:.1} s to end after SIGTERM");
    ran.ends_with(&[143, 0], &[])?;
    let seen = bench.night.holds_after(ran)?;
    Ok(exit(ran, seen))
}

fn sigterm_local(bench: &Bench) -> Result<String> {
    let share = bench.draw(3, 1000);
    #[allow(clippy::cast_precision_loss, reason = "a draw below a thousand")]
    let wait = Duration::from_secs_f64(0.01 + bench.night.seconds * (share as f64) / 1000.0);
    let running = bench.night.new_run().start()?;
    std::thread::sleep(wait);
    let since = std::time::Instant::now();
    running.signal(Signal::SIGTERM)?;
    terminated(bench, &running.wait()?, since)
}

/// Calls back with the pid of a run that is started a moment later.
struct Pid(Mutex<Option<u32>>);

impl Pid {
    fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(None)))
    }

    fn set(&self, pid: u32) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(pid);
    }

    fn signal(&self, which: Signal) {
        for _ in 0..1000 {
            if let Some(pid) = *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
                // It may have ended.
                let _ = signal(pid, which);
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn sigterm_remote(bench: &Bench) -> Result<String> {
    let proxy = bench.proxy()?;
    let pid = Pid::new();
    let since = Arc::new(Mutex::new(std::time::Instant::now()));
    let hook: Hook = {
        let (pid, since) = (Arc::clone(&pid), Arc::clone(&since));
        Arc::new(move |_| {
            *since.lock().unwrap_or_else(PoisonError::into_inner) = std::time::Instant::now();
            pid.signal(Signal::SIGTERM);
        })
    };
    let nth = bench.draw(3, bench.n_requests);
    let later = Rule::new(".", Action::Delay(Duration::from_millis(100)))?;
    proxy.set(vec![Rule::new(".", Action::Before(hook))?.after(nth).times(1), later], bench.seed);
    let running = bench.night.new_run_by("proxy.toml").start()?;
    pid.set(running.pid());
    let ran = running.wait()?;
    let since = *since.lock().unwrap_or_else(PoisonError::into_inner);
    proxy.calm();
    let said = terminated(bench, &ran, since)?;
    no_open_uploads(&bench.night)?;
    Ok(said)
}

fn no_open_uploads(night: &Night) -> Result<()> {
    let Place::S3 { server, prefix } = &night.place else { return Ok(()) };
    let open: Vec<String> = server.open_uploads()?.into_iter().filter(|key| key.starts_with(prefix.as_str())).collect();
    require!(open.is_empty(), "uploads are left open: {open:?}");
    Ok(())
}

// F4, F5, F6, F8

/// Calls of these kinds in an undisturbed run.
fn calls(night: &Night, kinds: &[Kind]) -> Result<Vec<Call>> {
    let traced = trace(&night.new_run(), kinds, |_, _| Act::Go)?;
    traced.ran.ends_with(&[0], &[])?;
    night.restore()?;
    require!(!traced.calls.is_empty(), "no such call was seen");
    Ok(traced.calls)
}

fn failing(bench: &Bench, kinds: &[Kind], errno: Errno, for_ever: bool, salt: u64) -> Result<(Ran, Call)> {
    let n = calls(&bench.night, kinds)?.len() as u64;
    let nth = 1 + bench.draw(salt, n);
    let mut at = None;
    let traced = trace(&bench.night.new_run(), kinds, |i, call| {
        if i as u64 == nth || for_ever && i as u64 > nth {
            at.get_or_insert_with(|| call.clone());
            return Act::Fail(errno);
        }
        Act::Go
    })?;
    Ok((traced.ran, at.ok_or("the call to fail did not come")?))
}

/// At or after the commit a night may be visible although the run failed.
fn after_failure(bench: &Bench, ran: &Ran, call: &Call, codes: &[i32], needles: &[&str]) -> Result<String> {
    let checked = || -> Result<String> {
        ran.ends_with(codes, if ran.code == 0 { &[] } else { needles })?;
        let seen = bench.night.holds_after(ran)?;
        // The tables follow the commit: their files are read once more, and their logs are written.
        let late = call.path.contains("_commits") || call.path.contains("_delta_log") || call.path.contains("results/");
        let at_end = late || call.path.ends_with(NEW) || ran.code == 0;
        require!(seen == Seen::Old || at_end || ran.code == 75, "published, but {}", ran.said());
        Ok(exit(ran, seen))
    };
    checked().map_err(|e| format!("{} {}: {e}", call.name, call.path).into())
}

fn disk_full(bench: &Bench) -> Result<String> {
    let (ran, call) = failing(bench, &[Kind::Write], Errno::ENOSPC, true, 4)?;
    after_failure(bench, &ran, &call, &[74], &["no space left", "/"])
}

fn disk_full_once(bench: &Bench) -> Result<String> {
    let (ran, call) = failing(bench, &[Kind::Write], Errno::ENOSPC, false, 5)?;
    after_failure(bench, &ran, &call, &[74, 0], &["no space left", "/"])
}

fn failed_sync(bench: &Bench) -> Result<String> {
    let (ran, call) = failing(bench, &[Kind::Sync], Errno::EIO, false, 6)?;
    after_failure(bench, &ran, &call, &[74, 75], &["/"])
}

fn failed_read(bench: &Bench) -> Result<String> {
    let (ran, call) = failing(bench, &[Kind::Read], Errno::EIO, false, 7)?;
    // That a manifest of an earlier night cannot be read is a warning: its counts are left out of the comparison with tonight's.
    let of_earlier = call.path.contains(&format!("/dt={OLD}/")) && call.path.ends_with("/manifest.json");
    let codes: &[i32] = if of_earlier { &[74, 0] } else { &[74] };
    after_failure(bench, &ran, &call, codes, &["/"])
}

/// A file system of its own in memory.
struct Mounted(PathBuf);

impl Mounted {
    fn new(at: &Path, options: &str) -> Result<Self> {
        std::fs::create_dir_all(at)?;
        let done = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(at).output()?;
        if !done.status.success() {
            return skip(&format!("mount: {}", String::from_utf8_lossy(&done.stderr).trim()));
        }
        Ok(Self(at.to_owned()))
    }

    fn remount(&self, options: &str) -> Result<()> {
        let done = Command::new("mount").args(["-o", &format!("remount,{options}")]).arg(&self.0).output()?;
        require!(done.status.success(), "remount: {}", String::from_utf8_lossy(&done.stderr));
        Ok(())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Free space (blocks of 4 KiB) or inodes of a file system.
fn used(at: &Path, what: &str) -> Result<u64> {
    let done = Command::new("stat").args(["-f", "-c", what]).arg(at).output()?;
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let numbers: Vec<u64> = text.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    match numbers[..] {
        [all, free] => Ok(all - free),
        _ => Err(format!("stat said {text:?}").into()),
    }
}

fn cramped(bench: &Bench, what: &str, option: impl Fn(u64) -> String, room: u64) -> Result<String> {
    let at = bench.night.dir.with_extension("small");
    let roomy = "size=256m,nr_inodes=100000";
    let mounted = Mounted::new(&at, roomy)?;
    let night = bench.night.twin(&at)?;
    // Every other seed meets the check of free space first.
    let looks_first = bench.seed % 2 == 1;
    if !looks_first {
        let job = std::fs::read_to_string(at.join("job.toml"))?;
        std::fs::write(at.join("job.toml"), job + "[resources]\npreflight = false\n")?;
    }
    let free = bench.draw(8, room);
    mounted.remount(&option(used(&at, what)? + free))?;
    let ran = night.new_run().run()?;
    mounted.remount(roomy)?;
    let said: &[&str] = match ran.code {
        74 if ran.stderr.contains("bytes are needed for ") => &["are free"],
        74 => &["no space left", "/"],
        _ => &[],
    };
    ran.ends_with(&[0, 74], said)?;
    let seen = night.holds_after(&ran).map_err(|e| format!("{free} free: {e}"))?;
    Ok(exit(&ran, seen))
}

fn small_disk(bench: &Bench) -> Result<String> {
    cramped(bench, "%b %f", |blocks| format!("size={}k", blocks * 4), 40)
}

fn few_inodes(bench: &Bench) -> Result<String> {
    cramped(bench, "%c %d", |inodes| format!("size=64m,nr_inodes={inodes}"), 40)
}

fn spill_limit(bench: &Bench) -> Result<String> {
    // Many documents with one text make more rows than the memory for the reduce.
    let scratch = bench.night.dir.with_extension("spills");
    let spec = Spec { n_documents: 1000, n_copies: 900, job: "pairs = \"all\"\n".to_owned(), ..Spec::new(bench.seed) };
    let night = Night::prepare(&bench.night.nearprint, &scratch, Place::Local, spec)?;
    let small = ["--reduce-memory", "16MiB"];
    let free = night.new_run().args(&small).run()?;
    free.ends_with(&[0], &[])?;
    let spilled = free.summary()["spill"]["spilled_bytes"].as_u64().unwrap_or(0);
    require!(spilled > 0, "the night does not spill");
    night.restore()?;
    let ran = night.new_run().args(&small).args(&["--max-spill", "4KiB"]).run()?;
    ran.ends_with(&[74], &["--max-spill"])?;
    let seen = night.holds_after(&ran)?;
    require!(seen == Seen::Old, "published past its limit");
    std::fs::remove_dir_all(&scratch)?;
    Ok(exit(&ran, seen))
}

// F9 to F14

fn retries(ran: &Ran) -> Result<u64> {
    ran.summary()["requests"]["retries"].as_u64().ok_or_else(|| "the summary counts no retries".into())
}

fn slow_down(bench: &Bench, share: f64) -> Result<String> {
    let ran = bench.disturbed(vec![Rule::new(".", Action::Status { status: 503, code: "SlowDown" })?.share(share)])?;
    let struck = bench.proxy()?.n_struck() as u64;
    let said = bench.unharmed(&ran)?;
    let counted = retries(&ran)?;
    require!(counted >= struck.min(1) && counted <= struck, "{struck} answers were 503, {counted} retries counted");
    Ok(said)
}

fn slow_down_10(bench: &Bench) -> Result<String> {
    slow_down(bench, 0.1)
}

fn slow_down_30(bench: &Bench) -> Result<String> {
    slow_down(bench, 0.3)
}

fn unavailable(bench: &Bench) -> Result<String> {
    bench.job("retry_seconds = 4\n")?;
    let nth = bench.draw(10, bench.n_requests);
    let ran = bench.disturbed(vec![Rule::new(".", Action::Status { status: 503, code: "SlowDown" })?.after(nth)])?;
    let commit =
        bench.log()?.iter().any(|l| l.action.is_some() && l.line.starts_with("PUT") && l.line.contains("_commits/"));
    bench.job("")?;
    require!(ran.seconds < 4.0 + 10.0, "it took {:.1} s: {}", ran.seconds, ran.said());
    // Whether a commit that nobody answered is there cannot be known.
    let seen = bench.refused(&ran, if commit { &[69, 75] } else { &[69] }, &["/"]);
    seen.map(|seen| exit(&ran, seen)).map_err(|e| format!("from request {nth} of {}: {e}", bench.n_requests).into())
}

fn each_error_once(bench: &Bench) -> Result<String> {
    let mut rules = Vec::new();
    for (status, code) in
        [(429, "TooManyRequests"), (500, "InternalError"), (502, "BadGateway"), (504, "GatewayTimeout")]
    {
        for kind in ["^GET .*list-type", "^GET [^?]*$", "^HEAD", "^PUT", "^POST", "^DELETE"] {
            rules.push(Rule::new(kind, Action::Status { status, code })?.after(bench.draw(status.into(), 3)).times(1));
        }
    }
    let ran = bench.disturbed(rules)?;
    bench.unharmed(&ran)
}

fn resets(bench: &Bench) -> Result<String> {
    let ran = bench.disturbed(vec![
        Rule::new("^GET", Action::Reset)?.after(bench.draw(12, 6)).times(1),
        Rule::new("^GET", Action::Truncate(usize::try_from(bench.draw(13, 400))?))?.after(bench.draw(14, 6)).times(1),
        Rule::new("^GET", Action::Reset)?.share(0.05),
        Rule::new("^GET", Action::Truncate(100))?.share(0.05),
    ])?;
    bench.unharmed(&ran)
}

fn patient(bench: &Bench, rule: Rule) -> Result<String> {
    bench.job("timeout_seconds = 3\n")?;
    let ran = bench.disturbed(vec![rule]);
    bench.job("")?;
    let ran = ran?;
    require!(ran.seconds < 60.0, "it took {:.0} s", ran.seconds);
    bench.unharmed(&ran)
}

fn black_hole(bench: &Bench) -> Result<String> {
    patient(bench, Rule::new(".", Action::BlackHole)?.after(bench.draw(15, bench.n_requests)).times(1))
}

fn trickle(bench: &Bench) -> Result<String> {
    patient(bench, Rule::new("^GET [^?]*documents", Action::Trickle(1024))?.after(bench.draw(16, 2)).times(1))
}

fn flipped_store(bench: &Bench) -> Result<String> {
    let rule = Rule::new("^GET [^?]*/store/", Action::Flip)?.after(bench.draw(17, 8)).times(1);
    let ran = bench.disturbed(vec![rule])?;
    ran.ends_with(&[0, 65, 75], &[])?;
    require!(bench.proxy()?.n_struck() > 0, "no rule struck: the trial tried nothing");
    if ran.code == 0 {
        return bench.unharmed(&ran);
    }
    let seen = bench.night.holds_after(&ran)?;
    require!(seen == Seen::Old, "published, but {}", ran.said());
    Ok(exit(&ran, seen))
}

fn flipped_documents(bench: &Bench) -> Result<String> {
    let rule = Rule::new("^GET [^?]*/documents/", Action::Flip)?.after(bench.draw(18, 3)).times(1);
    let ran = bench.disturbed(vec![rule])?;
    ran.ends_with(&[0, 65, 75], &[])?;
    require!(bench.proxy()?.n_struck() > 0, "no rule struck: the trial tried nothing");
    let now = bench.night.snapshot()?;
    complete(&now)?;
    bench.night.check()?;
    if ran.code != 0 {
        require!(bench.night.readers(&now)? == Seen::Old, "published, but {}", ran.said());
    }
    Ok(format!("exit {}", ran.code))
}

// F15 to F22

fn at_commit(bench: &Bench, action: Action, times: u64) -> Result<Ran> {
    bench.disturbed(vec![Rule::new(COMMIT, action)?.times(times)])
}

fn lost_commit(bench: &Bench) -> Result<String> {
    let ran = at_commit(bench, Action::LostReply, 1)?;
    bench.unharmed(&ran)
}

fn conflict() -> Action {
    Action::Status { status: 409, code: "ConditionalRequestConflict" }
}

fn conflict_once(bench: &Bench) -> Result<String> {
    let ran = at_commit(bench, conflict(), 1)?;
    bench.unharmed(&ran)
}

/// Checks that the files that the run wrote before its commit are still there.
fn files_kept(bench: &Bench, now: &Snapshot) -> Result<()> {
    let kept = |key: &&String| key.ends_with(".parquet") || key.ends_with("/manifest.json");
    let missing: Vec<&String> = bench.night.reference.keys().filter(kept).filter(|k| !now.contains_key(*k)).collect();
    require!(missing.is_empty(), "files were not kept: {missing:?}");
    Ok(())
}

fn conflict_for_ever(bench: &Bench) -> Result<String> {
    bench.job("retry_seconds = 3\n")?;
    let ran = at_commit(bench, conflict(), u64::MAX);
    bench.job("")?;
    let ran = ran?;
    ran.ends_with(&[75], &[])?;
    require!(ran.seconds < 30.0, "it took {:.0} s", ran.seconds);
    files_kept(bench, &bench.night.snapshot()?)?;
    let seen = bench.night.holds_after(&ran)?;
    require!(seen == Seen::Old, "published, but {}", ran.said());
    Ok(exit(&ran, seen))
}

fn unknown_commit(bench: &Bench) -> Result<String> {
    bench.job("retry_seconds = 3\n")?;
    let proxy = bench.proxy()?;
    let down = Arc::new(AtomicBool::new(false));
    let hook: Hook = {
        let (rules, down) = (proxy.rules(), Arc::clone(&down));
        let unavailable = Rule::new(".", Action::Status { status: 503, code: "SlowDown" })?;
        Arc::new(move |_| {
            down.store(true, Ordering::Relaxed);
            rules.replace(vec![unavailable.clone()]);
        })
    };
    let ran = bench.disturbed(vec![Rule::new(COMMIT, Action::After(hook))?.times(1)]);
    bench.job("")?;
    let ran = ran?;
    require!(down.load(Ordering::Relaxed), "no commit was seen");
    ran.ends_with(&[75], &["cannot tell whether"])?;
    files_kept(bench, &bench.night.snapshot()?)?;
    let seen = bench.night.holds_after(&ran)?;
    require!(seen == Seen::New, "the server took the commit, but the old night is seen");
    Ok(exit(&ran, seen))
}

/// A night whose decisions are larger than a part of an upload, on a prefix of its own, and a proxy before it.
fn large_night(bench: &Bench, judge: impl FnOnce(&Night, &Proxy) -> Result<String>) -> Result<String> {
    let Place::S3 { server, .. } = &bench.night.place else { return skip("no S3 server named") };
    let place = Place::on(server, &format!("large-{}", bench.seed));
    let dir = bench.night.dir.with_extension("large");
    let spec = Spec { n_documents: 2000, id_bytes: 12_000, ..Spec::new(bench.seed) };
    let night = Night::prepare(&bench.night.nearprint, &dir, place, spec)?;
    let proxy = Proxy::start(server.port()?, bench.seed)?;
    night.write_job("proxy.toml", Some(&proxy.endpoint()), "")?;
    let judged = judge(&night, &proxy);
    night.clear()?;
    std::fs::remove_dir_all(&dir)?;
    judged
}

fn large(bench: &Bench, rules: Vec<Rule>) -> Result<String> {
    large_night(bench, |night, proxy| {
        proxy.set(rules, bench.seed);
        let ran = night.new_run_by("proxy.toml").run()?;
        ran.ends_with(&[0], &[])?;
        require!(proxy.n_struck() > 0, "no rule struck: the night has no upload in parts");
        night.same_as_reference(&night.snapshot()?)?;
        night.holds_after(&ran)?;
        no_open_uploads(night)?;
        Ok("exit 0, same bytes".to_owned())
    })
}

/// A run that gets a signal while it sends the second part of an upload.
fn struck_at_part(bench: &Bench, which: Signal, judge: impl FnOnce(&Night, &Ran) -> Result<()>) -> Result<String> {
    large_night(bench, |night, proxy| {
        let pid = Pid::new();
        let hook: Hook = {
            let pid = Arc::clone(&pid);
            Arc::new(move |_| pid.signal(which))
        };
        proxy.set(vec![Rule::new("^PUT .*partNumber=", Action::Before(hook))?.after(1).times(1)], bench.seed);
        let running = night.new_run_by("proxy.toml").start()?;
        pid.set(running.pid());
        let ran = running.wait()?;
        require!(proxy.n_struck() > 0, "no rule struck: the night has no upload in parts");
        judge(night, &ran)?;
        night.holds_after(&ran)?;
        Ok(format!("exit {}", ran.code))
    })
}

fn killed_at_part(bench: &Bench) -> Result<String> {
    struck_at_part(bench, Signal::SIGKILL, |night, ran| {
        ran.ends_with(&[137], &[])?;
        require!(no_open_uploads(night).is_err(), "no upload is open: the trial tried nothing");
        let gc = Run::new(&night.nearprint, &night.dir, &["store", "gc", "--config", "job.toml", "--grace-hours", "0"]);
        gc.run()?.ends_with(&[0], &[]).map_err(|e| format!("gc: {e}"))?;
        no_open_uploads(night).map_err(|e| format!("after gc {e}").into())
    })
}

fn terminated_at_part(bench: &Bench) -> Result<String> {
    struck_at_part(bench, Signal::SIGTERM, |night, ran| {
        ran.ends_with(&[143], &[])?;
        no_open_uploads(night)
    })
}

fn lost_complete(bench: &Bench) -> Result<String> {
    large(bench, vec![Rule::new(COMPLETE, Action::LostReply)?.times(1)])
}

fn lost_complete_then_gone(bench: &Bench) -> Result<String> {
    let gone = Action::Status { status: 404, code: "NoSuchUpload" };
    large(bench, vec![Rule::new(COMPLETE, Action::LostReply)?.times(1), Rule::new(COMPLETE, gone)?.times(1)])
}

fn complete_error(bench: &Bench) -> Result<String> {
    large(bench, vec![Rule::new(COMPLETE, Action::Deny { status: 200, code: "InternalError" })?.times(1)])
}

fn expired() -> Action {
    Action::Status { status: 403, code: "ExpiredToken" }
}

fn expired_once(bench: &Bench) -> Result<String> {
    let nth = bench.draw(20, bench.n_requests);
    let ran = bench.disturbed(vec![Rule::new(".", expired())?.after(nth).times(1)])?;
    bench.unharmed(&ran).map_err(|e| format!("request {nth}: {e}").into())
}

fn expired_for_ever(bench: &Bench) -> Result<String> {
    let nth = bench.draw(21, bench.n_requests);
    let ran = bench.disturbed(vec![Rule::new(".", expired())?.after(nth)])?;
    let seen = bench.refused(&ran, &[77], &["expired"]);
    seen.map(|seen| exit(&ran, seen)).map_err(|e| format!("from request {nth}: {e}").into())
}

fn refused_put(bench: &Bench, code: &'static str, needles: &[&str]) -> Result<String> {
    // The probe and all that is written later: some PUT before the commit.
    let nth = bench.draw(22, 8);
    let ran = bench.disturbed(vec![Rule::new("^(PUT|POST)", Action::Status { status: 403, code })?.after(nth)])?;
    let seen = bench.refused(&ran, &[77], needles)?;
    require!(seen == Seen::Old, "published, but {}", ran.said());
    Ok(exit(&ran, seen))
}

fn over_quota(bench: &Bench) -> Result<String> {
    refused_put(bench, "QuotaExceeded", &["quota", "cannot", "s3://"])
}

fn read_only(bench: &Bench) -> Result<String> {
    refused_put(bench, "AccessDenied", &["cannot", "s3://"])
}

fn careless_store(bench: &Bench) -> Result<String> {
    let Place::S3 { server, .. } = &bench.night.place else { return skip("no S3 server named") };
    // The header is signed, so it cannot be taken out: what is there goes before it is written again.
    let hook: Hook = {
        let server = server.clone();
        Arc::new(move |line| {
            let key = line.split(&format!("/{}/", server.bucket)).nth(1).unwrap_or_default().to_owned();
            aside(|| server.delete(&key));
        })
    };
    let ignores = Rule::new(r"^PUT [^?]*(/_probe/|/_commits/)", Action::Before(hook))?;
    let ran = bench.disturbed(vec![ignores.clone()])?;
    let seen = bench.refused(&ran, &[78], &["If-None-Match"])?;
    require!(seen == Seen::Old, "published on such a store");
    bench.night.restore()?;
    let alone = bench.disturbed_by(vec![ignores], &["--single-writer"])?;
    let said = bench.unharmed(&alone).map_err(|e| format!("with --single-writer: {e}"))?;
    Ok(format!("exit 78; with --single-writer {said}"))
}

// F23

fn pid_in(dir: &Path, name: &str) -> Result<u32> {
    Ok(std::fs::read_to_string(dir.join(format!("run/{name}.pid")))?.trim().parse()?)
}

/// A run during which something happens to the server at a random request.
fn outage(bench: &Bench, strike: impl Fn(&Path, Duration) + Send + Sync + 'static) -> Result<String> {
    let Some(dir) = bench.rgw_dir.clone() else { return skip("needs --rgw-dir") };
    let pause = Duration::from_secs(bench.outage);
    let hook: Hook = Arc::new(move |_| strike(&dir, pause));
    let nth = bench.draw(23, bench.n_requests);
    let rule = Rule::new(".", Action::Before(hook))?.after(nth).times(1);
    let proxy = bench.proxy()?;
    proxy.set(vec![rule], bench.seed);
    let ran = bench.night.new_run_by("proxy.toml").run()?;
    // The server may need a moment more than the run did.
    std::thread::sleep(pause + Duration::from_secs(5));
    bench.unharmed(&ran).map_err(|e| format!("at request {nth}: {e}").into())
}

fn gateway_restart(bench: &Bench) -> Result<String> {
    outage(bench, |dir, pause| {
        if let Ok(pid) = pid_in(dir, "client.rgw") {
            let _ = signal(pid, Signal::SIGKILL);
        }
        let conf = dir.join("ceph.conf");
        std::thread::spawn(move || {
            std::thread::sleep(pause);
            let mut gateway = Command::new("radosgw");
            gateway.arg("--conf").arg(conf).args(["-n", "client.rgw"]).stdout(Stdio::null()).stderr(Stdio::null());
            let _ = gateway.status();
        });
    })
}

fn daemon_stopped(bench: &Bench) -> Result<String> {
    outage(bench, |dir, pause| {
        let Ok(pid) = pid_in(dir, "osd.0") else { return };
        let _ = signal(pid, Signal::SIGSTOP);
        std::thread::spawn(move || {
            std::thread::sleep(pause);
            let _ = signal(pid, Signal::SIGCONT);
        });
    })
}

// F26

/// A document file of the night, and another content for it, which is as long.
fn victim(bench: &Bench) -> Result<(String, Vec<u8>)> {
    let ours: Vec<&String> =
        bench.night.base.keys().filter(|k| k.starts_with(&format!("documents/dt={NEW}/"))).collect();
    let key = ours[usize::try_from(bench.draw(26, ours.len() as u64))?].clone();
    let other = ours.iter().find(|k| ***k != key).ok_or("one file only")?;
    Ok((key, bench.night.base[*other].clone()))
}

fn changed(bench: &Bench, ran: &Ran, key: &str) -> Result<String> {
    let name = key.rsplit('/').next().unwrap_or_default();
    ran.ends_with(&[75], &[name])?;
    let now = bench.night.snapshot()?;
    require!(bench.night.readers(&now)? == Seen::Old, "published, but {}", ran.said());
    bench.night.leftovers(&now)?;
    bench.night.restore()?;
    bench.night.rerun()?;
    Ok("exit 75".to_owned())
}

/// From a thread of its own: a hook may not wait for another runtime. What is there already, or gone already, may stay so.
fn aside(work: impl FnOnce() -> Result<()> + Send) {
    std::thread::scope(|scope| {
        let _ = scope.spawn(work).join();
    });
}

fn input_changes(bench: &Bench, deleted: bool) -> Result<String> {
    let Place::S3 { server, prefix } = &bench.night.place else { return skip("no S3 server named") };
    let (key, content) = victim(bench)?;
    let hook: Hook = {
        let (server, full) = (server.clone(), format!("{prefix}/{key}"));
        Arc::new(move |_| {
            aside(|| if deleted { server.delete(&full) } else { server.put(&full, content.clone()) });
        })
    };
    // At any of the reads: the first is of the footer, later ones of its row groups.
    let name = key.rsplit('/').next().unwrap_or_default();
    let rule = Rule::new(&format!("^GET [^?]*/documents/[^?]*{}$", regex::escape(name)), Action::Before(hook))?;
    let ran = bench.disturbed(vec![rule.after(bench.draw(27, 2)).times(1)])?;
    require!(bench.proxy()?.n_struck() > 0, "no rule struck: the trial tried nothing");
    changed(bench, &ran, &key)
}

fn input_replaced(bench: &Bench) -> Result<String> {
    input_changes(bench, false)
}

fn input_deleted(bench: &Bench) -> Result<String> {
    input_changes(bench, true)
}

fn input_changes_local(bench: &Bench, deleted: bool) -> Result<String> {
    let (key, content) = victim(bench)?;
    let path = bench.night.dir.join(&key);
    let nth = bench.draw(28, 2);
    let mut n_opened = 0;
    let traced = trace(&bench.night.new_run(), &[Kind::Open], |_, call| {
        if call.path == key {
            if n_opened == nth {
                // In the way that crawlers do it: beside it, and then renamed. A file that is open stays readable.
                let beside = path.with_extension("new");
                let _ = if deleted {
                    std::fs::remove_file(&path)
                } else {
                    std::fs::write(&beside, &content).and_then(|()| std::fs::rename(&beside, &path))
                };
            }
            n_opened += 1;
        }
        Act::Go
    })?;
    require!(n_opened > 0, "the input was never opened");
    if n_opened <= nth {
        // It was opened once only: what was read is what was listed.
        traced.ran.ends_with(&[0], &[])?;
        return Ok("exit 0, opened once".to_owned());
    }
    changed(bench, &traced.ran, &key)
}

fn input_replaced_local(bench: &Bench) -> Result<String> {
    input_changes_local(bench, false)
}

fn input_deleted_local(bench: &Bench) -> Result<String> {
    input_changes_local(bench, true)
}

// F27, F28, F30

fn faketime(run: Run, when: &str) -> Result<Ran> {
    if Command::new("faketime").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        return skip("faketime is not installed");
    }
    // Times of files stay what they are.
    run.env("NO_FAKE_STAT", "1").wrapped(&["faketime", when]).run()
}

fn clock(bench: &Bench) -> Result<String> {
    for (when, zone) in [
        ("2025-11-20 02:30:00", "UTC"),
        ("2027-11-20 02:30:00", "UTC"),
        ("2026-03-08 01:59:59", "America/New_York"),
        ("2026-11-01 01:59:59", "America/New_York"),
        ("2026-11-20 02:30:00", "Pacific/Apia"),
    ] {
        bench.night.restore()?;
        let ran = faketime(bench.night.new_run().env("TZ", zone), when)?;
        let same = ran.ends_with(&[0], &[]).and_then(|()| bench.night.same_as_reference(&bench.night.snapshot()?));
        same.and_then(|()| bench.night.leftovers(&bench.night.snapshot()?))
            .map_err(|e| format!("{when} {zone}: {e}"))?;
    }
    Ok("same bytes".to_owned())
}

fn clock_skew(bench: &Bench) -> Result<String> {
    for when in ["2025-11-20 02:30:00", "2027-11-20 02:30:00"] {
        bench.night.restore()?;
        let ran = faketime(bench.night.new_run(), when)?;
        ran.ends_with(&[77], &["skew"]).map_err(|e| format!("{when}: {e}"))?;
        require!(bench.night.holds_after(&ran)? == Seen::Old, "published, but {}", ran.said());
    }
    Ok("exit 77".to_owned())
}

/// Returns the files that do not depend on how inputs are cut into files. The quarantine names them.
fn data(now: &Snapshot) -> Snapshot {
    let mut files = data_files(now.clone());
    files.retain(|key, _| !key.contains("/quarantine/"));
    files
}

fn threads(bench: &Bench) -> Result<String> {
    for threads in ["1", "2", "8"] {
        for more in [&[][..], &["--reduce-memory", "256KiB"], &["--memory-limit", "64MiB"]] {
            bench.night.restore()?;
            let ran = bench.night.new_run().args(&["--threads", threads]).args(more).run()?;
            let same = ran.ends_with(&[0], &[]).and_then(|()| bench.night.same_as_reference(&bench.night.snapshot()?));
            same.and_then(|()| bench.night.leftovers(&bench.night.snapshot()?))
                .map_err(|e| format!("--threads {threads} {}: {e}", more.join(" ")))?;
        }
    }
    bench.night.restore()?;
    let inputs = bench.night.base.keys().filter(|k| k.starts_with(&format!("documents/dt={NEW}/")));
    for (key, name) in inputs.zip(["z", "a"]) {
        let path = bench.night.dir.join(key);
        let ending = path.extension().unwrap_or_default().to_string_lossy().into_owned();
        std::fs::rename(&path, path.with_file_name(format!("{name}.{ending}")))?;
    }
    bench.night.new_run().run()?.ends_with(&[0], &[])?;
    let now = bench.night.snapshot()?;
    require!(data(&now) == data(&bench.night.reference), "files in another order make other bytes");
    Ok("same bytes".to_owned())
}

fn missing(bench: &Bench) -> Result<String> {
    let Place::S3 { server, prefix } = &bench.night.place else { return skip("no S3 server named") };
    let said = |bucket: &str, below: &str| -> Result<String> {
        let root = format!("s3://{bucket}/{below}");
        let job = format!(
            "documents = \"{root}/nothing\"\nstore = \"{root}/store\"\noutput = \"{root}/results\"\ncreate_store = true\n[s3]\nendpoint = \"{}\"\n",
            server.endpoint
        );
        std::fs::write(bench.night.dir.join("missing.toml"), job)?;
        let ran = bench.night.run_of("missing.toml", NEW).run()?;
        ran.ends_with(&[66], &[])?;
        Ok(ran.error().to_owned())
    };
    let bucket = said("no-such-bucket-here", prefix)?;
    let place = said(&server.bucket, prefix)?;
    require!(bucket.to_lowercase().contains("bucket"), "not a word of the bucket: {bucket}");
    require!(!place.contains("NoSuchBucket"), "a missing folder is called a missing bucket: {place}");
    Ok("exit 66 each".to_owned())
}
