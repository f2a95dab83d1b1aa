//! The script that cron starts: what it prints, which cron mails, whom it tells, and what it waits for.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use nearprint_harness::runner::signal;

use crate::support::{NEARPRINT, Night, Signal, not_checked, root, text};

const DT: &str = "2026-11-19";

fn night() -> Night {
    let night = Night::new("");
    fs::create_dir(night.path().join("bin")).unwrap();
    std::os::unix::fs::symlink(NEARPRINT, night.path().join("bin/nearprint")).unwrap();
    night
}

fn arrives(night: &Night) {
    night.documents(DT, &[("a", &text(1, 40)), ("b", &text(2, 40))]);
}

fn script(night: &Night, env: &[(&str, &str)]) -> Command {
    let mut command = without_date(night, env);
    command.arg(DT);
    command
}

fn without_date(night: &Night, env: &[(&str, &str)]) -> Command {
    let mut command = Command::new("bash");
    let path = std::env::var("PATH").unwrap();
    command.arg(fs::canonicalize(root().join("jobs/cron/nearprint-nightly.sh")).unwrap());
    command.args(["job.toml", "logs"]).current_dir(night.path());
    command.env("PATH", format!("{}/bin:{path}", night.path().display())).envs(env.iter().copied());
    command
}

fn run(night: &Night, env: &[(&str, &str)]) -> Output {
    script(night, env).output().unwrap()
}

fn printed(done: &Output) -> String {
    String::from_utf8(done.stdout.clone()).unwrap() + &String::from_utf8(done.stderr.clone()).unwrap()
}

fn log(night: &Night) -> String {
    fs::read_to_string(night.path().join(format!("logs/{DT}.log"))).unwrap()
}

fn summary(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn a_night_that_succeeds_prints_nothing_and_leaves_its_summary() {
    let night = night();
    arrives(&night);
    for status in ["published", "already_published"] {
        let done = run(&night, &[]);
        assert_eq!((done.status.code(), printed(&done)), (Some(0), String::new()));
        assert_eq!(summary(&night.path().join(format!("logs/{DT}.json")))["status"], status);
    }
}

#[test]
fn a_failure_is_printed_with_its_reason_and_given_to_the_hook_and_has_a_time() {
    let night = night();
    let hook = "cat >told.json; echo $NEARPRINT_DT $NEARPRINT_EXIT_CODE $NEARPRINT_LOG >told";
    let done = run(&night, &[("NEARPRINT_ON_FAILURE", hook)]);
    assert_eq!(done.status.code(), Some(66));
    let printed = printed(&done);
    for part in [DT, "exit code 66", "no documents at documents/dt=2026-11-19", "logs/2026-11-19.log"] {
        assert!(printed.contains(part), "{part:?} is not in {printed}");
    }
    assert_eq!(fs::read_to_string(night.path().join("told")).unwrap(), format!("{DT} 66 logs/{DT}.log\n"));
    assert_eq!(summary(&night.path().join("told.json"))["exit_code"], 66);
    let log = log(&night);
    let line = log.lines().find(|line| line.contains("failed: exit code 66")).unwrap();
    assert!(line.starts_with("20") && line.as_bytes()[10] == b'T', "{line}");
}

#[test]
fn a_hook_or_heartbeat_that_fails_changes_no_exit_code() {
    let night = night();
    let dead = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let env = [("NEARPRINT_ON_FAILURE", "exit 3"), ("NEARPRINT_HEARTBEAT_URL", &format!("http://{dead}"))];
    assert_eq!(run(&night, &env).status.code(), Some(66));
    arrives(&night);
    let done = run(&night, &env);
    assert_eq!((done.status.code(), printed(&done)), (Some(0), String::new()));
    assert!(log(&night).contains("NEARPRINT_ON_FAILURE failed") && log(&night).contains("no heartbeat"));
}

#[test]
fn the_heartbeat_says_success_and_failure() {
    let night = night();
    if Command::new("curl").arg("--version").output().is_err() {
        return not_checked("there is no curl");
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/beat", listener.local_addr().unwrap());
    let service = std::thread::spawn(move || {
        [(); 2].map(|()| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 1024];
            let n = stream.read(&mut request).unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
            String::from_utf8_lossy(&request[..n]).split(' ').nth(1).unwrap().to_owned()
        })
    });
    let env = [("NEARPRINT_HEARTBEAT_URL", url.as_str())];
    assert_eq!(run(&night, &env).status.code(), Some(66));
    arrives(&night);
    assert_eq!(run(&night, &env).status.code(), Some(0));
    assert_eq!(service.join().unwrap(), ["/beat/fail", "/beat"]);
}

#[test]
fn a_late_crawl_is_waited_for() {
    let night = night();
    let env = [("NEARPRINT_WAIT_MINUTES", "2"), ("NEARPRINT_WAIT_STEP_SECONDS", "0.2")];
    let waiting = script(&night, &env).spawn().unwrap();
    until(|| night.path().join(format!("logs/{DT}.log")).exists() && log(&night).contains("waiting"));
    arrives(&night);
    assert_eq!(waiting.wait_with_output().unwrap().status.code(), Some(0));
    let missing = night.path().join("job.toml");
    fs::rename(&missing, night.path().join("gone.toml")).unwrap();
    assert_eq!(run(&night, &[("NEARPRINT_WAIT_MINUTES", "2")]).status.code(), Some(66), "not waited for");
}

#[test]
fn a_held_lock_is_75_and_says_so_in_a_summary_too() {
    let night = night();
    fs::create_dir(night.path().join("logs")).unwrap();
    let lock = fs::File::create(night.path().join("logs/lock")).unwrap();
    lock.lock().unwrap();
    let done = run(&night, &[("NEARPRINT_ON_FAILURE", "cat >told.json")]);
    assert_eq!(done.status.code(), Some(75));
    assert!(printed(&done).contains("another run holds logs/lock"));
    let told = summary(&night.path().join("told.json"));
    assert_eq!((&told["dt"], &told["exit_code"]), (&DT.into(), &75.into()));
    drop(lock);
    arrives(&night);
    assert_eq!(run(&night, &[]).status.code(), Some(0), "what the hook was told lies in no one's way");
}

#[test]
fn a_held_lock_is_waited_for_as_a_crawl_is_and_a_signal_ends_that_too() {
    let night = night();
    arrives(&night);
    fs::create_dir(night.path().join("logs")).unwrap();
    let lock = fs::File::create(night.path().join("logs/lock")).unwrap();
    lock.lock().unwrap();
    let env = [("NEARPRINT_WAIT_MINUTES", "2")];
    let file = night.path().join(format!("logs/{DT}.log"));
    let waits = || file.exists() && log(&night).contains("logs/lock: waiting");
    let mut stopped = script(&night, &env).stdout(std::process::Stdio::null()).spawn().unwrap();
    until(waits);
    sleep(Duration::from_millis(300));
    signal(stopped.id(), Signal::SIGTERM).unwrap();
    assert_eq!(stopped.wait().unwrap().code(), Some(143));
    fs::remove_file(&file).unwrap();
    let waiting = script(&night, &env).spawn().unwrap();
    until(waits);
    drop(lock);
    assert_eq!(waiting.wait_with_output().unwrap().status.code(), Some(0));
}

#[test]
fn a_wrong_zone_night_or_time_is_64_and_logs_that_cannot_be_are_74_and_the_hook_is_told() {
    let night = night();
    arrives(&night);
    let (logs, told) = (night.path().join("logs"), night.path().join("told.json"));
    let hook = ("NEARPRINT_ON_FAILURE", "cat >told.json");
    let refused = |wrong: (&str, &str), code: i32, said: &str| {
        let _ = fs::remove_file(&told);
        let done = run(&night, &[hook, wrong]);
        assert_eq!((done.status.code(), &summary(&told)["exit_code"]), (Some(code), &code.into()), "{wrong:?}");
        assert!(printed(&done).contains(said), "{}", printed(&done));
    };
    for minutes in ["1.5", "1h", "-1"] {
        refused(("NEARPRINT_WAIT_MINUTES", minutes), 64, &format!("NEARPRINT_WAIT_MINUTES={minutes}"));
    }
    fs::remove_dir_all(&logs).unwrap();
    fs::create_dir_all(logs.join(format!("{DT}.log"))).unwrap();
    refused(("NEARPRINT_RUN_ARGS", ""), 74, "logs cannot be made or written");
    fs::remove_dir_all(&logs).unwrap();
    fs::write(&logs, "a file in the place of the folder").unwrap();
    refused(("NEARPRINT_RUN_ARGS", ""), 74, "logs cannot be made or written");
    fs::remove_file(&logs).unwrap();

    // Zone and night count where no date is given.
    let today = |wrong: (&str, &str), said: &str| {
        let done = without_date(&night, &[hook, wrong]).output().unwrap();
        assert_eq!(done.status.code(), Some(64), "{wrong:?}");
        assert!(printed(&done).contains(said), "{}", printed(&done));
    };
    today(("NEARPRINT_ZONE", "Asia/Shanghay"), "NEARPRINT_ZONE=Asia/Shanghay");
    today(("NEARPRINT_NIGHT", "yesterdya"), "NEARPRINT_NIGHT=yesterdya");
}

#[test]
fn a_hook_is_told_of_a_killed_run_and_not_of_the_one_before_it() {
    let night = night();
    assert_eq!(run(&night, &[]).status.code(), Some(66));
    let old = night.path().join(format!("logs/{DT}.json"));
    fs::File::open(&old).unwrap().set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
    fs::remove_file(night.path().join("bin/nearprint")).unwrap();
    fs::write(night.path().join("bin/nearprint"), "#!/bin/sh\nkill -9 $$\n").unwrap();
    fs::set_permissions(night.path().join("bin/nearprint"), fs::Permissions::from_mode(0o755)).unwrap();
    let done = run(&night, &[("NEARPRINT_ON_FAILURE", "cat >told.json")]);
    assert_eq!(done.status.code(), Some(137));
    assert_eq!(summary(&night.path().join("told.json"))["exit_code"], 137);
    assert_eq!(summary(&old)["exit_code"], 66);
}

#[test]
fn a_full_disk_of_logs_changes_no_exit_code_and_the_hook_is_told() {
    let night = night();
    fs::create_dir(night.path().join("logs")).unwrap();
    std::os::unix::fs::symlink("/dev/full", night.path().join(format!("logs/{DT}.log"))).unwrap();
    let done = run(&night, &[("NEARPRINT_ON_FAILURE", "cat >told.json")]);
    assert_eq!(done.status.code(), Some(66));
    assert_eq!(summary(&night.path().join("told.json"))["exit_code"], 66);
}

#[test]
fn a_signal_reaches_nearprint_and_ends_the_waiting() {
    let night = night();
    arrives(&night);
    let held = fs::File::create(night.path().join("lock")).unwrap();
    held.lock().unwrap();
    let job = fs::read_to_string(night.path().join("job.toml")).unwrap();
    fs::write(night.path().join("job.toml"), job + "lock = \"lock\"\nlock_wait = 600\n").unwrap();
    let mut running = script(&night, &[]).stdout(std::process::Stdio::null()).spawn().unwrap();
    until(|| night.path().join(format!("logs/{DT}.log")).exists());
    sleep(Duration::from_secs(1));
    signal(running.id(), Signal::SIGTERM).unwrap();
    assert_eq!(running.wait().unwrap().code(), Some(143));
    assert!(log(&night).contains("stopped by SIGTERM"), "{}", log(&night));
    drop(held);

    fs::remove_dir_all(night.path().join("documents")).unwrap();
    fs::create_dir(night.path().join("documents")).unwrap();
    let env = [("NEARPRINT_WAIT_MINUTES", "60")];
    let mut waiting = script(&night, &env).stdout(std::process::Stdio::null()).spawn().unwrap();
    until(|| log(&night).contains("waiting"));
    sleep(Duration::from_millis(300));
    signal(waiting.id(), Signal::SIGTERM).unwrap();
    assert_ne!(waiting.wait().unwrap().code(), Some(0));
}

/// Puts a program before all others of its name: lines of sh, in which the real one is $real.
fn put_before(night: &Night, name: &str, lines: &str) {
    let path = night.path().join("bin").join(name);
    fs::write(&path, format!("#!/bin/sh\nreal=/usr/bin/{name}\n{lines}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_signal_that_comes_just_before_the_run_ends_it() {
    let night = night();
    arrives(&night);
    put_before(&night, "touch", "[ -e \"$1\" ] && : >here && sleep 2; exec $real \"$@\"");
    let mut running = script(&night, &[]).stdout(std::process::Stdio::null()).spawn().unwrap();
    until(|| night.path().join("here").exists());
    signal(running.id(), Signal::SIGTERM).unwrap();
    assert_eq!(running.wait().unwrap().code(), Some(143));
    assert!(!night.path().join("results/decisions").exists());
}

/// On the day after a zone put its clock forward, yesterday at half past midnight was an hour earlier, and so the day before.
#[test]
fn the_day_is_asked_for_at_an_hour_at_which_no_zone_changes_its_clock() {
    let night = night();
    put_before(&night, "date", "[ \"$1\" != -d ] || echo \"$2\" >>asked; exec $real \"$@\"");
    for asked in ["today", "yesterday"] {
        without_date(&night, &[("NEARPRINT_NIGHT", asked)]).output().unwrap();
    }
    assert_eq!(fs::read_to_string(night.path().join("asked")).unwrap(), "today 12:00\nyesterday 12:00\n");
}

fn until(done: impl Fn() -> bool) {
    for _ in 0..600 {
        if done() {
            return;
        }
        sleep(Duration::from_millis(100));
    }
    panic!("no end");
}

#[test]
fn more_arguments_of_the_run_and_another_day_come_from_the_environment() {
    let night = night();
    arrives(&night);
    let more = [("NEARPRINT_RUN_ARGS", "--metrics-file run.prom  --report page-{dt}.html")];
    let done = run(&night, &more);
    assert_eq!((done.status.code(), printed(&done)), (Some(0), String::new()));
    assert!(night.path().join("run.prom").exists() && night.path().join(format!("page-{DT}.html")).exists());
    let day = |zone: &str, day: &str| {
        let mut command = Command::new("date");
        let said = command.args(["-d", day, "+%F"]).env("TZ", zone).output().unwrap().stdout;
        String::from_utf8(said).unwrap().trim().to_owned()
    };
    for (zone, asked) in [("UTC", "yesterday"), ("Pacific/Kiritimati", "today")] {
        let mut script = without_date(&night, &[("NEARPRINT_NIGHT", asked), ("NEARPRINT_ZONE", zone)]);
        let before = day(zone, asked);
        assert_eq!(script.output().unwrap().status.code(), Some(66), "no crawl");
        let logs = [before, day(zone, asked)].map(|dt| night.path().join(format!("logs/{dt}.log")));
        assert!(logs.iter().any(|log| log.exists()), "{logs:?}");
    }
}
