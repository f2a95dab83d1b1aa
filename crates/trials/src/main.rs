//! `nearprint-trials`: runs trials against a `nearprint` binary, one JSON row a line; `table` makes the Markdown tables from them.
#![allow(clippy::print_stdout, reason = "a program that prints what it saw")]

fn main() -> nearprint_trials::Result<()> {
    Ok(())
}
