//! Single queries on sorted copies: that the tables find what a comparison with everything finds, each value once.

use nearprint_join::{JoinError, Kernel, LookupPlan, naive, near_values};
use proptest::prelude::*;

/// Values of `bits` bits, many of which differ in few bits from the first.
fn values(bits: u32) -> impl Strategy<Value = Vec<u64>> {
    let all = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
    let flips = proptest::collection::vec(0..bits, 0..24);
    let near = proptest::collection::vec(flips, 0..60);
    (any::<u64>(), near, proptest::collection::vec(any::<u64>(), 0..60)).prop_map(move |(first, near, far)| {
        let near = near.into_iter().map(|flips| flips.into_iter().fold(first, |value, bit| value ^ 1 << bit));
        let mut values: Vec<u64> = near.chain(far).chain([first, first]).map(|value| value & all).collect();
        values.rotate_left(1);
        values
    })
}

/// Returns what the tables find: positions among `existing`, ascending, with distances.
fn found(plan: &LookupPlan, existing: &[u64], query: u64) -> Vec<(usize, u32)> {
    let mut all = Vec::new();
    for table in 0..plan.n_tables() {
        let permutation = plan.permutation(table);
        let mut copy: Vec<(u64, usize)> = (0..).zip(existing).map(|(at, &v)| (permutation.permute(v), at)).collect();
        copy.sort_unstable();
        let ranges = plan.ranges(table, query);
        assert!(ranges.windows(2).all(|pair| pair[0].end() + 1 < *pair[1].start()), "{ranges:?}");
        // Only what is in the ranges is looked at, with one value more at either side, as pages have.
        for range in ranges {
            let from = copy.partition_point(|(value, _)| value < range.start()).saturating_sub(1);
            let to = copy.partition_point(|(value, _)| value <= range.end());
            let stretch = &copy[from..(to + 1).min(copy.len())];
            let stretch_values: Vec<u64> = stretch.iter().map(|(value, _)| *value).collect();
            for kernel in Kernel::available() {
                let mut of_stretch = Vec::new();
                plan.near(kernel, table, &stretch_values, query, &mut Vec::new(), |at, distance| {
                    of_stretch.push((stretch[at].1, distance))
                });
                if kernel == Kernel::best() {
                    all.extend(of_stretch);
                }
            }
        }
    }
    all.sort_unstable();
    // A value beside two ranges is seen twice, and never missed.
    all.dedup();
    all
}

fn expected(existing: &[u64], query: u64, max_distance: u32) -> Vec<(usize, u32)> {
    let pairs = naive::cross_pairs(&[query], existing, max_distance);
    pairs.into_iter().map(|(_, at, distance)| (at, distance)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_tables_find_what_a_comparison_with_everything_finds(
        (bits, existing) in prop_oneof![Just(32u32), Just(64)].prop_flat_map(|bits| (Just(bits), values(bits))),
        max_distance in 0u32..20,
        log_rows in 0u32..40,
        flips in proptest::collection::vec(0u32..32, 0..6),
    ) {
        let query = flips.into_iter().fold(existing[0], |value, bit| value ^ 1 << bit);
        let plan = LookupPlan::new(bits, max_distance, 1 << log_rows, 1024).unwrap();
        prop_assert_eq!(found(&plan, &existing, query), expected(&existing, query, max_distance));
    }

    #[test]
    fn a_scan_of_values_in_any_order_finds_the_near_ones_by_every_kernel(
        mut existing in values(64), repeats in 1usize..120, max_distance in 0u32..30,
    ) {
        existing = existing.repeat(repeats);
        let query = existing[0];
        let expected: Vec<(usize, u32)> = existing.iter().map(|value| (value ^ query).count_ones()).enumerate().filter(|(_, k)| *k <= max_distance).collect();
        for kernel in Kernel::available() {
            let mut found = Vec::new();
            near_values(kernel, &existing, query, max_distance, &mut Vec::new(), |at, distance| found.push((at, distance)));
            prop_assert_eq!(&found, &expected, "{:?}", kernel);
        }
    }
}

#[test]
fn each_value_is_found_by_one_table_alone() {
    let plan = LookupPlan::new(64, 12, 1 << 27, 1024).unwrap();
    let query = 0x0123_4567_89ab_cdef;
    let values = [query, query ^ 1, query ^ 1 << 63, query ^ 0x8000_8000_8000_8000, query ^ 0x000f_000f_000f_0000];
    for value in values {
        let of_tables = (0..plan.n_tables()).filter(|&table| {
            let mut n = 0;
            let permuted = plan.permutation(table).permute(value);
            plan.near(Kernel::best(), table, &[permuted], query, &mut Vec::new(), |_, _| n += 1);
            n > 0
        });
        assert_eq!(of_tables.count(), 1, "{value:x}");
    }
}

#[test]
fn a_large_store_is_looked_at_in_few_stretches_and_a_small_one_as_a_whole() {
    let ranges = |max_distance| {
        let plan = LookupPlan::new(64, max_distance, 1 << 27, 1024).unwrap();
        (0..plan.n_tables()).map(|table| plan.ranges(table, 0x5a5a_1234_5678_9abc).len()).collect::<Vec<_>>()
    };
    assert_eq!(ranges(3), [1, 1, 1, 1]);
    // 697 + 3 · 137 prefixes, of which some are next to each other.
    let at_12: usize = ranges(12).iter().sum();
    assert!((800..=1108).contains(&at_12), "{at_12}");
    assert!(LookupPlan::new(64, 12, 10_000, 1024).unwrap().is_scan());
    assert!(!LookupPlan::new(64, 3, 10_000, 1024).unwrap().is_scan());
}

#[test]
fn distances_and_widths_that_no_copy_serves_are_refused() {
    assert!(matches!(LookupPlan::new(64, 64, 10, 10), Err(JoinError::Distance { max_distance: 64, bits: 64 })));
    assert!(matches!(LookupPlan::new(128, 3, 10, 10), Err(JoinError::Bits { bits: 128, type_bits: 64 })));
    assert_eq!(LookupPlan::copies(64).unwrap().len(), 4);
    assert!(LookupPlan::copies(64).unwrap()[0].is_identity());
}
