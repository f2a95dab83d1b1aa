//! Many queries at once have the answers that each of them has alone.

use std::ops::ControlFlow;
use std::sync::Arc;

use nearprint_fault::Fault;
use nearprint_fingerprint::Sketch;
use nearprint_lookup::{Answer, BadQuestion, Lookup, LookupOptions, LookupProfile, Query, WhenJoined};
use nearprint_profile::{HtmlText, ProfileConfig, by_name};
use nearprint_storage::Storage;
use nearprint_tokenize::Resources;
use proptest::prelude::*;
use tempfile::TempDir;

use crate::support::{Document, open, sketch, store, write};

fn asked(documents: &[Document]) -> Vec<Query> {
    let query = |(i, &(fingerprint, n)): (usize, &Document)| Query::Fingerprint {
        fingerprint,
        sketch: (i % 4 != 0).then(|| Sketch(sketch(n))),
    };
    documents.iter().enumerate().map(query).collect()
}

async fn all(lookup: &Lookup, queries: &[Query]) -> Vec<Result<Answer, Fault>> {
    let mut answers = Vec::new();
    let done = lookup.answers::<()>(queries.to_vec(), |answer| {
        answers.push(answer);
        ControlFlow::Continue(())
    });
    assert_eq!(done.await.unwrap(), ControlFlow::Continue(()));
    answers
}

/// The matches of a comparison with every document, by the keys of the default profile: distances and ids.
fn expected(nights: &[Vec<Document>], (fingerprint, n): Document, has_sketch: bool) -> Vec<(u32, String)> {
    let (asked, mut found) = (Sketch(sketch(n)), Vec::new());
    for (night, documents) in nights.iter().enumerate() {
        let mut documents = documents.clone();
        documents.sort_unstable();
        for (i, (other, n)) in documents.iter().enumerate() {
            let (distance, of) = ((fingerprint ^ other).count_ones(), Sketch(sketch(*n)));
            let is_word_near = |word: u8| (asked.word(word) ^ of.word(word)).count_ones() <= 8;
            let is_match = match (has_sketch, i % 3 != 0) {
                (false, _) => distance <= 8,
                (true, false) => false,
                (true, true) => (distance <= 8 || is_word_near(0) || is_word_near(1)) && asked.distance(&of) <= 36,
            };
            if is_match {
                found.push((distance, format!("{night}-{i}")));
            }
        }
    }
    found.sort();
    found
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
        (bits.iter().fold(centre, |value, bit| value ^ (1 << bit)), n & 0x3f)
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
        max_matching_rows in prop_oneof![Just(0usize), Just(30), Just(1 << 21)],
        memory_bytes in prop_oneof![Just(0usize), Just(1 << 20)],
        max_matches in 0..5usize,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (_place, folder) = store(&nights, n_indexed).await;
            let whole = open(&folder, |own| own).await;
            let some = open(&folder, |own| LookupOptions { max_near_rows, memory_bytes, max_matches, ..own }).await;
            for query in asked(&queries) {
                let (whole, some) = (whole.answer(&query).await.unwrap(), some.answer(&query).await.unwrap());
                let n_listed = if max_matches == 0 { whole.matches.len() } else { max_matches.min(whole.matches.len()) };
                assert_eq!((whole.n_matches, &whole.matches[..n_listed]), (some.n_matches, &some.matches[..]));
            }
            for (query, asked) in queries.iter().enumerate() {
                let answer = whole.answer(&self::asked(&queries)[query]).await.unwrap();
                let mut found: Vec<(u32, String)> = answer.matches.iter().map(|m| (m.distance, m.id.clone())).collect();
                found.sort();
                assert_eq!(found, expected(&nights, *asked, query % 4 != 0), "{asked:?}");
            }
            for joined in [WhenJoined::Always, WhenJoined::Never, WhenJoined::IfFaster] {
                let with = |own| LookupOptions {
                    joined, max_near_rows, max_matching_rows, memory_bytes, max_matches, ..own
                };
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
        let lookup = open(&folder, |own| LookupOptions { joined, ..own.within_distance(Some(0)) }).await;
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
    write(&folder, place.path(), &nights, &[], 1, profile.digest()).await;
    let own = LookupOptions::of(profile.config());
    let options = LookupOptions { joined: WhenJoined::Always, ..own.within_distance(Some(0)) };
    let lookup = Lookup::open(&folder, profile, options).await.unwrap();
    let mut queries = asked(&nights[0]);
    let known = all(&lookup, &queries).await;
    queries.insert(9, Query::Fingerprint { fingerprint: 1 << 40, sketch: None });
    let mut answers = all(&lookup, &queries).await;
    assert_eq!(answers.remove(9).unwrap_err().matter(), Some(&BadQuestion::Query));
    let ids = |answers: &[Result<Answer, Fault>]| -> Vec<Vec<String>> {
        let of = |answer: &Answer| answer.matches.iter().map(|found| found.id.clone()).collect();
        answers.iter().map(|answer| of(answer.as_ref().unwrap())).collect()
    };
    assert_eq!(ids(&answers), ids(&known));
    assert!(ids(&known).concat().len() > 30);
}
