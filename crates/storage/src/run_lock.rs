//! An optional lock file, for those who want runs on one machine to wait for each other.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::{Result, StorageError};

/// A lock on a file, held until it is dropped. The file stays.
#[derive(Debug)]
pub struct RunLock {
    _file: File,
}

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(100);

impl RunLock {
    /// Waits at most `wait` for the lock. The file is created if need be; a link at its place is not followed.
    ///
    /// # Errors
    /// [`StorageError::TryAgain`] where somebody else holds it; the file system's.
    pub async fn acquire(path: &Path, wait: Duration) -> Result<Self> {
        let fail = |source| StorageError::Io { path: path.to_path_buf(), source };
        let nofollow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(nofollow);
        let file = options.open(path).map_err(fail)?;
        let began = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::Error(error)) => return Err(fail(error)),
                Err(TryLockError::WouldBlock) if began.elapsed() >= wait => {
                    let reason = format!("{}: another run holds this lock", path.display());
                    return Err(StorageError::TryAgain { reason });
                }
                Err(TryLockError::WouldBlock) => tokio::time::sleep(PAUSE).await,
            }
        }
    }
}
