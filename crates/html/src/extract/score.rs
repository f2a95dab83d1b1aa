//! The weights of the elements of a page: how much text they hold, and how much of it in links.

use super::dom::{Content, Dom, NodeId};
use super::names::{is_block, is_unseen};
use super::render::is_hidden;
use super::signs;

/// The share of a page's text above which an element is no boilerplate, whatever it says of itself.
const MOST_TEXT: f64 = 0.6;
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
    pub fn of(dom: &Dom) -> Self {
        let links = links(dom);
        let unseen = unseen(dom);
        let boilerplate = boilerplate(dom, &sums(dom, &links, &unseen).0, unseen);
        let (text, linked) = sums(dom, &links, &boilerplate);
        let (prose, paragraphs) = prose(dom, &links, &boilerplate);
        Self { text, linked, prose, paragraphs, boilerplate }
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

/// Returns which nodes are boilerplate, beside those that are `unseen`.
fn boilerplate(dom: &Dom, text: &[usize], unseen: Vec<bool>) -> Vec<bool> {
    let nodes = dom.nodes();
    let mut holds_main = vec![false; nodes.len()];
    for id in (1..nodes.len()).rev() {
        holds_main[id] |= signs::is_main(&nodes[id]);
        holds_main[nodes[id].parent] |= holds_main[id];
    }
    let mut boilerplate = unseen;
    for id in 1..nodes.len() {
        #[allow(clippy::cast_precision_loss, reason = "a share")]
        let is_most = text[id] as f64 > MOST_TEXT * text[Dom::ROOT] as f64;
        boilerplate[id] = boilerplate[id]
            || boilerplate[nodes[id].parent]
            || (!is_most && !holds_main[id] && signs::is_boilerplate(dom, id));
    }
    boilerplate
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
