//! A proxy in front of an S3 server that does what servers and networks do now and then.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What happens to a request.
pub enum Act {
    /// Answered with this status and code; the server never sees it.
    Refuse(u16, &'static str),
    /// Carried out, and answered with this status and code.
    Deny(u16, &'static str),
    /// Carried out, and the connection closed instead of an answer.
    LoseReply,
    /// Closed without an answer.
    Reset,
    /// Answered by half.
    Truncate,
    /// Never answered.
    Hang,
    /// Something else happens first.
    First(Box<dyn Fn() + Send>),
}

pub struct Rule {
    method: &'static str,
    part: &'static str,
    skip: usize,
    times: usize,
    act: Act,
}

/// `act` for the first `times` requests of a method ("" for all) whose target has `part` in it.
pub fn rule(method: &'static str, part: &'static str, times: usize, act: Act) -> Rule {
    Rule { method, part, skip: 0, times, act }
}

impl Rule {
    pub fn after(self, skip: usize) -> Self {
        Self { skip, ..self }
    }

    fn hit(&mut self, line: &str) -> bool {
        let matches = self.times > 0 && line.starts_with(self.method) && line.contains(self.part);
        let skips = matches && self.skip > 0;
        self.skip -= usize::from(skips);
        let hits = matches && !skips;
        self.times -= usize::from(hits);
        hits
    }
}

#[derive(Default)]
struct State {
    rules: Vec<Rule>,
    log: Vec<String>,
}

pub struct Proxy {
    pub endpoint: String,
    state: Arc<Mutex<State>>,
}

impl Proxy {
    pub fn start(upstream: &str, rules: Vec<Rule>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let upstream = upstream.trim_start_matches("http://").to_owned();
        let state = Arc::new(Mutex::new(State { rules, log: Vec::new() }));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (upstream, state) = (upstream.clone(), Arc::clone(&shared));
                // A client that goes away is no fault of the proxy's.
                std::thread::spawn(move || drop(serve(client, &upstream, &state)));
            }
        });
        Self { endpoint, state }
    }

    /// Requests so far, as "METHOD target".
    pub fn log(&self) -> Vec<String> {
        self.state.lock().unwrap().log.clone()
    }

    pub fn set(&self, rules: Vec<Rule>) {
        self.state.lock().unwrap().rules = rules;
    }
}

/// One request; both connections end with it.
fn serve(mut client: TcpStream, upstream: &str, state: &Mutex<State>) -> std::io::Result<()> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        client.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let length = head.lines().find_map(|l| l.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    client.read_exact(&mut body)?;
    let line = head.lines().next().unwrap_or_default().trim_end_matches(" HTTP/1.1").to_owned();
    let forward = || -> std::io::Result<Vec<u8>> {
        let mut server = TcpStream::connect(upstream)?;
        server.write_all(head.trim_end().as_bytes())?;
        server.write_all(b"\r\nconnection: close\r\n\r\n")?;
        server.write_all(&body)?;
        let mut answer = Vec::new();
        server.read_to_end(&mut answer)?;
        Ok(answer)
    };
    let mut state = state.lock().unwrap();
    state.log.push(line.clone());
    let hit = state.rules.iter_mut().find_map(|rule| rule.hit(&line).then_some(rule));
    let Some(hit) = hit else {
        drop(state);
        return client.write_all(&forward()?);
    };
    match &hit.act {
        Act::Refuse(status, code) => client.write_all(&error(&line, *status, code)),
        Act::Deny(status, code) => {
            forward()?;
            client.write_all(&error(&line, *status, code))
        }
        Act::LoseReply => forward().map(drop).and_then(|()| client.shutdown(Shutdown::Both)),
        Act::Reset => client.shutdown(Shutdown::Both),
        Act::Truncate => {
            let answer = forward()?;
            client.write_all(&answer[..answer.len() - answer.len().min(400) / 2])
        }
        Act::Hang => {
            drop(state);
            std::thread::sleep(Duration::from_secs(60));
            Ok(())
        }
        Act::First(act) => {
            act();
            client.write_all(&forward()?)
        }
    }
}

fn error(line: &str, status: u16, code: &str) -> Vec<u8> {
    let body = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>injected</Message></Error>");
    let body = if line.starts_with("HEAD") { "" } else { &body };
    let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    (head + body).into_bytes()
}
