//! The bound on what the star rule could keep, against all keep orders and all sets of small batches.

use std::collections::BTreeSet;

use nearprint_join::{ClassNeighbours, Decision, ExistingNeighbour, n_kept_in_vain, star, star_bound};
use proptest::prelude::*;

type Pairs = Vec<(u32, u32, u8)>;

/// The rows that the star rule keeps. Each row is a class of its own.
fn kept(order: &[u32], neighbours: &ClassNeighbours, closed: u32) -> BTreeSet<u32> {
    let is_closed = |class: u32| closed.checked_shr(class).unwrap_or_default() & 1 == 1;
    let existing = |class: u32| is_closed(class).then_some(ExistingNeighbour { distance: 9, existing: 0 });
    let mut kept = BTreeSet::new();
    star(order.iter().copied(), Some, neighbours, existing, |row, decision| {
        kept.extend((decision == Decision::Keep).then_some(row));
    });
    kept
}

/// The most rows of which none may be dropped for another one, by trying all sets of rows.
fn most_without_rivals(n: u32, rivals: &BTreeSet<(u32, u32)>, closed: u32) -> u64 {
    let is_without = |set: u32| rivals.iter().all(|(a, b)| set >> a & set >> b & 1 == 0);
    let sets = (0..1u32 << n).filter(|set| set & closed == 0 && is_without(*set));
    sets.map(|set| u64::from(set.count_ones())).max().unwrap_or_default()
}

/// Pairs among `n` rows, some twice; and the directions that are forbidden.
fn graphs() -> impl Strategy<Value = (u32, Pairs, BTreeSet<(u32, u32)>, u32, u64)> {
    (1u32..11).prop_flat_map(|n| {
        let pairs = proptest::collection::vec((0..n, 0..n, 0u8..7), 0..60)
            .prop_map(|all| all.into_iter().filter(|(a, b, _)| a < b).collect::<Pairs>());
        let forbidden = proptest::collection::btree_set((0..n, 0..n), 0..12);
        (Just(n), pairs, forbidden, 0..1u32 << n, any::<u64>())
    })
}

/// Builds the neighbours of pairs in the directions that are allowed.
fn neighbours_of(
    n: u32,
    pairs: impl Iterator<Item = (u32, u32, u8)>,
    is_allowed: impl Fn(u32, u32) -> bool,
) -> ClassNeighbours {
    let both = pairs.flat_map(|(a, b, distance)| [(a, b, distance), (b, a, distance)]);
    let directed: Vec<(u32, u32, u8)> = both.filter(|&(class, keeper, _)| is_allowed(class, keeper)).collect();
    ClassNeighbours::new(n as usize, || directed.iter().copied())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_keep_order_keeps_more_than_the_bound_but_in_vain((n, pairs, forbidden, closed, shuffle) in graphs()) {
        let may_drop = |a, b| !forbidden.contains(&(a, b));
        let is_rival = |a, b| may_drop(a, b) || may_drop(b, a);
        let neighbours = neighbours_of(n, pairs.iter().copied(), may_drop);
        let mut order: Vec<u32> = (0..n).collect();
        order.sort_by_key(|&row| (u64::from(row) ^ shuffle).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let kept = kept(&order, &neighbours, closed);
        let both = |(a, b, _): &(u32, u32, u8)| [(*a, *b), (*b, *a)];
        let in_vain: BTreeSet<u32> = pairs
            .iter()
            .flat_map(both)
            .filter(|&(a, b)| may_drop(a, b) && kept.contains(&a) && kept.contains(&b))
            .map(|(a, _)| a)
            .collect();
        let n_in_vain = n_kept_in_vain(&neighbours, |class| kept.contains(&class));
        prop_assert_eq!(n_in_vain, in_vain.len() as u64);
        let rivals = pairs.iter().filter(|&&(a, b, _)| is_rival(a, b)).map(|&(a, b, _)| (a, b)).collect();
        let most = most_without_rivals(n, &rivals, closed);
        let bound_of = |mut rivals| star_bound(&mut rivals, |class| closed >> class & 1 == 0);
        let bound = bound_of(neighbours_of(n, pairs.iter().copied(), is_rival));
        let n_kept = kept.len() as u64 - n_in_vain;
        prop_assert!(n_kept <= most && most <= bound, "{n_kept} kept, {most} could be, {bound} is the bound");
        // The order of the pairs does not matter.
        prop_assert_eq!(bound_of(neighbours_of(n, pairs.iter().rev().copied(), is_rival)), bound);
    }

    #[test]
    fn in_chains_of_versions_the_bound_is_what_some_keep_order_keeps(n in 1u32..200, reach in 1u32..8) {
        let pairs = (0..n).flat_map(move |a| (a + 1..n.min(a + 1 + reach)).map(move |b| (a, b, 1)));
        let mut neighbours = neighbours_of(n, pairs, |_, _| true);
        let order: Vec<u32> = (0..n).collect();
        prop_assert_eq!(star_bound(&mut neighbours, |_| true), kept(&order, &neighbours, 0).len() as u64);
    }
}

#[test]
fn a_cluster_of_two_thousand_rivals_is_one_set() {
    let n = 2000;
    let pairs = (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b, 3)));
    let mut neighbours = neighbours_of(n, pairs, |_, _| true);
    assert_eq!(star_bound(&mut neighbours, |_| true), 1);
}
