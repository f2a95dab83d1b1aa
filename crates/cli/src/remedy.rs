//! What mends an error, from which a hint is made.

/// What mends an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// The same command with more arguments; with none, the same command again.
    Again(Vec<String>),
    /// The same command with the last word in the place of some of its flags and of their values.
    InPlaceOf(&'static [&'static str], &'static str),
    /// Another command.
    Command(Vec<String>),
    /// Another command, of a place that a job file may name.
    Of(&'static str, String),
    /// The same command with the second word in the place of the first.
    Instead(String, String),
    /// Another command with some of the flags of this one.
    With(&'static str, &'static [&'static str]),
}
