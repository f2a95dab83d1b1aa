//! Stops a command at its nth system call on its own files, over all its threads: to kill it there, to make the call fail, or to do
//! something else first. `strace -e inject=…:when=N` counts each thread's calls for itself and so cannot reach every call.

use std::collections::HashMap;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::runner::{HUNG, Ran, Run};
use crate::{Result, require};

/// A system call on a file below the command's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub name: &'static str,
    pub kind: Kind,
    /// Below the command's folder; of two paths the second.
    pub path: String,
    /// The first of two paths.
    pub from: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Write,
    Sync,
    /// Makes, renames or removes a name.
    Name,
    Open,
    Read,
}

/// The treatment of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    Go,
    /// The whole process is killed before the call is done.
    Kill,
    /// The call is not done and fails.
    Fail(Errno),
}

/// The output of a traced command, and the calls that were watched, in order.
#[derive(Debug)]
pub struct Traced {
    pub ran: Ran,
    pub calls: Vec<Call>,
}

/// Where the arguments of a call say which file it is about.
#[derive(Debug, Clone, Copy)]
enum Names {
    Fd,
    Path(usize),
    /// A folder's descriptor and a path below it.
    At(usize),
}

const CALLS: [(i64, &str, Kind, Names); 24] = [
    (libc::SYS_write, "write", Kind::Write, Names::Fd),
    (libc::SYS_pwrite64, "pwrite64", Kind::Write, Names::Fd),
    (libc::SYS_writev, "writev", Kind::Write, Names::Fd),
    (libc::SYS_ftruncate, "ftruncate", Kind::Write, Names::Fd),
    (libc::SYS_fallocate, "fallocate", Kind::Write, Names::Fd),
    (libc::SYS_copy_file_range, "copy_file_range", Kind::Write, Names::Fd),
    (libc::SYS_sendfile, "sendfile", Kind::Write, Names::Fd),
    (libc::SYS_fsync, "fsync", Kind::Sync, Names::Fd),
    (libc::SYS_fdatasync, "fdatasync", Kind::Sync, Names::Fd),
    (libc::SYS_rename, "rename", Kind::Name, Names::Path(1)),
    (libc::SYS_renameat, "renameat", Kind::Name, Names::At(2)),
    (libc::SYS_renameat2, "renameat2", Kind::Name, Names::At(2)),
    (libc::SYS_link, "link", Kind::Name, Names::Path(1)),
    (libc::SYS_linkat, "linkat", Kind::Name, Names::At(2)),
    (libc::SYS_unlink, "unlink", Kind::Name, Names::Path(0)),
    (libc::SYS_unlinkat, "unlinkat", Kind::Name, Names::At(0)),
    (libc::SYS_rmdir, "rmdir", Kind::Name, Names::Path(0)),
    (libc::SYS_mkdir, "mkdir", Kind::Name, Names::Path(0)),
    (libc::SYS_mkdirat, "mkdirat", Kind::Name, Names::At(0)),
    (libc::SYS_open, "open", Kind::Open, Names::Path(0)),
    (libc::SYS_openat, "openat", Kind::Open, Names::At(0)),
    (libc::SYS_read, "read", Kind::Read, Names::Fd),
    (libc::SYS_pread64, "pread64", Kind::Read, Names::Fd),
    (libc::SYS_readv, "readv", Kind::Read, Names::Fd),
];

/// Runs a command; `judge` is asked about each call of the watched kinds, counted from 1, before it is done.
pub fn trace(run: &Run, kinds: &[Kind], mut judge: impl FnMut(usize, &Call) -> Act) -> Result<Traced> {
    let (plain, streams) = run.command()?;
    // The shell stops itself before it becomes the command, so that no call is missed.
    let mut command = Command::new("sh");
    command.args(["-c", "kill -STOP $$; exec \"$@\"", "sh"]).args(run.words());
    command.current_dir(&run.dir).envs(plain.get_envs().filter_map(|(n, v)| Some((n, v?))));
    command.stdin(std::process::Stdio::null());
    streams.attach(&mut command)?;
    let started = Instant::now();
    let child = command.spawn()?;
    let pid = Pid::from_raw(i32::try_from(child.id())?);
    let stopped = waitpid(pid, Some(WaitPidFlag::WUNTRACED))?;
    require!(matches!(stopped, WaitStatus::Stopped(..)), "the command did not wait for its tracer: {stopped:?}");
    let options = Options::PTRACE_O_TRACESYSGOOD
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_EXITKILL;
    ptrace::seize(pid, options)?;
    kill(pid, Signal::SIGCONT)?;
    let done = Arc::new(AtomicBool::new(false));
    let watchdog = std::thread::spawn({
        let (done, timeout) = (Arc::clone(&done), run.timeout);
        move || {
            while !done.load(Ordering::Relaxed) {
                if started.elapsed() > timeout {
                    let _ = kill(pid, Signal::SIGKILL);
                    return true;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            false
        }
    });
    let mut tracer = Tracer { pid, root: std::fs::canonicalize(&run.dir)?, failing: HashMap::new(), calls: Vec::new() };
    let code = tracer.follow(kinds, &mut judge);
    done.store(true, Ordering::Relaxed);
    let hung = watchdog.join().map_err(|_| "the watchdog panicked")?;
    let (stdout, stderr) = streams.read()?;
    let code = if hung { HUNG } else { code? };
    let seconds = started.elapsed().as_secs_f64();
    let ran = Ran { code, stdout, stderr, seconds, peak_rss: 0, peak_fds: 0 };
    Ok(Traced { ran, calls: tracer.calls })
}

struct Tracer {
    pid: Pid,
    root: PathBuf,
    /// Threads whose call is to fail when it returns.
    failing: HashMap<Pid, Errno>,
    calls: Vec<Call>,
}

impl Tracer {
    /// To the end of the process: its exit code.
    fn follow(&mut self, kinds: &[Kind], judge: &mut impl FnMut(usize, &Call) -> Act) -> Result<i32> {
        loop {
            // Of this thread's tracees only: other threads have their own.
            let flags = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
            match waitpid(Pid::from_raw(-1), Some(flags))? {
                WaitStatus::Exited(pid, code) if pid == self.pid => return Ok(code),
                WaitStatus::Signaled(pid, signal, _) if pid == self.pid => return Ok(128 + signal as i32),
                WaitStatus::PtraceSyscall(thread) => {
                    self.at_call(thread, kinds, judge)?;
                    gone(ptrace::syscall(thread, None))?;
                }
                WaitStatus::PtraceEvent(thread, ..) => gone(ptrace::syscall(thread, None))?,
                WaitStatus::Stopped(thread, signal) => gone(ptrace::syscall(thread, signal))?,
                _ => {}
            }
        }
    }

    fn at_call(&mut self, thread: Pid, kinds: &[Kind], judge: &mut impl FnMut(usize, &Call) -> Act) -> Result<()> {
        let Some(info) = here(ptrace::syscall_info(thread))? else { return Ok(()) };
        let Some(mut registers) = here(ptrace::getregs(thread))? else { return Ok(()) };
        if info.op == libc::PTRACE_SYSCALL_INFO_EXIT {
            if let Some(errno) = self.failing.remove(&thread) {
                registers.rax = (-i64::from(errno as i32)).cast_unsigned();
                gone(ptrace::setregs(thread, registers))?;
            }
            return Ok(());
        }
        let arguments = [registers.rdi, registers.rsi, registers.rdx, registers.r10];
        let Some(call) = self.call(thread, registers.orig_rax.cast_signed(), arguments, kinds) else { return Ok(()) };
        self.calls.push(call.clone());
        match judge(self.calls.len(), &call) {
            Act::Go => Ok(()),
            Act::Kill => gone(kill(self.pid, Signal::SIGKILL)),
            Act::Fail(errno) => {
                self.failing.insert(thread, errno);
                registers.orig_rax = u64::MAX;
                gone(ptrace::setregs(thread, registers))
            }
        }
    }

    /// The call, where it is of these kinds and on a file below the command's folder.
    fn call(&self, thread: Pid, number: i64, arguments: [u64; 4], kinds: &[Kind]) -> Option<Call> {
        let (_, name, kind, names) = CALLS.iter().find(|(n, _, kind, _)| *n == number && kinds.contains(kind))?;
        let below = |names: &Names| -> Option<String> {
            let path = match names {
                Names::Fd => descriptor(thread, arguments[0])?,
                Names::Path(at) => self.root.join(string(thread, arguments[*at])?),
                Names::At(at) => {
                    let folder = descriptor(thread, arguments[*at]).unwrap_or_else(|| self.root.clone());
                    folder.join(string(thread, arguments[*at + 1])?)
                }
            };
            Some(path.strip_prefix(&self.root).ok()?.to_string_lossy().into_owned())
        };
        let from = match names {
            Names::Path(1) => below(&Names::Path(0)),
            Names::At(2) => below(&Names::At(0)),
            _ => None,
        };
        Some(Call { name, kind: *kind, path: below(names)?, from })
    }
}

/// A thread may be gone by now: its process was killed.
fn gone(result: nix::Result<()>) -> Result<()> {
    here(result).map(drop)
}

fn here<T>(result: nix::Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Errno::ESRCH) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn descriptor(thread: Pid, fd: u64) -> Option<PathBuf> {
    let fd = i32::try_from(fd.cast_signed()).ok().filter(|&fd| fd >= 0)?;
    std::fs::read_link(format!("/proc/{thread}/fd/{fd}")).ok().filter(|path| path.is_absolute())
}

fn string(thread: Pid, at: u64) -> Option<PathBuf> {
    let memory = std::fs::File::open(format!("/proc/{thread}/mem")).ok()?;
    let mut bytes = [0; 4096];
    let n = memory.read_at(&mut bytes, at).ok()?;
    let end = bytes[..n].iter().position(|&b| b == 0)?;
    Some(Path::new(std::str::from_utf8(&bytes[..end]).ok()?).to_owned())
}
