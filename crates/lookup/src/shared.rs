//! A lookup that many threads use while it follows the commits of its store.

use std::sync::Mutex;

use nearprint_fault::Result;
use nearprint_storage::locked;

use crate::lookup::Lookup;

/// The newest lookup of those that were opened on one store. It never goes back to an older commit.
#[derive(Debug)]
pub struct SharedLookup(Mutex<Lookup>);

impl SharedLookup {
    /// Shares a lookup.
    #[must_use]
    pub fn new(lookup: Lookup) -> Self {
        Self(Mutex::new(lookup))
    }

    /// Returns the lookup, which stays in its state.
    #[must_use]
    pub fn get(&self) -> Lookup {
        locked(&self.0).clone()
    }

    /// Goes on to the newest commit, and returns whether that is another one. Answers go on meanwhile.
    ///
    /// # Errors
    /// Those of [`Lookup::refresh`]. The lookup stays in its state then.
    pub async fn refresh(&self) -> Result<bool> {
        let mut lookup = self.get();
        let is_new = lookup.refresh().await?;
        self.keep(lookup);
        Ok(is_new)
    }

    /// Takes a lookup on the same store for its own, unless it has a newer one: of two threads that refresh at once, the
    /// one that saw the older commit may end last.
    pub fn keep(&self, lookup: Lookup) {
        let mut held = locked(&self.0);
        if lookup.state().commit > held.state().commit {
            debug_assert!(lookup.state().commit > held.state().commit, "answers never go back to an older commit");
            *held = lookup;
        }
    }
}
