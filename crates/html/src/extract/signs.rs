//! The signs that elements give of themselves by their names, roles, classes and ids.

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
pub const LAYOUT: [&str; 10] =
    ["caption", "captions", "hidden", "meta", "overlay", "print", "share", "skip", "tags", "widget"];

/// Words that a class or id puts before `body`, `content` or `text` to name the main text.
const MAIN: [&str; 6] = ["article", "entry", "main", "news", "post", "story"];

/// Returns whether an element is the main one of its page by its name or role.
pub fn is_main(node: &Node) -> bool {
    node.name() == "main" || node.attribute("role") == Some("main")
}

/// Returns whether an element is boilerplate by its name, role, class or id. Words of classes and ids that are `ignored` are no signs.
pub fn is_boilerplate(dom: &Dom, id: NodeId, ignored: &[&str]) -> bool {
    let node = &dom.nodes()[id];
    let Content::Element { .. } = node.content else { return false };
    match node.name() {
        "nav" | "footer" | "aside" | "dialog" | "menu" | "button" | "input" | "label" | "figcaption" => return true,
        // The id of a heading is often made from its words.
        "html" | "body" | "article" | "main" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => return false,
        "header" => return !lies_in_article(dom, id),
        _ => {}
    }
    // Most elements have no role.
    let role = node.attribute("role").unwrap_or_default();
    if matches!(
        role,
        "navigation"
            | "banner"
            | "contentinfo"
            | "complementary"
            | "search"
            | "dialog"
            | "alert"
            | "alertdialog"
            | "menu"
    ) {
        return true;
    }
    if node.attribute("aria-hidden") == Some("true") {
        return true;
    }
    let is_word_of_boilerplate =
        |word: String| BOILERPLATE.binary_search(&word.as_str()).is_ok() && !ignored.contains(&word.as_str());
    classes_and_id(node).any(|names| words(names).into_iter().any(is_word_of_boilerplate)) && !says_main(node)
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
    use super::BOILERPLATE;

    #[test]
    fn the_words_are_sorted() {
        assert!(BOILERPLATE.is_sorted());
    }
}
