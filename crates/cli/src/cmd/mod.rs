//! The commands, each in its own file.

mod audit;
mod check;
mod config;
mod diff;
mod dry_run;
mod evaluate;
mod explain;
mod explain_document;
mod filter;
mod fingerprint;
mod idf;
mod join;
mod manual;
mod migrate;
mod night_request;
mod night_summary;
mod night_text;
mod notices;
mod pair_text;
mod plan;
mod query;
mod report;
mod review;
mod run;
mod run_stale;
mod serve;
mod stale_files;
mod store;
#[cfg(test)]
mod summaries;
mod tune;

use std::fmt::{Display, Write};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use nearprint_fault::{Fault, Words, counted, grouped, in_bytes};
use nearprint_night::{NightSource, TextSource};
use nearprint_pipeline::{FingerprintCounts, Resources};
use nearprint_profile::ProfileError;
use nearprint_storage::{IfExists, Progress, Requests, Storage, use_pool};
use nearprint_tasks::Engine;
use nearprint_tokenize::TokenizeError;
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinError, JoinHandle};

use crate::args::{Cli, Command, Global, RunArgs};
use crate::asked_nights::Settled;
use crate::beside::Beside;
use crate::embedding::{Embedding, Handle};
use crate::exit_code::{Failure, Spent};
use crate::flags;
use crate::job_config::JobConfig;
use crate::job_folder::JobFolder;
use crate::summary::{Report, peak_rss_bytes};

/// The outcome of a command.
pub type Outcome = Result<Report, Failure>;

/// Runs a night for a program that goes on afterwards.
pub fn night(
    global: &Global,
    args: &RunArgs,
    handle: &Handle,
    engine: Option<&Arc<dyn Engine>>,
    beside: &Beside,
) -> Outcome {
    run::run(Embedding::Program(handle.clone()), global, args, engine, beside)
}

/// Runs a command. `nights` are the words that stood in place of its dates. An engine, if there is one, runs the tasks of
/// `run` and `store migrate`. `beside` has the files that each night leaves beside its results.
pub fn dispatch(cli: Cli, nights: &Settled, engine: Option<&Arc<dyn Engine>>, beside: &Beside) -> Outcome {
    let global = cli.global;
    for (word, dt) in nights {
        tracing::info!("{word} is {dt}");
    }
    match cli.command {
        Command::Run(args) => run::run(Embedding::Process, &global, &args, engine, beside),
        Command::Fingerprint(args) => fingerprint::fingerprint(&global, &args),
        Command::Idf(command) => idf::idf(&global, &command),
        Command::Join(args) => join::join(&global, &args),
        Command::Plan(args) => plan::plan(&global, &args),
        Command::Evaluate(args) => evaluate::evaluate(&global, &args),
        Command::Explain(args) => explain::explain(&global, &args),
        Command::Report(args) => report::report(&global, &args),
        Command::Audit(args) => audit::audit(&global, &args),
        Command::Review(args) => review::review(&global, &args),
        Command::Diff(args) => diff::diff(&global, &args),
        Command::Filter(args) => filter::filter(&global, &args),
        Command::Tune(args) => tune::tune(&global, &args),
        Command::Check(args) => check::check(&global, &args),
        Command::Query(args) => query::query(&global, &args),
        Command::Serve(args) => serve::serve(&global, &args),
        Command::Store(command) => store::store(&global, &command, engine),
        Command::Config(command) => config::config(&global, &command),
        Command::Completions(args) => Ok(manual::completions(&args)),
        Command::Man(args) => manual::man(&args),
    }
}

/// The resources of a command.
struct Session {
    embedding: Embedding,
    storage: Storage,
    /// The folder of the job file.
    folder: JobFolder,
    resources: Resources,
    progress: Progress,
    started: Instant,
    /// The user wants no progress.
    quiet: bool,
    /// The paths of the job's idf table and user dictionary, for messages.
    idf: Option<PathBuf>,
    user_dictionary: Option<PathBuf>,
}

/// The idle time after which a thread for blocking work ends. The system's allocator keeps freed memory for each live
/// thread, so work that moved from thread to thread would leave a page of texts behind in each of them.
const IDLE_THREAD: Duration = Duration::from_millis(10);

/// The stack of a thread that works, which is as large as that of a main thread.
const STACK_BYTES: usize = 8 << 20;

impl Session {
    fn new(job: &JobConfig, global: &Global) -> Self {
        Self::within(Embedding::Process, job, global)
    }

    fn within(embedding: Embedding, job: &JobConfig, global: &Global) -> Self {
        Self {
            embedding,
            storage: job.storage(),
            folder: job.folder().clone(),
            resources: job.resources(global),
            progress: Progress::default(),
            started: Instant::now(),
            quiet: global.quiet,
            idf: job.idf.clone(),
            user_dictionary: job.user_dictionary.clone(),
        }
    }

    /// Does `work` and shows its progress until the work ends or a signal arrives, or whatever else stops the command. If
    /// the work fails or is stopped, its open uploads are aborted.
    ///
    /// The work may compute for a long time without waiting for anything. So other threads do the work, and this thread
    /// waits for signals. It has its own runtime, because the working runtime may have no free thread.
    fn block_on<T: Send + 'static, E, W>(
        &self,
        work: impl FnOnce(Storage, Resources, Progress) -> W,
    ) -> Result<T, Failure>
    where
        W: Future<Output = Result<T, E>> + Send + 'static,
        E: Into<Fault> + Send + 'static,
    {
        self.block_on_or(self.embedding.stopped(), work)
    }

    /// Does `work` as [`block_on`](Self::block_on) does, but `stopped` alone stops it.
    fn block_on_or<T: Send + 'static, E, W>(
        &self,
        stopped: impl Future<Output = Failure>,
        work: impl FnOnce(Storage, Resources, Progress) -> W,
    ) -> Result<T, Failure>
    where
        W: Future<Output = Result<T, E>> + Send + 'static,
        E: Into<Fault> + Send + 'static,
    {
        let (waiting, working) = self.runtimes()?;
        let work = work(self.storage.clone(), self.resources.clone(), self.progress.clone());
        let outcome = waiting.block_on(async {
            let mut stopped = pin!(stopped);
            // Signals are listened to before the work begins: a signal that came earlier would leave what the work made.
            if let Poll::Ready(failure) = futures::poll!(&mut stopped) {
                return Err(failure);
            }
            let mut work = working.spawn(work);
            let done = tokio::select! {
                done = &mut work => self.ended(done),
                () = self.show_progress() => Err(Failure::panicked(None)),
                failure = &mut stopped => {
                    end(work).await;
                    Err(failure)
                }
            };
            if done.is_err() {
                self.storage.abort_uploads().await;
            }
            done
        });
        shut_down(working);
        // A program may have other nights under way, whose folders these are too.
        if let Embedding::Process = self.embedding {
            nearprint_storage::remove_temp_folders();
        }
        outcome.map_err(|failure| Failure { spent: Some(Box::new(self.spent())), ..failure })
    }

    /// Shows the progress, unless the user wants none, until the future is dropped.
    async fn show_progress(&self) {
        if self.quiet {
            return std::future::pending().await;
        }
        self.embedding.show(self.progress.clone()).await;
    }

    fn ended<T, E: Into<Fault>>(&self, done: Result<Result<T, E>, JoinError>) -> Result<T, Failure> {
        let panicked = |error: JoinError| match self.embedding {
            Embedding::Process => Failure::panicked(error.try_into_panic().ok().as_deref()),
            Embedding::Program(_) => Failure::bug(&error.to_string()),
        };
        done.map_err(panicked)?.map_err(|e| self.failure(e.into()))
    }

    /// Makes the runtime that waits, on this thread alone, and the runtime that works.
    fn runtimes(&self) -> Result<(Runtime, Runtime), Failure> {
        let threads = self.resources.n_threads();
        let failed = |e: &dyn Display| Failure::new(74, format!("cannot start {threads} threads: {e}"));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let waiting = Builder::new_current_thread().enable_all().build();
        let mut working = Builder::new_multi_thread();
        match self.embedding {
            Embedding::Process => pool.build_global().map_err(|e| failed(&e))?,
            Embedding::Program(_) => {
                let pool = Arc::new(pool.build().map_err(|e| failed(&e))?);
                working.on_thread_start(move || use_pool(Arc::clone(&pool)));
            }
        }
        working.worker_threads(threads).thread_keep_alive(IDLE_THREAD).thread_stack_size(STACK_BYTES);
        let working = working.enable_all().build();
        Ok((waiting.map_err(|e| failed(&e))?, working.map_err(|e| failed(&e))?))
    }

    /// Returns what the command spent until now.
    fn spent(&self) -> Spent {
        self.meter().spent()
    }

    fn meter(&self) -> Meter {
        Meter { storage: self.storage.clone(), progress: self.progress.clone(), started: self.started }
    }

    /// Returns the requests to object stores, or `None` if there were none.
    fn requests(&self) -> Option<Requests> {
        requests(&self.storage)
    }

    /// Makes a failure from an error. If the error knows only a line, the name of the file is added to the message.
    fn failure(&self, error: Fault) -> Failure {
        let file = match error.cause() {
            Some(ProfileError::Tokenize(TokenizeError::Idf { .. })) => &self.idf,
            Some(ProfileError::Tokenize(TokenizeError::UserDictionary { .. })) => &self.user_dictionary,
            _ => &None,
        };
        let failure = Failure::from(error).seen_from(&self.folder);
        match file {
            Some(file) => failure.with(|fault| fault.within(format!("{}: ", file.display()))),
            None => failure,
        }
    }

    fn report(&self, command: &str, status: &str, value: &impl serde::Serialize, text: String) -> Report {
        Report::new(command, status, value, self.spent(), text)
    }
}

/// Tells what a command spends.
#[derive(Clone)]
struct Meter {
    storage: Storage,
    progress: Progress,
    started: Instant,
}

impl Meter {
    /// Returns what the command spent until now.
    fn spent(&self) -> Spent {
        let (stages, requests) = (self.progress.durations(), requests(&self.storage));
        Spent { elapsed: self.started.elapsed(), peak_rss_bytes: peak_rss_bytes(), requests, stages }
    }
}

/// Returns the requests to object stores, or `None` if there were none.
fn requests(storage: &Storage) -> Option<Requests> {
    Some(storage.requests()).filter(|requests| requests.total() > 0)
}

/// The time that work may take to release its resources after a signal. Work that is still computing then stops only
/// with the process.
const GIVE_UP: Duration = Duration::from_millis(500);

/// Stops `work` at the next point where it waits.
async fn end<T>(mut work: JoinHandle<T>) {
    work.abort();
    if tokio::time::timeout(GIVE_UP, &mut work).await.is_err() {
        tracing::debug!("stopped while it computes");
    }
}

/// Formats a score and its interval, or `-` if the score has no value.
fn cell(value: Option<f64>, ci: Option<[f64; 2]>) -> String {
    match (value, ci) {
        (Some(value), Some([low, high])) => format!("{value:.3} [{low:.3} {high:.3}]"),
        (Some(value), None) => format!("{value:.3}"),
        _ => "-".to_owned(),
    }
}

fn documents(counts: &FingerprintCounts) -> String {
    format!(
        "{} documents: {} fingerprinted, {} too short, {} empty, {} NULL",
        grouped(counts.n_documents),
        grouped(counts.n_fingerprinted),
        grouped(counts.n_too_short),
        grouped(counts.n_empty),
        grouped(counts.n_null_text)
    )
}

/// Returns a published night of a job, whose texts are read again.
fn night_source(job: &JobConfig, dt: &str) -> Result<NightSource, Failure> {
    Ok(NightSource { dt: dt.to_owned(), store: job.store(None)?, texts: text_source(job)? })
}

/// Returns how the texts of a job's published nights are read again.
fn text_source(job: &JobConfig) -> Result<TextSource, Failure> {
    Ok(TextSource {
        documents: job.documents.clone(),
        columns: job.columns()?,
        max_doc_bytes: job.input()?.max_doc_bytes,
    })
}

fn if_exists(replace: bool) -> IfExists {
    if replace { IfExists::Replace } else { IfExists::Refuse }
}

/// Refuses a `--max-distance` that fingerprints of so many bits cannot have.
fn refuse_beyond(bits: u32, max_distance: u32) -> Result<(), Failure> {
    if max_distance < bits {
        return Ok(());
    }
    Err(Failure::usage(format!("--max-distance {max_distance} is not below the fingerprint's {bits} bits")))
}

/// Writes the keys in messages of the libraries as the flags of `command`.
fn name_flags(command: &str, messages: &mut [Words]) {
    for message in messages {
        message.name_keys(|key| flags::named(command, key));
    }
}

fn warnings(out: &mut String, warnings: &[Words]) {
    for warning in warnings {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "Warning: {warning}");
    }
}

/// Ends a runtime without waiting for what still computes in it. `Runtime::shutdown_background` lets go of its threads just as
/// these end, and `pthread_detach` of glibc may then read the memory of one that is gone: the process would die of a signal.
/// Here, a thread of its own waits for them.
fn shut_down(working: Runtime) {
    // If there is no thread for it, this one waits.
    let _ = std::thread::Builder::new().name("nearprint-end".to_owned()).spawn(move || drop(working));
}
