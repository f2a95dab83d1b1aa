//! The storage, resources and progress of a command.

use std::sync::Arc;

use nearprint_storage::{Progress, Storage};
use nearprint_tasks::Engine;

use crate::resources::Resources;

/// The storage, resources and progress that a run, and each of its stages, works with.
#[derive(Clone, Copy)]
pub struct CommandContext<'a> {
    /// The places.
    pub storage: &'a Storage,
    /// The resources.
    pub resources: &'a Resources,
    /// The progress.
    pub progress: &'a Progress,
    /// The runner of the tasks, if it is not this process.
    pub engine: Option<&'a Arc<dyn Engine>>,
}
