//! Table plans: the paper's, and that every choice of differing bits leaves one prefix clean.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, clippy::print_stdout, reason = "tests")]

use nearprint_join::{JoinError, TablePlan};
use proptest::prelude::*;

fn prefixes(plan: &TablePlan) -> Vec<u32> {
    plan.tables().iter().map(|t| t.prefix_bits()).collect()
}

#[test]
fn the_papers_plans_for_64_bits_and_distance_3_have_4_10_16_and_20_tables() {
    let sizes = |plan: TablePlan| {
        let p = prefixes(&plan);
        (p.len(), *p.iter().min().unwrap(), *p.iter().max().unwrap())
    };
    assert_eq!(sizes(TablePlan::blocks(64, 3, 4).unwrap()), (4, 16, 16));
    assert_eq!(sizes(TablePlan::blocks(64, 3, 5).unwrap()), (10, 25, 26));
    assert_eq!(sizes(TablePlan::two_level(64, 3, 4, 4).unwrap()), (16, 28, 28));
    assert_eq!(sizes(TablePlan::blocks(64, 3, 6).unwrap()), (20, 31, 33));
}

#[test]
fn a_cut_that_cannot_cover_the_distance_is_refused() {
    assert!(matches!(TablePlan::blocks(64, 3, 3), Err(JoinError::Blocks { blocks: 3, max_distance: 3, bits: 64 })));
    assert!(TablePlan::blocks(4, 3, 5).is_err());
}

#[test]
fn the_choice_fits_the_memory_it_is_given() {
    for memory in [0, 1 << 20, 1 << 26, 1 << 30] {
        let plan = TablePlan::choose(64, 6, 1 << 20, 1 << 30, memory);
        assert!(plan.cost(1 << 20, 1 << 30).memory_bytes <= memory.max(16 << 20), "{memory}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn permuting_moves_every_bit_once_and_inverts(value: u64, k in 0u32..8, extra in 1u32..4, bits in 16u32..=64) {
        let value = value >> (64 - bits);
        let plan = TablePlan::blocks(bits, k, (k + extra).min(bits)).unwrap();
        for table in plan.tables() {
            let permuted: u64 = table.permute(value);
            prop_assert_eq!(permuted.count_ones(), value.count_ones());
            prop_assert_eq!(table.invert(permuted), value);
        }
    }

    #[test]
    fn any_k_differing_bits_leave_the_prefix_of_one_table_equal(flips in prop::collection::vec(0u32..64, 0..=8), two_level: bool) {
        let k = u32::try_from(flips.len()).unwrap();
        let plan = if two_level && (1..=4).contains(&k) { TablePlan::two_level(64, k, k + 1, k + 1) } else { TablePlan::blocks(64, k, k + 2) };
        let differing = flips.iter().fold(0u64, |d, bit| d ^ (1 << bit));
        let clean = plan.unwrap().tables().iter().any(|t| {
            let prefix = t.prefix_bits();
            prefix == 0 || t.permute(differing) >> (64 - prefix) == 0
        });
        prop_assert!(clean);
    }
}
