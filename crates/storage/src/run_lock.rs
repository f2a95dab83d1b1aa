//! An optional lock file, for users who want the executions on one machine to wait for each other.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use nearprint_fault::{Fault, Result};

use crate::local;

/// A lock on a file, held until this value is dropped. The file stays.
///
/// ```
/// use std::time::Duration;
///
/// use nearprint_fault::ErrorKind;
/// use nearprint_storage::RunLock;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let temp = tempfile::tempdir()?;
/// # let path = temp.path().join("nightly.lock");
/// let lock = RunLock::acquire(&path, Duration::ZERO).await?;
/// let second = RunLock::acquire(&path, Duration::ZERO).await;
/// assert_eq!(second.unwrap_err().kind(), ErrorKind::TryAgain);
/// drop(lock);
/// RunLock::acquire(&path, Duration::from_secs(1)).await?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct RunLock {
    _file: File,
}

/// The time between two tries.
const PAUSE: Duration = Duration::from_millis(100);

impl RunLock {
    /// Waits at most `wait` for the lock. The file is created if necessary. If a link stands at its place, the link is
    /// not followed.
    ///
    /// # Errors
    /// [`ErrorKind::TryAgain`](nearprint_fault::ErrorKind::TryAgain) if somebody else holds the lock;
    /// [`ErrorKind::LocalIo`](nearprint_fault::ErrorKind::LocalIo) if the file cannot be opened or
    /// locked.
    pub async fn acquire(path: &Path, wait: Duration) -> Result<Self> {
        let fail = |source| Fault::io(path)(source);
        let file = options().create(true).truncate(false).open(path).map_err(fail)?;
        let began = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::Error(error)) => return Err(fail(error)),
                Err(TryLockError::WouldBlock) if began.elapsed() >= wait => {
                    let reason = format!("{}: another run holds this lock", path.display());
                    return Err(Fault::try_again(reason));
                }
                Err(TryLockError::WouldBlock) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// Checks that the file can be opened or created, as far as permissions tell, whoever holds the lock. Nothing is
    /// written.
    ///
    /// # Errors
    /// Those of [`acquire`](Self::acquire), but for the lock that somebody else holds.
    pub fn refuse_forbidden(path: &Path) -> Result<()> {
        match options().open(path) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
                // There is none, as there is no file.
                std::fs::metadata(folder).map_err(Fault::io(path))?;
                local::refuse_forbidden(folder)
            }
            Err(error) => Err(Fault::io(path)(error)),
        }
    }
}

/// Returns how the file is opened: no link at its place is followed.
fn options() -> OpenOptions {
    let nofollow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600).custom_flags(nofollow);
    options
}
