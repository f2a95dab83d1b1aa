//! Excerpts of two texts that show best how the texts differ.

use crate::legible::legible;

/// The characters at the end of an excerpt by which the same place is found in the other one.
const ANCHOR_CHARS: usize = 12;

/// Returns an excerpt of each text on one line. If both texts have at most `n_chars` characters, they are whole.
/// Otherwise, each excerpt has at most `n_chars` characters, and begins `context` characters before the first
/// difference. Both end at the same place, if there is one near their ends: a reader shall take no cut for a difference.
/// Excerpts of equal texts begin at the beginning.
pub fn excerpts(a: &str, b: &str, n_chars: usize, context: usize) -> (String, String) {
    let flat =
        |text: &str| -> Vec<char> { legible(text).split_whitespace().collect::<Vec<_>>().join(" ").chars().collect() };
    let (a, b) = (flat(a), flat(b));
    let is_whole = a.len().max(b.len()) <= n_chars;
    let same = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let from = if is_whole || a == b { 0 } else { same.saturating_sub(context) };
    let window = |text: &[char]| from.min(text.len())..text.len().min(from + n_chars);
    let (window_a, window_b) = (window(&a), window(&b));
    let (len_a, len_b) = match is_whole {
        true => (a.len(), b.len()),
        false => ends(&a[window_a.clone()], &b[window_b.clone()]),
    };
    let cut = |text: &[char], start: usize, len: usize| {
        let shown: String = text[start..start + len].iter().collect();
        let (before, after) = (start > 0, text.len() > start + len);
        format!("{}{shown}{}", if before { "…" } else { "" }, if after { "…" } else { "" })
    };
    (cut(&a, window_a.start, len_a), cut(&b, window_b.start, len_b))
}

/// Returns the lengths up to which two windows are shown, so that they end at the same place: what stands at the end of one
/// stands in the other one too, and less is cut off the other one than in any other such way.
fn ends(a: &[char], b: &[char]) -> (usize, usize) {
    let anchor = |text: &[char]| text.len().checked_sub(ANCHOR_CHARS).map(|from| text[from..].to_vec());
    let (Some(end_a), Some(end_b)) = (anchor(a), anchor(b)) else { return (a.len(), b.len()) };
    for n_cut in 0..a.len().max(b.len()) {
        if a[..a.len().saturating_sub(n_cut)].ends_with(&end_b) {
            return (a.len() - n_cut, b.len());
        }
        if b[..b.len().saturating_sub(n_cut)].ends_with(&end_a) {
            return (a.len(), b.len() - n_cut);
        }
    }
    (a.len(), b.len())
}

#[cfg(test)]
mod tests {
    use super::excerpts;

    #[test]
    fn excerpts_of_texts_of_which_one_has_more_in_the_middle_end_at_the_same_place() {
        let words = |n: usize| (0..n).map(|i| format!("word{i}")).collect::<Vec<_>>().join(" ");
        let (before, after) = (words(8), words(40));
        for more in ["x", "three more words", "a whole sentence that only one of the two texts has"] {
            let (with, without) = (format!("{before} {more} {after}"), format!("{before} {after}"));
            for (a, b) in [(&with, &without), (&without, &with)] {
                let (a, b) = excerpts(a, b, 120, 30);
                let tail = |text: &str| text.chars().rev().take(12).collect::<String>();
                assert_eq!(tail(&a), tail(&b), "{a}\n{b}");
                assert!(a.ends_with('…') && b.ends_with('…') && a.contains(more) != b.contains(more), "{a}\n{b}");
                assert!(a.chars().count().max(b.chars().count()) <= 122);
            }
        }
    }

    #[test]
    fn short_texts_are_whole_and_long_ones_begin_before_the_first_difference() {
        assert_eq!(excerpts("a  b", "a c", 10, 3), ("a b".to_owned(), "a c".to_owned()));
        let (a, b) = (format!("{}x", "s".repeat(50)), format!("{}y", "s".repeat(50)));
        assert_eq!(excerpts(&a, &b, 20, 3), ("…sssx".to_owned(), "…sssy".to_owned()));
        assert_eq!(excerpts(&a, &a, 20, 3).0, format!("{}…", "s".repeat(20)));
        assert_eq!(excerpts("", &a, 20, 3), (String::new(), format!("{}…", "s".repeat(20))));
    }
}
