use std::borrow::Cow;
use std::cell::RefCell;

use nearprint_tokenize::{Analyzer, NormalizeConfig, Resources, TokenizeConfig, TokenizerConfig, TokenizerKind, naive};

/// No config panics, the one-pass result is that of the steps one by one, and twice is once but for HTML entities.
///
/// One byte of settings, then the text.
pub fn check_normalize(data: &[u8]) {
    let Some((&settings, text)) = data.split_first() else {
        return;
    };
    let text = &*String::from_utf8_lossy(text);
    let config = config_of(settings);
    let normalized = with_analyzer(&config, |analyzer| {
        let normalized = analyzer.normalize(text);
        if is_one_pass(&config) && !text.contains('&') {
            assert_eq!(
                matches!(normalized, Cow::Borrowed(_)),
                normalized == text,
                "borrowed when nothing changes: {text:?}"
            );
        }
        normalized.into_owned()
    });
    assert_eq!(normalized, naive::normalize(text, &config), "the steps one by one: {config:?} {text:?}");
    if is_idempotent(&config) {
        let without_html = NormalizeConfig { html_entities: false, ..config };
        let twice = with_analyzer(&without_html, |analyzer| analyzer.normalize(&normalized).into_owned());
        assert_eq!(twice, normalized, "twice is once: {without_html:?} {text:?}");
    }
}

/// Half of the settings are the two configs of the one pass, with HTML entities and without.
fn config_of(settings: u8) -> NormalizeConfig {
    let on = |bit: u8| settings >> bit & 1 == 1;
    if on(7) {
        return NormalizeConfig { html_entities: on(0), ..NormalizeConfig::default() };
    }
    NormalizeConfig {
        nfkc: on(0),
        case_fold: on(1),
        html_entities: on(2),
        control_characters: on(3),
        white_space: on(4),
        special_characters: on(5),
        lower_case: on(6),
    }
}

fn is_one_pass(config: &NormalizeConfig) -> bool {
    *config == NormalizeConfig { html_entities: config.html_entities, ..NormalizeConfig::default() }
}

/// The law is that of the default steps, with special characters or without.
fn is_idempotent(config: &NormalizeConfig) -> bool {
    let NormalizeConfig { html_entities, special_characters, .. } = *config;
    *config == NormalizeConfig { html_entities, special_characters, ..NormalizeConfig::default() }
}

thread_local! {
    static ANALYZERS: RefCell<Vec<(NormalizeConfig, Analyzer)>> = RefCell::default();
}

/// Analyzers are made once for each config.
fn with_analyzer<T>(normalize: &NormalizeConfig, body: impl FnOnce(&Analyzer) -> T) -> T {
    ANALYZERS.with_borrow_mut(|analyzers| {
        let at = analyzers.iter().position(|(of, _)| of == normalize).unwrap_or_else(|| {
            let tokenizer = TokenizerConfig { kind: TokenizerKind::Whitespace, ..TokenizerConfig::default() };
            let config = TokenizeConfig { normalize: normalize.clone(), tokenizer, ..TokenizeConfig::default() };
            let made = Analyzer::try_new(&config, &Resources::default()).expect("settings that go together");
            analyzers.push((normalize.clone(), made));
            analyzers.len() - 1
        });
        body(&analyzers[at].1)
    })
}
