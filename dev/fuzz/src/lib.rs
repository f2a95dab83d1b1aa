//! The checks of the fuzz targets. Each takes its settings from the first bytes of the input and reads the rest as a text, lossily.

mod normalize;
mod textbook;
mod tokenize;

pub use normalize::check_normalize;
pub use tokenize::{Tokenizer, check_tokenize};
