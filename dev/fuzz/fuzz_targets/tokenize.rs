//! Cuts any text with the tokenizer that the environment variable `TOKENIZER` names; see `nearprint_fuzz::check_tokenize`.
#![no_main]

use std::sync::LazyLock;

use nearprint_fuzz::Tokenizer;

static TOKENIZER: LazyLock<Tokenizer> = LazyLock::new(Tokenizer::from_environment);

libfuzzer_sys::fuzz_target!(|data: &[u8]| nearprint_fuzz::check_tokenize(&TOKENIZER, data));
