//! `nearprint serve`: the real command on a port of its own.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Night, Ran, Running, Signal, command, expect, text};

const DT: &str = "2026-11-20";

/// A night of two pages that are near each other and one that is not.
fn published() -> Night {
    let night = Night::new("");
    let (page, other) = (text(1, 200), text(2, 200));
    night.documents(DT, &[("page", &page), ("copy", &format!("{page} Again.")), ("other", &other)]);
    night.run(DT, &["--create-store"]).expect_success();
    night
}

struct Serving {
    command: Running,
    address: String,
}

impl Serving {
    fn start(night: &Night, more: &[&str]) -> Self {
        Self::at("127.0.0.1:0", night, more)
    }

    fn at(listen: &str, night: &Night, more: &[&str]) -> Self {
        let args = ["serve", "--config", "job.toml", "--json", "--listen", listen];
        let command = command(night.path(), &args).args(more).start().unwrap();
        let started = Instant::now();
        loop {
            if let Some(line) = command.stdout().unwrap().lines().next() {
                let said: Value = serde_json::from_str(line).unwrap();
                let address = said["address"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
                return Self { command, address };
            }
            assert!(started.elapsed() < Duration::from_secs(60), "{}", command.stderr().unwrap());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sends a request, and returns the status and the JSON.
    fn send(&self, request: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), serde_json::from_str(body).unwrap())
    }

    fn get(&self, path: &str) -> (u16, Value) {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"))
    }

    fn post(&self, path: &str, question: &Value) -> (u16, Value) {
        let body = question.to_string();
        let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
        let length = body.len();
        self.send(&format!("{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"))
    }

    fn ids(&self, text: &str) -> Vec<String> {
        let (status, answer) = self.post("/query", &json!({ "text": text }));
        assert_eq!(status, 200, "{answer}");
        answer["matches"].as_array().unwrap().iter().map(|found| found["id"].as_str().unwrap().to_owned()).collect()
    }

    fn stop(self, signal: Signal) -> Ran {
        self.command.signal(signal).unwrap();
        self.command.wait().unwrap()
    }
}

#[test]
fn a_text_and_its_fingerprint_find_the_documents_of_the_store() {
    let night = published();
    let serving = Serving::start(&night, &[]);
    let mut ids = serving.ids(&text(1, 200));
    ids.sort();
    assert_eq!(ids, ["copy", "page"]);
    assert!(serving.ids(&text(3, 200)).is_empty());
    let (_, answer) = serving.post("/query", &json!({ "text": text(2, 200) }));
    let (status, of_fingerprint) = serving.post("/query", &json!({ "fingerprint": answer["fingerprint"] }));
    assert_eq!((status, &of_fingerprint["matches"][0]["id"]), (200, &json!("other")));
    let (status, refused) = serving.post("/query", &json!({ "fingerprint": "12 cats" }));
    assert_eq!((status, &refused["kind"]), (400, &json!("usage")));
    serving.stop(Signal::SIGTERM);
}

#[test]
fn a_comparison_shows_what_differs_from_a_document() {
    let night = published();
    let serving = Serving::start(&night, &[]);
    let question = json!({ "a": { "text": text(1, 200) }, "b": { "id": "copy", "dt": DT } });
    let (status, explanation) = serving.post("/explain", &question);
    assert_eq!(status, 200, "{explanation}");
    assert_eq!(explanation["pair"]["is_pair"], true);
    let pieces = explanation["pair"]["diff"].to_string();
    assert!(pieces.contains("added") && pieces.contains("again") && !pieces.contains("removed"), "{pieces}");
    let (status, refused) = serving.post("/explain", &json!({ "a": { "text": "x" }, "b": { "id": "none", "dt": DT } }));
    assert_eq!((status, &refused["kind"]), (404, &json!("input_missing")));
    let outside = json!({ "a": { "text": "x" }, "b": { "id": "copy", "dt": "../.." } });
    assert_eq!(serving.post("/explain", &outside).0, 400);
    serving.stop(Signal::SIGTERM);
}

#[test]
fn a_damaged_store_is_logged_with_its_file() {
    let night = published();
    let serving = Serving::start(&night, &["--quiet"]);
    let runs = support::snapshot(&night.path().join("store/runs"));
    let name = runs.keys().find(|name| name.ends_with("fingerprints/part-00000.parquet")).unwrap();
    std::fs::write(night.path().join("store/runs").join(name), "damaged").unwrap();
    let (status, failed) = serving.post("/query", &json!({ "text": text(1, 200) }));
    assert_eq!((status, &failed["kind"]), (500, &json!("bad_data")), "{failed}");
    let ended = serving.stop(Signal::SIGTERM);
    let logged = ended.stderr.lines().find(|line| line.contains("ERROR")).unwrap_or_default();
    assert!(logged.contains("fingerprints/part-00000.parquet"), "{}", ended.stderr);
}

#[test]
fn a_night_that_is_published_meanwhile_shows_and_one_that_is_dropped_does_not() {
    let night = published();
    let serving = Serving::start(&night, &[]);
    assert_eq!(serving.get("/healthz").1["n_nights"], 1);
    night.documents("2026-11-21", &[("late", &text(7, 200))]);
    night.run("2026-11-21", &[]).expect_success();
    let shown = |ids: &[&str]| {
        let started = Instant::now();
        while serving.ids(&text(7, 200)) != ids {
            assert!(started.elapsed() < Duration::from_secs(60), "{:?}", serving.get("/healthz"));
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    shown(&["late"]);
    assert_eq!(serving.get("/healthz").1["n_nights"], 2);
    let drop = ["store", "drop-night", "store", "--dt", "2026-11-21"];
    support::nearprint_in(night.path(), &drop).expect_success();
    shown(&[]);
    serving.stop(Signal::SIGTERM);
}

#[test]
fn a_signal_ends_the_server_with_its_code_and_a_summary() {
    let night = published();
    for (signal, code, name) in [(Signal::SIGTERM, 143, "SIGTERM"), (Signal::SIGINT, 130, "SIGINT")] {
        let serving = Serving::start(&night, &[]);
        serving.ids("a text");
        let ended = serving.stop(signal);
        let summary = ended.json();
        assert_eq!((ended.code, &summary["exit_code"]), (code, &json!(code)), "{}", ended.stderr);
        assert_eq!((&summary["status"], &summary["stopped_by"]), (&json!("stopped"), &json!(name)));
        assert_eq!((&summary["n_connections"], &summary["n_cut_off"]), (&json!(1), &json!(0)));
        assert!(ended.error().is_empty(), "{}", ended.stderr);
    }
}

#[test]
fn the_token_comes_from_a_file_and_an_open_address_needs_one() {
    let night = published();
    let refused = |more: &[&str]| command(night.path(), &["serve", "--config", "job.toml"]).args(more).run().unwrap();
    expect(&refused(&["--listen", "0.0.0.0:0"]), 64, &["--listen 0.0.0.0:0", "--token-file"]);
    expect(&refused(&["--token-file", "none"]), 66, &["--token-file none"]);
    std::fs::write(night.path().join("short"), "secret").unwrap();
    let short = refused(&["--token-file", "short"]);
    expect(&short, 78, &["--token-file short", "at least 16 characters"]);
    assert!(!short.stderr.contains("secret"));
    std::fs::write(night.path().join("token"), "0123456789abcdef\n").unwrap();
    let serving = Serving::at("0.0.0.0:0", &night, &["--token-file", "token"]);
    assert_eq!(serving.post("/query", &json!({ "text": "x" })).0, 401);
    assert_eq!(serving.get("/healthz").1["needs_token"], true);
    serving.stop(Signal::SIGTERM);
}

#[test]
fn a_store_of_another_profile_and_a_missing_one_are_refused_at_once() {
    let night = published();
    let of = |args: &[&str]| command(night.path(), &["serve", "--listen", "127.0.0.1:0"]).args(args).run().unwrap();
    expect(&of(&["--store", "store", "--profile", "paper"]), 78, &[]);
    expect(&of(&["--store", "none"]), 66, &[]);
}
