//! The main text of a page.
use crate::dom::Dom;
use crate::render::text_of_nodes;
pub fn main_text(dom: &Dom) -> String { text_of_nodes(dom, &[Dom::ROOT], |_| true) }
