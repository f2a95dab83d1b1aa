//! The estimate of lost shares against exact ones.

use std::collections::BTreeSet;

use nearprint_fingerprint::{DistinctHashes, sketch_and_count, token_hash};
use nearprint_join::{LossLimit, lost_share};
use proptest::prelude::*;

use crate::data::Rng;

/// The shingles and tokens of a text, each token of which occurs once.
fn elements(text: &[u32]) -> BTreeSet<Vec<u32>> {
    text.windows(3).chain(text.chunks(1)).map(<[u32]>::to_vec).collect()
}

/// A text, and another with some of its words replaced, left out or followed by new ones.
fn revised(rng: &mut Rng) -> [Vec<u32>; 2] {
    let n = 40 + rng.below(1500);
    let old: Vec<u32> = (0..u32::try_from(n).unwrap()).collect();
    let (n_edits, mut new) = (rng.below(n / 16), old.clone());
    for i in 0..n_edits {
        let at = rng.below(new.len());
        let fresh = 10_000 + u32::try_from(i).unwrap();
        match rng.below(3) {
            0 => new[at] = fresh,
            1 => {
                new.remove(at);
            }
            _ => new.insert(at, fresh),
        }
    }
    let added = if rng.below(2) == 0 { 0 } else { rng.below(n / 5) };
    new.extend((0..u32::try_from(added).unwrap()).map(|i| 20_000 + i));
    if rng.below(2) == 0 { [old, new] } else { [new, old] }
}

#[test]
fn nineteen_of_twenty_estimates_lie_within_a_twentieth_of_the_exact_lost_share_and_the_mean_is_right() {
    let (mut rng, mut memory) = (Rng(7), DistinctHashes::default());
    let (mut n, mut n_within, mut sum) = (0, 0, 0.0);
    for trial in 0..1500u32 {
        let texts = revised(&mut rng);
        let hashes: Vec<u64> =
            (0..22_000u32).map(|token| token_hash(&[token.to_le_bytes(), trial.to_le_bytes()].concat(), 1)).collect();
        let mut counted = |text: &[u32]| {
            let mut distinct = text.to_vec();
            distinct.sort_unstable();
            let own: Vec<u64> = distinct.iter().map(|&token| hashes[token as usize]).collect();
            let at = |token: &u32| u32::try_from(distinct.binary_search(token).unwrap()).unwrap();
            let sequence: Vec<u32> = text.iter().map(at).collect();
            sketch_and_count(&own, vec![1; own.len()], &sequence, 3, &mut memory)
        };
        let [(a, n_a), (b, n_b)] = texts.each_ref().map(|text| counted(text));
        let distance = u16::try_from(a.distance(&b)).unwrap();
        let [elements_a, elements_b] = texts.each_ref().map(|text| elements(text));
        assert_eq!((n_a as usize, n_b as usize), (elements_a.len(), elements_b.len()));
        if distance > 36 {
            continue;
        }
        let exact = elements_a.difference(&elements_b).count() as f64 / elements_a.len() as f64;
        let error = lost_share(n_a, n_b, distance) - exact;
        n += 1;
        n_within += u32::from(error.abs() <= 0.05);
        sum += error;
    }
    assert!(n > 1000 && n_within * 20 >= n * 19, "{n_within} of {n}");
    assert!((sum / f64::from(n)).abs() < 0.005, "{} on average", sum / f64::from(n));
}

#[test]
fn a_share_that_is_unknown_is_no_reason_to_keep_a_document() {
    assert!(LossLimit(0.0).allows(None) && LossLimit(0.0).allows(Some(0.0)));
    assert!(!LossLimit(0.1).allows(Some(0.1001)) && LossLimit::NONE.allows(Some(1.0)));
}

proptest! {
    #[test]
    fn a_lost_share_is_at_least_what_the_numbers_alone_leave_and_grows_with_the_distance(
        own in 0..5_000u32,
        keeper in 0..5_000u32,
        distance in 0..256u16,
    ) {
        let share = lost_share(own, keeper, distance);
        prop_assert!((0.0..=1.0).contains(&share));
        if own > 0 {
            prop_assert!(share >= 1.0 - f64::from(keeper) / f64::from(own) - 1e-12);
        }
        prop_assert!(share <= lost_share(own, keeper, distance + 1));
        prop_assert!(distance > 0 || own > keeper || share == 0.0);
    }
}
