//! `nearprint serve`: the real command on a port of its own.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use nearprint_harness::measured::mib;
use serde_json::{Value, json};

use crate::support::{self, Night, Ran, Signal, command, expect, hangs_up, text};

const DT: &str = "2026-11-20";

/// A night of two pages that are near each other and one that is not.
fn published() -> Night {
    let night = Night::new("");
    let (page, other) = (text(1, 200), text(2, 200));
    night.documents(DT, &[("page", &page), ("copy", &format!("{page} Again.")), ("other", &other)]);
    night.run(DT, &["--create-store"]).expect_success();
    night
}

struct Serving(nearprint_trials::serving::Serving);

impl Serving {
    fn start(night: &Night, more: &[&str]) -> Self {
        Self::at("127.0.0.1:0", night, more)
    }

    fn at(listen: &str, night: &Night, more: &[&str]) -> Self {
        let args = ["serve", "--config", "job.toml", "--json", "--listen", listen];
        Self(nearprint_trials::serving::Serving::start(&command(night.path(), &args).args(more)).unwrap())
    }

    /// Sends a request, and returns the status and the JSON.
    fn send(&self, request: &str) -> (u16, Value) {
        self.0.send(request).unwrap()
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
        self.0.stop(signal).unwrap()
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
fn a_document_of_the_store_is_asked_for_by_its_address_which_the_page_takes_too() {
    let night = published();
    let serving = Serving::start(&night, &[]);
    let (status, answer) = serving.post("/query", &json!({ "document_id": "copy" }));
    let found: Vec<&Value> = answer["matches"].as_array().unwrap().iter().map(|found| &found["id"]).collect();
    assert_eq!((status, found), (200, vec![&json!("page")]), "{answer}");
    assert_eq!((&answer["document"]["dt"], &answer["document"]["id"]), (&json!(DT), &json!("copy")));
    let (status, refused) = serving.post("/query", &json!({ "document_id": "<script>hit()</script>" }));
    assert_eq!((status, &refused["kind"]), (404, &json!("input_missing")));
    serving.stop(Signal::SIGTERM);
}

#[test]
fn a_fingerprint_of_decimal_digits_is_read_as_the_hex_that_answers_print() {
    let night = published();
    let serving = Serving::start(&night, &[]);
    for (asked, fingerprint) in [
        (json!("1468000048661814"), "1468000048661814"),
        (json!("0x1468000048661814"), "1468000048661814"),
        (json!("01468000048661814"), "00053723656e4536"),
        (json!(1468000048661814_u64), "00053723656e4536"),
    ] {
        let (status, answer) = serving.post("/query", &json!({ "fingerprint": asked }));
        assert_eq!((status, answer["fingerprint"].as_str()), (200, Some(fingerprint)), "{asked}");
    }
    serving.stop(Signal::SIGTERM);
}

/// Near copies of one page, whose ids have 210 bytes.
fn near_copies(n: usize) -> (Night, String) {
    let night = Night::new("");
    let page = text(1, 300);
    let rows: Vec<(String, String)> =
        (0..n).map(|i| (format!("{i:0210}"), format!("{page} {}", text(i as u64 % 50, 1)))).collect();
    let rows: Vec<(&str, &str)> = rows.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect();
    night.documents(DT, &rows);
    night.run(DT, &["--create-store", "--no-breakers"]).expect_success();
    (night, page)
}

#[test]
fn streams_that_ask_for_a_common_text_keep_within_the_memory_limit() {
    const N: usize = 10_000;
    const LIMIT_MIB: u64 = 160;
    let (night, page) = near_copies(N);
    let serving = Serving::start(&night, &["--memory-limit", &format!("{LIMIT_MIB}MiB")]);
    let answers = serving.0.streams(16, 8, &json!({ "text": page })).unwrap();
    assert_eq!(answers.len(), 16 * 8);
    for answer in &answers {
        assert_eq!(answer["n_matches"], N, "{}", answer["error"]);
        assert_eq!(answer["matches"].as_array().unwrap().len(), 1000);
    }
    let ended = serving.stop(Signal::SIGTERM);
    assert!(mib(ended.peak_rss) < LIMIT_MIB, "{} MiB", mib(ended.peak_rss));
}

#[test]
fn an_answer_that_memory_is_not_enough_for_is_refused_with_a_remedy() {
    let (night, page) = near_copies(10_000);
    let serving = Serving::start(&night, &["--memory-limit", "32MiB", "--max-matches", "0"]);
    let (status, refused) = serving.post("/query", &json!({ "text": page }));
    assert_eq!((status, &refused["kind"]), (500, &json!("local_io")), "{refused}");
    let said = refused["error"].as_str().unwrap();
    assert!(said.contains("max_matches") && said.contains("memory_limit"), "{said}");
    serving.stop(Signal::SIGTERM);
    let args = ["query", "--config", "job.toml", "--text", &page, "--memory-limit", "32MiB", "--json"];
    expect(&support::nearprint_in(night.path(), &args), 74, &["--max-matches", "--memory-limit"]);
    let few = support::nearprint_in(night.path(), &[&args[..], &["--max-matches", "3"]].concat());
    assert_eq!(few.expect_success().json()["n_matches"], 10_000);
}

#[test]
fn clients_without_the_token_do_not_keep_its_holder_out() {
    const TOKEN: &str = "0123456789abcdef";
    let night = published();
    std::fs::write(night.path().join("token"), TOKEN).unwrap();
    let serving = Serving::start(&night, &["--token-file", "token"]);
    // Half of them ask, and would keep their connections. The others say nothing at all.
    let mut strangers: Vec<_> = (0..330).map(|_| serving.0.connect().unwrap()).collect();
    for stranger in strangers.iter_mut().step_by(2) {
        // A connection that made place for another is gone.
        let _ = stranger.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    let started = Instant::now();
    let body = json!({ "text": text(1, 200) }).to_string();
    let head = format!("POST /query HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {TOKEN}");
    let length = body.len();
    let request = format!("{head}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}");
    for _ in 0..20 {
        let (status, answer) = serving.send(&request);
        assert_eq!((status, &answer["n_matches"]), (200, &json!(2)), "{answer}");
    }
    assert!(started.elapsed() < Duration::from_secs(8), "they waited for the strangers: {:?}", started.elapsed());
    let mut reply = String::new();
    strangers[328].read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 200") && reply.to_lowercase().contains("connection: close"), "{reply}");
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
fn what_is_written_anew_or_mended_is_opened_again_without_another_commit() {
    let night = published();
    let index = || support::nearprint_in(night.path(), &["store", "index", "store"]).expect_success();
    index();
    let serving = Serving::start(&night, &["--quiet"]);
    let asked = || serving.post("/query", &json!({ "text": text(1, 200) }));
    assert_eq!(asked().1["n_matches"], 2);
    std::fs::remove_dir_all(night.path().join("store/indexes")).unwrap();
    index();
    let (status, answer) = asked();
    assert_eq!((status, &answer["n_matches"]), (200, &json!(2)), "{answer}");
    serving.stop(Signal::SIGTERM);
}

#[test]
fn a_line_that_is_no_text_has_an_error_in_its_place_and_the_next_one_an_answer() {
    let night = published();
    let serving = Serving::start(&night, &["--quiet"]);
    let line = |id: u32| format!("{{\"id\": {id}, \"text\": \"{}\"}}\n", text(1, 200)).into_bytes();
    let body = [line(1), b"{\"id\": 2, \"text\": \"\xff\"}\n".to_vec(), line(3)].concat();
    let mut stream = serving.0.connect().unwrap();
    let head = format!(
        "POST /query HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/x-ndjson\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), &body].concat()).unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    let counted = |what: &str| said.matches(what).count();
    assert_eq!((counted("\"n_matches\":2"), counted("\"status\":\"failed\"")), (2, 1), "{said}");
    serving.stop(Signal::SIGTERM);
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
    let signals = [(Signal::SIGTERM, 143, "SIGTERM"), (Signal::SIGINT, 130, "SIGINT"), (Signal::SIGHUP, 129, "SIGHUP")];
    let n_signals = if hangs_up() { 3 } else { 2 };
    for (signal, code, name) in signals.into_iter().take(n_signals) {
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
