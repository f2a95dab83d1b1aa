//! Decodes any bytes as a page of packed deltas: an error or that many values, the same with any instructions, never a
//! panic.
#![no_main]

use nearprint_parquet::DeltaKernel;
use nearprint_parquet::fuzzing::decode_deltas;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((&n, page)) = data.split_first() else { return };
    let mut values = vec![0; usize::from(n)];
    let decoded = decode_deltas(page, &mut values, DeltaKernel::SCALAR);
    let mut again = vec![1; usize::from(n)];
    assert_eq!(decoded.is_ok(), decode_deltas(page, &mut again, DeltaKernel::best()).is_ok());
    assert!(decoded.is_err() || values == again);
});
