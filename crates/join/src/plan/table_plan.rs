//! The permuted tables that find every pair within a distance, and the candidate sets of such tables.

use crate::error::{JoinError, Result};
use crate::plan::permutation::{Block, Permutation};

/// The tables of a join: blocks of bits, each with the largest number of its bits that may differ. The numbers are such
/// that any two fingerprints within `max_distance` are near enough in at least one block.
///
/// Let block i allow tᵢ differing bits. Two fingerprints that are too far apart in every block differ in at least the
/// sum Σ (tᵢ + 1) of bits, so the tables are complete if this sum is more than k = `max_distance`. With k + 1 blocks of
/// tᵢ = 0 these are the tables of Manku, Jain, Das Sarma (WWW 2007, section 3.1), in which the leading bits must agree;
/// with fewer blocks it is the general pigeonhole principle of Qin et al., "GPH: Similarity Search in Hamming Space"
/// (ICDE 2018, section III). One block that allows k bits needs no permutation: the join walks the sorted run itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TablePlan {
    bits: u32,
    max_distance: u32,
    tables: Vec<Table>,
}

/// One table: the queries in the order of a block, and the number of bits of that block that may differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table {
    pub(crate) permutation: Permutation,
    pub(crate) block: Block,
    pub(crate) max_prefix_distance: u32,
}

impl Table {
    /// Returns the order of the table's rows.
    #[must_use]
    pub fn permutation(&self) -> Permutation {
        self.permutation
    }

    /// Returns the block that leads.
    #[must_use]
    pub fn block(&self) -> Block {
        self.block
    }

    /// Returns the number of bits of the block that may differ.
    #[must_use]
    pub fn max_prefix_distance(&self) -> u32 {
        self.max_prefix_distance
    }
}

impl TablePlan {
    /// Makes a plan with one table for each of `prefix_distances`, which is the number of bits that may differ in the
    /// table's block. The `bits` bits are cut into blocks evenly.
    ///
    /// # Errors
    /// [`JoinError::Tables`] if the tables would miss pairs, or if there are more tables than bits.
    pub fn new(bits: u32, max_distance: u32, prefix_distances: &[u32]) -> Result<Self> {
        let covered: u64 = prefix_distances.iter().map(|&t| u64::from(t) + 1).sum();
        if covered <= u64::from(max_distance) || prefix_distances.len() > bits as usize {
            return Err(JoinError::Tables { prefix_distances: prefix_distances.to_vec(), max_distance, bits });
        }
        Ok(Self::cut(bits, max_distance, prefix_distances))
    }

    /// Does the same as [`new`](Self::new) for distances that are known to be complete and no more than the bits.
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

    /// Makes a plan of one table without a prefix: every fingerprint is a candidate for every other.
    #[must_use]
    pub fn scan(bits: u32, max_distance: u32) -> Self {
        let block = Block { low: bits, width: 0 };
        let table = Table { permutation: Permutation::leading(bits, block), block, max_prefix_distance: 0 };
        Self { bits, max_distance, tables: vec![table] }
    }

    /// Returns the plans that [`choose`](Self::choose) ranks: the scan, and the cuts into blocks whose allowed bits
    /// together are just enough, in descending order. For a `max_distance` up to 12 these are all such cuts; above,
    /// where there are too many, only those with nearly equal numbers of allowed bits.
    pub fn alternatives(bits: u32, max_distance: u32) -> impl Iterator<Item = Self> {
        let cuts = (1..=(max_distance + 1).min(bits)).flat_map(move |n| {
            let sum = max_distance + 1 - n;
            if max_distance <= 12 { descending(n, sum, sum) } else { vec![nearly_equal(n, sum)] }
        });
        std::iter::once(Self::scan(bits, max_distance))
            .chain(cuts.map(move |distances| Self::cut(bits, max_distance, &distances)))
    }

    /// Returns the number of bits of the fingerprints.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Returns the largest distance that counts.
    #[must_use]
    pub fn max_distance(&self) -> u32 {
        self.max_distance
    }

    /// Returns the tables, in the order in which they report pairs.
    #[must_use]
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// Returns whether everything is compared with everything.
    #[must_use]
    pub fn is_scan(&self) -> bool {
        self.tables[0].block.width == 0
    }
}

/// Writes `sum` as `n` numbers, in descending order, that differ by at most 1.
pub(crate) fn nearly_equal(n: u32, sum: u32) -> Vec<u32> {
    (0..n).map(|i| sum / n + u32::from(i < sum % n)).collect()
}

/// Returns every way to write `sum` as `n` numbers of at most `largest`, in descending order.
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
