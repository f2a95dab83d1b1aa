//! Mapping of the queries' own values: by one thread, range by range.

use std::ops::Range;

use nearprint_fault::Result;
use nearprint_join::{Pair, TooManyPairs};
use nearprint_storage::row_number;

use super::context::{MapContext, PAIRS_HELD};
use super::counts::{MapCounts, Seen};
use super::pair_writer::PairWriter;
use crate::query_slices::{KeyQueries, SliceTables};
use crate::stream::Sender;

/// Maps a range of the queries' own values, which lies in the slice of the tables or behind it.
pub(super) fn map_itself(
    context: &MapContext,
    (key, tables): (&KeyQueries, &SliceTables),
    values: Range<usize>,
    sender: Sender,
) -> Result<MapCounts> {
    let mut out = PairWriter::new(context, sender);
    // Each value is in one slice. The task that has it there pairs the documents behind it, so they are paired once.
    let own = values.start..values.end.min(tables.end()).max(values.start);
    for value in context.rows.repeated(row_number(own.start)..row_number(own.end)) {
        out.new_new(value, value, 0)?;
    }
    let mut counts = MapCounts { n_rows: values.len() as u64, ..MapCounts::default() };
    let seen = Seen::new(&context.progress, counts.n_rows);
    // The ranges that are not mapped yet. They do not overlap, and have all values between them that are left.
    let mut unmapped = vec![values];
    while let Some(range) = unmapped.pop() {
        match map_range(context, (key, tables), range.clone(), &seen) {
            Ok(pairs) => {
                counts.n_candidates += pairs.len() as u64;
                for pair in pairs {
                    out.new_new(pair.query, pair.existing, pair.distance)?;
                }
            }
            Err(too_many) => unmapped.extend(cut(&range, too_many)),
        }
    }
    seen.all();
    counts.n_undecided = out.finish()?;
    Ok(counts)
}

/// Returns the pairs of a range. A single value has as many as it has, because it cannot be cut.
fn map_range(
    context: &MapContext,
    (key, tables): (&KeyQueries, &SliceTables),
    range: Range<usize>,
    seen: &Seen,
) -> std::result::Result<Vec<Pair>, TooManyPairs> {
    let held = if range.len() > 1 { PAIRS_HELD } else { usize::MAX };
    let (mut pairs, mut n_pairs) = (Vec::new(), 0);
    let mut found = |pair| {
        n_pairs += 1;
        if n_pairs <= held {
            pairs.push(pair);
        }
    };
    context.room.map(|scratch| {
        if key.is_in_one_slice() {
            return tables.queries.map_self_counted(range, scratch, &mut |n| seen.add(n), found);
        }
        tables.map(range.start, &key.values()[range], scratch, |pair| {
            // Values of the slice meet each other in both orders, and themselves.
            if pair.query < pair.existing {
                found(pair);
            }
        });
    });
    if n_pairs > held { Err(TooManyPairs { n_pairs }) } else { Ok(pairs) }
}

/// Cuts a range into equal ones that have half as many pairs as are held, if pairs are spread evenly.
fn cut(range: &Range<usize>, TooManyPairs { n_pairs }: TooManyPairs) -> impl Iterator<Item = Range<usize>> {
    let (step, end) = (range.len().div_ceil(n_pairs.div_ceil(PAIRS_HELD / 2)), range.end);
    range.clone().step_by(step).map(move |at| at..end.min(at + step))
}
