//! An S3 proxy that does harm on purpose: errors, resets, cut, slow and flipped bodies, lost replies, and callbacks
//! at the nth request. No header is changed, so that signatures hold.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, TRANSFER_ENCODING};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use regex::Regex;
use tokio::net::{TcpListener, TcpStream};

use crate::Result;
use crate::random::Random;

type Body = UnsyncBoxBody<Bytes, io::Error>;

/// Called with `METHOD /path?query`. It may block.
pub type Hook = Arc<dyn Fn(&str) + Send + Sync>;

/// The treatment of a request that a rule matches.
#[derive(Clone)]
pub enum Action {
    /// An S3 error instead of the answer; the server does not see the request.
    Status { status: u16, code: &'static str },
    /// The connection is reset; the server does not see the request.
    Reset,
    /// No answer at all.
    BlackHole,
    /// The server does the work, and the connection is reset before the answer.
    LostReply,
    /// The body ends after so many bytes, or half of it where it is shorter.
    Truncate(usize),
    /// The body comes at so many bytes a second.
    Trickle(usize),
    /// One bit of the body is another, chosen from the proxy's seed.
    Flip,
    /// The server does the work, and an S3 error is the answer. One of status 200 has it in its body alone.
    Deny { status: u16, code: &'static str },
    /// The request waits before it is forwarded.
    Delay(Duration),
    /// Called before the request is forwarded, which then goes on.
    Before(Hook),
    /// Called after the server did the work and before the answer.
    After(Hook),
    /// Called before the request is forwarded, which then is not.
    Instead(Hook),
}

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status { status, code } => write!(f, "{status} {code}"),
            Self::Deny { status: 200, .. } => f.write_str("200 with an error"),
            Self::Deny { status, code } => write!(f, "{status} {code} after the work"),
            Self::Reset => f.write_str("reset"),
            Self::BlackHole => f.write_str("black hole"),
            Self::LostReply => f.write_str("lost reply"),
            Self::Truncate(n) => write!(f, "cut after {n} bytes"),
            Self::Trickle(n) => write!(f, "{n} bytes a second"),
            Self::Flip => f.write_str("flipped bit"),
            Self::Delay(time) => write!(f, "{time:?} later"),
            Self::Before(_) | Self::After(_) | Self::Instead(_) => f.write_str("hook"),
        }
    }
}

/// Which requests, and what is done to them. The first rule that matches counts.
#[derive(Debug, Clone)]
pub struct Rule {
    matches: Regex,
    skip: u64,
    count: u64,
    probability: f64,
    action: Action,
}

impl Rule {
    /// Every request whose `METHOD /path?query` the expression finds.
    pub fn new(matches: &str, action: Action) -> Result<Self> {
        Ok(Self { matches: Regex::new(matches)?, skip: 0, count: u64::MAX, probability: 1.0, action })
    }

    /// Lets the first `n` that match pass.
    #[must_use]
    pub fn after(mut self, n: u64) -> Self {
        self.skip = n;
        self
    }

    /// Strikes so many times.
    #[must_use]
    pub fn times(mut self, n: u64) -> Self {
        self.count = n;
        self
    }

    /// Strikes a share of the requests, drawn from the proxy's seed.
    #[must_use]
    pub fn share(mut self, probability: f64) -> Self {
        self.probability = probability;
        self
    }

    fn strikes(&mut self, line: &str, random: &mut Random) -> bool {
        if self.count == 0 || !self.matches.is_match(line) {
            return false;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        #[allow(clippy::cast_precision_loss, reason = "a draw below a million")]
        let struck = self.probability >= 1.0 || (random.below(1_000_000) as f64) < self.probability * 1e6;
        self.count -= u64::from(struck);
        struck
    }
}

/// A request that came by.
#[derive(Debug, Clone)]
pub struct Logged {
    /// `METHOD /path?query`
    pub line: String,
    /// The treatment of the request.
    pub action: Option<String>,
    /// The status that the server returned; 0 where it was not asked or did not answer.
    pub status: u16,
}

struct Shared {
    upstream: SocketAddr,
    rules: Mutex<Vec<Rule>>,
    random: Mutex<Random>,
    log: Mutex<Vec<Logged>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A proxy at work until it is dropped.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    _runtime: tokio::runtime::Runtime,
}

impl Proxy {
    /// Before the server on this port of the loopback.
    pub fn start(port: u16, seed: u64) -> Result<Self> {
        let shared = Arc::new(Shared {
            upstream: SocketAddr::from(([127, 0, 0, 1], port)),
            rules: Mutex::default(),
            random: Mutex::new(Random::new(seed)),
            log: Mutex::default(),
        });
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0)))?;
        let address = listener.local_addr()?;
        runtime.spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, _runtime: runtime })
    }

    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Other rules, an empty log, and the draws from the seed anew.
    pub fn set(&self, rules: Vec<Rule>, seed: u64) {
        *locked(&self.shared.rules) = rules;
        *locked(&self.shared.random) = Random::new(seed);
        locked(&self.shared.log).clear();
    }

    /// No rules any more; the log stays.
    pub fn calm(&self) {
        locked(&self.shared.rules).clear();
    }

    /// For hooks that change the rules.
    pub fn rules(&self) -> Rules {
        Rules(Arc::clone(&self.shared))
    }

    pub fn log(&self) -> Vec<Logged> {
        locked(&self.shared.log).clone()
    }

    /// Returns how often a rule struck.
    pub fn n_struck(&self) -> usize {
        locked(&self.shared.log).iter().filter(|l| l.action.is_some()).count()
    }
}

/// The rules of a proxy, which may be at work.
pub struct Rules(Arc<Shared>);

impl Rules {
    pub fn replace(&self, rules: Vec<Rule>) {
        *locked(&self.0.rules) = rules;
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((client, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        // A connection that is dropped is reset then, not closed in order.
        let _ = client.set_zero_linger();
        tokio::spawn(async move {
            let service = service_fn(|request| serve(request, Arc::clone(&shared)));
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(client), service).await;
        });
    }
}

/// Makes the error that ends the connection without an answer.
fn dropped() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "dropped on purpose")
}

async fn serve(request: Request<Incoming>, shared: Arc<Shared>) -> io::Result<Response<Body>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let line = format!("{} {}", head.method, head.uri);
    let is_head = head.method == "HEAD";
    let action = {
        let mut random = locked(&shared.random);
        locked(&shared.rules).iter_mut().find_map(|rule| rule.strikes(&line, &mut random).then(|| rule.action.clone()))
    };
    let entry = {
        let mut log = locked(&shared.log);
        log.push(Logged { line: line.clone(), action: action.as_ref().map(|a| format!("{a:?}")), status: 0 });
        log.len() - 1
    };
    match &action {
        Some(Action::Status { status, code }) => return Ok(error_answer(*status, code, is_head)),
        Some(Action::Reset) => return Err(dropped()),
        Some(Action::Instead(hook)) => {
            tokio::task::block_in_place(|| hook(&line));
            return Err(dropped());
        }
        Some(Action::BlackHole) => {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            return Err(dropped());
        }
        Some(Action::Delay(time)) => tokio::time::sleep(*time).await,
        Some(Action::Before(hook)) => tokio::task::block_in_place(|| hook(&line)),
        _ => {}
    }
    let (answer, content) = forward(&shared, Request::from_parts(head, Full::new(body))).await?;
    if let Some(logged) = locked(&shared.log).get_mut(entry) {
        logged.status = answer.status.as_u16();
    }
    match action {
        Some(Action::LostReply) => Err(dropped()),
        Some(Action::After(hook)) => {
            tokio::task::block_in_place(|| hook(&line));
            Err(dropped())
        }
        Some(Action::Deny { status, code }) => Ok(error_answer(status, code, is_head)),
        Some(Action::Truncate(n)) => Ok(cut(answer, &content, n)),
        Some(Action::Trickle(per_second)) => Ok(slow(answer, content, per_second)),
        Some(Action::Flip) if !content.is_empty() => {
            let bit = locked(&shared.random).below(content.len() as u64 * 8);
            Ok(Response::from_parts(answer, whole(flipped(&content, bit))))
        }
        _ => Ok(Response::from_parts(answer, whole(content))),
    }
}

/// The server's answer, its body read to the end.
async fn forward(shared: &Shared, request: Request<Full<Bytes>>) -> io::Result<(hyper::http::response::Parts, Bytes)> {
    let upstream = TcpStream::connect(shared.upstream).await?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(upstream)).await.map_err(io::Error::other)?;
    tokio::spawn(connection);
    let answer = sender.send_request(request).await.map_err(io::Error::other)?;
    let (mut head, body) = answer.into_parts();
    let content = body.collect().await.map_err(io::Error::other)?.to_bytes();
    // It is about the connection to the server. Ours would end with it, and be reset before the client has the answer.
    head.headers.remove(CONNECTION);
    if head.headers.remove(TRANSFER_ENCODING).is_some() {
        head.headers.insert(CONTENT_LENGTH, HeaderValue::from(content.len()));
    }
    Ok((head, content))
}

fn whole(content: Bytes) -> Body {
    Full::new(content).map_err(|never: Infallible| match never {}).boxed_unsync()
}

fn error_answer(status: u16, code: &str, is_head: bool) -> Response<Body> {
    let text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>{code}</Code><Message>injected</Message></Error>"
    );
    let mut answer = Response::new(whole(if is_head { Bytes::new() } else { Bytes::from(text) }));
    *answer.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    answer
}

fn flipped(content: &Bytes, bit: u64) -> Bytes {
    let mut bytes = content.to_vec();
    if let Some(byte) = usize::try_from(bit / 8).ok().and_then(|at| bytes.get_mut(at)) {
        *byte ^= 1 << (bit % 8);
    }
    Bytes::from(bytes)
}

/// The first bytes, and then the end of the connection; the length in the head stays.
fn cut(answer: hyper::http::response::Parts, content: &Bytes, n: usize) -> Response<Body> {
    let first = content.slice(..if n < content.len() { n } else { content.len() / 2 });
    let steps = stream::unfold(0, move |step| {
        let first = first.clone();
        async move {
            if step == 0 {
                return Some((Ok(Frame::data(first)), 1));
            }
            // What was sent should arrive before the reset does.
            tokio::time::sleep(Duration::from_millis(20)).await;
            Some((Err(dropped()), 1))
        }
    });
    Response::from_parts(answer, StreamBody::new(steps).boxed_unsync())
}

fn slow(answer: hyper::http::response::Parts, content: Bytes, per_second: usize) -> Response<Body> {
    let step = (per_second / 10).max(1);
    let steps = stream::unfold(content, move |mut left| async move {
        if left.is_empty() {
            return None;
        }
        let next = left.split_to(step.min(left.len()));
        tokio::time::sleep(Duration::from_millis(100)).await;
        Some((Ok(Frame::data(next)), left))
    });
    Response::from_parts(answer, StreamBody::new(steps).boxed_unsync())
}
