//! Damaged and crafted Parquet: always an error of the file or the right rows, never a panic and never much memory.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use nearprint_documents::{DocumentColumns, InputPolicy};
use nearprint_fault::{ErrorKind, Fault};
use nearprint_pipeline::{FingerprintCounts, FingerprintRequest, Resources};
use nearprint_profile as profile;
use nearprint_storage::{IfExists, Progress, Storage};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterVersion};

use crate::random::Random;

/// Returns the outcome of fingerprinting a folder: its counts and the bytes of its fingerprints.
async fn fingerprinted(folder: &Path, columns: (&str, &str)) -> Result<(FingerprintCounts, Vec<u8>), Fault> {
    let columns =
        DocumentColumns { id: columns.0.to_owned(), text: columns.1.to_owned(), ..DocumentColumns::default() };
    let request = FingerprintRequest {
        documents: folder.join("documents").display().to_string().into(),
        columns,
        keep: Vec::new(),
        source: None,
        profile: profile::by_name("default").unwrap(),
        analyzer_resources: nearprint_tokenize::Resources::default(),
        input: InputPolicy { max_bad_rows: 1000, ..InputPolicy::default() },
    };
    let resources = Resources { threads: Some(1), memory_limit: Some(1 << 30), ..Resources::default() };
    let output = folder.join("output");
    let (storage, progress) = (Storage::default(), Progress::default());
    let to = output.display().to_string();
    let done =
        nearprint_pipeline::fingerprint(&storage, &request, &to, IfExists::Replace, &resources, &progress).await?;
    Ok((done.counts, std::fs::read(output.join("part-00000.parquet")).unwrap()))
}

fn documents(properties: WriterProperties) -> Vec<u8> {
    let mut random = Random(7);
    let text = |i: usize, random: &mut Random| {
        let words: Vec<String> = (0..20 + i % 5).map(|_| format!("w{}", random.below(5000))).collect();
        words.join(" ")
    };
    let ids: ArrayRef = Arc::new(StringArray::from_iter_values((0..300).map(|i| format!("id-{i}"))));
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..300).map(|i| text(i, &mut random))));
    let batch = RecordBatch::try_from_iter([("id", ids), ("text", texts)]).unwrap();
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    file
}

fn kinds() -> Vec<Vec<u8>> {
    let builder =
        || WriterProperties::builder().set_max_row_group_row_count(Some(100)).set_data_page_row_count_limit(32);
    let text = || parquet::schema::types::ColumnPath::from("text");
    vec![
        documents(builder().build()),
        documents(builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build()),
        documents(
            builder()
                .set_writer_version(WriterVersion::PARQUET_2_0)
                .set_compression(Compression::GZIP(parquet::basic::GzipLevel::default()))
                .set_dictionary_enabled(false)
                .set_column_encoding(text(), Encoding::DELTA_BYTE_ARRAY)
                .build(),
        ),
        documents(
            builder()
                .set_compression(Compression::SNAPPY)
                .set_dictionary_enabled(false)
                .set_column_encoding(text(), Encoding::DELTA_LENGTH_BYTE_ARRAY)
                .build(),
        ),
    ]
}

fn write(folder: &Path, content: &[u8]) {
    std::fs::create_dir_all(folder.join("documents")).unwrap();
    std::fs::write(folder.join("documents/x.parquet"), content).unwrap();
}

/// The largest memory of this process so far, in MiB.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) / 1024
}

fn expect_error_of_the_file(error: &Fault, what: &str) {
    assert_eq!(error.kind(), ErrorKind::BadData, "{what}: {error}");
    assert!(error.to_string().contains("x.parquet") || error.to_string().contains("rows"), "{what}: {error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn files_damaged_anywhere_are_errors_or_read_and_never_panic() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(42);
    let (mut read, mut refused) = (0, 0);
    for (kind, whole) in kinds().into_iter().enumerate() {
        write(folder.path(), &whole);
        assert_eq!(fingerprinted(folder.path(), ("id", "text")).await.unwrap().0.n_documents, 300);
        let footer = u32::from_le_bytes(whole[whole.len() - 8..whole.len() - 4].try_into().unwrap()) as usize + 8;
        for round in 0..240 {
            let mut content = whole.clone();
            let in_footer = round % 2 == 0;
            let what = format!("kind {kind}, round {round}");
            if round % 8 == 7 {
                content.truncate(random.below(whole.len()));
            } else {
                for _ in 0..1 + random.below(3) {
                    let from = if in_footer { whole.len() - footer } else { 4 };
                    let at = from + random.below(whole.len() - from);
                    content[at] =
                        if random.below(2) == 0 { random.next() as u8 } else { content[at] ^ (1 << random.below(8)) };
                }
            }
            write(folder.path(), &content);
            match fingerprinted(folder.path(), ("id", "text")).await {
                Ok(_) => read += 1,
                Err(error) => {
                    expect_error_of_the_file(&error, &what);
                    assert!(!round_is_cut(round) || error.to_string().contains("Parquet"), "{what}: {error}");
                    refused += 1;
                }
            }
        }
    }
    println!("{read} read, {refused} refused, {} MiB", peak_mib());
    assert!(refused > 300 && peak_mib() < 1024, "{read} read, {refused} refused, {} MiB", peak_mib());
}

fn round_is_cut(round: usize) -> bool {
    round % 8 == 7
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn published_files_have_page_checksums_and_a_flipped_bit_never_gives_other_documents() {
    let folder = tempfile::tempdir().unwrap();
    let ids: ArrayRef = Arc::new(StringArray::from_iter_values((0..5000).map(|i| format!("id-{i}"))));
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..5000).map(|i| format!("short {i}"))));
    let batch = RecordBatch::try_from_iter([("id", ids), ("text", texts)]).unwrap();
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    write(folder.path(), &file);
    let (counts, _) = fingerprinted(folder.path(), ("id", "text")).await.unwrap();
    assert_eq!((counts.n_too_short, counts.n_files_without_checksums), (5000, 1));

    // What was published is itself read as documents: ids, and a short text each.
    let published = std::fs::read(folder.path().join("output/_skipped/part-00000.parquet")).unwrap();
    write(folder.path(), &published);
    let (counts, right) = fingerprinted(folder.path(), ("doc_id", "reason")).await.unwrap();
    assert_eq!((counts.n_documents, counts.n_files_without_checksums), (5000, 0));
    let skipped = folder.path().join("output/_skipped/part-00000.parquet");
    let right = (counts, right, std::fs::read(&skipped).unwrap());
    let mut random = Random(3);
    let (mut same, mut refused) = (0, 0);
    for _ in 0..300 {
        let mut content = published.clone();
        let at = random.below(content.len());
        content[at] ^= 1 << random.below(8);
        write(folder.path(), &content);
        match fingerprinted(folder.path(), ("doc_id", "reason")).await {
            Ok((counts, bytes)) => {
                let found = (FingerprintCounts { n_files_without_checksums: 0, ..counts }, bytes);
                assert!((found.0, found.1, std::fs::read(&skipped).unwrap()) == right, "at {at}");
                same += 1;
            }
            Err(error) => {
                expect_error_of_the_file(&error, &format!("at {at}"));
                refused += 1;
            }
        }
    }
    println!("{same} the same, {refused} refused");
    assert!(refused > 200, "{same} the same, {refused} refused");
}
