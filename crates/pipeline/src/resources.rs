//! Threads, memory and disk that a command may use.

use std::path::PathBuf;

use nearprint_join::{Kernel, KernelName};
use nearprint_storage::TempFolder;
use serde::{Deserialize, Serialize};

use crate::error::{PipelineError, Result};

/// What a run may use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Resources {
    /// Threads; all cores where none is said.
    pub threads: Option<usize>,
    /// Bytes of memory; unlimited where none is said.
    pub memory_limit: Option<usize>,
    /// Bytes of the reduce alone, within the limit, before it spills; 1 GiB where none is said.
    pub reduce_memory: Option<usize>,
    /// Folder of temporary files; the system's where none is said.
    pub spill_dir: Option<PathBuf>,
    /// Bytes of the reduce's spill files; unlimited where none is said.
    pub max_spill: Option<u64>,
    /// Instructions of the join: `scalar`, `neon`, `avx2` or `avx512`; the best that the processor has where none is said.
    pub kernel: Option<String>,
}

impl Resources {
    /// Threads to use.
    #[must_use]
    pub fn n_threads(&self) -> usize {
        let all = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.unwrap_or_else(all).max(1)
    }

    /// Bytes of the reduce, as far as the limit allows.
    pub(crate) fn reduce_bytes(&self) -> usize {
        self.reduce_memory.unwrap_or(REDUCE_BYTES)
    }

    /// Bytes of the limit for what grows with the input; an eighth is left to the allocator, which is slow to give back.
    pub(crate) fn counted_bytes(&self) -> usize {
        self.memory_limit.map_or(usize::MAX, |limit| limit - PROCESS_BYTES.min(limit / 4) - limit / 8)
    }

    /// The kernel to use.
    pub(crate) fn join_kernel(&self) -> Result<Kernel> {
        let Some(wanted) = &self.kernel else { return Ok(Kernel::best()) };
        let name = KernelName::ALL.into_iter().find(|name| name.name() == wanted);
        let name = name.ok_or_else(|| PipelineError::Config {
            key: "kernel".to_owned(),
            reason: format!("no kernel '{wanted}': use {}", KernelName::ALL.map(KernelName::name).join(", ")),
        })?;
        Ok(Kernel::try_new(name)?)
    }

    /// A private temporary folder, removed when dropped.
    pub(crate) fn temp_dir(&self) -> Result<TempFolder> {
        Ok(TempFolder::try_new(&self.temp_parent())?)
    }

    /// Where temporary folders are made.
    pub(crate) fn temp_parent(&self) -> PathBuf {
        self.spill_dir.clone().unwrap_or_else(std::env::temp_dir)
    }
}

/// What the process takes whatever its input: the program, its threads' stacks, files that are being read and written.
const PROCESS_BYTES: usize = 96 << 20;

/// What the reduce takes before it spills, unless told otherwise. More does not make it faster.
const REDUCE_BYTES: usize = 1 << 30;
