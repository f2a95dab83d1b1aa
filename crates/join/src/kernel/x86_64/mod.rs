//! Kernels of x86-64.

pub(super) mod avx2;
pub(super) mod avx512;

use super::{Kernel, KernelName, Task};

/// Runs portable code with AVX2 and population counts.
#[allow(unsafe_code, reason = "the block says why it is sound")]
pub(super) fn run<T: Task>(kernel: Kernel, task: T) -> T::Output {
    assert!(matches!(kernel.name(), KernelName::Avx2 | KernelName::Avx512));
    // SAFETY: the kernel proves the instructions; a processor with AVX-512 has AVX2.
    unsafe { run_avx2(task) }
}

#[target_feature(enable = "avx2,popcnt")]
fn run_avx2<T: Task>(task: T) -> T::Output {
    task.run()
}

pub(super) fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt")
}

pub(super) fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("avx512vpopcntdq")
        && is_x86_feature_detected!("popcnt")
}
