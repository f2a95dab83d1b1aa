//! The portable kernel, and the definition of what every other kernel must do.

use nearprint_fingerprint::Fingerprint;

/// Calls `found(row, distance)` for every fingerprint of `rows` within `max_distance` of `fingerprint`, in row order.
#[inline]
pub fn within<F: Fingerprint>(fingerprint: F, rows: &[F], max_distance: u32, mut found: impl FnMut(F, u32)) {
    for &row in rows {
        let distance = (fingerprint ^ row).count_ones();
        if distance <= max_distance {
            found(row, distance);
        }
    }
}
