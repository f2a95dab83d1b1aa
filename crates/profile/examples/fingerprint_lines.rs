//! Fingerprints of the lines of standard input, in hex; `-` for a line with too few words.
//!
//! `cargo run --example fingerprint_lines -- default < texts.txt`
#![allow(clippy::print_stdout, reason = "an example")]

use std::error::Error;
use std::io::BufRead;

use nearprint_profile::{Outcome, TextFingerprinter, by_name};
use nearprint_tokenize::Resources;

fn main() -> Result<(), Box<dyn Error>> {
    let profile = std::env::args().nth(1).unwrap_or_else(|| "default".to_owned());
    let fingerprinter = TextFingerprinter::try_new(by_name(&profile)?, &Resources::default())?;
    for line in std::io::stdin().lock().lines() {
        match fingerprinter.fingerprint(&line?).outcome {
            Outcome::Fingerprinted { fingerprint, .. } => println!("{fingerprint:016x}"),
            Outcome::Empty | Outcome::TooShort { .. } => println!("-"),
        }
    }
    Ok(())
}
