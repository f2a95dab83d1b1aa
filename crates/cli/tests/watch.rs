//! Metrics of a run: what they say, and that they do not disturb the run.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Night, Ran, data_files, expect, nearprint_in, schema, snapshot, text};

const METRICS: [&str; 2] = ["--metrics-file", "night.prom"];

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
        ("nearprint_night_recrawls{recrawl=\"new\"}", 3.0),
        ("nearprint_night_recrawls{recrawl=\"same\"}", 0.0),
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

/// A value that a summary has under another name would be missing in silence.
#[test]
fn each_breaker_has_its_value_among_the_metrics_of_some_night() {
    let night = Night::new("source_column = \"site\"\n[breakers]\nmin_source_documents = 2\n");
    let schema = nearprint_in(night.path(), &["config", "schema"]).expect_success().stdout;
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let keys = schema["properties"]["breakers"]["properties"].as_object().unwrap().keys();
    let mut missing: Vec<&String> =
        keys.filter(|key| !["min_source_documents", "trailing_nights"].contains(&key.as_str())).collect();
    assert_eq!(missing.len(), 10);
    for at in 0..5 {
        let dt = format!("2026-11-1{at}");
        let mut rows: Vec<(String, &str)> = (0..120).map(|seed| (text(at * 120 + seed, 60), "a")).collect();
        // Only the last night is compared with earlier ones, and it has enough near-duplicates for a mean: all of one site.
        let others = (0..120).map(|seed| match at {
            4 => rows[seed].0.clone() + " end",
            _ => text(10_000 + at * 120 + seed as u64, 60),
        });
        rows.extend(others.map(|text| (text, "b")).collect::<Vec<_>>());
        rows.push(rows[0].clone());
        let line = |(n, (text, site)): (usize, &(String, &str))| {
            json!({"id": format!("{dt} {n}"), "text": text, "site": site}).to_string() + "\n"
        };
        let folder = night.path().join(format!("documents/dt={dt}"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("a.jsonl"), rows.iter().enumerate().map(line).collect::<String>()).unwrap();
        let stopped = at == 4;
        assert_eq!(night.run(&dt, &METRICS).code, if stopped { 65 } else { 0 });
        let of =
            |metric: &str, name: &str| sample(&night, &format!("nearprint_run_breaker_{metric}{{breaker=\"{name}\"}}"));
        missing.retain(|name| of("value", name).is_none() || of("tripped", name).is_none());
    }
    assert_eq!(missing, Vec::<&String>::new());
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

#[test]
fn files_that_cannot_be_written_are_refused_before_the_work() {
    let night = night();
    for (file, code) in [("nowhere/night.prom", 74), ("night.txt", 64)] {
        let done = night.run("2026-11-19", &["--metrics-file", file]);
        assert_eq!(done.code, code, "{file}: {}", done.stderr);
        assert!(!night.path().join("store").exists());
    }
}

#[test]
fn metrics_change_no_published_byte_and_are_written_only_if_asked_for() {
    let (night, watched) = (night(), night());
    night.run("2026-11-19", &[]).expect_success();
    watched.run("2026-11-19", &METRICS).expect_success();
    assert_eq!(data_files(night.path()), data_files(watched.path()));
    let mut names: Vec<_> = fs::read_dir(night.path()).unwrap().map(|f| f.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["documents", "job.toml", "results", "store"]);
}

#[test]
fn a_job_file_names_the_files_that_its_nights_leave_and_a_flag_goes_before_it() {
    let watch = "[watch]\nmetrics_file = \"seen/nearprint.prom\"\nreport = \"seen/{dt}.html\"\nsummary_file = \"seen/{dt}.json\"\n";
    let night = Night::new("");
    let job = fs::read_to_string(night.path().join("job.toml")).unwrap();
    fs::write(night.path().join("job.toml"), job + watch).unwrap();
    fs::create_dir_all(night.path().join("seen")).unwrap();
    for dt in ["2026-11-20", "2026-11-21"] {
        night.documents(dt, &[(dt, &text(1, 40))]).run(dt, &[]).expect_success();
    }
    let left = |folder: &str| -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(night.path().join(folder))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    let all = ["2026-11-20.html", "2026-11-20.json", "2026-11-21.html", "2026-11-21.json", "nearprint.prom"];
    assert_eq!(left("seen"), all);
    fs::create_dir_all(night.path().join("asked")).unwrap();
    night.documents("2026-11-22", &[("c", &text(2, 40))]);
    night.run("2026-11-22", &["--report", "asked/page.html"]).expect_success();
    assert_eq!((left("asked"), left("seen").len()), (vec!["page.html".to_owned()], all.len() + 1));
    // The rules for the flags hold.
    let within =
        fs::read_to_string(night.path().join("job.toml")).unwrap().replace("seen/{dt}.html", "results/{dt}.html");
    fs::write(night.path().join("job.toml"), within).unwrap();
    expect(&night.run("2026-11-22", &[]), 64, &["watch.report results/2026-11-22.html: it lies in output"]);
    // A run that a wrong key elsewhere in the file ends leaves its files too: no summary of an earlier run stays.
    let wrong =
        fs::read_to_string(night.path().join("job.toml")).unwrap().replace("results/{dt}.html", "seen/{dt}.html");
    fs::write(night.path().join("job.toml"), format!("max_bad_row = 1\n{wrong}")).unwrap();
    expect(&night.run("2026-11-21", &[]), 78, &["max_bad_row"]);
    let summary = fs::read_to_string(night.path().join("seen/2026-11-21.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&summary).unwrap()["exit_code"], 78, "{summary}");
}

#[test]
fn a_check_of_the_job_file_looks_at_the_places_of_the_files_that_a_night_leaves() {
    for (key, file) in [("metrics_file", "night.prom"), ("report", "{dt}.html"), ("summary_file", "{dt}.json")] {
        let night = Night::new(&format!("[watch]\n{key} = \"nowhere/{file}\"\n"));
        night.documents("2026-11-19", &[("a", &text(1, 40))]);
        let check = || nearprint_in(night.path(), &["config", "check", "job.toml"]);
        expect(&check(), 74, &["job.toml: line 6", "nowhere", "no such folder"]);
        assert_eq!(night.run("2026-11-19", &[]).code, 74);
        fs::create_dir(night.path().join("nowhere")).unwrap();
        check().expect_success();
    }
}

#[test]
fn a_file_that_no_night_could_leave_is_told_by_its_key_by_a_check_and_a_dry_run_as_by_a_run() {
    for (key, file, code, part) in [
        ("metrics_file", "night.txt", 78, "name a file that ends in .prom"),
        ("report", "{dt}.htm", 78, "name a file that ends in .html"),
        ("summary_file", "{date}.json", 78, "'{date}' stands for nothing here: write {dt} for the night"),
        ("summary_file", "results/{dt}.json", 64, "it lies in output = 'results'"),
        ("report", "nowhere/{dt}.html", 74, "nowhere: no such folder"),
    ] {
        let night = Night::new(&format!("[watch]\n{key} = \"{file}\"\n"));
        night.documents("2026-11-19", &[("a", &text(1, 40))]);
        let named = format!("watch.{key}");
        let of_check = if code == 64 { 78 } else { code };
        let checked = nearprint_in(night.path(), &["config", "check", "job.toml"]);
        expect(&checked, of_check, &["job.toml: line 6", &named, part]);
        let dry = night.run("2026-11-19", &["--dry-run"]);
        expect(&dry, code, &[&named, part]);
        assert!(!dry.error().contains("--"), "nobody typed a flag: {}", dry.stderr);
        let ran = night.run("2026-11-19", &[]);
        assert_eq!((ran.code, ran.error()), (code, dry.error()), "{}", ran.stderr);
        assert!(!night.path().join("store").exists());
    }
}

#[test]
fn a_dry_run_leaves_none_of_the_files_of_its_night() {
    let files = "metrics_file = \"night.prom\"\nreport = \"{dt}.html\"\nsummary_file = \"{dt}.json\"\n";
    let night = Night::new(&format!("[watch]\n{files}"));
    night.documents("2026-11-19", &[("a", &text(1, 40))]);
    let before = snapshot(night.path());
    night.run("2026-11-19", &["--dry-run"]).expect_success();
    assert!(snapshot(night.path()) == before);
}

/// Two nights that a late one made stale, whose job file names the files that they leave.
fn with_watched_stale_nights() -> Night {
    let files = "metrics_file = \"night.prom\"\nreport = \"seen/{dt}.html\"\nsummary_file = \"seen/{dt}.json\"\n";
    let night = Night::new(&format!("[watch]\n{files}"));
    fs::create_dir(night.path().join("seen")).unwrap();
    for (dt, seed) in [("2026-11-20", 1), ("2026-11-21", 2)] {
        night.documents(dt, &[(dt, &text(seed, 40))]).run(dt, &[]).expect_success();
    }
    night.documents("2026-11-19", &[("early", &text(2, 40))]).run("2026-11-19", &["--late"]).expect_success();
    assert_eq!(sample(&night, "nearprint_night_stale_nights "), Some(2.0));
    fs::remove_dir_all(night.path().join("seen")).unwrap();
    fs::create_dir(night.path().join("seen")).unwrap();
    night
}

fn run_stale(night: &Night) -> Ran {
    nearprint_in(night.path(), &["run", "-c", "job.toml", "--stale", "--no-breakers", "--json"])
}

fn seen(night: &Night, name: &str) -> Value {
    let summary = fs::read_to_string(night.path().join("seen").join(name)).unwrap();
    let summary = serde_json::from_str(&summary).unwrap();
    schema::summary(&summary).unwrap();
    summary
}

#[test]
fn each_of_the_stale_nights_leaves_the_files_that_a_run_of_it_leaves() {
    let night = with_watched_stale_nights();
    run_stale(&night).expect_success();
    assert_eq!(sample(&night, "nearprint_night_stale_nights "), Some(0.0));
    assert_eq!(sample(&night, "nearprint_night_date_timestamp_seconds "), Some(1_795_219_200.0));
    for dt in ["2026-11-20", "2026-11-21"] {
        let summary = seen(&night, &format!("{dt}.json"));
        assert_eq!((&summary["status"], &summary["dt"]), (&"published".into(), &dt.into()), "{summary}");
        assert_eq!(summary["page"]["url"], format!("seen/{dt}.html"), "{summary}");
        assert!(night.path().join(format!("seen/{dt}.html")).exists());
    }
}

#[test]
fn a_stale_night_that_fails_leaves_its_failure_and_a_file_of_somebody_else_fails_it() {
    let night = with_watched_stale_nights();
    let taken = night.path().join("seen/2026-11-21.json");
    fs::write(&taken, "mine").unwrap();
    expect(
        &run_stale(&night),
        73,
        &["2026-11-21: watch.summary_file seen/2026-11-21.json: what is there is no summary"],
    );
    assert_eq!(fs::read_to_string(&taken).unwrap(), "mine");
    assert_eq!(seen(&night, "2026-11-20.json")["status"], "published");
    fs::remove_file(&taken).unwrap();
    fs::remove_dir_all(night.path().join("documents/dt=2026-11-21")).unwrap();
    expect(&run_stale(&night), 66, &["2026-11-21: "]);
    let summary = seen(&night, "2026-11-21.json");
    assert_eq!((&summary["status"], &summary["exit_code"]), (&"failed".into(), &66.into()), "{summary}");
    assert_eq!(sample(&night, "nearprint_run_exit_code "), Some(66.0));
    assert_eq!(sample(&night, "nearprint_night_stale_nights "), Some(1.0));
}

#[test]
fn what_is_no_date_names_no_file_of_a_night() {
    let night = Night::new("[watch]\nsummary_file = \"seen/{dt}.json\"\n");
    night.documents("2026-11-20", &[("a", &text(1, 40))]);
    fs::create_dir(night.path().join("seen")).unwrap();
    let before = snapshot(night.path());
    for dt in ["../../escaped", "latest", "2026-11-31", "tomorrow"] {
        expect(&night.run(dt, &[]), 64, &[dt]);
    }
    assert_eq!(snapshot(night.path()), before);
    assert!(!night.path().parent().unwrap().join("escaped.json").exists());
    night.run("2026-11-20", &[]).expect_success();
    assert!(night.path().join("seen/2026-11-20.json").is_file());
}
