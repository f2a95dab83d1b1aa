//! Near pairs of fingerprints: lines of `id fingerprint-in-hex` on standard input, a line `id id distance` for each pair.
//!
//! `printf 'a 00ff\nb 00fe\nc ffff\n' | cargo run --example near_pairs -- 3`
#![allow(clippy::print_stdout, reason = "an example")]

use std::error::Error;
use std::io::BufRead;

fn main() -> Result<(), Box<dyn Error>> {
    let max_distance = std::env::args().nth(1).map_or(Ok(3), |k| k.parse())?;
    let mut rows: Vec<(String, u64)> = Vec::new();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (id, hex) = line.split_once(' ').ok_or_else(|| format!("'{line}' is not 'id fingerprint'"))?;
        rows.push((id.to_owned(), u64::from_str_radix(hex.trim(), 16)?));
    }
    for (a, b, distance) in nearprint_join::ids_within(&rows, max_distance)? {
        println!("{a} {b} {distance}");
    }
    Ok(())
}
