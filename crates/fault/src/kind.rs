//! The kinds of errors, which tell a scheduler how to react.

/// The class of an error, which tells a scheduler how to react. Each kind has an exit code of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The command line is wrong, or the state of the store forbids the request.
    Usage,
    /// The input cannot be used.
    BadData,
    /// The input does not exist.
    InputMissing,
    /// An object store does not answer.
    StoreUnavailable,
    /// nearprint has a defect.
    Bug,
    /// The output exists with other content.
    OutputExists,
    /// Local files, the disk or memory failed.
    LocalIo,
    /// The cause will pass.
    TryAgain,
    /// Permission or credentials are missing.
    Permission,
    /// The job file is wrong, or the store does not fit it.
    Config,
}

/// The kinds and their names.
const NAMES: [(ErrorKind, &str); 10] = [
    (ErrorKind::Usage, "usage"),
    (ErrorKind::BadData, "bad_data"),
    (ErrorKind::InputMissing, "input_missing"),
    (ErrorKind::StoreUnavailable, "store_unavailable"),
    (ErrorKind::Bug, "bug"),
    (ErrorKind::OutputExists, "output_exists"),
    (ErrorKind::LocalIo, "local_io"),
    (ErrorKind::TryAgain, "try_again"),
    (ErrorKind::Permission, "permission"),
    (ErrorKind::Config, "config"),
];

impl ErrorKind {
    /// Returns the name that programs read, such as `bad_data`.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|known| known.0 == self).map_or("bug", |known| known.1)
    }

    /// Returns the kind that has a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        NAMES.iter().find(|known| known.1 == name).map(|known| known.0)
    }

    /// Returns the kind of an I/O error. If a file stands in the place of a folder, or a folder in the place of a file,
    /// another try would fail in the same way, so that is a usage error.
    #[must_use]
    pub fn of_io(kind: std::io::ErrorKind) -> Self {
        match kind {
            std::io::ErrorKind::PermissionDenied => Self::Permission,
            std::io::ErrorKind::NotADirectory | std::io::ErrorKind::IsADirectory => Self::Usage,
            _ => Self::LocalIo,
        }
    }
}
