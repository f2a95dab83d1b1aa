//! The one-call joins against comparing everything with everything.

use std::sync::Arc;

use nearprint_fingerprint::Sketch;
use nearprint_join::{
    Column, HammingJoin, JoinError, Kernel, QueryRows, Verifier, WordKeys, ids_between, naive, pairs_between,
    pairs_within,
};
use proptest::prelude::*;

/// Fingerprints of which many are near to each other, and some the same.
fn fingerprints() -> impl Strategy<Value = Vec<u64>> {
    let near = (0..4u64, any::<u64>(), any::<u64>(), any::<u64>());
    let one = near.prop_map(|(base, a, b, c)| base.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (a & b & c));
    proptest::collection::vec(one, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn all_pairs_between_two_sets_are_those_of_the_definition(
        left in fingerprints(), right in fingerprints(), k in 0..20u32, few in any::<bool>()
    ) {
        let join = HammingJoin::new(k).table_bytes(if few { 0 } else { 1 << 30 });
        let found: Vec<(usize, usize, u32)> = join.between(&left, &right).unwrap()
            .iter().map(|p| (p.a as usize, p.b as usize, u32::from(p.distance))).collect();
        prop_assert_eq!(found, naive::cross_pairs(&left, &right, k));
    }

    #[test]
    fn all_pairs_within_a_set_are_those_of_the_definition(all in fingerprints(), k in 0..20u32) {
        let expected: Vec<(usize, usize, u32)> =
            naive::cross_pairs(&all, &all, k).into_iter().filter(|(a, b, _)| a < b).collect();
        for kernel in [Kernel::best(), Kernel::SCALAR] {
            let found: Vec<(usize, usize, u32)> = HammingJoin::new(k).kernel(kernel).within(&all).unwrap()
                .iter().map(|p| (p.a as usize, p.b as usize, u32::from(p.distance))).collect();
            prop_assert_eq!(&found, &expected);
        }
    }
}

/// The numbers of a linear congruential generator, whose high bits are mixed into the low ones.
fn numbers(seed: u64, shift: u32) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state ^ state >> shift
    }
}

#[test]
fn threads_share_a_set_and_find_the_same_pairs_and_none_twice() {
    let mut next = numbers(7, 29);
    // Enough for four pieces of four threads; every fourth value is near another, and some are the same.
    let mut all: Vec<u64> = (0..1 << 18).map(|_| next()).collect();
    for i in (0..all.len() / 2).step_by(2) {
        let bits = 1 << (i % 64) | 1 << (i / 64 % 64);
        all[i + 1] = if i % 64 == 0 { all[i] } else { all[i] ^ bits };
    }
    for k in [0, 2, 5] {
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| HammingJoin::new(k).within(&all).unwrap())
        };
        let (one, four) = (on(1), on(4));
        assert!(one.len() >= 1 << 10, "{} pairs", one.len());
        assert!(one.is_sorted_by(|a, b| (a.a, a.b) < (b.a, b.b)) && one == four);
        for pair in &one {
            let distance = (all[pair.a as usize] ^ all[pair.b as usize]).count_ones();
            assert!(distance == u32::from(pair.distance) && distance <= k);
        }
        let n_planted = (0..all.len() / 2).step_by(2).filter(|&i| (all[i] ^ all[i + 1]).count_ones() <= k).count();
        assert!(one.len() >= n_planted);
    }
}

#[test]
fn a_hot_leaf_whose_queries_do_not_share_its_prefix_is_joined_completely() {
    let mut next = numbers(11, 31);
    // All existing fingerprints agree in 24 bits, and each query differs from them in one of these.
    let existing: Vec<u64> = (0..16_000).map(|_| next() >> 24).collect();
    let near = |(i, &value): (usize, &u64)| {
        let rest = if i % 2 == 0 { value ^ (next() & next() & next()) >> 24 } else { next() >> 24 };
        1 << (52 + i % 12) | rest
    };
    let queries: Vec<u64> = existing.iter().enumerate().map(near).collect();
    for k in [8, 12] {
        let found: Vec<(usize, usize, u32)> = HammingJoin::new(k)
            .between(&queries, &existing)
            .unwrap()
            .iter()
            .map(|p| (p.a as usize, p.b as usize, u32::from(p.distance)))
            .collect();
        let expected = naive::cross_pairs(&queries, &existing, k);
        assert!(expected.len() > 1_000 && found == expected, "{} pairs of {}", found.len(), expected.len());
    }
}

#[test]
fn widths_and_ids_are_the_callers() {
    let narrow = pairs_within(&[0b0000_u32, 0b0011, u32::MAX], 2).unwrap();
    assert_eq!(narrow.iter().map(|p| (p.a, p.b)).collect::<Vec<_>>(), [(0, 1)]);
    let (left, right) = ([("a", 1u64), ("b", 1)], [(7, 3u64), (8, u64::MAX)]);
    assert_eq!(ids_between(&left, &right, 1).unwrap(), [(&"a", &7, 1), (&"b", &7, 1)]);
    assert!(pairs_between(&[] as &[u64], &[1], 3).unwrap().is_empty());
}

#[test]
fn a_distance_that_every_two_fingerprints_are_within_is_refused() {
    for k in [64, 200, u32::MAX] {
        assert_eq!(pairs_within(&[1u64, 2], k), Err(JoinError::Distance { max_distance: k, bits: 64 }));
    }
    assert_eq!(pairs_within(&[0u64, u64::MAX >> 1], 63).unwrap().len(), 1);
}

#[test]
fn rows_of_two_sets_pair_only_where_their_sketches_are_near() {
    let sketch = |byte: u8| Some(Sketch([byte; 32]));
    let side = |fingerprints: &[u64], sketches: &[Option<Sketch>]| {
        let fingerprints: Column<u64> = fingerprints.iter().copied().map(Some).collect();
        QueryRows::group(fingerprints, Arc::new(sketches.iter().copied().collect())).unwrap()
    };
    let left = || side(&[7, 7, 7, u64::MAX], &[sketch(0), sketch(1), None, sketch(0)]);
    let right = || side(&[6, 0, 7], &[sketch(0), sketch(0), None]);
    let found = |max_sketch_distance| {
        let (mut found, verifier) =
            (Vec::new(), Verifier { max_distance: 1, words: WordKeys::NONE, max_sketch_distance, judged_to: None });
        let join = HammingJoin::new(1);
        join.rows_between(left(), right(), &verifier, 64, |p, sketches| found.push((p.a, p.b, p.distance, sketches)))
            .unwrap();
        found.sort_unstable();
        found
    };
    assert_eq!(found(Some(31)), [(0, 0, 1, Some(0))]);
    assert_eq!(found(Some(32)), [(0, 0, 1, Some(0)), (1, 0, 1, Some(32))]);
    let all = (0..3).flat_map(|a| [(a, 0, 1, None), (a, 2, 0, None)]);
    assert_eq!(found(None), all.collect::<Vec<_>>());
}
