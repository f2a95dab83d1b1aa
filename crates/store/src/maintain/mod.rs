//! The maintenance of a store: functions over the state of a store that no night needs.

mod check;
mod compact;
mod derived;
mod forget;
mod gc;
mod history;
mod index;
mod leave_out;

pub use check::{Damaged, StoreProblem, StoreReport, check, check_content, check_identities, check_nights};
pub use compact::{CompactRequest, CompactSummary, compact};
pub use forget::{ForgottenIds, FoundDocuments, RunWithout, commit_forgetting, runs_without};
pub use gc::{
    GcRequest, GcSummary, Leftover, RemovedFiles, end_dead_removals, gc, leftovers, output_roots, own_outputs,
};
pub use history::CheckedCommits;
pub use index::{IndexRequest, IndexSummary, index};
pub use leave_out::{drop_night, forget_before, forgettable, night_of};
