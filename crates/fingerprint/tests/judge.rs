//! The judge beside its oracles.

use nearprint_fingerprint::{Alike, Judge, JudgeConfig, MAX_COMPARED, Measures, TextWords, naive};
use proptest::prelude::*;

const CONFIG: JudgeConfig = JudgeConfig {
    min_sketch_distance: 28,
    max_sketch_distance: 80,
    min_edit_similarity: 0.84,
    min_contained: 0.95,
    min_opening: 0.7,
    max_looks: 16,
};

/// Returns the text of these words, whose distinct ones are numbered by first occurrence.
fn numbered(words: &[u64]) -> (Vec<u64>, Vec<u32>) {
    let mut hashes = Vec::new();
    let mut number = |word: &u64| match hashes.iter().position(|known| known == word) {
        Some(at) => u32::try_from(at).unwrap(),
        None => {
            hashes.push(*word);
            u32::try_from(hashes.len() - 1).unwrap()
        }
    };
    let sequence = words.iter().map(&mut number).collect();
    (hashes, sequence)
}

fn text(words: &[u64]) -> TextWords {
    let (hashes, sequence) = numbered(words);
    TextWords::new(&hashes, &sequence)
}

/// A text, and another one that is cut from it, edited, or made anew.
fn two_texts() -> impl Strategy<Value = (Vec<u64>, Vec<u64>)> {
    let words = |n| prop::collection::vec(1..40u64, 0..n);
    (words(200), words(30), 0..200usize, 0..200usize, any::<bool>()).prop_map(|(a, other, from, to, is_edited)| {
        let [from, to] = [from.min(to).min(a.len()), to.max(from).min(a.len())];
        let b =
            if is_edited { [&a[..from], &other[..], &a[to..]].concat() } else { [&a[from..to], &other[..]].concat() };
        (a, b)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_the_judge_measures_is_what_the_definitions_say((a, b) in two_texts(), shingle in 1..5usize) {
        let measures = Measures::of(&text(&a), &text(&b), shingle);
        prop_assert_eq!(measures.n_words, [a.len(), b.len()]);
        prop_assert_eq!(measures.n_common, Some(naive::n_common(&a, &b)));
        prop_assert_eq!(measures.n_contained, naive::n_contained(&a, &b));
        let (n_shared, of) = naive::n_shared(&a, &b, shingle);
        let counts = (u32::try_from(n_shared).unwrap(), of.map(|n| u32::try_from(n).unwrap()));
        prop_assert_eq!(measures.n_shared, counts);
        prop_assert_eq!(measures.n_opening, a.iter().zip(&b).take_while(|(x, y)| x == y).count());
    }

    #[test]
    fn the_short_way_to_a_verdict_ends_where_the_measures_do(
        (a, b) in two_texts(), edit in 0.0..1.0f64, contained in 0.0..1.0f64, opening in 0.0..1.0f64,
    ) {
        let config = JudgeConfig { min_edit_similarity: edit, min_contained: contained, min_opening: opening, ..CONFIG };
        let (x, y) = (text(&a), text(&b));
        let measures = Measures::of(&x, &y, 3);
        let judge = Judge { config, shingle: 3 };
        let verdict = judge.of(&x, &y);
        prop_assert_eq!(verdict.map(|v| v.alike), measures.alike(&config));
        prop_assert_eq!(verdict.map(|v| v.n_shared).unwrap_or(measures.n_shared.0), measures.n_shared.0);
        // The order of the two does not matter.
        prop_assert_eq!(judge.of(&y, &x), verdict);
    }

    #[test]
    fn a_text_is_read_back_as_it_was_written((a, _) in two_texts(), many in any::<bool>()) {
        let (mut hashes, sequence) = numbered(&a);
        if many {
            // More distinct words than two bytes can number.
            hashes.extend(1000..70_000);
        }
        let bytes = TextWords::to_bytes(&hashes, &sequence);
        prop_assert_eq!(TextWords::of_bytes(&bytes), Some(TextWords::new(&hashes, &sequence)));
        prop_assert_eq!(TextWords::of_bytes(&bytes[..bytes.len() - 1]), None);
    }
}

#[test]
fn texts_with_too_many_pairs_of_words_are_judged_by_their_beginnings_and_runs_alone() {
    let of = |first, n, last| [vec![first], vec![5; n], vec![last]].concat();
    let side = MAX_COMPARED.isqrt();
    let measures = |n| Measures::of(&text(&of(1, n, 2)), &text(&of(3, n, 4)), 3);
    assert_eq!(measures(side).n_common, Some(side));
    let beyond = measures(side + 1);
    assert_eq!((beyond.n_common, beyond.edit_similarity(), beyond.alike(&CONFIG)), (None, None, None));
    let opened = Measures::of(&text(&of(1, 2 * side, 2)), &text(&of(1, 2 * side, 4)), 3);
    assert_eq!((opened.n_common, opened.alike(&CONFIG)), (Some(2 * side + 1), Some(Alike::Edited)));
}

#[test]
fn a_copy_that_was_cut_is_contained_with_or_without_a_line_behind_the_cut() {
    let whole: Vec<u64> = (1..=400).collect();
    let alike =
        |cut: &[u64]| Judge { config: CONFIG, shingle: 3 }.of(&text(&whole), &text(cut)).map(|verdict| verdict.alike);
    let login: Vec<u64> = (1001..=1027).collect();
    assert_eq!(alike(&whole[..200]), Some(Alike::Contained));
    assert_eq!(alike(&whole[100..300]), Some(Alike::Contained));
    assert_eq!(alike(&[&whole[..200], &login].concat()), Some(Alike::Contained));
    // A page that has half of the other's words, in runs of ten, is another page.
    let other: Vec<u64> =
        whole.chunks(20).flat_map(|chunk| &chunk[..10]).zip(2000..).flat_map(|(x, y)| [*x, y]).collect();
    assert_eq!(alike(&other), None);
}
