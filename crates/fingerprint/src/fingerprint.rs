//! The fingerprint type: an unsigned integer of 32, 64 or 128 bits.

use std::fmt::Debug;
use std::hash::Hash;
use std::ops::{BitAnd, BitOr, BitXor, Not, Shl, Shr};

/// A SimHash value: an unsigned integer of [`BITS`](Self::BITS) bits, implemented for `u32`, `u64` and `u128`.
///
/// Bit 0 is the least significant. `Ord` is the order of the integers, so the leading bits of a value are the prefix by
/// which a sorted table is probed. Shifts follow the primitive types: a shift by [`BITS`](Self::BITS) or more
/// overflows.
///
/// ```
/// use nearprint_fingerprint::Fingerprint;
///
/// fn top_bits<F: Fingerprint>(fingerprint: F, n: u32) -> u128 {
///     (fingerprint >> (F::BITS - n)).to_u128()
/// }
/// assert_eq!(top_bits(0xABCD_0000_u32, 8), 0xAB);
/// ```
pub trait Fingerprint:
    Copy
    + Ord
    + Hash
    + Debug
    + Send
    + Sync
    + 'static
    + BitXor<Output = Self>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + Not<Output = Self>
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
{
    /// The number of bits: 32, 64 or 128.
    const BITS: u32;
    /// The value in which no bit is set.
    const ZERO: Self;
    /// The value in which every bit is set.
    const MAX: Self;

    /// Returns the number of bits that are 1, from 0 to [`BITS`](Self::BITS).
    fn count_ones(self) -> u32;

    /// Returns the number of 0 bits above the highest 1 bit, which is [`BITS`](Self::BITS) for [`ZERO`](Self::ZERO).
    fn leading_zeros(self) -> u32;

    /// Returns the lowest [`BITS`](Self::BITS) bits of `value`; the bits above them are dropped.
    fn from_u128(value: u128) -> Self;

    /// Returns the same number, zero-extended.
    fn to_u128(self) -> u128;
}

macro_rules! impl_fingerprint {
    ($($int:ty),+) => {$(
        impl Fingerprint for $int {
            const BITS: u32 = <$int>::BITS;
            const ZERO: Self = 0;
            const MAX: Self = <$int>::MAX;

            #[inline]
            fn count_ones(self) -> u32 {
                <$int>::count_ones(self)
            }

            #[inline]
            fn leading_zeros(self) -> u32 {
                <$int>::leading_zeros(self)
            }

            #[inline]
            #[allow(clippy::cast_possible_truncation, reason = "keeping the lowest bits is the contract")]
            fn from_u128(value: u128) -> Self {
                value as $int
            }

            #[inline]
            fn to_u128(self) -> u128 {
                u128::from(self)
            }
        }
    )+};
}

impl_fingerprint!(u32, u64, u128);

/// Returns the number of bits in which `a` and `b` differ, from 0 to [`Fingerprint::BITS`]. This distance is a metric.
///
/// ```
/// use nearprint_fingerprint::hamming_distance;
///
/// assert_eq!(hamming_distance(0b1010_u64, 0b0110), 2);
/// ```
#[inline]
pub fn hamming_distance<F: Fingerprint>(a: F, b: F) -> u32 {
    (a ^ b).count_ones()
}
