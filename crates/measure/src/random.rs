//! Random numbers that are the same on every machine and in every version, because summaries depend on them.

/// The SplitMix64 generator (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number below `n`. All are equally likely except for a bias of n / 2^64. If `n` is 0, the result is 0.
    #[allow(clippy::cast_possible_truncation, reason = "the high half of the product is below n")]
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }

    /// Returns a number that is uniformly distributed in (0, 1).
    #[allow(clippy::cast_precision_loss, reason = "53 bits are exact")]
    pub fn unit(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Returns a normally distributed number of mean 0 and variance 1 (Box and Muller, 1958).
    fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Returns a gamma-distributed number of `shape` > 0 and scale 1 (Marsaglia and Tsang, 2000).
    pub fn gamma(&mut self, shape: f64) -> f64 {
        if shape < 1.0 {
            return self.gamma(shape + 1.0) * self.unit().powf(1.0 / shape);
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            if v > 0.0 && self.unit().ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v;
            }
        }
    }
}

/// Returns the middle 95 % of `values`, widened to include `estimate` if it lies outside, or `None` if there are no
/// values.
pub fn percentile_interval(mut values: Vec<f64>, estimate: f64) -> Option<[f64; 2]> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    // The interval leaves out 2.5 % at each end. Of 1000 values, it goes from the 26th to the 975th.
    let tail = values.len() / 40;
    Some([values[tail.min(last)].min(estimate), values[last - tail.min(last)].max(estimate)])
}
