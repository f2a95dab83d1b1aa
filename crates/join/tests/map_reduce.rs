//! Map and reduce against the all-pairs oracle.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, clippy::print_stdout, reason = "tests")]

mod data;

use data::{Rng, Skew};
use nearprint_fingerprint::Fingerprint;
use nearprint_join::{Queries, TablePlan, naive, reduce};
use proptest::prelude::*;

/// What a run of the two phases gives, as (query value, existing value, distance): the existing set is cut into `n_mappers` runs.
fn map_and_reduce<F: Fingerprint>(queries: &Queries<F>, existing: &[F], n_mappers: usize) -> Vec<(F, F, u32)> {
    let piece = existing.len().div_ceil(n_mappers).max(1);
    reduce(existing.chunks(piece).map(|run| {
        let mut pairs = Vec::new();
        queries.map(run, |p| {
            pairs.push((queries.values()[p.query as usize], run[p.existing as usize], u32::from(p.distance)));
        });
        pairs
    }))
}

fn oracle<F: Fingerprint>(queries: &[F], existing: &[F], k: u32) -> Vec<(F, F, u32)> {
    let pairs = naive::cross_pairs(queries, existing, k);
    reduce([pairs.into_iter().map(|(q, e, d)| (queries[q], existing[e], d)).collect()])
}

fn plan(bits: u32, k: u32, choice: u32, n: usize) -> TablePlan {
    let made = match choice % 4 {
        0 => TablePlan::blocks(bits, k, k + 1 + choice / 4 % 3),
        1 => TablePlan::two_level(bits, k, k + 1, k + 1),
        2 => Ok(TablePlan::scan(bits, k)),
        _ => Ok(TablePlan::choose(bits, k, n, 1 << 20, 1 << 24)),
    };
    made.unwrap_or_else(|_| TablePlan::choose(bits, k, n, 1 << 20, 1 << 24))
}

fn check<F: Fingerprint>(
    seed: u64,
    n_queries: usize,
    n_existing: usize,
    k: u32,
    skew: Skew,
    choice: u32,
) -> Result<(), TestCaseError> {
    let mut rng = Rng(seed | 1);
    let queries: Vec<F> = rng.fingerprints(n_queries, skew);
    let existing: Vec<F> = rng.near(&queries, n_existing, k + 2, skew);
    // Two-level plans of large k have thousands of tables: enough for a few rows, slow for ten thousand cases.
    let choice = if k > 4 && choice % 4 == 1 { choice + 1 } else { choice };
    let built = Queries::new(queries.clone(), plan(F::BITS, k, choice, n_queries));
    prop_assert_eq!(map_and_reduce(&built, &existing, 1 + choice as usize % 3), oracle(&queries, &existing, k));

    let mut within = Vec::new();
    let middle = built.values().len() / 2;
    for range in [0..middle, middle..built.values().len()] {
        built.map_self(range, |p| within.push((p.query as usize, p.existing as usize, u32::from(p.distance))));
    }
    let expected =
        naive::cross_pairs(built.values(), built.values(), k).into_iter().filter(|(a, b, _)| a < b).collect();
    prop_assert_eq!(reduce([within]), reduce::<(usize, usize, u32)>([expected]));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn map_and_reduce_find_exactly_the_pairs_of_the_oracle(
        seed: u64, n_queries in 0usize..48, n_existing in 0usize..48, k in 0u32..=8, skew in 0u32..5, width in 0u32..3, choice in 0u32..48,
    ) {
        let skew = Skew::ALL[skew as usize];
        match width {
            0 => check::<u32>(seed, n_queries, n_existing, k, skew, choice)?,
            1 => check::<u64>(seed, n_queries, n_existing, k, skew, choice)?,
            _ => check::<u128>(seed, n_queries, n_existing, k, skew, choice)?,
        }
    }
}

#[test]
fn hot_blocks_split_into_tables_of_their_own_lose_no_pair() {
    let mut rng = Rng(7);
    for k in [0, 3, 6] {
        for skew in [Skew::SharedBlock, Skew::FewBits] {
            let queries: Vec<u64> = rng.fingerprints(6000, skew);
            let existing: Vec<u64> = rng.near(&queries, 500, k + 1, skew);
            let built = Queries::new(queries.clone(), TablePlan::blocks(64, k, k + 1).unwrap());
            assert_eq!(map_and_reduce(&built, &existing, 1), oracle(&queries, &existing, k), "k = {k}, {skew:?}");
        }
    }
}

#[test]
fn a_pair_comes_out_of_the_map_once_although_many_tables_hold_it() {
    let queries = Queries::new(vec![0u64], TablePlan::blocks(64, 3, 6).unwrap());
    let mut n = 0;
    queries.map(&[0, 1], |_| n += 1);
    assert_eq!(n, 2);
}
