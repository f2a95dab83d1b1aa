//! The settings that profiles of published programs share.

use nearprint_fingerprint::FingerprintConfig;
use nearprint_tokenize::{TokenizeConfig, TokenizerConfig, TokenizerKind};

use super::java;
use crate::config::ProfileConfig;

/// Makes the tokenizing that the published programs share: every token of the text as it is, weighted by its count, and
/// any text that has a token.
pub fn as_it_is(kind: TokenizerKind) -> TokenizeConfig {
    let java = java::profile().tokenize;
    TokenizeConfig { tokenizer: TokenizerConfig { kind, ..java.tokenizer }, ..java }
}

/// Makes the profile of a published program's fingerprint, without its search and without a sketch: a pair is two
/// documents within the distance of the paper.
pub fn published(bits: u32, tokenize: TokenizeConfig, fingerprint: FingerprintConfig) -> ProfileConfig {
    ProfileConfig { bits, tokenize, fingerprint, ..java::profile() }
}
