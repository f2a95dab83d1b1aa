//! Ids and names that are cut, so that summaries stay short.

/// The number of characters that stay.
const CHARS: usize = 100;

/// Returns an id or a name, cut if it is long.
#[must_use]
pub fn excerpt(id: &str) -> String {
    if id.chars().nth(CHARS).is_none() {
        return id.to_owned();
    }
    id.chars().take(CHARS).chain(['…']).collect()
}
