//! Block orders, which determine the bits of a fingerprint that lead its permuted form.

use nearprint_fingerprint::Fingerprint;

/// A run of bits: `width` bits upwards from bit `low` (bit 0 is the least significant).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// The lowest bit.
    pub low: u32,
    /// The number of bits.
    pub width: u32,
}

impl Block {
    /// Cuts `bits` bits into `n` blocks from the top; the first ones are a bit wider if `n` does not divide `bits`.
    pub(crate) fn cut(bits: u32, n: u32) -> Vec<Self> {
        let mut low = bits;
        let blocks = (0..n)
            .map(|i| {
                let width = bits / n + u32::from(i < bits % n);
                low -= width;
                Self { low, width }
            })
            .collect();
        debug_assert!(n == 0 || low == 0, "the blocks cover all bits, each bit once");
        blocks
    }

    /// Returns a value in which exactly the bits of the block are set.
    #[inline]
    pub(crate) fn mask<F: Fingerprint>(self) -> F {
        if self.width == 0 { F::ZERO } else { ones::<F>(self.width) << self.low }
    }
}

/// An order of a fingerprint's bits in which a block leads: the lowest `bits` bits are rotated. Two fingerprints that
/// agree in the block, which is their *prefix*, lie next to each other in a table sorted by the permuted value (Manku,
/// Jain, Das Sarma, WWW 2007, section 3.1).
///
/// Permuting only moves bits, so the Hamming distance of two permuted values equals that of the original values. Bits
/// above the lowest `bits` bits stay where they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permutation {
    bits: u32,
    left: u32,
}

impl Permutation {
    /// Makes the order of `bits` bits in which `block` leads.
    pub(crate) fn leading(bits: u32, block: Block) -> Self {
        Self { bits, left: bits - block.low - block.width }
    }

    /// Returns the number of lowest bits that the permutation covers.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Returns whether the permutation moves nothing.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        self.left == 0
    }

    /// Returns the permuted value.
    #[inline]
    pub fn permute<F: Fingerprint>(&self, fingerprint: F) -> F {
        rotate(fingerprint, self.bits, self.left)
    }

    /// Returns the value that [`permute`](Self::permute) turns into `permuted`.
    #[inline]
    pub fn invert<F: Fingerprint>(&self, permuted: F) -> F {
        if self.left == 0 { permuted } else { rotate(permuted, self.bits, self.bits - self.left) }
    }
}

/// Rotates the lowest `bits` bits to the left by `left` < `bits`.
#[inline]
fn rotate<F: Fingerprint>(value: F, bits: u32, left: u32) -> F {
    if left == 0 {
        return value;
    }
    debug_assert!(left < bits, "a rotation by all bits shifts out of the word");
    let all = ones::<F>(bits);
    let low = value & all;
    (value & !all) | (((low << left) | (low >> (bits - left))) & all)
}

/// Returns a value in which the lowest `n` bits are set; `n` is from 0 to `F::BITS`.
#[inline]
pub(crate) fn ones<F: Fingerprint>(n: u32) -> F {
    if n == 0 { F::ZERO } else { F::MAX >> (F::BITS - n) }
}

/// Returns a value in which the leading `n` of the lowest `bits` bits are set.
#[inline]
pub(crate) fn leading_ones<F: Fingerprint>(bits: u32, n: u32) -> F {
    ones::<F>(bits) ^ ones::<F>(bits - n)
}

/// Returns the number of leading bits, among the lowest `bits` bits, in which two values agree.
#[inline]
pub(crate) fn common_prefix<F: Fingerprint>(a: F, b: F, bits: u32) -> u32 {
    ((a ^ b) & ones::<F>(bits)).leading_zeros() + bits - F::BITS
}
