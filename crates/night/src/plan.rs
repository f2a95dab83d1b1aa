//! The plan of a run before any document is read, and the runs that are refused.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use nearprint_documents::Documents;
use nearprint_fault::{Fault, Result, Words, key, words};
use nearprint_pipeline::StaleNight;
use nearprint_storage::{Folder, Storage, utc};
use nearprint_store::{Night, Store, identity_in, night_records};

use super::documents;
use super::manifest::{InputRecord, Manifest};
use super::published::generation;
use super::references::References;
use super::request::RunRequest;

/// The plan of a run, before any document is read.
pub(crate) struct Plan {
    pub(crate) store: Store,
    pub(crate) references: References,
    pub(crate) documents: Documents,
    pub(crate) config_digest: String,
    /// The digests of the runs with which the night is joined, as lists of joined runs name them.
    pub(crate) joined: Vec<String>,
    pub(crate) inputs: Vec<InputRecord>,
    /// The digest of everything that the night's results depend on.
    pub(crate) digest: String,
    pub(crate) newest_input: Option<String>,
    /// The date is far ahead of the newest input. It is if there is no input.
    pub(crate) is_ahead_of_input: bool,
    pub(crate) output: Folder,
    /// The folder with the manifests of the night's generations.
    pub(crate) records: Folder,
}

/// The store, the references and the output of a run. They are checked against its configuration and each other.
pub(crate) struct Opened {
    pub(crate) store: Store,
    pub(crate) references: References,
    pub(crate) config_digest: String,
    pub(crate) output: Folder,
}

/// Opens the places of a run, whatever its night. Nothing is written.
///
/// # Errors
/// The store or a reference is missing or has another configuration, or the output is that of another store.
pub(crate) async fn open(storage: &Storage, request: &RunRequest) -> Result<Opened> {
    request.profile.join.verifier(request.profile.bits)?;
    let configuration = request.configuration();
    let config_digest = configuration.digest();
    let store = Store::open(&storage.folder(&request.store)?).await?;
    store.refuse_other_config(&config_digest, |other| configuration.differences(other))?;
    let identity = store.identity().await?;
    let output = storage.folder(&request.output)?;
    store.refuse_lost(identity.as_deref()).await?;
    refuse_missing_store(&store, identity.as_deref(), request, &output).await?;
    store.refuse_output_of_another(identity.as_deref(), &output).await?;
    store.refuse_lost_commits(&output).await?;
    store.refuse_unmounted_output(storage, &output).await?;
    let references = References::open(storage, &request.references, &configuration, identity.as_deref()).await?;
    Ok(Opened { store, references, config_digest, output })
}

pub(crate) async fn plan(storage: &Storage, request: &RunRequest) -> Result<Plan> {
    let Opened { store, references, config_digest, output } = open(storage, request).await?;
    let documents = documents::open(storage, request).await?;
    let newest_input = documents.files().map(|f| f.modified).max();
    let is_ahead_of_input = newest_input.is_none_or(|newest| is_far_ahead(&request.dt, newest));
    let newest_input = newest_input.map(utc);
    let joined = store.nights_before(&request.dt).digests();
    let mut inputs: Vec<InputRecord> =
        documents.files().chain(documents.bad.iter().map(|(file, _)| file)).map(InputRecord::of).collect();
    inputs.sort();
    let before_forgetting = joined_before_forgetting(storage, &store, request).await?;
    let joined_then = before_forgetting.as_ref().unwrap_or(&joined);
    // With `replace`, a night is made by the defaults of this release, whichever made the published one.
    let published = store.night(&request.dt).filter(|_| !request.replace);
    let compared = published.map_or(Cow::Borrowed(request), |night| request.at_release_of(night));
    let digest = compared.digest(&config_digest, &inputs, joined_then, &references.states())?;
    let records = output.join(&night_records(&request.dt));
    Ok(Plan {
        store,
        references,
        documents,
        config_digest,
        joined,
        inputs,
        digest,
        newest_input,
        is_ahead_of_input,
        output,
        records,
    })
}

/// The days by which a date may be ahead of the clock, or of the documents: time zones make up one of them.
const AHEAD_DAYS: u64 = 2;

/// Returns whether a date is more than [`AHEAD_DAYS`] days after a time.
fn is_far_ahead(dt: &str, time: SystemTime) -> bool {
    let last = time.checked_add(Duration::from_secs(AHEAD_DAYS * 24 * 60 * 60));
    last.is_some_and(|last| dt > date_of(last).as_str())
}

fn date_of(time: SystemTime) -> String {
    utc(time).chars().take_while(|&c| c != 'T').collect()
}

/// The inputs of a stale night that have changed: the store has other nights now than those that it was joined with.
const EARLIER_NIGHTS: &str = "earlier nights";

impl Plan {
    /// Returns whether the night is marked as one of the future: it was asked for as such, now or when it was published, and
    /// its date is far ahead of its documents. The clock does not matter.
    pub(crate) fn is_future(&self, request: &RunRequest) -> bool {
        let was_asked = request.future || self.store.night(&request.dt).is_some_and(|night| night.future);
        was_asked && self.is_ahead_of_input
    }

    /// Returns the nights that the night's commit makes the store forget.
    pub(crate) fn leaving(&self, request: &RunRequest) -> Vec<&Night> {
        self.store.leaving(&request.dt, self.is_future(request), request.keep_nights)
    }

    /// Says in which of inputs, earlier nights and references a published night differs. If it is none of them, it is a
    /// key of the configuration: those on which fingerprints depend are the same, else the store would have refused.
    fn changed(&self, night: &Night, published: &Manifest) -> String {
        let differ = [
            (published.sorted_inputs() != self.inputs, "inputs"),
            (self.store.is_stale(night), EARLIER_NIGHTS),
            (published.states() != self.references.states(), "references"),
        ];
        let names: Vec<&str> = differ.into_iter().filter(|(differs, _)| *differs).map(|(_, name)| name).collect();
        if names.is_empty() { "configuration".to_owned() } else { names.join(" and ") }
    }
}

/// Returns the runs that a published night was joined with, if the store has forgotten some of them and the others are the
/// same. A run of the same request then finds the night published. With `replace`, it is joined with those that are left.
async fn joined_before_forgetting(
    storage: &Storage,
    store: &Store,
    request: &RunRequest,
) -> Result<Option<Vec<String>>> {
    let is_same = |night: &&Night| !store.is_stale(night);
    match store.night(&request.dt).filter(|_| !request.replace && store.forgotten().is_some()).filter(is_same) {
        Some(night) => Ok(Some(Manifest::read(&generation(storage, night)?, night).await?.joined)),
        None => Ok(None),
    }
}

/// Refuses a store that is missing. It may be on a disk that is not mounted, or have another name, so a new one is made
/// only on request. An output that belongs to a store already takes no new one.
pub(crate) async fn refuse_missing_store(
    store: &Store,
    identity: Option<&str>,
    request: &RunRequest,
    output: &Folder,
) -> Result<()> {
    if request.create_store || identity.is_some() || !store.is_new() {
        return Ok(());
    }
    let remedy = match identity_in(output).await? {
        Some(_) => Words::from(
            "check the path, and that its disk is mounted: the output has nights of a store, and takes no other one",
        ),
        None => {
            words![
                "check the path, and that its disk is mounted; a first night makes the store with ",
                key("create_store"),
                ", or after `nearprint store init`"
            ]
        }
    };
    Err(Fault::input_missing("store", request.store.clone(), remedy))
}

/// Refuses a night that is published from something else. The message says what it was.
pub(crate) async fn refuse_republishing(
    storage: &Storage,
    plan: &Plan,
    published: &Night,
    request: &RunRequest,
) -> Result<()> {
    if request.replace {
        return Ok(());
    }
    // A manifest that cannot be read says nothing. The night is published all the same.
    let changed = match Manifest::read(&generation(storage, published)?, published).await {
        Ok(manifest) => match plan.changed(published, &manifest) {
            changed if changed == EARLIER_NIGHTS => return Err(stale(published, plan)),
            changed => format!("from other {changed}"),
        },
        Err(error) => format!("from something else, and its manifest does not say from what ({error})"),
    };
    let reason =
        words![format!("{} is published {changed}: keep it, or publish anew with ", request.dt), key("replace")];
    Err(Fault::output_exists(plan.output.url().to_owned(), reason))
}

/// Tells the fault of a night whose date is far after today.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FarAhead;

/// Refuses a new night whose date is far ahead of the clock and of its documents: every real night would come before it.
pub(crate) fn refuse_future(plan: &Plan, request: &RunRequest) -> Result<()> {
    let now = SystemTime::now();
    if request.future || !plan.is_ahead_of_input || !is_far_ahead(&request.dt, now) {
        return Ok(());
    }
    let newest = plan.newest_input.as_ref().map_or(String::new(), |at| format!(" and after its newest input ({at})"));
    let reason = format!("{} is more than {AHEAD_DAYS} days after today ({}){newest}", request.dt, date_of(now));
    let remedy = words!["check ", key("dt"), ", or say ", key("future"), " to publish it"];
    Err(Fault::usage(reason).remedy(remedy).about(FarAhead))
}

/// Returns the refusal of a night of which nothing but the earlier nights has changed.
fn stale(published: &Night, plan: &Plan) -> Fault {
    let reason = format!("{} is published from other earlier nights than there are now, so it is stale", published.dt);
    let remedy = words![
        "`nearprint run --config FILE --stale` makes all stale nights of the output anew, and ",
        key("replace"),
        " this one"
    ];
    Fault::output_exists(plan.output.url(), reason).remedy(remedy).about(StaleNight)
}

pub(crate) fn refuse_late(store: &Store, request: &RunRequest) -> Result<()> {
    match store.nights().last() {
        Some(newest) if newest.dt > request.dt && !request.late => {
            let reason = words![
                format!("{} is older than the store's newest night {}: say ", request.dt, newest.dt),
                key("late"),
                " to add it"
            ];
            Err(Fault::usage(reason))
        }
        _ => Ok(()),
    }
}

/// Refuses a night that the store has forgotten by its age, or would forget in the very commit that adds it.
pub(crate) fn refuse_forgotten(store: &Store, request: &RunRequest) -> Result<()> {
    let dt = request.dt.as_str();
    if let Some(forgotten) = store.forgotten().filter(|forgotten| dt < forgotten.before.as_str()) {
        let reason = format!("{dt} is refused: the store has forgotten all nights before {}", forgotten.before);
        return Err(Fault::usage(reason));
    }
    let n_newer = store.nights().iter().filter(|night| !night.future && night.dt.as_str() > dt).count();
    match request.keep_nights {
        Some(n) if n_newer >= n.get() as usize => {
            let reason = words![
                format!("{dt} is refused: the store has {n_newer} newer nights and would forget it at once: raise "),
                key("keep_nights"),
                format!(" = {n}")
            ];
            Err(Fault::usage(reason))
        }
        _ => Ok(()),
    }
}

pub(crate) fn moved(published: &Night, plan: &Plan) -> Fault {
    let reason = words![
        format!(
            "{} is published in {}, not here: name that output, or publish the night here with ",
            published.dt,
            published.output_root()
        ),
        key("replace")
    ];
    Fault::output_exists(plan.output.url().to_owned(), reason)
}
