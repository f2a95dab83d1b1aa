//! The error of this crate.

/// An error of a setting. No page causes one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HtmlError {
    /// The text names no kind of text of a page.
    #[error("'{text}': write main, all, or selector=CSS")]
    Mode {
        /// The text.
        text: String,
    },
    /// The selector is no CSS selector that is understood.
    #[error("'{selector}' is not a CSS selector that nearprint understands: write one such as 'article .body'")]
    Selector {
        /// The selector.
        selector: String,
    },
}

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, HtmlError>;
