//! The output of a run to a terminal and to logs.

use crate::support::{self, Night, Ran, command, expect, text, write_documents};

const DT: &str = "2026-11-20";

fn night() -> Night {
    let night = Night::new("");
    let texts: Vec<String> = (0..40).map(|i| text(i, 40)).collect();
    let ids: Vec<String> = (0..40).map(|i| format!("id-{i}")).collect();
    let rows: Vec<(&str, &str)> = ids.iter().map(String::as_str).zip(texts.iter().map(String::as_str)).collect();
    night.documents(DT, &rows);
    night
}

fn run(night: &Night, more: &[&str]) -> Ran {
    command(night.path(), &["run", "-c", "job.toml", "--dt", DT]).args(more).run().unwrap()
}

/// Runs the command with a terminal of 60 columns as standard output and error.
fn on_a_terminal(night: &Night, env: &[(&str, &str)], args: &str) -> String {
    let typed = format!("stty cols 60; {} {args}", support::NEARPRINT);
    let script = support::Run::new(std::path::Path::new("script"), night.path(), &["-qec", &typed, "/dev/null"]);
    let done = env.iter().fold(script, |script, (name, value)| script.env(name, value)).run().unwrap();
    assert_eq!(done.code, 0, "{}{}", done.stdout, done.stderr);
    done.stdout
}

#[test]
fn a_quiet_run_logs_warnings_only() {
    let night = night();
    let quiet = run(&night, &["-q"]).expect_success();
    assert!(quiet.stderr.lines().all(|line| line.contains(" WARN ")), "{}", quiet.stderr);
    assert!(quiet.stdout.contains("published"), "{}", quiet.stdout);
    let loud = run(&night, &["--replace"]).expect_success();
    assert!(loud.stderr.contains("fingerprint (documents)"), "{}", loud.stderr);
    let failed = run(&night, &["-q", "--pairs", "all"]);
    expect(&failed, 73, &["published from other"]);
    expect(&run(&night, &["-q", "-v"]), 64, &[]);
}

#[test]
fn log_lines_are_json_objects_if_asked_for() {
    let night = night();
    let done = run(&night, &["--log-format", "json"]).expect_success();
    assert!(done.stderr.lines().count() >= 6, "{}", done.stderr);
    for line in done.stderr.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(line["level"].is_string() && line["timestamp"].is_string() && line["message"].is_string(), "{line}");
    }
}

#[test]
fn a_total_that_is_not_known_is_not_logged_and_documents_of_unknown_number_are_counted_in_bytes() {
    let night = night();
    let folder = night.path().join("documents/dt=2026-11-21");
    std::fs::create_dir(&folder).unwrap();
    let line = format!("{{\"id\": \"x\", \"text\": \"{}\"}}\n", text(77, 40));
    std::fs::write(folder.join("a.jsonl"), &line).unwrap();
    for dt in [DT, "2026-11-21"] {
        let done = night.run(dt, &[]).expect_success();
        assert!(!done.stderr.contains("total=0") && !done.stderr.contains("estimated_ns=0.0"), "{}", done.stderr);
        let of_first = match dt {
            DT => "fingerprint (documents) total=40".to_owned(),
            _ => format!("fingerprint (bytes) total={}", line.len()),
        };
        assert!(done.stderr.contains(&of_first), "{}", done.stderr);
    }
}

#[test]
fn a_filter_of_log_lines_that_is_none_is_refused() {
    let night = night();
    let with = |value: &str| {
        command(night.path(), &["run", "-c", "job.toml", "--dt", DT, "--replace", "--json"])
            .env("NEARPRINT_LOG", value)
            .run()
            .unwrap()
    };
    for wrong in ["bogus", "nearprint=loud", "info,nearprint_store"] {
        let refused = with(wrong);
        expect(&refused, 64, &["NEARPRINT_LOG=", wrong, "error, warn, info, debug, trace, off"]);
        assert_eq!(refused.json()["exit_code"], 64);
    }
    assert!(!night.path().join("store").exists(), "it is refused before the work");
    let silent = with("error").expect_success();
    assert_eq!(silent.stderr, "");
    assert!(with("warn,nearprint=debug").expect_success().stderr.contains("DEBUG"));
    with("").expect_success();
}

#[test]
fn colour_is_for_terminals_and_not_with_no_color() {
    let night = night();
    let args = format!("-v run -c job.toml --dt {DT} --replace");
    assert!(on_a_terminal(&night, &[], &args).contains("\u{1b}[32m"));
    let plain = on_a_terminal(&night, &[("NO_COLOR", "1")], &args);
    assert!(plain.contains("INFO") && !plain.contains("\u{1b}[3"), "{plain:?}");
    assert!(!run(&night, &["-v", "--replace"]).stderr.contains('\u{1b}'));
}

#[test]
fn the_line_of_the_progress_names_the_step() {
    // The line is drawn ten times a second, so that the night must take longer than that on any machine.
    let night = Night::new("");
    let (ids, texts): (Vec<String>, Vec<String>) = (0..3000).map(|i| (format!("id-{i}"), text(i, 300))).unzip();
    let rows: Vec<(&str, &str)> = ids.iter().map(String::as_str).zip(texts.iter().map(String::as_str)).collect();
    night.documents(DT, &rows);
    let shown = on_a_terminal(&night, &[], &format!("run -c job.toml --dt {DT}"));
    assert!(shown.contains(" of 8: "), "{shown:?}");
    assert!(!shown.contains("INFO"), "{shown:?}");
}

#[test]
fn the_summary_ends_with_a_next_command_that_works() {
    let night = night();
    let summary = run(&night, &[]).expect_success().stdout;
    let next = summary.trim_end().lines().last().unwrap().strip_prefix("Next: nearprint ").unwrap().to_owned();
    assert_eq!(next, format!("report --config job.toml --dt {DT}"));
    assert!(!summary.contains("Look at"), "a usual night has nothing to look at: {summary}");
    let words: Vec<&str> = next.split(' ').collect();
    command(night.path(), &words).run().unwrap().expect_success();
    // The job file has other places than this run.
    let elsewhere = ["--store", "my store", "--output", "other", "--create-store", "--json"];
    let done = run(&night, &elsewhere).expect_success().json();
    assert_eq!(done["next"], format!("nearprint check --store 'my store' --dt {DT}"));
    command(night.path(), &["check", "--store", "my store", "--dt", DT]).run().unwrap().expect_success();
}

#[test]
fn the_summary_says_what_to_look_at() {
    let night = night();
    run(&night, &[]).expect_success();
    let texts = [1, 2, 3, 4].map(|n| text(n, 40));
    let rows = [Some("x"), Some("x"), Some("y"), None].into_iter().zip(texts.iter().map(|text| Some(text.as_str())));
    let file = night.path().join("documents/dt=2026-11-19/part-0.parquet");
    write_documents(&file, &rows.collect::<Vec<_>>());
    std::fs::write(night.path().join("documents/dt=2026-11-19/notes.txt"), "").unwrap();
    let job = std::fs::read_to_string(night.path().join("job.toml")).unwrap();
    std::fs::write(night.path().join("job.toml"), job + "on_duplicate_id = \"keep_first\"\nmax_bad_rows = 1\n")
        .unwrap();
    let late = command(night.path(), &["run", "-c", "job.toml", "--dt", "2026-11-19", "--late"]).run().unwrap();
    let said = late.expect_success().stdout;
    let lines: Vec<&str> = said.lines().skip_while(|line| *line != "Look at").skip(1).collect();
    assert_eq!(lines[0], "  1 row that is not a document: see the dataset quarantine", "{said}");
    assert_eq!(lines[1], "  1 file of other kinds among the documents, not read", "{said}");
    assert_eq!(lines[2], format!("  1 later night made without this one, stale now: {DT}"), "{said}");
    // What a rule leaves out is usual: it is counted, and nobody needs to look at it.
    let repeated = "  repeated              1  row that repeats the id of another one, left out by on_duplicate_id";
    assert!(said.lines().any(|line| line == repeated), "{said}");
}
