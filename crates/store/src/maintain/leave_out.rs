//! Commits that leave nights out of a store: a dropped night, whose later nights were joined with it, and forgotten nights,
//! which later joins do without.

use nearprint_fault::{Fault, Result};

use crate::commit::{Commit, Night};
use crate::error::{NoSuchNight, others_committed};
use crate::store::{MAX_ATTEMPTS, Store};

/// Commits that a night no longer exists, and returns the night. Later nights become stale.
///
/// # Errors
/// [`ErrorKind::InputMissing`](nearprint_fault::ErrorKind::InputMissing) if the store has no such night;
/// [`ErrorKind::TryAgain`](nearprint_fault::ErrorKind::TryAgain) if others commit again and again; an error if the store
/// cannot be read or written.
pub async fn drop_night(store: &Store, dt: &str) -> Result<Night> {
    let missing = || {
        let store = store.folder().url();
        Fault::input_missing("night", format!("{store} dt={dt}"), "`store info` lists the nights")
            .about(NoSuchNight { store: Some(store.to_owned()) })
    };
    let dropped = recommit(store, |before| {
        let (gone, left): (Vec<Night>, _) = before.nights.iter().cloned().partition(|night| night.dt == dt);
        let dropped = gone.into_iter().next().ok_or_else(missing)?;
        Ok(Some((Commit { dt: dt.to_owned(), ..before.next() }.with_nights(left), dropped)))
    });
    dropped.await?.ok_or_else(missing)
}

/// Commits that the store forgets all nights before a date, and returns these nights, by date. Nothing is committed
/// if there are none. Later nights do not become stale. At least the newest night stays, and the newest one that is no
/// night of the [future](Night::future).
///
/// # Errors
/// [`ErrorKind::Usage`](nearprint_fault::ErrorKind::Usage) if the date is later than the newest night;
/// [`ErrorKind::TryAgain`](nearprint_fault::ErrorKind::TryAgain) if others commit again and again; an error if the store
/// cannot be read or written.
pub async fn forget_before(store: &Store, date: &str) -> Result<Vec<Night>> {
    let forgotten = recommit(store, |before| {
        let newest = before.nights.iter().rfind(|night| !night.future).or(before.nights.last());
        if let Some(newest) = newest.filter(|night| night.dt.as_str() < date) {
            let reason = format!(
                "its newest night is {}, so it would forget all nights: name a date that is not after it",
                newest.dt
            );
            return Err(Fault::usage(format!("{}: {reason}", store.folder().url())));
        }
        let (commit, forgotten) = before.next().forgetting_before(date);
        Ok((!forgotten.is_empty()).then_some((commit, forgotten)))
    });
    // Without a commit, or without such nights, none is forgotten.
    Ok(forgotten.await?.unwrap_or_default())
}

/// Makes a commit from the newest one, again and again if others are faster, and returns what `change` says about it.
/// Nothing is committed if there is no commit yet, or if `change` gives none.
async fn recommit<T>(store: &Store, change: impl Fn(&Commit) -> Result<Option<(Commit, T)>>) -> Result<Option<T>> {
    let mut store = Store { folder: store.folder.clone(), commit: store.commit.clone() };
    for _ in 0..MAX_ATTEMPTS {
        let Some((commit, done)) = store.commit.as_ref().map(&change).transpose()?.flatten() else {
            return Ok(None);
        };
        if store.put_commit(&commit).await? {
            return Ok(Some(done));
        }
        store = Store::open(&store.folder).await?;
    }
    Err(others_committed(MAX_ATTEMPTS))
}
