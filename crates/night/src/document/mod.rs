//! One document: what each night of a store decided about it, and what became of the document that represents it.

mod decided;
mod near_ids;
mod readable;
mod represented;

use nearprint_fault::{ErrorKind, Fault, Result};
use nearprint_parquet::schema::{DROP, KEEP, SKIP};
use nearprint_pipeline::STUB;
use nearprint_storage::Storage;
use nearprint_store::{DocumentState, Night, StateContent, Store};
use schemars::JsonSchema;
use serde::Serialize;

use crate::document::decided::Decided;
use crate::document::readable::readable;
use crate::published::open_store;

pub use crate::document::represented::Represented;

/// The history of a document: its nights, and what it represents or is represented by.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DocumentHistory {
    /// The store.
    pub store: String,
    /// The number of the store's newest commit.
    pub commit: u64,
    /// The number of nights of the store, all of which were asked for the id.
    pub n_nights: u64,
    /// The date before which the store has forgotten all nights, or `None` if it has forgotten none by its age.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forgotten_before: Option<String>,
    /// The id.
    pub id: String,
    /// The first night that had the id, as far as the store knows.
    pub first_seen: String,
    /// The night in which the text came to be what it is, as far as the store knows.
    pub last_changed: String,
    /// The nights that have the id, the newest first. There is at least one.
    pub nights: Vec<DocumentNight>,
    /// The document that represents it, if the newest of its nights dropped it.
    pub representative: Option<Representative>,
    /// The documents that it represents, or `None` if its newest night did not keep it, or if they were not counted.
    pub represents: Option<Represented>,
    /// The reason why the documents that it represents were not counted, if they were not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_counted: Option<String>,
}

/// A night of a document, and what was decided there.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DocumentNight {
    /// The night.
    pub dt: String,
    /// `keep`, `drop` or `skip`.
    pub decision: String,
    /// The reason of the decision. `None` if the results of the night cannot be read.
    pub reason: Option<String>,
    /// The document that represents it, if it was dropped; `None` also if that one was forgotten.
    pub canonical_id: Option<String>,
    /// The reference store that has `canonical_id`, as the job names it. `None` if it is the night's own store.
    pub reference: Option<String>,
    /// The Hamming distance to that document.
    pub distance: Option<i32>,
    /// The share of its features that the document loses with that one, if it is known.
    pub lost_share: Option<f64>,
    /// What its text is to that of the night of the document before: `new` if there is none, `same`, `changed`.
    pub recrawl: String,
    /// Nights before were added, replaced or dropped since the night was made.
    pub stale: bool,
    /// The later night that decided the document again, because the one that represented it was gone. The decision and
    /// what belongs to it are then those of that night.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_again_on: Option<String>,
    /// The reason why the results of the night cannot be read, if they cannot. The decision is then that of the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// The fingerprint in the store.
    #[serde(skip)]
    pub fingerprint: Option<u64>,
}

/// The document that represents another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Representative {
    /// Its id.
    pub id: String,
    /// The reference store that has it, as the job names it. Nothing else is known of it then.
    pub reference: Option<String>,
    /// Whether it still stands.
    pub standing: Standing,
    /// The newest night that has it.
    pub dt: Option<String>,
    /// The document that represents it in turn, if that night dropped it.
    pub canonical_id: Option<String>,
    /// Its state for which the other document was dropped, if the store still has it.
    pub then: Option<StateThen>,
}

/// The state of a document for which another one was dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StateThen {
    /// The night of the state.
    pub dt: String,
    /// The text has changed since.
    pub text_changed: bool,
    /// The fingerprint in the store.
    #[serde(skip)]
    pub fingerprint: Option<u64>,
}

/// What became of a document that represents another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Its newest night kept it.
    Kept,
    /// Its newest night dropped it.
    Dropped,
    /// It has no text in its newest night.
    Empty,
    /// No night of the store has it any more: its nights were dropped or forgotten, or it was.
    Gone,
    /// It is a document of a reference store.
    InReference,
}

/// Tells the fault of an id that no night has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoSuchDocument {
    /// The id.
    pub id: String,
    /// Ids that are like it and that the store has, the likeliest first.
    pub near: Vec<String>,
}

/// Returns the history of a document of a store, with at most `n_examples` of the documents that it represents.
///
/// It is found by page indexes, so the size of the nights hardly counts; a night without the document costs one page.
///
/// # Errors
/// [`ErrorKind::InputMissing`] about [`NoSuchDocument`] if no night has the id; an error if a file of the store is damaged
/// or cannot be read. Results that are missing or damaged are said in the night.
pub async fn document_history(
    storage: &Storage,
    store_url: &str,
    id: &str,
    n_examples: usize,
) -> Result<DocumentHistory> {
    let store = open_store(storage, store_url).await?;
    let states = store.states(&[id]).await?;
    let stubs = stub_nights(storage, &store, id).await?;
    let mut nights = Vec::with_capacity(states.len() + stubs.len());
    for (i, state) in states.iter().enumerate() {
        nights.push(night(storage, &store, state, states.get(i + 1)).await?);
    }
    let newest_state = nights.first().cloned();
    nights.extend(stubs);
    nights.sort_by(|a, b| b.dt.cmp(&a.dt));
    let Some(first) = nights.last() else {
        return Err(no_such_document(storage, &store, id).await?);
    };
    let (newest, oldest_dt) = (states.first(), states.last().map_or(&first.dt, |state| &state.dt).clone());
    let changed = states.windows(2).find(|pair| !has_same_text(&pair[0], &pair[1])).map(|pair| &pair[0].dt);
    let representative = match &newest_state {
        Some(night) if night.decision == DROP => representative(&store, night).await?,
        _ => None,
    };
    let (mut represents, mut not_counted) = (None, None);
    if newest_state.is_some_and(|night| night.decision == KEEP) {
        match represented::represented(storage, &store, id, &oldest_dt, n_examples).await? {
            Ok(found) => represents = Some(found),
            Err(reason) => not_counted = Some(reason),
        }
    }
    Ok(DocumentHistory {
        store: store_url.to_owned(),
        commit: store.sequence(),
        n_nights: store.nights().len() as u64,
        forgotten_before: store.forgotten().map(|forgotten| forgotten.before.clone()),
        id: id.to_owned(),
        first_seen: newest.and_then(|state| state.first_seen.clone()).unwrap_or_else(|| oldest_dt.clone()),
        last_changed: newest
            .and_then(|state| state.last_changed.clone())
            .unwrap_or_else(|| changed.unwrap_or(&oldest_dt).clone()),
        nights,
        representative,
        represents,
        not_counted,
    })
}

impl DocumentHistory {
    /// Returns the newest night that has a state of the document: one that took it for no stub. If there is none, returns the
    /// newest night.
    #[must_use]
    pub fn newest_state(&self) -> Option<&DocumentNight> {
        let is_state = |night: &&DocumentNight| night.reason.as_deref() != Some(STUB);
        self.nights.iter().find(is_state).or(self.nights.first())
    }
}

/// Returns the nights that took a document for a stub, of which the store knows no state.
async fn stub_nights(storage: &Storage, store: &Store, id: &str) -> Result<Vec<DocumentNight>> {
    let mut nights = Vec::new();
    for night in store.nights().iter().filter(|night| night.has_stubs) {
        // Without readable results, nobody knows.
        let Ok(Some(decided)) = readable(Decided::find(storage, store, night, id).await)? else { continue };
        if decided.reason == STUB {
            nights.push(DocumentNight {
                dt: night.dt.clone(),
                decision: decided.decision,
                reason: Some(decided.reason),
                canonical_id: None,
                reference: None,
                distance: None,
                lost_share: None,
                recrawl: decided.recrawl.unwrap_or_else(|| "new".to_owned()),
                stale: store.is_stale(night),
                decided_again_on: None,
                unread: None,
                fingerprint: None,
            });
        }
    }
    Ok(nights)
}

/// Returns what a night says of a document. `before` is its state in the night before that has it.
async fn night(
    storage: &Storage,
    store: &Store,
    state: &DocumentState,
    before: Option<&DocumentState>,
) -> Result<DocumentNight> {
    let night = night_of(store, state)?;
    let recrawl = match before {
        None => "new",
        Some(before) if has_same_text(state, before) => "same",
        Some(_) => "changed",
    };
    let decision = match (state.content, &state.canonical_id) {
        (StateContent::Empty, _) => SKIP,
        (_, None) => KEEP,
        (_, Some(_)) => DROP,
    };
    let of_store = DocumentNight {
        dt: state.dt.clone(),
        decision: decision.to_owned(),
        reason: None,
        canonical_id: state.canonical_id.clone(),
        reference: None,
        distance: None,
        lost_share: None,
        recrawl: recrawl.to_owned(),
        stale: store.is_stale(night),
        decided_again_on: None,
        unread: None,
        fingerprint: fingerprint(state),
    };
    let unread = |reason: String| Ok(DocumentNight { unread: Some(reason), ..of_store.clone() });
    let own = match readable(Decided::find(storage, store, night, &state.id).await)? {
        Ok(Some(decided)) => decided,
        Ok(None) => {
            return unread("the decisions of the night lack the document: `nearprint check` reads them all".to_owned());
        }
        Err(reason) => return unread(reason),
    };
    let again = match state.is_decided_again {
        true => readable(Decided::find_again(storage, store, &state.dt, &state.id).await)?,
        false => Ok(None),
    };
    let recrawl = own.recrawl.clone().unwrap_or_else(|| recrawl.to_owned());
    let (decided_again_on, decided) = match again {
        Ok(Some((dt, decided))) => (Some(dt), decided),
        Ok(None) => (None, own),
        Err(reason) => return unread(reason),
    };
    Ok(DocumentNight {
        decision: decided.decision,
        reason: Some(decided.reason),
        canonical_id: decided.canonical_id,
        reference: decided.reference,
        distance: decided.distance,
        lost_share: decided.lost_share,
        recrawl,
        decided_again_on,
        ..of_store
    })
}

fn night_of<'a>(store: &'a Store, state: &DocumentState) -> Result<&'a Night> {
    store
        .night(&state.dt)
        .ok_or_else(|| Fault::internal("explain", format!("a state of {}, which is no night", state.dt)))
}

fn fingerprint(state: &DocumentState) -> Option<u64> {
    match state.content {
        StateContent::Fingerprinted { fingerprint, .. } => Some(fingerprint),
        StateContent::Short { .. } | StateContent::Empty => None,
    }
}

/// Returns whether two states have the same normalised text. Both without text count as the same.
fn has_same_text(a: &DocumentState, b: &DocumentState) -> bool {
    let text = |state: &DocumentState| (state.content == StateContent::Empty, state.text_hash());
    text(a) == text(b)
}

/// Returns what became of the document for which another one was dropped in a night, or `None` if that one was forgotten.
async fn representative(store: &Store, dropped: &DocumentNight) -> Result<Option<Representative>> {
    let Some(id) = dropped.canonical_id.clone() else { return Ok(None) };
    let of = |standing| Representative {
        id: id.clone(),
        reference: dropped.reference.clone(),
        standing,
        dt: None,
        canonical_id: None,
        then: None,
    };
    if dropped.reference.is_some() {
        return Ok(Some(of(Standing::InReference)));
    }
    let states = store.states(&[&id]).await?;
    let Some(newest) = states.first() else { return Ok(Some(of(Standing::Gone))) };
    let standing = match (newest.content, &newest.canonical_id) {
        (StateContent::Empty, _) => Standing::Empty,
        (_, None) => Standing::Kept,
        (_, Some(_)) => Standing::Dropped,
    };
    let since = dropped.decided_again_on.as_ref().unwrap_or(&dropped.dt);
    let then = states.iter().find(|state| state.dt <= *since).map(|then| StateThen {
        dt: then.dt.clone(),
        text_changed: !has_same_text(newest, then),
        fingerprint: fingerprint(then),
    });
    Ok(Some(Representative {
        dt: Some(newest.dt.clone()),
        canonical_id: newest.canonical_id.clone(),
        then,
        ..of(standing)
    }))
}

/// Makes the fault of an id that no night has. It names ids that are like it.
async fn no_such_document(storage: &Storage, store: &Store, id: &str) -> Result<Fault> {
    let near = near_ids::near_ids(storage, store, id).await?;
    let reason = format!("no night of {} has the document '{}'", store.folder().url(), id.escape_debug());
    let forgotten = store.forgotten().map(|forgotten| format!("; nights before {} are forgotten", forgotten.before));
    let shown: Vec<String> = near.iter().map(|near| format!("'{}'", near.escape_debug())).collect();
    let remedy = match shown.split_last() {
        None => "check the id; rows that are no documents are in the table `quarantine`".to_owned(),
        Some((only, [])) => format!("did you mean {only}?"),
        Some((last, others)) => format!("did you mean {} or {last}?", others.join(", ")),
    };
    let fault = Fault::new(ErrorKind::InputMissing, reason + &forgotten.unwrap_or_default());
    Ok(fault.remedy(remedy).about(NoSuchDocument { id: id.to_owned(), near }))
}
