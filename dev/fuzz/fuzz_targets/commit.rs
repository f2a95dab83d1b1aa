//! Reads any bytes as a commit of a store: one that is accepted is refused after any change of a byte.
#![no_main]

use nearprint_store::fuzzing::is_commit;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    // A commit that was pruned has no checksum: it is `{"pruned":N}` and a line break.
    if !is_commit(data) || data.starts_with(b"{\"pruned\"") {
        return;
    }
    for at in 0..data.len().min(4096) {
        let mut bent = data.to_vec();
        bent[at] ^= 1;
        assert!(!is_commit(&bent), "byte {at}");
    }
});
