//! Merging the sorted fingerprints of several runs into one order. A window of each run is read at a time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fmt::{Display, Formatter};
use std::ops::{Range, RangeInclusive};

use arrow::datatypes::UInt64Type;
use futures::{StreamExt, TryStreamExt};
use nearprint_fault::{Fault, Result};
use nearprint_parquet::schema::FINGERPRINT;
use nearprint_parquet::{Columns, ParquetFile, Read};
use nearprint_storage::{in_memory, row_number};
use parquet::arrow::arrow_reader::RowSelection;
use parquet::file::page_index::column_index::ColumnIndexMetaData;

use crate::error::damaged;

/// A fingerprint and the place of its document. The order of these values is the order of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MergedRow {
    pub fingerprint: u64,
    /// The position of the run among the runs that are merged.
    pub run: u32,
    /// The row in the run's fingerprints.
    pub row: u32,
}

impl Display for MergedRow {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "fingerprint {:016x} of row {} of run {}", self.fingerprint, self.row, self.run)
    }
}

/// The fingerprints of a run, and the ranges of fingerprints in its pages.
#[derive(Debug)]
pub struct SortedRun {
    ordinal: u32,
    parquet: ParquetFile,
    pages: Vec<Page>,
}

/// A page of the `fingerprint` column.
#[derive(Debug, Clone)]
struct Page {
    rows: Range<u64>,
    min: u64,
    max: u64,
}

impl SortedRun {
    pub fn new(ordinal: u32, parquet: ParquetFile) -> Self {
        // Without an index, a page may hold any fingerprint.
        let whole = || vec![Page { rows: 0..parquet.n_rows(), min: 0, max: u64::MAX }];
        let pages = pages(&parquet).unwrap_or_else(whole);
        Self { ordinal, parquet, pages }
    }

    /// Returns an upper bound of the fingerprints, which is the largest one if the pages have an index.
    pub fn max(&self) -> u64 {
        self.pages.last().map_or(0, |page| page.max)
    }

    /// Returns a range of rows that includes all fingerprints of `range`, and perhaps some others.
    fn rows_about(&self, range: &RangeInclusive<u64>) -> Range<u64> {
        let from = self.pages.partition_point(|page| page.max < *range.start());
        let to = self.pages.partition_point(|page| page.min <= *range.end());
        match self.pages.get(from..to) {
            Some([first, .., last]) => first.rows.start..last.rows.end,
            Some([only]) => only.rows.clone(),
            _ => 0..0,
        }
    }
}

/// Returns the pages of the `fingerprint` column, or `None` if the file has no index of them.
fn pages(parquet: &ParquetFile) -> Option<Vec<Page>> {
    let footer = parquet.footer();
    let columns = footer.file_metadata().schema_descr();
    let column = (0..columns.num_columns()).find(|&i| columns.column(i).name() == FINGERPRINT)?;
    let mut pages = Vec::new();
    for group in 0..parquet.n_row_groups() {
        let ColumnIndexMetaData::INT64(index) = footer.column_index()?.get(group)?.get(column)? else {
            return None;
        };
        let first_row = parquet.rows_before(group);
        let end = first_row + parquet.row_group_rows(group);
        let located = footer.offset_index()?.get(group)?.get(column)?.page_locations();
        let starts = located.iter().map(|at| u64::try_from(at.first_row_index).ok());
        let starts: Vec<u64> = starts.collect::<Option<_>>()?;
        for (i, start) in starts.iter().enumerate() {
            let rows = first_row + start..starts.get(i + 1).map_or(end, |next| first_row + next);
            let (min, max) = (index.min_value(i)?.cast_unsigned(), index.max_value(i)?.cast_unsigned());
            pages.push(Page { rows, min, max });
        }
    }
    Some(pages)
}

/// The number of fingerprints that the windows of one merge hold together. They take 32 MiB, and about as much again
/// while they are decoded.
const WINDOWS_ROWS: u64 = 4 << 20;
/// The number of rows in a page. With smaller windows, pages would be read twice.
const PAGE_ROWS: u64 = 4096;
/// The number of runs whose first windows are read at the same time.
const RUNS_AT_ONCE: usize = 8;

/// The rows of some runs whose fingerprints are in a range, in the order of a segment. The memory holds one window of
/// each run.
pub struct Merge {
    /// The next row of each run that still has rows, and the position of the run's cursor.
    heads: BinaryHeap<Reverse<(MergedRow, usize)>>,
    cursors: Vec<Cursor>,
}

impl Merge {
    /// Opens a merge, and reads the first window of each run.
    ///
    /// # Errors
    /// A run is damaged or cannot be read.
    pub async fn open(runs: &[SortedRun], range: RangeInclusive<u64>) -> Result<Self> {
        let n_runs = runs.len().max(1) as u64;
        let window_rows = (WINDOWS_ROWS / n_runs / PAGE_ROWS).max(1) * PAGE_ROWS;
        let cursors = runs.iter().map(|run| Cursor::new(run, range.clone(), window_rows));
        let read = |mut cursor: Cursor| async move {
            let head = cursor.read_window().await?;
            Ok::<_, Fault>((cursor, head))
        };
        let reading: Vec<_> = cursors.map(read).collect();
        let opened: Vec<(Cursor, Option<MergedRow>)> =
            futures::stream::iter(reading).buffered(RUNS_AT_ONCE).try_collect().await?;
        let (cursors, first): (Vec<Cursor>, Vec<Option<MergedRow>>) = opened.into_iter().unzip();
        let heads = first.into_iter().enumerate().filter_map(|(i, head)| head.map(|row| Reverse((row, i)))).collect();
        Ok(Self { heads, cursors })
    }

    /// Returns the next row, or `None` at the end.
    ///
    /// # Errors
    /// A run is damaged or cannot be read.
    pub async fn next(&mut self) -> Result<Option<MergedRow>> {
        let (row, i) = {
            let Some(mut head) = self.heads.peek_mut() else {
                return Ok(None);
            };
            let Reverse((row, i)) = *head;
            if let Some(next) = self.cursors[i].next_in_window() {
                debug_assert!(next > row, "a run ascends: the order of a window is checked when it is read");
                head.0.0 = next;
                return Ok(Some(row));
            }
            PeekMut::pop(head);
            (row, i)
        };
        if let Some(next) = self.cursors[i].read_window().await? {
            self.heads.push(Reverse((next, i)));
        }
        Ok(Some(row))
    }
}

/// The position of a merge in a run.
struct Cursor {
    run: u32,
    parquet: ParquetFile,
    range: RangeInclusive<u64>,
    window_rows: u64,
    /// The rows that are not read yet.
    ahead: Range<u64>,
    /// The fingerprints that were read, up to the end of the merge's range. Those from `at` on have not been returned
    /// yet.
    window: Vec<u64>,
    at: usize,
    /// The row of the window's first fingerprint in the run.
    first_row: u64,
    /// The last fingerprint that was read.
    last: u64,
}

impl Cursor {
    fn new(run: &SortedRun, range: RangeInclusive<u64>, window_rows: u64) -> Self {
        Self {
            run: run.ordinal,
            parquet: run.parquet.clone(),
            ahead: run.rows_about(&range),
            range,
            window_rows,
            window: Vec::new(),
            at: 0,
            first_row: 0,
            last: 0,
        }
    }

    fn next_in_window(&mut self) -> Option<MergedRow> {
        let fingerprint = *self.window.get(self.at)?;
        let row = row_number(in_memory(self.first_row) + self.at);
        self.at += 1;
        Some(MergedRow { fingerprint, run: self.run, row })
    }

    /// Reads the next window that has fingerprints in range, and returns its first row.
    async fn read_window(&mut self) -> Result<Option<MergedRow>> {
        while !self.ahead.is_empty() {
            let rows = self.ahead.start..self.ahead.end.min(self.ahead.start + self.window_rows);
            self.ahead.start = rows.end;
            if rows.end > u64::from(u32::MAX) {
                let reason = "it has more rows than a run can have";
                return Err(damaged(&self.parquet.file.url, reason));
            }
            self.window = read(&self.parquet, &rows).await?;
            self.check_order(rows.start)?;
            // The first and the last page may also have rows of the neighbouring ranges.
            let from = self.window.partition_point(|fingerprint| fingerprint < self.range.start());
            self.window.truncate(self.window.partition_point(|fingerprint| fingerprint <= self.range.end()));
            debug_assert!(from <= self.window.len(), "the rows of a range end no earlier than they begin");
            (self.at, self.first_row) = (from, rows.start);
            if let Some(row) = self.next_in_window() {
                return Ok(Some(row));
            }
        }
        self.window = Vec::new();
        Ok(None)
    }

    fn check_order(&mut self, first_row: u64) -> Result<()> {
        for (row, &fingerprint) in (first_row + 1..).zip(&self.window) {
            if fingerprint < self.last {
                return Err(damaged(&self.parquet.file.url, format!("row {row} is out of order")));
            }
            self.last = fingerprint;
        }
        Ok(())
    }
}

async fn read(parquet: &ParquetFile, rows: &Range<u64>) -> Result<Vec<u64>> {
    let at = in_memory;
    let selected =
        RowSelection::from_consecutive_ranges(std::iter::once(at(rows.start)..at(rows.end)), at(parquet.n_rows()));
    let mut batches = parquet.stream(Read { rows: Some(selected), ..parquet.whole(&[FINGERPRINT]) })?;
    let mut fingerprints = Vec::with_capacity(at(rows.end - rows.start));
    while let Some(batch) = batches.try_next().await? {
        let columns = Columns { batch: &batch, file: &parquet.file.url };
        fingerprints.extend_from_slice(columns.primitive::<UInt64Type>(FINGERPRINT)?.values());
    }
    if fingerprints.len() == at(rows.end - rows.start) {
        return Ok(fingerprints);
    }
    let reason = format!("gave {} of {} rows", fingerprints.len(), rows.end - rows.start);
    Err(damaged(&parquet.file.url, reason))
}
