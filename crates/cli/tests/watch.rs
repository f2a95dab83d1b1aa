//! Metrics and OpenLineage events of a run: what they say, and that nobody who is told can disturb the run.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use boon::{Compiler, Schemas};
use serde_json::Value;

use crate::support::{Night, data_files, root, text};

const METRICS: [&str; 2] = ["--metrics-file", "night.prom"];
const EVENTS: [&str; 2] = ["--openlineage", "events.jsonl"];

fn night() -> Night {
    let night = Night::new("[breakers]\nmin_source_documents = 2\n");
    night.documents("2026-11-19", &[("a", &text(1, 40)), ("b", &text(2, 40)), ("c", &text(1, 40))]);
    night
}

/// The value of a sample, by what stands before it without the label of the job file.
fn sample(night: &Night, name: &str) -> Option<f64> {
    let page = fs::read_to_string(night.path().join("night.prom")).unwrap();
    assert!(page.ends_with('\n'));
    let mut seen = std::collections::BTreeSet::new();
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let (key, value) = line.rsplit_once(' ').unwrap();
        assert!(seen.insert(key.to_owned()), "twice: {key}");
        assert!(value.parse::<f64>().is_ok(), "{line}");
        let family = key.split('{').next().unwrap();
        assert!(page.contains(&format!("# TYPE {family} gauge\n")), "{family} has no type");
    }
    let wanted =
        |line: &&str| line.replace("config=\"job.toml\",", "").replace("{config=\"job.toml\"}", "").starts_with(name);
    page.lines().filter(|line| !line.starts_with('#')).find(wanted)?.rsplit_once(' ')?.1.parse().ok()
}

#[test]
fn metrics_of_a_failed_run_keep_those_of_the_last_night() {
    let night = night();
    night.run("2026-11-19", &METRICS).expect_success();
    for (name, value) in [
        ("nearprint_run_success ", 1.0),
        ("nearprint_night_documents ", 3.0),
        ("nearprint_night_decisions{decision=\"drop\"}", 1.0),
        ("nearprint_night_date_timestamp_seconds ", 1_795_046_400.0),
        ("nearprint_run_breaker_value{breaker=\"max_cluster\"}", 1.0),
        ("nearprint_run_breaker_tripped{breaker=\"max_cluster\"}", 0.0),
    ] {
        assert_eq!(sample(&night, name), Some(value), "{name}");
    }
    assert!(sample(&night, "nearprint_run_stage_duration_seconds{stage=\"fingerprint\"}").is_some());
    let last_success = sample(&night, "nearprint_night_last_success_timestamp_seconds ");

    assert_eq!(night.run("2026-11-20", &METRICS).code, 66);
    assert_eq!(sample(&night, "nearprint_run_success "), Some(0.0));
    assert_eq!(sample(&night, "nearprint_run_exit_code "), Some(66.0));
    assert_eq!(sample(&night, "nearprint_run_breaker_tripped"), None);
    assert_eq!(sample(&night, "nearprint_night_last_success_timestamp_seconds "), last_success);
    assert_eq!(sample(&night, "nearprint_night_documents "), Some(3.0));
    assert_eq!(night.run("2026-11-20", &METRICS).code, 66);
    assert_eq!(sample(&night, "nearprint_night_documents "), Some(3.0));
}

#[test]
fn a_tripped_breaker_is_among_the_metrics() {
    let night = night();
    night.run("2026-11-19", &[&METRICS[..], &["--max-cluster", "1"]].concat()).expect_success();
    let (one, two) = (text(7, 60), text(7, 60) + " end");
    night.documents("2026-11-20", &[("d", &one), ("e", &two)]);
    assert_eq!(night.run("2026-11-20", &[&METRICS[..], &["--max-cluster", "1"]].concat()).code, 65);
    assert_eq!(sample(&night, "nearprint_run_breaker_tripped{breaker=\"max_cluster\"}"), Some(1.0));
    assert_eq!(sample(&night, "nearprint_run_breaker_value{breaker=\"max_cluster\"}"), Some(2.0));
    assert_eq!(sample(&night, "nearprint_night_documents "), Some(3.0));
}

#[test]
fn a_run_that_fails_says_how_long_it_took_and_in_which_stages() {
    let night = night();
    let file = night.path().join("documents/dt=2026-11-19/bad.jsonl");
    fs::write(file, "no JSON\n").unwrap();
    let failed = night.run("2026-11-19", &METRICS);
    assert_eq!(failed.code, 65, "{}", failed.stderr);
    assert!(failed.json()["stage_ms"]["fingerprint"].is_u64(), "{}", failed.stdout);
    assert!(sample(&night, "nearprint_run_stage_duration_seconds{stage=\"fingerprint\"}").is_some());
    assert!(sample(&night, "nearprint_run_duration_seconds ").is_some_and(|seconds| seconds > 0.0));
    assert!(sample(&night, "nearprint_run_peak_memory_bytes ").is_some());
}

fn valid(events: &str) -> Vec<Value> {
    let schema: Value =
        serde_json::from_slice(&fs::read(root().join("docs/schema/openlineage.json")).unwrap()).unwrap();
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    compiler.enable_format_assertions();
    compiler.add_resource("urn:events", schema).unwrap();
    let index = compiler.compile("urn:events", &mut schemas).unwrap();
    let parsed = events.lines().map(|line| serde_json::from_str(line).unwrap());
    parsed.inspect(|event| assert!(schemas.validate(event, index).is_ok(), "{event:#}")).collect()
}

#[test]
fn events_follow_their_schema_and_name_datasets_parent_and_error() {
    let night = night();
    let run = "01a20839-971f-75ef-8232-d7a072bb725a";
    let parent = format!("airflow/nightly/neardup/{run}");
    night.command("2026-11-19", &EVENTS).env("OPENLINEAGE_PARENT_ID", &parent).run().unwrap().expect_success();
    assert_eq!(night.run("2026-11-20", &EVENTS).code, 66);
    let events = valid(&fs::read_to_string(night.path().join("events.jsonl")).unwrap());
    let states: Vec<_> = events.iter().map(|event| event["eventType"].as_str().unwrap()).collect();
    assert_eq!(states, ["START", "COMPLETE", "START", "FAIL"]);
    assert_eq!(events[0]["run"]["runId"], events[1]["run"]["runId"]);
    assert_ne!(events[0]["run"]["runId"], events[2]["run"]["runId"]);
    let facet = &events[1]["run"]["facets"]["parent"];
    assert_eq!((&facet["run"]["runId"], &facet["job"]["name"]), (&run.into(), &"nightly/neardup".into()));
    let output = &events[1]["outputs"][0];
    let results = fs::canonicalize(night.path()).unwrap().join("results/decisions");
    assert_eq!(output["name"], results.to_str().unwrap());
    assert_eq!(output["outputFacets"]["outputStatistics"]["rowCount"], 3);
    let error = events[3]["run"]["facets"]["errorMessage"]["message"].as_str().unwrap();
    assert!(error.contains("no documents at"), "{error}");
    let mut wrong = events[1].clone();
    wrong["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] = "three".into();
    assert!(std::panic::catch_unwind(|| valid(&wrong.to_string())).is_err(), "the schema accepts anything");
}

#[test]
fn an_endpoint_gets_both_events() {
    let night = night();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/api/v1/lineage", listener.local_addr().unwrap());
    let endpoint = std::thread::spawn(move || {
        let mut bodies = String::new();
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().unwrap();
            bodies.push_str(&body(&mut stream));
            bodies.push('\n');
            stream.write_all(b"HTTP/1.1 201 Created\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
        }
        bodies
    });
    let done = night.run("2026-11-19", &["--openlineage", &url]).expect_success();
    assert!(!done.stderr.contains("no OpenLineage event"), "{}", done.stderr);
    let events = valid(&endpoint.join().unwrap());
    assert_eq!(events.iter().map(|e| e["eventType"].clone()).collect::<Vec<_>>(), ["START", "COMPLETE"]);
}

fn body(stream: &mut impl Read) -> String {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let n = stream.read(&mut buffer).unwrap();
        request.extend_from_slice(&buffer[..n]);
        let text = String::from_utf8_lossy(&request).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.to_ascii_lowercase();
        let length = length.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            return body.to_owned();
        }
    }
}

/// The limit of time is the promise itself: two seconds for both events, and room for a loaded machine.
#[test]
fn an_endpoint_that_hangs_is_dead_or_refuses_changes_neither_bytes_nor_exit_code() {
    let plain = night();
    plain.run("2026-11-19", &[]).expect_success();
    // It takes connections, and never answers.
    let hanging = TcpListener::bind("127.0.0.1:0").unwrap();
    let dead = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for endpoint in [hanging.local_addr().unwrap(), dead] {
        let night = night();
        let url = format!("http://{endpoint}/?token=secret");
        let started = Instant::now();
        let done = night.run("2026-11-19", &["--openlineage", &url]).expect_success();
        assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
        assert_eq!(done.stderr.matches("no OpenLineage event").count(), 2, "{}", done.stderr);
        assert!(!done.stderr.contains("secret"), "{}", done.stderr);
        assert_eq!(data_files(night.path()), data_files(plain.path()));
        assert_eq!(done.json()["status"], "published");
    }
    drop(hanging);
}

#[test]
fn files_that_cannot_be_written_are_refused_before_the_work() {
    let night = night();
    for (flag, file, code) in [
        ("--metrics-file", "nowhere/night.prom", 74),
        ("--metrics-file", "night.txt", 64),
        ("--openlineage", "nowhere/events.jsonl", 74),
    ] {
        let done = night.run("2026-11-19", &[flag, file]);
        assert_eq!(done.code, code, "{file}: {}", done.stderr);
        assert!(!night.path().join("store").exists());
    }
}

#[test]
fn nothing_is_told_without_being_asked_for() {
    let night = night();
    night.command("2026-11-19", &[]).env("OPENLINEAGE_PARENT_ID", "no parent").run().unwrap().expect_success();
    let mut names: Vec<_> = fs::read_dir(night.path()).unwrap().map(|f| f.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["documents", "job.toml", "results", "store"]);
}
