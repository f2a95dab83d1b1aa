//! Reads any bytes that the guard lets pass as a Parquet footer: the reader may take little for each of them.
#![no_main]

#[path = "../../../crates/parquet/tests/agreement/mod.rs"]
mod agreement;

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static GLOBAL: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The memory for a column deep in groups, whose path is held, for the fewest bytes that describe one; and for what there is once.
const BYTES_EACH: usize = 1000;
const BYTES_ONCE: usize = 64 << 10;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let region = Region::new(GLOBAL);
    agreement::check_footer(data);
    let taken = region.change().bytes_allocated;
    assert!(taken <= BYTES_ONCE + BYTES_EACH * data.len(), "{taken} bytes for {}", data.len());
});
