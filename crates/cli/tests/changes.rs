//! The dataset `changes`: followed from the first set, it gives the corpus.

use std::collections::BTreeMap;
use std::path::Path;

use nearprint_harness::{delta, folder};

use crate::orphans::corpus;
use crate::support::{Night, expect, nearprint_in, text};

/// A row: (change, text_changed, of_dt, what the document is then, what it was before). A decision is (decision,
/// canonical, reference, reason).
pub struct Row {
    pub id: String,
    pub change: String,
    pub text_changed: String,
    pub of_dt: String,
    pub after: [String; 4],
    pub before: [String; 4],
}

/// The sets of changes of an output, by number.
pub fn sets(output: &Path) -> BTreeMap<i64, Vec<Row>> {
    let mut sets: BTreeMap<i64, Vec<Row>> = BTreeMap::new();
    for path in delta::files(output, "changes").unwrap() {
        for row in folder::rows(&output.join(path)).unwrap() {
            let row: Vec<String> = row.into_iter().map(|(_, value)| value).collect();
            let four = |from: usize| [0, 1, 2, 3].map(|i| row[from + i].clone());
            sets.entry(row[0].parse().unwrap()).or_default().push(Row {
                id: row[1].clone(),
                change: row[2].clone(),
                text_changed: row[3].clone(),
                of_dt: row[4].clone(),
                after: four(5),
                before: four(9),
            });
        }
    }
    sets
}

/// The corpus by its changes: (night, decision, canonical, reference, reason) by id. Each change begins with what the one
/// before it left.
pub fn fold(sets: &BTreeMap<i64, Vec<Row>>, context: &str) -> BTreeMap<String, [String; 4]> {
    let mut folded: BTreeMap<String, [String; 4]> = BTreeMap::new();
    for (number, rows) in sets {
        assert!(rows.is_sorted_by(|a, b| a.id < b.id), "{context}, set {number}: one row for each document, by id");
        for row in rows {
            let context = format!("{context}, set {number}, {}", row.id);
            let nothing: [String; 4] = Default::default();
            let before = folded.get(&row.id).unwrap_or(&nothing);
            assert_eq!(*before, row.before, "{context}");
            let is = |decision: &[String; 4]| decision != &nothing;
            let kept = |decision: &[String; 4]| decision[0] == "keep";
            let expected = match (is(&row.before), is(&row.after)) {
                (false, true) => ["added", ""],
                (true, false) => ["removed", ""],
                (true, true) if !kept(&row.before) && kept(&row.after) => ["updated", "restored"],
                (true, true) => ["updated", ""],
                (false, false) => ["", ""],
            };
            assert!(expected.contains(&row.change.as_str()), "{context}: {}", row.change);
            assert!(row.before != row.after || row.text_changed == "true", "{context}: nothing changed");
            assert_eq!(row.of_dt.is_empty(), row.change == "removed", "{context}");
            match row.change.as_str() {
                "removed" => drop(folded.remove(&row.id)),
                _ => drop(folded.insert(row.id.clone(), row.after.clone())),
            }
        }
    }
    folded
}

/// Holds the changes of a job's results to the corpus of some nights, which are all that the store has.
pub fn assert_changes_fold(night: &Night, dts: &[&str], context: &str) {
    let folded = fold(&sets(&night.path().join("results")), context);
    let folded: BTreeMap<String, [String; 3]> =
        folded.into_iter().map(|(id, [decision, canonical, _, reason])| (id, [decision, canonical, reason])).collect();
    let corpus = corpus(night, dts).into_iter();
    let corpus: BTreeMap<String, [String; 3]> =
        corpus.map(|(id, [_, decision, canonical, reason])| (id, [decision, canonical, reason])).collect();
    assert_eq!(folded, corpus, "{context}");
}

const FIRST: &str = "2026-11-20";
const SECOND: &str = "2026-11-21";
const THIRD: &str = "2026-11-22";

/// The newest set of changes: (id, change, decision before, decision after).
fn newest(night: &Night) -> Vec<[String; 4]> {
    let sets = sets(&night.path().join("results"));
    let rows = sets.into_iter().next_back().unwrap().1.into_iter();
    rows.map(|row| [row.id, row.change, row.before[0].clone(), row.after[0].clone()]).collect()
}

fn run(night: &Night, dt: &str, more: &[&str]) {
    night.run(dt, &[&["--no-breakers"], more].concat()).expect_success();
}

#[test]
fn a_set_of_changes_has_the_documents_whose_state_became_another_and_no_others() {
    let (fox, hen) = (text(1, 60), text(2, 60));
    let night = Night::new("");
    night.documents(FIRST, &[("b", &fox), ("gone", " "), ("mirror", &fox), ("still", &hen)]);
    run(&night, FIRST, &[]);
    assert_eq!(
        newest(&night),
        [
            ["b", "added", "", "keep"],
            ["gone", "added", "", "skip"],
            ["mirror", "added", "", "drop"],
            ["still", "added", "", "keep"],
        ]
    );
    // b has another text, so its mirror is kept again; the others are as they were.
    night.documents(SECOND, &[("b", &text(3, 60)), ("gone", " "), ("still", &hen)]);
    run(&night, SECOND, &[]);
    assert_eq!(newest(&night), [["b", "updated", "keep", "keep"], ["mirror", "restored", "drop", "keep"]]);
    assert_changes_fold(&night, &[FIRST, SECOND], "second");
    // Nights like the one before change nothing, and have equal sets.
    for dt in [THIRD, "2026-11-23"] {
        night.documents(dt, &[("b", &text(3, 60)), ("still", &hen)]);
        run(&night, dt, &[]);
        assert_eq!(newest(&night).len(), 2, "the newest set with rows is that of the second night");
        nearprint_in(night.path(), &["check", "--config", "job.toml"]).expect_success();
    }
    for dt in ["2026-11-23", THIRD] {
        nearprint_in(night.path(), &["store", "drop-night", "--config", "job.toml", "--dt", dt]).expect_success();
    }
    // Dropped, the night takes back what it did.
    nearprint_in(night.path(), &["store", "drop-night", "--config", "job.toml", "--dt", SECOND]).expect_success();
    assert_eq!(newest(&night), [["b", "updated", "keep", "keep"], ["mirror", "updated", "keep", "drop"]]);
    assert_changes_fold(&night, &[FIRST], "dropped");
    nearprint_in(night.path(), &["check", "--config", "job.toml"]).expect_success();
}

#[test]
fn nights_that_a_store_forgets_leave_the_corpus() {
    let night = Night::new("");
    for (dt, id) in [(FIRST, "a"), (SECOND, "b"), (THIRD, "c")] {
        night.documents(dt, &[(id, &text(u64::from(id.as_bytes()[0]), 60)), ("every", &text(1, 60))]);
        run(&night, dt, &[]);
    }
    nearprint_in(night.path(), &["store", "forget", "--config", "job.toml", "--before", THIRD]).expect_success();
    assert_eq!(newest(&night), [["a", "removed", "keep", ""], ["b", "removed", "keep", ""]]);
    assert_changes_fold(&night, &[THIRD], "forgotten");
    // No night knows a any more, but the rows that say so do.
    std::fs::write(night.path().join("ids.txt"), "a\n").unwrap();
    let done =
        nearprint_in(night.path(), &["store", "forget", "store", "--ids", "ids.txt", "--json"]).expect_success().json();
    assert_eq!((done["status"].as_str(), done["n_change_files"].as_u64()), (Some("forgotten"), Some(2)), "{done}");
    assert!(sets(&night.path().join("results")).into_values().flatten().all(|row| row.id != "a"));
    assert_changes_fold(&night, &[THIRD], "forgotten by id");
}

#[test]
fn forgotten_documents_leave_no_trace_in_changes_and_what_they_represented_is_restored() {
    let fox = text(1, 60);
    let night = Night::new("");
    night.documents(FIRST, &[("b", &fox), ("m1", &fox), ("m2", &fox), ("other", &text(2, 60))]);
    run(&night, FIRST, &[]);
    night.documents(SECOND, &[("b", &text(3, 60)), ("late", &text(3, 60))]);
    run(&night, SECOND, &[]);
    assert_eq!(night.decisions(SECOND)["late"][..2], ["drop", "b"]);
    std::fs::write(night.path().join("ids.txt"), "b\nm1\n").unwrap();
    nearprint_in(night.path(), &["store", "forget", "store", "--ids", "ids.txt"]).expect_success();
    let folded = fold_without_before(&night);
    assert_eq!(folded.keys().collect::<Vec<_>>(), ["late", "m2", "other"]);
    assert!(folded.values().all(|decision| decision[0] == "keep"), "{folded:?}");
    assert_eq!(night.decisions(SECOND)["late"], ["keep", "", "", "restored", "late", "1"]);
    let corpus = corpus(&night, &[FIRST, SECOND]);
    let decided = corpus.iter().map(|(id, state)| (id.clone(), state[1].clone(), state[3].clone()));
    let expected = folded.iter().map(|(id, decision)| (id.clone(), decision[0].clone(), decision[3].clone()));
    assert!(decided.eq(expected), "{corpus:?} {folded:?}");
    for (path, content) in crate::support::published(night.path()) {
        let is_named = path.starts_with("results/changes/dt=") && delta_names(&night, &path);
        assert!(!is_named || !contains(&content, b"m1"), "{}", path.display());
    }
    nearprint_in(night.path(), &["check", "--config", "job.toml"]).expect_success();
}

/// The corpus by its changes, after documents were forgotten that earlier rows named as canonical.
fn fold_without_before(night: &Night) -> BTreeMap<String, [String; 4]> {
    let mut folded = BTreeMap::new();
    for row in sets(&night.path().join("results")).into_values().flatten() {
        assert_ne!(row.change, "removed");
        folded.insert(row.id, row.after);
    }
    folded
}

fn delta_names(night: &Night, path: &Path) -> bool {
    let output = night.path().join("results");
    delta::files(&output, "changes").unwrap().iter().any(|file| Path::new("results").join(file) == path)
}

fn contains(content: &[u8], id: &[u8]) -> bool {
    content.windows(id.len()).any(|window| window == id)
}

#[test]
fn a_run_that_dies_before_its_tables_follow_loses_no_set_of_changes() {
    let night = Night::new("");
    night.documents(FIRST, &[("a", &text(1, 60))]).documents(SECOND, &[("b", &text(2, 60))]);
    run(&night, FIRST, &[]);
    let before = crate::support::snapshot(&night.path().join("results/changes/_delta_log"));
    run(&night, SECOND, &[]);
    // As if it had died after the commit: its tables are those of the night before.
    for table in ["changes", "decisions"] {
        std::fs::remove_file(night.path().join(format!("results/{table}/_delta_log/00000000000000000001.json")))
            .unwrap();
    }
    assert_eq!(crate::support::snapshot(&night.path().join("results/changes/_delta_log")), before);
    let behind = crate::support::snapshot(&night.path().join("results"));
    nearprint_in(night.path(), &["run", "--config", "job.toml", "--stale"]).expect_success();
    assert_changes_fold(&night, &[FIRST, SECOND], "no night is stale");
    std::fs::remove_dir_all(night.path().join("results")).unwrap();
    for (path, content) in behind {
        let path = night.path().join("results").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    nearprint_in(night.path(), &["store", "compact", "store"]).expect_success();
    nearprint_in(night.path(), &["store", "drop-night", "--config", "job.toml", "--dt", FIRST]).expect_success();
    assert_eq!(newest(&night), [["a", "removed", "keep", ""]]);
    assert_changes_fold(&night, &[SECOND], "after a death");
}

#[test]
fn what_a_night_decided_again_about_a_night_that_is_made_again_counts_no_more() {
    let texts: Vec<String> = (1..5).map(|i| text(i, 60)).collect();
    let night = Night::new("");
    let made = |dt: &str, rows: &[(&str, &str)], more: &[&str]| {
        let _ = std::fs::remove_dir_all(night.path().join(format!("documents/dt={dt}")));
        night.documents(dt, rows);
        run(&night, dt, more);
    };
    made(FIRST, &[("b", &texts[0]), ("c", &texts[1])], &[]);
    made(SECOND, &[("m", &texts[0])], &[]);
    made(THIRD, &[("b", &texts[2]), ("new", &texts[0])], &[]);
    let all = [FIRST, SECOND, THIRD];
    assert_eq!(corpus(&night, &all)["m"][1..3], ["drop", "new"]);
    // The second night has m with another text. The third, which is stale now, dropped it for the one before.
    made(SECOND, &[("m", &texts[3])], &["--replace"]);
    assert_eq!(corpus(&night, &all)["m"][1..3], ["keep", ""]);
    assert_changes_fold(&night, &all, "replaced");
    // As before, it is decided again only by the third night, made again.
    made(SECOND, &[("m", &texts[0])], &["--replace"]);
    assert_changes_fold(&night, &all, "replaced twice");
    nearprint_in(night.path(), &["check", "--config", "job.toml"]).expect_success();
    nearprint_in(night.path(), &["run", "--config", "job.toml", "--stale", "--no-breakers"]).expect_success();
    assert_eq!(corpus(&night, &all)["m"][1..3], ["drop", "new"]);
    assert_changes_fold(&night, &all, "made again");
    nearprint_in(night.path(), &["check", "--config", "job.toml"]).expect_success();
}

#[test]
fn a_damaged_night_can_be_made_again_or_dropped_though_nobody_knows_what_goes_with_it() {
    for drops in [false, true] {
        let night = Night::new("");
        for (dt, id) in [(FIRST, "a"), (SECOND, "b")] {
            night.documents(dt, &[(id, &text(u64::from(id.as_bytes()[0]), 60)), ("every", &text(1, 60))]);
            run(&night, dt, &[]);
        }
        let info = nearprint_in(night.path(), &["store", "info", "store", "--json"]).expect_success().json();
        let digest = info["nights"][1]["run"].as_str().unwrap().to_owned();
        std::fs::write(night.path().join(format!("store/runs/{digest}/shadows/part-00000.parquet")), "damaged")
            .unwrap();
        let done = match drops {
            true => nearprint_in(night.path(), &["store", "drop-night", "--config", "job.toml", "--dt", SECOND]),
            false => {
                std::fs::remove_dir_all(night.path().join(format!("documents/dt={SECOND}"))).unwrap();
                night.documents(SECOND, &[("d", &text(8, 60))]).run(SECOND, &["--no-breakers", "--replace"])
            }
        };
        assert!(done.code == 0 && done.stderr.contains("begins anew with the corpus"), "{drops}: {}", done.stderr);
        nearprint_in(night.path(), &["check", "--config", "job.toml"]).expect_success();
    }
}

#[test]
fn nothing_leaves_a_store_while_an_output_that_would_have_to_say_so_is_not_there() {
    let night = Night::new("");
    for (dt, seed) in [("2026-11-19", 1), ("2026-11-20", 2)] {
        night.documents(dt, &[(dt, &text(seed, 40))]).run(dt, &[]).expect_success();
    }
    let (results, away) = (night.path().join("results"), night.path().join("away"));
    std::fs::write(night.path().join("ids.txt"), "2026-11-19\n").unwrap();
    std::fs::rename(&results, &away).unwrap();
    std::fs::create_dir(&results).unwrap();
    let commits = || std::fs::read_dir(night.path().join("store/_commits")).unwrap().count();
    let before = commits();
    let leaving: [&[&str]; 3] = [
        &["store", "drop-night", "store", "--dt", "2026-11-20"],
        &["store", "forget", "store", "--before", "2026-11-20"],
        &["store", "forget", "store", "--ids", "ids.txt"],
    ];
    for command in leaving {
        expect(&nearprint_in(night.path(), command), 66, &["results", "check that its disk is mounted"]);
        assert_eq!(std::fs::read_dir(&results).unwrap().count(), 0, "{command:?} wrote beside the results");
    }
    assert_eq!(commits(), before);
    std::fs::remove_dir(&results).unwrap();
    std::fs::rename(&away, &results).unwrap();
    nearprint_in(night.path(), leaving[0]).expect_success();
    assert_changes_fold(&night, &["2026-11-19"], "a night was dropped");
}

/// Runs the commands that change nights, each of which is refused, and moves the folder `changes` away.
fn refused_until_the_table_begins_anew(night: &Night, reason: &str, dt: &str) {
    let parts = [reason, "or move the folder `changes` away: whoever follows it then begins anew with the corpus"];
    let job = ["--config", "job.toml"];
    let checked = nearprint_in(night.path(), &[&["check"], &job[..]].concat());
    assert!(checked.code == 65 && checked.stdout.contains("damaged: the table `changes`"), "{}", checked.stdout);
    std::fs::write(night.path().join("ids"), "b\n").unwrap();
    for of_store in [&["drop-night", "--dt", FIRST][..], &["forget", "--ids", "ids"]] {
        let args = [&["store", of_store[0]], &job[..], &of_store[1..]].concat();
        expect(&nearprint_in(night.path(), &args), 65, &parts);
    }
    for more in [&[][..], &["--dry-run"]] {
        expect(&night.run(dt, &[&["--no-breakers"], more].concat()), 65, &parts);
    }
    std::fs::rename(night.path().join("results/changes"), night.path().join("changes")).unwrap();
}

fn copied(night: &Night, from: &str, to: &str) {
    let args = ["-a", from, to];
    assert!(std::process::Command::new("cp").args(args).current_dir(night.path()).status().unwrap().success());
}

fn put_back(night: &Night, folder: &str) {
    std::fs::remove_dir_all(night.path().join(folder)).unwrap();
    std::fs::rename(night.path().join("backup"), night.path().join(folder)).unwrap();
}

fn four_nights() -> (Night, [&'static str; 4]) {
    let (night, dts) = (Night::new(""), [FIRST, SECOND, THIRD, "2026-11-23"]);
    night.documents(FIRST, &[("a", &text(1, 60)), ("b", &text(2, 60))]);
    for (dt, id) in dts[1..].iter().zip(["c", "d", "e"]) {
        night.documents(dt, &[(id, &text(u64::from(id.as_bytes()[0]), 60))]);
    }
    (night, dts)
}

fn is_sound(night: &Night) {
    nearprint_in(night.path(), &["check", "--config", "job.toml"]).expect_success();
}

#[test]
fn a_store_that_was_put_back_adds_no_set_of_changes_that_a_follower_would_miss() {
    let (night, [first, second, third, fourth]) = four_nights();
    run(&night, first, &[]);
    run(&night, second, &[]);
    copied(&night, "store", "backup");
    nearprint_in(night.path(), &["store", "drop-night", "--config", "job.toml", "--dt", second]).expect_success();
    put_back(&night, "store");
    let reason = "results/changes: it has set of changes 3, and the store knows it up to 2";
    refused_until_the_table_begins_anew(&night, reason, third);
    run(&night, third, &[]);
    assert_eq!(newest(&night), [["d", "added", "", "keep"]]);
    is_sound(&night);

    // Sets of another output do not make it known.
    copied(&night, "store", "backup");
    run(&night, fourth, &[]);
    put_back(&night, "store");
    std::fs::remove_dir_all(night.path().join("changes")).unwrap();
    for (dt, id) in [("2026-11-24", "f"), ("2026-11-25", "g")] {
        night.documents(dt, &[(id, &text(u64::from(id.as_bytes()[0]), 60))]);
        run(&night, dt, &["--output", "other"]);
    }
    night.documents("2026-11-26", &[("h", &text(99, 60))]);
    let reason = "results/changes: it has set of changes 4, and the store knows it up to 3";
    refused_until_the_table_begins_anew(&night, reason, "2026-11-26");
}

#[test]
fn results_that_were_put_back_get_no_set_of_changes_after_one_that_they_lack() {
    let (night, [first, second, third, fourth]) = four_nights();
    run(&night, first, &[]);
    copied(&night, "results", "backup");
    run(&night, second, &[]);
    run(&night, third, &[]);
    put_back(&night, "results");
    // What is mended adds no set.
    run(&night, third, &["--replace"]);
    run(&night, second, &["--replace"]);
    refused_until_the_table_begins_anew(&night, "results/changes/dt=2026-11-22/part-00000", fourth);
    run(&night, fourth, &[]);
    assert_eq!(newest(&night), [["e", "added", "", "keep"]]);
    is_sound(&night);
}

#[test]
fn a_log_of_changes_that_was_put_back_gets_no_set_after_one_that_it_lacks() {
    let (night, [first, second, third, fourth]) = four_nights();
    run(&night, first, &[]);
    copied(&night, "results/changes/_delta_log", "backup");
    run(&night, second, &[]);
    run(&night, third, &[]);
    put_back(&night, "results/changes/_delta_log");
    refused_until_the_table_begins_anew(
        &night,
        "it has sets of changes up to 1, and the newest one follows set 2",
        fourth,
    );
}

#[test]
fn of_several_outputs_each_gets_a_set_only_after_those_that_it_had() {
    let (night, [first, second, third, fourth]) = four_nights();
    run(&night, first, &[]);
    copied(&night, "results/changes", "backup");
    run(&night, second, &[]);
    run(&night, third, &["--output", "other"]);
    put_back(&night, "results/changes");
    let reason = "results/changes: it has sets of changes up to 1, and the store knows it up to 2";
    refused_until_the_table_begins_anew(&night, reason, fourth);
    run(&night, fourth, &[]);
    is_sound(&night);
}

#[test]
fn files_that_a_killed_run_left_do_not_keep_a_table_of_changes_from_beginning_anew() {
    let (night, [first, second, third, fourth]) = four_nights();
    run(&night, first, &[]);
    run(&night, second, &[]);
    // The files of a set that was never committed.
    copied(&night, "store", "backup");
    copied(&night, "results", "results_before");
    run(&night, third, &[]);
    let left = night.path().join("results/changes/dt=2026-11-22");
    put_back(&night, "store");
    let before = night.path().join("results_before");
    std::fs::remove_dir_all(before.join("changes")).unwrap();
    std::fs::create_dir(before.join("changes")).unwrap();
    std::fs::rename(left, before.join("changes/dt=2026-11-22")).unwrap();
    std::fs::remove_dir_all(night.path().join("results")).unwrap();
    std::fs::rename(before, night.path().join("results")).unwrap();
    for dt in [fourth, third] {
        run(&night, dt, &["--late"]);
        is_sound(&night);
    }
    assert_eq!(newest(&night), [["d", "added", "", "keep"]]);
}

#[test]
fn a_check_beside_runs_finds_no_set_of_changes_missing() {
    let night = Night::new("");
    let dts: Vec<String> = (1..=12).map(|day| format!("2026-11-{day:02}")).collect();
    for dt in &dts {
        night.documents(dt, &[(dt.as_str(), &text(u64::from(dt.as_bytes()[9]), 60))]);
    }
    run(&night, &dts[0], &[]);
    let (is_done, night) = (std::sync::atomic::AtomicBool::new(false), &night);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_done.load(std::sync::atomic::Ordering::Relaxed) {
                    let checked = nearprint_in(night.path(), &["check", "--config", "job.toml"]);
                    assert!(!checked.stdout.contains("sets of changes up to"), "{}", checked.stdout);
                    assert!(!checked.stdout.contains("it has set of changes"), "{}", checked.stdout);
                }
            });
        }
        for dt in &dts[1..] {
            run(night, dt, &[]);
        }
        is_done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    is_sound(night);
}

#[test]
fn a_store_that_was_put_back_before_the_first_set_of_an_output_does_not_number_that_set_again() {
    let (night, [first, second, third, fourth]) = four_nights();
    for dt in [first, second] {
        run(&night, dt, &["--output", "other"]);
    }
    copied(&night, "store", "backup");
    run(&night, third, &[]);
    put_back(&night, "store");
    let parts = ["results/changes: it has set of changes 3, and the store knows it up to 2"];
    expect(&night.run(fourth, &["--no-breakers"]), 65, &parts);
}
