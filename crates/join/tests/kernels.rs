//! Every kernel that this processor can run, against the definition.

use nearprint_join::kernel::{NearPrefix, scalar};
use nearprint_join::{JoinError, Kernel, KernelName, Width};
use proptest::prelude::*;

use crate::data::{Rng, Skew};

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

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// The values and rows are near one another, so that many pairs differ in just the limit, or in one bit more.
    #[test]
    fn every_kernel_compares_below_a_prefix_as_the_definition_does(
        seed: u64, n in 0usize..300, m in 0usize..80, k in 0u32..=16, rest_bits in 0u32..=64, near: bool, skew in 0usize..5,
    ) {
        let mut rng = Rng(seed | 1);
        let rest = if rest_bits == 0 { 0 } else { u64::MAX >> (64 - rest_bits) };
        let prefix = rng.next() & !rest;
        let of_prefix = |value: u64| prefix | (value & rest);
        let rows: Vec<u64> = rng.fingerprints(m, Skew::ALL[skew]).into_iter().map(of_prefix).collect();
        let mut values: Vec<u64> = rng.near(&rows, n, k + 2, Skew::ALL[skew]);
        if near {
            // Values that differ from the prefix in few bits, and from some row in about k bits.
            for value in &mut values {
                let (n_prefix, n_rest) = (rng.below(k as usize + 1) as u32, rng.below(k as usize + 2) as u32);
                let row = if rows.is_empty() { prefix } else { rows[rng.below(rows.len())] };
                *value = (rng.flip(prefix, n_prefix) & !rest) | (rng.flip(row, n_rest) & rest);
            }
        }
        let distances: Vec<u8> =
            values.iter().map(|value| ((value ^ prefix) & !rest).count_ones() as u8).collect();
        let list = NearPrefix { values: &values, distances: &distances, rest_bits };
        for kernel in Kernel::available() {
            for limit in [k, k.saturating_sub(3), 64] {
                prop_assert_eq!(
                    pairs(|found| u64::pairs_of_prefix(kernel, &rows, list, limit, found)),
                    pairs(|found| scalar::pairs(&rows, &values, limit, found)),
                    "{:?}, {}", kernel, limit
                );
            }
        }
    }
}

/// All values are equal, or differ from the rows in exactly the limit or one bit more.
#[test]
fn values_at_the_limit_are_found() {
    for rest_bits in [0, 7, 20, 24, 33, 40, 48, 52, 64] {
        let prefix_bits = 64 - rest_bits;
        for k in 0..=20 {
            for above in 0..=k.min(prefix_bits) {
                let rest = if rest_bits == 0 { 0 } else { u64::MAX >> (64 - rest_bits) };
                let leading = if above == 0 { 0 } else { u64::MAX << (64 - above) };
                let spread =
                    |n: u32| (0..n.min(rest_bits)).fold(0, |bits, i| bits | 1u64 << (i * 5 % rest_bits.max(1)));
                let near = [k - above, k - above + 1].map(|n| leading ^ (spread(n) & rest));
                let values: Vec<u64> = (0..45).map(|i| near[i % 2]).collect();
                let distances = vec![above as u8; values.len()];
                let list = NearPrefix { values: &values, distances: &distances, rest_bits };
                for rows in [vec![0; 1], vec![0; 17], vec![rest, 0, rest]] {
                    let expected = pairs(|found| scalar::pairs(&rows, &values, k, found));
                    for kernel in Kernel::available() {
                        let found = pairs(|found| u64::pairs_of_prefix(kernel, &rows, list, k, found));
                        assert_eq!(found, expected, "{kernel:?}, {rest_bits}, {k}, {above}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_kernel_has_one_name_and_another_name_is_refused_with_all_of_them() {
    for name in KernelName::ALL {
        assert_eq!(name.name().parse(), Ok(name));
    }
    let refused = "sse2".parse::<KernelName>().unwrap_err().to_string();
    assert_eq!(refused, "no kernel 'sse2': use scalar, neon, avx2, avx512");
}

#[test]
fn a_kernel_that_the_processor_lacks_is_refused() {
    let foreign = if cfg!(target_arch = "x86_64") { KernelName::Neon } else { KernelName::Avx2 };
    assert_eq!(Kernel::try_new(foreign), Err(JoinError::Kernel { name: foreign.name() }));
    assert!(Kernel::try_new(KernelName::Scalar).is_ok());
    assert_eq!(Kernel::available().last(), Some(&Kernel::best()));
}
