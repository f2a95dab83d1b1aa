//! A few of the trials of evidence/reliability, few times each: all of them are run by scripts/reliability.sh, of which
//! scripts/before_release.sh runs the quick form.

use std::path::Path;

use nearprint_harness::night::{Night, Place, Seen, Spec};
use nearprint_harness::row::Row;
use nearprint_harness::{Common, Result};
use nearprint_trials::{faults, kills, nights, races};

fn common(seeds: u64, only: &[&str]) -> Common {
    Common::new(Path::new(env!("CARGO_BIN_EXE_nearprint")), seeds, only)
}

/// Rows that cannot be tried here say so and pass.
fn all_green(rows: &[Row]) {
    assert!(!rows.is_empty(), "no such trials");
    for row in rows.iter().filter(|row| row.runs == 0) {
        eprintln!("{} {} ({}): {}", row.id, row.trial, row.backend, row.observed);
    }
    let red: Vec<&Row> = rows.iter().filter(|row| row.runs > 0 && !row.is_green()).collect();
    assert!(red.is_empty(), "{red:#?}");
}

#[test]
fn a_run_killed_at_any_step_leaves_the_old_or_the_new_night_and_the_next_run_tidies_up() -> Result<()> {
    let args = kills::Args { common: common(1, &["F1", "F2-before", "D2"]), points: Some(5), workers: 2 };
    all_green(&kills::run(&args)?);
    Ok(())
}

#[test]
fn faults_end_with_their_exit_code_and_publish_all_or_nothing() -> Result<()> {
    let rows = ["F4", "F5", "F6", "F10", "F11", "F15", "F16", "F20", "F26", "F30"];
    let args = faults::Args { common: common(1, &rows), rgw_dir: None, outage: 0 };
    all_green(&faults::run(&args)?);
    Ok(())
}

#[test]
fn of_several_runs_at_once_one_publishes() -> Result<()> {
    for (backend, rounds) in [("local", 8), ("rgw", 2)] {
        let args = races::Args { common: common(1, &[]), rounds, first_round: 0, backend: backend.to_owned() };
        all_green(&races::run(&args)?);
    }
    Ok(())
}

#[test]
fn a_rerun_of_a_published_night_writes_nothing() -> Result<()> {
    all_green(&nights::run(&nights::Args { common: common(1, &["L8"]), nights: 0, documents: 0 })?);
    Ok(())
}

/// The trials rest on this: they are not green whatever happens.
#[test]
fn trials_are_red_for_a_command_that_fails_or_publishes_something_else() -> Result<()> {
    let dir = tempfile::tempdir()?;
    // Honest while a night is prepared, and not from the third run on.
    let honest = |deed: &str| {
        format!(
            "#!/bin/sh\nn=$(($(cat runs 2>/dev/null || echo 0) + 1))\necho $n >runs\n{} \"$@\"\ncode=$?\n\
             if [ \"$1\" = run ] && [ $n -gt 2 ]; then {deed}; fi\nexit $code\n",
            env!("CARGO_BIN_EXE_nearprint")
        )
    };
    let other_bytes = "for f in results/decisions/dt=2026-11-20/*; do printf x >>$f; done";
    for (name, deed) in [("fails", "code=70"), ("writes", other_bytes), ("litters", "touch spill/nearprint-left")] {
        let script = dir.path().join(name);
        write_script(&script, &honest(deed))?;
        let common = Common { nearprint: script, ..common(1, &["F4", "F5", "F28"]) };
        let rows = faults::run(&faults::Args { common: common.clone(), rgw_dir: None, outage: 0 })?;
        for row in rows.iter().filter(|row| row.backend == "local" && row.runs > 0) {
            assert!(!row.is_green(), "a command that {name}: {row:#?}");
        }
    }
    Ok(())
}

fn write_script(path: &Path, text: &str) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, text)?;
    Ok(std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))?)
}

#[test]
fn the_readers_of_the_trials_miss_no_file_that_is_gone_or_changed() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let nearprint = Path::new(env!("CARGO_BIN_EXE_nearprint"));
    let night = Night::prepare(nearprint, dir.path(), Place::Local, Spec::new(0))?;
    assert_eq!(night.readers(&night.base)?, Seen::Old);
    assert_eq!(night.readers(&night.reference)?, Seen::New);
    // Who owns what is for writers, and `check`.
    let is_for_readers = |key: &str| !key.contains("/_commits/00000001") && !key.ends_with("/_store.json");
    let published = |key: &&String| !key.starts_with("documents/") && is_for_readers(key);
    let mut n_tried = 0;
    for key in night.reference.keys().filter(published) {
        let mut changed = night.reference.clone();
        changed.entry(key.clone()).or_default().push(b'x');
        let mut gone = night.reference.clone();
        gone.remove(key);
        // Without its newest commit or the newest version of a table a night is not seen by some, and that is all.
        let optional = key.contains("/_commits/") || key.contains("/_delta_log/") && !night.base.contains_key(key);
        assert!(night.readers(&changed).is_err(), "{key} changed");
        assert!(optional || night.readers(&gone).is_err(), "{key} gone");
        n_tried += 1;
    }
    assert!(n_tried > 20, "{n_tried}");
    let mut early = night.base.clone();
    let version = "results/decisions/_delta_log/00000000000000000001.json".to_owned();
    early.insert(version.clone(), night.reference[&version].clone());
    assert!(night.readers(&early).is_err(), "a table with what was not committed");
    Ok(())
}
