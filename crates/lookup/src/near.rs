//! The rows that are near a query in one of its keys.

use std::sync::Arc;

use nearprint_fault::{Fault, Result};
use nearprint_join::{Kernel, near_values};
use nearprint_storage::{blocking, row_number};
use nearprint_store::Store;

use crate::budget::Budget;
use crate::counts::Counts;
use crate::nights::{Memory, OpenRun};

/// A row that is near a query in one of its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Near {
    /// The position of the night.
    pub night: usize,
    /// The row of its fingerprints.
    pub row: u32,
    /// The number of the query.
    pub query: u32,
    /// The distance of the fingerprints, if these are near; `None` for a row that a word has found.
    pub distance: Option<u32>,
}

/// Rows that follow each other, at one distance to a query. Copies of a page are such rows: rows are in the order of
/// their fingerprints. So all copies together take the memory of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AdjacentRows {
    /// The first row.
    pub first: u32,
    /// The number of rows.
    pub n: u32,
    /// The distance of their fingerprints to the query's, as [`Near`] has it.
    pub distance: Option<u32>,
}

impl AdjacentRows {
    /// Returns one row.
    pub fn of(row: u32, distance: Option<u32>) -> Self {
        Self { first: row, n: 1, distance }
    }

    /// Takes a row, if it follows the others and has their distance. Returns whether it does.
    pub fn takes(&mut self, row: u32, distance: Option<u32>) -> bool {
        let follows = self.distance == distance && row.checked_sub(self.first) == Some(self.n);
        self.n += u32::from(follows);
        follows
    }

    /// Returns the place after the last row.
    fn end(&self) -> u64 {
        u64::from(self.first) + u64::from(self.n)
    }
}

/// Rows of a night that are near a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NearRows {
    /// The position of the night.
    pub night: usize,
    /// The rows of its fingerprints, or of its short texts.
    pub rows: AdjacentRows,
}

impl NearRows {
    /// Adds a row to those that were found before it.
    pub fn add(found: &mut Vec<Self>, night: usize, row: u32, distance: Option<u32>) {
        if !found.last_mut().is_some_and(|last| last.night == night && last.rows.takes(row, distance)) {
            found.push(Self { night, rows: AdjacentRows::of(row, distance) });
        }
    }

    /// Returns each of the rows, as near to query 0.
    pub fn each(self) -> impl Iterator<Item = Near> {
        let Self { night, rows: AdjacentRows { first, n, distance } } = self;
        debug_assert!(n > 0 && first.checked_add(n - 1).is_some(), "rows have 32-bit numbers, and a stretch has a row");
        (0..n).map(move |at| Near { night, row: first + at, query: 0, distance })
    }
}

/// Returns each row that several keys have found once, sorted, with the distance of the fingerprints where these are near.
/// The fingerprints have found a row at most once, and the words may have found it any number of times.
pub fn each_once(mut found: Vec<NearRows>) -> Vec<NearRows> {
    found.sort_unstable();
    let (by_words, by_fingerprints): (Vec<NearRows>, Vec<NearRows>) =
        found.into_iter().partition(|near| near.rows.distance.is_none());
    let (mut once, mut known) = (Vec::with_capacity(by_fingerprints.len()), by_fingerprints.iter().peekable());
    // The rows of a night below this one are done.
    let mut done = (0, 0);
    for NearRows { night, rows } in by_words {
        let mut first = if done.0 == night { done.1.max(u64::from(rows.first)) } else { u64::from(rows.first) };
        while first < rows.end() {
            while known.next_if(|near| (near.night, near.rows.end()) <= (night, first)).is_some() {}
            let next = known.peek().filter(|near| near.night == night);
            if let Some(near) = next.filter(|near| u64::from(near.rows.first) <= first) {
                first = near.rows.end();
                continue;
            }
            let end = next.map_or(rows.end(), |near| rows.end().min(u64::from(near.rows.first)));
            // Both are rows, of 32 bits, or the place after one.
            #[expect(clippy::cast_possible_truncation, reason = "a night has fewer than 2^32 rows")]
            let (row, n) = (first as u32, (end - first) as u32);
            once.push(NearRows { night, rows: AdjacentRows { first: row, n, distance: None } });
            first = end;
        }
        done = (night, first);
    }
    once.extend(by_fingerprints);
    once.sort_unstable();
    once
}

/// The number of fingerprints that are compared on the thread of the request, in about 30 microseconds. More of them are
/// compared on a thread that nobody else waits for.
const INLINE_ROWS: usize = 1 << 16;

/// What the rows of a night are compared with.
#[derive(Debug, Clone, Copy)]
pub enum Asked<'a> {
    /// Their fingerprints with this one.
    Fingerprint(u64),
    /// The first words of their sketches with these.
    Words(&'a [u64]),
}

/// Compares all rows of a night's run with a query, and returns those that are near. By a fingerprint they ascend and are
/// there once; by words they may repeat.
///
/// # Errors
/// The run is damaged or cannot be read.
pub async fn scan(
    (night, run): (usize, &OpenRun),
    store: &Store,
    (memory, reads): (&Arc<Memory>, &Budget),
    asked: Asked<'_>,
    (kernel, max_distance): (Kernel, u32),
    counts: &Counts,
) -> Result<Vec<NearRows>> {
    if run.night.run.n_fingerprints == 0 {
        return Ok(Vec::new());
    }
    let near = async |values: Arc<Vec<u64>>, query: u64, before: usize| {
        let is_short = values.len() <= INLINE_ROWS;
        let is_word = matches!(asked, Asked::Words(_));
        let compare = move || {
            let (mut near, mut scratch) = (Vec::new(), Vec::new());
            near_values(kernel, &values, query, max_distance, &mut scratch, |at, distance| {
                NearRows::add(&mut near, night, row_number(before + at), (!is_word).then_some(distance));
            });
            near
        };
        if is_short { Ok(compare()) } else { blocking("query", move || Ok::<_, Fault>(compare())).await }
    };
    let mut all = Vec::new();
    match asked {
        Asked::Fingerprint(query) => {
            if let Some(values) = run.values(store, (memory, reads), counts).await? {
                return near(values, query, 0).await;
            }
            let mut before = 0;
            for group in 0..run.fingerprints(store).await?.n_row_groups() {
                let _taken = reads.take(run.row_group_bytes(store, group).await?).await?;
                let values = Arc::new(run.row_group(store, group, counts).await?);
                let n_rows = values.len();
                all.extend(near(values, query, before).await?);
                before += n_rows;
            }
        }
        Asked::Words(queries) => {
            if let Some(words) = run.words(store, (memory, reads), queries.len(), counts).await? {
                for (values, &query) in words.iter().zip(queries) {
                    all.extend(near(Arc::clone(values), query, 0).await?);
                }
                return Ok(all);
            }
            let mut before = 0;
            for group in 0..run.fingerprints(store).await?.n_row_groups() {
                let _taken = reads.take(run.words_bytes(store, group, queries.len()).await?).await?;
                let words = run.words_of_group(store, group, queries.len(), counts).await?;
                let n_rows = words.first().map_or(0, Vec::len);
                for (values, &query) in words.into_iter().zip(queries) {
                    all.extend(near(Arc::new(values), query, before).await?);
                }
                before += n_rows;
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{AdjacentRows, NearRows, each_once};

    proptest! {
        #[test]
        fn rows_that_several_keys_have_found_are_there_once(
            by_words in proptest::collection::vec((0..2usize, 0..60u32, 1..12u32), 0..12),
            by_fingerprints in proptest::collection::btree_map((0..2usize, 0..70u32), 1..4u32, 0..20),
        ) {
            let mut found: Vec<NearRows> = by_words.iter().map(|&(night, first, n)| NearRows { night, rows: AdjacentRows { first, n, distance: None } }).collect();
            for (&(night, row), &distance) in &by_fingerprints {
                NearRows::add(&mut found, night, row, Some(distance));
            }
            let mut expected: Vec<(usize, u32, Option<u32>)> = Vec::new();
            for (night, row) in (0..2usize).flat_map(|night| (0..80u32).map(move |row| (night, row))) {
                let distance = by_fingerprints.get(&(night, row)).copied();
                let by_word = by_words.iter().any(|&(of, first, n)| of == night && (first..first + n).contains(&row));
                if distance.is_some() || by_word {
                    expected.push((night, row, distance));
                }
            }
            let once: Vec<_> = each_once(found).into_iter().flat_map(NearRows::each).map(|near| (near.night, near.row, near.distance)).collect();
            prop_assert_eq!(once, expected);
        }
    }
}
