//! Tables of an index, read by pages, against a naive read of all their rows.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use nearprint_parquet::schema::INDEX;
use nearprint_parquet::{
    DatasetWriter, DeltaKernel, INDEX_PAGE_ROWS, PagesRead, ParquetFile, SortedCopy, writer_properties,
};
use nearprint_storage::Storage;
use parquet::arrow::ArrowWriter;

use crate::random::Random;

/// Rows of a table: fingerprints with their places, sorted by both.
type Rows = Vec<(u64, u64)>;

/// Rows of which many have the same fingerprint, so that one value fills several pages.
fn rows(n: usize, n_values: u64, seed: u64) -> Rows {
    let mut random = Random(seed);
    let mut value = || (random.next() % n_values).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut rows: Rows = (0..n as u64).map(|place| (value(), place)).collect();
    rows.sort_unstable();
    rows
}

fn batch(rows: &Rows) -> RecordBatch {
    let column =
        |of: fn(&(u64, u64)) -> u64| -> ArrayRef { Arc::new(UInt64Array::from_iter_values(rows.iter().map(of))) };
    RecordBatch::try_new(Arc::clone(&INDEX), vec![column(|row| row.0), column(|row| row.1)]).unwrap()
}

/// Writes a table as `nearprint store index` does.
fn own(folder: &Path, rows: &Rows) -> PathBuf {
    let mut writer = DatasetWriter::new(folder, "", &INDEX, &[]).in_one_file();
    writer.write(batch(rows)).unwrap();
    writer.finish().unwrap()[0].path.clone()
}

/// Writes a table whose row groups are small.
fn in_groups(folder: &Path, rows: &Rows, group_rows: usize) -> PathBuf {
    let path = folder.join("groups.parquet");
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, Arc::clone(&INDEX), Some(writer_properties(&INDEX, &[]))).unwrap();
    for group in rows.chunks(group_rows) {
        writer.write(&batch(&group.to_vec())).unwrap();
        writer.flush().unwrap();
    }
    writer.close().unwrap();
    path
}

/// Ranges that ascend and do not overlap: some of one value that is there, some between values, some of many values.
fn ranges(rows: &Rows, random: &mut Random, n: usize) -> Vec<RangeInclusive<u64>> {
    let mut ends: Vec<u64> = (0..2 * n)
        .map(|_| match (random.below(3), rows.is_empty()) {
            (0, _) | (_, true) => random.next(),
            (1, _) => rows[random.below(rows.len())].0,
            _ => rows[random.below(rows.len())].0.saturating_add(random.below(3) as u64).saturating_sub(1),
        })
        .collect();
    ends.sort_unstable();
    let mut ranges: Vec<RangeInclusive<u64>> = Vec::new();
    for pair in ends.chunks(2) {
        let end = if random.below(2) == 0 { pair[0] } else { pair[1] };
        if ranges.last().is_none_or(|last| *last.end() < pair[0]) {
            ranges.push(pair[0]..=end);
        }
    }
    ranges
}

async fn check(path: &Path, rows: &Rows, random: &mut Random) {
    let file = Storage::default().folder(path.to_str().unwrap()).unwrap().file().await.unwrap();
    let copy = SortedCopy::of(&ParquetFile::open(file).await.unwrap(), DeltaKernel::best()).unwrap();
    assert_eq!(copy.n_rows(), rows.len() as u64);
    for n in [1, 2, 10, 100] {
        let ranges = ranges(rows, random, n);
        let pages = copy.pages_in(&ranges);
        assert!(pages.is_sorted_by(|a, b| a < b) && pages.iter().all(|&page| page < copy.n_pages()), "{pages:?}");
        let mut read = PagesRead::default();
        let values = copy.permuted(&pages, &mut read).await.unwrap();
        assert_eq!(read.pages, pages.len() as u64, "each page is read once");
        let within = |value: u64| ranges.iter().any(|range| range.contains(&value));
        let mut wanted_rows = Vec::new();
        for (&page, values) in pages.iter().zip(&values) {
            let first = copy.first_row(page);
            let expected: Vec<u64> = rows[first as usize..][..values.len()].iter().map(|row| row.0).collect();
            assert_eq!(*values, expected, "page {page}");
            assert!(values.len() <= INDEX_PAGE_ROWS);
            wanted_rows.extend((first..).zip(values).filter(|(_, value)| within(**value)).map(|(row, _)| row));
        }
        let places = copy.places(&wanted_rows, &mut read).await.unwrap();
        let found: Rows = wanted_rows.iter().zip(places).map(|(&row, place)| (rows[row as usize].0, place)).collect();
        let naive: Rows = rows.iter().copied().filter(|row| within(row.0)).collect();
        assert_eq!(found, naive, "{ranges:?}");
    }
}

#[test]
fn the_pages_of_any_ranges_have_all_their_fingerprints_and_places() {
    let temp = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut random = Random(11);
    for (seed, n) in (1..).zip([0, 1, 1023, 1024, 1025, 5000, 20_000]) {
        for n_values in [1, 3, 500, u64::MAX] {
            let rows = rows(n, n_values, seed);
            let folder = temp.path().join(format!("{n}-{n_values}"));
            std::fs::create_dir_all(&folder).unwrap();
            runtime.block_on(async {
                check(&own(&folder, &rows), &rows, &mut random).await;
                check(&in_groups(&folder, &rows, 1500), &rows, &mut random).await;
            });
        }
    }
}
