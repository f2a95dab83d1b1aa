//! Nights of WARC, WET and HTML files that the tests write.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use crate::support::{self, Night, expect, nearprint_in, text};
use crate::wacz::zip;

const DT: &str = "2026-11-20";

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut member = GzEncoder::new(Vec::new(), Compression::fast());
    member.write_all(bytes).unwrap();
    member.finish().unwrap()
}

pub(crate) fn record(kind: &str, url: &str, fields: &str, block: &[u8]) -> Vec<u8> {
    let head = format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:{kind}:{url}>\r\nWARC-Target-URI: {url}\r\n\
         WARC-Date: 2026-11-20T01:02:03Z\r\n{fields}Content-Length: {}\r\n\r\n",
        block.len()
    );
    [head.as_bytes(), block, b"\r\n\r\n"].concat()
}

/// A response of status 200 with these HTTP fields.
pub(crate) fn response(url: &str, fields: &str, body: &[u8]) -> Vec<u8> {
    let block = [format!("HTTP/1.1 200 OK\r\n{fields}\r\n").as_bytes(), body].concat();
    record("response", url, "Content-Type: application/http; msgtype=response\r\n", &block)
}

/// A page whose paragraphs are the text, within what is on every page of the site.
pub(crate) fn html(text: &str) -> String {
    let menu: String = (0..30).map(|n| format!("<li><a href='/{n}'>Section number {n} of the site</a></li>")).collect();
    format!(
        "<html><head><title>Site</title></head><body><nav><ul>{menu}</ul></nav><main><p>{text}</p></main><footer>All rights reserved by nobody, ask the office of the site</footer></body></html>"
    )
}

pub(crate) const HTML: &str = "Content-Type: text/html; charset=utf-8\r\n";

pub(crate) fn page(url: &str, text: &str) -> Vec<u8> {
    response(url, HTML, html(text).as_bytes())
}

fn write(night: &Night, name: &str, bytes: &[u8]) -> PathBuf {
    let path = night.path().join(format!("documents/dt={DT}/{name}"));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, bytes).unwrap();
    path
}

fn decisions(night: &Night) -> Vec<(String, String)> {
    night.decisions(DT).into_iter().map(|(id, row)| (id, row[0].clone())).collect()
}

fn kept_and_dropped(night: &Night, pairs: &[(&str, &str)]) {
    let expected: Vec<(String, String)> = pairs.iter().map(|&(id, d)| (id.to_owned(), d.to_owned())).collect();
    assert_eq!(decisions(night), expected);
}

/// Two pages with the same main text, another page, and a record of each kind that is no document.
fn crawl() -> Vec<Vec<u8>> {
    let (one, two) = (text(1, 80), text(2, 80));
    let not_found = b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n\r\n<p>gone</p>";
    vec![
        record("warcinfo", "", "Content-Type: application/warc-fields\r\n", b"software: test\r\n"),
        record("request", "https://a.org/1", "Content-Type: application/http\r\n", b"GET /1 HTTP/1.1\r\n\r\n"),
        page("https://a.org/1", &one),
        page("https://a.org/2", &two),
        response("https://b.org/copy", &format!("{HTML}Content-Encoding: gzip\r\n"), &gzip(html(&one).as_bytes())),
        record("revisit", "https://a.org/1", "Content-Type: application/http\r\n", b"HTTP/1.1 200 OK\r\n\r\n"),
        record("metadata", "https://a.org/1", "", b"x: y\r\n"),
        record("continuation", "https://a.org/1", "", b"more"),
        response("https://a.org/robots.txt", "Content-Type: text/html\r\n", b"User-agent: *"),
        response("https://a.org/style.css", "Content-Type: text/css\r\n", b"p { color: red }"),
        response("https://a.org/empty", HTML, b""),
        record("response", "https://a.org/gone", "Content-Type: application/http\r\n", not_found),
    ]
}

#[test]
fn pages_become_documents_and_other_records_are_counted_by_reason_however_the_file_is_packed() {
    let records = crawl();
    let files = [
        ("a.warc", records.concat()),
        ("a.warc.gz", records.iter().flat_map(|record| gzip(record)).collect()),
        ("shared.warc.gz", gzip(&records.concat())),
        ("a.warc.zst", records.iter().flat_map(|record| zstd::encode_all(&record[..], 3).unwrap()).collect()),
    ];
    let by_reason = json!({
        "warcinfo": 1, "request": 1, "revisit": 1, "metadata": 1, "other_type": 1, "robots": 1, "content_type": 1,
        "empty_body": 1, "http_status": 1,
    });
    for (name, file) in files {
        let night = Night::new("");
        write(&night, name, &file);
        let summary = night.run(DT, &[]).expect_success().json();
        assert_eq!(
            (&summary["n_passed_records"], &summary["passed_records_by_reason"]),
            (&json!(9), &by_reason),
            "{name}"
        );
        assert_eq!(summary["n_bad_rows"], 0);
        kept_and_dropped(
            &night,
            &[("https://a.org/1", "keep"), ("https://a.org/2", "keep"), ("https://b.org/copy", "drop")],
        );
        let manifest = std::fs::read_to_string(night.generation(DT).join("manifest.json")).unwrap();
        assert!(manifest.contains("\"passed_records_by_reason\""), "{manifest}");
    }
}

#[test]
fn broken_records_are_bad_rows_with_their_place_and_the_rest_is_read() {
    let pages: Vec<Vec<u8>> = (0..4).map(|n| gzip(&page(&format!("https://a.org/{n}"), &text(n, 80)))).collect();
    let mut file = pages.concat();
    let start = pages[0].len();
    file[start + 200..start + pages[1].len() - 8].fill(0xff);
    let cut = response("https://a.org/cut", &format!("{HTML}Transfer-Encoding: chunked\r\n"), b"400\r\n<p>cut off");
    file.extend(gzip(&cut));
    let place = file.len();
    file.extend(&pages[0][..pages[0].len() / 2]);

    let night = Night::new("");
    write(&night, "a.warc.gz", &file);
    expect(&night.run(DT, &[]), 65, &["3 rows", "a.warc.gz"]);
    let summary = night.run(DT, &["--max-bad-rows", "3"]).expect_success().json();
    assert_eq!(summary["bad_rows_by_reason"], json!({"broken_body": 1, "broken_record": 1, "cut_off": 1}));
    kept_and_dropped(
        &night,
        &["0", "2", "3"].map(|n| (["https://a.org/", n].concat(), "keep")).each_ref().map(|(id, d)| (id.as_str(), *d)),
    );
    let rows: Vec<Vec<String>> = night.published(DT, "quarantine").into_iter().map(|row| row[2..].to_vec()).collect();
    let at_cut = (pages.concat().len() + 1).to_string();
    let expected = [
        [(start + 1).to_string(), "broken_record".to_owned(), String::new()],
        [at_cut, "broken_body".to_owned(), "https://a.org/cut".to_owned()],
        [(place + 1).to_string(), "cut_off".to_owned(), String::new()],
    ];
    assert_eq!(rows, expected);
}

#[test]
fn a_file_that_was_cut_off_is_to_be_fetched_again_and_no_hint_passes_it_over() {
    let pages: Vec<Vec<u8>> = (0..4).map(|n| page(&format!("https://a.org/{n}"), &text(n, 80))).collect();
    let (place, half) = (pages[..3].concat().len(), pages[3].len() / 2);
    let packed: Vec<Vec<u8>> = pages.iter().map(|page| gzip(page)).collect();
    let (packed_place, packed_half) = (packed[..3].concat().len(), packed[3].len() / 2);
    for (name, file, place) in [
        ("a.warc", &pages.concat()[..place + half], place),
        ("a.warc.gz", &packed.concat()[..packed_place + packed_half], packed_place),
    ] {
        let night = Night::new("");
        write(&night, name, file);
        let done = night.run(DT, &[]);
        expect(&done, 65, &[name, &format!("byte {place}: cut_off"), "fetch it again"]);
        assert!(!done.stderr.contains("hint:"), "{}", done.stderr);
        let summary = night.run(DT, &["--max-bad-rows", "1"]).expect_success().json();
        assert_eq!((&summary["n_documents"], &summary["bad_rows_by_reason"]), (&json!(3), &json!({"cut_off": 1})));
    }
}

#[test]
fn a_file_that_is_not_what_its_name_says_is_a_bad_file() {
    let page = page("https://a.org/1", &text(1, 80));
    let not_found = b"<!DOCTYPE html><title>404 Not Found</title>\n";
    let line = format!("{{\"id\": \"a\", \"text\": \"{}\"}}\n", text(1, 80));
    for (name, file, said) in [
        ("a.warc.gz", page.clone(), "it is not gzip (it begins with \"WARC/1.0\"): rename it to"),
        ("a.warc", gzip(&page), "it is gzip: rename it to"),
        ("a.warc.gz", not_found.to_vec(), "it holds no whole WARC record (it begins with \"<!DOCTYPE html>"),
        ("a.warc", not_found.to_vec(), "it holds no whole WARC record"),
        ("a.warc.gz", gzip(not_found), "it holds no whole WARC record"),
        ("a.warc.gz", Vec::new(), "it is empty, and so no gzip"),
        ("a.html.gz", Vec::new(), "it is empty, and so no gzip"),
        ("a.jsonl", gzip(line.as_bytes()), "it is gzip: rename it to"),
        (
            "a.jsonl.gz",
            line.clone().into_bytes(),
            "it is not gzip (it begins with \"{\\\"id\\\": \\\"a\\\", \\\"tex\"): rename it to",
        ),
        ("a.jsonl.zst", gzip(line.as_bytes()), "it is not zstd but gzip: rename it to"),
        ("a.jsonl.zst", Vec::new(), "it is empty, and so no zstd"),
        (
            "a.html.gz",
            html(&text(1, 80)).into_bytes(),
            "it is not gzip (it begins with \"<html><head><tit\"): rename it to",
        ),
    ] {
        let night = Night::new("");
        write(&night, name, &file);
        write(&night, "sound.html", html(&text(2, 80)).as_bytes());
        let done = night.run(DT, &["--max-bad-rows", "9"]);
        expect(&done, 65, &[name, said]);
        assert!(!done.stderr.contains("hint:"), "{}", done.stderr);
        let summary = night.run(DT, &["--max-bad-files", "1"]).expect_success().json();
        assert_eq!((&summary["n_bad_files"], &summary["n_documents"]), (&json!(1), &json!(1)), "{name}: {said}");
    }
}

#[test]
fn zeros_behind_gzip_are_the_end_of_the_file_and_no_damage() {
    let pages = [1, 2].map(|n| gzip(&page(&format!("https://a.org/{n}"), &text(n, 80))));
    let lines = [1, 2].map(|n| gzip(format!("{}\n", json!({"id": n.to_string(), "text": text(n, 80)})).as_bytes()));
    for (name, file, n_documents) in [
        ("a.warc.gz", pages.concat(), 2),
        ("a.jsonl.gz", lines.concat(), 2),
        ("a.html.gz", gzip(html(&text(1, 80)).as_bytes()), 1),
    ] {
        let night = Night::new("");
        write(&night, name, &[&file[..], &[0; 1000]].concat());
        let ran = night.run(DT, &[]).expect_success();
        let summary = ran.json();
        assert_eq!((&summary["n_documents"], &summary["n_bad_rows"]), (&json!(n_documents), &json!(0)), "{name}");
        // Of a page there is but one document.
        let said =
            ran.stderr.contains("what a crash left in place of documents") && ran.stderr.contains("n_zeros=1000");
        assert_eq!(said, n_documents > 1, "{}", ran.stderr);
        let args = ["filter", "--config", "job.toml", "--dt", DT, "--output", "kept", "--json"];
        assert_eq!(nearprint_in(night.path(), &args).expect_success().json()["n_keep"], n_documents, "{name}");

        let night = Night::new("");
        write(&night, name, &[&file[..], &[0; 1000], b"x"].concat());
        expect(&night.run(DT, &[]), 65, &[name]);
    }
}

#[test]
fn a_file_without_bytes_is_a_file_without_rows() {
    for name in ["a.warc", "a.jsonl"] {
        let night = Night::new("");
        write(&night, name, b"");
        write(&night, "sound.html", html(&text(2, 80)).as_bytes());
        let summary = night.run(DT, &[]).expect_success().json();
        assert_eq!((&summary["n_empty_files"], &summary["n_documents"]), (&json!(1), &json!(1)), "{name}");
    }
}

#[test]
fn the_id_is_the_url_or_the_time_and_the_url_or_the_id_of_the_record() {
    let ids = [
        ("url", "https://a.org/1"),
        ("url_time", "2026-11-20T01:02:03Z https://a.org/1"),
        ("record_id", "urn:response:https://a.org/1"),
    ];
    for (choice, id) in ids {
        let night = Night::new(&format!("warc_id = \"{choice}\"\n"));
        write(&night, "a.warc.gz", &gzip(&page("https://a.org/1", &text(1, 80))));
        night.run(DT, &[]).expect_success();
        kept_and_dropped(&night, &[(id, "keep")]);
    }
}

#[test]
fn urls_that_differ_only_in_bytes_that_are_not_utf_8_are_ids_of_two_documents() {
    let night = Night::new("");
    let with_byte = |byte: u8, n: u64| -> Vec<u8> {
        let page = page("http://x.org/caf@", &text(n, 80));
        page.into_iter().map(|b| if b == b'@' { byte } else { b }).collect()
    };
    write(&night, "a.warc", &[with_byte(0xE9, 1), with_byte(0xE8, 2)].concat());
    night.run(DT, &[]).expect_success();
    kept_and_dropped(&night, &[("http://x.org/caf%E8", "keep"), ("http://x.org/caf%E9", "keep")]);
    let filter = ["filter", "--config", "job.toml", "--dt", DT, "--output", "survivors"];
    nearprint_in(night.path(), &filter).expect_success();
    let left = std::fs::read(night.path().join(format!("survivors/dt={DT}/a.warc"))).unwrap();
    for url in [b"http://x.org/caf\xE9\r\n", b"http://x.org/caf\xE8\r\n"] {
        assert!(left.windows(url.len()).any(|bytes| bytes == url), "the survivors have each record as it was");
    }
}

#[test]
fn the_first_segment_of_a_page_is_a_bad_row_and_no_whole_page() {
    let night = Night::new("max_bad_rows = 1\n");
    let segments = "WARC-Segment-Number: 1\r\nContent-Type: application/http\r\n";
    let block = format!("HTTP/1.1 200 OK\r\n{HTML}\r\n{}", html(&text(1, 80)));
    let first = record("response", "https://a.org/1", segments, block.as_bytes());
    let rest = record("continuation", "https://a.org/1", "WARC-Segment-Number: 2\r\n", b"<p>the rest</p>");
    write(&night, "a.warc", &[first, rest, page("https://a.org/2", &text(2, 80))].concat());
    expect(&night.run(DT, &["--max-bad-rows", "0"]), 65, &["1 broken_body", "a.warc"]);
    let summary = night.run(DT, &[]).expect_success().json();
    assert_eq!(summary["bad_rows_by_reason"], json!({"broken_body": 1}));
    kept_and_dropped(&night, &[("https://a.org/2", "keep")]);
}

#[test]
fn url_host_time_and_content_type_order_documents_and_name_their_source() {
    let (one, two) = (text(1, 80), text(1, 80));
    let earlier = String::from_utf8(page("https://z.org/1", &one)).unwrap().replace("T01:02:03Z", "T00:00:00Z");
    let file = [page("https://a.org/1", &two), earlier.into_bytes()].concat();
    for (keep, kept) in [
        ("fetch_time asc", "https://z.org/1"),
        ("fetch_time desc", "https://a.org/1"),
        ("host desc", "https://z.org/1"),
        ("url asc", "https://a.org/1"),
    ] {
        let night = Night::new(&format!("source_column = \"host\"\nkeep = [\"{keep}\"]\n"));
        write(&night, "a.warc", &file);
        night.run(DT, &[]).expect_success();
        let keeps: Vec<String> = decisions(&night).into_iter().filter(|(_, d)| d == "keep").map(|(id, _)| id).collect();
        assert_eq!(keeps, [kept], "{keep}");
    }
    let night = Night::new("keep = [\"language desc\"]\n");
    write(&night, "a.warc", &file);
    expect(&night.run(DT, &[]), 65, &["a.warc", "language", "url, host, fetch_time, content_type, title"]);
}

#[test]
fn conversion_records_of_wet_files_are_documents() {
    let plain = "Content-Type: text/plain\r\n";
    let records = [
        record("warcinfo", "", "", b"software: test\r\n"),
        record("conversion", "https://a.org/1", plain, text(1, 80).as_bytes()),
        record("conversion", "https://a.org/2", plain, text(1, 80).as_bytes()),
    ];
    let night = Night::new("");
    write(&night, "a.warc.wet.gz", &records.iter().flat_map(|record| gzip(record)).collect::<Vec<_>>());
    let summary = night.run(DT, &[]).expect_success().json();
    assert_eq!(summary["passed_records_by_reason"], json!({"warcinfo": 1}));
    kept_and_dropped(&night, &[("https://a.org/1", "keep"), ("https://a.org/2", "drop")]);
}

#[test]
fn html_files_are_documents_by_their_paths_and_filter_copies_those_that_are_kept() {
    let night = Night::new("");
    write(&night, "a.org/1.html", html(&text(1, 80)).as_bytes());
    write(&night, "a.org/2.htm", html(&text(2, 80)).as_bytes());
    write(&night, "b.org/1.html.gz", &gzip(html(&text(1, 80)).as_bytes()));
    night.run(DT, &[]).expect_success();
    kept_and_dropped(&night, &[("a.org/1.html", "keep"), ("a.org/2.htm", "keep"), ("b.org/1.html.gz", "drop")]);
    let args = ["filter", "--config", "job.toml", "--dt", DT, "--output", "kept"];
    nearprint_in(night.path(), &args).expect_success();
    let kept = files_below(&night.path().join("kept"));
    let pages: Vec<&String> = kept.iter().filter(|name| name.contains(".org/")).collect();
    assert_eq!(pages, [&format!("dt={DT}/a.org/1.html"), &format!("dt={DT}/a.org/2.htm")], "{kept:?}");
}

#[test]
fn an_html_file_that_is_packed_in_a_way_that_is_not_read_is_a_bad_file_and_no_page() {
    let bzip2 = b"BZh91AY&SY\x01\x02\x03".to_vec();
    let xz = b"\xfd7zXZ\0\0\x04".to_vec();
    let files = [
        ("a.html", bzip2.clone()),
        ("b.html", xz.clone()),
        ("c.htm", b"Obj\x01\x02".to_vec()),
        ("d.html.gz", gzip(&bzip2)),
    ];
    for (name, bytes) in files {
        let night = Night::new("");
        write(&night, name, &bytes);
        write(&night, "page.html", html(&text(1, 80)).as_bytes());
        expect(&night.run(DT, &[]), 65, &[name]);
        let done = night.run(DT, &["--max-bad-files", "1"]).expect_success().json();
        assert_eq!((&done["n_documents"], &done["n_bad_files"]), (&json!(1), &json!(1)), "{name}");
    }
}

#[test]
fn a_text_that_begins_as_parquet_does_is_a_page() {
    let night = Night::new("");
    write(&night, "a.html", format!("PAR1SH council news: {}", text(1, 80)).as_bytes());
    assert_eq!(night.run(DT, &[]).expect_success().json()["n_documents"], 1);
    write(&night, "b.html", b"PAR1 and the footer of a file PAR1");
    expect(&night.run(DT, &["--replace"]), 65, &["b.html", "Parquet"]);
}

#[test]
fn the_ids_of_html_files_are_those_of_the_run_wherever_the_job_has_its_documents_now() {
    let night = Night::new("");
    write(&night, "1.html", html(&text(1, 80)).as_bytes());
    write(&night, "2.html", html(&text(2, 80)).as_bytes());
    std::fs::write(night.path().join("list.txt"), format!("documents/dt={DT}\n")).unwrap();
    let run = ["run", "--config", "job.toml", "--create-store", "--dt", DT, "--files-from", "list.txt"];
    nearprint_in(night.path(), &run).expect_success();
    let ids = [1, 2].map(|n| format!("documents/dt={DT}/{n}.html"));
    assert_eq!(night.decisions(DT).into_keys().collect::<Vec<_>>(), ids);
    let filter = ["filter", "--config", "job.toml", "--dt", DT, "--output", "kept", "--json"];
    assert_eq!(nearprint_in(night.path(), &filter).expect_success().json()["n_keep"], 2);
    // A night before it makes it stale, and the ids stay.
    night.documents("2026-11-18", &[("early", &text(9, 80))]).run("2026-11-18", &["--late"]).expect_success();
    nearprint_in(night.path(), &["run", "--config", "job.toml", "--stale"]).expect_success();
    assert_eq!(night.decisions(DT).into_keys().collect::<Vec<_>>(), ids);
    let again = nearprint_in(night.path(), &[&run[..], &["--json"]].concat()).expect_success().json();
    assert_eq!(again["status"], "already_published");
    // A migration goes on where it ended.
    let job = std::fs::read_to_string(night.path().join("job.toml")).unwrap();
    let job = job.replace("\"store\"", "\"new-store\"").replace("\"results\"", "\"new-results\"");
    std::fs::write(night.path().join("new.toml"), format!("profile = \"han-bigrams\"\n{job}")).unwrap();
    let migrate = ["store", "migrate", "--config", "new.toml", "--from", "store", "--create-store", "--json"];
    for status in ["migrated", "already_migrated"] {
        assert_eq!(nearprint_in(night.path(), &migrate).expect_success().json()["status"], status);
    }
    assert_eq!(night.published_in("new-results", DT, "decisions").len(), 2);
}

#[test]
fn the_case_of_an_ending_does_not_matter() {
    let night = Night::new("");
    write(&night, "a.HTML.GZ", &gzip(html(&text(1, 80)).as_bytes()));
    write(&night, "b.html", html(&text(1, 80)).as_bytes());
    let line = |id: &str, text: &str| format!("{}\n", json!({"id": id, "text": text}));
    write(&night, "c.JSONL.GZ", &gzip([line("c1", &text(3, 80)), line("c2", &text(3, 80))].concat().as_bytes()));
    write(&night, "d.WARC.Gz", &gzip(&page("https://d.org/1", &text(4, 80))));
    night.run(DT, &[]).expect_success();
    let expected =
        [("a.HTML.GZ", "keep"), ("b.html", "drop"), ("c1", "keep"), ("c2", "drop"), ("https://d.org/1", "keep")];
    kept_and_dropped(&night, &expected);
    let args = ["filter", "--config", "job.toml", "--dt", DT, "--output", "kept"];
    nearprint_in(night.path(), &args).expect_success();
    let kept = std::fs::read(night.path().join(format!("kept/dt={DT}/c.JSONL.GZ"))).unwrap();
    let mut lines = String::new();
    flate2::read::GzDecoder::new(&kept[..]).read_to_string(&mut lines).unwrap();
    assert_eq!(lines, line("c1", &text(3, 80)));
}

#[test]
fn pages_in_a_character_set_that_browsers_refuse_are_no_copies_of_one_another() {
    let night = Night::new("");
    let fields = "Content-Type: text/html; charset=hz-gb-2312\r\n";
    let pages = [1, 2].map(|n| response(&format!("https://a.org/{n}"), fields, html(&text(n, 80)).as_bytes()));
    write(&night, "a.warc", &pages.concat());
    night.run(DT, &[]).expect_success();
    kept_and_dropped(&night, &[("https://a.org/1", "keep"), ("https://a.org/2", "keep")]);
}

#[test]
fn filter_makes_no_folder_for_pages_that_are_dropped_and_removes_those_of_a_filter_before() {
    let night = Night::new("");
    write(&night, "a.org/1.html", html(&text(1, 80)).as_bytes());
    write(&night, "b.org/deep/1.html", html(&text(1, 80)).as_bytes());
    let filter = |more: &[&str]| {
        let args = [&["filter", "--config", "job.toml", "--dt", DT, "--output", "kept"], more].concat();
        nearprint_in(night.path(), &args).expect_success().json()
    };
    night.run(DT, &[]).expect_success();
    let counts = filter(&["--json"]);
    assert_eq!((&counts["n_keep"], &counts["n_drop"], &counts["n_files"]), (&json!(1), &json!(1), &json!(2)));
    let kept = night.path().join(format!("kept/dt={DT}"));
    assert!(kept.join("a.org/1.html").exists() && !kept.join("b.org").exists());

    write(&night, "a.org/1.html", html(&text(2, 80)).as_bytes());
    write(&night, "0.org/1.html", html(&text(2, 80)).as_bytes());
    night.run(DT, &["--replace"]).expect_success();
    filter(&["--replace", "--json"]);
    assert!(kept.join("0.org/1.html").exists() && kept.join("b.org/deep/1.html").exists());
    assert!(!kept.join("a.org/1.html").exists(), "the night as it is now drops the page");
}

#[test]
fn filter_writes_no_file_of_web_pages_of_which_nothing_is_kept_and_its_output_can_be_read() {
    let night = Night::new("");
    let page = |host: &str| page(&format!("https://{host}.org/1"), &text(1, 80));
    let warcinfo = gzip(&record("warcinfo", "", "Content-Type: application/warc-fields\r\n", b"software: test\r\n"));
    let line = json!({"id": "https://h.org/1", "text": text(1, 80)});
    write(&night, "a.warc.gz", &gzip(&page("a")));
    write(&night, "b.warc.gz", &gzip(&page("b")));
    write(&night, "c.warc", &page("c"));
    write(&night, "d.warc.zst", &zstd::encode_all(&page("d")[..], 1).unwrap());
    write(&night, "e.wacz", &zip(&[("archive/e.warc.gz", &gzip(&page("e")))]));
    write(&night, "f.warc.gz", &[warcinfo, gzip(&page("f"))].concat());
    write(&night, "g.warc", b"");
    write(&night, "h.jsonl.gz", &gzip(format!("{line}\n").as_bytes()));
    let filter = |more: &[&str]| {
        let args = [&["filter", "--config", "job.toml", "--dt", DT, "--output", "kept", "--json"], more].concat();
        nearprint_in(night.path(), &args).expect_success().json()
    };
    let is_written = |names: [&str; 4]| {
        let names = names.map(|name| format!("dt={DT}/{name}"));
        assert_eq!(files_below(&night.path().join("kept")), names);
        let documents = format!("kept/dt={DT}");
        let args = ["fingerprint", "--documents", &documents, "--output", "fingerprints", "--replace", "--json"];
        assert_eq!(nearprint_in(night.path(), &args).expect_success().json()["n_documents"], 1);
    };
    night.run(DT, &[]).expect_success();
    let counts = filter(&[]);
    assert_eq!((&counts["n_keep"], &counts["n_drop"], &counts["n_files"]), (&json!(1), &json!(6), &json!(8)));
    is_written(["_SUCCESS", "a.warc.gz", "f.warc.gz", "h.jsonl.gz"]);

    // What was kept by the filter before is dropped now.
    write(&night, "0.warc.gz", &gzip(&page("0")));
    night.run(DT, &["--replace"]).expect_success();
    filter(&["--replace"]);
    is_written(["0.warc.gz", "_SUCCESS", "f.warc.gz", "h.jsonl.gz"]);
}

#[test]
fn audit_finds_the_texts_of_html_and_warc_files_again() {
    let (page, longer) = (text(1, 200), format!("{} {}", text(1, 200), text(9, 4)));
    let as_html = Night::new("");
    write(&as_html, "a.org/1.html", html(&longer).as_bytes());
    write(&as_html, "b.org/1.html.gz", &gzip(html(&page).as_bytes()));
    let as_warc = Night::new("");
    let records = [("https://a.org/1", &longer), ("https://b.org/1", &page)];
    let records: Vec<u8> = records.iter().flat_map(|(url, page)| gzip(&self::page(url, page))).collect();
    write(&as_warc, "a.warc.gz", &records);
    for night in [as_html, as_warc] {
        night.run(DT, &[]).expect_success();
        let done = nearprint_in(night.path(), &["audit", "--config", "job.toml", "--dt", DT, "--json"]);
        let found = done.expect_success().json();
        assert_eq!((&found["n_drops"], &found["all"]["n"]), (&json!(1), &json!(1)), "{found}");
    }
}

#[test]
fn filter_copies_the_records_of_kept_documents_and_those_that_are_no_documents() {
    let records: Vec<Vec<u8>> = crawl().iter().map(|record| gzip(record)).collect();
    let night = Night::new("");
    write(&night, "a.warc.gz", &records.concat());
    night.run(DT, &[]).expect_success();
    let args = ["filter", "--config", "job.toml", "--dt", DT, "--output", "kept"];
    nearprint_in(night.path(), &args).expect_success();
    let kept = std::fs::read(night.path().join(format!("kept/dt={DT}/a.warc.gz"))).unwrap();
    let without_the_copy: Vec<u8> = [&records[..4], &records[5..]].concat().concat();
    assert!(kept == without_the_copy, "the records are copied byte for byte");
}

#[test]
fn filter_copies_records_that_are_too_large_to_be_read_whole_in_a_plain_file_too() {
    let large = record("metadata", "https://a.org/large", "", &vec![b'x'; 9 << 20]);
    let records = [page("https://a.org/1", &text(1, 80)), large, page("https://a.org/2", &text(2, 80))];
    let night = Night::new("max_doc_bytes = \"1MiB\"\n");
    write(&night, "a.warc", &records.concat());
    night.run(DT, &[]).expect_success();
    let args = ["filter", "--config", "job.toml", "--dt", DT, "--output", "kept"];
    nearprint_in(night.path(), &args).expect_success();
    let kept = std::fs::read(night.path().join(format!("kept/dt={DT}/a.warc"))).unwrap();
    assert!(kept == records.concat(), "the records are copied byte for byte");
}

#[test]
fn a_large_record_is_a_bad_row_unless_it_is_plainly_no_page() {
    let large = vec![b'x'; 9 << 20];
    let night = Night::new("max_doc_bytes = \"1MiB\"\n");
    let passed = [
        response("https://a.org/film", "Content-Type: video/mp4\r\n", &large),
        record("resource", "https://a.org/sound", "Content-Type: audio/mpeg\r\n", &large),
        record("conversion", "https://a.org/html", "Content-Type: text/html\r\n", &large),
        record(
            "response",
            "https://a.org/gone",
            "Content-Type: application/http\r\n",
            &[b"HTTP/1.1 404 Not Found\r\n\r\n", &large[..]].concat(),
        ),
    ];
    let pages = [page("https://a.org/1", &text(1, 80)), page("https://a.org/2", &text(2, 80))];
    write(&night, "a.warc", &[&passed.concat()[..], &pages[0]].concat());
    write(&night, "b.warc.gz", &[gzip(&passed[0]), gzip(&pages[1])].concat());
    let done = night.run(DT, &[]).expect_success().json();
    let reasons = json!({ "content_type": 4, "http_status": 1 });
    assert_eq!((&done["n_documents"], &done["passed_records_by_reason"]), (&json!(2), &reasons));
    write(&night, "c.warc", &response("https://a.org/page", HTML, &large));
    expect(&night.run(DT, &["--replace"]), 65, &["c.warc byte 0", "too_large"]);
}

#[test]
fn filter_copies_records_with_any_number_of_line_ends_behind_them() {
    let pages = [1, 2].map(|n| [page(&format!("https://a.org/{n}"), &text(n, 80)), vec![b'\n'; 100_000]].concat());
    let night = Night::new("");
    write(&night, "a.warc", &pages[0]);
    write(&night, "b.warc.gz", &gzip(&pages[1]));
    night.run(DT, &[]).expect_success();
    nearprint_in(night.path(), &["filter", "--config", "job.toml", "--dt", DT, "--output", "kept"]).expect_success();
    let kept = |name: &str| std::fs::read(night.path().join(format!("kept/dt={DT}/{name}"))).unwrap();
    assert!(kept("a.warc") == pages[0] && kept("b.warc.gz") == gzip(&pages[1]), "the records are copied byte for byte");
}

#[test]
fn a_body_of_which_a_chunk_may_be_missing_is_no_page() {
    let night = Night::new("max_bad_rows = 2\n");
    let body = html(&text(1, 80));
    let chunk = |body: &[u8]| [format!("{:x}\r\n", body.len()).as_bytes(), body, b"\r\n"].concat();
    let fields = format!("{HTML}Transfer-Encoding: chunked\r\n");
    let packed = chunk(&gzip(html(&text(2, 80)).as_bytes()));
    let records = [
        response("https://a.org/cut", &fields, &chunk(&body.as_bytes()[..body.len() / 2])),
        response("https://a.org/packed", &format!("{fields}Content-Encoding: gzip\r\n"), &packed),
        response("https://a.org/other", &format!("{HTML}Content-Encoding: zstd\r\n"), &gzip(body.as_bytes())),
    ];
    write(&night, "a.warc", &records.concat());
    let done = night.run(DT, &[]).expect_success().json();
    assert_eq!((&done["n_documents"], &done["bad_rows_by_reason"]), (&json!(1), &json!({ "broken_body": 2 })));
    kept_and_dropped(&night, &[("https://a.org/packed", "keep")]);
}

fn files_below(folder: &Path) -> Vec<String> {
    support::snapshot(folder).into_keys().map(|path| path.display().to_string()).collect()
}

#[test]
fn a_store_of_another_text_of_pages_is_refused() {
    let night = Night::new("allow_empty = true\n");
    write(&night, "a.warc", &page("https://a.org/1", &text(1, 80)));
    night.run(DT, &[]).expect_success();
    let job = std::fs::read_to_string(night.path().join("job.toml")).unwrap();
    for (text, code) in [("\"all\"", 78), ("{ selector = \"main p\" }", 78), ("\"main\"", 0)] {
        std::fs::write(night.path().join("job.toml"), format!("{job}html_text = {text}\n")).unwrap();
        let done = night.run("2026-11-21", &[]);
        assert_eq!(done.code, code, "{text}: {}", done.stderr);
    }
    std::fs::write(night.path().join("job.toml"), format!("{job}html_text = {{ selector = \"p[[\" }}\n")).unwrap();
    expect(&night.run("2026-11-22", &[]), 78, &["html_text", "p[["]);
}

#[test]
fn a_record_that_holds_a_packed_warc_file_gives_no_documents_of_it() {
    let inner: Vec<u8> = (0..50).flat_map(|n| gzip(&page(&format!("https://inner.org/{n}"), &text(n, 80)))).collect();
    let outer = response("https://a.org/file", "Content-Type: application/warc\r\n", &inner);
    let mut stored = GzEncoder::new(Vec::new(), Compression::none());
    stored.write_all(&outer).unwrap();
    let night = Night::new("");
    write(&night, "a.warc.gz", &[stored.finish().unwrap(), gzip(&page("https://a.org/1", &text(99, 80)))].concat());
    let summary = night.run(DT, &[]).expect_success().json();
    assert_eq!(summary["passed_records_by_reason"], json!({"content_type": 1}));
    kept_and_dropped(&night, &[("https://a.org/1", "keep")]);
}

#[test]
fn a_large_file_with_a_packed_warc_file_in_a_record_is_read_from_its_beginning() {
    let stored = |bytes: &[u8]| {
        let mut member = GzEncoder::new(Vec::new(), Compression::none());
        member.write_all(bytes).unwrap();
        member.finish().unwrap()
    };
    let inner = stored(&page("https://inner.org/1", &text(1, 80))).repeat(16_000);
    assert!(inner.len() > 33 << 20);
    let outer = stored(&response("https://a.org/file", "Content-Type: application/warc\r\n", &inner));
    let night = Night::new("");
    write(&night, "a.warc.gz", &[outer, gzip(&page("https://a.org/1", &text(99, 80)))].concat());
    let done = night.run(DT, &[]).expect_success();
    assert!(done.stderr.contains("a.warc.gz") && done.stderr.contains("its spans do not join"), "{}", done.stderr);
    assert_eq!(done.json()["passed_records_by_reason"], json!({"content_type": 1}));
    kept_and_dropped(&night, &[("https://a.org/1", "keep")]);
}

/// A published night of one page, and `saved.html` with the same text.
fn with_saved_page() -> Night {
    let night = Night::new("");
    write(&night, "a.warc.gz", &gzip(&page("https://a.org/1", &text(1, 80))));
    night.run(DT, &[]).expect_success();
    std::fs::write(night.path().join("saved.html"), html(&text(1, 80))).unwrap();
    night
}

#[test]
fn an_html_file_is_a_query() {
    let night = with_saved_page();
    let done = nearprint_in(night.path(), &["query", "--config", "job.toml", "--file", "saved.html", "--json"]);
    assert!(done.expect_success().stdout.contains("https://a.org/1"));

    let page = html(&text(1, 80));
    let xhtml = format!("<?xml version=\"1.0\"?>\n<!DOCTYPE html>\n{page}");
    for (name, content) in [("saved", &page), ("saved.xhtml", &xhtml)] {
        std::fs::write(night.path().join(name), content).unwrap();
        let done = nearprint_in(night.path(), &["query", "--config", "job.toml", "--file", name, "--json"]);
        assert!(done.expect_success().stdout.contains("https://a.org/1"), "{name}");
    }
    std::fs::write(night.path().join("records"), self::page("https://a.org/1", &text(1, 80))).unwrap();
    for name in ["queries.jsonl", "a.warc.gz", "records"] {
        let done = nearprint_in(night.path(), &["query", "--config", "job.toml", "--file", name]);
        expect(&done, 64, &[name, "many documents"]);
    }
}

#[test]
fn a_page_on_standard_input_is_a_query() {
    let night = with_saved_page();
    let line = format!("{} query --config job.toml --file - --json < saved.html", support::NEARPRINT);
    let done = support::Run::new(Path::new("sh"), night.path(), &["-c", &line]).run().unwrap();
    assert!(done.expect_success().stdout.contains("https://a.org/1"));
}

#[test]
fn ids_of_time_and_url_name_their_hosts_as_sources() {
    assert_eq!(sources("warc_id = \"url_time\"\n"), ["b.org"]);
}

#[test]
fn a_page_has_the_same_source_by_its_id_and_by_its_column_of_hosts() {
    assert_eq!(sources(""), ["b.org"]);
    assert_eq!(sources("source_column = \"host\"\n"), ["b.org"]);
}

#[test]
fn other_sources_are_another_configuration_even_if_the_keep_order_has_their_column() {
    let job = "keep = [\"host asc\"]\n";
    let night = Night::new(job);
    write(&night, "a.warc", &page("https://a.org/1", &text(1, 200)));
    night.run(DT, &[]).expect_success();
    let written = std::fs::read_to_string(night.path().join("job.toml")).unwrap();
    std::fs::write(night.path().join("job.toml"), written.replace(job, &format!("source_column = \"host\"\n{job}")))
        .unwrap();
    expect(&night.run(DT, &[]), 73, &["is published from other configuration"]);
    night.run(DT, &["--replace"]).expect_success();
    assert_eq!(night.run(DT, &[]).expect_success().json()["status"], "already_published");
}

/// Returns the sources that lose a document in a night of two similar pages.
fn sources(job: &str) -> Vec<String> {
    let night = Night::new(job);
    let longer = format!("{} {}", text(1, 200), text(9, 4));
    let pages = [page("https://a.org/1", &longer), page("https://B.org:8443/1", &text(1, 200))];
    write(&night, "a.warc", &pages.concat());
    let summary = night.run(DT, &[]).expect_success().json();
    summary["sources"].as_array().unwrap().iter().map(|of| of["source"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn repeated_urls_are_named_by_their_places_in_the_bytes() {
    let pages = [page("https://a.org/1", &text(1, 80)), page("https://a.org/1", &text(2, 80))];
    let night = Night::new("on_duplicate_id = \"fail\"\n");
    write(&night, "a.warc", &pages.concat());
    expect(&night.run(DT, &[]), 65, &["a.warc byte 0", &format!("a.warc byte {}", pages[0].len())]);
}

#[test]
fn an_arc_file_is_refused_with_a_command_that_converts_it() {
    let night = Night::new("");
    write(&night, "a.warc.gz", &gzip(b"filedesc://a.arc 0.0.0.0 20221120000000 text/plain 9\n1 0 x\n\n"));
    expect(&night.run(DT, &[]), 65, &["a.warc.gz", "ARC", "warcio recompress"]);
}

#[test]
fn the_same_files_give_the_same_bytes_whatever_the_threads() {
    let [one, two] = ["1", "2"].map(|threads| {
        let night = Night::new("");
        let pages: Vec<u8> =
            (0..200).flat_map(|n| gzip(&page(&format!("https://a.org/{n}"), &text(n / 2, 80)))).collect();
        write(&night, "a.warc.gz", &pages);
        night.run(DT, &["--threads", threads]).expect_success();
        let files = support::data_files(night.path());
        (night, files)
    });
    assert_eq!(one.1, two.1);
}

#[test]
fn texts_of_pages_are_those_that_were_fingerprinted_whatever_the_format() {
    let night = Night::new("");
    let damaged = record("conversion", "https://a.org/bytes", "Content-Type: text/plain\r\n", b"no \xff UTF-8");
    let mut records = crawl();
    records.insert(4, damaged);
    let packed: Vec<u8> = records.iter().flat_map(|record| gzip(record)).collect();
    write(&night, "sub/a.warc.gz", &packed);
    write(&night, "b.html", html(&text(5, 80)).as_bytes());
    let line = |id: &str, text: &str| format!("{}\n", json!({"id": id, "text": text, "other": 1}));
    let lines =
        [line("c1", &text(6, 80)), line("https://C.org/2", &text(7, 80)), line("c3", &text(6, 80)), line("c4", "")];
    write(&night, "c.jsonl", lines.concat().as_bytes());
    let parquet = night.path().join(format!("documents/dt={DT}/d.parquet"));
    support::write_documents(
        &parquet,
        &[(Some("d1"), Some("北京的天气很好，明天我们去长城看看，后天再去故宫博物院参观一天")), (Some("d2"), None)],
    );
    let done = night.run(DT, &["--max-bad-rows", "1"]).expect_success().json();
    let n_keep = done["n_keep"].as_u64().unwrap();
    let filter = |format: &str| {
        let args = ["filter", "--config", "job.toml", "--dt", DT, "--as", format, "--output", format, "--json"];
        nearprint_in(night.path(), &args).expect_success().json()
    };
    let (jsonl, parquet) = (filter("jsonl"), filter("parquet"));
    for counts in [&jsonl, &parquet] {
        assert_eq!((counts["n_keep"].as_u64(), counts["n_quarantine"].as_u64()), (Some(n_keep), Some(1)), "{counts}");
    }
    let mut rows = Vec::new();
    for name in ["sub/a.warc.gz.jsonl", "b.html.jsonl", "c.jsonl", "d.parquet.jsonl"] {
        let lines = std::fs::read_to_string(night.path().join(format!("jsonl/dt={DT}/{name}"))).unwrap();
        rows.extend(lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()));
    }
    let row = |id: &str| rows.iter().find(|row| row["id"] == id).unwrap_or_else(|| panic!("{id} in {rows:?}"));
    let page = row("https://a.org/1");
    assert_eq!(page["text"].as_str().map(str::trim), Some(text(1, 80).as_str()));
    let said = ["url", "host", "fetch_time", "script", "title"].map(|column| page[column].as_str());
    assert_eq!(
        said,
        [Some("https://a.org/1"), Some("a.org"), Some("2026-11-20T01:02:03Z"), Some("Latn"), Some("Site")]
    );
    let said = ["url", "host", "fetch_time", "script", "title"].map(|column| row("https://C.org/2")[column].as_str());
    assert_eq!(said, [Some("https://C.org/2"), Some("c.org"), None, Some("Latn"), None]);
    assert_eq!((row("d1")["script"].as_str(), row("d1")["host"].as_str()), (Some("Hani"), None));
    assert_eq!(rows.len() as u64, n_keep);
    // What is written has the fingerprints of what was read, in both formats.
    let fingerprints = |documents: &str, output: &str| {
        let args = ["fingerprint", "--documents", documents, "--output", output, "--max-bad-rows", "1"];
        nearprint_in(night.path(), &args).expect_success();
        let mut rows = support::rows(&night.path().join(output).join("part-00000.parquet"));
        rows.sort();
        rows
    };
    let all = fingerprints(&format!("documents/dt={DT}"), "of_documents");
    for format in ["jsonl", "parquet"] {
        let texts = fingerprints(&format!("{format}/dt={DT}"), &format!("of_{format}"));
        assert_eq!(texts.len() as u64, n_keep);
        assert!(texts.iter().all(|row| all.contains(row)), "{texts:?} {all:?}");
    }
    let other = ["filter", "--config", "job.toml", "--dt", DT, "--as", "csv", "--output", "x"];
    assert_eq!(nearprint_in(night.path(), &other).code, 64);
}

#[test]
fn a_page_whose_media_type_is_written_badly_or_not_at_all_is_a_page() {
    let night = Night::new("");
    let utf16: Vec<u8> = format!("\u{feff}{}", html(&text(1, 80))).encode_utf16().flat_map(u16::to_le_bytes).collect();
    let marked = |n| format!("\u{feff}{}", html(&text(n, 80))).into_bytes();
    let records = [
        response("https://a.org/space", "Content-Type: text/html charset=utf-8\r\n", html(&text(2, 80)).as_bytes()),
        response("https://a.org/empty", "Content-Type:\r\n", html(&text(3, 80)).as_bytes()),
        response(
            "https://a.org/two",
            "Content-Type: text/plain\r\nContent-Type: text/html\r\n",
            html(&text(4, 80)).as_bytes(),
        ),
        response("https://a.org/mark", "", &marked(5)),
        response("https://a.org/utf16", "", &utf16),
        response("https://a.org/text", "Content-Type: text/html\r\nContent-Type: text/plain\r\n", b"no page"),
    ];
    write(&night, "a.warc", &records.concat());
    let done = night.run(DT, &[]).expect_success().json();
    assert_eq!((&done["n_documents"], &done["passed_records_by_reason"]), (&json!(5), &json!({ "content_type": 1 })));
    assert_eq!((&done["n_empty"], &done["n_too_short"]), (&json!(0), &json!(0)), "each page has its text");
}
