//! Identities of stores. A store draws a random identity, and an output bears the identity of the store that publishes
//! into it. So two stores never publish into one output, and no store deletes files of another.

use std::path::Path;

use nearprint_fault::{ErrorKind, Fault, Part, Result, foreign, words};
use nearprint_parquet::{DELTA_LOG, PublishedDataset};
use nearprint_storage::{Folder, Sha256Hex, Storage};
use serde::{Deserialize, Serialize};

use crate::commit::to_json;
use crate::error::IsOutput;
use crate::names::{COMMITS, INDEXES, MANIFEST, PAGES, RUNS, SEGMENTS, drawn_number};
use crate::store::Store;

/// The name of the file with the identity. It lies below a store, and below each output that the store publishes into.
pub const IDENTITY: &str = "_store.json";

const VERSION: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Identity {
    version: u32,
    /// The identity: 32 hex digits.
    store: String,
    /// The SHA-256 of the JSON without this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
}

impl Identity {
    fn of(store: &str) -> Result<Self> {
        let bare = Self { version: VERSION, store: store.to_owned(), sha256: None };
        let sha256 = Sha256Hex::of(&to_json(&bare)?).0;
        Ok(Self { sha256: Some(sha256), ..bare })
    }
}

/// Returns the identity in a folder, or `None` if the folder has none.
///
/// # Errors
/// [`ErrorKind::Config`](nearprint_fault::ErrorKind::Config) if the identity is damaged or has another version; an
/// error if it cannot be read.
pub async fn identity_in(folder: &Folder) -> Result<Option<String>> {
    let place = folder.join(IDENTITY);
    let Some(content) = place.get().await? else {
        return Ok(None);
    };
    let refused = |reason: String| Fault::refused(place.url().to_owned(), reason);
    let damaged = |why: &str| {
        let copy = "copy the one of the store to its outputs, or that of an output to the store";
        refused(format!("not what names a nearprint store ({why}): {copy}"))
    };
    let found: Identity = serde_json::from_slice(&content).map_err(|e| damaged(&foreign(&e)))?;
    if found.version != VERSION {
        return Err(refused(format!("version {} is not {VERSION}: use the release that wrote it", found.version)));
    }
    if to_json(&Identity::of(&found.store)?)? != content {
        return Err(damaged("its content is not what its own SHA-256 says"));
    }
    Ok(Some(found.store))
}

/// Writes an identity into a folder that has none. Returns the identity that the folder then has.
async fn identify(folder: &Folder, store: &str) -> Result<String> {
    folder.join(IDENTITY).put_if_absent(to_json(&Identity::of(store)?)?).await?;
    let missing = || Fault::try_again(format!("{}/{IDENTITY}: gone since it was written", folder.url()));
    identity_in(folder).await?.ok_or_else(missing)
}

/// Returns the error for a place that has no store, or a store without commits.
pub async fn missing_store(folder: &Folder) -> Fault {
    why_missing(folder).await.unwrap_or_else(|error| error)
}

async fn why_missing(folder: &Folder) -> Result<Fault> {
    let identity = identity_in(folder).await?;
    if is_output(folder).await? {
        let (mut is, mut store) = (" is no store: it is an output".to_owned(), None);
        if let Some(identity) = &identity {
            store = store_beside(folder, identity).await;
            is = format!("{is}, the results of the store {}", store.as_deref().unwrap_or(identity));
        }
        let fault = Fault::new(ErrorKind::InputMissing, words![Part::Place, is]).at(folder.url());
        return Ok(fault.remedy("name that store").about(IsOutput { store }));
    }
    if had_commits(folder).await? {
        return Ok(lost_commits(folder));
    }
    let (what, remedy) = match identity {
        Some(_) => (
            "night in the store",
            "the store is made, and has no night yet: run one first; if it has had some, restore its _commits",
        ),
        None => ("store", "check the path, and that its disk is mounted; a run makes the store's first commit"),
    };
    Ok(Fault::input_missing(what, folder.url().to_owned(), remedy))
}

/// Returns the names in a folder: none if this program may not list it, and so has written none.
async fn names_in(folder: &Folder) -> Result<Vec<String>> {
    match folder.names().await {
        Err(error) if error.kind() == ErrorKind::Permission => Ok(Vec::new()),
        names => names,
    }
}

/// Returns whether a folder has results.
async fn is_output(folder: &Folder) -> Result<bool> {
    Ok(names_in(folder).await?.iter().any(|name| PublishedDataset::of(name).is_some()))
}

/// Returns whether a folder has what only commits name: pages, segments or indexes. A store of fewer than 32 nights may have none.
async fn had_commits(folder: &Folder) -> Result<bool> {
    for name in [PAGES, SEGMENTS, INDEXES] {
        if names_in(&folder.join(name)).await?.iter().any(|name| !name.starts_with('.')) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Makes the fault of a store that had commits, and has none.
fn lost_commits(folder: &Folder) -> Fault {
    let reason =
        format!("no commit, and what only commits name ({PAGES}, {SEGMENTS} or {INDEXES}): restore its {COMMITS}");
    Fault::output_exists(folder.url().to_owned(), reason)
}

/// The most folders beside an output among which its store is looked for.
const MAX_BESIDE: usize = 100;

/// Returns the place of a store that lies beside an output. It is for a message, so faults are passed over.
async fn store_beside(output: &Folder, identity: &str) -> Option<String> {
    let above = output.above()?;
    for name in above.names().await.ok()?.iter().take(MAX_BESIDE) {
        let beside = above.join(name);
        let is_it = identity_in(&beside).await.is_ok_and(|found| found.as_deref() == Some(identity));
        if is_it && Store::open(&beside).await.is_ok_and(|store| !store.is_new()) {
            return Some(beside.url().to_owned());
        }
    }
    None
}

impl Store {
    /// Returns the store's identity. It is `None` before one has been drawn, and if it was lost.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](nearprint_fault::ErrorKind::Config) if the identity is damaged or has another version; an
    /// error if it cannot be read.
    pub async fn identity(&self) -> Result<Option<String>> {
        identity_in(&self.folder).await
    }

    /// Returns the store's identity, and draws one if the store has none.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](nearprint_fault::ErrorKind::Config) if the identity is damaged or has another version; an
    /// error if it cannot be read or written.
    pub async fn make_identity(&self) -> Result<String> {
        match self.identity().await? {
            Some(known) => Ok(known),
            None => identify(&self.folder, &drawn()).await,
        }
    }

    /// Refuses a place that must not begin a store, or go on as one: an output, a store that has lost its commits, and one that
    /// has lost its identity. `identity` is the identity in it.
    ///
    /// # Errors
    /// [`ErrorKind::InputMissing`](nearprint_fault::ErrorKind::InputMissing) if it is an output,
    /// [`ErrorKind::OutputExists`](nearprint_fault::ErrorKind::OutputExists) if the commits are lost, and
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if the identity is.
    pub async fn refuse_lost(&self, identity: Option<&str>) -> Result<()> {
        if !self.is_new() {
            // Another execution may have drawn the identity, and committed, after this one asked.
            let is_lost = identity.is_none() && self.identity().await?.is_none();
            return if is_lost { Err(self.lost_identity()) } else { Ok(()) };
        }
        if is_output(&self.folder).await? {
            return Err(missing_store(&self.folder).await);
        }
        if had_commits(&self.folder).await? && Self::open(&self.folder).await?.is_new() {
            return Err(lost_commits(&self.folder));
        }
        let n_runs = names_in(&self.folder.join(RUNS)).await?.len();
        if n_runs > 1 {
            let store = self.folder.url();
            tracing::warn!(
                store,
                n_runs,
                "run files and no commit: if nights were published, stop, and restore its _commits"
            );
        }
        Ok(())
    }

    /// Makes the fault of a store with commits that has no identity.
    pub(crate) fn lost_identity(&self) -> Fault {
        let reason = "gone, and the store has nights: copy that of one of its outputs there, or make a new store";
        Fault::bad_data(self.folder.join(IDENTITY).url(), reason)
    }

    /// Refuses an output that belongs to another store. `identity` is the identity of this store, or `None` if it has
    /// none yet.
    ///
    /// # Errors
    /// [`ErrorKind::OutputExists`](nearprint_fault::ErrorKind::OutputExists) if the output belongs to another store; an
    /// error if an identity cannot be read.
    pub async fn refuse_output_of_another(&self, identity: Option<&str>, output: &Folder) -> Result<()> {
        match identity_in(output).await? {
            // Another execution may have drawn the store's identity in the meantime, and claimed the output with it.
            Some(owner) if Some(owner.as_str()) != identity && self.identity().await?.as_ref() != Some(&owner) => {
                Err(self.of_another(output))
            }
            _ => Ok(()),
        }
    }

    /// Refuses an output without an identity if this store published nights there and none of them can be found: the
    /// output's disk may not be mounted. One night that is found is enough: the output has only lost its identity.
    ///
    /// # Errors
    /// [`ErrorKind::InputMissing`](nearprint_fault::ErrorKind::InputMissing) if no published night is found; an error
    /// if the output cannot be read.
    pub async fn refuse_unmounted_output(&self, storage: &Storage, output: &Folder) -> Result<()> {
        if identity_in(output).await?.is_some() {
            return Ok(());
        }
        let mut any_night = false;
        for night in self.nights().iter().rev() {
            if storage.folder(night.output_root())?.is_same_place(output) {
                any_night = true;
                if output.join(&night.generation_path()).join(MANIFEST).find().await?.is_some() {
                    return Ok(());
                }
            }
        }
        if !any_night {
            return Ok(());
        }
        let is_relative = !output.url().contains("://") && Path::new(output.url()).is_relative();
        let remedy = match is_relative {
            // In another folder it is another place, into which nothing belongs.
            true => {
                "the store names this place by a relative path, which begins at the folder of the job file: start there, or give \
                 the job file; check that its disk is mounted; if the results were removed on purpose, copy the store's \
                 _store.json there"
            }
            false => {
                "check that its disk is mounted; if they were removed on purpose, copy the store's _store.json there"
            }
        };
        Err(Fault::input_missing("results of earlier nights", output.url().to_owned(), remedy))
    }

    /// Refuses a store without commits if the output has published nights. In that case either the store's commits are
    /// lost, or it is another store.
    ///
    /// # Errors
    /// [`ErrorKind::OutputExists`](nearprint_fault::ErrorKind::OutputExists) if the output has published nights; an
    /// error if the output or the store cannot be read.
    pub async fn refuse_lost_commits(&self, output: &Folder) -> Result<()> {
        if !self.is_new() {
            return Ok(());
        }
        for name in output.names().await? {
            let is_table = PublishedDataset::of(&name).is_some();
            if !is_table || !output.join(&name).names().await?.iter().any(|n| n == DELTA_LOG) {
                continue;
            }
            // Another execution may have published the night after this one opened the store.
            if Self::open(&self.folder).await?.is_new() {
                let reason = format!(
                    "nights are published here ({name}), and {} has no commit: restore its _commits; where it is another store, name an output of its own",
                    self.folder.url()
                );
                return Err(Fault::output_exists(output.url().to_owned(), reason));
            }
        }
        Ok(())
    }

    /// Makes the output belong to this store.
    ///
    /// # Errors
    /// [`ErrorKind::OutputExists`](nearprint_fault::ErrorKind::OutputExists) if the output belongs to another store; an
    /// error if its identity cannot be read or written.
    pub async fn claim_output(&self, identity: &str, output: &Folder) -> Result<()> {
        let owner = match identity_in(output).await? {
            Some(owner) => owner,
            None => identify(output, identity).await?,
        };
        if owner == identity { Ok(()) } else { Err(self.of_another(output)) }
    }

    pub(crate) fn of_another(&self, output: &Folder) -> Fault {
        let reason = format!(
            "another store publishes into it, not {}: check the place of the store (is it mounted, and spelled right?), or name an output of its own; if no night is published here, delete its _store.json",
            self.folder.url()
        );
        Fault::output_exists(output.url().to_owned(), reason)
    }
}

/// Draws an identity. Nothing that is published depends on it.
fn drawn() -> String {
    format!("{:016x}{:016x}", drawn_number(), drawn_number())
}
