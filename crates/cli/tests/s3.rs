//! Nights on a real S3 server, where `NEARPRINT_TEST_S3_ENDPOINT` names one (scripts/test.sh starts it).

use std::path::Path as LocalPath;
use std::time::{Duration, Instant};

use nearprint_harness::folder::{parquet_of, places};
use nearprint_harness::proxy::{Action, Proxy, Rule};
use nearprint_harness::server::Server;
use object_store::path::Path;

use crate::support::{self, Ran, Signal, command, data_files, nearprint_in, root, text, write_documents};
use crate::{wacz, warc};

/// The server and a bucket with a prefix of its own; none where no server is named.
fn place(name: &str) -> Option<(Server, String)> {
    let server = Server::from_env().unwrap()?;
    let prefix = format!("{}/{name}-{}", server.bucket, std::process::id());
    Some((server, prefix))
}

/// A proxy before the server, with these rules.
fn proxy_of(server: &Server, rules: Vec<Rule>) -> Proxy {
    let proxy = Proxy::start(server.port().unwrap(), 1).unwrap();
    proxy.rules().replace(rules);
    proxy
}

/// `action` for the first `times` requests of a method ("" for all) whose target has `part` in it.
fn rule(method: &str, part: &str, times: u64, action: Action) -> Rule {
    Rule::new(&format!("^{method}.*{}", part.replace('.', r"\.")), action).unwrap().times(times)
}

/// An answer of the proxy, which the server does not see.
fn refuse(status: u16, code: &'static str) -> Action {
    Action::Status { status, code }
}

/// Half of an answer.
const HALF: Action = Action::Truncate(usize::MAX);

/// Requests so far, as `METHOD target`.
fn log(proxy: &Proxy) -> Vec<String> {
    proxy.log().into_iter().map(|logged| logged.line).collect()
}

/// The sample documents of one night below a prefix; gives the prefix within the bucket.
fn upload_night(server: &Server, prefix: &str, dt: &str) -> String {
    let below = prefix.split_once('/').unwrap().1.to_owned();
    for file in std::fs::read_dir(root().join(format!("sample_data/documents/dt={dt}"))).unwrap() {
        let file = file.unwrap().path();
        let name = file.file_name().unwrap().to_str().unwrap();
        server.put(&format!("{below}/documents/dt={dt}/{name}"), std::fs::read(&file).unwrap()).unwrap();
    }
    below
}

const DT: &str = "2026-11-20";

/// A job whose places all lie below an S3 prefix, reached with little patience.
fn s3_job(dir: &LocalPath, endpoint: &str, prefix: &str) {
    let s3 = format!("[s3]\nendpoint = {endpoint:?}\nretry_seconds = 6\ntimeout_seconds = 2\n");
    let text = places(&format!("s3://{prefix}/")) + &s3;
    std::fs::write(dir.join("job.toml"), text).unwrap();
}

const RUN: [&str; 6] = ["run", "--config", "job.toml", "--dt", DT, "--json"];

/// A run with exactly these variables beside PATH.
fn run_with(dir: &LocalPath, variables: &[(&str, &str)], more: &[&str]) -> Ran {
    let path = std::env::var("PATH").unwrap();
    let own = [("PATH", path.as_str()), ("HOME", dir.to_str().unwrap())];
    let variables: Vec<String> = own.iter().chain(variables).map(|(name, value)| format!("{name}={value}")).collect();
    let wrapper: Vec<&str> = ["env", "-i"].into_iter().chain(variables.iter().map(String::as_str)).collect();
    command(dir, &RUN).args(more).wrapped(&wrapper).run().unwrap()
}

fn run_night(dir: &LocalPath) -> Ran {
    nearprint_in(dir, &RUN)
}

#[test]
fn a_night_gets_over_what_passes() {
    let Some((server, prefix)) = place("passing") else { return eprintln!("no S3 server named: skipped") };
    let dir = tempfile::tempdir().unwrap();
    upload_night(&server, &prefix, DT);
    let proxy = proxy_of(
        &server,
        vec![
            rule("GET", "list-type", 1, HALF),
            rule("GET", "list-type", 1, refuse(503, "SlowDown")),
            rule("GET", ".parquet", 2, HALF),
            rule("GET", ".parquet", 1, Action::Reset),
            rule("GET", ".parquet", 1, Action::BlackHole),
            rule("GET", ".parquet", 1, refuse(403, "ExpiredToken")),
            rule("PUT", "results", 1, refuse(429, "TooManyRequests")),
            rule("PUT", "results", 1, refuse(500, "InternalError")),
            rule("PUT", "results", 1, Action::BlackHole),
            rule("PUT", "_commits", 1, refuse(409, "ConditionalRequestConflict")),
            rule("PUT", "_commits", 2, Action::LostReply),
        ],
    );
    s3_job(dir.path(), &proxy.endpoint(), &prefix);
    let summary = run_night(dir.path()).expect_success().json();
    assert_eq!(summary["status"], "published");
    assert_eq!(summary["requests"]["retries"], 13, "{}", summary["requests"]);
    let sent: u64 = ["get", "head", "list", "put", "delete", "post"]
        .iter()
        .map(|kind| summary["requests"][kind].as_u64().unwrap())
        .sum();
    assert_eq!(sent, log(&proxy).len() as u64);
    let check = nearprint_in(dir.path(), &["store", "check", "--config", "job.toml", "--json"]).expect_success().json();
    assert_eq!(check["status"], "sound");
    let lists = log(&proxy).iter().filter(|l| l.contains("list-type") && l.contains("documents%2Fdt")).count();
    assert_eq!(lists, 1, "one LIST of the documents: {:?}", log(&proxy));
}

#[test]
fn a_server_that_fails_to_say_whether_a_folder_is_a_table_ends_the_run_and_one_that_refuses_it_does_not() {
    let Some((server, prefix)) = place("unknown-tables") else { return eprintln!("no S3 server named: skipped") };
    let dir = tempfile::tempdir().unwrap();
    let below = upload_night(&server, &prefix, DT);
    let metadata = format!("{}%2Fmetadata", below.replace('/', "%2F"));
    let proxy = proxy_of(&server, Vec::new());
    s3_job(dir.path(), &proxy.endpoint(), &prefix);
    for (status, code) in [(500, "InternalError"), (400, "RequestTimeout")] {
        proxy.rules().replace(vec![rule("GET", &metadata, u64::MAX, refuse(status, code))]);
        let failed = nearprint_in(dir.path(), &RUN);
        assert!(failed.code == 69 && failed.error().contains("/metadata"), "{}: {}", failed.code, failed.stderr);
    }
    // A key that no request can have lies there.
    server.put(&format!("{below}/metadata/a//b"), Vec::new()).unwrap();
    proxy.rules().replace(Vec::new());
    nearprint_in(dir.path(), &RUN).expect_success();
    for (status, code) in [(403, "AccessDenied"), (403, "Forbidden"), (401, "Unauthorized"), (400, "InvalidRequest")] {
        proxy.rules().replace(vec![rule("GET", &metadata, u64::MAX, refuse(status, code))]);
        nearprint_in(dir.path(), &[&RUN[..], &["--replace"]].concat()).expect_success();
        assert!(log(&proxy).iter().any(|line| line.contains(&metadata)), "{metadata}: {:?}", log(&proxy));
    }
}

#[test]
fn what_does_not_pass_is_named_and_ends_in_time() {
    let Some((server, prefix)) = place("lasting") else { return eprintln!("no S3 server named: skipped") };
    let dir = tempfile::tempdir().unwrap();
    upload_night(&server, &prefix, DT);
    let proxy = proxy_of(&server, Vec::new());
    s3_job(dir.path(), &proxy.endpoint(), &prefix);
    let ever = u64::MAX;
    let cases = [
        (vec![rule("", "", ever, refuse(503, "SlowDown"))], 69, "SlowDown"),
        (vec![rule("GET", ".parquet", ever, HALF)], 69, "documents/dt=2026-11-20/part-0000"),
        (vec![rule("PUT", "results", ever, refuse(403, "ExpiredToken"))], 77, "expired"),
        (vec![rule("PUT", "results", ever, refuse(403, "QuotaExceeded"))], 77, "quota"),
        (vec![rule("PUT", "results", ever, refuse(403, "RequestTimeTooSkewed"))], 77, "clock"),
        (vec![rule("GET", "list-type", ever, refuse(400, "ExpiredToken"))], 77, "expired"),
        (vec![rule("PUT", "_commits", ever, refuse(403, "AccessDenied"))], 77, "_commits/00000001.json"),
        (vec![rule("PUT", "_commits", ever, refuse(409, "ConditionalRequestConflict"))], 75, "it was not written"),
    ];
    for (rules, code, says) in cases {
        proxy.rules().replace(rules);
        let started = Instant::now();
        let done = run_night(dir.path());
        assert_eq!(done.code, code, "{says}: {}", done.stderr);
        assert!(done.error().contains(says), "{says}: {}", done.stderr);
        assert!(started.elapsed() < Duration::from_secs(16), "{says}: {:?}", started.elapsed());
        assert!(done.json()["requests"]["list"].as_u64() > Some(0), "{}", done.stdout);
    }
    // The server takes the commit, and then nobody can ask it any more.
    proxy.rules().replace(vec![
        rule("PUT", "_commits", 1, Action::LostReply),
        rule("PUT", "_commits", ever, refuse(503, "SlowDown")),
        rule("GET", "_commits/0", ever, refuse(503, "SlowDown")),
    ]);
    let done = run_night(dir.path());
    assert_eq!(done.code, 75, "{}", done.stderr);
    assert!(done.error().contains("cannot tell whether"), "{}", done.stderr);
    proxy.rules().replace(Vec::new());
    assert_eq!(run_night(dir.path()).expect_success().json()["status"], "already_published");
}

#[test]
fn an_input_that_changes_between_listing_and_reading_is_named() {
    let Some((server, prefix)) = place("changing") else { return eprintln!("no S3 server named: skipped") };
    let dir = tempfile::tempdir().unwrap();
    let below = upload_night(&server, &prefix, DT);
    let key = format!("{below}/documents/dt={DT}/part-00001.parquet");
    let before = server.get(&key).unwrap();
    let proxy = proxy_of(&server, Vec::new());
    s3_job(dir.path(), &proxy.endpoint(), &prefix);
    let other = std::fs::read(root().join(format!("sample_data/documents/dt={DT}/part-00000.parquet"))).unwrap();
    let same_size = {
        let mut bytes = before.clone();
        bytes[10] ^= 1;
        bytes
    };
    for content in [Some(other), Some(same_size), None] {
        server.put(&key, before.clone()).unwrap();
        let (server, changed) = (server.clone(), key.clone());
        let change = move |_: &str| match &content {
            Some(content) => server.put(&changed, content.clone()).unwrap(),
            None => server.delete(&changed).unwrap(),
        };
        proxy
            .rules()
            .replace(vec![rule("GET", "part-00001.parquet", 1, Action::Before(std::sync::Arc::new(change))).after(1)]);
        let done = run_night(dir.path());
        assert_eq!(done.code, 75, "{}", done.stderr);
        assert!(done.error().contains("part-00001.parquet: changed or removed while it was read"), "{}", done.stderr);
    }
    let publishes = |line: &String| line.starts_with("PUT") && line.contains("results") && !line.contains("/_probe/");
    assert!(!log(&proxy).iter().any(publishes), "{:?}", log(&proxy));
}

/// Documents whose ids make an output of several parts.
fn large_job(dir: &LocalPath, endpoint: &str, prefix: &str) -> Vec<String> {
    let rows: Vec<(String, String)> = (0..1500).map(|i| (text(i, 1800), text(i + 10_000, 20))).collect();
    let rows: Vec<(Option<&str>, Option<&str>)> = rows.iter().map(|(a, b)| (Some(&**a), Some(&**b))).collect();
    write_documents(&dir.join("large/part-0.parquet"), &rows);
    s3_job(dir, endpoint, prefix);
    let output = format!("s3://{prefix}/large");
    ["fingerprint", "--config", "job.toml", "--documents", "large", "--output", &output, "--json"]
        .map(str::to_owned)
        .to_vec()
}

fn uploads(log: &[String], method: &str) -> usize {
    log.iter().filter(|line| line.starts_with(method) && line.contains("uploadId=")).count()
}

#[test]
fn large_files_arrive_whole_whatever_the_last_reply_says() {
    let Some((server, prefix)) = place("large") else { return eprintln!("no S3 server named: skipped") };
    let dir = tempfile::tempdir().unwrap();
    let proxy = proxy_of(&server, Vec::new());
    let args = large_job(dir.path(), &proxy.endpoint(), &prefix);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let local: Vec<&str> = args.iter().map(|&arg| if arg.starts_with("s3://") { "local" } else { arg }).collect();
    nearprint_in(dir.path(), &local).expect_success();
    let below = prefix.split_once('/').unwrap().1;
    for act in [Action::LostReply, Action::Deny { status: 404, code: "NoSuchUpload" }, refuse(200, "InternalError")] {
        proxy
            .rules()
            .replace(vec![rule("POST", "uploadId=", 1, act), rule("PUT", "partNumber=1", 1, Action::LostReply)]);
        let mut again = args.clone();
        again.push("--replace");
        nearprint_in(dir.path(), &again).expect_success();
        for (path, content) in support::snapshot(&dir.path().join("local")) {
            let path = path.to_str().unwrap();
            assert!(server.get(&format!("{below}/large/{path}")).unwrap() == content, "{path} differs");
        }
    }
    assert!(uploads(&log(&proxy), "POST") >= 3, "{:?}", log(&proxy));
    proxy.rules().replace(vec![rule("PUT", "partNumber=2", 1, refuse(403, "QuotaExceeded"))]);
    let mut again = args.clone();
    again.push("--replace");
    let done = nearprint_in(dir.path(), &again);
    assert_eq!(done.code, 77, "{}", done.stderr);
    assert!(uploads(&log(&proxy), "DELETE") > 0, "the upload is aborted: {:?}", log(&proxy));
}

#[test]
fn a_run_that_is_stopped_aborts_its_uploads() {
    let Some((server, prefix)) = place("stopped") else { return eprintln!("no S3 server named: skipped") };
    let dir = tempfile::tempdir().unwrap();
    let proxy = proxy_of(&server, vec![rule("PUT", "partNumber=2", u64::MAX, Action::BlackHole)]);
    let args = large_job(dir.path(), &proxy.endpoint(), &prefix);
    let running = command(dir.path(), &args.iter().map(String::as_str).collect::<Vec<_>>()).start().unwrap();
    let started = Instant::now();
    while !log(&proxy).iter().any(|line| line.contains("partNumber=2")) {
        assert!(started.elapsed() < Duration::from_secs(60), "no upload began");
        std::thread::sleep(Duration::from_millis(20));
    }
    let stopped = Instant::now();
    running.signal(Signal::SIGTERM).unwrap();
    let done = running.wait().unwrap();
    assert_eq!(done.code, 143, "{}", done.stderr);
    assert!(stopped.elapsed() < Duration::from_secs(10), "{:?}", stopped.elapsed());
    assert!(done.stdout.contains("\"requests\""), "{}", done.stdout);
    assert_eq!(uploads(&log(&proxy), "DELETE"), 1, "{:?}", log(&proxy));
}

#[test]
fn a_reference_on_s3_is_read_and_never_written() {
    let Some((server, prefix)) = place("refs") else { return eprintln!("no S3 server named: skipped") };
    let dir = tempfile::tempdir().unwrap();
    let below = upload_night(&server, &prefix, "2026-11-19");
    upload_night(&server, &prefix, DT);
    let proxy = proxy_of(&server, Vec::new());
    s3_job(dir.path(), &proxy.endpoint(), &prefix);
    let reference = format!("s3://{prefix}/reference");
    let earlier = ["run", "--config", "job.toml", "--dt", "2026-11-19", "--store", &reference, "--output", "earlier"];
    nearprint_in(dir.path(), &earlier).expect_success();
    let before = server.read_all(&format!("{below}/reference")).unwrap();
    let n_requests = log(&proxy).len();
    let summary = command(dir.path(), &RUN).args(&["--reference", &reference]).run().unwrap().expect_success().json();
    assert_eq!(summary["references"][0]["store"], reference.as_str());
    assert!(summary["references"][0]["n_existing"].as_u64().unwrap() > 0, "{summary}");
    assert!(summary["n_new_existing"].as_u64().unwrap() > 0, "{summary}");
    let to_reference: Vec<String> =
        log(&proxy).split_off(n_requests).into_iter().filter(|line| line.contains("reference")).collect();
    assert!(!to_reference.is_empty());
    assert!(to_reference.iter().all(|line| line.starts_with("GET ") || line.starts_with("HEAD ")), "{to_reference:?}");
    assert!(server.read_all(&format!("{below}/reference")).unwrap() == before);
    let missing = command(dir.path(), &RUN).args(&["--reference", &format!("{reference}-elsewhere")]).run().unwrap();
    assert_eq!(missing.code, 66, "{}", missing.stderr);
}

#[test]
fn uploads_that_nobody_ends_are_found_and_aborted() {
    use object_store::multipart::MultipartStore;
    let Some((server, prefix)) = place("stale") else { return eprintln!("no S3 server named: skipped") };
    let below = prefix.split_once('/').unwrap().1;
    let keys = [format!("{below}/a b/ü&.parquet"), format!("{below}/c.parquet")];
    for key in keys.iter().chain([&format!("{below}-beside/d.parquet")]) {
        server.block_on(server.store().create_multipart(&Path::parse(key).unwrap())).unwrap();
    }
    let storage = nearprint_storage::Storage::new(nearprint_storage::S3Config {
        endpoint: Some(server.endpoint.clone()),
        ..nearprint_storage::S3Config::default()
    });
    let folder = storage.folder(&format!("s3://{prefix}")).unwrap();
    let stale = |seconds, dry_run| {
        let older_than = Duration::from_secs(seconds);
        server.block_on(folder.abort_stale_uploads(older_than, dry_run, |_| true)).unwrap()
    };
    assert!(stale(3600, false).is_empty());
    assert_eq!(stale(0, true), keys);
    assert_eq!(stale(0, false), keys);
    assert!(stale(0, false).is_empty());
}

#[test]
fn gc_aborts_uploads_of_nearprints_keys_and_nobody_elses() {
    use object_store::multipart::MultipartStore;
    let Some((server, prefix)) = place("own-uploads") else { return eprintln!("no S3 server named: skipped") };
    let dir = tempfile::tempdir().unwrap();
    upload_night(&server, &prefix, DT);
    s3_job(dir.path(), &server.endpoint, &prefix);
    run_night(dir.path()).expect_success();
    let below = prefix.split_once('/').unwrap().1;
    let digest = "0123456789abcdef0123456789abcdef";
    let own = [
        format!("{below}/results/pairs/dt={DT}/part-00000-{digest}.parquet"),
        format!("{below}/store/runs/{digest}/fingerprints/part-00000.parquet"),
    ];
    let of_others = [format!("{below}/store/other/model.bin"), format!("{below}/results/dt={DT}/export.parquet")];
    let mut opened = Vec::new();
    for key in own.iter().chain(&of_others) {
        let key = Path::parse(key).unwrap();
        opened.push((key.clone(), server.block_on(server.store().create_multipart(&key)).unwrap()));
    }
    let args = ["store", "gc", "--config", "job.toml", "--grace-hours", "0", "--json"];
    let done = nearprint_in(dir.path(), &args).expect_success().json();
    assert_eq!(done["uploads"], serde_json::json!(own), "{done}");
    for (key, id) in &opened[2..] {
        server.block_on(server.store().put_part(key, id, 0, "still open".into())).unwrap();
        server.block_on(server.store().abort_multipart(key, id)).unwrap();
    }
}

#[test]
fn credentials_come_from_profiles_and_processes() {
    let Some((server, prefix)) = place("profiles") else { return eprintln!("no S3 server named: skipped") };
    let endpoint = &server.endpoint;
    let dir = tempfile::tempdir().unwrap();
    upload_night(&server, &prefix, DT);
    let (key, secret) = (std::env::var("AWS_ACCESS_KEY_ID").unwrap(), std::env::var("AWS_SECRET_ACCESS_KEY").unwrap());
    let json = format!("{{\"Version\":1,\"AccessKeyId\":\"{key}\",\"SecretAccessKey\":\"{secret}\"}}");
    std::fs::write(dir.path().join("given.json"), json).unwrap();
    std::fs::create_dir(dir.path().join(".aws")).unwrap();
    let given = dir.path().join("given.json");
    let config = format!(
        "[profile keys]\nendpoint_url = {endpoint}\n[profile process]\nendpoint_url = {endpoint}\ncredential_process = cat {}\n",
        given.display()
    );
    std::fs::write(dir.path().join(".aws/config"), config).unwrap();
    let keys = format!("[keys]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n");
    std::fs::write(dir.path().join(".aws/credentials"), keys).unwrap();
    s3_job(dir.path(), &server.endpoint, &prefix);
    let job = dir.path().join("job.toml");
    let text = std::fs::read_to_string(&job).unwrap();
    // The endpoint is the profile's too.
    std::fs::write(&job, text.replace(&format!("endpoint = {endpoint:?}\n"), "")).unwrap();
    assert_eq!(run_with(dir.path(), &[("AWS_PROFILE", "keys")], &[]).expect_success().json()["status"], "published");
    std::fs::write(&job, text.replace(&format!("endpoint = {endpoint:?}\n"), "profile = \"process\"\n")).unwrap();
    assert_eq!(run_with(dir.path(), &[], &[]).expect_success().json()["status"], "already_published");
}

#[test]
fn without_credentials_a_run_says_so_at_once_and_never_what_they_are() {
    let dir = tempfile::tempdir().unwrap();
    s3_job(dir.path(), "http://127.0.0.1:9", "bucket/prefix");
    let started = Instant::now();
    let metadata = ("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:9");
    let done = run_with(dir.path(), &[metadata], &[]);
    assert_eq!(done.code, 77, "{}", done.stderr);
    for way in ["AWS_ACCESS_KEY_ID", "AWS_PROFILE", "profile"] {
        assert!(done.error().contains(way), "{}", done.stderr);
    }
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    std::fs::create_dir(dir.path().join(".aws")).unwrap();
    let files = [
        "[default]\naws_access_key_id = canary\naws_secret_access_key canary\n",
        "[default]\naws_access_key_id = canary\naws_secret_access_key = canary\n",
        "[default]\ncredential_process = echo canary\n",
        "[default]\ncredential_process = sh -c \"echo canary >&2; exit 1\"\n",
    ];
    for file in files {
        std::fs::write(dir.path().join(".aws/credentials"), file).unwrap();
        let done = run_with(dir.path(), &[metadata], &["-vv"]);
        assert!([69, 77].contains(&done.code), "{}", done.stderr);
        assert!(!(done.stdout + &done.stderr).contains("canary"), "{file}");
    }
    std::fs::remove_file(dir.path().join(".aws/credentials")).unwrap();
    let environment = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"].map(|name| (name, "canary"));
    let done = run_with(dir.path(), &environment, &["-vv"]);
    assert_eq!(done.code, 69, "{}", done.stderr);
    assert!(!(done.stdout + &done.stderr).contains("canary"));
}

#[test]
fn places_and_endpoints_that_hold_secrets_are_refused_without_repeating_them() {
    let dir = tempfile::tempdir().unwrap();
    let urls = [
        "s3://key:canary@bucket/x",
        "s3://key:can/ary@bucket/x",
        "s3://bucket/x?X-Amz-Signature=canary",
        "https://bucket.example/x?x-amz-signature=canary",
        "https://user:canary@example.org/x",
    ];
    for url in urls {
        for place in ["--documents", "--store", "--output"] {
            s3_job(dir.path(), "http://127.0.0.1:9", "bucket/prefix");
            let done = run_with(dir.path(), &[("AWS_EC2_METADATA_DISABLED", "true")], &[place, url, "-vv"]);
            let said = done.stdout + &done.stderr;
            assert!(!said.contains("canary") && !said.contains("ary@"), "{place} {url}: {said}");
            // Documents and output are looked at after the store, which cannot be reached here.
            assert!([64, 77].contains(&done.code), "{place} {url}: {said}");
            assert!(place != "--store" || done.code == 64, "{place} {url}: {said}");
        }
    }
    let key = [("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")];
    for endpoint in
        ["http://user:canary@127.0.0.1:9", "http://s3.example.org", "http://127.0.0.1.example.org", "s3.example.org"]
    {
        s3_job(dir.path(), endpoint, "bucket/prefix");
        let done = run_with(dir.path(), &key, &["-vv"]);
        assert_eq!(done.code, 78, "{endpoint}: {}", done.stderr);
        assert!(done.error().contains("s3.endpoint"), "{}", done.stderr);
        assert!(!(done.stdout + &done.stderr).contains("canary"));
    }
}

#[test]
fn nights_on_s3_publish_the_same_bytes_as_on_disk() {
    let Some((server, prefix)) = place("nights") else { return eprintln!("no S3 server named: skipped") };
    let endpoint = &server.endpoint;
    let nights = ["2026-11-19", "2026-11-20"];
    let dir = tempfile::tempdir().unwrap();
    let [below, _] = nights.map(|dt| upload_night(&server, &prefix, dt));
    let job = |name: &str, documents: &str, root: &str| {
        let text = format!(
            "documents = {documents:?}\nstore = \"{root}store\"\noutput = \"{root}results\"\ncreate_store = true\n[s3]\nendpoint = {endpoint:?}\n"
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
        let generation = summary["generation"].as_str().unwrap();
        for (path, content) in data_files(dir.path()) {
            // Sets of changes belong to no generation, and are named by their content.
            if path.starts_with("results/changes/") {
                continue;
            }
            let on_s3 = match path.strip_suffix(".parquet").filter(|path| path.starts_with("results/")) {
                Some(name) if path.contains(dt) => format!("{name}-{generation}.parquet"),
                Some(_) => continue,
                None => path.clone(),
            };
            assert!(server.get(&format!("{below}/{on_s3}")).unwrap() == content, "{path} differs");
            compared += 1;
        }
    }
    assert!(compared >= 20, "{compared}");
    for (path, content) in support::snapshot(&dir.path().join("results/changes")) {
        let path = path.display().to_string();
        if path.starts_with("dt=") {
            assert!(server.get(&format!("{below}/results/changes/{path}")).unwrap() == content, "{path} differs");
        }
    }
    for config in ["local.toml", "s3.toml"] {
        let args = ["store", "compact", "--config", config, "--part-rows", "200", "--json"];
        let summary = nearprint_in(dir.path(), &args).expect_success().json();
        assert_eq!(summary["status"], "compacted");
    }
    let segments: Vec<_> =
        data_files(dir.path()).into_iter().filter(|(p, _)| p.starts_with("store/segments/")).collect();
    assert!(segments.len() > 1, "{}", segments.len());
    for (path, content) in segments {
        assert!(server.get(&format!("{below}/{path}")).unwrap() == content, "{path} differs");
    }
    assert_eq!(run("s3.toml", "2026-11-20")["status"], "already_published");
    let check = nearprint_in(dir.path(), &["store", "check", "--config", "s3.toml", "--json"]).expect_success().json();
    assert_eq!(check["status"], "sound");
}

#[test]
fn nights_on_s3_are_checked_and_what_no_commit_names_is_deleted() {
    let Some((server, prefix)) = place("checked") else { return eprintln!("no S3 server named: skipped") };
    let endpoint = &server.endpoint;
    let dir = tempfile::tempdir().unwrap();
    let below = prefix.split_once('/').unwrap().1.to_owned();
    let documents = root().join("sample_data/documents");
    let text = format!(
        "documents = {documents:?}\nstore = \"s3://{prefix}/store\"\noutput = \"s3://{prefix}/results\"\ncreate_store = true\n[s3]\nendpoint = {endpoint:?}\n"
    );
    std::fs::write(dir.path().join("job.toml"), text).unwrap();
    let said = |args: &[&str]| nearprint_in(dir.path(), &[args, &["--config", "job.toml", "--json"]].concat());
    said(&["run", "--dt", "2026-11-19"]).expect_success();
    let digest = "0123456789abcdef0123456789abcdef";
    for junk in ["store/_probe/0011223344556677", &format!("store/runs/{digest}/ids/part-00000.parquet")] {
        server.put(&format!("{below}/{junk}"), b"x".to_vec()).unwrap();
    }
    server.put(&format!("{below}/results/skipped/dt=2026-11-20/part-00000-{digest}.parquet"), Vec::new()).unwrap();
    let found = said(&["check"]).expect_success().json();
    assert_eq!((found["status"].as_str(), found["n_unreferenced_files"].as_u64()), (Some("sound"), Some(3)), "{found}");
    let gone = said(&["store", "gc", "--grace-hours", "0"]).expect_success().json();
    assert_eq!(gone["n_files"], 3, "{gone}");
    let found = said(&["check"]).expect_success().json();
    assert_eq!((found["status"].as_str(), found["n_unreferenced_files"].as_u64()), (Some("sound"), Some(0)), "{found}");
    assert_eq!(said(&["run", "--dt", "2026-11-19"]).expect_success().json()["status"], "already_published");
    said(&["run", "--dt", "2026-11-20"]).expect_success();

    let again = said(&["run", "--dt", "2026-11-19"]).expect_success().json();
    let generation = again["generation"].as_str().unwrap();
    let decisions = format!("{below}/results/decisions/dt=2026-11-19/part-00000-{generation}.parquet");
    let mut content = server.get(&decisions).unwrap();
    content[100] ^= 4;
    server.put(&decisions, content).unwrap();
    let damaged = said(&["check"]);
    assert_eq!(damaged.code, 65);
    let problems = damaged.json()["problems"].clone();
    assert!(problems[0]["file"].as_str().unwrap().ends_with(&decisions), "{problems}");
    assert_eq!(problems.as_array().unwrap().len(), 1, "{problems}");
}

#[test]
fn a_missing_bucket_and_a_wrong_key_are_told_apart() {
    let Some((server, prefix)) = place("denied") else { return eprintln!("no S3 server named: skipped") };
    let endpoint = &server.endpoint;
    let dir = tempfile::tempdir().unwrap();
    let run = |bucket: &str, secret: Option<&str>| {
        let text = format!(
            "documents = \"s3://{bucket}/d\"\nstore = \"s3://{bucket}/s\"\noutput = \"o\"\ncreate_store = true\n[s3]\nendpoint = {endpoint:?}\nretry_seconds = 2\n"
        );
        std::fs::write(dir.path().join("job.toml"), text).unwrap();
        let run = command(dir.path(), &["run", "--config", "job.toml", "--dt", "2026-11-20"]);
        secret.into_iter().fold(run, |run, secret| run.env("AWS_SECRET_ACCESS_KEY", secret)).run().unwrap()
    };
    let done = run(&prefix, None);
    assert_eq!(done.code, 66, "{}", done.stderr);
    assert!(done.stderr.contains("no documents at s3://"), "{}", done.stderr);
    let done = run("no-such-bucket-here", None);
    assert_eq!(done.code, 66, "{}", done.stderr);
    assert!(done.stderr.contains("NoSuchBucket") && done.stderr.contains("no such bucket"), "{}", done.stderr);
    let done = run(&prefix, Some("canary-of-a-secret"));
    assert_eq!(done.code, 77, "{}", done.stderr);
    assert!(!done.stderr.contains("canary-of-a-secret"), "{}", done.stderr);
}

#[test]
fn survivors_and_lists_are_the_same_on_s3_as_on_disk() {
    let Some((server, prefix)) = place("filter") else { return eprintln!("no S3 server named: skipped") };
    let (dir, local) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    upload_night(&server, &prefix, DT);
    s3_job(dir.path(), &server.endpoint, &prefix);
    let listed = nearprint_in(
        dir.path(),
        &[
            "fingerprint",
            "--config",
            "job.toml",
            "--documents",
            &format!("s3://{prefix}/documents"),
            "--output",
            "fp",
            "--json",
        ],
    );
    let n_documents = listed.expect_success().json()["n_documents"].as_u64();
    let urls: Vec<String> = std::fs::read_dir(root().join(format!("sample_data/documents/dt={DT}")))
        .unwrap()
        .map(|file| format!("s3://{prefix}/documents/dt={DT}/{}", file.unwrap().file_name().to_str().unwrap()))
        .collect();
    std::fs::write(dir.path().join("list.txt"), urls.join("\n")).unwrap();
    let night = command(dir.path(), &RUN).args(&["--files-from", "list.txt"]).run().unwrap().expect_success().json();
    assert_eq!(night["n_documents"].as_u64(), n_documents);
    std::fs::write(dir.path().join("gone.txt"), format!("{}\n{}x\n", urls[0], urls[0])).unwrap();
    let gone = command(dir.path(), &RUN).args(&["--files-from", "gone.txt"]).run().unwrap();
    gone.ends_with(&[66], &["gone.txt: line 2: no documents at"]).unwrap();
    let documents = root().join("sample_data/documents");
    let job = places("").replace("\"documents\"", &format!("{documents:?}"));
    std::fs::write(local.path().join("job.toml"), job).unwrap();
    nearprint_in(local.path(), &RUN).expect_success();
    let to_disk = ["filter", "--config", "job.toml", "--dt", DT, "--output", "out", "--json"];
    let on_disk = nearprint_in(local.path(), &to_disk).expect_success().json();
    let from_s3 = nearprint_in(dir.path(), &to_disk).expect_success().json();
    assert_eq!(on_disk["n_keep"], from_s3["n_keep"]);
    let files = |dir: &LocalPath| support::snapshot(&dir.join("out"));
    assert_eq!(files(dir.path()), files(local.path()));
    let out = format!("s3://{prefix}/survivors");
    let to_s3 = ["filter", "--config", "job.toml", "--dt", DT, "--output", &out, "--json"];
    nearprint_in(dir.path(), &to_s3).expect_success();
    nearprint_in(dir.path(), &to_s3).ends_with(&[73], &["the output exists"]).unwrap();
    nearprint_in(dir.path(), &[&to_s3[..], &["--replace"]].concat()).expect_success();
    let again = ["fingerprint", "--config", "job.toml", "--documents", &out, "--output", "kept", "--json"];
    assert_eq!(nearprint_in(dir.path(), &again).expect_success().json()["n_documents"], from_s3["n_keep"]);
}

#[test]
fn documents_and_nights_are_forgotten_on_s3_as_on_disk() {
    let Some((server, prefix)) = place("forget") else { return eprintln!("no S3 server named: skipped") };
    let dir = tempfile::tempdir().unwrap();
    let below = prefix.split_once('/').unwrap().1.to_owned();
    s3_job(dir.path(), &server.endpoint, &prefix);
    let page = text(1, 60);
    for (dt, ids) in [("2026-11-19", ["forget-me", "b"]), ("2026-11-20", ["c", "d"])] {
        let pages = [&page, &text(ids[1].len() as u64 + u64::from(ids[1].as_bytes()[0]), 60)];
        let lines = ids.iter().zip(pages).map(|(id, text)| format!("{{\"id\": \"{id}\", \"text\": \"{text}\"}}\n"));
        let key = format!("{below}/documents/dt={dt}/pages.jsonl");
        server.put(&key, lines.collect::<String>().into_bytes()).unwrap();
        let run = ["run", "--config", "job.toml", "--dt", dt, "--json"];
        nearprint_in(dir.path(), &run).expect_success();
    }
    std::fs::write(dir.path().join("ids"), "forget-me\n").unwrap();
    let said = |args: &[&str]| {
        nearprint_in(dir.path(), &[args, &["--config", "job.toml", "--json"]].concat()).expect_success().json()
    };
    let done = said(&["store", "forget", "--ids", "ids"]);
    assert_eq!((done["n_found"].as_u64(), done["n_represented"].as_u64()), (Some(1), Some(1)), "{done}");
    assert_eq!(said(&["check"])["status"], "sound");
    said(&["store", "gc", "--grace-hours", "0"]);
    let files = |part: &str| server.read_all(&format!("{below}/{part}")).unwrap();
    let mut n_files = 0;
    for (key, content) in files("store").into_iter().chain(files("results")) {
        assert!(!content.windows(9).any(|window| window == b"forget-me"), "{key}");
        n_files += 1;
    }
    assert!(n_files > 20, "{n_files}");
    let done = said(&["store", "forget", "--before", "2026-11-20"]);
    assert_eq!(done["nights"], serde_json::json!(["2026-11-19"]));
    said(&["store", "gc", "--grace-hours", "0"]);
    assert!(files("results").keys().all(|key| !key.contains("2026-11-19") || key.contains("changes/")));
    assert_eq!(said(&["check"])["status"], "sound");
    assert_eq!(said(&["run", "--dt", "2026-11-20"])["status"], "already_published");
}

#[test]
fn crawls_on_s3_are_read_as_on_disk_even_where_answers_break_off() {
    let Some((server, prefix)) = place("crawl") else { return eprintln!("no S3 server named: skipped") };
    let (dir, local) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let page = |n: u64| format!("<html><main><p>{}</p></main></html>", text(n, 80));
    let record = |n: u64| {
        let block = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{}", page(n / 2));
        let head = format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: https://a.org/{n}\r\nContent-Length: {}\r\n\r\n",
            block.len()
        );
        zstd::encode_all((head + &block + "\r\n\r\n").as_bytes(), 1).unwrap()
    };
    let mut crawl: Vec<u8> = (0..400).flat_map(record).collect();
    // The last record is cut off.
    crawl.truncate(crawl.len() - 30);
    let packed = |url: &str, n| warc::gzip(&warc::page(url, &text(n, 80)));
    let wacz = wacz::zip(&[
        ("archive/1.warc.gz", &packed("https://c.org/1", 2000)),
        ("archive/2.warc.gz", &packed("https://c.org/2", 2001)),
    ]);
    let html = [
        ("b.org/1.html", page(1).into()),
        ("b.org/2.html", page(1000).into()),
        ("b.org/empty.html", Vec::new()),
        ("d.jsonl", Vec::new()),
        ("e.warc", Vec::new()),
    ];
    let files = [("a.warc.zst", crawl), ("c.wacz", wacz)].into_iter().chain(html);
    let below = prefix.split_once('/').unwrap().1;
    for (name, bytes) in files {
        let path = local.path().join(format!("documents/dt={DT}/{name}"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, &bytes).unwrap();
        server.put(&format!("{below}/documents/dt={DT}/{name}"), bytes).unwrap();
    }
    // Some programs mark folders so.
    server.put(&format!("{below}/documents/dt={DT}/b.org/"), Vec::new()).unwrap();
    let breaks = [HALF, Action::Reset, refuse(503, "SlowDown")].map(|action| rule("GET", "a.warc", 1, action));
    let proxy = proxy_of(&server, breaks.into());
    std::fs::write(local.path().join("job.toml"), places("")).unwrap();
    s3_job(dir.path(), &proxy.endpoint(), &prefix);
    let [on_disk, on_s3] = [&local, &dir].map(|dir| {
        let run = command(dir.path(), &RUN).args(&["--max-bad-rows", "1"]).run().unwrap().expect_success().json();
        let args = ["filter", "--config", "job.toml", "--dt", DT, "--output", "kept", "--json"];
        let kept = nearprint_in(dir.path(), &args).expect_success().json();
        let counts =
            ["n_documents", "n_keep", "n_drop", "n_bad_rows", "bad_rows_by_reason"].map(|key| run[key].clone());
        (counts, kept["n_keep"].clone(), support::snapshot(&dir.path().join("kept")))
    });
    assert_eq!((&on_s3.0, &on_s3.1), (&on_disk.0, &on_disk.1));
    assert_eq!(on_disk.0[0], 404, "{:?}", on_disk.0);
    assert!(on_s3.2 == on_disk.2, "survivors differ");
}

/// A Delta table of documents whose log names `part-0.parquet` of the night and `more`, and not `removed.parquet`.
fn upload_table(server: &Server, below: &str, more: &[(&str, usize)]) {
    let file = parquet_of(&[(Some("live"), Some(&text(1, 40)))]).unwrap();
    let removed = parquet_of(&[(Some("removed"), Some(&text(2, 40)))]).unwrap();
    let own = format!("dt={DT}/part-0.parquet");
    let mut lines = vec![
        r#"{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}"#.to_owned(),
        r#"{"metaData":{"id":"1","format":{"provider":"parquet"},"schemaString":"{}","partitionColumns":["dt"],"configuration":{}}}"#.to_owned(),
    ];
    for (path, size) in [&[(own.as_str(), file.len())], more].concat() {
        let add =
            serde_json::json!({"add": {"path": path, "partitionValues": {"dt": DT}, "size": size, "dataChange": true}});
        lines.push(add.to_string());
    }
    server.put(&format!("{below}/documents/{own}"), file).unwrap();
    server.put(&format!("{below}/documents/dt={DT}/removed.parquet"), removed).unwrap();
    server.put(&format!("{below}/documents/_delta_log/{:020}.json", 0), lines.join("\n").into_bytes()).unwrap();
}

#[test]
fn what_lies_outside_of_the_roots_is_never_asked_for_whoever_names_it() {
    let Some((server, prefix)) = place("roots") else { return eprintln!("no S3 server named: skipped") };
    let below = prefix.split_once('/').unwrap().1.to_owned();
    let secret = parquet_of(&[(Some("secret"), Some(&text(3, 40)))]).unwrap();
    let beside = format!("s3://{prefix}/documents-of-others/secret.parquet");
    server.put(&format!("{below}/documents-of-others/secret.parquet"), secret.clone()).unwrap();
    let paths = [
        beside.as_str(),
        "s3://payroll/secret.parquet",
        &format!("s3://{prefix}/documents/../documents-of-others/secret.parquet"),
        "../documents-of-others/secret.parquet",
    ];
    let proxy = proxy_of(&server, Vec::new());
    let asked = || log(&proxy).into_iter().find(|line| line.contains("payroll") || line.contains("of-others"));
    let own = [format!("s3://{prefix}/documents"), format!("s3://{prefix}/store"), format!("s3://{prefix}/results")];
    let roots: Vec<&str> = own.iter().flat_map(|root| ["--root", root.as_str()]).collect();
    let dir = tempfile::tempdir().unwrap();
    s3_job(dir.path(), &proxy.endpoint(), &prefix);
    for path in paths {
        upload_table(&server, &below, &[(path, secret.len())]);
        for roots in [&[][..], &roots] {
            let done = command(dir.path(), &RUN).args(roots).run().unwrap();
            done.ends_with(&[64], &[]).unwrap();
            assert_eq!(asked(), None, "{path}");
        }
    }
    std::fs::write(dir.path().join("list.txt"), format!("s3://{prefix}/documents/dt={DT}\n{beside}\n")).unwrap();
    let listed = command(dir.path(), &RUN).args(&["--files-from", "list.txt"]).args(&roots).run().unwrap();
    listed.ends_with(&[64], &["documents-of-others/secret.parquet lies outside of --root"]).unwrap();
    let reference = format!("s3://{prefix}/documents-of-others");
    let referring = command(dir.path(), &RUN).args(&["--reference", &reference]).args(&roots).run().unwrap();
    referring.ends_with(&[64], &["references", "lies outside of --root"]).unwrap();
    assert_eq!(asked(), None);
    // What the job allows is read, and `filter` does not copy it out where another job does not.
    upload_table(&server, &below, &[(&beside, secret.len())]);
    let job = std::fs::read_to_string(dir.path().join("job.toml")).unwrap();
    let allowed = format!("clone_roots = [\"s3://{prefix}/documents-of-others\"]\n{job}");
    std::fs::write(dir.path().join("clone.toml"), &allowed).unwrap();
    let run = ["run", "--config", "clone.toml", "--dt", DT, "--json"];
    assert_eq!(nearprint_in(dir.path(), &run).expect_success().json()["n_documents"], 2);
    proxy.set(Vec::new(), 1);
    let out = dir.path().join("out").display().to_string();
    let with_out = format!("roots = {:?}\n{job}", own.iter().chain([&out]).collect::<Vec<_>>());
    std::fs::write(dir.path().join("roots.toml"), with_out).unwrap();
    let filter = ["filter", "--config", "roots.toml", "--dt", DT, "--output", &out];
    nearprint_in(dir.path(), &filter)
        .ends_with(&[64], &["documents-of-others/secret.parquet lies outside of"])
        .unwrap();
    assert_eq!(asked(), None);
}

#[test]
fn a_partition_of_a_table_on_s3_is_read_as_one_though_the_table_may_not_be_listed() {
    let Some((server, prefix)) = place("unlisted") else { return eprintln!("no S3 server named: skipped") };
    let below = prefix.split_once('/').unwrap().1.to_owned();
    upload_table(&server, &below, &[]);
    let proxy = proxy_of(&server, Vec::new());
    let dir = tempfile::tempdir().unwrap();
    s3_job(dir.path(), &proxy.endpoint(), &prefix);
    let partition = format!("s3://{prefix}/documents/dt={DT}");
    let lists =
        |name: &str, action: Action| Rule::new(&format!("^GET .*prefix=[^&]*documents%2F{name}(&|$)"), action).unwrap();
    let read = |rules: Vec<Rule>| {
        proxy.set(rules, 1);
        let read =
            ["fingerprint", "--config", "job.toml", "--documents", &partition, "--output", "fp", "--replace", "--json"];
        let done = nearprint_in(dir.path(), &read);
        println!("{}", log(&proxy).join("\n"));
        done
    };
    let forbidden = || refuse(403, "AccessDenied");
    let done = read(vec![lists("", forbidden())]);
    assert_eq!(done.expect_success().json()["n_documents"], 1);
    // Nobody can tell: a warning, once.
    let done =
        read(vec![lists("", forbidden()), lists("(_delta_log|.hoodie|metadata)%2F", forbidden())]).expect_success();
    assert_eq!(done.json()["n_documents"], 2);
    let warning = "/documents: cannot tell whether this is a table, because listing _delta_log/, .hoodie/, metadata/";
    assert_eq!(done.stderr.matches(warning).count(), 1, "{}", done.stderr);
    // What may pass is no permission that is missing.
    read(vec![lists("_delta_log%2F", refuse(503, "SlowDown"))]).ends_with(&[69], &["_delta_log"]).unwrap();
    read(vec![lists("_delta_log%2F", refuse(403, "InvalidAccessKeyId"))]).ends_with(&[77], &["_delta_log"]).unwrap();
}
