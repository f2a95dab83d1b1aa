//! The places of documents: a path, folder, glob, S3 prefix or table, or a list of such places.

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt};
use nearprint_fault::{ErrorKind, Fault, MissingInput, Part, Place, Result, key, words};
use nearprint_storage::{InputFile, Listing, Storage, TableFormat, bad_file, bad_format};

use super::delta_table;
use super::formats::endings;
use super::found::FoundFiles;
use super::iceberg_table;
use super::night_place::NightPlace;
use super::reader::Format;
use super::table_files::TableVersions;
use super::{foreign, passed_over};
use crate::error::{Absent, documents_missing};

/// The place of documents.
///
/// ```
/// use nearprint_documents::{DocumentPlace, FileList};
///
/// let crawl = DocumentPlace::from("s3://crawl/documents/dt=2026-11-20");
/// assert_eq!(crawl.patterns(), ["s3://crawl/documents/dt=2026-11-20"]);
/// let listed = DocumentPlace::List(FileList::parse("tonight.txt", "b.parquet\n\na.parquet\r\n"));
/// assert_eq!((listed.name(), listed.patterns()), ("tonight.txt", vec!["b.parquet", "a.parquet"]));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentPlace {
    /// A file, a folder, a glob, an `s3://` prefix, a Delta or Iceberg table, or a partition of one.
    Pattern {
        /// The path or URL.
        pattern: String,
        /// The states of the table that are read, if it is one.
        versions: TableVersions,
    },
    /// The places that the lines of a file name.
    List(FileList),
}

/// The lines of a file, or of standard input, that name places of documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileList {
    name: String,
    /// The numbers of the lines, counted from 1, and their content. Blank lines are left out.
    lines: Vec<(u64, String)>,
}

impl FileList {
    /// Takes the content of a file that messages call `name`. Blank lines and white space around a path are left out.
    #[must_use]
    pub fn parse(name: &str, content: &str) -> Self {
        let lines = (1..).zip(content.lines().map(str::trim)).filter(|(_, line)| !line.is_empty());
        Self { name: name.to_owned(), lines: lines.map(|(number, line)| (number, line.to_owned())).collect() }
    }

    /// Returns the same list with other places in its lines.
    #[must_use]
    pub fn map(self, place: impl Fn(&str) -> String) -> Self {
        let lines = self.lines.into_iter().map(|(number, line)| (number, place(&line))).collect();
        Self { lines, ..self }
    }

    /// Returns the lines, each with its number, counted from 1.
    pub fn lines(&self) -> impl Iterator<Item = (u64, &str)> {
        self.lines.iter().map(|(number, line)| (*number, line.as_str()))
    }
}

impl From<&str> for DocumentPlace {
    fn from(pattern: &str) -> Self {
        Self::from(pattern.to_owned())
    }
}

impl From<String> for DocumentPlace {
    fn from(pattern: String) -> Self {
        Self::Pattern { pattern, versions: TableVersions::default() }
    }
}

/// The number of lines of a list that are looked up at once.
const LINES_AT_ONCE: usize = 16;

impl DocumentPlace {
    /// Returns the pattern, or the name of the list, for messages.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Pattern { pattern, .. } => pattern,
            Self::List(list) => &list.name,
        }
    }

    /// Returns the pattern, or those of all lines of the list.
    #[must_use]
    pub fn patterns(&self) -> Vec<&str> {
        match self {
            Self::Pattern { pattern, .. } => vec![pattern],
            Self::List(list) => list.lines().map(|(_, line)| line).collect(),
        }
    }

    /// Checks the form of the places, without looking at them.
    ///
    /// # Errors
    /// A line of a list is no path or URL that is supported. The error names the line.
    pub fn check(&self, storage: &Storage) -> Result<()> {
        let Self::List(list) = self else { return Ok(()) };
        for (number, line) in list.lines() {
            storage.base_of(line).map_err(|error| list.of_line(number, error))?;
        }
        Ok(())
    }

    /// Finds the files. Their order does not depend on that of the lines of a list, and a file that several lines name
    /// is one file, however they write its path.
    ///
    /// # Errors
    /// There are no files, or none in a format that is read. For a list, it is an error if a line is such a place, and
    /// the error names the line.
    pub(super) async fn find(&self, storage: &Storage) -> Result<FoundFiles> {
        match self {
            Self::Pattern { pattern, versions } => find(storage, pattern, *versions).await,
            Self::List(list) => list.find(storage).await,
        }
    }
}

impl FileList {
    fn of_line(&self, line: u64, error: Fault) -> Fault {
        let message = words![format!("{}: line {line}: ", self.name), error.words()];
        let mut place = Place::default();
        (place.file, place.row) = (Some(self.name.clone()), Some(line));
        Fault::told(error.kind(), message, place)
    }

    async fn find(&self, storage: &Storage) -> Result<FoundFiles> {
        if self.lines.is_empty() {
            let reason = words!["no documents: ", Part::Place, " has no lines"];
            let fault = Fault::new(ErrorKind::InputMissing, reason).at(&self.name).about(Absent::EmptyList);
            return Err(fault.remedy("write the paths or URLs of files into it, one a line"));
        }
        let of_line = |(number, line): (u64, String)| async move {
            find(storage, &line, TableVersions::default()).await.map_err(|error| self.of_line(number, error))
        };
        let mut lines = futures::stream::iter(self.lines.clone()).map(of_line).buffered(LINES_AT_ONCE);
        let (mut files, mut unusable) = (BTreeMap::new(), BTreeMap::new());
        while let Some(found) = lines.try_next().await? {
            for file in found.files.into_values() {
                let known: &mut InputFile = files.entry(file.place()).or_insert_with(|| file.clone());
                if known.deleted_rows != file.deleted_rows {
                    let reason =
                        "two lines name it, and their tables have deleted other rows of it: name one of the tables";
                    return Err(bad_format(&file.url, reason));
                }
                if goes_before(&file, known) {
                    *known = file;
                }
            }
            for (file, reason) in found.unusable.into_values() {
                let known: &mut (InputFile, String) =
                    unusable.entry(file.place()).or_insert_with(|| (file.clone(), reason.clone()));
                if goes_before(&file, &known.0) {
                    *known = (file, reason);
                }
            }
        }
        Ok(FoundFiles::new(files.into_values(), unusable.into_values()))
    }
}

/// Returns whether the path of a file goes before that of the same file in another line: the shortest stays, so that the
/// order of the lines does not matter.
fn goes_before(file: &InputFile, known: &InputFile) -> bool {
    (file.url.len(), &file.url) < (known.url.len(), &known.url)
}

/// Returns the documents of a night as a pattern of files: `documents` with the date in place of its placeholders, or with
/// `dt=<date>` after it.
#[must_use]
pub fn night_pattern(documents: &str, dt: &str) -> String {
    NightPlace::parse(documents).of(dt)
}

/// Finds the files that a pattern names.
async fn find(storage: &Storage, pattern: &str, versions: TableVersions) -> Result<FoundFiles> {
    if let Some((metadata, below)) = iceberg_table::metadata_file(pattern) {
        return iceberg_table::live_files_by(storage, metadata, &below, versions).await;
    }
    let listing = match storage.listing(pattern, "documents").await {
        Err(refused) => {
            return match refused.matter::<TableFormat>().copied() {
                Some(format) => of_table(storage, pattern, format, versions, refused).await,
                None if refused.matter() == Some(&MissingInput) => {
                    Err(documents_missing(refused.place().file.as_deref().unwrap_or(pattern)))
                }
                None => Err(refused),
            };
        }
        Ok(listing) => listing,
    };
    let settings = [(versions.version, "documents_version"), (versions.since, "documents_since")];
    if let Some((_, setting)) = settings.into_iter().find(|(version, _)| version.is_some()) {
        let reason = words![
            format!("{pattern} is no Delta or Iceberg table, so it has no versions: leave "),
            key(setting),
            " out"
        ];
        return Err(Fault::config(setting, reason));
    }
    refuse_unreadable(pattern, &listing).await?;
    Ok(FoundFiles::new(listing.files, listing.unusable))
}

/// Finds the files of a table, or of one of its partitions. A glob within the table and a file of the table are no partitions:
/// these are `refused`.
async fn of_table(
    storage: &Storage,
    pattern: &str,
    format: TableFormat,
    versions: TableVersions,
    refused: Fault,
) -> Result<FoundFiles> {
    let Some(url) = refused.place().file.clone() else { return Err(refused) };
    // Wildcards above the table are part of its path: it was found there as it is written.
    let Some(below) = storage.folder(&url)?.names_to(&storage.folder(pattern)?) else {
        return Err(refused);
    };
    if below.iter().any(|name| !name.contains('=') || name.contains(['*', '?', '['])) {
        return Err(refused);
    }
    match format {
        TableFormat::Delta => delta_table::live_files(storage, &url, &below, versions).await,
        TableFormat::Iceberg => iceberg_table::live_files(storage, &url, &below, versions).await,
        TableFormat::Hudi => Err(refused),
    }
}

/// Refuses files of which none has a format that is read.
async fn refuse_unreadable(pattern: &str, listing: &Listing) -> Result<()> {
    let Some(first) = listing.files.first() else { return Ok(()) };
    if listing.files.iter().any(|file| Format::of(&file.url).is_some()) {
        return Ok(());
    }
    let unfinished: Vec<&str> =
        listing.files.iter().map(|file| file.url.as_str()).filter(|url| is_unfinished(url)).collect();
    if !unfinished.is_empty() {
        let are = format!(
            " yet: by their names, these files are still being written: {}",
            first_names(unfinished.into_iter())
        );
        let reason = words!["no documents at ", Part::Place, are];
        return Err(Fault::new(ErrorKind::InputMissing, reason).at(pattern.to_owned()).about(Absent::Unfinished));
    }
    for file in &listing.files {
        if let Ok(Some(foreign)) = passed_over::foreign(file).await {
            return Err(bad_format(&file.url, foreign.reason(&file.url)));
        }
    }
    if listing.files.len() == 1 && first.url == pattern {
        if let Some(foreign) = foreign::by_beginning(&foreign::beginning(first).await) {
            return Err(bad_format(&first.url, foreign.reason(&first.url)));
        }
        return Err(bad_file(&first.url, format!("its name does not end in {}", endings())));
    }
    let (url, there) = (pattern.to_owned(), first_names(listing.files.iter().map(|file| file.url.as_str())));
    let are = format!(": no file there ends in {}; there are: {there}", endings());
    Err(Fault::bad_data(url, words!["no documents at ", Part::Place, are]).remedy("rename or convert them"))
}

/// The endings of files that a crawler or a download still writes.
const UNFINISHED: [&str; 3] = [".open", ".part", ".tmp"];

/// Returns whether the name of a file says that a crawler or a download still writes it.
#[must_use]
pub fn is_unfinished(url: &str) -> bool {
    UNFINISHED.iter().any(|ending| url.ends_with(ending))
}

/// The number of files that a message names.
const NAMED_FILES: usize = 5;

/// Returns the names of the first files, and the number of the others.
#[must_use]
pub fn first_names<'a>(urls: impl ExactSizeIterator<Item = &'a str>) -> String {
    let n_more = urls.len().saturating_sub(NAMED_FILES);
    let names: Vec<&str> = urls.take(NAMED_FILES).map(|url| url.rsplit('/').next().unwrap_or(url)).collect();
    let more = if n_more > 0 { format!(" and {n_more} more") } else { String::new() };
    names.join(", ") + &more
}

#[cfg(test)]
mod tests {
    use super::{DocumentPlace, FileList};

    #[test]
    fn blank_lines_count_for_line_numbers_and_name_nothing() {
        let list = FileList::parse("list.txt", "\u{20}\na\n\n  s3://b/c d \r\n");
        assert_eq!(list.lines().collect::<Vec<_>>(), [(2, "a"), (4, "s3://b/c d")]);
        assert!(DocumentPlace::List(FileList::parse("-", "\n\n")).patterns().is_empty());
    }
}
