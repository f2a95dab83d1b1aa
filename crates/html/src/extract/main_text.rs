//! The main text of a page: the smallest element that holds most of its paragraphs, without what is boilerplate.
//!
//! Words of classes and the share of links tell boilerplate, as in Arc90's and Mozilla's Readability. Unlike there, no
//! element collects scores from those below it: it goes down from the root to where the paragraphs part.

use super::dom::{Dom, NodeId};
use super::names::is_block;
use super::render::text_of_nodes;
use super::score::{FEW_PARAGRAPHS, Weights};
use super::signs;

/// The share of an element's paragraphs that a child must hold so that the rest is left out.
const MOST_PARAGRAPHS: f64 = 0.75;
/// The same for all prose, with headings, cells and entries of lists.
const MOST_PROSE: f64 = 0.7;

/// Returns the main text. A page without paragraphs has all its text that is no boilerplate.
pub fn main_text(dom: &Dom) -> String {
    let weights = Weights::of(dom);
    let main = main_element(dom, &weights);
    let has_paragraphs = weights.paragraphs[main] > 0;
    let is_main = |id: NodeId| {
        let name = dom.nodes()[id].name();
        let is_list = has_paragraphs && (is_block(name) || name == "td") && weights.is_links(id);
        !weights.boilerplate[id] && (id == main || !is_list)
    };
    let text = text_of_nodes(dom, &[main], is_main);
    if text.is_empty() { text_of_nodes(dom, &[Dom::ROOT], |_| true) } else { text }
}

/// Goes down from the root, or from the element that says that it is the main one, as long as one child holds most of
/// the paragraphs and of the other prose: a text is not left for the one long paragraph among its lists and tables, nor for
/// paragraphs beside its heading and its own ones, unless these say that they are an article.
fn main_element(dom: &Dom, weights: &Weights) -> NodeId {
    let nodes = dom.nodes();
    let mut heaviest = vec![Dom::ROOT; nodes.len()];
    for id in 1..nodes.len() {
        let best = &mut heaviest[nodes[id].parent];
        if *best == Dom::ROOT || weights.paragraphs[id] > weights.paragraphs[*best] {
            *best = id;
        }
    }
    let is_heading = |id: &NodeId| nodes[*id].name() == "h1" && weights.text[*id] > 0;
    let mut holds_article: Vec<bool> = nodes.iter().map(signs::is_article).collect();
    for id in (1..nodes.len()).rev() {
        holds_article[nodes[id].parent] |= holds_article[id];
    }
    let headings: Vec<NodeId> = (0..nodes.len()).filter(is_heading).collect();
    let mut main = named_main(dom, weights).unwrap_or(Dom::ROOT);
    while heaviest[main] != Dom::ROOT {
        let child = heaviest[main];
        let holds_most = |weights: &[usize], share| holds(weights, child, share, main);
        if weights.paragraphs[child] == 0
            || !holds_most(&weights.paragraphs, MOST_PARAGRAPHS)
            || !holds_most(&weights.prose, MOST_PROSE)
            || matches!(nodes[child].name(), "" | "p")
            || !holds_article[child] && leaves_heading(dom, weights, &headings, main, child)
        {
            break;
        }
        main = child;
    }
    main
}

/// Returns the element that says that it is the main one, if it may be right: it holds half the paragraphs, or the page
/// has few, as an index has.
fn named_main(dom: &Dom, weights: &Weights) -> Option<NodeId> {
    let named = dom.nodes().iter().position(signs::is_main).filter(|&id| weights.text[id] > 0)?;
    let has_few = weights.paragraphs[Dom::ROOT] < FEW_PARAGRAPHS;
    (has_few || holds(&weights.paragraphs, named, 0.5, Dom::ROOT)).then_some(named)
}

/// Returns whether a node holds this share of what another holds.
#[allow(clippy::cast_precision_loss, reason = "a share")]
fn holds(weights: &[usize], id: NodeId, share: f64, of: NodeId) -> bool {
    weights[id] as f64 >= share * weights[of] as f64
}

/// Returns whether the first heading of a page's part lies beside one of its children, with as many paragraphs as an article has: the
/// child may hold what all pages of a site share. Of the headings, which have the order of the page, some may lie elsewhere.
fn leaves_heading(dom: &Dom, weights: &Weights, headings: &[NodeId], main: NodeId, child: NodeId) -> bool {
    let nodes = dom.nodes();
    let Some(&heading) = headings.get(headings.partition_point(|&id| id < main)) else { return false };
    let mut at = heading;
    while nodes[at].depth > nodes[main].depth + 1 {
        at = nodes[at].parent;
    }
    nodes[at].parent == main && at != child && weights.paragraphs[at] >= FEW_PARAGRAPHS
}
