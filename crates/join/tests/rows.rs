//! Rows, classes, the forest and the star rule against their definitions.

use std::sync::Arc;

use nearprint_fingerprint::Sketch;
use nearprint_join::{
    Canonical, ClassNeighbours, ClassOfRows, Clusters, Column, Decision, ExistingNeighbour, Kernel, LossLimit,
    MapScratch, Queries, QueryRows, RowPair, TablePlan, UndecidedPair, UnionFind, Verifier, WordKeys, lost_share,
    naive, nearest_undecided, reduce, spanning_forest, star,
};
use proptest::prelude::*;

use crate::data::Rng;

const VERIFIERS: [Verifier; 3] = [
    Verifier { max_distance: 2, words: WordKeys::NONE, max_sketch_distance: None, judged_to: None },
    Verifier { max_distance: 2, words: WordKeys::NONE, max_sketch_distance: Some(1), judged_to: None },
    Verifier { max_distance: 2, words: WordKeys::NONE, max_sketch_distance: Some(0), judged_to: Some(2) },
];

/// Few fingerprints and sketches, so that classes, equal fingerprints with other sketches and rows without one are common.
fn batch(seed: u64, n: usize) -> (Vec<Option<u64>>, Vec<Option<Sketch>>) {
    let mut rng = Rng(seed | 1);
    let fingerprint = |rng: &mut Rng| (rng.below(8) > 0).then(|| rng.next() & 0b1101_0000_0000_0011);
    let fingerprints = (0..n).map(|_| fingerprint(&mut rng)).collect();
    let sketch = |rng: &mut Rng| {
        let mut bytes = [0; 32];
        bytes[5] = [0, 1, 3, 7][rng.below(4)];
        (rng.below(6) > 0).then_some(Sketch(bytes))
    };
    (fingerprints, (0..n).map(|_| sketch(&mut rng)).collect())
}

fn group(fingerprints: &[Option<u64>], sketches: &[Option<Sketch>]) -> (QueryRows, Vec<u64>) {
    let fingerprints: Column<u64> = fingerprints.iter().copied().collect();
    QueryRows::group(fingerprints, Arc::new(sketches.iter().copied().collect())).unwrap()
}

/// Few numbers of features, so that many rows are fuller than others of the same fingerprint and sketch.
fn numbers_of_features(seed: u64, sketches: &[Option<Sketch>]) -> Vec<Option<u32>> {
    let mut rng = Rng(seed | 1);
    let mut number = || [None, Some(100), Some(101), Some(110), Some(140)][rng.below(5)];
    sketches.iter().map(|sketch| number().filter(|_| sketch.is_some())).collect()
}

fn group_counted(
    fingerprints: &[Option<u64>],
    sketches: &[Option<Sketch>],
    n_features: &[Option<u32>],
) -> (QueryRows, Vec<u64>) {
    let fingerprints: Column<u64> = fingerprints.iter().copied().collect();
    let sketches = Arc::new(sketches.iter().copied().collect());
    QueryRows::group_counted(fingerprints, sketches, Arc::new(n_features.iter().copied().collect())).unwrap()
}

fn for_each_value_pair(values: &[u64], k: u32, mut f: impl FnMut(u32, u32, u8)) {
    let n = values.len();
    let queries =
        Queries::try_new(values.to_vec(), TablePlan::new(64, k, &vec![0; k as usize + 1]).unwrap(), Kernel::best())
            .unwrap();
    for value in 0..u32::try_from(n).unwrap() {
        f(value, value, 0);
    }
    queries.map_self(0..n, &mut MapScratch::default(), |p| f(p.query, p.existing, p.distance));
}

/// Rows behind each value, by its position.
fn rows_behind(rows: &QueryRows, value: u32) -> usize {
    rows.classes_of(value).map(|class| rows.members(class).len()).sum()
}

#[test]
fn values_of_several_rows_are_those_of_any_range() {
    for (seed, n) in [(1, 0), (2, 1), (3, 40), (4, 700), (5, 3000)] {
        let (fingerprints, sketches) = batch(seed, n);
        let (rows, values) = group(&fingerprints, &sketches);
        let n_values = u32::try_from(values.len()).unwrap();
        let cuts = [0, n_values / 3, n_values / 2, n_values];
        for (start, end) in cuts.into_iter().flat_map(|start| cuts.map(|end| (start, end))) {
            let expected: Vec<u32> = (start..end).filter(|&value| rows_behind(&rows, value) > 1).collect();
            assert_eq!(rows.repeated(start..end).collect::<Vec<_>>(), expected, "{n} rows, {start} to {end}");
        }
    }
    let distinct: Vec<Option<u64>> = (0..1000).map(|i| Some(i * 77)).collect();
    let (rows, _) = group(&distinct, &vec![None; 1000]);
    assert_eq!(rows.repeated(0..1000).count(), 0);
}

fn decisions(
    order: &[u32],
    classes: &ClassOfRows,
    neighbours: &ClassNeighbours,
    existing: Option<ExistingNeighbour>,
) -> Vec<(u32, Decision)> {
    let mut decided = Vec::new();
    let push = |row, decision| decided.push((row, decision));
    star(order.iter().copied(), |row| classes.of(row), neighbours, |_| existing, push);
    decided
}

fn star_of(
    rows: &QueryRows,
    classes: &ClassOfRows,
    pairs: &[(u32, u32, u8)],
    order: &[u32],
    limit: LossLimit,
) -> Vec<(u32, Decision)> {
    let both = || pairs.iter().flat_map(|&(a, b, distance)| [(a, b, distance), (b, a, distance)]);
    let allowed = || both().filter(|&(class, keeper, _)| limit.allows(rows.lost_share(class, keeper)));
    decisions(order, classes, &ClassNeighbours::new(rows.n_classes(), allowed), None)
}

/// The star rule as its text says, row by row. `may_drop` says whether a row may be dropped for another.
fn naive_star(pairs: &[RowPair], order: &[u32], may_drop: impl Fn(u32, u32) -> bool) -> Vec<(u32, Decision)> {
    let mut kept: Vec<u32> = Vec::new();
    let mut decisions = Vec::new();
    for &row in order {
        let keepers = kept.iter().enumerate().filter(|&(_, &other)| may_drop(row, other));
        let near = keepers.filter_map(|(rank, &other)| {
            let pair = pairs.iter().find(|p| (p.a, p.b) == (row.min(other), row.max(other)))?;
            Some((pair.distance, rank, other))
        });
        let decision = near.min().map_or(Decision::Keep, |(distance, _, other)| Decision::Drop {
            canonical: Canonical::Row(other),
            distance,
        });
        if decision == Decision::Keep {
            kept.push(row);
        }
        decisions.push((row, decision));
    }
    decisions
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_pairs_forest_and_star_of_classes_equal_those_of_rows(
        seed: u64,
        n in 0usize..40,
        sketched: bool,
        counted: bool,
        max_lost_share in 0.0..1.05f64,
        shuffle: u64,
    ) {
        let verifier = VERIFIERS[usize::from(sketched)];
        let (fingerprints, sketches) = batch(seed, n);
        let sketches = if sketched { sketches } else { Vec::new() };
        let n_features = if counted { numbers_of_features(seed, &sketches) } else { Vec::new() };
        let (rows, values) = group_counted(&fingerprints, &sketches, &n_features);
        prop_assert_eq!(rows.n_values(), values.len());
        prop_assert!(values.is_sorted_by(|a, b| a < b));
        let classes = rows.class_of_rows(u32::try_from(n).unwrap());
        let expected = naive::row_pairs(&fingerprints, &sketches, &verifier);

        let (mut all, mut candidates, mut class_pairs) = (Vec::new(), Vec::new(), Vec::new());
        for_each_value_pair(&values, 2, |a, b, d| {
            rows.all_pairs(a, b, d, &verifier, |p| all.push(p), |_| ());
            let found_classes = |a, b| class_pairs.push((a, b, d));
            rows.forest_pairs((a, b), d, &verifier, |p| candidates.push(p), found_classes, |_| ());
        });
        prop_assert_eq!(reduce([all]), expected.clone());

        let n_rows = u32::try_from(n).unwrap();
        prop_assert!(candidates.iter().all(|p| expected.contains(p)));
        prop_assert_eq!(naive::forest(&reduce([candidates.clone()]), n_rows), naive::forest(&expected, n_rows));
        // Forests of some of the pairs, merged, are the forest of all.
        let (mut some, mut others): (Vec<_>, Vec<_>) = candidates.iter().partition(|p| (p.a ^ p.b) % 3 > 0);
        spanning_forest(&mut some);
        spanning_forest(&mut others);
        prop_assert_eq!(naive::forest(&reduce([some, others]), n_rows), naive::forest(&expected, n_rows));

        let mut order: Vec<u32> = (0..n_rows)
            .filter(|&r| classes.of(r).is_some_and(|c| !sketched || rows.sketch(c).is_some()))
            .collect();
        order.sort_by_key(|&r| (u64::from(r) ^ shuffle).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let limit = LossLimit(max_lost_share.min(1.0));
        let may_drop = |row: u32, keeper: u32| {
            let of = |row: u32| Some((*sketches.get(row as usize)?.as_ref()?, (*n_features.get(row as usize)?)?));
            let lost = of(row).zip(of(keeper)).map(|((a, n), (b, keepers))| {
                lost_share(n, keepers, u16::try_from(a.distance(&b)).unwrap())
            });
            limit.allows(lost)
        };
        prop_assert_eq!(star_of(&rows, &classes, &class_pairs, &order, limit), naive_star(&expected, &order, may_drop));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_judge_gets_the_pairs_of_classes_between_its_limits_and_the_nearest_of_each_however_they_are_taken(
        seed: u64,
        n in 0usize..40,
        n_looks in 1u32..4,
        cut in 1usize..9,
    ) {
        let verifier = VERIFIERS[2];
        let (fingerprints, sketches) = batch(seed, n);
        let (rows, values) = group(&fingerprints, &sketches);
        let (mut all, mut of_forest) = (Vec::new(), Vec::new());
        for_each_value_pair(&values, 2, |a, b, d| {
            rows.all_pairs(a, b, d, &verifier, |_| (), |p| all.push(p));
            rows.forest_pairs((a, b), d, &verifier, |_| (), |_, _| (), |p| of_forest.push(p));
        });
        all.sort_unstable();
        of_forest.sort_unstable();
        prop_assert_eq!(&all, &of_forest);
        let classes = rows.class_of_rows(u32::try_from(n).unwrap());
        let mut expected: Vec<UndecidedPair> = Vec::new();
        for (a, b) in (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b))) {
            let (Some(x), Some(y), Some(s), Some(t)) = (fingerprints[a], fingerprints[b], sketches[a], sketches[b]) else { continue };
            let (distance, sketch_distance) = ((x ^ y).count_ones(), s.distance(&t));
            if distance <= 2 && (1..=2).contains(&sketch_distance) {
                let of = |row: usize| classes.of(u32::try_from(row).unwrap()).unwrap();
                let (distance, sketch_distance) = (distance.try_into().unwrap(), sketch_distance.try_into().unwrap());
                let (a, b) = (of(a).min(of(b)), of(a).max(of(b)));
                expected.push(UndecidedPair { sketch_distance, distance, a, b });
            }
        }
        expected.sort_unstable();
        expected.dedup();
        prop_assert_eq!(&all, &expected);

        // The first of each class, by definition.
        let of_class = |pair: &UndecidedPair, class: u32| [pair.a, pair.b].contains(&class);
        let rank = |pair: &UndecidedPair, class| expected.iter().filter(|p| of_class(p, class) && *p < pair).count();
        let is_near = |pair: &&UndecidedPair| [pair.a, pair.b].iter().any(|&class| rank(pair, class) < n_looks as usize);
        let nearest: Vec<UndecidedPair> = expected.iter().filter(is_near).copied().collect();
        let mut parts: Vec<UndecidedPair> = Vec::new();
        for part in all.chunks(cut) {
            let mut part = part.to_vec();
            nearest_undecided(&mut part, n_looks);
            parts.extend(part);
        }
        nearest_undecided(&mut parts, n_looks);
        prop_assert_eq!(parts, nearest);
    }
}

#[test]
fn a_million_equal_rows_make_one_star_and_no_quadratic_work() {
    let n = 1_000_000u32;
    let (rows, _) = group(&vec![Some(42u64); n as usize], &[]);
    let mut n_pairs = 0;
    let found = |p: RowPair| {
        assert_eq!(p.a, 0);
        n_pairs += 1;
    };
    rows.forest_pairs((0, 0), 0, &VERIFIERS[0], found, |_, _| panic!("one class"), |_| panic!("one class"));
    assert_eq!(n_pairs, n - 1);
}

#[test]
fn an_existing_document_comes_before_an_equally_near_row() {
    let (rows, _) = group(&[Some(1u64), Some(1)], &[]);
    let existing = Some(ExistingNeighbour { distance: 0, existing: 9 });
    let neighbours = ClassNeighbours::new(1, std::iter::empty);
    let decided = decisions(&[0, 1], &rows.class_of_rows(2), &neighbours, existing);
    let dropped = Decision::Drop { canonical: Canonical::Existing(9), distance: 0 };
    assert_eq!(decided, [(0, dropped), (1, dropped)]);
}

#[test]
fn clusters_connect_through_nodes_that_are_not_counted() {
    let mut sets = UnionFind::new(3);
    let outside = sets.add();
    sets.union(0, outside);
    sets.union(2, outside);
    let clusters = Clusters::of(sets, 3);
    assert_eq!([0, 1, 2].map(|row| clusters.first_row(row)), [0, 1, 0]);
    assert_eq!([0, 1, 2].map(|row| clusters.n_rows(row)), [2, 1, 2]);
}

proptest! {
    #[test]
    fn sets_and_clusters_are_those_of_labels_that_spread(
        n_rows in 1u32..40,
        n_outside in 0u32..10,
        pairs in prop::collection::vec((0u32..50, 0u32..50), 0..60),
    ) {
        let n_nodes = n_rows + n_outside;
        let mut sets = UnionFind::new(n_rows);
        for node in n_rows..n_nodes {
            prop_assert_eq!(sets.add(), node);
        }
        let pairs: Vec<(u32, u32)> = pairs.into_iter().map(|(a, b)| (a % n_nodes, b % n_nodes)).collect();
        let mut least: Vec<u32> = (0..n_nodes).collect();
        for &(a, b) in &pairs {
            let (of_a, of_b) = (least[a as usize], least[b as usize]);
            prop_assert_eq!(sets.union(a, b), of_a != of_b);
            least.iter_mut().filter(|least| **least == of_a.max(of_b)).for_each(|least| *least = of_a.min(of_b));
        }
        for node in 0..n_nodes {
            prop_assert_eq!(sets.find(node), least[node as usize]);
        }
        let clusters = Clusters::of(sets, n_rows);
        for row in 0..n_rows {
            let members: Vec<u32> = (0..n_rows).filter(|&other| least[other as usize] == least[row as usize]).collect();
            prop_assert_eq!(clusters.first_row(row), members[0]);
            prop_assert_eq!(clusters.n_rows(row) as usize, members.len());
        }
    }
}
