//! Whatever the `parquet` crate would read as a size, the guard has seen: headers and footers of real files, bent in ways that
//! parsers differ over, and random ones. `dev/fuzz/` does the same for longer.

use std::sync::Arc;

use arrow::array::{ArrayRef, FixedSizeBinaryArray, RecordBatch, StringArray, TimestampMillisecondArray, UInt64Array};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::metadata::ParquetMetaDataReader;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};

use crate::agreement::{Outcome, check_footer, check_page_header, is_footer, page_header};
use crate::random::Random;

/// A file with columns of several kinds.
fn file(version: WriterVersion, statistics: EnabledStatistics) -> Vec<u8> {
    let strings: ArrayRef = Arc::new((0..500).map(|i| (i % 7 > 0).then(|| format!("id-{i}"))).collect::<StringArray>());
    let numbers: ArrayRef = Arc::new(UInt64Array::from_iter_values((0..500).map(|i| i * 0x0123_4567_89ab)));
    let times: ArrayRef = Arc::new(TimestampMillisecondArray::from_iter_values(0..500));
    let bytes: ArrayRef = Arc::new(FixedSizeBinaryArray::try_from_iter((0..500u32).map(|i| i.to_le_bytes())).unwrap());
    let columns = [("id", strings), ("fingerprint", numbers), ("at", times), ("sketch", bytes)];
    let batch = RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap();
    let properties = WriterProperties::builder()
        .set_writer_version(version)
        .set_statistics_enabled(statistics)
        .set_write_page_header_statistics(true)
        .set_compression(Compression::SNAPPY)
        .set_data_page_row_count_limit(64)
        .set_write_batch_size(64)
        .set_max_row_group_row_count(Some(200))
        .build();
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    file
}

fn files() -> Vec<Vec<u8>> {
    let versions = [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0];
    let statistics = [EnabledStatistics::None, EnabledStatistics::Page];
    versions.into_iter().flat_map(|v| statistics.map(|s| file(v, s))).collect()
}

fn footer(file: &[u8]) -> &[u8] {
    let end = file.len() - 8;
    let length = u32::from_le_bytes(file[end..end + 4].try_into().unwrap()) as usize;
    &file[end - length..end]
}

/// Headers of all pages of a file.
fn headers(file: &[u8]) -> Vec<Vec<u8>> {
    let footer = ParquetMetaDataReader::decode_metadata(footer(file)).unwrap();
    let mut headers = Vec::new();
    for chunk in footer.row_groups().iter().flat_map(|group| group.columns()) {
        let (start, length) = chunk.byte_range();
        let mut rest = &file[start as usize..(start + length) as usize];
        while !rest.is_empty() {
            let (header, page) = page_header(rest).unwrap();
            headers.push(rest[..header].to_vec());
            rest = &rest[page..];
        }
    }
    headers
}

fn zigzag(value: i64) -> Vec<u8> {
    let (mut value, mut out) = (((value << 1) ^ (value >> 63)).cast_unsigned(), Vec::new());
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
    out
}

/// Bytes that parsers may read differently: field numbers written out, beyond 16 bits, of any type; numbers beyond 32 bits; long
/// zeros; lists and maps of booleans and structs.
fn trap(random: &mut Random) -> Vec<u8> {
    const NUMBERS: [i64; 8] = [0, -1, 1 << 31, (1 << 31) - 1, (1 << 32) + 5, -(1 << 31), 1 << 15, i64::MIN];
    let id = 1 + random.below(9) as i64;
    let beyond = [0, 1 << 16, -(1 << 16), 1 << 32, 1 << 48][random.below(5)];
    let kind = 1 + random.below(14) as u8;
    let number = if random.below(2) == 0 { NUMBERS[random.below(8)] } else { random.below(1000) as i64 };
    match random.below(6) {
        0 => [&[kind][..], &zigzag(id + beyond), &zigzag(number)].concat(),
        1 => [&[(1 + random.below(15) as u8) << 4 | kind][..], &zigzag(number)].concat(),
        2 => [&[0x80; 9][..1 + random.below(9)], &[random.below(3) as u8]].concat(),
        3 => vec![0x19, (random.below(16) as u8) << 4 | (1 + random.below(13) as u8), random.below(256) as u8],
        4 => vec![0x1b, random.below(4) as u8, random.below(256) as u8, random.below(256) as u8],
        _ => zigzag(number),
    }
}

fn bend(from: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = from.to_vec();
    for _ in 0..1 + random.below(2) {
        let at = random.below(bytes.len().max(1));
        match random.below(6) {
            0 if !bytes.is_empty() => bytes[at] = random.next() as u8,
            1 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
            2 => bytes.truncate(at),
            3 if !bytes.is_empty() => drop(bytes.remove(at)),
            _ => drop(bytes.splice(at..at, trap(random))),
        }
    }
    bytes
}

#[derive(Default, Debug)]
struct Counts {
    same: u32,
    refused: u32,
    unread: u32,
}

impl Counts {
    fn note(&mut self, outcome: Outcome) {
        *match outcome {
            Outcome::Same => &mut self.same,
            Outcome::Refused => &mut self.refused,
            Outcome::Unread => &mut self.unread,
        } += 1;
    }
}

#[test]
fn sizes_in_page_headers_are_those_that_the_reader_takes_or_the_header_is_refused() {
    let headers: Vec<Vec<u8>> = files().iter().flat_map(|file| headers(file)).collect();
    assert!(headers.iter().all(|header| check_page_header(header) == Outcome::Same));
    let (mut random, mut counts) = (Random(11), Counts::default());
    for round in 0..40_000 {
        let bent = bend(&headers[round % headers.len()], &mut random);
        counts.note(check_page_header(&bent));
    }
    println!("{counts:?} of {} headers", headers.len());
    assert!(counts.same > 3_000 && counts.refused > 3_000, "{counts:?}");
}

#[test]
fn footers_that_writers_write_pass_and_bent_ones_are_refused_or_hold_what_they_say() {
    let files = files();
    assert!(files.iter().all(|file| check_footer(footer(file)) == Outcome::Same));
    let (mut random, mut counts) = (Random(12), Counts::default());
    for round in 0..20_000 {
        let bent = bend(footer(&files[round % files.len()]), &mut random);
        counts.note(check_footer(&bent));
    }
    println!("{counts:?}");
    assert!(counts.same > 1_000 && counts.refused > 1_000, "{counts:?}");
    assert!(is_footer(footer(&files[0])));
}

/// A group in a group, and so on: their reader calls itself for each.
#[test]
fn schemas_deeper_than_any_and_with_more_children_than_elements_are_refused() {
    let element = |children: &[u8]| [&[0x48, 1, b'a', 0x15][..], children, &[0]].concat();
    let with = |elements: Vec<Vec<u8>>| {
        let n = u8::try_from(elements.len()).unwrap();
        [&[0x15, 2, 0x19, 0xfc][..], &[n | 0x80, 1], &elements.concat(), &[0x16, 0, 0x19, 0x0c, 0]].concat()
    };
    // 128 and more elements, as two bytes of a number.
    let chain = |n: usize| with((0..n).map(|i| element(&[if i + 1 < n { 2 } else { 0 }])).collect());
    assert_eq!(check_footer(&chain(255)), Outcome::Refused);
    let wide = |claimed: &[u8]| with((0..200).map(|i| element(if i == 0 { claimed } else { &[0] })).collect());
    assert_ne!(check_footer(&wide(&[0x8e, 3])), Outcome::Refused, "199 children");
    assert_eq!(check_footer(&wide(&[0x90, 3])), Outcome::Refused, "200 children");
    assert_eq!(check_footer(&wide(&[0xfe, 0xff, 0xff, 0xff, 0x0f])), Outcome::Refused, "2^31 - 1 children");
}
