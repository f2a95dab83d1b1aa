//! The weights of the elements of a page: how much text they hold, and how much of it in links.

use std::ops::BitOr;

use super::dom::{Content, Dom, NodeId};
use super::names::{is_block, is_unseen};
use super::render::is_hidden;
use super::signs::{self, Signs};

/// The share of a page's text above which an element is no boilerplate, whatever it says of itself.
const MOST_TEXT: f64 = 0.6;
/// The share of a page's paragraphs up to which a word of a layout may be a sign where such words take most of them.
const LITTLE_TEXT: f64 = 0.1;
/// The weight of paragraphs below which a page is rather an index than an article.
pub const FEW_PARAGRAPHS: usize = 300;
/// The weight of a block's text from which on it is a paragraph.
const PARAGRAPH: usize = 60;
/// The share of text in links from which on a text is a list of links.
const LINKS: f64 = 0.5;

/// The weights of the nodes of a page, by node.
pub struct Weights {
    /// The text in a node, without boilerplate: a letter counts 1, and one of a script without blanks 3.
    pub text: Vec<usize>,
    /// The part of it that lies in links.
    linked: Vec<usize>,
    /// The part of it in blocks of its own that are not mostly links.
    pub prose: Vec<usize>,
    /// The part of that in paragraphs: blocks of some length.
    pub paragraphs: Vec<usize>,
    /// True for a node that is boilerplate or lies in such a node.
    pub boilerplate: Vec<bool>,
}

impl Weights {
    /// Weighs a page. Words that also say how an element is laid out are no signs where they would take most paragraphs and leave no
    /// article: page builders and frameworks of styles give them to every block.
    pub fn of(dom: &Dom) -> Self {
        let links = links(dom);
        let unseen = unseen(dom);
        let (all, _) = sums(dom, &links, &unseen);
        let weigh =
            |is_sign: &dyn Fn(NodeId) -> bool| Self::without(dom, &links, boilerplate(dom, &all, &unseen, is_sign));
        let usual = weigh(&|id| Signs::of(dom, id) != Signs::NONE);
        let is_most = |taken: usize, of: usize| taken >= FEW_PARAGRAPHS && is_more(taken, MOST_TEXT, of);
        let n_left = usual.paragraphs[Dom::ROOT];
        let may_be_most = |n_shown: usize| is_most(n_shown.saturating_sub(n_left), n_shown);
        let n_shown = || prose(dom, &links, &unseen).1[Dom::ROOT];
        let is_article_left = || {
            let mut nodes = dom.nodes().iter().zip(&usual.paragraphs);
            n_left >= FEW_PARAGRAPHS || nodes.any(|(node, &n_left)| n_left > 0 && signs::is_article(node))
        };
        // A page of which nothing is left is taken whole.
        if usual.text[Dom::ROOT] == 0 || !may_be_most(all[Dom::ROOT]) || !may_be_most(n_shown()) || is_article_left() {
            return usual;
        }
        let signs: Vec<Signs> = (0..dom.nodes().len()).map(|id| Signs::of(dom, id)).collect();
        let ignoring = |ignored: Signs| weigh(&|id| signs[id].without(ignored) != Signs::NONE);
        let n_paragraphs = ignoring(Signs::LAYOUT).paragraphs[Dom::ROOT];
        let n_taken = |rest: &Self| n_paragraphs.saturating_sub(rest.paragraphs[Dom::ROOT]);
        if !is_most(n_taken(&usual), n_paragraphs) {
            return usual;
        }
        // Each word is asked alone, because an element that has one may lie in an element that has another.
        let takes_much = |word: &Signs| {
            let rest = ignoring(Signs::LAYOUT.without(*word));
            is_more(n_taken(&rest), LITTLE_TEXT, n_paragraphs)
        };
        ignoring(Signs::each_of_layout().filter(takes_much).fold(Signs::NONE, Signs::bitor))
    }

    /// Weighs what is no boilerplate.
    fn without(dom: &Dom, links: &[bool], boilerplate: Vec<bool>) -> Self {
        let (text, linked) = sums(dom, links, &boilerplate);
        let (prose, paragraphs) = prose(dom, links, &boilerplate);
        Self { text, linked, prose, paragraphs, boilerplate }
    }

    /// Returns whether the text of a node is mostly links.
    pub fn is_links(&self, id: NodeId) -> bool {
        is_more(self.linked[id], LINKS, self.text[id])
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

/// Returns which nodes are boilerplate by a sign, beside those that are `unseen`.
fn boilerplate(dom: &Dom, text: &[usize], unseen: &[bool], is_sign: &dyn Fn(NodeId) -> bool) -> Vec<bool> {
    let nodes = dom.nodes();
    let mut holds_main = vec![false; nodes.len()];
    for id in (1..nodes.len()).rev() {
        holds_main[id] |= signs::is_main(&nodes[id]);
        holds_main[nodes[id].parent] |= holds_main[id];
    }
    let mut boilerplate = unseen.to_vec();
    for id in 1..nodes.len() {
        let is_most = is_more(text[id], MOST_TEXT, text[Dom::ROOT]);
        boilerplate[id] =
            boilerplate[id] || boilerplate[nodes[id].parent] || (!is_most && !holds_main[id] && is_sign(id));
    }
    boilerplate
}

/// Returns whether a weight is more than this share of another.
#[allow(clippy::cast_precision_loss, reason = "a share")]
fn is_more(weight: usize, share: f64, of: usize) -> bool {
    weight as f64 > share * of as f64
}

/// Returns which nodes lie in links as menus have them. A link to a place of its page in a table is none, and neither is
/// one that shows a URL, or an anchor that leads nowhere.
fn links(dom: &Dom) -> Vec<bool> {
    let nodes = dom.nodes();
    let mut in_link = vec![false; nodes.len()];
    for (id, node) in nodes.iter().enumerate().skip(1) {
        in_link[id] = in_link[node.parent]
            || (node.name() == "a" && node.attribute("href").is_some() && {
                let in_table = matches!(nodes[node.parent].name(), "td" | "th");
                let leads_into_page = node.attribute("href").is_some_and(|href| href.starts_with('#'));
                let shows_url = match nodes.get(id + 1).map(|first| &first.content) {
                    Some(Content::Text(text)) => {
                        ["http://", "https://", "www."].iter().any(|start| text.trim_start().starts_with(start))
                    }
                    _ => false,
                };
                !(shows_url || leads_into_page && in_table)
            });
    }
    in_link
}

/// Returns the text in each node, and the part in links, without the nodes that are `left_out`.
fn sums(dom: &Dom, in_link: &[bool], left_out: &[bool]) -> (Vec<usize>, Vec<usize>) {
    let nodes = dom.nodes();
    let (mut text, mut linked) = (vec![0; nodes.len()], vec![0; nodes.len()]);
    for id in (1..nodes.len()).rev() {
        if left_out[id] {
            continue;
        }
        if let Content::Text(content) = &nodes[id].content {
            text[id] = weight(content);
            linked[id] = if in_link[id] { text[id] } else { 0 };
        }
        text[nodes[id].parent] += text[id];
        linked[nodes[id].parent] += linked[id];
    }
    (text, linked)
}

/// Returns the text in blocks that are not mostly links in each node, and that in paragraphs.
fn prose(dom: &Dom, in_link: &[bool], left_out: &[bool]) -> (Vec<usize>, Vec<usize>) {
    let nodes = dom.nodes();
    let n = nodes.len();
    // The block that the text of a node belongs to.
    let mut block = vec![Dom::ROOT; n];
    let (mut own, mut own_linked) = (vec![0; n], vec![0; n]);
    for id in 1..n {
        let name = nodes[id].name();
        block[id] = if is_block(name) || matches!(name, "td" | "th") { id } else { block[nodes[id].parent] };
        if let Content::Text(content) = &nodes[id].content
            && !left_out[id]
        {
            let weight = weight(content);
            own[block[id]] += weight;
            own_linked[block[id]] += if in_link[id] { weight } else { 0 };
        }
    }
    let (mut prose, mut paragraphs) = (vec![0; n], vec![0; n]);
    for id in (1..n).rev() {
        if own_linked[id] * 2 < own[id] {
            prose[id] += own[id];
            paragraphs[id] += if own[id] >= PARAGRAPH { own[id] } else { 0 };
        }
        prose[nodes[id].parent] += prose[id];
        paragraphs[nodes[id].parent] += paragraphs[id];
    }
    (prose, paragraphs)
}

/// Returns the weight of a text. White space weighs nothing.
fn weight(text: &str) -> usize {
    text.chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| if matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}') { 3 } else { 1 })
        .sum()
}
