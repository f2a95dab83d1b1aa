//! The elements of a page as a tree.

use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{Tag, TagKind, Token, TokenSink, TokenSinkResult};
use html5ever::{Attribute, LocalName, local_name};

use super::names::{ENDS_FOREIGN, Kinds, ends_paragraph, is_unseen, is_void};
use super::tokens::tokenize;
use crate::mode::Syntax;

/// The most elements that lie in one another. The content of deeper ones belongs to the deepest that is allowed.
pub const MAX_DEPTH: usize = 256;
/// The most nodes of a page. The tags of further elements are left out; their text is not.
const MAX_NODES: usize = 1 << 21;

/// The attributes by which texts are told. Others are not held, unless a selector may name them.
const ATTRIBUTES: [&str; 8] = ["aria-hidden", "class", "hidden", "href", "id", "itemprop", "role", "style"];
/// The longest name that is not in the table of names that all pages share.
const SHORT_NAME_BYTES: usize = 7;

/// The extent to which a tree holds its elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// The elements and attributes that tell the main text, and all text. The names of unknown ones are kept in a table that
    /// all pages share, and whose rows a page can make long: a name that nobody asks for is not held.
    Known,
    /// All names and attributes, for selectors.
    All,
}

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

    pub fn parse(html: &str, holds: Holds, syntax: Syntax) -> Self {
        let builder = Builder::new(holds, syntax);
        builder.0.borrow_mut().ends_noscript = ends_noscript(html);
        Self { nodes: tokenize(html, builder).0.into_inner().nodes }
    }

    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }
}

struct Builder(RefCell<Tree>);

struct Tree {
    nodes: Vec<Node>,
    /// The elements that are open below the root, from the outermost on.
    open: Vec<Open>,
    holds: Holds,
    syntax: Syntax,
    /// The text up to the next end tag is that of an element which is not shown and could not be opened.
    drops_text: bool,
    /// The last `noscript` of the page has an end.
    ends_noscript: bool,
}

/// An open element. What tags ask of it is at hand, because each tag may ask all of them.
struct Open {
    id: NodeId,
    name: LocalName,
    kinds: Kinds,
}

impl Builder {
    fn new(holds: Holds, syntax: Syntax) -> Self {
        let content = Content::Element { name: LocalName::from(""), attributes: Vec::new() };
        let nodes = vec![Node { parent: 0, depth: 0, content }];
        Self(RefCell::new(Tree { nodes, open: Vec::new(), holds, syntax, drops_text: false, ends_noscript: false }))
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

    /// Returns whether `<![CDATA[` begins text here, and no comment.
    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        let tree = self.0.borrow();
        tree.syntax == Syntax::Xhtml || tree.foreign_around().is_some()
    }
}

impl Tree {
    /// Returns the place of the SVG or MathML that lies around what comes, unless HTML lies in it again.
    fn foreign_around(&self) -> Option<usize> {
        self.innermost(Kinds::FOREIGN | Kinds::INTEGRATES).filter(|&at| self.open[at].kinds.has(Kinds::FOREIGN))
    }

    fn top(&self) -> NodeId {
        self.open.last().map_or(Dom::ROOT, |open| open.id)
    }

    fn push(&mut self, content: Content) -> NodeId {
        let parent = self.top();
        // A form that ended leaves the open elements, and yet lies around those that it began before.
        let depth = self.nodes[parent].depth + 1;
        debug_assert!(parent < self.nodes.len(), "a node comes behind its parent, so that one pass sums a tree up");
        debug_assert!(depth <= MAX_DEPTH, "an element that is as deep as one may be is not open, and holds nothing");
        self.nodes.push(Node { parent, depth, content });
        self.nodes.len() - 1
    }

    fn text(&mut self, text: StrTendril) {
        if self.drops_text {
            return;
        }
        let parent = self.top();
        if let Some(Node { parent: same, content: Content::Text(before), .. }) = self.nodes.last_mut()
            && *same == parent
        {
            before.push_tendril(&text);
            return;
        }
        if matches!(self.nodes[parent].name(), "head" | "html") && !text.trim().is_empty() {
            self.leave_head();
        }
        self.push(Content::Text(text));
    }

    /// Returns the place of the innermost open element of some kinds.
    fn innermost(&self, kinds: Kinds) -> Option<usize> {
        self.open.iter().rposition(|open| open.kinds.has(kinds))
    }

    /// Text and most elements cannot be in the head, but in a template there: the body has begun without its tag.
    fn leave_head(&mut self) {
        self.end_first(Kinds::HEAD, Kinds::TEMPLATE);
    }

    fn start(&mut self, mut tag: Tag) -> TokenSinkResult<()> {
        let name = tag.name;
        match &*name {
            "html" if !self.open.is_empty() => return TokenSinkResult::Continue,
            "body" => self.leave_head(),
            "base" | "basefont" | "bgsound" | "link" | "meta" | "title" | "noscript" | "noframes" | "style"
            | "script" | "template" | "head" | "html" => {}
            _ => self.leave_head(),
        }
        let kinds = Kinds::of(&name);
        self.end_foreign(&name);
        self.imply_ends(&name, kinds);
        let may_close_itself =
            || self.syntax == Syntax::Xhtml || kinds.has(Kinds::FOREIGN) || self.innermost(Kinds::FOREIGN).is_some();
        let is_closed = tag.self_closing && may_close_itself();
        let is_tree = is_closed || (&*name == "noscript" && !(self.ends_noscript && self.foreign_around().is_none()));
        let content = if is_tree { TokenSinkResult::Continue } else { raw_content(&name) };
        self.drops_text = !matches!(content, TokenSinkResult::Continue) && is_unseen(&name);
        if self.nodes.len() < MAX_NODES {
            let is_all = self.holds == Holds::All;
            tag.attrs.retain(|attribute| is_all || ATTRIBUTES.contains(&&*attribute.name.local));
            let held = if is_all || is_known(&name) { name.clone() } else { local_name!("span") };
            let id = self.push(Content::Element { name: held, attributes: tag.attrs });
            if !is_void(&name) && !is_closed && self.nodes[id].depth < MAX_DEPTH {
                self.open.push(Open { id, name, kinds });
                self.drops_text = false;
            }
        }
        content
    }

    /// Ends the SVG or MathML that an element of HTML cannot lie in.
    fn end_foreign(&mut self, name: &str) {
        // Few tags lie in any, and the names are many.
        while let Some(at) = self.foreign_around()
            && ENDS_FOREIGN.contains(&name)
        {
            self.open.truncate(at);
        }
    }

    /// Ends the elements whose end tags are left out before this one.
    fn imply_ends(&mut self, name: &str, kinds: Kinds) {
        let (ended, within) = match name {
            "li" => (Kinds::ENTRY, Kinds::LIST),
            "dt" | "dd" => (Kinds::TERM, Kinds::TERMS),
            "option" | "optgroup" => (Kinds::OPTION, Kinds::CHOICE),
            "td" | "th" => (Kinds::CELL, Kinds::ROW | Kinds::TABLE),
            "tr" => (Kinds::ROW, Kinds::TABLE),
            "tbody" | "thead" | "tfoot" => (Kinds::ROWS, Kinds::TABLE),
            _ => (Kinds::NONE, Kinds::NONE),
        };
        self.end_first(ended, within | Kinds::TEMPLATE);
        if kinds.has(Kinds::BLOCK) && ends_paragraph(name) {
            self.end_first(Kinds::PARAGRAPH, Kinds::APART | Kinds::CELL | Kinds::CAPTION | Kinds::TABLE);
        }
    }

    /// Ends the innermost open element of some kinds, unless one of `within` lies around it first.
    fn end_first(&mut self, ended: Kinds, within: Kinds) {
        if let Some(at) = self.innermost(ended | within)
            && self.open[at].kinds.has(ended)
        {
            self.open.truncate(at);
        }
    }

    fn end(&mut self, name: &LocalName) {
        self.drops_text = false;
        let kinds = Kinds::of(name);
        match &**name {
            "body" | "html" => return,
            "form" => {
                // A form may end within other elements than it began in.
                if let Some(at) = self.innermost(Kinds::FORM) {
                    self.open.remove(at);
                }
                return;
            }
            _ => {}
        }
        let heading = if kinds.has(Kinds::HEADING) { Kinds::HEADING } else { Kinds::NONE };
        let is_part = kinds.has(Kinds::TABLE | Kinds::ROWS | Kinds::ROW | Kinds::CELL | Kinds::CAPTION);
        let parts = match kinds {
            // Rows and cells of a template need no table.
            _ if kinds.has(Kinds::TEMPLATE) => Kinds::NONE,
            _ if is_part => Kinds::TABLE,
            _ => Kinds::CELL | Kinds::TABLE | Kinds::CAPTION,
        };
        // The end of a choice, or of what keeps its paragraphs apart, ends the blocks in it whose end tags are left out.
        let ends_blocks = kinds.has(Kinds::BLOCK | Kinds::CHOICE | Kinds::APART);
        let barriers = if ends_blocks { parts } else { parts | Kinds::BLOCK };
        let is_ended = |open: &Open| open.name == *name || open.kinds.has(heading);
        let stops = |open: &Open| is_ended(open) || open.kinds.has(barriers);
        if let Some(at) = self.open.iter().rposition(stops)
            && is_ended(&self.open[at])
        {
            self.open.truncate(at);
        }
    }
}

/// Returns whether the name of an element may be one that the rules know. All others are as `<span>` to them.
fn is_known(name: &LocalName) -> bool {
    name.len() <= SHORT_NAME_BYTES || LocalName::try_static(name).is_some()
}

/// Returns whether a page has an end tag of `noscript` behind the last start tag. Without it, the rest of the page would be the
/// content of that one.
fn ends_noscript(html: &str) -> bool {
    let last = |tag: &str| {
        let is_tag = |found: &[u8]| found.eq_ignore_ascii_case(tag.as_bytes());
        let bytes = html.as_bytes();
        memchr::memrchr_iter(b'<', bytes).find(|&at| bytes[at..].get(..tag.len()).is_some_and(is_tag))
    };
    last("</noscript") > last("<noscript")
}

/// Returns how the content of an element is read.
fn raw_content(name: &str) -> TokenSinkResult<()> {
    match name {
        "script" => TokenSinkResult::RawData(RawKind::ScriptData),
        // As in a browser that runs scripts.
        "style" | "xmp" | "iframe" | "noembed" | "noframes" | "noscript" => TokenSinkResult::RawData(RawKind::Rawtext),
        "title" | "textarea" => TokenSinkResult::RawData(RawKind::Rcdata),
        "plaintext" => TokenSinkResult::Plaintext,
        _ => TokenSinkResult::Continue,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::extract::main_text::main_text;
    use crate::extract::names::{BLOCKS, UNSEEN, VOID, is_block};
    use crate::extract::render::text_of_nodes;

    /// The same tree by the rules as they are written: each tag asks the open elements one after another.
    struct Naive {
        nodes: Vec<Node>,
        open: Vec<NodeId>,
        drops_text: bool,
        ends_noscript: bool,
    }

    struct NaiveBuilder(RefCell<Naive>);

    impl TokenSink for NaiveBuilder {
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

        fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
            self.0.borrow().is_in_foreign()
        }
    }

    impl Naive {
        fn parse(html: &str) -> Vec<Node> {
            let content = Content::Element { name: LocalName::from(""), attributes: Vec::new() };
            let ends_noscript = ends_noscript(html);
            let naive = Self {
                nodes: vec![Node { parent: 0, depth: 0, content }],
                open: vec![0],
                drops_text: false,
                ends_noscript,
            };
            tokenize(html, NaiveBuilder(RefCell::new(naive))).0.into_inner().nodes
        }

        fn is_in_foreign(&self) -> bool {
            let integrates = ["foreignobject", "desc", "annotation-xml", "mi", "mo", "mn", "ms", "mtext"];
            let around = (0..self.open.len())
                .map(|at| self.name(at))
                .rfind(|name| matches!(*name, "svg" | "math") || integrates.contains(name));
            around.is_some_and(|name| matches!(name, "svg" | "math"))
        }

        fn name(&self, at: usize) -> &str {
            self.nodes[self.open[at]].name()
        }

        fn push(&mut self, content: Content) -> NodeId {
            let parent = *self.open.last().unwrap();
            self.nodes.push(Node { parent, depth: self.nodes[parent].depth + 1, content });
            self.nodes.len() - 1
        }

        fn text(&mut self, text: StrTendril) {
            if self.drops_text {
                return;
            }
            let parent = *self.open.last().unwrap();
            if let Some(Node { parent: same, content: Content::Text(before), .. }) = self.nodes.last_mut()
                && *same == parent
            {
                return before.push_tendril(&text);
            }
            if matches!(self.nodes[parent].name(), "head" | "html") && !text.trim().is_empty() {
                self.leave_head();
            }
            self.push(Content::Text(text));
        }

        fn leave_head(&mut self) {
            self.end_first(&["head"], &["template"]);
        }

        fn start(&mut self, tag: Tag) -> TokenSinkResult<()> {
            let name = tag.name.clone();
            match &*name {
                "html" if self.open.len() > 1 => return TokenSinkResult::Continue,
                "base" | "basefont" | "bgsound" | "link" | "meta" | "title" | "noscript" | "noframes" | "style"
                | "script" | "template" | "head" | "html" => {}
                _ => self.leave_head(),
            }
            while self.is_in_foreign() && ENDS_FOREIGN.contains(&&*name) {
                let at = (0..self.open.len()).rfind(|&at| matches!(self.name(at), "svg" | "math")).unwrap();
                self.open.truncate(at);
            }
            match &*name {
                "li" => self.end_first(&["li"], &["ul", "ol", "menu", "dir", "template"]),
                "dt" | "dd" => self.end_first(&["dt", "dd"], &["dl", "template"]),
                "option" | "optgroup" => self.end_first(&["option"], &["select", "datalist", "template"]),
                "td" | "th" => self.end_first(&["td", "th"], &["tr", "table", "template"]),
                "tr" => self.end_first(&["tr"], &["table", "template"]),
                "tbody" | "thead" | "tfoot" => self.end_first(&["tbody", "thead", "tfoot"], &["table", "template"]),
                _ => {}
            }
            if ends_paragraph(&name) {
                let apart = ["applet", "button", "marquee", "noscript", "object", "template"];
                self.end_first(&["p"], &[&apart[..], &["td", "th", "caption", "table"]].concat());
            }
            let was_in_foreign = self.is_in_foreign();
            let id = self.push(Content::Element { name: name.clone(), attributes: tag.attrs });
            let is_in_foreign = (0..self.open.len()).any(|at| matches!(self.name(at), "svg" | "math"));
            let is_empty = tag.self_closing && (is_in_foreign || matches!(&*name, "svg" | "math"));
            let is_opened = !is_void(&name) && !is_empty && self.nodes[id].depth < MAX_DEPTH;
            if is_opened {
                self.open.push(id);
            }
            let is_tree = is_empty || (&*name == "noscript" && (!self.ends_noscript || was_in_foreign));
            let content = if is_tree { TokenSinkResult::Continue } else { raw_content(&name) };
            self.drops_text = !is_opened && is_unseen(&name) && !matches!(content, TokenSinkResult::Continue);
            content
        }

        fn end_first(&mut self, names: &[&str], within: &[&str]) {
            for at in (1..self.open.len()).rev() {
                if names.contains(&self.name(at)) {
                    return self.open.truncate(at);
                }
                if within.contains(&self.name(at)) {
                    return;
                }
            }
        }

        fn end(&mut self, name: &str) {
            self.drops_text = false;
            match name {
                "body" | "html" => return,
                "form" => {
                    if let Some(at) = (0..self.open.len()).rfind(|&at| self.name(at) == "form") {
                        self.open.remove(at);
                    }
                    return;
                }
                _ => {}
            }
            let is_part = matches!(name, "table" | "tbody" | "thead" | "tfoot" | "tr" | "td" | "th" | "caption");
            let heading = |name: &str| matches!(name.as_bytes(), [b'h', b'1'..=b'6']);
            for at in (1..self.open.len()).rev() {
                let open = self.name(at);
                if open == name || (heading(open) && heading(name)) {
                    return self.open.truncate(at);
                }
                let ends_blocks =
                    ["select", "datalist", "applet", "button", "marquee", "noscript", "object", "template"]
                        .contains(&name);
                if (!is_part && name != "template" && matches!(open, "td" | "th" | "table" | "caption"))
                    || (is_part && open == "table")
                    || (!is_block(name) && !ends_blocks && is_block(open))
                {
                    return;
                }
            }
        }
    }

    /// Every element that a rule names, and some that none does.
    fn names() -> Vec<&'static str> {
        let others = [
            "a",
            "b",
            "span",
            "td",
            "th",
            "button",
            "marquee",
            "h7",
            "x-y",
            "customised-element",
            "rubytext",
            "math",
            "mi",
            "desc",
            "foreignobject",
            "map",
        ];
        [&BLOCKS[..], &UNSEEN, &VOID, &others].concat()
    }

    fn pages() -> impl Strategy<Value = String> {
        let name = || prop::sample::select(names());
        let few =
            prop::sample::select(vec!["p", "li", "td", "tr", "table", "b", "div", "form", "svg", "head", "h1", "h2"]);
        let piece = prop_oneof![
            4 => name().prop_map(|name| format!("<{name} class=x other-attribute=y role=main>")),
            4 => name().prop_map(|name| format!("</{name}>")),
            6 => few.clone().prop_map(|name| format!("<{name}>")),
            6 => few.prop_map(|name| format!("</{name}>")),
            1 => name().prop_map(|name| format!("<{name}/>")),
            1 => (name(), 2..300_usize).prop_map(|(name, n)| format!("<{name}>").repeat(n)),
            3 => "[ a-z中]{0,20}",
        ];
        prop::collection::vec(piece, 0..80).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn a_page_has_the_tree_that_the_rules_give_it_one_open_element_after_another(page in pages()) {
            let (dom, naive) = (Dom::parse(&page, Holds::All, Syntax::Html), Naive::parse(&page));
            prop_assert_eq!(dom.nodes().len(), naive.len());
            for (node, same) in dom.nodes().iter().zip(&naive) {
                prop_assert_eq!((node.parent, node.depth), (same.parent, same.depth));
                let is_same = match (&node.content, &same.content) {
                    (Content::Text(a), Content::Text(b)) => a == b,
                    (Content::Element { name: a, attributes: of_a }, Content::Element { name: b, attributes: of_b }) => {
                        a == b && of_a == of_b
                    }
                    _ => false,
                };
                prop_assert!(is_same, "{} is not {}", node.name(), same.name());
            }
        }

        #[test]
        fn names_and_attributes_that_are_not_held_make_no_other_text(page in pages()) {
            let (known, all) = (Dom::parse(&page, Holds::Known, Syntax::Html), Dom::parse(&page, Holds::All, Syntax::Html));
            prop_assert_eq!(main_text(&known), main_text(&all));
            let text = |dom: &Dom| text_of_nodes(dom, &[Dom::ROOT], |_| true);
            prop_assert_eq!(text(&known), text(&all));
        }
    }

    #[test]
    fn the_names_that_rules_know_are_held() {
        for name in names().into_iter().filter(|&name| name != "customised-element" && name != "rubytext") {
            assert!(is_known(&LocalName::from(name)), "{name}");
        }
        assert!(!is_known(&LocalName::from("customised-element")));
    }
}
