//! Documents by id, each id once: which of the rows with one id stays, and which repeats of ids are faults.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt32Array, UInt64Array};
use arrow::compute::{SortColumn, interleave, lexsort_to_indices};
use nearprint_documents::{BadReason, BadRow, DuplicateIds, LENGTH, has_fetch_times, row_place};
use nearprint_fault::{ErrorKind, Fault, Result};

use super::collect::{CollectPolicy, Collecting};
use super::query_batch::defect;
use crate::file_reading::FileReading;

/// The number of rows with repeated ids that a message names.
const MAX_EXAMPLES: usize = 3;

/// Tells the fault of rows that repeat the id of another one, where nothing says which of them stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepeatedIds;

impl Collecting<'_> {
    /// Returns the arrivals in id order, without those of files that are left out. Of each id, only the row remains that the
    /// rule keeps. Returns also the number of revisits that were passed over.
    pub(super) fn order_by_id(
        &mut self,
        policy: &CollectPolicy,
        name_of: impl Fn(u32) -> String,
    ) -> Result<(Vec<u32>, u64)> {
        let mut order = self.ids.order();
        if !policy.left_out.is_empty() {
            order.retain(|&at| !policy.left_out.contains(&FileReading::from(self.places.of(at).0)));
        }
        let n_passed_revisits = self.pass_over_revisits(&mut order);
        let n_before = order.len();
        let repeats = self.without_repeats(&mut order, policy, &name_of)?;
        debug_assert_eq!(order.len() + repeats.len(), n_before, "each row stays or repeats an id");
        let (without_rule, left_out): (Vec<Repeat>, Vec<Repeat>) =
            repeats.into_iter().partition(|repeat| repeat.rule == DuplicateIds::Fail);
        if !without_rule.is_empty() {
            return Err(self.without_rule(&without_rule, policy, name_of));
        }
        if share(left_out.len(), n_before) > policy.max_repeated_ids {
            return Err(self.too_many(&left_out, n_before, policy.max_repeated_ids, name_of));
        }
        for Repeat { other, .. } in left_out {
            let ((file, row), id) = (self.places.of(other), self.ids.text(other).into_owned());
            self.bad_rows.push(BadRow { file, row, reason: BadReason::RepeatedId, id: Some(id) });
        }
        Ok((order, n_passed_revisits))
    }

    /// Takes the revisits out of the order that add nothing: where the id has another record than revisits, all of them, and
    /// otherwise all but the newest. Returns their number.
    fn pass_over_revisits(&self, order: &mut Vec<u32>) -> u64 {
        if self.revisits.is_empty() {
            return 0;
        }
        let n_before = order.len();
        let mut left = Vec::with_capacity(n_before);
        for group in order.chunk_by(|&a, &b| self.ids.get(a) == self.ids.get(b)) {
            let (revisits, others): (Vec<u32>, Vec<u32>) = group.iter().partition(|&&at| self.revisit_of(at).is_some());
            let age = |&at: &u32| (Reverse(self.newest_by.get(at).copied()), self.places.of(at));
            match others.is_empty() {
                true => left.extend(revisits.into_iter().min_by_key(age)),
                false => left.extend(others),
            }
        }
        *order = left;
        (n_before - order.len()) as u64
    }

    /// Keeps one row of each id, by the rule for it. Returns the other rows.
    fn without_repeats(
        &self,
        order: &mut Vec<u32>,
        policy: &CollectPolicy,
        name_of: impl Fn(u32) -> String,
    ) -> Result<Vec<Repeat>> {
        debug_assert!(order.is_sorted_by(|&a, &b| self.ids.get(a) <= self.ids.get(b)), "equal ids stand side by side");
        let is_same = |a: &u32, b: &u32| self.ids.get(*a) == self.ids.get(*b);
        let ranks = match policy.on_duplicate_id {
            Some(DuplicateIds::KeepBest) => {
                let repeated = order.chunk_by(is_same).filter(|group| group.len() > 1).flatten();
                self.keep_ranks(&repeated.copied().collect::<Vec<u32>>())?
            }
            _ => HashMap::new(),
        };
        let mut have_times: HashMap<u32, bool> = HashMap::new();
        let mut repeats = Vec::new();
        for group in order.chunk_by_mut(is_same).filter(|group| group.len() > 1) {
            let mut has_time = |at: u32| {
                let (file, _) = self.places.of(at);
                *have_times.entry(file).or_insert_with(|| has_fetch_times(&name_of(file)))
            };
            let rule = match policy.on_duplicate_id {
                Some(rule) => rule,
                None if group.iter().all(|&at| has_time(at)) => DuplicateIds::KeepNewest,
                None => DuplicateIds::Fail,
            };
            let place = |at: u32| self.places.of(at);
            match rule {
                DuplicateIds::Fail | DuplicateIds::KeepFirst => group.sort_unstable_by_key(|&at| place(at)),
                DuplicateIds::KeepLast => group.sort_unstable_by_key(|&at| Reverse(place(at))),
                // A row without a value is older than all others.
                DuplicateIds::KeepNewest => {
                    group.sort_unstable_by_key(|&at| (Reverse(self.newest_by.get(at).copied()), place(at)));
                }
                DuplicateIds::KeepBest => group.sort_unstable_by_key(|at| ranks.get(at).copied()),
            }
            let stays = group[0];
            repeats.extend(group[1..].iter().map(|&other| Repeat { stays, other, rule }));
        }
        order.dedup_by(|b, a| is_same(a, b));
        Ok(repeats)
    }

    /// Returns the rank of each of these documents by the keep keys, then by file and row.
    fn keep_ranks(&self, documents: &[u32]) -> Result<HashMap<u32, u32>> {
        if documents.is_empty() {
            return Ok(HashMap::new());
        }
        let mut kept = self.keep.iter();
        let mut columns = Vec::with_capacity(self.keys.len() + 2);
        for key in self.keys {
            let values: ArrayRef = if key.column == LENGTH {
                let lengths = documents.iter().map(|&at| self.lengths.get(at).copied().unwrap_or(0));
                Arc::new(UInt32Array::from_iter_values(lengths))
            } else {
                let arrays = kept.next().ok_or_else(|| defect(format!("no values of the keep key {}", key.column)))?;
                values_at(arrays, documents)?
            };
            columns.push(key.sorting(values));
        }
        let (files, rows): (Vec<u32>, Vec<u64>) = documents.iter().map(|&at| self.places.of(at)).unzip();
        columns.push(SortColumn { values: Arc::new(UInt32Array::from(files)), options: None });
        columns.push(SortColumn { values: Arc::new(UInt64Array::from(rows)), options: None });
        let order = lexsort_to_indices(&columns, None).map_err(defect)?;
        Ok((0..).zip(order.values()).map(|(rank, &i)| (documents[i as usize], rank)).collect())
    }

    /// Says of some repeats which rows they are.
    fn examples(&self, repeats: &[Repeat], name_of: impl Fn(u32) -> String) -> String {
        let place = |at: u32| {
            let (file, row) = self.places.of(at);
            row_place(&name_of(file), row)
        };
        let example = |&Repeat { stays, other, .. }: &Repeat| {
            let id: String = self.ids.text(stays).chars().take(100).collect();
            format!("'{}' in {} and {}", id.escape_debug(), place(stays), place(other))
        };
        repeats.iter().take(MAX_EXAMPLES).map(example).collect::<Vec<_>>().join("; ")
    }

    fn without_rule(&self, repeats: &[Repeat], policy: &CollectPolicy, name_of: impl Fn(u32) -> String) -> Fault {
        let rows = match repeats.len() {
            1 => "1 row repeats".to_owned(),
            n => format!("{n} rows repeat"),
        };
        let reason = format!("{rows} a document id: {}", self.examples(repeats, name_of));
        let remedy = if policy.is_setting {
            "make ids unique, or say which row of an id stays: on_duplicate_id = \"keep_newest\" (by the column that newest_by \
             names), \"keep_best\" (by the keep order), \"keep_first\" or \"keep_last\" (by file path and row)"
        } else {
            "make ids unique"
        };
        Fault::new(ErrorKind::BadData, reason).remedy(remedy).about(RepeatedIds)
    }

    fn too_many(&self, repeats: &[Repeat], n_rows: usize, allowed: f64, name_of: impl Fn(u32) -> String) -> Fault {
        let reason = format!(
            "{} of {n_rows} rows repeat a document id, a larger share than max_repeated_ids = {allowed} allows: {}",
            repeats.len(),
            self.examples(repeats, name_of)
        );
        let remedy = "check that id_column is the column of the ids, or raise max_repeated_ids; 1 allows any share";
        Fault::new(ErrorKind::BadData, reason).remedy(remedy)
    }
}

/// A row that repeats the id of another one.
struct Repeat {
    /// The row that stays.
    stays: u32,
    /// The row that repeats its id.
    other: u32,
    rule: DuplicateIds,
}

#[allow(clippy::cast_precision_loss, reason = "a share of rows")]
fn share(part: usize, whole: usize) -> f64 {
    if part == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Returns the values of some documents, of arrays that have one value for each document.
fn values_at(arrays: &[ArrayRef], documents: &[u32]) -> Result<ArrayRef> {
    let mut starts = Vec::with_capacity(arrays.len());
    let mut n = 0;
    for array in arrays {
        starts.push(n);
        n += array.len();
    }
    let place = |&document: &u32| {
        let at = document as usize;
        // Of arrays that begin at the same place, all but the last are empty. The first one begins at 0.
        let array = starts.partition_point(|&start| start <= at) - 1;
        (array, at - starts[array])
    };
    let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
    interleave(&arrays, &documents.iter().map(place).collect::<Vec<_>>()).map_err(defect)
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
    use nearprint_documents::DuplicateIds;
    use nearprint_parquet::schema::{DOC_ID, FINGERPRINT};

    use super::{CollectPolicy, Collecting};
    use crate::batch::{FILE, KeepKey, LENGTH, NEWEST_BY, ROW};

    /// Rows of few ids, times, ranks and lengths as (id, file, row, newness, rank, length), and the order in which a seed lets
    /// them arrive.
    type Row = (String, u32, u64, Option<i64>, Option<i64>, u64);

    fn rows(mut seed: u64) -> (Vec<Row>, Vec<usize>) {
        let mut below = move |n: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % n
        };
        let n = below(30);
        let mut places: Vec<(u32, u64)> = (0..n).map(|_| (u32::try_from(below(3)).unwrap(), 1 + below(40))).collect();
        places.sort_unstable();
        places.dedup();
        let rows: Vec<Row> = places
            .into_iter()
            .map(|(file, row)| {
                let (newest, rank) =
                    ((below(4) > 0).then(|| below(3).cast_signed()), (below(4) > 0).then(|| below(2).cast_signed()));
                (format!("id{}", below(6)), file, row, newest, rank, 1 + below(3))
            })
            .collect();
        let mut order: Vec<(u64, usize)> = (0..rows.len()).map(|at| (below(1000), at)).collect();
        order.sort_unstable();
        (rows, order.into_iter().map(|(_, at)| at).collect())
    }

    fn arriving(rows: &[&Row]) -> RecordBatch {
        let of = |name: &str, values: ArrayRef| (name.to_owned(), values);
        let numbers = |of: fn(&Row) -> Option<i64>| -> ArrayRef {
            Arc::new(rows.iter().map(|row| of(row)).collect::<Int64Array>())
        };
        RecordBatch::try_from_iter([
            of(DOC_ID, Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.0)))),
            of(FINGERPRINT, Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| row.2)))),
            of(FILE, Arc::new(UInt32Array::from_iter_values(rows.iter().map(|row| row.1)))),
            of(ROW, Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| row.2)))),
            of(NEWEST_BY, numbers(|row| row.3)),
            of("keep.rank", numbers(|row| row.4)),
            of(LENGTH, Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| row.5)))),
        ])
        .unwrap()
    }

    /// The row that a rule keeps of rows in the order of files and rows.
    fn choice<'a>(rule: DuplicateIds, rows: &[&'a Row]) -> &'a Row {
        // rank desc, then length asc; NULL comes last.
        let key = |row: &Row| (Reverse(row.4.unwrap_or(i64::MIN)), row.5);
        let mut best = rows[0];
        for &row in &rows[1..] {
            let is_better = match rule {
                DuplicateIds::Fail | DuplicateIds::KeepFirst => false,
                DuplicateIds::KeepLast => true,
                DuplicateIds::KeepNewest => row.3.unwrap_or(i64::MIN) > best.3.unwrap_or(i64::MIN),
                DuplicateIds::KeepBest => key(row) < key(best),
            };
            best = if is_better { row } else { best };
        }
        best
    }

    #[test]
    fn each_rule_keeps_the_row_of_a_plain_choice_in_whatever_order_rows_arrive() {
        let keys = ["rank desc", "length asc"].map(|key| KeepKey::parse(key).unwrap());
        let rules = [DuplicateIds::KeepFirst, DuplicateIds::KeepLast, DuplicateIds::KeepNewest, DuplicateIds::KeepBest];
        for (seed, rule) in
            (0..2000).flat_map(|seed| rules.map(|rule| (seed, Some(rule)))).chain([(7, None), (8, None)])
        {
            let (made, order) = rows(seed);
            let policy = CollectPolicy { on_duplicate_id: rule, max_repeated_ids: 1.0, ..CollectPolicy::default() };
            let mut collecting = Collecting::new(&keys, None, usize::MAX);
            let arrived: Vec<&Row> = order.iter().map(|&at| &made[at]).collect();
            arrived
                .chunks(1 + usize::try_from(seed % 7).unwrap())
                .for_each(|rows| collecting.push(&arriving(rows)).unwrap());
            // Without a rule, all files are those of WARC here.
            let batch = collecting.finish(&policy, |file| format!("{file}.warc.gz")).unwrap();
            let mut by_id: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
            made.iter().for_each(|row| by_id.entry(&row.0).or_default().push(row));
            let kept = by_id.values().map(|rows| choice(rule.unwrap_or(DuplicateIds::KeepNewest), rows));
            let kept: Vec<&Row> = kept.collect();
            let found: Vec<(String, Option<u64>)> =
                batch.rows().map(|row| (batch.id(row).into_owned(), batch.fingerprints.get(row).copied())).collect();
            let expected: Vec<(String, Option<u64>)> = kept.iter().map(|row| (row.0.clone(), Some(row.2))).collect();
            assert_eq!(found, expected, "{rule:?}, seed {seed}");
            let left_out: Vec<(u32, u64)> = batch.bad_rows.iter().map(|bad| (bad.file, bad.row)).collect();
            let is_other = |row: &&Row| !kept.iter().any(|kept| (kept.1, kept.2) == (row.1, row.2));
            let others: Vec<(u32, u64)> = made.iter().filter(is_other).map(|row| (row.1, row.2)).collect();
            assert_eq!(left_out, others, "{rule:?}, seed {seed}");
        }
    }
}
