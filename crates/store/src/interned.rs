//! Strings of files of which few are different.

use std::collections::HashSet;
use std::sync::Arc;

/// Names of runs, and other strings of which few are different. Each is held in memory once.
#[derive(Debug, Default)]
pub(crate) struct Names(HashSet<Arc<str>>);

impl Names {
    pub(crate) fn of(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.0.get(name) {
            return Arc::clone(known);
        }
        let new: Arc<str> = name.into();
        self.0.insert(Arc::clone(&new));
        new
    }
}
