//! The threads, memory and disk that a command may use.

use std::path::PathBuf;

use nearprint_fault::{Fault, Result, key, words};
use nearprint_join::{JoinError, Kernel};
use nearprint_storage::TempFolder;
use serde::{Deserialize, Serialize};

/// The resources that a run may use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Resources {
    /// The number of threads. `None` means all cores.
    pub threads: Option<usize>,
    /// The memory limit, in bytes. `None` means no limit.
    pub memory_limit: Option<usize>,
    /// The bytes that the reduce alone may take, within the limit, before it spills. `None` means 1 GiB.
    pub reduce_memory: Option<usize>,
    /// The folder of temporary files. `None` means the system's.
    pub spill_dir: Option<PathBuf>,
    /// The most bytes of the reduce's spill files. `None` means no limit.
    pub max_spill: Option<u64>,
    /// The instructions of the join: `scalar`, `neon`, `avx2` or `avx512`. `None` means the best that the processor
    /// has.
    pub kernel: Option<String>,
}

impl Resources {
    /// Returns the number of threads to use.
    #[must_use]
    pub fn n_threads(&self) -> usize {
        let all = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.unwrap_or_else(all).max(1)
    }

    /// Returns the bytes that the reduce may take. The caller applies the memory limit.
    pub(crate) fn reduce_bytes(&self) -> usize {
        self.reduce_memory.unwrap_or(REDUCE_BYTES)
    }

    /// Returns the bytes of the limit for data that grows with the input. An eighth is left to the allocator, which is
    /// slow to give memory back.
    pub fn counted_bytes(&self) -> usize {
        self.memory_limit.map_or(usize::MAX, |limit| limit - PROCESS_BYTES.min(limit / 4) - limit / 8)
    }

    /// Returns the kernel to use.
    pub(crate) fn join_kernel(&self) -> Result<Kernel> {
        let Some(wanted) = &self.kernel else { return Ok(Kernel::best()) };
        let unknown = |error: JoinError| Fault::config("kernel", error.to_string());
        Ok(Kernel::try_new(wanted.parse().map_err(unknown)?)?)
    }

    /// Makes a private temporary folder, which is removed when it is dropped.
    pub fn temp_dir(&self) -> Result<TempFolder> {
        TempFolder::try_new(&self.temp_parent()).map_err(|error| self.of_temp_parent(error))
    }

    /// Checks that a temporary folder can be made, as far as permissions tell. Makes none.
    pub fn refuse_forbidden_temp(&self) -> Result<()> {
        TempFolder::refuse_forbidden(&self.temp_parent()).map_err(|error| self.of_temp_parent(error))
    }

    /// Names the setting that an error is about.
    fn of_temp_parent(&self, error: Fault) -> Fault {
        if self.spill_dir.is_some() { error.within(words![key("resources.spill_dir"), ": "]) } else { error }
    }

    /// Returns the folder in which temporary folders are made.
    pub fn temp_parent(&self) -> PathBuf {
        self.spill_dir.clone().unwrap_or_else(std::env::temp_dir)
    }
}

/// The bytes that the process takes whatever its input: the program, the stacks of its threads, and files that are
/// being read and written.
pub(crate) const PROCESS_BYTES: usize = 96 << 20;

/// The bytes that the reduce takes before it spills, by default. More does not make it faster.
const REDUCE_BYTES: usize = 1 << 30;
