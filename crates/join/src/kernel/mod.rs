//! The inner loops of the join, for each set of instructions; [`scalar`] is the definition of all of them.
//!
//! A [`Kernel`] is a proof: it exists only if the processor that runs the program has its instructions. So a build for
//! the oldest processor of a family uses the instructions of the newest one.

#[cfg(target_arch = "aarch64")]
mod aarch64;
pub mod scalar;
#[cfg(target_arch = "x86_64")]
mod x86_64;

use std::str::FromStr;

use nearprint_fingerprint::Fingerprint;

use crate::error::{JoinError, Result};

/// The name of a set of instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KernelName {
    /// Portable code.
    Scalar,
    /// Advanced SIMD of 64-bit ARM.
    Neon,
    /// AVX2 of x86-64.
    Avx2,
    /// AVX-512 of x86-64 with its population counts (`vpopcntq`).
    Avx512,
}

impl KernelName {
    /// All names, the slowest kernel first.
    pub const ALL: [Self; 4] = [Self::Scalar, Self::Neon, Self::Avx2, Self::Avx512];

    /// Returns the name that flags and summaries use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Neon => "neon",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }
}

impl FromStr for KernelName {
    type Err = JoinError;

    fn from_str(name: &str) -> Result<Self> {
        let known = Self::ALL.into_iter().find(|known| known.name() == name);
        let all = || Self::ALL.map(Self::name).to_vec();
        known.ok_or_else(|| JoinError::NoKernel { name: name.to_owned(), known: all() })
    }
}

/// A set of instructions that the running processor has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kernel {
    /// Invariant: the instructions of this name were detected.
    name: KernelName,
}

impl Kernel {
    /// The kernel that every processor can run.
    pub const SCALAR: Self = Self { name: KernelName::Scalar };

    /// Returns the kernel of a name.
    ///
    /// # Errors
    /// [`JoinError::Kernel`] if the processor lacks its instructions.
    pub fn try_new(name: KernelName) -> Result<Self> {
        if detected(name) { Ok(Self { name }) } else { Err(JoinError::Kernel { name: name.name() }) }
    }

    /// Returns the fastest kernel that this processor can run.
    #[must_use]
    pub fn best() -> Self {
        Self::available().last().copied().unwrap_or(Self::SCALAR)
    }

    /// Returns every kernel that this processor can run, the slowest first.
    #[must_use]
    pub fn available() -> Vec<Self> {
        KernelName::ALL.into_iter().filter_map(|name| Self::try_new(name).ok()).collect()
    }

    /// Returns the name of the kernel.
    #[must_use]
    pub fn name(self) -> KernelName {
        self.name
    }
}

/// Portable code that gains from a kernel's instructions, such as the population count. Its `run` is always inlined, so
/// that it is compiled with them.
pub(crate) trait Task {
    type Output;

    fn run(self) -> Self::Output;
}

impl Kernel {
    /// Runs portable code with the instructions of the kernel.
    pub(crate) fn run<T: Task>(self, task: T) -> T::Output {
        match self.name {
            #[cfg(target_arch = "x86_64")]
            KernelName::Avx2 | KernelName::Avx512 => x86_64::run(self, task),
            _ => task.run(),
        }
    }
}

/// Values, and the number of bits, above the lowest `rest_bits`, in which each of them differs from a prefix.
#[derive(Debug, Clone, Copy)]
pub struct NearPrefix<'a, F> {
    /// The values.
    pub values: &'a [F],
    /// The distance of each value to the prefix.
    pub distances: &'a [u8],
    /// The number of bits below the prefix.
    pub rest_bits: u32,
}

impl<F> NearPrefix<'_, F> {
    /// Returns the number of bits that may differ below the prefix in a pair of the farthest value, within `max_distance` in all.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "only kernels of x86-64 compare rests"))]
    fn max_rest(&self, max_distance: u32) -> u32 {
        let farthest = self.distances.iter().copied().max().unwrap_or(0);
        max_distance.saturating_sub(u32::from(farthest))
    }
}

fn detected(name: KernelName) -> bool {
    match name {
        KernelName::Scalar => true,
        #[cfg(target_arch = "x86_64")]
        KernelName::Avx2 => x86_64::has_avx2(),
        #[cfg(target_arch = "x86_64")]
        KernelName::Avx512 => x86_64::has_avx512(),
        #[cfg(target_arch = "aarch64")]
        KernelName::Neon => std::arch::is_aarch64_feature_detected!("neon"),
        _ => false,
    }
}

/// The room that [`Width::select`] and [`Width::group_starts`] need after their output: whole vectors are stored, and
/// the next ones overwrite their tails.
pub(crate) const PADDING: usize = 16;

/// The number of values that are compared with each other before they are compared with all that follow: a vector of
/// low halves.
const CHUNK: usize = 16;

/// A width of fingerprints that can be joined, and the operations of the walk on a list of them: the join does all of
/// its arithmetic on fingerprints here. `u64` has vector kernels; the other widths have the portable one. The trait is
/// sealed because its methods may change.
pub trait Width: Fingerprint + sealed::Sealed {
    /// Returns the lowest bits, as many as fit.
    fn low_bits(self) -> usize;

    /// Moves the values of `list` that differ from `prefix` in at most `max_distance` of the bits of `mask` to the
    /// front of `out`, in their order, and returns their number. `out` has room for `list` and 16 more values, whose
    /// content is lost.
    ///
    /// # Panics
    /// If `out` lacks this room; the portable kernel needs only the room for `list`.
    fn select(kernel: Kernel, list: &[Self], prefix: Self, mask: Self, max_distance: u32, out: &mut [Self]) -> usize;

    /// Returns whether every value is greater than the one before.
    fn is_ascending(kernel: Kernel, values: &[Self]) -> bool;

    /// Writes the positions, from 1, at which the bits of `mask` change from one value to the next, to the front of
    /// `starts`, and returns their number. `starts` has room for as many positions as there are values and 16 more,
    /// whose content is lost.
    fn group_starts(kernel: Kernel, values: &[Self], mask: Self, starts: &mut [u32]) -> usize;

    /// Calls `found(a, b)` once for every two values at different positions within `max_distance`, in no particular
    /// order.
    fn pairs_within(kernel: Kernel, values: &[Self], max_distance: u32, found: &mut dyn FnMut(Self, Self)) {
        for (n, chunk) in (1..).zip(values.chunks(CHUNK)) {
            Self::pairs(kernel, values.get(n * CHUNK..).unwrap_or(&[]), chunk, max_distance, found);
            if Self::may_have_pairs(kernel, chunk, max_distance) {
                scalar::pairs_within(chunk, max_distance, found);
            }
        }
    }

    /// Returns whether two of up to 16 values may be within `max_distance`; false only if no two of them are.
    fn may_have_pairs(kernel: Kernel, values: &[Self], max_distance: u32) -> bool;

    /// Calls `found(a, b)` for every pair of a value of `left` and one of `right` within `max_distance`, in no
    /// particular order.
    fn pairs(kernel: Kernel, left: &[Self], right: &[Self], max_distance: u32, found: &mut dyn FnMut(Self, Self));

    /// Does the same as [`pairs`](Self::pairs) for `rows` that have the prefix of the `list`. The distances in the
    /// prefix, which are known, leave few bits that may differ below it.
    fn pairs_of_prefix(
        kernel: Kernel,
        rows: &[Self],
        list: NearPrefix<'_, Self>,
        max_distance: u32,
        found: &mut dyn FnMut(Self, Self),
    ) {
        Self::pairs(kernel, rows, list.values, max_distance, found);
    }
}

macro_rules! portable_vectors {
    ($($int:ty),+) => {$(
        impl Width for $int {
            #[inline]
            #[allow(clippy::cast_possible_truncation, reason = "the lowest bits are asked for")]
            fn low_bits(self) -> usize {
                self as usize
            }

            fn select(_: Kernel, list: &[Self], prefix: Self, mask: Self, max_distance: u32, out: &mut [Self]) -> usize {
                scalar::select(list, prefix, mask, max_distance, out)
            }

            fn is_ascending(_: Kernel, values: &[Self]) -> bool {
                scalar::is_ascending(values)
            }

            fn group_starts(_: Kernel, values: &[Self], mask: Self, starts: &mut [u32]) -> usize {
                scalar::group_starts(values, mask, starts)
            }

            fn may_have_pairs(_: Kernel, _: &[Self], _: u32) -> bool {
                true
            }

            fn pairs(_: Kernel, left: &[Self], right: &[Self], max_distance: u32, found: &mut dyn FnMut(Self, Self)) {
                scalar::pairs(left, right, max_distance, found);
            }
        }
    )+};
}

portable_vectors!(u32, u128);

impl Width for u64 {
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "the lowest bits are asked for")]
    fn low_bits(self) -> usize {
        self as usize
    }

    fn select(kernel: Kernel, list: &[Self], prefix: Self, mask: Self, max_distance: u32, out: &mut [Self]) -> usize {
        match kernel.name {
            #[cfg(target_arch = "x86_64")]
            KernelName::Avx512 => x86_64::avx512::select(kernel, list, prefix, mask, max_distance, out),
            #[cfg(target_arch = "x86_64")]
            KernelName::Avx2 => x86_64::avx2::select(kernel, list, prefix, mask, max_distance, out),
            #[cfg(target_arch = "aarch64")]
            KernelName::Neon => aarch64::select(kernel, list, prefix, mask, max_distance, out),
            _ => scalar::select(list, prefix, mask, max_distance, out),
        }
    }

    fn is_ascending(kernel: Kernel, values: &[Self]) -> bool {
        match kernel.name {
            #[cfg(target_arch = "x86_64")]
            KernelName::Avx512 => x86_64::avx512::is_ascending(kernel, values),
            _ => scalar::is_ascending(values),
        }
    }

    fn group_starts(kernel: Kernel, values: &[Self], mask: Self, starts: &mut [u32]) -> usize {
        match kernel.name {
            #[cfg(target_arch = "x86_64")]
            KernelName::Avx512 => x86_64::avx512::group_starts(kernel, values, mask, starts),
            _ => scalar::group_starts(values, mask, starts),
        }
    }

    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables, reason = "only AVX-512 looks"))]
    fn may_have_pairs(kernel: Kernel, values: &[Self], max_distance: u32) -> bool {
        match kernel.name {
            #[cfg(target_arch = "x86_64")]
            KernelName::Avx512 => x86_64::avx512::may_have_pairs(kernel, values, max_distance),
            _ => true,
        }
    }

    fn pairs(kernel: Kernel, left: &[Self], right: &[Self], max_distance: u32, found: &mut dyn FnMut(Self, Self)) {
        // The longer side fills the vectors.
        if left.len() < right.len() {
            return lanes_and_rows(kernel, right, left, max_distance, &mut |b, a| found(a, b));
        }
        lanes_and_rows(kernel, left, right, max_distance, found);
    }

    fn pairs_of_prefix(
        kernel: Kernel,
        rows: &[Self],
        list: NearPrefix<'_, Self>,
        max_distance: u32,
        found: &mut dyn FnMut(Self, Self),
    ) {
        match kernel.name {
            #[cfg(target_arch = "x86_64")]
            KernelName::Avx512 => x86_64::avx512::pairs_of_prefix(kernel, rows, list, max_distance, found),
            #[cfg(target_arch = "x86_64")]
            KernelName::Avx2 => x86_64::avx2::pairs_of_prefix(kernel, rows, list, max_distance, found),
            _ => Self::pairs(kernel, rows, list.values, max_distance, found),
        }
    }
}

fn lanes_and_rows(kernel: Kernel, lanes: &[u64], rows: &[u64], max_distance: u32, found: &mut dyn FnMut(u64, u64)) {
    match kernel.name {
        #[cfg(target_arch = "x86_64")]
        KernelName::Avx512 => x86_64::avx512::pairs(kernel, lanes, rows, max_distance, found),
        #[cfg(target_arch = "x86_64")]
        KernelName::Avx2 => x86_64::avx2::pairs(kernel, lanes, rows, max_distance, found),
        #[cfg(target_arch = "aarch64")]
        KernelName::Neon => aarch64::pairs(kernel, lanes, rows, max_distance, found),
        _ => scalar::pairs(lanes, rows, max_distance, found),
    }
}

mod sealed {
    /// Keeps other crates from implementing [`Width`](super::Width).
    pub trait Sealed {}

    impl Sealed for u32 {}
    impl Sealed for u64 {}
    impl Sealed for u128 {}
}
