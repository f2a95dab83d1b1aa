//! A running `nearprint serve`, and clients of it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::Value;

use nearprint_harness::runner::{Ran, Run, Running, Signal};
use nearprint_harness::{Result, require};

/// The server, and where it listens.
#[derive(Debug)]
pub struct Serving {
    pub command: Running,
    pub address: String,
}

/// The time that a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(120);

impl Serving {
    /// Waits until the server, which is told to say so in JSON, listens.
    pub fn start(serve: &Run) -> Result<Self> {
        let command = serve.start()?;
        let started = Instant::now();
        loop {
            if let Some(line) = command.stdout()?.lines().next() {
                let said: Value = serde_json::from_str(line)?;
                let address = said["address"].as_str().and_then(|address| address.strip_prefix("http://"));
                let address = address.ok_or_else(|| format!("no address: {line}"))?.to_owned();
                return Ok(Self { command, address });
            }
            require!(started.elapsed() < PATIENCE, "it does not listen: {}", command.stderr()?);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn connect(&self) -> Result<TcpStream> {
        let stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    /// Sends a request that closes its connection, and returns the status and the JSON.
    pub fn send(&self, request: &str) -> Result<(u16, Value)> {
        let mut stream = self.connect()?;
        stream.write_all(request.as_bytes())?;
        let mut reply = String::new();
        stream.read_to_string(&mut reply)?;
        let (head, body) = reply.split_once("\r\n\r\n").ok_or_else(|| format!("no reply: {reply}"))?;
        Ok((head.split(' ').nth(1).ok_or("no status")?.parse()?, serde_json::from_str(body)?))
    }

    /// Asks the same question in each of some streams at the same time, some lines each, and returns all answers.
    pub fn streams(&self, n_streams: usize, n_lines: usize, question: &Value) -> Result<Vec<Value>> {
        let body = format!("{question}\n").repeat(n_lines);
        let head = "POST /query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson";
        let request = format!("{head}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let ask = || -> Result<Vec<Value>> {
            let mut stream = self.connect()?;
            stream.write_all(request.as_bytes())?;
            let lines = BufReader::new(stream).lines();
            // What is no answer is the head, or the size of a chunk, which has one answer or a piece of one.
            let mut answers = Vec::new();
            let mut text = String::new();
            for line in lines.skip_while(|line| line.as_ref().is_ok_and(|line| !line.is_empty())).skip(1) {
                let line = line?;
                if u64::from_str_radix(line.trim(), 16).is_ok() || line.trim().is_empty() {
                    continue;
                }
                text.push_str(line.trim_end_matches('\r'));
                if let Ok(answer) = serde_json::from_str(&text) {
                    answers.push(answer);
                    text.clear();
                }
            }
            Ok(answers)
        };
        let of_streams: Vec<Result<Vec<Value>>> = std::thread::scope(|scope| {
            let asking: Vec<_> = (0..n_streams).map(|_| scope.spawn(ask)).collect();
            asking.into_iter().map(|asked| asked.join().unwrap_or_else(|_| Err("a client panicked".into()))).collect()
        });
        Ok(of_streams.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    /// Ends the server. The most memory that it held is known, because it is looked at before.
    pub fn stop(mut self, signal: Signal) -> Result<Ran> {
        require!(!self.command.ended()?, "it ended before: {}", self.command.stderr()?);
        self.command.signal(signal)?;
        self.command.wait()
    }
}
