//! What was asked for.

/// What a summary says of what was asked for, however it ended.
#[derive(Debug, Clone)]
pub struct Asked {
    pub command: &'static str,
    pub dt: Option<String>,
}
