//! Short ways to an analyzer, shared by the tests.

use nearprint_tokenize::{Analyzer, NormalizeConfig, Resources, TokenizeConfig, TokenizerConfig, TokenizerKind};

/// No normalisation at all.
pub const AS_IS: NormalizeConfig = NormalizeConfig::NONE;

/// All steps but the decoding of HTML entities and the removal of special characters.
pub const WITHOUT_HTML: NormalizeConfig = NormalizeConfig {
    nfkc: true,
    case_fold: true,
    html_entities: false,
    control_characters: true,
    white_space: true,
    special_characters: false,
    lower_case: false,
};

/// The defaults, but for the tokenizer.
pub fn kind(kind: TokenizerKind) -> TokenizeConfig {
    TokenizeConfig { tokenizer: TokenizerConfig { kind, ..TokenizerConfig::default() }, ..TokenizeConfig::default() }
}

/// An analyzer without any user file.
pub fn analyzer(config: &TokenizeConfig) -> Analyzer {
    Analyzer::try_new(config, &Resources::default()).unwrap()
}

/// The text as the given steps leave it. Needs no dictionary.
pub fn normalized(text: &str, normalize: NormalizeConfig) -> String {
    let config = TokenizeConfig { normalize, ..kind(TokenizerKind::Whitespace) };
    analyzer(&config).normalize(text).into_owned()
}

/// The tokens of a text that is normalised already.
pub fn tokens(text: &str, config: &TokenizeConfig) -> Vec<String> {
    analyzer(config).tokens(text).iter().map(String::from).collect()
}
