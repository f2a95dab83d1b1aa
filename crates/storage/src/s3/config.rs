//! How S3 is reached.

use serde::{Deserialize, Serialize};

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

/// The most that one request reads: what fails is read again, and what stalls is noticed.
pub const PIECE_BYTES: usize = 8 << 20;
