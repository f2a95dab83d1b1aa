//! Normalises any text under any config; see `nearprint_fuzz::check_normalize`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nearprint_fuzz::check_normalize(data));
