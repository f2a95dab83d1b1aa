//! The Hamming distance of two texts by their words, each of weight 1.
//!
//! `cargo run --example distance -- 'the quick brown fox' 'the quick red fox'`
#![allow(clippy::print_stdout, reason = "an example")]

use nearprint_fingerprint::{FingerprintConfig, hamming_distance, simhash};

fn main() {
    let texts: Vec<String> = std::env::args().skip(1).collect();
    let [a, b] = &texts[..] else {
        return println!("give two texts");
    };
    let config = FingerprintConfig::default();
    let fingerprint = |text: &str| -> u64 { simhash(text.split(' ').map(|word| (word.as_bytes(), 1 << 16)), &config) };
    let (a, b) = (fingerprint(a), fingerprint(b));
    println!("{a:016x} {b:016x} {}", hamming_distance(a, b));
}
