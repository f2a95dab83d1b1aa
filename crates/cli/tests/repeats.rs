//! Rules for several rows of a night with one id: the row that stays is that of a plain choice, and all commands read that row.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Date32Array, Int64Array, TimestampMicrosecondArray};
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use nearprint_harness::random::Random;
use serde_json::{Value, json};

use crate::support::{Night, Ran, expect, nearprint_in, rows, strings, text, write_parquet};

const DT: &str = "2026-11-20";
const RULES: [&str; 4] = ["keep_first", "keep_last", "keep_newest", "keep_best"];

/// A row of a night, as the tests write it.
#[derive(Debug, Clone)]
struct Row {
    id: String,
    /// A word that no other row has, then others.
    text: String,
    /// When it was fetched, in seconds since 2026-11-20.
    fetched: Option<i64>,
    rank: Option<i64>,
}

impl Row {
    fn marker(&self) -> &str {
        self.text.split(' ').next().unwrap()
    }
}

/// Writes a time in the zone of `hours`.
fn time(seconds: i64, hours: i64) -> String {
    let local = seconds + hours * 3600;
    let (day, second) = (20 + local.div_euclid(86400), local.rem_euclid(86400));
    let zone = if hours == 0 { "Z".to_owned() } else { format!("{hours:+03}:00") };
    format!("2026-11-{day:02}T{:02}:{:02}:{:02}{zone}", second / 3600, second / 60 % 60, second % 60)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut member = GzEncoder::new(Vec::new(), Compression::fast());
    member.write_all(bytes).unwrap();
    member.finish().unwrap()
}

fn record(row: &Row) -> Vec<u8> {
    let block =
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html><body><p>{}</p></body></html>", row.text);
    let date = row.fetched.map_or(String::new(), |at| format!("WARC-Date: {}\r\n", time(at, 0)));
    let head = format!(
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:{}>\r\nWARC-Target-URI: {}\r\n{date}\
         Content-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n",
        row.marker(),
        row.id,
        block.len()
    );
    [head.as_bytes(), block.as_bytes(), b"\r\n\r\n"].concat()
}

/// Writes rows in the format of the name, and its times as `random` picks the zones.
fn write(path: &Path, rows: &[Row], random: &mut Random) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let times: Vec<Option<String>> =
        rows.iter().map(|row| row.fetched.map(|at| time(at, [0, 8, -5][random.below(3) as usize]))).collect();
    match path.extension().unwrap().to_str().unwrap() {
        "parquet" => {
            let column = |of: fn(&Row) -> &str| strings(&rows.iter().map(|row| Some(of(row))).collect::<Vec<_>>());
            let ranks: ArrayRef = Arc::new(rows.iter().map(|row| row.rank).collect::<Int64Array>());
            let times = strings(&times.iter().map(Option::as_deref).collect::<Vec<_>>());
            let (ids, texts) = (column(|row| &row.id), column(|row| &row.text));
            write_parquet(path, &[("id", ids), ("text", texts), ("fetch_time", times), ("rank", ranks)]);
        }
        "jsonl" => {
            let line = |(row, time): (&Row, &Option<String>)| {
                json!({"id": row.id, "text": row.text, "fetch_time": time, "rank": row.rank}).to_string() + "\n"
            };
            std::fs::write(path, rows.iter().zip(&times).map(line).collect::<String>()).unwrap();
        }
        _ => std::fs::write(path, rows.iter().flat_map(|row| gzip(&record(row))).collect::<Vec<u8>>()).unwrap(),
    }
}

/// Rows of few ids with few times and few lengths, so that there are ties, split into files at random.
fn files(random: &mut Random, endings: &[&str]) -> Vec<(String, Vec<Row>)> {
    let n_files = 1 + random.below(5);
    let mut made: Vec<(String, Vec<Row>)> = (0..n_files)
        .map(|n| {
            (format!("{}{n}.{}", random.below(10), endings[random.below(endings.len() as u64) as usize]), Vec::new())
        })
        .collect();
    for n in 0..20 + random.below(40) {
        let at = random.below(n_files) as usize;
        let words = 12 + random.below(3);
        let row = Row {
            id: format!("http://a.b/{}", random.below(25)),
            text: (0..words).map(|word| format!("m{n:02}x{word:02}")).collect::<Vec<_>>().join(" "),
            fetched: (random.below(5) > 0).then(|| random.below(4) as i64 * 7200),
            rank: (random.below(4) > 0).then(|| random.below(3) as i64),
        };
        made[at].1.push(row);
    }
    made.retain(|(_, rows)| !rows.is_empty());
    made.sort_by(|a, b| a.0.cmp(&b.0));
    made
}

/// The marker of the row that a rule keeps of rows in the order of files and rows, by a plain choice.
fn choice<'a>(rows: &[&'a Row], rule: &str, by_rank: bool) -> &'a str {
    let mut best = rows[0];
    for &row in &rows[1..] {
        let is_better = match rule {
            "keep_first" => false,
            "keep_last" => true,
            "keep_newest" => row.fetched.unwrap_or(i64::MIN) > best.fetched.unwrap_or(i64::MIN),
            // rank desc, with NULL last, then length asc.
            "keep_best" if by_rank => {
                let key = |row: &Row| (std::cmp::Reverse(row.rank.unwrap_or(i64::MIN)), row.text.len());
                key(row) < key(best)
            }
            "keep_best" => row.text.len() > best.text.len(),
            _ => unreachable!("{rule}"),
        };
        if is_better {
            best = row;
        }
    }
    best.marker()
}

fn markers(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.starts_with('m') && word.ends_with("x00"))
        .map(str::to_owned)
        .collect()
}

/// The markers of all rows of the files below a folder.
fn markers_below(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("parquet") => rows(&path).iter().for_each(|row| found.extend(markers(&row[1]))),
            Some("jsonl") => found.extend(markers(&std::fs::read_to_string(&path).unwrap())),
            Some("gz") => {
                let mut plain = String::new();
                MultiGzDecoder::new(std::fs::File::open(&path).unwrap()).read_to_string(&mut plain).unwrap();
                found.extend(markers(&plain));
            }
            _ => {}
        }
    }
    found
}

fn filter(night: &Night) -> Ran {
    let done = nearprint_in(night.path(), &["filter", "--config", "job.toml", "--dt", DT, "--output", "out"]);
    done.expect_success()
}

/// Runs a night of these files by a rule, and holds what it keeps to a plain choice.
fn holds_to_the_plain_choice(made: &[(String, Vec<Row>)], rule: &str, by_rank: bool, job: &str, random: &mut Random) {
    let night = Night::new(&format!("max_repeated_ids = 1\n{job}\n"));
    for (name, rows) in made {
        write(&night.path().join(format!("documents/dt={DT}/{name}")), rows, random);
    }
    let summary = night.run(DT, &[]).expect_success().json();
    let mut by_id: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    made.iter().flat_map(|(_, rows)| rows).for_each(|row| by_id.entry(&row.id).or_default().push(row));
    let n_rows: usize = by_id.values().map(Vec::len).sum();
    let expected: BTreeSet<String> = by_id.values().map(|rows| choice(rows, rule, by_rank).to_owned()).collect();
    let said = |what: &str| format!("{what}: {rule}, {made:#?}");
    assert_eq!(summary["n_documents"], by_id.len(), "{}", said("documents"));
    assert_eq!(summary["n_repeated_ids"], n_rows - by_id.len(), "{}", said("repeated"));
    assert_eq!((&summary["n_bad_rows"], &summary["bad_rows_by_reason"]), (&json!(0), &json!({})));
    let decided = night.decisions(DT);
    assert!(decided.len() == by_id.len() && decided.values().all(|row| row[0] == "keep"), "{decided:?}");
    let listed = night.published(DT, "quarantine");
    assert!(listed.iter().all(|row| row[3] == "repeated_id"), "{listed:?}");
    let mut left_out: BTreeMap<String, usize> = BTreeMap::new();
    listed.iter().for_each(|row| *left_out.entry(row[4].clone()).or_default() += 1);
    let others: BTreeMap<String, usize> =
        by_id.iter().filter(|(_, rows)| rows.len() > 1).map(|(id, rows)| ((*id).to_owned(), rows.len() - 1)).collect();
    assert_eq!(left_out, others, "{}", said("quarantine"));
    filter(&night);
    assert_eq!(markers_below(&night.path().join(format!("out/dt={DT}"))), expected, "{}", said("filtered"));
}

#[test]
fn each_rule_keeps_the_row_of_a_plain_choice_and_filter_writes_that_row() {
    let mut random = Random::new(8);
    for _ in 0..3 {
        for rule in RULES {
            let made = files(&mut random, &["parquet", "jsonl", "warc.gz"]);
            let job = format!("on_duplicate_id = {rule:?}");
            holds_to_the_plain_choice(&made, rule, false, &job, &mut random);
        }
        let made = files(&mut random, &["parquet", "jsonl"]);
        let job = "on_duplicate_id = \"keep_best\"\nkeep = [\"rank desc\", \"length asc\"]";
        holds_to_the_plain_choice(&made, "keep_best", true, job, &mut random);
        let made = files(&mut random, &["warc.gz"]);
        holds_to_the_plain_choice(&made, "keep_newest", false, "", &mut random);
    }
}

fn put(night: &Night, name: &str, rows: &[Row]) {
    write(&night.path().join(format!("documents/dt={DT}/{name}")), rows, &mut Random::new(1));
}

fn row(id: &str, text: &str, fetched: i64) -> Row {
    Row { id: id.to_owned(), text: text.to_owned(), fetched: Some(fetched), rank: None }
}

#[test]
fn without_a_rule_pages_of_warc_files_stay_by_time_and_other_repeats_fail_with_the_rules() {
    let night = Night::new("max_repeated_ids = 0.9\n");
    put(&night, "a.warc.gz", &[row("http://a.b/", &text(1, 40), 7200), row("http://a.b/", &text(2, 40), 0)]);
    put(&night, "b.warc.gz", &[row("http://a.b/", &text(3, 40), 3600)]);
    let summary = night.run(DT, &[]).expect_success().json();
    assert_eq!((&summary["n_documents"], &summary["n_repeated_ids"]), (&json!(1), &json!(2)));
    // A rerun finds the night, and so does one that asks for no rule: such nights have the digest of all former ones.
    for more in [&[][..], &["--on-duplicate-id", "fail"]] {
        assert_eq!(night.run(DT, more).expect_success().json()["status"], "already_published");
    }
    expect(&night.run(DT, &["--on-duplicate-id", "keep_first"]), 73, &["is published from other configuration"]);
    let other = "2026-11-21";
    let at = |name: &str| night.path().join(format!("documents/dt={other}/{name}"));
    write(&at("a.warc.gz"), &[row("http://a.b/", &text(1, 40), 7200)], &mut Random::new(1));
    write(&at("b.jsonl"), &[row("http://a.b/", &text(2, 40), 0)], &mut Random::new(1));
    expect(
        &night.run(other, &[]),
        65,
        &[
            "1 row repeats a document id: 'http://a.b/' in ",
            "a.warc.gz byte 0 and ",
            "b.jsonl row 1",
            "on_duplicate_id = \"keep_newest\" (by the column that newest_by names), \"keep_best\" (by the keep order), \
             \"keep_first\" or \"keep_last\" (by file path and row)",
        ],
    );
    expect(&night.run(other, &["--on-duplicate-id", "keep_newst"]), 64, &["keep_newest"]);
    std::fs::write(
        night.path().join("job.toml"),
        std::fs::read_to_string(night.path().join("job.toml")).unwrap() + "on_duplicate_id = \"keep_lst\"\n",
    )
    .unwrap();
    expect(&night.run(other, &[]), 78, &["on_duplicate_id", "did you mean 'keep_last'"]);
}

#[test]
fn a_rule_may_leave_out_its_share_of_rows_and_no_row_more_whatever_the_limits_of_bad_rows() {
    let night = Night::new("on_duplicate_id = \"keep_first\"\n");
    let ids = ["a", "a", "a", "b", "b", "c", "d", "e", "f", "g"];
    let made: Vec<Row> = (0..).zip(ids).map(|(n, id)| row(id, &text(n, 40), 0)).collect();
    put(&night, "a.jsonl", &made);
    expect(
        &night.run(DT, &["--max-repeated-ids", "0.29", "--max-bad-rows", "1000"]),
        65,
        &[
            "3 of 10 rows repeat a document id, a larger share than max_repeated_ids = 0.29 allows: 'a' in ",
            "id_column",
        ],
    );
    let summary = night.run(DT, &["--max-repeated-ids", "0.3", "--strict"]).expect_success().json();
    assert_eq!(
        (&summary["n_documents"], &summary["n_repeated_ids"], &summary["n_bad_rows"]),
        (&json!(7), &json!(3), &json!(0))
    );
    // The usual limit lets two crawls of one site pass, and no column that is none of ids.
    let night = Night::new("on_duplicate_id = \"keep_first\"\n");
    put(&night, "a.jsonl", &[row("a", &text(1, 40), 0), row("a", &text(2, 40), 0)]);
    night.run(DT, &[]).expect_success();
    let night = Night::new("on_duplicate_id = \"keep_first\"\n");
    put(&night, "a.jsonl", &[row("a", &text(1, 40), 0), row("a", &text(2, 40), 0), row("a", &text(3, 40), 0)]);
    expect(&night.run(DT, &[]), 65, &["2 of 3 rows repeat a document id"]);
    expect(&night.run(DT, &["--max-repeated-ids", "1.5"]), 78, &["max_repeated_ids", "1.5 is not a share"]);
}

#[test]
fn the_newest_row_needs_its_column_and_a_text_that_is_no_time_is_a_bad_row() {
    let night =
        Night::new("on_duplicate_id = \"keep_newest\"\nnewest_by = \"seen\"\nmax_bad_rows = 1\nmax_repeated_ids = 1\n");
    let file = night.path().join(format!("documents/dt={DT}/a.jsonl"));
    let line = |id: &str, n: u64, seen: Value| json!({"id": id, "text": text(n, 40), "seen": seen}).to_string() + "\n";
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, json!({"id": "a", "text": "x"}).to_string()).unwrap();
    expect(&night.run(DT, &[]), 65, &["no column 'seen'", "newest_by"]);
    let made =
        [line("a", 1, "2026-11-20".into()), line("a", 2, "yesterday".into()), line("a", 3, Value::Null)].concat();
    std::fs::write(&file, &made).unwrap();
    expect(
        &night.run(DT, &["--max-bad-rows", "0"]),
        65,
        &["1 wrong_type", "column 'seen' is 'yesterday', which is no time", "write times like 2026-11-20T03:00:00Z"],
    );
    let summary = night.run(DT, &[]).expect_success().json();
    assert_eq!((&summary["n_repeated_ids"], &summary["bad_rows_by_reason"]), (&json!(1), &json!({"wrong_type": 1})));
    let rows = night.published(DT, "quarantine");
    let rows: Vec<(&str, &str)> = rows.iter().map(|row| (row[2].as_str(), row[3].as_str())).collect();
    assert_eq!(rows, [("2", "wrong_type"), ("3", "repeated_id")]);
    // Numbers, with and without a fraction, in JSON lines and Parquet.
    let night = Night::new("on_duplicate_id = \"keep_newest\"\nnewest_by = \"seen\"\nmax_repeated_ids = 1\n");
    let file = night.path().join(format!("documents/dt={DT}/a.jsonl"));
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, [line("a", 1, json!(17.25)), line("a", 2, json!(17.5)), line("b", 3, json!(3))].concat())
        .unwrap();
    let seen: ArrayRef = Arc::new(Int64Array::from(vec![17, 4]));
    let texts = [text(4, 40), text(5, 40)];
    let texts = strings(&[Some(&texts[0]), Some(&texts[1])]);
    write_parquet(
        &file.with_extension("parquet"),
        &[("id", strings(&[Some("a"), Some("b")])), ("text", texts), ("seen", seen)],
    );
    night.run(DT, &[]).expect_success();
    let rows = night.published(DT, "quarantine");
    let rows: Vec<(&str, &str)> =
        rows.iter().map(|row| (row[0].rsplit('.').next().unwrap(), row[2].as_str())).collect();
    assert_eq!(rows, [("jsonl", "1"), ("jsonl", "3"), ("parquet", "1")]);
}

#[test]
fn times_and_numbers_do_not_compare_since_nobody_knows_what_the_numbers_count() {
    let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![1_577_836_800_000_000]));
    let days: ArrayRef = Arc::new(Date32Array::from(vec![18_262]));
    let seconds: ArrayRef = Arc::new(Int64Array::from(vec![1_795_000_000]));
    let truth: ArrayRef = Arc::new(BooleanArray::from(vec![true]));
    for job in ["on_duplicate_id = \"keep_newest\"\nnewest_by = \"seen\"\n", "keep = [\"seen desc\"]\n"] {
        let night = Night::new(&format!("{job}max_repeated_ids = 1\n"));
        let folder = night.path().join(format!("documents/dt={DT}"));
        std::fs::create_dir_all(&folder).unwrap();
        let parquet = |name: &str, n: u64, seen: &ArrayRef| {
            let texts = text(n, 40);
            let columns =
                [("id", strings(&[Some(name)])), ("text", strings(&[Some(&texts)])), ("seen", Arc::clone(seen))];
            write_parquet(&folder.join(format!("{name}.parquet")), &columns);
        };
        parquet("a", 1, &times);
        parquet("b", 2, &seconds);
        expect(&night.run(DT, &[]), 65, &["'seen' is integer in", "b.parquet but date or time in", "a.parquet"]);
        parquet("b", 2, &truth);
        expect(&night.run(DT, &[]), 65, &["'seen' is boolean in", "b.parquet but date or time in"]);
        parquet("b", 2, &days);
        night.run(DT, &[]).expect_success();
        let line = |seen: Value| json!({"id": "c", "text": text(3, 40), "seen": seen}).to_string();
        std::fs::write(folder.join("c.jsonl"), line(json!(1_795_000_000))).unwrap();
        expect(&night.run(DT, &["--replace"]), 65, &["'seen' is float in", "c.jsonl but date or time in"]);
    }
    // Of records, the time is the one that they all have.
    let night = Night::new("on_duplicate_id = \"keep_newest\"\nnewest_by = \"seen\"\nmax_repeated_ids = 1\n");
    let folder = night.path().join(format!("documents/dt={DT}"));
    std::fs::create_dir_all(&folder).unwrap();
    let record = record(&Row { id: "https://a.org/1".to_owned(), text: text(4, 40), fetched: Some(1), rank: None });
    std::fs::write(folder.join("a.warc.gz"), gzip(&record)).unwrap();
    let line = |seen: Value| json!({"id": "https://a.org/1", "text": text(5, 40), "seen": seen}).to_string();
    std::fs::write(folder.join("b.jsonl"), line(json!(1_795_000_000))).unwrap();
    expect(
        &night.run(DT, &[]),
        65,
        &["'seen' has no times in", "b.jsonl", "times of the records in", "a.warc.gz", "2026-11-20T03:00:00Z"],
    );
    std::fs::write(folder.join("b.jsonl"), line(json!("2026-11-21"))).unwrap();
    assert_eq!(night.run(DT, &[]).expect_success().json()["n_repeated_ids"], 1);
    let rows = night.published(DT, "quarantine");
    assert!(rows[0][0].ends_with("a.warc.gz"), "the record is older: {rows:?}");
}

/// A night in which the row of `a` that stays is like `b`, and the others are not.
fn night_of_two_pages(rule: &str, job: &str) -> (Night, String) {
    let night = Night::new(&format!("{job}max_repeated_ids = 1\nclusters = \"star\"\n"));
    let (b, others) = (text(1, 400), [text(2, 300), text(3, 310), text(4, 290)]);
    let a = b.replacen(' ', " stays ", 1);
    let at = |n: usize, fetched: i64| row("http://x/a", &others[n], fetched);
    // Which of the rows is the first, the last, the newest or the longest.
    let stays = row("http://x/a", &a, 7200);
    let rows = match rule {
        "keep_first" => [stays, at(0, 8000), at(1, 9000), at(2, 9100)],
        "keep_last" => [at(0, 8000), at(1, 9000), at(2, 9100), stays],
        "keep_newest" => [at(0, 0), at(1, 3600), stays, at(2, 10)],
        _ => [at(0, 8000), at(1, 9000), stays, at(2, 9100)],
    };
    let b = row("http://x/b", &(b.clone() + " the longer page of both"), 0);
    put(&night, "a.jsonl", &rows[..2]);
    put(&night, "b.jsonl", &[b]);
    put(&night, "c.jsonl", &rows[2..]);
    (night, a)
}

#[test]
fn every_command_that_reads_texts_by_id_reads_the_row_that_stays() {
    for rule in RULES {
        let (night, a) = night_of_two_pages(rule, &format!("on_duplicate_id = {rule:?}\n"));
        let job = ["--config", "job.toml"];
        let run = |args: &[&str]| nearprint_in(night.path(), &[args, &job].concat()).expect_success();
        night.run(DT, &[]).expect_success();
        let decided = night.decisions(DT);
        assert_eq!((&*decided["http://x/a"][0], &*decided["http://x/b"][0]), ("drop", "keep"), "{rule}");
        // What a command read is the text that the marker is in.
        let audited = run(&["audit", "--dt", DT, "--json"]).json();
        assert!(audited["near"]["words"]["mean"].as_f64().unwrap() < 0.1, "{rule}: {audited}");
        let reported = run(&["report", "--dt", DT, "--json"]).json().to_string();
        assert!(reported.contains("stays"), "{rule}: {reported}");
        let explained = run(&["explain", "http://x/a", "http://x/b", "--json"]).json();
        assert_eq!(
            (&explained["pair"]["is_pair"], &explained["texts"][0]["length"]),
            (&json!(true), &json!(a.len())),
            "{rule}"
        );
        let documents = format!("documents/dt={DT}");
        run(&["tune", "--documents", &documents, "--sheet", "sheet.csv"]);
        let sheet = std::fs::read_to_string(night.path().join("sheet.csv")).unwrap();
        assert!(sheet.contains("stays"), "{rule}: {sheet}");
        std::fs::write(night.path().join("truth.tsv"), "id_a\tid_b\tlabel\nhttp://x/a\thttp://x/b\tpos\n").unwrap();
        let scored =
            run(&["evaluate", "--documents", &documents, "--truth", "truth.tsv", "--by-resemblance", "--json"]).json();
        assert_eq!(
            (&scored["recall"], &scored["by_resemblance"]["n_documents"]),
            (&json!(1.0), &json!(2)),
            "{rule}: {scored}"
        );
        let alike = scored["by_resemblance"]["rows"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|row| row["from"].as_f64().unwrap() >= 0.9);
        assert_eq!(alike.map(|row| row["n_pairs"].as_u64().unwrap()).sum::<u64>(), 1, "{rule}: {scored}");
        run(&["fingerprint", "--documents", &documents, "--output", "fingerprints"]);
        let listed = rows(&night.path().join("fingerprints/_quarantine"));
        assert_eq!(listed.len(), 3, "{rule}: {listed:?}");
        let [own, of_night] = [listed, night.published(DT, "quarantine")]
            .map(|rows| rows.iter().map(|row| row[2].clone() + &row[4]).collect::<Vec<_>>());
        assert_eq!(own, of_night, "{rule}");
    }
}
