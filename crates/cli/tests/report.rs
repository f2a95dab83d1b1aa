//! `nearprint report`: the page and the Markdown of a night.

use std::collections::BTreeSet;
use std::path::Path;

use scraper::{Html, Node, Selector};

use crate::support::{Night, edited, expect, nearprint_in, root, text, write_documents};

const DT: &str = "2026-11-20";
const REPORT: [&str; 5] = ["report", "--config", "job.toml", "--dt", DT];

/// A published night of three near-duplicates and a document alone, after a night of two documents.
fn published() -> Night {
    let night = Night::new("max_lost_share = 1\n");
    let [one, two, three] = [1, 2, 3].map(|seed| text(seed, 150));
    night.documents("2026-11-19", &[("before/1", &one), ("before/2", &two)]).run("2026-11-19", &[]).expect_success();
    let (near, nearer) = (edited(&edited(&one, 3), 70), edited(&two, 9));
    let rows =
        [("https://a.example/1", near.as_str()), ("https://a.example/2", &nearer), ("https://b.example/3", &three)];
    night.documents(DT, &rows).run(DT, &["--report", "run.html"]).expect_success();
    night
}

fn page(night: &Night, more: &[&str]) -> String {
    nearprint_in(night.path(), &[&REPORT[..], &["--html", "page.html"], more].concat()).expect_success();
    std::fs::read_to_string(night.path().join("page.html")).unwrap()
}

/// The texts of all elements that a selector finds.
fn texts(page: &str, selector: &str) -> Vec<String> {
    let (page, selector) = (Html::parse_document(page), Selector::parse(selector).unwrap());
    page.select(&selector).map(|element| element.text().collect::<String>()).collect()
}

#[test]
fn the_page_of_a_night_is_the_same_whoever_writes_it_and_whatever_later_nights_publish() {
    let night = published();
    let first = page(&night, &[]);
    assert_eq!(first, std::fs::read_to_string(night.path().join("run.html")).unwrap());
    assert_eq!(first, page(&night, &["--threads", "1"]));
    night.documents("2026-11-21", &[("later", &text(9, 90))]).run("2026-11-21", &[]).expect_success();
    assert_eq!(first, page(&night, &[]));
}

#[test]
fn a_stale_night_says_so_wherever_it_is_read() {
    let night = published();
    let said = |more: &[&str]| nearprint_in(night.path(), &[&REPORT[..], more].concat()).expect_success();
    let everywhere = || {
        let json = said(&["--json"]).json();
        let shown = [said(&[]).stdout, said(&["--format", "md"]).stdout, page(&night, &[])];
        (json["is_stale"].as_bool().unwrap(), shown, json["next"].as_str().map(str::to_owned))
    };
    let (is_stale, shown, next) = everywhere();
    assert!(!is_stale && next.is_none() && shown.iter().all(|text| !text.contains("stale")), "{shown:?}");
    let fresh = page(&night, &[]);
    night.documents("2026-11-18", &[("late", &text(8, 90))]).run("2026-11-18", &["--late"]).expect_success();
    let (is_stale, shown, next) = everywhere();
    let all_say = shown.iter().all(|text| text.contains("The night is stale: nights before it were added"));
    assert!(is_stale && all_say, "{shown:?}");
    let anew = "run --config job.toml --stale";
    assert_eq!(next, Some(format!("nearprint {anew}")));
    nearprint_in(night.path(), &anew.split(' ').collect::<Vec<_>>()).expect_success();
    assert!(!everywhere().0);
    assert!(!fresh.contains("stale"));
}

#[test]
fn an_empty_id_is_shown_as_two_quotes() {
    let night = Night::new("");
    let one = text(1, 150);
    night.documents(DT, &[("", &one), ("x", &one)]).run(DT, &[]).expect_success();
    let said = |more: &[&str]| nearprint_in(night.path(), &[&REPORT[..], more].concat()).expect_success().stdout;
    let text = said(&[]);
    assert!(text.lines().any(|line| line.trim_end() == "  keep  \"\""), "{text}");
    assert!(text.lines().any(|line| line.trim_end() == "         2  \"\""), "{text}");
    assert!(said(&["--format", "md"]).contains("| `\"\"` | 2 |"), "{}", said(&["--format", "md"]));
    assert!(texts(&page(&night, &[]), "code").contains(&"\"\"".to_owned()));
    let query = ["query", "--config", "job.toml", "--text", &*one];
    let found = nearprint_in(night.path(), &query).expect_success().stdout;
    assert!(found.contains("represented by \"\"") && found.contains("keep      \"\"  same text"), "{found}");
}

#[test]
fn a_page_shows_the_weakest_drop_first_with_what_it_lost() {
    let page = page(&published(), &[]);
    assert_eq!(texts(&page, "h1"), ["Night 2026-11-20"]);
    let dropped: Vec<String> = texts(&page, "article dd:nth-of-type(1) code");
    assert_eq!(dropped, ["https://a.example/1", "https://a.example/2"], "the first has two replaced words");
    let (lost, gained) = (texts(&page, "article del"), texts(&page, "article ins"));
    assert!(lost.len() == 3 && lost.iter().all(|word| word == "edited") && gained.len() == 3, "{lost:?} {gained:?}");
    let trend = texts(&page, "#trend tbody th");
    assert_eq!(trend, ["2026-11-20", "2026-11-19"]);
    let sources = texts(&page, "#sources tbody tr");
    // Two hosts in the table of what hosts gave, and the one that lost documents.
    assert_eq!(sources.len(), 3);
    assert!(sources[2].starts_with("a.example"), "{sources:?}");
    let captions = texts(&page, "#sources caption");
    let compared = "Compared documents are those without exact copies, stubs and skipped ones";
    assert!(captions[1].ends_with(compared), "{captions:?}");
    let tiles = texts(&page, ".tiles dt");
    assert_eq!(tiles, ["Documents", "Kept", "Dropped", "Skipped", "Saved, about"]);
}

#[test]
fn a_page_without_its_documents_says_so_and_shows_everything_else() {
    let night = published();
    std::fs::remove_dir_all(night.path().join("documents")).unwrap();
    let page = page(&night, &[]);
    let gone =
        texts(&page, "article").iter().filter(|text| text.contains("their files are gone, have changed since")).count();
    assert_eq!((gone, texts(&page, "article del").len()), (2, 0));
    assert_eq!(texts(&page, "#trend tbody th").len(), 2);
    let said = nearprint_in(night.path(), &["report", "-c", "job.toml", "--dt", DT]).expect_success().stdout;
    assert_eq!(said.matches("the files with these texts are gone").count(), 2, "{said}");
}

#[test]
fn texts_are_those_of_the_files_that_the_night_read_wherever_they_are_and_of_no_file_that_has_changed() {
    let night = Night::new("max_lost_share = 1\n");
    let one = text(1, 150);
    let other = edited(&one, 70);
    let write = |rows: &[(&str, &str)]| {
        let rows: Vec<_> = rows.iter().map(|(id, text)| (Some(*id), Some(*text))).collect();
        write_documents(&night.path().join("elsewhere/pages.parquet"), &rows);
    };
    write(&[("a", &one), ("b", &other)]);
    std::fs::write(night.path().join("list.txt"), "elsewhere\n").unwrap();
    night.run(DT, &["--files-from", "list.txt"]).expect_success();
    let excerpts = || {
        let json = nearprint_in(night.path(), &[&REPORT[..], &["--json"]].concat()).expect_success().json();
        json["examples"][0]["excerpts"].clone()
    };
    assert_eq!(excerpts().as_array().map(Vec::len), Some(2), "the place of the job's documents has none of them");
    write(&[("a", &text(2, 150)), ("b", &other)]);
    assert!(excerpts().is_null(), "the text of a is another one");
}

#[test]
fn a_report_has_texts_of_earlier_nights_that_forgot_others_and_is_made_without_those_of_a_damaged_one() {
    let night = published();
    let report = |more: &[&str]| nearprint_in(night.path(), &[&REPORT[..], more].concat()).expect_success();
    let n_shown = || {
        let json = report(&["--json"]).json();
        json["examples"].as_array().unwrap().iter().filter(|example| example["excerpts"].is_array()).count()
    };
    std::fs::write(night.path().join("ids"), "before/2\n").unwrap();
    let audited = |of: &str| {
        nearprint_in(night.path(), &["audit", "-c", "job.toml", "--dt", DT, "--json"]).json()["all"][of].clone()
    };
    assert_eq!((n_shown(), audited("n")), (2, 2.into()));
    nearprint_in(night.path(), &["store", "forget", "store", "--ids", "ids"]).expect_success();
    assert_eq!((n_shown(), audited("n")), (1, 1.into()), "the night before is another generation without one page");

    let records = night.path().join("results/_nearprint/dt=2026-11-19");
    let generations: Vec<_> = std::fs::read_dir(records).unwrap().map(|entry| entry.unwrap().path()).collect();
    for generation in generations {
        std::fs::write(generation.join("manifest.json"), "{").unwrap();
    }
    let done = report(&["--html", "page.html"]);
    assert!(done.stderr.contains("the texts of this night and of those before it are not shown"), "{}", done.stderr);
    assert_eq!(n_shown(), 0);
}

#[test]
fn the_report_of_a_night_says_that_documents_were_forgotten_since_and_what_came_near_a_limit() {
    let night = Night::new("[breakers]\nmin_source_documents = 1\nmax_source_loss = 0.7\n");
    let [one, two] = [1, 2].map(|seed| text(seed, 150));
    let near = edited(&one, 3);
    night
        .documents(DT, &[("https://a.example/1", &one), ("https://a.example/2", &near), ("https://b.example/3", &two)]);
    night.run(DT, &[]).expect_success();
    let said = || nearprint_in(night.path(), &REPORT).expect_success().stdout;
    assert!(
        said()
            .contains("50.0 % of source a.example are near-duplicates: more than 70.0 % would have stopped the night"),
        "{}",
        said()
    );
    assert!(!said().contains("forgotten"), "{}", said());
    std::fs::write(night.path().join("ids"), "https://b.example/3\n").unwrap();
    nearprint_in(night.path(), &["store", "forget", "store", "--ids", "ids"]).expect_success();
    assert!(said().contains("\n1 document forgotten since; the counts are those of the run\n"), "{}", said());
}

#[test]
fn a_page_says_that_nothing_stands_out_only_of_what_it_looked_at() {
    // Lines of JSON, for Parquet files of tests have no checksums, which a page tells.
    let said = |job: &str, lines: &[String], more: &[&str]| {
        let night = Night::new(job);
        let folder = night.path().join(format!("documents/dt={DT}"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("part.jsonl"), lines.concat()).unwrap();
        night.run(DT, &[]).expect_success();
        page(&night, more)
    };
    let base = text(1, 150);
    let line = |id: &str, i: usize| format!("{{\"id\": {id}, \"text\": \"{base} v{i}\"}}\n");
    let lines = |n: usize| -> Vec<String> { (0..n).map(|i| line(&format!("\"d{i:02}\""), i)).collect() };
    let nothing = "Nothing stands out: no breaker came near its limit, and no row of the input is in quarantine.";
    let page = said("", &lines(2), &[]);
    assert!(page.contains(nothing), "{page}");
    let bad = [lines(1), vec![line("null", 1)]].concat();
    for (job, lines, look) in [
        // A cluster may have as many different texts as documents.
        ("[breakers]\nmax_cluster = 20\n", lines(11), "The breaker max_cluster may have been near: at most 11"),
        (
            "on_duplicate_id = \"keep_first\"\n",
            [lines(2), lines(1)].concat(),
            "1 row is left out and in quarantine: another row has the id.",
        ),
        ("max_bad_rows = 9\n", bad.clone(), "1 row that is no document, in quarantine: "),
    ] {
        let page = said(job, &lines, &[]);
        assert!(texts(&page, ".look li").iter().any(|line| line.starts_with(look)), "{look}: {page}");
        assert!(!page.contains("Nothing stands out"), "{look}: {page}");
    }
    let page = said("max_bad_rows = 9\n", &bad, &["--examples", "0"]);
    assert_eq!(texts(&page, "#quarantine p"), ["0 of 1 bad row. The dataset quarantine has all."]);
}

#[test]
fn a_page_of_an_empty_night_and_of_a_release_without_counts_of_sources_can_be_made() {
    let night = Night::new("allow_empty = true\n");
    std::fs::create_dir_all(night.path().join(format!("documents/dt={DT}"))).unwrap();
    write_documents(&night.path().join(format!("documents/dt={DT}/p.parquet")), &[]);
    night.run(DT, &[]).expect_success();
    let page = page(&night, &[]);
    assert!(texts(&page, ".look li").iter().any(|line| line == "The night has no documents."), "{page}");
    assert!(page.contains("No near-duplicate was dropped"));
}

/// A night whose ids, texts, clusters and quarantined rows hold payloads.
fn attacked() -> (Night, Vec<String>) {
    let payloads = std::fs::read_to_string(root().join("crates/cli/tests/data/xss.txt")).unwrap();
    let payloads: Vec<String> = payloads.lines().map(str::to_owned).collect();
    let night = Night::new("max_lost_share = 1\nmax_doc_bytes = \"16KiB\"\nmax_bad_rows = 100\n");
    let mut rows = Vec::new();
    for (payload, seed) in payloads.iter().zip(1..) {
        let base = text(seed, 150);
        rows.push((payload.clone(), format!("{base} {payload} {base}")));
        rows.push((
            format!("https://{payload}"),
            format!("{} {payload} {} {payload}", edited(&base, 5), edited(&base, 99)),
        ));
        rows.push((format!("{payload} again"), "too large ".repeat(2000)));
    }
    let rows: Vec<(&str, &str)> = rows.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect();
    night.documents(DT, &rows).run(DT, &["--no-breakers"]).expect_success();
    (night, payloads)
}

/// The elements and attributes of a page as `element`, `element@attribute`, and the addresses in it.
fn names(page: &str) -> (BTreeSet<String>, Vec<String>) {
    let (mut names, mut addresses) = (BTreeSet::new(), Vec::new());
    for node in Html::parse_document(page).tree.nodes() {
        let Node::Element(element) = node.value() else {
            assert!(!matches!(node.value(), Node::Comment(_)), "{node:?}");
            continue;
        };
        names.insert(element.name().to_owned());
        for (name, value) in element.attrs() {
            names.insert(format!("{}@{name}", element.name()));
            if matches!(name, "href" | "src" | "action" | "data" | "xlink:href") {
                addresses.push(value.to_owned());
            }
        }
    }
    (names, addresses)
}

#[test]
fn no_id_and_no_text_becomes_an_element_an_attribute_or_an_address_of_the_page() {
    let (night, payloads) = attacked();
    assert_eq!(payloads.len(), 50);
    let page = page(&night, &["--examples", "100"]);
    let ids = texts(&page, "code.id");
    for payload in &payloads {
        assert!(ids.iter().any(|id| id == payload || *id == format!("https://{payload}")), "{payload} is not shown");
    }
    assert!(texts(&page, "article .diff").iter().any(|text| text.contains("<script>hit()</script>")));
    let (found, addresses) = names(&page);
    let known: BTreeSet<String> = KNOWN.split_whitespace().map(str::to_owned).collect();
    assert_eq!(found.difference(&known).collect::<Vec<_>>(), Vec::<&String>::new());
    assert!(addresses.iter().all(|address| address.starts_with('#')), "{addresses:?}");
    assert_eq!(texts(&page, "style").len(), 1);
}

#[test]
fn ids_that_are_addresses_of_pages_are_links_and_no_others() {
    let page = page(&published(), &[]);
    let (html, links) = (Html::parse_document(&page), Selector::parse("a[rel]").unwrap());
    let found: BTreeSet<(&str, String)> = html
        .select(&links)
        .map(|link| {
            assert_eq!(link.attr("rel"), Some("noopener noreferrer nofollow"));
            (link.attr("href").unwrap(), link.text().collect())
        })
        .collect();
    let expected = ["https://a.example/1", "https://a.example/2"].map(|id| (id, id.to_owned()));
    assert_eq!(found, BTreeSet::from(expected), "before/1 and before/2 are no addresses");
}

#[test]
fn the_bars_of_a_chart_have_a_width_however_few_they_are() {
    let page = page(&published(), &[]);
    let (page, bars) = (Html::parse_document(&page), Selector::parse("svg rect").unwrap());
    let widths: Vec<i32> = page.select(&bars).map(|bar| bar.attr("width").unwrap().parse().unwrap()).collect();
    assert!(widths.len() > 3 && widths.iter().all(|&width| width > 0), "{widths:?}");
}

/// The elements and attributes that pages are made of.
const KNOWN: &str = "html html@lang head meta meta@charset meta@http-equiv meta@content meta@name title style body \
    header nav nav@aria-label main main@id footer section section@id section@aria-label section@aria-labelledby \
    h1 h2 h2@id h3 h3@id p p@class a a@class a@href a@rel ul ul@class li li@class dl dl@class dt dd dd@class \
    div div@class div@role div@aria-label div@tabindex div@dir code code@class code@dir del ins \
    article article@aria-labelledby table caption thead tbody tr th th@scope th@class td td@class \
    figure figure@class figcaption details summary \
    svg svg@width svg@height svg@viewBox svg@xmlns rect rect@x rect@y rect@width rect@height rect@opacity rect@fill \
    rect@stroke text text@x text@y text@dy text@text-anchor text@font-family text@font-size text@opacity text@fill \
    polyline polyline@fill polyline@opacity polyline@stroke polyline@stroke-width polyline@points \
    line line@opacity line@stroke line@stroke-width line@x1 line@y1 line@x2 line@y2 span span@class";

#[test]
fn markdown_has_tables_and_no_markup_of_documents() {
    let night = published();
    let said = nearprint_in(night.path(), &[&REPORT[..], &["--format", "md"]].concat()).expect_success().stdout;
    assert!(
        said.starts_with("### Night 2026-11-20\n\n| | | |\n|---|---:|---|\n| Documents | 3 | in 1 file |\n"),
        "{said}"
    );
    assert!(said.contains("| `https://a.example/1` | `before/1` |"), "{said}");
    let (attacked, payloads) = attacked();
    let report = [&REPORT[..], &["--format", "md", "--examples", "100"]].concat();
    let said = nearprint_in(attacked.path(), &report).expect_success().stdout;
    for line in said.lines().filter(|line| line.starts_with("| ")) {
        // Outside of code, which two backticks hold if there is one in it, no character begins a tag.
        let fence = if line.contains("``") { "``" } else { "`" };
        let outside: String = line.split(fence).step_by(2).collect();
        assert!(!outside.contains('<'), "{line}");
    }
    assert!(payloads.iter().filter(|payload| said.contains(payload.as_str())).count() > 40, "{said}");
}

#[test]
fn a_page_that_would_overwrite_documents_or_the_job_is_refused() {
    let night = published();
    for html in ["job.toml", "documents"] {
        let done = nearprint_in(night.path(), &[&REPORT[..], &["--html", html]].concat());
        assert_eq!(done.code, 64, "{html}: {}", done.stderr);
    }
    let done = nearprint_in(night.path(), &[&REPORT[..], &["--html", "nowhere/page.html"]].concat());
    assert_eq!(done.code, 74, "{}", done.stderr);
}

#[test]
fn the_place_of_a_page_is_looked_at_before_the_night_is_made() {
    let night = Night::new("");
    night.documents(DT, &[("a", &text(1, 90))]);
    std::fs::write(night.path().join("file.html"), "mine").unwrap();
    std::fs::create_dir(night.path().join("folder.html")).unwrap();
    for (html, code) in [("nowhere/page.html", 74), ("file.html/page.html", 64), ("file.html", 73), ("folder.html", 73)]
    {
        let done = night.run(DT, &["--report", html]);
        assert_eq!(done.code, code, "{html}: {}", done.stderr);
        assert!(!night.path().join("results").exists(), "{html}");
    }
}

/// The files of the night are smaller than the limit, and its page is larger.
#[test]
fn a_night_whose_page_cannot_be_written_is_published_and_says_so() {
    let night = Night::new("");
    night.documents(DT, &[("a", &text(1, 90))]);
    let limited = format!(
        "trap '' XFSZ; ulimit -f 24; exec {} run --config job.toml --dt {DT} --create-store --json --report page.html",
        crate::support::NEARPRINT
    );
    let done = crate::support::Run::new(Path::new("sh"), night.path(), &["-c", &limited]).run().unwrap();
    assert_eq!((done.code, done.json()["exit_code"].as_u64()), (74, Some(74)), "{}", done.stderr);
    assert!(done.stderr.contains("the night is published, but not its page"), "{}", done.stderr);
    assert_eq!(done.json()["n_keep"], 1);
    let again = night.run(DT, &["--report", "page.html"]).expect_success().json();
    assert_eq!((&again["status"], &again["page"]["url"]), (&"already_published".into(), &"page.html".into()));
}

/// A site in two languages whose pages are not translated: each text is there twice, and 12 pages have a near copy.
fn bilingual() -> Night {
    let night = Night::new("");
    let mut rows = Vec::new();
    for page in 0..12 {
        let base = text(page as u64, 150);
        let near = edited(&base, 3 + page);
        for language in ["en", "zh-CN"] {
            rows.push((format!("https://a.example/{language}/{page}"), base.clone()));
            rows.push((format!("https://a.example/{language}/{page}/print"), near.clone()));
        }
    }
    let rows: Vec<(&str, &str)> = rows.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect();
    night.documents(DT, &rows).run(DT, &["--no-breakers"]).expect_success();
    night
}

#[test]
fn drops_of_the_same_two_texts_are_one_example_that_counts_them() {
    let night = bilingual();
    let report = |more: &[&str]| nearprint_in(night.path(), &[&REPORT[..], more].concat()).expect_success();
    let json = report(&["--json", "--examples", "20"]).json();
    let examples = json["examples"].as_array().unwrap();
    let excerpts: BTreeSet<String> = examples.iter().map(|example| example["excerpts"].to_string()).collect();
    assert_eq!(excerpts.len(), examples.len(), "{json}");
    let near: Vec<_> = examples.iter().filter(|example| example["reason"] == "near").collect();
    assert!(near.len() > 5 && near.iter().all(|example| example["n_alike"] == 1), "{json}");
    assert!(report(&[]).stdout.contains(") and 1 more like it\n"), "{}", report(&[]).stdout);
    assert!(report(&["--format", "md"]).stdout.contains("` and 1 more | `"), "{}", report(&["--format", "md"]).stdout);
    let headings = texts(&page(&night, &[]), "article h3");
    assert!(headings.iter().all(|heading| heading.ends_with(", and 1 more like it")), "{headings:?}");
    let audit = ["audit", "--config", "job.toml", "--dt", DT, "--examples", "20", "--json"];
    let audited = nearprint_in(night.path(), &audit).expect_success().json();
    let worst = audited["worst"].as_array().unwrap();
    let n: u64 = worst.iter().map(|drop| 1 + drop["n_same_texts"].as_u64().unwrap()).sum();
    assert!(
        worst.iter().any(|drop| drop["n_same_texts"] == 1) && Some(n) <= audited["n_sampled"].as_u64(),
        "{audited}"
    );
}

#[test]
fn many_drops_that_are_alike_are_one_example_and_leave_room_for_others() {
    let night = Night::new("");
    let bases = [1, 2].map(|seed| text(seed, 150));
    // The longer text stays. The same copy lies at thirty places, which are no addresses.
    let mut rows: Vec<(String, String)> =
        bases.iter().map(|base| (base[..9].to_owned(), format!("{base} and an ending"))).collect();
    rows.extend((0..30).map(|i| (format!("copy {i:02}"), edited(&bases[0], 70))));
    rows.push(("other".to_owned(), edited(&bases[1], 148)));
    let rows: Vec<(&str, &str)> = rows.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect();
    night.documents(DT, &rows).run(DT, &["--no-breakers"]).expect_success();
    let report = [&REPORT[..], &["--json", "--examples", "2"]].concat();
    let json = nearprint_in(night.path(), &report).expect_success().json();
    let of = |example: &serde_json::Value| (example["reason"].clone(), example["n_alike"].as_u64().unwrap());
    let examples: Vec<_> = json["examples"].as_array().unwrap().iter().map(of).collect();
    assert_eq!(examples.len(), 2, "{json}");
    assert!(examples.contains(&("near".into(), 29)) && examples.contains(&("near".into(), 0)), "{json}");
    let weakest = texts(&page(&night, &["--examples", "2"]), "#weakest p");
    assert!(weakest[0].starts_with("31 of 31 dropped near-duplicates"), "{weakest:?}");
}

#[test]
fn a_report_fits_a_screen_and_says_how_to_see_the_rest() {
    let night = bilingual();
    let said = |more: &[&str]| nearprint_in(night.path(), &[&REPORT[..], more].concat()).expect_success().stdout;
    let short = said(&[]);
    assert!(short.lines().count() <= 40, "{short}");
    assert!(short.ends_with("More of them: -v, --examples N, or --html FILE.html for a page\n"), "{short}");
    assert!(!short.contains("keep bound") && !short.contains("could keep"), "{short}");
    let long = said(&["-v"]);
    assert!(long.matches("\nDropped (").count() > 10 && long.contains("  could keep "), "{long}");
    assert_eq!(said(&["--examples", "2"]).matches("\nDropped (").count(), 2);
}

#[test]
fn a_summary_says_in_words_of_users_what_was_compared_and_what_the_settings_are() {
    let night = Night::new("[breakers]\nmin_source_documents = 1\nmax_source_loss = 0.6\n");
    let (one, two) = (text(1, 150), text(2, 150));
    night.documents("2026-11-19", &[("a", &one), ("b", &two), ("c", &text(3, 150))]);
    night.run("2026-11-19", &[]).expect_success();
    night.documents(DT, &[("a", &one), ("b", &format!("{two} now")), ("d", &edited(&one, 3))]);
    let run = ["run", "--config", "job.toml", "--dt", DT];
    let said = nearprint_in(night.path(), &run).expect_success().stdout;
    for line in [
        "  documents             3  in 1 file\n",
        "  recrawled             2  1 with the same text, 1 changed, in place of their earlier states\n",
        "  earlier               1  documents that only earlier nights have, compared with these\n",
        "  drop                  1  1 near; 33.3 % of the documents\n",
        "  33.3 % of documents without a source are near-duplicates: more than 60.0 %",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    let page = page(&night, &[]);
    let tiles = texts(&page, ".tiles div");
    assert!(tiles.contains(&"Recrawled21 with the same text, 1 changed".to_owned()), "{tiles:?}");
    let markdown = nearprint_in(night.path(), &[&REPORT[..], &["--format", "md"]].concat()).expect_success().stdout;
    assert!(markdown.contains("| Recrawled | 2 | 1 with the same text, 1 changed |\n"), "{markdown}");
    let rows = texts(&page, "#configuration tbody tr");
    let has = |key: &str, value: &str| rows.iter().any(|row| row.starts_with(key) && row.ends_with(value));
    assert!(has("max_lost_share", "0.08") && has("source_column", "none: the host of the id"), "{rows:?}");
}

#[test]
fn the_page_of_all_nights_has_a_row_for_each_and_pages_of_nights_lead_to_one_another() {
    let night = published();
    let pages = |dt: &str| {
        let args = ["report", "--config", "job.toml", "--dt", dt, "--pages", "pages", "--json"];
        nearprint_in(night.path(), &args).expect_success().json()
    };
    let read = |name: &str| std::fs::read_to_string(night.path().join("pages").join(name)).unwrap();
    assert_eq!(pages(DT)["pages"].as_array().map(Vec::len), Some(2));
    let index = read("index.html");
    assert_eq!(texts(&index, "tbody th.date"), [DT, "2026-11-19"]);
    let links = |page: &str, selector: &str| -> Vec<String> {
        let (page, selector) = (Html::parse_document(page), Selector::parse(selector).unwrap());
        page.select(&selector).filter_map(|link| link.attr("href").map(str::to_owned)).collect()
    };
    // Only a night with a page has a link.
    assert_eq!(links(&index, "tbody th a"), ["2026-11-20.html"]);
    let own = ["2026-11-19.html", "index.html", "index.html#after-2026-11-20"];
    assert_eq!(links(&read("2026-11-20.html"), "nav[aria-label='Other nights'] a"), own);
    let before = read("2026-11-20.html");
    night.documents("2026-11-21", &[("later", &text(9, 90))]).run("2026-11-21", &[]).expect_success();
    pages("2026-11-21");
    pages("2026-11-19");
    let index = read("index.html");
    assert_eq!(links(&index, "tbody th a"), ["2026-11-21.html", "2026-11-20.html", "2026-11-19.html"]);
    assert_eq!(texts(&index, "tr#after-2026-11-20 th"), ["2026-11-21"]);
    pages(DT);
    assert_eq!(read("2026-11-20.html"), before, "later nights change no byte of a page");
    std::fs::write(night.path().join("pages/2026-11-21.html"), "<p>mine</p>").unwrap();
    let args = ["report", "--config", "job.toml", "--dt", DT, "--pages", "pages"];
    expect(&nearprint_in(night.path(), &args), 73, &["no page about a night of nearprint"]);
}

#[test]
fn a_page_says_what_stays_of_the_largest_clusters_with_the_beginning_of_its_text() {
    let night = bilingual();
    let page = page(&night, &[]);
    let rows = texts(&page, "#clusters tbody tr");
    assert!(!rows.is_empty());
    let report = nearprint_in(night.path(), &[&REPORT[..], &["--json"]].concat()).expect_success().json();
    let first = &report["clusters"][0];
    assert!(first["n_keep"].as_u64() > Some(0) && first["excerpt"].is_string(), "{first}");
    assert!(rows[0].contains(first["kept"][0].as_str().unwrap()), "{rows:?}");
}

#[test]
fn a_lost_file_of_the_results_is_damage_that_a_run_repairs() {
    let night = published();
    let decisions = files_of(&night, "decisions");
    std::fs::remove_file(&decisions[0]).unwrap();
    for command in [&REPORT[..], &["filter", "--config", "job.toml", "--dt", DT, "--output", "kept"]] {
        expect(&nearprint_in(night.path(), command), 65, &["it is gone", "nearprint run --replace"]);
    }
    night.run(DT, &["--replace"]).expect_success();
    nearprint_in(night.path(), &REPORT).expect_success();
}

/// The files of a dataset of the night.
fn files_of(night: &Night, dataset: &str) -> Vec<std::path::PathBuf> {
    let folder = night.path().join(format!("results/{dataset}/dt={DT}"));
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}
