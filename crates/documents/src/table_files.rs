//! The files of a table, as it names them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use nearprint_fault::{ErrorKind, Fault, Part, Result, Words, key, words};
use nearprint_storage::{DeletedRows, Folder, InputFile, Storage, TableFormat, bad_file, bad_format, is_date};

use super::reader::Format;
use crate::error::Absent;

/// A file that a table names.
#[derive(Debug)]
pub struct TableFile {
    /// The path below the table, or a whole path or URL.
    pub path: String,
    /// The size in bytes.
    pub bytes: u64,
    /// The rows that do not count.
    pub deleted_rows: Option<DeletedRows>,
}

/// The states of a table that are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TableVersions {
    /// The version of a Delta table, or the snapshot of an Iceberg table; `None` stands for the newest.
    pub version: Option<u64>,
    /// An earlier version or snapshot. Only files that the table did not have then are read.
    pub since: Option<u64>,
}

/// Looks up files of a table. No place is accessed before all of them are known to be allowed. The folder that holds the
/// files of the table's own is listed once.
///
/// # Errors
/// A file is missing, is no Parquet file or has another size, or lies where the storage's roots do not allow it.
pub async fn look_up(
    storage: &Storage,
    root: &Folder,
    format: TableFormat,
    live: Vec<TableFile>,
) -> Result<BTreeMap<String, InputFile>> {
    let (mut relative, elsewhere): (Vec<TableFile>, Vec<_>) = live.into_iter().partition(|file| is_below(&file.path));
    relative.iter_mut().for_each(|file| file.path = plain(&file.path));
    let mut places = Vec::with_capacity(elsewhere.len());
    for file in elsewhere {
        let is_whole = file.path.contains("://") || file.path.starts_with('/');
        let whole = if is_whole { file.path.clone() } else { format!("{}/{}", root.url(), file.path) };
        places.push((storage.file_of_table(root, &whole)?, file));
    }
    let gone = |file: &TableFile| {
        let reason = format!("it names {}, which is gone: name a newer version, or restore the file", file.path);
        damaged(root, format, reason)
    };
    let common = common_folder(relative.iter().map(|file| file.path.as_str()));
    let place = if common.is_empty() { root.clone() } else { root.join(&common) };
    let mut listed: BTreeMap<String, InputFile> = BTreeMap::new();
    if !relative.is_empty() {
        let listing = place.files_below().await?;
        listed.extend(listing.files.into_iter().map(|file| (file.url.clone(), file)));
    }
    let mut files = BTreeMap::new();
    for named in relative {
        let url = root.join(&named.path).url().to_owned();
        let file = match listed.remove(&url) {
            Some(file) => file,
            // Listings leave out hidden names.
            None => root.join(&named.path).find().await?.ok_or_else(|| gone(&named))?,
        };
        storage.refuse_links_outside([&file])?;
        files.insert(url, checked(file, named)?);
    }
    // Clones of other Delta tables, and Iceberg tables in other places than their metadata, have files with a whole path.
    for (place, named) in places {
        let file = place.find().await?.ok_or_else(|| gone(&named))?;
        files.insert(file.url.clone(), checked(file, named)?);
    }
    Ok(files)
}

/// Returns whether a path leads to a place below the table, whatever the table is.
fn is_below(path: &str) -> bool {
    !path.contains("://") && !path.starts_with('/') && path.split('/').all(|name| name != "..")
}

/// Returns a path without the names `.` in it, which some writers begin with.
fn plain(path: &str) -> String {
    path.split('/').filter(|name| *name != ".").collect::<Vec<_>>().join("/")
}

/// Returns the folder that holds all paths, without a slash at its end.
fn common_folder<'a>(mut paths: impl Iterator<Item = &'a str>) -> String {
    let folder = |path: &'a str| path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let Some(first) = paths.next() else { return String::new() };
    let mut common: Vec<&str> = folder(first).split('/').collect();
    for path in paths {
        let same = common.iter().zip(folder(path).split('/')).take_while(|(a, b)| *a == b).count();
        common.truncate(same);
    }
    common.join("/")
}

fn checked(file: InputFile, named: TableFile) -> Result<InputFile> {
    if file.size != named.bytes {
        let reason = format!("its table says that it has {} bytes, it has {}", named.bytes, file.size);
        return Err(bad_file(&file.url, reason));
    }
    if Format::of(&named.path).is_none_or(|format| format.name != "Parquet") {
        let reason = "its table names it, and only files of tables whose names end in .parquet are read: let its engine write the \
                      file anew under such a name";
        return Err(bad_format(&file.url, reason));
    }
    Ok(file.without(named.deleted_rows))
}

/// A partition of a table. Without columns, it is the whole table.
#[derive(Debug)]
pub struct Partition {
    /// The columns or fields in the order of the place.
    columns: Vec<String>,
    /// Their values.
    pub values: BTreeMap<String, String>,
}

/// Parses the names of a partition's folder. `what` is the format's word for what a table is partitioned by, `known` has the names of
/// those of the table, and `unescape` returns a name or value as the table has it.
///
/// # Errors
/// The table is not partitioned by one of them.
pub fn partition(
    url: &str,
    (format, what): (TableFormat, &str),
    below: &[String],
    known: &[&str],
    unescape: impl Fn(&str) -> String,
) -> Result<Partition> {
    let parsed = below.iter().filter_map(|name| name.split_once('='));
    let parsed: Vec<(String, String)> = parsed.map(|(name, value)| (unescape(name), unescape(value))).collect();
    let columns: Vec<String> = parsed.iter().map(|(name, _)| name.clone()).collect();
    let values: BTreeMap<String, String> = parsed.into_iter().collect();
    let Some(name) = values.keys().find(|name| !known.contains(&name.as_str())) else {
        return Ok(Partition { columns, values });
    };
    let known = if known.is_empty() { "it has none".to_owned() } else { known.join(", ") };
    let reason = format!(
        "{url} is {format} table without the {what} '{name}' ({known}): name the table itself, one table a night with {{dt}} in its \
         path, or a table that is partitioned by '{name}'"
    );
    Err(Fault::config("documents", reason))
}

/// Makes the error of an earlier version, or snapshot, that is later than the one that is read. `what` is the format's word for it.
pub fn later_than(url: &str, what: &str, since: impl Display, read: impl Display) -> Fault {
    let reason = format!("{url}: {what} {since} is later than {what} {read}, which is read");
    Fault::config("documents_since", reason)
}

/// Makes the error of a table, or of a partition of it, that has no files. `there` are the values that files of the table have in the
/// columns of the partition.
pub fn nothing_there(
    root: &Folder,
    Partition { columns, values: wanted }: &Partition,
    since: Option<u64>,
    there: BTreeSet<BTreeMap<String, String>>,
) -> Fault {
    let shown = |values: &BTreeMap<String, String>| {
        let names = columns.iter().filter_map(|column| Some(format!("{column}={}", values.get(column)?)));
        names.collect::<Vec<_>>().join("/")
    };
    let place = if wanted.is_empty() { root.url().to_owned() } else { format!("{}/{}", root.url(), shown(wanted)) };
    // The wanted values themselves may be there, of files from before `since`.
    let mut there: Vec<_> = there.into_iter().filter(|values| !values.is_empty() && values != wanted).collect();
    let forms_of = |there: &BTreeMap<String, String>| -> Option<Vec<String>> {
        let forms = columns.iter().map(|column| Some((column, form_of(there.get(column)?, wanted.get(column)?)?)));
        let forms: Vec<_> = forms.collect::<Option<_>>()?;
        Some(forms.into_iter().filter_map(|(column, form)| Some(format!("{column} as {}", form?))).collect())
    };
    if let Some((other, forms)) = there.iter().find_map(|values| Some((values, forms_of(values)?))) {
        let reason = format!(
            "{} has no partition {}, but {}: name that, or in a place of nights write {}; nothing was read or written",
            root.url(),
            shown(wanted),
            shown(other),
            forms.join(" and ")
        );
        return Fault::config("documents", reason);
    }
    if let Some(since) = since {
        let reason = words!["no documents at ", Part::Place, format!(": the table got no files there since {since}")];
        return Fault::new(ErrorKind::InputMissing, reason).at(place).about(Absent::NoPartition);
    }
    there.sort_by_cached_key(|values| {
        let in_order = |column| {
            values.get(column).map(|value: &String| (value.len() * usize::from(is_number(value)), value.clone()))
        };
        Reverse(columns.iter().map(in_order).collect::<Vec<_>>())
    });
    let last: Vec<String> = there.iter().take(NAMED_PARTITIONS).map(shown).collect();
    let there = match last.is_empty() {
        true => "the table has no files".to_owned(),
        false => format!("the last partitions there: {}", last.join(", ")),
    };
    let remedy = format!("{there}: run it again when the crawl has arrived; nothing was read or written");
    Fault::input_missing("documents", place, remedy).about(Absent::NoPartition)
}

/// What stands for NULL in the name of a partition's folder.
pub const NULL_PARTITION: &str = "__HIVE_DEFAULT_PARTITION__";

/// The number of partitions that a message names.
const NAMED_PARTITIONS: usize = 3;

/// Returns how a place of nights writes the value that a partition has, if it is the wanted one in another form: a date with or without
/// dashes, midnight of a date, or a number with other zeros before it. It is `Some(None)` if it has the wanted form.
#[allow(clippy::option_option, reason = "not the value, its own form, another form")]
fn form_of(there: &str, wanted: &str) -> Option<Option<String>> {
    if there == wanted {
        return Some(None);
    }
    let form = if is_date(wanted) {
        let time = there.strip_prefix(wanted);
        let is_midnight = |time: &&str| time.starts_with([' ', 'T']) && !time.contains(|c| ('1'..='9').contains(&c));
        match there == wanted.replace('-', "") {
            true => Some("{dt:%Y%m%d}".to_owned()),
            false => time.filter(is_midnight).map(|time| format!("{{dt}}{time}")),
        }
    } else if is_date(there) && there.replace('-', "") == wanted {
        Some("{dt}".to_owned())
    } else {
        let same = [there, wanted].iter().all(|value| is_number(value))
            && there.trim_start_matches('0') == wanted.trim_start_matches('0');
        // Which number of the date it is, its name does not tell for certain.
        same.then(|| if there.len() < wanted.len() { "{dt:%-m} or {dt:%-d}" } else { "{mm} or {dd}" }.to_owned())
    };
    form.map(Some)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Makes the error of a night of what a table got since a version, if maintenance, which changes no rows, wrote rows of before
/// into a file that is new since. `older` is the version before it, if it is later than that one, and `newer` the one that did it.
pub fn not_all_new(url: &str, by: &str, file: &str, older: Option<impl Display>, newer: impl Display) -> Fault {
    const SINCE: &str = "documents_since";
    let reason = words![
        format!(
            "{url}: {by} wrote rows that the table may have had before into new files, such as {file}, as OPTIMIZE and \
             rewrite_data_files do, so these do not tell what was added: name the partition of the night and leave "
        ),
        key(SINCE),
        format!(" out, or set it to {newer} for what was added later"),
    ];
    let earlier = older
        .map(|older| words![", and ", key("documents_version"), format!(" to {older} for what was added earlier")]);
    Fault::config(SINCE.to_owned(), Words::joined([Some(reason), earlier].into_iter().flatten(), ""))
}

/// Makes the error of a table that is not whole.
pub fn damaged(root: &Folder, format: TableFormat, reason: impl Into<Words>) -> Fault {
    bad_format(root.url(), words![format!("this is {format} table, but "), reason.into()])
}

#[cfg(test)]
mod tests {
    use super::common_folder;

    #[test]
    fn the_folder_of_all_files_is_the_deepest_one() {
        let common = |paths: &[&str]| common_folder(paths.iter().copied());
        assert_eq!(common(&["dt=1/a/x", "dt=1/a/y"]), "dt=1/a");
        assert_eq!(common(&["dt=1/x", "dt=10/x"]), "");
        assert_eq!(common(&["dt=1/x"]), "dt=1");
        assert_eq!(common(&["x"]), "");
    }
}
