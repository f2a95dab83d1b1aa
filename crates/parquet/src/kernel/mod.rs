//! The inner loop of reading fingerprints: it unpacks values in Parquet's encoding DELTA_BINARY_PACKED. [`scalar`] is
//! the definition.
//!
//! A [`DeltaKernel`] is a proof: it has other instructions than portable ones only if the processor that runs the program
//! has them.

pub mod scalar;
#[cfg(target_arch = "x86_64")]
mod x86_64;

/// A way to unpack deltas, with instructions that the running processor has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeltaKernel {
    #[cfg(target_arch = "x86_64")]
    lanes: Option<x86_64::Lanes>,
}

impl DeltaKernel {
    /// The kernel that every processor can run.
    pub const SCALAR: Self = Self {
        #[cfg(target_arch = "x86_64")]
        lanes: None,
    };

    /// Returns the fastest kernel that this processor can run.
    #[must_use]
    pub fn best() -> Self {
        Self {
            #[cfg(target_arch = "x86_64")]
            lanes: x86_64::Lanes::detected(),
        }
    }

    /// Unpacks a miniblock into values and returns the last one. Each delta has `width` bits, at most 64, which are taken
    /// from the lowest bit up. Each value is the one before it, plus `min_delta`, plus its delta, modulo 2^64. `packed`
    /// must hold at least `out.len()` deltas.
    pub(crate) fn unpack(self, packed: &[u8], width: u32, min_delta: u64, before: u64, out: &mut [u64]) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if let Some(last) = self.lanes.and_then(|lanes| lanes.unpack(packed, width, min_delta, before, out)) {
            return last;
        }
        scalar::unpack_deltas(packed, width, min_delta, before, out)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::{DeltaKernel, scalar};

    #[test]
    fn every_width_and_length_unpacks_as_the_definition_does() {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state ^ (state >> 29)
        };
        for width in 0..=64u32 {
            for n in (0..=72).chain([128, 256]) {
                for spare in [0, 1, 7, 64, 100] {
                    let n_bytes = (n * width as usize).div_ceil(8) + spare;
                    let packed: Vec<u8> = (0..n_bytes).map(|_| next().to_le_bytes()[3]).collect();
                    let (min_delta, before) = (next(), next());
                    let mut defined = vec![0; n];
                    let last = scalar::unpack_deltas(&packed, width, min_delta, before, &mut defined);
                    for kernel in [DeltaKernel::SCALAR, DeltaKernel::best()] {
                        let mut unpacked = vec![0; n];
                        let own = kernel.unpack(&packed, width, min_delta, before, &mut unpacked);
                        assert_eq!((own, &unpacked), (last, &defined), "{kernel:?}: width {width}, {n} values");
                    }
                }
            }
        }
    }
}
