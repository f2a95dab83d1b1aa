//! Every kernel that this processor can run, against the definition.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, clippy::print_stdout, reason = "tests")]

mod data;

use data::{Rng, Skew};
use nearprint_join::kernel::scalar;
use nearprint_join::{JoinError, Kernel, KernelName, Width};
use proptest::prelude::*;

fn pairs(find: impl FnOnce(&mut dyn FnMut(u64, u64))) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    find(&mut |a, b| found.push((a, b)));
    found.sort_unstable();
    found
}

fn unordered(find: impl FnOnce(&mut dyn FnMut(u64, u64))) -> Vec<(u64, u64)> {
    pairs(|found| find(&mut |a, b| found(a.min(b), a.max(b))))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_kernel_selects_and_compares_as_the_definition_does(
        seed: u64, n in 0usize..200, m in 0usize..200, k in 0u32..=64, depth in 0u32..=64, skew in 0usize..5,
    ) {
        let mut rng = Rng(seed | 1);
        let list: Vec<u64> = rng.fingerprints(n, Skew::ALL[skew]);
        let others: Vec<u64> = rng.near(&list, m, k.min(8) + 2, Skew::ALL[skew]);
        let prefix = others.first().copied().unwrap_or(seed);
        let mask = if depth == 0 { 0 } else { u64::MAX << (64 - depth) };
        let mut expected = vec![0; n];
        let n_expected = scalar::select(&list, prefix, mask, k.min(8), &mut expected);
        let mut ascending = list.clone();
        ascending.sort_unstable();
        ascending.dedup();
        for kernel in Kernel::available() {
            let mut selected = vec![0; n + 16];
            let n_selected = u64::select(kernel, &list, prefix, mask, k.min(8), &mut selected);
            prop_assert_eq!(&selected[..n_selected], &expected[..n_expected], "{:?}", kernel);
            prop_assert_eq!(
                unordered(|found| u64::pairs_within(kernel, &list, k, found)),
                unordered(|found| scalar::pairs_within(&list, k, found)),
                "{:?}", kernel
            );
            let mut starts = vec![0; n + 16];
            let n_starts = u64::group_starts(kernel, &list, mask, &mut starts);
            let mut expected_starts = vec![0; n];
            let n_expected_starts = scalar::group_starts(&list, mask, &mut expected_starts);
            prop_assert_eq!(&starts[..n_starts], &expected_starts[..n_expected_starts], "{:?}", kernel);
            prop_assert!(u64::is_ascending(kernel, &ascending));
            if n > 0 {
                prop_assert_eq!(u64::is_ascending(kernel, &list), list == ascending, "{:?}", kernel);
                let mut repeated = ascending.clone();
                repeated.insert(depth as usize % ascending.len(), ascending[depth as usize % ascending.len()]);
                prop_assert!(!u64::is_ascending(kernel, &repeated));
            }
            prop_assert_eq!(
                pairs(|found| u64::pairs(kernel, &list, &others, k, found)),
                pairs(|found| scalar::pairs(&list, &others, k, found)),
                "{:?}", kernel
            );
        }
    }
}

#[test]
fn a_kernel_that_the_processor_lacks_is_refused() {
    let foreign = if cfg!(target_arch = "x86_64") { KernelName::Neon } else { KernelName::Avx2 };
    assert_eq!(Kernel::try_new(foreign), Err(JoinError::Kernel { name: foreign.name() }));
    assert!(Kernel::try_new(KernelName::Scalar).is_ok());
    assert_eq!(Kernel::available().last(), Some(&Kernel::best()));
}
