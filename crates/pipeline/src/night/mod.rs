//! A night: from the request of a run to the published results.

pub(crate) mod breakers;
pub(crate) mod documents;
mod dry_run;
mod generations;
pub(crate) mod inputs;
pub(crate) mod manifest;
mod measure;
mod plan;
mod preflight;
pub(crate) mod publish;
pub(crate) mod published;
pub(crate) mod references;
pub(crate) mod request;
mod run;
pub(crate) mod summary;
pub(crate) mod tables;

pub use breakers::{
    Breakers, DocumentShare, DropRate, Evidence, LargestCluster, LossySources, MeanLoss, Measured, NO_SOURCE,
    SourceCounts, SourceLoss, TrippedBreaker,
};
pub use dry_run::{CheckedPlaces, DryRun, check_places, dry_run};
pub use generations::{Generation, Generations};
pub use inputs::{JoinedNights, NightFiles, NightInput};
pub use references::JoinedReference;
pub use request::{MAX_LOST_SHARE, RunRequest};
pub use run::{run, run_elsewhere};
pub use summary::{CountsOf, RunCounts, RunStatus, RunSummary};
