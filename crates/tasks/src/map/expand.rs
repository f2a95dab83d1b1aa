//! Expansion of pairs of values: the documents behind existing values, and their pairs with tonight's documents.

use std::ops::Range;
use std::sync::Arc;

use nearprint_fault::{Fault, Result};
use nearprint_fingerprint::Sketch;
use nearprint_join::Pair;

use super::context::{FileRowGroups, MapContext};
use super::counts::Fetched;
use super::existing_documents::{ExistingDocument, fetch_documents, fetch_sketches, places};
use super::existing_values::ExistingValues;
use super::pair_writer::PairWriter;
use crate::stream::Sender;

/// The number of existing documents that are fetched at once.
const ROWS_FETCHED: usize = 1 << 16;

/// The values of some row groups of a file that may be in pairs, and the rows behind them.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileValues<'a> {
    pub(super) of: &'a FileRowGroups,
    pub(super) values: &'a ExistingValues,
    /// The fingerprint of each row behind a value in a pair, by row. `None` if the values are the fingerprints.
    pub(super) fingerprints: Option<&'a [(u32, u64)]>,
}

impl FileValues<'_> {
    /// Returns the fingerprint of a row behind a value.
    fn fingerprint(&self, value: u32, row: u32) -> Result<u64> {
        let Some(fingerprints) = self.fingerprints else { return Ok(self.values.values()[value as usize]) };
        let place = fingerprints.binary_search_by_key(&row, |(row, _)| *row);
        let unknown = |_| Fault::internal("map", format!("row {row} is in a pair, and its fingerprint is not known"));
        Ok(fingerprints[place.map_err(unknown)?].1)
    }
}

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

/// Pairs of one existing value, and the documents behind it that have one fingerprint.
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
    slice: usize,
    file: FileValues<'_>,
    fetch: Fetch<'_>,
    fetched: &Fetched,
    sender: &Sender,
) -> Result<()> {
    let rows_of = |value: u32| file.values.rows(value, &fetch.rows);
    let by_value: Vec<&[Pair]> = fetch.pairs.chunk_by(|a, b| a.existing == b.existing).collect();
    let mut wanted: Vec<u32> = by_value.iter().flat_map(|pairs| rows_of(pairs[0].existing)).collect();
    wanted.sort_unstable();
    let mut groups = Vec::with_capacity(by_value.len());
    for pairs in by_value {
        let value = pairs[0].existing;
        let with_fingerprint = |row| Ok::<_, Fault>((file.fingerprint(value, row)?, row));
        let mut rows: Vec<(u64, u32)> = rows_of(value).map(with_fingerprint).collect::<Result<_>>()?;
        rows.sort_unstable();
        for of_fingerprint in rows.chunk_by(|a, b| a.0 == b.0) {
            let members = of_fingerprint.iter().map(|&(_, row)| place_of(&wanted, row)).collect::<Result<_>>()?;
            groups.push(Group { fingerprint: of_fingerprint[0].0, members, pairs: pairs.to_vec() });
        }
    }
    let mut places = places(&context.files[&file.of.file], &file.of.row_groups, &wanted).await?;
    let n = wanted.len();
    let mut candidates = Candidates { groups, sketches: vec![None; n], accepted: vec![true; n] };
    if context.verifier.max_sketch_distance.is_some() {
        candidates.sketches = fetch_sketches(&places, n, fetched).await?;
        let own = Arc::clone(context);
        candidates = context.room.compute(move || Ok(candidates.verified(&own, slice))).await?;
        if candidates.groups.is_empty() {
            return Ok(());
        }
        places.iter_mut().for_each(|of_file| of_file.retain(&candidates.accepted));
    }
    let Candidates { groups, sketches, .. } = candidates;
    let documents = fetch_documents(context, &places, sketches, fetched).await?;
    let (own, sender) = (Arc::clone(context), sender.clone());
    context.room.compute(move || write(&own, slice, groups, &documents, sender)).await
}

/// Writes the pairs of groups with their documents.
fn write(
    context: &MapContext,
    slice: usize,
    groups: Vec<Group>,
    documents: &[Option<ExistingDocument>],
    sender: Sender,
) -> Result<()> {
    let (mut out, key) = (PairWriter::new(context, sender), context.queries.of_slice(slice).0.of().key);
    for Group { fingerprint, members, pairs } in groups {
        // An existing document that tonight's batch has again is replaced by it.
        let replaced = |d: &&ExistingDocument| context.itself && d.same_id_row.is_some();
        let members = members.iter().filter_map(|&i| documents[i].as_ref()).filter(|d| !replaced(d));
        let members: Vec<&ExistingDocument> = members.collect();
        for pair in pairs {
            for (class, distance) in classes(context, slice, &pair, fingerprint) {
                out.new_existing(key, (class, distance), fingerprint, &members)?;
            }
        }
    }
    out.finish().map(drop)
}

/// Returns the classes behind a pair in the key of a slice, with the distance of their fingerprints to that of an existing
/// document. Behind words, these are the classes with other fingerprints than near ones: a pair of the others is found by these.
fn classes<'a>(
    context: &'a MapContext,
    slice: usize,
    pair: &Pair,
    fingerprint: u64,
) -> impl Iterator<Item = (u32, u8)> + use<'a> {
    let (query, distance) = (pair.query, pair.distance);
    let words = context.queries.of_slice(slice).0.words();
    let with_distance = move |&class: &u32| {
        #[expect(clippy::cast_possible_truncation, reason = "at most 64 bits differ")]
        let distance = (context.class_fingerprints[class as usize] ^ fingerprint).count_ones() as u8;
        (class, distance)
    };
    let is_far = |(_, distance): &(u32, u8)| *distance > context.verifier.max_distance;
    let behind_word = words.map(|words| words.classes_of(query).iter().map(with_distance).filter(is_far));
    let behind_fingerprint =
        words.is_none().then(|| context.rows.classes_of(query).map(move |class| (class, distance)));
    behind_fingerprint.into_iter().flatten().chain(behind_word.into_iter().flatten())
}

impl Candidates {
    /// Leaves the pairs in which the verifier accepts a document, and marks these documents. Only they are fetched. Most
    /// candidates are near by chance, and end here.
    fn verified(mut self, context: &MapContext, slice: usize) -> Self {
        let Self { groups, sketches, accepted } = &mut self;
        let key = context.queries.of_slice(slice).0.of().key;
        accepted.fill(false);
        groups.retain_mut(|group| {
            group.pairs.retain(|pair| {
                let mut any = false;
                for (class, distance) in classes(context, slice, pair, group.fingerprint) {
                    let sketch = context.rows.sketch(class);
                    for &member in &group.members {
                        let found = context.verifier.verify_by(key, distance, sketch, sketches[member].as_ref());
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
