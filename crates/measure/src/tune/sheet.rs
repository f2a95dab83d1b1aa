//! Writes and reads the sheet, which is a CSV file that spreadsheets can open and save.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use nearprint_fault::{Fault, Result};
use nearprint_parquet::missing_column;
use nearprint_storage::{bad_file, row_number, utf8};

use crate::evaluate::truth::Label;

/// A row to label.
#[derive(Debug, Clone)]
pub struct SheetPair {
    pub distance: u8,
    pub sketch_distance: Option<u16>,
    /// The number of pairs at this distance, sampled or not.
    pub n_pairs: u64,
    pub id_a: String,
    pub id_b: String,
    pub text_a: String,
    pub text_b: String,
}

/// A row of a labelled sheet.
#[derive(Debug, Clone)]
pub struct LabelledRow {
    /// The number of the row in a spreadsheet, in which the header is row 1.
    pub row: u64,
    pub distance: u8,
    pub sketch_distance: Option<u16>,
    pub n_pairs: u64,
    pub id_a: String,
    pub id_b: String,
    /// The label, or `None` if the cell is empty.
    pub label: Option<Label>,
}

/// The properties of the whole sheet, which every row repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// The number of pairs of each distance from 0 to the largest that was joined. These numbers reveal rows that were
    /// removed.
    pub strata: Vec<u64>,
    /// The digest of the profile that the sheet was drawn with.
    pub profile: String,
}

/// A labelled sheet.
#[derive(Debug)]
pub struct Sheet {
    pub about: About,
    pub rows: Vec<LabelledRow>,
    /// The number of rows that repeat the pair of another row. They are not among `rows`.
    pub n_repeated: u64,
}

const HEADER: [&str; 10] =
    ["distance", "sketch_distance", "n_pairs", "id_a", "id_b", "text_a", "text_b", "label", "strata", "profile"];

/// Returns whether the first line of a file is that of a sheet, even if a spreadsheet saved it with semicolons or tabs, or
/// with columns moved or added.
#[must_use]
pub fn is_sheet(first_line: &str) -> bool {
    let line = first_line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(first_line);
    let names: Vec<&str> = line.split([',', ';', '\t']).map(|name| name.trim().trim_matches('"')).collect();
    HEADER.iter().all(|name| names.contains(name))
}

/// Some spreadsheet programs read a file as UTF-8 only if it begins with this mark.
const BYTE_ORDER_MARK: &str = "\u{feff}";

pub fn write(pairs: &[SheetPair], about: &About) -> Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(BYTE_ORDER_MARK.as_bytes().to_vec());
    let internal = |e: csv::Error| Fault::internal("sheet", e);
    writer.write_record(HEADER).map_err(internal)?;
    for pair in pairs {
        let sketch_distance = pair.sketch_distance.map_or(String::new(), |d| d.to_string());
        let cells = [&pair.id_a, &pair.id_b, &pair.text_a, &pair.text_b].map(|text| defused(text));
        let numbers = [pair.distance.to_string(), sketch_distance, pair.n_pairs.to_string()];
        let last = [String::new(), about.strata_cell(), about.profile.clone()];
        writer.write_record(numbers.iter().chain(&cells).chain(&last)).map_err(internal)?;
    }
    writer.into_inner().map_err(|e| Fault::internal("sheet", e))
}

const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// Puts an apostrophe before a text that a spreadsheet would take for a formula, and before one that has such apostrophes
/// already, so that no two texts have one cell.
fn defused(text: &str) -> String {
    if is_formula(text) { format!("'{text}") } else { text.to_owned() }
}

fn as_it_was(cell: &str) -> &str {
    cell.strip_prefix('\'').filter(|rest| is_formula(rest)).unwrap_or(cell)
}

/// Returns whether a text is a formula, leading apostrophes aside.
fn is_formula(text: &str) -> bool {
    text.trim_start_matches('\'').starts_with(FORMULA)
}

impl About {
    /// Formats the strata like `0=88 1=60`, which no spreadsheet takes for a number, a date or a formula.
    fn strata_cell(&self) -> String {
        let strata = self.strata.iter().enumerate();
        strata.map(|(distance, n_pairs)| format!("{distance}={n_pairs}")).collect::<Vec<_>>().join(" ")
    }

    fn of_cells(strata: &str, profile: &str) -> Option<Self> {
        let n_pairs = |(distance, part): (usize, &str)| {
            let (named, n_pairs) = part.split_once('=')?;
            (named.parse() == Ok(distance)).then(|| n_pairs.parse().ok())?
        };
        let strata: Vec<u64> = strata.split_whitespace().enumerate().map(n_pairs).collect::<Option<_>>()?;
        ((1..=64).contains(&strata.len())).then(|| Self { strata, profile: profile.to_owned() })
    }

    /// Returns the largest distance that was joined.
    pub fn max_distance(&self) -> u32 {
        row_number(self.strata.len().saturating_sub(1))
    }
}

/// Reads a sheet, even if a spreadsheet saved it with semicolons or tabs, with columns moved or added, or with empty
/// rows. The rows are put into a fixed order, so that sorting the sheet changes no estimate.
pub fn read(file: &str, content: &[u8]) -> Result<Sheet> {
    let text = utf8(file, content)?;
    // The header is the first line that is not empty. An empty sheet has no columns, which is said below.
    let header = text.lines().find(|line| !line.is_empty()).unwrap_or_default();
    let delimiter = [b',', b';', b'\t'].into_iter().max_by_key(|d| header.bytes().filter(|b| b == d).count());
    let mut builder = csv::ReaderBuilder::new();
    let mut reader = builder.delimiter(delimiter.unwrap_or(b',')).flexible(true).from_reader(text.as_bytes());
    let columns = Columns::of(file, reader.headers().map_err(|e| bad_file(file, e))?)?;
    let mut rows = Rows::default();
    let mut lines = LineNumbers { text, at: 0, line: 1 };
    let mut breaks_in_cells = 0;
    for record in reader.records() {
        let record = record.map_err(|e| bad_file(file, e))?;
        let row = lines.of(record.position().map_or(0, csv::Position::byte))? - breaks_in_cells;
        breaks_in_cells += record.iter().map(|cell| cell.matches('\n').count() as u64).sum::<u64>();
        if record.iter().any(|cell| !cell.trim().is_empty()) {
            rows.add(row, &columns, &record).map_err(|reason| bad_row(file, row, reason))?;
        }
    }
    let empty = || bad_row(file, 2, "no row: draw a sheet of documents that have pairs".to_owned());
    rows.sheet().ok_or_else(empty)
}

/// Counts the lines of the file. The count of the csv crate falls behind at blank lines and at Windows line ends.
struct LineNumbers<'a> {
    text: &'a str,
    at: usize,
    line: u64,
}

impl LineNumbers<'_> {
    /// Returns the line of the record that was read from `byte` on. Call it for the records in their order.
    ///
    /// # Errors
    /// A record begins before the one that was read before it, or outside the text, which is a defect.
    fn of(&mut self, byte: u64) -> Result<u64> {
        // Records are read from this text and in order, so it goes on there.
        let misplaced = || Fault::internal("sheet", format!("a row at byte {byte} of {}", self.text.len()));
        let rest = usize::try_from(byte).ok().and_then(|byte| self.text.get(byte..)).ok_or_else(misplaced)?;
        let begin = self.text.len() - rest.trim_start_matches(['\r', '\n']).len();
        self.line += self.text.get(self.at..begin).ok_or_else(misplaced)?.matches('\n').count() as u64;
        self.at = begin;
        Ok(self.line)
    }
}

fn bad_row(file: &str, row: u64, reason: String) -> Fault {
    Fault::bad_data(file.to_owned(), reason).row(row)
}

/// The rows read so far, and the data to check the next row against them.
#[derive(Default)]
struct Rows {
    about: Option<About>,
    rows: Vec<LabelledRow>,
    /// The position of each pair in `rows`.
    pairs: HashMap<(String, String), usize>,
    n_of_distance: BTreeMap<u8, u64>,
    n_repeated: u64,
}

impl Rows {
    fn add(&mut self, row: u64, columns: &Columns, record: &csv::StringRecord) -> std::result::Result<(), String> {
        let (found, about) = (columns.row(row, record)?, columns.about(record)?);
        if *self.about.get_or_insert_with(|| about.clone()) != about {
            return Err("strata or profile differ from those of an earlier row: do not mix sheets".to_owned());
        }
        if about.strata.get(usize::from(found.distance)) != Some(&found.n_pairs) {
            return Err(format!(
                "n_pairs differs from what strata says of distance {}: do not mix sheets",
                found.distance
            ));
        }
        let (a, b) = (found.id_a.clone(), found.id_b.clone());
        let pair = if a <= b { (a, b) } else { (b, a) };
        if let Some(&at) = self.pairs.get(&pair) {
            return self.repeat(at, &found);
        }
        let n = self.n_of_distance.entry(found.distance).or_default();
        *n += 1;
        if *n > found.n_pairs {
            return Err("more rows of this distance than n_pairs: remove the added ones".to_owned());
        }
        self.pairs.insert(pair, self.rows.len());
        self.rows.push(found);
        Ok(())
    }

    /// Merges a row with the earlier row of the same pair. If only one of them has a label, that label counts.
    fn repeat(&mut self, at: usize, found: &LabelledRow) -> std::result::Result<(), String> {
        let earlier = &mut self.rows[at];
        if earlier.label.is_some() && found.label.is_some() && earlier.label != found.label {
            return Err(format!("this pair has another label in row {}: keep one of the two", earlier.row));
        }
        earlier.label = earlier.label.or(found.label);
        self.n_repeated += 1;
        Ok(())
    }

    /// Returns the sheet, or `None` if it has no rows.
    fn sheet(mut self) -> Option<Sheet> {
        self.rows.sort_by(|x, y| (x.distance, &x.id_a, &x.id_b).cmp(&(y.distance, &y.id_a, &y.id_b)));
        Some(Sheet { about: self.about?, rows: self.rows, n_repeated: self.n_repeated })
    }
}

/// The position of each column.
struct Columns {
    distance: usize,
    sketch_distance: usize,
    n_pairs: usize,
    id_a: usize,
    id_b: usize,
    label: usize,
    strata: usize,
    profile: usize,
}

impl Columns {
    fn of(file: &str, header: &csv::StringRecord) -> Result<Self> {
        let column = |name: &str| {
            let mut found = header.iter().enumerate().filter(|(_, h)| h.trim().eq_ignore_ascii_case(name));
            let missing = || {
                missing_column(
                    file,
                    name,
                    None,
                    header.iter().map(str::to_owned).collect(),
                    "keep the columns of the sheet that tune drew",
                )
            };
            let (at, _) = found.next().ok_or_else(missing)?;
            match found.next() {
                Some(_) => Err(bad_row(file, 1, format!("two columns '{name}': keep one of them"))),
                None => Ok(at),
            }
        };
        Ok(Self {
            distance: column("distance")?,
            sketch_distance: column("sketch_distance")?,
            n_pairs: column("n_pairs")?,
            id_a: column("id_a")?,
            id_b: column("id_b")?,
            label: column("label")?,
            strata: column("strata")?,
            profile: column("profile")?,
        })
    }

    fn row(&self, row: u64, record: &csv::StringRecord) -> std::result::Result<LabelledRow, String> {
        // A row may end early. Its cells are empty then, and those that must have a value are refused.
        let whole_cell = |at: usize| record.get(at).unwrap_or_default();
        let cell = |at: usize| whole_cell(at).trim();
        let sketch_distance = cell(self.sketch_distance);
        Ok(LabelledRow {
            row,
            distance: number("distance", cell(self.distance), 0..=63)?,
            sketch_distance: match sketch_distance {
                "" => None,
                text => Some(number("sketch_distance", text, 0..=256)?),
            },
            n_pairs: number("n_pairs", cell(self.n_pairs), 1..=u64::MAX)?,
            // Blanks around an id are part of it.
            id_a: as_it_was(whole_cell(self.id_a)).to_owned(),
            id_b: as_it_was(whole_cell(self.id_b)).to_owned(),
            label: label(cell(self.label))?,
        })
    }

    fn about(&self, record: &csv::StringRecord) -> std::result::Result<About, String> {
        // A row may end early. Its cells are empty then.
        let cell = |at: usize| record.get(at).unwrap_or_default().trim();
        let strata = cell(self.strata);
        About::of_cells(strata, cell(self.profile)).ok_or_else(|| {
            format!("strata '{}' is not as tune wrote it: copy it from another row", strata.escape_debug())
        })
    }
}

fn number<T: FromStr + PartialOrd + Display>(
    name: &str,
    cell: &str,
    allowed: RangeInclusive<T>,
) -> std::result::Result<T, String> {
    let (cell_said, least, most) = (cell.escape_debug(), allowed.start(), allowed.end());
    let refused = || format!("{name} '{cell_said}' is not a whole number from {least} to {most}");
    cell.parse().ok().filter(|n| allowed.contains(n)).ok_or_else(refused)
}

fn label(cell: &str) -> std::result::Result<Option<Label>, String> {
    if cell.is_empty() {
        return Ok(None);
    }
    let known = Label::of_name(cell);
    known.map(Some).ok_or_else(|| format!("label '{}' is not pos, neg, gray or empty", cell.escape_debug()))
}
