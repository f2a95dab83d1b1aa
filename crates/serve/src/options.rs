//! The settings of a server.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use nearprint_fault::{Fault, Result, key, words};

use crate::token::Token;

/// The settings of a server.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// The address. An address that is not loopback needs a token.
    pub listen: SocketAddr,
    /// The token that requests must carry. `None` means that every program on this machine may ask.
    pub token: Option<Token>,
    /// The most bytes of a body, and of a line of a stream.
    pub max_body: usize,
    /// The most requests for answers at the same time. Beyond them, the answer is 503.
    pub max_requests: usize,
    /// The times for which the server waits for others.
    pub timeouts: Timeouts,
    /// The time between two looks for a new commit.
    pub refresh_every: Duration,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 8099).into(),
            token: None,
            max_body: 1 << 20,
            max_requests: 64,
            timeouts: Timeouts::default(),
            refresh_every: Duration::from_secs(5),
        }
    }
}

impl ServeOptions {
    /// Refuses an address that others can reach if there is no token.
    pub(crate) fn refuse_open_address(&self) -> Result<()> {
        if self.token.is_some() || self.listen.ip().to_canonical().is_loopback() {
            return Ok(());
        }
        let reason = words![key("listen"), format!(" {}: others can reach this address", self.listen)];
        Err(Fault::usage(reason).remedy(words!["give ", key("token_file"), ", or listen on 127.0.0.1"]))
    }
}

/// The times for which the server waits for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For the head of a request, from the first moment of a connection or the end of the request before.
    pub head: Duration,
    /// For a whole body, or the next line of a stream.
    pub body: Duration,
    /// For a whole stream.
    pub stream: Duration,
    /// For a client that takes nothing of an answer.
    pub write: Duration,
    /// For a comparison, with the reading of its documents.
    pub comparison: Duration,
    /// For open requests when the server stops.
    pub stop: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            head: seconds(10),
            body: seconds(30),
            stream: seconds(3600),
            write: seconds(30),
            comparison: seconds(300),
            stop: seconds(10),
        }
    }
}
