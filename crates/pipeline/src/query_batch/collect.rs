//! Fingerprinted documents to the batch: which rows are documents, and in what order.

use std::collections::BTreeSet;

use arrow::array::{Array, AsArray, LargeStringArray, RecordBatch, UInt8Array, UInt32Array, UInt64Array};
use arrow::compute::{SortOptions, cast, sort_to_indices, take};
use arrow::datatypes::{DataType, UInt8Type, UInt32Type, UInt64Type};

use super::{FILE, KeepKey, QueryBatch, ROW, internal};
use crate::columns::Columns;
use crate::error::{PipelineError, Result};
use crate::quarantine::{BadReason, BadRow, DuplicateIds};
use crate::schema::DOC_ID;

/// Column of a fingerprinted document: why its row is none, as [`BadReason::code`] has it. Where it is missing all rows with
/// an id are documents.
pub(crate) const BAD: &str = "bad";

/// Rows of repeated ids that a message names.
const MAX_EXAMPLES: usize = 10;

/// Which rows are left out.
#[derive(Debug, Default)]
pub(crate) struct CollectPolicy {
    pub(crate) on_duplicate_id: DuplicateIds,
    /// Positions of files that count as not there at all.
    pub(crate) left_out: BTreeSet<u32>,
}

/// Where the rows come from, and what is wrong with them.
struct Rows<'a> {
    ids: &'a LargeStringArray,
    files: &'a UInt32Array,
    rows: &'a UInt64Array,
    bad: Option<&'a UInt8Array>,
}

impl Rows<'_> {
    fn place(&self, at: u32) -> (u32, u64) {
        (self.files.value(at as usize), self.rows.value(at as usize))
    }

    fn reason(&self, at: u32) -> Option<BadReason> {
        let known = self.bad.and_then(|codes| BadReason::of_code(codes.value(at as usize)));
        known.or_else(|| self.ids.is_null(at as usize).then_some(BadReason::NullId))
    }

    fn bad_row(&self, at: u32, reason: BadReason) -> BadRow {
        let (file, row) = self.place(at);
        let id = self.ids.is_valid(at as usize).then(|| self.ids.value(at as usize).to_owned());
        BadRow { file, row, reason, id }
    }

    fn same_id(&self, a: u32, b: u32) -> bool {
        self.ids.value(a as usize) == self.ids.value(b as usize)
    }
}

impl QueryBatch {
    /// From batches of fingerprinted documents, in any order. `name_of` gives the file a message is to name.
    ///
    /// # Errors
    /// Repeated ids, unless the first of each is kept.
    pub(crate) fn collect(
        batches: &[RecordBatch],
        keys: &[KeepKey],
        policy: &CollectPolicy,
        name_of: impl Fn(u32) -> String,
    ) -> Result<Self> {
        let Some(first) = batches.first() else {
            return Ok(Self::empty());
        };
        let all = arrow::compute::concat_batches(&first.schema(), batches).map_err(internal)?;
        let columns = Columns { batch: &all, file: "fingerprinted documents" };
        let ids = cast(columns.strings(DOC_ID)?, &DataType::LargeUtf8).map_err(internal)?;
        let bad = all.column_by_name(BAD).and_then(|codes| codes.as_primitive_opt::<UInt8Type>());
        let (files, rows) = (columns.primitive::<UInt32Type>(FILE)?, columns.primitive::<UInt64Type>(ROW)?);
        let rows = Rows { ids: ids.as_string(), files, rows, bad };
        let order = sort_to_indices(&ids, Some(SortOptions { descending: false, nulls_first: true }), None)
            .map_err(internal)?;
        let mut documents = Vec::with_capacity(order.len());
        let mut bad_rows = Vec::new();
        for &at in order.values().iter().filter(|&&at| !policy.left_out.contains(&rows.place(at).0)) {
            match rows.reason(at) {
                Some(reason) => bad_rows.push(rows.bad_row(at, reason)),
                None => documents.push(at),
            }
        }
        let repeats = without_repeats(&mut documents, &rows);
        if policy.on_duplicate_id == DuplicateIds::Fail {
            refuse_repeats(&repeats, &rows, name_of)?;
        }
        bad_rows.extend(repeats.iter().map(|&(_, at)| rows.bad_row(at, BadReason::RepeatedId)));
        bad_rows.sort_unstable();
        let documents = UInt32Array::from(documents);
        let ids = take(&ids, &documents, None).map_err(internal)?.as_string::<i64>().clone();
        let mut batch = Self { ids, bad_rows, ..Self::empty() };
        batch.fill(&columns, &documents, keys)?;
        Ok(batch)
    }
}

/// Leaves one row of each id, the first by file and row, and gives the others, each after the one that stays.
fn without_repeats(documents: &mut Vec<u32>, rows: &Rows<'_>) -> Vec<(u32, u32)> {
    let mut repeats = Vec::new();
    let mut kept: Vec<u32> = Vec::with_capacity(documents.len());
    for group in documents.chunk_by_mut(|&a, &b| rows.same_id(a, b)) {
        if group.len() > 1 {
            group.sort_unstable_by_key(|&at| rows.place(at));
        }
        if let Some((&mut first, others)) = group.split_first_mut() {
            kept.push(first);
            repeats.extend(others.iter().map(|&other| (first, other)));
        }
    }
    *documents = kept;
    repeats
}

fn refuse_repeats(repeats: &[(u32, u32)], rows: &Rows<'_>, name_of: impl Fn(u32) -> String) -> Result<()> {
    if repeats.is_empty() {
        return Ok(());
    }
    let place = |at: u32| {
        let (file, row) = rows.place(at);
        format!("{} row {row}", name_of(file))
    };
    let example = |&(first, other): &(u32, u32)| {
        let id: String = rows.ids.value(first as usize).chars().take(100).collect();
        format!("'{}' in {} and {}", id.escape_debug(), place(first), place(other))
    };
    let examples: Vec<String> = repeats.iter().take(MAX_EXAMPLES).map(example).collect();
    Err(PipelineError::RepeatedIds { n: repeats.len() as u64, examples: examples.join("; ") })
}
