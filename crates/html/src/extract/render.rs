//! The text of elements, as lines.

use super::dom::{Content, Dom, NodeId};
use super::names::{is_block, is_unseen};

/// Returns the text of some nodes, in the order of the page. Each block has lines of its own. Elements that `shows`
/// refuses are left out with their content, and so is what no browser shows.
pub fn text_of_nodes(dom: &Dom, wanted: &[NodeId], shows: impl Fn(NodeId) -> bool) -> String {
    let nodes = dom.nodes();
    let mut lines = Lines::default();
    let mut wanted: Vec<NodeId> = wanted.to_vec();
    wanted.sort_unstable();
    // A node that lies in one before it has been passed already.
    let mut passed = 0;
    for root in wanted {
        let mut id = root.max(passed);
        while id < nodes.len() && (id == root || nodes[id].depth > nodes[root].depth) {
            let node = &nodes[id];
            if matches!(node.content, Content::Element { .. }) {
                let is_seen = !is_unseen(node.name()) && !is_hidden(dom, id);
                if !is_seen || !shows(id) {
                    lines.leave_to(node.depth);
                    lines.leave_out(node.name(), is_seen);
                    id = end_of(dom, id);
                    continue;
                }
            }
            lines.leave_to(node.depth);
            match &node.content {
                Content::Text(text) => lines.text(text),
                Content::Element { .. } => lines.enter(node.name(), node.depth),
            }
            id += 1;
        }
        lines.leave_to(0);
        lines.end_line();
        passed = passed.max(id);
    }
    lines.done
}

/// Returns the number of the first node behind those that lie in a node.
pub fn end_of(dom: &Dom, id: NodeId) -> NodeId {
    let nodes = dom.nodes();
    let depth = nodes[id].depth;
    nodes[id + 1..].iter().position(|node| node.depth <= depth).map_or(nodes.len(), |n| id + 1 + n)
}

/// Returns whether an element says of itself that it is not shown.
pub fn is_hidden(dom: &Dom, id: NodeId) -> bool {
    let node = &dom.nodes()[id];
    // A script shows the page: nobody reads one that stays empty.
    if matches!(node.name(), "body" | "html") {
        return false;
    }
    // A reader turns to the tabs that are behind the first one.
    if node.attribute("role") == Some("tabpanel") {
        return false;
    }
    if node.attribute("hidden").is_some_and(|value| !value.eq_ignore_ascii_case("until-found")) {
        return true;
    }
    node.attribute("style").is_some_and(style_hides)
}

/// Returns whether a style hides its element. Of several declarations of a property the last one counts, or the last important one.
fn style_hides(style: &str) -> bool {
    let says = |wanted: &str, hides: &str| {
        let (mut is_hidden, mut is_important) = (false, false);
        for (property, value) in style.split(';').filter_map(|declaration| declaration.split_once(':')) {
            let (value, important) = value.split_once('!').map_or((value, false), |(value, _)| (value, true));
            let counts = property.trim().eq_ignore_ascii_case(wanted) && !value.trim().is_empty();
            if counts && (important || !is_important) {
                (is_hidden, is_important) = (value.trim().eq_ignore_ascii_case(hides), important);
            }
        }
        is_hidden
    };
    says("display", "none") || says("visibility", "hidden")
}

/// Text while its lines are put together.
#[derive(Default)]
struct Lines {
    done: String,
    /// The depths of the blocks that are open, and of those whose white space stays.
    blocks: Vec<usize>,
    pre: Option<usize>,
    /// A blank comes before the next word.
    blank: bool,
}

impl Lines {
    fn enter(&mut self, name: &str, depth: usize) {
        match name {
            "br" => self.end_line(),
            "td" | "th" => self.blank = true,
            "pre" | "xmp" => self.pre = self.pre.or(Some(depth)),
            _ => {}
        }
        if is_block(name) {
            self.end_line();
            debug_assert!(self.blocks.last().is_none_or(|&block| block < depth), "blocks that ended were left");
            self.blocks.push(depth);
        }
    }

    /// Parts the words around an element that is left out.
    fn leave_out(&mut self, name: &str, is_seen: bool) {
        if is_block(name) {
            self.end_line();
        } else {
            self.blank |= is_seen || matches!(name, "td" | "th");
        }
    }

    /// Ends the blocks that do not hold a node of this depth.
    fn leave_to(&mut self, depth: usize) {
        if self.pre.is_some_and(|pre| pre >= depth) {
            self.pre = None;
        }
        while self.blocks.last().is_some_and(|&block| block >= depth) {
            self.blocks.pop();
            self.end_line();
        }
    }

    fn end_line(&mut self) {
        if !self.done.is_empty() && !self.done.ends_with('\n') {
            self.done.push('\n');
        }
        self.blank = false;
    }

    fn text(&mut self, text: &str) {
        if self.pre.is_some() {
            for line in text.split_inclusive('\n') {
                self.words(line);
                if line.ends_with('\n') {
                    self.end_line();
                }
            }
        } else {
            self.words(text);
        }
    }

    fn words(&mut self, text: &str) {
        self.blank |= text.starts_with(char::is_whitespace);
        for word in text.split_whitespace() {
            if self.blank && !self.done.is_empty() && !self.done.ends_with('\n') {
                self.done.push(' ');
            }
            self.done.push_str(word);
            self.blank = true;
        }
        if text.split_whitespace().next().is_some() {
            self.blank = text.ends_with(char::is_whitespace);
        }
    }
}
