//! Values that are numbers.

pub fn share(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| "a number from 0 to 1".to_owned())
}

pub fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&n| n > 0).ok_or_else(|| "a number from 1 up".to_owned())
}

/// Parses a number, or a power of two such as 2^33.
pub fn count(text: &str) -> Result<u64, String> {
    let power = || 2u64.checked_pow(text.strip_prefix("2^")?.parse().ok()?);
    text.parse().ok().or_else(power).ok_or_else(|| "a number such as 1000000 or 2^20".to_owned())
}

pub fn bits(text: &str) -> Result<u32, String> {
    match text {
        "32" => Ok(32),
        "64" => Ok(64),
        _ => Err("fingerprints have 32 or 64 bits".to_owned()),
    }
}

pub fn any_bits(text: &str) -> Result<u32, String> {
    if text == "128" { Ok(128) } else { bits(text).map_err(|_| "fingerprints have 32, 64 or 128 bits".to_owned()) }
}
