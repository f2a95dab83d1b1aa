//! `store migrate`: the nights of a store are made again in the store of another job.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{
    self, Night, Ran, Signal, command, edited, expect, nearprint_in, not_checked, snapshot, text, write_documents,
};
use crate::warc::{gzip, page, record};

const MIGRATE: [&str; 7] = ["store", "migrate", "--config", "new.toml", "--from", "old-store", "--create-store"];

fn date(day: u64) -> String {
    format!("2026-10-{day:02}")
}

/// A folder with a job of each name, which differ in store, output and profile.
fn jobs(names_and_profiles: &[(&str, &str)]) -> Night {
    let night = Night::new("");
    for (name, profile) in names_and_profiles {
        let job = format!(
            "documents = \"documents\"\nstore = \"{name}-store\"\noutput = \"{name}-results\"\nprofile = \"{profile}\"\n"
        );
        std::fs::write(night.path().join(format!("{name}.toml")), job).unwrap();
    }
    night
}

/// An old store of `n` nights, and a new job of another profile. Each night has new pages, a page whose text changes now
/// and then, a copy of a page of the night before, and that page again with another text, so that copies lose what they
/// were dropped for.
fn nights(n: u64) -> Night {
    let night = jobs(&[("old", "han-bigrams"), ("new", "default"), ("anew", "default")]);
    for day in 1..=n {
        let fresh = text(day * 10, 80);
        let changing = text(7000 + day / 3, 80);
        let mut rows = vec![
            (format!("fresh-{day}"), fresh),
            (format!("other-{day}"), text(day * 10 + 1, 80)),
            ("page".to_owned(), changing),
            (format!("copy-{day}"), edited(&text((day - 1) * 10, 80), 40)),
        ];
        if day % 2 == 0 && day > 2 {
            rows.push((format!("fresh-{}", day - 2), text(9000 + day, 80)));
        }
        let rows: Vec<_> = rows.iter().map(|(id, text)| (Some(id.as_str()), Some(text.as_str()))).collect();
        let folder = night.path().join(format!("documents/dt={}", date(day)));
        write_documents(&folder.join("part-0.parquet"), &rows[..2]);
        write_documents(&folder.join("part-1.parquet"), &rows[2..]);
        std::fs::write(folder.join("notes.md"), "not read").unwrap();
        run(&night, "old.toml", day);
    }
    night
}

fn run(night: &Night, job: &str, day: u64) -> Value {
    let date = date(day);
    let args = ["run", "--config", job, "--dt", &date, "--create-store", "--no-breakers", "--json"];
    nearprint_in(night.path(), &args).expect_success().json()
}

fn migrate(night: &Night, more: &[&str]) -> Ran {
    command(night.path(), &[&MIGRATE[..], more].concat()).args(&["--json", "--no-breakers"]).run().unwrap()
}

/// What the store says of each night: its run files and its generation.
fn listed(night: &Night, store: &str) -> Vec<Value> {
    let info = nearprint_in(night.path(), &["store", "info", store, "--json"]).expect_success().json();
    let mut nights = info["nights"].as_array().unwrap().clone();
    for night in &mut nights {
        night.as_object_mut().unwrap().remove("output");
    }
    nights
}

/// The data files of a store and its results, with the manifests: all but commits, tables' logs and identities.
fn data(night: &Night, job: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let roots = [format!("{job}-store"), format!("{job}-results")];
    let files = roots.iter().flat_map(|root| snapshot(&night.path().join(root)));
    let is_data = |path: &Path| {
        path.extension().is_some_and(|ending| ending == "parquet")
            || path.file_name().is_some_and(|n| n == "manifest.json")
    };
    files.filter(|(path, _)| is_data(path) && !path.to_string_lossy().contains("_delta_log")).collect()
}

/// The migrated store and results have the data files, run files and manifests of those that runs made.
fn same_data(night: &Night) {
    let (new, anew) = (data(night, "new"), data(night, "anew"));
    let names = |files: &BTreeMap<PathBuf, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&new), names(&anew));
    for (name, content) in new {
        assert!(content == anew[&name], "{}", name.display());
    }
}

fn is_sound(night: &Night, job: &str) {
    let checked = nearprint_in(night.path(), &["check", "--config", job, "--json"]).expect_success().json();
    assert_eq!(checked["status"], "sound", "{checked}");
}

/// Migrates until a file is about to get its name, and is killed then.
fn killed_at(night: &Night, file: &str) {
    let done = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=rename,renameat,renameat2,link,linkat", "-e"])
        .args(["inject=rename,renameat,renameat2,link,linkat:signal=KILL", "-P"])
        .arg(night.path().join(file))
        .arg(support::NEARPRINT)
        .args(MIGRATE)
        .arg("--no-breakers")
        .current_dir(night.path())
        .output()
        .unwrap();
    assert!(!done.status.success(), "{file}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Migrates until it reports a stage of a night, and is killed a moment later.
fn killed_during(night: &Night, dt: &str, stage: &str) {
    let mut running = command(night.path(), &MIGRATE).args(&["--no-breakers"]).start().unwrap();
    let began = Instant::now();
    let has_come = |said: &str| said.split_once(&format!("dt=\"{dt}\"")).is_some_and(|(_, said)| said.contains(stage));
    while !has_come(&running.stderr().unwrap()) {
        assert!(!running.ended().unwrap() && began.elapsed() < Duration::from_secs(120), "{dt}: {stage}");
        std::thread::sleep(Duration::from_millis(1));
    }
    running.signal(Signal::SIGKILL).unwrap();
    assert_eq!(running.wait().unwrap().code, 128 + 9);
}

#[test]
fn a_migration_that_is_killed_again_and_again_makes_the_nights_that_runs_make() {
    if Command::new("strace").arg("-V").output().is_err() {
        return not_checked("no strace");
    }
    let night = nights(20);
    let old = [snapshot(&night.path().join("old-store")), snapshot(&night.path().join("old-results"))];
    let mut anew: Vec<Value> = (1..=20).map(|day| run(&night, "anew.toml", day)).collect();
    // The nights depend on their order.
    let sum = |key: &str| anew.iter().map(|night| night[key].as_u64().unwrap_or_default()).sum::<u64>();
    assert!(
        sum("n_drop") >= 15 && sum("n_same_id") >= 15 && sum("n_changed") >= 5 && sum("n_orphaned") >= 5,
        "{anew:#?}"
    );

    let n_there = |night: &Night| listed(night, "new-store").len();
    killed_at(&night, "new-store/_commits/00000004.json");
    assert_eq!(n_there(&night), 3);
    killed_at(&night, "new-results/pairs/_delta_log/00000000000000000008.json");
    assert_eq!(n_there(&night), 9);
    killed_during(&night, &date(15), "publish");
    assert!((14..=15).contains(&n_there(&night)));
    // The last one is killed when nothing remains but the tables.
    killed_at(&night, "new-results/decisions/_delta_log/00000000000000000019.json");
    assert_eq!(n_there(&night), 20);

    let done = migrate(&night, &[]).expect_success().json();
    assert_eq!(
        (&done["status"], &done["n_there"], &done["n_published"]),
        (&"already_migrated".into(), &20.into(), &0.into())
    );
    is_sound(&night, "new.toml");
    assert_eq!(listed(&night, "new-store"), listed(&night, "anew-store"));
    same_data(&night);
    assert_ne!(listed(&night, "new-store"), listed(&night, "old-store"));
    assert!(old == [snapshot(&night.path().join("old-store")), snapshot(&night.path().join("old-results"))]);

    // A second call writes nothing, and a night that the old job publishes meanwhile comes after.
    let before = [snapshot(&night.path().join("new-store")), snapshot(&night.path().join("new-results"))];
    migrate(&night, &[]).expect_success();
    assert!(before == [snapshot(&night.path().join("new-store")), snapshot(&night.path().join("new-results"))]);
    write_documents(
        &night.path().join(format!("documents/dt={}/a.parquet", date(21))),
        &[(Some("z"), Some(&text(5, 80)))],
    );
    run(&night, "old.toml", 21);
    let done = migrate(&night, &[]).expect_success().json();
    assert_eq!((&done["status"], &done["nights"][0]["dt"]), (&"migrated".into(), &date(21).into()));
    anew.push(run(&night, "anew.toml", 21));
    same_data(&night);
}

#[test]
fn lost_inputs_of_all_nights_are_named_before_anything_is_written() {
    let night = nights(5);
    let part = |day: u64, n: u64| night.path().join(format!("documents/dt={}/part-{n}.parquet", date(day)));
    let (two, gone) = (std::fs::read(part(2, 0)).unwrap(), part(2, 0));
    std::fs::write(&gone, [&two[..], b"x"].concat()).unwrap();
    let is_clean = || assert!(!night.path().join("new-store").exists() && !night.path().join("new-results").exists());
    expect(
        &migrate(&night, &[]),
        65,
        &["dt=2026-10-02/part-0.parquet", "it has changed since", "--since", "nothing was"],
    );
    is_clean();
    std::fs::remove_file(part(3, 1)).unwrap();
    std::fs::remove_file(part(1, 0)).unwrap();
    std::fs::remove_file(part(1, 1)).unwrap();
    for more in [&[][..], &["--dry-run"]] {
        let parts = [
            "3 input files are gone: all 2 of 2026-10-01, documents/dt=2026-10-03/part-1.parquet; 1 input files have changed",
            "documents/dt=2026-10-02/part-0.parquet: restore them, or leave out the nights before a date with --since",
        ];
        expect(&migrate(&night, more), 66, &parts);
        is_clean();
    }
    let would = migrate(&night, &["--since", "2026-10-04", "--dry-run"]).expect_success().json();
    assert_eq!(would["status"], "would_migrate");
    assert_eq!((&would["remaining"], &would["n_left_out"]), (&vec![date(4), date(5)].into(), &3.into()));
    is_clean();
    let done = migrate(&night, &["--since", "2026-10-04"]).expect_success().json();
    assert_eq!((&done["n_published"], &done["remaining"]), (&2.into(), &Value::Array(Vec::new())));
    expect(&migrate(&night, &["--since", "October"]), 64, &["'October' is not a date"]);
}

#[test]
fn a_night_is_made_from_the_files_that_its_manifest_names_and_no_others() {
    let night = jobs(&[("old", "han-bigrams"), ("new", "default")]);
    let rows = |id, seed| [(id, text(seed, 60))];
    let write = |place: &str, [(id, text)]: [(&str, String); 1]| {
        write_documents(&night.path().join(place), &[(Some(id), Some(&text))]);
    };
    write("elsewhere/[1].parquet", rows("listed", 1));
    write("documents/dt=2026-10-01/a.parquet", rows("b", 2));
    write("documents/dt=2026-10-02/a.parquet", rows("a", 3));
    std::fs::write(night.path().join("list.txt"), "elsewhere\n").unwrap();
    let old = |more: &[&str]| {
        command(night.path(), &["run", "--config", "old.toml", "--create-store"])
            .args(more)
            .run()
            .unwrap()
            .expect_success();
    };
    old(&["--dt", "2026-10-01", "--files-from", "list.txt"]);
    old(&["--dt", "2026-10-02"]);
    std::fs::write(night.path().join("ids.txt"), "listed\n").unwrap();
    nearprint_in(night.path(), &["store", "forget", "old-store", "--ids", "ids.txt"]).expect_success();
    write("documents/dt=2026-10-02/came-later.parquet", rows("late", 4));
    // A job all of whose nights have lists names no documents.
    let job = std::fs::read_to_string(night.path().join("new.toml")).unwrap();
    std::fs::write(night.path().join("new.toml"), job.split_once('\n').unwrap().1).unwrap();

    let done = migrate(&night, &[]).expect_success().json();
    assert_eq!((&done["n_published"], &done["n_forgotten_documents"]), (&2.into(), &1.into()));
    let ids = |dt| night.published_in("new-results", dt, "decisions").into_iter().map(|row| row[0].clone());
    assert_eq!(ids("2026-10-01").chain(ids("2026-10-02")).collect::<Vec<_>>(), ["listed", "a"]);
    let said = command(night.path(), &MIGRATE).run().unwrap().expect_success().stdout;
    assert!(
        said.contains("new-store: 0 nights made, 2 nights there before; all nights of old-store are done"),
        "{said}"
    );
    assert!(said.contains("1 document that the old store forgot by id may be in the inputs"), "{said}");
}

#[test]
fn pages_that_only_the_old_store_has_the_texts_of_are_counted_and_said() {
    let night = jobs(&[("old", "han-bigrams"), ("new", "default")]);
    let url = |n| format!("https://a.org/{n}");
    let revisit = |n| {
        let fields = "Content-Type: application/http; msgtype=response\r\n";
        record("revisit", &url(n), fields, b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
    };
    for day in 1..=2 {
        let records =
            [if day == 1 { page(&url(1), &text(1, 80)) } else { revisit(1) }, page(&url(1 + day), &text(day * 10, 80))];
        let folder = night.path().join(format!("documents/dt={}", date(day)));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("a.warc.gz"), records.map(|record| gzip(&record)).concat()).unwrap();
        run(&night, "old.toml", day);
    }
    for n_published in [1, 0] {
        let done = migrate(&night, &["--since", "2026-10-02"]).expect_success().json();
        assert_eq!((&done["n_published"], &done["n_lost_revisits"]), (&n_published.into(), &1.into()));
    }
    let said = command(night.path(), &MIGRATE).args(&["--since", "2026-10-02"]).run().unwrap().expect_success().stdout;
    assert!(said.contains("the new nights lack 1 page of the old ones") && said.contains("delete neither"), "{said}");
}

#[test]
fn a_migration_leaves_the_nights_of_others_and_the_old_store_alone() {
    let night = nights(3);
    let dt = date(2);
    let with_job = |name: &str, from: &str, to: &str| {
        let job = std::fs::read_to_string(night.path().join("new.toml")).unwrap();
        assert!(job.contains(from), "{job}");
        std::fs::write(night.path().join(name), job.replace(from, to)).unwrap();
        let args = ["store", "migrate", "--config", name, "--from", "old-store", "--create-store"];
        nearprint_in(night.path(), &args)
    };
    expect(
        &with_job("bad.toml", "new-store", "old-store"),
        78,
        &["store: 'old-store' is, holds or lies in the old store"],
    );
    expect(
        &with_job("bad.toml", "new-results", "old-results"),
        78,
        &["output: 'old-results'", "results of the old store"],
    );
    expect(&with_job("bad.toml", "new-results", "old-results/new"), 78, &["holds or lies in the results"]);
    let with_reference = "documents\"\nreferences = [\"old-store\"]\n";
    expect(&with_job("bad.toml", "documents\"\n", with_reference), 78, &["references: 'old-store' is the old store"]);
    let uncreated = nearprint_in(night.path(), &MIGRATE[..6]);
    expect(&uncreated, 66, &["no store at new-store", "--create-store"]);
    expect(&nearprint_in(night.path(), &[&MIGRATE[..5], &["nowhere"]].concat()), 66, &["no store at nowhere"]);

    // A night of the same job may be there before its turn, and one from other inputs is not replaced.
    run(&night, "new.toml", 2);
    expect(
        &migrate(&night, &[]),
        64,
        &["2026-10-01 is still to be made, and the new store has the later night 2026-10-02"],
    );
    nearprint_in(night.path(), &["store", "drop-night", "new-store", "--dt", &dt]).expect_success();
    let more = night.path().join("documents/dt=2026-10-02/part-2.parquet");
    write_documents(&more, &[(Some("more"), Some(&text(77, 80)))]);
    run(&night, "new.toml", 2);
    std::fs::remove_file(&more).unwrap();
    let before = snapshot(&night.path().join("new-store"));
    let parts =
        ["new-store", "a night that the migration would make otherwise: 2026-10-02 (from other inputs)", "drop-night"];
    expect(&migrate(&night, &[]), 73, &parts);
    assert!(before == snapshot(&night.path().join("new-store")));
    nearprint_in(night.path(), &["store", "drop-night", "new-store", "--dt", &dt]).expect_success();
    migrate(&night, &[]).expect_success();

    // Another configuration of the results alone is another one too.
    expect(
        &with_job("pairs.toml", "documents\"\n", "documents\"\npairs = \"all\"\n"),
        73,
        &["3 nights", "another configuration"],
    );
}

#[test]
fn a_breaker_stops_a_migration_and_the_next_call_goes_on() {
    let night = nights(2);
    for n in 0..3 {
        let place = night.path().join(format!("documents/dt={}/part-{n}.parquet", date(3)));
        write_documents(&place, &[(Some(&format!("alike-{n}")), Some(&edited(&text(500, 80), n)))]);
    }
    run(&night, "old.toml", 3);
    let strict = ["--json", "--max-cluster", "1"];
    let stopped = command(night.path(), &MIGRATE).args(&strict).run().unwrap();
    let said = stopped.json();
    assert_eq!((stopped.code, &said["status"], said["error"].is_string()), (65, &"failed".into(), true), "{said}");
    assert_eq!((&said["n_published"], &said["remaining"]), (&2.into(), &vec![date(3)].into()), "{said}");
    assert_eq!(said["nights"][2]["status"], "stopped");
    let done = migrate(&night, &[]).expect_success().json();
    assert_eq!((&done["n_there"], &done["n_published"]), (&2.into(), &1.into()));
}

#[test]
fn a_first_date_after_the_newest_night_is_refused_and_makes_no_store() {
    let night = nights(2);
    for more in [&["--since", "2026-10-03"][..], &["--since", "2026-10-03", "--dry-run"]] {
        let parts = ["--since 2026-10-03 is after the newest night of the old store, 2026-10-02"];
        expect(&migrate(&night, more), 64, &parts);
    }
    assert!(!night.path().join("new-store").exists());
    assert_eq!(migrate(&night, &["--since", "2026-10-02"]).expect_success().json()["n_published"], 1);
}

#[test]
fn nights_that_the_new_store_forgets_are_not_made_twice() {
    let night = nights(5);
    let job = std::fs::read_to_string(night.path().join("new.toml")).unwrap();
    std::fs::write(night.path().join("new.toml"), format!("keep_nights = 2\n{job}")).unwrap();
    assert_eq!(migrate(&night, &[]).expect_success().json()["n_published"], 5);
    let again = migrate(&night, &[]).expect_success().json();
    assert_eq!(
        (&again["n_there"], &again["n_forgotten_nights"], &again["n_published"]),
        (&2.into(), &3.into(), &0.into())
    );
    nearprint_in(night.path(), &["store", "forget", "old-store", "--before", "2026-10-03"]).expect_success();
    let again = migrate(&night, &[]).expect_success().json();
    assert_eq!(again["forgotten_before"], "2026-10-03");
    assert_eq!(listed(&night, "new-store").len(), 2);
}
