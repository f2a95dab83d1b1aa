//! Decodes any bytes as a page of packed deltas: an error or that many values, never a panic.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((&n, page)) = data.split_first() else { return };
    let mut values = vec![0; usize::from(n)];
    let decoded = nearprint_parquet::fuzzing::decode_deltas(page, &mut values);
    let again = nearprint_parquet::fuzzing::decode_deltas(page, &mut vec![1; usize::from(n)]);
    assert_eq!(decoded.is_ok(), again.is_ok());
});
