//! Texts of pages, whole and damaged.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use nearprint_html::{HtmlText, MAX_DEPTH, decode, text_of};
use proptest::prelude::*;

fn main_text(html: &str) -> String {
    text_of(html, &HtmlText::Main).unwrap()
}

const PARAGRAPH: &str = "A paragraph that has enough words to be told from a heading, a caption or an entry of a menu.";
const HAN: &str = "今天天气很好，我们去公园散步。公园里有很多人在跑步、打太极拳，孩子们在草地上玩。";

#[test]
fn the_main_text_has_no_navigation_notice_footer_or_list_of_links_in_any_language() {
    for text in [PARAGRAPH, HAN] {
        let links = "<li><a href='/'>A link to another page of the site</a></li>".repeat(20);
        let page = format!(
            "<html><head><title>T</title><style>p {{}}</style></head><body><header>Site</header><nav><ul>{links}</ul></nav>
             <div class='cookie-consent'><p>{text} cookies</p></div><div id=content><h1>Heading</h1><p>{text}</p><p>{text}</p>
             <ul>{links}</ul></div><div role=contentinfo><p>{text} rights</p></div><script>var a = '<p>x</p>'</script></body>"
        );
        assert_eq!(main_text(&page), format!("Heading\n{text}\n{text}\n"));
    }
}

#[test]
fn a_page_without_paragraphs_has_the_text_that_there_is() {
    assert_eq!(main_text("<p>Short</p>"), "Short\n");
    assert_eq!(main_text("just text"), "just text\n");
    assert_eq!(main_text(""), "");
    assert_eq!(main_text("<nav>Only a menu</nav>"), "Only a menu\n");
}

#[test]
fn a_selector_names_the_text_and_one_that_is_none_is_refused() {
    let page = "<body><div class=a>one<p class=b>two</p></div><p class=b>three</p></body>";
    let selected = |selector: &str| text_of(page, &HtmlText::Selector(selector.to_owned()));
    assert_eq!(selected(".b").unwrap(), "two\nthree\n");
    assert_eq!(selected(".a, .b").unwrap(), "one\ntwo\nthree\n");
    assert_eq!(selected(".c").unwrap(), "");
    assert!(selected("p[[").is_err());
}

#[test]
fn elements_that_nest_too_deep_keep_their_text() {
    let page = format!("{}deep{}", "<div>".repeat(MAX_DEPTH * 100), "</div>".repeat(10));
    assert_eq!(text_of(&page, &HtmlText::All).unwrap(), "deep\n");
    assert_eq!(main_text(&page), "deep\n");
}

fn pages() -> impl Strategy<Value = String> {
    let tags = [
        "div", "p", "li", "ul", "table", "tr", "td", "a", "nav", "pre", "svg", "form", "h1", "h2", "script", "title",
        "br", "textarea", "b",
    ];
    let tag = prop::sample::select(tags.to_vec());
    let piece = prop_oneof![
        tag.clone().prop_map(|tag| format!("<{tag} class=x>")),
        tag.prop_map(|tag| format!("</{tag}>")),
        "[a-z中文 \n<>&;!/='\"-]{0,60}",
        Just(PARAGRAPH.to_owned()),
        Just("<!--".to_owned()),
        Just("<![CDATA[".to_owned()),
    ];
    proptest::collection::vec(piece, 0..80).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_page_makes_the_reader_panic_and_the_text_is_the_same_every_time(page in pages()) {
        for mode in [HtmlText::Main, HtmlText::All, HtmlText::Selector("div > p, td".to_owned())] {
            let text = text_of(&page, &mode).unwrap();
            prop_assert_eq!(&text, &text_of(&page, &mode).unwrap());
            prop_assert!(text.is_empty() || text.ends_with('\n'));
        }
    }

    #[test]
    fn no_bytes_make_the_decoding_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), field in "[ -~]{0,40}") {
        let _ = decode(&bytes, Some(&field));
        let _ = decode(&bytes, None);
        let meta = [b"<meta charset=".as_slice(), &bytes].concat();
        let _ = decode(&meta, None);
    }
}
