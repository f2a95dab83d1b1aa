//! The settings for S3.

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The settings for access to `s3://` places. Credentials are not settings: they come from the environment, a profile, or the
/// machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct S3Config {
    /// URL of an S3-compatible server. Without it, `AWS_ENDPOINT_URL` counts, then the profile, then AWS itself.
    pub endpoint: Option<String>,
    /// Region. Without it, `AWS_REGION` counts, then the profile.
    pub region: Option<String>,
    /// Profile in the shared AWS files. Without it, `AWS_PROFILE` counts.
    pub profile: Option<String>,
    /// Allows plain `http` for endpoints beyond loopback.
    pub allow_http: bool,
    /// For how many seconds a request is tried again after a failure that may pass.
    pub retry_seconds: u64,
    /// Seconds without progress after which an attempt counts as failed.
    pub timeout_seconds: u64,
    /// Number of requests that may be under way at once.
    #[schemars(range(min = 1))]
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

impl S3Config {
    /// Returns the settings with the endpoint and the region that the environment has, where they are not set. Processes of other
    /// machines may have another environment.
    #[must_use]
    pub fn with_environment(&self) -> Self {
        let environment = AmazonS3Builder::from_env();
        let value = |key| environment.get_config_value(&key);
        Self {
            endpoint: self.endpoint.clone().or_else(|| value(AmazonS3ConfigKey::Endpoint)),
            region: self.region.clone().or_else(|| value(AmazonS3ConfigKey::Region)),
            ..self.clone()
        }
    }
}

/// Bytes that one request reads at most. A limit keeps it cheap to read again after a failure, and makes it possible to
/// notice a stall.
pub const PIECE_BYTES: usize = 8 << 20;
