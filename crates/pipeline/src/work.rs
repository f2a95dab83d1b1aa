//! The storage, resources and progress of a command.

use std::sync::Arc;

use nearprint_storage::{Progress, Storage};
use nearprint_tasks::Elsewhere;

use crate::resources::Resources;

/// The storage, resources and progress that a run, and each of its stages, works with.
#[derive(Clone, Copy)]
pub(crate) struct Work<'a> {
    pub(crate) storage: &'a Storage,
    pub(crate) resources: &'a Resources,
    pub(crate) progress: &'a Progress,
    /// The runner of the tasks, if it is not this process.
    pub(crate) elsewhere: Option<&'a Arc<dyn Elsewhere>>,
}
