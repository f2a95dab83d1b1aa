//! The elements that a CSS selector names.

use html5ever::{Attribute, QualName, ns};
use scraper::node::{Element, Text};
use scraper::{Html, Node, Selector};

use super::dom::{Content, Dom, NodeId};
use super::error::{HtmlError, Result};

pub fn parse(selector: &str) -> Result<Selector> {
    Selector::parse(selector).map_err(|_| HtmlError::Selector { selector: selector.to_owned() })
}

/// Returns the elements that a selector names, in the order of the page.
pub fn select(dom: &Dom, selector: &Selector) -> Vec<NodeId> {
    // The tree of `scraper` gets the same nodes in the same order.
    let mut html = Html::new_document();
    let mut ids = vec![html.tree.root().id()];
    for node in &dom.nodes()[1..] {
        let same = match &node.content {
            Content::Text(text) => Node::Text(Text { text: (&**text).into() }),
            Content::Element { name, attributes } => Node::Element(Element::new(
                QualName::new(None, ns!(html), name.clone()),
                attributes.iter().map(copy).collect(),
            )),
        };
        let parent = html.tree.get_mut(ids[node.parent]).map(|mut parent| parent.append(same).id());
        ids.push(parent.unwrap_or(ids[0]));
    }
    let found: std::collections::HashSet<_> = html.select(selector).map(|element| element.id()).collect();
    (0..ids.len()).filter(|&id| found.contains(&ids[id])).collect()
}

fn copy(attribute: &Attribute) -> Attribute {
    Attribute { name: attribute.name.clone(), value: attribute.value.clone() }
}
