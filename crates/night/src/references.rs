//! Reference stores: a night is joined with them too, and nothing is ever written there.

use nearprint_fault::{Fault, Result};
use nearprint_join::Origin;
use nearprint_pipeline::ReferenceNames;
use nearprint_profile::Configuration;
use nearprint_storage::{Folder, Storage, redact};
use nearprint_store::{JoinedNights, Store};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A reference store in the state in which a night was joined with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JoinedReference {
    /// The store, as the request names it.
    pub store: String,
    /// The number of its newest commit.
    pub commit: u64,
    /// The digest of the list of its run files.
    pub joined: String,
    /// The number of its nights.
    pub n_nights: u64,
    /// The number of its fingerprints that probed.
    pub n_existing: u64,
}

/// A reference store that is opened, in the state of its newest commit.
#[derive(Debug)]
struct Reference {
    name: String,
    store: Store,
    origin: Origin,
}

/// The reference stores of a run, in the order of their list.
#[derive(Debug, Default)]
pub(crate) struct References(Vec<Reference>);

impl References {
    /// Opens reference stores for a night of a configuration, whose own store has the `identity`.
    ///
    /// # Errors
    /// [`ErrorKind::InputMissing`](nearprint_fault::ErrorKind::InputMissing) if a store is missing or has no commit; a
    /// store has another configuration, is the own store, or cannot be read.
    pub(crate) async fn open(
        storage: &Storage,
        names: &[String],
        configuration: &Configuration,
        identity: Option<&str>,
    ) -> Result<Self> {
        let mut references = Vec::new();
        for (position, name) in names.iter().enumerate() {
            let folder = storage.input(name)?;
            let missing = || {
                Fault::input_missing(
                    "reference store",
                    folder.url().to_owned(),
                    "check the path, and that its disk is mounted; a reference needs at least one night",
                )
            };
            let store = Store::open_existing(&folder).await?.ok_or_else(missing)?;
            store.refuse_as_reference(&configuration.digest(), |other| configuration.differences(other))?;
            if identity.is_some() && store.identity().await?.as_deref() == identity {
                return Err(own_store(name));
            }
            references.push(Reference { name: name.clone(), store, origin: origin_of(position)? });
        }
        Ok(Self(references))
    }

    /// Returns the names, in the order of the list.
    pub(crate) fn names(&self) -> ReferenceNames {
        ReferenceNames(self.0.iter().map(|reference| reference.name.clone()).collect())
    }

    /// Returns the nights of each store: all of them.
    pub(crate) fn nights(&self) -> impl Iterator<Item = JoinedNights<'_>> {
        self.0.iter().map(|reference| reference.store.all_nights(reference.origin))
    }

    /// Returns the number of nights of all stores, and of their fingerprints, with those of documents that later nights
    /// have again.
    pub(crate) fn size(&self) -> (u64, u64) {
        let infos = self.0.iter().map(|reference| reference.store.info());
        infos.fold((0, 0), |(n, rows), info| (n + info.n_nights, rows + info.n_fingerprints))
    }

    /// Returns the name of each store and the digest of its run files: what the results of a night depend on.
    pub(crate) fn states(&self) -> Vec<(&str, String)> {
        let names = self.0.iter().map(|reference| reference.name.as_str());
        names.zip(self.nights().map(|nights| nights.digest())).collect()
    }

    /// Returns what a night says about the references. `n_existing` has the number of fingerprints that probed, for each
    /// of them.
    pub(crate) fn joined(&self, n_existing: &[u64]) -> Vec<JoinedReference> {
        debug_assert_eq!(
            n_existing.len(),
            self.0.len() + 1,
            "each reference has its number of existing documents, and the own store has the last one"
        );
        let states = self.0.iter().zip(self.states()).zip(n_existing);
        let joined = states.map(|((reference, (name, joined)), &n_existing)| JoinedReference {
            store: name.to_owned(),
            commit: reference.store.sequence(),
            joined,
            n_nights: reference.store.nights().len() as u64,
            n_existing,
        });
        joined.collect()
    }
}

/// The places that a run writes.
pub(crate) struct Written<'a> {
    pub(crate) store: &'a str,
    pub(crate) output: &'a str,
    pub(crate) spill: &'a str,
}

/// Refuses reference stores that are named twice, and those that lie in what a run writes, or around it: nothing may
/// ever be written there.
pub(crate) fn refuse_written(storage: &Storage, names: &[String], written: &Written<'_>) -> Result<()> {
    origin_of(names.len().saturating_sub(1))?;
    let [store, output, spill] = [written.store, written.output, written.spill].map(|url| storage.folder(url));
    let (store, output, spill) = (store?, output?, spill?);
    let mut before: Vec<Folder> = Vec::new();
    for name in names {
        let place = storage.folder(name)?;
        if place.is_same_place(&store) {
            return Err(own_store(name));
        }
        let mut overlapping = [("store", &store), ("output", &output)].into_iter();
        if let Some((key, other)) = overlapping.find(|(_, other)| place.overlaps(other)) {
            let why = "a run writes there, and never into a reference";
            return Err(refused(name, &format!("holds or lies in {key} = '{}': {why}", other.url())));
        }
        if place.contains(&spill) {
            let why = "a run writes there, and never into a reference; name another folder";
            return Err(refused(name, &format!("holds resources.spill_dir = '{}': {why}", spill.url())));
        }
        if before.iter().any(|other| place.is_same_place(other)) {
            return Err(refused(name, "is named twice: name each store once"));
        }
        before.push(place);
    }
    Ok(())
}

fn origin_of(position: usize) -> Result<Origin> {
    let too_many = || {
        let reason = format!("there are more than {}: merge some of the stores", Origin::MAX_REFERENCES);
        Fault::config("references", reason)
    };
    Origin::reference(position).ok_or_else(too_many)
}

fn own_store(name: &str) -> Fault {
    refused(name, "is the night's own store, or a copy of it: its earlier nights are joined anyway, so leave it out")
}

fn refused(name: &str, why: &str) -> Fault {
    Fault::config("references", format!("'{}' {why}", redact(name)))
}
