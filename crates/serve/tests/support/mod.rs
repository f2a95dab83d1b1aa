//! A server of its own for each test, answers from memory, and a client that sends what it is told.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nearprint_explain::Explanation;
use nearprint_fault::{Fault, Result};
use nearprint_lookup::{Answer, Decision, FingerprintText, JsonQuery, Match, State, Taken, Turn};
use nearprint_serve::{Answers, ServeOptions, Served, Server, Side, Token};
use nearprint_storage::bad_file;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, oneshot};

pub const TOKEN: &str = "5f1d0c8a97e24b63";

pub fn token() -> Token {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("{TOKEN}\n")).unwrap();
    Token::read(file.path()).unwrap()
}

/// A store that has one document, `old page`. The text `wait` is answered when the gate lets it pass, and `defect` never.
pub struct Memory {
    pub gate: Arc<Semaphore>,
    pub failing: Arc<AtomicBool>,
    commit: AtomicU64,
}

impl Default for Memory {
    fn default() -> Self {
        Self { gate: Arc::new(Semaphore::new(0)), failing: Arc::default(), commit: AtomicU64::new(1) }
    }
}

#[async_trait::async_trait]
impl Answers for Memory {
    async fn answer(&self, asked: JsonQuery, _: Turn) -> Result<(Answer, Taken)> {
        let fingerprint = match (&asked.text, &asked.fingerprint) {
            (Some(text), None) if text == "wait" => {
                self.gate.acquire().await.unwrap().forget();
                0
            }
            (Some(text), None) if text == "defect" => std::panic::resume_unwind(Box::new("a defect")),
            (Some(text), None) => u64::from(text != "old page"),
            (None, Some(FingerprintText::Number(value))) => *value,
            _ => return Err(Fault::usage("ask with a text")),
        };
        let found = Match {
            id: "old".to_owned(),
            dt: "2026-11-20".to_owned(),
            distance: 0,
            sketch_distance: None,
            decision: Decision::Keep,
            canonical_id: None,
            reference: None,
            exact: true,
        };
        let matches: Vec<Match> = (fingerprint == 0).then_some(found).into_iter().collect();
        let n_matches = matches.len() as u64;
        let fingerprint = Some(format!("{fingerprint:016x}"));
        Ok((Answer { fingerprint, n_matches, matches, ..Answer::default() }, Taken::default()))
    }

    async fn explain(&self, a: Side, _: Side) -> Result<Explanation> {
        if a.text.as_deref() == Some("wait") {
            self.gate.acquire().await.unwrap().forget();
        }
        Err(Fault::usage("the server knows no documents"))
    }

    async fn refresh(&self) -> Result<bool> {
        if self.failing.load(Ordering::Relaxed) {
            let (file, reason) = ("commit".to_owned(), "it is damaged".to_owned());
            return Err(bad_file(file, reason));
        }
        Ok(self.commit.fetch_add(1, Ordering::Relaxed) > 0)
    }

    fn state(&self) -> State {
        State {
            store: "memory".to_owned(),
            commit: self.commit.load(Ordering::Relaxed).min(3),
            n_nights: 1,
            n_live_rows: 1,
            n_indexed_rows: 0,
            n_scanned_rows: 1,
            n_short: 0,
        }
    }

    fn has_texts(&self) -> bool {
        false
    }
}

/// A server on a port of its own.
pub struct Running {
    pub address: SocketAddr,
    runtime: Runtime,
    stop: Option<oneshot::Sender<()>>,
    served: Option<tokio::task::JoinHandle<Served>>,
}

impl Running {
    pub fn start(answers: impl Answers, options: ServeOptions) -> Self {
        let runtime = Runtime::new().unwrap();
        let options = ServeOptions { listen: "127.0.0.1:0".parse().unwrap(), ..options };
        let server = runtime.block_on(Server::listen(options)).unwrap();
        let address = server.address();
        let (stop, stopped) = oneshot::channel();
        let served = runtime.spawn(server.run(Arc::new(answers), async { drop(stopped.await) }));
        Self { address, runtime, stop: Some(stop), served: Some(served) }
    }

    pub fn stop(&mut self) {
        let _ = self.stop.take().unwrap().send(());
    }

    pub fn served(&mut self) -> Served {
        self.runtime.block_on(self.served.take().unwrap()).unwrap()
    }

    pub fn send(&self, request: &str) -> Reply {
        let mut client = Client::new(self);
        client.write(request);
        client.reply()
    }

    pub fn ask(&self, question: &Value) -> Reply {
        let body = question.to_string();
        let head = "POST /query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json; charset=utf-8";
        self.send(&format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()))
    }

    pub fn metric(&self, name: &str) -> f64 {
        let reply = self.send("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let line = reply.body.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in {}", reply.body)).parse().unwrap()
    }

    pub fn wait_for(&self, metric: &str, value: f64) {
        let started = Instant::now();
        while self.metric(metric) != value {
            assert!(started.elapsed() < Duration::from_secs(20), "{metric} is {}", self.metric(metric));
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

pub fn refused(options: ServeOptions) -> String {
    Runtime::new().unwrap().block_on(Server::listen(options)).unwrap_err().to_string()
}

pub struct Client {
    pub stream: TcpStream,
}

impl Client {
    pub fn new(server: &Running) -> Self {
        let stream = TcpStream::connect(server.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Self { stream }
    }

    pub fn write(&mut self, request: &str) {
        self.stream.write_all(request.as_bytes()).unwrap();
    }

    /// Reads one response.
    pub fn reply(&mut self) -> Reply {
        let mut reader = BufReader::new(&self.stream);
        let mut next = || {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            line.trim_end().to_owned()
        };
        let status = next().split(' ').nth(1).unwrap().parse().unwrap();
        let head = std::iter::from_fn(|| Some(next()).filter(|line| !line.is_empty()));
        let headers = head.map(|line| line.split_once(": ").map(|(n, v)| (n.to_owned(), v.to_owned())).unwrap());
        let mut reply = Reply { status, headers: headers.collect(), body: String::new() };
        if reply.header("transfer-encoding") == "chunked" {
            loop {
                let mut size = String::new();
                reader.read_line(&mut size).unwrap();
                let mut chunk = vec![0; usize::from_str_radix(size.trim(), 16).unwrap() + 2];
                reader.read_exact(&mut chunk).unwrap();
                if chunk.len() == 2 {
                    return reply;
                }
                reply.body += std::str::from_utf8(&chunk[..chunk.len() - 2]).unwrap();
            }
        }
        let mut body = vec![0; reply.header("content-length").parse().unwrap_or(0)];
        reader.read_exact(&mut body).unwrap();
        reply.body = String::from_utf8(body).unwrap();
        reply
    }
}

#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub body: String,
}

impl Reply {
    pub fn header(&self, name: &str) -> String {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()).unwrap_or_default()
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.body))
    }
}
