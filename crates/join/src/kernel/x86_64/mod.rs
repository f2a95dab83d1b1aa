//! Kernels of x86-64.

pub(super) mod avx2;
pub(super) mod avx512;

use super::scalar;

pub(super) fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt")
}

pub(super) fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vpopcntdq")
        && is_x86_feature_detected!("popcnt")
}

/// Rows of a leaf compared before hits are looked for: few enough that a hit costs little to find again.
const ROWS_AT_ONCE: usize = 64;

/// Compares `lanes` with `rows` piece by piece: `near` may say that a piece holds a pair within the distance where it holds
/// none, never the reverse; the definition then finds the pairs.
#[inline(always)]
fn verified(
    lanes: &[u64],
    rows: &[u64],
    lanes_at_once: usize,
    near: impl Fn(&[u64], &[u64]) -> bool,
    max_distance: u32,
    found: &mut dyn FnMut(u64, u64),
) {
    for lanes in lanes.chunks(lanes_at_once) {
        for rows in rows.chunks(ROWS_AT_ONCE) {
            if near(lanes, rows) {
                scalar::pairs(lanes, rows, max_distance, found);
            }
        }
    }
}
