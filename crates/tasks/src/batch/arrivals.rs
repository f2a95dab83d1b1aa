//! The ids and the places of documents in the order of their arrival.

use std::borrow::Cow;

use arrow::array::{LargeStringArray, LargeStringBuilder};
use nearprint_storage::{in_memory, in_pool, row_number};
use rayon::prelude::*;

/// Ids in the order of their arrival, one behind the other.
#[derive(Debug, Default)]
pub(super) struct ArrivedIds {
    bytes: Vec<u8>,
    pub(super) ends: Vec<u64>,
}

impl ArrivedIds {
    pub(super) fn push(&mut self, id: &str) {
        self.bytes.extend_from_slice(id.as_bytes());
        self.ends.push(self.bytes.len() as u64);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub(super) fn get(&self, at: u32) -> &[u8] {
        let at = at as usize;
        let start = if at == 0 { 0 } else { in_memory(self.ends[at - 1]) };
        &self.bytes[start..in_memory(self.ends[at])]
    }

    pub(super) fn text(&self, at: u32) -> Cow<'_, str> {
        String::from_utf8_lossy(self.get(at))
    }

    /// Orders arrivals by id: by the eight bytes after the prefix that all ids share and, if these are equal, by the
    /// whole id.
    pub(super) fn order(&self) -> Vec<u32> {
        let n = row_number(self.ends.len());
        let shared = (1..n).fold(if n == 0 { 0 } else { self.get(0).len() }, |shared, at| {
            let both = self.get(0)[..shared].iter().zip(self.get(at));
            both.take_while(|(a, b)| a == b).count()
        });
        let key = |at: u32| {
            let rest = &self.get(at)[shared..];
            rest.iter().take(8).chain(&[0; 8]).take(8).fold(0u64, |key, &byte| key << 8 | u64::from(byte))
        };
        let mut order: Vec<(u64, u32)> = (0..n).map(|at| (key(at), at)).collect();
        in_pool(|| order.par_sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| self.get(a.1).cmp(self.get(b.1)))));
        order.into_iter().map(|(_, at)| at).collect()
    }

    pub(super) fn take(&self, order: &[u32]) -> LargeStringArray {
        let mut taken = LargeStringBuilder::with_capacity(order.len(), self.bytes.len());
        order.iter().for_each(|&at| taken.append_value(self.text(at)));
        taken.finish()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes.len() + self.ends.len() * 8
    }
}

/// The places of documents, as stretches of consecutive rows.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// (first document, its file, its row) of each stretch.
    runs: Vec<(u32, u32, u64)>,
}

impl Places {
    pub(super) fn push(&mut self, document: u32, file: u32, row: u64) {
        debug_assert!(
            self.runs.last().is_none_or(|&(before, ..)| before < document),
            "documents are numbered as they come"
        );
        let goes_on =
            |&(first, in_file, from): &(u32, u32, u64)| in_file == file && from + u64::from(document - first) == row;
        if !self.runs.last().is_some_and(goes_on) {
            self.runs.push((document, file, row));
        }
    }

    /// Returns the file and the row of a document.
    pub(super) fn of(&self, document: u32) -> (u32, u64) {
        // The first document begins the first stretch.
        let next = self.runs.partition_point(|&(first, ..)| first <= document);
        debug_assert!(next > 0, "the place of a document is asked for after it came");
        let (first, file, row) = self.runs[next - 1];
        (file, row + u64::from(document - first))
    }
}
