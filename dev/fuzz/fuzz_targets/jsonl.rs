//! Reads any bytes as a line of documents: what a JSON library makes of its `id` and `text`, the reader makes of them too.
#![no_main]

use serde_json::{Map, Value};

libfuzzer_sys::fuzz_target!(|line: &[u8]| {
    let whole: Option<Map<String, Value>> = serde_json::from_slice(line).ok();
    let read = nearprint_documents::fuzzing::id_and_text(line);
    if let (Some(whole), Some([id, text])) = (&whole, &read) {
        assert_eq!(id.as_deref(), whole.get("id").and_then(Value::as_str));
        assert_eq!(text.as_deref(), whole.get("text").and_then(Value::as_str));
    }
    // Values that are passed over may hold what a library would refuse, such as half a surrogate pair; never the other way round.
    assert!(whole.is_none() || read.is_some(), "a line that is an object was refused");
});
