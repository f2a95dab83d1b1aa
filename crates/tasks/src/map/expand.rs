//! Expansion of pairs of values: the documents behind existing values, and their pairs with tonight's documents.

use std::ops::Range;
use std::sync::Arc;

use nearprint_fault::{Fault, Result};
use nearprint_fingerprint::Sketch;
use nearprint_join::Pair;

use super::context::MapContext;
use super::counts::Fetched;
use super::existing_documents::{ExistingDocument, fetch_documents, fetch_sketches, places};
use super::existing_values::{DecodedFile, ExistingValues};
use super::pair_writer::PairWriter;
use crate::stream::Sender;

/// The number of existing documents that are fetched at once.
const ROWS_FETCHED: usize = 1 << 16;

/// Pairs of some existing values, and the rows behind the values that are fetched for them.
#[derive(Debug, Clone)]
pub(super) struct Fetch<'a> {
    pairs: &'a [Pair],
    /// The range of rows behind each value. Only a fetch for one value takes fewer than all.
    rows: Range<usize>,
}

/// Cuts pairs, sorted by existing value, so that a fetch has at most [`ROWS_FETCHED`] rows. Each row behind a value is
/// fetched once: a value is in one fetch, or in several of it alone with rows of their own.
pub(super) fn fetches<'a>(pairs: &'a [Pair], values: &ExistingValues) -> Vec<Fetch<'a>> {
    let mut cut = Vec::new();
    let (mut start, mut n_rows) = (0, 0);
    let groups: Vec<&[Pair]> = pairs.chunk_by(|a, b| a.existing == b.existing).collect();
    let mut end = 0;
    for group in groups {
        let rows = values.n_rows(group[0].existing);
        if n_rows + rows > ROWS_FETCHED && n_rows > 0 {
            cut.push(Fetch { pairs: &pairs[start..end], rows: 0..usize::MAX });
            (start, n_rows) = (end, 0);
        }
        end += group.len();
        if rows > ROWS_FETCHED {
            let some = (0..rows).step_by(ROWS_FETCHED).map(|at| at..rows.min(at + ROWS_FETCHED));
            cut.extend(some.map(|rows| Fetch { pairs: group, rows }));
            start = end;
        } else {
            n_rows += rows;
        }
    }
    if start < end {
        cut.push(Fetch { pairs: &pairs[start..end], rows: 0..usize::MAX });
    }
    cut
}

/// Pairs of one existing value, and the documents behind it.
struct Group {
    fingerprint: u64,
    /// The positions of the documents among those that are fetched.
    members: Vec<usize>,
    pairs: Vec<Pair>,
}

/// The pairs of a fetch that may still be pairs of documents, and what is known of the documents.
struct Candidates {
    groups: Vec<Group>,
    /// The sketch of each row of the fetch. `None` if sketches are not compared, or the row has none.
    sketches: Vec<Option<Sketch>>,
    /// Whether each row of the fetch is in a pair.
    accepted: Vec<bool>,
}

/// Writes the pairs of documents behind pairs of values: fetches the sketches, leaves what the verifier refuses, and
/// fetches the documents of the rest.
pub(super) async fn expand(
    context: &Arc<MapContext>,
    file: &DecodedFile,
    fetch: Fetch<'_>,
    fetched: &Fetched,
    sender: &Sender,
) -> Result<()> {
    let values = &file.values;
    let rows_of = |value: u32| values.rows(value, &fetch.rows);
    let groups: Vec<&[Pair]> = fetch.pairs.chunk_by(|a, b| a.existing == b.existing).collect();
    let mut wanted: Vec<u32> = groups.iter().flat_map(|g| rows_of(g[0].existing)).collect();
    wanted.sort_unstable();
    let groups: Vec<Group> = groups
        .into_iter()
        .map(|g| {
            let members = rows_of(g[0].existing).map(|row| place_of(&wanted, row)).collect::<Result<_>>()?;
            Ok(Group { fingerprint: values.values()[g[0].existing as usize], members, pairs: g.to_vec() })
        })
        .collect::<Result<_>>()?;
    let mut places = places(&context.files[&file.of.file], &file.of.row_groups, &wanted).await?;
    let n = wanted.len();
    let mut candidates = Candidates { groups, sketches: vec![None; n], accepted: vec![true; n] };
    if context.verifier.max_sketch_distance.is_some() {
        candidates.sketches = fetch_sketches(&places, n, fetched).await?;
        let own = Arc::clone(context);
        candidates = context.room.compute(move || Ok(candidates.verified(&own))).await?;
        if candidates.groups.is_empty() {
            return Ok(());
        }
        places.iter_mut().for_each(|of_file| of_file.retain(&candidates.accepted));
    }
    let Candidates { groups, sketches, .. } = candidates;
    let documents = fetch_documents(context, &places, sketches, fetched).await?;
    let (own, sender) = (Arc::clone(context), sender.clone());
    context.room.compute(move || write(&own, groups, &documents, sender)).await
}

/// Writes the pairs of groups with their documents.
fn write(
    context: &MapContext,
    groups: Vec<Group>,
    documents: &[Option<ExistingDocument>],
    sender: Sender,
) -> Result<()> {
    let mut out = PairWriter::new(context, sender);
    for Group { fingerprint, members, pairs } in groups {
        // An existing document that tonight's batch has again is replaced by it.
        let replaced = |d: &&ExistingDocument| context.itself && d.same_id_row.is_some();
        let members = members.iter().filter_map(|&i| documents[i].as_ref()).filter(|d| !replaced(d));
        let members: Vec<&ExistingDocument> = members.collect();
        for pair in pairs {
            out.new_existing(&pair, fingerprint, &members)?;
        }
    }
    out.finish().map(drop)
}

impl Candidates {
    /// Leaves the pairs in which the verifier accepts a document, and marks these documents. Only they are fetched. Most
    /// candidates are near by chance, and end here.
    fn verified(mut self, context: &MapContext) -> Self {
        let Self { groups, sketches, accepted } = &mut self;
        accepted.fill(false);
        groups.retain_mut(|group| {
            group.pairs.retain(|pair| {
                let mut any = false;
                for class in context.rows.classes_of(pair.query) {
                    let sketch = context.rows.sketch(class);
                    for &member in &group.members {
                        let found = context.verifier.verify(pair.distance, sketch, sketches[member].as_ref());
                        accepted[member] |= found.is_some();
                        any |= found.is_some();
                    }
                }
                any
            });
            !group.pairs.is_empty()
        });
        self
    }
}

/// Returns the position of a row in `wanted`, which ascends.
fn place_of(wanted: &[u32], row: u32) -> Result<usize> {
    let unknown = |_| Fault::internal("map", format!("the document of row {row} was not asked for"));
    wanted.binary_search(&row).map_err(unknown)
}

#[cfg(test)]
mod tests {
    use nearprint_fault::{ErrorKind, Fault};

    use super::place_of;

    #[test]
    fn a_row_that_was_not_asked_for_is_a_defect_and_no_document_that_is_left_out() {
        assert_eq!(place_of(&[3, 5, 9], 5).ok(), Some(1));
        for row in [0, 4, 10, u32::MAX] {
            let missed = place_of(&[3, 5, 9], row);
            let kind = missed.as_ref().err().map(Fault::kind);
            assert_eq!(kind, Some(ErrorKind::Bug), "{row}: {missed:?}");
        }
    }
}
