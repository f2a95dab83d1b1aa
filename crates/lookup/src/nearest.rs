//! The matches that an answer lists, and the number of all of them.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use nearprint_fault::{ErrorKind, Fault, Result, key, words};
use nearprint_fingerprint::Sketch;

use crate::answer::{Decision, Match};
use crate::documents::Document;
use crate::error::BadQuestion;

/// The nearest of the matches that were found so far, as many as an answer lists, and the number of all.
#[derive(Debug)]
pub struct NearestMatches {
    /// The most matches that are listed; 0: all.
    most: usize,
    /// The most bytes that they may take.
    max_bytes: usize,
    bytes: usize,
    n_matches: u64,
    /// The one that comes last in the answer is on top.
    matches: BinaryHeap<InOrder>,
}

/// The properties of a match that are known before its document is read.
#[derive(Debug, Clone, Copy)]
pub struct Distances<'a> {
    /// The night.
    pub dt: &'a str,
    pub distance: u32,
    pub sketch_distance: Option<u32>,
}

/// The bytes that a listed match takes in memory and in JSON, but for its ids.
const MATCH_BYTES: usize = 400;

/// Returns about the bytes that a listed match takes in memory and in JSON, if its ids have so many.
pub fn match_bytes(of_ids: usize) -> usize {
    MATCH_BYTES.saturating_add(of_ids.saturating_mul(2))
}

impl NearestMatches {
    pub fn new(most: usize, max_bytes: usize) -> Self {
        Self { most, max_bytes, bytes: 0, n_matches: 0, matches: BinaryHeap::new() }
    }

    /// Counts matches, whether they are listed or not.
    pub fn count(&mut self, n_matches: u64) {
        self.n_matches += n_matches;
    }

    /// Returns whether a document may be listed, whatever its id.
    pub fn has_place_for(&self, found: Distances<'_>) -> bool {
        let Distances { dt, distance, sketch_distance } = found;
        self.last().is_none_or(|last| {
            let (last_distance, last_sketch, last_dt, _) = order(last);
            (distance, of_sketch(sketch_distance), dt) <= (last_distance, last_sketch, last_dt)
        })
    }

    /// Lists a match, unless as many are listed as may be and none of them comes after it.
    ///
    /// # Errors
    /// [`ErrorKind::LocalIo`](nearprint_fault::ErrorKind::LocalIo) if the listed matches take more bytes than they may.
    pub fn add(&mut self, found: Distances<'_>, document: Document<'_>, exact: bool) -> Result<()> {
        let Distances { dt, distance, sketch_distance } = found;
        let Document { id, canonical, .. } = document;
        if let Some(last) = self.last() {
            if (distance, of_sketch(sketch_distance), dt, id) >= order(last) {
                return Ok(());
            }
            self.bytes -= bytes_of(last);
            self.matches.pop();
        }
        let decision = if canonical.is_some() { Decision::Drop } else { Decision::Keep };
        let canonical_id = canonical.map(|canonical| canonical.id.to_owned());
        let reference = canonical.and_then(|canonical| canonical.reference.map(str::to_owned));
        let (id, dt) = (id.to_owned(), dt.to_owned());
        let listed = Match { id, dt, distance, sketch_distance, decision, canonical_id, reference, exact };
        self.bytes += bytes_of(&listed);
        self.matches.push(InOrder(listed));
        debug_assert!(
            self.most == 0 || self.matches.len() <= self.most,
            "no more matches are listed than were asked for"
        );
        if self.bytes > self.max_bytes {
            let (n, bytes) = (self.matches.len(), self.max_bytes);
            let reason = format!("the answer lists more than {n} matches, which take more than {bytes} bytes");
            let remedy = words!["list fewer by ", key("max_matches"), ", or raise ", key("memory_limit")];
            return Err(Fault::new(ErrorKind::LocalIo, reason).remedy(remedy).about(BadQuestion::TooLarge));
        }
        Ok(())
    }

    /// Returns about the bytes of the listed matches in memory and in JSON.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of all matches, and those that are listed, in the order of the answer.
    pub fn in_order(self) -> (u64, Vec<Match>) {
        debug_assert!(self.matches.len() as u64 <= self.n_matches, "what is listed was counted");
        (self.n_matches, self.matches.into_sorted_vec().into_iter().map(|InOrder(found)| found).collect())
    }

    /// Returns the match that makes place for the next one, if as many are listed as may be.
    fn last(&self) -> Option<&Match> {
        let is_full = self.most > 0 && self.matches.len() >= self.most;
        self.matches.peek().filter(|_| is_full).map(|InOrder(found)| found)
    }
}

/// A match in the order of an answer.
#[derive(Debug)]
struct InOrder(Match);

impl Ord for InOrder {
    fn cmp(&self, other: &Self) -> Ordering {
        order(&self.0).cmp(&order(&other.0))
    }
}

impl PartialOrd for InOrder {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for InOrder {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for InOrder {}

fn bytes_of(found: &Match) -> usize {
    match_bytes(
        found.id.len() + [&found.canonical_id, &found.reference].into_iter().flatten().map(String::len).sum::<usize>(),
    )
}

/// The order of an answer.
fn order(found: &Match) -> (u32, u32, &str, &str) {
    (found.distance, of_sketch(found.sketch_distance), &found.dt, &found.id)
}

/// Documents without a sketch come after those with one.
fn of_sketch(distance: Option<u32>) -> u32 {
    distance.unwrap_or(Sketch::BITS + 1)
}
