//! The votes of weighted hashes on each bit, as exact sums; most of them are kept in vertical counters.

use crate::bit_rule::BitRule;
use crate::fingerprint::Fingerprint;

/// The sums of the votes so far.
///
/// Most features of a text share a few weights (a word that occurs once, twice, …). The hashes of such a weight are
/// only counted, by one [`VerticalCounter`] for each weight. The other hashes and, at the end, the planes of the
/// counters are added lane by lane with their weights.
///
/// Only the weight *for* each bit is summed, because v_i = ones_i - (total - ones_i).
///
/// The order of additions changes nothing: all sums are exact.
pub(crate) struct Votes<F> {
    /// The weight of each counter; 0 for those without one.
    weights: [u64; N_COUNTERS],
    counters: [VerticalCounter<F>; N_COUNTERS],
    n_counters: usize,
    /// The counter of the last vote: many neighbouring features have the same weight.
    last: usize,
    lanes: Lanes,
    total: u128,
}

/// The number of weights that have a counter, in the order of their first vote. Texts have few other weights that many
/// features share.
const N_COUNTERS: usize = 12;

impl<F: Fingerprint> Default for Votes<F> {
    fn default() -> Self {
        Self {
            weights: [0; N_COUNTERS],
            counters: std::array::from_fn(|_| VerticalCounter::default()),
            n_counters: 0,
            last: 0,
            lanes: Lanes::default(),
            total: 0,
        }
    }
}

impl<F: Fingerprint> Votes<F> {
    /// Adds `weight` for each bit of `hash` that is 1, and against each bit that is 0.
    #[inline]
    pub(crate) fn add(&mut self, hash: F, weight: u64) {
        // Such a vote changes no sum, and 0 marks the counters without a weight.
        if weight == 0 {
            return;
        }
        self.total += u128::from(weight);
        if self.weights[self.last] == weight {
            self.counters[self.last].add(hash, weight, &mut self.lanes);
        } else {
            self.add_of_other_weight(hash, weight);
        }
    }

    #[inline(never)]
    fn add_of_other_weight(&mut self, hash: F, weight: u64) {
        match self.weights.iter().position(|&known| known == weight) {
            Some(at) => {
                self.last = at;
                self.counters[at].add(hash, weight, &mut self.lanes);
            }
            None => self.add_of_new_weight(hash, weight),
        }
    }

    #[cold]
    fn add_of_new_weight(&mut self, hash: F, weight: u64) {
        if self.n_counters == N_COUNTERS {
            return self.lanes.add(hash, u128::from(weight));
        }
        let at = self.n_counters;
        self.n_counters += 1;
        self.weights[at] = weight;
        self.counters[at].add(hash, weight, &mut self.lanes);
    }

    /// Returns the bits that win under `rule`.
    pub(crate) fn into_fingerprint(mut self, rule: BitRule) -> F {
        for (counter, &weight) in self.counters.iter_mut().zip(&self.weights[..self.n_counters]) {
            counter.drain(weight, &mut self.lanes);
        }
        let total = self.total;
        debug_assert!(
            (0..F::BITS as usize).all(|bit| self.lanes.sum(bit) <= total),
            "no bit has more votes than were given"
        );
        let wins = |ones: u128| match rule {
            BitRule::Positive | BitRule::FloatPositive => ones > total - ones,
            BitRule::NonNegative => ones >= total - ones,
            BitRule::Negative => ones < total - ones,
            BitRule::AboveOne => ones > total - ones + ONE,
        };
        // From the highest bit down, so that each step is a shift by one.
        let bits = (0..F::BITS as usize).rev();
        bits.fold(F::ZERO, |value, bit| (value << 1) | F::from_u128(u128::from(wins(self.lanes.sum(bit)))))
    }
}

/// The weight of 1 in units of 1/65536.
const ONE: u128 = 1 << 16;

/// The number of the hashes of one weight that have each bit, as binary numbers standing upright: bit i of plane p is
/// bit p of the count of lane i. Eight hashes at a time go through a tree of carry-save adders, which takes about seven
/// operations for a hash instead of one addition for each bit.
///
/// Source: the Harley-Seal positional population count, as in Klarqvist, Muła, Lemire, "Efficient Computation of
/// Positional Population Counts Using SIMD Instructions" (2021), section 3; here with the lanes of one machine word.
struct VerticalCounter<F> {
    pending: [F; BLOCK],
    n_pending: usize,
    planes: [F; PLANES],
    /// The number of hashes in the planes, a multiple of [`BLOCK`].
    n_counted: usize,
}

const BLOCK: usize = 8;
/// Counts up to 2^20 - 1 fit.
const PLANES: usize = 20;
const MAX_COUNTED: usize = (1 << PLANES) - BLOCK;

impl<F: Fingerprint> Default for VerticalCounter<F> {
    fn default() -> Self {
        Self { pending: [F::ZERO; BLOCK], n_pending: 0, planes: [F::ZERO; PLANES], n_counted: 0 }
    }
}

impl<F: Fingerprint> VerticalCounter<F> {
    #[inline]
    fn add(&mut self, hash: F, weight: u64, lanes: &mut Lanes) {
        self.pending[self.n_pending] = hash;
        self.n_pending += 1;
        if self.n_pending == BLOCK {
            self.count_block();
            if self.n_counted >= MAX_COUNTED {
                self.drain(weight, lanes);
            }
        }
    }

    /// Counts eight pending hashes.
    fn count_block(&mut self) {
        let [a, b, c, d, e, f, g, h] = self.pending;
        let [ones, twos, fours, ..] = self.planes;
        let (ones, twos_a) = carry_save(ones, a, b);
        let (ones, twos_b) = carry_save(ones, c, d);
        let (twos, fours_a) = carry_save(twos, twos_a, twos_b);
        let (ones, twos_a) = carry_save(ones, e, f);
        let (ones, twos_b) = carry_save(ones, g, h);
        let (twos, fours_b) = carry_save(twos, twos_a, twos_b);
        let (fours, mut carry) = carry_save(fours, fours_a, fours_b);
        (self.planes[0], self.planes[1], self.planes[2]) = (ones, twos, fours);
        for plane in &mut self.planes[3..] {
            if carry == F::ZERO {
                break;
            }
            (*plane, carry) = (*plane ^ carry, *plane & carry);
        }
        debug_assert!(self.n_counted < MAX_COUNTED, "the planes have room for a block more");
        self.n_pending = 0;
        self.n_counted += BLOCK;
    }

    /// Moves all counts into `lanes`: plane p counts 2^p times the weight.
    fn drain(&mut self, weight: u64, lanes: &mut Lanes) {
        for hash in &self.pending[..self.n_pending] {
            lanes.add(*hash, u128::from(weight));
        }
        let n_planes = (usize::BITS - self.n_counted.leading_zeros()) as usize;
        for (p, plane) in self.planes[..n_planes].iter_mut().enumerate() {
            lanes.add(*plane, u128::from(weight) << p);
            *plane = F::ZERO;
        }
        (self.n_pending, self.n_counted) = (0, 0);
    }
}

/// Returns a + b + c of each lane, as the low and the high bit of the sum.
#[inline]
fn carry_save<F: Fingerprint>(a: F, b: F, c: F) -> (F, F) {
    let partial = a ^ b;
    (partial ^ c, (a & b) | (partial & c))
}

const MAX_BITS: usize = 128;

/// Sums of weights, one lane a bit: narrow ones while they fit, wide ones beyond.
///
/// Invariant: the weights added to the narrow lanes since the last spill sum to `narrow_total`.
struct Lanes {
    narrow: [u32; MAX_BITS],
    narrow_total: u32,
    /// Empty until the first spill.
    wide: Vec<u128>,
}

impl Default for Lanes {
    fn default() -> Self {
        Self { narrow: [0; MAX_BITS], narrow_total: 0, wide: Vec::new() }
    }
}

impl Lanes {
    /// Adds `weight` to the lane of each bit that is 1.
    fn add<F: Fingerprint>(&mut self, bits: F, weight: u128) {
        let Ok(narrow) = u32::try_from(weight) else {
            return self.add_wide(bits, weight);
        };
        if self.narrow_total.checked_add(narrow).is_none() {
            self.spill();
        }
        self.narrow_total += narrow;
        let words = words(bits);
        for (lanes, word) in self.narrow.as_chunks_mut::<32>().0.iter_mut().zip(words).take(F::BITS as usize / 32) {
            for (lane, sum) in lanes.iter_mut().enumerate() {
                let bit = 1 << lane;
                *sum += if word & bit == bit { narrow } else { 0 };
            }
        }
    }

    fn add_wide<F: Fingerprint>(&mut self, bits: F, weight: u128) {
        self.wide.resize(MAX_BITS, 0);
        let bits = bits.to_u128();
        for (lane, sum) in self.wide.iter_mut().enumerate() {
            *sum += if (bits >> lane) & 1 == 1 { weight } else { 0 };
        }
    }

    #[cold]
    fn spill(&mut self) {
        self.wide.resize(MAX_BITS, 0);
        for (wide, narrow) in self.wide.iter_mut().zip(&mut self.narrow) {
            *wide += u128::from(std::mem::take(narrow));
        }
        self.narrow_total = 0;
    }

    fn sum(&self, bit: usize) -> u128 {
        // There are no wide sums before the narrow ones are full.
        u128::from(self.narrow[bit]) + self.wide.get(bit).copied().unwrap_or_default()
    }
}

/// The 32-bit words of `bits`, the lowest first.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "the words are parts of it")]
fn words<F: Fingerprint>(bits: F) -> [u32; 4] {
    let bits = bits.to_u128();
    [bits as u32, (bits >> 32) as u32, (bits >> 64) as u32, (bits >> 96) as u32]
}
