//! The elements of a page as a tree.

use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{Tag, TagKind, Token, TokenSink, TokenSinkResult};
use html5ever::{Attribute, LocalName};

use crate::names::{ends_paragraph, is_block, is_void};
use crate::tokens::tokenize;

/// The most elements that lie in one another. The content of deeper ones belongs to the deepest that is allowed.
pub const MAX_DEPTH: usize = 256;
/// The most nodes of a page. The tags of further elements are left out; their text is not.
const MAX_NODES: usize = 1 << 21;

/// The number of a node. Nodes have the order of the page: a parent comes before its children.
pub type NodeId = usize;

/// The elements and texts of a page. The tree is built by fewer rules than a browser's: end tags that may be left out
/// are implied, and end tags of nothing are passed over. Nothing is moved.
pub struct Dom {
    nodes: Vec<Node>,
}

pub struct Node {
    pub parent: NodeId,
    pub depth: usize,
    pub content: Content,
}

pub enum Content {
    Text(StrTendril),
    Element { name: LocalName, attributes: Vec<Attribute> },
}

impl Node {
    /// Returns the name of an element in lower case; the empty string for a text.
    pub fn name(&self) -> &str {
        match &self.content {
            Content::Text(_) => "",
            Content::Element { name, .. } => name,
        }
    }

    /// Returns the value of an attribute.
    pub fn attribute(&self, wanted: &str) -> Option<&str> {
        let Content::Element { attributes, .. } = &self.content else { return None };
        attributes.iter().find(|attribute| &*attribute.name.local == wanted).map(|attribute| &*attribute.value)
    }
}

impl Dom {
    /// The node that holds all others.
    pub const ROOT: NodeId = 0;

    pub fn parse(html: &str) -> Self {
        Self { nodes: tokenize(html, Builder::new()).0.into_inner().nodes }
    }

    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }
}

struct Builder(RefCell<Tree>);

struct Tree {
    nodes: Vec<Node>,
    /// The elements that are open, from the root on.
    open: Vec<NodeId>,
}

impl Builder {
    fn new() -> Self {
        let content = Content::Element { name: LocalName::from(""), attributes: Vec::new() };
        Self(RefCell::new(Tree { nodes: vec![Node { parent: 0, depth: 0, content }], open: vec![0] }))
    }
}

impl TokenSink for Builder {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        let mut tree = self.0.borrow_mut();
        match token {
            Token::CharacterTokens(text) => tree.text(text),
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => return tree.start(tag),
            Token::TagToken(tag) => tree.end(&tag.name),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

impl Tree {
    fn top(&self) -> NodeId {
        self.open.last().copied().unwrap_or(Dom::ROOT)
    }

    fn name(&self, id: NodeId) -> &str {
        self.nodes[id].name()
    }

    fn push(&mut self, content: Content) -> NodeId {
        let parent = self.top();
        // A form that ended leaves the open elements, and yet lies around those that it began before.
        let depth = self.nodes[parent].depth + 1;
        self.nodes.push(Node { parent, depth, content });
        self.nodes.len() - 1
    }

    fn text(&mut self, text: StrTendril) {
        let parent = self.top();
        if let Some(Node { parent: same, content: Content::Text(before), .. }) = self.nodes.last_mut()
            && *same == parent
        {
            before.push_tendril(&text);
            return;
        }
        if matches!(self.name(parent), "head" | "html") && !text.trim().is_empty() {
            self.leave_head();
        }
        self.push(Content::Text(text));
    }

    /// Text and most elements cannot be in the head: the body has begun without its tag.
    fn leave_head(&mut self) {
        if let Some(at) = self.open.iter().rposition(|&id| self.name(id) == "head") {
            self.open.truncate(at);
        }
    }

    fn start(&mut self, tag: Tag) -> TokenSinkResult<()> {
        let name = tag.name.clone();
        match &*name {
            "html" if self.open.len() > 1 => return TokenSinkResult::Continue,
            "body" => self.leave_head(),
            "base" | "basefont" | "bgsound" | "link" | "meta" | "title" | "noscript" | "noframes" | "style"
            | "script" | "template" | "head" | "html" => {}
            _ => self.leave_head(),
        }
        self.imply_ends(&name);
        if self.nodes.len() < MAX_NODES {
            let id = self.push(Content::Element { name: name.clone(), attributes: tag.attrs });
            let is_foreign = tag.self_closing && self.open.iter().any(|&id| matches!(self.name(id), "svg" | "math"));
            if !is_void(&name) && !is_foreign && self.nodes[id].depth < MAX_DEPTH {
                self.open.push(id);
            }
        }
        raw_content(&name)
    }

    /// Ends the elements whose end tags are left out before this one.
    fn imply_ends(&mut self, name: &str) {
        let (ended, within): (&[&str], &[&str]) = match name {
            "li" => (&["li"], &["ul", "ol", "menu", "dir"]),
            "dt" | "dd" => (&["dt", "dd"], &["dl"]),
            "option" | "optgroup" => (&["option"], &["select", "datalist"]),
            "td" | "th" => (&["td", "th"], &["tr", "table"]),
            "tr" => (&["tr"], &["table"]),
            "tbody" | "thead" | "tfoot" => (&["tbody", "thead", "tfoot"], &["table"]),
            _ => (&[], &[]),
        };
        self.end_first(ended, within);
        if ends_paragraph(name) {
            self.end_first(&["p"], &["button", "td", "th", "caption", "table", "object", "template"]);
        }
    }

    /// Ends the innermost open element of these names, unless one of `within` lies around it first.
    fn end_first(&mut self, names: &[&str], within: &[&str]) {
        for at in (1..self.open.len()).rev() {
            let name = self.name(self.open[at]);
            if names.contains(&name) {
                return self.open.truncate(at);
            }
            if within.contains(&name) || names.is_empty() {
                return;
            }
        }
    }

    fn end(&mut self, name: &str) {
        match name {
            "body" | "html" => return,
            "form" => {
                // A form may end within other elements than it began in.
                if let Some(at) = self.open.iter().rposition(|&id| self.name(id) == "form") {
                    self.open.remove(at);
                }
                return;
            }
            _ => {}
        }
        let is_part = matches!(name, "table" | "tbody" | "thead" | "tfoot" | "tr" | "td" | "th" | "caption");
        for at in (1..self.open.len()).rev() {
            let open = self.name(self.open[at]);
            let heading = |name: &str| matches!(name.as_bytes(), [b'h', b'1'..=b'6']);
            if open == name || (heading(open) && heading(name)) {
                return self.open.truncate(at);
            }
            let is_barrier = (!is_part && matches!(open, "td" | "th" | "table" | "caption"))
                || (is_part && open == "table")
                || (!is_block(name) && is_block(open));
            if is_barrier {
                return;
            }
        }
    }
}

/// Returns how the content of an element is read.
fn raw_content(name: &str) -> TokenSinkResult<()> {
    match name {
        "script" => TokenSinkResult::RawData(RawKind::ScriptData),
        "style" | "xmp" | "iframe" | "noembed" | "noframes" => TokenSinkResult::RawData(RawKind::Rawtext),
        "title" | "textarea" => TokenSinkResult::RawData(RawKind::Rcdata),
        "plaintext" => TokenSinkResult::Plaintext,
        _ => TokenSinkResult::Continue,
    }
}
