//! The main text of a page: the smallest element that holds most of its paragraphs, without what is boilerplate.

use crate::dom::{Dom, NodeId};
use crate::names::is_block;
use crate::render::text_of_nodes;
use crate::score::Weights;

/// The share of an element's paragraphs that a child must hold so that the rest is left out.
const MOST_PARAGRAPHS: f64 = 0.75;

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

/// Goes down from the root as long as one child holds most of the paragraphs.
#[allow(clippy::cast_precision_loss, reason = "a share")]
fn main_element(dom: &Dom, weights: &Weights) -> NodeId {
    let nodes = dom.nodes();
    let mut heaviest = vec![Dom::ROOT; nodes.len()];
    for id in 1..nodes.len() {
        let best = &mut heaviest[nodes[id].parent];
        if *best == Dom::ROOT || weights.paragraphs[id] > weights.paragraphs[*best] {
            *best = id;
        }
    }
    let mut main = Dom::ROOT;
    while heaviest[main] != Dom::ROOT {
        let child = heaviest[main];
        let holds_most = weights.paragraphs[child] as f64 >= MOST_PARAGRAPHS * weights.paragraphs[main] as f64;
        if !holds_most
            || weights.paragraphs[child] == 0
            || matches!(nodes[child].name(), "" | "p" | "li" | "td" | "tr" | "tbody")
        {
            break;
        }
        main = child;
    }
    main
}
