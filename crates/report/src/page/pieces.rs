//! Pieces of pages: sections, ids, and texts with their differences.

use maud::{Markup, html};

use nearprint_explain::{DiffPiece, is_web_address, shown_id};

/// A section with its heading.
pub fn section(id: &str, heading: &str, body: &Markup) -> Markup {
    html! {
        section id=(id) aria-labelledby={ (id) "-heading" } {
            h2 id={ (id) "-heading" } { (heading) }
            (body)
        }
    }
}

/// An id or a name from documents. A reader of the page selects and copies it, so nothing is cut off.
pub fn id(text: &str) -> Markup {
    html! { code.id dir="auto" { (shown_id(text)) } }
}

/// The id of a document, which is a link if it is the address of a web page.
pub fn document_id(text: &str) -> Markup {
    html! {
        @if is_web_address(text) { a href=(text) rel="noopener noreferrer nofollow" { (id(text)) } }
        @else { (id(text)) }
    }
}

/// The pieces of two texts as one text: what only the first has is deleted, what only the second has is inserted.
pub fn merged(pieces: &[DiffPiece]) -> Markup {
    html! {
        @for piece in pieces {
            @match piece {
                DiffPiece::Same(text) => (text),
                DiffPiece::Removed(text) => del { (text) },
                DiffPiece::Added(text) => ins { (text) },
            }
        }
    }
}

/// The pieces of one of two texts, with what the other has not marked.
pub fn side(pieces: &[DiffPiece], is_first: bool) -> Markup {
    html! {
        @for piece in pieces {
            @match piece {
                DiffPiece::Same(text) => (text),
                DiffPiece::Removed(text) if is_first => mark { (text) },
                DiffPiece::Added(text) if !is_first => mark { (text) },
                DiffPiece::Removed(_) | DiffPiece::Added(_) => "",
            }
        }
    }
}
