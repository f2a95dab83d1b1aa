//! Map and reduce against the all-pairs oracle.

use std::sync::atomic::{AtomicUsize, Ordering};

use nearprint_fingerprint::Fingerprint;
use nearprint_join::{
    ExistingRun, Kernel, MapScratch, Queries, RunOrder, TablePlan, TogetherScratch, TooManyPairs, Width, Workload,
    naive, reduce,
};
use proptest::prelude::*;

use crate::data::{Rng, Skew};

/// Returns the pairs of a run of the two phases, as (query value, existing value, distance): the existing set is cut into `n_mappers` runs.
fn map_and_reduce<F: Width>(queries: &Queries<F>, existing: &[F], n_mappers: usize) -> Vec<(F, F, u32)> {
    let piece = existing.len().div_ceil(n_mappers).max(1);
    let mut scratch = MapScratch::default();
    reduce(existing.chunks(piece).map(|run| {
        let mut pairs = Vec::new();
        queries.map(run, &mut scratch, |p| {
            pairs.push((queries.values()[p.query as usize], run[p.existing as usize], u32::from(p.distance)));
        });
        pairs
    }))
}

/// Returns the pairs that all threads map together: the existing set is cut into `n_runs` runs, sorted or in their order.
fn map_together<F: Width>(queries: &Queries<F>, existing: &[F], n_runs: usize) -> Vec<(F, F, u32)> {
    let mut runs = vec![Vec::new(); n_runs];
    for (i, &value) in existing.iter().enumerate() {
        runs[i % n_runs].push(value);
    }
    let mut scratch = TogetherScratch::default();
    let unsorted: Vec<&[F]> = runs.iter().map(Vec::as_slice).collect();
    let in_any_order = queries.map_together_counted((&unsorted, RunOrder::Any), &mut scratch, usize::MAX, &|_| ());
    for run in &mut runs {
        run.sort_unstable();
    }
    let runs: Vec<&[F]> = runs.iter().map(Vec::as_slice).collect();
    let pairs = queries.map_together(&runs, &mut scratch, usize::MAX).unwrap();
    assert_eq!(in_any_order.unwrap(), pairs, "whatever the order of the runs");
    assert!(pairs.is_sorted_by(|a, b| a < b), "in order, and each once");
    reduce([pairs.iter().map(|p| (queries.values()[p.query as usize], p.existing, u32::from(p.distance))).collect()])
}

#[test]
fn a_join_tells_how_many_rows_it_has_probed_while_it_works() {
    let mut rng = Rng(5);
    let values: Vec<u64> = (0..20_000).map(|_| rng.next()).collect();
    let mut runs = [values[..15_000].to_vec(), values[10_000..].to_vec()];
    runs.iter_mut().for_each(|run| run.sort_unstable());
    let runs: Vec<&[u64]> = runs.iter().map(Vec::as_slice).collect();
    let queries = Queries::try_new(values[..5_000].to_vec(), plan(64, 5, 1), Kernel::best()).unwrap();
    let (n_calls, n_probed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let count = |n| {
        n_calls.fetch_add(1, Ordering::Relaxed);
        n_probed.fetch_add(n, Ordering::Relaxed);
    };
    for max_pairs in [usize::MAX, 1] {
        n_calls.store(0, Ordering::Relaxed);
        n_probed.store(0, Ordering::Relaxed);
        let _ = queries.map_together_counted(
            (&runs, RunOrder::Ascending),
            &mut TogetherScratch::default(),
            max_pairs,
            &count,
        );
        assert_eq!(n_probed.load(Ordering::Relaxed), 25_000);
        assert!(n_calls.load(Ordering::Relaxed) > 1, "it tells of each table at least");
    }
    let (mut n_calls, mut n_probed) = (0, 0);
    let count = &mut |n| (n_calls, n_probed) = (n_calls + 1, n_probed + n);
    queries.map_self_counted(100..4_999, &mut MapScratch::default(), count, |_| ());
    assert_eq!((n_calls, n_probed), (queries.plan().tables().len(), 4_899));
}

fn oracle<F: Fingerprint>(queries: &[F], existing: &[F], k: u32) -> Vec<(F, F, u32)> {
    let pairs = naive::cross_pairs(queries, existing, k);
    reduce([pairs.into_iter().map(|(q, e, d)| (queries[q], existing[e], d)).collect()])
}

/// A plan of those that there are.
fn plan(bits: u32, k: u32, choice: u32) -> TablePlan {
    let plans: Vec<TablePlan> = TablePlan::alternatives(bits, k).collect();
    plans[choice as usize % plans.len()].clone()
}

fn check<F: Width>(
    seed: u64,
    n_queries: usize,
    n_existing: usize,
    k: u32,
    skew: Skew,
    choice: u32,
) -> Result<(), TestCaseError> {
    let mut rng = Rng(seed | 1);
    let queries: Vec<F> = rng.fingerprints(n_queries, skew);
    let mut existing: Vec<F> = rng.near(&queries, n_existing, k + 2, skew);
    if choice.is_multiple_of(2) {
        existing.sort_unstable();
        existing.dedup();
    }
    let expected = oracle(&queries, &existing, k);
    for kernel in Kernel::available() {
        let built = Queries::try_new(queries.clone(), plan(F::BITS, k, choice), kernel).unwrap();
        prop_assert_eq!(&map_and_reduce(&built, &existing, 1 + choice as usize % 3), &expected, "{:?}", kernel);
        prop_assert_eq!(&map_together(&built, &existing, 1 + choice as usize % 4), &expected, "{:?}", kernel);

        let mut within = Vec::new();
        let middle = built.values().len() / 2;
        for range in [0..middle, middle..built.values().len()] {
            built.map_self(range, &mut MapScratch::default(), |p| {
                within.push((p.query as usize, p.existing as usize, u32::from(p.distance)));
            });
        }
        let pairs = naive::cross_pairs(built.values(), built.values(), k).into_iter().filter(|(a, b, _)| a < b);
        let n_within = within.len();
        let found = reduce([within]);
        prop_assert_eq!(found.len(), n_within, "each once");
        prop_assert_eq!(found, pairs.collect::<Vec<_>>(), "{:?}", kernel);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn map_and_reduce_find_exactly_the_pairs_of_the_oracle(
        seed: u64, n_queries in 0usize..48, n_existing in 0usize..48, k in 0u32..=12, skew in 0u32..5, width in 0u32..3, choice in 0u32..256,
    ) {
        let skew = Skew::ALL[skew as usize];
        match width {
            0 => check::<u32>(seed, n_queries, n_existing, k, skew, choice)?,
            1 => check::<u64>(seed, n_queries, n_existing, k, skew, choice)?,
            _ => check::<u128>(seed, n_queries, n_existing, k, skew, choice)?,
        }
    }
}

fn workload(n_queries: usize, n_existing: usize) -> Workload {
    Workload {
        n_queries,
        existing: vec![ExistingRun { n_rows: n_existing as u64, density_rows: n_existing as u64 }],
        piece_rows: n_existing,
        itself: true,
        memory_bytes: 1 << 30,
        threads: 1,
        pieces_under_way: 1,
        kernel: Kernel::SCALAR,
    }
}

#[test]
fn larger_sets_lose_no_pair_by_any_plan_or_kernel() {
    let mut rng = Rng(11);
    for skew in Skew::ALL {
        let queries: Vec<u64> = rng.fingerprints(1500, skew);
        let mut existing: Vec<u64> = rng.near(&queries, 4000, 6, skew);
        existing.sort_unstable();
        existing.dedup();
        for k in [0, 3, 6, 10] {
            let expected = oracle(&queries, &existing, k);
            // There are many plans for large distances.
            for plan in TablePlan::alternatives(64, k).step_by(if k > 6 { 7 } else { 1 }) {
                for kernel in Kernel::available() {
                    let built = Queries::try_new(queries.clone(), plan.clone(), kernel).unwrap();
                    assert_eq!(map_and_reduce(&built, &existing, 1), expected, "{plan:?}, {kernel:?}, {skew:?}");
                    if kernel == Kernel::best() {
                        assert_eq!(map_together(&built, &existing, 2), expected, "{plan:?}, {skew:?}");
                    }
                }
            }
        }
    }
}

/// So many rows that each table cuts them into buckets and stripes.
#[test]
fn runs_mapped_by_all_threads_together_lose_no_pair() {
    let mut rng = Rng(12);
    for skew in Skew::ALL {
        let queries: Vec<u64> = rng.fingerprints(200, skew);
        let existing: Vec<u64> = rng.near(&queries, 100_000, 14, skew);
        let within_12 = oracle(&queries, &existing, 12);
        for (k, n_runs) in [(3, 1), (8, 3), (12, 2)] {
            let expected: Vec<(u64, u64, u32)> = within_12.iter().copied().filter(|pair| pair.2 <= k).collect();
            let chosen = TablePlan::choose(64, k, &workload(queries.len(), existing.len()));
            let even = TablePlan::new(64, k, &[k / 3, k / 3, k / 3]).unwrap();
            for plan in [chosen, even, TablePlan::new(64, k, &vec![0; k as usize + 1]).unwrap()] {
                let built = Queries::try_new(queries.clone(), plan.clone(), Kernel::best()).unwrap();
                assert_eq!(map_together(&built, &existing, n_runs), expected, "{plan:?}, {skew:?}");
            }
        }
    }
}

/// Pieces of a sorted set rarely begin where many leading bits change.
#[test]
fn runs_that_cross_the_middle_of_the_values_with_their_prefix_lose_no_pair() {
    let mut rng = Rng(15);
    for (middle, log_width) in [(1 << 63, 50), (1 << 63, 61), (3 << 61, 58), (5 << 60, 44), (u64::MAX - (1 << 40), 39)]
    {
        let within = |value: u64, log_width: u32| (middle - (1 << (log_width - 1))) + (value >> (64 - log_width));
        let queries: Vec<u64> = (0..300).map(|_| within(rng.next(), log_width + 2)).collect();
        let mut existing: Vec<u64> = (0..20_000).map(|_| within(rng.next(), log_width)).collect();
        let near = rng.near(&queries, 20_000, 6, Skew::Uniform);
        existing.extend(near.into_iter().filter(|value| value.abs_diff(middle) < 1 << (log_width - 1)));
        existing.sort_unstable();
        existing.dedup();
        for k in [0, 3, 6] {
            let expected = oracle(&queries, &existing, k);
            assert!(k == 0 || !expected.is_empty(), "some are near");
            for plan in TablePlan::alternatives(64, k).step_by(if k > 3 { 5 } else { 1 }) {
                let built = Queries::try_new(queries.clone(), plan.clone(), Kernel::best()).unwrap();
                for n_runs in [1, 3] {
                    assert_eq!(map_together(&built, &existing, n_runs), expected, "{plan:?}, {middle}, {log_width}");
                }
                // Runs that lie on one side, and a side of one row.
                let at = existing.partition_point(|&value| value < middle);
                for from in [0, at - 1] {
                    let runs: Vec<&[u64]> = existing[from..].chunks(9_000).collect();
                    let pairs = built.map_together(&runs, &mut TogetherScratch::default(), usize::MAX).unwrap();
                    let is_there = |pair: &&(u64, u64, u32)| pair.1 >= existing[from];
                    assert_eq!(
                        pairs.len(),
                        expected.iter().filter(is_there).count(),
                        "{plan:?}, {middle}, {log_width}"
                    );
                }
                assert_eq!(map_and_reduce(&built, &existing, 1), expected, "{plan:?}, {middle}, {log_width}");
            }
        }
    }
}

/// So many rows and queries that threads together read lists by prefix, which a thread alone does not.
#[test]
fn lists_that_are_read_by_prefix_lose_no_pair() {
    let mut rng = Rng(14);
    for skew in [Skew::Uniform, Skew::SharedBlock] {
        let queries: Vec<u64> = rng.fingerprints(1 << 14, skew);
        let mut existing: Vec<u64> = rng.fingerprints(1 << 20, Skew::Uniform);
        existing.extend(rng.near(&queries, 100_000, 12, skew));
        existing.sort_unstable();
        existing.dedup();
        for (k, distances) in [(8, [2, 2, 2]), (7, [2, 2, 1])] {
            for kernel in Kernel::available() {
                let plan = TablePlan::new(64, k, &distances).unwrap();
                let built = Queries::try_new(queries.clone(), plan, kernel).unwrap();
                let expected = map_and_reduce(&built, &existing, 1);
                assert!(expected.len() > 10_000, "many pairs are near");
                assert_eq!(map_together(&built, &existing, 2), expected, "{kernel:?}, {skew:?}");
            }
        }
    }
}

/// The rows of the piece agree in more bits than the queries of a permuted table are sorted by.
#[test]
fn runs_of_few_values_lose_no_pair_in_wide_blocks() {
    let mut rng = Rng(13);
    for distances in [vec![0, 0], vec![1, 0], vec![2, 0]] {
        let k = distances.iter().map(|t| t + 1).sum::<u32>() - 1;
        let mut queries: Vec<u64> = rng.fingerprints(2_000, Skew::ALL[0]);
        queries.extend([1, 1 << 63, 1 << 40, 3 << 20, 7]);
        let built =
            Queries::try_new(queries.clone(), TablePlan::new(64, k, &distances).unwrap(), Kernel::best()).unwrap();
        for existing in [vec![0], vec![0, 1], vec![1 << 62, 1 << 63], vec![5, 1 << 33]] {
            assert_eq!(
                map_together(&built, &existing, 1),
                oracle(&queries, &existing, k),
                "{distances:?}, {existing:?}"
            );
        }
    }
}

#[test]
fn pairs_beyond_the_limit_are_counted_and_refused() {
    let plan = TablePlan::new(64, 1, &[0, 0]).unwrap();
    let queries = Queries::try_new(vec![0u64, 1, 2], plan, Kernel::best()).unwrap();
    let mut scratch = TogetherScratch::default();
    assert_eq!(queries.map_together(&[&[0, 1, 2]], &mut scratch, 6), Err(TooManyPairs { n_pairs: 7 }));
    assert_eq!(queries.map_together(&[&[0, 1, 2]], &mut scratch, 7).unwrap().len(), 7);
    assert_eq!(queries.map_together(&[&[], &[]], &mut scratch, 0), Ok(Vec::new()));
}

/// Leaves of more than 2^26 pairs get tables of their own.
#[test]
fn hot_blocks_split_into_tables_of_their_own_lose_no_pair() {
    let mut rng = Rng(7);
    for skew in [Skew::SharedBlock, Skew::Ball] {
        let queries: Vec<u64> = rng.fingerprints(18_000, skew);
        let mut existing: Vec<u64> = rng.near(&queries, 18_000, 4, skew);
        existing.sort_unstable();
        existing.dedup();
        let expected = oracle(&queries, &existing, 3);
        let chosen = TablePlan::choose(64, 3, &workload(queries.len(), existing.len()));
        for plan in [chosen, TablePlan::new(64, 3, &[0; 4]).unwrap(), TablePlan::new(64, 3, &[3]).unwrap()] {
            let built = Queries::try_new(queries.clone(), plan, Kernel::best()).unwrap();
            assert_eq!(map_and_reduce(&built, &existing, 1), expected, "{skew:?}");
        }
    }
}

#[test]
fn a_hot_block_joined_with_itself_loses_no_pair() {
    let mut rng = Rng(8);
    for skew in [Skew::SharedBlock, Skew::Ball] {
        let mut queries: Vec<u64> = rng.fingerprints(18_000, skew);
        let near: Vec<u64> = queries[..1000].iter().map(|&q| rng.flip(q, 3)).collect();
        queries.extend(near);
        let built = Queries::try_new(queries, TablePlan::new(64, 3, &[0; 4]).unwrap(), Kernel::best()).unwrap();
        let (mut found, n) = (Vec::new(), built.values().len());
        for range in [0..n / 3, n / 3..n] {
            built.map_self(range, &mut MapScratch::default(), |p| {
                found.push((p.query as usize, p.existing as usize, u32::from(p.distance)));
            });
        }
        let all = naive::cross_pairs(built.values(), built.values(), 3);
        let n_found = found.len();
        assert_eq!(reduce([found]), all.into_iter().filter(|(a, b, _)| a < b).collect::<Vec<_>>(), "{skew:?}");
        assert!(n_found > 800, "{n_found}");
    }
}

#[test]
fn a_pair_comes_out_of_the_map_once_although_several_tables_hold_it() {
    let queries = Queries::try_new(vec![0u64], TablePlan::new(64, 3, &[0, 0, 0, 0]).unwrap(), Kernel::best()).unwrap();
    let mut n = 0;
    queries.map(&[0, 1], &mut MapScratch::default(), |_| n += 1);
    assert_eq!(n, 2);
}
