//! Runs that only say what they would do, and runs of all stale nights.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::{
    Night, Ran, as_nobody, command, expect, nearprint_in, not_checked, snapshot, text, write_documents,
};

const DT: &str = "2026-11-20";

fn night() -> Night {
    let night = Night::new("");
    night.documents(DT, &[("a", &text(1, 40)), ("b", &text(2, 40)), ("c", &text(1, 40))]);
    night
}

/// A dry run, which leaves the folder as it is.
fn dry(night: &Night, dt: &str, more: &[&str]) -> Ran {
    let before = snapshot(night.path());
    let done = night.run(dt, &[&["--dry-run"], more].concat());
    assert!(snapshot(night.path()) == before, "a dry run writes nothing: {}", done.stderr);
    done
}

#[test]
fn a_dry_run_says_what_the_run_then_does() {
    let night = night();
    let said = dry(&night, DT, &["--create-store"]).expect_success().json();
    assert_eq!((said["status"].as_str(), said["commit"].as_u64()), (Some("would_publish"), Some(0)), "{said}");
    assert_eq!((said["n_files"].as_u64(), said["n_documents"].as_u64()), (Some(1), Some(3)), "{said}");
    assert!(said["input_bytes"].as_u64().unwrap() > 0 && said["join"].is_string(), "{said}");
    night.run(DT, &["--create-store"]).expect_success();
    let written = snapshot(night.path());
    for folder in said["writes"].as_array().unwrap() {
        let folder = folder.as_str().unwrap();
        let is_there =
            night.path().join(folder).is_dir() || folder.contains("superseded") || folder.contains("skipped");
        assert!(is_there || folder.contains("quarantine"), "{folder}: {:?}", written.keys());
    }
    let again = dry(&night, DT, &[]).expect_success().json();
    assert_eq!((again["status"].as_str(), again["commit"].as_u64()), (Some("already_published"), Some(1)));
    assert_eq!(again["writes"].as_array().unwrap().len(), 0);
    night.documents("2026-11-21", &[("d", &text(4, 40))]);
    let next = dry(&night, "2026-11-21", &[]).expect_success().json();
    assert_eq!((next["n_nights"].as_u64(), next["n_existing"].as_u64()), (Some(1), Some(3)), "{next}");
    let shown = command(night.path(), &["run", "-c", "job.toml", "--dt", "2026-11-21", "--dry-run"]).run().unwrap();
    let shown = shown.expect_success().stdout;
    assert!(shown.contains("2026-11-21 would be published: results (dry run: nothing was written)\n"), "{shown}");
    assert!(shown.contains("with 1 earlier night of 3 fingerprints"), "{shown}");
}

#[test]
fn a_dry_run_ends_with_the_exit_code_of_the_run() {
    let night = night();
    let job = fs::read_to_string(night.path().join("job.toml")).unwrap();
    fs::write(night.path().join("job.toml"), job.replace("create_store = true", "create_store = false")).unwrap();
    let both = |dt: &str, more: &[&str], code: i32| {
        let found = dry(&night, dt, more);
        let ran = night.run(dt, more);
        assert_eq!((found.code, found.error()), (code, ran.error()), "{}", ran.stderr);
        assert_eq!(found.code, ran.code);
    };
    both(DT, &[], 66);
    night.run(DT, &["--create-store"]).expect_success();
    both("2026-11-19", &[], 66);
    both("2026-11-19", &["--empty-exit-code", "75"], 75);
    night.documents("2026-11-19", &[("z", &text(9, 40))]);
    both("2026-11-19", &[], 64);
    both(DT, &["--pairs", "all"], 73);
    both(DT, &["--output", "store"], 78);
    fs::write(night.path().join("documents/dt=2026-11-19/more.parquet"), "no Parquet").unwrap();
    both("2026-11-19", &["--late"], 65);
}

#[test]
fn a_dry_run_finds_a_store_or_output_that_may_not_be_written() {
    let night = night();
    for (folder, mode) in [("open", 0o777), ("closed", 0o755), ("", 0o755)] {
        let path = night.path().join(folder);
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }
    let as_nobody = |args: &[&str]| as_nobody(night.path(), args);
    if as_nobody(&["--version"]).code != 0 {
        return not_checked("cannot run as another user");
    }
    let run = ["run", "-c", "job.toml", "--dt", DT, "--dry-run", "--spill-dir", "open"];
    for (store, output) in [("closed/store", "open/results"), ("open/store", "closed/deep/results")] {
        let refused = as_nobody(&[&run[..], &["--store", store, "--output", output]].concat());
        expect(&refused, 77, &["closed: cannot write files here: permission denied"]);
    }
    as_nobody(&[&run[..], &["--store", "open/store", "--output", "open/results"]].concat()).expect_success();
    assert!(fs::read_dir(night.path().join("open")).unwrap().next().is_none());
}

/// Three nights, of which the two last ones were made without a late first one.
fn with_stale_nights() -> Night {
    let night = night();
    for (dt, seed) in [("2026-11-21", 1), ("2026-11-22", 2)] {
        night.documents(dt, &[(dt, &text(seed, 40))]);
    }
    for dt in [DT, "2026-11-21", "2026-11-22"] {
        night.run(dt, &[]).expect_success();
    }
    night.documents("2026-11-19", &[("early", &text(2, 40))]);
    let late = night.run("2026-11-19", &["--late"]).expect_success().json();
    assert_eq!(late["stale"].as_array().unwrap().len(), 3);
    assert_eq!(late["next"], "nearprint run --config job.toml --stale");
    night
}

fn run_stale(night: &Night, more: &[&str]) -> Ran {
    command(night.path(), &["run", "-c", "job.toml", "--stale"]).args(more).run().unwrap()
}

#[test]
fn all_stale_nights_are_run_in_order_of_date() {
    let night = with_stale_nights();
    // Nights of one document are too small for the share of dropped ones to mean anything.
    let done = run_stale(&night, &["--json", "--no-breakers"]).expect_success().json();
    let dates: Vec<&str> = done["nights"].as_array().unwrap().iter().map(|n| n["dt"].as_str().unwrap()).collect();
    assert_eq!(dates, [DT, "2026-11-21", "2026-11-22"]);
    assert_eq!((done["status"].as_str(), done["n_published"].as_u64()), (Some("done"), Some(3)));
    assert_eq!(done["stale"].as_array().unwrap().len(), 0);
    assert_eq!(night.decisions(DT)["b"][0], "drop", "the late night has the same text");
    let info = command(night.path(), &["store", "info", "store", "--json"]).run().unwrap().json();
    assert!(info["nights"].as_array().unwrap().iter().all(|night| night["stale"] == false), "{info}");
    let none = run_stale(&night, &[]).expect_success().stdout;
    assert!(none.starts_with("0 nights published again; no night is stale\n"), "{none}");
}

#[test]
fn a_dry_run_of_stale_nights_says_which_and_writes_nothing() {
    let night = with_stale_nights();
    let before = snapshot(night.path());
    let said = run_stale(&night, &["--dry-run", "--json"]).expect_success().json();
    assert_eq!(
        (said["status"].as_str(), said["stale"].as_array().unwrap().len()),
        (Some("would_publish"), 3),
        "{said}"
    );
    assert_eq!(said["next"], "nearprint run --config job.toml --stale");
    assert!(run_stale(&night, &["--dry-run"]).expect_success().stdout.contains(&format!("thereby: {DT}, 2026-11-21")));
    assert!(snapshot(night.path()) == before);
    run_stale(&night, &["--no-breakers"]).expect_success();
    assert_eq!(run_stale(&night, &["--dry-run", "--json"]).expect_success().json()["status"], "none_stale");
    // What a dropped night makes stale is run by the command that it names.
    let drop = ["store", "drop-night", "--config", "job.toml", "--dt", "2026-11-21"];
    let dropped = command(night.path(), &drop).run().unwrap().expect_success().stdout;
    assert!(dropped.ends_with("\nNext: nearprint run --config job.toml --stale\n"), "{dropped}");
    assert!(!dropped.contains("FILE"), "{dropped}");
}

#[test]
fn a_stale_night_is_made_from_the_files_that_it_was_made_from_and_from_no_others() {
    let night = Night::new("");
    fs::create_dir_all(night.path().join("else")).unwrap();
    write_documents(
        &night.path().join("else/a.parquet"),
        &[(Some("a"), Some(&text(1, 40))), (Some("b"), Some(&text(2, 40)))],
    );
    fs::write(night.path().join("list.txt"), "else/a.parquet\n").unwrap();
    night.documents("2026-11-20", &[("other", &text(3, 40))]);
    let list = ["run", "--config", "job.toml", "--create-store", "--dt", "2026-11-20", "--files-from", "list.txt"];
    nearprint_in(night.path(), &list).expect_success();
    night.documents("2026-11-19", &[("early", &text(2, 40))]).run("2026-11-19", &["--late"]).expect_success();
    run_stale(&night, &["--no-breakers"]).expect_success();
    let decisions = night.decisions("2026-11-20");
    let decided = decisions.iter().map(|(id, row)| (id.as_str(), row[0].as_str())).collect::<Vec<_>>();
    assert_eq!(decided, [("a", "keep"), ("b", "drop")]);
    // A file that has changed is not taken for the one that the night was made from.
    write_documents(&night.path().join("else/a.parquet"), &[(Some("a"), Some(&text(1, 40)))]);
    nearprint_in(night.path(), &["store", "drop-night", "--config", "job.toml", "--dt", "2026-11-19"]).expect_success();
    let before = snapshot(night.path());
    expect(
        &run_stale(&night, &["--no-breakers"]),
        65,
        &["else/a.parquet", "it has changed", "it stays as it is until then"],
    );
    assert!(snapshot(night.path()) == before);
}

#[test]
fn a_stale_night_is_made_without_the_files_that_it_could_not_read_whatever_became_of_them() {
    let night = Night::new("max_bad_files = 2\n");
    let folder = night.path().join("documents/dt=2026-11-20");
    night.documents("2026-11-20", &[("a", &text(1, 40)), ("b", &text(2, 40))]);
    fs::write(folder.join("bad.parquet"), "no Parquet").unwrap();
    std::os::unix::fs::symlink(".", folder.join("loop")).unwrap();
    let made = night.run("2026-11-20", &["--no-breakers"]).expect_success().json();
    assert_eq!(made["n_bad_files"], 2, "{made}");
    fs::remove_file(folder.join("bad.parquet")).unwrap();
    night.documents("2026-11-19", &[("early", &text(2, 40))]).run("2026-11-19", &["--late"]).expect_success();
    let again = run_stale(&night, &["--no-breakers", "--json"]).expect_success().json();
    assert_eq!((&again["nights"][0]["n_bad_files"], &again["nights"][0]["n_documents"]), (&2.into(), &2.into()));
    assert_eq!(night.decisions("2026-11-20")["b"][0], "drop");
}

#[test]
fn a_night_is_stale_no_more_once_it_is_made_again_after_the_late_one_was_forgotten() {
    let night = with_stale_nights();
    let forget = ["store", "forget", "--config", "job.toml", "--before", DT];
    nearprint_in(night.path(), &forget).expect_success();
    run_stale(&night, &["--no-breakers"]).expect_success();
    assert_eq!(run_stale(&night, &["--dry-run", "--json"]).expect_success().json()["status"], "none_stale");
}

#[test]
fn a_stale_night_of_which_documents_were_forgotten_says_that_they_may_be_back() {
    let night = Night::new("");
    night.documents("2026-11-21", &[("secret", &text(1, 40)), ("other", &text(2, 40))]);
    night.run("2026-11-21", &[]).expect_success();
    fs::write(night.path().join("ids.txt"), "secret\n").unwrap();
    nearprint_in(night.path(), &["store", "forget", "--config", "job.toml", "--ids", "ids.txt"]).expect_success();
    night.documents("2026-11-20", &[("early", &text(2, 40))]).run("2026-11-20", &["--late"]).expect_success();
    let again = run_stale(&night, &["--no-breakers"]).expect_success();
    assert!(again.stderr.contains("documents of it were forgotten by their ids"), "{}", again.stderr);
    assert!(night.decisions("2026-11-21").contains_key("secret"), "the input has it still");
}

#[test]
fn the_first_stale_night_that_fails_ends_the_run() {
    let night = with_stale_nights();
    fs::remove_dir_all(night.path().join("documents/dt=2026-11-21")).unwrap();
    let failed = run_stale(&night, &["--json"]);
    let anew = "`nearprint run --config FILE --dt 2026-11-21 --replace`";
    expect(&failed, 66, &["2026-11-21: ", "the night was made from it: restore it", anew]);
    assert!(!failed.stderr.contains("hint:"), "the same command would fail again: {}", failed.stderr);
    let summary = failed.json();
    assert_eq!((summary["status"].as_str(), summary["exit_code"].as_u64()), (Some("failed"), Some(66)));
    assert_eq!(summary["n_published"], 1);
    assert_eq!(summary["stale"], serde_json::json!(["2026-11-21", "2026-11-22"]));
    expect(&run_stale(&night, &["--dt", DT]), 64, &[]);
}

#[test]
fn a_dry_run_of_stale_nights_ends_as_the_run_does_where_an_input_is_gone_or_has_changed() {
    for (is_gone, code, part) in [(true, 66, "the night was made from it"), (false, 65, "it has changed since")] {
        let night = with_stale_nights();
        if is_gone {
            fs::remove_file(night.path().join("documents/dt=2026-11-22/part-0.parquet")).unwrap();
        } else {
            night.documents("2026-11-22", &[("other", &text(9, 40))]);
        }
        let before = snapshot(night.path());
        let said = run_stale(&night, &["--dry-run"]);
        expect(&said, code, &["2026-11-22: ", part]);
        assert!(snapshot(night.path()) == before, "a dry run writes nothing: {}", said.stderr);
        assert_eq!(run_stale(&night, &["--no-breakers"]).error(), said.error());
    }
}
