//! Table plans: that every choice of differing bits leaves one block near enough, and what the planner chooses.

use nearprint_join::{ExistingRun, JoinCost, JoinError, Kernel, Queries, TablePlan, Workload};
use proptest::prelude::*;

fn workload(n_queries: usize, n_existing: u64, memory_bytes: usize) -> Workload {
    let existing = vec![ExistingRun { n_rows: n_existing, density_rows: n_existing }];
    Workload {
        n_queries,
        existing,
        piece_rows: 1 << 20,
        itself: false,
        memory_bytes,
        threads: 2,
        pieces_under_way: 2,
        kernel: Kernel::SCALAR,
    }
}

#[test]
fn the_papers_four_tables_for_64_bits_and_distance_3_are_led_by_16_bits() {
    let plan = TablePlan::new(64, 3, &[0, 0, 0, 0]).unwrap();
    let blocks: Vec<(u32, u32)> = plan.tables().iter().map(|t| (t.block().low, t.block().width)).collect();
    assert_eq!(blocks, [(48, 16), (32, 16), (16, 16), (0, 16)]);
}

#[test]
fn tables_that_cannot_cover_the_distance_are_refused() {
    assert!(matches!(TablePlan::new(64, 3, &[0, 0, 0]), Err(JoinError::Tables { max_distance: 3, bits: 64, .. })));
    assert!(TablePlan::new(64, 3, &[1, 0]).is_err());
    assert!(TablePlan::new(64, 3, &[1, 1]).is_ok());
    assert!(TablePlan::new(4, 4, &[0; 5]).is_err());
}

#[test]
fn a_plan_of_more_bits_than_the_values_have_is_refused() {
    let wide = TablePlan::new(64, 3, &[0; 4]).unwrap();
    let error = Queries::try_new(vec![1u32, 2], wide.clone(), Kernel::best()).unwrap_err();
    assert_eq!(error, JoinError::Bits { bits: 64, type_bits: 32 });
    assert!(error.to_string().contains("use 1 to 32 bits"), "{error}");
    let none = Queries::try_new(vec![0u64], TablePlan::scan(0, 0), Kernel::best()).unwrap_err();
    assert_eq!(none, JoinError::Bits { bits: 0, type_bits: 64 });
    assert!(Queries::try_new(vec![1u64, 2], wide, Kernel::best()).is_ok());
    assert!(Queries::try_new(vec![1u64, 2], TablePlan::new(32, 3, &[0; 4]).unwrap(), Kernel::best()).is_ok());
}

#[test]
fn the_choice_fits_the_memory_it_is_given() {
    for memory in [0, 1 << 20, 1 << 26, 1 << 30] {
        let workload = workload(1 << 20, 1 << 30, memory);
        let plan = TablePlan::choose(64, 6, &workload);
        assert!(plan.is_scan() || workload.fits(&JoinCost::of(&plan, &workload)), "{memory}");
        // Memory for a table or two, and for the lists of a walk, is enough to do without a scan.
        assert_eq!(plan.is_scan(), memory < 1 << 26, "{memory}");
    }
}

#[test]
fn every_distance_has_few_enough_plans_to_choose_from() {
    for k in 0..64 {
        let plans: Vec<TablePlan> = TablePlan::alternatives(64, k).collect();
        assert!((2..400).contains(&plans.len()), "{} plans for {k}", plans.len());
        assert!(TablePlan::choose(64, k, &workload(1 << 10, 1 << 10, 1 << 30)).max_distance() == k);
    }
}

#[test]
fn a_large_store_is_walked_and_a_small_one_meets_tables() {
    let walked = TablePlan::choose(64, 3, &workload(1 << 16, 1 << 29, 1 << 30));
    assert_eq!(walked.tables().len(), 1, "{walked:?}");
    let tables = TablePlan::choose(64, 3, &workload(1 << 20, 1 << 20, 1 << 30));
    assert!(tables.tables().len() > 1, "{tables:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn permuting_moves_every_bit_once_and_inverts(value: u64, k in 0u32..8, choice: usize, bits in 16u32..=64) {
        let value = value >> (64 - bits);
        let plans: Vec<TablePlan> = TablePlan::alternatives(bits, k).collect();
        for table in plans[choice % plans.len()].tables() {
            let permuted: u64 = table.permutation().permute(value);
            prop_assert_eq!(permuted.count_ones(), value.count_ones());
            prop_assert_eq!(table.permutation().invert(permuted), value);
        }
    }

    #[test]
    fn any_k_differing_bits_leave_one_block_near_enough(flips in prop::collection::vec(0u32..64, 0..=8), choice: usize) {
        let k = u32::try_from(flips.len()).unwrap();
        let plans: Vec<TablePlan> = TablePlan::alternatives(64, k).collect();
        let differing = flips.iter().fold(0u64, |d, bit| d ^ (1 << bit));
        let near = plans[choice % plans.len()].tables().iter().any(|t| {
            let block = t.block();
            block.width == 0 || (differing >> block.low << (64 - block.width)).count_ones() <= t.max_prefix_distance()
        });
        prop_assert!(near);
    }
}
