//! The texts of pages.

mod charset;
mod dom;
mod error;
mod extractor;
mod main_text;
mod names;
mod render;
mod score;
mod select;
mod signs;
mod title;
mod tokens;

pub use charset::decode;
pub use dom::MAX_DEPTH;
pub use error::{HtmlError, Result};
pub use extractor::Extractor;
pub use title::title_of;
