//! The kernel that unpacks fingerprints for a join.

use nearprint_join::{Kernel, KernelName};
use nearprint_parquet::DeltaKernel;

/// Returns the kernel that unpacks the fingerprints of a join. It uses no instructions that were not allowed to the join:
/// the only other one than the portable one needs AVX-512.
#[must_use]
pub fn delta_kernel(join: Kernel) -> DeltaKernel {
    match join.name() {
        KernelName::Avx512 => DeltaKernel::best(),
        KernelName::Scalar | KernelName::Neon | KernelName::Avx2 => DeltaKernel::SCALAR,
    }
}
