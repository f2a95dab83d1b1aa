//! The layers, read from the manifests and sources.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, clippy::print_stdout, reason = "tests")]

mod support;

use support::root;

const PURE: [&str; 3] = ["tokenize", "fingerprint", "join"];

#[test]
fn pure_crates_depend_on_nothing_that_does_io_or_knows_arrow() {
    for name in PURE {
        let manifest = std::fs::read_to_string(root().join(format!("crates/{name}/Cargo.toml"))).unwrap();
        let dependencies = manifest.split("[dependencies]").nth(1).unwrap().split("[dev-dependencies]").next().unwrap();
        for foreign in
            ["arrow", "parquet", "datafusion", "object_store", "tokio", "serde_json", "tracing", "nearprint-pipeline"]
        {
            assert!(!dependencies.contains(foreign), "{name} depends on {foreign}");
        }
    }
    let tokenize = std::fs::read_to_string(root().join("crates/tokenize/Cargo.toml")).unwrap();
    assert!(!tokenize.contains("nearprint-fingerprint"), "tokenize and fingerprint meet at (bytes, weight)");
}

#[test]
fn pure_crates_do_no_io_and_start_no_threads() {
    for name in PURE {
        for (path, text) in support::snapshot(&root().join(format!("crates/{name}/src"))) {
            let text = String::from_utf8_lossy(&text).into_owned();
            for call in
                ["std::fs", "std::net", "std::env", "std::thread", "std::time", "std::process", "println!", "eprintln!"]
            {
                assert!(!text.contains(call), "{name}/{} uses {call}", path.display());
            }
        }
    }
}

#[test]
fn unsafe_code_lives_only_in_kernels() {
    let mut n_kernels = 0;
    for (path, text) in support::snapshot(&root().join("crates")) {
        let path = path.display().to_string();
        let text = String::from_utf8_lossy(&text).into_owned();
        // A content policy has the word in a name of its own.
        let text = text.replace("'unsafe-inline'", "");
        if !path.ends_with(".rs") || path.ends_with("tidy.rs") || !text.contains("unsafe") {
            continue;
        }
        assert!(path.contains("/src/kernel/"), "{path} is unsafe");
        n_kernels += 1;
    }
    assert!(n_kernels > 1);
}

#[test]
fn only_the_command_knows_clap_and_job_files() {
    let manifest = std::fs::read_to_string(root().join("crates/pipeline/Cargo.toml")).unwrap();
    for foreign in ["clap", "toml", "indicatif", "anyhow"] {
        assert!(!manifest.lines().any(|line| line.starts_with(foreign)), "pipeline depends on {foreign}");
    }
}

#[test]
fn shipped_job_files_are_accepted() {
    for job in ["nightly.toml", "sample.toml"] {
        let path = root().join("jobs").join(job);
        let done = support::nearprint_in(
            tempfile::tempdir().unwrap().path(),
            &["run", "--config", path.to_str().unwrap(), "--dt", "1999-01-01", "--create-store"],
        );
        assert_eq!(done.code, 66, "{job}: {}", done.stderr);
        assert!(done.error().contains("no documents at"), "{job}: {}", done.stderr);
    }
}
