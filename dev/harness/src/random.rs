//! Random numbers and texts from a seed.

/// A small generator, the same everywhere: seeds of trials stay what they are.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    /// Below `n`, which is not 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.number() % n
    }
}

/// A text that is long enough for a fingerprint, its words drawn from a seed.
pub fn text(seed: u64, n_words: usize) -> String {
    let mut random = Random::new(seed.wrapping_sub(1));
    let words: Vec<String> = (0..n_words).map(|_| format!("w{:x}", random.number() >> 28)).collect();
    words.join(" ")
}
