//! The signs that elements give of themselves by their names, roles, classes and ids.

use std::ops::BitOr;

use super::dom::{Content, Dom, Node, NodeId};

/// Words that classes and ids of boilerplate have, whatever the language of the page.
const BOILERPLATE: [&str; 68] = [
    "ad",
    "ads",
    "advert",
    "advertisement",
    "banner",
    "breadcrumb",
    "breadcrumbs",
    "byline",
    "caption",
    "captions",
    "comment",
    "comments",
    "consent",
    "cookie",
    "cookies",
    "copyright",
    "credit",
    "credits",
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
    "prev",
    "previous",
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

/// The words of those that also say how any element is laid out, or that it has a part of a page builder: `overflow-hidden`,
/// `print:py-4`, `elementor-widget`.
const LAYOUT: [&str; 10] =
    ["caption", "captions", "hidden", "meta", "overlay", "print", "share", "skip", "tags", "widget"];

/// Words that a class or id puts before `body`, `content` or `text` to name the main text.
const MAIN: [&str; 6] = ["article", "entry", "main", "news", "post", "story"];

/// Returns whether an element is the main one of its page by its name or role.
pub fn is_main(node: &Node) -> bool {
    node.name() == "main" || node.attribute("role") == Some("main")
}

/// Returns whether an element says that it is an article or the main one of its page.
pub fn is_article(node: &Node) -> bool {
    node.name() == "article" || is_main(node) || says_main(node)
}

/// The signs by which an element is boilerplate: a set of bits, one for each word of [`LAYOUT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signs(u16);

impl Signs {
    pub const NONE: Self = Self(0);
    /// A name, a role, or another word.
    const SURE: Self = Self(1 << LAYOUT.len());
    /// All words of [`LAYOUT`].
    pub const LAYOUT: Self = Self(Self::SURE.0 - 1);

    /// Returns the signs of an element.
    pub fn of(dom: &Dom, id: NodeId) -> Self {
        let node = &dom.nodes()[id];
        let Content::Element { .. } = node.content else { return Self::NONE };
        match is_boilerplate_by_name(dom, id) {
            Some(true) => Self::SURE,
            Some(false) => Self::NONE,
            None => of_words(node),
        }
    }

    /// Returns each word of [`LAYOUT`] alone.
    pub fn each_of_layout() -> impl Iterator<Item = Self> {
        (0..LAYOUT.len()).map(|bit| Self(1 << bit))
    }

    /// Returns the signs that are not among others.
    pub fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }
}

impl BitOr for Signs {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Returns whether an element is boilerplate by its name or role, if these tell.
fn is_boilerplate_by_name(dom: &Dom, id: NodeId) -> Option<bool> {
    let node = &dom.nodes()[id];
    match node.name() {
        "nav" | "footer" | "aside" | "dialog" | "menu" | "button" | "input" | "label" | "figcaption" => {
            return Some(true);
        }
        // The id of a heading is often made from its words.
        "html" | "body" | "article" | "main" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => return Some(false),
        "header" => return Some(!lies_in_article(dom, id)),
        _ => {}
    }
    // Most elements have no role.
    let is_of_role = matches!(
        node.attribute("role").unwrap_or_default(),
        "navigation"
            | "banner"
            | "contentinfo"
            | "complementary"
            | "search"
            | "dialog"
            | "alert"
            | "alertdialog"
            | "menu"
    );
    (is_of_role || node.attribute("aria-hidden") == Some("true")).then_some(true)
}

/// Returns the signs that the words of the classes and the id of an element are.
fn of_words(node: &Node) -> Signs {
    let mut signs = Signs::NONE;
    for word in classes_and_id(node).flat_map(words) {
        if BOILERPLATE.binary_search(&word.as_str()).is_err() {
            continue;
        }
        let Some(bit) = LAYOUT.iter().position(|layout| *layout == word) else {
            signs = Signs::SURE;
            break;
        };
        signs = signs | Signs(1 << bit);
    }
    if signs != Signs::NONE && says_main(node) { Signs::NONE } else { signs }
}

/// Returns whether an element holds the main text by its class or id, such as `article__body` and `entry-content`, or as
/// schema.org marks it.
fn says_main(node: &Node) -> bool {
    node.attribute("itemprop") == Some("articleBody")
        || classes_and_id(node).flat_map(str::split_whitespace).any(|name| {
            let name: String = words(name).concat();
            let rest = MAIN.iter().find_map(|first| name.strip_prefix(first));
            matches!(rest, Some("body" | "content" | "text"))
        })
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

fn classes_and_id(node: &Node) -> impl Iterator<Item = &str> {
    [node.attribute("class"), node.attribute("id")].into_iter().flatten()
}

/// Returns the words of classes or an id, in lower case: `navBar-main` has `nav`, `bar` and `main`.
fn words(names: &str) -> Vec<String> {
    let mut split = String::with_capacity(names.len() + 8);
    let mut before_lower = false;
    for c in names.chars() {
        if c.is_uppercase() && before_lower {
            split.push(' ');
        }
        before_lower = c.is_lowercase();
        split.push(if c.is_alphanumeric() { c.to_ascii_lowercase() } else { ' ' });
    }
    split.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::{BOILERPLATE, LAYOUT};

    #[test]
    fn the_words_are_sorted_and_those_of_layouts_are_among_them() {
        assert!(BOILERPLATE.is_sorted());
        assert!(LAYOUT.iter().all(|word| BOILERPLATE.contains(word)));
    }
}
