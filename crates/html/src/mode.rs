//! Which text of a page is taken.

use std::fmt::{Display, Formatter};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of the rules by which texts are taken from pages. It grows with a release that gives usual pages another text
/// than the one before, since all stores have to be made anew then. A fault that lost text is mended without that: the pages
/// that had it count as changed once. The first release that reads pages is 0.2.0.
pub const EXTRACTOR_VERSION: u32 = 1;

/// The syntax of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// Elements end by the rules of HTML.
    Html,
    /// XML: any element may close itself, and CDATA is text. Everything else is read as HTML, so that a page which is not well-formed
    /// has a text too.
    Xhtml,
}

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

impl Display for HtmlText {
    /// Writes `main`, `all`, or `selector=` and the CSS selector.
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Main => f.write_str("main"),
            Self::All => f.write_str("all"),
            Self::Selector(selector) => write!(f, "selector={selector}"),
        }
    }
}
