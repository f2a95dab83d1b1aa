//! Revisit records of WARC files: pages that are alive with the text of another record.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use nearprint_harness::random::Random;
use serde_json::{Value, json};

use crate::support::{self, Night, expect, nearprint_in, text};
use crate::warc::{HTML, gzip, page, record, response};

const NIGHTS: [&str; 4] = ["2026-11-20", "2026-11-21", "2026-11-22", "2026-11-23"];

const A: &str = "https://a.org/1";
const B: &str = "https://b.org/1";
const C: &str = "https://c.org/1";

const OF_HTML: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";

/// A revisit of a page, which has the text of another one or of its own earlier record.
fn revisit(url: &str, of: Option<&str>) -> Vec<u8> {
    revisit_with(url, &of.map_or(String::new(), |of| format!("WARC-Refers-To-Target-URI: {of}\r\n")))
}

/// A revisit of a page, which has the text that another one had at a time.
fn revisit_of_time(url: &str, of: &str, time: &str) -> Vec<u8> {
    revisit_with(url, &format!("WARC-Refers-To-Target-URI: {of}\r\nWARC-Refers-To-Date: {time}\r\n"))
}

fn revisit_with(url: &str, fields: &str) -> Vec<u8> {
    let fields = format!("Content-Type: application/http; msgtype=response\r\n{fields}");
    record("revisit", url, &fields, OF_HTML.as_bytes())
}

/// Writes a file of some records. Returns its bytes.
fn write(night: &Night, dt: &str, name: &str, records: &[Vec<u8>]) -> usize {
    let path = night.path().join(format!("documents/dt={dt}/{name}"));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let file: Vec<u8> = records.iter().flat_map(|record| gzip(record)).collect();
    std::fs::write(path, &file).unwrap();
    file.len()
}

/// Publishes a night of some records, and returns its summary.
fn run(night: &Night, dt: &str, records: &[Vec<u8>]) -> Value {
    write(night, dt, "a.warc.gz", records);
    night.run(dt, &["--no-breakers"]).expect_success().json()
}

/// (decision, canonical id, reason, `recrawl`, `first_seen`, `last_changed`, `revisit`) of a document.
fn decided(night: &Night, dt: &str, id: &str) -> [String; 7] {
    let rows = night.published(dt, "decisions");
    let row = rows.iter().find(|row| row[0] == id).unwrap_or_else(|| panic!("{dt} has no {id}"));
    [1, 2, 4, 9, 10, 11, 12].map(|column| row[column].clone())
}

fn ids(night: &Night, dt: &str) -> Vec<String> {
    night.published(dt, "decisions").into_iter().map(|row| row[0].clone()).collect()
}

fn filtered(night: &Night, args: &[&str], output: &str) -> support::Ran {
    nearprint_in(night.path(), &[&["filter", "--config", "job.toml", "--json", "--output", output], args].concat())
}

#[test]
fn a_page_that_never_changes_is_not_forgotten_and_its_copy_stays_dropped() {
    let night = Night::new("keep_nights = 2\n");
    run(&night, NIGHTS[0], &[page(A, &text(1, 80)), page(B, &text(1, 80))]);
    for dt in &NIGHTS[1..] {
        let summary = run(&night, dt, &[revisit(A, None), page(B, &text(1, 80)), page(C, &text(2, 80))]);
        assert_eq!(
            (&summary["n_revisits"], &summary["n_unknown_revisits"], &summary["n_passed_records"]),
            (&json!(1), &Value::Null, &Value::Null)
        );
        let [decision, _, _, recrawl, first_seen, last_changed, revisit] = decided(&night, dt, A);
        assert_eq!([&decision, &recrawl, &first_seen, &last_changed], ["keep", "same", NIGHTS[0], NIGHTS[0]]);
        assert_eq!((revisit.as_str(), decided(&night, dt, B)[6].as_str()), ("true", "false"));
        assert_eq!(decided(&night, dt, B)[..3], ["drop", A, "exact"].map(str::to_owned));
        // Before its commit, the night itself has forgotten what it was joined with.
        let again = night.run(dt, &["--replace"]).expect_success().json();
        assert_eq!(again["n_unknown_revisits"], Value::Null, "{dt}");
    }
    // The night that had the page before is forgotten, and what the run itself had made of it counts.
    run(&night, "2026-11-25", &[page(C, &text(2, 80))]);
    run(&night, "2026-11-26", &[page(C, &text(2, 80)), revisit(B, None)]);
    for more in [&[][..], &["--replace"]] {
        let summary = night.run("2026-11-26", more).expect_success().json();
        assert_eq!((&summary["n_revisits"], &summary["n_unknown_revisits"]), (&json!(1), &Value::Null));
        assert_eq!(decided(&night, "2026-11-26", B)[0], "keep");
    }
    let info = nearprint_in(night.path(), &["store", "info", "store", "--json"]).expect_success().json();
    assert_eq!(info["nights"].as_array().unwrap().len(), 2);
}

#[test]
fn a_revisit_keeps_its_text_where_the_night_with_that_text_is_forgotten_and_its_own_night_is_made_again() {
    for has_new_text in [true, false] {
        let night = Night::new("keep_nights = 2\n");
        run(&night, NIGHTS[0], &[page(B, &text(1, 80))]);
        run(&night, NIGHTS[1], &[page(C, &text(2, 80))]);
        let later = has_new_text.then(|| {
            let of_now = String::from_utf8(page(B, &text(3, 80))).unwrap();
            of_now.replace("WARC-Date: 2026-11-20T01:02:03Z", "WARC-Date: 2026-11-22T01:02:03Z").into_bytes()
        });
        let records = [Some(revisit_of_time(A, B, "2026-11-20T01:02:03Z")), later].into_iter().flatten();
        run(&night, NIGHTS[2], &records.collect::<Vec<_>>());
        let before = decided(&night, NIGHTS[2], A);
        assert_eq!(before[0], "keep");
        write(&night, NIGHTS[1], "a.warc.gz", &[page(C, &text(4, 80))]);
        night.run(NIGHTS[1], &["--replace", "--no-breakers"]).expect_success();
        nearprint_in(night.path(), &["run", "--config", "job.toml", "--stale", "--no-breakers"]).expect_success();
        assert_eq!(decided(&night, NIGHTS[2], A)[0], "keep", "with a new text: {has_new_text}");
    }
}

#[test]
fn a_revisit_of_another_page_has_its_text_and_is_dropped_for_it() {
    let night = Night::new("");
    // The id of the revisit is the lesser one, and its text is as long.
    let summary = run(&night, NIGHTS[0], &[page(B, &text(1, 80)), revisit(A, Some(B)), page(C, &text(2, 80))]);
    assert_eq!((&summary["n_documents"], &summary["n_revisits"]), (&json!(3), &json!(1)));
    assert_eq!(decided(&night, NIGHTS[0], A)[..4], ["drop", B, "exact", "new"].map(str::to_owned));
    assert_eq!(decided(&night, NIGHTS[0], B)[0], "keep");
    // A later crawl refers to a record of an earlier one.
    let d = "https://0.org/1";
    run(&night, NIGHTS[1], &[revisit(d, Some(C)), page(B, &text(3, 80))]);
    assert_eq!(decided(&night, NIGHTS[1], d)[..4], ["drop", C, "exact", "new"].map(str::to_owned));
}

#[test]
fn a_revisit_has_the_text_of_the_record_of_the_time_that_it_names() {
    let night = Night::new("");
    run(&night, NIGHTS[0], &[page(B, &text(1, 80))]);
    let dated = |of: &str, time: &str| {
        String::from_utf8(page(B, of)).unwrap().replace("2026-11-20T01:02:03Z", time).into_bytes()
    };
    let ids = ["early", "late", "before", "any"].map(|name| format!("https://{name}.org/"));
    let [early, late, before, any] = &ids;
    let records = [
        dated(&text(2, 80), "2026-11-21T01:00:00.25Z"),
        dated(&text(3, 80), "2026-11-21T02:00:00Z"),
        revisit_of_time(early, B, "2026-11-21T01:00:00Z"),
        revisit_of_time(late, B, "2026-11-21T02:00:00.5Z"),
        revisit_of_time(before, B, "2026-11-20T01:02:03Z"),
        revisit(any, Some(B)),
    ];
    run(&night, NIGHTS[1], &records);
    let canonical = |id: &str| decided(&night, NIGHTS[1], id)[..2].to_vec();
    assert_eq!([canonical(late), canonical(any)], [["drop", B]; 2]);
    // The rule for repeated ids left the first record out, and the store's state is replaced.
    assert_eq!([canonical(early), canonical(before)], [["keep", ""]; 2]);
    let classes: Vec<String> = night.decisions(NIGHTS[1]).into_values().map(|row| row[4].clone()).collect();
    assert_eq!(classes.into_iter().collect::<BTreeSet<_>>().len(), 3);
    // Their texts are in no record that stands for a page.
    let done = filtered(&night, &["--corpus"], "corpus");
    expect(&done, 66, &["2 kept documents", early, before, NIGHTS[1]]);
}

#[test]
fn a_revisit_beside_a_record_of_its_page_is_passed_over_and_of_several_the_newest_counts() {
    let night = Night::new("");
    let summary = run(&night, NIGHTS[0], &[revisit(A, Some(B)), page(A, &text(1, 80)), page(B, &text(2, 80))]);
    assert_eq!((&summary["n_documents"], &summary["n_repeated_ids"]), (&json!(2), &json!(0)));
    assert_eq!(summary["passed_records_by_reason"], json!({"revisit": 1}));
    assert_eq!(decided(&night, NIGHTS[0], A)[6], "false");

    let older = String::from_utf8(revisit(C, Some(B))).unwrap().replace("T01:02:03Z", "T00:00:00Z");
    let summary = run(&night, NIGHTS[1], &[older.into_bytes(), revisit(C, Some(A)), revisit(C, Some(A))]);
    assert_eq!((&summary["n_documents"], &summary["n_revisits"]), (&json!(1), &json!(1)));
    assert_eq!(summary["passed_records_by_reason"], json!({"revisit": 2}));
    assert_eq!(decided(&night, NIGHTS[1], C)[1], A);
}

#[test]
fn an_unknown_revisit_is_listed_and_counted_and_hides_no_earlier_state() {
    let night = Night::new("max_bad_rows = 0\n");
    run(&night, NIGHTS[0], &[page(A, &text(1, 80))]);
    let records = [page(C, &text(2, 80)), revisit(A, Some("https://lost.org/")), page(B, &text(1, 80))];
    let place = gzip(&records[0]).len() + 1;
    let summary = run(&night, NIGHTS[1], &records);
    assert_eq!(
        (&summary["n_unknown_revisits"], &summary["n_bad_rows"], &summary["n_documents"]),
        (&json!(1), &json!(0), &json!(2))
    );
    let listed = night.published(NIGHTS[1], "quarantine");
    assert_eq!(listed.len(), 1);
    assert!(listed[0][0].ends_with("a.warc.gz"), "{listed:?}");
    assert_eq!(listed[0][2..], [place.to_string(), "unknown_revisit".to_owned(), A.to_owned()]);
    assert_eq!(decided(&night, NIGHTS[1], B)[..3], ["drop", A, "exact"].map(str::to_owned));
    let manifest = std::fs::read_to_string(night.generation(NIGHTS[1]).join("manifest.json")).unwrap();
    assert!(manifest.contains("\"n_unknown_revisits\":1"), "{manifest}");
    // The page is no document, so the crawl has nothing else of it.
    let done = filtered(&night, &["--dt", NIGHTS[1]], "kept").expect_success().json();
    assert_eq!((&done["n_keep"], &done["n_quarantine"]), (&json!(1), &json!(1)));
}

#[test]
fn pages_without_text_and_below_the_floor_are_revisited_too() {
    let night = Night::new("");
    let short = "two words";
    run(&night, NIGHTS[0], &[response(A, HTML, b"<html><body><script>x</script></body></html>"), page(B, short)]);
    let state = |dt: &str, id: &str| decided(&night, dt, id);
    let (empty, floor) = (state(NIGHTS[0], A), state(NIGHTS[0], B));
    let summary = run(&night, NIGHTS[1], &[revisit(A, None), revisit(B, None), revisit(C, Some(A))]);
    assert_eq!((&summary["n_revisits"], &summary["n_same"], &summary["n_new"]), (&json!(3), &json!(2), &json!(1)));
    assert_eq!(
        (&state(NIGHTS[1], A)[..3], &state(NIGHTS[1], A)[3..5]),
        (&empty[..3], &["same".to_owned(), NIGHTS[0].to_owned()][..])
    );
    assert_eq!(state(NIGHTS[1], B)[..3], floor[..3]);
    assert_eq!(state(NIGHTS[1], C)[0], "skip");
}

#[test]
fn a_revisit_of_what_is_no_page_is_passed_over() {
    let night = Night::new("");
    let of = |url: &str, head: &str| record("revisit", url, "Content-Type: application/http\r\n", head.as_bytes());
    let records = [
        page(A, &text(1, 80)),
        of("https://a.org/style.css", "HTTP/1.1 200 OK\r\nContent-Type: text/css\r\n\r\n"),
        of("https://a.org/gone", "HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n\r\n"),
        of("https://a.org/robots.txt", OF_HTML),
    ];
    let summary = run(&night, NIGHTS[0], &records);
    assert_eq!(summary["passed_records_by_reason"], json!({"content_type": 1, "http_status": 1, "robots": 1}));
    // A server that was asked whether the page has changed says little more.
    let records = [of(A, "HTTP/1.1 304 Not Modified\r\nDate: Fri, 20 Nov 2026 00:00:00 GMT\r\n\r\n")];
    assert_eq!(run(&night, NIGHTS[1], &records)["n_revisits"], 1);
    assert_eq!(decided(&night, NIGHTS[1], A)[3], "same");
}

#[test]
fn with_other_ids_than_urls_revisits_are_passed_over() {
    for warc_id in ["url_time", "record_id"] {
        let night = Night::new(&format!("warc_id = \"{warc_id}\"\n"));
        let summary = run(&night, NIGHTS[0], &[page(A, &text(1, 80)), revisit(B, Some(A))]);
        assert_eq!((&summary["n_documents"], &summary["n_revisits"]), (&json!(1), &Value::Null));
        assert_eq!(summary["passed_records_by_reason"], json!({"revisit": 1}), "{warc_id}");
    }
}

#[test]
fn the_same_revisits_give_the_same_bytes_however_files_and_threads_divide_them() {
    let url = |n: u64| format!("https://a.org/{n}");
    let first: Vec<Vec<u8>> = (0..60).map(|n| page(&url(n), &text(n / 2, 80))).collect();
    let second: Vec<Vec<u8>> = (0..120)
        .map(|n| match n % 4 {
            0 => page(&url(n), &text(n / 3, 80)),
            1 => revisit(&url(n), None),
            _ => revisit(&url(n), Some(&url(n / 2))),
        })
        .collect();
    // A file of more than 16 MiB is read in spans.
    let mut random = Random::new(1);
    let image: Vec<u8> = (0..3 << 20).map(|_| random.below(256) as u8).collect();
    let image = response("https://a.org/image", "Content-Type: image/png\r\n", &image);
    let made = [(1, "1", 0), (7, "2", 0), (1, "2", 8)].map(|(n_files, threads, n_images)| {
        let night = Night::new("source_column = \"host\"\nkeep = [\"length desc\", \"fetch_time asc\"]\n");
        run(&night, NIGHTS[0], &first);
        for (n, records) in second.chunks(second.len().div_ceil(n_files)).rev().enumerate() {
            let images = vec![image.clone(); n_images];
            let (begin, end) = records.split_at(records.len() / 2);
            let size = write(&night, NIGHTS[1], &format!("{n}.warc.gz"), &[begin, &images, end].concat());
            assert!(n_images == 0 || size > 16 << 20, "{size}");
        }
        let summary = night.run(NIGHTS[1], &["--threads", threads]).expect_success().json();
        assert!(summary["n_revisits"].as_u64() > Some(40) && summary["n_unknown_revisits"].as_u64() > Some(10));
        let left_out: Vec<String> =
            night.published(NIGHTS[1], "quarantine").into_iter().map(|row| row[4].clone()).collect();
        let files = support::data_files(night.path());
        (ids(&night, NIGHTS[1]), left_out.into_iter().collect::<BTreeSet<_>>(), files, night)
    });
    let (one, unknown, files, _) = &made[0];
    for (other, others, other_files, _) in &made[1..] {
        assert_eq!((one, unknown), (other, others));
        for (name, content) in files.iter().filter(|(name, _)| !name.contains("quarantine")) {
            assert!(other_files.get(name) == Some(content), "{name}");
        }
    }
}

/// The records of a filtered file, unpacked.
fn records_of(night: &Night, path: &str) -> Vec<u8> {
    let packed = std::fs::read(night.path().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"));
    let mut records = Vec::new();
    flate2::read::MultiGzDecoder::new(&packed[..]).read_to_end(&mut records).unwrap();
    records
}

fn has(night: &Night, path: &str) -> bool {
    night.path().join(path).exists()
}

#[test]
fn filter_copies_the_revisit_records_of_a_night_with_the_documents_that_it_keeps() {
    let night = Night::new("");
    run(&night, NIGHTS[0], &[page(A, &text(1, 80)), page(B, &text(1, 80))]);
    run(&night, NIGHTS[1], &[revisit(A, None), page(C, &text(2, 80)), revisit(B, None)]);
    let done = filtered(&night, &["--dt", NIGHTS[1]], "kept").expect_success().json();
    assert_eq!([&done["n_rows"], &done["n_keep"], &done["n_drop"]], [&json!(1), &json!(1), &json!(0)]);
    let expected = [revisit(A, None), page(C, &text(2, 80))].concat();
    assert!(records_of(&night, &format!("kept/dt={}/a.warc.gz", NIGHTS[1])) == expected);
    // The texts of several nights together are those of pages, each once.
    let done = filtered(&night, &["--dt", NIGHTS[0], "--to", NIGHTS[1]], "both").expect_success().json();
    assert_eq!((&done["n_keep"], &done["n_repeated"]), (&json!(2), &json!(0)));
}

#[test]
fn the_corpus_has_the_record_with_the_text_of_a_revisited_page() {
    let night = Night::new("");
    run(&night, NIGHTS[0], &[page(A, &text(1, 80)), page(B, &text(1, 80)), page(C, &text(2, 80))]);
    run(&night, NIGHTS[1], &[revisit(A, None), revisit(C, None)]);
    run(&night, NIGHTS[2], &[revisit(A, None), page(C, &text(3, 80))]);
    filtered(&night, &["--corpus"], "corpus").expect_success();
    assert!(records_of(&night, &format!("corpus/dt={}/a.warc.gz", NIGHTS[0])) == page(A, &text(1, 80)));
    assert!(records_of(&night, &format!("corpus/dt={}/a.warc.gz", NIGHTS[2])) == page(C, &text(3, 80)));
    assert!(!has(&night, &format!("corpus/dt={}", NIGHTS[1])));
    // What is kept as before is not new.
    let done = filtered(&night, &["--new", "--dt", NIGHTS[1]], "nothing").expect_success().json();
    assert_eq!((&done["n_keep"], &done["n_removed"]), (&json!(0), &json!(0)));

    // Since its canonical document has another text, the copy is kept, by a revisit record.
    run(&night, NIGHTS[3], &[page(A, &text(4, 80)), revisit(B, None)]);
    assert_eq!(decided(&night, NIGHTS[3], B)[..4], ["keep", "", "unique", "same"].map(str::to_owned));
    for (args, output) in [(&["--corpus"][..], "now"), (&["--new", "--dt", NIGHTS[3]], "new")] {
        filtered(&night, args, output).expect_success();
        assert!(
            records_of(&night, &format!("{output}/dt={}/a.warc.gz", NIGHTS[0])) == page(B, &text(1, 80)),
            "{output}"
        );
        assert!(
            records_of(&night, &format!("{output}/dt={}/a.warc.gz", NIGHTS[3])) == page(A, &text(4, 80)),
            "{output}"
        );
    }
    std::fs::remove_file(night.path().join(format!("documents/dt={}/a.warc.gz", NIGHTS[0]))).unwrap();
    expect(&filtered(&night, &["--corpus"], "late"), 66, &[NIGHTS[0], "a.warc.gz"]);
    let done = filtered(&night, &["--corpus", "--allow-gone"], "late").expect_success().json();
    assert_eq!(done["n_gone"], 1);
}

#[test]
fn the_corpus_has_no_other_text_of_a_revisited_page_whose_night_was_replaced() {
    let night = Night::new("");
    let [first, second] = [text(1, 80), text(2, 80)];
    run(&night, NIGHTS[0], &[page(A, &first), page(B, &text(3, 80))]);
    run(&night, NIGHTS[1], &[revisit(A, None), page(C, &first)]);
    assert_eq!(decided(&night, NIGHTS[1], C)[..2], ["drop", A]);
    let corpus = |args: &[&str], output: &str| filtered(&night, &[&["--corpus"], args].concat(), output);
    let replace = |records: &[Vec<u8>]| {
        write(&night, NIGHTS[0], "a.warc.gz", records);
        night.run(NIGHTS[0], &["--no-breakers", "--replace"]).expect_success();
    };
    // The page has its text still, whatever else has changed in the night.
    replace(&[page(A, &first), page(B, &text(4, 80))]);
    let same = corpus(&[], "same").expect_success();
    assert!(same.stderr.contains("it is stale"), "{}", same.stderr);
    assert!(has(&night, &format!("same/dt={}/a.warc.gz", NIGHTS[0])));
    assert!(records_of(&night, &format!("same/dt={}/a.warc.gz", NIGHTS[0])).starts_with(&page(A, &first)));
    // Another text is not that of the revisit, for which a copy was dropped.
    replace(&[page(A, &second), page(B, &text(4, 80))]);
    expect(&corpus(&[], "gone"), 66, &[A]);
    let allowed = corpus(&["--allow-gone"], "allowed").expect_success().json();
    assert_eq!((&allowed["n_gone"], &allowed["n_keep"]), (&json!(1), &json!(1)), "{allowed}");
    // Once the later night is decided anew, it has the page's new text.
    nearprint_in(night.path(), &["run", "--config", "job.toml", "--stale", "--no-breakers"]).expect_success();
    let mended = corpus(&[], "mended").expect_success().json();
    assert_eq!((&mended["n_gone"], &mended["n_keep"]), (&Value::Null, &json!(3)), "{mended}");
}

#[test]
fn the_record_with_the_text_of_a_revisited_page_is_found_whatever_dates_later_nights_gave_it() {
    let night = Night::new("");
    let first = text(1, 80);
    run(&night, NIGHTS[1], &[page(A, &first)]);
    run(&night, NIGHTS[2], &[revisit(A, None)]);
    write(&night, NIGHTS[0], "a.warc.gz", &[page(A, &first)]);
    night.run(NIGHTS[0], &["--late", "--no-breakers"]).expect_success();
    night.run(NIGHTS[1], &["--replace", "--no-breakers"]).expect_success();
    // The night of the revisit has the text since another night than those that have its record.
    let done = filtered(&night, &["--corpus"], "corpus").expect_success().json();
    assert_eq!(done["n_keep"], 1, "{done}");
    assert_eq!(records_of(&night, &format!("corpus/dt={}/a.warc.gz", NIGHTS[1])), page(A, &first));
}

#[test]
fn a_text_that_only_forgotten_nights_had_is_named_before_the_corpus_is_written() {
    let night = Night::new("keep_nights = 2\n");
    run(&night, NIGHTS[0], &[page(A, &text(1, 80))]);
    for dt in &NIGHTS[1..3] {
        run(&night, dt, &[revisit(A, None), page(C, &text(2, 80))]);
    }
    let done = filtered(&night, &["--corpus"], "corpus");
    expect(&done, 66, &[A, NIGHTS[0], "a kept document", "--allow-gone"]);
    assert!(!has(&night, "corpus"));
    let done = filtered(&night, &["--corpus", "--allow-gone"], "corpus").expect_success().json();
    assert_eq!((&done["n_gone"], &done["n_keep"]), (&json!(1), &json!(1)));
    let gone: Vec<Vec<String>> = support::rows(&night.path().join("corpus/_gone"));
    assert_eq!(gone, [[NIGHTS[0], A]]);
    assert!(records_of(&night, &format!("corpus/dt={}/a.warc.gz", NIGHTS[2])) == page(C, &text(2, 80)));
    // Who follows the nights has the text already.
    filtered(&night, &["--new", "--dt", NIGHTS[2]], "new").expect_success();
}

#[test]
fn a_revisited_page_can_be_forgotten_and_the_rest_of_its_night_adds_up() {
    let night = Night::new("");
    run(&night, NIGHTS[0], &[page(A, &text(1, 80)), page(B, &text(2, 80))]);
    run(&night, NIGHTS[1], &[revisit(A, None), revisit(B, None), page(C, &text(3, 80))]);
    std::fs::write(night.path().join("ids.txt"), format!("{A}\n")).unwrap();
    nearprint_in(night.path(), &["store", "forget", "store", "--ids", "ids.txt"]).expect_success();
    let done = filtered(&night, &["--dt", NIGHTS[1]], "kept").expect_success().json();
    assert_eq!((&done["n_keep"], &done["n_forgotten"]), (&json!(1), &json!(0)));
    let expected = [revisit(B, None), page(C, &text(3, 80))].concat();
    assert!(records_of(&night, &format!("kept/dt={}/a.warc.gz", NIGHTS[1])) == expected);
    // Nobody knows its text any more.
    assert_eq!(run(&night, NIGHTS[2], &[revisit(A, None), revisit(B, None)])["n_unknown_revisits"], 1);
}

/// The text of each page in a folder of WARC files, by URL. No record is a revisit.
fn texts_in(night: &Night, folder: &str) -> BTreeMap<String, u64> {
    let mut texts = BTreeMap::new();
    for (path, _) in support::snapshot(&night.path().join(folder)) {
        let path = format!("{folder}/{}", path.display());
        if !path.ends_with(".warc.gz") {
            continue;
        }
        let records = String::from_utf8(records_of(night, &path)).unwrap();
        for record in records.split("WARC/1.0\r\n").skip(1) {
            assert!(record.starts_with("WARC-Type: response\r\n"), "{path}: {record}");
            let url = record.split("WARC-Target-URI: ").nth(1).unwrap().split("\r\n").next().unwrap();
            let seed = (0..100).find(|&seed| record.contains(&text(seed, 40))).unwrap();
            assert_eq!(texts.insert(url.to_owned(), seed), None, "{path} has {url} once more");
        }
    }
    texts
}

/// A crawl at random, and what its pages show. A page has a revisit record only where the crawler can know its text: that of
/// its own newest state, of a page of tonight, or of the newest state of another page.
fn random_crawl(random: &mut Random, states: &BTreeMap<String, u64>) -> (Vec<Vec<u8>>, BTreeMap<String, u64>) {
    let (mut records, mut tonight, mut waiting) = (Vec::new(), BTreeMap::new(), Vec::new());
    for n in 0..10 {
        let url = format!("https://{}.org/", (b'a' + n) as char);
        let seed = match states.get(&url) {
            Some(&seed) if random.below(3) > 0 => seed,
            _ => random.below(8),
        };
        match random.below(4) {
            0 => continue,
            1 => {
                records.push(page(&url, &text(seed, 40)));
                tonight.insert(url, seed);
            }
            _ => waiting.push((url, seed)),
        }
    }
    let responses = tonight.clone();
    for (url, seed) in waiting {
        let of = |texts: &BTreeMap<String, u64>, time| -> Vec<(String, &str)> {
            let of = texts.iter().filter(|&(other, of)| *of == seed && *other != url);
            of.map(|(other, _)| (other.clone(), time)).collect()
        };
        let known = [of(&responses, "2026-11-20T01:02:03Z"), of(states, "2026-11-01T00:00:00Z")].concat();
        let is_own = states.get(&url) == Some(&seed);
        records.push(match random.below(1 + known.len() as u64) as usize {
            0 if is_own => revisit(&url, None),
            0 => page(&url, &text(seed, 40)),
            at => revisit_of_time(&url, &known[at - 1].0, known[at - 1].1),
        });
        tonight.insert(url, seed);
    }
    records.sort_by_cached_key(|_| random.below(1 << 20));
    (records, tonight)
}

#[test]
fn random_crawls_with_revisits_lose_no_text() {
    let (mut n_revisits, mut n_gone) = (0, 0);
    for seed in 0..6 {
        let mut random = Random::new(seed);
        let forgets = seed % 3 == 2;
        let night = Night::new(if forgets { "keep_nights = 3\n" } else { "" });
        let (mut states, mut held) = (BTreeMap::<String, (usize, u64)>::new(), BTreeMap::<String, u64>::new());
        let mut was_gone = BTreeSet::new();
        for at in 0..6 {
            let dt = format!("2026-11-{}", 10 + at);
            states.retain(|_, (last, _)| !forgets || *last + 3 >= at);
            let before: BTreeMap<String, u64> = states.iter().map(|(url, (_, text))| (url.clone(), *text)).collect();
            let (records, tonight) = random_crawl(&mut random, &before);
            let summary = run(&night, &dt, &records);
            n_revisits += summary["n_revisits"].as_u64().unwrap_or(0);
            assert_eq!(summary["n_unknown_revisits"], Value::Null, "seed {seed}, {dt}");
            for (url, text) in &tonight {
                let recrawl = match before.get(url) {
                    None => "new",
                    Some(earlier) if earlier == text => "same",
                    Some(_) => "changed",
                };
                assert_eq!(decided(&night, &dt, url)[3], recrawl, "seed {seed}, {dt}: {url}");
                states.insert(url.clone(), (at, *text));
            }
            let live = states.iter().filter(|(_, (last, _))| !forgets || *last + 3 > at);
            let live: BTreeMap<&String, u64> = live.map(|(url, (_, text))| (url, *text)).collect();
            let corpus = format!("corpus-{at}");
            filtered(&night, &["--corpus", "--allow-gone"], &corpus).expect_success();
            let written = texts_in(&night, &corpus);
            for (url, text) in &written {
                assert_eq!(live.get(url), Some(text), "seed {seed}, {dt}: {url} is written with the text that it has");
            }
            let gone: Vec<String> = support::rows(&night.path().join(&corpus).join("_gone"))
                .into_iter()
                .map(|row| row[1].clone())
                .collect();
            n_gone += gone.len();
            let kept: BTreeSet<u64> = written.values().copied().chain(gone.iter().map(|url| live[url])).collect();
            assert_eq!(kept, live.values().copied().collect(), "seed {seed}, {dt}: each text is kept once");
            assert_eq!(kept.len(), written.len() + gone.len(), "seed {seed}, {dt}: no text is kept twice");

            // What a night changes leads there too, without what was gone once.
            let new = format!("new-{at}");
            filtered(&night, &["--new", "--dt", &dt, "--allow-gone"], &new).expect_success();
            for row in support::rows(&night.path().join(&new).join("_removed")) {
                held.remove(&row[0]);
            }
            held.extend(texts_in(&night, &new));
            was_gone
                .extend(support::rows(&night.path().join(&new).join("_gone")).into_iter().map(|row| row[1].clone()));
            if !forgets {
                let agrees = |url: &String| held.get(url) == written.get(url) || was_gone.contains(url);
                assert!(written.keys().chain(held.keys()).all(agrees), "seed {seed}, {dt}: {held:?}, {written:?}");
            }
        }
    }
    assert!(n_revisits > 50 && n_gone > 0, "{n_revisits} revisits, {n_gone} gone");
}
