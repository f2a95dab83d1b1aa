//! Which text of a page is taken.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of the rules by which texts are taken from pages. It grows with each release that gives a page another
/// text than the one before. The first that reads pages is 0.2.0.
pub const EXTRACTOR_VERSION: u32 = 1;

/// Which text of a page is taken.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HtmlText {
    /// The main text: without navigation, notices, footers and the like.
    #[default]
    Main,
    /// All text that a browser would show.
    All,
    /// The text of the elements that a CSS selector names, in the order of the page.
    Selector(String),
}
