//! Large packed WARC files, alone and in WACZ files, read in spans.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;
use std::sync::Arc;

use crate::support::open;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::TryStreamExt;
use nearprint_documents::{DocumentRange, spans_join};
use nearprint_storage::Progress;
use nearprint_tasks::{FileNote, FileReading, FingerprintContext, FingerprintTask, TaskBatch, fingerprint_task};

/// A member with a response, as its bytes are.
fn member(url: &str, content_type: &str, body: &[u8]) -> Vec<u8> {
    let http = format!("HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n\r\n");
    let head = format!(
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nContent-Type: application/http\r\n\
         Content-Length: {}\r\n\r\n",
        http.len() + body.len()
    );
    let mut member = GzEncoder::new(Vec::new(), Compression::none());
    for bytes in [head.as_bytes(), http.as_bytes(), body, b"\r\n\r\n"] {
        member.write_all(bytes).unwrap();
    }
    member.finish().unwrap()
}

fn pages(host: &str, n: u32) -> impl Iterator<Item = Vec<u8>> {
    (0..n).map(move |i| {
        let words = (0..60).fold(String::new(), |mut words, word| {
            write!(words, "word{} ", i * word).unwrap();
            words
        });
        member(&format!("https://{host}/{i}"), "text/html", format!("<p>{words}</p>").as_bytes())
    })
}

/// Some pages, each followed by an image.
fn crawl(n: u32) -> Vec<u8> {
    pages("a.org", n)
        .flat_map(|page| [page, member("https://a.org/image", "image/png", &[7; 3 << 20])].concat())
        .collect()
}

/// Returns the places in the file of the rows of some ranges, and the notes.
async fn places(context: &Arc<FingerprintContext>, ranges: Vec<DocumentRange>) -> (Vec<u64>, FileNote) {
    let (mut places, mut notes) = (Vec::new(), FileNote::default());
    for range in ranges {
        let mut batches = fingerprint_task(context, &FingerprintTask { range, reading: FileReading::first(0) });
        while let Some(batch) = batches.try_next().await.unwrap() {
            match batch {
                TaskBatch::Notes(batch) => notes.add(&batch).unwrap(),
                TaskBatch::Rows(rows) => {
                    let column = rows.column_by_name("row").unwrap();
                    let column = column.as_any().downcast_ref::<arrow::array::UInt64Array>().unwrap();
                    places.extend(column.values());
                }
            }
        }
    }
    (places, notes)
}

fn joins(notes: &FileNote, size: usize) -> bool {
    let spans: &BTreeMap<u64, _> = &notes.spans[&FileReading::first(0)];
    spans_join(size as u64, spans.iter().map(|(&start, &(end, seam))| (start..end, seam)))
}

#[tokio::test]
async fn a_large_packed_file_is_read_by_several_tasks_that_give_the_rows_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = crawl(15);
    std::fs::write(folder.path().join("a.warc.gz"), &file).unwrap();
    let (context, documents) = open(folder.path(), &Progress::default()).await;
    let ranges = documents.ranges_to_join();
    assert_eq!((ranges.len(), documents.ranges().len()), (3, 1));

    let (of_file, of_whole) = places(&context, documents.ranges()).await;
    let (of_spans, notes) = places(&context, ranges).await;
    assert_eq!((of_file.len(), of_whole.spans.len()), (15, 0));
    assert_eq!((of_spans, &notes.passed), (of_file, &of_whole.passed));
    assert!(joins(&notes, file.len()));
}

#[tokio::test]
async fn the_warc_files_of_a_wacz_are_read_by_several_tasks_that_give_its_rows() {
    let folder = tempfile::tempdir().unwrap();
    let mut zip = rawzip::ZipArchiveWriter::new(Vec::new());
    for (name, warc) in [("1.warc.gz", crawl(2)), ("2.warc.gz", crawl(15)), ("3.warc", b"\r\n".repeat(10))] {
        let (mut entry, config) = zip.new_file(format!("archive/{name}").as_str()).start().unwrap();
        let mut writer = config.wrap(&mut entry);
        writer.write_all(&warc).unwrap();
        let (_, descriptor) = writer.finish().unwrap();
        entry.finish(descriptor).unwrap();
    }
    let file = zip.finish().unwrap();
    std::fs::write(folder.path().join("a.wacz"), &file).unwrap();
    let (context, documents) = open(folder.path(), &Progress::default()).await;
    let ranges = documents.ranges_to_join();
    assert_eq!((ranges.len(), documents.ranges().len()), (5, 1));

    let (of_file, of_whole) = places(&context, documents.ranges()).await;
    let (of_spans, notes) = places(&context, ranges).await;
    assert_eq!((of_file.len(), of_whole.spans.len()), (17, 0));
    assert_eq!((of_spans, &notes.passed), (of_file, &of_whole.passed));
    assert!(joins(&notes, file.len()));
}

#[tokio::test]
async fn a_span_that_begins_within_a_packed_file_in_a_record_does_not_join() {
    let folder = tempfile::tempdir().unwrap();
    let inner: Vec<u8> = pages("inner.org", 25_000).flatten().collect();
    assert!(inner.len() > 16 << 20, "{}", inner.len());
    let file =
        [pages("a.org", 3).flatten().collect(), member("https://a.org/file", "application/warc", &inner)].concat();
    std::fs::write(folder.path().join("a.warc.gz"), &file).unwrap();
    let (context, documents) = open(folder.path(), &Progress::default()).await;
    let (of_spans, notes) = places(&context, documents.ranges_to_join()).await;
    assert!(of_spans.len() > 3);
    assert!(!joins(&notes, file.len()));
}
