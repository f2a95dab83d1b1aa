//! Texts of pages, whole and damaged.

use nearprint_html::{Extractor, HtmlText, MAX_DEPTH, Syntax, decode};
use proptest::prelude::*;

fn text_of(html: &str, mode: &HtmlText) -> String {
    Extractor::try_new(mode).unwrap().text_of(html, Syntax::Html)
}

fn main_text(html: &str) -> String {
    text_of(html, &HtmlText::Main)
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

/// Paragraphs around the main text that no class or role tells.
fn other_paragraphs() -> String {
    format!("<div><p>{PARAGRAPH} 1</p><p>{PARAGRAPH} 2</p></div>")
}

#[test]
fn an_element_that_names_the_main_text_is_not_boilerplate_for_another_word_of_its_class() {
    let others = other_paragraphs();
    for sign in
        ["class='article__body article-overlay-handle'", "id=postText class=popup", "itemprop=articleBody class=print"]
    {
        let body = format!("<p>{PARAGRAPH}</p>").repeat(3);
        let page = format!("<body>{others}<div {sign}>{body}</div>");
        assert_eq!(main_text(&page).matches(PARAGRAPH).count(), 5, "{sign}");
    }
    let page = format!("<body><p>{PARAGRAPH}</p><p>{PARAGRAPH}</p><div class=popup><p>{PARAGRAPH}</p></div>");
    assert_eq!(main_text(&page).matches(PARAGRAPH).count(), 2);
}

/// Blocks of a page, each with a paragraph of its own.
fn blocks(classes: &[&str], page: usize) -> String {
    let block =
        |(n, class): (usize, &&str)| format!("<section class='{class}'><p>{PARAGRAPH} {page}.{n}</p></section>");
    classes.iter().cycle().take(6).enumerate().map(block).collect()
}

#[test]
fn a_word_of_a_layout_that_all_blocks_have_does_not_make_them_boilerplate() {
    for classes in [
        &["relative overflow-hidden p-6"][..],
        &["py-12 print:py-4"],
        &["elementor-element elementor-widget elementor-widget-text-editor"],
        &["so-panel widget widget_sow-editor"],
        &["overflow-hidden", "print:py-4", "so-panel widget"],
        &["elementor-widget overflow-hidden"],
    ] {
        for around in
            ["", "<div class=chat><p>Write to us, and we will answer you by the evening of the next day.</p></div>"]
        {
            let page = |n: usize| {
                let skip = "<div class=skip-link><p>Skip to the content</p></div>";
                main_text(&format!(
                    "<body>{skip}<h1>Services</h1>{}{around}<footer>Rights</footer>",
                    blocks(classes, n)
                ))
            };
            for block in 0..6 {
                assert!(page(1).contains(&format!("{PARAGRAPH} 1.{block}\n")), "{classes:?}: {}", page(1));
            }
            assert!(!page(1).contains("Skip") && !page(1).contains("Rights"), "{classes:?}: {}", page(1));
            assert_ne!(page(1), page(2));
        }
    }
}

#[test]
fn an_article_keeps_out_what_words_of_a_layout_and_comments_tell_however_much_it_is() {
    let article = format!("<h1>Title</h1><p>{PARAGRAPH}</p><p>{PARAGRAPH}</p><p>{PARAGRAPH}</p>");
    let whole = format!("Title\n{PARAGRAPH}\n{PARAGRAPH}\n{PARAGRAPH}\n");
    for (class, n_blocks) in [("widget", 1), ("overflow-hidden", 4), ("comment", 30), ("sidebar widget", 30)] {
        let block = format!("<div class='{class}'><p>{PARAGRAPH} Other</p></div>");
        assert_eq!(main_text(&format!("<body>{article}{}", block.repeat(n_blocks))), whole, "{class}");
    }
    // An article stays, whatever is beside it.
    let widgets = format!("<div class='widget widget_text'><p>{PARAGRAPH} Other</p></div>").repeat(30);
    let short = format!("<div><article><h1>Title</h1><p>{PARAGRAPH}</p></article></div>");
    for article in [&short, &format!("<h1>Title</h1>{}", format!("<p>{PARAGRAPH}</p>").repeat(6))] {
        assert!(!main_text(&format!("<body>{article}<div>{widgets}</div>")).contains("Other"), "{article}");
    }
}

#[test]
fn what_all_pages_share_does_not_replace_the_heading_and_the_paragraphs_of_a_page() {
    let terms = format!("<div>{}</div>", format!("<p>{PARAGRAPH} Terms</p>").repeat(20));
    let own = format!("<p>{PARAGRAPH} Own</p>").repeat(5);
    let text = main_text(&format!("<body><div><div><h1>Product</h1>{own}</div>{terms}</div>"));
    assert_eq!(text.matches("Own").count(), 5, "{text}");
    assert!(text.starts_with("Product\n") && text.contains("Terms"), "{text}");
    // A heading with a summary before an article is left as before.
    for header in ["", "<p>A summary of the article, which says in one sentence what the article is about.</p>"] {
        let page =
            format!("<body><div><div><h1>Title</h1>{header}</div><div class=article-body>{own}{own}</div></div>");
        assert!(main_text(&page).starts_with(PARAGRAPH), "{}", main_text(&page));
    }
    // What says that it is an article is not left for the heading of a site.
    let hero = format!("<div><h1>A site</h1>{}</div>", format!("<p>{PARAGRAPH} Hero</p>").repeat(5));
    let page = format!("<body><div>{hero}<div><article>{}</article></div></div>", own.repeat(5));
    assert!(!main_text(&page).contains("Hero"), "{}", main_text(&page));
}

#[test]
fn captions_and_ways_to_the_next_page_are_left_out() {
    let others = ["class='image-caption'", "class=photo_credit", "id=prevPost", "class='page previous'"];
    let others: String = others.iter().map(|sign| format!("<div {sign}><p>Another text</p></div>")).collect();
    assert_eq!(main_text(&format!("<article><p>{PARAGRAPH}</p>{others}</article>")), format!("{PARAGRAPH}\n"));
}

#[test]
fn headings_stay_whatever_their_classes_and_ids_say() {
    let page =
        format!("<h2 class='anchorWithStickyNavbar' id=menu>Menu</h2><p>{PARAGRAPH}</p><h3 id=related>Related</h3>");
    assert_eq!(main_text(&page), format!("Menu\n{PARAGRAPH}\nRelated\n"));
}

#[test]
fn a_reference_keeps_its_tables_and_short_lines_beside_its_one_long_paragraph() {
    let rows: String = (0..9).map(|n| format!("<tr><td><a href='#o{n}'>option_{n}</a><td>int</tr>")).collect();
    let short: String = (0..9).map(|n| format!("<h3>option_{n}</h3><p>Short text {n}</p>")).collect();
    let page =
        format!("<article><h1>Reference</h1><div><p>{PARAGRAPH}</p></div><table>{rows}</table>{short}</article>");
    let text = main_text(&page);
    for n in 0..9 {
        assert!(text.contains(&format!("option_{n} int\n")) && text.contains(&format!("Short text {n}\n")), "{text}");
    }
}

#[test]
fn what_is_left_out_parts_the_words_around_it_as_it_did_in_the_page() {
    let page =
        format!("<div>{PARAGRAPH} One<nav>Menu</nav>two<button>Press</button>three<script>a()</script>four</div>");
    assert_eq!(main_text(&page), format!("{PARAGRAPH} One\ntwo threefour\n"));
}

#[test]
fn tabs_behind_the_first_one_are_text_and_other_hidden_elements_are_not() {
    let page =
        format!("<p>{PARAGRAPH}</p><div role=tabpanel hidden><pre>second tab</pre></div><div hidden>unseen</div>");
    assert_eq!(main_text(&page), format!("{PARAGRAPH}\nsecond tab\n"));
    assert_eq!(text_of(&page, &HtmlText::All), main_text(&page));
}

#[test]
fn links_that_show_their_urls_are_sources_and_no_menu() {
    let sources = "<ul><li><a href=/a>https://example.org/a</a><li><a href=/b>www.example.org/b</a></ul>";
    let page = format!("<p>{PARAGRAPH}</p>{sources}<ul><li><a href=/c>Another page of this site</a></ul>");
    assert_eq!(main_text(&page), format!("{PARAGRAPH}\nhttps://example.org/a\nwww.example.org/b\n"));
}

#[test]
fn an_index_has_the_links_of_its_main_element_and_not_the_notice_above() {
    let page = format!(
        "<div><p>{PARAGRAPH}</p></div><div class=tags-list-page><main><h1>Tags</h1><ul><li><a href=/a>One</a></ul></main></div>"
    );
    assert_eq!(main_text(&page), "Tags\nOne\n");
}

#[test]
fn a_main_element_that_holds_little_of_an_article_does_not_hide_the_article() {
    let body = format!("<p>{PARAGRAPH}</p>").repeat(8);
    let page = format!("<main><p>Menu</p></main><div>{body}</div>");
    assert_eq!(main_text(&page).matches(PARAGRAPH).count(), 8);
}

#[test]
fn an_article_in_a_cell_or_an_entry_of_a_list_leaves_what_is_around() {
    let body = format!("<div><p>{PARAGRAPH}</p><p>{PARAGRAPH}</p></div>");
    for page in [
        format!("<table><tr><td>You are here<td><table><tr><td>{body}<p>Date</p></table></table>"),
        format!("<ul><li><h1>Title</h1>{body}<p>Date</p></ul>"),
    ] {
        assert_eq!(main_text(&page), format!("{PARAGRAPH}\n{PARAGRAPH}\n"), "{page}");
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
    assert_eq!(selected(".b"), "two\nthree\n");
    assert_eq!(selected(".a, .b"), "one\ntwo\nthree\n");
    assert_eq!(selected(".c"), "");
    assert!(Extractor::try_new(&HtmlText::Selector("p[[".to_owned())).is_err());
}

#[test]
fn elements_that_nest_too_deep_keep_their_text() {
    let page = format!("{}deep{}", "<div>".repeat(MAX_DEPTH * 100), "</div>".repeat(10));
    assert_eq!(text_of(&page, &HtmlText::All), "deep\n");
    assert_eq!(main_text(&page), "deep\n");
}

#[test]
fn a_tag_of_any_number_of_attributes_takes_a_time_that_grows_with_the_page_alone() {
    let attributes = |separator: &str| (0..400_000).map(|n| format!("a{n}{separator}")).collect::<String>();
    for tag in [
        format!("<div {}>", attributes(" ")),
        format!("<div/{}>", attributes("/")),
        format!("</div {}>", attributes("='<'")),
        format!("<!-- & --></>&am<div a=\"<\"{}>", attributes("=\"\"")),
        format!("<title></title {}>", attributes(" = b\n")),
        format!("<script><!--<script>a<b</script ></script {}>", attributes(" ")),
    ] {
        let page = format!("<p>one</p>{tag}<p>two</p>");
        let start = std::time::Instant::now();
        assert!(text_of(&page, &HtmlText::All).ends_with("two\n"));
        assert!(start.elapsed().as_secs() < 10, "{}: {:?}", &tag[..20], start.elapsed());
    }
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
        Just("<main><div role=tabpanel hidden itemprop=articleBody class=post-content>".to_owned()),
        Just("<a href='#x'>https://example.org".to_owned()),
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
            let text = text_of(&page, &mode);
            prop_assert_eq!(&text, &text_of(&page, &mode));
            prop_assert!(text.is_empty() || text.ends_with('\n'));
        }
        let (main, all) = (main_text(&page), text_of(&page, &HtmlText::All));
        prop_assert!(main.split_whitespace().all(|word| all.contains(word)), "{} is not in {}", main, all);
    }

    #[test]
    fn no_bytes_make_the_decoding_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), field in "[ -~]{0,40}") {
        let _ = decode(&bytes, Some(&field));
        let _ = decode(&bytes, None);
        let meta = [b"<meta charset=".as_slice(), &bytes].concat();
        let _ = decode(&meta, None);
    }
}

/// Everything that a browser shows of these pages is in both texts.
#[test]
fn nothing_that_a_browser_shows_is_lost_behind_icons_anchors_and_styles() {
    let paragraph = |n: usize| format!("<p>Paragraph {n}. {PARAGRAPH}</p>");
    let body: String = (1..12).map(paragraph).collect();
    for before in [
        "<div style='backface-visibility:hidden; -webkit-backface-visibility:hidden'>",
        "<div style='display:none; display: block'>",
        "<svg class=icon/>",
        "<math/>",
        "<svg><style/></svg>",
        "<svg><title/></svg>",
        "<svg><path d=''>",
        "<svg><svg><math>",
        "<a name=top/>",
        "<a name=top>",
        "<map name=m><area href='/'>",
    ] {
        let page = format!("<body>{}{before}{body}", paragraph(0));
        for mode in [HtmlText::Main, HtmlText::All] {
            let text = text_of(&page, &mode);
            // The first paragraph lies outside of what the page is about.
            let least = if mode == HtmlText::All { 12 } else { 11 };
            assert!(text.matches("Paragraph").count() >= least, "{before}, {mode:?}: {text}");
        }
    }
    for page in ["<body style='visibility: hidden'>", "<body hidden>", "<html style='display:none'><body>"] {
        assert_eq!(main_text(&format!("{page}{body}")).matches("Paragraph").count(), 11, "{page}");
    }
    for hidden in [
        "display: none",
        "VISIBILITY:hidden !important",
        "display:none!important;display:block",
        "color:red;display:none;display:",
    ] {
        let page = format!("<body>{body}<div style='{hidden}'>{PARAGRAPH} Unseen</div>");
        assert!(!text_of(&page, &HtmlText::All).contains("Unseen"), "{hidden}");
    }
}

#[test]
fn the_end_of_a_choice_or_of_something_unseen_ends_the_blocks_whose_end_tags_are_left_out() {
    for unseen in [
        "<select><option>A<option>B</select>",
        "<select><optgroup label=x><option>A<option>B</select>",
        "<datalist id=d><option value=a><option value=b></datalist>",
        "<noscript><p>Enable scripts</noscript>",
        "<noscript><iframe src=x></noscript>",
        "<noscript><!-- </noscript>",
        "<object><p>x</object>",
        "<applet><p>x<ul><li>y</applet>",
        "<template><li>y<p>x</template>",
        "<template><tr><td>x</template>",
        "<button><p>x</button>",
    ] {
        let page = format!("<body><p>Before.</p><div>{unseen} and <p>behind</p></div> the <b>end</b></body>");
        let text = text_of(&page, &HtmlText::All);
        assert!(text.starts_with("Before.\n") && text.ends_with("and\nbehind\nthe end\n"), "{unseen}: {text:?}");
        // A cell around it stays open.
        let page = format!("<table><tr><td>one {unseen} two</td><td>three</td></table>");
        let text = text_of(&page, &HtmlText::All);
        assert!(text.contains("two") && text.contains("three"), "{unseen}: {text:?}");
    }
}

#[test]
fn an_element_whose_end_is_missing_ends_with_what_is_around() {
    let page = "<body><div><noscript><img src=x></div><p>After</p></body>";
    assert_eq!(text_of(page, &HtmlText::All), "After\n");
    let page = "<svg><noscript>a</svg><p>After <noscript>b</noscript>it</p>";
    assert_eq!(text_of(page, &HtmlText::All), "After it\n");
    for page in [
        "<ul><li>Before<template><li>secret</li></template></ul>",
        "<dl><dd>Before<template><dd>secret</template></dl>",
    ] {
        assert_eq!(text_of(page, &HtmlText::All), "Before\n", "{page}");
    }
}

#[test]
fn what_a_head_has_for_scripts_or_without_them_is_no_text() {
    for unseen in ["<template><div>secret</div></template>", "<noscript><p>secret</p></noscript>"] {
        let page = format!("<html><head>{unseen}<title>T</title></head><body><p>Text.</body>");
        assert_eq!(text_of(&page, &HtmlText::All), "T\nText.\n", "{unseen}");
    }
}

#[test]
fn the_character_set_is_that_of_a_meta_for_it_and_of_no_other_attribute() {
    let page = |meta: &str| [meta.as_bytes(), b"<p>\xbf\xf3\xb3w</p>"].concat();
    assert!(!decode(&page(""), None).contains("żółw"), "detection says something else");
    for meta in [
        "<meta content='text/html; charset=iso-8859-2'>",
        "<meta name=Content-Type content='text/html; charset=iso-8859-2'>",
        "<meta http-equiv='Content-Type:' content='text/html; charset=iso-8859-2'>",
        "<meta charset=iso-8859-2>",
        "<META  CharSet = 'iso-8859-2' />",
        "<meta charset=iso-8859-2/>",
        "<meta http-equiv=Content-Type content='text/html; charset=iso-8859-2'>",
        "<meta content=\"text/html;charset=iso-8859-2\" http-equiv=\"content-type\"/>",
        "<meta name=description content='how charset=koi8-r works'><meta charset=iso-8859-2>",
        "<meta property=x data-charset=koi8-r content=\"charset=koi8-r\"><meta charset=iso-8859-2>",
    ] {
        assert!(decode(&page(meta), None).contains("żółw"), "{meta}");
    }
}

#[test]
fn formulas_are_text_and_notes_about_them_are_none() {
    let page = "<p>So <math><semantics><mi>x</mi><mo>=</mo><mn>7</mn><annotation encoding=tex>x = 7</annotation></semantics></math> holds.";
    assert_eq!(text_of(page, &HtmlText::All), "So x=7 holds.\n");
}

#[test]
fn code_below_the_deepest_element_is_no_text() {
    for name in ["script", "style", "iframe", "noframes"] {
        let page = format!("{}<{name}>var leaked;</{name}> seen", "<font>".repeat(MAX_DEPTH + 9));
        assert_eq!(text_of(&page, &HtmlText::All), "seen\n", "{name}");
    }
}

#[test]
fn elements_of_xhtml_may_close_themselves_and_cdata_is_text() {
    let page = "<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><head><title/><script src='x.js'/></head><body>\
        <iframe src='y'/><a id='s'/><div class='rule'/><p>One <![CDATA[two > three]]> four</p><p>Five</p></body></html>";
    let extractor = Extractor::try_new(&HtmlText::All).unwrap();
    assert_eq!(extractor.text_of(page, Syntax::Xhtml), "One two > three four\nFive\n");
    assert_eq!(nearprint_html::title_of(page, Syntax::Xhtml), None);
}

#[test]
fn a_character_set_is_detected_wherever_its_characters_begin_and_wherever_the_look_ends() {
    let script = format!("<script>{}</script>", "var a = 1;\n".repeat(40_000));
    let (gbk, ..) = encoding_rs::GBK.encode(HAN);
    assert!(decode(&[script.as_bytes(), &gbk].concat(), None).ends_with(HAN));
    for shift in 0..3 {
        let page = [&b"aaa"[..shift], HAN.repeat(4000).as_bytes(), b"\xff"].concat();
        assert!(decode(&page, None).contains(HAN), "{shift}");
    }
    let (iso, ..) = encoding_rs::ISO_2022_JP.encode("今日はとても良い天気なので、公園へ散歩に行きました。");
    assert!(decode(&iso, None).contains("公園へ散歩"));
}
