//! Places on local disk and S3, all through `object_store`: one code path for both.

use std::path::{Path as LocalPath, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    BackoffConfig, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, RetryConfig,
    WriteMultipart,
};
use serde::{Deserialize, Serialize};

use crate::error::{ErrorKind, PipelineError, Result};

/// How `s3://` places are reached. Credentials never stand here: they come from the environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct S3Config {
    /// URL of an S3-compatible server; AWS where none is given here or in `AWS_ENDPOINT_URL`.
    pub endpoint: Option<String>,
    /// Region, if not `AWS_REGION`.
    pub region: Option<String>,
    /// Allows plain `http` endpoints.
    pub allow_http: bool,
    /// Seconds in which a request that fails in passing is tried again.
    pub retry_seconds: u64,
}

impl Default for S3Config {
    fn default() -> Self {
        Self { endpoint: None, region: None, allow_http: false, retry_seconds: 60 }
    }
}

/// Opens places by path or URL.
#[derive(Debug, Clone, Default)]
pub struct Storage {
    s3: S3Config,
}

/// A folder on local disk, or a prefix of an S3 bucket.
#[derive(Debug, Clone)]
pub struct Folder {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    url: String,
    local: Option<PathBuf>,
}

/// An object as it was when it was listed.
#[derive(Debug, Clone)]
pub struct InputFile {
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) path: Path,
    /// Its path or URL as the user would write it.
    pub url: String,
    /// Bytes.
    pub size: u64,
    /// What the store calls this version of it.
    pub version: String,
}

/// Parts of a multipart upload.
const PART_BYTES: usize = 8 << 20;

impl Storage {
    /// Places on `s3://` are reached as `s3` says.
    #[must_use]
    pub fn new(s3: S3Config) -> Self {
        Self { s3 }
    }

    /// The folder at a local path or `s3://bucket/prefix`; it need not exist.
    ///
    /// # Errors
    /// A URL of another scheme, or S3 settings that cannot be used.
    pub fn folder(&self, url: &str) -> Result<Folder> {
        let url = if url == "/" { url } else { url.trim_end_matches('/') };
        match url.split_once("://") {
            Some(("s3", rest)) => self.s3_folder(url, rest),
            Some(("file", path)) => local_folder(path),
            None => local_folder(url),
            Some((scheme, _)) => {
                let reason =
                    format!("{}: no support for {scheme}://: use a local path or s3://bucket/prefix", redact(url));
                Err(PipelineError::Usage { reason })
            }
        }
    }

    fn s3_folder(&self, url: &str, rest: &str) -> Result<Folder> {
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let invalid = |source| PipelineError::Store { action: "use", url: url.to_owned(), source };
        let store = self.s3_builder(bucket).build().map_err(invalid)?;
        let prefix = Path::parse(prefix).map_err(|e| invalid(e.into()))?;
        Ok(Folder { store: Arc::new(store), prefix, url: url.to_owned(), local: None })
    }

    fn s3_builder(&self, bucket: &str) -> AmazonS3Builder {
        let retry = RetryConfig {
            backoff: BackoffConfig { max_backoff: Duration::from_secs(5), ..BackoffConfig::default() },
            max_retries: 1000,
            retry_timeout: Duration::from_secs(self.s3.retry_seconds),
        };
        let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retry);
        if let Some(endpoint) = &self.s3.endpoint {
            builder = builder.with_endpoint(endpoint);
        }
        if let Some(region) = &self.s3.region {
            builder = builder.with_region(region);
        }
        let loopback = builder
            .get_config_value(&AmazonS3ConfigKey::Endpoint)
            .is_some_and(|e| e.starts_with("http://127.") || e.starts_with("http://localhost"));
        if self.s3.allow_http || loopback {
            builder = builder.with_allow_http(true);
        }
        builder
    }

    /// The files that a path, folder, glob or S3 prefix names, sorted by path. In folders and globs, names that start with
    /// `_` or `.` are passed over at any depth.
    ///
    /// # Errors
    /// [`PipelineError::InputMissing`] where there is none.
    pub async fn files(&self, pattern: &str, what: &'static str) -> Result<Vec<InputFile>> {
        // Where the path stands as it is written, brackets are part of it.
        if pattern.contains('[')
            && let Ok(files) = self.file_or_folder(pattern).await
            && !files.is_empty()
        {
            return Ok(files);
        }
        let files = match pattern.find(['*', '?', '[']) {
            Some(wildcard) => self.matching(pattern, wildcard).await?,
            None => self.file_or_folder(pattern).await?,
        };
        if files.is_empty() {
            let remedy = "check the path; nothing was read or written";
            return Err(PipelineError::InputMissing { what, url: redact(pattern), remedy });
        }
        Ok(files)
    }

    async fn file_or_folder(&self, pattern: &str) -> Result<Vec<InputFile>> {
        let place = self.folder(pattern)?;
        match place.store.head(&place.prefix).await {
            Ok(meta) if !pattern.ends_with('/') => Ok(vec![place.input(meta, place.url.clone())]),
            Ok(_) | Err(object_store::Error::NotFound { .. }) => place.list().await,
            // A local folder is no object: its head is an error of its own kind.
            Err(_) if place.local.as_ref().is_some_and(|p| p.is_dir()) => place.list().await,
            Err(source) => Err(PipelineError::Store { action: "read", url: place.url, source }),
        }
    }

    async fn matching(&self, pattern: &str, wildcard: usize) -> Result<Vec<InputFile>> {
        let invalid = |e: glob::PatternError| PipelineError::Usage { reason: format!("{pattern}: {e}: mend the glob") };
        let matcher = glob::Pattern::new(pattern).map_err(invalid)?;
        let options = glob::MatchOptions { require_literal_separator: true, ..glob::MatchOptions::default() };
        let base = pattern[..wildcard].rsplit_once('/').map_or(".", |(base, _)| base);
        let base = if base.is_empty() { "/" } else { base };
        let listed = self.folder(base)?.list().await?;
        let strip = if base == "." { "./" } else { "" };
        Ok(listed
            .into_iter()
            .filter(|f| matcher.matches_with(f.url.strip_prefix(strip).unwrap_or(&f.url), options))
            .collect())
    }
}

fn local_folder(path: &str) -> Result<Folder> {
    let absolute = resolved(path).map_err(PipelineError::io(path))?;
    let invalid = |e: object_store::path::Error| PipelineError::Usage { reason: format!("{path}: {e}") };
    let prefix = Path::from_absolute_path(&absolute).map_err(invalid)?;
    Ok(Folder { store: Arc::new(LocalFileSystem::new()), prefix, url: path.to_owned(), local: Some(absolute) })
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

    /// A folder or object below it; `name` may have slashes.
    #[must_use]
    pub fn join(&self, name: &str) -> Self {
        let prefix = name.split('/').fold(self.prefix.clone(), |p, part| p.join(part));
        let local = self.local.as_ref().map(|p| p.join(name));
        Self { store: Arc::clone(&self.store), prefix, url: format!("{}/{name}", self.url), local }
    }

    /// All files below, sorted by path, without hidden ones; empty where the folder does not exist.
    ///
    /// # Errors
    /// The store's.
    pub async fn list(&self) -> Result<Vec<InputFile>> {
        let fail = PipelineError::store("list", &self.url);
        let listed: Vec<ObjectMeta> = match self.store.list(Some(&self.prefix)).try_collect().await {
            Ok(listed) => listed,
            Err(object_store::Error::NotFound { .. }) if self.local.is_some() => Vec::new(),
            Err(source) => return Err(fail(source)),
        };
        let mut files: Vec<InputFile> = listed.into_iter().filter_map(|meta| self.visible(meta)).collect();
        files.sort_by(|a, b| a.url.cmp(&b.url));
        Ok(files)
    }

    fn visible(&self, meta: ObjectMeta) -> Option<InputFile> {
        let below: Vec<String> = meta.location.prefix_match(&self.prefix)?.map(|p| p.as_ref().to_owned()).collect();
        let hidden = below.is_empty() || below.iter().any(|part| part.starts_with(['_', '.']));
        let url = format!("{}/{}", self.url.trim_end_matches('/'), below.join("/"));
        (!hidden).then(|| self.input(meta, url))
    }

    fn input(&self, meta: ObjectMeta, url: String) -> InputFile {
        // A local ETag holds the inode: a restored copy with its old time is the same version.
        let remote = meta.e_tag.filter(|_| self.is_remote());
        let version = remote.unwrap_or_else(|| meta.last_modified.to_rfc3339());
        InputFile { store: Arc::clone(&self.store), path: meta.location, url, size: meta.size, version }
    }

    /// Names directly below it, hidden ones included; none where it is no folder.
    pub(crate) async fn names(&self) -> Result<Vec<String>> {
        if self.local.as_ref().is_some_and(|path| !path.is_dir()) {
            return Ok(Vec::new());
        }
        let fail = PipelineError::store("list", &self.url);
        let listed = self.store.list_with_delimiter(Some(&self.prefix)).await.map_err(fail)?;
        let name = |path: &Path| path.filename().map(str::to_owned);
        let files = listed.objects.iter().filter_map(|o| name(&o.location));
        Ok(files.chain(listed.common_prefixes.iter().filter_map(name)).collect())
    }

    /// The file at this place, as it is now.
    pub(crate) async fn file(&self) -> Result<InputFile> {
        let meta = self.store.head(&self.prefix).await.map_err(PipelineError::store("read", &self.url))?;
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
        let fail = |source| PipelineError::Store { action: "read", url: self.url.clone(), source };
        match self.store.get(&self.prefix).await {
            Ok(found) => Ok(Some(found.bytes().await.map_err(fail)?)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(source) => Err(fail(source)),
        }
    }

    /// Writes the object at this place, replacing one that is there.
    pub(crate) async fn put(&self, content: Bytes) -> Result<()> {
        let fail = PipelineError::store("write", &self.url);
        self.store.put(&self.prefix, PutPayload::from_bytes(content)).await.map_err(fail)?;
        self.sync()
    }

    /// Writes the object at this place unless there is one; false where there is. After any doubt what is there is read
    /// back, so that a lost reply to our own write counts as ours.
    pub(crate) async fn put_if_absent(&self, content: Bytes) -> Result<bool> {
        let options = PutOptions::from(PutMode::Create);
        let put = self.store.put_opts(&self.prefix, PutPayload::from_bytes(content.clone()), options).await;
        match put {
            Ok(_) => self.sync().map(|()| true),
            Err(source) => match self.get().await? {
                Some(there) => Ok(there == content),
                None => Err(PipelineError::store("write", &self.url)(source)),
            },
        }
    }

    pub(crate) async fn delete(&self) -> Result<()> {
        self.store.delete(&self.prefix).await.map_err(PipelineError::store("delete", &self.url))
    }

    /// Writes a local file to this place, replacing an object that is there.
    pub(crate) async fn put_file(&self, from: &LocalPath) -> Result<()> {
        let size = std::fs::metadata(from).map_err(PipelineError::io(from))?.len();
        if size <= PART_BYTES as u64 {
            let content = tokio::fs::read(from).await.map_err(PipelineError::io(from))?;
            return self.put(content.into()).await;
        }
        self.put_parts(from).await?;
        self.sync()
    }

    async fn put_parts(&self, from: &LocalPath) -> Result<()> {
        use tokio::io::AsyncReadExt;
        let upload = self.store.put_multipart(&self.prefix).await.map_err(PipelineError::store("write", &self.url))?;
        let mut upload = WriteMultipart::new_with_chunk_size(upload, PART_BYTES);
        let mut file = tokio::fs::File::open(from).await.map_err(PipelineError::io(from))?;
        let copied: Result<()> = async {
            loop {
                let mut part = Vec::with_capacity(PART_BYTES);
                let n = (&mut file)
                    .take(PART_BYTES as u64)
                    .read_to_end(&mut part)
                    .await
                    .map_err(PipelineError::io(from))?;
                if n == 0 {
                    return Ok(());
                }
                upload.wait_for_capacity(4).await.map_err(PipelineError::store("write", &self.url))?;
                upload.put(part.into());
            }
        }
        .await;
        match copied {
            Ok(()) => upload.finish().await.map(drop).map_err(PipelineError::store("write", &self.url)),
            Err(error) => {
                // The first error is the one to report.
                let _ = upload.abort().await;
                Err(error)
            }
        }
    }

    /// object_store does not sync local files: the file and its folder are, here.
    fn sync(&self) -> Result<()> {
        let Some(local) = &self.local else {
            return Ok(());
        };
        for path in [Some(local.as_path()), local.parent()].into_iter().flatten() {
            std::fs::File::open(path).and_then(|f| f.sync_all()).map_err(PipelineError::io(path))?;
        }
        Ok(())
    }
}

/// A URL or message without user info in URLs and without signed query parameters.
pub(crate) fn redact(text: &str) -> String {
    text.split(' ').map(redact_word).collect::<Vec<_>>().join(" ")
}

fn redact_word(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else {
        return word.to_owned();
    };
    let (authority, path) = rest.find('/').map_or((rest, ""), |i| rest.split_at(i));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let path = path.split_once("?X-Amz-").map_or(path, |(path, _)| path);
    format!("{scheme}://{host}{path}")
}
