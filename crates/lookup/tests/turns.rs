//! Queries under way share a bounded memory: each has its turn, and its answer.

use std::ops::ControlFlow;
use std::time::Duration;

use futures::StreamExt;
use nearprint_lookup::{Answer, BadQuestion, LookupOptions, Query, Turns};
use tokio::time::{sleep, timeout};

use crate::support::{Document, open, store};

const COPY: Query = Query::Fingerprint { fingerprint: 7, sketch: None };
const OTHER: Query = Query::Fingerprint { fingerprint: u64::MAX, sketch: None };

/// A time that only a deadlock exceeds.
const LONG: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread")]
async fn streams_whose_answers_wait_for_each_other_all_end_however_little_memory_there_is() {
    let copies: Vec<Document> = (0..120).map(|i| (7 ^ (1 << (i % 40)), 0)).collect();
    for (n_indexed, query_bytes) in [(0, 0), (0, 1 << 20), (1, 0), (1, 1 << 20)] {
        let (_place, folder) = store(&[copies.clone(), copies.clone()], n_indexed).await;
        let whole = open(&folder, |own| own).await.answer(&COPY).await.unwrap();
        let little = |own| LookupOptions { query_bytes, memory_bytes: 0, max_matches: 50, ..own };
        let lookup = open(&folder, little).await;
        let stream = |number: usize| {
            let lookup = lookup.clone();
            async move {
                let mut turns = Turns::new(if number.is_multiple_of(2) { 4096 } else { usize::MAX });
                let answers = (0..12).map(|line| {
                    let (lookup, turn) = (lookup.clone(), turns.another());
                    tokio::spawn(async move {
                        let query = if line % 4 == 0 { OTHER } else { COPY };
                        lookup.answer_in_turn(&query, turn).await
                    })
                });
                let mut answers = futures::stream::iter(answers).buffered(8);
                let mut all: Vec<Answer> = Vec::new();
                while let Some(answer) = answers.next().await {
                    let (answer, _held) = answer.unwrap().unwrap();
                    // A client that takes its time.
                    sleep(Duration::from_millis(2)).await;
                    all.push(answer);
                }
                all
            }
        };
        let all = timeout(LONG, futures::future::join_all((0..8).map(stream))).await.expect("no deadlock");
        for answer in all.iter().flat_map(|of_stream| of_stream.iter().skip(2).step_by(4)) {
            assert_eq!((answer.n_matches, &answer.matches[..]), (whole.n_matches, &whole.matches[..50]));
        }
    }
}

#[tokio::test]
async fn an_answer_that_lists_more_than_there_is_memory_for_is_an_error_and_a_shorter_one_counts_all() {
    let (_place, folder) = store(&[vec![(7, 0); 5000]], 0).await;
    let small = |own| LookupOptions { max_answer_bytes: 100_000, ..own };
    let lookup = open(&folder, small).await;
    let refused = lookup.answer(&COPY).await.unwrap_err();
    assert_eq!(refused.matter(), Some(&BadQuestion::TooLarge), "{refused}");
    assert!(refused.to_string().contains("100000 bytes"), "{refused}");
    let mut n_refused = 0;
    let together = lookup.answers(vec![OTHER, COPY], |answer| {
        n_refused += u32::from(answer.is_err());
        ControlFlow::<()>::Continue(())
    });
    assert_eq!(together.await.unwrap_err().matter(), Some(&BadQuestion::TooLarge));
    assert_eq!(n_refused, 0);
    let lookup = open(&folder, |own| LookupOptions { max_matches: 100, ..small(own) }).await;
    let answer = lookup.answer(&COPY).await.unwrap();
    assert_eq!((answer.n_matches, answer.matches.len()), (5000, 100));
}
