//! The error of this crate.

/// An error of a setting. No page causes one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HtmlError {
    /// The selector is no CSS selector that is understood.
    #[error("'{selector}' is no CSS selector: {reason}: write one such as 'article .body'")]
    Selector {
        /// The selector.
        selector: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, HtmlError>;
