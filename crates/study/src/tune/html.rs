//! Writes the sheet as a page that shows the pairs side by side and marks the differences. The page needs no other file
//! and no network.

use std::fmt::Write;

use html_escape::encode_text;

use super::sheet::SheetPair;
use crate::explain::diff::{Piece, diff};
use crate::legible::legible;

const HEAD: &str = "<!doctype html>
<html lang=\"en\"><head><meta charset=\"utf-8\">
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"><title>nearprint: pairs to label</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; color: #222; }
section { border-top: 1px solid #ccc; padding: .6rem 0 1rem; }
h2 { font-size: 1rem; margin: 0 0 .4rem; }
.two { display: grid; grid-template-columns: 1fr 1fr; gap: 1.5rem; }
.two > div { overflow-wrap: anywhere; }
.id { color: #666; font-size: .85rem; }
mark { background: #ffe08a; }
</style></head><body>
<h1>Pairs to label</h1>
<p>In the order of the sheet's rows. What only one of the two excerpts has is marked.</p>
";

pub fn page(pairs: &[SheetPair]) -> String {
    let mut out = HEAD.to_owned();
    for (number, pair) in (2..).zip(pairs) {
        section(&mut out, number, pair);
    }
    out + "</body></html>\n"
}

/// Writes the section of a pair. `row` is the number of its row in a spreadsheet.
fn section(out: &mut String, row: u32, pair: &SheetPair) {
    let sketch = pair.sketch_distance.map_or(String::new(), |d| format!(", sketch distance {d}"));
    let (mut a, mut b) = (String::new(), String::new());
    for piece in diff(&pair.text_a, &pair.text_b).pieces {
        match piece {
            Piece::Same(text) => {
                a += &encode_text(&text);
                b += &encode_text(&text);
            }
            Piece::Removed(text) => a += &marked(&text),
            Piece::Added(text) => b += &marked(&text),
        }
    }
    let side = |id: &str, text: &str| format!("<div><div class=\"id\">{}</div>{text}</div>", encode_text(&legible(id)));
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "<section><h2>Row {row}: distance {}{sketch}; one of {} pairs at this distance</h2>\n<div class=\"two\">{}{}</div></section>",
        pair.distance,
        pair.n_pairs,
        side(&pair.id_a, &a),
        side(&pair.id_b, &b)
    );
}

fn marked(text: &str) -> String {
    format!("<mark>{}</mark>", encode_text(text))
}
