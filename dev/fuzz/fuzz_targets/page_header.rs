//! Reads any bytes as a Parquet page header, as the guard and as its reader do; see `guard_agrees`.
#![no_main]

#[path = "../../../crates/parquet/tests/guard_agrees/mod.rs"]
mod guard_agrees;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    guard_agrees::check_page_header(data);
});
