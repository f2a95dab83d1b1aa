//! The book's commands do what its pages say, word for word, and its links lead somewhere.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

use std::path::Path;
use std::process::Command;

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
