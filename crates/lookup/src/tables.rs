//! An index: the tables that answer a query by few of their pages.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use nearprint_fault::{Fault, Result};
use nearprint_join::{Kernel, Key, LookupPlan};
use nearprint_parquet::{INDEX_PAGE_ROWS, PagesRead, ParquetFile, SortedCopy};
use nearprint_storage::{of_task, row_number};
use nearprint_store::{OpenIndex, delta_kernel};
use tokio::task::JoinSet;

use crate::budget::Budget;
use crate::counts::Counts;
use crate::error::damaged_index;
use crate::near::AdjacentRows;
use crate::nights::{Memory, Room};
use crate::query::LookupOptions;

/// The tables of an index, and the pages of them that stay in memory.
#[derive(Debug)]
pub struct Tables {
    pub digest: String,
    /// The runs whose rows the tables have.
    pub runs: Vec<String>,
    /// The place after the last row of each run.
    ends: Vec<u64>,
    /// The tables of the fingerprints, and of the words that are keys.
    keys: Vec<KeyTables>,
    memory: Arc<Memory>,
    reads: Budget,
}

#[derive(Debug)]
struct KeyTables {
    plan: LookupPlan,
    tables: Vec<IndexTable>,
}

#[derive(Debug)]
struct IndexTable {
    copy: SortedCopy,
    /// The values of the pages that were read, as far as there was room for them.
    kept: Vec<OnceLock<(Vec<u64>, Room)>>,
}

/// The most pages that are read before the values in them are compared, and the bytes of each, packed and unpacked.
const PAGES_AT_ONCE: usize = 1 << 12;
const PAGE_BYTES: usize = 2 * INDEX_PAGE_ROWS * size_of::<u64>();
/// The most stretches of near rows, of a page each, whose places are read together, and the most bytes of each: its rows
/// and their places, and the two pages that may have them.
const STRETCHES_AT_ONCE: usize = 1 << 8;
const STRETCH_BYTES: usize = PAGE_BYTES + 2 * PAGE_BYTES;

impl Tables {
    /// Makes the tables of an opened index for fingerprints of `bits` bits. Returns `None` if the index permutes another
    /// number of bits: then it has none of the ranges that a query looks for.
    ///
    /// # Errors
    /// A file is not a table of an index; a distance does not fit the bits.
    pub fn of(
        index: OpenIndex,
        bits: u32,
        options: &LookupOptions,
        (memory, reads): (&Arc<Memory>, &Budget),
    ) -> Result<Option<Self>> {
        let mut end = 0;
        let ends = index.runs.iter().map(|(_, n_rows)| {
            end += n_rows;
            end
        });
        let ends: Vec<u64> = ends.collect();
        let n_rows = ends.last().copied().unwrap_or(0);
        let kernel = delta_kernel(options.kernel);
        let table = |table: &ParquetFile| {
            let copy = SortedCopy::of(table, kernel)?;
            let kept = (0..copy.n_pages()).map(|_| OnceLock::new()).collect();
            Ok::<_, Fault>(IndexTable { copy, kept })
        };
        let mut keys = Vec::new();
        for of_key in index.keys {
            let (expected, max_distance) = match of_key.key {
                Key::Fingerprint => (bits, options.keys.max_distance),
                Key::Word(word) if u32::from(word) < options.keys.words => (u64::BITS, options.keys.max_word_distance),
                Key::Word(_) => continue,
            };
            if of_key.bits != expected {
                return Ok(None);
            }
            let plan = LookupPlan::new(expected, max_distance, n_rows, INDEX_PAGE_ROWS as u64)?;
            keys.push(KeyTables { plan, tables: of_key.tables.iter().map(table).collect::<Result<_>>()? });
        }
        let runs = index.runs.into_iter().map(|(digest, _)| digest).collect();
        Ok(Some(Self { digest: index.digest, runs, ends, keys, memory: Arc::clone(memory), reads: reads.clone() }))
    }

    /// Returns whether the tables have so many words.
    pub fn have_words(&self, n: u32) -> bool {
        self.keys.len() as u64 > u64::from(n)
    }

    /// Returns each row whose fingerprint is near the first of `values`, and each row of which a word is near that of the other
    /// values, in no particular order. By the fingerprint, a row is there once. Each table has a task of its own, which ends
    /// early if nobody waits for it any more.
    ///
    /// # Errors
    /// A table is damaged or cannot be read.
    pub async fn near(self: &Arc<Self>, kernel: Kernel, values: &[u64], counts: &Counts) -> Result<Vec<IndexedRows>> {
        let mut of_tables = JoinSet::new();
        for (key, (of_key, &value)) in self.keys.iter().zip(values).enumerate() {
            for table in 0..of_key.plan.n_tables() {
                let tables = Arc::clone(self);
                of_tables.spawn(async move { tables.near_in(kernel, (key, table), value).await });
            }
        }
        let mut near = Vec::new();
        while let Some(ended) = of_tables.join_next().await {
            let (of_table, read) = of_task("query", ended)?;
            counts.read(read.pages, read.bytes);
            near.extend(of_table);
        }
        Ok(near)
    }

    /// Returns the number of pages in which a query looks, by its fingerprint and by words.
    pub fn n_pages(&self, values: &[u64]) -> usize {
        let of_key = |(KeyTables { plan, tables }, &value): (&KeyTables, &u64)| -> usize {
            let of_table =
                |(number, table): (usize, &IndexTable)| table.copy.pages_in(&plan.ranges(number, value)).len();
            tables.iter().enumerate().take(plan.n_tables()).map(of_table).sum()
        };
        self.keys.iter().zip(values).map(of_key).sum()
    }

    async fn near_in(
        &self,
        kernel: Kernel,
        (key, number): (usize, usize),
        query: u64,
    ) -> Result<(Vec<IndexedRows>, PagesRead)> {
        let KeyTables { plan, tables } = &self.keys[key];
        let table = &tables[number];
        let pages = table.copy.pages_in(&plan.ranges(number, query));
        debug_assert!(pages.last().is_none_or(|&page| page < table.kept.len()), "each page has a place to be kept");
        let (mut found, mut scratch) = (Vec::new(), Vec::new());
        let mut missing = Vec::new();
        let mut compare = |page: usize, values: &[u64]| {
            let first = table.copy.first_row(page);
            plan.near(kernel, number, values, query, &mut scratch, |at, distance| {
                RowsOfPage::add(&mut found, first, first + at as u64, distance);
            });
        };
        for page in pages {
            match table.kept[page].get() {
                Some((values, _)) => compare(page, values),
                None => missing.push(page),
            }
        }
        let mut read = PagesRead::default();
        for pages in missing.chunks(self.at_once(PAGES_AT_ONCE, PAGE_BYTES)) {
            let _taken = self.reads.take(PAGE_BYTES * pages.len()).await?;
            for (&page, values) in pages.iter().zip(table.copy.permuted(pages, &mut read).await?) {
                compare(page, &values);
                if let Some(room) = self.memory.take(values.len() * size_of::<u64>()) {
                    // Another query may have been faster.
                    let _ = table.kept[page].set((values, room));
                }
            }
        }
        found.sort_unstable_by_key(|stretch| stretch.rows.start);
        let mut near = Vec::new();
        for stretches in found.chunks(self.at_once(STRETCHES_AT_ONCE, STRETCH_BYTES)) {
            let _taken = self.reads.take(STRETCH_BYTES * stretches.len()).await?;
            let rows: Vec<u64> = stretches.iter().flat_map(|stretch| stretch.rows.clone()).collect();
            let places = table.copy.places(&rows, &mut read).await?;
            let distances = stretches.iter().flat_map(|stretch| stretch.rows.clone().map(|_| stretch.distance));
            for (place, distance) in places.into_iter().zip(distances) {
                let (run, row) = self.row_at(place)?;
                IndexedRows::add(&mut near, run, row, (key == 0).then_some(distance));
            }
        }
        Ok((near, read))
    }

    /// Returns how many things of so many bytes are read at once.
    fn at_once(&self, most: usize, bytes: usize) -> usize {
        most.min(self.reads.bytes() / 4 / bytes).max(1)
    }

    /// Returns the position of the run and its row that have a place.
    fn row_at(&self, place: u64) -> Result<(usize, u32)> {
        let run = self.ends.partition_point(|&end| end <= place);
        let first = run.checked_sub(1).map_or(0, |before| self.ends[before]);
        let row = usize::try_from(place - first).ok().filter(|_| run < self.ends.len());
        let Some(row) = row else {
            let reason = format!("the index {} names the place {place}, which no run has", self.digest);
            return Err(damaged_index(reason));
        };
        Ok((run, row_number(row)))
    }
}

/// Rows of a run of an index that are near a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexedRows {
    /// The position of the run in [`Tables::runs`].
    pub run: usize,
    /// The rows of its fingerprints.
    pub rows: AdjacentRows,
}

impl IndexedRows {
    fn add(found: &mut Vec<Self>, run: usize, row: u32, distance: Option<u32>) {
        if !found.last_mut().is_some_and(|last| last.run == run && last.rows.takes(row, distance)) {
            found.push(Self { run, rows: AdjacentRows::of(row, distance) });
        }
    }
}

/// Rows of one page of a table that follow each other, at one distance to a query.
struct RowsOfPage {
    rows: Range<u64>,
    distance: u32,
}

impl RowsOfPage {
    /// Adds a row of the page that begins with the row `first`.
    fn add(found: &mut Vec<Self>, first: u64, row: u64, distance: u32) {
        let follows = |last: &&mut Self| last.rows.start >= first && (last.rows.end, last.distance) == (row, distance);
        match found.last_mut().filter(follows) {
            Some(last) => last.rows.end += 1,
            None => found.push(Self { rows: row..row + 1, distance }),
        }
    }
}
