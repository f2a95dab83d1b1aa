//! Circuit breakers: a night that looks unlike any crawl is not published unless somebody says so.

use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray};

use crate::support::{Night, Ran, nearprint_in, text, write_parquet};

const DT: &str = "2026-11-20";

/// Texts that are near-duplicates of each other, none of them equal.
fn varied(seed: u64, n: usize) -> Vec<String> {
    let base = text(seed, 150);
    (0..n).map(|i| format!("{base} v{i}")).collect()
}

fn documents(night: &Night, dt: &str, rows: &[(String, String)]) {
    let rows: Vec<(&str, &str)> = rows.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect();
    night.documents(dt, &rows);
}

fn named(prefix: &str, texts: &[String]) -> Vec<(String, String)> {
    texts.iter().enumerate().map(|(i, text)| (format!("{prefix}{i:05}"), text.clone())).collect()
}

fn expect_stopped(night: &Night, done: &Ran, name: &str, flag: &str) {
    assert_eq!(done.code, 65, "{}{}", done.stdout, done.stderr);
    let summary = done.json();
    assert_eq!((summary["status"].as_str(), summary["exit_code"].as_u64()), (Some("stopped"), Some(65)), "{summary}");
    let names: Vec<&str> =
        summary["breakers"].as_array().unwrap().iter().map(|b| b["name"].as_str().unwrap()).collect();
    assert_eq!(names, [name], "{summary}");
    assert!(done.error().contains(&format!("breakers.{name}")) && done.error().contains(flag), "{}", done.stderr);
    assert!(done.stdout.len() < 4096, "{}", done.stdout.len());
    assert!(!night.path().join(format!("results/decisions/dt={DT}")).exists());
}

#[test]
fn a_cluster_of_many_different_texts_stops_the_night() {
    let night = Night::new("[breakers]\nmax_cluster = 20\n");
    documents(&night, DT, &named("d", &varied(1, 21)));
    let done = night.run(DT, &[]);
    expect_stopped(&night, &done, "max_cluster", "--max-cluster");
    assert!(!night.path().join("store").exists());
    let evidence = &done.json()["breakers"][0]["evidence"];
    assert_eq!((evidence["cluster_id"].as_str(), evidence["n_texts"].as_u64()), (Some("d00000"), Some(21)));
    assert_eq!(evidence["ids"].as_array().unwrap().len(), 5);
    assert!(done.error().contains("'d00000', 'd00001'"), "the message names some: {}", done.stderr);
    let next = format!("nearprint explain --config job.toml --documents documents/dt={DT} -- d00000 d00001");
    assert_eq!(done.json()["next"], next.as_str());
    let words: Vec<&str> = next.split(' ').skip(1).collect();
    nearprint_in(night.path(), &words).expect_success();
    let raised = night.run(DT, &["--max-cluster", "21"]).expect_success().json();
    assert_eq!(
        (raised["status"].as_str(), raised["measured"]["largest_cluster"]["n_texts"].as_u64()),
        (Some("published"), Some(21))
    );
    for off in [&["--max-cluster", "0"][..], &["--no-breakers"]] {
        let night = Night::new("[breakers]\nmax_cluster = 20\n");
        documents(&night, DT, &named("d", &varied(1, 21)));
        night.run(DT, off).expect_success();
    }
}

#[test]
fn a_next_command_takes_ids_for_nothing_but_ids_and_none_with_control_characters() {
    let with_ids = |ids: [&str; 2]| {
        let night = Night::new("[breakers]\nmax_cluster = 1\n");
        let rows: Vec<_> = ids.iter().map(|id| (*id).to_owned()).zip(varied(1, 2)).collect();
        documents(&night, DT, &rows);
        (night.run(DT, &[]).json()["next"].clone(), night)
    };
    let (next, night) = with_ids(["--json", "it"]);
    let words: Vec<&str> = next.as_str().unwrap().split(' ').skip(1).collect();
    nearprint_in(night.path(), &words).expect_success();
    assert_eq!(with_ids(["a\u{1b}[31m", "b\nc"]).0, serde_json::Value::Null);
}

#[test]
fn copies_of_one_text_stop_a_night_only_where_a_source_has_little_else() {
    let job = "[breakers]\nmax_cluster = 20\nmin_source_documents = 10\n";
    let same = text(1, 400);
    let copies = |n: usize| (0..n).map(|i| (format!("https://example.com/one?session={i}"), same.clone()));
    let others = (0..300).map(|i| (format!("https://example.com/{i}"), text(100 + i, 60)));
    let night = Night::new(job);
    documents(&night, DT, &copies(2000).chain(others).collect::<Vec<_>>());
    let summary = night.run(DT, &[]).expect_success().json();
    assert_eq!(summary["measured"]["largest_cluster"]["n_documents"], 2000);
    assert_eq!(summary["measured"]["largest_cluster"]["n_texts"], 1);
    assert_eq!(summary["breakers"], serde_json::json!([]));

    let others = (0..200).map(|i| (format!("https://example.com/{i}"), text(100 + i, 60)));
    let night = Night::new(job);
    documents(&night, DT, &copies(2000).chain(others).collect::<Vec<_>>());
    let done = night.run(DT, &[]);
    expect_stopped(&night, &done, "max_text_share", "--max-text-share");
    let evidence = &done.json()["breakers"][0]["evidence"];
    assert_eq!((&evidence["source"], &evidence["n_of_text"]), (&"example.com".into(), &2000.into()));
    night.run(DT, &["--max-text-share", "0.95"]).expect_success();
}

/// Documents without a source, of which some have a text of their own.
fn repeating(dt: &str, n: usize, n_texts: usize) -> Vec<(String, String)> {
    (0..n).map(|i| (format!("{dt}-{i:05}"), text((i % n_texts) as u64, 60))).collect()
}

#[test]
fn a_first_night_of_few_texts_is_stopped() {
    let night = Night::new("[breakers]\nmin_source_documents = 100\n");
    documents(&night, DT, &repeating(DT, 300, 3));
    let done = night.run(DT, &[]);
    expect_stopped(&night, &done, "min_kept_share", "--min-kept-share");
    let evidence = &done.json()["breakers"][0]["evidence"];
    assert_eq!((evidence["share"].as_f64(), evidence["n_documents"].as_u64()), (Some(0.01), Some(300)));
    night.run(DT, &["--min-kept-share", "0.01"]).expect_success();
    // What is too small for a share says nothing.
    let night = Night::new("");
    documents(&night, DT, &repeating(DT, 300, 3));
    night.run(DT, &[]).expect_success();
}

#[test]
fn a_night_of_far_fewer_texts_than_the_nights_before_is_stopped_though_most_are_always_dropped() {
    let night = Night::new("[breakers]\nmax_source_fall = 1\nmax_text_share = 1\n");
    let of_site = |dt: &str, n_texts: u64| -> Vec<(String, String)> {
        // New texts each night.
        let seed = dt.bytes().map(u64::from).sum::<u64>() * 1000;
        (0..300).map(|i| (format!("https://example.com/{dt}/{i}"), text(seed + i % n_texts, 400))).collect()
    };
    for dt in ["2026-11-17", "2026-11-18", "2026-11-19"] {
        documents(&night, dt, &of_site(dt, 60));
        night.run(dt, &[]).expect_success();
    }
    documents(&night, DT, &of_site(DT, 11));
    let done = night.run(DT, &[]);
    expect_stopped(&night, &done, "max_kept_fall", "--max-kept-fall");
    let evidence = &done.json()["breakers"][0]["evidence"];
    assert_eq!((evidence["n_nights"].as_u64(), evidence["median"].as_f64()), (Some(3), Some(0.2)), "{evidence}");
    night.run(DT, &["--max-kept-fall", "0.9"]).expect_success();
}

#[test]
fn a_source_of_far_fewer_texts_than_before_stops_a_night_that_is_usual_as_a_whole() {
    let night = Night::new("[breakers]\nmin_source_documents = 100\n");
    let night_of = |n_texts: usize| -> Vec<(String, String)> {
        let usual = (0..900).map(|i| (format!("https://usual.example/{i}"), text(5_000 + i, 60)));
        let site = (0..100).map(|i| (format!("https://site.example/{i}"), text((i % n_texts) as u64, 400)));
        usual.chain(site).collect()
    };
    for dt in ["2026-11-17", "2026-11-18", "2026-11-19"] {
        documents(&night, dt, &night_of(100));
        night.run(dt, &[]).expect_success();
    }
    documents(&night, DT, &night_of(9));
    let done = night.run(DT, &["--max-text-share", "1"]);
    expect_stopped(&night, &done, "max_source_fall", "--max-source-fall");
    assert_eq!(done.json()["breakers"][0]["evidence"]["source"], "site.example");
    let run = night.run(DT, &["--max-source-fall", "1"]).expect_success().json();

    // A report measures it again, from what is published. Which texts a cluster has is not.
    let report = |more: &[&str]| {
        let args = [&["report", "--config", "job.toml", "--dt", DT, "--html", "page.html"][..], more].concat();
        nearprint_in(night.path(), &args).expect_success()
    };
    let published = |mut summary: serde_json::Value| {
        let mut measured = summary["measured"].take();
        measured.as_object_mut().unwrap().remove("largest_cluster");
        measured
    };
    assert_eq!(published(report(&["--json"]).json()), published(run));
    let said = report(&[]).stdout;
    let beyond =
        "in the nights before: more than a fall of 90.0 % stops a night, and this is beyond it (max_source_fall)";
    assert!(said.contains(beyond), "{said}");
    let page = std::fs::read_to_string(night.path().join("page.html")).unwrap();
    let beyond = "The breaker max_source_fall was beyond its limit: 91.0 % (100.0 % → 9.0 %) of source site.example";
    assert!(page.contains(beyond) && page.contains(" (beyond the limit)"), "{page}");
}

#[test]
fn a_report_measures_the_losses_of_all_sources_and_not_of_those_alone_that_lost_most() {
    let night = Night::new("[breakers]\nmin_source_documents = 5\n");
    let mut rows = named("https://small.example/", &varied(99, 6));
    for source in 0..10 {
        rows.extend(named(&format!("https://large{source}.example/"), &varied(source, 7)));
        let own: Vec<String> = (0..14).map(|i| text(1000 + source * 100 + i, 60)).collect();
        rows.extend(named(&format!("https://large{source}.example/own/"), &own));
    }
    documents(&night, DT, &rows);
    let run = night.run(DT, &[]).expect_success().json();
    let reported = nearprint_in(night.path(), &["report", "--config", "job.toml", "--dt", DT, "--json"]);
    let reported = reported.expect_success().json();
    let is_listed = reported["sources"].as_array().unwrap().iter().any(|source| source["source"] == "small.example");
    assert!(!is_listed, "ten others lost more documents: {reported}");
    let worst = &reported["measured"]["worst_sources"];
    assert_eq!((&worst[0]["source"], worst), (&"small.example".into(), &run["measured"]["worst_sources"]));
}

#[test]
fn a_source_that_loses_nearly_everything_stops_the_night() {
    let job = "[breakers]\nmin_source_documents = 50\n";
    let rows = |night: &Night| {
        let mut rows = named("https://Shop.example:8080/item/", &varied(1, 60));
        rows.extend(named("http://user@other.example/", &(0..60).map(|i| text(100 + i, 60)).collect::<Vec<_>>()));
        // Too few to be looked at, and no URLs.
        rows.extend(named("https://small.example/", &varied(2, 10)));
        rows.extend(named("plain", &(0..60).map(|i| text(300 + i, 60)).collect::<Vec<_>>()));
        documents(night, DT, &rows);
    };
    let night = Night::new(job);
    rows(&night);
    let done = night.run(DT, &[]);
    expect_stopped(&night, &done, "max_source_loss", "--max-source-loss");
    let summary = done.json();
    let sources = summary["breakers"][0]["evidence"].as_array().unwrap();
    assert_eq!(sources.len(), 1, "{sources:?}");
    assert_eq!(sources[0]["source"], "shop.example");
    assert_eq!((sources[0]["n_documents"].as_u64(), sources[0]["n_near"].as_u64()), (Some(60), Some(59)));
    assert!(done.error().contains("shop.example"), "{}", done.stderr);
    night.run(DT, &["--max-source-loss", "0.99"]).expect_success();
    let night = Night::new(job);
    rows(&night);
    night.run(DT, &["--max-source-loss", "1"]).expect_success();
}

/// Id, text and feed.
type Row = (String, String, Option<String>);

#[test]
fn sources_are_those_of_a_column_where_one_is_named() {
    // The feed of the near-duplicates has too few documents in either file alone; its name is a string, and in the JSONL file too.
    let near = varied(1, 60);
    let row = |i: usize, text: &str| (format!("{i:05}"), text.to_owned(), (i % 3 != 2).then(|| "Feed A".to_owned()));
    let other: Vec<_> = (0..40).map(|i| (format!("other{i}"), text(500 + i, 60), None)).collect();
    let rows: Vec<Row> = near.iter().enumerate().map(|(i, text)| row(i, text)).chain(other).collect();
    let night = Night::new("source_column = \"feed\"\n[breakers]\nmin_source_documents = 30\n");
    let (parquet, jsonl) = rows.split_at(30);
    let column =
        |of: fn(&Row) -> Option<&str>| -> ArrayRef { Arc::new(parquet.iter().map(of).collect::<StringArray>()) };
    let folder = night.path().join(format!("documents/dt={DT}"));
    let columns =
        [("id", column(|r| Some(&r.0))), ("text", column(|r| Some(&r.1))), ("feed", column(|r| r.2.as_deref()))];
    write_parquet(&folder.join("a.parquet"), &columns);
    let lines =
        jsonl.iter().map(|(id, text, feed)| serde_json::json!({"id": id, "text": text, "feed": feed}).to_string());
    std::fs::write(folder.join("b.jsonl"), lines.collect::<Vec<_>>().join("\n")).unwrap();

    let done = night.run(DT, &[]);
    expect_stopped(&night, &done, "max_source_loss", "--max-source-loss");
    let summary = done.json();
    let sources = summary["breakers"][0]["evidence"].as_array().unwrap();
    let figures = |at: usize| {
        let source = &sources[at];
        (source["source"].as_str(), source["n_documents"].as_u64(), source["n_near"].as_u64())
    };
    // Of the near-duplicates the first is kept, and every third has no feed, as all others.
    assert_eq!((sources.len(), figures(0)), (1, (Some("Feed A"), Some(40), Some(39))), "{sources:?}");
    let passed = night.run(DT, &["--max-source-loss", "0.98"]).expect_success().json();
    assert_eq!(passed["measured"]["worst_sources"][1]["source"], "-", "{passed}");
    assert_eq!(passed["measured"]["worst_sources"][1]["n_documents"], 60, "{passed}");

    // A column of sources without a value: hosts do not stand in for them.
    let night = Night::new("source_column = \"feed\"\n[breakers]\nmin_source_documents = 30\n");
    let folder = night.path().join(format!("documents/dt={DT}"));
    let urls: StringArray = (0..40).map(|i| Some(format!("https://example.com/{i}"))).collect();
    let texts: StringArray = near[..40].iter().map(Some).collect();
    let none: StringArray = (0..40).map(|_| None::<&str>).collect();
    let columns = [("id", Arc::new(urls) as ArrayRef), ("text", Arc::new(texts)), ("feed", Arc::new(none))];
    write_parquet(&folder.join("a.parquet"), &columns);
    let done = night.run(DT, &[]);
    expect_stopped(&night, &done, "max_source_loss", "--max-source-loss");
    assert_eq!(done.json()["breakers"][0]["evidence"][0]["source"], "-");

    write_parquet(&folder.join("a.parquet"), &columns[..2]);
    let done = night.run(DT, &["--replace"]);
    assert_eq!(done.code, 65, "{}", done.stderr);
    assert!(
        done.error().contains("a.parquet: no column 'feed'") && done.error().contains("source_column"),
        "{}",
        done.stderr
    );
}

#[test]
fn a_share_of_drops_unlike_the_nights_before_stops_the_night() {
    let night = Night::new("");
    let unique = |seed: u64| (0..20).map(|i| text(seed * 1000 + i, 60)).collect::<Vec<_>>();
    let copies = || {
        let same = text(9, 60);
        (0..20).map(|i| if i < 10 { same.clone() } else { text(90_000 + i, 60) }).collect::<Vec<_>>()
    };
    let earlier = ["2026-11-15", "2026-11-16", "2026-11-17"];
    for (i, dt) in (1..).zip(earlier) {
        if i == 3 {
            // Two nights before are too few to compare with.
            documents(&night, dt, &named(&format!("n{i}-"), &copies()));
            assert_eq!(night.run(dt, &[]).expect_success().json()["measured"]["drop_rate"], serde_json::Value::Null);
            documents(&night, dt, &named(&format!("n{i}-"), &unique(i)));
            night.run(dt, &["--replace"]).expect_success();
        } else {
            documents(&night, dt, &named(&format!("n{i}-"), &unique(i)));
            night.run(dt, &[]).expect_success();
        }
    }
    documents(&night, DT, &named("today-", &copies()));
    let done = night.run(DT, &[]);
    expect_stopped(&night, &done, "max_rate_change", "--max-rate-change");
    let evidence = &done.json()["breakers"][0]["evidence"];
    assert_eq!((evidence["share"].as_f64(), evidence["median"].as_f64()), (Some(0.45), Some(0.0)), "{evidence}");
    // A manifest that is gone is left out of the median, which then has too few nights.
    let manifest = night.generation("2026-11-16").join("manifest.json");
    let content = std::fs::read(&manifest).unwrap();
    std::fs::remove_file(&manifest).unwrap();
    let warned = night.run(DT, &[]).expect_success();
    assert!(warned.stderr.contains("2026-11-16"), "{}", warned.stderr);
    std::fs::write(&manifest, content).unwrap();
    let raised = night.run(DT, &["--replace", "--max-rate-change", "0.5"]).expect_success().json();
    assert_eq!(raised["measured"]["drop_rate"]["n_nights"], 3);
    assert_eq!(night.run(DT, &["--replace"]).code, 65);
    night.run(DT, &["--replace", "--no-breakers"]).expect_success();
}

#[test]
fn near_duplicates_that_lose_much_on_average_stop_the_night() {
    let rows = |n| named("d", &varied(1, n));
    let night = Night::new("[breakers]\nmax_mean_lost_share = 0.001\n");
    documents(&night, DT, &rows(130));
    let done = night.run(DT, &[]);
    expect_stopped(&night, &done, "max_mean_lost_share", "--max-mean-lost-share");
    let evidence = &done.json()["breakers"][0]["evidence"];
    let (n_near, mean) = (evidence["n_near"].as_u64().unwrap(), evidence["mean"].as_f64().unwrap());
    assert!(n_near >= 100 && mean > 0.001 && mean < 0.03, "{evidence}");
    night.run(DT, &["--max-mean-lost-share", "0.03"]).expect_success();
    let (few, any) = (rows(90), rows(130));
    for (job, rows) in [("", &few), ("max_lost_share = 1\n", &any)] {
        let night = Night::new(&format!("{job}[breakers]\nmax_mean_lost_share = 0.001\n"));
        documents(&night, DT, rows);
        let passed = night.run(DT, &[]).expect_success().json();
        assert_eq!(passed["measured"]["lost_share"], serde_json::Value::Null, "{job}");
    }
}

#[test]
fn limits_that_are_no_shares_are_refused() {
    let night = Night::new("[breakers]\nmax_rate_change = 1.5\n");
    documents(&night, DT, &named("d", &[text(1, 60)]));
    let job = night.run(DT, &[]);
    assert_eq!(job.code, 78, "{}", job.stderr);
    assert!(job.error().contains("breakers.max_rate_change"), "{}", job.stderr);
    let flag = nearprint_in(night.path(), &["run", "--config", "job.toml", "--dt", DT, "--max-source-loss", "2"]);
    assert_eq!(flag.code, 64);
}

fn few(prefix: &str, n: u64) -> Vec<(String, String)> {
    named(prefix, &(0..n).map(|i| text(10_000 + i, 60)).collect::<Vec<_>>())
}

#[test]
fn a_night_with_a_small_share_of_the_usual_documents_is_stopped() {
    let night = Night::new("");
    for (i, dt) in ["2026-11-16", "2026-11-17", "2026-11-18", "2026-11-19"].into_iter().enumerate() {
        if i == 2 {
            // Two nights before are too few to compare with.
            documents(&night, dt, &few("few", 2));
            assert_eq!(night.run(dt, &[]).expect_success().json()["measured"]["documents"], serde_json::Value::Null);
            documents(&night, dt, &few(dt, 40));
            night.run(dt, &["--replace"]).expect_success();
        } else {
            documents(&night, dt, &few(dt, 40));
            night.run(dt, &[]).expect_success();
        }
    }
    documents(&night, DT, &few("few", 3));
    let done = night.run(DT, &[]);
    expect_stopped(&night, &done, "min_document_share", "--min-document-share");
    let share = "3 documents; the median of the nights before is 40, and a night must have at least 10.0 % of it";
    assert!(done.error().contains(share), "{}", done.stderr);
    let evidence = &done.json()["breakers"][0]["evidence"];
    assert_eq!((evidence["n_documents"].as_u64(), evidence["n_nights"].as_u64()), (Some(3), Some(4)), "{evidence}");
    let near = nearprint_in(night.path(), &["run", "--config", "job.toml", "--dt", DT, "--min-document-share", "0.05"]);
    assert!(near.expect_success().stdout.contains(
        "documents, 40 in the nights before: less than 5.0 % of that would have stopped the night (min_document_share)"
    ));
    documents(&night, DT, &few("few", 4));
    night.run(DT, &["--replace"]).expect_success();
}

#[test]
fn a_night_without_documents_after_others_is_stopped_unless_it_may_be_empty() {
    let empty = |job: &str| {
        let night = Night::new(job);
        documents(&night, "2026-11-19", &few("a", 5));
        night.run("2026-11-19", &[]).expect_success();
        documents(&night, DT, &[]);
        night
    };
    let night = empty("");
    expect_stopped(&night, &night.run(DT, &[]), "min_document_share", "--min-document-share");
    night.run(DT, &["--min-document-share", "0"]).expect_success();
    empty("").run(DT, &["--no-breakers"]).expect_success();
    empty("allow_empty = true\n").run(DT, &[]).expect_success();
    // The first night of a store may be anything.
    let night = Night::new("");
    documents(&night, DT, &[]);
    night.run(DT, &[]).expect_success();
}

#[test]
fn a_usual_night_says_nothing_of_breakers_and_one_that_comes_near_does() {
    let said = |n: usize| {
        let night = Night::new("[breakers]\nmax_cluster = 20\n");
        documents(&night, DT, &named("d", &varied(1, n)));
        let config = ["run", "--config", "job.toml", "--dt", DT];
        nearprint_in(night.path(), &config).expect_success().stdout
    };
    let usual = said(10);
    assert!(!usual.contains("Look at") && !usual.contains("different texts"), "{usual}");
    let near = said(11);
    let said =
        "\nLook at\n  11 different texts in cluster d00000: more than 20 would have stopped the night (max_cluster)\n";
    assert!(near.contains(said) && !near.contains("breaker"), "{near}");
}
