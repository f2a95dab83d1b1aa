//! The book's commands do what its pages say, word for word, and its links lead somewhere.

use std::collections::BTreeSet;
use std::path::Path;
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
    assert!(said.contains("tutorial.md: 14 commands"), "{said}");
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
