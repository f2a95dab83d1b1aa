//! The portable kernel. It defines what the other kernels must do.

/// See [`DeltaKernel::unpack`](super::DeltaKernel::unpack).
pub fn unpack_deltas(packed: &[u8], width: u32, min_delta: u64, before: u64, out: &mut [u64]) -> u64 {
    let mut last = before;
    for (i, value) in out.iter_mut().enumerate() {
        last = last.wrapping_add(min_delta).wrapping_add(bits_at(packed, i * width as usize, width));
        *value = last;
    }
    last
}

/// Returns `width` ≤ 64 bits from position `bit` on, lowest first. Bits after the end are 0.
#[inline]
fn bits_at(packed: &[u8], bit: usize, width: u32) -> u64 {
    if width == 0 {
        return 0;
    }
    let (byte, shift) = (bit / 8, bit % 8);
    let word = match packed.get(byte..byte + 16).and_then(|bytes| bytes.first_chunk::<16>()) {
        Some(bytes) => u128::from_le_bytes(*bytes),
        None => {
            let mut bytes = [0; 16];
            for (to, from) in bytes.iter_mut().zip(packed.iter().skip(byte)) {
                *to = *from;
            }
            u128::from_le_bytes(bytes)
        }
    };
    #[allow(clippy::cast_possible_truncation, reason = "the lowest bits are asked for")]
    let low = (word >> shift) as u64;
    low & (u64::MAX >> (64 - width))
}
