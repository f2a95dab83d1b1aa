//! The documents that match, of rows that are near in a key.

use std::sync::Mutex;

use futures::future::{BoxFuture, FutureExt};
use futures::{StreamExt, TryStreamExt};
use nearprint_fault::Result;
use nearprint_join::SketchDistance;
use nearprint_parquet::ParquetFile;
use nearprint_storage::locked;

use crate::counts::Counts;
use crate::documents::{Canonical, Document, documents, fingerprints, mean_document_bytes, sketches};
use crate::lookup::Lookup;
use crate::near::{Near, NearRows};
use crate::nearest::{Distances, NearestMatches};
use crate::nights::OpenNight;
use crate::target::Fingerprinted;

/// The number of nights that are read at the same time.
const NIGHTS_AT_ONCE: usize = 8;

/// A row that matches a query, and its distances.
#[derive(Debug, Clone, Copy)]
pub struct Matching {
    /// The position of the night.
    pub night: usize,
    /// The row of one of its files.
    pub row: u32,
    /// The number of the query.
    pub query: u32,
    /// The distance of the fingerprints.
    pub distance: u32,
    /// The distance of the sketches, if both have one.
    pub sketch_distance: Option<u32>,
}

/// The file of a run in which documents are.
#[derive(Debug, Clone, Copy)]
pub enum RunFile {
    /// Documents with a fingerprint.
    Fingerprints,
    /// Documents below the floor of features.
    Short,
}

impl OpenNight {
    /// Returns the row of the run that a row of one of its files is.
    fn run_row(&self, row: u32, file: RunFile) -> Option<u32> {
        match file {
            RunFile::Fingerprints => Some(row),
            // The rows of short texts follow those of fingerprints, and all of them together are counted in 32 bits.
            RunFile::Short => u32::try_from(self.n_rows() + u64::from(row)).ok(),
        }
    }

    /// Returns the document that represents a row of one of its files now; `then` did so in its own night.
    fn canonical<'a>(&'a self, row: u32, file: RunFile, then: Option<Canonical<'a>>) -> Option<Canonical<'a>> {
        let again = self.run_row(row, file).and_then(|row| self.redecided.get(&row));
        let Some(decision) = again else { return then };
        decision.canonical.as_ref().map(|now| Canonical { id: &now.id, reference: now.reference.as_deref() })
    }
}

impl Lookup {
    /// Returns whether no later night has the document of a row again.
    pub(crate) fn is_live(&self, near: &Near, file: RunFile) -> bool {
        let night = &self.opened.nights[near.night];
        night.run_row(near.row, file).is_some_and(|row| !night.shadowed.contains(row))
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
        let Some(first) = rows.first() else { return Ok(Vec::new()) };
        let (run, store) = (&self.opened.nights[first.night].run, &self.opened.store);
        let has_sketch = |near: &Near| wanted[near.query as usize].sketch.is_some();
        let compared = distinct(rows.iter().filter(|near| has_sketch(near)).map(|near| near.row));
        let _taken = self.reads.take(sketch_bytes(compared.len())).await?;
        let known = if compared.is_empty() {
            Vec::new()
        } else {
            let (parquet, pages) = run.with_sketches(store).await?;
            sketches(parquet, pages, &compared, counts).await?
        };
        let sketch_distance = |near: &Near| {
            let sketch = wanted[near.query as usize].sketch?;
            let known = known[compared.partition_point(|&row| row < near.row)]?;
            Some(sketch.distance(&known))
        };
        let near = rows.iter().map(|near| (near, sketch_distance(near)));
        let near: Vec<_> = near.filter(|(near, distance)| self.allows(has_sketch(near), *distance)).collect();
        // Words have found these, and nobody has read their fingerprints.
        let by_words = near.iter().filter(|(near, _)| near.distance.is_none());
        let by_words = distinct(by_words.map(|(near, _)| near.row));
        let of_words: Vec<u64> = match run.values_in_memory() {
            Some(values) => by_words.iter().map(|&row| values[row as usize]).collect(),
            None if by_words.is_empty() => Vec::new(),
            None => fingerprints(run.fingerprints(store).await?, &by_words, counts).await?,
        };
        let matching = |(near, sketch_distance): (&Near, Option<u32>)| {
            let Near { night, row, query, distance } = *near;
            let of_row = || of_words[by_words.partition_point(|&other| other < row)];
            let distance = distance.unwrap_or_else(|| (wanted[query as usize].fingerprint ^ of_row()).count_ones());
            Matching { night, row, query, distance, sketch_distance }
        };
        Ok(near.into_iter().map(matching).collect())
    }

    /// Reads the documents of rows that match, and lists each for its query.
    pub(crate) async fn list(
        &self,
        matching: &[Matching],
        (wanted, listed): (&[Fingerprinted], &Mutex<Vec<NearestMatches>>),
        file: RunFile,
        counts: &Counts,
    ) -> Result<()> {
        let mut of_nights = Vec::new();
        for of_night in matching.chunk_by(|a, b| a.night == b.night) {
            of_nights.push(self.list_of_night(of_night, (wanted, listed), file, counts).boxed());
        }
        let mut of_nights = futures::stream::iter(of_nights).buffer_unordered(NIGHTS_AT_ONCE);
        while of_nights.try_next().await?.is_some() {}
        Ok(())
    }

    async fn list_of_night(
        &self,
        matching: &[Matching],
        (wanted, listed): (&[Fingerprinted], &Mutex<Vec<NearestMatches>>),
        file: RunFile,
        counts: &Counts,
    ) -> Result<()> {
        let Some(first) = matching.first() else { return Ok(()) };
        let parquet = self.file(first.night, file).await?;
        let rows = distinct(matching.iter().map(|found| found.row));
        // Several queries may have found the same row.
        let mut of_rows = matching.chunk_by(|a, b| a.row == b.row);
        let night = &self.opened.nights[first.night];
        let list = |document: Document<'_>| {
            for matching in of_rows.next().into_iter().flatten() {
                let text_hash = wanted[matching.query as usize].text_hash;
                let exact = text_hash.is_some() && text_hash == document.text_hash;
                let canonical = night.canonical(matching.row, file, document.canonical);
                let document = Document { canonical, ..document };
                locked(listed)[matching.query as usize].add(self.distances(matching), document, exact)?;
            }
            Ok(())
        };
        documents(parquet, &rows, (&self.reads, counts), list).await
    }

    pub(crate) fn distances(&self, matching: &Matching) -> Distances<'_> {
        let Matching { night, distance, sketch_distance, .. } = *matching;
        Distances { dt: &self.opened.nights[night].run.night.dt, distance, sketch_distance }
    }

    /// Returns the bytes that a document has on average, in the night in which it has most. The rows are sorted.
    pub(crate) async fn document_bytes(&self, rows: &[NearRows], file: RunFile) -> Result<usize> {
        let mut most = 0;
        for of_night in rows.chunk_by(|a, b| a.night == b.night) {
            most = most.max(mean_document_bytes(self.file(of_night[0].night, file).await?));
        }
        Ok(most)
    }

    async fn file(&self, night: usize, file: RunFile) -> Result<&ParquetFile> {
        let (run, store) = (&self.opened.nights[night].run, &self.opened.store);
        match file {
            RunFile::Fingerprints => run.fingerprints(store).await,
            RunFile::Short => run.short(store).await,
        }
    }

    /// Returns whether a document at this sketch distance matches. Without a sketch of its own, a query compares none.
    fn allows(&self, has_sketch: bool, sketch_distance: Option<u32>) -> bool {
        let bits = sketch_distance.and_then(|bits| u16::try_from(bits).ok());
        let compared = bits.map_or(SketchDistance::Missing, SketchDistance::Bits);
        self.verifier.allows(0, if has_sketch { compared } else { SketchDistance::NotCompared })
    }
}

/// Returns the bytes that a read of some sketches of a night holds: each sketch twice, with its row and perhaps its fingerprint,
/// and some of their pages. A page has 4 KiB, and may be read with the gap before it.
fn sketch_bytes(n: usize) -> usize {
    const PAGE_BYTES: usize = 20 << 10;
    const MOST_PAGES_BYTES: usize = 4 << 20;
    84 * n + MOST_PAGES_BYTES.min(PAGE_BYTES * n)
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

/// Returns the distinct ones of ascending rows.
fn distinct(rows: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut rows: Vec<u32> = rows.collect();
    rows.dedup();
    rows
}
