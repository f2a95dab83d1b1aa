//! Runs the real command: under a time limit, with what it said, how it ended, and the most memory and open files that it held.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub use nix::sys::signal::Signal;
use nix::unistd::Pid;
use serde_json::Value;

use crate::{Result, require};

/// The output and the cost of the command.
#[derive(Debug, Clone)]
pub struct Ran {
    /// Exit code; 128 and the signal's number where a signal ended it; [`HUNG`] where it had to be killed.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    pub seconds: f64,
    /// Most bytes of memory and most open files at once, as sampled from /proc.
    pub peak_rss: u64,
    pub peak_fds: usize,
}

/// The code of a run that did not end in time.
pub const HUNG: i32 = -1;

const ERROR: &str = "nearprint: error: ";

impl Ran {
    /// The last line of standard output as JSON, else null.
    pub fn summary(&self) -> Value {
        self.stdout.lines().last().and_then(|line| serde_json::from_str(line).ok()).unwrap_or(Value::Null)
    }

    /// The same, for tests: panics where there is none, and where the published schema does not describe it.
    pub fn json(&self) -> Value {
        let summary = self.summary();
        assert!(!summary.is_null(), "the last line is no JSON: {}\n{}", self.stdout, self.stderr);
        #[cfg(feature = "schema")]
        {
            let said = crate::schema::summary(&summary).err();
            assert!(said.is_none(), "{}", said.unwrap_or_default());
        }
        summary
    }

    /// For tests: panics where the code is not 0.
    pub fn expect_success(self) -> Self {
        assert_eq!(self.code, 0, "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// The line that reports the failure, else nothing.
    pub fn error(&self) -> &str {
        self.stderr.lines().find(|l| l.starts_with(ERROR)).unwrap_or_default()
    }

    /// Exit code and error in short, for tables.
    pub fn said(&self) -> String {
        match self.error().strip_prefix(ERROR) {
            Some(error) => format!("exit {}: {error}", self.code),
            None if self.code == HUNG => format!("hung for {:.0} s", self.seconds),
            None if self.code == 0 => "exit 0".to_owned(),
            None => format!("exit {}: {}", self.code, self.stderr.lines().last().unwrap_or_default()),
        }
    }

    /// Why the run is a defect whatever it was given: a panic, an abort, a fault, a hang.
    pub fn defect(&self) -> Option<String> {
        if self.stderr.contains("panicked at") {
            return Some(format!("a panic reached the user: {}", self.stderr));
        }
        let faulted = self.code == HUNG || matches!(self.code, 70 | 101) || self.code > 130 && self.code != 143;
        faulted.then(|| self.said())
    }

    /// I3: the exit code is one of these; a failure is one line, and says each of `needles`.
    pub fn ends_with(&self, codes: &[i32], needles: &[&str]) -> Result<()> {
        require!(codes.contains(&self.code), "expected exit {codes:?}, got {}", self.said());
        let error = self.error();
        if self.code == 0 || self.code > 128 && error.is_empty() && !self.stderr.contains("stopped by") {
            return Ok(());
        }
        let lines = self.stderr.lines().filter(|l| l.starts_with(ERROR)).count();
        require!(lines == 1, "expected one line of error, got {lines}: {}", self.stderr);
        require!(!self.stderr.contains("panicked at"), "a panic reached the user: {}", self.stderr);
        for needle in needles {
            require!(
                error.to_lowercase().contains(&needle.to_lowercase()),
                "the error does not say {needle:?}: {error}"
            );
        }
        Ok(())
    }
}

/// One execution of the command.
#[derive(Debug, Clone)]
pub struct Run {
    pub program: PathBuf,
    /// Put before the command: `faketime` and its arguments, …
    pub wrapper: Vec<String>,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    pub dir: PathBuf,
    pub timeout: Duration,
}

impl Run {
    pub fn new(program: &Path, dir: &Path, args: &[&str]) -> Self {
        Self {
            program: program.to_owned(),
            wrapper: Vec::new(),
            args: args.iter().map(|a| (*a).to_owned()).collect(),
            env: Vec::new(),
            dir: dir.to_owned(),
            timeout: Duration::from_secs(180),
        }
    }

    #[must_use]
    pub fn args(mut self, more: &[&str]) -> Self {
        self.args.extend(more.iter().map(|a| (*a).to_owned()));
        self
    }

    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    #[must_use]
    pub fn wrapped(mut self, wrapper: &[&str]) -> Self {
        self.wrapper = wrapper.iter().map(|a| (*a).to_owned()).collect();
        self
    }

    #[must_use]
    pub fn timeout(mut self, seconds: u64) -> Self {
        self.timeout = Duration::from_secs(seconds);
        self
    }

    /// The words of the command line.
    pub fn words(&self) -> Vec<String> {
        let program = self.program.to_string_lossy().into_owned();
        self.wrapper.iter().cloned().chain([program]).chain(self.args.iter().cloned()).collect()
    }

    /// The command, its streams in files: a full pipe must not stop it.
    pub fn command(&self) -> Result<(Command, Streams)> {
        let streams = Streams { out: tempfile::NamedTempFile::new()?, err: tempfile::NamedTempFile::new()? };
        let words = self.words();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(&self.dir).envs(self.env.iter().map(|(n, v)| (n, v)));
        command.stdin(Stdio::null());
        streams.attach(&mut command)?;
        Ok((command, streams))
    }

    pub fn start(&self) -> Result<Running> {
        let (mut command, streams) = self.command()?;
        let started = Instant::now();
        let child = command.spawn().map_err(|e| format!("{}: {e}", self.program.display()))?;
        Ok(Running { child, streams, started, timeout: self.timeout, peak_rss: 0, peak_fds: 0 })
    }

    pub fn run(&self) -> Result<Ran> {
        self.start()?.wait()
    }
}

/// Where a command's output goes.
#[derive(Debug)]
pub struct Streams {
    out: tempfile::NamedTempFile,
    err: tempfile::NamedTempFile,
}

impl Streams {
    pub fn attach(&self, command: &mut Command) -> Result<()> {
        command.stdout(self.out.reopen()?).stderr(self.err.reopen()?);
        Ok(())
    }

    pub fn read(&self) -> Result<(String, String)> {
        Ok((std::fs::read_to_string(self.out.path())?, std::fs::read_to_string(self.err.path())?))
    }
}

/// A command at work.
#[derive(Debug)]
pub struct Running {
    child: Child,
    streams: Streams,
    started: Instant,
    timeout: Duration,
    peak_rss: u64,
    peak_fds: usize,
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, which: Signal) -> Result<()> {
        signal(self.pid(), which)
    }

    /// Returns the standard output so far.
    pub fn stdout(&self) -> Result<String> {
        Ok(self.streams.read()?.0)
    }

    /// Returns the standard error so far.
    pub fn stderr(&self) -> Result<String> {
        Ok(self.streams.read()?.1)
    }

    pub fn ended(&mut self) -> Result<bool> {
        self.sample();
        Ok(self.child.try_wait()?.is_some())
    }

    pub fn wait(mut self) -> Result<Ran> {
        use std::os::unix::process::ExitStatusExt;
        let mut code = None;
        while code.is_none() {
            self.sample();
            if let Some(status) = self.child.try_wait()? {
                code = Some(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default()));
            } else if self.started.elapsed() > self.timeout {
                self.child.kill()?;
                self.child.wait()?;
                code = Some(HUNG);
            } else {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        let seconds = self.started.elapsed().as_secs_f64();
        let (stdout, stderr) = self.streams.read()?;
        let (peak_rss, peak_fds) = (self.peak_rss, self.peak_fds);
        Ok(Ran { code: code.unwrap_or(HUNG), stdout, stderr, seconds, peak_rss, peak_fds })
    }

    fn sample(&mut self) {
        let proc = PathBuf::from(format!("/proc/{}", self.child.id()));
        // Just before a child becomes the program, it still has this process's memory.
        let is_own = |exe: PathBuf| std::env::current_exe().is_ok_and(|own| own == exe);
        if std::fs::read_link(proc.join("exe")).map_or(true, is_own) {
            return;
        }
        let status = std::fs::read_to_string(proc.join("status")).unwrap_or_default();
        let kib: Option<u64> =
            status.lines().find_map(|l| l.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.trim().parse().ok());
        self.peak_rss = self.peak_rss.max(kib.unwrap_or(0) << 10);
        self.peak_fds = self.peak_fds.max(std::fs::read_dir(proc.join("fd")).map_or(0, Iterator::count));
    }
}

/// Sends a signal to a process.
pub fn signal(pid: u32, signal: Signal) -> Result<()> {
    Ok(nix::sys::signal::kill(Pid::from_raw(i32::try_from(pid)?), signal)?)
}
