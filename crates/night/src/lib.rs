//! A night: from the request of a run to the published results.
//!
//! [`run()`] runs one. What nights published is read, checked, filtered and forgotten here too.

mod again;
mod breakers;
mod changes;
mod check;
mod document;
mod documents;
mod dry_run;
mod filter;
mod forget;
mod generations;
mod inputs;
mod lost_inputs;
mod manifest;
mod measure;
mod measured;
mod migrate;
mod plan;
mod preflight;
mod publish;
mod published;
mod references;
mod request;
mod results_left;
mod run;
mod stage;
mod store_commands;
mod store_contents;
mod summary;
mod tables;
mod texts;

pub use nearprint_pipeline::NO_SOURCE;

pub use again::made_again;
pub use breakers::{Breakers, Evidence, LossySources, TrippedBreaker};
pub use check::{CheckReport, CheckRequest, CheckedReference, check};
pub use document::{
    DocumentHistory, DocumentNight, NoSuchDocument, Representative, Represented, Standing, StateThen, document_history,
};
pub use dry_run::{CheckedPlaces, DryRun, check_places, dry_run};
pub use filter::{FilterCounts, FilterRequest, FilterSummary, FilteredNight, Selection, filter};
pub use forget::{ForgetIdsRequest, ForgetIdsSummary, store_forget_ids};
pub use generations::{Generation, Generations};
pub use inputs::{NightFiles, NightInput, PublishedNights};
pub use manifest::Manifest;
pub use measured::{
    DocumentShare, DropRate, Fallen, LargestCluster, LargestText, MeanLoss, MeasuredNight, ShareOf, SmallShare,
    SourceCounts, SourceLoss, StubShare,
};
pub use migrate::{Migration, MigrationRequest, MigrationState};
pub use plan::FarAhead;
pub use published::{
    NightHistory, NightRecord, published_files, published_generations, published_history, published_night,
    published_nights,
};
pub use references::JoinedReference;
pub use request::{MAX_PAIRS, RunRequest, is_among_documents, usual_lost_share};
pub use run::{run, run_on_engine};
pub use store_commands::{
    DropNightRequest, DropNightSummary, ForgetBeforeRequest, ForgetBeforeSummary, complete_tables, latest_night,
    store_check, store_compact, store_drop_night, store_forget_before, store_gc, store_index, store_info, store_init,
};
pub use store_contents::{ListedCounts, ListedNight, StoreContents, store_contents};
pub use summary::{CountsOf, RunCounts, RunStatus, RunSummary};
pub use texts::{NightSource, NightTexts, Text, TextSource, Texts, is_unreadable};
