//! A lookup that many threads use while it follows the commits of its store.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nearprint_fault::Result;
use nearprint_storage::locked;

use crate::lookup::Lookup;

/// The least time between two openings of a store whose files are not as they were. A store that is damaged for good is not
/// opened for each query.
const BETWEEN_OPENINGS: Duration = Duration::from_secs(5);

/// The newest lookup of those that were opened on one store. It never goes back to an older commit.
#[derive(Debug)]
pub struct SharedLookup {
    newest: Mutex<Lookup>,
    /// When the store was opened again because of its files.
    opened_again: tokio::sync::Mutex<Option<Instant>>,
}

impl SharedLookup {
    /// Shares a lookup.
    #[must_use]
    pub fn new(lookup: Lookup) -> Self {
        Self { newest: Mutex::new(lookup), opened_again: tokio::sync::Mutex::new(None) }
    }

    /// Returns the lookup, which stays in its state.
    #[must_use]
    pub fn get(&self) -> Lookup {
        locked(&self.newest).clone()
    }

    /// Returns a lookup for a query that failed by a file which another lookup had open: the newest one, or one that opens all
    /// files again. `None` if that was done a moment ago.
    ///
    /// # Errors
    /// Those of [`Lookup::open`].
    pub async fn after(&self, failed: &Lookup) -> Result<Option<Lookup>> {
        let mut last = self.opened_again.lock().await;
        let newest = self.get();
        if !Arc::ptr_eq(&newest.opened, &failed.opened) {
            return Ok(Some(newest));
        }
        if last.is_some_and(|last| last.elapsed() < BETWEEN_OPENINGS) {
            return Ok(None);
        }
        let lookup = newest.opened_again().await;
        *last = Some(Instant::now());
        let lookup = lookup?;
        let mut held = locked(&self.newest);
        if lookup.state().commit >= held.state().commit {
            *held = lookup;
        }
        Ok(Some(held.clone()))
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
        let mut held = locked(&self.newest);
        if lookup.state().commit > held.state().commit {
            *held = lookup;
        }
    }
}
