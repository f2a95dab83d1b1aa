//! One bucket: opening it, multipart uploads, and uploads that were left open.

mod config;
mod credentials;
mod http;

use std::net::IpAddr;
use std::path::Path as LocalPath;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, SystemTime};

use ::http::Method;
use aws_config::SdkConfig;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::{StreamExt, TryStreamExt};
use nearprint_fault::{Fault, Result};
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey, AwsAuthorizer};
use object_store::client::{HttpClient, HttpRequestBody};
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::signer::Signer;
use object_store::{ClientConfigKey, MultipartId, RetryConfig};
use serde::Deserialize;
use tokio::sync::OnceCell;

use self::credentials::Credentials;
use self::http::{Connector, RequestLimits, Traffic};
use crate::error::request;
use crate::locked::locked;
use crate::row_number::in_memory;
use crate::runtime::blocking;

pub use self::config::{PIECE_BYTES, S3Config};
pub use self::http::Requests;

/// The smallest size of an upload's parts. A file that would need too many parts gets larger ones.
const PART_BYTES: u64 = 8 << 20;
/// The largest number of parts in an upload. S3 allows 10,000.
const MAX_PARTS: u64 = 9_000;
/// The number of parts that are sent at once. Each of them is held in memory.
const PARTS_AT_ONCE: usize = 4;

/// A bucket. It is opened when it is first needed.
#[derive(Debug)]
pub struct Bucket {
    name: String,
    config: S3Config,
    shared: Arc<Shared>,
    opened: OnceCell<Opened>,
}

impl Bucket {
    pub fn name(&self) -> &str {
        &self.name
    }
}

#[derive(Debug)]
struct Opened {
    store: Arc<AmazonS3>,
    client: HttpClient,
    region: String,
}

/// The state that the buckets of one [`Storage`](crate::Storage) share.
#[derive(Debug)]
pub struct Shared {
    pub traffic: Arc<Traffic>,
    credentials: Arc<Credentials>,
    uploads: Mutex<Vec<OpenUpload>>,
}

#[derive(Debug)]
struct OpenUpload {
    store: Arc<AmazonS3>,
    key: Path,
    id: MultipartId,
}

impl Shared {
    pub fn new(config: &S3Config) -> Self {
        Self {
            traffic: Arc::new(Traffic::new(config.requests.into())),
            credentials: Arc::new(Credentials::new(config.profile.clone())),
            uploads: Mutex::default(),
        }
    }

    /// Aborts the uploads that are still open. Uploads that cannot be aborted in time are left for `store gc`.
    pub async fn abort_uploads(&self) {
        let open = std::mem::take(&mut *locked(&self.uploads));
        let aborts = open.iter().map(|upload| upload.store.abort_multipart(&upload.key, &upload.id));
        let all = futures::future::join_all(aborts);
        // Nothing is lost if this fails, because an open upload is not an object.
        let _ = tokio::time::timeout(Duration::from_secs(5), all).await;
    }

    fn forget(&self, id: &MultipartId) {
        locked(&self.uploads).retain(|upload| upload.id != *id);
    }
}

impl Bucket {
    pub fn new(name: &str, config: &S3Config, shared: &Arc<Shared>) -> Self {
        Self { name: name.to_owned(), config: config.clone(), shared: Arc::clone(shared), opened: OnceCell::new() }
    }

    /// Returns the bucket's store, and opens the bucket if necessary.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](nearprint_fault::ErrorKind::Config) if the endpoint is refused;
    /// [`ErrorKind::StoreUnavailable`](nearprint_fault::ErrorKind::StoreUnavailable) if the settings are not
    /// valid.
    pub async fn store(&self) -> Result<&Arc<AmazonS3>> {
        Ok(&self.opened().await?.store)
    }

    async fn opened(&self) -> Result<&Opened> {
        self.opened.get_or_try_init(|| self.open()).await
    }

    async fn open(&self) -> Result<Opened> {
        let known = self.shared.credentials.settings().await;
        self.with_settings(&known)
    }

    fn with_settings(&self, known: &SdkConfig) -> Result<Opened> {
        let builder = AmazonS3Builder::from_env().with_bucket_name(&self.name);
        let S3Config { endpoint, region, .. } = self.config.with_environment();
        let endpoint = endpoint.or_else(|| known.endpoint_url().map(str::to_owned));
        let region =
            region.or_else(|| known.region().map(ToString::to_string)).unwrap_or_else(|| "us-east-1".to_owned());
        let is_plain = endpoint.as_deref().map_or(Ok(false), |e| plain_http(e, self.config.allow_http))?;
        let client = Arc::new(OnceLock::new());
        let connector = Connector {
            traffic: Arc::clone(&self.shared.traffic),
            credentials: Arc::clone(&self.shared.credentials),
            region: region.clone(),
            limits: RequestLimits {
                retry: Duration::from_secs(self.config.retry_seconds),
                idle: Duration::from_secs(self.config.timeout_seconds.max(1)),
            },
            made: Arc::clone(&client),
        };
        let mut builder = builder
            .with_region(&region)
            .with_credentials(Arc::clone(&self.shared.credentials) as _)
            .with_retry(RetryConfig { max_retries: 0, ..RetryConfig::default() })
            .with_http_connector(connector)
            // The sender has limits of its own. This limit would cut off long answers that make progress.
            .with_config(AmazonS3ConfigKey::Client(ClientConfigKey::Timeout), "1 day")
            // Only the job file may turn encryption off, and nothing makes a wrong certificate acceptable.
            .with_config(AmazonS3ConfigKey::Client(ClientConfigKey::AllowInvalidCertificates), "false")
            .with_allow_http(is_plain);
        if let Some(endpoint) = endpoint {
            builder = builder.with_endpoint(endpoint);
        }
        let url = format!("s3://{}", self.name);
        let store = Arc::new(builder.build().map_err(request("use", &url))?);
        let none = || Fault::internal("s3", "no client was made");
        let client = client.get().cloned().ok_or_else(none)?;
        Ok(Opened { store, client, region })
    }

    /// Uploads a local file of `size` bytes in a multipart upload. If only the last request fails, the object may exist
    /// nevertheless; the result is then [`Upload::Doubtful`].
    ///
    /// # Errors
    /// The local file cannot be read, or the object store refuses a request before the last one.
    pub async fn upload(&self, key: &Path, url: &str, from: &LocalPath, size: u64) -> Result<Upload> {
        let store = self.store().await?;
        let id = store.create_multipart(key).await.map_err(request("write", url))?;
        let open = OpenUpload { store: Arc::clone(store), key: key.clone(), id: id.clone() };
        locked(&self.shared.uploads).push(open);
        let parts = self.parts(store, key, &id, url, from, size).await;
        let done = match parts {
            Err(error) => Err(error),
            Ok(parts) => match store.complete_multipart(key, &id, parts).await {
                Ok(_) => Ok(Upload::Done),
                Err(source) => Ok(Upload::Doubtful { id: id.clone(), source }),
            },
        };
        match done {
            Ok(Upload::Done) => self.shared.forget(&id),
            Ok(Upload::Doubtful { .. }) => {}
            Err(_) => self.abort(key, &id).await,
        }
        done
    }

    /// Aborts a doubtful upload.
    pub async fn abort(&self, key: &Path, id: &MultipartId) {
        if let Ok(store) = self.store().await {
            // The error before this one is the one to report. If the upload stays open, `store gc` aborts it later.
            let _ = tokio::time::timeout(Duration::from_secs(5), store.abort_multipart(key, id)).await;
        }
        self.shared.forget(id);
    }

    async fn parts(
        &self,
        store: &AmazonS3,
        key: &Path,
        id: &MultipartId,
        url: &str,
        from: &LocalPath,
        size: u64,
    ) -> Result<Vec<PartId>> {
        let part_bytes = PART_BYTES.max(size.div_ceil(MAX_PARTS));
        let starts = (0..size).step_by(in_memory(part_bytes));
        let sent = starts.enumerate().map(|(i, start)| async move {
            let part = read_part(from, start, part_bytes.min(size - start)).await?;
            store.put_part(key, id, i, part.into()).await.map_err(request("write", url))
        });
        futures::stream::iter(sent).buffered(PARTS_AT_ONCE).try_collect().await
    }

    /// Aborts uploads below a prefix that were begun longer ago than `older_than`, are still open, and for whose key
    /// `is_own` returns `true`. With `dry_run`, nothing is aborted. Returns the keys.
    ///
    /// # Errors
    /// The object store does not list or abort the uploads.
    pub async fn abort_stale_uploads(
        &self,
        prefix: &Path,
        url: &str,
        older_than: Duration,
        dry_run: bool,
        is_own: impl Fn(&str) -> bool,
    ) -> Result<Vec<String>> {
        let opened = self.opened().await?;
        let mut stale = Vec::new();
        let mut after = None;
        loop {
            let page = opened.page(prefix, url, after.as_ref()).await?;
            // An upload that was begun later than the server's clock says is new.
            let age =
                |upload: &OpenedUpload| page.now.signed_duration_since(upload.initiated).to_std().unwrap_or_default();
            let is_stale = |upload: &&OpenedUpload| is_own(&upload.key) && age(upload) >= older_than;
            stale.extend(page.listed.upload.iter().filter(is_stale).cloned());
            let next = page.listed.next_key_marker.zip(page.listed.next_upload_id_marker);
            if !page.listed.is_truncated || next.is_none() || next == after {
                break;
            }
            after = next;
        }
        let mut keys = Vec::new();
        for upload in stale {
            if !dry_run {
                let key = Path::parse(&upload.key).map_err(|e| request("abort uploads of", url)(e.into()))?;
                match opened.store.abort_multipart(&key, &upload.upload_id).await {
                    // Its owner has ended the upload in the meantime.
                    Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                    Err(source) => return Err(request("abort uploads of", url)(source)),
                }
            }
            keys.push(upload.key);
        }
        Ok(keys)
    }
}

/// The end of an upload.
#[derive(Debug)]
pub enum Upload {
    Done,
    Doubtful { id: MultipartId, source: object_store::Error },
}

/// Reads `n_bytes` bytes of a local file from byte `start` on.
///
/// # Errors
/// [`ErrorKind::LocalIo`](nearprint_fault::ErrorKind::LocalIo) if the file cannot be read or is shorter.
pub async fn read_part(from: &LocalPath, start: u64, n_bytes: u64) -> Result<Bytes> {
    use std::os::unix::fs::FileExt;
    let from = from.to_path_buf();
    blocking("read", move || {
        let mut part = vec![0; in_memory(n_bytes)];
        let read = std::fs::File::open(&from).and_then(|file| file.read_exact_at(&mut part, start));
        read.map_err(Fault::io(&from))?;
        Ok(part.into())
    })
    .await
}

/// Returns whether an endpoint is reached without TLS. That is refused beyond loopback, unless `allow_http` is set.
fn plain_http(endpoint: &str, allow_http: bool) -> Result<bool> {
    let refused = |reason: &str| Fault::config("s3.endpoint", reason.to_owned());
    let form = "write it as https://host:port";
    let (scheme, rest) = endpoint.split_once("://").ok_or_else(|| refused(form))?;
    let authority = rest.split(['/', '?']).next().unwrap_or(rest);
    if rest.contains('@') || rest.contains('?') {
        return Err(refused("a URL must not hold credentials: give them by the environment or a profile"));
    }
    let host = match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or(v6),
        None => authority.split(':').next().unwrap_or(authority),
    };
    let is_loopback = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    match scheme {
        "https" => Ok(false),
        "http" if is_loopback || allow_http => Ok(true),
        "http" => Err(refused("plain http beyond this machine: use https, or set allow_http = true under [s3]")),
        _ => Err(refused(form)),
    }
}

/// An answer to <https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListMultipartUploads.html>.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct OpenUploads {
    #[serde(default)]
    is_truncated: bool,
    next_key_marker: Option<String>,
    next_upload_id_marker: Option<String>,
    #[serde(default)]
    upload: Vec<OpenedUpload>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct OpenedUpload {
    key: String,
    upload_id: String,
    initiated: DateTime<Utc>,
}

struct Page {
    listed: OpenUploads,
    /// The server's time.
    now: DateTime<Utc>,
}

impl Opened {
    /// Requests one page of the open uploads, because object_store has no such request.
    async fn page(&self, prefix: &Path, url: &str, after: Option<&(String, String)>) -> Result<Page> {
        let fail = request("list uploads of", url);
        let page = self.page_request(prefix, after).await.map_err(fail)?;
        let other = |source: Box<dyn std::error::Error + Send + Sync>| {
            request("list uploads of", url)(object_store::Error::Generic { store: "S3", source })
        };
        let (parts, body) = self.client.execute(page).await.map_err(|e| other(e.into()))?.into_parts();
        let body = body.bytes().await.map_err(|e| other(e.into()))?;
        let text = String::from_utf8_lossy(&body);
        if !parts.status.is_success() {
            return Err(other(format!("{}: {text}", parts.status).into()));
        }
        let date =
            parts.headers.get(::http::header::DATE).and_then(|v| DateTime::parse_from_rfc2822(v.to_str().ok()?).ok());
        let now = date.map_or_else(|| SystemTime::now().into(), |date| date.to_utc());
        let listed = quick_xml::de::from_str(&text).map_err(|e| other(e.into()))?;
        Ok(Page { listed, now })
    }

    async fn page_request(
        &self,
        prefix: &Path,
        after: Option<&(String, String)>,
    ) -> object_store::Result<::http::Request<HttpRequestBody>> {
        let mut url = self.store.signed_url(Method::GET, &Path::default(), Duration::from_secs(60)).await?;
        url.set_query(None);
        url.query_pairs_mut().append_pair("uploads", "");
        if !prefix.as_ref().is_empty() {
            url.query_pairs_mut().append_pair("prefix", &format!("{prefix}/"));
        }
        if let Some((key, id)) = after {
            url.query_pairs_mut().append_pair("key-marker", key).append_pair("upload-id-marker", id);
        }
        let invalid = |e: ::http::Error| object_store::Error::Generic { store: "S3", source: e.into() };
        let request = ::http::Request::get(url.as_str()).body(HttpRequestBody::empty());
        let mut request = request.map_err(invalid)?;
        let credential = self.store.credentials().get_credential().await?;
        AwsAuthorizer::new(&credential, "s3", &self.region).authorize(&mut request, None);
        Ok(request)
    }
}
