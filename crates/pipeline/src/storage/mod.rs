//! Places on local disk and S3. Both are read through `object_store`; local files are written by [`local`], since a file must be
//! whole or not there.

mod credentials;
mod http;
mod input;
mod inventory;
mod listing;
mod local;
mod place;
mod redact;
mod s3;
mod tables;

use std::collections::BTreeMap;
use std::path::{Path as LocalPath, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use serde::{Deserialize, Serialize};

pub(crate) use self::credentials::CredentialsError;
pub use self::http::Requests;
pub use self::input::InputFile;
pub(crate) use self::inventory::FoundFile;
pub(crate) use self::listing::Listing;
use self::listing::{Glob, Wanted};
pub(crate) use self::local::is_scratch_name;
pub(crate) use self::redact::redact;
use self::redact::refuse_secrets;
use self::s3::{Bucket, Shared, Upload};
use crate::error::{ErrorKind, PipelineError, Result};
use crate::locked::locked;

/// How `s3://` places are reached. Credentials never stand here: they come from the environment, a profile, or the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct S3Config {
    /// URL of an S3-compatible server; AWS where none is given here, in `AWS_ENDPOINT_URL` or in the profile.
    pub endpoint: Option<String>,
    /// Region, if not `AWS_REGION` or the profile's.
    pub region: Option<String>,
    /// Profile of the shared AWS files, if not `AWS_PROFILE`.
    pub profile: Option<String>,
    /// Allows plain `http` endpoints beyond loopback.
    pub allow_http: bool,
    /// Seconds in which a request that fails in passing is tried again.
    pub retry_seconds: u64,
    /// Seconds without progress after which an attempt counts as failed.
    pub timeout_seconds: u64,
    /// Requests that are under way at once.
    pub requests: u16,
}

impl Default for S3Config {
    fn default() -> Self {
        Self {
            endpoint: None,
            region: None,
            profile: None,
            allow_http: false,
            retry_seconds: 60,
            timeout_seconds: 30,
            requests: 16,
        }
    }
}

/// Opens places by path or URL. Clones share connections, credentials and counts.
#[derive(Debug, Clone)]
pub struct Storage {
    s3: S3Config,
    shared: Arc<Shared>,
    buckets: Arc<Mutex<BTreeMap<String, Arc<Bucket>>>>,
}

impl Default for Storage {
    fn default() -> Self {
        Self::new(S3Config::default())
    }
}

/// What an object lies in.
#[derive(Debug, Clone)]
enum Backend {
    Disk,
    Bucket(Arc<Bucket>),
}

impl Backend {
    async fn store(&self) -> Result<Arc<dyn ObjectStore>> {
        match self {
            Self::Disk => Ok(Arc::new(LocalFileSystem::new())),
            Self::Bucket(bucket) => Ok(Arc::clone(bucket.store().await?) as _),
        }
    }
}

/// A folder on local disk, or a prefix of an S3 bucket.
#[derive(Debug, Clone)]
pub struct Folder {
    backend: Backend,
    prefix: Path,
    url: String,
    local: Option<PathBuf>,
}

/// What to do where nothing is at a place that is to be read.
pub(crate) const NOTHING_THERE: &str = "check the path; nothing was read or written";

/// The most that one request reads: what fails is read again, and what stalls is noticed.
const PIECE_BYTES: usize = 8 << 20;

impl Storage {
    /// Places on `s3://` are reached as `s3` says.
    #[must_use]
    pub fn new(s3: S3Config) -> Self {
        let shared = Arc::new(Shared::new(&s3));
        Self { s3, shared, buckets: Arc::default() }
    }

    /// The requests that were sent to object stores so far.
    #[must_use]
    pub fn requests(&self) -> Requests {
        self.shared.traffic.requests()
    }

    /// Aborts the uploads that work which has failed, or was stopped, left open. Takes at most 5 seconds.
    pub async fn abort_uploads(&self) {
        self.shared.abort_uploads().await;
    }

    /// The folder at a local path or `s3://bucket/prefix`; it need not exist.
    ///
    /// # Errors
    /// A URL of another scheme, or one that holds credentials.
    pub fn folder(&self, url: &str) -> Result<Folder> {
        refuse_secrets(url)?;
        let url = if url == "/" { url } else { url.trim_end_matches('/') };
        match url.split_once("://") {
            Some(("s3", rest)) => self.s3_folder(url, rest),
            Some(("file", path)) => local_folder(path),
            None => local_folder(url),
            Some((scheme, _)) => {
                let reason = format!("{url}: no support for {scheme}://: use a local path or s3://bucket/prefix");
                Err(PipelineError::Usage { reason })
            }
        }
    }

    fn s3_folder(&self, url: &str, rest: &str) -> Result<Folder> {
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = Path::parse(prefix).map_err(|e| PipelineError::store("use", url)(e.into()))?;
        let mut buckets = locked(&self.buckets);
        let new = || Arc::new(Bucket::new(bucket, &self.s3, &self.shared));
        let bucket = Arc::clone(buckets.entry(bucket.to_owned()).or_insert_with(new));
        Ok(Folder { backend: Backend::Bucket(bucket), prefix, url: url.to_owned(), local: None })
    }

    /// The files that a path, folder, glob or S3 prefix names, sorted by path. In folders and globs, names that start with
    /// `_` or `.` are passed over at any depth.
    ///
    /// # Errors
    /// [`PipelineError::InputMissing`] where there is none; what stands where a file could and cannot be read as one; a table.
    pub async fn files(&self, pattern: &str, what: &'static str) -> Result<Vec<InputFile>> {
        let listed = self.listing(pattern, what).await?;
        match listed.unusable.into_iter().next() {
            Some((file, reason)) => Err(PipelineError::bad_file(file.url, reason)),
            None => Ok(listed.files),
        }
    }

    /// The same, with what cannot be read as a file beside the files.
    pub(crate) async fn listing(&self, pattern: &str, what: &'static str) -> Result<Listing> {
        let listed = self.listed(pattern).await?;
        if let Some(table) = &listed.table {
            return Err(table.refused());
        }
        if listed.is_empty() {
            return Err(PipelineError::InputMissing { what, url: redact(pattern), remedy: NOTHING_THERE });
        }
        Ok(listed)
    }

    async fn listed(&self, pattern: &str) -> Result<Listing> {
        // Where the path stands as it is written, brackets are part of it.
        if pattern.contains('[') {
            match self.file_or_folder(pattern).await {
                Ok(listed) if listed.is_empty() => {}
                Err(error) if !matches!(error, PipelineError::Table { .. }) => {}
                as_written => return as_written,
            }
        }
        match self.place_of(pattern)? {
            (base, Some(glob)) => {
                let listed = base.listing(Wanted::Matching(glob)).await?;
                base.refuse_table_above().await?;
                Ok(listed)
            }
            (_, None) => self.file_or_folder(pattern).await,
        }
    }

    /// The folder before the first wildcard; the place itself where there is none.
    pub(crate) fn base_of(&self, pattern: &str) -> Result<Folder> {
        self.place_of(pattern).map(|(base, _)| base)
    }

    /// The same, and the glob.
    fn place_of(&self, pattern: &str) -> Result<(Folder, Option<Glob>)> {
        let Some(wildcard) = pattern.find(['*', '?', '[']) else {
            return Ok((self.folder(pattern)?, None));
        };
        let base = pattern[..wildcard].rsplit_once('/').map_or(".", |(base, _)| base);
        let base = if base.is_empty() { "/" } else { base };
        Ok((self.folder(base)?, Some(Glob::parse(pattern)?)))
    }

    /// The folder is looked at first: it is the usual case, and a missing bucket tells itself from a missing prefix only there.
    async fn file_or_folder(&self, pattern: &str) -> Result<Listing> {
        let place = self.folder(pattern)?;
        let mut listed = place.listing(Wanted::All).await?;
        if pattern.ends_with('/') {
            listed.files.retain(|file| file.url != place.url);
        } else if place.is_remote() && listed.files.is_empty() && !place.prefix.as_ref().is_empty() {
            listed.files.extend(place.find().await?);
        }
        place.refuse_table_above().await?;
        Ok(listed)
    }
}

fn local_folder(path: &str) -> Result<Folder> {
    let absolute = resolved(path).map_err(PipelineError::io(path))?;
    let invalid = |e: object_store::path::Error| PipelineError::Usage { reason: format!("{path}: {e}") };
    let prefix = Path::from_absolute_path(&absolute).map_err(invalid)?;
    Ok(Folder { backend: Backend::Disk, prefix, url: path.to_owned(), local: Some(absolute) })
}

/// The absolute path, without `..` and links as far as it exists.
fn resolved(path: &str) -> std::io::Result<PathBuf> {
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

    pub(crate) fn is_local_folder(&self) -> bool {
        self.local.as_ref().is_some_and(|path| path.is_dir())
    }

    /// Refuses a place for a folder where a file stands, or above which one does.
    pub(crate) fn refuse_file_in_its_way(&self) -> Result<()> {
        self.local.as_deref().map_or(Ok(()), |path| local::nearest_folder(path).map(drop))
    }

    /// Finds out, before any work, whether files could be written here, and leaves nothing. On S3 the first write tells.
    pub(crate) async fn probe(&self) -> Result<()> {
        let Some(path) = self.local.clone() else { return Ok(()) };
        local::blocking(move || local::probe(&path)).await
    }

    /// A folder or object below it; `name` may have slashes.
    #[must_use]
    pub fn join(&self, name: &str) -> Self {
        let prefix = name.split('/').fold(self.prefix.clone(), |p, part| p.join(part));
        let local = self.local.as_ref().map(|p| p.join(name));
        Self { backend: self.backend.clone(), prefix, url: format!("{}/{name}", self.url), local }
    }

    fn input(&self, meta: ObjectMeta, url: String) -> InputFile {
        InputFile::new(self.backend.clone(), meta, url)
    }

    /// Names directly below it, hidden ones included; none where it is no folder.
    pub(crate) async fn names(&self) -> Result<Vec<String>> {
        if self.local.as_ref().is_some_and(|path| !path.is_dir()) {
            return Ok(Vec::new());
        }
        let fail = PipelineError::store("list", &self.url);
        let listed = self.backend.store().await?.list_with_delimiter(Some(&self.prefix)).await.map_err(fail)?;
        let name = |path: &Path| path.filename().map(str::to_owned);
        let files = listed.objects.iter().filter_map(|o| name(&o.location));
        Ok(files.chain(listed.common_prefixes.iter().filter_map(name)).collect())
    }

    /// The file at this place, as it is now.
    pub(crate) async fn file(&self) -> Result<InputFile> {
        self.refuse_special()?;
        let store = self.backend.store().await?;
        let meta = store.head(&self.prefix).await.map_err(PipelineError::store("read", &self.url))?;
        Ok(self.input(meta, self.url.clone()))
    }

    /// The file at this place, as it is now; none where there is no such file.
    pub(crate) async fn find(&self) -> Result<Option<InputFile>> {
        match self.file().await {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == ErrorKind::InputMissing => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The content of the object at this place; none where there is no such object.
    pub(crate) async fn get(&self) -> Result<Option<Bytes>> {
        self.refuse_special()?;
        let fail = |source| PipelineError::Store { action: "read", url: self.url.clone(), source };
        match self.backend.store().await?.get(&self.prefix).await {
            Ok(found) => Ok(Some(found.bytes().await.map_err(fail)?)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(source) => Err(fail(source)),
        }
    }

    /// Writes the object at this place, replacing one that is there.
    pub(crate) async fn put(&self, content: Bytes) -> Result<()> {
        if let Some(path) = &self.local {
            return local::put(path, content).await;
        }
        let store = self.backend.store().await?;
        let put = store.put(&self.prefix, PutPayload::from_bytes(content)).await;
        put.map(drop).map_err(PipelineError::store("write", &self.url))
    }

    /// Writes the object at this place unless there is one; false where there is another. After any doubt what is there is read
    /// back, so that a lost reply to our own write counts as ours.
    ///
    /// # Errors
    /// Of kind [`ErrorKind::TryAgain`] where it was not written within the time for retries, or where nobody can tell.
    pub(crate) async fn put_if_absent(&self, content: Bytes) -> Result<bool> {
        if let Some(path) = &self.local {
            let is_there = || async { Ok(self.get().await?.is_some_and(|there| there == content)) };
            return if local::put_if_absent(path, content.clone()).await? { Ok(true) } else { is_there().await };
        }
        let store = self.backend.store().await?;
        let options = PutOptions::from(PutMode::Create);
        let put = store.put_opts(&self.prefix, PutPayload::from_bytes(content.clone()), options).await;
        let Err(source) = put else { return Ok(true) };
        let failed = PipelineError::store("write", &self.url)(source);
        if matches!(failed.kind(), ErrorKind::Permission | ErrorKind::Config | ErrorKind::InputMissing) {
            return Err(failed);
        }
        match self.get().await {
            Ok(Some(there)) => Ok(there == content),
            Ok(None) => Err(PipelineError::TryAgain { reason: format!("{failed}: it was not written") }),
            Err(_) => {
                let reason = format!("{failed}; cannot tell whether {} was written; nothing was removed", self.url);
                Err(PipelineError::TryAgain { reason })
            }
        }
    }

    /// Asks the server to write the object at this place unless there is one; false where it says that there is, which may be our own
    /// after a lost reply.
    pub(crate) async fn create(&self, content: Bytes) -> Result<bool> {
        let store = self.backend.store().await?;
        let options = PutOptions::from(PutMode::Create);
        match store.put_opts(&self.prefix, PutPayload::from_bytes(content), options).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
            Err(source) => Err(PipelineError::store("write", &self.url)(source)),
        }
    }

    /// Removes the half-written files that killed runs left anywhere below, on local disks; as far as it can be done.
    pub(crate) async fn tidy(&self) {
        self.tidy_by(local::remove_dead_below).await;
    }

    /// The same in this folder alone.
    pub(crate) async fn tidy_itself(&self) {
        self.tidy_by(local::remove_dead_in).await;
    }

    async fn tidy_by(&self, remove: fn(&LocalPath)) {
        if let Some(path) = self.local.clone() {
            let tidied = local::blocking(move || {
                remove(&path);
                Ok(())
            });
            let _ = tidied.await;
        }
    }

    pub(crate) async fn delete(&self) -> Result<()> {
        let store = self.backend.store().await?;
        store.delete(&self.prefix).await.map_err(PipelineError::store("delete", &self.url))
    }

    /// Writes a local file to this place, replacing an object that is there.
    pub(crate) async fn put_file(&self, from: &LocalPath) -> Result<()> {
        let bucket = match (&self.backend, &self.local) {
            (Backend::Bucket(bucket), _) => bucket,
            (Backend::Disk, Some(path)) => return local::put_file(path, from).await,
            (Backend::Disk, None) => return Ok(()),
        };
        let size = std::fs::metadata(from).map_err(PipelineError::io(from))?.len();
        if size <= PIECE_BYTES as u64 {
            let content = tokio::fs::read(from).await.map_err(PipelineError::io(from))?;
            return self.put(content.into()).await;
        }
        let Upload::Doubtful { id, source } = bucket.upload(&self.prefix, &self.url, from, size).await? else {
            return Ok(());
        };
        let is_there = self.is_copy_of(from, size).await;
        bucket.abort(&self.prefix, &id).await;
        if is_there.unwrap_or(false) { Ok(()) } else { Err(PipelineError::store("write", &self.url)(source)) }
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
