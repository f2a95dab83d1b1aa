//! Many queries at once have the answers that each of them has alone.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, FixedSizeBinaryArray, RecordBatch, StringArray, UInt32Array, UInt64Array, new_null_array,
};
use nearprint_dataset::schema::{DOC_ID, FINGERPRINT, N_FEATURES, RUN, SKETCH};
use nearprint_dataset::upload;
use nearprint_fingerprint::Sketch;
use nearprint_lookup::{Answer, Lookup, LookupError, LookupOptions, LookupProfile, Query, WhenJoined};
use nearprint_profile::{ALGORITHM_VERSION, HtmlText, ProfileConfig, by_name};
use nearprint_storage::{Folder, Progress, Storage};
use nearprint_store::{IndexRequest, MadeBy, Night, RunWriter, Store, Writers, id_hash};
use nearprint_tokenize::Resources;
use proptest::prelude::*;
use tempfile::TempDir;

/// A document: its fingerprint, and the number that makes its sketch.
type Document = (u64, u8);

/// A sketch in which `n` has some bits.
fn sketch(n: u8) -> [u8; 32] {
    let mut sketch = [0; 32];
    sketch[0] = n;
    sketch
}

fn profile() -> Arc<LookupProfile> {
    let config = by_name("default").unwrap();
    Arc::new(LookupProfile::try_new(config, &Resources::default(), &HtmlText::Main).unwrap())
}

/// Writes nights of documents. Every third one has no sketch.
async fn write(folder: &Folder, scratch: &Path, nights: &[Vec<Document>], n_indexed: usize, digest: &str) {
    let made_by = MadeBy { config_digest: digest.to_owned(), algorithm: ALGORITHM_VERSION };
    let columns = Arc::clone(&RUN);
    for (number, documents) in nights.iter().enumerate() {
        let mut documents = documents.clone();
        documents.sort_unstable();
        let ids: Vec<String> = (0..documents.len()).map(|i| format!("{number}-{i}")).collect();
        let mut sketches: Vec<Option<[u8; 32]>> = documents.iter().map(|(_, n)| Some(sketch(*n))).collect();
        sketches.iter_mut().step_by(3).for_each(|sketch| *sketch = None);
        let of = |name: &str| -> ArrayRef {
            match name {
                FINGERPRINT => Arc::new(documents.iter().map(|(value, _)| Some(*value)).collect::<UInt64Array>()),
                DOC_ID => Arc::new(ids.iter().map(Some).collect::<StringArray>()),
                SKETCH => Arc::new(
                    FixedSizeBinaryArray::try_from_sparse_iter_with_size(sketches.iter().copied(), 32).unwrap(),
                ),
                N_FEATURES => Arc::new(UInt32Array::from(vec![100; documents.len()])),
                _ => new_null_array(columns.field_with_name(name).unwrap().data_type(), documents.len()),
            }
        };
        let arrays = columns.fields().iter().map(|field| of(field.name())).collect();
        let dt = format!("2026-11-{:02}", number + 1);
        let staged = scratch.join(&dt);
        let mut writer = RunWriter::try_new(&staged, &made_by.config_digest, &columns).unwrap();
        writer.fingerprints(RecordBatch::try_new(Arc::clone(&columns), arrays).unwrap()).unwrap();
        let mut hashes: Vec<(u64, u32)> = ids.iter().map(|id| id_hash(id)).zip(0..).collect();
        hashes.sort_unstable();
        let run = writer.finish(hashes.into_iter(), &[]).unwrap();
        let store = Store::open(folder).await.unwrap();
        upload(&store.run_folder(&run.record.digest), &run.files, "publish", &Progress::default()).await.unwrap();
        let night = Night {
            joined: store.joined_before(&dt),
            joined_as: None,
            run: run.record,
            output: format!("results/_nearprint/dt={dt}"),
            request: dt.clone(),
            gen_digest: dt.clone(),
            manifest_sha256: String::new(),
            dt,
        };
        assert!(store.commit(&night, None, &made_by).await.unwrap());
        if number + 1 == n_indexed {
            let request = IndexRequest { store: folder.url().to_owned(), writers: Writers::One };
            Store::open(folder).await.unwrap().index(&request, 1, scratch, &Progress::default()).await.unwrap();
        }
    }
}

/// A store of some nights, the first of which have an index.
async fn store(nights: &[Vec<Document>], n_indexed: usize) -> (TempDir, Folder) {
    let place = TempDir::new().unwrap();
    let folder = Storage::default().folder(place.path().join("store").to_str().unwrap()).unwrap();
    write(&folder, place.path(), nights, n_indexed, profile().digest()).await;
    (place, folder)
}

async fn open(folder: &Folder, with: impl FnOnce(LookupOptions) -> LookupOptions) -> Lookup {
    let profile = profile();
    let options = with(LookupOptions::of(profile.config()));
    Lookup::open(folder, profile, options).await.unwrap()
}

fn asked(documents: &[Document]) -> Vec<Query> {
    let query = |(i, &(fingerprint, n)): (usize, &Document)| Query::Fingerprint {
        fingerprint,
        sketch: (i % 4 != 0).then(|| Sketch(sketch(n))),
    };
    documents.iter().enumerate().map(query).collect()
}

async fn all(lookup: &Lookup, queries: &[Query]) -> Vec<Result<Answer, LookupError>> {
    let mut answers = Vec::new();
    let done = lookup.answers::<()>(queries.to_vec(), |answer| {
        answers.push(answer);
        ControlFlow::Continue(())
    });
    assert_eq!(done.await.unwrap(), ControlFlow::Continue(()));
    answers
}

/// Compares the answers to all queries together with those to each, and returns the number of matches.
async fn expect_same(lookup: &Lookup, queries: &[Query]) -> u64 {
    let together = all(lookup, queries).await;
    assert_eq!(together.len(), queries.len());
    let mut n_matches = 0;
    for (query, together) in queries.iter().zip(together) {
        let (alone, together) = (lookup.answer(query).await.unwrap(), together.unwrap());
        assert_eq!(
            (&alone.fingerprint, alone.n_matches, &alone.matches),
            (&together.fingerprint, together.n_matches, &together.matches),
            "{query:?}"
        );
        assert_eq!((alone.read.is_some(), together.read), (true, None));
        n_matches += together.n_matches;
    }
    n_matches
}

/// Fingerprints around a few centres, with equal ones among them.
fn documents() -> impl Strategy<Value = Vec<Document>> {
    let value = (0..4u64, proptest::collection::vec(0..64u32, 0..12), any::<u8>());
    let value = value.prop_map(|(centre, bits, n)| {
        let centre = centre.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (bits.iter().fold(centre, |value, bit| value ^ (1 << bit)), n & 0x11)
    });
    proptest::collection::vec(value, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]
    #[test]
    fn queries_that_are_joined_have_the_answers_that_each_has_alone(
        nights in proptest::collection::vec(documents(), 1..4),
        queries in documents(),
        n_indexed in 0..3usize,
        max_near_rows in prop_oneof![Just(1usize), Just(40), Just(1 << 21)],
        memory_bytes in prop_oneof![Just(0usize), Just(1 << 20)],
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (_place, folder) = store(&nights, n_indexed).await;
            for joined in [WhenJoined::Always, WhenJoined::Never, WhenJoined::IfFaster] {
                let with = |own| LookupOptions { joined, max_near_rows, memory_bytes, ..own };
                expect_same(&open(&folder, with).await, &asked(&queries)).await;
            }
        });
    }
}

#[tokio::test]
async fn texts_without_a_fingerprint_have_their_place_among_the_answers() {
    let nights = vec![(0..50).map(|i| (i, 0)).collect::<Vec<Document>>()];
    let (_place, folder) = store(&nights, 1).await;
    for joined in [WhenJoined::Always, WhenJoined::Never] {
        let lookup = open(&folder, |own| LookupOptions { joined, max_distance: 0, ..own }).await;
        let mut queries = asked(&nights[0]);
        queries.insert(7, Query::Text(String::new()));
        queries.insert(9, Query::Text("一二三".to_owned()));
        assert!(expect_same(&lookup, &queries).await > 30);
        let answers = all(&lookup, &queries).await;
        assert_eq!(answers[7].as_ref().unwrap().reason, Some("empty"));
        assert_eq!(answers[9].as_ref().unwrap().reason, Some("too_short"));
        assert!(all(&lookup, &[]).await.is_empty());
        let mut n_given = 0;
        let broken = lookup.answers(queries, |_| {
            n_given += 1;
            if n_given == 5 { ControlFlow::Break("enough") } else { ControlFlow::Continue(()) }
        });
        assert_eq!((broken.await.unwrap(), n_given), (ControlFlow::Break("enough"), 5));
    }
}

#[tokio::test]
async fn a_query_that_is_refused_leaves_the_others_their_answers() {
    let config = ProfileConfig { bits: 32, ..by_name("default").unwrap() };
    let profile = Arc::new(LookupProfile::try_new(config, &Resources::default(), &HtmlText::Main).unwrap());
    let nights = vec![(0..50).map(|i| (i, 0)).collect::<Vec<Document>>()];
    let place = TempDir::new().unwrap();
    let folder = Storage::default().folder(place.path().join("store").to_str().unwrap()).unwrap();
    write(&folder, place.path(), &nights, 1, profile.digest()).await;
    let own = LookupOptions::of(profile.config());
    let options = LookupOptions { joined: WhenJoined::Always, max_distance: 0, ..own };
    let lookup = Lookup::open(&folder, profile, options).await.unwrap();
    let mut queries = asked(&nights[0]);
    let known = all(&lookup, &queries).await;
    queries.insert(9, Query::Fingerprint { fingerprint: 1 << 40, sketch: None });
    let mut answers = all(&lookup, &queries).await;
    assert!(matches!(answers.remove(9), Err(LookupError::Query { .. })));
    let ids = |answers: &[Result<Answer, LookupError>]| -> Vec<Vec<String>> {
        let of = |answer: &Answer| answer.matches.iter().map(|found| found.id.clone()).collect();
        answers.iter().map(|answer| of(answer.as_ref().unwrap())).collect()
    };
    assert_eq!(ids(&answers), ids(&known));
    assert!(ids(&known).concat().len() > 30);
}
