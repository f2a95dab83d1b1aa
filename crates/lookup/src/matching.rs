//! The documents that match, of rows whose fingerprints are near.

use futures::future::{BoxFuture, FutureExt};
use futures::{StreamExt, TryStreamExt};
use nearprint_join::SketchDistance;

use crate::answer::{Decision, Match};
use crate::counts::Counts;
use crate::documents::{Document, documents, sketches};
use crate::error::Result;
use crate::lookup::Lookup;
use crate::near::Near;
use crate::wanted::Fingerprinted;

/// The number of nights that are read at the same time.
const NIGHTS_AT_ONCE: usize = 8;

/// A row that matches, and the distance of its sketch to the query's.
pub type Matching = (Near, Option<u32>);

/// The file of a run in which documents are.
#[derive(Debug, Clone, Copy)]
pub enum RunFile {
    /// Documents with a fingerprint.
    Fingerprints,
    /// Documents below the floor of features.
    Short,
}

impl Lookup {
    /// Returns whether no later night has the document of a row again.
    pub(crate) fn is_live(&self, near: &Near, file: RunFile) -> bool {
        let night = &self.opened.nights[near.night];
        let row = match file {
            RunFile::Fingerprints => Some(near.row),
            // The rows of short texts follow those of fingerprints, and all of them together are counted in 32 bits.
            RunFile::Short => u32::try_from(night.n_rows() + u64::from(near.row)).ok(),
        };
        row.is_some_and(|row| !night.shadowed.contains(row))
    }

    /// Returns those of the near rows, which ascend, whose sketches match, with the distances of the sketches.
    pub(crate) async fn matching(
        &self,
        rows: &[Near],
        wanted: &[Fingerprinted],
        counts: &Counts,
    ) -> Result<Vec<Matching>> {
        let mut of_nights = Vec::new();
        for of_night in rows.chunk_by(|a, b| a.night == b.night) {
            of_nights.push(self.matching_of_night(of_night, wanted, counts).boxed());
        }
        at_once(of_nights).await
    }

    async fn matching_of_night(
        &self,
        rows: &[Near],
        wanted: &[Fingerprinted],
        counts: &Counts,
    ) -> Result<Vec<Matching>> {
        let has_sketch = |near: &Near| wanted[near.query as usize].sketch.is_some();
        let compared = distinct(rows.iter().filter(|near| has_sketch(near)).map(|near| near.row));
        let known = match rows.first().filter(|_| !compared.is_empty()) {
            Some(first) => {
                let run = &self.opened.nights[first.night].run;
                let (parquet, pages) = run.with_sketches(&self.opened.store).await?;
                sketches(parquet, pages, &compared, counts).await?
            }
            None => Vec::new(),
        };
        let sketch_distance = |near: &Near| {
            let sketch = wanted[near.query as usize].sketch?;
            let known = known[compared.partition_point(|&row| row < near.row)]?;
            Some(sketch.distance(&known))
        };
        let matching = rows.iter().map(|near| (*near, sketch_distance(near)));
        Ok(matching.filter(|(near, distance)| self.allows(has_sketch(near), *distance)).collect())
    }

    /// Returns the documents of rows that match, in their order, each with the number of its query.
    pub(crate) async fn described(
        &self,
        matching: &[Matching],
        wanted: &[Fingerprinted],
        file: RunFile,
        counts: &Counts,
    ) -> Result<Vec<(u32, Match)>> {
        let mut of_nights = Vec::new();
        for of_night in matching.chunk_by(|(a, _), (b, _)| a.night == b.night) {
            of_nights.push(self.described_of_night(of_night, wanted, file, counts).boxed());
        }
        at_once(of_nights).await
    }

    async fn described_of_night(
        &self,
        matching: &[Matching],
        wanted: &[Fingerprinted],
        file: RunFile,
        counts: &Counts,
    ) -> Result<Vec<(u32, Match)>> {
        let Some((first, _)) = matching.first() else { return Ok(Vec::new()) };
        let (run, store) = (&self.opened.nights[first.night].run, &self.opened.store);
        let parquet = match file {
            RunFile::Fingerprints => run.fingerprints(store).await?,
            RunFile::Short => run.short(store).await?,
        };
        let rows = distinct(matching.iter().map(|(near, _)| near.row));
        let documents = documents(parquet, &rows, counts).await?;
        let described = |(near, sketch_distance): &Matching| {
            let document = &documents[rows.partition_point(|&row| row < near.row)];
            let text_hash = wanted[near.query as usize].text_hash;
            let exact = text_hash.is_some() && text_hash == document.text_hash;
            (near.query, matched(document, &run.night.dt, (near.distance, *sketch_distance), exact))
        };
        Ok(matching.iter().map(described).collect())
    }

    /// Returns whether a document at this sketch distance matches. Without a sketch of its own, a query compares none.
    fn allows(&self, has_sketch: bool, sketch_distance: Option<u32>) -> bool {
        let bits = sketch_distance.and_then(|bits| u16::try_from(bits).ok());
        let compared = bits.map_or(SketchDistance::Missing, SketchDistance::Bits);
        self.verifier.allows(0, if has_sketch { compared } else { SketchDistance::NotCompared })
    }
}

/// Does what some nights need at the same time. The results come in the order of the futures.
pub async fn at_once<T>(futures: Vec<BoxFuture<'_, Result<Vec<T>>>>) -> Result<Vec<T>> {
    let mut of_nights = futures::stream::iter(futures).buffered(NIGHTS_AT_ONCE);
    let mut all = Vec::new();
    while let Some(of_night) = of_nights.try_next().await? {
        all.extend(of_night);
    }
    Ok(all)
}

fn matched(document: &Document, dt: &str, (distance, sketch_distance): (u32, Option<u32>), exact: bool) -> Match {
    let (id, canonical_id) = (document.id.clone(), document.canonical_id.clone());
    let decision = if canonical_id.is_some() { Decision::Drop } else { Decision::Keep };
    Match { id, dt: dt.to_owned(), distance, sketch_distance, decision, canonical_id, exact }
}

/// Returns the distinct ones of ascending rows.
fn distinct(rows: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut rows: Vec<u32> = rows.collect();
    rows.dedup();
    rows
}
