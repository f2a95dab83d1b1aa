//! Which permuted tables find every pair within a distance, and which set of them is cheapest.

use crate::error::{JoinError, Result};
use crate::permutation::{Block, Permutation};

/// The tables of a join: block orders such that any two fingerprints within `max_distance` agree in the prefix of at
/// least one of them.
///
/// Cut into `n` blocks, two fingerprints that differ in at most k bits agree in at least n − k blocks, so one table for
/// each choice of n − k blocks to lead is complete (Manku, Jain, Das Sarma, WWW 2007, section 3.1). For 64 bits and
/// k = 3 the paper's table of plans is `blocks(64, 3, 4)`, 4 tables of 16 leading bits; `blocks(64, 3, 5)`, 10 of 25 or
/// 26; `two_level(64, 3, 4, 4)`, 16 of 28; `blocks(64, 3, 6)`, 20 of 31 to 33.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TablePlan {
    bits: u32,
    max_distance: u32,
    tables: Vec<Permutation>,
}

/// More tables than this cost more to build and probe than they save.
const MAX_TABLES: u64 = 1 << 12;

impl TablePlan {
    /// One table for each choice of `blocks` − `max_distance` leading blocks: C(blocks, max_distance) tables.
    ///
    /// # Errors
    /// [`JoinError::Blocks`] unless `max_distance` < `blocks` ≤ `bits`.
    pub fn blocks(bits: u32, max_distance: u32, blocks: u32) -> Result<Self> {
        check_blocks(bits, max_distance, blocks)?;
        let cut = Block::cut(bits, blocks);
        let tables = prefixes(&cut, blocks - max_distance)
            .into_iter()
            .map(|(prefix, rest)| Permutation::new(bits, &prefix, &rest))
            .collect();
        Ok(Self { bits, max_distance, tables })
    }

    /// Two levels (the paper's 16 tables): `outer` blocks, and for each choice of leading ones the remaining bits cut
    /// again into `inner` blocks, of which `inner` − `max_distance` lead next.
    ///
    /// # Errors
    /// [`JoinError::Blocks`] where either cut cannot be made.
    pub fn two_level(bits: u32, max_distance: u32, outer: u32, inner: u32) -> Result<Self> {
        check_blocks(bits, max_distance, outer)?;
        let mut tables = Vec::new();
        for (prefix, rest) in prefixes(&Block::cut(bits, outer), outer - max_distance) {
            let rest_bits: u32 = rest.iter().map(|b| b.width).sum();
            check_blocks(rest_bits, max_distance, inner)?;
            for (second, tail) in prefixes(&Block::cut(rest_bits, inner), inner - max_distance) {
                let leading = [prefix.clone(), spread(&second, &rest)].concat();
                tables.push(Permutation::new(bits, &leading, &spread(&tail, &rest)));
            }
        }
        Ok(Self { bits, max_distance, tables })
    }

    /// One table without a prefix: every fingerprint is a candidate for every other.
    #[must_use]
    pub fn scan(bits: u32, max_distance: u32) -> Self {
        Self { bits, max_distance, tables: vec![Permutation::new(bits, &[], &[Block { low: 0, width: bits }])] }
    }

    /// The plan with the least estimated [`TableCost`] among those whose tables fit `memory_bytes`; [`scan`](Self::scan),
    /// the smallest, when none does.
    #[must_use]
    pub fn choose(bits: u32, max_distance: u32, n_queries: usize, n_existing: u64, memory_bytes: usize) -> Self {
        Self::alternatives(bits, max_distance)
            .map(|plan| (plan.cost(n_queries, n_existing), plan))
            .filter(|(cost, _)| cost.memory_bytes <= memory_bytes)
            .min_by(|(a, _), (b, _)| a.total_ns.total_cmp(&b.total_ns))
            .map_or_else(|| Self::scan(bits, max_distance), |(_, plan)| plan)
    }

    fn alternatives(bits: u32, max_distance: u32) -> impl Iterator<Item = Self> {
        let one_level = (max_distance + 1..=(max_distance + 6).min(bits))
            .filter(move |&blocks| n_choices(blocks, max_distance) <= MAX_TABLES)
            .filter_map(move |blocks| Self::blocks(bits, max_distance, blocks).ok());
        let n = max_distance + 1;
        let two_level = (n_choices(n, max_distance).pow(2) <= MAX_TABLES)
            .then(|| Self::two_level(bits, max_distance, n, n).ok())
            .flatten();
        std::iter::once(Self::scan(bits, max_distance)).chain(one_level).chain(two_level)
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

    /// The block order of each table.
    #[must_use]
    pub fn tables(&self) -> &[Permutation] {
        &self.tables
    }

    /// What the plan costs with `n_queries` fingerprints in the tables and `n_existing` probes.
    #[must_use]
    pub fn cost(&self, n_queries: usize, n_existing: u64) -> TableCost {
        TableCost::of(self, n_queries, n_existing)
    }
}

/// An estimate to rank plans by. Its constants are nanoseconds of one current server core with the scalar kernel; only
/// their proportions matter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TableCost {
    /// Candidates an existing fingerprint is expected to meet, if fingerprints were uniform.
    pub candidates_per_probe: f64,
    /// Memory of the tables.
    pub memory_bytes: usize,
    /// Building and probing.
    pub total_ns: f64,
}

impl TableCost {
    const BUILD_NS_PER_ROW: f64 = 25.0;
    const LOOKUP_NS: f64 = 4.0;
    const LOOKUP_MISS_NS: f64 = 25.0;
    const CANDIDATE_NS: f64 = 0.7;
    const CACHE_BYTES: usize = 1 << 20;

    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    fn of(plan: &TablePlan, n_queries: usize, n_existing: u64) -> Self {
        let row_bytes = plan.bits.div_ceil(32) as usize * 4;
        let mut cost = Self { candidates_per_probe: 0.0, memory_bytes: 0, total_ns: 0.0 };
        let mut probe_ns = 0.0;
        for table in &plan.tables {
            let lookup_bits = lookup_bits(table.prefix_bits(), n_queries);
            let table_bytes = n_queries * row_bytes + (4 << lookup_bits);
            let candidates = n_queries as f64 / 2f64.powi(i32::try_from(lookup_bits).unwrap_or(i32::MAX));
            let miss = if table_bytes > Self::CACHE_BYTES { Self::LOOKUP_MISS_NS } else { 0.0 };
            probe_ns += Self::LOOKUP_NS + miss + candidates * Self::CANDIDATE_NS;
            cost.candidates_per_probe += candidates;
            cost.memory_bytes += table_bytes;
        }
        let build_ns = plan.tables.len() as f64 * n_queries as f64 * Self::BUILD_NS_PER_ROW;
        cost.total_ns = build_ns + probe_ns * n_existing as f64;
        cost
    }
}

/// Leading bits that a table of `n_rows` is looked up by: its prefix, cut where more bits would only make empty ranges.
pub(crate) fn lookup_bits(prefix_bits: u32, n_rows: usize) -> u32 {
    prefix_bits.min(usize::BITS - n_rows.leading_zeros()).min(28)
}

fn check_blocks(bits: u32, max_distance: u32, blocks: u32) -> Result<()> {
    if max_distance < blocks && blocks <= bits { Ok(()) } else { Err(JoinError::Blocks { blocks, max_distance, bits }) }
}

/// C(n, k), saturating.
fn n_choices(n: u32, k: u32) -> u64 {
    (0..u64::from(k.min(n - k))).fold(1, |c: u64, i| c.saturating_mul(u64::from(n) - i) / (i + 1))
}

/// Every choice of `n` blocks, in order, each with the blocks left over.
fn prefixes(blocks: &[Block], n: u32) -> Vec<(Vec<Block>, Vec<Block>)> {
    let Some((first, others)) = blocks.split_first() else {
        return if n == 0 { vec![(Vec::new(), Vec::new())] } else { Vec::new() };
    };
    let mut all = Vec::new();
    if n > 0 {
        for (prefix, rest) in prefixes(others, n - 1) {
            all.push(([vec![*first], prefix].concat(), rest));
        }
    }
    for (prefix, rest) in prefixes(others, n) {
        all.push((prefix, [vec![*first], rest].concat()));
    }
    all
}

/// Blocks counted along the bits of `onto` laid end to end, as the pieces of `onto` that they cover.
fn spread(blocks: &[Block], onto: &[Block]) -> Vec<Block> {
    blocks.iter().flat_map(|block| spread_one(*block, onto)).collect()
}

fn spread_one(block: Block, onto: &[Block]) -> Vec<Block> {
    let mut above: u32 = onto.iter().map(|b| b.width).sum();
    let mut pieces = Vec::new();
    for piece in onto {
        above -= piece.width;
        let low = block.low.max(above);
        let high = (block.low + block.width).min(above + piece.width);
        if low < high {
            pieces.push(Block { low: piece.low + low - above, width: high - low });
        }
    }
    pieces
}
