//! Lists the records of WARC files as JSON lines, or measures how fast they are read.
//!
//! `list_records FILE…` writes for each record its type, URI, status, and length and SHA-1 of the decoded body.
//! `list_records --time FILE…` reads the records and decodes their bodies without writing more than counts.
//! `list_records --time-stored FILE…` takes responses apart too, and copies their blocks as they are stored.
#![allow(clippy::print_stdout, reason = "it prints a list")]

use std::fs::File;
use std::io::{self, Read};
use std::time::Instant;

use bytes::Bytes;
use nearprint_warc::{Block, Body, HttpMessage, Next, Packing, Pieces, Record, RecordLimits, Records};
use sha1::{Digest, Sha1};

/// A local file in pieces of 1 MiB.
struct LocalFile(File);

impl Pieces for LocalFile {
    fn next_piece(&mut self) -> io::Result<Option<Bytes>> {
        let mut piece = Vec::with_capacity(1 << 20);
        (&self.0).take(1 << 20).read_to_end(&mut piece)?;
        Ok((!piece.is_empty()).then(|| piece.into()))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    List,
    Time,
    TimeStored,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut paths: Vec<String> = std::env::args().skip(1).collect();
    let mode = match paths.first().map(String::as_str) {
        Some("--time") => Mode::Time,
        Some("--time-stored") => Mode::TimeStored,
        _ => Mode::List,
    };
    if mode != Mode::List {
        paths.remove(0);
    }
    for path in &paths {
        let file = File::open(path)?;
        let began = Instant::now();
        let mut records = Records::new(LocalFile(file), Packing::of(path), RecordLimits::default());
        let (mut n_records, mut n_broken, mut n_body_bytes) = (0_u64, 0_u64, 0_u64);
        loop {
            match records.next_record() {
                Ok(None) => break,
                Ok(Some(Next::Record(record))) => {
                    n_records += 1;
                    n_body_bytes += match mode {
                        Mode::List => {
                            println!("{}", line(path, &record));
                            0
                        }
                        Mode::Time => body(&record).0.len() as u64,
                        Mode::TimeStored => stored(&record).len() as u64,
                    }
                }
                Ok(Some(Next::Broken(broken))) => {
                    n_broken += 1;
                    if mode == Mode::List {
                        println!(
                            "{{\"file\": {path:?}, \"broken\": \"{:?}\", \"at\": {}}}",
                            broken.damage, broken.position
                        );
                    }
                }
                Err(error) => {
                    println!("{{\"file\": {path:?}, \"error\": {:?}}}", error.to_string());
                    break;
                }
            }
        }
        if mode != Mode::List {
            let seconds = began.elapsed().as_secs_f64();
            println!("{path}: {n_records} records, {n_broken} broken, {n_body_bytes} bytes of bodies, {seconds:.3} s");
        }
    }
    Ok(())
}

/// Returns a copy of the block of a record, which is taken apart if it is a response.
fn stored(record: &Record<'_>) -> Vec<u8> {
    let Block::Held(block) = record.block else { return Vec::new() };
    let message = HttpMessage::parse(block);
    if message.is_some_and(|message| message.status == 0) { Vec::new() } else { block.to_vec() }
}

/// Returns the decoded body of a record, and the status if it is a response.
fn body(record: &Record<'_>) -> (Vec<u8>, Option<u16>) {
    let Block::Held(block) = record.block else { return (Vec::new(), None) };
    let is_http = record.header.get("content-type").is_some_and(|kind| kind.starts_with("application/http"));
    let is_response = matches!(record.header.get("warc-type").as_deref(), Some("response" | "revisit"));
    match HttpMessage::parse(block).filter(|_| is_http && is_response) {
        None => (block.to_vec(), None),
        Some(message) => match message.body(1 << 30) {
            Body::Whole(body) | Body::Beginning(body) => (body.into_owned(), Some(message.status)),
            Body::TooLarge => (Vec::new(), Some(message.status)),
        },
    }
}

fn line(path: &str, record: &Record<'_>) -> String {
    let (body, status) = body(record);
    let sha1: String = Sha1::digest(&body).iter().map(|b| format!("{b:02x}")).collect();
    format!(
        "{{\"file\": {path:?}, \"at\": {}, \"type\": {:?}, \"uri\": {:?}, \"status\": {:?}, \"decoded_len\": {}, \"decoded_sha1\": {sha1:?}}}",
        record.position,
        record.header.get("warc-type").unwrap_or_default(),
        record.header.get("warc-target-uri").unwrap_or_default(),
        status.map(|s| s.to_string()).unwrap_or_default(),
        body.len()
    )
}
