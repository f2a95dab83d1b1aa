//! Places on local disk and S3. Both are read through `object_store`; local files are written by [`local`], since a file must be
//! whole or not there.

use std::path::{Path as LocalPath, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};

use crate::backend::Backend;
use crate::error::{ErrorKind, Result, StorageError};
use crate::input::InputFile;
use crate::local;
use crate::runtime::blocking;
use crate::s3::{self, PIECE_BYTES, Upload};

/// A folder on local disk, or a prefix of an S3 bucket.
#[derive(Debug, Clone)]
pub struct Folder {
    pub(crate) backend: Backend,
    pub(crate) prefix: Path,
    pub(crate) url: String,
    pub(crate) local: Option<PathBuf>,
}

pub fn local_folder(path: &str) -> Result<Folder> {
    let absolute = resolved(path).map_err(StorageError::io(path))?;
    let invalid = |e: object_store::path::Error| StorageError::Usage { reason: format!("{path}: {e}") };
    let prefix = Path::from_absolute_path(&absolute).map_err(invalid)?;
    Ok(Folder { backend: Backend::Disk, prefix, url: path.to_owned(), local: Some(absolute) })
}

/// The absolute path, without `..` and links as far as it exists.
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
    /// The path or URL, without a slash at the end.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Whether it lies on S3.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        self.local.is_none()
    }

    /// Whether it is a folder on a local disk that is there.
    pub fn is_local_folder(&self) -> bool {
        self.local.as_ref().is_some_and(|path| path.is_dir())
    }

    /// Refuses a place for a folder where a file stands, or above which one does.
    pub fn refuse_file_in_its_way(&self) -> Result<()> {
        self.local.as_deref().map_or(Ok(()), |path| local::nearest_folder(path).map(drop))
    }

    /// Finds out, before any work, whether files could be written here, and leaves nothing. On S3 the first write tells.
    pub async fn probe(&self) -> Result<()> {
        let Some(path) = self.local.clone() else { return Ok(()) };
        blocking("file", move || local::probe(&path)).await
    }

    /// A folder or object below it; `name` may have slashes.
    #[must_use]
    pub fn join(&self, name: &str) -> Self {
        let prefix = name.split('/').fold(self.prefix.clone(), |p, part| p.join(part));
        let local = self.local.as_ref().map(|p| p.join(name));
        Self { backend: self.backend.clone(), prefix, url: format!("{}/{name}", self.url), local }
    }

    pub(crate) fn input(&self, meta: ObjectMeta, url: String) -> InputFile {
        InputFile::new(self.backend.clone(), meta, url)
    }

    /// Names directly below it, hidden ones included; none where it is no folder.
    pub async fn names(&self) -> Result<Vec<String>> {
        if self.local.as_ref().is_some_and(|path| !path.is_dir()) {
            return Ok(Vec::new());
        }
        let fail = StorageError::store("list", &self.url);
        let listed = self.backend.store().await?.list_with_delimiter(Some(&self.prefix)).await.map_err(fail)?;
        let name = |path: &Path| path.filename().map(str::to_owned);
        let files = listed.objects.iter().filter_map(|o| name(&o.location));
        Ok(files.chain(listed.common_prefixes.iter().filter_map(name)).collect())
    }

    /// Refuses what would be opened as a file and is none: to open a FIFO is to wait for its writer.
    fn refuse_special(&self) -> Result<()> {
        let there = self.local.as_ref().and_then(|path| std::fs::metadata(path).ok());
        match there.as_ref().and_then(local::special_kind) {
            Some(kind) => Err(StorageError::bad_file(&self.url, format!("it is {kind} and no file"))),
            None => Ok(()),
        }
    }

    /// The file at this place, as it is now.
    pub async fn file(&self) -> Result<InputFile> {
        self.refuse_special()?;
        let store = self.backend.store().await?;
        let meta = store.head(&self.prefix).await.map_err(StorageError::store("read", &self.url))?;
        Ok(self.input(meta, self.url.clone()))
    }

    /// The file at this place, as it is now; none where there is no such file.
    pub async fn find(&self) -> Result<Option<InputFile>> {
        match self.file().await {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == ErrorKind::InputMissing => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The content of the object at this place; none where there is no such object.
    pub async fn get(&self) -> Result<Option<Bytes>> {
        self.refuse_special()?;
        let fail = |source| StorageError::ObjectStore { action: "read", url: self.url.clone(), source };
        match self.backend.store().await?.get(&self.prefix).await {
            Ok(found) => Ok(Some(found.bytes().await.map_err(fail)?)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(source) => Err(fail(source)),
        }
    }

    /// Writes the object at this place, replacing one that is there.
    pub async fn put(&self, content: Bytes) -> Result<()> {
        if let Some(path) = &self.local {
            return local::put(path, content).await;
        }
        let store = self.backend.store().await?;
        let put = store.put(&self.prefix, PutPayload::from_bytes(content)).await;
        put.map(drop).map_err(StorageError::store("write", &self.url))
    }

    /// Writes the object at this place unless there is one; false where there is another. After any doubt what is there is read
    /// back, so that a lost reply to our own write counts as ours.
    ///
    /// # Errors
    /// Of kind [`ErrorKind::TryAgain`] where it was not written within the time for retries, or where nobody can tell.
    pub async fn put_if_absent(&self, content: Bytes) -> Result<bool> {
        if let Some(path) = &self.local {
            let is_there = || async { Ok(self.get().await?.is_some_and(|there| there == content)) };
            return if local::put_if_absent(path, content.clone()).await? { Ok(true) } else { is_there().await };
        }
        let store = self.backend.store().await?;
        let options = PutOptions::from(PutMode::Create);
        let put = store.put_opts(&self.prefix, PutPayload::from_bytes(content.clone()), options).await;
        let Err(source) = put else { return Ok(true) };
        let failed = StorageError::store("write", &self.url)(source);
        if matches!(failed.kind(), ErrorKind::Permission | ErrorKind::Config | ErrorKind::InputMissing) {
            return Err(failed);
        }
        match self.get().await {
            Ok(Some(there)) => Ok(there == content),
            Ok(None) => Err(StorageError::TryAgain { reason: format!("{failed}: it was not written") }),
            Err(_) => {
                let reason = format!("{failed}; cannot tell whether {} was written; nothing was removed", self.url);
                Err(StorageError::TryAgain { reason })
            }
        }
    }

    /// Asks the server to write the object at this place unless there is one; false where it says that there is, which may be our own
    /// after a lost reply.
    pub async fn create(&self, content: Bytes) -> Result<bool> {
        let store = self.backend.store().await?;
        let options = PutOptions::from(PutMode::Create);
        match store.put_opts(&self.prefix, PutPayload::from_bytes(content), options).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
            Err(source) => Err(StorageError::store("write", &self.url)(source)),
        }
    }

    /// Removes the half-written files that killed runs left anywhere below, on local disks; as far as it can be done.
    pub async fn tidy(&self) {
        self.tidy_by(local::remove_dead_below).await;
    }

    /// The same in this folder alone.
    pub async fn tidy_itself(&self) {
        self.tidy_by(local::remove_dead_in).await;
    }

    async fn tidy_by(&self, remove: fn(&LocalPath)) {
        if let Some(path) = self.local.clone() {
            let tidied = blocking("file", move || {
                remove(&path);
                Ok::<(), StorageError>(())
            });
            let _ = tidied.await;
        }
    }

    /// Deletes the object at this place.
    ///
    /// # Errors
    /// The place's.
    pub async fn delete(&self) -> Result<()> {
        let store = self.backend.store().await?;
        store.delete(&self.prefix).await.map_err(StorageError::store("delete", &self.url))
    }

    /// Writes a local file to this place, replacing an object that is there.
    pub async fn put_file(&self, from: &LocalPath) -> Result<()> {
        let bucket = match (&self.backend, &self.local) {
            (Backend::Bucket(bucket), _) => bucket,
            (Backend::Disk, Some(path)) => return local::put_file(path, from).await,
            (Backend::Disk, None) => return Ok(()),
        };
        let size = std::fs::metadata(from).map_err(StorageError::io(from))?.len();
        if size <= PIECE_BYTES as u64 {
            let content = tokio::fs::read(from).await.map_err(StorageError::io(from))?;
            return self.put(content.into()).await;
        }
        let Upload::Doubtful { id, source } = bucket.upload(&self.prefix, &self.url, from, size).await? else {
            return Ok(());
        };
        let is_there = self.is_copy_of(from, size).await;
        bucket.abort(&self.prefix, &id).await;
        if is_there.unwrap_or(false) { Ok(()) } else { Err(StorageError::store("write", &self.url)(source)) }
    }

    /// Whether the object at this place has a local file's bytes.
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

    /// Uploads in parts below this place that were begun longer ago than `older_than` and never ended, as runs that are killed
    /// leave them: aborted, unless `dry_run`. Only those whose path below this place `is_own`. Gives their keys; none on local disks.
    ///
    /// # Errors
    /// The store's.
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
