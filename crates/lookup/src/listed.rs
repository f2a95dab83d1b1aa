//! The matches that an answer lists, and the number of all of them.

use nearprint_fingerprint::Sketch;

use crate::answer::Match;

/// The nearest of the matches that were found so far, as many as an answer lists, and the number of all.
#[derive(Debug)]
pub struct Listed {
    /// The most matches that are listed; 0: all.
    most: usize,
    n_matches: u64,
    matches: Vec<Match>,
}

impl Listed {
    pub fn new(most: usize) -> Self {
        Self { most, n_matches: 0, matches: Vec::new() }
    }

    /// Returns whether a document of the night `dt` may be listed, at these distances.
    pub fn has_place_for(&self, distance: u32, sketch_distance: Option<u32>, dt: &str) -> bool {
        let last = if self.most == 0 { None } else { self.matches.get(self.most - 1) };
        last.is_none_or(|last| {
            let (last_distance, last_sketch, last_dt, _) = order(last);
            (distance, of_sketch(sketch_distance), dt) <= (last_distance, last_sketch, last_dt)
        })
    }

    /// Takes the next matches into account: all `n_matches` are counted, and the nearest of `matches` are listed. Those
    /// that have no place need not be among them.
    pub fn add(&mut self, n_matches: u64, matches: impl IntoIterator<Item = Match>) {
        self.n_matches += n_matches;
        self.matches.extend(matches);
        if self.most > 0 {
            self.sort();
            self.matches.truncate(self.most);
        }
    }

    /// Returns the number of all matches, and those that are listed, in the order of the answer.
    pub fn in_order(mut self) -> (u64, Vec<Match>) {
        self.sort();
        (self.n_matches, self.matches)
    }

    fn sort(&mut self) {
        self.matches.sort_by(|a, b| order(a).cmp(&order(b)));
    }
}

/// The order of an answer.
fn order(found: &Match) -> (u32, u32, &str, &str) {
    (found.distance, of_sketch(found.sketch_distance), &found.dt, &found.id)
}

/// Documents without a sketch come after those with one.
fn of_sketch(distance: Option<u32>) -> u32 {
    distance.unwrap_or(Sketch::BITS + 1)
}
