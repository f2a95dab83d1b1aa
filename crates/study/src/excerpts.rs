//! Excerpts of two texts that show best how the texts differ.

use crate::legible::legible;

/// Returns an excerpt of each text on one line. If both texts have at most `n_chars` characters, they are whole.
/// Otherwise, each excerpt has at most `n_chars` characters, and begins `context` characters before the first
/// difference. Excerpts of equal texts begin at the beginning.
pub fn excerpts(a: &str, b: &str, n_chars: usize, context: usize) -> (String, String) {
    let flat = |text: &str| legible(text).split_whitespace().collect::<Vec<_>>().join(" ");
    let (a, b) = (flat(a), flat(b));
    let longest = a.chars().count().max(b.chars().count());
    let same = a.chars().zip(b.chars()).take_while(|(x, y)| x == y).count();
    let from = if longest <= n_chars || a == b { 0 } else { same.saturating_sub(context) };
    let cut = |text: &str| {
        let shown: String = text.chars().skip(from).take(n_chars).collect();
        let (before, after) = (from > 0, text.chars().count() > from + n_chars);
        format!("{}{shown}{}", if before { "…" } else { "" }, if after { "…" } else { "" })
    };
    (cut(&a), cut(&b))
}
