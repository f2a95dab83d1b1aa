//! Nights of WACZ files that the tests write.

use std::path::PathBuf;

use serde_json::json;

use crate::support::{Night, Ran, data_files, expect, nearprint_in, text};
use crate::warc::{gzip, page, record};

const DT: &str = "2026-11-20";
const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// A ZIP file with these members, each of which is said to be compressed by a method. With ZIP64, places and sizes are in
/// the extra fields that large files need.
struct Zip {
    members: Vec<(String, u16, Vec<u8>)>,
    is_zip64: bool,
}

impl Zip {
    fn new(members: &[(&str, &[u8])]) -> Self {
        let members = members.iter().map(|&(name, bytes)| (name.to_owned(), STORED, bytes.to_vec()));
        Self { members: members.collect(), is_zip64: false }
    }

    /// The file, the places of its members' bytes, and that of its directory.
    fn write(&self) -> (Vec<u8>, Vec<usize>, usize) {
        let (mut file, mut directory, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for (name, method, bytes) in &self.members {
            let mut crc = flate2::Crc::new();
            crc.update(bytes);
            let (header, size) = (file.len() as u64, bytes.len() as u64);
            let extra = |values: &[u64]| match self.is_zip64 {
                true => {
                    let n = (values.len() * 8) as u16;
                    let values = values.iter().flat_map(|value| value.to_le_bytes());
                    [1_u16, n].iter().flat_map(|value| value.to_le_bytes()).chain(values).collect()
                }
                false => Vec::new(),
            };
            let short = |value: u64| if self.is_zip64 { u32::MAX } else { value as u32 };
            let common = |version: u16, extra: &[u8]| {
                let mut bytes = Vec::new();
                [version, 0, *method, 0, 0].iter().for_each(|value| bytes.extend(value.to_le_bytes()));
                [crc.sum(), short(size), short(size)].iter().for_each(|value| bytes.extend(value.to_le_bytes()));
                [name.len() as u16, extra.len() as u16].iter().for_each(|value| bytes.extend(value.to_le_bytes()));
                bytes
            };
            let (local, central) = (extra(&[size, size]), extra(&[size, size, header]));
            file.extend([b"PK\x03\x04", &common(45, &local)[..], name.as_bytes(), &local].concat());
            places.push(file.len());
            file.extend(bytes);
            directory.extend([b"PK\x01\x02", &45_u16.to_le_bytes()[..], &common(45, &central)].concat());
            directory.extend([[0; 10].as_slice(), &short(header).to_le_bytes(), name.as_bytes(), &central].concat());
        }
        let (place, size, n) = (file.len(), directory.len() as u64, self.members.len() as u64);
        file.extend(directory);
        let end = file.len() as u64;
        if self.is_zip64 {
            file.extend([b"PK\x06\x06", &44_u64.to_le_bytes()[..], &[45, 0, 45, 0], &[0; 8]].concat());
            [n, n, size, place as u64].iter().for_each(|value| file.extend(value.to_le_bytes()));
            file.extend([b"PK\x06\x07", &[0; 4][..], &end.to_le_bytes(), &1_u32.to_le_bytes()].concat());
        }
        let (n, size, start) = match self.is_zip64 {
            true => (u16::MAX, u32::MAX, u32::MAX),
            false => (n as u16, size as u32, place as u32),
        };
        file.extend([b"PK\x05\x06", &[0; 4][..], &n.to_le_bytes(), &n.to_le_bytes()].concat());
        file.extend([&size.to_le_bytes()[..], &start.to_le_bytes(), &[0; 2]].concat());
        (file, places, place)
    }
}

pub(crate) fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    Zip::new(members).write().0
}

fn write(night: &Night, name: &str, bytes: &[u8]) -> PathBuf {
    let path = night.path().join(format!("documents/dt={DT}/{name}"));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, bytes).unwrap();
    path
}

/// A page of a site, packed by gzip.
fn packed(n: u64) -> Vec<u8> {
    gzip(&page(&format!("https://a.org/{n}"), &text(n, 80)))
}

fn kept(night: &Night) -> Vec<String> {
    night.decisions(DT).into_iter().filter(|(_, row)| row[0] == "keep").map(|(id, _)| id).collect()
}

fn filter(night: &Night) -> Ran {
    nearprint_in(night.path(), &["filter", "--config", "job.toml", "--dt", DT, "--output", "kept"])
}

/// Two WARC files, and the other members that a WACZ has.
fn crawl() -> Zip {
    let warcinfo = gzip(&record("warcinfo", "", "Content-Type: application/warc-fields\r\n", b"software: test\r\n"));
    let first = [warcinfo, packed(1), packed(2)].concat();
    let copy = page("https://b.org/copy", &text(1, 80));
    Zip::new(&[
        ("datapackage.json", br#"{"profile": "data-package", "wacz_version": "1.1.1", "resources": []}"#),
        ("archive/data.warc.gz", &first),
        ("indexes/index.cdx.gz", &gzip(b"org,a)/1 20261120010203 {}\n")),
        ("pages/pages.jsonl", b"{\"format\": \"json-pages-1.0\", \"id\": \"pages\"}\n"),
        ("archive/empty.warc.gz", b""),
        ("archive/more.warc", &[copy, page("https://a.org/3", &text(3, 80))].concat()),
    ])
}

#[test]
fn a_wacz_whose_warc_file_is_empty_is_an_empty_file() {
    let night = Night::new("");
    write(&night, "a.wacz", &zip(&[("archive/empty.warc", b"")]));
    write(&night, "b.warc.gz", &packed(1));
    let summary = night.run(DT, &[]).expect_success().json();
    assert_eq!((&summary["n_documents"], &summary["n_files"]), (&1.into(), &2.into()));
}

#[test]
fn a_wacz_is_one_file_whose_warc_files_are_read_and_nothing_else() {
    for is_zip64 in [false, true] {
        let night = Night::new("");
        write(&night, "crawl.WACZ", &Zip { is_zip64, ..crawl() }.write().0);
        let summary = night.run(DT, &[]).expect_success().json();
        let counts = ["n_files", "n_documents", "n_ignored_files", "n_passed_records"].map(|key| summary[key].as_u64());
        assert_eq!(counts, [Some(1), Some(4), Some(0), Some(1)], "{summary}");
        assert_eq!(kept(&night), ["https://a.org/1", "https://a.org/2", "https://a.org/3"]);
        let manifest = std::fs::read_to_string(night.generation(DT).join("manifest.json")).unwrap();
        assert!(manifest.contains(&format!("dt={DT}/crawl.WACZ\"")), "{manifest}");
    }
}

#[test]
fn a_wacz_whose_directory_says_that_a_member_ends_before_its_end_is_damaged() {
    let night = Night::new("");
    let (mut file, _, directory) = Zip::new(&[("archive/a.warc.gz", &[packed(1), packed(2)].concat())]).write();
    let short = (packed(1).len() as u32).to_le_bytes();
    for at in [20, 24] {
        file[directory + at..directory + at + 4].copy_from_slice(&short);
        write(&night, "a.wacz", &file);
        expect(&night.run(DT, &[]), 65, &["archive/a.warc.gz in it ends at byte", "records would be lost"]);
    }
}

#[test]
fn a_member_among_the_warc_files_that_is_none_by_its_name_is_named_in_a_warning() {
    let night = Night::new("");
    let members = [("archive/", &b""[..]), ("archive/a.warc.gz", &packed(1)), ("archive/b.warc.gz.open", b"x")];
    write(&night, "a.wacz", &zip(&members));
    let done = night.run(DT, &[]).expect_success();
    let warned: Vec<&str> = done.stderr.lines().filter(|line| line.contains("not a WARC file by its name")).collect();
    assert!(
        warned.len() == 1 && warned[0].contains("a.wacz") && warned[0].contains("archive/b.warc.gz.open"),
        "{warned:?}"
    );
    assert_eq!(kept(&night), ["https://a.org/1"]);
}

#[test]
fn a_page_is_found_again_in_a_wacz_by_every_command_that_reads_texts() {
    let night = Night::new("");
    let longer = format!("{} {}", text(1, 200), text(9, 4));
    let pages = [("https://a.org/1", &longer), ("https://b.org/1", &text(1, 200))];
    let [a, b] = pages.map(|(url, text)| gzip(&page(url, text)));
    write(&night, "a.wacz", &zip(&[("archive/a.warc.gz", &a), ("archive/b.warc.gz", &b)]));
    std::fs::write(night.path().join("list.txt"), format!("documents/dt={DT}/a.wacz\n")).unwrap();
    night.run(DT, &["--files-from", "list.txt"]).expect_success();
    let audited = nearprint_in(night.path(), &["audit", "--config", "job.toml", "--dt", DT, "--json"]);
    assert_eq!(audited.expect_success().json()["all"]["n"], 1);
    let one = format!("documents/dt={DT}/a.wacz");
    let explain = ["explain", "https://a.org/1", "https://b.org/1", "--documents", &one];
    nearprint_in(night.path(), &explain).expect_success();
    let query = ["query", "--config", "job.toml", "--file", &one];
    expect(&nearprint_in(night.path(), &query), 64, &["a.wacz", "many documents"]);
}

#[test]
fn filter_writes_the_survivors_of_a_wacz_as_one_warc_file() {
    let copy = gzip(&page("https://b.org/copy", &text(1, 80)));
    let warcinfo = gzip(&record("warcinfo", "", "", b"software: test\r\n"));
    let [first, second] = [[packed(1), packed(2)].concat(), [warcinfo.clone(), copy, packed(3)].concat()];
    let night = Night::new("");
    write(&night, "a.wacz", &zip(&[("archive/1.warc.gz", &first), ("archive/2.warc.gz", &second)]));
    night.run(DT, &[]).expect_success();
    filter(&night).expect_success();
    let written = std::fs::read(night.path().join(format!("kept/dt={DT}/a.wacz.warc.gz"))).unwrap();
    assert!(written == [first, warcinfo, packed(3)].concat(), "the records are copied byte for byte");

    let night = Night::new("");
    write(&night, "a.wacz", &crawl().write().0);
    night.run(DT, &[]).expect_success();
    expect(&filter(&night), 65, &["a.wacz: archive/more.warc in it", "not packed by gzip", "unzip the WACZ"]);
    let flags = ["filter", "--config", "job.toml", "--dt", DT, "--output", "flags", "--flag"];
    expect(&nearprint_in(night.path(), &flags), 65, &["a.wacz", "has no rows for flags"]);
}

#[test]
fn a_damaged_record_in_a_wacz_is_a_bad_row_at_its_byte_of_the_wacz_and_the_message_names_the_member() {
    let mut damaged = [packed(2), packed(3), packed(4)].concat();
    let start = packed(2).len();
    damaged[start + 200..start + packed(3).len() - 8].fill(0xff);
    let night = Night::new("");
    let (file, places, _) = Zip::new(&[("archive/a.warc.gz", &packed(1)), ("archive/b.warc.gz", &damaged)]).write();
    write(&night, "a.wacz", &file);
    let place = places[1] + start;
    let said = format!("a.wacz byte {place}: broken_record: byte {start} of archive/b.warc.gz in it");
    expect(&night.run(DT, &[]), 65, &[&said, "fetch it again"]);
    let summary = night.run(DT, &["--max-bad-rows", "1"]).expect_success().json();
    assert_eq!(summary["bad_rows_by_reason"], json!({"broken_record": 1}));
    assert_eq!(kept(&night), ["https://a.org/1", "https://a.org/2", "https://a.org/4"]);
    let rows = night.published(DT, "quarantine");
    assert!(rows.len() == 1 && rows[0][0].ends_with("/a.wacz"), "{rows:?}");
    assert_eq!(rows[0][2..4], [(place + 1).to_string(), "broken_record".to_owned()]);
    filter(&night).expect_success();
}

#[test]
fn a_wacz_that_cannot_be_read_is_a_bad_file_with_the_reason_and_the_remedy() {
    let warc = [packed(1), packed(2)].concat();
    let sound = || Zip::new(&[("archive/a.warc.gz", &warc)]);
    let (whole, places, directory) = sound().write();
    let with = |name: &str, bytes: &[u8]| zip(&[("archive/a.warc.gz", &warc), (name, bytes)]);
    let mut deflated = sound();
    deflated.members[0].1 = DEFLATED;
    let changed = |at: usize, bytes: &[u8]| {
        let mut file = whole.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        file
    };
    // In the directory, sizes begin at byte 20 of an entry, and the place of the member at byte 42.
    let beyond = changed(directory + 20, &[(warc.len() + 40) as u32; 2].map(u32::to_le_bytes).concat());
    let elsewhere = changed(directory + 42, &7_u32.to_le_bytes());
    let twice = {
        let (mut file, _, directory) = Zip::new(&[("archive/a.warc.gz", &warc), ("archive/b.warc.gz", &warc)]).write();
        let second = directory + 46 + "archive/a.warc.gz".len();
        file[second + 42..second + 46].fill(0);
        file
    };
    let inner = [&whole[..places[0]], b"more", &with("x.zip", &whole), &[0; 4000]].concat();
    let cases: [(Vec<u8>, &str); 12] = [
        (whole[..whole.len() - 1].to_vec(), "it does not end with the directory of a ZIP file: it was cut off"),
        (whole[..directory].to_vec(), "it does not end with the directory of a ZIP file"),
        (Vec::new(), "it does not end with the directory of a ZIP file"),
        (inner, "it does not end with the directory of a ZIP file"),
        (warc.clone(), "or it is no WACZ; fetch it again"),
        (deflated.write().0, "archive/a.warc.gz in it is not stored as it is, but compressed or encrypted"),
        (beyond, "by its directory, archive/a.warc.gz in it goes on past its end"),
        (elsewhere, "its directory says where archive/a.warc.gz in it begins, but nothing begins there"),
        (twice, "archive/a.warc.gz and archive/b.warc.gz in it have the same bytes"),
        (with("b.wacz", &whole), "b.wacz in it is a WACZ too, which is not read: unzip the outer one"),
        (with("archive/old.arc.gz", b"x"), "archive/old.arc.gz in it: it is ARC, which is not read"),
        (zip(&[("datapackage.json", b"{}")]), "there is no WARC file in it"),
    ];
    for (file, said) in cases {
        let night = Night::new("");
        write(&night, "a.wacz", &file);
        write(&night, "sound.warc.gz", &packed(9));
        expect(&night.run(DT, &[]), 65, &["a.wacz", said]);
        let summary = night.run(DT, &["--max-bad-files", "1"]).expect_success().json();
        assert_eq!((&summary["n_bad_files"], &summary["n_documents"]), (&json!(1), &json!(1)), "{said}");
    }
    let night = Night::new("");
    write(&night, "a.wacz", &with("archive/b.warc.gz", b"<!DOCTYPE html>"));
    expect(
        &night.run(DT, &[]),
        65,
        &["a.wacz: archive/b.warc.gz in it: it holds no whole WARC record (it begins with"],
    );
}

#[test]
fn the_same_wacz_gives_the_same_bytes_whatever_the_threads() {
    let pages: Vec<u8> = (0..200).flat_map(|n| packed(n / 2 * 2)).collect();
    let file = zip(&[("archive/a.warc.gz", &pages), ("archive/b.warc.gz", &packed(999))]);
    let [one, two] = ["1", "2"].map(|threads| {
        let night = Night::new("");
        write(&night, "a.wacz", &file);
        night.run(DT, &["--threads", threads]).expect_success();
        data_files(night.path())
    });
    assert_eq!(one, two);
}
