//! What the elements of a page weigh: how much text they hold, and how much of it in links.

use crate::dom::{Content, Dom, NodeId};
use crate::names::{is_block, is_unseen};
use crate::render::is_hidden;

/// Words that classes and ids of boilerplate have, whatever the language of the page.
const BOILERPLATE: [&str; 62] = [
    "ad",
    "ads",
    "advert",
    "advertisement",
    "banner",
    "breadcrumb",
    "breadcrumbs",
    "byline",
    "comment",
    "comments",
    "consent",
    "cookie",
    "cookies",
    "copyright",
    "disqus",
    "dropdown",
    "footer",
    "gdpr",
    "hidden",
    "login",
    "masthead",
    "menu",
    "menubar",
    "meta",
    "modal",
    "nav",
    "navbar",
    "navigation",
    "navs",
    "newsletter",
    "outbrain",
    "overlay",
    "pager",
    "pagination",
    "paywall",
    "popular",
    "popup",
    "print",
    "promo",
    "recirc",
    "recommend",
    "recommended",
    "register",
    "related",
    "rss",
    "share",
    "sharing",
    "sidebar",
    "signup",
    "skip",
    "social",
    "sponsor",
    "sponsored",
    "subscribe",
    "subscription",
    "taboola",
    "tags",
    "toc",
    "toolbar",
    "topbar",
    "trending",
    "widget",
];

/// The share of a page's text above which an element is no boilerplate, whatever it says of itself.
const MOST_TEXT: f64 = 0.6;
/// The weight of a block's text from which on it is a paragraph.
const PARAGRAPH: usize = 60;
/// The share of text in links from which on a text is a list of links.
pub const LINKS: f64 = 0.5;

/// The weights of the nodes of a page, by node.
pub struct Weights {
    /// The text in a node, without boilerplate: a letter counts 1, and one of a script without blanks 3.
    pub text: Vec<usize>,
    /// The part of it that lies in links.
    pub linked: Vec<usize>,
    /// The part of it in paragraphs: blocks of some length that are not mostly links.
    pub paragraphs: Vec<usize>,
    /// Whether a node is boilerplate or lies in such a node.
    pub boilerplate: Vec<bool>,
}

impl Weights {
    pub fn of(dom: &Dom) -> Self {
        let nodes = dom.nodes();
        let n = nodes.len();
        let (text, linked) = sums(dom, &unseen(dom));
        let whole = text[Dom::ROOT];
        let mut boilerplate = unseen(dom);
        for id in 1..n {
            #[allow(clippy::cast_precision_loss, reason = "a share")]
            let is_most = text[id] as f64 > MOST_TEXT * whole as f64;
            boilerplate[id] =
                boilerplate[id] || boilerplate[nodes[id].parent] || (!is_most && says_boilerplate(dom, id));
        }
        drop(linked);
        let (text, linked) = sums(dom, &boilerplate);
        let paragraphs = paragraphs(dom, &boilerplate);
        Self { text, linked, paragraphs, boilerplate }
    }

    /// Returns whether the text of a node is mostly links.
    #[allow(clippy::cast_precision_loss, reason = "a share")]
    pub fn is_links(&self, id: NodeId) -> bool {
        self.linked[id] as f64 > LINKS * self.text[id] as f64
    }
}

/// Returns which nodes no browser shows.
fn unseen(dom: &Dom) -> Vec<bool> {
    let nodes = dom.nodes();
    let mut unseen = vec![false; nodes.len()];
    for id in 1..nodes.len() {
        unseen[id] = unseen[nodes[id].parent]
            || is_unseen(nodes[id].name())
            || nodes[id].name() == "title"
            || is_hidden(dom, id);
    }
    unseen
}

/// Returns the text in each node, and the part in links, without the nodes that are `left_out`.
fn sums(dom: &Dom, left_out: &[bool]) -> (Vec<usize>, Vec<usize>) {
    let nodes = dom.nodes();
    let (mut text, mut linked) = (vec![0; nodes.len()], vec![0; nodes.len()]);
    for id in (1..nodes.len()).rev() {
        if left_out[id] {
            continue;
        }
        if let Content::Text(content) = &nodes[id].content {
            text[id] = weight(content);
        }
        if nodes[id].name() == "a" {
            linked[id] = text[id];
        }
        text[nodes[id].parent] += text[id];
        linked[nodes[id].parent] += linked[id];
    }
    (text, linked)
}

/// Returns the text in paragraphs in each node.
fn paragraphs(dom: &Dom, left_out: &[bool]) -> Vec<usize> {
    let nodes = dom.nodes();
    let n = nodes.len();
    // The block that the text of a node belongs to, and whether the node lies in a link.
    let (mut block, mut in_link) = (vec![Dom::ROOT; n], vec![false; n]);
    let (mut own, mut own_linked) = (vec![0; n], vec![0; n]);
    for id in 1..n {
        let (parent, name) = (nodes[id].parent, nodes[id].name());
        block[id] = if is_block(name) || matches!(name, "td" | "th") { id } else { block[parent] };
        in_link[id] = in_link[parent] || name == "a";
        if let Content::Text(content) = &nodes[id].content
            && !left_out[id]
        {
            let weight = weight(content);
            own[block[id]] += weight;
            own_linked[block[id]] += if in_link[id] { weight } else { 0 };
        }
    }
    let mut paragraphs = vec![0; n];
    for id in (1..n).rev() {
        if own[id] >= PARAGRAPH && own_linked[id] * 2 < own[id] {
            paragraphs[id] += own[id];
        }
        paragraphs[nodes[id].parent] += paragraphs[id];
    }
    paragraphs
}

/// Returns the weight of a text. White space weighs nothing.
fn weight(text: &str) -> usize {
    text.chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| if matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}') { 3 } else { 1 })
        .sum()
}

/// Returns whether an element is boilerplate by its name, role, class or id.
fn says_boilerplate(dom: &Dom, id: NodeId) -> bool {
    let node = &dom.nodes()[id];
    let Content::Element { .. } = node.content else { return false };
    match node.name() {
        "nav" | "footer" | "aside" | "dialog" | "menu" | "button" | "input" | "label" | "figcaption" => return true,
        "html" | "body" | "article" | "main" => return false,
        "header" => return !lies_in_article(dom, id),
        _ => {}
    }
    let role = node.attribute("role").unwrap_or_default();
    if matches!(
        role,
        "navigation"
            | "banner"
            | "contentinfo"
            | "complementary"
            | "search"
            | "dialog"
            | "alert"
            | "alertdialog"
            | "menu"
    ) {
        return true;
    }
    if node.attribute("aria-hidden") == Some("true") {
        return true;
    }
    [node.attribute("class"), node.attribute("id")]
        .into_iter()
        .flatten()
        .any(|names| words(names).any(|word| is_boilerplate(&word)))
}

fn lies_in_article(dom: &Dom, id: NodeId) -> bool {
    let nodes = dom.nodes();
    let mut at = nodes[id].parent;
    while at != Dom::ROOT {
        if matches!(nodes[at].name(), "article" | "main") {
            return true;
        }
        at = nodes[at].parent;
    }
    false
}

fn is_boilerplate(word: &str) -> bool {
    BOILERPLATE.binary_search(&word).is_ok()
}

/// Returns the words of a class or id, in lower case: `navBar-main` has `nav`, `bar` and `main`.
fn words(names: &str) -> impl Iterator<Item = String> {
    let mut split = String::with_capacity(names.len() + 8);
    let mut before_lower = false;
    for c in names.chars() {
        if c.is_uppercase() && before_lower {
            split.push(' ');
        }
        before_lower = c.is_lowercase();
        split.push(if c.is_alphanumeric() { c.to_ascii_lowercase() } else { ' ' });
    }
    split.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use super::BOILERPLATE;

    #[test]
    fn the_words_are_sorted() {
        assert!(BOILERPLATE.is_sorted());
    }
}
