//! The server over real sockets, with answers from memory.

use std::io::{Read, Write};
use std::sync::atomic::Ordering;
use std::time::Duration;

use nearprint_serve::{ServeOptions, Timeouts};
use serde_json::{Value, json};

use crate::support::{self, Client, Memory, Running, TOKEN, token};

fn start() -> Running {
    Running::start(Memory::default(), ServeOptions::default())
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

/// The head of a request with a body.
fn head(path: &str, media_type: &str, framing: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {media_type}\r\n{framing}\r\n\r\n")
}

fn post(path: &str, media_type: &str, body: &str) -> String {
    head(path, media_type, &format!("Content-Length: {}", body.len())) + body
}

#[test]
fn a_text_is_answered_with_its_matches() {
    let server = start();
    let reply = server.ask(&json!({ "text": "old page", "id": 7 }));
    assert_eq!((reply.status, reply.header("content-type").as_str()), (200, "application/json"));
    let answer = reply.json();
    assert_eq!((answer["n_matches"].as_u64(), answer["id"].as_u64()), (Some(1), Some(7)));
    assert_eq!(answer["matches"][0]["id"], "old");
}

#[test]
fn lines_are_answered_in_order_and_a_bad_line_has_an_error_in_its_place() {
    let server = start();
    let lines = "{\"text\": \"old page\", \"id\": \"a\"}\n\nnot JSON\r\n{\"id\": \"c\"}\n{\"fingerprint\": 18446744073709551615}";
    let reply = server.send(&post("/query", "application/x-ndjson", lines));
    assert_eq!((reply.status, reply.header("content-type").as_str()), (200, "application/x-ndjson"));
    let answers: Vec<Value> = reply.body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), 4, "{}", reply.body);
    assert_eq!((&answers[0]["id"], &answers[0]["n_matches"]), (&json!("a"), &json!(1)));
    assert_eq!((&answers[1]["status"], &answers[1]["kind"]), (&json!("failed"), &json!("usage")));
    assert_eq!((&answers[2]["id"], &answers[2]["kind"]), (&json!("c"), &json!("usage")));
    assert_eq!(answers[3]["fingerprint"], "ffffffffffffffff");
}

#[test]
fn a_line_whose_answer_ends_by_a_defect_has_an_error_in_its_place_and_is_counted() {
    let server = start();
    let lines = "{\"text\": \"defect\"}\n{\"text\": \"old page\"}\n";
    let reply = server.send(&post("/query", "application/x-ndjson", lines));
    let answers: Vec<Value> = reply.body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&answers[0]["kind"], &answers[1]["n_matches"]), (&json!("bug"), &json!(1)), "{}", reply.body);
    assert_eq!(server.metric("nearprint_panics_total"), 1.0);
    assert_eq!(server.metric("nearprint_answers_total{result=\"failed\"}"), 1.0);
}

#[test]
fn a_comparison_that_takes_too_long_ends_with_an_error_and_the_next_one_has_its_turn() {
    let timeouts = Timeouts { comparison: Duration::from_millis(300), ..Timeouts::default() };
    let server = Running::start(Memory::default(), ServeOptions { timeouts, ..ServeOptions::default() });
    let compare = |text: &str| {
        let sides = json!({ "a": { "text": text }, "b": { "text": "old page" } });
        server.send(&post("/explain", "application/json", &sides.to_string()))
    };
    let reply = compare("wait");
    assert_eq!((reply.status, &reply.json()["kind"]), (503, &json!("try_again")), "{}", reply.body);
    assert!(reply.body.contains("more than 0.3 s"), "{}", reply.body);
    assert_eq!(compare("old page").status, 400);
}

#[test]
fn what_is_no_question_is_refused_with_a_kind() {
    let server = start();
    let cases = [
        (post("/query", "application/json", "{"), 400),
        (post("/query", "application/json", "{}"), 400),
        (post("/query", "text/plain", "{\"text\": \"old page\"}"), 415),
        (post("/explain", "application/json", "{\"a\": {\"text\": \"x\"}}"), 400),
        (get("/query"), 405),
        (get("/favicon.ico"), 404),
        (get("/../etc/passwd"), 404),
    ];
    for (request, status) in cases {
        let reply = server.send(&request);
        assert_eq!(reply.status, status, "{request}{}", reply.body);
        let said = reply.json();
        assert_eq!((&said["status"], &said["kind"]), (&json!("failed"), &json!("usage")), "{request}");
    }
}

#[test]
fn a_media_type_may_be_in_upper_case_and_have_parameters() {
    let server = start();
    for media_type in ["Application/JSON", "APPLICATION/JSON; charset=UTF-8", "Application/X-NDJSON"] {
        let reply = server.send(&post("/query", media_type, "{\"text\": \"old page\"}"));
        assert_eq!(reply.status, 200, "{media_type}: {}", reply.body);
        assert_eq!(reply.json()["n_matches"], 1, "{media_type}");
    }
    // Incomplete, so it is refused as a question, and no longer because of its type.
    let reply = server.send(&post("/explain", "Application/JSON", "{\"a\": {\"text\": \"x\"}}"));
    assert_eq!(reply.status, 400, "{}", reply.body);
}

#[test]
fn a_large_body_is_refused_before_it_is_sent() {
    let server = start();
    let mut client = Client::new(&server);
    client.write(&head("/query", "application/json", "Content-Length: 104857600"));
    let reply = client.reply();
    assert_eq!((reply.status, reply.header("connection").as_str()), (413, "close"));
}

#[test]
fn a_body_of_unknown_length_is_read_up_to_the_bound() {
    let server = start();
    let mut client = Client::new(&server);
    client.write(&head("/query", "application/json", "Transfer-Encoding: chunked"));
    // 1 MiB and one chunk more.
    for _ in 0..17 {
        client.write(&format!("10000\r\n{}\r\n", "x".repeat(65536)));
    }
    assert_eq!(client.reply().status, 413);
}

#[test]
fn a_long_line_ends_a_stream() {
    let server = Running::start(Memory::default(), ServeOptions { max_body: 100, ..ServeOptions::default() });
    let lines = format!("{{\"text\": \"old page\"}}\n{}\n{{\"text\": \"old page\"}}\n", "x".repeat(200));
    let reply = server.send(&post("/query", "application/x-ndjson", &lines));
    let answers: Vec<&str> = reply.body.lines().collect();
    assert_eq!(answers.len(), 2, "{}", reply.body);
    assert!(answers[1].contains("more than 100 bytes"), "{}", answers[1]);
}

#[test]
fn a_client_that_trickles_is_cut_off() {
    let patience = Duration::from_millis(300);
    let timeouts = Timeouts { head: patience, body: patience, ..Timeouts::default() };
    let server = Running::start(Memory::default(), ServeOptions { timeouts, ..ServeOptions::default() });
    let begun = [
        ("POST /query HT".to_owned(), ""),
        (head("/query", "application/json", "Content-Length: 5000"), "408"),
        (head("/query", "application/x-ndjson", "Content-Length: 5000"), "did not arrive in time"),
    ];
    for (begun, said) in begun {
        let mut client = Client::new(&server);
        client.write(&begun);
        // Each byte comes well within the patience.
        let mut n_bytes = 0;
        while client.stream.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
            n_bytes += 1;
            assert!(n_bytes < 1000, "{begun} is never cut off");
        }
        let mut reply = Vec::new();
        // What a client has not read when the connection is reset is lost.
        let _ = client.stream.read_to_end(&mut reply);
        let reply = String::from_utf8(reply).unwrap();
        assert!(reply.is_empty() || reply.contains(said), "{begun}: {reply}");
    }
    server.wait_for("nearprint_open_requests", 0.0);
}

#[test]
fn a_client_that_takes_nothing_of_an_answer_is_cut_off() {
    let timeouts = Timeouts { write: Duration::from_millis(300), ..Timeouts::default() };
    let server = Running::start(Memory::default(), ServeOptions { timeouts, ..ServeOptions::default() });
    let mut client = Client::new(&server);
    client.write(&head("/query", "application/x-ndjson", "Content-Length: 1000000000"));
    client.stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
    let lines = "{\"text\": \"old page\"}\n".repeat(1000);
    let mut n_bytes = 0;
    while client.stream.write_all(lines.as_bytes()).is_ok() {
        n_bytes += lines.len();
        assert!(n_bytes < 500_000_000, "it is never cut off");
    }
    server.wait_for("nearprint_open_requests", 0.0);
}

#[test]
fn beyond_the_bound_of_requests_clients_are_told_to_come_again() {
    let memory = Memory::default();
    let gate = memory.gate.clone();
    let server = Running::start(memory, ServeOptions { max_requests: 2, ..ServeOptions::default() });
    let mut held: Vec<Client> = (0..2).map(|_| Client::new(&server)).collect();
    for client in &mut held {
        client.write(&post("/query", "application/json", "{\"text\": \"wait\"}"));
    }
    server.wait_for("nearprint_open_requests", 2.0);
    let reply = server.ask(&json!({ "text": "old page" }));
    assert_eq!((reply.status, reply.header("retry-after").as_str()), (503, "1"));
    assert_eq!(reply.json()["kind"], "try_again");
    assert_eq!(server.send(&get("/healthz")).status, 200);
    gate.add_permits(2);
    for client in &mut held {
        assert_eq!(client.reply().status, 200);
    }
    server.wait_for("nearprint_open_requests", 0.0);
    assert_eq!(server.ask(&json!({ "text": "old page" })).status, 200);
}

#[test]
fn with_a_token_only_those_who_send_it_are_answered() {
    let server = Running::start(Memory::default(), ServeOptions { token: Some(token()), ..ServeOptions::default() });
    let ask = |authorization: &str| {
        let body = "{\"text\": \"old page\"}";
        let head = "POST /query HTTP/1.1\r\nHost: far.example\r\nContent-Type: application/json\r\n";
        server.send(&format!("{head}{authorization}Content-Length: {}\r\n\r\n{body}", body.len()))
    };
    assert_eq!(ask(&format!("Authorization: Bearer {TOKEN}\r\n")).status, 200);
    let longer = format!("Authorization: Bearer {TOKEN}x\r\n");
    for wrong in ["", "Authorization: Bearer\r\n", "Authorization: Basic x\r\n", "Authorization: Bearer 0\r\n", &longer]
    {
        let reply = ask(wrong);
        assert_eq!((reply.status, reply.header("www-authenticate").as_str()), (401, "Bearer"), "{wrong}");
        assert_eq!(reply.json()["kind"], "permission");
    }
    assert_eq!(server.send(&get("/metrics")).status, 401);
    assert_eq!(server.send(&get("/healthz")).status, 200);
    assert_eq!(server.send(&get("/")).status, 200);
}

#[test]
fn a_request_without_the_token_closes_its_connection_and_one_with_it_keeps_it() {
    let server = Running::start(Memory::default(), ServeOptions { token: Some(token()), ..ServeOptions::default() });
    for path in ["/", "/healthz", "/metrics", "/nothing"] {
        let mut client = Client::new(&server);
        client.write(&get(path));
        assert_eq!(client.reply().header("connection"), "close", "{path}");
        assert_eq!(client.stream.read(&mut [0]).unwrap(), 0, "{path}");
    }
    let mut client = Client::new(&server);
    for _ in 0..2 {
        client.write(&format!("GET /healthz HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"));
        let reply = client.reply();
        assert_eq!((reply.status, reply.header("connection").as_str()), (200, ""));
    }
}

#[test]
fn the_idle_connection_that_waited_longest_makes_place_for_a_new_one() {
    let memory = Memory::default();
    let gate = memory.gate.clone();
    let timeouts = Timeouts { head: Duration::from_secs(3600), ..Timeouts::default() };
    let server = Running::start(memory, ServeOptions { max_requests: 2, timeouts, ..ServeOptions::default() });
    let mut asking = Client::new(&server);
    asking.write(&post("/query", "application/json", "{\"text\": \"wait\"}"));
    server.wait_for("nearprint_open_requests", 1.0);
    // With these, all 258 places are taken.
    let mut idle: Vec<Client> = (0..257).map(|_| Client::new(&server)).collect();
    // The first has asked since, so that the second has waited longest.
    for at in [256, 0] {
        idle[at].write(&get("/healthz"));
        assert_eq!(idle[at].reply().status, 200);
    }
    assert_eq!(server.send(&get("/healthz")).status, 200);
    assert_eq!(idle[1].stream.read(&mut [0]).unwrap_or(0), 0, "it made place");
    for at in [0, 2, 256] {
        idle[at].write(&get("/healthz"));
        assert_eq!(idle[at].reply().status, 200, "{at}");
    }
    gate.add_permits(1);
    assert_eq!(asking.reply().status, 200, "a connection with a request makes no place");
}

#[test]
fn a_stream_ends_when_it_has_lasted_longest() {
    let timeouts = Timeouts { stream: Duration::from_millis(500), ..Timeouts::default() };
    let server = Running::start(Memory::default(), ServeOptions { timeouts, ..ServeOptions::default() });
    let mut client = Client::new(&server);
    client.write(&head("/query", "application/x-ndjson", "Transfer-Encoding: chunked"));
    let line = "{\"text\": \"old page\"}\n";
    let chunk = format!("{:x}\r\n{line}\r\n", line.len());
    let mut n_lines = 0;
    while client.stream.write_all(chunk.as_bytes()).is_ok() && n_lines < 200 {
        // Each line comes well within its time.
        std::thread::sleep(Duration::from_millis(20));
        n_lines += 1;
    }
    server.wait_for("nearprint_open_requests", 0.0);
    assert!(n_lines < 200, "it is never ended");
}

#[test]
fn a_stream_that_is_over_says_so_after_its_last_answer() {
    let timeouts = Timeouts { stream: Duration::from_millis(300), ..Timeouts::default() };
    let server = Running::start(Memory::default(), ServeOptions { timeouts, ..ServeOptions::default() });
    let mut client = Client::new(&server);
    client.write(&head("/query", "application/x-ndjson", "Content-Length: 5000"));
    client.write("{\"text\": \"old page\"}\n");
    let reply = client.reply();
    let answers: Vec<Value> = reply.body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((answers.len(), &answers[0]["n_matches"]), (2, &json!(1)), "{}", reply.body);
    assert_eq!(answers[1]["kind"], "try_again");
    assert!(answers[1]["error"].as_str().unwrap().contains("has lasted 0.3 s"), "{}", answers[1]);
}

#[test]
fn a_request_has_one_host() {
    let server = start();
    let status = |head: &str| server.send(&format!("GET /healthz {head}\r\n\r\n")).status;
    assert_eq!(status("HTTP/1.1\r\nHost: localhost\r\nHost: localhost"), 400);
    assert_eq!(status("HTTP/1.1\r\nHost: localhost\r\nhost: evil.example"), 400);
    assert_eq!(status("HTTP/1.1\r\nAccept: */*"), 400);
    // In HTTP/1.0, the header is not required, and a name of this machine is missing.
    assert_eq!(status("HTTP/1.0\r\nAccept: */*"), 421);
    assert_eq!(status("HTTP/1.1\r\nHost: localhost"), 200);
}

#[test]
fn without_a_token_a_name_of_another_host_is_refused() {
    let server = start();
    let of_host = |host: &str| server.send(&format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n")).status;
    for host in ["localhost", "LOCALHOST:80", "127.0.0.1:8099", "[::1]:1"] {
        assert_eq!(of_host(host), 200, "{host}");
    }
    for host in ["evil.example", "localhost.evil.example", "10.0.0.1", "127.0.0.1.evil.example", ""] {
        assert_eq!(of_host(host), 421, "{host}");
    }
    let of_target = |target: &str| server.send(&format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n")).status;
    assert_eq!((of_target("http://localhost/healthz"), of_target("http://evil.example/healthz")), (200, 421));
}

#[test]
fn a_stream_that_stalls_gives_up_its_place_after_one_patience() {
    let patience = Duration::from_secs(2);
    let timeouts = Timeouts { body: patience, ..Timeouts::default() };
    let server = Running::start(Memory::default(), ServeOptions { timeouts, ..ServeOptions::default() });
    let mut client = Client::new(&server);
    let began = std::time::Instant::now();
    client.write(&head("/query", "application/x-ndjson", "Content-Length: 5000"));
    let mut reply = Vec::new();
    let _ = client.stream.read_to_end(&mut reply);
    let reply = String::from_utf8(reply).unwrap();
    assert!(reply.contains("did not arrive in time"), "{reply}");
    server.wait_for("nearprint_open_requests", 0.0);
    assert!(began.elapsed() < patience * 2, "{:?}", began.elapsed());
}

#[test]
fn a_failed_look_for_a_commit_shows_and_the_former_state_answers() {
    let memory = Memory::default();
    let failing = memory.failing.clone();
    let options = ServeOptions { refresh_every: Duration::from_millis(50), ..ServeOptions::default() };
    let server = Running::start(memory, options);
    server.wait_for("nearprint_commit", 3.0);
    assert_eq!(server.send(&get("/healthz")).json()["status"], "ok");
    failing.store(true, Ordering::Relaxed);
    server.wait_for("nearprint_stale", 1.0);
    let health = server.send(&get("/healthz"));
    assert_eq!(health.status, 200);
    let health = health.json();
    assert_eq!((&health["status"], &health["refresh_error"]), (&json!("stale"), &json!("bad_data")));
    assert!(server.metric("nearprint_refresh_failures_total") >= 1.0);
    assert_eq!(server.ask(&json!({ "text": "old page" })).status, 200);
    failing.store(false, Ordering::Relaxed);
    server.wait_for("nearprint_stale", 0.0);
}

#[test]
fn a_stop_waits_for_open_requests_and_cuts_off_those_that_take_too_long() {
    for (released, n_cut_off) in [(true, 0), (false, 1)] {
        let memory = Memory::default();
        let gate = memory.gate.clone();
        let stop = Duration::from_secs(if released { 20 } else { 1 });
        let timeouts = Timeouts { stop, head: Duration::from_secs(1), ..Timeouts::default() };
        let mut server = Running::start(memory, ServeOptions { timeouts, ..ServeOptions::default() });
        let mut client = Client::new(&server);
        let _idle = Client::new(&server);
        client.write(&post("/query", "application/json", "{\"text\": \"wait\"}"));
        server.wait_for("nearprint_open_requests", 1.0);
        server.stop();
        if released {
            gate.add_permits(1);
            assert_eq!(client.reply().status, 200);
        }
        assert_eq!(server.served().n_cut_off, n_cut_off);
    }
}

#[test]
fn the_page_has_an_address_for_each_document_and_shows_nothing_of_it_itself() {
    let server = start();
    let page = server.send(&get("/"));
    let of_document = server.send(&get("/?id=%3Cscript%3Ehit()%3C%2Fscript%3E"));
    assert_eq!((of_document.status, &of_document.body), (200, &page.body), "the script reads the address");
    let links = page.body.lines().filter(|line| line.contains("href:"));
    for line in links {
        let is_own = line.contains("href: ownAddress(id)");
        assert!(is_own || line.contains("href: id, rel: \"noopener noreferrer nofollow\""), "{line}");
    }
    assert_eq!(
        page.body.matches("pageLink(").count(),
        page.body.matches("isWebAddress(").count(),
        "no other id is a link"
    );
}

#[test]
fn the_policy_of_the_page_allows_its_own_style_and_script_alone() {
    let reply = start().send(&get("/"));
    let policy = reply.header("content-security-policy");
    let parts = [
        "default-src 'none'",
        "script-src 'sha256-",
        "style-src 'sha256-",
        "connect-src 'self'",
        "frame-ancestors 'none'",
    ];
    for part in parts {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("inline") && !policy.contains("http"), "{policy}");
    for forbidden in
        ["innerHTML", "outerHTML", "insertAdjacent", "document.write", "http:", "https:", "onclick", "style=\""]
    {
        assert!(!reply.body.contains(forbidden), "{forbidden}");
    }
    assert_eq!(reply.header("x-content-type-options"), "nosniff");
}

#[test]
fn counts_are_in_the_text_format_of_prometheus() {
    let server = start();
    server.ask(&json!({ "text": "old page" }));
    server.ask(&json!({ "text": "new page" }));
    server.send(&get("/a-strangers-path"));
    let reply = server.send(&get("/metrics"));
    assert!(reply.header("content-type").starts_with("application/openmetrics-text"));
    let lines = [
        "# TYPE nearprint_requests counter",
        "nearprint_requests_total{route=\"/query\",status=\"200\"} 2",
        "nearprint_requests_total{route=\"other\",status=\"404\"} 1",
        "nearprint_answers_total{result=\"match\"} 1",
        "nearprint_answers_total{result=\"no_match\"} 1",
        "nearprint_request_seconds_count{route=\"/query\"} 2",
        "# EOF",
    ];
    for line in lines {
        assert!(reply.body.lines().any(|found| found == line), "{line} is not in\n{}", reply.body);
    }
    assert!(!reply.body.contains("strangers"));
}

#[test]
fn an_open_address_without_a_token_is_refused() {
    for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80"] {
        let error = support::refused(ServeOptions { listen: listen.parse().unwrap(), ..ServeOptions::default() });
        assert!(error.contains("token_file"), "{error}");
    }
}
