//! Faults of a night's work, and what a caller may tell them by.

use std::collections::BTreeMap;

use nearprint_documents::{Absent, BadReason};
use nearprint_fault::{ErrorKind, Fault, Part, foreign, key, words};
use nearprint_store::{NoSuchNight, Store};

/// Tells the fault of a night with more rows that cannot be used than are allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooManyBadRows {
    /// The number of these rows.
    pub n: u64,
    /// Reading stopped at so many, and there may be more.
    pub is_stopped: bool,
    /// Their numbers by reason.
    pub by_reason: BTreeMap<String, u64>,
    /// Files, rows and reasons of the first of them.
    pub examples: Vec<String>,
    /// The row, and its reason, that the message explains.
    pub explained: (u64, BadReason),
    /// Whether files are damaged, or no row at all can be used. Then more allowed rows are no remedy.
    pub is_damage: bool,
}

/// Tells the fault of a night that is published from the same inputs and configuration, and from other earlier nights than
/// there are now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StaleNight;

/// Makes the fault of more pairs than are allowed.
pub(crate) fn too_many_pairs(max_pairs: u64) -> Fault {
    let remedy =
        words!["raise ", key("max_pairs"), ", lower ", key("max_distance"), ", or set ", key("pairs"), " to forest"];
    Fault::new(ErrorKind::BadData, format!("more than {max_pairs} pairs")).remedy(remedy)
}

/// The number of nights that a message names.
const NAMED_NIGHTS: usize = 3;

/// Makes the fault of a night, or the nights from one to another, that a store does not have.
#[must_use]
pub fn not_published(store: &Store, dt: &str) -> Fault {
    let newest: Vec<&str> = store.nights().iter().rev().take(NAMED_NIGHTS).map(|night| night.dt.as_str()).collect();
    let newest = match newest.as_slice() {
        [] => "it has no night".to_owned(),
        newest => format!("its newest: {}", newest.join(", ")),
    };
    let reason = words![format!("no published night {dt} in "), Part::Place, format!(" ({newest})")];
    Fault::new(ErrorKind::InputMissing, reason)
        .at(store.folder().url())
        .remedy("check the date, or run the night first; `nearprint store info` lists all nights")
        .about(NoSuchNight { store: None })
}

/// Returns whether there are no documents to read. A scheduler may take this for a night on which nothing was crawled.
#[must_use]
pub fn is_without_documents(fault: &Fault) -> bool {
    fault.matter().is_some_and(|absent: &Absent| absent.is_empty_night())
}

/// Returns whether the night's documents are not there yet: there are none, or a file that marks them as complete is
/// missing. The same run may succeed later.
#[must_use]
pub fn is_late(fault: &Fault) -> bool {
    match fault.matter() {
        Some(Absent::NoMarker) => true,
        // An object store has no empty folders: before the first crawl, the place of nights is not there.
        Some(Absent::NoNights) => fault.place().file.as_ref().is_some_and(|url| url.contains("://")),
        _ => is_without_documents(fault),
    }
}

/// Wraps the fault for the way through DataFusion. [`of_datafusion`] unwraps it.
pub(crate) fn into_datafusion(fault: Fault) -> datafusion_common::DataFusionError {
    datafusion_common::DataFusionError::External(Box::new(fault))
}

pub(crate) fn of_datafusion(stage: &'static str, error: datafusion_common::DataFusionError) -> Fault {
    use datafusion_common::DataFusionError as D;
    // The only trace of the limit is the name of DataFusion's own setting for it.
    if error.to_string().contains("max_temp_directory_size") {
        let reason = words![format!("{stage}: the spill files reach "), key("max_spill")];
        let remedy = words!["raise it, or ", key("memory_limit"), " and ", key("reduce_memory")];
        return Fault::new(ErrorKind::LocalIo, reason).remedy(remedy);
    }
    match error {
        D::ArrowError(inner, _) => match *inner {
            arrow::error::ArrowError::IoError(_, source) => Fault::io("spill file")(source),
            other => Fault::internal(stage, foreign(&other)),
        },
        D::External(inner) => match inner.downcast::<Fault>() {
            Ok(own) => *own,
            Err(other) => Fault::internal(stage, foreign(&other)),
        },
        D::Context(_, inner) | D::Diagnostic(_, inner) => of_datafusion(stage, *inner),
        D::Shared(inner) => match std::sync::Arc::try_unwrap(inner) {
            Ok(inner) => of_datafusion(stage, inner),
            Err(shared) => of_shared(stage, &shared),
        },
        D::ResourcesExhausted(reason) => {
            tracing::debug!(reason, "sort");
            let reason = format!("{stage}: the sorts need more memory than they may take");
            let remedy = words!["raise ", key("memory_limit"), ", or ", key("reduce_memory"), " if that is smaller"];
            Fault::new(ErrorKind::LocalIo, reason).remedy(remedy)
        }
        D::IoError(source) => Fault::io("spill file")(source),
        other => Fault::internal(stage, foreign(&other)),
    }
}

/// Makes a fault of an error that several tasks hold. A fault among its causes is shared.
fn of_shared(stage: &'static str, error: &(dyn std::error::Error + 'static)) -> Fault {
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(own) = cause.downcast_ref::<Fault>() {
            return own.clone();
        }
        next = cause.source();
    }
    Fault::internal(stage, foreign(error))
}
