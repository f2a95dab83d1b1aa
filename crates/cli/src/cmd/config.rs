//! `nearprint config`: job files are written, checked and described.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use clap::{ArgMatches, CommandFactory, FromArgMatches};
use nearprint_explain::legible;
use nearprint_fault::{ErrorKind, Fault, Words};
use nearprint_night::CheckedPlaces;
use nearprint_parquet::BadColumn;
use nearprint_tasks::LENGTH;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::night_request::{refuse_lock, request};
use super::{Outcome, Session};
use crate::args::{Cli, Command, ConfigCheckArgs, ConfigCommand, ConfigInitArgs, Global, RunArgs};
use crate::beside::Beside;
use crate::command_line::command_line;
use crate::exit_code::{BAD_DATA, CONFIG, Failure, INPUT_MISSING, OUTPUT_EXISTS, Spent, USAGE};
use crate::finding::Finding;
use crate::flags;
use crate::job_config::{self, JobConfig};
use crate::job_folder::JobFolder;
use crate::job_keys::nearest;
use crate::remedy::Remedy;
use crate::summary::Report;
use crate::watch::ANY_NIGHT;

pub(super) fn config(global: &Global, command: &ConfigCommand) -> Outcome {
    match command {
        ConfigCommand::Init(args) => init(args),
        ConfigCommand::Check(args) => check(global, args),
        ConfigCommand::Schema => {
            let schema = job_config::schema::schema();
            let text = format!("{schema:#}\n");
            Ok(Report::new("config schema", "done", &JobSchema { schema }, Spent::default(), text))
        }
    }
}

/// A job file to begin with. The three places stand for `{documents}`, `{store}` and `{output}`, quoted.
const TEMPLATE: &str = include_str!("job_template.toml");

fn init(args: &ConfigInitArgs) -> Outcome {
    let folder = JobFolder::for_new(&args.file);
    let mut text = TEMPLATE.to_owned();
    let places = [
        ("documents", &args.documents, "documents"),
        ("store", &args.store, "store"),
        ("output", &args.output, "results"),
    ];
    for (name, given, usual) in places {
        let place = given.as_ref().map_or_else(|| usual.to_owned(), |given| folder.given(given));
        text = text.replace(&format!("@{name}@"), &toml::Value::from(place.as_str()).to_string());
    }
    write_new(&args.file, &text)?;
    let file = args.file.to_string_lossy();
    let said = format!("{file}: written; `nearprint config schema` lists every key\n");
    let report =
        Report::new("config init", "done", &Written { file: file.clone().into_owned() }, Spent::default(), said);
    Ok(report.then(Some(command_line(["store", "init", "--config", &*file]))))
}

/// Writes a file that is not there yet.
fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
    let opened = OpenOptions::new().write(true).create_new(true).open(path);
    match opened.and_then(|mut file| file.write_all(text.as_bytes())) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let reason = format!("{}: it is there already, and is not overwritten: name another file", path.display());
            let check = ["config", "check", &*path.to_string_lossy()].map(str::to_owned).to_vec();
            Err(Failure::new(OUTPUT_EXISTS, reason).at(path, None).mended_by(Remedy::Command(check)))
        }
        done => done.map_err(|error| Failure::writing(path, &error)),
    }
}

/// Refuses documents that are the folder of one night: a run looks for its night below them.
fn refuse_single_night(documents: &str) -> Result<(), Failure> {
    let (parent, name) = documents.trim_end_matches('/').rsplit_once('/').unwrap_or((".", documents));
    match name.strip_prefix("dt=") {
        Some(dt) if !dt.contains(['{', '*']) => {
            Err(Fault::config("documents", format!("{name} is the folder of one night: name its parent, {parent}"))
                .into())
        }
        _ => Ok(()),
    }
}

/// The summary of `config init`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Written {
    /// The job file.
    file: String,
}

/// The summary of `config schema`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct JobSchema {
    /// The schema.
    #[schemars(with = "Map<String, Value>")]
    schema: &'static Value,
}

/// The summary of `config check`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Checked {
    /// The job file.
    file: String,
    /// Whether the store is there. If not, a first night makes it: `next` has the command.
    has_store: bool,
    /// The document file of the newest night whose columns were looked at. `None` if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    looked_at: Option<String>,
}

fn check(global: &Global, args: &ConfigCheckArgs) -> Outcome {
    let file = args.file.to_string_lossy().into_owned();
    let (job, faults) = JobConfig::read_with_faults(&args.file)?;
    let mut found = Found { job: &job, faults, others: Vec::new() };
    let mut checked = CheckedPlaces::default();
    if !found.faults.iter().any(|fault| fault.is_of_syntax) {
        checked = found.check(global, &file)?;
    }
    if let Some(failure) = found.failure(&args.file) {
        return Err(failure);
    }
    let next = if checked.has_store || job.create_store { None } else { Some(first_night(&file, &checked)) };
    let text = said(&file, &job, &checked);
    let CheckedPlaces { has_store, looked_at, .. } = checked;
    Ok(Session::new(&job, global)
        .report("config check", "done", &Checked { file, has_store, looked_at }, text)
        .then(next))
}

/// The faults of a job file.
struct Found<'a> {
    job: &'a JobConfig,
    faults: Vec<Finding>,
    /// The codes of failures that are no faults of the file, such as a folder that may not be written.
    others: Vec<u8>,
}

impl Found<'_> {
    /// Looks for all that is wrong with the values and places. A value at fault stands back for its default, so that it hides
    /// no other fault.
    fn check(&mut self, global: &Global, file: &str) -> Result<CheckedPlaces, Failure> {
        let (mended, failures) = self.job.mended();
        failures.iter().for_each(|failure| self.add(None, failure));
        let places = [("documents", &self.job.documents), ("store", &self.job.store), ("output", &self.job.output)];
        for (key, place) in places {
            // What was taken out because it is at fault is not missing.
            if place.is_none() && !self.faults.iter().any(|fault| fault.is_about(key)) {
                self.add(Some(key), &self.job.missing(key));
            }
        }
        self.job.misplaced().iter().for_each(|failure| self.add(None, failure));
        if let Err(failure) = refuse_single_night(self.job.documents.as_deref().unwrap_or_default()) {
            self.add(None, &failure);
        }
        let (matches, args) = as_run(file)?;
        for (key, failure) in Beside::of(&matches, &mended.watch_files()).of_night(ANY_NIGHT).faults_of_job() {
            self.add(Some(key), &failure);
        }
        if let Err(fault) = refuse_lock(mended.lock.as_deref()) {
            self.add(Some("lock"), &Failure::from(fault));
        }
        let Ok(request) = request(&mended, &args, ANY_NIGHT.to_owned()) else { return Ok(CheckedPlaces::default()) };
        let session = Session::new(&mended, global);
        let mut checked = session.block_on(|storage, resources, _| async move {
            Ok::<_, Fault>(nearprint_night::check_places(&storage, &request, &resources).await)
        })?;
        for (key, error) in std::mem::take(&mut checked.faults) {
            match of_column(&mended, &error) {
                Some(missing) => self.faults.extend(missing),
                None => self.add(key, &session.failure(error)),
            }
        }
        Ok(checked)
    }

    /// Adds a failure that is about a key, if it is about one: its own one, or `key`.
    fn add(&mut self, key: Option<&str>, failure: &Failure) {
        // Whatever is missing or misplaced is wrong in the job file, or about to be.
        if !matches!(failure.code, USAGE | BAD_DATA | INPUT_MISSING | CONFIG) {
            self.others.push(failure.code);
        }
        let fault = self.job.finding(key, failure.fault.clone());
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }

    /// Returns the failure of the check, if there are faults.
    fn failure(mut self, file: &Path) -> Option<Failure> {
        if self.faults.is_empty() {
            return None;
        }
        self.faults.sort_by_key(Finding::place);
        let code = self.others.first().copied().filter(|_| self.others.len() == self.faults.len());
        // A hint of this same command would say nothing.
        let failure = Failure { remedy: None, ..Failure::of_findings(file, self.faults).shown_by("run", flags::named) };
        Some(Failure { code: code.unwrap_or(failure.code), ..failure })
    }
}

/// Returns the arguments of a run with a job file.
fn as_run(file: &str) -> Result<(ArgMatches, Box<RunArgs>), Failure> {
    let arguments = ["nearprint", "run", "--dt", ANY_NIGHT, "--config", file];
    let matches = Cli::command().try_get_matches_from(arguments).ok();
    let parsed = matches.and_then(|matches| Some((Cli::from_arg_matches(&matches).ok()?.command, matches)));
    match parsed {
        Some((Command::Run(args), matches)) => Ok((matches, args)),
        _ => Err(Failure::bug("a run without flags cannot be parsed")),
    }
}

/// Returns the command that makes the store: that of the newest night, or one without a night.
fn first_night(file: &str, checked: &CheckedPlaces) -> String {
    match &checked.newest {
        Some(dt) => command_line(["run", "--config", file, "--dt", dt, "--create-store"]),
        None => command_line(["store", "init", "--config", file]),
    }
}

fn said(file: &str, job: &JobConfig, checked: &CheckedPlaces) -> String {
    let is_unread = checked.unread.as_ref().is_some_and(|error| error.kind() != ErrorKind::InputMissing);
    let has_documents = checked.looked_at.is_some() || is_unread;
    let documents = if has_documents { ", and the documents are there" } else { "; no night with documents was found" };
    let mut out = format!("{file}: keys and values are right{documents}\n");
    let store = job.store.as_deref().unwrap_or_default();
    let store = job.folder().whole(store).unwrap_or_else(|| store.to_owned());
    let store = match (checked.has_store, job.create_store) {
        (true, _) => store,
        (false, true) => format!("there is none at {store} yet: the first night makes it"),
        (false, false) => format!(
            "there is none at {store} yet: --create-store makes it with the first night; if there were nights, check the path, \
             and that its disk is mounted"
        ),
    };
    let columns = match (&checked.looked_at, &checked.unread) {
        (Some(url), _) => format!("they are in {}; no other file was looked at", legible(url)),
        (None, Some(error)) => format!("not looked at: {error}"),
        (None, None) => "not looked at: there is no night with documents yet".to_owned(),
    };
    for (name, what) in [("store", store), ("columns", columns)] {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  {name:<10} {what}");
    }
    out
}

/// Returns a fault for each key that names a column which a file lacks, if the error is about such a file.
fn of_column(job: &JobConfig, error: &Fault) -> Option<Vec<Finding>> {
    let Some(BadColumn::Missing { present }) = error.matter() else { return None };
    let (file, column) = (error.place().file.as_deref()?, error.place().column.as_deref()?);
    let keep = job.keep().ok()?.1.keep;
    let is_it = |name: &String| name == column;
    // Web pages have no columns of ids and texts.
    let own = [("id_column", &job.id_column), ("text_column", &job.text_column)];
    let own = own.into_iter().filter(|(_, own)| !keep.iter().any(is_it) || is_it(own));
    let key_of = |column| if job.source_column.as_ref() == Some(column) { "source_column" } else { "keep" };
    let keys = own.chain(keep.iter().map(|column| (key_of(column), column)));
    let there = present.iter().map(|name| legible(name)).collect::<Vec<_>>().join(", ");
    let fault = |(key, missing): (&'static str, &String)| {
        let usual = present.iter().map(String::as_str).chain((key == "keep").then_some(LENGTH));
        let near = nearest(missing, usual);
        let remedy = match near {
            Some(near) => format!("did you mean '{near}'?"),
            None if is_it(missing) && !keep.iter().any(is_it) => {
                error.advice().map(Words::to_string).unwrap_or_default()
            }
            None => format!("let {key} name one of them"),
        };
        let reason = format!("no column '{missing}' in {} (it has {there}): {remedy}", legible(file));
        job.finding(Some(key), Fault::config(key, reason)).meant(near.map(str::to_owned))
    };
    Some(keys.filter(|(_, column)| !present.contains(column)).map(fault).collect())
}
