//! Kinds of elements.

use std::ops::BitOr;

/// Kinds of elements, as far as the tags of some end others: a set of bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kinds(u32);

impl Kinds {
    pub const NONE: Self = Self(0);
    pub const BLOCK: Self = Self(1);
    pub const HEAD: Self = Self(1 << 1);
    pub const FORM: Self = Self(1 << 2);
    pub const PARAGRAPH: Self = Self(1 << 3);
    pub const HEADING: Self = Self(1 << 4);
    pub const LIST: Self = Self(1 << 5);
    pub const ENTRY: Self = Self(1 << 6);
    pub const TERMS: Self = Self(1 << 7);
    pub const TERM: Self = Self(1 << 8);
    pub const CHOICE: Self = Self(1 << 9);
    pub const OPTION: Self = Self(1 << 10);
    pub const TABLE: Self = Self(1 << 11);
    pub const CAPTION: Self = Self(1 << 12);
    pub const ROWS: Self = Self(1 << 13);
    pub const ROW: Self = Self(1 << 14);
    pub const CELL: Self = Self(1 << 15);
    /// Elements of SVG and MathML.
    pub const FOREIGN: Self = Self(1 << 16);
    /// Elements whose paragraphs are apart from those around.
    pub const APART: Self = Self(1 << 17);
    /// Elements of SVG and MathML within which the tags of HTML are elements again.
    pub const INTEGRATES: Self = Self(1 << 18);
    pub const TEMPLATE: Self = Self(1 << 19);

    /// Returns the kinds of an element.
    pub fn of(name: &str) -> Self {
        let kinds = match name {
            "head" => Self::HEAD,
            "form" => Self::FORM,
            "p" => Self::PARAGRAPH,
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => Self::HEADING,
            "ul" | "ol" | "menu" | "dir" => Self::LIST,
            "li" => Self::ENTRY,
            "dl" => Self::TERMS,
            "dt" | "dd" => Self::TERM,
            "select" | "datalist" => Self::CHOICE,
            "option" => Self::OPTION,
            "table" => Self::TABLE,
            "caption" => Self::CAPTION,
            "tbody" | "thead" | "tfoot" => Self::ROWS,
            "tr" => Self::ROW,
            "td" | "th" => Self::CELL,
            "svg" | "math" => Self::FOREIGN,
            "foreignobject" | "desc" | "annotation-xml" | "mi" | "mo" | "mn" | "ms" | "mtext" => Self::INTEGRATES,
            "applet" | "button" | "marquee" | "noscript" | "object" => Self::APART,
            "template" => Self(Self::APART.0 | Self::TEMPLATE.0),
            _ => Self::NONE,
        };
        if is_block(name) { kinds | Self::BLOCK } else { kinds }
    }

    /// Returns whether one of these kinds is among them.
    pub fn has(self, any: Self) -> bool {
        self.0 & any.0 != 0
    }
}

impl BitOr for Kinds {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Elements without content.
pub const VOID: [&str; 16] = [
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input", "link", "meta",
    "param", "source", "wbr",
];

/// Elements that begin and end lines.
pub const BLOCKS: [&str; 49] = [
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

/// Elements of HTML whose start ends SVG and MathML around it, which lack their end tags. Source: the HTML standard, 13.2.6.5,
/// "the rules for parsing tokens in foreign content".
pub const ENDS_FOREIGN: [&str; 44] = [
    "b",
    "big",
    "blockquote",
    "body",
    "br",
    "center",
    "code",
    "dd",
    "div",
    "dl",
    "dt",
    "em",
    "embed",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "hr",
    "i",
    "img",
    "li",
    "listing",
    "menu",
    "meta",
    "nobr",
    "ol",
    "p",
    "pre",
    "ruby",
    "s",
    "small",
    "span",
    "strong",
    "strike",
    "sub",
    "sup",
    "table",
    "tt",
    "u",
    "ul",
    "var",
];

/// Elements whose content a browser does not show as text. It shows that of formulas, but not what else is noted of them.
pub const UNSEEN: [&str; 18] = [
    "script",
    "style",
    "template",
    "noscript",
    "noframes",
    "noembed",
    "iframe",
    "object",
    "svg",
    "canvas",
    "audio",
    "video",
    "select",
    "textarea",
    "datalist",
    "applet",
    "annotation",
    "annotation-xml",
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
