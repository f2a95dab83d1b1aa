//! Reference stores: a night is joined with them as with earlier nights of its own, and never writes there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use nearprint_harness::random::Random;
use serde_json::Value;

use crate::support::{Night, Ran, expect, nearprint_in, text, write_documents};

/// Several crawls in one folder. Each has documents, a store and results of its own: `a-documents`, `a`, `a-results`.
struct Crawls(Night);

impl Crawls {
    fn new(job: &str) -> Self {
        Self(Night::new(job))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn pages(&self, crawl: &str, dt: &str, rows: &[(String, String)]) -> &Self {
        let rows: Vec<(&str, &str)> = rows.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect();
        self.documents(crawl, dt, &rows)
    }

    fn documents(&self, crawl: &str, dt: &str, rows: &[(&str, &str)]) -> &Self {
        let rows: Vec<_> = rows.iter().map(|(id, text)| (Some(*id), Some(*text))).collect();
        write_documents(&self.path().join(format!("{crawl}-documents/dt={dt}/part-0.parquet")), &rows);
        self
    }

    fn run(&self, crawl: &str, dt: &str, references: &[&str], more: &[&str]) -> Ran {
        let [documents, output] = ["documents", "results"].map(|part| format!("{crawl}-{part}"));
        let places = ["--documents", &documents, "--store", crawl, "--output", &output, "--no-breakers"];
        let references: Vec<&str> = references.iter().flat_map(|name| ["--reference", name]).collect();
        self.0.run(dt, &[&places[..], &references, more].concat())
    }

    fn published(&self, crawl: &str, dt: &str, dataset: &str) -> Vec<Vec<String>> {
        self.0.published_in(&format!("{crawl}-results"), dt, dataset)
    }

    /// Decision, canonical document, reason and reference store of a document.
    fn decision(&self, crawl: &str, dt: &str, id: &str) -> [String; 4] {
        let rows = self.published(crawl, dt, "decisions");
        let row = rows.iter().find(|row| row[0] == id).unwrap_or_else(|| panic!("{id} in {rows:?}"));
        [1, 2, 4, 8].map(|column| row[column].clone())
    }

    fn nearprint(&self, args: &[&str]) -> Ran {
        nearprint_in(self.path(), args)
    }

    /// Every file and folder of a place: when it was last changed, and what it holds.
    fn state(&self, place: &str) -> BTreeMap<PathBuf, (SystemTime, Vec<u8>)> {
        let mut state = BTreeMap::new();
        let mut open = vec![self.path().join(place)];
        while let Some(path) = open.pop() {
            let metadata = path.symlink_metadata().unwrap();
            let content = if metadata.is_dir() { Vec::new() } else { std::fs::read(&path).unwrap() };
            if metadata.is_dir() {
                open.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
            state.insert(path, (metadata.modified().unwrap(), content));
        }
        state
    }
}

fn status(done: Ran) -> String {
    done.expect_success().json()["status"].as_str().unwrap().to_owned()
}

/// Pages of a crawl, whose ids begin with its name: texts that recur in all crawls, near-duplicates of them, fuller ones,
/// short and empty ones.
fn pages(crawl: &str, seed: u64, n: u64) -> Vec<(String, String)> {
    let mut random = Random::new(seed);
    let mut made = BTreeMap::new();
    for _ in 0..n {
        let id = format!("{crawl}-{:03}", random.below(3 * n / 2));
        let mut words: Vec<String> = text(random.below(6), 70).split(' ').map(str::to_owned).collect();
        for _ in 0..random.below(4) {
            words[usize::try_from(random.below(70)).unwrap()] = format!("e{}", random.below(3));
        }
        for _ in 0..random.below(3) * random.below(8) {
            words.push(format!("more{}", random.below(1000)));
        }
        let page = match random.below(10) {
            0 => format!("short {}", random.below(5)),
            1 => " ".to_owned(),
            _ => words.join(" "),
        };
        made.insert(id, page);
    }
    made.into_iter().collect()
}

/// Expects of a night of `crawl` what the same night of `merged` has, whose store has the nights of the references too.
/// The id of a document begins with the name of its crawl. Returns how often a column names a reference.
fn expect_as_merged(crawls: &Crawls, crawl: &str, dt: &str) -> BTreeMap<&'static str, usize> {
    let mut n_named = BTreeMap::new();
    // The column of the existing document's id, and that of its reference.
    for (dataset, id, reference) in [("pairs", 1, 5), ("decisions", 2, 8), ("superseded", 0, 6)] {
        let (merged, own) = (crawls.published("merged", dt, dataset), crawls.published(crawl, dt, dataset));
        assert_eq!(merged.len(), own.len(), "{dt} {dataset}");
        for (one, other) in merged.iter().zip(&own) {
            assert_eq!(one[..reference], other[..reference], "{dt} {dataset}");
            let of = other[id].split('-').next().unwrap();
            let named = if of == crawl { "" } else { of };
            assert_eq!((one[reference].as_str(), other[reference].as_str()), ("", named), "{dt} {dataset}: {other:?}");
            *n_named.entry(dataset).or_default() += usize::from(!named.is_empty());
        }
    }
    assert_eq!(crawls.published("merged", dt, "skipped"), crawls.published(crawl, dt, "skipped"));
    n_named
}

#[test]
fn a_night_decides_as_with_one_store_that_has_the_nights_of_the_references_before() {
    let star = "max_lost_share = 0.1\n";
    for (job, pairs, compacted) in [
        (star, "forest", false),
        (star, "all", true),
        ("clusters = \"component\"\n", "forest", true),
        ("clusters = \"component\"\n", "all", false),
    ] {
        let crawls = Crawls::new(job);
        let nights = [("a", 10), ("a", 11), ("b", 12), ("b", 13), ("c", 15), ("c", 16)];
        let (mut n_named, mut existing) = (BTreeMap::<&str, usize>::new(), Vec::new());
        for (crawl, day) in nights {
            let dt = format!("2026-11-{day}");
            let rows = pages(crawl, day, 40);
            crawls.pages(crawl, &dt, &rows).pages("merged", &dt, &rows);
            let references: &[&str] = match crawl {
                "a" => &[],
                "b" => &["a"],
                _ => &["a", "b"],
            };
            let merged = crawls.run("merged", &dt, &[], &["--pairs", pairs]).expect_success().json();
            let own = crawls.run(crawl, &dt, references, &["--pairs", pairs, "--threads", "2"]).expect_success().json();
            for count in
                ["n_documents", "n_existing", "n_same_id", "n_pairs", "n_new_existing", "by_reason", "n_superseded"]
            {
                assert_eq!(merged[count], own[count], "{count} of {dt} with {pairs}");
            }
            for (dataset, n) in expect_as_merged(&crawls, crawl, &dt) {
                *n_named.entry(dataset).or_default() += n;
            }
            if crawl == "c" {
                existing.push(own["n_existing"].as_u64().unwrap());
                let named: Vec<&Value> = own["references"].as_array().unwrap().iter().map(|r| &r["store"]).collect();
                assert_eq!(named, ["a", "b"], "{own}");
            }
            if compacted && (crawl, day) == ("b", 13) {
                for store in ["a", "b"] {
                    crawls.nearprint(&["store", "compact", store, "--part-rows", "30"]).expect_success();
                }
            }
        }
        assert!(existing[0] > 50 && existing[1] > existing[0], "{existing:?}");
        assert!(n_named["pairs"] > 30 && n_named["decisions"] > 30, "{n_named:?}");
        assert!(job != star || n_named["superseded"] > 3, "{n_named:?}");
    }
}

#[test]
fn of_a_reference_the_nights_count_that_it_has_now() {
    let crawls = Crawls::new("max_lost_share = 0.1\n");
    for (day, n) in [(10, 150), (11, 40), (12, 40)] {
        let dt = format!("2026-11-{day}");
        crawls.pages("a", &dt, &pages("a", day, n)).run("a", &dt, &[], &[]).expect_success();
    }
    crawls.nearprint(&["store", "compact", "a", "--part-rows", "60"]).expect_success();
    let other = pages("a", 99, 30);
    crawls.pages("a", "2026-11-11", &other).run("a", "2026-11-11", &[], &["--replace"]).expect_success();
    crawls.nearprint(&["store", "drop-night", "a", "--dt", "2026-11-12"]).expect_success();
    let info = crawls.nearprint(&["store", "info", "a", "--json"]).expect_success().json();
    assert_eq!(
        (info["segments"][0]["n_runs"].as_u64(), info["segments"][0]["n_live_runs"].as_u64()),
        (Some(3), Some(1))
    );
    crawls.pages("merged", "2026-11-10", &pages("a", 10, 150)).pages("merged", "2026-11-11", &other);
    let rows = pages("c", 15, 60);
    crawls.pages("merged", "2026-11-15", &rows).pages("c", "2026-11-15", &rows);
    for day in [10, 11, 15] {
        crawls.run("merged", &format!("2026-11-{day}"), &[], &[]).expect_success();
    }
    let own = crawls.run("c", "2026-11-15", &["a"], &[]).expect_success().json();
    let reference = &own["references"][0];
    assert_eq!((&reference["n_nights"], &reference["n_existing"]), (&Value::from(2), &own["n_existing"]));
    assert!(expect_as_merged(&crawls, "c", "2026-11-15")["decisions"] > 10);
}

#[test]
fn nothing_is_ever_written_into_a_reference() {
    let crawls = Crawls::new("");
    for day in [10, 11] {
        let dt = format!("2026-11-{day}");
        crawls.pages("a", &dt, &pages("a", day, 40)).run("a", &dt, &[], &[]).expect_success();
    }
    let job = std::fs::read_to_string(crawls.path().join("job.toml")).unwrap() + "references = [\"a\"]\n";
    std::fs::write(crawls.path().join("job.toml"), job).unwrap();
    crawls.nearprint(&["store", "compact", "a"]).expect_success();
    // What a killed writer left is for those who write there.
    std::fs::write(crawls.path().join(format!("a/runs/.nearprint-{}.tmp", "x1".repeat(12))), "half").unwrap();
    let before = crawls.state("a");
    crawls.pages("c", "2026-11-15", &pages("c", 15, 40));
    let published = crawls.run("c", "2026-11-15", &[], &[]).expect_success().json();
    assert!(published["references"][0]["n_existing"].as_u64().unwrap() > 30, "{published}");
    assert_eq!(status(crawls.run("c", "2026-11-15", &[], &[])), "already_published");
    assert_eq!(status(crawls.run("c", "2026-11-15", &[], &["--replace"])), "already_published");
    crawls.pages("c", "2026-11-15", &pages("c", 16, 40));
    assert_eq!(crawls.run("c", "2026-11-15", &[], &[]).code, 73);
    assert_eq!(status(crawls.run("c", "2026-11-15", &[], &["--replace"])), "published");
    crawls.nearprint(&["check", "--config", "job.toml", "--store", "c"]).expect_success();
    crawls.nearprint(&["store", "compact", "c", "--config", "job.toml"]).expect_success();
    crawls.nearprint(&["store", "gc", "c", "--output", "c-results", "--grace-hours", "0"]).expect_success();
    assert!(crawls.state("a") == before, "the reference is as it was");
}

#[test]
fn references_that_cannot_be_joined_are_refused_before_any_work() {
    let crawls = Crawls::new("");
    let dt = "2026-11-15";
    crawls.documents("a", dt, &[("x", &text(1, 40))]).run("a", dt, &[], &[]).expect_success();
    crawls.documents("c", dt, &[("y", &text(2, 40))]);
    let other = std::fs::read_to_string(crawls.path().join("job.toml")).unwrap() + "profile = \"han-bigrams\"\n";
    std::fs::write(crawls.path().join("other.toml"), other).unwrap();
    let places = ["--documents", "a-documents", "--store", "other", "--output", "other-results"];
    crawls.nearprint(&[&["run", "--config", "other.toml", "--dt", dt], &places[..]].concat()).expect_success();
    crawls.nearprint(&["store", "init", "empty"]).expect_success();
    let before = crawls.state("a");
    let refused = |references: &[&str], more: &[&str], code: i32, parts: &[&str]| {
        expect(&crawls.run("c", dt, references, more), code, parts);
        assert!(!crawls.path().join("c").exists() && !crawls.path().join("c-results").exists(), "{references:?}");
    };
    let differs =
        "other: the store was made with another configuration: its `profile` is han-bigrams, this one's is default";
    refused(&["a", "other"], &[], 78, &[differs, "take it out of `references`"]);
    refused(&["nowhere"], &[], 66, &["no reference store at nowhere", "is mounted"]);
    refused(&["empty"], &[], 66, &["no reference store at empty", "at least one night"]);
    refused(&["a", "./a"], &[], 78, &["references: './a' is named twice"]);
    refused(&["c"], &[], 78, &["references: 'c' is the night's own store"]);
    refused(&["."], &[], 78, &["references: '.' holds or lies in store = 'c'"]);
    refused(&["c-results/a"], &[], 78, &["'c-results/a' holds or lies in output = 'c-results'"]);
    refused(&["a"], &["--spill-dir", "a/spill"], 78, &["'a' holds resources.spill_dir"]);
    refused(
        &["a"],
        &["--root", "c", "--root", "c-results", "--root", "c-documents"],
        64,
        &["references a lies outside"],
    );
    refused(&["~/a"], &[], 64, &["~"]);
    assert!(crawls.state("a") == before);
    // Without them it is a night; then there is a copy of its store, and a link to it.
    crawls.run("c", dt, &["a"], &[]).expect_success();
    assert!(Command::new("cp").args(["-a", "c", "copy"]).current_dir(crawls.path()).status().unwrap().success());
    std::os::unix::fs::symlink("c", crawls.path().join("link")).unwrap();
    crawls.documents("c", "2026-11-16", &[("z", &text(3, 40))]);
    for name in ["copy", "link"] {
        expect(&crawls.run("c", "2026-11-16", &[name], &[]), 78, &[name, "own store, or a copy of it"]);
    }
    let job = std::fs::read_to_string(crawls.path().join("job.toml")).unwrap() + "references = [\"$HOME/a\"]\n";
    std::fs::write(crawls.path().join("job.toml"), job).unwrap();
    expect(&crawls.run("c", "2026-11-16", &[], &[]), 78, &["references", "$HOME"]);
}

#[test]
fn an_id_of_a_reference_is_another_documents() {
    let crawls = Crawls::new("");
    let [one, two, three] = [1, 2, 3].map(|seed| text(seed, 60));
    crawls.documents("a", "2026-11-10", &[("s", "一二三"), ("x", &one), ("y", &two)]);
    crawls.run("a", "2026-11-10", &[], &[]).expect_success();
    crawls.documents("c", "2026-11-15", &[("s", "一二三"), ("x", &one), ("y", &three), ("z", &two)]);
    let done = crawls.run("c", "2026-11-15", &["a"], &["--pairs", "all"]).expect_success().json();
    assert_eq!((done["n_same_id"].as_u64(), done["n_existing"].as_u64()), (Some(0), Some(2)));
    assert_eq!(["n_new", "n_same", "n_changed"].map(|key| done[key].as_u64()), [4, 0, 0].map(Some));
    let of = |dt: &str, id: &str| crawls.decision("c", dt, id);
    assert_eq!(of("2026-11-15", "s"), ["drop", "s", "exact", "a"]);
    assert_eq!(of("2026-11-15", "x"), ["drop", "x", "exact", "a"]);
    assert_eq!(of("2026-11-15", "y"), ["keep", "", "unique", ""]);
    assert_eq!(of("2026-11-15", "z"), ["drop", "y", "exact", "a"]);
    let pair = |a: &str, b: &str| [a, b, "0", "0", "new_existing", "a", "near"].map(str::to_owned).to_vec();
    assert_eq!(crawls.published("c", "2026-11-15", "pairs"), [pair("x", "x"), pair("z", "y")]);

    let report = ["report", "--config", "job.toml", "--dt", "2026-11-15"];
    let job = std::fs::read_to_string(crawls.path().join("job.toml")).unwrap();
    let of_crawl = |place: &str| format!("\"c-{place}\"");
    let job = job.replace("\"documents\"", &of_crawl("documents")).replace("\"results\"", &of_crawl("results"));
    std::fs::write(crawls.path().join("job.toml"), job.replace("\"store\"", "\"c\"")).unwrap();
    let said = crawls.nearprint(&report).expect_success().stdout;
    assert!(
        said.contains("  keep  y  (reference a)\n") && said.contains("of these from a, 1 night at commit 1\n"),
        "{said}"
    );
    assert!(!said.contains(&three[..20]), "the text of another document: {said}");
    let said = crawls.nearprint(&["check", "--config", "job.toml"]).expect_success().stdout;
    assert!(said.contains("a: reference, with which 1 night was joined, up to its commit 1; not read\n"), "{said}");

    // A recrawl is one of its own store.
    crawls.documents("c", "2026-11-16", &[("x", &one), ("y", &two)]);
    let done = crawls.run("c", "2026-11-16", &["a"], &[]).expect_success().json();
    assert_eq!((done["n_same_id"].as_u64(), done["n_existing"].as_u64()), (Some(2), Some(3)));
    assert_eq!(["n_new", "n_same", "n_changed"].map(|key| done[key].as_u64()), [0, 1, 1].map(Some));
    assert_eq!(of("2026-11-16", "y"), ["drop", "y", "exact", "a"]);
}

#[test]
fn a_page_that_a_reference_does_not_contain_is_kept_as_fuller() {
    let crawls = Crawls::new("");
    let page = text(1, 100);
    let grown = format!("{page} {}", text(2, 15));
    crawls.documents("a", "2026-11-10", &[("p", &page)]).run("a", "2026-11-10", &[], &[]).expect_success();
    crawls.documents("c", "2026-11-15", &[("g", &grown), ("p", &page)]);
    crawls.run("c", "2026-11-15", &["a"], &[]).expect_success();
    assert_eq!(crawls.decision("c", "2026-11-15", "g"), ["keep", "", "fuller", ""]);
    assert_eq!(crawls.decision("c", "2026-11-15", "p"), ["drop", "p", "exact", "a"]);
    let superseded = crawls.published("c", "2026-11-15", "superseded");
    let [row] = &superseded[..] else { panic!("{superseded:?}") };
    assert_eq!((row[0].as_str(), row[1].as_str(), row[6].as_str()), ("p", "g", "a"));
}

#[test]
fn of_equal_documents_the_first_references_comes_first_and_the_own_stores_last() {
    let crawls = Crawls::new("");
    let page = text(1, 60);
    for crawl in ["a", "b", "c"] {
        crawls.documents(crawl, "2026-11-10", &[("s", "一二三"), ("x", &page)]);
        crawls.run(crawl, "2026-11-10", &[], &[]).expect_success();
    }
    crawls.documents("c", "2026-11-15", &[("m", "一二三"), ("n", &page)]);
    for references in [&["b", "a"][..], &["a", "b"], &["b"], &[]] {
        crawls.run("c", "2026-11-15", references, &["--replace", "--pairs", "all"]).expect_success();
        let first = references.first().copied().unwrap_or_default();
        assert_eq!(crawls.decision("c", "2026-11-15", "n"), ["drop", "x", "exact", first]);
        assert_eq!(crawls.decision("c", "2026-11-15", "m"), ["drop", "s", "exact", first]);
        let pairs = crawls.published("c", "2026-11-15", "pairs");
        let named: Vec<&str> = pairs.iter().map(|row| row[5].as_str()).collect();
        assert_eq!(named, [references, &[""]].concat());
    }
}

#[test]
fn a_reference_that_advanced_makes_another_request_and_no_stale_night() {
    let crawls = Crawls::new("");
    let [one, two] = [1, 2].map(|seed| text(seed, 60));
    for (dt, page) in [("2026-11-10", &one), ("2026-11-11", &two)] {
        crawls.documents("a", dt, &[(dt, page)]);
    }
    crawls.run("a", "2026-11-10", &[], &[]).expect_success();
    crawls.documents("c", "2026-11-15", &[("m", &one), ("n", &two)]);
    crawls.run("c", "2026-11-15", &["a"], &[]).expect_success();
    let stale = || {
        let info = crawls.nearprint(&["store", "info", "c", "--json"]).expect_success().json();
        info["nights"].as_array().unwrap().iter().filter(|night| night["stale"] == true).count()
    };
    let reference =
        |done: &Value| [&done["references"][0]["commit"], &done["references"][0]["n_nights"]].map(Value::as_u64);
    assert_eq!(crawls.decision("c", "2026-11-15", "n"), ["keep", "", "unique", ""]);
    assert_eq!(status(crawls.run("c", "2026-11-15", &["a"], &[])), "already_published");
    expect(&crawls.run("c", "2026-11-15", &[], &[]), 73, &["published from other references"]);
    crawls.run("a", "2026-11-11", &[], &[]).expect_success();
    expect(&crawls.run("c", "2026-11-15", &["a"], &[]), 73, &["published from other references", "--replace"]);
    assert_eq!(stale(), 0);
    // Another commit with the same nights is the same reference.
    crawls.nearprint(&["store", "compact", "a"]).expect_success();
    let joined = crawls.run("c", "2026-11-15", &["a"], &["--replace"]).expect_success().json();
    assert_eq!((joined["status"].as_str(), reference(&joined)), (Some("published"), [Some(3), Some(2)]));
    assert_eq!(crawls.decision("c", "2026-11-15", "n"), ["drop", "2026-11-11", "exact", "a"]);
    crawls.nearprint(&["store", "gc", "a", "--grace-hours", "0"]).expect_success();
    let again = crawls.run("c", "2026-11-15", &["a"], &[]).expect_success().json();
    assert_eq!((again["status"].as_str(), reference(&again)), (Some("already_published"), [Some(3), Some(2)]));
    // A late night sees all nights of a reference too, and the nights of its own store that are earlier.
    crawls.documents("c", "2026-11-09", &[("l", &two)]);
    crawls.run("c", "2026-11-09", &["a"], &["--late"]).expect_success();
    assert_eq!(crawls.decision("c", "2026-11-09", "l"), ["drop", "2026-11-11", "exact", "a"]);
    assert_eq!(stale(), 1, "the night after the late one");
    let manifest = |dt: &str| {
        let folder = nearprint_harness::folder::current(&crawls.path().join("c-results"), dt).unwrap();
        serde_json::from_slice::<Value>(&std::fs::read(folder.join("manifest.json")).unwrap()).unwrap()
    };
    assert_eq!(manifest("2026-11-15")["references"], joined["references"]);
    crawls.documents("c", "2026-11-17", &[("q", "no reference")]).run("c", "2026-11-17", &[], &[]).expect_success();
    assert_eq!(manifest("2026-11-17").get("references"), None);
}

#[test]
fn a_stale_night_is_made_again_with_the_references_that_it_had() {
    let crawls = Crawls::new("");
    let [one, two, three] = [1, 2, 3].map(|seed| text(seed, 60));
    crawls.documents("a", "2026-11-10", &[("z", &one)]).run("a", "2026-11-10", &[], &[]).expect_success();
    crawls.documents("c", "2026-11-15", &[("m", &two)]).run("c", "2026-11-15", &["a"], &[]).expect_success();
    crawls.documents("c", "2026-11-16", &[("n", &one)]).run("c", "2026-11-16", &["a"], &[]).expect_success();
    crawls.documents("c", "2026-11-15", &[("m", &three)]);
    crawls.run("c", "2026-11-15", &["a"], &["--replace"]).expect_success();
    let places = ["run", "--config", "job.toml", "--store", "c", "--output", "c-results", "--no-breakers", "--stale"];
    let would = crawls.nearprint(&[&places[..], &["--dry-run"]].concat()).expect_success();
    assert!(would.stdout.contains("run --config job.toml --store c --output c-results --stale"), "{}", would.stdout);
    let done = crawls.nearprint(&places).expect_success();
    assert!(done.stderr.contains("it was made with the references a, and keeps that"), "{}", done.stderr);
    assert!(done.stdout.contains("nearprint check --store c"), "{}", done.stdout);
    assert_eq!(crawls.decision("c", "2026-11-16", "n"), ["drop", "z", "exact", "a"]);
}

#[test]
fn damage_in_a_reference_is_named_and_nothing_is_published() {
    let crawls = Crawls::new("");
    crawls.pages("a", "2026-11-10", &pages("a", 10, 40)).run("a", "2026-11-10", &[], &[]).expect_success();
    crawls.pages("c", "2026-11-15", &pages("c", 15, 40));
    let files: Vec<PathBuf> =
        crawls.state("a/runs").into_keys().filter(|path| path.to_string_lossy().contains("/fingerprints/")).collect();
    let file = files.iter().find(|path| path.is_file()).unwrap();
    let content = std::fs::read(file).unwrap();
    std::fs::write(file, &content[1..]).unwrap();
    expect(&crawls.run("c", "2026-11-15", &["a"], &[]), 65, &["a/runs/", "fingerprints/part-00000.parquet", "damaged"]);
    assert!(!crawls.path().join("c-results/decisions/dt=2026-11-15").exists());
    std::fs::write(file, content).unwrap();
    assert_eq!(status(crawls.run("c", "2026-11-15", &["a"], &[])), "published");
}

#[test]
fn an_orphan_may_be_dropped_for_a_document_of_a_reference_and_is_no_dependent_of_the_own_store_then() {
    let crawls = Crawls::new("");
    let fox = text(1, 60);
    crawls.documents("other", "2026-11-10", &[("x", &fox)]).run("other", "2026-11-10", &[], &[]).expect_success();
    crawls
        .documents("own", "2026-11-11", &[("x", &fox), ("y", &fox)])
        .run("own", "2026-11-11", &[], &[])
        .expect_success();
    crawls.documents("own", "2026-11-12", &[("x", &text(2, 60))]);
    crawls.run("own", "2026-11-12", &["other"], &[]).expect_success();
    let again = crawls.published("own", "2026-11-12", "redecided");
    let [row] = &again[..] else { panic!("{again:?}") };
    let expected = ["y", "2026-11-11", "drop", "x", "0", "exact", "0.0", "other", "x", "changed", "x"];
    assert_eq!(row[..], expected);
    crawls.documents("own", "2026-11-13", &[("x", &text(3, 60))]);
    crawls.run("own", "2026-11-13", &["other"], &[]).expect_success();
    assert!(crawls.published("own", "2026-11-13", "redecided").is_empty());
}
