//! Hints after errors: each is a command that works as it stands.

use std::fs;
use std::path::Path;

use crate::support::{
    self, Night, Ran, Run, nearprint_in, strings, text, write_documents, write_fingerprints, write_parquet,
};

const DT: &str = "2026-11-20";
const NEXT: &str = "2026-11-21";

fn night() -> Night {
    let night = Night::new("");
    night.documents(DT, &[("a", &text(1, 40)), ("b", &text(2, 40))]).documents(NEXT, &[("c", &text(3, 40))]);
    night
}

/// Types a command line in the night's folder, as a shell takes it.
fn typed(night: &Night, line: &str) -> Ran {
    let line = line.replacen("nearprint", support::NEARPRINT, 1);
    Run::new(Path::new("sh"), night.path(), &["-c", &line]).run().unwrap()
}

/// A command line that fails with a code says one hint, also in its JSON summary, and the hint works.
fn hinted(night: &Night, line: &str, code: i32, hint: &str) {
    let said = typed(night, line);
    assert_eq!(said.code, code, "{line}: {}{}", said.stdout, said.stderr);
    let lines: Vec<&str> = said.stderr.lines().filter(|line| line.starts_with("hint: ")).collect();
    assert_eq!(lines, [format!("hint: {hint}")], "{line}: {}", said.stderr);
    let json = typed(night, &format!("{line} --json"));
    assert!(json.json()["hint"].as_str().is_some_and(|hint| hint.starts_with("nearprint ")), "{line}: {}", json.stdout);
    typed(night, hint).expect_success();
}

#[test]
fn nights_that_need_a_flag_say_it() {
    let run = format!("nearprint run -c job.toml --dt {DT}");
    let late = night();
    late.run(NEXT, &[]).expect_success();
    hinted(&late, &run, 64, &format!("{run} --late"));
    let all = format!("{run} --pairs all");
    hinted(&late, &all, 73, &format!("{all} --replace"));
    let moved = format!("{run} --pairs all --output 'other results'");
    hinted(&late, &moved, 73, &format!("{moved} --replace"));
    let first = format!("{run} --store new --output new-results");
    let job = fs::read_to_string(late.path().join("job.toml")).unwrap();
    fs::write(late.path().join("job.toml"), job.replace("create_store = true", "create_store = false")).unwrap();
    hinted(&late, &first, 66, &format!("{first} --create-store"));
}

#[test]
fn a_stale_night_names_the_command_that_makes_all_stale_nights_anew() {
    let stale = night();
    stale.run(NEXT, &[]).expect_success();
    stale.run(DT, &["--late"]).expect_success();
    let run = format!("nearprint run -c job.toml --dt {NEXT} --late-exit-code 75 --empty-exit-code=3 --threads 1");
    let anew = "nearprint run -c job.toml --threads 1 --stale";
    let said = typed(&stale, &run);
    assert_eq!(said.code, 73, "{}", said.stderr);
    assert!(
        said.stderr.contains("is published from other earlier nights than there are now, so it is stale"),
        "{}",
        said.stderr
    );
    // The dry run says the same.
    hinted(&stale, &format!("{run} --dry-run"), 73, anew);
    typed(&stale, &run).expect_success();
    // Where more than the nights before has changed, the flag is that of the night alone.
    stale.documents(DT, &[("a", &text(5, 40))]).run(DT, &["--replace"]).expect_success();
    let all = format!("nearprint run -c job.toml --dt {NEXT} --pairs all");
    let said = typed(&stale, &all);
    assert!(said.stderr.contains("is published from other earlier nights than there are now"), "{}", said.stderr);
    stale.documents(NEXT, &[("c", &text(6, 40))]);
    let run = format!("nearprint run -c job.toml --dt {NEXT}");
    assert!(typed(&stale, &run).stderr.contains("from other inputs and earlier nights"));
    hinted(&stale, &run, 73, &format!("{run} --replace"));
}

#[test]
fn bad_rows_name_the_limit_that_lets_them_pass() {
    let night = night();
    let file = night.path().join(format!("documents/dt={DT}/bad.parquet"));
    let texts = [Some("x"), Some("y"), Some("z")];
    write_parquet(&file, &[("id", strings(&[None, None, Some("z")])), ("text", strings(&texts))]);
    let run = format!("nearprint run -c job.toml --dt {DT}");
    hinted(&night, &run, 65, &format!("{run} --max-bad-rows 2"));
}

#[test]
fn repeated_ids_name_the_rules_and_no_command_that_discards_rows_unread() {
    let night = night();
    night.documents(DT, &[("a", &text(1, 40)), ("a", &text(2, 40))]);
    let run = format!("nearprint run -c job.toml --dt {DT}");
    let said = typed(&night, &run);
    assert!(said.code == 65 && !said.stderr.contains("hint:"), "{}", said.stderr);
    assert!(said.stderr.contains("say which row of an id stays: on_duplicate_id = \"keep_newest\""), "{}", said.stderr);
}

#[test]
fn a_night_that_a_breaker_stopped_gets_no_hint_that_would_publish_it_unseen() {
    let night = night();
    let (one, two) = (text(7, 60), text(7, 60) + " end");
    night.documents(DT, &[("d", &one), ("e", &two)]);
    let said = typed(&night, &format!("nearprint run -c job.toml --dt {DT} --max-cluster 1"));
    assert_eq!(said.code, 65, "{}", said.stderr);
    assert!(said.stderr.contains("look at them, then raise") && !said.stderr.contains("hint:"), "{}", said.stderr);
    let look = format!("nearprint explain --config job.toml --documents documents/dt={DT} -- d e");
    assert!(said.stdout.ends_with(&format!("\nNext: {look}\n")), "{}", said.stdout);
    typed(&night, &look).expect_success();
}

#[test]
fn names_and_dates_that_are_like_others_lead_to_these() {
    let night = night();
    let run = format!("nearprint run -c job.toml --dt {NEXT}");
    for date in ["20261121", "2026/11/21", "2026.11.21"] {
        hinted(&night, &run.replace(NEXT, date), 64, &run);
        fs::remove_dir_all(night.path().join("store")).unwrap();
        fs::remove_dir_all(night.path().join("results")).unwrap();
    }
    hinted(&night, &format!("{run} --create-stroe"), 64, &format!("{run} --create-store"));
    hinted(&night, "nearprint store inf store", 64, "nearprint store info store");
    hinted(&night, "nearprint completions bsh", 64, "nearprint completions bash");
    let explain = "nearprint explain --text one --text two --profile";
    hinted(&night, &format!("{explain} defualt"), 78, &format!("{explain} default"));
    for far in ["nearprint run -c job.toml --dt tomorrow", "nearprint run -c job.toml --dt 2026-11-20 --profile paper"]
    {
        let said = typed(&night, far);
        assert!(said.code == 64 && !said.stderr.contains("hint:"), "{}", said.stderr);
    }
}

#[test]
fn a_name_that_is_like_a_command_gets_a_tip_even_if_the_rest_is_missing() {
    let night = night();
    hinted(&night, "nearprint repport", 64, "nearprint report --help");
    hinted(&night, "nearprint stor inf", 64, "nearprint store info --help");
    let said = typed(&night, "nearprint xyzzy");
    assert!(said.code == 64 && !said.stderr.contains("hint:"), "{}", said.stderr);
}

#[test]
fn what_the_command_lacks_is_taken_from_the_job_file_or_is_another_command() {
    let night = night();
    let fingerprint = "nearprint fingerprint --output fp --config job.toml";
    hinted(&night, fingerprint, 64, &format!("{fingerprint} --documents documents"));
    hinted(&night, "nearprint config init job.toml", 73, "nearprint config check job.toml");
    night.run(DT, &[]).expect_success();
    let drop = format!("nearprint store drop-night store --dt {NEXT}");
    hinted(&night, &drop, 66, "nearprint store info store");
}

#[test]
fn commands_about_a_night_that_is_not_published_name_those_that_are_and_never_a_run_of_a_mistyped_date() {
    let night = night();
    night.run(DT, &[]).expect_success();
    for command in ["report", "audit", "filter --output kept", "check", "diff"] {
        let line = format!("nearprint {command} --config job.toml --dt {NEXT}");
        hinted(&night, &line, 66, "nearprint store info --config job.toml");
        let said = typed(&night, &line).stderr;
        let named = format!("no published night {NEXT} in store (its newest: {DT}): check the date");
        assert!(command == "diff" || said.contains(&named), "{command}: {said}");
    }
}

#[test]
fn a_store_that_is_missing_is_named_by_its_whole_path_and_is_not_made_beside_results_of_another() {
    let night = night();
    let whole = format!("no store at store ({}): check the path", night.path().join("store").display());
    let run = format!("nearprint run -c job.toml --dt {DT}");
    for line in ["nearprint store info store", "nearprint query --store store --text x"] {
        let said = typed(&night, line);
        assert!(said.code == 66 && said.stderr.contains(&whole), "{line}: {}", said.stderr);
        assert!(said.stderr.contains("check the path, and that its disk is mounted"), "{line}: {}", said.stderr);
    }
    night.run(DT, &[]).expect_success();
    let job = fs::read_to_string(night.path().join("job.toml")).unwrap();
    fs::write(night.path().join("job.toml"), job.replace("create_store = true", "create_store = false")).unwrap();
    fs::rename(night.path().join("store"), night.path().join("elsewhere")).unwrap();
    let said = typed(&night, &run);
    assert!(said.code == 66 && said.stderr.contains(&whole), "{}", said.stderr);
    assert!(!said.stderr.contains("hint:") && !said.stderr.contains("create"), "{}", said.stderr);
    assert!(said.stderr.contains("the output has nights of a store"), "{}", said.stderr);
}

#[test]
fn a_mistyped_job_file_leads_to_the_one_that_lies_beside_it() {
    let night = night();
    night.run(DT, &[]).expect_success();
    for line in
        [format!("nearprint run -c joob.toml --dt {DT}"), format!("nearprint report --config=joob.toml --dt {DT}")]
    {
        hinted(&night, &line, 66, &line.replace("joob.toml", "job.toml"));
        assert!(typed(&night, &line).stderr.contains("did you mean job.toml?"), "{line}");
    }
    // Another job does other work.
    let other = typed(&night, &format!("nearprint run --config nightly.toml --dt {DT}"));
    assert!(other.code == 66 && other.stderr.contains("did you mean job.toml?"), "{}", other.stderr);
    assert!(!other.stderr.contains("hint:"), "{}", other.stderr);
    let far = typed(&night, "nearprint config check nowhere/job.toml");
    assert!(far.code == 66 && !far.stderr.contains("hint:"), "{}", far.stderr);
}

#[test]
fn outputs_that_exist_are_replaced_on_request() {
    let night = night();
    write_fingerprints(&night.path().join("fp/a.parquet"), &[("a".to_owned(), 1), ("b".to_owned(), 3)]);
    let documents = format!("documents/dt={DT}");
    let lines = [
        format!("nearprint fingerprint --documents {documents} --output out"),
        "nearprint join --queries fp --self --max-distance 3 --output joined".to_owned(),
        format!("nearprint idf build --documents {documents} --output idf.txt"),
        format!("nearprint tune --documents {documents} --sheet sheet.csv"),
    ];
    for line in lines {
        typed(&night, &line).expect_success();
        hinted(&night, &line, 73, &format!("{line} --replace"));
    }
    night.run(DT, &[]).expect_success();
    let filter = format!("nearprint filter --config job.toml --dt {DT} --output kept");
    typed(&night, &filter).expect_success();
    hinted(&night, &filter, 73, &format!("{filter} --replace"));
}

#[test]
fn a_job_file_and_a_date_without_their_flags_lead_to_the_command_that_was_meant() {
    let night = night();
    let right = format!("nearprint run --config job.toml --dt {DT}");
    for line in [format!("nearprint run job.toml {DT}"), format!("nearprint runn job.toml --dt {DT}")] {
        hinted(&night, &line, 64, &right);
    }
    hinted(
        &night,
        &format!("nearprint report job.toml {DT}"),
        64,
        &format!("nearprint report --config job.toml --dt {DT}"),
    );
    hinted(&night, "nearprint stor info store", 64, "nearprint store info store");
    typed(&night, &format!("nearprint run -c job.toml --date {DT}")).expect_success();
    let nothing = nearprint_in(night.path(), &["frobnicate", "x"]);
    assert!(nothing.code == 64 && !nothing.stderr.contains("hint:"), "{}", nothing.stderr);
}

#[test]
fn a_missing_job_file_can_be_written() {
    let night = night();
    fs::remove_file(night.path().join("job.toml")).unwrap();
    let line = format!("nearprint run -c 'my job.toml' --dt {DT}");
    hinted(&night, &line, 66, "nearprint config init 'my job.toml'");
}

#[test]
fn a_run_that_may_be_tried_again_says_its_own_command() {
    let night = night();
    let lock = fs::File::create(night.path().join("lock")).unwrap();
    lock.lock().unwrap();
    let line = format!("nearprint run -c job.toml --dt {DT} --lock-file lock");
    let said = typed(&night, &line);
    assert_eq!((said.code, said.stderr.contains(&format!("\nhint: {line}\n"))), (75, true), "{}", said.stderr);
    drop(lock);
    typed(&night, &line).expect_success();
}

#[test]
fn secrets_are_not_repeated_in_a_hint() {
    let night = night();
    night.run(DT, &[]).expect_success();
    let said = night.run(DT, &["--pairs", "all", "--lock-file", "lock", "--documents", "s3://key:secret@bucket/x"]);
    assert!(said.code != 0 && !said.stderr.contains("hint:") && !said.stderr.contains("secret"), "{}", said.stderr);
}

#[test]
fn a_published_night_says_which_of_its_sources_changed() {
    let night = night();
    night.run(DT, &[]).expect_success();
    night.run(NEXT, &[]).expect_success();
    let error = |dt: &str, more: &[&str]| {
        let said = night.run(dt, more);
        assert_eq!(said.code, 73, "{}", said.stderr);
        said.error().to_owned()
    };
    assert!(error(DT, &["--pairs", "all"]).contains("from other configuration:"));
    write_documents(&night.path().join(format!("documents/dt={NEXT}/more.parquet")), &[(Some("m"), Some("n"))]);
    assert!(error(NEXT, &[]).contains("from other inputs:"));
    night.documents("2026-11-19", &[("early", &text(2, 40))]).run("2026-11-19", &["--late"]).expect_success();
    assert!(error(DT, &[]).contains("from other earlier nights than there are now, so it is stale:"));
    assert!(error(NEXT, &[]).contains("from other inputs and earlier nights:"));
    let none = night.run("2026-02-30", &[]);
    assert!(none.code == 64 && none.error().ends_with("there is no such day"), "{}", none.stderr);
}
