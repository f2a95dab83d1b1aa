//! Normalisation, step by step and as a whole.

use std::borrow::Cow;

use nearprint_tokenize::{NormalizeConfig, TokenizerKind, naive};
use proptest::prelude::*;

use crate::common::{AS_IS, WITHOUT_HTML, analyzer, kind, normalized};

fn all() -> NormalizeConfig {
    NormalizeConfig::default()
}

#[test]
fn html_entities_are_decoded_exactly_once() {
    assert_eq!(normalized("a &lt;b&gt; &#20013;&#x6587;&nbsp;&amp;amp;", all()), "a <b> 中文 &amp;");
    assert_eq!(normalized("&amp;lt;", NormalizeConfig { html_entities: true, ..AS_IS }), "&lt;");
    assert_eq!(normalized("AT&T &bogus; &#xD800;", all()), "at&t &bogus; &#xd800;");
}

#[test]
fn compatibility_forms_become_plain_ones() {
    let nfkc = NormalizeConfig { nfkc: true, ..AS_IS };
    assert_eq!(normalized("ＡＢＣ１２３，ﬁ①㎏", nfkc), "ABC123,fi1kg");
}

#[test]
fn case_is_folded_fully_and_without_a_language() {
    let fold = NormalizeConfig { case_fold: true, ..AS_IS };
    assert_eq!(normalized("Straße ΣΊΣΥΦΟΣ İ I", fold), "strasse σίσυφοσ i\u{307} i");
}

#[test]
fn invisible_characters_are_removed_and_white_space_among_them_kept() {
    let control = NormalizeConfig { control_characters: true, ..AS_IS };
    let text = "a\u{0}b\u{200B}c\u{FEFF}d\u{AD}e\u{202E}f\u{1F}g\u{85}h\ti";
    assert_eq!(normalized(text, control), "abcdefg\u{85}h\ti");
}

#[test]
fn white_space_becomes_single_spaces_without_ends() {
    let white_space = NormalizeConfig { white_space: true, ..AS_IS };
    assert_eq!(normalized("\u{3000}a\r\n\r\n\tb\u{A0}c \n", white_space), "a b c");
    assert_eq!(normalized(" \n\t", all()), "");
}

#[test]
fn special_characters_are_removed_without_a_trace_when_asked() {
    let special = NormalizeConfig { special_characters: true, ..all() };
    let text = "我是蒋固金，欢迎查看：foo-bar_1 (é, ñ) 100%！ ★ かな";
    assert_eq!(normalized(text, special), "我是蒋固金欢迎查看foobar1 é ñ 100 かな");
}

#[test]
fn a_normal_text_is_borrowed() {
    let analyzer = analyzer(&kind(TokenizerKind::Whitespace));
    assert!(matches!(analyzer.normalize("plain words & 中文"), Cow::Borrowed(_)));
}

#[test]
fn removing_a_character_lets_its_neighbours_compose() {
    assert_eq!(normalized("e\u{200B}\u{301}", WITHOUT_HTML), "é");
}

/// Every character of the planes in use, alone, after a letter, and before marks that may compose with it.
#[test]
fn each_single_character_is_normalised_for_good() {
    let special = NormalizeConfig { special_characters: true, ..WITHOUT_HTML };
    for config in [kind_with(WITHOUT_HTML), kind_with(special)] {
        let analyzer = analyzer(&config);
        for c in ('\0'..='\u{323AF}').chain('\u{E0000}'..='\u{E01EF}') {
            for text in [c.to_string(), format!("a{c}\u{301}"), format!("{c}\u{345}\u{308}x")] {
                let once = analyzer.normalize(&text);
                assert_eq!(analyzer.normalize(&once), once, "{text:?}");
            }
        }
    }
}

/// Every character between others that it may compose with, or not.
#[test]
fn one_pass_is_what_the_steps_give_for_each_character() {
    let one_pass = analyzer(&kind_with(all()));
    for c in ('\0'..='\u{323AF}').chain('\u{E0000}'..='\u{E01EF}') {
        for text in [format!("{c}"), format!("a{c}\u{301} {c}中"), format!("가 Ａ{c}\u{11A8}{c}\u{3099}é{c}")] {
            assert_eq!(one_pass.normalize(&text), naive::normalize(&text, &all()), "{c:?} in {text:?}");
        }
    }
}

fn kind_with(normalize: NormalizeConfig) -> nearprint_tokenize::TokenizeConfig {
    nearprint_tokenize::TokenizeConfig { normalize, ..kind(TokenizerKind::Whitespace) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn one_pass_is_what_the_steps_give(
        text in "([a-cA-C,&;#<]|  |\n|[\t \u{3000}\u{A0}]|[中文，。Ａ１]|[ßΣİſéÉ①ﬁ㎏]|[\u{AD}\u{200B}\0\u{7}]|[\u{301}\u{307}\u{327}\u{345}\u{3099}か]|[가ᄀ\u{1161}\u{11A8}]|&amp;|&#20013;|[😀𠀀]){0,24}",
        any_text in any::<String>(),
    ) {
        prop_assert_eq!(normalized(&text, all()), naive::normalize(&text, &all()));
        prop_assert_eq!(normalized(&any_text, all()), naive::normalize(&any_text, &all()));
        let long = format!("{} {text}  {}", "plain words ".repeat(9), "0123456789".repeat(7));
        prop_assert_eq!(normalized(&long, all()), naive::normalize(&long, &all()));
    }

    #[test]
    fn normalising_twice_changes_nothing(text in any::<String>()) {
        let once = normalized(&text, WITHOUT_HTML);
        prop_assert_eq!(normalized(&once, WITHOUT_HTML), once);
    }

    #[test]
    fn normalising_twice_changes_nothing_among_marks_and_spaces(
        text in "[aßΣİſ \t\u{AD}\u{200B}\u{301}\u{307}\u{308}\u{327}\u{345}\u{1100}\u{1161}\u{11A8}.,_Ａ①中]{0,12}",
        special_characters in any::<bool>(),
    ) {
        let config = NormalizeConfig { special_characters, ..WITHOUT_HTML };
        let once = normalized(&text, config.clone());
        prop_assert_eq!(normalized(&once, config), once);
    }

    #[test]
    fn no_combination_of_steps_panics(text in any::<String>(), on in any::<[bool; 7]>()) {
        let [nfkc, case_fold, html_entities, control_characters, white_space, special_characters, lower_case] = on;
        let config = NormalizeConfig {
            nfkc, case_fold, html_entities, control_characters, white_space, special_characters, lower_case,
        };
        let _ = normalized(&text, config);
    }
}
