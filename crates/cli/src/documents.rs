//! The documents of a command: their place, which is a path or URL, or the lines of a file; or a list of their ids.

use std::io::Read;
use std::path::Path;

use nearprint_documents::{DocumentPlace, FileList, IdColumn, TableVersions};
use nearprint_store::maintain::ForgottenIds;

use crate::exit_code::{BAD_DATA, Failure, USAGE};
use crate::job_folder::JobFolder;
use crate::place::{Dates, refuse_unexpanded};

/// The path that stands for standard input.
const STDIN: &str = "-";

/// Returns the place that the flags name, or `None` if they name none. `documents` begins at the folder of the job, and the
/// lines of a list at the working folder. The list is read at once, because standard input can be read only once.
pub fn place(
    folder: &JobFolder,
    documents: Option<String>,
    files_from: Option<&Path>,
    version: Option<u64>,
) -> Result<Option<DocumentPlace>, Failure> {
    match files_from {
        Some(list) => read_list(folder, list).map(DocumentPlace::List).map(Some),
        None => {
            let versions = TableVersions { version, since: None };
            Ok(documents.map(|pattern| DocumentPlace::Pattern { pattern, versions }))
        }
    }
}

/// Reads the ids of documents: of a file whose name ends in `.jsonl`, the `id` of each line; of any other, each line.
/// Blank lines do not count.
pub fn read_ids(path: &Path) -> Result<ForgottenIds, Failure> {
    let (name, content) = read_lines("--ids", path)?;
    if path.extension().is_none_or(|end| end != "jsonl") {
        return Ok(ForgottenIds::of_lines(&content));
    }
    let column = IdColumn::new("id");
    let id_of = |(number, line): (u64, &str)| {
        let none = || {
            let reason = "no id: write {\"id\": …} with a string or an integer, one object a line";
            Failure::new(BAD_DATA, format!("--ids {name}: line {number}: {reason}")).at(path, Some(number))
        };
        column.of(line.as_bytes()).map(|id| id.text).ok_or_else(none)
    };
    let lines = (1..).zip(content.lines()).filter(|(_, line)| !line.trim().is_empty());
    lines.map(id_of).collect::<Result<Vec<String>, Failure>>().map(ForgottenIds::new)
}

/// Reads a file of lines that a flag names. Returns the name for messages and the text.
fn read_lines(flag: &str, path: &Path) -> Result<(String, String), Failure> {
    let is_stdin = path == Path::new(STDIN);
    let name = if is_stdin { "standard input".to_owned() } else { path.display().to_string() };
    let mut content = String::new();
    let read = match is_stdin {
        true => std::io::stdin().lock().read_to_string(&mut content).map(drop),
        false => std::fs::read_to_string(path).map(|text| content = text),
    };
    read.map_err(|e| Failure::reading(&format!("{flag} {name}"), &e))?;
    let text = content.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(content);
    Ok((name, text))
}

fn read_list(folder: &JobFolder, path: &Path) -> Result<FileList, Failure> {
    let (name, content) = read_lines("--files-from", path)?;
    let list = FileList::parse(&name, &content);
    for (number, line) in list.lines() {
        let refused = |reason| Failure::new(USAGE, format!("{name}: line {number}: {reason}"));
        refuse_unexpanded(line, Dates::None).map_err(refused)?;
    }
    Ok(list.map(|line| folder.given_text(line)))
}
