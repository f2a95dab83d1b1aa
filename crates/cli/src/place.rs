//! Paths and URLs in flags and job files. The program expands nothing in them. It refuses a name that a shell would
//! have expanded, because that name would otherwise become the literal name of a folder.

use std::path::{Path, PathBuf};

use nearprint_documents::NightPlace;

/// Says whether placeholders may stand for the night.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dates {
    /// All those of the documents.
    Allowed,
    /// `{dt}` alone.
    Night,
    None,
}

/// A path or URL of the command line. A relative path begins at the working folder, and not at the folder of the job file:
/// [`JobFolder::given`](crate::job_folder::JobFolder::given) makes a place of it that the job's storage finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given(String);

impl Given {
    /// Returns the place as it stands on the command line.
    pub fn as_typed(&self) -> &str {
        &self.0
    }

    /// Makes a place of one that a job file names, as a command line would name it.
    pub fn of_job(typed: String) -> Self {
        Self(typed)
    }
}

/// Parses the value of a flag.
pub fn place(text: &str) -> Result<Given, String> {
    refuse_stream(text).and_then(|()| refuse_unexpanded(text, Dates::None)).map(|()| Given(text.to_owned()))
}

/// Parses the value of a flag for the documents of nights, which may contain `{dt}`.
pub fn nights(text: &str) -> Result<Given, String> {
    refuse_stream(text).and_then(|()| refuse_unexpanded(text, Dates::Allowed)).map(|()| Given(text.to_owned()))
}

/// Refuses `-`, by which other programs mean standard input or output.
pub fn refuse_stream(text: &str) -> Result<(), String> {
    match text {
        "-" => {
            Err("'-' is neither standard input nor standard output here: name a place, or ./- for that name".to_owned())
        }
        _ => Ok(()),
    }
}

/// Parses the value of a flag for a local file or folder.
pub fn local(path: PathBuf) -> Result<PathBuf, String> {
    refuse_unexpanded_path(&path).map(|()| path)
}

/// Refuses a local path with a part that this program does not expand.
pub fn refuse_unexpanded_path(path: &Path) -> Result<(), String> {
    refuse_unexpanded(&path.to_string_lossy(), Dates::None)
}

/// Refuses `~`, `$VARIABLE` and unknown placeholders, and an empty name, which is what a shell makes of a variable that is
/// not set.
pub fn refuse_unexpanded(text: &str, dates: Dates) -> Result<(), String> {
    if text.is_empty() {
        return Err("an empty name is no place: was a variable not set? The folder itself is .".to_owned());
    }
    if may_hold_secrets(text) {
        return Ok(());
    }
    if text.starts_with('~') {
        return Err(format!("'~' is not expanded here: write the whole path, or ./{text} where the name begins so"));
    }
    if let Some(variable) = text.split('$').skip(1).find(|rest| rest.starts_with(is_name_start)) {
        let name: String =
            variable.chars().take_while(|&c| is_name_start(c) || c.is_ascii_digit() || c == '}').collect();
        return Err(format!("'${name}' is not expanded here: write what it stands for"));
    }
    if dates == Dates::Allowed {
        return NightPlace::parse(text).fault().map_or(Ok(()), Err);
    }
    let (text, remedy) = match dates {
        Dates::Night => (text.replace("{dt}", ""), "write {dt} for the night"),
        _ => (text.to_owned(), "only `documents` of a run and the files of [watch] may have {dt}, for the night"),
    };
    match text.split('{').skip(1).find_map(|rest| rest.split_once('}')) {
        Some((name, _)) => Err(format!("'{{{name}}}' stands for nothing here: {remedy}")),
        None => Ok(()),
    }
}

/// Returns whether a URL may contain secrets. Such a URL is refused when it is opened, by a message that does not
/// repeat it. A message about a flag would repeat it.
pub fn may_hold_secrets(text: &str) -> bool {
    let rest = text.split_once("://").map_or("", |(_, rest)| rest);
    rest.contains(['@', ':']) || rest.to_ascii_lowercase().contains("x-amz-")
}

fn is_name_start(c: char) -> bool {
    c.is_ascii_alphabetic() || matches!(c, '_' | '{')
}
