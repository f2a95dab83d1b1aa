//! Resemblances, the pairs that have them, and the share of the pairs that is found, against their definitions.

use std::collections::{BTreeSet, HashSet};

use nearprint_measure::ByResemblance;
use nearprint_measure::resemblance::{ShingleSet, Shingler, alike_pairs};
use proptest::prelude::*;

/// Sets that grew out of a few others, so that pairs of every resemblance occur, with empty and repeated ones.
fn sets() -> impl Strategy<Value = Vec<BTreeSet<u64>>> {
    let origins = prop::collection::vec(prop::collection::btree_set(0_u64..60, 0..30), 1..5);
    let edits =
        prop::collection::vec((any::<prop::sample::Index>(), prop::collection::btree_set(0_u64..60, 0..12)), 0..40);
    (origins, edits).prop_map(|(origins, edits)| {
        let edited = edits.iter().map(|(origin, edit)| origin.get(&origins) ^ edit).collect::<Vec<_>>();
        origins.into_iter().chain(edited).collect()
    })
}

fn hashed(sets: &[BTreeSet<u64>]) -> Vec<ShingleSet> {
    sets.iter().map(|set| ShingleSet::new(set.iter().rev().chain(set).copied().collect())).collect()
}

/// The shared elements and all elements of every two sets, by their definition.
fn all_pairs(sets: &[BTreeSet<u64>]) -> Vec<((u32, u32), (u64, u64))> {
    let counts = |a: &BTreeSet<u64>, b: &BTreeSet<u64>| ((a & b).len() as u64, (a | b).len() as u64);
    (0..sets.len())
        .flat_map(|b| (0..b).map(move |a| (a, b)))
        .map(|(a, b)| ((u32::try_from(a).unwrap(), u32::try_from(b).unwrap()), counts(&sets[a], &sets[b])))
        .collect()
}

fn is_alike((n_shared, n_all): (u64, u64)) -> bool {
    n_all > 0 && 10 * n_shared >= 4 * n_all
}

proptest! {
    #[test]
    fn every_pair_that_is_alike_is_returned_with_its_exact_resemblance_and_no_other(sets in sets()) {
        let expected: BTreeSet<_> = all_pairs(&sets).into_iter().filter(|(_, counts)| is_alike(*counts)).collect();
        let found = alike_pairs(&hashed(&sets));
        let found_set: BTreeSet<_> =
            found.iter().map(|p| ((p.a, p.b), (p.resemblance.n_shared, p.resemblance.n_all))).collect();
        prop_assert_eq!(found.len(), found_set.len());
        prop_assert_eq!(found_set, expected);
    }

    #[test]
    fn every_pair_counts_once_in_the_row_of_its_resemblance(sets in sets(), modulus in 1_u32..4) {
        let found: HashSet<(u32, u32)> =
            all_pairs(&sets).into_iter().map(|(pair, _)| pair).filter(|(a, b)| (a + b) % modulus == 0).collect();
        let counted = ByResemblance::of(&hashed(&sets), &found);
        let taking_part: Vec<_> = all_pairs(&sets)
            .into_iter()
            .filter(|((a, b), _)| !sets[*a as usize].is_empty() && !sets[*b as usize].is_empty())
            .collect();
        prop_assert_eq!(counted.n_documents, sets.iter().filter(|set| !set.is_empty()).count() as u64);
        for (row, tenths) in counted.rows.iter().zip([0..4, 4..5, 5..6, 6..7, 7..8, 8..9, 9..10, 10..11]) {
            let in_row: Vec<_> = taking_part.iter().filter(|(_, (n, all))| tenths.contains(&(10 * n / all))).collect();
            let n_found = in_row.iter().filter(|(pair, _)| found.contains(pair)).count() as u64;
            prop_assert_eq!((row.n_pairs, row.n_found), (in_row.len() as u64, n_found));
            let by_component = |count: fn(u64, u64) -> u64| -> u64 {
                row.components.iter().map(|c| c.n_components * count(c.n_pairs, c.n_found)).sum()
            };
            if row.from > 0.0 {
                prop_assert_eq!(by_component(|pairs, _| pairs), row.n_pairs);
                prop_assert_eq!(by_component(|_, found| found), row.n_found);
                prop_assert_eq!(by_component(|_, _| 1), row.n_components);
            }
            if let (Some(share), Some([low, high])) = (row.share, row.ci) {
                prop_assert!(0.0 <= low && low <= share && share <= high && high <= 1.0);
            }
        }
        let hundredths = |from, below| counted.by_hundredth.iter().filter(move |h| (from..below).contains(&h.hundredth));
        for (row, from) in counted.rows[1..].iter().zip((40..).step_by(10)) {
            let n_pairs: u64 = hundredths(from, from + 10).map(|h| h.n_pairs).sum();
            let n_found: u64 = hundredths(from, from + 10).map(|h| h.n_found).sum();
            prop_assert_eq!((n_pairs, n_found), (row.n_pairs, row.n_found));
        }
    }

    /// The oracle keeps shingles as texts, of words that blanks separate.
    #[test]
    fn shingles_are_three_words_or_five_characters_of_a_script_without_spaces(
        texts in prop::collection::vec(prop::collection::vec("[ab]|foo|京|都|の|カタ|ไ", 0..12), 2),
    ) {
        let shingler = Shingler::try_new().unwrap();
        let naive = |tokens: &[String]| -> BTreeSet<String> {
            let n_tokens = |token: &str| if matches!(token, "京" | "都" | "の" | "ไ") { 5 } else { 3 };
            let of = |i: usize| Some(tokens.get(i..i + n_tokens(&tokens[i]))?.join(" "));
            let shingles: BTreeSet<String> = (0..tokens.len()).filter_map(of).collect();
            if shingles.is_empty() && !tokens.is_empty() { [tokens.join(" ")].into() } else { shingles }
        };
        let (a, b) = (naive(&texts[0]), naive(&texts[1]));
        let [x, y] = [&texts[0], &texts[1]].map(|tokens| shingler.shingles(&tokens.join(" ")));
        prop_assert_eq!((x.len(), y.len()), (a.len(), b.len()));
        let resemblance = x.resemblance(&y);
        prop_assert_eq!(
            (resemblance.n_shared, resemblance.n_all),
            ((&a & &b).len() as u64, (&a | &b).len() as u64)
        );
    }
}

#[test]
fn case_width_punctuation_and_entities_make_no_difference() {
    let shingler = Shingler::try_new().unwrap();
    let plain = shingler.shingles("one two three four five");
    for text in ["One, TWO: three -- four (five)!", "one&nbsp;two three four five", "ｏｎｅ ｔｗｏ three\nfour\tfive"]
    {
        assert_eq!(shingler.shingles(text), plain, "{text}");
    }
    assert_eq!(shingler.shingles("北京市的市民").len(), 2);
    assert!(shingler.shingles("?! …").is_empty());
    assert_eq!(shingler.shingles("?! …").resemblance(&plain).value(), 0.0);
}

/// A set that shares `n_shared` elements with 0 to 9, and has no other.
fn part(n_shared: u64) -> BTreeSet<u64> {
    (0..n_shared).collect()
}

#[test]
fn a_row_has_its_lower_end_and_not_its_upper_end() {
    for (n_shared, from) in [(3, 0.0), (4, 0.4), (5, 0.5), (6, 0.6), (7, 0.7), (8, 0.8), (9, 0.9), (10, 1.0)] {
        let counted = ByResemblance::of(&hashed(&[part(10), part(n_shared)]), &HashSet::new());
        let rows: Vec<f64> = counted.rows.iter().filter(|row| row.n_pairs > 0).map(|row| row.from).collect();
        assert_eq!(rows, [from], "{n_shared} of 10");
    }
    let counted = ByResemblance::of(&[], &HashSet::new());
    let ends: Vec<_> = counted.rows.iter().map(|row| row.below).collect();
    assert_eq!(ends, [0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0].map(Some).into_iter().chain([None]).collect::<Vec<_>>());
    assert!(counted.rows.iter().all(|row| row.share.is_none() && row.ci.is_none()));
}

#[test]
fn the_interval_counts_clusters_and_not_pairs() {
    let cluster = |n: u64| (10 * n..10 * n + 10).collect::<BTreeSet<u64>>();
    let sets: Vec<BTreeSet<u64>> = (0..12).map(|i| cluster(i / 4)).collect();
    let all: HashSet<(u32, u32)> = all_pairs(&sets).into_iter().map(|(pair, _)| pair).collect();
    let same = |found: &HashSet<(u32, u32)>| ByResemblance::of(&hashed(&sets), found).rows.pop().unwrap();
    // Three clusters of six pairs each: the exact binomial interval of three observations that are all right.
    let row = same(&all);
    assert_eq!((row.n_pairs, row.n_found, row.n_components), (18, 18, 3));
    assert!((row.ci.unwrap()[0] - 0.025_f64.powf(1.0 / 3.0)).abs() < 1e-12, "{:?}", row.ci);
    // One cluster is lost as a whole: a draw without it, and a draw of it alone, are both likely.
    let row = same(&all.into_iter().filter(|(a, _)| *a > 3).collect());
    assert_eq!((row.n_found, row.ci), (12, Some([0.0, 1.0])));
}

/// The two pairs of the lower row have no document in common, but one of each forms a pair of a higher row.
#[test]
fn clusters_of_a_row_hang_together_by_pairs_of_that_row_and_above() {
    let sets: [BTreeSet<u64>; 4] = [(0..10).collect(), (4..14).collect(), (5..14).collect(), (9..17).collect()];
    let rows = ByResemblance::of(&hashed(&sets), &HashSet::new()).rows;
    let counts: Vec<_> = rows[1..].iter().map(|row| (row.from, row.n_pairs, row.n_components)).collect();
    // 0 and 1 share 6 of 14, 2 and 3 share 5 of 12, 1 and 2 share 9 of 10; all else is below 0.4.
    assert_eq!(counts.iter().filter(|row| row.1 > 0).collect::<Vec<_>>(), [&(0.4, 2, 1), &(0.9, 1, 1)]);
}
