//! Each task in a process of its own, from its description alone: the nights are the same, byte for byte.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::BinaryArray;
use futures::{StreamExt, TryStreamExt};
use nearprint_documents::{DocumentColumns, InputPolicy};
use nearprint_fault::{ErrorKind, Fault};
use nearprint_night::{Breakers, RunRequest, run, run_on_engine, store_compact};
use nearprint_pipeline::{ClusterRule, PairsMode, Resources};
use nearprint_storage::{Progress, Storage};
use nearprint_store::maintain::CompactRequest;
use nearprint_tasks::{
    Engine, FingerprintContext, FingerprintSpec, FingerprintTask, Form, KeepKey, MapSpec, MapTask, Messages, SentWords,
    WantedTexts, Weighed, Workers, fingerprint_task, messages_of,
};
use serde::{Deserialize, Serialize};

/// The message to a process.
#[derive(Serialize, Deserialize)]
enum Description {
    Fingerprint(Box<FingerprintSpec>, u32, FingerprintTask),
    Map(PathBuf, u32, MapTask),
}

/// Where a process finds its description, and where its batches go.
const DESCRIPTION: &str = "NEARPRINT_TEST_TASK";

/// The other side of [`Processes`]: without a description it is no test.
#[test]
fn one_task() {
    let Ok(description) = std::env::var(DESCRIPTION) else { return };
    let json = std::fs::read(&description).unwrap();
    let messages = on_threads(async move {
        let storage = Storage::default();
        let messages = match serde_json::from_slice(&json).unwrap() {
            Description::Fingerprint(spec, number, task) => {
                let context = Arc::new(FingerprintContext::try_new(&spec, &storage).unwrap());
                messages_of(number, fingerprint_task(&context, &task), Form::Batches)
            }
            Description::Map(folder, number, task) => {
                let join = Arc::new(MapSpec::load(&storage, &folder, 1).await.unwrap());
                messages_of(number, join.run(task), Form::Keys(join.pair_schema()))
            }
        };
        messages.try_collect::<Vec<BinaryArray>>().await.unwrap()
    });
    let messages: Vec<&[u8]> = messages.iter().flat_map(|array| array.iter().flatten()).collect();
    std::fs::write(format!("{description}.messages"), serde_json::to_vec(&messages).unwrap()).unwrap();
}

fn on_threads<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(work)
}

/// Runs each task in a process of its own, and some of them twice.
struct Processes {
    folder: PathBuf,
    memory_bytes: usize,
    n: AtomicUsize,
    n_class_pairs: AtomicUsize,
    /// The number of stages in which texts were read for the judge.
    n_read_again: AtomicUsize,
    /// Finds none of these texts.
    loses_texts: bool,
}

impl Processes {
    fn new(folder: PathBuf, memory_bytes: usize) -> Arc<Self> {
        Arc::new(Self::that_lose(false, folder, memory_bytes))
    }

    fn that_lose(loses_texts: bool, folder: PathBuf, memory_bytes: usize) -> Self {
        std::fs::create_dir(&folder).unwrap();
        let [n, n_class_pairs, n_read_again] = [0; 3].map(AtomicUsize::new);
        Self { folder, memory_bytes, n, n_class_pairs, n_read_again, loses_texts }
    }

    fn run(&self, description: &Description) -> Vec<Vec<u8>> {
        let place = self.folder.join(format!("task-{:05}", self.n.fetch_add(1, Ordering::Relaxed)));
        std::fs::write(&place, serde_json::to_vec(description).unwrap()).unwrap();
        let own = std::env::current_exe().unwrap();
        let ran =
            Command::new(own).args(["--exact", "tasks_alone::one_task"]).env(DESCRIPTION, &place).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
        serde_json::from_slice(&std::fs::read(place.with_extension("messages")).unwrap()).unwrap()
    }
}

/// Returns messages as an engine would, some at a time.
fn moved(messages: &[Vec<u8>]) -> Messages {
    let arrays: Vec<BinaryArray> = messages.chunks(37).map(|some| BinaryArray::from_iter_values(some.iter())).collect();
    futures::stream::iter(arrays.into_iter().map(Ok)).boxed()
}

impl Engine for Processes {
    fn workers(&self) -> Result<Workers, Fault> {
        Ok(Workers { n: 2, threads: 1, memory_bytes: self.memory_bytes })
    }

    fn fingerprint(
        &self,
        spec: &FingerprintSpec,
        tasks: Vec<Weighed<FingerprintTask>>,
        _: &Storage,
        _: &Progress,
    ) -> Messages {
        let mut spec = spec.clone();
        match &mut spec.words {
            SentWords::Whole => panic!("the words of all texts would travel"),
            SentWords::Marks => {}
            SentWords::Only(texts) => {
                self.n_read_again.fetch_add(1, Ordering::Relaxed);
                *texts = if self.loses_texts { WantedTexts::default() } else { texts.clone() };
            }
        }
        let run = |(number, task): (u32, Weighed<FingerprintTask>)| {
            assert!(task.bytes > 0);
            self.run(&Description::Fingerprint(Box::new(spec.clone()), number, task.task))
        };
        let mut messages: Vec<Vec<u8>> = (0..).zip(tasks).flat_map(run).collect();
        // They may come in any order.
        messages.sort_by_key(|message| message.iter().map(|&byte| u64::from(byte)).sum::<u64>());
        moved(&messages)
    }

    fn map(&self, folder: &Path, tasks: Vec<Weighed<MapTask>>, _: &Storage, _: &Progress) -> Messages {
        let mut messages = Vec::new();
        for (number, task) in (0..).zip(tasks) {
            // A task that runs again adds nothing.
            for _ in 0..=number % 2 {
                messages.extend(self.run(&Description::Map(folder.to_owned(), number, task.task.clone())));
            }
        }
        messages.sort();
        messages.dedup();
        self.n_class_pairs.fetch_add(messages.iter().filter(|message| message[0] == 4).count(), Ordering::Relaxed);
        moved(&messages)
    }
}

/// The memory of a worker that cannot hold the documents of [`write_documents`] at once.
const LITTLE: usize = 8_752_000;

/// Pages in families of near-duplicates, some of them of the night before, and rows that are no documents.
fn write_documents(folder: &Path, night: u32) {
    let at = folder.join(format!("dt=2026-11-2{night}"));
    std::fs::create_dir_all(&at).unwrap();
    for file in 0..3u32 {
        let mut lines = String::new();
        for i in 0..120u32 {
            let (page, family) = (file * 120 + i, (file * 120 + i) % 70 + night * 20);
            let words = (0..60).map(|w| format!("w{}", (family * 31 + w * 7) % 997)).collect::<Vec<_>>().join(" ");
            let text = if i % 11 == 0 { "too short".to_owned() } else { format!("{words} {}", page % 4) };
            let id = if i % 9 == 0 { format!("page-{page}") } else { format!("night-{night}-page-{page}") };
            writeln!(lines, "{}", serde_json::json!({ "id": id, "text": text, "rank": page % 5 })).unwrap();
        }
        lines.push_str("{\"id\": \"no-json\"\n");
        std::fs::write(at.join(format!("pages-{file}.jsonl")), lines).unwrap();
    }
    std::fs::write(at.join("damaged.parquet"), b"PAR1 and nothing else").unwrap();
    // It can be opened, and breaks off later.
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    for i in 0..5000 {
        writeln!(packed, "{}", serde_json::json!({ "id": format!("lost-{i}"), "text": "lost", "rank": 0 })).unwrap();
    }
    let packed = packed.finish().unwrap();
    std::fs::write(at.join("broken.jsonl.gz"), &packed[..packed.len() - 1000]).unwrap();
}

fn request(folder: &Path, output: &str, night: u32, pairs: PairsMode, clusters: ClusterRule) -> RunRequest {
    let below = |name: &str| folder.join(name).display().to_string();
    let (store, results) = (below(&format!("{output}/store")), below(&format!("{output}/results")));
    let profile = nearprint_profile::by_name("default").unwrap();
    RunRequest {
        columns: DocumentColumns { keep: vec!["rank".to_owned()], ..DocumentColumns::default() },
        keep: vec![KeepKey { column: "rank".to_owned(), descending: true }],
        input: InputPolicy { max_bad_rows: 10, max_bad_files: 2, ..InputPolicy::default() },
        pairs,
        clusters,
        breakers: Breakers::off(),
        preflight: false,
        create_store: true,
        ..RunRequest::new(format!("2026-11-2{night}"), below("documents"), store, results, profile)
    }
}

/// Published files by their path, but for what names the store by chance.
fn published(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "parquet") {
                files.insert(path.strip_prefix(folder).unwrap().to_owned(), std::fs::read(&path).unwrap());
            }
        }
    }
    files
}

#[test]
fn nights_whose_tasks_each_ran_in_a_process_of_its_own_are_the_same_bytes() {
    for (pairs, clusters, memory_bytes, least_parts) in [
        (PairsMode::Forest, ClusterRule::Star, 1 << 30, 1),
        (PairsMode::All, ClusterRule::Star, 1 << 30, 1),
        (PairsMode::All, ClusterRule::Component, 1 << 30, 1),
        (PairsMode::Forest, ClusterRule::Star, LITTLE, 3),
        (PairsMode::All, ClusterRule::Component, LITTLE, 3),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let processes = Processes::new(folder.path().join("tasks"), memory_bytes);
        let engine: Arc<dyn Engine> = Arc::<Processes>::clone(&processes);
        let (storage, progress) = (Storage::default(), Progress::default());
        let resources =
            Resources { threads: Some(2), spill_dir: Some(folder.path().join("spill")), ..Resources::default() };
        std::fs::create_dir(folder.path().join("spill")).unwrap();
        on_threads(async {
            for night in 1..=5 {
                write_documents(&folder.path().join("documents"), night);
            }
            let mut reference = request(folder.path(), "reference", 4, pairs, clusters);
            for night in [4, 5] {
                reference.dt = format!("2026-11-2{night}");
                run(&storage, &reference, &resources, &progress).await.unwrap();
            }
            let compact = CompactRequest::of(reference.store.clone());
            store_compact(&storage, &compact, &resources, &progress).await.unwrap();
            for night in 1..=3 {
                let with_reference = |output| {
                    let references = vec![reference.store.clone()];
                    RunRequest { references, ..request(folder.path(), output, night, pairs, clusters) }
                };
                let (here, there) = (with_reference("here"), with_reference("there"));
                let a = run(&storage, &here, &resources, &progress).await.unwrap();
                let b = run_on_engine(&storage, &there, &resources, &progress, &engine).await.unwrap();
                assert_eq!(a.counts, b.counts);
                assert!((least_parts == 1) == (b.n_parts == 1) && b.n_parts >= least_parts, "{} parts", b.n_parts);
                assert!(a.counts.documents.n_bad_files == 2 && a.counts.pairs.n_pairs > 100, "{:?}", a.counts);
                assert!(a.counts.judge.is_some_and(|judge| judge.n_read > 0), "{:?}", a.counts);
                assert!(a.counts.pairs.n_new_existing > 0 && a.references[0].n_existing > 0, "{:?}", a.counts);
                assert_eq!(a.references, b.references);
                if night == 2 {
                    for of in [&here, &there] {
                        let request = CompactRequest::of(of.store.clone());
                        store_compact(&storage, &request, &resources, &progress).await.unwrap();
                    }
                }
            }
        });
        let (here, there) = (published(&folder.path().join("here")), published(&folder.path().join("there")));
        assert!(here == there && here.len() == 46, "{:?}\n{:?}", here.keys(), there.keys());
        assert_eq!(processes.n_read_again.load(Ordering::Relaxed), 3, "once a night, however many passes");
        assert!(clusters == ClusterRule::Component || processes.n_class_pairs.load(Ordering::Relaxed) > 3);
    }
}

#[test]
fn a_night_whose_texts_are_gone_when_the_judge_asks_for_them_is_to_be_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let engine: Arc<dyn Engine> = Arc::new(Processes::that_lose(true, folder.path().join("tasks"), 1 << 30));
    write_documents(&folder.path().join("documents"), 1);
    let night = request(folder.path(), "there", 1, PairsMode::Forest, ClusterRule::Star);
    let (storage, resources) = (Storage::default(), Resources { threads: Some(2), ..Resources::default() });
    let ran = on_threads(run_on_engine(&storage, &night, &resources, &Progress::default(), &engine));
    let error = ran.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TryAgain, "{error}");
    assert!(error.to_string().contains("texts that the judge reads are gone"), "{error}");
    assert!(!folder.path().join("there").exists(), "nothing is published");
}

/// A record of a page in a member of its own.
fn record(kind: &str, url: &str, fields: &str, body: &str) -> Vec<u8> {
    let http = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{body}");
    let mut member = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    write!(
        member,
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\nContent-Type: application/http\r\n{fields}\
         Content-Length: {}\r\n\r\n{http}\r\n\r\n",
        http.len()
    )
    .unwrap();
    member.finish().unwrap()
}

/// Writes a crawl of two files: some pages, and in each night but the first more and more of them as revisits.
fn write_crawl(folder: &Path, night: u32) {
    let at = folder.join(format!("dt=2026-11-2{night}"));
    std::fs::create_dir_all(&at).unwrap();
    let words = |n: u32| (0..60).fold(String::new(), |words, word| format!("{words}word{} ", n * 1000 + word));
    for file in 0..2 {
        let page = |n: u32| {
            let url = format!("https://a.org/{n}");
            match n % 4 {
                0 if night > 1 => record("revisit", &url, "", ""),
                1 if night > 1 => {
                    let of = format!("WARC-Refers-To-Target-URI: https://a.org/{}\r\n", n + 6);
                    record("revisit", &url, &of, "")
                }
                _ => record("response", &url, "", &format!("<p>{}</p>", words(n / 2))),
            }
        };
        let records: Vec<u8> = (file * 20..file * 20 + 20).flat_map(page).collect();
        std::fs::write(at.join(format!("{file}.warc.gz")), records).unwrap();
    }
}

#[test]
fn revisits_that_are_read_elsewhere_have_the_same_texts() {
    let folder = tempfile::tempdir().unwrap();
    let processes = Processes::new(folder.path().join("tasks"), 1 << 30);
    let engine: Arc<dyn Engine> = Arc::<Processes>::clone(&processes);
    let (storage, progress) = (Storage::default(), Progress::default());
    let resources = Resources { threads: Some(2), ..Resources::default() };
    on_threads(async {
        for night in 1..=3 {
            write_crawl(&folder.path().join("documents"), night);
            let of_pages = |output| RunRequest {
                columns: DocumentColumns::default(),
                keep: Vec::new(),
                ..request(folder.path(), output, night, PairsMode::Forest, ClusterRule::Star)
            };
            let here = run(&storage, &of_pages("here"), &resources, &progress).await.unwrap().counts;
            let there = run_on_engine(&storage, &of_pages("there"), &resources, &progress, &engine).await.unwrap();
            assert_eq!(here, there.counts);
            let n_unknown = here.documents.n_unknown_revisits;
            let expected = if night == 1 { (0, 0) } else { (19, 1) };
            assert_eq!((here.documents.n_revisits, n_unknown), expected, "the last one refers to a page beyond all");
        }
    });
    assert!(published(&folder.path().join("here")) == published(&folder.path().join("there")));
}

/// Runs a night elsewhere with so much memory for the driver and for each worker. Returns its error, and how many tasks ran.
fn refused(driver_bytes: Option<usize>, worker_bytes: usize) -> (Fault, usize) {
    let folder = tempfile::tempdir().unwrap();
    let processes = Processes::new(folder.path().join("tasks"), worker_bytes);
    let engine: Arc<dyn Engine> = Arc::<Processes>::clone(&processes);
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sample_data/documents");
    let night = RunRequest {
        dt: "2026-11-19".to_owned(),
        documents: sample.into(),
        columns: DocumentColumns::default(),
        keep: Vec::new(),
        ..request(folder.path(), "there", 1, PairsMode::Forest, ClusterRule::Star)
    };
    let resources = Resources { threads: Some(1), memory_limit: driver_bytes, ..Resources::default() };
    let ran = on_threads(async {
        run_on_engine(&Storage::default(), &night, &resources, &Progress::default(), &engine).await
    });
    (ran.unwrap_err(), processes.n.load(Ordering::Relaxed))
}

#[test]
fn a_night_that_the_driver_cannot_hold_is_refused_before_any_task_runs() {
    let (error, n_tasks) = refused(Some(1 << 13), 1 << 30);
    assert!(error.to_string().starts_with("155 documents of one night, which the driver holds"), "{error}");
    assert_eq!((error.kind(), n_tasks), (ErrorKind::LocalIo, 0));
}

#[test]
fn a_batch_that_no_worker_can_hold_is_refused_by_the_name_of_its_setting() {
    let (error, n_tasks) = refused(None, 1 << 7);
    assert!(error.to_string().starts_with("worker_memory: each worker holds a part of the query batch"), "{error}");
    assert_eq!((error.kind(), n_tasks), (ErrorKind::Config, 1));
}
