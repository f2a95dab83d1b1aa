//! Commits that leave nights out of a store: a dropped night, whose later nights were joined with it, and forgotten nights,
//! which later joins do without.

use nearprint_fault::{Fault, Result};

use crate::commit::{ChangeSet, Commit, Night};
use crate::error::NoSuchNight;
use crate::store::Store;

/// Commits that a night no longer exists. Later nights become stale. Returns `false` if another commit was faster: what is
/// changed may be something else then.
///
/// # Errors
/// [`ErrorKind::TryAgain`](nearprint_fault::ErrorKind::TryAgain) if `store gc` is deleting something that the commit
/// needs; an error if the store cannot be written.
pub async fn drop_night(store: &Store, dt: &str, changes: ChangeSet) -> Result<bool> {
    let Some(before) = &store.commit else { return Ok(false) };
    let left = before.nights.iter().filter(|night| night.dt != dt).cloned().collect();
    let commit = Commit { dt: dt.to_owned(), changes: Some(changes), ..before.next() }.with_nights(left);
    store.put_commit(&commit).await
}

/// Returns the night of a date.
///
/// # Errors
/// [`ErrorKind::InputMissing`](nearprint_fault::ErrorKind::InputMissing) if the store has no such night.
pub fn night_of<'a>(store: &'a Store, dt: &str) -> Result<&'a Night> {
    store.night(dt).ok_or_else(|| {
        let store = store.folder().url();
        Fault::input_missing(&format!("night {dt}"), store.to_owned(), "`store info` lists the nights")
            .about(NoSuchNight { store: Some(store.to_owned()) })
    })
}

/// Returns the nights before a date, which the store may forget. At least the newest night stays, and the newest one that is
/// no night of the [future](Night::future).
///
/// # Errors
/// [`ErrorKind::Usage`](nearprint_fault::ErrorKind::Usage) if the date is later than the newest night.
pub fn forgettable<'a>(store: &'a Store, date: &str) -> Result<Vec<&'a Night>> {
    let newest = store.nights().iter().rfind(|night| !night.future).or(store.nights().last());
    if let Some(newest) = newest.filter(|night| night.dt.as_str() < date) {
        let reason = format!(
            "its newest night is {}, so it would forget all nights: name a date that is not after it",
            newest.dt
        );
        return Err(Fault::usage(format!("{}: {reason}", store.folder().url())));
    }
    Ok(store.before(date))
}

/// Commits that the store forgets all nights before a date. Later nights do not become stale. Returns `false` if another
/// commit was faster.
///
/// # Errors
/// The same as those of [`drop_night`].
pub async fn forget_before(store: &Store, date: &str, changes: ChangeSet) -> Result<bool> {
    let Some(before) = &store.commit else { return Ok(false) };
    let (commit, _) = before.next().forgetting_before(date);
    store.put_commit(&Commit { changes: Some(changes), ..commit }).await
}
