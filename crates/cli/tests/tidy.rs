//! The layers, read from the manifests and sources.

use crate::structure;
use crate::support::{self, root};

/// The crates from the ground up: each may depend on those before it, and on no other.
const FLOORS: [&str; 23] = [
    "fault",
    "tokenize",
    "fingerprint",
    "join",
    "warc",
    "html",
    "profile",
    "storage",
    "parquet",
    "delta",
    "iceberg",
    "documents",
    "store",
    "lookup",
    "explain",
    "serve",
    "tasks",
    "pipeline",
    "night",
    "report",
    "measure",
    "cli",
    "python",
];

/// The crates that users never install. The fuzz targets are a workspace of their own.
const DEV: [&str; 3] = ["dev/bench", "dev/harness", "dev/trials"];

/// They do no I/O.
const PURE: [&str; 6] = ["tokenize", "fingerprint", "join", "warc", "html", "profile"];

/// Returns the dependencies of a crate, as its manifest has them.
fn dependencies(name: &str) -> String {
    let manifest = std::fs::read_to_string(root().join(format!("crates/{name}/Cargo.toml"))).unwrap();
    let dependencies = manifest.split("[dependencies]").nth(1).unwrap();
    dependencies.split("[dev-dependencies]").next().unwrap().to_owned()
}

#[test]
fn no_crate_depends_on_one_above_it() {
    for (floor, name) in FLOORS.iter().enumerate() {
        let dependencies = dependencies(name);
        for line in dependencies.lines().filter_map(|line| line.strip_prefix("nearprint-")) {
            let other = line.split(['.', ' ', '=']).next().unwrap();
            // The wheel that CI builds may ask for it.
            if other == "harness" && line.contains("optional = true") {
                continue;
            }
            assert!(FLOORS[..floor].contains(&other), "{name} depends on {other}");
        }
    }
    let all = std::fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().file_name());
    for name in all.map(|name| name.into_string().unwrap()) {
        assert!(FLOORS.contains(&name.as_str()), "{name} has no floor");
    }
}

#[test]
fn datafusion_is_known_to_the_pipeline_alone_and_arrow_to_what_reads_and_writes() {
    for name in FLOORS {
        let dependencies = dependencies(name);
        assert!(!dependencies.contains("datafusion") || name == "pipeline", "{name} depends on DataFusion");
        let has_arrow = dependencies.lines().any(|line| line.starts_with("arrow") || line.starts_with("parquet"));
        let may = matches!(
            name,
            "parquet"
                | "delta"
                | "iceberg"
                | "documents"
                | "store"
                | "lookup"
                | "tasks"
                | "pipeline"
                | "night"
                | "report"
                | "measure"
                | "cli"
                | "python"
        );
        assert!(!has_arrow || may, "{name} depends on Arrow");
        let has_object_store = dependencies.lines().any(|line| line.starts_with("object_store"));
        assert!(!has_object_store || name == "storage", "{name} depends on object_store");
    }
}

#[test]
fn modules_import_each_other_in_no_circle() {
    let crates = FLOORS.iter().map(|name| format!("crates/{name}"));
    for name in crates.chain(DEV.map(str::to_owned)) {
        let imports = structure::imports(&root().join(&name).join("src"));
        assert!(imports.len() > 3, "{name} has modules");
        assert_eq!(structure::circle(&imports), None, "{name}");
    }
}

#[test]
fn pure_crates_depend_on_nothing_that_does_io_or_knows_arrow() {
    for name in PURE {
        let dependencies = dependencies(name);
        for foreign in ["arrow", "parquet", "datafusion", "object_store", "tokio", "tracing"] {
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
    let folders = DEV.into_iter().chain(["crates"]);
    for (path, text) in folders.flat_map(|folder| support::snapshot(&root().join(folder))) {
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
    for name in FLOORS.into_iter().filter(|&name| name != "cli") {
        let dependencies = dependencies(name);
        for foreign in ["clap", "toml", "indicatif", "anyhow"] {
            assert!(!dependencies.lines().any(|line| line.starts_with(foreign)), "{name} depends on {foreign}");
        }
    }
}

#[test]
fn http_is_served_by_one_crate() {
    for name in FLOORS.into_iter().filter(|&name| name != "serve") {
        for foreign in ["axum", "prometheus-client"] {
            assert!(!dependencies(name).contains(foreign), "{name} depends on {foreign}");
        }
    }
}

#[test]
fn only_the_wheel_knows_python() {
    for name in FLOORS.into_iter().filter(|&name| name != "python") {
        assert!(!dependencies(name).contains("pyo3"), "{name} depends on Python");
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
