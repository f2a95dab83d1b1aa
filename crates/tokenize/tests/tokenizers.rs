//! The cuts of each tokenizer, and its agreement with a naive one.

use std::collections::{BTreeMap, HashSet};

use nearprint_tokenize::{
    Analyzer, FeatureConfig, ONE, Resources, Scratch, StopWordsConfig, TokenizeConfig, TokenizeError, TokenizerConfig,
    TokenizerKind, Weight,
};
use proptest::collection::vec;
use proptest::prelude::*;
use unicode_normalization::char::is_combining_mark;
use unicode_segmentation::UnicodeSegmentation;

use crate::common::{self, AS_IS, analyzer, kind, tokens};

fn keep_all(kind: TokenizerKind) -> TokenizeConfig {
    let tokenizer = TokenizerConfig { kind, drop_tokens_without_alphanumeric: false, ..TokenizerConfig::default() };
    TokenizeConfig { tokenizer, ..TokenizeConfig::default() }
}

fn char_ngrams(ngram: usize) -> TokenizeConfig {
    let mut config = keep_all(TokenizerKind::CharNgrams);
    config.tokenizer.ngram = ngram;
    config
}

#[test]
fn mixed_cuts_han_by_jieba_and_the_rest_by_words() {
    let text = "用 flink-1.17 提交作业，don't panic: foo_bar";
    let expected = ["用", "flink", "1", "17", "提交", "作业", "don", "t", "panic", "foo_bar"];
    assert_eq!(tokens(text, &kind(TokenizerKind::Mixed)), expected);
}

#[test]
fn bigrams_are_pairs_of_han_within_a_run_and_words_elsewhere() {
    let text = "用flink提交作业，大 数据don't";
    assert_eq!(
        tokens(text, &kind(TokenizerKind::Bigrams)),
        ["用", "flink", "提交", "交作", "作业", "大", "数据", "don", "t"]
    );
}

#[test]
fn jieba_keeps_punctuation_and_white_space_unless_they_are_dropped() {
    let text = "你好, 世界";
    assert_eq!(tokens(text, &keep_all(TokenizerKind::Jieba)), ["你好", ",", " ", "世界"]);
    assert_eq!(tokens(text, &kind(TokenizerKind::Jieba)), ["你好", "世界"]);
}

/// The sentence of article 002, as its printed distances need it.
#[test]
fn jieba_with_hmm_finds_the_name_in_the_articles_sentence() {
    let mut config = kind(TokenizerKind::Jieba);
    config.tokenizer.hmm = true;
    let text = "我是蒋固金,欢迎查看我的博客";
    let expected = ["我", "是", "蒋固金", "欢迎", "查看", "我", "的", "博客"];
    assert_eq!(tokens(text, &config), expected);
    assert_eq!(tokens(&text.replace(',', ""), &config), expected, "special characters removed");
}

#[test]
fn words_take_han_one_by_one_and_keep_marks_with_their_letters() {
    let text = "中文 カタカナ हिन्दी naïve ¡vale!";
    let expected = ["中", "文", "カタカナ", "हिन्दी", "naïve", "vale"];
    assert_eq!(tokens(text, &kind(TokenizerKind::Words)), expected);
}

#[test]
fn symbols_are_tokens_of_their_own_when_they_are_kept() {
    assert_eq!(tokens("a -> b!!", &keep_all(TokenizerKind::Words)), ["a", "-", ">", "b", "!", "!"]);
    assert_eq!(tokens("| --- | _ |", &kind(TokenizerKind::Words)), [""; 0]);
}

#[test]
fn white_space_of_any_script_separates() {
    let text = "a\u{3000}b,c\n--- d";
    assert_eq!(tokens(text, &kind(TokenizerKind::Whitespace)), ["a", "b,c", "d"]);
}

#[test]
fn ascii_white_space_is_what_a_cpp_stream_skips() {
    let text = "a\u{3000}b\u{A0}c d\te\nf\u{B}g\u{C}h\ri\u{85}j\u{1F}k  ";
    let expected = ["a\u{3000}b\u{A0}c", "d", "e", "f", "g", "h", "i\u{85}j\u{1F}k"];
    assert_eq!(tokens(text, &keep_all(TokenizerKind::AsciiWhitespace)), expected);
}

#[test]
fn character_windows_ignore_white_space() {
    assert_eq!(tokens("ab c\n文", &char_ngrams(3)), ["abc", "bc文"]);
    assert_eq!(tokens("a b", &char_ngrams(3)), ["ab"]);
    assert_eq!(tokens(" \n", &char_ngrams(3)), [""; 0]);
}

#[test]
fn the_users_dictionary_joins_and_tags_its_words() {
    let dictionary = "蒋固金 10 nr\n\n云计算平台\n石墨烯电池 n\n".to_owned();
    let resources = Resources { user_dictionary: Some(dictionary), ..Resources::default() };
    let text = "蒋固金欢迎云计算平台和石墨烯电池";
    let mut config = kind(TokenizerKind::Mixed);
    let cut = |config: &TokenizeConfig| {
        let analyzer = Analyzer::try_new(config, &resources).unwrap();
        analyzer.tokens(text).iter().map(String::from).collect::<Vec<_>>()
    };
    assert_eq!(cut(&config), ["蒋固金", "欢迎", "云计算平台", "和", "石墨烯电池"]);
    assert_eq!(tokens(text, &config)[..3], ["蒋", "固", "金"].map(String::from));
    config.stop_words.drop_parts_of_speech = vec!["nr".into(), "c".into()];
    assert_eq!(cut(&config), ["欢迎", "云计算平台", "石墨烯电池"]);
}

#[test]
fn a_bad_dictionary_line_is_named() {
    for (bad, reason) in [
        ("词 0", "a frequency of 0"),
        ("词 -1", "a frequency that is no positive 32-bit integer"),
        ("词 4294967296", "a frequency that is no positive 32-bit integer"),
        ("词 1 n x", "too many fields"),
        ("词 n 1", "too many fields"),
        ("\u{200B} 1", "nothing is left of the word once normalised"),
    ] {
        let user_dictionary = Some(format!("好词 3 n\n{bad}\n"));
        let resources = Resources { user_dictionary, ..Resources::default() };
        let error = Analyzer::try_new(&kind(TokenizerKind::Mixed), &resources).err();
        let expected = TokenizeError::UserDictionary { line: 2, text: bad.to_owned(), reason };
        assert_eq!(error, Some(expected));
    }
}

#[test]
fn settings_that_a_tokenizer_does_not_look_at_are_refused_unless_they_are_the_defaults() {
    let refused = |kind, hmm, ngram| {
        let tokenizer = TokenizerConfig { kind, hmm, ngram, drop_tokens_without_alphanumeric: false, long_run: 0 };
        let config = TokenizeConfig { tokenizer, ..TokenizeConfig::default() };
        match Analyzer::try_new(&config, &Resources::default()).err() {
            Some(TokenizeError::UnusedByTokenizer { key, .. }) => Some(key),
            None => None,
            other => panic!("{other:?}"),
        }
    };
    for kind in TokenizerKind::ALL {
        let has_hmm = matches!(kind, TokenizerKind::Mixed | TokenizerKind::Jieba | TokenizerKind::Cppjieba);
        let has_ngram = kind.to_string().contains("ngrams") || kind == TokenizerKind::BytePieces;
        assert_eq!(refused(kind, false, 4), None, "{kind}");
        assert_eq!(refused(kind, true, 4), (!has_hmm).then_some("tokenizer.hmm"), "{kind}");
        assert_eq!(refused(kind, false, 3), (!has_ngram).then_some("tokenizer.ngram"), "{kind}");
    }
}

#[test]
fn settings_that_a_tokenizer_cannot_honour_are_refused() {
    let words = kind(TokenizerKind::Words);
    let resources = Resources { user_dictionary: Some(String::new()), ..Resources::default() };
    let no_dictionary = TokenizeError::NoDictionary { kind: TokenizerKind::Words };
    assert_eq!(Analyzer::try_new(&words, &resources).err(), Some(no_dictionary));
    let drop_parts_of_speech = vec!["u".to_owned()];
    let config =
        TokenizeConfig { stop_words: StopWordsConfig { drop_parts_of_speech, ..StopWordsConfig::default() }, ..words };
    let no_tags = TokenizeError::NoPartsOfSpeech { kind: TokenizerKind::Words };
    assert_eq!(Analyzer::try_new(&config, &Resources::default()).err(), Some(no_tags));

    let cppjieba = kind(TokenizerKind::Cppjieba);
    let no_dictionary = TokenizeError::NoDictionary { kind: TokenizerKind::Cppjieba };
    assert_eq!(Analyzer::try_new(&cppjieba, &resources).err(), Some(no_dictionary));
    let pieces = kind(TokenizerKind::BytePieces);
    let no_characters = TokenizeError::NoCharacters { key: "tokenizer.drop_tokens_without_alphanumeric" };
    assert_eq!(Analyzer::try_new(&pieces, &Resources::default()).err(), Some(no_characters));
    let mut pieces = keep_all(TokenizerKind::BytePieces);
    pieces.stop_words.single_characters = true;
    let no_characters = TokenizeError::NoCharacters { key: "stop_words.single_characters" };
    assert_eq!(Analyzer::try_new(&pieces, &Resources::default()).err(), Some(no_characters));
}

#[test]
fn cppjieba_cuts_as_the_program_does() {
    let mut config = keep_all(TokenizerKind::Cppjieba);
    config.tokenizer.hmm = true;
    assert_eq!(tokens("吃了吗？旺旺！", &config), ["吃", "了吗", "？", "旺旺", "！"]);
    assert_eq!(tokens("“旺吧”！、耶", &config), ["“", "旺", "吧", "”", "！", "、", "耶"]);
}

/// cppjieba's rule since 5.6.3: `[0-9A-Za-z]+(\.[0-9]+)?`, or one character.
#[test]
fn cppjieba_takes_letters_digits_and_decimals_for_one_word() {
    let mut config = keep_all(TokenizerKind::Cppjieba);
    config.tokenizer.hmm = true;
    let cut = |text| tokens(text, &config);
    assert_eq!(cut("50s 8A店"), ["50s", " ", "8A", "店"]);
    assert_eq!(cut("v1.2.3b"), ["v1.2", ".", "3b"]);
    assert_eq!(cut("5G3.14k"), ["5G3.14", "k"]);
    assert_eq!(cut("1. 2.x .5 a..7"), ["1", ".", " ", "2", ".", "x", " ", ".", "5", " ", "a", ".", ".", "7"]);
    assert_eq!(cut("a_1-b"), ["a", "_", "1", "-", "b"]);
    // Without its model every character of the route is a word.
    assert_eq!(tokens("50s", &keep_all(TokenizerKind::Cppjieba)), ["5", "0", "s"]);
}

#[test]
fn word_windows_are_of_what_python_calls_a_word() {
    // A letter, an alphabetic mark, a letter number, a fraction, a symbol.
    assert_eq!(tokens("a\u{345}Ⅷ½_-㊗ b", &keep_all(TokenizerKind::WordCharNgrams)), ["aⅧ½_", "Ⅷ½_b"]);
}

#[test]
fn a_text_of_fewer_characters_is_one_word_window_or_none() {
    for (text, one, none) in
        [("a-b c", vec!["abc"], vec![]), ("ab, cd", vec!["abcd"], vec!["abcd"]), ("!", vec![], vec![])]
    {
        assert_eq!(tokens(text, &keep_all(TokenizerKind::WordCharNgrams)), one, "{text}");
        assert_eq!(tokens(text, &keep_all(TokenizerKind::FullWordCharNgrams)), none, "{text}");
    }
}

#[test]
fn parts_of_speech_are_dropped_by_the_start_of_their_tag() {
    let mut config = keep_all(TokenizerKind::Jieba);
    config.stop_words.drop_parts_of_speech = vec!["u".into(), "x".into()];
    assert_eq!(tokens("我的博客，很好了", &config), ["我", "博客", "很", "好"]);
}

#[test]
fn built_in_stop_words_leave_the_words_of_content() {
    let mut config = kind(TokenizerKind::Mixed);
    config.stop_words.builtin = true;
    let text = "the store doesn't grow 我们的仓库和索引";
    assert_eq!(tokens(text, &config), ["store", "grow", "仓库", "索引"]);
}

#[test]
fn own_stop_words_are_normalised_like_the_text() {
    let stop_words = Some("Ｓｔｏｒｅ\n\n  仓库 \r\n".to_owned());
    let resources = Resources { stop_words, ..Resources::default() };
    let analyzer = Analyzer::try_new(&TokenizeConfig::default(), &resources).unwrap();
    let text = analyzer.normalize("The STORE 仓库 stores");
    assert_eq!(analyzer.tokens(&text).iter().collect::<Vec<_>>(), ["the", "stores"]);
}

/// Its memory is given back before the next text.
#[test]
fn a_text_after_a_huge_one_is_counted_anew() {
    let (analyzer, mut scratch) = (analyzer(&kind(TokenizerKind::Words)), Scratch::default());
    let huge = "to be or not ".repeat(400_000);
    let counted: Vec<u64> = analyzer.distinct_tokens(&huge, &mut scratch).iter().map(|(_, count)| count).collect();
    assert_eq!(counted, [400_000; 4]);
    let next = analyzer.distinct_tokens("not now", &mut scratch);
    assert_eq!(next.iter().collect::<Vec<_>>(), [(&b"not"[..], 1), (&b"now"[..], 1)]);
    assert_eq!(next.sequence(), [0, 1]);
}

#[test]
fn scripts_without_spaces_are_cut_into_pairs_of_characters_with_their_marks() {
    let pairs = |text: &str| tokens(text, &kind(TokenizerKind::Pairs));
    assert_eq!(pairs("東京でテスト、です"), ["東京", "京で", "でテ", "テス", "スト", "です"]);
    assert_eq!(pairs("コーヒー・カップ 2杯"), ["コー", "ーヒ", "ヒー", "カッ", "ップ", "2", "杯"]);
    assert_eq!(pairs("น้ำดี"), ["น้ำ", "ำดี"], "Thai: marks stay with their letter, and SARA AM is a letter");
    assert_eq!(pairs("ພາສາ"), ["ພາ", "າສ", "ສາ"], "Lao");
    assert_eq!(pairs("ខ្មែរ"), ["ខ្មែ", "មែរ"], "Khmer");
    assert_eq!(pairs("မြန်မာ"), ["မြန်", "န်မာ"], "Myanmar");
    assert_eq!(pairs("ราคา 25 บาทต่อkg"), ["รา", "าค", "คา", "25", "บา", "าท", "ทต่", "ต่อ", "kg"]);
    assert_eq!(pairs("한국어 문서"), ["한국어", "문서"], "Korean puts spaces between words");
}

#[test]
fn a_long_run_of_ascii_is_one_token_and_a_shorter_one_is_cut() {
    let mut config = kind(TokenizerKind::Bigrams);
    let link = format!("https://example.org/{}?q=1", "path/".repeat(3));
    config.tokenizer.long_run = link.len();
    for kind in [TokenizerKind::Pairs, TokenizerKind::Bigrams, TokenizerKind::Words, TokenizerKind::Mixed] {
        config.tokenizer.kind = kind;
        assert_eq!(tokens(&format!("see {link} now"), &config), ["see", &link, "now"], "{kind}");
        assert_eq!(tokens(&link, &config), [link.as_str()], "{kind}: the whole text");
        assert_eq!(tokens(&format!("中{link}中"), &config), ["中", &link, "中"], "{kind}: between other characters");
        let shorter = &link[1..];
        assert_eq!(tokens(shorter, &config).len(), 8, "{kind}: {shorter}");
        assert_eq!(tokens(&"-".repeat(200), &config), [""; 0], "{kind}: symbols are dropped, however many");
    }
    config.tokenizer.kind = TokenizerKind::Whitespace;
    let error = Analyzer::try_new(&config, &Resources::default()).unwrap_err();
    assert!(matches!(error, TokenizeError::UnusedByTokenizer { key: "tokenizer.long_run", .. }), "{error}");
}

/// `\w+` by hand, for ASCII.
fn naive_ascii_words(text: &str) -> Vec<&str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| word.contains(|c: char| c.is_ascii_alphanumeric()))
        .collect()
}

/// Each character's class first, then runs of the same class; Han runs to `cut_han`, the rest to the Unicode words of the run,
/// each of which is cut again with a filter.
fn naive_with_han(text: &str, cut_han: impl Fn(&str) -> Vec<String>) -> Vec<String> {
    let han = |c: char| matches!(c, '\u{3005}' | '\u{3007}' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}');
    let mut runs: Vec<(bool, String)> = Vec::new();
    for c in text.chars() {
        match runs.last_mut() {
            Some((is_han, run)) if *is_han == han(c) => run.push(c),
            _ => runs.push((han(c), c.to_string())),
        }
    }
    let mut all = Vec::new();
    for (is_han, run) in &runs {
        if *is_han {
            all.extend(cut_han(run));
        } else {
            let symbols = |c: char| c != '_' && c.is_ascii_punctuation() || c == '’' || c.is_whitespace();
            all.extend(run.unicode_words().flat_map(|word| word.split(symbols)).map(String::from));
        }
    }
    all.retain(|token| token.chars().any(char::is_alphanumeric));
    all
}

fn naive_bigrams(run: &str) -> Vec<String> {
    let characters: Vec<char> = run.chars().collect();
    characters.windows(2.min(characters.len())).map(|pair| pair.iter().collect()).collect()
}

/// The definition: longest runs of letters, digits, marks and `_`, each cut at the standard's boundaries.
fn naive_words(text: &str) -> Vec<&str> {
    let in_word = |c: char| c == '_' || c.is_alphanumeric() || is_combining_mark(c);
    let runs = text.split(|c| !in_word(c)).filter(|run| !run.is_empty());
    runs.flat_map(|run| run.split_word_bounds()).filter(|word| word.contains(char::is_alphanumeric)).collect()
}

fn naive_char_ngrams(text: &str, n: usize) -> Vec<String> {
    let characters: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
    match characters.len() {
        0 => Vec::new(),
        len if len < n => vec![characters.iter().collect()],
        len => (0..=len - n).map(|at| characters[at..at + n].iter().collect()).collect(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn no_text_makes_a_tokenizer_panic(text in any::<String>()) {
        for kind in TokenizerKind::ALL {
            for mut config in [common::kind(kind), keep_all(kind)] {
                if kind == TokenizerKind::BytePieces {
                    config.tokenizer.drop_tokens_without_alphanumeric = false;
                }
                let has_hmm = matches!(kind, TokenizerKind::Mixed | TokenizerKind::Jieba | TokenizerKind::Cppjieba);
                config.tokenizer.hmm = has_hmm && text.len() % 2 == 0;
                let analyzer = analyzer(&config);
                let tokens = analyzer.tokens(&text);
                prop_assert!(tokens.iter().all(|token| !token.is_empty()));
                prop_assert_eq!(tokens.len(), tokens.iter().count());
                let features = analyzer.features(&tokens, &FeatureConfig { shingle: 2, weight: Weight::Count, short_word: 0 });
                prop_assert!(features.n_distinct() <= tokens.len());
            }
        }
    }

    #[test]
    fn jieba_that_keeps_all_tokens_covers_the_text(text in "[中文是的我a-c1. _\r\n，😀㐀々]{0,20}", hmm in any::<bool>()) {
        let mut config = keep_all(TokenizerKind::Jieba);
        config.tokenizer.hmm = hmm;
        prop_assert_eq!(tokens(&text, &config).concat(), text);
    }

    #[test]
    fn cppjieba_covers_the_text(text in "[中文是的我好！、a-c1. _\r\n，😀㐀々γ]{0,20}", hmm in any::<bool>()) {
        let mut config = keep_all(TokenizerKind::Cppjieba);
        config.tokenizer.hmm = hmm;
        prop_assert_eq!(tokens(&text, &config).concat(), text);
    }

    #[test]
    fn byte_pieces_are_the_bytes_of_the_text(text in any::<String>(), ngram in 1..5_usize) {
        let mut config = keep_all(TokenizerKind::BytePieces);
        config.tokenizer.ngram = ngram;
        let analyzer = analyzer(&config);
        let tokens = analyzer.tokens(&text);
        let features = analyzer.features(&tokens, &FeatureConfig { shingle: 1, weight: Weight::Count, short_word: 0 });
        let got: BTreeMap<Vec<u8>, u64> = features.iter().map(|(bytes, w)| (bytes.to_vec(), w / ONE)).collect();
        let mut expected: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
        text.as_bytes().chunks(ngram).for_each(|piece| *expected.entry(piece.to_vec()).or_default() += 1);
        prop_assert_eq!(got, expected);
    }

    #[test]
    fn utf16_windows_are_those_of_java(text in "[a中😀]{0,12}", ngram in 1..4_usize) {
        let mut config = keep_all(TokenizerKind::Utf16Ngrams);
        config.tokenizer.ngram = ngram;
        let units: Vec<u16> = text.encode_utf16().collect();
        let window = |w: &[u16]| char::decode_utf16(w.iter().copied()).map(|c| c.unwrap_or('?')).collect::<String>();
        prop_assert_eq!(tokens(&text, &config), units.windows(ngram).map(window).collect::<Vec<_>>());
    }

    #[test]
    fn ascii_words_are_those_of_the_regular_expression(text in "[ -~\t\n]{0,40}") {
        prop_assert_eq!(tokens(&text, &kind(TokenizerKind::Words)), naive_ascii_words(&text));
        prop_assert_eq!(tokens(&text, &kind(TokenizerKind::Mixed)), naive_ascii_words(&text));
    }

    #[test]
    fn mixed_agrees_with_a_naive_splitter(text in "[我们中国人民欢迎的a-e_0-3.'’ ,é々\n]{0,30}") {
        let jieba = analyzer(&kind(TokenizerKind::Jieba));
        let naive = naive_with_han(&text, |run| jieba.tokens(run).iter().map(String::from).collect());
        prop_assert_eq!(tokens(&text, &kind(TokenizerKind::Mixed)), naive);
        prop_assert_eq!(tokens(&text, &kind(TokenizerKind::Bigrams)), naive_with_han(&text, naive_bigrams));
        // The only script without spaces here is Han.
        prop_assert_eq!(tokens(&text, &kind(TokenizerKind::Pairs)), naive_with_han(&text, naive_bigrams));
    }

    #[test]
    fn words_are_those_of_the_definition(
        text in "[中々㐀𠀀a-c_0-2éñжЖאب٣.'’ \u{301}\u{FE0F}\u{200D}\u{E0101}\u{20E3}かなカナ한ᄀ\u{1161}कि\u{93F}ไทย、。🇩👩]{0,16}",
    ) {
        prop_assert_eq!(tokens(&text, &kind(TokenizerKind::Words)), naive_words(&text));
    }

    #[test]
    fn distinct_tokens_are_the_tokens_counted(
        texts in vec("[我们中国人民欢迎的a-c_0-1.' é々]{0,60}|(abcdefgh|abcdefghi|0123456789abcdefg|0123456789abcdefh|a| ){0,30}", 1..4),
        at in 0..TokenizerKind::ALL.len(),
    ) {
        let mut config = keep_all(TokenizerKind::ALL[at]);
        config.stop_words.builtin = TokenizerKind::ALL[at] != TokenizerKind::BytePieces;
        let (analyzer, mut scratch) = (analyzer(&config), Scratch::default());
        for text in &texts {
            let tokens = analyzer.tokens(text);
            let distinct = analyzer.distinct_tokens(text, &mut scratch);
            let by_number: Vec<&[u8]> = distinct.iter().map(|(token, _)| token).collect();
            let sequence: Vec<&[u8]> = distinct.sequence().iter().map(|&number| by_number[number as usize]).collect();
            prop_assert_eq!(&sequence, &tokens.iter().map(str::as_bytes).collect::<Vec<_>>());
            for (token, count) in distinct.iter() {
                prop_assert_eq!(count, sequence.iter().filter(|other| **other == token).count() as u64);
            }
            prop_assert_eq!(by_number.iter().collect::<HashSet<_>>().len(), by_number.len());
        }
    }

    #[test]
    fn words_and_pairs_that_are_cut_at_once_are_those_that_each_tokenizer_cuts(
        text in "(中文是|[中文是的，。—ab_1 ]{0,4}|[々かé\u{301}\u{EBF}คア·😀]|[a-z0-9]{12}){0,10}",
        long_run in prop_oneof![Just(0_usize), Just(6)],
        drops in any::<bool>(),
    ) {
        let config = |kind| {
            let mut config = TokenizeConfig { normalize: AS_IS, ..keep_all(kind) };
            config.tokenizer.long_run = long_run;
            config.tokenizer.drop_tokens_without_alphanumeric = drops;
            config
        };
        let words = analyzer(&config(TokenizerKind::Words));
        let (mut scratch, mut of_words) = (Scratch::default(), Scratch::default());
        if let Some(both) = words.words_and_pairs(&text, &mut scratch) {
            let of_words = words.distinct_tokens(&text, &mut of_words);
            prop_assert_eq!(both.words().iter().collect::<Vec<_>>(), of_words.iter().collect::<Vec<_>>());
            prop_assert_eq!(both.words().sequence(), of_words.sequence());
            let mut expected = BTreeMap::<Vec<u8>, u64>::new();
            for token in tokens(&text, &config(TokenizerKind::Pairs)) {
                *expected.entry(token.into_bytes()).or_default() += 1;
            }
            prop_assert_eq!(both.n_tokens(), expected.len());
            let unpaired = both.unpaired().map(|(_, word, count)| (word.to_vec(), count));
            let found: Vec<_> = unpaired.chain(both.pairs().map(|(pair, count)| (pair.to_vec(), count))).collect();
            prop_assert_eq!(found.len(), expected.len());
            prop_assert_eq!(found.into_iter().collect::<BTreeMap<_, _>>(), expected);
            for (at, word, _) in both.unpaired() {
                prop_assert_eq!(both.words().iter().nth(at).map(|(word, _)| word), Some(word));
            }
        } else {
            let other_letters = ['々', 'か', 'é', '\u{301}', '\u{EBF}', 'ค', 'ア'];
            prop_assert!(text.contains(other_letters), "{:?} has no other letters", text);
        }
    }

    #[test]
    fn white_space_tokens_are_those_of_the_standard_library(text in "[a-c,é中 \t\n\u{3000}\u{A0}]{0,30}") {
        let naive: Vec<&str> = text.split_whitespace().collect();
        prop_assert_eq!(tokens(&text, &keep_all(TokenizerKind::Whitespace)), naive);
    }

    #[test]
    fn character_windows_agree_with_naive_ones(text in "[a-cé中😀 \n]{0,30}", n in 1_usize..7) {
        let config = TokenizeConfig { normalize: AS_IS, ..char_ngrams(n) };
        prop_assert_eq!(tokens(&text, &config), naive_char_ngrams(&text, n));
    }
}
