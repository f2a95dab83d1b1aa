//! `nearprint join`, against lists of exact answers and against the all-pairs oracle.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{FixedSizeBinaryArray, RecordBatch, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema};
use nearprint_fingerprint::{Sketch, hamming_distance};
use nearprint_join::{Kernel, naive, reduce};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};

use crate::support::{self, nearprint, nearprint_in, root, rows, text, write_fingerprints};

const LISTED: [(&str, u32); 8] = [
    ("worst_blocks", 6),
    ("ball_radius2", 3),
    ("chains", 6),
    ("signed_edge", 6),
    ("tiny_0", 6),
    ("tiny_1", 6),
    ("tiny_2", 6),
    ("heavy_block_one", 4),
];

fn join(args: &[&str]) -> (tempfile::TempDir, serde_json::Value, Vec<Vec<String>>) {
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().join("out");
    let args: Vec<&str> = [&["join", "--json", "--output", folder.to_str().unwrap()], args].concat();
    let summary = nearprint(&args).expect_success().json();
    let pairs = rows(&folder.join("pairs"));
    (out, summary, pairs)
}

#[test]
fn the_self_join_of_every_listed_set_gives_exactly_the_listed_pairs() {
    let data = root().join("crates/cli/tests/data/fingerprints");
    for (name, max_distance) in LISTED {
        let set = data.join(format!("{name}.parquet"));
        let listed = rows(&data.join(format!("{name}.pairs.parquet")));
        for (k, kernel) in (0..=max_distance).zip(Kernel::available().into_iter().cycle()) {
            let kernel = kernel.name().name();
            let (_out, summary, pairs) = join(&[
                "--queries",
                set.to_str().unwrap(),
                "--self",
                "--pairs",
                "all",
                "--max-distance",
                &k.to_string(),
                "--kernel",
                kernel,
            ]);
            let got: Vec<Vec<String>> = pairs.iter().map(|p| p[..3].to_vec()).collect();
            let within = listed.iter().filter(|p| p[2].parse::<u32>().unwrap() <= k).cloned();
            assert_eq!(got, reduce([within.collect()]), "{name}, k = {k}, {kernel}");
            assert_eq!(summary["kernel"], kernel);
        }
    }
}

#[test]
fn pairs_with_existing_files_in_any_order_equal_the_oracle_and_leave_out_the_own_id() {
    let dir = tempfile::tempdir().unwrap();
    let value = |seed: u64| u64::from_str_radix(&text(seed, 4).replace(['w', ' '], "")[..15], 16).unwrap();
    let queries: Vec<(String, u64)> = (0..300).map(|i| (format!("q{i:03}"), value(i % 250))).collect();
    // Flips of query values, unsorted, over three row groups; ids 0 to 99 are queries' own.
    let existing: Vec<(String, u64)> = (0..2500u64)
        .map(|i| {
            let id = if i < 100 { format!("q{i:03}") } else { format!("e{:04}", i * 7919 % 10_000) };
            (id, value(i % 400) ^ (1 << (i % 61)) ^ (1 << (i * 3 % 64)))
        })
        .collect();
    write_fingerprints(&dir.path().join("queries.parquet"), &queries);
    write_fingerprints(&dir.path().join("existing/a.parquet"), &existing[..1300]);
    write_fingerprints(&dir.path().join("existing/b.parquet"), &existing[1300..]);
    for k in [0, 2, 5] {
        let paths = [dir.path().join("queries.parquet"), dir.path().join("existing")];
        let (_out, summary, pairs) = join(&[
            "--queries",
            paths[0].to_str().unwrap(),
            "--existing",
            paths[1].to_str().unwrap(),
            "--pairs",
            "all",
            "--max-distance",
            &k.to_string(),
        ]);
        let values = |rows: &[(String, u64)]| rows.iter().map(|r| r.1).collect::<Vec<_>>();
        let expected = naive::cross_pairs(&values(&queries), &values(&existing), k)
            .into_iter()
            .map(|(q, e, d)| {
                vec![
                    queries[q].0.clone(),
                    existing[e].0.clone(),
                    d.to_string(),
                    String::new(),
                    "new_existing".to_owned(),
                    String::new(),
                    "near".to_owned(),
                ]
            })
            .filter(|p| p[0] != p[1]);
        assert_eq!(pairs, reduce([expected.collect()]), "k = {k}");
        assert_eq!(summary["n_existing"], 2500);
    }
}

#[test]
fn a_reduce_that_spills_gives_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let rows: Vec<(String, u64)> = (0..1500u64).map(|i| (format!("document-{i:06}"), i % 3)).collect();
    write_fingerprints(&dir.path().join("set.parquet"), &rows);
    let set = dir.path().join("set.parquet");
    let common = ["--queries", set.to_str().unwrap(), "--self", "--pairs", "all", "--max-distance", "2", "--verbose"];
    let (free, unlimited, _) = join(&common);
    let (bound, limited, _) = join(&[&common[..], &["--reduce-memory", "16MiB", "--threads", "2"]].concat());
    assert_eq!(unlimited["n_pairs"], 1500 * 1499 / 2);
    assert_eq!(unlimited["spill"]["n_spills"], 0);
    assert!(limited["spill"]["n_spills"].as_u64().unwrap() > 0, "{limited}");
    let bytes = |out: &tempfile::TempDir| support::snapshot(&out.path().join("out/pairs"));
    assert_eq!(bytes(&free), bytes(&bound));
}

#[test]
fn a_forest_has_one_pair_fewer_than_documents_for_each_component() {
    let data = root().join("crates/cli/tests/data/fingerprints/ball_radius2.parquet");
    let (_out, summary, pairs) = join(&["--queries", data.to_str().unwrap(), "--self", "--max-distance", "3"]);
    assert_eq!(pairs.len(), 560);
    assert_eq!(summary["n_new_new"], 560);
}

#[test]
fn more_pairs_than_allowed_stop_before_anything_is_written() {
    let out = tempfile::tempdir().unwrap();
    let data = root().join("crates/cli/tests/data/fingerprints/ball_radius2.parquet");
    let folder = out.path().join("out");
    let done = nearprint(&[
        "join",
        "--queries",
        data.to_str().unwrap(),
        "--self",
        "--max-distance",
        "3",
        "--pairs",
        "all",
        "--max-pairs",
        "1000",
        "--output",
        folder.to_str().unwrap(),
    ]);
    assert_eq!(done.code, 65);
    let said = "more than 1000 pairs: raise --max-pairs, lower --max-distance, or set --pairs to forest";
    assert!(done.error().contains(said), "{}", done.stderr);
    assert!(!folder.exists());
}

/// A file of fingerprints alone, in the encodings of `properties`.
fn write_column(path: &Path, values: &[u64], nullable: bool, properties: WriterPropertiesBuilder) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let schema = Arc::new(Schema::new(vec![Field::new("fingerprint", DataType::UInt64, nullable)]));
    let properties = properties.set_max_row_group_row_count(Some(2000)).set_data_page_row_count_limit(300).build();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), Arc::clone(&schema), Some(properties)).unwrap();
    for values in values.chunks(100) {
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(UInt64Array::from(values.to_vec()))]);
        writer.write(&batch.unwrap()).unwrap();
    }
    writer.close().unwrap();
}

fn deltas() -> WriterPropertiesBuilder {
    WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_encoding(Encoding::DELTA_BINARY_PACKED)
        .set_compression(Compression::UNCOMPRESSED)
}

/// Some queries, and existing fingerprints up to three bits from one of them.
fn near_sets() -> (Vec<u64>, Vec<u64>) {
    let value = |i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    let queries: Vec<u64> = (1..=200).map(value).collect();
    let near = (0..5000u64).map(|i| match i % 3 {
        0 => value(i % 200 + 1) ^ (1 << (i % 64)) ^ (1 << (i * 5 % 64)),
        1 => value(i % 200 + 1),
        _ => value(i + 1000),
    });
    (queries, near.collect())
}

/// Pairs of row numbers, as text, in the order of a pairs dataset.
fn numbered_pairs(queries: &[u64], existing: &[u64], k: u32) -> Vec<Vec<String>> {
    let pairs = naive::cross_pairs(queries, existing, k).into_iter();
    reduce([pairs.map(|(q, e, d)| vec![q.to_string(), e.to_string(), d.to_string()]).collect()])
}

#[test]
fn fingerprints_without_ids_are_told_apart_by_row_numbers_in_every_encoding_and_order() {
    let dir = tempfile::tempdir().unwrap();
    let (queries, unsorted) = near_sets();
    let mut sorted = unsorted.clone();
    sorted.sort_unstable();
    let v2 = deltas().set_writer_version(WriterVersion::PARQUET_2_0);
    let plain = WriterProperties::builder().set_dictionary_enabled(false).set_compression(Compression::SNAPPY);
    let dictionary = WriterProperties::builder();
    write_column(&dir.path().join("queries.parquet"), &queries, false, WriterProperties::builder());
    for (name, nullable, values, properties) in [
        ("deltas", false, &sorted, deltas()),
        ("unsorted_deltas", false, &unsorted, deltas()),
        ("deltas_of_version_2", false, &sorted, v2),
        ("compressed_deltas", false, &sorted, deltas().set_compression(Compression::SNAPPY)),
        ("nullable_deltas", true, &sorted, deltas()),
        ("plain", false, &sorted, plain),
        ("dictionary", true, &unsorted, dictionary),
    ] {
        let folder = dir.path().join(name);
        // Row numbers go on from file to file.
        write_column(&folder.join("a.parquet"), &values[..1500], nullable, properties.clone());
        write_column(&folder.join("b.parquet"), &values[1500..], nullable, properties);
        let paths = [dir.path().join("queries.parquet"), folder];
        let arguments = ["--queries", paths[0].to_str().unwrap(), "--existing", paths[1].to_str().unwrap()];
        let (_out, _, pairs) = join(&[&arguments[..], &["--pairs", "all", "--max-distance", "3"]].concat());
        let got: Vec<Vec<String>> = pairs.iter().map(|p| p[..3].to_vec()).collect();
        assert_eq!(got, numbered_pairs(&queries, values, 3), "{name}");
    }
}

/// Fingerprints, and sketches as most rows have them.
type Sketched = Vec<(u64, Option<Sketch>)>;

/// Some queries, and existing documents of which each is near a query, or not quite, in its fingerprint and in each word.
fn sketched_sets(seed: u64) -> (Sketched, Sketched) {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    };
    let mut sketch = |has: bool| has.then(|| Sketch(std::array::from_fn(|_| next().to_le_bytes()[7])));
    let queries: Sketched = (0..150u64).map(|i| (i * i * seed.max(3), sketch(i % 13 > 0))).collect();
    let mut flipped = |value: u64| (0..next() % 7).fold(value, |value, _| value ^ 1 << (next() >> 58));
    let existing = (0..1200).map(|i| {
        let (fingerprint, sketch) = queries[i * 7 % 150];
        let near = sketch.filter(|_| i % 11 > 0).map(|sketch| {
            let words: [u64; 4] = std::array::from_fn(|word| match (i + word) % 3 {
                0 => sketch.word(word as u8),
                _ => flipped(sketch.word(word as u8)),
            });
            Sketch(words.map(u64::to_le_bytes).concat().try_into().unwrap())
        });
        let n_flips = if i % 2 == 0 { 1 } else { 3 };
        ((0..n_flips).fold(fingerprint, |value, _| flipped(value)), near)
    });
    let existing = existing.collect();
    (queries, existing)
}

fn write_sketched(path: &Path, rows: &Sketched) {
    let sketches = rows.iter().map(|(_, sketch)| sketch.map(|sketch| sketch.0));
    let sketches = FixedSizeBinaryArray::try_from_sparse_iter_with_size(sketches, 32).unwrap();
    let fingerprints = UInt64Array::from_iter_values(rows.iter().map(|(fingerprint, _)| *fingerprint));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    support::write_parquet(path, &[("fingerprint", Arc::new(fingerprints)), ("sketch", Arc::new(sketches))]);
}

#[test]
fn existing_documents_near_in_any_key_are_pairs_if_their_sketches_are_near_and_each_pair_comes_once() {
    for (seed, (k, n_words, word_k)) in (1..).zip([(3, 1, 2), (0, 2, 3), (2, 2, 0), (5, 4, 1), (1, 3, 4), (2, 0, 5)]) {
        let dir = tempfile::tempdir().unwrap();
        let (queries, existing) = sketched_sets(seed);
        write_sketched(&dir.path().join("queries.parquet"), &queries);
        let (first, second) = existing.split_at(700);
        write_sketched(&dir.path().join("existing/a.parquet"), &first.to_vec());
        write_sketched(&dir.path().join("existing/b.parquet"), &second.to_vec());
        let paths = [dir.path().join("queries.parquet"), dir.path().join("existing")];
        let kernels = Kernel::available();
        let kernel = kernels[seed as usize % kernels.len()].name().name();
        let limits = [k, n_words, word_k].map(|n: u32| n.to_string());
        let arguments = [
            "--max-distance",
            &limits[0],
            "--words",
            &limits[1],
            "--max-word-distance",
            &limits[2],
            "--kernel",
            kernel,
        ];
        let paths = ["--queries", paths[0].to_str().unwrap(), "--existing", paths[1].to_str().unwrap()];
        let verified = ["--pairs", "all", "--max-sketch-distance", "9"];
        let (_out, _, pairs) = join(&[&arguments[..], &paths, &verified].concat());
        let near = |a: u64, b: u64, k: u32| hamming_distance(a, b) <= k;
        let mut n_of_words = 0;
        let of_query = |(q, (f, sketch)): (usize, &(u64, Option<Sketch>))| {
            let mut found = Vec::new();
            for (e, (other, other_sketch)) in existing.iter().enumerate() {
                let Some((a, b)) = sketch.as_ref().zip(other_sketch.as_ref()) else { continue };
                let by_word = (0..n_words as u8).any(|word| near(a.word(word), b.word(word), word_k));
                if a.distance(b) <= 9 && (near(*f, *other, k) || by_word) {
                    n_of_words += usize::from(!near(*f, *other, k));
                    let distances = [hamming_distance(*f, *other), a.distance(b)].map(|n| n.to_string());
                    found.push([q.to_string(), e.to_string(), distances[0].clone(), distances[1].clone()]);
                }
            }
            found
        };
        let expected: Vec<[String; 4]> = queries.iter().enumerate().flat_map(of_query).collect();
        assert_eq!(n_of_words > 0, n_words > 0, "some pairs are far in their fingerprints");
        assert!(expected.len() > 20, "{}", expected.len());
        let got: Vec<[String; 4]> = pairs.iter().map(|p| std::array::from_fn(|i| p[i].clone())).collect();
        assert_eq!(got, reduce([expected]), "{limits:?}, {kernel}");
    }
}

#[test]
fn words_with_more_pairs_than_are_held_are_mapped_part_by_part_also_in_files_of_one_row() {
    let dir = tempfile::tempdir().unwrap();
    let spread = |i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ i << 29;
    let sketch = |first: u64, rest: u64| {
        let words = [first, spread(rest), spread(rest + 1), spread(rest + 2)];
        Some(Sketch(words.map(u64::to_le_bytes).concat().try_into().unwrap()))
    };
    // All existing words are one, and each query word differs from it in at most 10 bits: 900 times 600 are over 2^19 pairs.
    let queries: Sketched = (0..600).map(|i| (spread(i + 1), sketch(i, 3 * i + 7))).collect();
    let existing: Sketched = (0..900).map(|i| (!spread(i + 5000), sketch(0, 3 * i + 9001))).collect();
    write_sketched(&dir.path().join("queries.parquet"), &queries);
    for (number, rows) in [0..1, 1..2, 2..3, 3..900].into_iter().enumerate() {
        let folder = if number < 3 { "alone" } else { "many" };
        write_sketched(&dir.path().join(format!("existing/{folder}/{number}.parquet")), &existing[rows].to_vec());
    }
    // Files of one row are mapped one by one, and others in parts. A word counts once in each part.
    for (folder, rows, least_candidates) in [("existing/alone", 0..3, 3 * 600), ("existing/many", 3..900, 2 * 600)] {
        let paths = [dir.path().join("queries.parquet"), dir.path().join(folder)];
        let paths = ["--queries", paths[0].to_str().unwrap(), "--existing", paths[1].to_str().unwrap()];
        let limits =
            ["--max-distance", "3", "--words", "1", "--max-word-distance", "10", "--max-sketch-distance", "100"];
        let (_out, summary, pairs) = join(&[&paths[..], &limits, &["--pairs", "all"]].concat());
        let existing = &existing[rows];
        let near = |(q, (_, a)): (usize, &(u64, Option<Sketch>))| {
            let of_query =
                existing.iter().enumerate().filter(move |(_, (_, b))| a.unwrap().distance(&b.unwrap()) <= 100);
            of_query.map(move |(e, _)| [q.to_string(), e.to_string()]).collect::<Vec<_>>()
        };
        let expected: Vec<[String; 2]> = queries.iter().enumerate().flat_map(near).collect();
        assert!(expected.len() > 300, "{}", expected.len());
        let got: Vec<[String; 2]> = pairs.iter().map(|p| std::array::from_fn(|i| p[i].clone())).collect();
        assert_eq!(got, reduce([expected]), "{folder}");
        assert!(summary["map"]["n_candidates"].as_u64().unwrap() >= least_candidates, "{summary}");
    }
}

#[test]
fn a_dataset_of_which_only_some_files_have_ids_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    write_column(&dir.path().join("set/a.parquet"), &[1, 2], false, deltas());
    write_fingerprints(&dir.path().join("set/b.parquet"), &[("b".to_owned(), 3)]);
    let (set, out) = (dir.path().join("set"), dir.path().join("out"));
    let (set, out) = (set.to_str().unwrap(), out.to_str().unwrap());
    let done = nearprint(&["join", "--queries", set, "--self", "--max-distance", "3", "--output", out]);
    assert_eq!(done.code, 78, "{}", done.stderr);
    assert!(done.error().contains("only some files of the dataset have doc_id"), "{}", done.stderr);
}

#[test]
fn a_store_is_no_queries_and_the_message_says_where_it_may_stand() {
    let night = support::Night::new("");
    let dt = "2026-11-20";
    night.documents(dt, &[("a", &text(1, 80)), ("b", &text(2, 80))]).run(dt, &["--create-store"]).expect_success();
    let join = |more: &[&str]| {
        nearprint_in(night.path(), &[&["join", "--max-distance", "3", "--output", "out"], more].concat())
    };
    for more in [&["--queries", "store", "--self"][..], &["--queries", "store", "--existing", "store"]] {
        support::expect(&join(more), 64, &["--queries store", "is a store, and only --existing may be one"]);
    }
    // The stored documents have the ids of the queries, and so they are none of their pairs.
    let documents = format!("documents/dt={dt}");
    nearprint_in(night.path(), &["fingerprint", "--documents", &documents, "--output", "prints"]).expect_success();
    let joined = join(&["--queries", "prints", "--existing", "store", "--json"]).expect_success().json();
    assert_eq!((&joined["n_existing"], &joined["n_pairs"]), (&2.into(), &0.into()), "{joined}");
}

#[test]
fn a_join_says_in_its_help_that_one_id_is_one_document() {
    let help = nearprint(&["join", "--help"]).expect_success().stdout;
    assert!(help.contains("A query and an existing row with the same id are one document"), "{help}");
}

#[test]
fn a_repeated_id_of_the_queries_is_to_be_made_unique_as_no_rule_can_be_given() {
    let dir = tempfile::tempdir().unwrap();
    write_fingerprints(&dir.path().join("set/a.parquet"), &[("a".to_owned(), 1), ("a".to_owned(), 2)]);
    let args = ["join", "--queries", "set", "--self", "--max-distance", "3", "--output", "out"];
    let done = nearprint_in(dir.path(), &args);
    assert_eq!(done.code, 65, "{}", done.stderr);
    assert!(done.error().contains("1 row repeats a document id: 'a' in "), "{}", done.stderr);
    assert!(done.error().trim_end().ends_with(": make ids unique"), "{}", done.stderr);
}

#[test]
fn ids_too_long_to_stand_in_every_pair_are_refused_by_file_and_column() {
    let dir = tempfile::tempdir().unwrap();
    let [queries, existing] = ["queries", "existing"].map(|name| dir.path().join(name));
    let rows: Vec<(String, u64)> = (0..8200).map(|i| (format!("{i:04}"), 1)).collect();
    write_fingerprints(&queries.join("a.parquet"), &rows);
    write_fingerprints(&existing.join("a.parquet"), &[("x".repeat(300_000), 1)]);
    let [queries, existing] = [&queries, &existing].map(|folder| folder.to_str().unwrap());
    let output = dir.path().join("out");
    let sides = [(queries, existing), (existing, queries)];
    for (queries, existing) in sides {
        let output = output.to_str().unwrap();
        let args = [
            "join",
            "--queries",
            queries,
            "--existing",
            existing,
            "--pairs",
            "all",
            "--max-distance",
            "0",
            "--output",
            output,
        ];
        let refused = nearprint(&args);
        assert_eq!(refused.code, 65, "{}", refused.stderr);
        for part in ["existing/a.parquet", "column 'doc_id'", "of 300000 bytes"] {
            assert!(refused.error().contains(part), "{part:?} is not in {}", refused.error());
        }
    }
}

#[test]
fn damaged_pages_of_fingerprints_are_an_error_or_other_values_but_never_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let (queries, mut existing) = near_sets();
    existing.sort_unstable();
    let (whole, damaged) = (dir.path().join("whole.parquet"), dir.path().join("damaged.parquet"));
    write_column(&dir.path().join("queries.parquet"), &queries, false, deltas());
    write_column(&whole, &existing[..600], false, deltas());
    let bytes = std::fs::read(&whole).unwrap();
    let paths = [dir.path().join("queries.parquet"), damaged.clone()];
    let arguments = ["--queries", paths[0].to_str().unwrap(), "--existing", paths[1].to_str().unwrap()];
    let mut failed = 0;
    for at in (4..120).chain((120..bytes.len()).step_by(bytes.len() / 40)) {
        let mut bytes = bytes.clone();
        bytes[at] ^= if at % 2 == 0 { 0x81 } else { 0x7f };
        std::fs::write(&damaged, bytes).unwrap();
        let out = dir.path().join(format!("out{at}"));
        let more = ["--max-distance", "3", "--output", out.to_str().unwrap()];
        let done = nearprint(&[&["join"], &arguments[..], &more].concat());
        assert!([0, 65, 78].contains(&done.code), "byte {at}: {} {}", done.code, done.stderr);
        failed += u32::from(done.code != 0);
    }
    assert!(failed > 10, "only {failed} were noticed");
}

#[test]
fn a_distance_that_fingerprints_cannot_have_is_a_usage_error_of_every_command_with_its_flag() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("d.jsonl"), "{\"id\": \"a\", \"text\": \"one\"}\n").unwrap();
    std::fs::write(dir.path().join("t.tsv"), "id_a\tid_b\tlabel\n").unwrap();
    for line in [
        "join --queries set --self --output out --bits 32 --max-distance 32",
        "join --queries set --self --output out --max-distance 64",
        "join --queries set --self --output out --max-distance 3 --max-sketch-distance 256",
        "plan --existing-rows 9 --query-rows 9 --bits 32 --max-distance 32",
        "evaluate --documents d.jsonl --truth t.tsv --max-distance 64",
        "evaluate --documents d.jsonl --truth t.tsv --max-distance 32 --set bits=32",
        "tune --documents d.jsonl --sheet s.csv --max-distance 32 --set bits=32",
        "query --store store --text one --max-distance 32 --set bits=32",
        "query --store store --text one --max-sketch-distance 256",
        "serve --store store --max-distance 32 --set bits=32",
    ] {
        let done = nearprint_in(dir.path(), &line.split(' ').collect::<Vec<_>>());
        assert_eq!(done.code, 64, "{line}: {}", done.stderr);
        let said = ["--max-distance 32 is not below the fingerprint's 32 bits", "is not in 0..="];
        assert!(said.iter().any(|said| done.stderr.contains(said)), "{line}: {}", done.stderr);
    }
}

#[test]
fn a_kernel_that_this_processor_lacks_is_a_usage_error() {
    let dir = tempfile::tempdir().unwrap();
    write_column(&dir.path().join("a.parquet"), &[1, 2], false, deltas());
    let (set, out) = (dir.path().join("a.parquet"), dir.path().join("out"));
    let foreign = if cfg!(target_arch = "x86_64") { "neon" } else { "avx2" };
    let arguments = ["join", "--queries", set.to_str().unwrap(), "--self", "--max-distance", "3"];
    let done = nearprint(&[&arguments[..], &["--output", out.to_str().unwrap(), "--kernel", foreign]].concat());
    assert_eq!(done.code, 64, "{}", done.stderr);
    assert!(done.error().contains(&format!("cannot run the kernel '{foreign}'")), "{}", done.stderr);
}

#[test]
fn plan_says_how_a_join_would_be_done_before_it_is() {
    let plan = |arguments: &str| {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        nearprint(&[&["plan", "--json"], &arguments[..]].concat()).expect_success().json()
    };
    let papers = plan("--existing-rows 2^33 --query-rows 1048576 --max-distance 3");
    assert_eq!(papers["tables"].as_array().unwrap().len(), 1, "{papers}");
    assert!(papers["strategy"].as_str().unwrap().starts_with("prefix walk"), "{papers}");
    // 2^53 pairs, of which Σ C(64, i) for i up to 3, 43,745, in 2^64 are near by chance.
    assert!((papers["chance_pairs"].as_f64().unwrap() - 43_745.0 / 2048.0).abs() < 1e-6, "{papers}");
    // The sketches of these few cost a page each, and those of distance 12 the column, 32 bytes a row.
    let bytes = |plan: &serde_json::Value| plan["sketches"]["bytes"].as_f64().unwrap();
    assert!(papers["sketches"]["pages"].as_f64().unwrap() < 22.0 && bytes(&papers) < 22.0 * 120_000.0, "{papers}");
    let crowded = plan("--existing-rows 2^33 --query-rows 2^20 --max-distance 12");
    let column = 32.0 * f64::from(2).powi(33);
    assert!((column..1.05 * column).contains(&bytes(&crowded)), "{crowded}");
    let wider = plan("--existing-rows 2^26 --query-rows 2^20 --max-distance 6");
    assert!(wider["tables"].as_array().unwrap().len() > 1, "{wider}");
    let allowed: u64 =
        wider["tables"].as_array().unwrap().iter().map(|t| t["max_prefix_distance"].as_u64().unwrap() + 1).sum();
    assert!(allowed > 6, "{wider}");
    // Times are compared as the model has them; each plan measures this machine anew.
    let seconds_of = |plan: &serde_json::Value| {
        plan["estimated_map_seconds"].as_f64().unwrap() / plan["measured_over_model"].as_f64().unwrap()
    };
    let large = "--existing-rows 2^30 --query-rows 10000000 --max-distance 3 --memory-limit";
    let (whole, parts) = (plan(&format!("{large} 4GiB")), plan(&format!("{large} 300MiB")));
    assert_eq!(whole["n_parts"], 1, "{whole}");
    assert!(parts["strategy"].as_str().unwrap().ends_with("slices, one after another"), "{parts}");
    assert!(parts["n_parts"].as_u64().unwrap() > 1 && parts["memory_bytes"].as_u64() < Some(300 << 20), "{parts}");
    assert!(seconds_of(&parts) > seconds_of(&whole), "{parts}");
    // Less memory is never faster, but for the quarter by which a join in one part may be slower than one in several, and
    // 134 million fingerprints with each other need no more than 3 GiB.
    let self_join = "--existing-rows 0 --query-rows 134000000 --self --max-distance 3 --memory-limit";
    let seconds = |limit: &str| seconds_of(&plan(&format!("{self_join} {limit}")));
    let estimates = ["3GiB", "4GiB", "5GiB", "6GiB", "8GiB", "16GiB", "32GiB"].map(seconds);
    assert!(estimates.is_sorted_by(|less, more| 1.25 * less >= *more), "{estimates:?}");
    assert_eq!(nearprint(&["plan", "--existing-rows", "many", "--query-rows", "1", "--max-distance", "3"]).code, 64);
}
