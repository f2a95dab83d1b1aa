//! Places on local disk and S3. Both are read through `object_store`. Local files are written by [`local`], because a
//! file must be complete or absent.

use std::path::{Path as LocalPath, PathBuf};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use nearprint_fault::{ErrorKind, Fault, Result};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};

use crate::backend::Backend;
use crate::error::{bad_file, request};
use crate::input::InputFile;
use crate::local;
use crate::runtime::blocking;
use crate::s3::{self, PIECE_BYTES, Upload};

/// A folder on local disk, or a prefix of an S3 bucket.
///
/// ```
/// use nearprint_storage::Storage;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let temp = tempfile::tempdir()?;
/// # let url = temp.path().display().to_string();
/// let place = Storage::default().folder(&url)?.join("notes/first.txt");
/// assert!(place.get().await?.is_none());
/// place.put("one".into()).await?;
/// assert!(!place.put_if_absent("two".into()).await?);
/// assert_eq!(place.get().await?.as_deref(), Some(&b"one"[..]));
/// place.delete().await?;
/// assert!(place.find().await?.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct Folder {
    pub(crate) backend: Backend,
    pub(crate) prefix: Path,
    pub(crate) url: String,
    pub(crate) local: Option<PathBuf>,
}

/// Returns the folder at a local path, which need not exist. A relative one is below `base`; its URL is the path as it is
/// given.
///
/// # Errors
/// [`ErrorKind::LocalIo`](nearprint_fault::ErrorKind::LocalIo) if the path cannot be made absolute;
/// [`ErrorKind::Usage`](nearprint_fault::ErrorKind::Usage) if object_store cannot represent it.
pub fn local_folder(base: &LocalPath, path: &str) -> Result<Folder> {
    let below = base.join(path);
    let absolute = resolved(below.to_str().unwrap_or(path)).map_err(Fault::io(path))?;
    let invalid = |e: object_store::path::Error| Fault::usage(format!("{path}: {e}"));
    let prefix = Path::from_absolute_path(&absolute).map_err(invalid)?;
    Ok(Folder { backend: Backend::Disk, prefix, url: path.to_owned(), local: Some(absolute) })
}

/// Returns the absolute path without `..`. Links are resolved as far as the path exists.
///
/// # Errors
/// The working folder cannot be determined.
pub fn resolved(path: &str) -> std::io::Result<PathBuf> {
    let absolute = std::path::absolute(if path.is_empty() { "." } else { path })?;
    let existing = absolute.ancestors().find(|a| a.exists()).unwrap_or(&absolute);
    let rest = absolute.strip_prefix(existing).unwrap_or(LocalPath::new(""));
    let mut clean = existing.canonicalize().unwrap_or_else(|_| existing.to_path_buf());
    for part in rest.components() {
        if part == std::path::Component::ParentDir {
            clean.pop();
        } else {
            clean.push(part);
        }
    }
    Ok(clean)
}

impl Folder {
    /// Returns the path or URL, without a slash at the end. Only the root folder is a slash itself.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns whether the place lies on S3.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        self.local.is_none()
    }

    /// Returns whether the place is an existing folder on a local disk.
    pub fn is_local_folder(&self) -> bool {
        self.local.as_ref().is_some_and(|path| path.is_dir())
    }

    /// Checks that this place can be a folder: neither it nor anything above it may be a file. Places on S3 always
    /// pass.
    ///
    /// # Errors
    /// [`ErrorKind::OutputExists`](nearprint_fault::ErrorKind::OutputExists) if there is a file in the way.
    pub fn refuse_file_in_its_way(&self) -> Result<()> {
        self.local.as_deref().map_or(Ok(()), |path| local::nearest_folder(path).map(drop))
    }

    /// Checks, before any work starts, that files can be written here. Nothing is left behind. On S3 nothing is
    /// checked: there the first write tells.
    ///
    /// # Errors
    /// [`ErrorKind::OutputExists`](nearprint_fault::ErrorKind::OutputExists) if there is a file in the way,
    /// [`ErrorKind::LocalIo`](nearprint_fault::ErrorKind::LocalIo) if no file can be written.
    pub async fn probe(&self) -> Result<()> {
        let Some(path) = self.local.clone() else { return Ok(()) };
        blocking("file", move || local::probe(&path)).await
    }

    /// Checks that the permissions allow to write files here. Nothing is written. On S3 nothing is checked.
    ///
    /// # Errors
    /// [`ErrorKind::OutputExists`](nearprint_fault::ErrorKind::OutputExists) if there is a file in the way,
    /// [`ErrorKind::LocalIo`](nearprint_fault::ErrorKind::LocalIo) if writing is forbidden.
    pub fn refuse_forbidden(&self) -> Result<()> {
        self.local.as_deref().map_or(Ok(()), local::refuse_forbidden)
    }

    /// Returns the folder or object `name` below this place. `name` may have slashes.
    #[must_use]
    pub fn join(&self, name: &str) -> Self {
        let encoded = || name.split('/').fold(self.prefix.clone(), |p, part| p.join(part));
        // Keys of objects are as they are written, and names on disk as object_store encodes them. No object has an empty part in
        // its key, or `..`.
        let prefix = match self.is_remote() {
            true => Path::parse(format!("{}/{name}", self.prefix)).unwrap_or_else(|_| encoded()),
            false => encoded(),
        };
        let local = self.local.as_ref().map(|p| p.join(name));
        Self { backend: self.backend.clone(), prefix, url: format!("{}/{name}", self.url), local }
    }

    pub(crate) fn input(&self, meta: ObjectMeta, url: String) -> InputFile {
        InputFile::new(self.backend.clone(), meta, url)
    }

    /// Returns the file that was at this place once, of this size and version. Nothing of it can be read.
    #[must_use]
    pub fn former(&self, size: u64, version: String) -> InputFile {
        let last_modified = SystemTime::UNIX_EPOCH.into();
        let meta = ObjectMeta { location: self.prefix.clone(), last_modified, size, e_tag: None, version: None };
        let mut file = self.input(meta, self.url.clone());
        file.version = version;
        file
    }

    /// Returns the names directly below this folder, including hidden ones. The list is empty if there is no such
    /// folder.
    ///
    /// # Errors
    /// The folder cannot be listed.
    pub async fn names(&self) -> Result<Vec<String>> {
        if self.local.as_ref().is_some_and(|path| !path.is_dir()) {
            return Ok(Vec::new());
        }
        let fail = request("list", &self.url);
        let listed = self.backend.store().await?.list_with_delimiter(Some(&self.prefix)).await.map_err(fail)?;
        let name = |path: &Path| path.filename().map(str::to_owned);
        let files = listed.objects.iter().filter_map(|o| name(&o.location));
        Ok(files.chain(listed.common_prefixes.iter().filter_map(name)).collect())
    }

    /// Returns the names below this folder of the first objects, and of the first behind a name; on local disks all that are directly
    /// below it.
    ///
    /// # Errors
    /// The folder cannot be listed.
    pub(crate) async fn first_names(&self, after: &str, n_objects: usize) -> Result<Vec<String>> {
        if let Some(path) = &self.local {
            if !path.is_dir() {
                return Ok(Vec::new());
            }
            return local::names_in(path).map_err(Fault::io(path));
        }
        let store = self.backend.store().await?;
        let first = store.list(Some(&self.prefix)).take(n_objects);
        let later = store.list_with_offset(Some(&self.prefix), &self.join(after).prefix).take(n_objects);
        let objects: Vec<ObjectMeta> = first.chain(later).try_collect().await.map_err(request("list", &self.url))?;
        let first = |object: &ObjectMeta| Some(object.location.prefix_match(&self.prefix)?.next()?.as_ref().to_owned());
        Ok(objects.iter().filter_map(first).collect())
    }

    /// Refuses anything that is neither a file nor a folder, because opening a FIFO would wait for its writer.
    fn refuse_special(&self) -> Result<()> {
        let there = self.local.as_ref().and_then(|path| std::fs::metadata(path).ok());
        match there.as_ref().and_then(local::special_kind) {
            Some(kind) => Err(bad_file(&self.url, format!("it is {kind} and no file"))),
            None => Ok(()),
        }
    }

    /// Returns the file at this place in its current version.
    ///
    /// # Errors
    /// An error of kind [`ErrorKind::InputMissing`] if there is no such file;
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if a FIFO, socket or device stands
    /// there; an error of the disk or the object store.
    pub async fn file(&self) -> Result<InputFile> {
        self.refuse_special()?;
        let store = self.backend.store().await?;
        let meta = store.head(&self.prefix).await.map_err(request("read", &self.url))?;
        Ok(self.input(meta, self.url.clone()))
    }

    /// Returns the file at this place in its current version, or `None` if there is no such file.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if a FIFO, socket or device stands there; an error
    /// of the disk or the object store.
    pub async fn find(&self) -> Result<Option<InputFile>> {
        match self.file().await {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == ErrorKind::InputMissing => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the file at this place, if its version is still one that was listed.
    ///
    /// # Errors
    /// [`ErrorKind::TryAgain`](nearprint_fault::ErrorKind::TryAgain) if it is gone or has another version; otherwise as for
    /// [`find`](Self::find).
    pub async fn version(&self, listed: &str) -> Result<InputFile> {
        let changed = || Fault::try_again(format!("{}: changed or removed since it was listed", self.url));
        self.find().await?.filter(|file| file.version == listed).ok_or_else(changed)
    }

    /// Returns the content of the object at this place, or `None` if there is no such object.
    ///
    /// # Errors
    /// [`ErrorKind::BadData`](nearprint_fault::ErrorKind::BadData) if a FIFO, socket or device stands there; an error
    /// of the disk or the object store.
    pub async fn get(&self) -> Result<Option<Bytes>> {
        self.refuse_special()?;
        let fail = |source| request("read", &self.url)(source);
        match self.backend.store().await?.get(&self.prefix).await {
            Ok(found) => Ok(Some(found.bytes().await.map_err(fail)?)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(source) => Err(fail(source)),
        }
    }

    /// Writes the object at this place and replaces an existing one.
    ///
    /// # Errors
    /// An error of the disk or the object store.
    pub async fn put(&self, content: Bytes) -> Result<()> {
        if let Some(path) = &self.local {
            return local::put(path, content).await;
        }
        let store = self.backend.store().await?;
        let put = store.put(&self.prefix, PutPayload::from_bytes(content)).await;
        put.map(drop).map_err(request("write", &self.url))
    }

    /// Writes the object at this place unless there is one. Returns `false` if there is one. An object store that says so
    /// may mean the object of this very request, whose reply was lost: the object is read back, and the same content
    /// counts as written.
    ///
    /// # Errors
    /// An error of kind [`ErrorKind::TryAgain`] if the object was not written within the time for retries, or if it is
    /// unknown whether it was written; an error of the disk or the object store that another try would not change, such
    /// as a missing permission.
    pub async fn put_if_absent(&self, content: Bytes) -> Result<bool> {
        if let Some(path) = &self.local {
            return local::put_if_absent(path, content).await;
        }
        let store = self.backend.store().await?;
        let options = PutOptions::from(PutMode::Create);
        let put = store.put_opts(&self.prefix, PutPayload::from_bytes(content.clone()), options).await;
        let Err(source) = put else { return Ok(true) };
        let failed = request("write", &self.url)(source);
        if matches!(failed.kind(), ErrorKind::Permission | ErrorKind::Config | ErrorKind::InputMissing) {
            return Err(failed);
        }
        match self.get().await {
            Ok(Some(there)) => Ok(there == content),
            Ok(None) => Err(Fault::try_again(format!("{failed}: it was not written"))),
            Err(_) => {
                let reason = format!("{failed}; cannot tell whether {} was written; nothing was removed", self.url);
                Err(Fault::try_again(reason))
            }
        }
    }

    /// Asks the server to write the object at this place unless there is one. Returns `false` if the server says that
    /// there is one. After a lost reply, that may be the object of this very request.
    ///
    /// # Errors
    /// An error of the object store.
    pub async fn create(&self, content: Bytes) -> Result<bool> {
        let store = self.backend.store().await?;
        let options = PutOptions::from(PutMode::Create);
        match store.put_opts(&self.prefix, PutPayload::from_bytes(content), options).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
            Err(source) => Err(request("write", &self.url)(source)),
        }
    }

    /// Removes the half-written files that killed executions left in this folder and anywhere below it. Works on local
    /// disks only, and passes over files that cannot be removed.
    pub async fn tidy(&self) {
        self.tidy_by(local::remove_dead_below).await;
    }

    /// Removes such files from this folder alone, not from the folders below it.
    pub async fn tidy_itself(&self) {
        self.tidy_by(local::remove_dead_in).await;
    }

    async fn tidy_by(&self, remove: fn(&LocalPath)) {
        if let Some(path) = self.local.clone() {
            let tidied = blocking("file", move || {
                remove(&path);
                Ok::<(), Fault>(())
            });
            let _ = tidied.await;
        }
    }

    /// Deletes the object at this place.
    ///
    /// # Errors
    /// An error of the disk or the object store.
    pub async fn delete(&self) -> Result<()> {
        let store = self.backend.store().await?;
        store.delete(&self.prefix).await.map_err(request("delete", &self.url))
    }

    /// Copies a local file to this place and replaces an existing object.
    ///
    /// # Errors
    /// The local file cannot be read, or the copy cannot be written.
    pub async fn put_file(&self, from: &LocalPath) -> Result<()> {
        let bucket = match (&self.backend, &self.local) {
            (Backend::Bucket(bucket), _) => bucket,
            (Backend::Disk, Some(path)) => return local::put_file(path, from).await,
            (Backend::Disk, None) => return Ok(()),
        };
        let size = std::fs::metadata(from).map_err(Fault::io(from))?.len();
        if size <= PIECE_BYTES as u64 {
            let content = tokio::fs::read(from).await.map_err(Fault::io(from))?;
            return self.put(content.into()).await;
        }
        let Upload::Doubtful { id, source } = bucket.upload(&self.prefix, &self.url, from, size).await? else {
            return Ok(());
        };
        let is_there = self.is_copy_of(from, size).await;
        bucket.abort(&self.prefix, &id).await;
        if is_there.unwrap_or(false) { Ok(()) } else { Err(request("write", &self.url)(source)) }
    }

    /// Returns whether the object at this place has the bytes of a local file.
    async fn is_copy_of(&self, from: &LocalPath, size: u64) -> Result<bool> {
        let Some(there) = self.find().await?.filter(|there| there.size == size) else {
            return Ok(false);
        };
        let mut pieces = there.stream();
        let mut start = 0;
        while let Some(piece) = pieces.try_next().await? {
            let own = s3::read_part(from, start, piece.len() as u64).await?;
            if own != piece {
                return Ok(false);
            }
            start += piece.len() as u64;
        }
        Ok(start == size)
    }

    /// Aborts multipart uploads below this place that were begun longer ago than `older_than` and never ended, such as
    /// those of killed executions. Only uploads are considered for whose path below this place `is_own` returns `true`.
    /// With `dry_run`, nothing is aborted. Returns the keys of the uploads; on local disks there are none.
    ///
    /// # Errors
    /// The object store does not list or abort the uploads.
    pub async fn abort_stale_uploads(
        &self,
        older_than: Duration,
        dry_run: bool,
        is_own: impl Fn(&str) -> bool,
    ) -> Result<Vec<String>> {
        let Backend::Bucket(bucket) = &self.backend else {
            return Ok(Vec::new());
        };
        let prefix = self.prefix.as_ref();
        let below = |key: &str| match prefix.is_empty() {
            true => Some(key.to_owned()),
            false => key.strip_prefix(prefix)?.strip_prefix('/').map(str::to_owned),
        };
        let is_own = |key: &str| below(key).is_some_and(|below| is_own(&below));
        bucket.abort_stale_uploads(&self.prefix, &self.url, older_than, dry_run, is_own).await
    }
}

#[cfg(test)]
mod tests {
    use nearprint_fault::Result;

    use crate::storage::Storage;

    #[test]
    fn keys_of_objects_are_as_they_are_written() -> Result<()> {
        let folder = Storage::default().folder("s3://crawl/caf\u{e9}")?;
        for name in ["host=a.org%3A80/part 0.parquet", "\u{e9}t\u{e9}/[1]~#?*.html", "plain/name-0.parquet"] {
            assert_eq!(folder.join(name).prefix.as_ref(), format!("caf\u{e9}/{name}"));
        }
        assert_eq!(Storage::default().folder("s3://crawl")?.join("a%20b").prefix.as_ref(), "a%20b");
        Ok(())
    }
}
