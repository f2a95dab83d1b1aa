//! The stages of a night: fingerprint, join, decide, and write the run files for the store.

pub(crate) mod bad_rows;
pub(crate) mod changes;
pub(crate) mod decide;
pub(crate) mod decisions_written;
pub(crate) mod existing;
pub(crate) mod families;
pub(crate) mod fingerprint;
pub(crate) mod hosts;
pub(crate) mod join;
pub(crate) mod judge;
pub(crate) mod made_ahead;
pub(crate) mod orphans;
pub(crate) mod sources;
pub(crate) mod store_run;
pub(crate) mod stubs;
pub(crate) mod texts_elsewhere;
