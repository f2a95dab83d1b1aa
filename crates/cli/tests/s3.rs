//! Nights on a real S3 server, where `NEARPRINT_TEST_S3_ENDPOINT` names one (scripts/test.sh starts it).
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, clippy::print_stdout, reason = "tests")]

mod support;

use std::process::Command;

use object_store::ObjectStoreExt;
use object_store::aws::AmazonS3Builder;
use object_store::path::Path;
use support::{data_files, nearprint_in, root};

/// The endpoint and a prefix of its own; none where no server is named.
fn place(name: &str) -> Option<(String, String)> {
    let endpoint = std::env::var("NEARPRINT_TEST_S3_ENDPOINT").ok()?;
    let bucket = std::env::var("NEARPRINT_TEST_S3_BUCKET").unwrap_or_else(|_| "nearprint-test".to_owned());
    Some((endpoint, format!("{bucket}/{name}-{}", std::process::id())))
}

/// A client of the bucket, beside the binary's own.
struct Bucket {
    runtime: tokio::runtime::Runtime,
    store: object_store::aws::AmazonS3,
}

impl Bucket {
    fn open(endpoint: &str, prefix: &str) -> Self {
        let bucket = prefix.split('/').next().unwrap();
        let builder =
            AmazonS3Builder::from_env().with_endpoint(endpoint).with_bucket_name(bucket).with_allow_http(true);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { runtime, store: builder.build().unwrap() }
    }

    fn put(&self, key: &str, content: Vec<u8>) {
        self.runtime.block_on(self.store.put(&Path::from(key), content.into())).unwrap();
    }

    fn get(&self, key: &str) -> Vec<u8> {
        let got = async { self.store.get(&Path::from(key)).await?.bytes().await };
        self.runtime.block_on(got).unwrap_or_else(|e| panic!("{key}: {e}")).to_vec()
    }
}

#[test]
fn nights_on_s3_publish_the_same_bytes_as_on_disk() {
    let Some((endpoint, prefix)) = place("nights") else { return eprintln!("no S3 server named: skipped") };
    let nights = ["2026-11-19", "2026-11-20"];
    let dir = tempfile::tempdir().unwrap();
    let bucket = Bucket::open(&endpoint, &prefix);
    let below = prefix.split_once('/').unwrap().1.to_owned();
    for dt in nights {
        for file in std::fs::read_dir(root().join(format!("sample_data/documents/dt={dt}"))).unwrap() {
            let file = file.unwrap().path();
            let name = file.file_name().unwrap().to_str().unwrap();
            bucket.put(&format!("{below}/documents/dt={dt}/{name}"), std::fs::read(&file).unwrap());
        }
    }
    let job = |name: &str, documents: &str, root: &str| {
        let text = format!(
            "documents = {documents:?}\nstore = \"{root}store\"\noutput = \"{root}results\"\n[s3]\nendpoint = {endpoint:?}\n"
        );
        std::fs::write(dir.path().join(name), text).unwrap();
    };
    job("local.toml", root().join("sample_data/documents").to_str().unwrap(), "");
    job("s3.toml", &format!("s3://{prefix}/documents"), &format!("s3://{prefix}/"));
    let run = |config: &str, dt: &str| {
        nearprint_in(dir.path(), &["run", "--config", config, "--dt", dt, "--json"]).expect_success().json()
    };
    let mut compared = 0;
    for dt in nights {
        run("local.toml", dt);
        let summary = run("s3.toml", dt);
        assert_eq!(summary["status"], "published");
        let generation = summary["output"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        for (path, content) in data_files(dir.path()) {
            let on_s3 = match path.strip_prefix(&format!("results/dt={dt}/")) {
                Some(below) => format!("results/dt={dt}/{generation}/{below}"),
                None if path.starts_with("store/") => path.clone(),
                None => continue,
            };
            assert!(bucket.get(&format!("{below}/{on_s3}")) == content, "{path} differs");
            compared += 1;
        }
    }
    assert!(compared >= 20, "{compared}");
    for config in ["local.toml", "s3.toml"] {
        let args = ["store", "compact", "--config", config, "--part-rows", "200", "--json"];
        let summary = nearprint_in(dir.path(), &args).expect_success().json();
        assert_eq!(summary["status"], "compacted");
    }
    let segments: Vec<_> =
        data_files(dir.path()).into_iter().filter(|(p, _)| p.starts_with("store/segments/")).collect();
    assert!(segments.len() > 1, "{}", segments.len());
    for (path, content) in segments {
        assert!(bucket.get(&format!("{below}/{path}")) == content, "{path} differs");
    }
    assert_eq!(run("s3.toml", "2026-11-20")["status"], "already_published");
    let check = nearprint_in(dir.path(), &["store", "check", "--config", "s3.toml", "--json"]).expect_success().json();
    assert_eq!(check["status"], "sound");
}

#[test]
fn nights_on_s3_are_checked_and_what_no_commit_names_is_deleted() {
    let Some((endpoint, prefix)) = place("checked") else { return eprintln!("no S3 server named: skipped") };
    let dir = tempfile::tempdir().unwrap();
    let bucket = Bucket::open(&endpoint, &prefix);
    let below = prefix.split_once('/').unwrap().1.to_owned();
    let documents = root().join("sample_data/documents");
    let text = format!(
        "documents = {documents:?}\nstore = \"s3://{prefix}/store\"\noutput = \"s3://{prefix}/results\"\n[s3]\nendpoint = {endpoint:?}\n"
    );
    std::fs::write(dir.path().join("job.toml"), text).unwrap();
    let said = |args: &[&str]| nearprint_in(dir.path(), &[args, &["--config", "job.toml", "--json"]].concat());
    said(&["run", "--dt", "2026-11-19"]).expect_success();
    let digest = "0123456789abcdef0123456789abcdef";
    for junk in ["store/_probe/0011", &format!("store/runs/{digest}/ids/part-00000.parquet")] {
        bucket.put(&format!("{below}/{junk}"), b"x".to_vec());
    }
    bucket.put(&format!("{below}/results/dt=2026-11-20/gen={digest}/_SUCCESS"), Vec::new());
    let found = said(&["check"]).expect_success().json();
    assert_eq!((found["status"].as_str(), found["n_unreferenced_files"].as_u64()), (Some("sound"), Some(3)), "{found}");
    let gone = said(&["store", "gc", "--grace-hours", "0"]).expect_success().json();
    assert_eq!(gone["n_files"], 3, "{gone}");
    let found = said(&["check"]).expect_success().json();
    assert_eq!((found["status"].as_str(), found["n_unreferenced_files"].as_u64()), (Some("sound"), Some(0)), "{found}");
    assert_eq!(said(&["run", "--dt", "2026-11-19"]).expect_success().json()["status"], "already_published");
    said(&["run", "--dt", "2026-11-20"]).expect_success();

    let output = found["store"].as_str().unwrap().replace("store", "results/dt=2026-11-19/_current");
    let key = output.strip_prefix("s3://").unwrap().split_once('/').unwrap().1;
    let current = String::from_utf8(bucket.get(key)).unwrap();
    let decisions = format!("{below}/results/dt=2026-11-19/{}/decisions/part-00000.parquet", current.trim());
    let mut content = bucket.get(&decisions);
    content[100] ^= 4;
    bucket.put(&decisions, content);
    let damaged = said(&["check"]);
    assert_eq!(damaged.code, 65);
    let problems = damaged.json()["problems"].clone();
    assert!(problems[0]["file"].as_str().unwrap().ends_with(&decisions), "{problems}");
    assert_eq!(problems.as_array().unwrap().len(), 1, "{problems}");
}

#[test]
fn a_missing_bucket_and_a_wrong_key_are_told_apart() {
    let Some((endpoint, prefix)) = place("denied") else { return eprintln!("no S3 server named: skipped") };
    let dir = tempfile::tempdir().unwrap();
    let run = |bucket: &str, secret: Option<&str>| {
        let text = format!(
            "documents = \"s3://{bucket}/d\"\nstore = \"s3://{bucket}/s\"\noutput = \"o\"\n[s3]\nendpoint = {endpoint:?}\nretry_seconds = 2\n"
        );
        std::fs::write(dir.path().join("job.toml"), text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_nearprint"));
        if let Some(secret) = secret {
            command.env("AWS_SECRET_ACCESS_KEY", secret);
        }
        let done = command
            .args(["run", "--config", "job.toml", "--dt", "2026-11-20"])
            .current_dir(dir.path())
            .output()
            .unwrap();
        (done.status.code(), String::from_utf8(done.stderr).unwrap())
    };
    let (code, said) = run(&prefix, None);
    assert_eq!(code, Some(66), "{said}");
    let (code, said) = run("no-such-bucket-here", None);
    assert_eq!(code, Some(66), "{said}");
    assert!(said.contains("NoSuchBucket"), "{said}");
    let (code, said) = run(&prefix, Some("canary-of-a-secret"));
    assert_eq!(code, Some(77), "{said}");
    assert!(!said.contains("canary-of-a-secret"), "{said}");
}
