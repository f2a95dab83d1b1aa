//! Writes the sheet as a page that shows the pairs side by side and marks the differences. The page needs no other file
//! and no network.

use maud::{Markup, html};

use super::sheet::SheetPair;
use nearprint_explain::diff;
use nearprint_report::page::{page as shell, pieces};

pub fn page(pairs: &[SheetPair]) -> String {
    let body = html! {
        header {
            h1 { "Pairs to label" }
            p { "In the order of the sheet's rows. What only one of the two excerpts has is marked." }
        }
        main {
            @for (row, pair) in (2_u32..).zip(pairs) { (section(row, pair)) }
        }
    };
    shell("nearprint: pairs to label", &body)
}

/// The section of a pair. `row` is the number of its row in a spreadsheet.
fn section(row: u32, pair: &SheetPair) -> Markup {
    let pieces = diff(&pair.text_a, &pair.text_b).pieces;
    html! {
        section {
            h2 {
                "Row " (row) ": distance " (pair.distance)
                @if let Some(distance) = pair.sketch_distance { ", sketch distance " (distance) }
                "; one of " (pair.n_pairs) " pairs at this distance"
            }
            div.two {
                div { div { (pieces::id(&pair.id_a)) } (pieces::side(&pieces, true)) }
                div { div { (pieces::id(&pair.id_b)) } (pieces::side(&pieces, false)) }
            }
        }
    }
}
