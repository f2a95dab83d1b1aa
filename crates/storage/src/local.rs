//! Files on a local disk that are complete or absent, even after a power failure. A file is written beside its place,
//! synced and renamed; then its folder is synced.

use std::fs::{File, Metadata, Permissions};
use std::io::{Error, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use nearprint_fault::{Fault, Result};
use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;
use tempfile::TempPath;

use crate::locked::locked;
use crate::runtime::blocking;

/// Bytes that one step of a copy moves. A command that is stopped ends the copy between two steps.
const STEP_BYTES: u64 = 8 << 20;

/// Writes a file and replaces an existing one.
///
/// # Errors
/// An error of the disk, or [`ErrorKind::TryAgain`](nearprint_fault::ErrorKind::TryAgain) if the folder was removed in
/// the meantime.
pub async fn put(path: &Path, content: Bytes) -> Result<()> {
    let part = Part::write(path, content).await?;
    part.keep(true).await.map(drop)
}

/// Writes a file unless there is one. Returns `false` if there is one.
///
/// # Errors
/// An error of the disk, or [`ErrorKind::TryAgain`](nearprint_fault::ErrorKind::TryAgain) if the folder was removed in
/// the meantime.
pub async fn put_if_absent(path: &Path, content: Bytes) -> Result<bool> {
    let part = Part::write(path, content).await?;
    part.keep(false).await
}

/// Copies a file and replaces an existing one.
///
/// # Errors
/// An error of the disk, or [`ErrorKind::TryAgain`](nearprint_fault::ErrorKind::TryAgain) if the folder was removed in
/// the meantime.
pub async fn put_file(path: &Path, from: &Path) -> Result<()> {
    copied(path, from).await?.keep(true).await.map(drop)
}

/// As [`put_file`], and `made` gets to know the file if it is new.
///
/// # Errors
/// The same as those of [`put_file`].
pub async fn make_file(path: &Path, from: &Path, made: MadeFiles) -> Result<()> {
    copied(path, from).await?.keep_noting(made).await
}

/// As [`put`], and `made` gets to know the file if it is new.
///
/// # Errors
/// The same as those of [`put`].
pub async fn make(path: &Path, content: Bytes, made: MadeFiles) -> Result<()> {
    Part::write(path, content).await?.keep_noting(made).await
}

/// Copies a file to a scratch file beside its place.
async fn copied(path: &Path, from: &Path) -> Result<Part> {
    let source = File::open(from).map_err(Fault::io(from))?;
    let n_bytes = source.metadata().map_err(Fault::io(from))?.len();
    let mut part = Part::create(path, n_bytes).await?;
    let source = Arc::new(source);
    loop {
        let source = Arc::clone(&source);
        let copied = part.step(move |file| std::io::copy(&mut source.take(STEP_BYTES), file)).await?;
        if copied == 0 {
            return Ok(part);
        }
    }
}

/// A scratch file in the folder of its final place. It has a name of its own, is locked as long as it is open, and is
/// deleted when dropped. If a killed execution leaves one, the next writer to that folder deletes it; `store gc` knows
/// these names too.
#[derive(Debug)]
pub struct Part {
    place: PathBuf,
    folder: PathBuf,
    n_bytes: u64,
    file: Option<File>,
    path: TempPath,
}

impl Part {
    /// Creates the file. `n_bytes` is the size that messages say it was to have.
    ///
    /// # Errors
    /// An error of the disk, or [`ErrorKind::TryAgain`](nearprint_fault::ErrorKind::TryAgain) if the folder was removed
    /// in the meantime.
    pub async fn create(place: &Path, n_bytes: u64) -> Result<Self> {
        let place = place.to_path_buf();
        blocking("file", move || {
            let folder = place.parent().map_or_else(|| PathBuf::from("/"), Path::to_path_buf);
            let made = part_in(&folder).map_err(|source| failure(&place, n_bytes, source))?;
            let (file, path) = made.ok_or_else(|| removed_meanwhile(&folder))?;
            Ok(Self { place, folder, n_bytes, file: Some(file), path })
        })
        .await
    }

    /// Returns the same file, with another size for messages.
    pub fn counting(self, n_bytes: u64) -> Self {
        Self { n_bytes, ..self }
    }

    async fn write(place: &Path, content: Bytes) -> Result<Self> {
        let mut part = Self::create(place, content.len() as u64).await?;
        part.step(move |file| std::io::Write::write_all(file, &content)).await?;
        Ok(part)
    }

    /// Runs `work` on the file, on a thread that nobody else waits for.
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

    /// Returns another handle to the file, through which its bytes may be written.
    ///
    /// # Errors
    /// An error of the disk.
    pub fn handle(&self) -> Result<File> {
        let handle = self.file.as_ref().map(File::try_clone);
        let handle = handle.unwrap_or_else(|| Err(Error::other("the step before did not end")));
        handle.map_err(|source| failure(&self.place, self.n_bytes, source))
    }

    /// Renames the file to its final name after its bytes are on the disk. Returns `false` if another file has that
    /// name and `replace` is not set.
    ///
    /// # Errors
    /// An error of the disk, or [`ErrorKind::TryAgain`](nearprint_fault::ErrorKind::TryAgain) if the folder was removed
    /// in the meantime.
    pub async fn keep(mut self, replace: bool) -> Result<bool> {
        self.step(|file| file.sync_all()).await?;
        blocking("file", move || {
            let kept = if replace { self.path.persist(&self.place) } else { self.path.persist_noclobber(&self.place) };
            match kept {
                Err(error) if !replace && error.error.kind() == ErrorKind::AlreadyExists => return Ok(false),
                // Only this process and `store gc` know the scratch file's name.
                Err(error) if error.error.kind() == ErrorKind::NotFound => return Err(removed_meanwhile(&self.folder)),
                kept => kept.map_err(|e| failure(&self.place, self.n_bytes, e.error))?,
            }
            sync_kept(&self.folder, &self.place, self.n_bytes).map(|()| true)
        })
        .await
    }

    /// As [`keep`](Self::keep) with `replace`. If nothing was replaced, `made` gets to know the file, before anything can
    /// fail.
    ///
    /// # Errors
    /// The same as those of [`keep`](Self::keep).
    pub async fn keep_noting(mut self, made: MadeFiles) -> Result<()> {
        self.step(|file| file.sync_all()).await?;
        blocking("file", move || {
            let Self { place, folder, n_bytes, file, path } = self;
            let identity = file.as_ref().and_then(|file| file.metadata().ok()).map(|there| Identity::of(&there));
            let gone = |error: Error| match error.kind() {
                ErrorKind::NotFound => removed_meanwhile(&folder),
                _ => failure(&place, n_bytes, error),
            };
            match path.persist_noclobber(&place) {
                Ok(()) => made.note(&place, identity),
                Err(taken) if taken.error.kind() == ErrorKind::AlreadyExists => {
                    taken.path.persist(&place).map_err(|e| gone(e.error))?;
                }
                Err(error) => return Err(gone(error.error)),
            }
            sync_kept(&folder, &place, n_bytes)
        })
        .await
    }
}

fn sync_kept(folder: &Path, place: &Path, n_bytes: u64) -> Result<()> {
    match sync_folder(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => Err(removed_meanwhile(folder)),
        synced => synced.map_err(|source| failure(place, n_bytes, source)),
    }
}

/// The numbers that tell a file from every other one that ever had its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity(u64, u64, i64, i64);

impl Identity {
    fn of(there: &Metadata) -> Self {
        Self(there.dev(), there.ino(), there.mtime(), there.mtime_nsec())
    }
}

/// The files that an execution made where there were none. Clones share them.
///
/// Others may write the same bytes to the same name, and publish them. Whoever writes there renames a file of his own over
/// this one, which is told by its identity. So only files are deleted that nobody else has written since.
#[derive(Debug, Clone, Default)]
pub struct MadeFiles(Arc<Mutex<Vec<(PathBuf, Identity)>>>);

impl MadeFiles {
    fn note(&self, place: &Path, identity: Option<Identity>) {
        locked(&self.0).extend(identity.map(|identity| (place.to_path_buf(), identity)));
    }

    /// Deletes the files that are still those that were made, and what cannot be deleted stays.
    pub fn delete(&self) {
        for (path, identity) in locked(&self.0).drain(..) {
            if let Err(error) = delete_made(&path, identity) {
                tracing::warn!(file = %path.display(), %error, "left over: `store gc` deletes it");
            }
        }
    }
}

fn delete_made(path: &Path, identity: Identity) -> std::io::Result<()> {
    let is_own = |path: &Path| std::fs::symlink_metadata(path).is_ok_and(|there| Identity::of(&there) == identity);
    if !is_own(path) {
        return Ok(());
    }
    // Between the look and the rename, somebody else may have renamed his file to the place.
    match Aside::of(path)? {
        Some(aside) if is_own(&aside.path) => aside.delete(),
        Some(aside) => aside.put_back(),
        None => Ok(()),
    }
}

/// Removes a folder and those above it as long as they are empty, but never `root`.
pub fn remove_empty(folder: &Path, root: &Path) {
    folder.ancestors().take_while(|above| *above != root && std::fs::remove_dir(above).is_ok()).for_each(drop);
}

const PREFIX: &str = ".nearprint-";
const SUFFIX: &str = ".tmp";
/// The number of random characters between the prefix and the suffix. Nobody else gives files names of this form.
const DRAWN_CHARS: usize = 24;

/// Returns whether a name is that of a scratch file.
pub fn is_scratch_name(name: &str) -> bool {
    let drawn = name.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX));
    drawn.is_some_and(|drawn| drawn.len() == DRAWN_CHARS && drawn.bytes().all(|b| b.is_ascii_alphanumeric()))
}

/// Returns whether a path is a scratch file that its writer still holds.
pub fn is_at_work(path: &Path) -> bool {
    let is_scratch = path.file_name().and_then(|name| name.to_str()).is_some_and(is_scratch_name);
    is_scratch && opened(path).is_some_and(|file| matches!(file.try_lock(), Err(std::fs::TryLockError::WouldBlock)))
}

/// Opens a file without following a link.
fn opened(path: &Path) -> Option<File> {
    let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits().cast_signed();
    File::options().read(true).custom_flags(flags).open(path).ok()
}

/// Returns the error of a folder that disappeared. `store gc` removes folders that it has emptied.
fn removed_meanwhile(folder: &Path) -> Fault {
    let reason = format!("{}: `store gc`, or somebody else, removed it while it was written to", folder.display());
    Fault::try_again(reason)
}

/// The number of times that a folder is created again if somebody removes it before there is a file in it.
const ATTEMPTS: usize = 100;

/// Creates a scratch file in a folder, and the folder if it is missing. Returns `None` if the folder disappeared again
/// after every attempt.
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

/// Creates a locked scratch file. Before it is locked, others may take it for dead and remove it; in that case another
/// one is created.
fn locked_part(folder: &Path) -> std::io::Result<(File, TempPath)> {
    loop {
        let mut builder = tempfile::Builder::new();
        // The umask takes its bits away from this mode.
        builder.prefix(PREFIX).suffix(SUFFIX).rand_bytes(DRAWN_CHARS);
        builder.permissions(Permissions::from_mode(0o666));
        let (file, path) = builder.tempfile_in(folder)?.into_parts();
        // On a file system without locks, no scratch file looks dead either, because nobody can lock it.
        let _ = file.lock();
        if file.metadata()?.nlink() > 0 {
            return Ok((file, path));
        }
    }
}

/// Returns the folder itself if it exists, or the nearest existing folder above it.
///
/// # Errors
/// [`ErrorKind::OutputExists`](nearprint_fault::ErrorKind::OutputExists) if there is a file in the way.
pub fn nearest_folder(folder: &Path) -> Result<&Path> {
    let there = folder.ancestors().find(|above| above.exists()).unwrap_or(folder);
    if there.is_dir() {
        return Ok(there);
    }
    let reason = "a file stands where a folder is to be: name another place".to_owned();
    Err(Fault::output_exists(there.display().to_string(), reason))
}

/// Checks that files can be created in a folder, or in the nearest existing folder above it.
///
/// # Errors
/// [`ErrorKind::OutputExists`](nearprint_fault::ErrorKind::OutputExists) if there is a file in the way, or
/// [`ErrorKind::LocalIo`](nearprint_fault::ErrorKind::LocalIo) if no file can be created.
pub fn probe(folder: &Path) -> Result<()> {
    let there = nearest_folder(folder)?;
    locked_part(there).map(drop).map_err(|source| cannot_write(there, &source))
}

/// Checks that the permissions of a folder, or of the nearest existing folder above it, allow to create files. Creates none.
///
/// # Errors
/// The same as those of [`probe`].
pub fn refuse_forbidden(folder: &Path) -> Result<()> {
    use rustix::fs::Access;
    let there = nearest_folder(folder)?;
    let allowed = rustix::fs::access(there, Access::WRITE_OK | Access::EXEC_OK);
    allowed.map_err(|error| cannot_write(there, &error.into()))
}

/// Checks that there is a folder.
///
/// # Errors
/// [`ErrorKind::LocalIo`](nearprint_fault::ErrorKind::LocalIo) if there is none.
pub fn refuse_missing(folder: &Path) -> Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let none = Error::new(ErrorKind::NotFound, "no such folder: create it, or name another place");
    Err(Fault::io(folder)(none))
}

fn cannot_write(folder: &Path, source: &Error) -> Fault {
    let source = Error::new(source.kind(), format!("cannot write files here: {}", source.kind()));
    Fault::io(folder)(source)
}

/// A file that was renamed to a scratch name beside its place and locked. It is either deleted or put back. Dropping it
/// puts it back, so that also happens if the work that set it aside is cancelled.
pub struct Aside {
    place: PathBuf,
    path: PathBuf,
    is_settled: bool,
    /// `None` if the file cannot be opened or somebody else holds its lock.
    _lock: Option<File>,
}

impl Aside {
    /// Sets a file aside. Returns `None` if there is no such file.
    ///
    /// # Errors
    /// An error of the disk.
    pub fn of(place: &Path) -> std::io::Result<Option<Self>> {
        let Some(folder) = place.parent() else {
            return Ok(None);
        };
        let drawn =
            tempfile::Builder::new().prefix(PREFIX).suffix(SUFFIX).rand_bytes(DRAWN_CHARS).make_in(folder, |path| {
                // Without a lock, the file would look like one that a killed writer left.
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

    /// Deletes the file.
    ///
    /// # Errors
    /// An error of the disk.
    pub fn delete(mut self) -> std::io::Result<()> {
        self.is_settled = true;
        std::fs::remove_file(&self.path)
    }

    /// Puts the file back. If somebody wrote it again in the meantime, the two are equal, and this one is deleted.
    ///
    /// # Errors
    /// An error of the disk.
    pub fn put_back(mut self) -> std::io::Result<()> {
        self.is_settled = true;
        self.restore()
    }

    fn restore(&self) -> std::io::Result<()> {
        let put_back = match rustix::fs::renameat_with(CWD, &self.path, CWD, &self.place, RenameFlags::NOREPLACE) {
            // Not every file system supports a rename that replaces nothing.
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

/// Removes the scratch files that killed executions left in one folder. Files that cannot be removed are passed over.
pub fn remove_dead_in(folder: &Path) {
    let _ = remove_dead(folder);
}

/// Removes the scratch files that killed executions left in a folder and everywhere below it. Files that cannot be
/// removed are passed over.
pub fn remove_dead_below(root: &Path) {
    let mut open = vec![root.to_path_buf()];
    while let Some(folder) = open.pop() {
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        open.extend(entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path()));
        let _ = remove_dead(&folder);
    }
}

/// Removes the scratch files in a folder that nobody has locked.
fn remove_dead(folder: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if !path.file_name().and_then(|name| name.to_str()).is_some_and(is_scratch_name) {
            continue;
        }
        // A file that cannot be opened or locked belongs to somebody, which is no reason to fail. The lock is held
        // until the file is gone. So if its maker is still waiting to lock it, the maker finds it gone afterwards.
        let Some(dead) = opened(&path) else { continue };
        if dead.try_lock().is_ok() && dead.metadata().is_ok_and(|m| m.is_file()) {
            let _ = std::fs::remove_file(&path);
        }
    }
    Ok(())
}

/// Creates a folder and all missing folders above it. Each new folder is synced into the one above it, so that it
/// survives a power failure.
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

fn failure(place: &Path, n_bytes: u64, source: Error) -> Fault {
    let source = Error::new(source.kind(), format!("cannot write its {n_bytes} bytes: {source}"));
    Fault::io(place)(source)
}

/// Returns whether an error says that there is nothing at a path.
pub fn is_absence(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Returns the names in a folder.
pub fn names_in(folder: &Path) -> std::io::Result<Vec<String>> {
    std::fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

/// Names the kind of something that is neither a file nor a folder. Returns `None` for files and folders.
pub fn special_kind(there: &Metadata) -> Option<&'static str> {
    let kind = there.file_type();
    match () {
        () if kind.is_file() || kind.is_dir() => None,
        () if kind.is_fifo() => Some("a FIFO"),
        () if kind.is_socket() => Some("a socket"),
        () => Some("a device"),
    }
}
