//! The bounds of what an answer reads and holds, and what it refuses to read.

use std::time::Duration;

use nearprint_fault::ErrorKind;
use nearprint_lookup::{LookupOptions, Query, SharedLookup};
use nearprint_profile::Outcome;
use nearprint_storage::{Folder, Storage};
use nearprint_store::maintain::drop_night;
use nearprint_store::{ChangeSet, Store};
use tempfile::TempDir;

use crate::support::{Document, open, profile, store, write};

const COPY: Query = Query::Fingerprint { fingerprint: 7, sketch: None };

async fn drop_one(folder: &Folder, dt: &str) {
    let store = Store::open(folder).await.unwrap();
    let changes = ChangeSet { number: store.n_change_sets() + 1, outputs: Vec::new(), ..ChangeSet::default() };
    assert!(drop_night(&store, dt, changes).await.unwrap());
}

#[tokio::test]
async fn matches_that_have_no_place_in_the_list_are_counted_and_their_documents_are_not_read() {
    let copies: Vec<Document> = vec![(7, 0); 20_000];
    for n_indexed in [0, 2] {
        let (_place, folder) = store(&[copies.clone(), copies.clone()], n_indexed).await;
        let mut bytes_read = Vec::new();
        for max_matches in [0, 10] {
            let lookup = open(&folder, |own| LookupOptions { max_matches, max_near_rows: 20_000, ..own }).await;
            let answer = lookup.answer(&COPY).await.unwrap();
            let n_listed = if max_matches == 0 { 40_000 } else { max_matches };
            assert_eq!((answer.n_matches, answer.matches.len()), (40_000, n_listed));
            assert!(answer.matches.is_sorted_by_key(|found| (found.dt.clone(), found.id.clone())));
            bytes_read.push(answer.read.unwrap().bytes_read);
        }
        assert!(10 * bytes_read[1] < 6 * bytes_read[0], "the second night is as large as the first: {bytes_read:?}");
    }
}

#[tokio::test]
async fn memory_that_a_night_gives_back_is_used_by_the_nights_that_found_none() {
    let night = |from: u64| (from..from + 1000).map(|i| (i << 20, 0)).collect::<Vec<Document>>();
    let (_place, folder) = store(&[night(1), night(5000)], 0).await;
    let mut lookup = open(&folder, |own| LookupOptions { memory_bytes: 8000, ..own.within_distance(Some(0)) }).await;
    for when in ["first", "again"] {
        let read = lookup.answer(&COPY).await.unwrap().read.unwrap();
        assert!(read.bytes_read > 0, "{when}: one of the two nights has no room");
    }
    drop_one(&folder, "2026-11-01").await;
    assert!(lookup.refresh().await.unwrap());
    lookup.answer(&COPY).await.unwrap();
    assert_eq!(lookup.answer(&COPY).await.unwrap().read.unwrap().bytes_read, 0, "the night that is left has room");
}

#[tokio::test]
async fn a_short_text_without_a_hash_is_an_error_that_names_its_file_and_row() {
    let short = "一二三";
    let Outcome::TooShort { text_hash } = profile().outcome(short) else { panic!("it has a fingerprint") };
    let place = TempDir::new().unwrap();
    let folder = Storage::default().folder(place.path().join("store").to_str().unwrap()).unwrap();
    let hashes = [Some(text_hash), None, Some([0xff; 16])];
    write(&folder, place.path(), &[vec![(7, 0)]], &hashes, 0, profile().digest()).await;
    let lookup = open(&folder, |own| own).await;
    let refused = lookup.answer(&Query::Text(short.to_owned())).await.unwrap_err().to_string();
    assert!(refused.contains("short/part-00000.parquet: row 1 has no `text_hash`"), "{refused}");
}

#[tokio::test]
async fn a_shared_lookup_keeps_the_newest_commit_whichever_of_two_refreshes_ends_last() {
    let (_place, folder) = store(&[vec![(7, 0)], vec![(7, 1)]], 0).await;
    let first = open(&folder, |own| own).await;
    let shared = SharedLookup::new(first.clone());
    let mut older = first.clone();
    drop_one(&folder, "2026-11-01").await;
    assert!(older.refresh().await.unwrap());
    drop_one(&folder, "2026-11-02").await;
    assert!(shared.refresh().await.unwrap());
    shared.keep(older);
    assert_eq!((shared.get().state().n_nights, shared.get().state().commit), (0, first.state().commit + 2));
    assert!(!shared.refresh().await.unwrap());
}

#[tokio::test]
async fn a_store_that_is_gone_or_was_put_back_is_an_error_and_no_store_without_news() {
    let (place, folder) = store(&[vec![(7, 0)], vec![(7, 1)]], 0).await;
    let mut lookup = open(&folder, |own| own).await;
    assert!(!lookup.refresh().await.unwrap());
    let (here, away) = (place.path().join("store"), place.path().join("away"));
    std::fs::rename(&here, &away).unwrap();
    assert_eq!(lookup.refresh().await.unwrap_err().kind(), ErrorKind::InputMissing);
    std::fs::create_dir(&here).unwrap();
    assert_eq!(lookup.refresh().await.unwrap_err().kind(), ErrorKind::InputMissing);
    std::fs::remove_dir(&here).unwrap();
    std::fs::rename(&away, &here).unwrap();
    assert!(!lookup.refresh().await.unwrap());
    let newest = format!("{:08}.json", lookup.state().commit);
    std::fs::remove_file(here.join("_commits").join(newest)).unwrap();
    let refused = lookup.refresh().await.unwrap_err();
    assert!(refused.kind() == ErrorKind::BadData && refused.to_string().contains("is gone"), "{refused}");
    assert_eq!(lookup.state().n_nights, 2, "the former state answers");
}

#[tokio::test]
async fn a_thread_that_serves_others_goes_on_while_a_long_text_is_fingerprinted() {
    let (_place, folder) = store(&[vec![(7, 0)]], 0).await;
    let lookup = open(&folder, |own| own).await;
    let words: Vec<String> = (0..200_000).map(|i| format!("word{i}")).collect();
    let query = Query::Text(words.join(" "));
    let (mut n_ticks, mut ticks) = (0, tokio::time::interval(Duration::from_millis(1)));
    let mut answer = std::pin::pin!(lookup.answer(&query));
    loop {
        tokio::select! {
            biased;
            answer = &mut answer => break assert!(answer.unwrap().fingerprint.is_some()),
            _ = ticks.tick() => n_ticks += 1,
        }
    }
    assert!(n_ticks > 20, "{n_ticks}");
}
