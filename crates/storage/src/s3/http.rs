//! Sending one HTTP request until it is answered. The module limits the number of requests and their time, tries them
//! again, signs them again, and counts them.
//!
//! The retries of object_store are turned off. It gives up on a LIST whose body breaks off, on a 409, and on
//! credentials that expire, and it cannot tell a slow body from a long one.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use http::header::{AUTHORIZATION, HeaderMap, IF_NONE_MATCH};
use http::{Method, StatusCode, Uri};
use object_store::ClientOptions;
use object_store::aws::AwsAuthorizer;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
    ReqwestConnector,
};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::Semaphore;

use super::config::PIECE_BYTES;
use super::credentials::Credentials;
use crate::error::{PASSING, element, may_pass};
use crate::locked::locked;

/// Counts of HTTP requests to object stores. Every attempt counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Requests {
    /// Reads of objects, or of ranges of them.
    pub get: u64,
    /// Questions whether an object exists.
    pub head: u64,
    /// Pages of listings.
    pub list: u64,
    /// Writes of objects, and of parts of multipart uploads.
    pub put: u64,
    /// Deletions of objects, and aborts of multipart uploads.
    pub delete: u64,
    /// Beginnings and ends of multipart uploads, and deletions of several objects at once.
    pub post: u64,
    /// The attempts among all these that repeated a request after a failure that may pass.
    pub retries: u64,
    /// Bytes of answers that were received.
    pub bytes_in: u64,
    /// Bytes of request bodies that were sent.
    pub bytes_out: u64,
}

impl Requests {
    /// Returns the number of requests that were sent.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.get + self.head + self.list + self.put + self.delete + self.post
    }

    /// Returns those that were sent since `before`, which are counts of the same requests at an earlier time.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            get: self.get.saturating_sub(before.get),
            head: self.head.saturating_sub(before.head),
            list: self.list.saturating_sub(before.list),
            put: self.put.saturating_sub(before.put),
            delete: self.delete.saturating_sub(before.delete),
            post: self.post.saturating_sub(before.post),
            retries: self.retries.saturating_sub(before.retries),
            bytes_in: self.bytes_in.saturating_sub(before.bytes_in),
            bytes_out: self.bytes_out.saturating_sub(before.bytes_out),
        }
    }

    fn counter(&mut self, method: &Method, uri: &Uri) -> &mut u64 {
        let asks = |name: &str| uri.query().is_some_and(|q| q.split('&').any(|part| part.starts_with(name)));
        match *method {
            Method::HEAD => &mut self.head,
            Method::PUT => &mut self.put,
            Method::DELETE => &mut self.delete,
            Method::POST => &mut self.post,
            _ if asks("list-type=") || asks("uploads") => &mut self.list,
            _ => &mut self.get,
        }
    }
}

/// The state that all buckets share: one set of counts, and one limit on how many requests are under way.
#[derive(Debug)]
pub struct Traffic {
    requests: Mutex<Requests>,
    under_way: Semaphore,
}

impl Traffic {
    pub fn new(n_at_once: usize) -> Self {
        Self { requests: Mutex::default(), under_way: Semaphore::new(n_at_once.max(1)) }
    }

    pub fn requests(&self) -> Requests {
        *locked(&self.requests)
    }
}

/// The time that a request may take.
#[derive(Debug, Clone, Copy)]
pub struct RequestLimits {
    /// The time between the start of the first attempt and the start of the last.
    pub retry: Duration,
    /// The time until an answer begins, to which the time for sending the request's body at [`MIN_SEND_RATE`] is added.
    /// After that, in each period of this length, the body of the answer must bring [`MIN_RATE`] bytes for each second
    /// of the period.
    pub idle: Duration,
}

/// An answer that brings fewer bytes a second counts as stalled.
const MIN_RATE: u64 = 4 << 10;
/// The rate, in bytes a second, at which a request's own body must at least be sent.
const MIN_SEND_RATE: u64 = 512 << 10;
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Sends the requests of one bucket.
pub struct Sender {
    client: HttpClient,
    traffic: Arc<Traffic>,
    credentials: Arc<Credentials>,
    region: String,
    limits: RequestLimits,
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("region", &self.region).field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// Creates the [`Sender`]s of a bucket.
#[derive(Debug)]
pub struct Connector {
    pub traffic: Arc<Traffic>,
    pub credentials: Arc<Credentials>,
    pub region: String,
    pub limits: RequestLimits,
    /// Receives the client that was created.
    pub made: Arc<OnceLock<HttpClient>>,
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = HttpClient::new(Sender {
            client: ReqwestConnector::default().connect(options)?,
            traffic: Arc::clone(&self.traffic),
            credentials: Arc::clone(&self.credentials),
            region: self.region.clone(),
            limits: self.limits,
        });
        Ok(self.made.get_or_init(|| client).clone())
    }
}

struct Answer {
    parts: http::response::Parts,
    body: Bytes,
}

/// The next step after an attempt.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Final,
    Passing,
    /// The credentials were refused, perhaps because they have expired.
    Expired,
}

#[async_trait]
impl HttpService for Sender {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let started = Instant::now();
        let (parts, body) = request.into_parts();
        let mut renewed = false;
        let mut pause = FIRST_PAUSE;
        let mut n_tries = 0;
        loop {
            let mut request = http::Request::from_parts(parts.clone(), body.clone());
            if n_tries > 0 {
                self.sign_again(&mut request).await;
            }
            let left = self.limits.retry.saturating_sub(started.elapsed());
            let idle = if n_tries == 0 { self.limits.idle } else { self.limits.idle.min(left.max(LONGEST_PAUSE)) };
            let done = self.attempt(request, idle, n_tries > 0).await;
            n_tries += 1;
            let verdict = verdict(&parts.method, &parts.headers, &done);
            let wait = jittered(pause);
            if verdict == Verdict::Expired && !renewed {
                renewed = true;
                self.credentials.renew().await;
            } else if verdict == Verdict::Passing && started.elapsed() + wait < self.limits.retry {
                tracing::debug!(method = %parts.method, path = parts.uri.path(), n_tries, "failed in passing: trying again");
                tokio::time::sleep(wait).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            } else {
                return done.map(|answer| HttpResponse::from_parts(answer.parts, answer.body.into()));
            }
        }
    }
}

impl Sender {
    async fn attempt(&self, request: HttpRequest, idle: Duration, again: bool) -> Result<Answer, HttpError> {
        let closed = |e| HttpError::new(HttpErrorKind::Unknown, e);
        let _permit = self.traffic.under_way.acquire().await.map_err(closed)?;
        let n_out = request.body().content_length() as u64;
        {
            let mut requests = locked(&self.traffic.requests);
            *requests.counter(request.method(), request.uri()) += 1;
            requests.retries += u64::from(again);
            requests.bytes_out += n_out;
        }
        let begins_within = idle + Duration::from_secs(n_out / MIN_SEND_RATE);
        let answered = tokio::time::timeout(begins_within, self.client.execute(request)).await;
        let (parts, body) = answered.map_err(|_| stalled(begins_within))??.into_parts();
        let body = self.body(&parts.headers, body, idle).await?;
        Ok(Answer { parts, body })
    }

    /// Reads the whole body, which is never longer than the range that was asked for. A slow body is no failure as long
    /// as it keeps moving.
    async fn body(&self, headers: &HeaderMap, body: HttpResponseBody, idle: Duration) -> Result<Bytes, HttpError> {
        let length = headers.get(http::header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse().ok()).unwrap_or(0);
        let mut whole = BytesMut::with_capacity(std::cmp::min(length, PIECE_BYTES));
        let mut pieces = body.bytes_stream();
        let (mut since, mut moved) = (Instant::now(), 0);
        let enough = MIN_RATE * idle.as_secs().max(1);
        loop {
            let left = idle.saturating_sub(since.elapsed());
            let Some(piece) = tokio::time::timeout(left, pieces.next()).await.map_err(|_| stalled(idle))? else {
                return Ok(whole.freeze());
            };
            let piece = piece?;
            locked(&self.traffic.requests).bytes_in += piece.len() as u64;
            moved += piece.len() as u64;
            whole.extend_from_slice(&piece);
            if moved >= enough {
                (since, moved) = (Instant::now(), 0);
            }
        }
    }

    /// Signs a request again, with the current time and the current credentials. A request that was not signed stays
    /// unsigned.
    async fn sign_again(&self, request: &mut HttpRequest) {
        let headers = request.headers();
        if !headers.contains_key(AUTHORIZATION) || headers.contains_key("x-amz-s3session-token") {
            return;
        }
        let Ok(credential) = self.credentials.current().await else {
            return;
        };
        let digest = headers.get("x-amz-content-sha256").and_then(|v| v.to_str().ok()).map(str::to_owned);
        let unsigned = digest.as_deref() == Some("UNSIGNED-PAYLOAD");
        let digest = digest.and_then(|text| bytes_of_hex(&text));
        for name in ["authorization", "x-amz-security-token", "x-amz-date"] {
            request.headers_mut().remove(name);
        }
        AwsAuthorizer::new(&credential, "s3", &self.region)
            .with_sign_payload(!unsigned)
            .authorize(request, digest.as_deref());
    }
}

fn verdict(method: &Method, headers: &HeaderMap, done: &Result<Answer, HttpError>) -> Verdict {
    const EXPIRED: [&str; 3] = ["ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"];
    let Ok(answer) = done else {
        return Verdict::Passing;
    };
    let code = || std::str::from_utf8(&answer.body).ok().and_then(|text| element(text, "Code"));
    let is = |known: &[&str]| code().is_some_and(|code| known.contains(&code));
    match answer.parts.status {
        // A multipart upload may still fail after its answer has begun with status 200.
        StatusCode::OK if method == Method::POST && is(&PASSING) => Verdict::Passing,
        status if status.is_success() => Verdict::Final,
        // The answer to a HEAD has no body that could tell the reason.
        StatusCode::FORBIDDEN if method == Method::HEAD => Verdict::Expired,
        StatusCode::FORBIDDEN | StatusCode::BAD_REQUEST if is(&EXPIRED) => Verdict::Expired,
        StatusCode::CONFLICT if headers.contains_key(IF_NONE_MATCH) => Verdict::Passing,
        status if may_pass(status, code()) => Verdict::Passing,
        _ => Verdict::Final,
    }
}

#[derive(Debug, thiserror::Error)]
#[error("no progress in {seconds} seconds")]
struct Stalled {
    seconds: u64,
}

fn stalled(limit: Duration) -> HttpError {
    HttpError::new(HttpErrorKind::Timeout, Stalled { seconds: limit.as_secs() })
}

/// Returns a random time between half of `pause` and all of it, so that requests that failed together are not repeated
/// together.
fn jittered(pause: Duration) -> Duration {
    let [low, high, ..] = RandomState::new().hash_one(0).to_le_bytes();
    let share = u32::from(u16::from_le_bytes([low, high]) % 1024);
    pause / 2 + pause / 2048 * share
}

fn bytes_of_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |at: usize| text.get(at..at + 2).and_then(|two| u8::from_str_radix(two, 16).ok());
    (text.len() == 64).then(|| (0..64).step_by(2).map(digit).collect()).flatten()
}
