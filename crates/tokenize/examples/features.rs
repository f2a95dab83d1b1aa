//! The weighted features of a text, as fingerprints see them.
//!
//! `cargo run --example features -- 'Near-duplicates in 北京市'`
#![allow(clippy::print_stdout, clippy::cast_precision_loss, reason = "an example")]

use nearprint_tokenize::{Analyzer, ONE, Resources, TokenizeConfig, TokenizeError};

fn main() -> Result<(), TokenizeError> {
    let text = std::env::args().nth(1).unwrap_or_else(|| "Near-duplicates in 北京市".to_owned());
    let config = TokenizeConfig::default();
    let analyzer = Analyzer::try_new(&config, &Resources::default())?;
    let normalized = analyzer.normalize(&text);
    let tokens = analyzer.tokens(&normalized);
    for (feature, weight) in analyzer.features(&tokens, &config.features).iter() {
        println!("{:.3} {}", weight as f64 / ONE as f64, String::from_utf8_lossy(feature));
    }
    Ok(())
}
