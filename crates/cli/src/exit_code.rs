//! Exit codes, which follow sysexits.h.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use nearprint_fault::{ErrorKind, Fault, Place, Words};
use nearprint_night::NoSuchDocument;
use nearprint_pipeline::{StaleNight, TooManyBadRows};
use nearprint_storage::{Requests, locked};
use nearprint_store::with_repair;
use nearprint_store::{Damage, IsOutput, NoSuchNight};
use schemars::JsonSchema;
use serde::Serialize;

use crate::finding::{Finding, FindingKeys};
use crate::job_folder::JobFolder;
use crate::remedy::Remedy;

/// The reason why a command ends without success.
#[derive(Debug)]
#[non_exhaustive]
pub struct Failure {
    /// The exit code.
    pub code: u8,
    /// The fault. Its place tells what the message is about, as far as that is a file.
    pub fault: Fault,
    /// The command whose flags the message names in place of keys, and how it names them.
    pub(crate) shown_by: Option<(String, Naming)>,
    /// What the command spent until then, if it began its work.
    pub spent: Option<Box<Spent>>,
    /// The command line that the user may run next, if there is one.
    pub hint: Option<String>,
    /// What mends it, from which the hint is made.
    pub(crate) remedy: Option<Box<Remedy>>,
    /// The rows that are no documents, if it is about these.
    pub(crate) bad_rows: Option<Box<BadRows>>,
    /// The faults of a job file, if it is about these.
    pub(crate) findings: Box<[Finding]>,
}

/// Returns how a command names a key, if it has a flag for it.
pub type Naming = fn(&str, &str) -> Option<String>;

/// The rows that are no documents and fail a night, for its summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct BadRows {
    /// The numbers of rows that are no documents by reason, if these failed the night.
    pub(crate) bad_rows_by_reason: BTreeMap<String, u64>,
    /// Files, rows and reasons of the first of these rows.
    pub(crate) examples: Vec<String>,
}

impl BadRows {
    fn of(error: &Fault) -> Option<Self> {
        let TooManyBadRows { by_reason, examples, .. } = error.matter()?;
        Some(Self { bad_rows_by_reason: by_reason.clone(), examples: examples.clone() })
    }
}

/// What a command spent. It is measured once, so that all summaries of an end say the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Spent {
    /// The time since its start.
    pub elapsed: Duration,
    /// The most memory that the process held, where the system says it.
    pub peak_rss_bytes: Option<u64>,
    /// The requests to object stores, if there were any.
    pub requests: Option<Requests>,
    /// The time of each stage.
    pub stages: BTreeMap<&'static str, Duration>,
}

impl Spent {
    /// Returns what was spent since `before`.
    pub(crate) fn since(self, before: &Self) -> Self {
        let requests = |now: Requests| now.since(&before.requests.unwrap_or_default());
        let stage = |(name, time): (&'static str, Duration)| {
            let before = before.stages.get(name).copied().unwrap_or_default();
            Some((name, time.saturating_sub(before))).filter(|(_, time)| !time.is_zero())
        };
        Self {
            elapsed: self.elapsed.saturating_sub(before.elapsed),
            peak_rss_bytes: self.peak_rss_bytes,
            requests: self.requests.map(requests).filter(|requests| requests.total() > 0),
            stages: self.stages.into_iter().filter_map(stage).collect(),
        }
    }
}

pub const USAGE: u8 = 64;
pub const BAD_DATA: u8 = 65;
pub const INPUT_MISSING: u8 = 66;
const STORE_UNAVAILABLE: u8 = 69;
pub const BUG: u8 = 70;
pub const OUTPUT_EXISTS: u8 = 73;
pub const LOCAL_IO: u8 = 74;
const TRY_AGAIN: u8 = 75;
pub const PERMISSION: u8 = 77;
pub const CONFIG: u8 = 78;

impl<E: Into<Fault>> From<E> for Failure {
    fn from(error: E) -> Self {
        let fault = with_repair(error.into());
        let remedy = remedy(&fault).map(Box::new);
        let bad_rows = BadRows::of(&fault).map(Box::new);
        let code = of_kind(fault.kind());
        Self { code, fault, shown_by: None, spent: None, hint: None, remedy, bad_rows, findings: Box::default() }
    }
}

/// The flags of a run that `--stale` does not go with, since they are about one night, and the one that repairs nothing.
const OF_ONE_NIGHT: &[&str] =
    &["--dt", "--date", "--late", "--future", "--dry-run", "--late-exit-code", "--empty-exit-code", "--report"];

/// Returns what mends an error, where the message alone does not tell.
fn remedy(fault: &Fault) -> Option<Remedy> {
    if let Some(TooManyBadRows { n, is_damage: false, .. }) = fault.matter() {
        return Some(Remedy::Again(vec!["--max-bad-rows".to_owned(), n.to_string()]));
    }
    if fault.matter::<StaleNight>().is_some() {
        return Some(Remedy::InPlaceOf(OF_ONE_NIGHT, "--stale"));
    }
    if let Some(NoSuchNight { store }) = fault.matter() {
        return Some(match store {
            Some(store) => Remedy::Of("store info", store.clone()),
            None => Remedy::With("store info", &["--config"]),
        });
    }
    if let Some(NoSuchDocument { id, near }) = fault.matter() {
        return near.first().map(|near| Remedy::Instead(id.clone(), near.clone()));
    }
    if let Some(IsOutput { store: Some(store) }) = fault.matter() {
        return Some(Remedy::Instead(fault.place().file.clone()?, store.clone()));
    }
    fault.matter::<Damage>().map(|_| Remedy::With("check", &["--config"]))
}

/// The kinds of errors and their exit codes. What has another kind is a defect.
const KINDS: [(ErrorKind, u8); 10] = [
    (ErrorKind::Usage, USAGE),
    (ErrorKind::BadData, BAD_DATA),
    (ErrorKind::InputMissing, INPUT_MISSING),
    (ErrorKind::StoreUnavailable, STORE_UNAVAILABLE),
    (ErrorKind::Bug, BUG),
    (ErrorKind::OutputExists, OUTPUT_EXISTS),
    (ErrorKind::LocalIo, LOCAL_IO),
    (ErrorKind::TryAgain, TRY_AGAIN),
    (ErrorKind::Permission, PERMISSION),
    (ErrorKind::Config, CONFIG),
];

fn of_kind(kind: ErrorKind) -> u8 {
    KINDS.iter().find(|known| known.0 == kind).map_or(BUG, |known| known.1)
}

impl Failure {
    /// Makes a failure that is about no file.
    pub fn new(code: u8, message: impl Into<Words>) -> Self {
        let kind = KINDS.iter().find(|known| known.1 == code).map_or(ErrorKind::Bug, |known| known.0);
        Self { code, ..Fault::told(kind, message, Place::default()).into() }
    }

    /// Returns the message, which names what it is about and says what the user should do.
    #[must_use]
    pub fn message(&self) -> String {
        self.shown(&self.fault.words())
    }

    /// Returns the message without what the user should do, as far as that is said apart.
    #[must_use]
    pub fn message_without_remedy(&self) -> String {
        self.shown(&self.fault.words_without_remedy())
    }

    /// Writes keys as the flags of the command.
    fn shown(&self, words: &Words) -> String {
        words.named(|key| self.name_of(key))
    }

    fn name_of(&self, key: &str) -> Option<String> {
        let (command, naming) = self.shown_by.as_ref()?;
        naming(command, key)
    }

    /// Returns the failure for a user of a command, whose flags the message names. The first one counts.
    pub(crate) fn shown_by(mut self, command: &str, naming: Naming) -> Self {
        self.shown_by.get_or_insert_with(|| (command.to_owned(), naming));
        self
    }

    /// Returns the failure with its fault changed.
    pub(crate) fn with(self, change: impl FnOnce(Fault) -> Fault) -> Self {
        Self { fault: change(self.fault), ..self }
    }

    /// Returns the faults of a job file as a summary has them.
    pub(crate) fn findings(&self) -> Box<[FindingKeys]> {
        self.findings.iter().map(|finding| finding.keys(|key| self.name_of(key))).collect()
    }

    /// Returns the name of the exit code, such as `bad_data`, or `other` for a code that the user chose.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        KINDS.iter().find(|known| known.1 == self.code).map_or("other", |known| known.0.name())
    }

    /// Returns the failure as one that is about a file, and a line of it if that is known.
    pub(crate) fn at(self, file: &Path, line: Option<u64>) -> Self {
        self.with(|fault| {
            let fault = fault.at(file.display().to_string());
            line.map_or(fault.clone(), |line| fault.row(line))
        })
    }

    pub(crate) fn config(message: impl Into<Words>) -> Self {
        Self::new(CONFIG, message)
    }

    /// Describes the faults of a job file.
    pub(crate) fn of_findings(file: &Path, findings: Vec<Finding>) -> Self {
        let name = file.display().to_string();
        let said = Words::joined(findings.iter().map(|finding| finding.said(&name)), "; ");
        let line = findings.first().and_then(Finding::line);
        let check = ["config", "check", &name].map(str::to_owned).to_vec();
        let failure = Self::config(said).at(file, line).mended_by(Remedy::Command(check));
        Self { findings: findings.into(), ..failure }
    }

    /// Returns the failure as people in the working folder see it: a place that is missing, and that a job file names by a
    /// relative path, has its whole path too.
    pub(crate) fn seen_from(mut self, folder: &JobFolder) -> Self {
        let mut place = self.fault.place().clone();
        if self.code == INPUT_MISSING && place.whole.is_none() {
            place.whole = place.file.as_deref().and_then(|file| folder.whole(file));
            self.fault = self.fault.placed(place);
        }
        if let Some(Remedy::Of(command, place)) = self.remedy.as_deref() {
            let words = command.split(' ').map(str::to_owned).chain([folder.typed(place)]);
            self.remedy = Some(Box::new(Remedy::Command(words.collect())));
        }
        self
    }

    /// Describes a failure to read a file. `what` names the file, and the flag or key that gave it.
    pub(crate) fn reading(what: &str, error: &std::io::Error) -> Self {
        use std::io::ErrorKind::{InvalidData, IsADirectory, NotADirectory, NotFound, PermissionDenied};
        let (code, remedy) = match error.kind() {
            NotFound | NotADirectory => (INPUT_MISSING, ""),
            IsADirectory => (INPUT_MISSING, ": name a file"),
            InvalidData => (BAD_DATA, ": save it as UTF-8"),
            PermissionDenied => (PERMISSION, ""),
            _ => (LOCAL_IO, ""),
        };
        Self::new(code, format!("{what}: {error}{remedy}"))
    }

    /// Describes a failure to write a file.
    pub(crate) fn writing(path: &Path, error: &std::io::Error) -> Self {
        let code = match error.kind() {
            std::io::ErrorKind::PermissionDenied => PERMISSION,
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => INPUT_MISSING,
            _ => LOCAL_IO,
        };
        Self::new(code, format!("cannot write {}: {error}", path.display())).at(path, None)
    }

    pub(crate) fn usage(message: impl Into<Words>) -> Self {
        Self::new(USAGE, message)
    }

    /// Describes a panic: a defect, or a lack of threads.
    pub(crate) fn panicked(panic: Option<&(dyn std::any::Any + Send)>) -> Self {
        let defect = || Self::bug(&locked(&LAST_PANIC).clone());
        panic.and_then(nearprint_storage::lack_of_threads).map_or_else(defect, Self::from)
    }

    /// Describes a defect of nearprint.
    #[must_use]
    pub fn bug(what: &str) -> Self {
        Self::new(BUG, format!("internal error: {what}: please report it"))
    }

    pub(crate) fn signalled(name: &str, code: u8) -> Self {
        Self::new(code, format!("stopped by {name} before the end: run it again"))
    }

    /// Returns the failure with what mends it.
    pub(crate) fn mended_by(mut self, remedy: Remedy) -> Self {
        self.remedy = Some(Box::new(remedy));
        self
    }

    /// Returns the message as one line.
    pub(crate) fn line(&self) -> String {
        without_controls(&self.message())
    }

    /// Returns the hint without control characters.
    pub(crate) fn hint(&self) -> Option<String> {
        self.hint.as_ref().map(|hint| without_controls(hint))
    }

    /// Writes the message to standard error as one line, or the faults of a job file as one line each, and the hint as
    /// another one.
    pub(crate) fn say(&self) {
        let file = self.fault.place().file.as_deref().unwrap_or_default();
        let findings = self.findings.iter().map(|finding| without_controls(&self.shown(&finding.said(file))));
        let lines: Vec<String> = if self.findings.is_empty() { vec![self.line()] } else { findings.collect() };
        for line in lines {
            let _ = writeln!(std::io::stderr(), "nearprint: error: {line}");
        }
        if let Some(hint) = self.hint() {
            let _ = writeln!(std::io::stderr(), "hint: {hint}");
        }
    }
}

/// Puts a blank in the place of each control character, such as a line break.
fn without_controls(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

/// Makes every panic leave its message for the single line that reports it, no matter where it is caught.
pub fn keep_panics_to_one_line() {
    std::panic::set_hook(Box::new(|info| {
        let text = info.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        tracing::debug!(panic = text);
        *locked(&LAST_PANIC) = text;
    }));
}
