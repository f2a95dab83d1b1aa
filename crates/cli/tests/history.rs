//! The properties of a store that hold while nights come, are replaced, dropped and moved: how its history grows, and what a rerun does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use crate::support::{NEARPRINT, Night, Ran, Run, delta, expect, nearprint_in, published, snapshot, text};
use nearprint_harness::night::of_another_release;
use serde_json::{Value, json};

const NIGHTS: [&str; 3] = ["2026-11-18", "2026-11-19", "2026-11-20"];

/// Three nights, the later ones with ids of the earlier.
fn three_nights() -> Night {
    let night = Night::new("");
    let same = text(1, 60);
    night.documents(NIGHTS[0], &[("a", &same), ("b", &same), ("c", &text(2, 60)), ("s", "short")]);
    night.documents(NIGHTS[1], &[("a", &text(3, 60)), ("d", &same), ("s", "short too")]);
    night.documents(NIGHTS[2], &[("a", &text(4, 60)), ("d", &text(5, 60)), ("c", &text(2, 60))]);
    for dt in NIGHTS {
        night.run(dt, &[]).expect_success();
    }
    night
}

fn files(night: &Night) -> BTreeMap<PathBuf, Vec<u8>> {
    published(night.path())
}

fn check(night: &Night) -> Value {
    nearprint_in(night.path(), &["check", "--config", "job.toml", "--json"]).json()
}

fn status(done: Ran) -> String {
    done.expect_success().json()["status"].as_str().unwrap().to_owned()
}

fn all_published(night: &Night) {
    for dt in NIGHTS {
        assert_eq!(status(night.run(dt, &[])), "already_published", "{dt}");
    }
}

#[test]
fn replacing_an_unchanged_night_writes_nothing_and_touches_no_later_night() {
    let night = three_nights();
    let before = files(&night);
    for dt in NIGHTS {
        assert_eq!(status(night.run(dt, &["--replace"])), "already_published");
    }
    assert_eq!(files(&night), before);
    // Nor where a file lies there now that no run reads.
    std::fs::write(night.path().join(format!("documents/dt={}/notes.txt", NIGHTS[0])), "x").unwrap();
    assert_eq!(status(night.run(NIGHTS[0], &["--replace"])), "already_published");
    assert_eq!(files(&night), before);
    all_published(&night);
}

#[test]
fn replacing_an_unchanged_night_writes_damaged_files_again_and_nothing_else() {
    let night = three_nights();
    let before = files(&night);
    for dt in [NIGHTS[0], NIGHTS[2]] {
        // A set of changes belongs to a commit, and no run writes it again.
        let of_night = |path: &&PathBuf| {
            path.to_string_lossy().contains(&format!("/dt={dt}/")) && !path.starts_with("results/changes")
        };
        let run = nearprint_in(night.path(), &["store", "info", "store", "--json"]).expect_success().json();
        let digest = run["nights"].as_array().unwrap().iter().find(|n| n["dt"] == dt).unwrap()["run"].clone();
        let of_run = |path: &&PathBuf| path.to_string_lossy().contains(digest.as_str().unwrap());
        let own: Vec<&PathBuf> = before.keys().filter(|path| of_night(path) || of_run(path)).collect();
        // The last night decided again what the first one had dropped.
        assert_eq!(own.len(), if dt == NIGHTS[2] { 16 } else { 15 }, "{own:?}");
        for (i, path) in own.iter().enumerate() {
            let place = night.path().join(path);
            if i % 2 == 0 {
                std::fs::remove_file(&place).unwrap();
            } else {
                std::fs::write(&place, "damaged").unwrap();
            }
        }
        let done = night.run(dt, &["--replace"]).expect_success().json();
        assert_eq!(
            (done["status"].as_str(), done["n_mended_files"].as_u64()),
            (Some("already_published"), Some(own.len() as u64))
        );
        let now = files(&night);
        for (path, content) in &before {
            assert!(now[path] == *content, "{}", path.display());
        }
        assert_eq!(now.len(), before.len());
    }
    assert_eq!(check(&night)["status"], "sound");
    all_published(&night);
}

#[test]
fn replacing_a_night_with_another_release_never_writes_over_what_is_published() {
    let night = three_nights();
    let before = files(&night);
    let other = night.path().join("nearprint-of-another-release");
    of_another_release(Path::new(NEARPRINT), &other).unwrap();
    let run = |more: &[&str]| {
        let run = Run { program: other.clone(), ..night.command(NIGHTS[2], more) };
        run.run().unwrap().expect_success().json()
    };
    assert_eq!(run(&[])["status"], "already_published");
    assert_eq!(files(&night), before);
    assert_eq!(run(&["--replace"])["status"], "published");
    let after = files(&night);
    for (path, content) in &before {
        assert!(after[path] == *content, "{} was written over", path.display());
    }
    assert!(after.len() > before.len() + 5, "another name");
    assert_eq!(check(&night)["status"], "sound");
    all_published(&night);
}

#[test]
fn an_output_that_moved_is_no_published_night() {
    let night = three_nights();
    let before = nearprint_in(night.path(), &["store", "info", "store", "--json"]).json();
    let moved = night.run(NIGHTS[0], &["--output", "elsewhere"]);
    assert_eq!(moved.code, 73, "{}", moved.stderr);
    assert!(
        moved.error().contains("is published in results, not here") && moved.error().contains("--replace"),
        "{}",
        moved.error()
    );
    assert!(!night.path().join("elsewhere").exists());
    // Another spelling of the place is the same place.
    let absolute = night.path().join("results");
    assert_eq!(status(night.run(NIGHTS[0], &["--output", absolute.to_str().unwrap()])), "already_published");
    assert_eq!(status(night.run(NIGHTS[0], &["--output", "elsewhere", "--replace"])), "published");
    assert!(!delta::night(&night.path().join("elsewhere"), "decisions", NIGHTS[0]).unwrap().is_empty());
    assert!(!night.is_in_tables(NIGHTS[0]), "it is in the tables of one output");
    let after = nearprint_in(night.path(), &["store", "info", "store", "--json"]).json();
    assert_eq!(before["nights"][0]["run"], after["nights"][0]["run"], "later nights need not know");
    assert!(after["nights"].as_array().unwrap().iter().all(|n| n["stale"] == false), "{after}");
}

#[test]
fn a_dropped_night_is_gone_and_later_nights_are_stale() {
    let night = three_nights();
    let drop_night = |dt: &str| nearprint_in(night.path(), &["store", "drop-night", "store", "--dt", dt, "--json"]);
    assert_eq!(drop_night("2026-11-17").code, 66);
    let done = drop_night(NIGHTS[1]).expect_success().json();
    assert_eq!(done["stale"], serde_json::json!([NIGHTS[2]]));
    assert!(!night.is_in_tables(NIGHTS[1]));
    assert_eq!(check(&night)["status"], "sound");
    assert_eq!(status(night.run(NIGHTS[2], &["--replace"])), "published");
    // As if it had never been: the rest is what a store without it has.
    let plain = Night::new("");
    for dt in [NIGHTS[0], NIGHTS[2]] {
        let from = night.path().join(format!("documents/dt={dt}"));
        assert!(
            Command::new("cp").arg("-a").arg(from).arg(plain.path().join("documents/")).status().unwrap().success()
        );
        plain.run(dt, &[]).expect_success();
    }
    for dataset in ["pairs", "decisions"] {
        assert_eq!(night.published(NIGHTS[2], dataset), plain.published(NIGHTS[2], dataset));
    }
    nearprint_in(night.path(), &["store", "gc", "--config", "job.toml", "--grace-hours", "0"]).expect_success();
    // What it changed in the corpus, and what its end did, stays.
    let left = snapshot(&night.path().join("results")).into_keys().map(|path| path.display().to_string());
    let left: Vec<String> = left.filter(|path| !path.starts_with("changes/") && path.contains(NIGHTS[1])).collect();
    assert_eq!(left, Vec::<String>::new());
    // A mistyped date in the future blocks no night any more.
    night.documents("2062-11-21", &[("z", &text(9, 60))]).run("2062-11-21", &["--future"]).expect_success();
    assert_eq!(night.run(NIGHTS[1], &[]).code, 64);
    drop_night("2062-11-21").expect_success();
    night.documents("2026-11-21", &[("y", &text(8, 60))]).run("2026-11-21", &[]).expect_success();
    night.run(NIGHTS[1], &["--late"]).expect_success();
    assert_eq!(check(&night)["status"], "sound");
}

fn commit_bytes(night: &Night) -> Vec<u64> {
    let commits = snapshot(&night.path().join("store/_commits"));
    commits.values().map(|content| content.len() as u64).collect()
}

#[test]
fn a_commit_does_not_grow_with_the_nights_before_it_and_gc_prunes_old_ones() {
    let night = Night::new("");
    let n_nights = 40;
    let date = |i: u64| format!("2026-{:02}-{:02}", 1 + i / 28, 1 + i % 28);
    for i in 0..n_nights {
        night.documents(&date(i), &[("a", &text(i, 20))]).run(&date(i), &[]).expect_success();
    }
    let bytes = commit_bytes(&night);
    // The last one holds as many nights itself as the 8th.
    assert!(bytes[39] < bytes[7] + 100, "{bytes:?}");
    let found = check(&night);
    assert_eq!((found["status"].as_str(), found["n_commits"].as_u64()), (Some("sound"), Some(40)), "{found}");
    let info = nearprint_in(night.path(), &["store", "info", "store", "--json"]).expect_success().json();
    assert_eq!(info["nights"].as_array().unwrap().len(), 40);
    assert!(info["nights"].as_array().unwrap().iter().all(|n| n["stale"] == false));

    // A replaced night in the middle makes other pages; the old ones go with the commits that name them.
    night.documents(&date(3), &[("a", &text(999, 20))]).run(&date(3), &["--replace"]).expect_success();
    let pages = || snapshot(&night.path().join("store/pages")).len();
    assert_eq!(pages(), 2);
    let args = ["store", "gc", "--config", "job.toml", "--json", "--grace-hours", "0"];
    let young = nearprint_in(night.path(), &["store", "gc", "--config", "job.toml", "--json"]).expect_success().json();
    assert_eq!(young["n_pruned_commits"], 0);
    let done = nearprint_in(night.path(), &args).expect_success().json();
    assert_eq!((done["n_pruned_commits"].as_u64(), pages()), (Some(40), 1), "{done}");
    assert!(commit_bytes(&night)[..40].iter().all(|&bytes| bytes < 20));
    let found = check(&night);
    assert_eq!((found["status"].as_str(), found["n_unreferenced_files"].as_u64()), (Some("sound"), Some(0)), "{found}");
    night.documents("2026-11-21", &[("b", &text(40, 20))]).run("2026-11-21", &[]).expect_success();
    assert_eq!(check(&night)["status"], "sound");
    // What stands in place of a pruned commit is checked like any other.
    let pruned = night.path().join("store/_commits/00000007.json");
    std::fs::write(&pruned, "{\"pruned\":6}\n").unwrap();
    assert!(check(&night)["problems"].to_string().contains("00000007.json"));
    std::fs::write(&pruned, "{\"pruned\":7}\n").unwrap();
    // A page that is damaged or gone is found.
    let page =
        night.path().join("store/pages").join(snapshot(&night.path().join("store/pages")).into_keys().next().unwrap());
    let content = std::fs::read_to_string(&page).unwrap();
    std::fs::write(&page, content.replacen("2026", "2027", 1)).unwrap();
    let refused = night.run("2026-11-22", &["--allow-empty"]);
    assert!(refused.code == 64 || refused.code == 65, "{}", refused.stderr);
    assert!(check(&night)["problems"].to_string().contains("pages/"));
}

/// A store that release 0.2.0 made: three nights, compacted and indexed (`tests/data/store-v2`).
pub fn of_the_last_release() -> Night {
    made_by_the_last_release("store-v2")
}

fn made_by_the_last_release(name: &str) -> Night {
    let dir = tempfile::tempdir().unwrap();
    let from = format!("{}/tests/data/{name}/.", env!("CARGO_MANIFEST_DIR"));
    assert!(Command::new("cp").arg("-a").arg(from).arg(dir.path()).status().unwrap().success());
    for (path, _) in snapshot(&dir.path().join("documents")) {
        let file = std::fs::File::options().write(true).open(dir.path().join("documents").join(path)).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000)).unwrap();
    }
    Night { dir }
}

#[test]
fn a_store_of_the_last_release_is_read_checked_and_carried_on_and_its_files_stay_as_they_are() {
    let night = of_the_last_release();
    let days = ["2026-11-17", "2026-11-18", "2026-11-19"];
    let before = snapshot(night.path());
    assert_eq!(check(&night)["status"], "sound");
    for dt in days {
        assert_eq!(status(night.run(dt, &[])), "already_published", "{dt}");
    }
    assert_eq!(snapshot(night.path()), before);
    let earlier = std::fs::read_to_string(night.path().join("documents/dt=2026-11-18/pages.jsonl")).unwrap();
    let d =
        earlier.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).find(|row| row["id"] == "d").unwrap();
    let (same, y, z) = (d["text"].as_str().unwrap(), text(8, 40), text(9, 40));
    night.documents("2026-11-20", &[("x", same), ("y", &y), ("z", &z)]).run("2026-11-20", &[]).expect_success();
    assert_eq!(night.published("2026-11-20", "decisions")[0][..3], ["x", "drop", "d"]);
    let found = check(&night);
    assert_eq!((found["status"].as_str(), found["n_nights"].as_u64()), (Some("sound"), Some(4)), "{found}");
    let after = snapshot(night.path());
    for (path, content) in before.iter().filter(|(path, _)| !path.ends_with("_last_checkpoint")) {
        assert_eq!(after.get(path), Some(content), "{}", path.display());
    }
}

/// In `tests/data/store-v2-forgotten`, release 0.2.0 dropped `b` for `a`, and then forgot `a`.
#[test]
fn a_document_that_the_last_release_left_dropped_for_a_forgotten_one_is_kept_once_any_id_is_forgotten() {
    let night = made_by_the_last_release("store-v2-forgotten");
    let dt = "2026-11-17";
    let decided = |night: &Night| -> Vec<Vec<String>> {
        night.published(dt, "decisions").into_iter().map(|row| row[..3].to_vec()).collect()
    };
    assert_eq!(decided(&night), [["b", "drop", ""], ["c", "keep", ""]]);
    let found = check(&night);
    assert_eq!(found["status"], "damaged", "{found}");
    assert!(found["problems"].to_string().contains("drops documents for none"), "{found}");
    std::fs::write(night.path().join("ids"), "nobody\n").unwrap();
    let forget = ["store", "forget", "--config", "job.toml", "--ids", "ids", "--json"];
    let done = nearprint_in(night.path(), &forget).expect_success().json();
    assert_eq!((&done["n_found"], &done["results"]), (&json!(0), &json!([dt])), "{done}");
    assert_eq!(decided(&night), [["b", "keep", ""], ["c", "keep", ""]]);
    assert_eq!(check(&night)["status"], "sound");
    assert_eq!(nearprint_in(night.path(), &forget).expect_success().json()["results"], json!([]), "it is done once");
    let documents = std::fs::read_to_string(night.path().join(format!("documents/dt={dt}/pages.jsonl"))).unwrap();
    let b = documents.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).find(|row| row["id"] == "b");
    let text = b.unwrap()["text"].as_str().unwrap().to_owned();
    night.documents("2026-11-18", &[("new", &text)]).run("2026-11-18", &[]).expect_success();
    assert_eq!(night.published("2026-11-18", "decisions")[0][..3], ["new", "drop", "b"]);
    let args = ["filter", "--config", "job.toml", "--corpus", "--as", "jsonl", "--output", "corpus", "--json"];
    assert_eq!(nearprint_in(night.path(), &args).expect_success().json()["n_keep"], 2);
}

/// The versions of a table that have metadata, and the columns there.
fn columns_of_versions(night: &Night, table: &str) -> Vec<(usize, Vec<String>)> {
    let log = night.path().join("results").join(table).join("_delta_log");
    let versions = snapshot(&log).into_iter().filter(|(path, _)| path.extension().is_some_and(|end| end == "json"));
    let with_columns = versions.enumerate().filter_map(|(number, (_, content))| {
        let lines =
            std::str::from_utf8(&content).unwrap().lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let metadata = lines.filter_map(|line| line["metaData"]["schemaString"].as_str().map(str::to_owned)).next()?;
        let schema: Value = serde_json::from_str(&metadata).unwrap();
        let names = schema["fields"].as_array().unwrap().iter().map(|field| field["name"].as_str().unwrap().to_owned());
        Some((number, names.collect()))
    });
    with_columns.collect()
}

#[test]
fn a_night_of_the_last_release_has_the_lost_share_of_that_release_until_it_is_made_anew() {
    let night = of_the_last_release();
    let job = night.path().join("job.toml");
    let usual = std::fs::read_to_string(&job).unwrap();
    let with = |share: f64| std::fs::write(&job, format!("max_lost_share = {share}\n{usual}")).unwrap();
    let newest = "2026-11-19";
    with(0.08);
    assert_eq!(night.run(newest, &[]).code, 73);
    with(0.04);
    assert_eq!(status(night.run(newest, &[])), "already_published");
    std::fs::write(&job, &usual).unwrap();
    assert_eq!(status(night.run(newest, &["--replace", "--no-breakers"])), "published");
    assert_eq!(status(night.run(newest, &[])), "already_published");
    with(0.04);
    assert_eq!(night.run(newest, &[]).code, 73);
    with(0.08);
    assert_eq!(status(night.run(newest, &[])), "already_published");
}

#[test]
fn nights_after_those_of_the_last_release_say_what_is_new_same_or_changed_and_the_tables_go_on() {
    let night = of_the_last_release();
    let texts: BTreeMap<String, String> = ["2026-11-17", "2026-11-18", "2026-11-19"]
        .iter()
        .flat_map(|dt| {
            let pages = std::fs::read_to_string(night.path().join(format!("documents/dt={dt}/pages.jsonl"))).unwrap();
            let rows = pages.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>();
            rows.into_iter().map(|row| [&row["id"], &row["text"]].map(|value| value.as_str().unwrap().to_owned()))
        })
        .map(|[id, text]| (id, text))
        .collect();
    let before = columns_of_versions(&night, "decisions");
    let x = text(8, 40);
    let rows = [("a", &*texts["a"]), ("b", &texts["b"]), ("n", "\t"), ("s", "short too"), ("x", &x)];
    let done = night.documents("2026-11-20", &rows).run("2026-11-20", &["--no-breakers"]).expect_success().json();
    assert_eq!(["n_new", "n_same", "n_changed"].map(|key| done[key].as_u64()), [Some(1), Some(3), Some(1)], "{done}");
    let says = |dt: &str| -> Vec<String> {
        night.published(dt, "decisions").iter().map(|row| [&row[..1], &row[9..12]].concat().join(" ")).collect()
    };
    let expected = [
        "a same 2026-11-17 2026-11-19",
        "b same 2026-11-17 2026-11-17",
        "n same 2026-11-19 2026-11-19",
        "s changed 2026-11-17 2026-11-20",
        "x new 2026-11-20 2026-11-20",
    ];
    assert_eq!(says("2026-11-20"), expected);
    let after = columns_of_versions(&night, "decisions");
    assert_eq!((after.len(), &after[..1]), (2, &before[..]), "the new columns come once");
    let [(_, former), (_, columns)] = &after[..] else { panic!("{after:?}") };
    assert_eq!(columns[..9], former[..9]);
    assert_eq!(columns[9..], ["recrawl", "first_seen", "last_changed", "revisit", "family_id", "dt"]);
    let pairs = columns_of_versions(&night, "pairs");
    assert_eq!((pairs.len(), pairs[1].1.contains(&"reason".to_owned())), (2, true), "{pairs:?}");
    assert_eq!(columns_of_versions(&night, "skipped").len(), 1, "a table without new columns stays as it is");

    // Nights of both releases can lose documents, and later nights still know the others.
    std::fs::write(night.path().join("ids"), "b\n").unwrap();
    nearprint_in(night.path(), &["store", "forget", "store", "--ids", "ids"]).expect_success();
    assert_eq!(check(&night)["status"], "sound");
    assert_eq!(says("2026-11-17"), ["a   ", "s   "]);
    let rows = [("a", &*texts["a"]), ("b", &texts["b"])];
    night.documents("2026-11-21", &rows).run("2026-11-21", &["--no-breakers"]).expect_success();
    assert_eq!(says("2026-11-21"), ["a same 2026-11-17 2026-11-19", "b new 2026-11-21 2026-11-21"]);
    // A night that is made anew says it too.
    assert_eq!(status(night.run("2026-11-18", &["--replace", "--no-breakers"])), "published");
    nearprint_in(night.path(), &["run", "--config", "job.toml", "--stale", "--no-breakers"]).expect_success();
    assert_eq!(says("2026-11-18"), ["c new 2026-11-18 2026-11-18", "d new 2026-11-18 2026-11-18"]);
    assert_eq!(status(night.run("2026-11-18", &[])), "already_published");
    assert_eq!(says("2026-11-20")[0], "a same 2026-11-17 2026-11-19");
    assert_eq!(check(&night)["status"], "sound");
}

#[test]
fn a_document_of_the_last_release_is_decided_again_when_its_representative_changes() {
    let night = of_the_last_release();
    let decisions = night.published("2026-11-18", "decisions");
    let [dropped] = &decisions.iter().filter(|row| row[1] == "drop").collect::<Vec<_>>()[..] else { panic!() };
    let (id, canonical) = (dropped[0].clone(), dropped[2].clone());
    night.documents("2026-11-20", &[(&canonical, &text(8, 40))]).run("2026-11-20", &["--no-breakers"]).expect_success();
    let again = night.published("2026-11-20", "redecided");
    let [row] = &again[..] else { panic!("{again:?}") };
    assert_eq!([&row[0], &row[1], &row[2], &row[8], &row[9]], [&id, "2026-11-18", "keep", &canonical, "changed"]);
    assert_eq!(check(&night)["status"], "sound");
    // The commit says that a reader must know what was decided again.
    let commits = snapshot(&night.path().join("store/_commits"));
    let newest = String::from_utf8(commits.values().next_back().unwrap().clone()).unwrap();
    assert!(newest.contains("\"redecides\":true"), "{newest}");
}

#[test]
fn a_store_of_a_release_before_0_2_0_is_refused_and_left_as_it_is() {
    let night = of_the_last_release();
    let commit = night.path().join("store/_commits/00000005.json");
    let content = std::fs::read_to_string(&commit).unwrap();
    let of_first_version = content.replacen("\"version\":2", "\"version\":1", 1);
    let (state, _) = content.rsplit_once(",\"sha256\":").unwrap();
    let bare = state.replacen("results/_nearprint/dt=2026-11-18", "results/dt=2026-11-18", 1);
    let sha256 = nearprint_storage::Sha256Hex::of(format!("{bare}}}\n").as_bytes()).0;
    let before_tables = format!("{bare},\"sha256\":\"{sha256}\"}}\n");
    for (content, said) in
        [(of_first_version, "commit version 1 is not 2"), (before_tables, "night 2026-11-18 are no tables")]
    {
        std::fs::write(&commit, content).unwrap();
        let before = snapshot(night.path());
        for refused in [
            night.run("2026-11-18", &[]),
            nearprint_in(night.path(), &["store", "info", "store"]),
            nearprint_in(night.path(), &["store", "gc", "store", "--grace-hours", "0"]),
        ] {
            expect(&refused, 78, &[said, "name another store and another output, and run its nights again"]);
        }
        assert_eq!(snapshot(night.path()), before);
    }
}
