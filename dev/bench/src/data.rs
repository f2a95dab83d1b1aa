//! Generates fingerprints that are uniform and sorted, with planted near-duplicates of the queries among them.

use rayon::prelude::*;

/// The number of rows of a piece before the planted ones are added.
pub const PIECE_ROWS: u64 = 1 << 20;

/// The SplitMix64 generator (Steele, Lea, Flood, OOPSLA 2014). Any state gives a good sequence.
#[derive(Debug, Clone)]
pub struct Rng(pub u64);

impl Rng {
    /// Returns the next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns `value` with `n` different bits flipped.
    pub fn flip(&mut self, value: u64, n: u32) -> u64 {
        let mut flips = 0u64;
        while flips.count_ones() < n {
            flips |= 1 << (self.next() % 64);
        }
        value ^ flips
    }
}

/// A set of existing fingerprints, and the queries to join it with. Each piece is made on request, so that the set may
/// be larger than memory.
#[derive(Debug)]
pub struct Sets {
    log_rows: u32,
    seed: u64,
    queries: Vec<u64>,
    /// The planted neighbours in ascending order.
    planted: Vec<u64>,
}

impl Sets {
    /// Makes 2^`log_rows` existing fingerprints and 2^`log_queries` uniform queries. The existing fingerprints are
    /// uniform within each piece of 2^20. Of the queries, `n_planted` have an additional neighbour each, at distances 0
    /// to `max_distance` in turn.
    pub fn new(log_rows: u32, log_queries: u32, n_planted: usize, max_distance: u32, seed: u64) -> Self {
        let mut rng = Rng(seed);
        let queries: Vec<u64> = (0..1u64 << log_queries).map(|_| rng.next()).collect();
        let near = queries.iter().zip((0..=max_distance).cycle()).take(n_planted);
        let mut planted: Vec<u64> = near.map(|(&query, distance)| rng.flip(query, distance)).collect();
        planted.sort_unstable();
        planted.dedup();
        Self { log_rows, seed, queries, planted }
    }

    /// Returns the queries, in no particular order.
    pub fn queries(&self) -> &[u64] {
        &self.queries
    }

    /// Returns the number of planted neighbours in all pieces.
    pub fn n_planted(&self) -> usize {
        self.planted.len()
    }

    /// Returns the number of pieces of the set. The pieces are ascending ranges.
    pub fn n_pieces(&self) -> u64 {
        1 << self.log_pieces()
    }

    fn log_pieces(&self) -> u32 {
        self.log_rows.saturating_sub(PIECE_ROWS.ilog2())
    }

    /// Returns the distinct fingerprints of a piece in ascending order, and the number of planted ones.
    pub fn piece(&self, index: u64) -> (Vec<u64>, usize) {
        let lead = self.log_pieces();
        let prefix = if lead == 0 { 0 } else { index << (64 - lead) };
        let n = PIECE_ROWS.min(1 << self.log_rows);
        let mut rng = Rng(self.seed ^ (index + 1).wrapping_mul(0xD6E8_FEB8_6659_FD93));
        let mut values: Vec<u64> = (0..n).map(|_| prefix | (rng.next() >> lead)).collect();
        let from = self.planted.partition_point(|&p| p < prefix);
        let last = prefix | (u64::MAX >> lead);
        let planted = &self.planted[from..self.planted.partition_point(|&p| p <= last)];
        values.extend(planted);
        values.par_sort_unstable();
        values.dedup();
        (values, planted.len())
    }
}
