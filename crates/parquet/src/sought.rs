//! The rows of a file that may have a value, by its page index. Nothing but the footer is read for it.

use std::ops::Range;

use parquet::arrow::arrow_reader::RowSelection;
use parquet::file::page_index::column_index::ColumnIndexMetaData;

use crate::columns::BATCH_ROWS;
use crate::parquet_file::{ParquetFile, Read, count};

/// A value that is looked for in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sought<'a> {
    /// A number of a column of unsigned integers of 64 bits.
    Number(u64),
    /// A text.
    Text(&'a str),
}

impl ParquetFile {
    /// Returns a request for the rows whose pages may have one of some values, by the bounds of the pages of `column`: for
    /// all of a row group without such bounds. Rows that have none of the values are among them. Returns `None` if no page
    /// may have one.
    ///
    /// ```
    /// use nearprint_parquet::{ParquetFile, Sought};
    /// use nearprint_storage::Storage;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let url = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sample_data/documents/dt=2026-11-19/part-00000.parquet");
    /// let parquet = ParquetFile::open(Storage::default().folder(url)?.file().await?).await?;
    /// // The file has no page index, so any of its rows may have the id.
    /// assert!(parquet.that_may_have("id", &[Sought::Text("zzz")], &["id"]).is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub fn that_may_have<'a>(&self, column: &str, values: &[Sought<'_>], columns: &'a [&'a str]) -> Option<Read<'a>> {
        let (mut row_groups, mut ranges, mut before) = (Vec::new(), Vec::new(), 0);
        for group in 0..self.n_row_groups() {
            let of_group = self.rows_that_may_have(group, column, values);
            if !of_group.is_empty() {
                row_groups.push(group);
                ranges.extend(of_group.into_iter().map(|rows| before + rows.start..before + rows.end));
                before += count(self.row_group_rows(group));
            }
        }
        let rows = Some(RowSelection::from_consecutive_ranges(ranges.into_iter(), before));
        (!row_groups.is_empty()).then_some(Read { row_groups, columns, rows, batch_rows: BATCH_ROWS, bytes_read: None })
    }

    /// Returns a request for the rows in whose neighbourhood a text is or would be, of a file that is sorted by `column`: those
    /// of the last page that begins with no later text, and those of the next page. Returns `None` if the file has no row, or
    /// no such bounds.
    pub fn around<'a>(&self, column: &str, text: &str, columns: &'a [&'a str]) -> Option<Read<'a>> {
        let mut pages = Vec::new();
        for group in 0..self.n_row_groups() {
            let leaf = self.leaf(group, column)?;
            let (located, bounds) = (self.page_locations(group, leaf)?, self.page_bounds(group, leaf)?);
            let ColumnIndexMetaData::BYTE_ARRAY(bounds) = bounds else { return None };
            pages.extend((0..located.len()).map(|page| (group, page, bounds.min_value(page))));
        }
        let later = pages.partition_point(|(.., least)| least.is_none_or(|least| least <= text.as_bytes()));
        let chosen = pages.get(later.saturating_sub(1)..(later + 1).min(pages.len()))?;
        let (mut row_groups, mut ranges, mut before) = (Vec::new(), Vec::new(), 0);
        for of_group in chosen.chunk_by(|a, b| a.0 == b.0) {
            let group = of_group.first()?.0;
            let leaf = self.leaf(group, column)?;
            let rows = of_group.iter().map(|(_, page, _)| self.page_rows(group, leaf, *page));
            ranges.extend(rows.map(|rows| before + rows.start..before + rows.end));
            row_groups.push(group);
            before += count(self.row_group_rows(group));
        }
        let rows = Some(RowSelection::from_consecutive_ranges(ranges.into_iter(), before));
        (!row_groups.is_empty()).then_some(Read { row_groups, columns, rows, batch_rows: BATCH_ROWS, bytes_read: None })
    }

    fn leaf(&self, group: usize, column: &str) -> Option<usize> {
        let columns = self.footer().row_group(group).columns();
        columns.iter().position(|chunk| chunk.column_path().string() == column)
    }

    fn page_bounds(&self, group: usize, leaf: usize) -> Option<&ColumnIndexMetaData> {
        self.footer().column_index()?.get(group)?.get(leaf)
    }

    /// Returns the rows of a page, counted through its row group.
    fn page_rows(&self, group: usize, leaf: usize, page: usize) -> Range<usize> {
        let n_rows = count(self.row_group_rows(group));
        let located = self.page_locations(group, leaf).unwrap_or(&[]);
        // The index was checked: its rows ascend from 0.
        let first = |page: usize| {
            located.get(page).map_or(n_rows, |at| usize::try_from(at.first_row_index).unwrap_or(n_rows).min(n_rows))
        };
        first(page)..first(page + 1)
    }

    /// Returns ranges of rows of a row group, ascending, outside of which no row has one of the values.
    fn rows_that_may_have(&self, group: usize, column: &str, values: &[Sought<'_>]) -> Vec<Range<usize>> {
        let n_rows = count(self.row_group_rows(group));
        let leaf = self.leaf(group, column);
        let indexed =
            leaf.and_then(|leaf| Some((leaf, self.page_locations(group, leaf)?, self.page_bounds(group, leaf)?)));
        let Some((leaf, located, bounds)) = indexed else {
            return Some(0..n_rows).filter(|rows| !rows.is_empty()).into_iter().collect();
        };
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for page in (0..located.len()).filter(|&page| values.iter().any(|value| may_have(bounds, page, value))) {
            let rows = self.page_rows(group, leaf, page);
            match ranges.last_mut().filter(|last| last.end == rows.start) {
                Some(last) => last.end = rows.end,
                None => ranges.push(rows),
            }
        }
        ranges
    }
}

/// Returns whether a page may have a value. A page without bounds may have any.
fn may_have(bounds: &ColumnIndexMetaData, page: usize, value: &Sought<'_>) -> bool {
    match (bounds, value) {
        (ColumnIndexMetaData::INT64(bounds), Sought::Number(value)) => {
            let (least, most) = (bounds.min_value(page), bounds.max_value(page));
            least.is_none_or(|least| least.cast_unsigned() <= *value)
                && most.is_none_or(|most| *value <= most.cast_unsigned())
        }
        // Long texts have shorter bounds, which are no narrower than they.
        (ColumnIndexMetaData::BYTE_ARRAY(bounds), Sought::Text(value)) => {
            let (least, most) = (bounds.min_value(page), bounds.max_value(page));
            least.is_none_or(|least| least <= value.as_bytes()) && most.is_none_or(|most| value.as_bytes() <= most)
        }
        _ => true,
    }
}
