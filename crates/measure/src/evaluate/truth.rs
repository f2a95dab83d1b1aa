//! The labels of an evaluation.

use std::collections::{BTreeSet, HashMap, HashSet};

use nearprint_fault::{Fault, Result, quoted};
use nearprint_parquet::missing_column;
use nearprint_storage::{Storage, redact, utf8};
use nearprint_tasks::QueryBatch;

/// The label of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label {
    /// The two documents are near-duplicates.
    Positive,
    /// The pair is neither of the others, and counts neither way.
    Gray,
    /// The two documents are different.
    Negative,
}

impl Label {
    /// Parses `pos`, `gray` or `neg`, in upper or lower case and with blanks around it.
    pub fn of_name(name: &str) -> Option<Self> {
        match name.trim().to_ascii_lowercase().as_str() {
            "pos" => Some(Self::Positive),
            "gray" => Some(Self::Gray),
            "neg" => Some(Self::Negative),
            _ => None,
        }
    }
}

/// The positive and gray pairs of rows, with the smaller row first. All other pairs are negative.
#[derive(Debug, Default)]
pub struct Truth {
    pub labels: HashMap<(u32, u32), Label>,
    /// The pairs of each grade, whatever their labels. `None` means that grades were not asked for.
    pub grades: Option<Vec<Grade>>,
}

/// A grade, and the pairs that have it.
pub type Grade = (String, BTreeSet<(u32, u32)>);

impl Truth {
    pub fn label(&self, a: u32, b: u32) -> Label {
        self.labels.get(&(a.min(b), a.max(b))).copied().unwrap_or(Label::Negative)
    }

    /// Adds a pair of a grade, unless it is there. Returns whether it has another grade.
    fn add_grade(&mut self, grade: &str, pair: (u32, u32)) -> bool {
        let grades = self.grades.get_or_insert_default();
        if let Some((known, _)) = grades.iter().find(|(_, pairs)| pairs.contains(&pair)) {
            return known != grade;
        }
        match grades.iter_mut().find(|(known, _)| known == grade) {
            Some((_, pairs)) => drop(pairs.insert(pair)),
            None => grades.push((grade.to_owned(), BTreeSet::from([pair]))),
        }
        false
    }

    fn add(&mut self, a: u32, b: u32, label: Label) -> Option<Label> {
        self.labels.insert((a.min(b), a.max(b)), label).filter(|&before| before != label)
    }
}

/// Returns the lines that are not empty, with their line numbers from 1.
pub async fn lines(storage: &Storage, url: &str) -> Result<Vec<(u64, String)>> {
    let missing = || Fault::input_missing("file", url.to_owned(), "check the path");
    let content = storage.folder(url)?.get().await?.ok_or_else(missing)?;
    let lines = (1..).zip(utf8(url, &content)?.lines());
    Ok(lines.filter(|(_, line)| !line.is_empty()).map(|(number, line)| (number, line.to_owned())).collect())
}

pub async fn read(
    storage: &Storage,
    url: &str,
    ignored: &HashSet<String>,
    batch: &QueryBatch,
    by_grade: bool,
) -> Result<Truth> {
    let lines = lines(storage, url).await?;
    let header = lines.first().map_or("", |(_, header)| header);
    let columns = columns(url, header)?;
    let grade = by_grade.then(|| column(url, header, "grade")).transpose()?;
    let mut truth = Truth { grades: by_grade.then(Vec::new), ..Truth::default() };
    for (row, line) in lines.iter().skip(1) {
        let bad = |reason| Fault::bad_data(url.to_owned(), reason).row(*row);
        if let Some((a, b, label)) = labelled_pair(line, columns, ignored, batch).map_err(bad)? {
            if truth.add(a, b, label).is_some() {
                return Err(bad("this pair has another label in an earlier row: keep one of the two".to_owned()));
            }
            if let Some(at) = grade {
                let few = || bad("too few columns: separate them by tabs".to_owned());
                if truth.add_grade(line.split('\t').nth(at).ok_or_else(few)?, (a.min(b), a.max(b))) {
                    return Err(bad("this pair has another grade in an earlier row: keep one of the two".to_owned()));
                }
            }
        }
    }
    truth.labels.retain(|_, label| *label != Label::Negative);
    Ok(truth)
}

/// Returns the rows of two documents and their label, or `None` if one of the two is left out.
fn labelled_pair(
    line: &str,
    columns: [usize; 3],
    ignored: &HashSet<String>,
    batch: &QueryBatch,
) -> std::result::Result<Option<(u32, u32, Label)>, String> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [Some(a), Some(b), Some(name)] = columns.map(|at| fields.get(at).copied()) else {
        return Err("too few columns: separate them by tabs".to_owned());
    };
    if let Some(unknown) = [a, b].into_iter().find(|id| batch.row_of(id).is_none() && !ignored.contains(*id)) {
        return Err(format!("no document '{}': label documents that are there", unknown.escape_debug()));
    }
    if a == b {
        return Err(format!("'{}' with itself is no pair: remove the row", a.escape_debug()));
    }
    if ignored.contains(a) || ignored.contains(b) {
        return Ok(None);
    }
    let label =
        Label::of_name(name).ok_or_else(|| format!("label '{}' is not pos, gray or neg", name.escape_debug()))?;
    Ok(batch.row_of(a).zip(batch.row_of(b)).map(|(a, b)| (a, b, label)))
}

/// Returns whether a header is that of a sheet, regardless of the separator that a spreadsheet wrote. One that has lost the columns of
/// texts is a sheet here too; [`is_sheet`](crate::is_sheet) says which files may be written over, and asks for all columns.
fn is_sheet(header: &str) -> bool {
    let names: Vec<&str> = header.split(['\t', ',', ';']).map(|name| name.trim_matches([' ', '"'])).collect();
    ["n_pairs", "strata", "profile"].iter().all(|name| names.contains(name))
}

/// The characters of a header that a message shows.
const SHOWN_CHARS: usize = 80;

/// Returns the first names of a header for a message.
fn shown(names: &[&str]) -> Vec<String> {
    let header = names.join(", ");
    match header.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => vec![format!("{}…", &header[..end])],
        None => vec![header],
    }
}

/// Returns the positions of `id_a`, `id_b` and `label`.
fn columns(url: &str, header: &str) -> Result<[usize; 3]> {
    if is_sheet(header) {
        let reason = format!(
            "a sheet of `nearprint tune` holds some pairs of each distance, so scores on it say nothing of all: use \
             `nearprint tune --labels {}`",
            quoted(&redact(url))
        );
        return Err(Fault::bad_data(url.to_owned(), reason).row(1));
    }
    let column = |name| column(url, header, name);
    Ok([column("id_a")?, column("id_b")?, column("label")?])
}

/// Returns the position of a column.
fn column(url: &str, header: &str, name: &str) -> Result<usize> {
    let names: Vec<&str> = header.split('\t').collect();
    let missing = || missing_column(url, name, None, shown(&names), "write a tab-separated header");
    let mut found = (0..).zip(&names).filter(|(_, n)| n.trim().eq_ignore_ascii_case(name));
    let (at, _) = found.next().ok_or_else(missing)?;
    match found.next() {
        Some(_) => Err(Fault::bad_data(url.to_owned(), format!("two columns '{name}': keep one of them")).row(1)),
        None => Ok(at),
    }
}
