//! Published samples and two crawls, as warcio reads them. Without these files there is nothing to compare.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use nearprint_warc::{Body, HttpMessage, Next, Packing, RecordLimits, Records, Slice, WarcError};
use serde_json::{Value, json};
use sha1::{Digest, Sha1};

/// Reads a file: the number of records of each type, and the pages.
fn read(file: &[u8], packing: Packing) -> Result<(BTreeMap<String, u64>, Vec<Value>), WarcError> {
    let mut records = Records::new(Slice::new(file), packing, RecordLimits::default());
    let (mut types, mut pages) = (BTreeMap::new(), Vec::new());
    while let Some(next) = records.next_record()? {
        let Next::Record(record) = next else { panic!("{next:?}") };
        let field = |name: &str| record.header.get(name).unwrap_or_default().into_owned();
        let kind = field("warc-type");
        *types.entry(kind.clone()).or_default() += 1;
        if ["warcinfo", "request", "metadata"].contains(&kind.as_str()) {
            continue;
        }
        let block = record.block.held().unwrap();
        let message = HttpMessage::parse(block).filter(|_| kind != "resource" && kind != "conversion");
        let body = message.map_or(Body::Whole(block.into()), |message| message.body(1 << 20));
        let (Body::Whole(body) | Body::Beginning(body)) = body else { panic!("too large") };
        let sha1: String = Sha1::digest(&body).iter().map(|byte| format!("{byte:02x}")).collect();
        let uri = field("warc-target-uri");
        pages.push(json!([kind, uri.trim_matches(['<', '>']), body.len(), sha1]));
    }
    Ok((types, pages))
}

/// The pages as warcio reads them, if they are listed.
fn expected(of: &Value) -> Option<Vec<Value>> {
    let page = |page: &Value| json!([page["type"], page["uri"], page["decoded_len"], page["decoded_sha1"]]);
    Some(of["records"].as_array()?.iter().map(page).collect())
}

const EXAMPLE: (u64, &str) = (1270, "0e973b59f476007fd10f87f347c3956065516fc0");

#[test]
fn samples_and_crawls_are_read_as_warcio_reads_them_and_two_files_further_than_that() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folders = ["warc_samples", "crawl_seatunnel"].map(|folder| data.join(folder));
    for folder in &folders {
        if !folder.exists() {
            // Unlike what a test that passes prints, this is seen.
            let said = format!("NOT CHECKED: no samples in {}\n", folder.display());
            std::io::stderr().write_all(said.as_bytes()).unwrap();
            continue;
        }
        let listed: Value =
            serde_json::from_slice(&std::fs::read(folder.join("expected_warcio.json")).unwrap()).unwrap();
        for (name, of_warcio) in listed.as_object().unwrap() {
            let file = std::fs::read(folder.join(name)).unwrap();
            let read = read(&file, Packing::of(name.trim_end_matches(".bad")));
            if name == "example.arc.gz" {
                // The format before WARC is refused, with a command that converts it.
                assert!(matches!(read, Err(WarcError::Arc)));
                continue;
            }
            let (types, pages) = read.unwrap();
            match name.as_str() {
                // All records share one member. warcio ends with an error after the first.
                "example-bad.warc.gz.bad" => {
                    assert_eq!(json!(types), json!({"warcinfo": 1, "request": 2, "response": 2, "revisit": 1}));
                    assert_eq!(pages[0], json!(["response", "http://example.com?example=1", EXAMPLE.0, EXAMPLE.1]));
                }
                // The block of the response is in a member of its own. warcio reads it as empty, and ends with an error.
                "example-wrong-chunks.warc.gz" => {
                    assert_eq!(json!(types), json!({"request": 1, "response": 1}));
                    assert_eq!(pages, [json!(["response", "http://example.com/", EXAMPLE.0, EXAMPLE.1])]);
                }
                _ => {
                    assert_eq!(json!(types), of_warcio["record_types"], "{name}");
                    expected(of_warcio).into_iter().for_each(|expected| assert_eq!(pages, expected, "{name}"));
                }
            }
        }
    }
}
