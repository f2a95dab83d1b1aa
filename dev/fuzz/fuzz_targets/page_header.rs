//! Reads any bytes as a Parquet page header, as the guard and as its reader do; see `agreement`.
#![no_main]

#[path = "../../../crates/parquet/tests/agreement/mod.rs"]
mod agreement;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    agreement::check_page_header(data);
});
