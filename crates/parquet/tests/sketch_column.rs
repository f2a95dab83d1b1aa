//! Sketches of some rows, against the sketches that were written: in nearprint's own form, in that of other programs,
//! and in forms of other writers.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, FixedSizeBinaryArray, RecordBatch, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use futures::TryStreamExt;
use nearprint_parquet::schema::with_all_sketches;
use nearprint_parquet::sketch_column::{self, ReadCounts, SketchPages, fetch};
use nearprint_parquet::{Columns, DatasetWriter, ParquetFile, fixed, writer_properties};
use nearprint_storage::Storage;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};

use crate::random::Random;

type Sketches = Vec<Option<[u8; 32]>>;

/// The rows of a page of sketches, as docs/store-format.md says.
const PAGE_ROWS: u32 = 128;

fn sketches(n: usize, null_every: usize) -> Sketches {
    let mut random = Random(9);
    let mut sketch = || std::array::from_fn(|_| random.next().to_le_bytes()[0]);
    (1..=n).map(|row| (null_every == 0 || !row.is_multiple_of(null_every)).then(&mut sketch)).collect()
}

fn columns(nullable: bool) -> SchemaRef {
    let fields = vec![
        Field::new("fingerprint", DataType::UInt64, false),
        Field::new("sketch", DataType::FixedSizeBinary(32), true),
    ];
    let schema = Arc::new(Schema::new(fields));
    if nullable { schema } else { with_all_sketches(&schema) }
}

fn batch(schema: &SchemaRef, sketches: &Sketches) -> RecordBatch {
    let fingerprints: ArrayRef = Arc::new(UInt64Array::from_iter_values(0..sketches.len() as u64));
    let values = sketches.iter().map(Option::as_ref);
    let values = FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, 32).unwrap();
    RecordBatch::try_new(Arc::clone(schema), vec![fingerprints, Arc::new(values)]).unwrap()
}

/// Writes a file as `nearprint` does.
fn own(folder: &Path, schema: &SchemaRef, sketches: &Sketches) -> PathBuf {
    let mut writer = DatasetWriter::new(folder, "", schema, &[]);
    writer.write(batch(schema, sketches)).unwrap();
    writer.finish().unwrap()[0].path.clone()
}

/// Writes a file as another program might.
fn foreign(folder: &Path, schema: &SchemaRef, sketches: &Sketches, properties: WriterProperties) -> PathBuf {
    let path = folder.join("foreign.parquet");
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, Arc::clone(schema), Some(properties)).unwrap();
    writer.write(&batch(schema, sketches)).unwrap();
    writer.close().unwrap();
    path
}

fn properties() -> WriterPropertiesBuilder {
    WriterProperties::builder().set_dictionary_enabled(false).set_max_row_group_row_count(Some(3000))
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().unwrap().block_on(future)
}

async fn open(path: &Path) -> ParquetFile {
    let file = Storage::default().folder(path.to_str().unwrap()).unwrap().file().await.unwrap();
    ParquetFile::open(file).await.unwrap()
}

/// Checks that the rows of any row groups have their sketches, whether single ones are fetched or all are read.
fn check(path: &Path, expected: &Sketches) {
    wait(async {
        let (parquet, mut random) = (open(path).await, Random(5));
        for step in [1, 3, 40, 700, 5000] {
            for groups in (0..parquet.n_row_groups()).map(|first| first..parquet.n_row_groups()) {
                let first = parquet.rows_before(groups.start) as usize;
                let here = &expected[first..];
                let rows: BTreeSet<u32> = (0..here.len() / step).map(|_| random.below(here.len()) as u32).collect();
                let rows: Vec<u32> = rows.into_iter().collect();
                let found = fetch(&parquet, groups, &rows, &ReadCounts::default()).await.unwrap();
                let wanted: Sketches = rows.iter().map(|&row| here[row as usize]).collect();
                assert_eq!(found, wanted, "{path:?}, every {step}");
            }
        }
        for groups in (0..parquet.n_row_groups()).map(|first| first..parquet.n_row_groups()) {
            let (pages, counts, mut read) = (SketchPages::of(&parquet), ReadCounts::default(), Sketches::new());
            let take = |some: sketch_column::Sketches<'_>| match some {
                sketch_column::Sketches::All(sketches) => read.extend(sketches.iter().copied().map(Some)),
                sketch_column::Sketches::Some(sketches) => read.extend(sketches),
            };
            sketch_column::read_all(&parquet, &pages, groups.clone(), &counts, take).await.unwrap();
            assert!(read == expected[parquet.rows_before(groups.start) as usize..], "{path:?}: all of {groups:?}");
        }
        let mut batches = parquet.stream(parquet.whole(&["fingerprint", "sketch"])).unwrap();
        let mut all = Sketches::new();
        while let Some(batch) = batches.try_next().await.unwrap() {
            let columns = Columns { batch: &batch, file: "a file" };
            let values = columns.bytes::<32>("sketch").unwrap();
            all.extend((0..batch.num_rows()).map(|row| fixed(values, row)));
        }
        assert!(all == *expected, "{path:?}: all rows");
    });
}

#[test]
fn every_form_of_the_column_gives_the_sketches_that_were_written() {
    let temp = tempfile::tempdir().unwrap();
    for n in [0, 1, 127, 128, 129, 9000] {
        for (name, nullable, null_every) in [("required", false, 0), ("nullable", true, 0), ("nulls", true, 7)] {
            let folder = temp.path().join(format!("{name}{n}"));
            std::fs::create_dir(&folder).unwrap();
            let (schema, sketches) = (columns(nullable), sketches(n, null_every));
            check(&own(&folder, &schema, &sketches), &sketches);
            let earlier = properties()
                .set_compression(Compression::ZSTD(ZstdLevel::default()))
                .set_data_page_row_count_limit(4096)
                .set_statistics_enabled(EnabledStatistics::Page);
            let forms = [
                earlier,
                properties(),
                properties().set_data_page_row_count_limit(100).set_write_batch_size(50),
                properties().set_offset_index_disabled(true).set_statistics_enabled(EnabledStatistics::None),
                properties().set_dictionary_enabled(true),
                properties().set_writer_version(parquet::file::properties::WriterVersion::PARQUET_2_0),
            ];
            for form in forms {
                check(&foreign(&folder, &schema, &sketches, form.build()), &sketches);
            }
        }
    }
}

/// Returns the pages, the bytes, and the bytes of a whole column of a row group, for some rows of a file.
fn cost(path: &Path, rows: impl Iterator<Item = u32>) -> (u64, u64, u64) {
    wait(async {
        let (parquet, counts) = (open(path).await, ReadCounts::default());
        let Range { start, end } = parquet.chunk_range(0, 1).unwrap();
        fetch(&parquet, 0..1, &rows.collect::<Vec<_>>(), &counts).await.unwrap();
        (counts.pages(), counts.bytes(), end - start)
    })
}

#[test]
fn a_row_costs_a_page_rows_of_one_page_cost_it_once_and_many_rows_cost_the_column_once() {
    let temp = tempfile::tempdir().unwrap();
    let (schema, n) = (columns(false), 300_000u32);
    let path = own(temp.path(), &schema, &sketches(n as usize, 0));
    let index = cost(&path, std::iter::empty()).1;
    assert_eq!(index, 0, "without rows, not even the page index is read");
    let (_, one, whole) = cost(&path, std::iter::once(7));
    let (pages, two, _) = cost(&path, [7, 290_000].into_iter());
    assert!(pages == 2 && two - one <= 8 << 10, "a candidate costs {} bytes", two - one);
    let (pages, same, _) = cost(&path, 256..256 + PAGE_ROWS);
    assert_eq!((pages, same), (1, one));
    for step in [1, 200, 400] {
        let (pages, bytes, _) = cost(&path, (0..n).step_by(step));
        assert!(pages <= u64::from(n.div_ceil(PAGE_ROWS)), "{pages} pages");
        assert!(bytes <= whole + (one - 4096), "every {step}: {bytes} of {whole} bytes");
    }
}

#[test]
fn a_flipped_bit_in_a_page_of_sketches_is_an_error_and_not_another_sketch() {
    let temp = tempfile::tempdir().unwrap();
    let sketches = sketches(1000, 0);
    let path = own(temp.path(), &columns(false), &sketches);
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(32).position(|window| window == sketches[500].unwrap()).unwrap();
    bytes[at] ^= 4;
    std::fs::write(&path, bytes).unwrap();
    wait(async {
        let parquet = open(&path).await;
        let sound = fetch(&parquet, 0..1, &[3, 900], &ReadCounts::default()).await.unwrap();
        assert_eq!(sound, [sketches[3], sketches[900]]);
        let error = fetch(&parquet, 0..1, &[3, 501], &ReadCounts::default()).await.unwrap_err().to_string();
        assert!(error.contains("checksum"), "{error}");
        let (pages, counts) = (SketchPages::of(&parquet), ReadCounts::default());
        let error = sketch_column::read_all(&parquet, &pages, 0..1, &counts, |_| ()).await.unwrap_err().to_string();
        assert!(error.contains("checksum"), "{error}");
    });
}

#[test]
fn a_damaged_index_of_the_pages_of_sketches_costs_a_scan_and_loses_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let sketches = sketches(5000, 0);
    let schema = columns(false);
    let path = foreign(temp.path(), &schema, &sketches, writer_properties(&schema, &[]));
    let place = wait(async {
        let parquet = open(&path).await;
        usize::try_from(parquet.column_chunk(0, "sketch").unwrap().offset_index_offset().unwrap()).unwrap()
    });
    let mut bytes = std::fs::read(&path).unwrap();
    for at in 0..20 {
        let was = std::mem::replace(&mut bytes[place + at], 0xff);
        std::fs::write(&path, &bytes).unwrap();
        check(&path, &sketches);
        bytes[place + at] = was;
    }
}
