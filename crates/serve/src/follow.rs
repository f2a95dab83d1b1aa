//! The outcome of following the commits of the store is kept here.

use std::sync::Mutex;

use nearprint_fault::{ErrorKind, Fault};
use nearprint_storage::locked;

/// The outcome of the last look for a new commit.
#[derive(Debug, Default)]
pub struct Followed(Mutex<Option<(ErrorKind, String)>>);

impl Followed {
    /// Keeps the outcome. A failure is logged when it begins and when it changes.
    pub fn set(&self, failure: Option<Fault>) {
        let failure = failure.map(|error| (error.kind(), error.to_string()));
        let mut last = locked(&self.0);
        if *last == failure {
            return;
        }
        match &failure {
            Some((_, message)) => tracing::warn!("answers stay those of the former commit: {message}"),
            None => tracing::info!("new commits are followed again"),
        }
        *last = failure;
    }

    /// Returns the kind of the last failure, if nothing has succeeded since.
    pub fn failure(&self) -> Option<ErrorKind> {
        locked(&self.0).as_ref().map(|(kind, _)| *kind)
    }
}
