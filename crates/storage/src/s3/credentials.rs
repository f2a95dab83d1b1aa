//! Credentials from the chain of the AWS SDK: environment, profile (keys, process, role, single sign-on), web identity,
//! container, instance.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use aws_config::environment::EnvironmentVariableRegionProvider;
use aws_config::meta::region::RegionProviderChain;
use aws_config::profile::ProfileFileRegionProvider;
use aws_config::{BehaviorVersion, SdkConfig};
use aws_credential_types::provider::error::CredentialsError as SdkError;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use aws_smithy_runtime_api::client::http::{
    HttpClient as SdkClient, HttpConnector as SdkConnector, HttpConnectorFuture, HttpConnectorSettings,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator;
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use nearprint_fault::one_line;
use object_store::aws::AwsCredential;
use object_store::client::{HttpClient, HttpConnector, HttpRequestBody, ReqwestConnector};
use object_store::{ClientOptions, CredentialProvider};
use tokio::sync::Mutex;

use crate::error::CredentialsError;
use crate::redact::keep_quiet_about;

/// Credentials. They are fetched when they are first needed, and again before they expire.
pub struct Credentials {
    profile: Option<String>,
    known: Mutex<Option<Known>>,
}

struct Known {
    source: SharedCredentialsProvider,
    credential: Arc<AwsCredential>,
    expires: Option<SystemTime>,
    fetched: Instant,
}

/// The default of object_store.
const DEFAULT_REGION: &str = "us-east-1";
/// The time before they expire at which credentials are fetched again.
const BEFORE_EXPIRY: Duration = Duration::from_secs(5 * 60);
/// Credentials that are newer than this are not renewed. Many requests may have been refused with the old ones at once,
/// and some sources keep returning credentials that are about to expire until they have better ones.
const NEW: Duration = Duration::from_secs(5);
/// The time within which a process or server must return credentials.
const LONGEST: Duration = Duration::from_secs(30);

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("profile", &self.profile).finish_non_exhaustive()
    }
}

impl Credentials {
    pub fn new(profile: Option<String>) -> Self {
        Self { profile, known: Mutex::default() }
    }

    /// Loads the other settings of the profile: its region and endpoint.
    ///
    /// The future is boxed: each crate that waits for one of its own kind would compile the SDK's again.
    pub fn settings(&self) -> BoxFuture<'_, SdkConfig> {
        let mut region = ProfileFileRegionProvider::builder();
        let mut loader = aws_config::defaults(BehaviorVersion::latest()).http_client(SdkHttp);
        if let Some(profile) = &self.profile {
            region = region.profile_name(profile);
            loader = loader.profile_name(profile);
        }
        let from_environment = EnvironmentVariableRegionProvider::new();
        // Without the default at the end, the SDK would ask the machine's metadata service, which most machines do not
        // have.
        let chain = RegionProviderChain::first_try(from_environment).or_else(region.build()).or_else(DEFAULT_REGION);
        loader.region(chain).load().boxed()
    }

    /// Returns credentials that are still valid. They are fetched if none are known, or if the known ones expire within
    /// [`BEFORE_EXPIRY`] and are not [`NEW`]. If fetching fails, the known ones are used until they expire.
    ///
    /// # Errors
    /// [`CredentialsError`] if no source has valid credentials.
    pub async fn current(&self) -> Result<Arc<AwsCredential>, CredentialsError> {
        let mut known = self.known.lock().await;
        let lasts = |at: &Known, margin| at.expires.is_none_or(|expires| expires > SystemTime::now() + margin);
        let is_good =
            |at: &Known| lasts(at, BEFORE_EXPIRY) || (at.fetched.elapsed() < NEW && lasts(at, Duration::ZERO));
        if let Some(at) = known.as_ref().filter(|at| is_good(at)) {
            return Ok(Arc::clone(&at.credential));
        }
        let source = match known.as_ref() {
            Some(at) => at.source.clone(),
            None => self.source().await?,
        };
        match (fetch(source).await, known.as_ref()) {
            (Ok(fetched), _) => Ok(Arc::clone(&known.insert(fetched).credential)),
            (Err(error), Some(at)) if lasts(at, Duration::ZERO) => {
                tracing::warn!(%error, "cannot renew the credentials, which expire in less than five minutes");
                Ok(Arc::clone(&at.credential))
            }
            (Err(error), _) => Err(error),
        }
    }

    /// Fetches credentials from the files and the environment as they are now, even if the known ones should still be
    /// valid. Does nothing if the known ones are [`NEW`]. A failure is only logged.
    pub async fn renew(&self) {
        let mut known = self.known.lock().await;
        if known.as_ref().is_some_and(|at| at.fetched.elapsed() < NEW) {
            return;
        }
        let renewed = async { fetch(self.source().await?).await }.await;
        match renewed {
            Ok(fetched) => *known = Some(fetched),
            Err(error) => tracing::warn!(%error, "the credentials were refused and cannot be renewed"),
        }
    }

    async fn source(&self) -> Result<SharedCredentialsProvider, CredentialsError> {
        self.settings().await.credentials_provider().ok_or_else(none)
    }
}

async fn fetch(source: SharedCredentialsProvider) -> Result<Known, CredentialsError> {
    let late = |_| CredentialsError(format!("no credentials within {} seconds", LONGEST.as_secs()));
    let given = tokio::time::timeout(LONGEST, source.provide_credentials()).await.map_err(late)?;
    let given = given.map_err(|error| not_given(&error))?;
    let fits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic());
    let all = [Some(given.access_key_id()), Some(given.secret_access_key()), given.session_token()];
    if !all.into_iter().flatten().all(fits) {
        let text = "no credentials: a key, secret or token is empty or holds blanks: set it anew";
        return Err(CredentialsError(text.to_owned()));
    }
    all.into_iter().flatten().for_each(keep_quiet_about);
    let credential = Arc::new(AwsCredential {
        key_id: given.access_key_id().to_owned(),
        secret_key: given.secret_access_key().to_owned(),
        token: given.session_token().map(str::to_owned),
    });
    Ok(Known { source, credential, expires: given.expiry(), fetched: Instant::now() })
}

fn not_given(error: &SdkError) -> CredentialsError {
    let why = legible(error);
    // The machine's metadata service is asked last. Most machines have none, so its failure says only that no source
    // has credentials.
    if matches!(error, SdkError::CredentialsNotLoaded(_)) || why.contains("IMDS") {
        return none();
    }
    CredentialsError(format!("no credentials: {why}: mend the profile, process or role that should give them"))
}

fn none() -> CredentialsError {
    let text = "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile that has some ([s3] profile \
                or AWS_PROFILE), or run where a web identity, a container or the machine gives them";
    CredentialsError(text.to_owned())
}

/// Describes the causes of an error. The text ends before anything that repeats the output of a process or server,
/// because that may be a secret.
fn legible(error: &SdkError) -> String {
    let mut text = String::new();
    let mut next: Option<&dyn std::error::Error> = Some(error);
    while let Some(cause) = next {
        let said = one_line(&cause.to_string());
        if !text.contains(&said) {
            text = if text.is_empty() { said } else { format!("{text}: {said}") };
        }
        next = cause.source();
    }
    let end = QUOTES.iter().filter_map(|quote| text.find(quote)).min().unwrap_or(text.len());
    text[..end].trim_end_matches(['.', ':', ' ']).to_owned()
}

/// Phrases with which the SDK begins to repeat what it was given.
const QUOTES: [&str; 3] = ["Stderr", "invalid JSON", "Error {"];

#[async_trait]
impl CredentialProvider for Credentials {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        let refuse = |error| object_store::Error::Unauthenticated { path: String::new(), source: Box::new(error) };
        self.current().await.map_err(refuse)
    }
}

/// Sends the SDK's requests with the HTTP client that object_store uses.
#[derive(Debug, Clone, Copy)]
struct SdkHttp;

impl SdkClient for SdkHttp {
    fn http_connector(&self, settings: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        let connect = settings.connect_timeout().unwrap_or(Duration::from_secs(3));
        let answer = settings.read_timeout().unwrap_or(Duration::from_secs(10));
        let options = ClientOptions::new().with_allow_http(true).with_connect_timeout(connect).with_timeout(answer);
        SharedHttpConnector::new(SdkSender(ReqwestConnector::default().connect(&options)))
    }
}

#[derive(Debug)]
struct SdkSender(object_store::Result<HttpClient>);

impl SdkConnector for SdkSender {
    fn call(&self, request: orchestrator::HttpRequest) -> HttpConnectorFuture {
        let client = match &self.0 {
            Ok(client) => client.clone(),
            Err(error) => return HttpConnectorFuture::ready(Err(ConnectorError::user(error.to_string().into()))),
        };
        HttpConnectorFuture::new(send(client, request))
    }
}

async fn send(
    client: HttpClient,
    request: orchestrator::HttpRequest,
) -> Result<orchestrator::HttpResponse, ConnectorError> {
    let request = request.try_into_http1x().map_err(|e| ConnectorError::user(e.into()))?;
    // A request for credentials is in memory as a whole.
    let stream = || ConnectorError::user("the body of a request for credentials is a stream".into());
    let body = Bytes::copy_from_slice(request.body().bytes().ok_or_else(stream)?);
    let answer =
        client.execute(request.map(|_| HttpRequestBody::from(body))).await.map_err(|e| ConnectorError::io(e.into()))?;
    let (parts, body) = answer.into_parts();
    let body = body.bytes().await.map_err(|e| ConnectorError::io(e.into()))?;
    let answer = http::Response::from_parts(parts, SdkBody::from(body));
    answer.try_into().map_err(|e: aws_smithy_runtime_api::http::HttpError| ConnectorError::user(e.into()))
}
