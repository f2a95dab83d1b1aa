//! Pieces of text and of differences, for pages.

use maud::{Markup, html};

use nearprint_explain::{Piece, shown_id};

/// An id or a name from documents. A reader of the page selects and copies it, so nothing is cut off.
pub fn id(text: &str) -> Markup {
    html! { code.id dir="auto" { (shown_id(text)) } }
}

/// The pieces of two texts as one text: what only the first has is deleted, what only the second has is inserted.
pub fn merged(pieces: &[Piece]) -> Markup {
    html! {
        @for piece in pieces {
            @match piece {
                Piece::Same(text) => (text),
                Piece::Removed(text) => del { (text) },
                Piece::Added(text) => ins { (text) },
            }
        }
    }
}

/// The pieces of one of two texts, with what the other has not marked.
pub fn side(pieces: &[Piece], is_first: bool) -> Markup {
    html! {
        @for piece in pieces {
            @match piece {
                Piece::Same(text) => (text),
                Piece::Removed(text) if is_first => mark { (text) },
                Piece::Added(text) if !is_first => mark { (text) },
                Piece::Removed(_) | Piece::Added(_) => "",
            }
        }
    }
}
