//! Files that a command writes beside its results: summaries, metrics, pages, sheets, plots, tables of idf, manual
//! pages and job files. One rule holds for all of them. Such a file takes a place that is free, or that has an empty file
//! or an earlier file of the same kind; and it never lies below documents, store, output or a reference of the job or of
//! the command. The rule is checked before any work.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use clap::{ArgMatches, CommandFactory};
use nearprint_night::is_among_documents;
use nearprint_report::INDEX_NAME;
use nearprint_storage::{Folder, IfExists, LocalFile, S3Config, Storage, is_date, redact};
use serde::Deserialize;

use crate::args::Cli;
use crate::exit_code::{Failure, OUTPUT_EXISTS};
use crate::flags::long_names;
use crate::job_config::JobConfig;
use crate::job_config::watch::{WatchFile, Watched};
use crate::refused_arguments::values_of;

/// The purpose of a file, by which an earlier one is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Summary,
    Metrics,
    NightPage,
    PairsPage,
    Sheet,
    Plot,
    IdfTable,
    /// A folder of manual pages.
    Manual,
    ManualPage,
    /// A folder of pages about nights.
    Pages,
    /// The table of reviewed pairs, to which answers are added.
    Answers,
    /// Never replaced, whatever it is.
    JobFile,
}

/// The arguments that name such files: the command (empty: any), the argument, how messages call it, and its kind.
const FILES: [(&str, &str, &str, Kind); 12] = [
    ("", SUMMARY_FILE, "--summary-file", Kind::Summary),
    ("run", "metrics_file", "--metrics-file", Kind::Metrics),
    ("run", "report", "--report", Kind::NightPage),
    ("report", "html", "--html", Kind::NightPage),
    ("report", "pages", "--pages", Kind::Pages),
    ("review", "answers", "--answers", Kind::Answers),
    ("tune", "html", "--html", Kind::PairsPage),
    ("tune", "sheet", "--sheet", Kind::Sheet),
    ("evaluate", "plot", "--plot", Kind::Plot),
    ("idf build", "output", "--output", Kind::IdfTable),
    ("man", "dir", "DIR", Kind::Manual),
    ("config init", "file", "FILE", Kind::JobFile),
];

const SUMMARY_FILE: &str = "summary_file";

/// The arguments that name places in which a command reads or writes its data, or files that it reads.
const GUARDED: [&str; 17] = [
    "config",
    "documents",
    "store",
    "output",
    "references",
    "existing",
    "from",
    "queries",
    "truth",
    "ignore",
    "labels",
    "ids",
    "text_file",
    "file",
    "jsonl",
    "token_file",
    "lock_file",
];

/// The bytes at the beginning of a file that tell its kind.
const HEAD_BYTES: u64 = 64 << 10;

/// The files that a command is to write beside its results, and the places that these leave alone.
#[derive(Debug, Clone)]
pub struct Beside {
    s3: S3Config,
    storage: Storage,
    files: Vec<OutFile>,
    /// The files that the job file of a run names for each of its nights.
    watch: Vec<WatchFile>,
    guarded: Vec<Guarded>,
    /// The files of a list of documents.
    listed: Vec<PathBuf>,
}

#[derive(Debug, Clone)]
struct OutFile {
    /// The flag that names it, or the key.
    name: &'static str,
    kind: Kind,
    place: String,
    /// The job file names it.
    is_of_job: bool,
}

/// A place of the command's data: the key or argument that names it, and its path, URL or pattern.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Guarded {
    key: String,
    url: String,
}

impl Beside {
    /// Reads arguments that clap refused, of which the first is the name of the program, as far as they can be read.
    pub fn of_refused(arguments: &[OsString]) -> Self {
        // Arguments that cannot be read at all name no command.
        let matches = Cli::command().ignore_errors(true).try_get_matches_from(arguments);
        let (command, mut values) = values(&matches.unwrap_or_default());
        // clap forgets what stands behind the argument that it refuses.
        add_flags(&Cli::command(), arguments, &mut values);
        if command == "config check" {
            // Its job file has no flag.
            let job = arguments.iter().filter_map(|word| word.to_str()).filter(|word| word.ends_with(".toml"));
            values.entry("file").or_default().extend(job.map(str::to_owned));
        }
        Self::of_values(&command, &values, &[])
    }

    /// Takes the places from the arguments, and from the job file that they name, with or without faults. A job file that cannot
    /// be read guards no place: the command will say so. `watch` has the files that the job file names.
    pub fn of(arguments: &ArgMatches, watch: &[WatchFile]) -> Self {
        let (command, values) = values(arguments);
        Self::of_values(&command, &values, watch)
    }

    fn of_values(command: &str, values: &BTreeMap<&'static str, Vec<String>>, watch: &[WatchFile]) -> Self {
        let of = |id: &str| values.get(id).cloned().unwrap_or_default();
        let mut files = Vec::new();
        for (_, id, flag, kind) in FILES.iter().filter(|file| file.0.is_empty() || file.0 == command) {
            let file = |place| OutFile { name: flag, kind: *kind, place, is_of_job: false };
            files.extend(of(id).into_iter().map(file));
        }
        let is_written = |id: &str| FILES.iter().any(|(own, written, ..)| *own == command && *written == id);
        let mut guarded = BTreeSet::new();
        for id in GUARDED.iter().filter(|id| !is_written(id)) {
            guarded.extend(of(id).into_iter().map(|url| Guarded { key: id.replace('_', "-"), url }));
        }
        let (mut s3, mut listed) = (S3Config::default(), Vec::new());
        if !files.is_empty() || !watch.is_empty() {
            let config = if command == "config check" { of("file") } else { of("config") };
            if let Some(job) = config.first().map(Path::new).and_then(job) {
                s3 = job.s3();
                guarded.extend(job.guarded().into_iter().map(|(key, url)| Guarded { key: key.to_owned(), url }));
            }
            listed = of("files_from").first().map(|list| files_of(Path::new(list))).unwrap_or_default();
        }
        let (storage, watch) = (Storage::new(s3.clone()), watch.to_vec());
        Self { s3, storage, files, watch, guarded: guarded.into_iter().collect(), listed }
    }

    /// Returns the same with the files of a night that the job file names.
    pub fn of_night(&self, dt: &str) -> Self {
        // Connections do not outlive the runtime in which they began.
        let mut beside = Self { storage: Storage::new(self.s3.clone()), ..self.clone() };
        beside.files.extend(self.watch.iter().filter_map(|file| {
            let (name, kind) = (file.watched.key(), Kind::of(file.watched));
            Some(OutFile { name, kind, place: file.of_night(dt)?, is_of_job: true })
        }));
        beside
    }

    /// Returns the place of a file that the job file names, if it names one.
    pub fn of_job(&self, watched: Watched) -> Option<&str> {
        let is_it = |file: &&OutFile| file.is_of_job && file.kind == Kind::of(watched);
        self.files.iter().find(is_it).map(|file| file.place.as_str())
    }

    /// Returns the failures of the files that the job file names, each with its key.
    pub fn faults_of_job(&self) -> Vec<(&'static str, Failure)> {
        let of_job = self.files.iter().filter(|file| file.is_of_job);
        of_job.filter_map(|file| Some((file.name, self.refuse_file(file).err()?))).collect()
    }

    /// Checks the file of the summary, which is written even if the command refuses everything else.
    pub fn refuse_summary(&self) -> Result<(), Failure> {
        self.refuse(|file| file.kind == Kind::Summary)
    }

    /// Checks a file of the summary that stands behind an argument that cannot be read.
    pub fn refuse_summary_at(&self, path: &Path) -> Result<(), Failure> {
        let place = path.to_string_lossy().into_owned();
        self.refuse_file(&OutFile { name: "--summary-file", kind: Kind::Summary, place, is_of_job: false })
    }

    /// Checks all other files.
    pub fn refuse_others(&self) -> Result<(), Failure> {
        self.refuse(|file| file.kind != Kind::Summary)
    }

    fn refuse(&self, which: impl Fn(&OutFile) -> bool) -> Result<(), Failure> {
        self.files.iter().filter(|file| which(file)).try_for_each(|file| self.refuse_file(file))
    }

    fn refuse_file(&self, file: &OutFile) -> Result<(), Failure> {
        let place = file.place.as_str();
        if place == "-" {
            let reason =
                format!("{} -: it does not write to standard output: name a file, or ./- for that name", file.name);
            return Err(Failure::usage(reason));
        }
        let there = self.storage.folder(place)?;
        self.refuse_guarded(file, &there)?;
        let Some(target) = there.local_path() else {
            return refuse_other_remote(file, &there);
        };
        // Both ends of a link count: a file replaces the link, and may name what it points to.
        let path = Path::new(place.strip_prefix("file://").unwrap_or(place));
        let link = whole_path(path);
        self.refuse_guarded(file, &self.link_place(&link)?)?;
        for path in [target, &link] {
            refuse_kept(file, path)?;
            if self.listed.iter().any(|listed| path.starts_with(listed)) {
                return Err(file.refused("is one of the documents of --files-from", "name another file"));
            }
        }
        if !path.is_symlink() {
            refuse_other(file, target)?;
        }
        if file.is_of_job { file.refuse_forbidden(path) } else { Ok(()) }
    }

    /// Returns the place of a link itself.
    fn link_place(&self, link: &Path) -> Result<Folder, Failure> {
        let (above, name) = (link.parent().unwrap_or(link), link.file_name().unwrap_or_default());
        Ok(self.storage.folder(&above.to_string_lossy())?.join(&name.to_string_lossy()))
    }

    fn refuse_guarded(&self, file: &OutFile, place: &Folder) -> Result<(), Failure> {
        for Guarded { key, url } in &self.guarded {
            // A place that is malformed is told of by the command itself.
            let covers = match key.as_str() {
                "documents" => is_among_documents(&self.storage, url, place).unwrap_or(false),
                _ => self.storage.covers(url, place).unwrap_or(false),
            };
            if covers {
                let is_same = self.storage.folder(url).is_ok_and(|guarded| guarded.is_same_place(place));
                let (verb, remedy) = if is_same { ("is", "name another file") } else { ("lies in", ELSEWHERE) };
                return Err(file.refused(&format!("{verb} {key} = '{}'", redact(url)), remedy));
            }
        }
        Ok(())
    }
}

const ELSEWHERE: &str = "name a file outside of documents, store, output and references";

impl OutFile {
    /// Refuses a place in which the file cannot be written, as far as permissions tell.
    fn refuse_forbidden(&self, path: &Path) -> Result<(), Failure> {
        let written = LocalFile::refuse_forbidden(path, IfExists::Replace);
        Ok(written.map_err(|fault| fault.within(format!("{}: ", self.name)))?)
    }

    fn refused(&self, lies: &str, remedy: &str) -> Failure {
        let place = redact(&self.place);
        Failure::usage(format!("{} {place}: it {lies}: {remedy}", self.name)).at(Path::new(&place), None)
    }

    fn taken(&self, place: &str) -> Failure {
        let place = redact(place);
        let reason = format!(
            "{} {place}: what is there is no {} of nearprint: name another file, or remove this one",
            self.name,
            self.kind.name()
        );
        Failure::new(OUTPUT_EXISTS, reason).at(Path::new(&place), None)
    }
}

/// Refuses a file in a folder that is a store or an output, whoever's it is, and in the log of a table.
fn refuse_kept(file: &OutFile, path: &Path) -> Result<(), Failure> {
    // Pages go into the folder itself.
    let is_folder = matches!(file.kind, Kind::Manual | Kind::Pages);
    for above in path.ancestors().skip(usize::from(!is_folder)) {
        let shown = above.display();
        if above.file_name().is_some_and(|name| name == "_delta_log") {
            return Err(file.refused(&format!("lies in the log of a table, {shown}"), ELSEWHERE));
        }
        if above.join("_store.json").is_file() || above.join("_commits").is_dir() {
            return Err(file.refused(&format!("lies in {shown}, which is a store or the results of one"), ELSEWHERE));
        }
    }
    Ok(())
}

/// Refuses a place that is taken by something else than an earlier file of the kind. What is no regular file is told of by
/// who writes.
fn refuse_other(file: &OutFile, path: &Path) -> Result<(), Failure> {
    match file.kind {
        Kind::JobFile => return Ok(()),
        Kind::Manual | Kind::Pages => {
            let (kind, pages) = match file.kind {
                Kind::Manual => {
                    (Kind::ManualPage, pages(path, |name| name.starts_with("nearprint") && name.ends_with(".1")))
                }
                _ => (Kind::NightPage, pages(path, is_night_page)),
            };
            for page in pages {
                refuse_other(&OutFile { kind, place: page.display().to_string(), ..*file }, &page)?;
            }
            return Ok(());
        }
        _ => {}
    }
    match std::fs::metadata(path) {
        Ok(there) if there.is_file() && there.len() > 0 => {}
        _ => return Ok(()),
    }
    let unread = |error: &std::io::Error| Failure::reading(&format!("{} {}", file.name, path.display()), error);
    let content = std::fs::File::open(path).map_err(|error| unread(&error))?;
    match file.kind.recognises(content) {
        Ok(true) => Ok(()),
        Ok(false) => Err(file.taken(&file.place)),
        Err(error) => Err(unread(&error)),
    }
}

/// As [`refuse_other`], for a place in an object store.
fn refuse_other_remote(file: &OutFile, place: &Folder) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::bug(&error.to_string()))?;
    let content = runtime.block_on(place.get())?;
    let is_own =
        content.is_none_or(|content| content.is_empty() || file.kind.recognises(&content[..]).unwrap_or(false));
    if is_own { Ok(()) } else { Err(file.taken(&file.place)) }
}

/// The fields by which a summary is recognised. That of a command line which was refused may name no command.
#[derive(Deserialize)]
struct SummaryHead {
    #[serde(rename = "schema_version")]
    _schema_version: u64,
    command: Option<String>,
    status: Option<String>,
}

impl Kind {
    fn of(watched: Watched) -> Self {
        match watched {
            Watched::Metrics => Self::Metrics,
            Watched::Page => Self::NightPage,
            Watched::Summary => Self::Summary,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Summary => "summary of a command",
            Self::Metrics => "file of metrics",
            Self::NightPage | Self::Pages => "page about a night",
            Self::Answers => "table of reviewed pairs",
            Self::PairsPage => "page of pairs to label",
            Self::Sheet => "sheet of pairs to label",
            Self::Plot => "plot of scores",
            Self::IdfTable => "idf table",
            Self::Manual | Self::ManualPage => "manual page",
            Self::JobFile => "job file",
        }
    }

    /// Returns whether this is the content of a file of this kind. That of a later release may have more, of an earlier
    /// one less.
    fn recognises(self, content: impl Read) -> std::io::Result<bool> {
        if self == Self::Summary {
            let head = serde_json::from_reader::<_, SummaryHead>(BufReader::new(content));
            return match head {
                Err(error) if error.is_io() => Err(error.into()),
                head => Ok(head.is_ok_and(|head| head.command.or(head.status).is_some())),
            };
        }
        let mut head = Vec::new();
        content.take(HEAD_BYTES).read_to_end(&mut head)?;
        let head = String::from_utf8_lossy(&head);
        let first = head.lines().next().unwrap_or_default();
        Ok(match self {
            Self::Metrics => head.starts_with("# HELP nearprint_"),
            Self::NightPage => is_page(&head, "nearprint: night"),
            Self::Answers => nearprint_measure::is_reviewed_pair(first),
            Self::PairsPage => is_page(&head, "nearprint: pairs to label<"),
            Self::Sheet => nearprint_measure::is_sheet(first),
            Self::Plot => head.starts_with("<svg") && head.contains("By Hamming distance"),
            Self::IdfTable => {
                first.rsplit_once('\t').is_some_and(|(token, idf)| !token.is_empty() && idf.parse::<f64>().is_ok())
            }
            Self::ManualPage => head.contains("\n.TH nearprint"),
            Self::Summary | Self::Manual | Self::Pages | Self::JobFile => false,
        })
    }
}

fn is_page(head: &str, title: &str) -> bool {
    head.starts_with("<!DOCTYPE html><html") && head.contains(&format!("<title>{title}"))
}

/// Returns the path of a file, with the links of its folder resolved but not its own.
fn whole_path(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let folder = absolute.parent().and_then(|folder| folder.canonicalize().ok());
    folder.zip(absolute.file_name()).map_or(absolute.clone(), |(folder, name)| folder.join(name))
}

/// Returns whether a file has the name of the page of a night, or of all nights.
fn is_night_page(name: &str) -> bool {
    name == INDEX_NAME || name.strip_suffix(".html").is_some_and(is_date)
}

/// Returns the files of a folder that have names of pages.
fn pages(folder: &Path, is_page: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().to_str().is_some_and(&is_page)).map(|entry| entry.path()).collect()
}

fn job(path: &Path) -> Option<JobConfig> {
    job_and_faults(path).map(|(job, _)| job)
}

/// Returns the job at a path, as far as it can be read, and whether it has faults. What is no regular file is not read, because it
/// could be read only once.
pub(crate) fn job_and_faults(path: &Path) -> Option<(JobConfig, bool)> {
    let read = path.is_file().then(|| JobConfig::read_with_faults(path).ok()).flatten();
    read.map(|(job, faults)| (job, !faults.is_empty()))
}

/// Returns the whole local paths in a list of documents. What is no regular file is not read, as above.
fn files_of(list: &Path) -> Vec<PathBuf> {
    let content = if list.is_file() { std::fs::read_to_string(list).unwrap_or_default() } else { String::new() };
    let local = content.lines().filter(|line| !line.is_empty() && !line.starts_with("s3://"));
    local.filter_map(|line| std::path::absolute(line.strip_prefix("file://").unwrap_or(line)).ok()).collect()
}

/// Returns the command, and the values of all arguments that matter here, also those that are defaults.
fn values(matches: &ArgMatches) -> (String, BTreeMap<&'static str, Vec<String>>) {
    let (mut names, mut found, mut level) = (Vec::new(), BTreeMap::new(), Some(matches));
    while let Some(matches) = level {
        for id in ids() {
            // What stands before a command is among the matches of the command too.
            if let Ok(Some(raw)) = matches.try_get_raw(id) {
                found.insert(id, raw.map(|value| value.to_string_lossy().into_owned()).collect());
            }
        }
        let below = matches.subcommand();
        names.extend(below.map(|(name, _)| name));
        level = below.map(|(_, matches)| matches);
    }
    (names.join(" "), found)
}

/// Adds the values of all flags of a command, and of those below it, that stand anywhere among arguments.
fn add_flags(command: &clap::Command, arguments: &[OsString], found: &mut BTreeMap<&'static str, Vec<String>>) {
    for argument in command.get_arguments() {
        let Some(id) = ids().find(|id| argument.get_id() == id) else { continue };
        let long = long_names(argument).map(|long| format!("--{long}"));
        let short = argument.get_short().map(|short| format!("-{short}"));
        let flags: Vec<String> = long.chain(short).collect();
        let values = flags.iter().flat_map(|flag| values_of(arguments, flag));
        found.entry(id).or_default().extend(values.map(|value| value.to_string_lossy().into_owned()));
    }
    command.get_subcommands().for_each(|below| add_flags(below, arguments, found));
}

fn ids() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|file| file.1).chain(GUARDED).chain(["files_from"])
}

#[cfg(test)]
mod tests {
    use std::any::TypeId;
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    use clap::{Command, CommandFactory};

    use super::{FILES, GUARDED};
    use crate::args::Cli;
    use crate::place::Given;

    /// The arguments that name folders in which guarded places may lie, and the list of documents, whose files are guarded.
    const NEITHER: [&str; 3] = ["files_from", "roots", "spill_dir"];

    /// The arguments of a command and of those below it whose values are places, each with the name of its command.
    fn places(command: &Command, name: &str, found: &mut BTreeSet<(String, String)>) {
        let types = [TypeId::of::<PathBuf>(), TypeId::of::<Given>()];
        for argument in command.get_arguments() {
            let value = argument.get_value_parser().type_id();
            if types.iter().any(|of| value == *of) {
                found.insert((name.to_owned(), argument.get_id().to_string()));
            }
        }
        for below in command.get_subcommands() {
            places(below, format!("{name} {}", below.get_name()).trim(), found);
        }
    }

    #[test]
    fn every_argument_that_names_a_place_is_known_as_a_file_that_is_written_or_as_one_that_is_guarded() {
        let mut found = BTreeSet::new();
        places(&Cli::command(), "", &mut found);
        let is_written = |(command, id): &(String, String)| FILES.iter().any(|file| file.0 == command && file.1 == id);
        let is_known = |of: &(String, String)| is_written(of) || GUARDED.iter().chain(&NEITHER).any(|id| *id == of.1);
        let unknown: Vec<_> = found.iter().filter(|of| !is_known(of)).collect();
        assert!(unknown.is_empty(), "files that are written belong to FILES, all others to GUARDED: {unknown:?}");
        let written: Vec<_> =
            FILES.iter().filter(|file| !found.contains(&(file.0.to_owned(), file.1.to_owned()))).collect();
        assert!(written.is_empty(), "no such arguments: {written:?}");
        let unused: Vec<_> = GUARDED.iter().filter(|id| !found.iter().any(|(_, known)| known == *id)).collect();
        assert!(unused.is_empty(), "no such arguments: {unused:?}");
    }
}
