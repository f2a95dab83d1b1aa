//! Parquet that says other things to the guards than to the reader, or claims what it has not: an error that names the file,
//! within the memory that is allowed.

use std::io::Write;
use std::path::Path;

use crate::support::{Night, rows, text, with_peak_mib, write_fingerprints};

const DT: &str = "2026-10-01";
const LIMIT: [&str; 2] = ["--memory-limit", "512MiB"];
const MIB: u64 = 1 << 20;

const BINARY: u8 = 8;
const I32: u8 = 5;
const I64: u8 = 6;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

const PLAIN_CODEC: i64 = 0;
const SNAPPY: i64 = 1;
const GZIP: i64 = 2;

/// A struct in Thrift's compact protocol; numbers that are no step from the last one are written out.
#[derive(Default)]
struct Thrift {
    out: Vec<u8>,
    last: Vec<i64>,
}

impl Thrift {
    fn new() -> Self {
        Self { out: Vec::new(), last: vec![0] }
    }

    fn field(mut self, id: i64, kind: u8) -> Self {
        let last = self.last.last_mut().unwrap();
        match u8::try_from(id - *last) {
            Ok(step @ 1..=15) => self.out.push(step << 4 | kind),
            _ => {
                self.out.push(kind);
                zigzag(&mut self.out, id);
            }
        }
        *self.last.last_mut().unwrap() = id;
        self
    }

    /// A field whose number its reader cuts down to 16 bits, and counts on from there.
    fn beyond_16_bits(self, id: i64, kind: u8) -> Self {
        let mut this = self.field(id + 65_536, kind);
        *this.last.last_mut().unwrap() = id;
        this
    }

    fn value(mut self, value: i64) -> Self {
        zigzag(&mut self.out, value);
        self
    }

    fn int(self, id: i64, value: i64) -> Self {
        self.field(id, I32).value(value)
    }

    fn long(self, id: i64, value: i64) -> Self {
        self.field(id, I64).value(value)
    }

    fn string(mut self, id: i64, value: &str) -> Self {
        self = self.field(id, BINARY);
        self.bare_string(value)
    }

    fn bare_string(mut self, value: &str) -> Self {
        varint(&mut self.out, value.len() as u64);
        self.out.extend(value.as_bytes());
        self
    }

    fn list(mut self, id: i64, kind: u8, n: u64) -> Self {
        self = self.field(id, LIST);
        self.out.push(0xf0 | kind);
        varint(&mut self.out, n);
        self
    }

    fn begin(self, id: i64) -> Self {
        self.field(id, STRUCT).element()
    }

    fn element(mut self) -> Self {
        self.last.push(0);
        self
    }

    fn end(mut self) -> Self {
        self.out.push(0);
        self.last.pop();
        self
    }
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

fn zigzag(out: &mut Vec<u8>, value: i64) {
    varint(out, ((value << 1) ^ (value >> 63)).cast_unsigned());
}

/// A header of a page of `n` PLAIN values.
fn header(unpacked: i64, packed: usize, n: i64) -> Vec<u8> {
    describe(Thrift::new().int(1, 0).int(2, unpacked).int(3, packed as i64), n)
}

fn describe(header: Thrift, n: i64) -> Vec<u8> {
    header.begin(5).int(1, n).int(2, 0).int(3, 3).int(4, 3).end().end().out
}

/// A column, all required, and what the file says of it.
struct Column {
    name: &'static str,
    string: bool,
    codec: i64,
    pages: Vec<u8>,
}

impl Column {
    fn strings(name: &'static str, codec: i64, header: &[u8], body: &[u8]) -> Self {
        Self { name, string: true, codec, pages: [header, body].concat() }
    }

    fn fingerprints(codec: i64, header: &[u8], body: &[u8]) -> Self {
        Self { name: "fingerprint", string: false, codec, pages: [header, body].concat() }
    }

    /// One string.
    fn one(name: &'static str, value: &str) -> Self {
        let body = plain(value);
        Self::strings(name, PLAIN_CODEC, &header(body.len() as i64, body.len(), 1), &body)
    }
}

fn plain(value: &str) -> Vec<u8> {
    [&u32::try_from(value.len()).unwrap().to_le_bytes(), value.as_bytes()].concat()
}

/// The claims of a file besides its pages.
struct Claims<'a> {
    file_rows: i64,
    group_rows: i64,
    values: i64,
    /// Of the first column.
    offset_index: Option<&'a [u8]>,
}

impl Claims<'_> {
    fn rows(n: i64) -> Self {
        Self { file_rows: n, group_rows: n, values: n, offset_index: None }
    }
}

/// A file of one row group.
fn file(columns: &[Column], claims: &Claims<'_>) -> Vec<u8> {
    let mut bytes = b"PAR1".to_vec();
    let mut places = Vec::new();
    for column in columns {
        places.push((bytes.len() as i64, column.pages.len() as i64));
        bytes.extend(&column.pages);
    }
    let index_at = bytes.len() as i64;
    bytes.extend(claims.offset_index.unwrap_or_default());
    let mut footer = Thrift::new().int(1, 2).list(2, STRUCT, columns.len() as u64 + 1);
    footer = footer.element().string(4, "schema").int(5, columns.len() as i64).end();
    for column in columns {
        footer = footer.element().int(1, if column.string { 6 } else { 2 }).int(3, 0).string(4, column.name);
        footer = footer.int(6, if column.string { 0 } else { 14 }).end();
    }
    footer = footer.long(3, claims.file_rows).list(4, STRUCT, 1).element().list(1, STRUCT, columns.len() as u64);
    for (i, (column, (at, length))) in columns.iter().zip(places).enumerate() {
        footer = footer.element().long(2, at).begin(3).int(1, if column.string { 6 } else { 2 });
        footer = footer.list(2, I32, 1).value(0).list(3, BINARY, 1).bare_string(column.name);
        footer = footer.int(4, column.codec).long(5, claims.values).long(6, length).long(7, length).long(9, at).end();
        if let Some(index) = claims.offset_index.filter(|_| i == 0) {
            footer = footer.long(4, index_at).int(5, index.len() as i64);
        }
        footer = footer.end();
    }
    let footer = footer.long(2, 100).long(3, claims.group_rows).end().end().out;
    let length = u32::try_from(footer.len()).unwrap().to_le_bytes();
    [&bytes[..], &footer, &length, b"PAR1"].concat()
}

/// Returns the error of a command that ends with 65, names the file and takes no more than some 200 MiB.
fn refused(folder: &Path, args: &[&str], what: &str) -> String {
    let (done, peak) = with_peak_mib(folder, &[args, &LIMIT].concat());
    assert_eq!(done.code, 65, "{what}: {}", done.stderr);
    assert!(done.error().contains("hostile.parquet"), "{what}: {}", done.error());
    assert!(peak < 200, "{what}: {peak} MiB");
    done.error().to_owned()
}

/// A night with one good document and a hostile file.
fn night(content: &[u8]) -> Night {
    let night = Night::new("");
    night.documents(DT, &[("good", &text(1, 40))]);
    std::fs::write(night.path().join(format!("documents/dt={DT}/hostile.parquet")), content).unwrap();
    night
}

const RUN: [&str; 6] = ["run", "--config", "job.toml", "--dt", DT, "--json"];

fn documents_are_refused(content: &[u8], what: &str) {
    let night = night(content);
    refused(night.path(), &RUN, what);
    let (done, peak) = with_peak_mib(night.path(), &[&RUN[..], &LIMIT, &["--max-bad-files", "1"]].concat());
    let summary = done.expect_success().json();
    assert_eq!((&summary["n_documents"], &summary["n_bad_files"]), (&1.into(), &1.into()), "{what}");
    assert!(peak < 200, "{what}: {peak} MiB");
}

/// Which the reader takes for a claim of 2 GiB, and the guard once took for a field that nobody reads.
fn field_beyond_16_bits() -> Vec<u8> {
    let body = plain(&text(1, 3));
    let claims = Thrift::new().int(1, 0).int(2, body.len() as i64).int(3, body.len() as i64);
    let header = describe(claims.beyond_16_bits(2, I32).value(i64::from(i32::MAX)), 1);
    file(&[Column::one("id", "a"), Column::strings("text", SNAPPY, &header, &body)], &Claims::rows(1))
}

/// Which the reader unpacks, and the guard once took for not packed: far more than the header says.
fn packed_after_all(members: usize) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(&vec![0; 16 << 20]).unwrap();
    let body = gzip.finish().unwrap().repeat(members);
    let header = Thrift::new().int(1, 3).int(2, 1 << 20).int(3, body.len() as i64).begin(8);
    let header = header.int(1, 1).int(2, 0).int(3, 1).int(4, 0).int(5, 0).int(6, 0).field(7, 2).beyond_16_bits(7, 1);
    let header = header.end().end().out;
    file(&[Column::one("id", "a"), Column::strings("text", GZIP, &header, &body)], &Claims::rows(1))
}

#[test]
fn a_number_of_a_field_beyond_16_bits_hides_nothing_from_the_guard() {
    documents_are_refused(&field_beyond_16_bits(), "a size");
    documents_are_refused(&packed_after_all(64), "whether a page is packed");
}

#[test]
fn a_field_of_another_type_or_given_twice_hides_nothing_from_the_guard() {
    let body = plain(&text(1, 3));
    let (small, huge) = (body.len() as i64, i64::from(i32::MAX));
    let begin = || Thrift::new().int(1, 0).int(2, small);
    let cases = [
        ("a size as a 64-bit number", begin().int(3, small).field(2, I64).value(huge)),
        ("a size twice", begin().int(3, small).field(2, I32).value(huge)),
        ("a size of more than 32 bits", Thrift::new().int(1, 0).int(2, (1 << 32) + huge).int(3, small)),
    ];
    for (what, header) in cases {
        let header = describe(header, 1);
        let columns = [Column::one("id", "a"), Column::strings("text", SNAPPY, &header, &body)];
        documents_are_refused(&file(&columns, &Claims::rows(1)), what);
    }
}

#[test]
fn rows_that_a_file_only_claims_make_it_a_bad_file_and_not_a_full_disk() {
    let columns = || [Column::one("id", "a"), Column::one("text", &text(1, 40))];
    documents_are_refused(&file(&columns(), &Claims::rows(1_000_000_000_000)), "many rows");
    documents_are_refused(&file(&columns(), &Claims::rows(-1)), "fewer than no rows");
    documents_are_refused(&file(&columns(), &Claims { file_rows: 2, ..Claims::rows(1) }), "other rows of the file");
    documents_are_refused(&file(&columns(), &Claims { values: 7, ..Claims::rows(1) }), "other values of the columns");
}

/// Eight fingerprints.
fn values() -> Vec<u8> {
    (0..8u64).flat_map(|i| (i * 0x0123_4567_89ab_cdef).to_le_bytes()).collect()
}

fn sound(claims: &Claims<'_>) -> Vec<u8> {
    file(&[Column::fingerprints(PLAIN_CODEC, &header(64, 64, 8), &values())], claims)
}

/// As queries, as existing fingerprints, and joined with themselves.
fn joins(folder: &Path) -> [Vec<&'static str>; 3] {
    let queries: Vec<(String, u64)> = (0..100).map(|i| (format!("q{i}"), i * 0x0123_4567_89ab_cdef)).collect();
    write_fingerprints(&folder.join("good.parquet"), &queries);
    let join = ["join", "--json", "--output", "out", "--replace", "--max-distance", "3"];
    [
        [&join[..], &["--queries", "hostile.parquet", "--existing", "good.parquet"]].concat(),
        [&join[..], &["--queries", "good.parquet", "--existing", "hostile.parquet"]].concat(),
        [&join[..], &["--queries", "hostile.parquet", "--self"]].concat(),
    ]
}

fn fingerprints_are_refused(content: &[u8], what: &str) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("hostile.parquet"), content).unwrap();
    for args in joins(folder.path()) {
        refused(folder.path(), &args, &format!("{what}: {args:?}"));
        assert!(!folder.path().join("out").exists(), "{what}: something was published");
    }
}

#[test]
fn fingerprints_of_others_claim_no_more_than_they_have() {
    let huge = i64::from(i32::MAX);
    let page = |header: &[u8]| file(&[Column::fingerprints(SNAPPY, header, &values())], &Claims::rows(8));
    fingerprints_are_refused(&page(&header(huge, 64, 8)), "unpacked bytes");
    fingerprints_are_refused(&page(&header(64, huge as usize, 8)), "packed bytes");
    fingerprints_are_refused(&page(&header(64, 64, huge)), "values of a page");
    let dictionary = Thrift::new().int(1, 2).int(2, 64).int(3, 64).begin(7).int(1, huge).int(2, 0).end().end().out;
    fingerprints_are_refused(&page(&dictionary), "values of a dictionary");
    fingerprints_are_refused(&sound(&Claims::rows(1 << 60)), "rows");
    fingerprints_are_refused(&sound(&Claims::rows(1 << 40)), "fewer rows");
    fingerprints_are_refused(&sound(&Claims::rows(1000)), "rows that could be there");
    fingerprints_are_refused(&sound(&Claims::rows(-8)), "fewer than no rows");
    fingerprints_are_refused(&sound(&Claims { file_rows: 1000, ..Claims::rows(8) }), "rows of the file");
    fingerprints_are_refused(&sound(&Claims { values: -8, ..Claims::rows(8) }), "values of a column");
}

/// Each of 8,192 rows has the one string of a dictionary.
#[test]
fn a_long_id_of_a_dictionary_is_not_written_out_for_every_row() {
    let n = 8192u64;
    let id = plain(&"x".repeat(1 << 20));
    let bytes = id.len() as i64;
    let dictionary = Thrift::new().int(1, 2).int(2, bytes).int(3, bytes).begin(7).int(1, 1).int(2, 0).end().end().out;
    let mut indices = vec![1];
    varint(&mut indices, n << 1);
    indices.push(0);
    let length = indices.len() as i64;
    let rows = Thrift::new().int(1, 0).int(2, length).int(3, length).begin(5).int(1, n as i64).int(2, 8);
    let rows = rows.int(3, 3).int(4, 3).end().end().out;
    let ids = [&dictionary[..], &id, &rows, &indices].concat();
    let values: Vec<u8> = (0..n).flat_map(|i| i.wrapping_mul(0x0123_4567_89ab_cdef).to_le_bytes()).collect();
    let columns = [
        Column { name: "doc_id", string: true, codec: PLAIN_CODEC, pages: ids },
        Column::fingerprints(PLAIN_CODEC, &header(values.len() as i64, values.len(), n as i64), &values),
    ];
    fingerprints_are_refused(&file(&columns, &Claims::rows(n as i64)), "a long id");
}

/// 100,000 groups in groups: the reader's stack is not so deep.
#[test]
fn a_schema_of_groups_in_groups_without_end_is_refused() {
    let mut footer = Thrift::new().int(1, 2).list(2, STRUCT, 100_000);
    for _ in 0..100_000 {
        footer = footer.element().int(3, 0).string(4, "g").int(5, 1).end();
    }
    let footer = footer.end().out;
    let length = u32::try_from(footer.len()).unwrap().to_le_bytes();
    let content = [b"PAR1", &footer[..], &length, b"PAR1"].concat();
    fingerprints_are_refused(&content, "a deep schema");
    documents_are_refused(&content, "a deep schema");
}

#[test]
fn a_schema_and_lists_claim_no_more_than_they_have() {
    let content = sound(&Claims::rows(8));
    let name = content.windows(6).position(|w| w == b"schema").unwrap();
    // After its name: the number of children, 1.
    assert_eq!(content[name + 6..name + 8], [0x15, 2]);
    let footer = content.len() - 8 - u32::from_le_bytes(content[content.len() - 8..][..4].try_into().unwrap()) as usize;
    let forged =
        [&content[..name + 7], &[0xfe, 0xff, 0xff, 0xff, 0x0f], &content[name + 8..content.len() - 8]].concat();
    let length = u32::try_from(forged.len() - footer).unwrap().to_le_bytes();
    fingerprints_are_refused(&[&forged[..], &length, b"PAR1"].concat(), "children in the schema");
}

/// An index of one page.
fn located(offset: i64, bytes: i64, first_row: i64) -> Vec<u8> {
    let index = Thrift::new().list(1, STRUCT, 1).element().long(1, offset).int(2, bytes).long(3, first_row);
    index.end().end().out
}

#[test]
fn an_index_of_pages_that_is_not_in_order_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let length = (header(64, 64, 8).len() + 64) as i64;
    let endless = Thrift::new().list(1, STRUCT, i32::MAX as u64).out;
    let cases = [
        ("no index", None),
        ("a sound index", Some(located(4, length, 0))),
        ("more pages than bytes", Some(endless)),
        ("before the file", Some(located(-4, length, 0))),
        ("behind the file", Some(located(1 << 40, length, 0))),
        ("before its chunk", Some(located(3, length, 0))),
        ("longer than its chunk", Some(located(4, length + 1, 0))),
        ("no bytes", Some(located(4, 0, 0))),
        ("fewer than no bytes", Some(located(4, -1, 0))),
        ("rows that are not there", Some(located(4, length, 5))),
        ("rows before the first", Some(located(4, length, -5))),
    ];
    let mut expected = None;
    for (what, index) in cases {
        let content = sound(&Claims { offset_index: index.as_deref(), ..Claims::rows(8) });
        std::fs::write(folder.path().join("hostile.parquet"), content).unwrap();
        let mut pairs = Vec::new();
        for args in joins(folder.path()) {
            let (done, peak) = with_peak_mib(folder.path(), &[&args[..], &LIMIT, &["--pairs", "all"]].concat());
            assert_eq!(done.code, 0, "{what}, {args:?}: {}", done.stderr);
            assert!(peak < 200, "{what}: {peak} MiB");
            pairs.push(rows(&folder.path().join("out/pairs")));
        }
        assert_eq!(expected.get_or_insert_with(|| pairs.clone()), &pairs, "{what}");
    }
    assert!(expected.unwrap()[0].len() >= 8);
    assert!(std::fs::metadata(folder.path().join("hostile.parquet")).unwrap().len() < MIB);
}
