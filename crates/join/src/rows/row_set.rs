//! Sets of row numbers.

/// A set of row numbers, with one bit for each row; it grows as rows are added.
#[derive(Debug, Default, Clone)]
pub struct RowSet {
    words: Vec<u64>,
}

impl RowSet {
    /// Makes the set of the rows 0 to `n_rows` − 1.
    #[must_use]
    pub fn all_below(n_rows: u32) -> Self {
        let mut words = vec![u64::MAX; n_rows as usize / 64];
        words.push((1 << (n_rows % 64)) - 1);
        Self { words }
    }

    /// Adds a row.
    pub fn insert(&mut self, row: u32) {
        let word = row as usize / 64;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (row % 64);
    }

    /// Returns whether the set contains a row.
    #[must_use]
    pub fn contains(&self, row: u32) -> bool {
        self.words.get(row as usize / 64).is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// Returns the number of rows below `n_rows` in the set.
    #[must_use]
    pub fn n_below(&self, n_rows: u64) -> u64 {
        // The set ends with its last word, whatever the number.
        let whole = usize::try_from(n_rows / 64).unwrap_or(usize::MAX).min(self.words.len());
        let (below, rest) = self.words.split_at(whole);
        let last = rest.first().map_or(0, |word| word & ((1 << (n_rows % 64)) - 1));
        below.iter().chain([&last]).map(|word| u64::from(word.count_ones())).sum()
    }

    /// Returns the bytes that the set holds.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.words.len() * 8
    }
}

/// The starts of groups of consecutive positions, in about a bit and a half for each position, and half a bit for each group.
/// The `n`-th group is found by counting (a bit vector with select; Jacobson, FOCS 1989).
#[derive(Debug, Default)]
pub(crate) struct Starts {
    set: RowSet,
    /// The number of starts before each block of [`BLOCK_WORDS`] words.
    before: Vec<u32>,
    /// The block in which each [`HINTED`]-th group starts.
    hints: Vec<u32>,
    n_starts: u32,
    n_positions: u32,
}

const BLOCK_WORDS: usize = 8;
const HINTED: u32 = 64;

impl Starts {
    /// Appends a position, which starts a group or continues the last one.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "there are fewer blocks than positions, which are 32-bit numbers"
    )]
    pub(crate) fn push(&mut self, starts: bool) {
        debug_assert!(starts || self.n_positions > 0, "the first position begins a group");
        if (self.n_positions as usize).is_multiple_of(BLOCK_WORDS * 64) {
            self.before.push(self.n_starts);
        }
        if starts {
            if self.n_starts.is_multiple_of(HINTED) {
                self.hints.push(self.before.len() as u32 - 1);
            }
            self.set.insert(self.n_positions);
            self.n_starts += 1;
        }
        self.n_positions += 1;
    }

    /// Returns the number of groups.
    pub(crate) fn n_groups(&self) -> u32 {
        self.n_starts
    }

    /// Returns the positions of a group.
    pub(crate) fn group(&self, n: u32) -> std::ops::Range<u32> {
        debug_assert!(n < self.n_starts, "a group is asked for by a number below their count");
        let start = self.start(n);
        start..self.next_after(start)
    }

    /// Returns the position at which group `n` starts, or the number of positions if there is no such group.
    #[allow(clippy::cast_possible_truncation, reason = "positions are 32-bit numbers")]
    pub(crate) fn start(&self, n: u32) -> u32 {
        if n >= self.n_starts {
            return self.n_positions;
        }
        // The group starts between the hinted groups beside it.
        let hint = (n / HINTED) as usize;
        let first = self.hints[hint] as usize;
        let last = self.hints.get(hint + 1).map_or(self.before.len() - 1, |&block| block as usize);
        let block = first + self.before[first + 1..=last].partition_point(|&before| before <= n);
        let mut left = n - self.before[block];
        for (at, &word) in self.set.words.iter().enumerate().skip(block * BLOCK_WORDS) {
            if left < word.count_ones() {
                return at as u32 * 64 + nth_one(word, left);
            }
            left -= word.count_ones();
        }
        self.n_positions
    }

    /// Returns the first position after `start` that starts a group, or the number of positions if none does.
    #[allow(clippy::cast_possible_truncation, reason = "positions are 32-bit numbers")]
    pub(crate) fn next_after(&self, start: u32) -> u32 {
        let first = start as usize / 64;
        for (at, &word) in self.set.words.iter().enumerate().skip(first) {
            let word = if at == first { word & (u64::MAX - 1) << (start % 64) } else { word };
            if word != 0 {
                return at as u32 * 64 + word.trailing_zeros();
            }
        }
        self.n_positions
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.set.memory_bytes() + (self.before.capacity() + self.hints.capacity()) * 4
    }
}

/// Returns the place of the `n`-th bit that is one in a word that has more than `n` of them.
fn nth_one(word: u64, mut n: u32) -> u32 {
    let mut at = 0;
    for width in [32, 16, 8, 4, 2, 1] {
        let ones = (word >> at & ((1 << width) - 1)).count_ones();
        if n >= ones {
            n -= ones;
            at += width;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::{RowSet, Starts};

    #[test]
    fn groups_of_any_lengths_are_found_where_they_start_and_end() {
        for step in [1u32, 2, 63, 64, 65, 700] {
            let mut starts = Starts::default();
            let mut expected = Vec::new();
            let mut length = 1;
            let mut position = 0u32;
            while position < 3000 {
                let end = position + length;
                (position..end).for_each(|p| starts.push(p == position));
                expected.push(position..end);
                (position, length) = (end, (length * 7 + step) % (step + 1) + 1);
            }
            assert_eq!(starts.n_groups() as usize, expected.len());
            let found: Vec<_> = (0..starts.n_groups()).map(|n| starts.group(n)).collect();
            assert_eq!(found, expected);
            assert_eq!(starts.start(starts.n_groups()), expected.last().map_or(0, |last| last.end));
        }
    }

    #[test]
    fn all_rows_below_a_number_are_in_the_set_and_no_others() {
        for n in [0u32, 1, 63, 64, 65, 1000] {
            let set = RowSet::all_below(n);
            assert!((0..n).all(|row| set.contains(row)) && !set.contains(n));
            assert_eq!(set.n_below(u64::MAX), u64::from(n));
        }
    }
}
