//! Which permuted tables find every pair within a distance, and which set of them is cheapest.

use crate::error::{JoinError, Result};
use crate::plan::permutation::{Block, Permutation};

/// The tables of a join: blocks of bits, each with the largest number of its bits that may differ, such that any two
/// fingerprints within `max_distance` are near enough in at least one block.
///
/// Let block i allow tᵢ differing bits. Two fingerprints that are too far apart in every block differ in at least Σ (tᵢ + 1)
/// bits, so the tables are complete if that is more than k = `max_distance`. With k + 1 blocks of tᵢ = 0 these are the tables of
/// Manku, Jain, Das Sarma (WWW 2007, section 3.1), where the leading bits must agree; with fewer blocks it is the general
/// pigeonhole principle of Qin et al., "GPH: Similarity Search in Hamming Space" (ICDE 2018, section III). One block that
/// allows k bits needs no permutation: the sorted run itself is walked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TablePlan {
    bits: u32,
    max_distance: u32,
    tables: Vec<Table>,
}

/// One table: the queries in the order of a block, and how many bits of that block may differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table {
    pub(crate) permutation: Permutation,
    pub(crate) block: Block,
    pub(crate) max_prefix_distance: u32,
}

impl Table {
    /// The order of its rows.
    #[must_use]
    pub fn permutation(&self) -> Permutation {
        self.permutation
    }

    /// The block that leads.
    #[must_use]
    pub fn block(&self) -> Block {
        self.block
    }

    /// Bits of the block that may differ.
    #[must_use]
    pub fn max_prefix_distance(&self) -> u32 {
        self.max_prefix_distance
    }
}

impl TablePlan {
    /// One table for each of `prefix_distances`, the number of bits that may differ in its block; `bits` are cut evenly.
    ///
    /// # Errors
    /// [`JoinError::Tables`] where the tables would miss pairs, or where there are more of them than bits.
    pub fn new(bits: u32, max_distance: u32, prefix_distances: &[u32]) -> Result<Self> {
        let covered: u64 = prefix_distances.iter().map(|&t| u64::from(t) + 1).sum();
        if covered <= u64::from(max_distance) || prefix_distances.len() > bits as usize {
            return Err(JoinError::Tables { prefix_distances: prefix_distances.to_vec(), max_distance, bits });
        }
        Ok(Self::cut(bits, max_distance, prefix_distances))
    }

    /// The same of distances that are known to be complete, and no more than the bits.
    #[expect(clippy::cast_possible_truncation, reason = "no more than the bits")]
    fn cut(bits: u32, max_distance: u32, prefix_distances: &[u32]) -> Self {
        debug_assert!(prefix_distances.len() <= bits as usize, "a block has a bit at least");
        debug_assert!(
            prefix_distances.iter().map(|t| t + 1).sum::<u32>() > max_distance,
            "the tables would miss pairs"
        );
        let table = |(block, &max_prefix_distance): (Block, &u32)| Table {
            permutation: Permutation::leading(bits, block),
            block,
            max_prefix_distance,
        };
        let blocks = Block::cut(bits, prefix_distances.len() as u32);
        let tables = blocks.into_iter().zip(prefix_distances).map(table).collect();
        Self { bits, max_distance, tables }
    }

    /// One table without a prefix: every fingerprint is a candidate for every other.
    #[must_use]
    pub fn scan(bits: u32, max_distance: u32) -> Self {
        let block = Block { low: bits, width: 0 };
        let table = Table { permutation: Permutation::leading(bits, block), block, max_prefix_distance: 0 };
        Self { bits, max_distance, tables: vec![table] }
    }

    /// The scan, and cuts into blocks that allow together just enough, the first ones the most: all of them for distances up
    /// to 12, those into nearly equal parts above, where there are too many.
    pub fn alternatives(bits: u32, max_distance: u32) -> impl Iterator<Item = Self> {
        let cuts = (1..=(max_distance + 1).min(bits)).flat_map(move |n| {
            let sum = max_distance + 1 - n;
            if max_distance <= 12 { descending(n, sum, sum) } else { vec![nearly_equal(n, sum)] }
        });
        std::iter::once(Self::scan(bits, max_distance))
            .chain(cuts.map(move |distances| Self::cut(bits, max_distance, &distances)))
    }

    /// Bits of the fingerprints.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// The largest distance that counts.
    #[must_use]
    pub fn max_distance(&self) -> u32 {
        self.max_distance
    }

    /// The tables, in the order in which they report pairs.
    #[must_use]
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// Whether everything is compared with everything.
    #[must_use]
    pub fn is_scan(&self) -> bool {
        self.tables[0].block.width == 0
    }
}

/// `sum` as `n` numbers, in descending order, that differ by at most 1.
fn nearly_equal(n: u32, sum: u32) -> Vec<u32> {
    (0..n).map(|i| sum / n + u32::from(i < sum % n)).collect()
}

/// Every way to write `sum` as `n` numbers of at most `largest`, in descending order.
fn descending(n: u32, sum: u32, largest: u32) -> Vec<Vec<u32>> {
    if n == 0 {
        return if sum == 0 { vec![Vec::new()] } else { Vec::new() };
    }
    let firsts = (sum.div_ceil(n)..=largest.min(sum)).rev();
    firsts
        .flat_map(|first| {
            descending(n - 1, sum - first, first).into_iter().map(move |rest| [vec![first], rest].concat())
        })
        .collect()
}
