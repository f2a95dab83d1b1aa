//! The names of the pages of nights in one folder, by which they lead to one another.

/// The name of the page of a night.
#[must_use]
pub fn night_page_name(dt: &str) -> String {
    format!("{dt}.html")
}

/// The name of the page of all nights.
pub const INDEX_NAME: &str = "index.html";

/// The mark of the row of the night after a night.
pub(super) fn after(dt: &str) -> String {
    format!("after-{dt}")
}
