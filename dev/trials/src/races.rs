//! Several runs at once: of one date, of one date with two configurations, with one of them killed, and of two dates.

use std::time::Duration;

use nearprint_harness::folder::Snapshot;
use nearprint_harness::night::{NEW, Night, OLD, Place, Seen, Spec, complete, newest_commit, records};
use nearprint_harness::random::Random;
use nearprint_harness::row::{Row, Tally};
use nearprint_harness::runner::{Ran, Running, Signal};
use nearprint_harness::server::Server;
use nearprint_harness::tracer::{Act, Kind, trace};
use nearprint_harness::{Common, Result, delta, require};

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub common: Common,
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub rounds: u64,
    /// Number of the first round, which seeds it: several processes may share the rounds
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub first_round: u64,
    #[arg(long, value_parser = ["local", "rgw"], default_value = "local")]
    pub backend: String,
}

/// The kinds of races, with the rounds of each in eleven.
const RACES: [(&str, &str, &str, u64, Round); 5] = [
    ("F24", "2 to 8 runs of one date at once", "each exits 0, one commit, same bytes as one run alone", 5, one_date),
    (
        "F24",
        "the same, and one of them is killed",
        "the others exit 0, one commit, same bytes after a rerun",
        2,
        one_killed,
    ),
    (
        "F25",
        "the same, and one has another configuration",
        "one configuration wins, runs of the other exit 73, one commit",
        2,
        two_configs,
    ),
    (
        "F24",
        "two dates at once on an empty store",
        "the newer date 0 or 75, the older 0, 64 or 75; each right for what it joined",
        1,
        two_dates,
    ),
    (
        "F24",
        "killed between commit and roll-forward",
        "the new night is in the store; the next run completes it",
        1,
        before_roll_forward,
    ),
];

type Round = fn(&Bench, &mut Random) -> Result<String>;

/// A night, and what it is under another configuration and without the night before.
struct Bench {
    night: Night,
    other: Snapshot,
    alone: Snapshot,
}

pub fn run(args: &Args) -> Result<Vec<Row>> {
    let tallies = RACES.map(|(id, trial, required, ..)| Tally::new(id, trial, &args.backend, required));
    let server = match args.backend.as_str() {
        "rgw" => match Server::from_env()? {
            None => return Ok(tallies.into_iter().map(|t| t.skipped("no S3 server named")).collect()),
            server => server,
        },
        _ => None,
    };
    let scratch = args.common.scratch()?;
    let mut benches = Vec::new();
    for seed in 0..args.common.seeds.min(4) {
        let place = server.as_ref().map_or(Place::Local, |s| Place::on(s, &format!("races-{seed}")));
        benches.push(Bench::new(&args.common, &scratch.path().join(format!("{seed}")), place, seed)?);
    }
    let turns = turns();
    let mut tallies = tallies;
    for round in args.first_round..args.first_round + args.rounds {
        let at = usize::try_from(round)?;
        let (kind, bench) = (turns[at % turns.len()], &benches[(at / turns.len()) % benches.len()]);
        let seen = bench.night.restore().and_then(|()| RACES[kind].4(bench, &mut Random::new(round)));
        tallies[kind].add(seen.map_err(|e| format!("round {round}: {e}")));
    }
    for bench in &benches {
        bench.night.clear()?;
    }
    Ok(tallies.into_iter().map(Tally::row).collect())
}

/// The kinds of races by turns, each as often as its share says: the first rounds, however few, have one of each.
fn turns() -> Vec<usize> {
    let most = RACES.iter().map(|race| race.3).max().unwrap_or(1);
    (0..most).flat_map(|turn| (0..RACES.len()).filter(move |&kind| turn < RACES[kind].3)).collect()
}

impl Bench {
    fn new(common: &Common, dir: &std::path::Path, place: Place, seed: u64) -> Result<Self> {
        let night = Night::prepare(&common.nearprint, dir, place, Spec::new(seed))?;
        night.write_job_with("other.toml", None, "", "join = { max_distance = 5 }\n")?;
        night.run_of("other.toml", NEW).run()?.ends_with(&[0], &[])?;
        let other = night.snapshot()?;
        let mut bench = Self { night, other, alone: Snapshot::new() };
        bench.empty()?;
        bench.night.new_run().run()?.ends_with(&[0], &[])?;
        bench.alone = bench.night.snapshot()?;
        Ok(bench)
    }

    /// Documents and nothing else.
    fn empty(&self) -> Result<()> {
        let documents = self.night.base.iter().filter(|(k, _)| k.starts_with("documents/"));
        self.night.put_back(&documents.map(|(k, v)| (k.clone(), v.clone())).collect())
    }

    /// Starts runs of these configurations a little apart.
    fn start(&self, configs: &[&str], random: &mut Random) -> Result<Vec<Running>> {
        let mut running = Vec::new();
        for config in configs {
            running.push(self.night.run_of(config, NEW).start()?);
            std::thread::sleep(Duration::from_millis(random.below(50) / configs.len() as u64));
        }
        Ok(running)
    }

    /// Exactly one commit more than before.
    fn one_commit(&self, now: &Snapshot) -> Result<()> {
        let n = |s: &Snapshot| s.keys().filter(|k| k.starts_with("store/_commits/") && k.ends_with(".json")).count();
        let (before, after) = (n(&self.night.base), n(now));
        require!(after == before + 1, "{} commits instead of one", after - before);
        Ok(())
    }

    fn sound(&self) -> Result<Snapshot> {
        let now = self.night.snapshot()?;
        complete(&now)?;
        self.night.check()?;
        Ok(now)
    }
}

fn how_many(random: &mut Random) -> usize {
    2 + usize::try_from(random.below(7)).unwrap_or(0)
}

fn wait_all(running: Vec<Running>) -> Result<Vec<Ran>> {
    // All are waited for before one is judged: nothing may still be writing.
    let ran: Vec<Result<Ran>> = running.into_iter().map(Running::wait).collect();
    ran.into_iter().collect()
}

fn one_date(bench: &Bench, random: &mut Random) -> Result<String> {
    let runs = bench.start(&vec!["job.toml"; how_many(random)], random)?;
    let mut n_published = 0;
    for ran in wait_all(runs)? {
        ran.ends_with(&[0], &[])?;
        n_published += u64::from(ran.summary()["status"] == "published");
    }
    require!(n_published >= 1, "nobody says that it published");
    let now = bench.sound()?;
    bench.one_commit(&now)?;
    bench.night.same_as_reference(&now)?;
    bench.night.leftovers(&now)?;
    Ok("one commit, same bytes".to_owned())
}

fn one_killed(bench: &Bench, random: &mut Random) -> Result<String> {
    let mut runs = bench.start(&vec!["job.toml"; how_many(random)], random)?;
    let victim = usize::try_from(random.below(runs.len() as u64))?;
    std::thread::sleep(Duration::from_millis(random.below(200)));
    if !runs[victim].ended()? {
        runs[victim].signal(Signal::SIGKILL)?;
    }
    for (i, ran) in wait_all(runs)?.into_iter().enumerate() {
        ran.ends_with(if i == victim { &[0, 137] } else { &[0] }, &[])?;
    }
    let now = bench.sound()?;
    require!(bench.night.readers(&now)? == Seen::New, "the others exit 0, but the old night is seen");
    bench.one_commit(&now)?;
    bench.night.rerun()?;
    Ok("one commit, same bytes".to_owned())
}

fn two_configs(bench: &Bench, random: &mut Random) -> Result<String> {
    let mut configs = vec!["job.toml"; how_many(random)];
    let different = usize::try_from(random.below(configs.len() as u64))?;
    configs[different] = "other.toml";
    let runs = bench.start(&configs, random)?;
    let ran = wait_all(runs)?;
    let now = bench.sound()?;
    bench.one_commit(&now)?;
    let commit = newest_commit(&now);
    let (winner, reference) = if commit == newest_commit(&bench.night.reference) {
        ("job.toml", &bench.night.reference)
    } else if commit == newest_commit(&bench.other) {
        ("other.toml", &bench.other)
    } else {
        return Err("the commit is of neither configuration".into());
    };
    for (config, ran) in configs.iter().zip(&ran) {
        let wanted = if *config == winner { 0 } else { 73 };
        ran.ends_with(&[wanted], &[]).map_err(|e| format!("{winner} won, a run of {config}: {e}"))?;
    }
    let differing: Vec<&String> = reference.iter().filter(|(k, v)| now.get(*k) != Some(*v)).map(|(k, _)| k).collect();
    let differing: Vec<&&String> = differing.iter().filter(|k| !k.contains("/_probe/")).collect();
    require!(differing.is_empty(), "{winner} won, but these are not its files: {differing:?}");
    bench.night.leftovers(&now)?;
    Ok(format!("{winner} won"))
}

fn two_dates(bench: &Bench, random: &mut Random) -> Result<String> {
    bench.empty()?;
    let late = random.below(2) == 0;
    let older = bench.night.run_of("job.toml", OLD).args(if late { &["--late"] } else { &[] });
    let newer = bench.night.run_of("job.toml", NEW);
    let (first, second) = if random.below(2) == 0 { (&older, &newer) } else { (&newer, &older) };
    let first_is_older = std::ptr::eq(first, &raw const older);
    let first = first.start()?;
    std::thread::sleep(Duration::from_millis(random.below(50)));
    let second = second.start()?;
    let mut ran = wait_all(vec![first, second])?;
    if !first_is_older {
        ran.reverse();
    }
    ran[0].ends_with(if late { &[0, 75] } else { &[0, 64, 75] }, &[]).map_err(|e| format!("the older date: {e}"))?;
    ran[1].ends_with(&[0, 75], &[]).map_err(|e| format!("the newer date: {e}"))?;
    let now = bench.sound()?;
    bench.night.leftovers(&now)?;
    let commit: serde_json::Value = serde_json::from_slice(newest_commit(&now).ok_or("no commit")?.1)?;
    let n_nights = commit["nights"].as_array().map_or(0, Vec::len);
    let n_done = ran.iter().filter(|r| r.code == 0).count();
    require!(n_nights == n_done, "{n_done} runs exit 0, the store has {n_nights} nights");
    let generation = commit["nights"][n_nights.saturating_sub(1)]["gen"].as_str().unwrap_or_default().to_owned();
    let manifest = now.get(&format!("{}/manifest.json", records(NEW, &generation)));
    let manifest: serde_json::Value = manifest.map(|m| serde_json::from_slice(m)).transpose()?.unwrap_or_default();
    let joined = manifest["joined"].as_array().map_or(0, Vec::len);
    if n_nights == 2 && commit["dt"] == NEW {
        require!(joined == 1, "the newer date was committed last, and joined {joined} nights");
        // What it wrote before it joined again may lie beside it.
        bench.night.has_reference(&now)?;
    } else if ran[1].code == 0 {
        let published = |s: &Snapshot| -> Snapshot {
            let files = s.iter().filter(|(k, _)| k.starts_with("results/") && k.contains(&format!("/dt={NEW}/")));
            files.map(|(k, v)| (k.clone(), v.clone())).collect()
        };
        let (there, alone) = (published(&now), published(&bench.alone));
        require!(
            alone.iter().all(|(k, v)| there.get(k) == Some(v)),
            "the newer date, committed first, is not as alone"
        );
    }
    Ok(format!("older {}{}, newer {}", ran[0].code, if late { " with --late" } else { "" }, ran[1].code))
}

fn before_roll_forward(bench: &Bench, _: &mut Random) -> Result<String> {
    if !matches!(bench.night.place, Place::Local) {
        // The sweep over all requests has it.
        return killed_at_tables(bench);
    }
    let mut committed = false;
    let traced = trace(&bench.night.new_run(), &[Kind::Write, Kind::Name], |_, call| {
        if committed && (call.path.contains("_delta_log")) {
            return Act::Kill;
        }
        committed |= call.kind == Kind::Name && call.path.contains("store/_commits/0");
        Act::Go
    })?;
    after_kill(bench, &traced.ran)
}

fn killed_at_tables(bench: &Bench) -> Result<String> {
    use nearprint_harness::proxy::{Action, Proxy, Rule};
    let Place::S3 { server, .. } = &bench.night.place else { return Err("not on S3".into()) };
    let proxy = Proxy::start(server.port()?, 0)?;
    bench.night.write_job("proxy.toml", Some(&proxy.endpoint()), "retry_seconds = 60\n")?;
    proxy.set(vec![Rule::new("^PUT [^?]*/_delta_log/", Action::BlackHole)?], 0);
    let mut running = bench.night.new_run_by("proxy.toml").start()?;
    for _ in 0..3000 {
        if proxy.n_struck() > 0 || running.ended()? {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    running.signal(Signal::SIGKILL)?;
    after_kill(bench, &running.wait()?)
}

fn after_kill(bench: &Bench, ran: &Ran) -> Result<String> {
    ran.ends_with(&[137], &[])?;
    let now = bench.sound()?;
    require!(bench.night.readers(&now)? == Seen::New, "killed after the commit, but the old night is seen");
    let decisions = delta::active(&now, "results/decisions")?;
    require!(!decisions.keys().any(|k| k.contains(NEW)), "killed too late: the night is in the table of decisions");
    bench.night.rerun()?;
    Ok("completed".to_owned())
}
