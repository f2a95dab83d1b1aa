use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;

use nearprint_fingerprint::{BitRule, FeatureHash, Fingerprint, FingerprintConfig, simhash, simhash_of_hashes};
use nearprint_fingerprint::{sketch, token_hash};
use nearprint_tokenize::{Analyzer, FeatureConfig, Resources, Scratch, StopWordsConfig, TokenizeConfig};
use nearprint_tokenize::{TokenizerConfig, TokenizerKind, Tokens, Top, Weight};

use crate::textbook;

/// One kind of tokenizer, with the analyzers of the settings seen so far.
pub struct Tokenizer {
    kind: TokenizerKind,
}

impl Tokenizer {
    /// The kind that the environment variable `TOKENIZER` names, as in a job file.
    pub fn from_environment() -> Self {
        let name = std::env::var("TOKENIZER").unwrap_or_default();
        let kind = TokenizerKind::ALL.into_iter().find(|kind| kind.to_string() == name);
        Self { kind: kind.expect("TOKENIZER names a tokenizer, such as bigrams") }
    }
}

const HEADER: usize = 8;

/// The tokens lie in the text in order, cover what they should and are those of the textbook; counting them gives the same ones; and
/// their fingerprint and sketch are those that plain sums and plain minima give.
///
/// Eight bytes of settings, then the text.
pub fn check_tokenize(tokenizer: &Tokenizer, data: &[u8]) {
    let Some((settings, text)) = data.split_first_chunk::<HEADER>() else {
        return;
    };
    let settings = Settings::new(tokenizer.kind, settings);
    let text = &*String::from_utf8_lossy(text);
    settings.with_analyzer(|analyzer| {
        let text = if settings.as_is { Cow::Borrowed(text) } else { analyzer.normalize(text) };
        let tokens = analyzer.tokens(&text);
        check_places(&settings, &text, &tokens);
        check_textbook(&settings, &text, &tokens);
        check_distinct(&settings, analyzer, &text, &tokens);
        check_fingerprint(&settings, analyzer, &text, &tokens);
    });
}

struct Settings {
    kind: TokenizerKind,
    drop_symbols: bool,
    hmm: bool,
    as_is: bool,
    single_characters: bool,
    builtin: bool,
    cppjieba: bool,
    parts_of_speech: bool,
    ngram: usize,
    features: FeatureConfig,
    fingerprint: FingerprintConfig,
    width: usize,
    bits: u32,
    seed: u64,
}

impl Settings {
    fn new(kind: TokenizerKind, settings: &[u8; HEADER]) -> Self {
        let [flags, ngram, weight, shingle, hash, rule, width, bits] = *settings;
        let on = |bit: u8| flags >> bit & 1 == 1;
        // Pieces of characters are no words: such settings are refused.
        let of_words = kind != TokenizerKind::BytePieces;
        // And so are those that a tokenizer does not look at.
        let has_model = matches!(kind, TokenizerKind::Mixed | TokenizerKind::Jieba | TokenizerKind::Cppjieba);
        let has_pieces = matches!(
            kind,
            TokenizerKind::CharNgrams
                | TokenizerKind::WordCharNgrams
                | TokenizerKind::FullWordCharNgrams
                | TokenizerKind::Utf16Ngrams
                | TokenizerKind::BytePieces
        );
        let seed = u64::from(bits >> 2);
        let weight = match weight % 9 {
            0 => Weight::Count,
            1 | 2 => Weight::LogCount,
            3 => Weight::Set,
            4 => Weight::CappedCount { cap: 6 },
            5 => Weight::ByteLength,
            6 if of_words => Weight::TfIdf { top: Top::All },
            7 if of_words => Weight::TfIdf { top: Top::Auto },
            8 if of_words => Weight::TfIdf { top: Top::Best(3) },
            _ => Weight::Count,
        };
        let of_tokens = matches!(weight, Weight::ByteLength | Weight::TfIdf { .. });
        let feature_hash = match hash % 10 {
            0 => FeatureHash::Xxh3 { seed },
            1 => FeatureHash::JavaPlain,
            2 => FeatureHash::JavaPad3,
            3 => FeatureHash::Md5First,
            4 => FeatureHash::Md5Last,
            5 => FeatureHash::RustSipHash24 { k0: seed, k1: 6 },
            6 => FeatureHash::RustFnv1a,
            7 => FeatureHash::Lookup3,
            8 => FeatureHash::Bkdr131,
            _ => FeatureHash::MurmurSigned,
        };
        let rules =
            [BitRule::Positive, BitRule::NonNegative, BitRule::Negative, BitRule::AboveOne, BitRule::FloatPositive];
        let widths = feature_hash.widths();
        Self {
            kind,
            drop_symbols: on(0) && of_words,
            hmm: on(1) && has_model,
            as_is: on(2),
            single_characters: on(3) && of_words,
            builtin: on(4) && of_words,
            cppjieba: on(5) && of_words,
            parts_of_speech: on(6) && matches!(kind, TokenizerKind::Mixed | TokenizerKind::Jieba),
            ngram: match ngram {
                _ if !has_pieces => TokenizerConfig::default().ngram,
                248.. => 1000,
                _ => 1 + usize::from(ngram % 8),
            },
            features: FeatureConfig { shingle: if of_tokens { 1 } else { 1 + usize::from(shingle % 4) }, weight, ..FeatureConfig::default() },
            bits: widths[usize::from(bits & 3) % widths.len()],
            fingerprint: FingerprintConfig { feature_hash, bit_rule: rules[usize::from(rule) % rules.len()] },
            width: usize::from(width % 5),
            seed,
        }
    }

    fn has_stop_words(&self) -> bool {
        self.builtin || self.cppjieba
    }

    fn with_analyzer<T>(&self, body: impl FnOnce(&Analyzer) -> T) -> T {
        let stop_words = StopWordsConfig {
            builtin: self.builtin,
            drop_parts_of_speech: if self.parts_of_speech { vec!["u".into(), "x".into()] } else { vec![] },
            cppjieba: self.cppjieba,
            single_characters: self.single_characters,
        };
        with_analyzer(self.tokenizer(), stop_words, body)
    }

    fn tokenizer(&self) -> TokenizerConfig {
        TokenizerConfig {
            kind: self.kind,
            hmm: self.hmm,
            ngram: self.ngram,
            drop_tokens_without_alphanumeric: self.drop_symbols,
            ..TokenizerConfig::default()
        }
    }
}

thread_local! {
    static ANALYZERS: RefCell<HashMap<String, &'static Analyzer>> = RefCell::default();
}

/// Analyzers are made once for each config, and never freed.
fn with_analyzer<T>(tokenizer: TokenizerConfig, stop_words: StopWordsConfig, body: impl FnOnce(&Analyzer) -> T) -> T {
    let analyzer = ANALYZERS.with_borrow_mut(|analyzers| {
        *analyzers.entry(format!("{tokenizer:?} {stop_words:?}")).or_insert_with(|| {
            let config = TokenizeConfig { tokenizer, stop_words, ..TokenizeConfig::default() };
            let made = Analyzer::try_new(&config, &Resources::default()).expect("settings that go together");
            Box::leak(Box::new(made))
        })
    });
    body(analyzer)
}

/// Tokens are not empty and are in order; where none overlap, they do not; where they should cover the text, they do.
fn check_places(settings: &Settings, text: &str, tokens: &Tokens<'_>) {
    let kind = settings.kind;
    let is_ngrams = matches!(kind, TokenizerKind::CharNgrams | TokenizerKind::WordCharNgrams);
    let overlaps = is_ngrams || kind == TokenizerKind::Bigrams;
    // Slicing at anything but a character boundary would have panicked, so what a token's address says is a boundary too.
    let places: Vec<(usize, usize)> =
        tokens.iter().map(|token| (token.as_ptr() as usize, token.as_ptr() as usize + token.len())).collect();
    assert!(places.iter().all(|place| place.0 < place.1), "no token is empty: {text:?}");
    for pair in places.windows(2) {
        let in_order = if overlaps { pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1 } else { pair[0].1 <= pair[1].0 };
        assert!(in_order, "in order: {text:?}");
    }
    let drops_more = settings.has_stop_words() || settings.single_characters || settings.parts_of_speech;
    if drops_more || is_ngrams || matches!(kind, TokenizerKind::BytePieces | TokenizerKind::Utf16Ngrams) {
        return;
    }
    // Which bytes of the text are in a token.
    let mut covered = vec![false; text.len()];
    let base = text.as_ptr() as usize;
    for &(start, end) in &places {
        covered[start - base..end - base].fill(true);
    }
    for (at, c) in text.char_indices() {
        let must = match kind {
            TokenizerKind::Jieba | TokenizerKind::Cppjieba if !settings.drop_symbols => true,
            _ if settings.drop_symbols => textbook::is_alphanumeric(c),
            TokenizerKind::AsciiWords => !c.is_ascii_whitespace() && !c.is_ascii_punctuation(),
            _ => !c.is_whitespace(),
        };
        // ASCII words leave ASCII punctuation out only, which is no letter.
        assert!(!must || covered[at], "{c:?} at {at} is in a token: {kind} {text:?}");
    }
    if settings.drop_symbols {
        for token in tokens.iter() {
            assert!(token.chars().any(textbook::is_alphanumeric), "no symbols alone: {token:?} {text:?}");
        }
    }
    if matches!(kind, TokenizerKind::Mixed | TokenizerKind::Words | TokenizerKind::Bigrams) {
        for token in tokens.iter() {
            assert!(!token.contains(char::is_whitespace), "no white space: {token:?} {text:?}");
        }
    }
}

/// The tokens are those of the tokenizer's definition. jieba's own cutting is taken for granted.
fn check_textbook(settings: &Settings, text: &str, tokens: &Tokens<'_>) {
    if settings.has_stop_words() {
        return;
    }
    let jieba = |run: &str| -> Vec<String> {
        let drop_parts_of_speech = if settings.parts_of_speech { vec!["u".into(), "x".into()] } else { vec![] };
        let tokenizer = TokenizerConfig {
            kind: TokenizerKind::Jieba,
            drop_tokens_without_alphanumeric: false,
            ..settings.tokenizer()
        };
        let stop_words = StopWordsConfig { drop_parts_of_speech, ..StopWordsConfig::default() };
        with_analyzer(tokenizer, stop_words, |analyzer| analyzer.tokens(run).iter().map(str::to_owned).collect())
    };
    let n = settings.ngram;
    let mut expected: Vec<String> = match settings.kind {
        TokenizerKind::Bigrams => textbook::by_script(text, textbook::pairs),
        TokenizerKind::Mixed => textbook::by_script(text, jieba),
        TokenizerKind::Words => textbook::words(text),
        TokenizerKind::Whitespace => text.split_whitespace().map(str::to_owned).collect(),
        TokenizerKind::CharNgrams => textbook::windows(text, n, |c| !c.is_whitespace()),
        TokenizerKind::WordCharNgrams => textbook::windows(text, n, textbook::is_python_word),
        TokenizerKind::FullWordCharNgrams => {
            let windows = textbook::windows(text, n, textbook::is_python_word);
            windows.into_iter().filter(|window| window.chars().count() == n).collect()
        }
        TokenizerKind::AsciiWhitespace => {
            let words = text.split(|c: char| c.is_ascii_whitespace() || c == '\x0b');
            words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
        }
        TokenizerKind::Utf16Ngrams => textbook::utf16_windows(text, n),
        TokenizerKind::BytePieces => textbook::byte_pieces(text, n),
        TokenizerKind::AsciiWords => {
            let words = text.split(|c: char| c.is_ascii_punctuation() || c.is_ascii_whitespace());
            words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
        }
        // The vectors and the independent reader hold `pairs` to its definition.
        TokenizerKind::Pairs | TokenizerKind::Jieba | TokenizerKind::Cppjieba => return,
    };
    expected.retain(|token| {
        (!settings.drop_symbols || token.chars().any(textbook::is_alphanumeric))
            && (!settings.single_characters || token.chars().nth(1).is_some())
    });
    assert!(tokens.iter().eq(expected.iter()), "{}: {text:?}: {tokens:?} are {expected:?}", settings.kind);
}

/// The counted tokens are the tokens, counted; also after another text in the same memory.
fn check_distinct(settings: &Settings, analyzer: &Analyzer, text: &str, tokens: &Tokens<'_>) {
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut expected: Vec<(&[u8], u64)> = Vec::new();
    let mut sequence: Vec<u32> = Vec::new();
    for token in tokens.iter() {
        let number = *numbers.entry(token).or_insert_with(|| {
            expected.push((token.as_bytes(), 0));
            expected.len() - 1
        });
        expected[number].1 += 1;
        sequence.push(number as u32);
    }
    let mut scratch = Scratch::default();
    let half = text.floor_char_boundary(text.len() / 2);
    for part in ["", &text[half..], text] {
        let _ = analyzer.distinct_tokens(part, &mut scratch).len();
    }
    let distinct = analyzer.distinct_tokens(text, &mut scratch);
    assert!(distinct.iter().eq(expected.iter().copied()), "distinct tokens: {} {text:?}", settings.kind);
    assert_eq!(distinct.sequence(), sequence, "sequence: {} {text:?}", settings.kind);
    assert_eq!((distinct.len(), distinct.is_empty()), (expected.len(), expected.is_empty()));

    if analyzer.features_are_tokens(&settings.features) {
        let features = analyzer.features(tokens, &settings.features);
        let weight = settings.features.weight;
        let weighted = expected.iter().map(|&(token, count)| (token, weight.of(count)));
        assert!(features.iter().eq(weighted), "features are tokens: {} {text:?}", settings.kind);
    }

    let hashes: Vec<u64> = expected.iter().map(|(token, _)| token_hash(token, settings.seed)).collect();
    let counts = expected.iter().map(|(_, count)| *count);
    let made = sketch(&hashes, counts, &sequence, settings.width);
    assert_eq!(made.0, textbook::sketch(&hashes, &sequence, settings.width), "sketch: {} {text:?}", settings.kind);
}

fn check_fingerprint(settings: &Settings, analyzer: &Analyzer, text: &str, tokens: &Tokens<'_>) {
    let features = analyzer.features(tokens, &settings.features);
    let features: Vec<(&[u8], u64)> = features.iter().collect();
    let _ = analyzer.has_enough(text, features.len());
    if settings.kind == TokenizerKind::BytePieces && settings.features.shingle == 1 {
        let mut pieces: Vec<&[u8]> = text.as_bytes().chunks(settings.ngram).collect();
        let mut shown: Vec<&[u8]> = features.iter().map(|(feature, _)| *feature).collect();
        pieces.sort_unstable();
        pieces.dedup();
        shown.sort_unstable();
        assert_eq!(shown, pieces, "features are pieces: {text:?}");
    }
    match settings.bits {
        32 => check_simhash::<u32>(&features, settings),
        64 => check_simhash::<u64>(&features, settings),
        _ => check_simhash::<u128>(&features, settings),
    }
}

fn check_simhash<F: Fingerprint>(features: &[(&[u8], u64)], settings: &Settings) {
    let config = &settings.fingerprint;
    let hashes: Vec<(F, u64)> =
        features.iter().map(|(feature, weight)| (config.feature_hash.hash(feature), *weight)).collect();
    let expected: F = textbook::simhash(&hashes, config.bit_rule);
    assert_eq!(simhash::<F>(features.iter().copied(), config), expected, "{config:?} {features:?}");
    assert_eq!(simhash_of_hashes::<F>(hashes, config), expected);
}
