//! The number of fingerprints that are near to a given one.

/// Returns the chance that two uniform fingerprints are within a distance of each other.
#[must_use]
pub fn chance_of_near(bits: u32, max_distance: u32) -> f64 {
    n_near_prefixes(bits, max_distance) / 2f64.powi(bits.cast_signed())
}

/// Returns Σ C(n, i) for i from 0 to k: the number of values of `n` bits that are within distance `k` of a given one.
pub fn n_near_prefixes(n: u32, k: u32) -> f64 {
    let mut choices = 1.0;
    let mut sum = 0.0;
    for i in 0..=k.min(n) {
        sum += choices;
        choices *= f64::from(n - i) / f64::from(i + 1);
    }
    sum
}
