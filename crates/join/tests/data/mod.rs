//! Random fingerprints, uniform and skewed, from a seed.

use nearprint_fingerprint::Fingerprint;

/// xorshift64*; the state must not be 0.
pub struct Rng(pub u64);

/// The spread of the fingerprints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skew {
    Uniform,
    /// Half of them share their top quarter.
    SharedBlock,
    /// Only eight to twelve bits vary.
    FewBits,
    /// Many equal ones.
    Repeats,
    /// One centre and its neighbours.
    Ball,
}

impl Skew {
    pub const ALL: [Self; 5] = [Self::Uniform, Self::SharedBlock, Self::FewBits, Self::Repeats, Self::Ball];
}

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    fn wide<F: Fingerprint>(&mut self) -> F {
        F::from_u128(u128::from(self.next()) << 64 | u128::from(self.next()))
    }

    pub fn flip<F: Fingerprint>(&mut self, value: F, n_bits: u32) -> F {
        (0..n_bits).fold(value, |v, _| v ^ F::from_u128(1 << self.below(F::BITS as usize)))
    }

    pub fn fingerprints<F: Fingerprint>(&mut self, n: usize, skew: Skew) -> Vec<F> {
        let base: F = self.wide();
        let centre: F = self.wide();
        (0..n)
            .map(|i| {
                let value: F = self.wide();
                match skew {
                    Skew::Uniform => value,
                    Skew::SharedBlock if i % 2 == 0 => {
                        (value & (F::MAX >> (F::BITS / 4))) | (base & !(F::MAX >> (F::BITS / 4)))
                    }
                    Skew::SharedBlock => value,
                    Skew::FewBits => base ^ (value & F::from_u128(0b1001_0110_1111)),
                    Skew::Repeats => F::from_u128(value.to_u128() % 5 * 0x0101_0101),
                    Skew::Ball => {
                        let n_bits = self.below(5) as u32;
                        self.flip(centre, n_bits)
                    }
                }
            })
            .collect()
    }

    /// Existing fingerprints, most of them up to `n_bits` flips away from a query.
    pub fn near<F: Fingerprint>(&mut self, queries: &[F], n: usize, n_bits: u32, skew: Skew) -> Vec<F> {
        let fresh: Vec<F> = self.fingerprints(n, skew);
        fresh
            .into_iter()
            .map(|value| {
                if queries.is_empty() || self.below(4) == 0 {
                    return value;
                }
                let query = queries[self.below(queries.len())];
                let n_flips = self.below(n_bits as usize + 1) as u32;
                self.flip(query, n_flips)
            })
            .collect()
    }
}
