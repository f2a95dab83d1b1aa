//! Kinds of elements.

/// Elements without content.
const VOID: [&str; 16] = [
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input", "link", "meta",
    "param", "source", "wbr",
];

/// Elements that begin and end lines.
const BLOCKS: [&str; 49] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "caption",
    "center",
    "dd",
    "details",
    "dialog",
    "dir",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "header",
    "hr",
    "html",
    "legend",
    "li",
    "main",
    "menu",
    "nav",
    "ol",
    "optgroup",
    "option",
    "p",
    "pre",
    "section",
    "summary",
    "table",
    "tbody",
    "tfoot",
    "thead",
    "title",
    "tr",
    "ul",
    "xmp",
];

/// The blocks whose start does not end a paragraph: parts of pages, tables and forms.
const PARTS: [&str; 12] =
    ["body", "caption", "head", "html", "legend", "optgroup", "option", "tbody", "tfoot", "thead", "title", "tr"];

/// Elements whose content a browser does not show as text.
const UNSEEN: [&str; 18] = [
    "script", "style", "template", "noscript", "noframes", "noembed", "iframe", "object", "svg", "math", "canvas",
    "audio", "video", "select", "textarea", "datalist", "applet", "map",
];

pub fn is_void(name: &str) -> bool {
    VOID.contains(&name)
}

pub fn is_block(name: &str) -> bool {
    BLOCKS.contains(&name)
}

pub fn ends_paragraph(name: &str) -> bool {
    is_block(name) && !PARTS.contains(&name)
}

pub fn is_unseen(name: &str) -> bool {
    UNSEEN.contains(&name)
}
