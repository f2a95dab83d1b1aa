//! Files on a local disk that are whole or not there, also after a power failure: written beside their place, synced, renamed,
//! and their folders synced.

use std::fs::{File, Metadata, Permissions};
use std::io::{Error, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;
use tempfile::TempPath;

use crate::error::{Result, StorageError};
use crate::runtime::blocking;

/// Bytes that one step of a copy moves: between two steps a run that is stopped ends it.
const STEP_BYTES: u64 = 8 << 20;

/// Writes a file, in place of one that is there.
pub async fn put(path: &Path, content: Bytes) -> Result<()> {
    let part = Part::write(path, content).await?;
    part.keep(true).await.map(drop)
}

/// Writes a file unless there is one; false where there is.
pub async fn put_if_absent(path: &Path, content: Bytes) -> Result<bool> {
    let part = Part::write(path, content).await?;
    part.keep(false).await
}

/// Copies a file, in place of one that is there.
pub async fn put_file(path: &Path, from: &Path) -> Result<()> {
    let source = File::open(from).map_err(StorageError::io(from))?;
    let n_bytes = source.metadata().map_err(StorageError::io(from))?.len();
    let mut part = Part::create(path, n_bytes).await?;
    let source = std::sync::Arc::new(source);
    loop {
        let source = std::sync::Arc::clone(&source);
        let copied = part.step(move |file| std::io::copy(&mut source.take(STEP_BYTES), file)).await?;
        if copied == 0 {
            return part.keep(true).await.map(drop);
        }
    }
}

/// A file under a name of its own in the folder of its place, locked as long as it is open; gone when dropped. Those that a killed run
/// leaves go when another writes to their folder, and `store gc` knows their names.
struct Part {
    place: PathBuf,
    folder: PathBuf,
    n_bytes: u64,
    file: Option<File>,
    path: TempPath,
}

impl Part {
    async fn create(place: &Path, n_bytes: u64) -> Result<Self> {
        let place = place.to_path_buf();
        blocking("file", move || {
            let folder = place.parent().map_or_else(|| PathBuf::from("/"), Path::to_path_buf);
            let made = part_in(&folder).map_err(|source| failure(&place, n_bytes, source))?;
            let (file, path) = made.ok_or_else(|| removed_meanwhile(&folder))?;
            Ok(Self { place, folder, n_bytes, file: Some(file), path })
        })
        .await
    }

    async fn write(place: &Path, content: Bytes) -> Result<Self> {
        let mut part = Self::create(place, content.len() as u64).await?;
        part.step(move |file| std::io::Write::write_all(file, &content)).await?;
        Ok(part)
    }

    /// Does something with the file, off the threads that others wait for.
    async fn step<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut File) -> std::io::Result<T> + Send + 'static,
    ) -> Result<T> {
        let gone = || Error::other("the step before did not end");
        let mut file = self.file.take().ok_or_else(gone).map_err(|e| failure(&self.place, self.n_bytes, e))?;
        let (file, done) = blocking("file", move || {
            let done = work(&mut file);
            Ok((file, done))
        })
        .await?;
        self.file = Some(file);
        done.map_err(|source| failure(&self.place, self.n_bytes, source))
    }

    /// Gives the file its name once its bytes are on the disk; false where another has it and may not be replaced.
    async fn keep(mut self, replace: bool) -> Result<bool> {
        self.step(|file| file.sync_all()).await?;
        blocking("file", move || {
            let Self { place, folder, n_bytes, path, .. } = self;
            let kept = if replace { path.persist(&place) } else { path.persist_noclobber(&place) };
            match kept {
                Err(error) if !replace && error.error.kind() == ErrorKind::AlreadyExists => return Ok(false),
                // Nobody but this process and `store gc` knows its name.
                Err(error) if error.error.kind() == ErrorKind::NotFound => return Err(removed_meanwhile(&folder)),
                kept => kept.map_err(|e| failure(&place, n_bytes, e.error))?,
            }
            match sync_folder(&folder) {
                Err(error) if error.kind() == ErrorKind::NotFound => Err(removed_meanwhile(&folder)),
                synced => synced.map(|()| true).map_err(|source| failure(&place, n_bytes, source)),
            }
        })
        .await
    }
}

const PREFIX: &str = ".nearprint-";
const SUFFIX: &str = ".tmp";
/// Characters between them, drawn: a form that nobody else gives a file.
const DRAWN_CHARS: usize = 24;

/// Whether a name is of a file that waits for its place.
pub fn is_scratch_name(name: &str) -> bool {
    let drawn = name.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX));
    drawn.is_some_and(|drawn| drawn.len() == DRAWN_CHARS && drawn.bytes().all(|b| b.is_ascii_alphanumeric()))
}

/// Whether a writer still holds a file that waits for its place.
pub fn is_at_work(path: &Path) -> bool {
    let is_scratch = path.file_name().and_then(|name| name.to_str()).is_some_and(is_scratch_name);
    is_scratch && opened(path).is_some_and(|file| matches!(file.try_lock(), Err(std::fs::TryLockError::WouldBlock)))
}

/// No link is followed.
fn opened(path: &Path) -> Option<File> {
    let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits().cast_signed();
    File::options().read(true).custom_flags(flags).open(path).ok()
}

/// `store gc` removes folders that it leaves empty.
fn removed_meanwhile(folder: &Path) -> StorageError {
    let reason = format!("{}: `store gc`, or somebody else, removed it while it was written to", folder.display());
    StorageError::TryAgain { reason }
}

/// Times that a folder is made anew where somebody removes it, empty, before there is a file in it.
const ATTEMPTS: usize = 100;

/// A new part in a folder, which is made where it is missing; none where it went again each time.
fn part_in(folder: &Path) -> std::io::Result<Option<(File, TempPath)>> {
    for _ in 0..ATTEMPTS {
        let made = create_folder(folder).and_then(|()| remove_dead(folder)).and_then(|()| locked_part(folder));
        match made {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            made => return made.map(Some),
        }
    }
    Ok(None)
}

/// A new file, locked. Until it is, it looks dead to others, who may remove it: then another is made.
fn locked_part(folder: &Path) -> std::io::Result<(File, TempPath)> {
    loop {
        let mut builder = tempfile::Builder::new();
        // Less what the umask takes away.
        builder.prefix(PREFIX).suffix(SUFFIX).rand_bytes(DRAWN_CHARS);
        builder.permissions(Permissions::from_mode(0o666));
        let (file, path) = builder.tempfile_in(folder)?.into_parts();
        // Where a file system knows no locks, none looks dead either: they cannot be taken.
        let _ = file.lock();
        if file.metadata()?.nlink() > 0 {
            return Ok((file, path));
        }
    }
}

/// The folder itself, or the one above it that is there.
///
/// # Errors
/// [`StorageError::OutputExists`] where a file stands in its way.
pub fn nearest_folder(folder: &Path) -> Result<&Path> {
    let there = folder.ancestors().find(|above| above.exists()).unwrap_or(folder);
    if there.is_dir() {
        return Ok(there);
    }
    let reason = "a file stands where a folder is to be: name another place".to_owned();
    Err(StorageError::OutputExists { url: there.display().to_string(), reason })
}

/// Refuses a folder in which no file can be made, or which could not be made itself.
pub fn probe(folder: &Path) -> Result<()> {
    let there = nearest_folder(folder)?;
    let cannot = |source: Error| {
        let source = Error::new(source.kind(), format!("cannot write files here: {}", source.kind()));
        StorageError::Io { path: there.to_path_buf(), source }
    };
    locked_part(there).map(drop).map_err(cannot)
}

/// A file under another name beside its place, locked. It goes back to its place, unless it is deleted: also where the work that set it
/// aside is dropped.
pub struct Aside {
    place: PathBuf,
    path: PathBuf,
    is_settled: bool,
    /// None where the file may not be read.
    _lock: Option<File>,
}

impl Aside {
    /// None where there is no such file.
    pub fn of(place: &Path) -> std::io::Result<Option<Self>> {
        let Some(folder) = place.parent() else {
            return Ok(None);
        };
        let drawn =
            tempfile::Builder::new().prefix(PREFIX).suffix(SUFFIX).rand_bytes(DRAWN_CHARS).make_in(folder, |path| {
                // Unlocked, it would look like what a killed writer left.
                let lock = opened(place).filter(|file| file.try_lock().is_ok());
                std::fs::rename(place, path).map(|()| lock)
            });
        match drawn {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
            Ok(drawn) => {
                let (lock, path) = drawn.into_parts();
                let path = path.keep().map_err(|e| e.error)?;
                Ok(Some(Self { place: place.to_path_buf(), path, is_settled: false, _lock: lock }))
            }
        }
    }

    pub fn delete(mut self) -> std::io::Result<()> {
        self.is_settled = true;
        std::fs::remove_file(&self.path)
    }

    /// Unless somebody wrote it anew meanwhile: that is the same file.
    pub fn put_back(mut self) -> std::io::Result<()> {
        self.is_settled = true;
        self.restore()
    }

    fn restore(&self) -> std::io::Result<()> {
        let put_back = match rustix::fs::renameat_with(CWD, &self.path, CWD, &self.place, RenameFlags::NOREPLACE) {
            // Not every file system can.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) if !self.place.exists() => {
                return std::fs::rename(&self.path, &self.place);
            }
            put_back => put_back,
        };
        match put_back {
            Err(Errno::EXIST | Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => std::fs::remove_file(&self.path),
            put_back => Ok(put_back?),
        }
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if !self.is_settled
            && let Err(error) = self.restore()
        {
            tracing::error!(%error, aside = %self.path.display(), place = %self.place.display(), "cannot be put back");
        }
    }
}

/// Removes what killed runs left in one folder; as far as it can be done.
pub fn remove_dead_in(folder: &Path) {
    let _ = remove_dead(folder);
}

/// Removes what killed runs left in all folders below one; as far as it can be done.
pub fn remove_dead_below(root: &Path) {
    let mut open = vec![root.to_path_buf()];
    while let Some(folder) = open.pop() {
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        open.extend(entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path()));
        let _ = remove_dead(&folder);
    }
}

/// Removes what they left in a folder: parts that nobody holds locked.
fn remove_dead(folder: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if !path.file_name().and_then(|name| name.to_str()).is_some_and(is_scratch_name) {
            continue;
        }
        // Whatever cannot be opened or locked is somebody's: it is no reason to fail. The lock is held until the file is gone, so that
        // whoever made it and waits for its own lock finds it gone.
        let Some(dead) = opened(&path) else { continue };
        if dead.try_lock().is_ok() && dead.metadata().is_ok_and(|m| m.is_file()) {
            let _ = std::fs::remove_file(&path);
        }
    }
    Ok(())
}

/// With all folders above it, each of which its own folder knows after a power failure.
fn create_folder(folder: &Path) -> std::io::Result<()> {
    let missing: Vec<&Path> =
        folder.ancestors().take_while(|above| !above.as_os_str().is_empty() && !above.exists()).collect();
    for new in missing.into_iter().rev() {
        match std::fs::create_dir(new) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => new.parent().map_or(Ok(()), sync_folder)?,
        }
    }
    Ok(())
}

fn sync_folder(folder: &Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}

fn failure(place: &Path, n_bytes: u64, source: Error) -> StorageError {
    let source = Error::new(source.kind(), format!("cannot write its {n_bytes} bytes: {source}"));
    StorageError::Io { path: place.to_path_buf(), source }
}

/// What it is, where it is neither file nor folder.
pub fn special_kind(there: &Metadata) -> Option<&'static str> {
    let kind = there.file_type();
    match () {
        () if kind.is_file() || kind.is_dir() => None,
        () if kind.is_fifo() => Some("a FIFO"),
        () if kind.is_socket() => Some("a socket"),
        () => Some("a device"),
    }
}
