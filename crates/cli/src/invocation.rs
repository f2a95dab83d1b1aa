//! The command and the night of an invocation.

/// The fields that identify a command in its summary, whether it succeeds or fails.
#[derive(Debug, Clone)]
pub struct Invocation {
    pub command: String,
    pub dt: Option<String>,
}
