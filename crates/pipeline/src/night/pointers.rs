//! The pointers for plain readers: `_current` in a night's folder, and `_SUCCESS` in its generation.

use nearprint_storage::{Folder, Storage};
use nearprint_store::{Night, Store, StoreError, generation_name};

use super::manifest::MANIFEST;
use super::request::RunRequest;
use crate::error::Result;

/// The pointer in a night's folder: it has the name of the night's generation.
pub(crate) const CURRENT: &str = "_current";

/// Writes the pointers for plain readers from the commit: `_SUCCESS` in the generation, and the name of the current
/// generation beside it. If a run dies before this, the next run does it.
///
/// Invariant: a writer of the pointers looks at the commits again afterwards. So the last of several writers leaves the
/// pointers of the last commit.
pub(crate) async fn roll_forward(storage: &Storage, store: &Store, dt: &str) -> Result<()> {
    let mut night = store.night(dt).cloned();
    while let Some(committed) = night.take() {
        if !write_pointers(&storage.folder(&committed.output)?, &committed.gen_digest).await? {
            break;
        }
        let newest = Store::open(store.folder()).await?;
        match newest.night(dt) {
            // The night was dropped meanwhile.
            None => delete_pointer(storage, &committed).await?,
            Some(now) => night = Some(now).filter(|now| **now != committed).cloned(),
        }
    }
    Ok(())
}

/// Writes the pointers of a night. Returns false if they are there already.
pub(crate) async fn write_pointers(night: &Folder, gen_digest: &str) -> Result<bool> {
    let generation = night.join(&generation_name(gen_digest));
    let success = generation.join("_SUCCESS");
    let has_success = success.get().await?.is_some();
    let current = bytes::Bytes::from(format!("{}\n", generation_name(gen_digest)));
    let pointer = night.join(CURRENT);
    let has_pointer = pointer.get().await?.as_ref() == Some(&current);
    if (!has_success || !has_pointer) && generation.join(MANIFEST).find().await?.is_none() {
        // A pointer must not lead to results that are missing, for example on a disk that is not mounted.
        let manifest = generation.join(MANIFEST);
        return Err(StoreError::damaged(manifest.url(), "committed, but its manifest is gone").into());
    }
    if !has_success {
        success.put(bytes::Bytes::new()).await?;
    }
    if !has_pointer {
        pointer.put(current).await?;
    }
    Ok(!has_success || !has_pointer)
}

/// Completes the night of the newest commit, if the run that made it died before it could. A failure is only a warning,
/// because it does not concern this run's night.
pub(crate) async fn complete_newest(storage: &Storage, store: &Store, request: &RunRequest) {
    let Some(newest) = store.newest().filter(|newest| newest.dt != request.dt) else {
        return;
    };
    let done = async {
        request.roots.refuse_outside(storage, "output", &newest.output)?;
        roll_forward(storage, store, &newest.dt).await
    };
    if let Err(error) = done.await {
        tracing::warn!(night = newest.dt, %error, "cannot complete it: run its date again");
    }
}

/// Deletes the pointer to a night's generation, unless it names another one.
pub(crate) async fn delete_pointer(storage: &Storage, night: &Night) -> Result<()> {
    let current = storage.folder(&night.output)?.join(CURRENT);
    let named = bytes::Bytes::from(format!("{}\n", generation_name(&night.gen_digest)));
    match current.get().await? == Some(named) {
        true => Ok(current.delete().await?),
        false => Ok(()),
    }
}
