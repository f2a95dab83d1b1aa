//! Block orders: which bits of a fingerprint lead its permuted form.

use nearprint_fingerprint::Fingerprint;

/// A run of bits: `width` bits upwards from bit `low` (bit 0 is the least significant).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Lowest bit.
    pub low: u32,
    /// Number of bits.
    pub width: u32,
}

impl Block {
    /// Cuts `bits` bits into `n` blocks from the top, the first ones a bit wider where `n` does not divide `bits`.
    pub(crate) fn cut(bits: u32, n: u32) -> Vec<Self> {
        let mut low = bits;
        (0..n)
            .map(|i| {
                let width = bits / n + u32::from(i < bits % n);
                low -= width;
                Self { low, width }
            })
            .collect()
    }
}

/// An order of a fingerprint's blocks. The blocks put first are its *prefix*: two fingerprints that agree in them lie
/// next to each other in a table sorted by the permuted value (Manku, Jain, Das Sarma, WWW 2007, section 3.1).
///
/// Permuting moves bits only, so the Hamming distance of two permuted values is that of the values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permutation {
    bits: u32,
    prefix_bits: u32,
    moves: Vec<Move>,
}

/// `width` bits from `from` to `to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Move {
    from: u32,
    to: u32,
    width: u32,
}

impl Permutation {
    /// The order `prefix`, then `rest`; together they hold every one of `bits` bits once.
    pub(crate) fn new(bits: u32, prefix: &[Block], rest: &[Block]) -> Self {
        let prefix_bits = prefix.iter().map(|b| b.width).sum();
        let mut to = bits;
        let mut moves: Vec<Move> = Vec::new();
        for block in prefix.iter().chain(rest).filter(|b| b.width > 0) {
            to -= block.width;
            match moves.last_mut() {
                // A block that follows its neighbour moves with it.
                Some(last) if block.low + block.width == last.from && to + block.width == last.to => {
                    *last = Move { from: block.low, to, width: last.width + block.width };
                }
                _ => moves.push(Move { from: block.low, to, width: block.width }),
            }
        }
        Self { bits, prefix_bits, moves }
    }

    /// Bits of the fingerprints it permutes.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Leading bits that must agree for two fingerprints to meet in this order's table.
    #[must_use]
    pub fn prefix_bits(&self) -> u32 {
        self.prefix_bits
    }

    /// The permuted value, in the lowest [`bits`](Self::bits) bits. Bits above them must be 0.
    #[inline]
    pub fn permute<F: Fingerprint>(&self, fingerprint: F) -> F {
        self.moves.iter().fold(F::ZERO, |out, m| out | (((fingerprint >> m.from) & ones::<F>(m.width)) << m.to))
    }

    /// The value that [`permute`](Self::permute) gives `permuted` for.
    #[inline]
    pub fn invert<F: Fingerprint>(&self, permuted: F) -> F {
        self.moves.iter().fold(F::ZERO, |out, m| out | (((permuted >> m.to) & ones::<F>(m.width)) << m.from))
    }
}

/// The lowest `n` bits set; `n` from 0 to `F::BITS`.
#[inline]
pub(crate) fn ones<F: Fingerprint>(n: u32) -> F {
    if n == 0 { F::ZERO } else { F::MAX >> (F::BITS - n) }
}
