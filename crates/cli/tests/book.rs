//! The book's commands do what its pages say, word for word, and its links lead somewhere.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use nearprint_documents::BadReason;

#[test]
fn every_command_of_the_book_gives_what_its_page_shows() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/book/test.py");
    let Ok(done) = Command::new("python3").arg(script).arg(env!("CARGO_BIN_EXE_nearprint")).output() else {
        eprintln!("skipped: no python3");
        return;
    };
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{said}{}", String::from_utf8_lossy(&done.stderr));
    assert!(said.contains("tutorial.md: 25 commands"), "{said}");
}

#[test]
fn the_store_format_lists_every_reason_of_the_quarantine() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/store-format.md");
    let page = std::fs::read_to_string(page).unwrap();
    let quarantine = page.split("**`quarantine`**").nth(1).unwrap();
    let row = quarantine.lines().find(|line| line.starts_with("| `reason`")).unwrap();
    // The first name is that of the column.
    let listed: BTreeSet<&str> = row.split('`').skip(1).step_by(2).skip(1).collect();
    assert_eq!(listed, BadReason::ALL.into_iter().map(BadReason::name).collect());
}

#[test]
fn the_tests_that_the_invariants_name_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/invariants.md")).unwrap();
    let named: Vec<&str> = page.split('`').skip(1).step_by(2).collect();
    let missing = named.iter().filter(|path| path.contains("/tests/") && !root.join("crates").join(path).is_file());
    assert_eq!(missing.collect::<Vec<_>>(), Vec::<&&str>::new(), "files that are not there");
    let crates = std::fs::read_dir(root.join("crates")).unwrap();
    let tests: String = crates.map(|entry| sources_below(&entry.unwrap().path())).collect();
    let is_test =
        |name: &&&str| name.matches('_').count() > 3 && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    let missing = named.iter().filter(is_test).filter(|name| !tests.contains(&format!("fn {name}(")));
    assert_eq!(missing.collect::<Vec<_>>(), Vec::<&&str>::new(), "tests that are not there");
}

/// Returns all Rust sources below a folder; none if it is not there.
fn sources_below(folder: &Path) -> String {
    let Ok(entries) = std::fs::read_dir(folder) else { return String::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    let source = |path: PathBuf| match path.extension() {
        Some(ending) if ending == "rs" => std::fs::read_to_string(path).unwrap(),
        _ => sources_below(&path),
    };
    paths.map(source).collect()
}
