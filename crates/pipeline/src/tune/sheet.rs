//! The sheet as a file: CSV that spreadsheets open and write back.

use crate::error::{PipelineError, Result};
use crate::evaluate::Label;

/// A row to be labelled.
#[derive(Debug, Clone)]
pub(super) struct SheetPair {
    pub(super) distance: u8,
    pub(super) sketch_distance: Option<u16>,
    /// Pairs at this distance, sampled or not.
    pub(super) n_pairs: u64,
    pub(super) id_a: String,
    pub(super) id_b: String,
    pub(super) text_a: String,
    pub(super) text_b: String,
}

/// A row as it comes back.
#[derive(Debug, Clone)]
pub(super) struct LabelledRow {
    pub(super) distance: u8,
    pub(super) sketch_distance: Option<u16>,
    pub(super) n_pairs: u64,
    pub(super) id_a: String,
    pub(super) id_b: String,
    /// None where it was left empty.
    pub(super) label: Option<Label>,
}

const HEADER: [&str; 8] = ["distance", "sketch_distance", "n_pairs", "id_a", "id_b", "text_a", "text_b", "label"];

/// Some spreadsheets take a file for UTF-8 only where it begins with this.
const BYTE_ORDER_MARK: &str = "\u{feff}";

pub(super) fn write(pairs: &[SheetPair]) -> Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(BYTE_ORDER_MARK.as_bytes().to_vec());
    let internal = |e: csv::Error| PipelineError::Internal { stage: "sheet", reason: e.to_string() };
    writer.write_record(HEADER).map_err(internal)?;
    for pair in pairs {
        let sketch_distance = pair.sketch_distance.map_or(String::new(), |d| d.to_string());
        let cells = [&pair.id_a, &pair.id_b, &pair.text_a, &pair.text_b].map(|text| defused(text));
        let numbers = [pair.distance.to_string(), sketch_distance, pair.n_pairs.to_string()];
        writer.write_record(numbers.iter().chain(&cells).chain([&String::new()])).map_err(internal)?;
    }
    writer.into_inner().map_err(|e| PipelineError::Internal { stage: "sheet", reason: e.to_string() })
}

const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// A cell that a spreadsheet would take for a formula gets an apostrophe before it.
fn defused(text: &str) -> String {
    if text.starts_with(FORMULA) { format!("'{text}") } else { text.to_owned() }
}

fn as_it_was(cell: &str) -> &str {
    cell.strip_prefix('\'').filter(|rest| rest.starts_with(FORMULA)).unwrap_or(cell)
}

/// Reads a sheet back, also as a spreadsheet writes it: with semicolons or tabs, columns moved or added.
pub(super) fn read(file: &str, content: &[u8]) -> Result<Vec<LabelledRow>> {
    let text =
        std::str::from_utf8(content).map_err(|_| PipelineError::bad_file(file, "not UTF-8: save it as 'CSV UTF-8'"))?;
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let header = text.lines().next().unwrap_or_default();
    let delimiter = [b',', b';', b'\t'].into_iter().max_by_key(|d| header.bytes().filter(|b| b == d).count());
    let mut reader = csv::ReaderBuilder::new().delimiter(delimiter.unwrap_or(b',')).from_reader(text.as_bytes());
    let columns = Columns::of(file, reader.headers().map_err(|e| PipelineError::bad_file(file, e))?)?;
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|e| PipelineError::bad_file(file, e))?;
        let line = record.position().map_or(0, csv::Position::line);
        rows.push(columns.row(&record).map_err(|reason| bad_row(file, line, reason))?);
    }
    Ok(rows)
}

pub(super) fn bad_row(file: &str, row: u64, reason: String) -> PipelineError {
    PipelineError::BadRow { file: file.to_owned(), row, reason }
}

/// Where each column is.
struct Columns {
    distance: usize,
    sketch_distance: usize,
    n_pairs: usize,
    id_a: usize,
    id_b: usize,
    label: usize,
}

impl Columns {
    fn of(file: &str, header: &csv::StringRecord) -> Result<Self> {
        let column = |name: &str| {
            let missing = || PipelineError::MissingColumn {
                file: file.to_owned(),
                column: name.to_owned(),
                present: header.iter().map(str::to_owned).collect(),
                remedy: "keep the columns of the sheet that tune drew",
            };
            header.iter().position(|h| h.trim() == name).ok_or_else(missing)
        };
        Ok(Self {
            distance: column("distance")?,
            sketch_distance: column("sketch_distance")?,
            n_pairs: column("n_pairs")?,
            id_a: column("id_a")?,
            id_b: column("id_b")?,
            label: column("label")?,
        })
    }

    fn row(&self, record: &csv::StringRecord) -> std::result::Result<LabelledRow, String> {
        let cell = |at: usize| record.get(at).unwrap_or_default().trim();
        let not_a_number = |name: &str, at: usize| format!("{name} '{}' is not a number", cell(at).escape_debug());
        let sketch_distance = cell(self.sketch_distance);
        Ok(LabelledRow {
            distance: cell(self.distance).parse().map_err(|_| not_a_number("distance", self.distance))?,
            sketch_distance: match sketch_distance {
                "" => None,
                text => Some(text.parse().map_err(|_| not_a_number("sketch_distance", self.sketch_distance))?),
            },
            n_pairs: cell(self.n_pairs).parse().map_err(|_| not_a_number("n_pairs", self.n_pairs))?,
            id_a: as_it_was(cell(self.id_a)).to_owned(),
            id_b: as_it_was(cell(self.id_b)).to_owned(),
            label: label(cell(self.label))?,
        })
    }
}

fn label(cell: &str) -> std::result::Result<Option<Label>, String> {
    if cell.is_empty() {
        return Ok(None);
    }
    let known = Label::of_name(&cell.to_ascii_lowercase());
    known.map(Some).ok_or_else(|| format!("label '{}' is not pos, neg, gray or empty", cell.escape_debug()))
}
