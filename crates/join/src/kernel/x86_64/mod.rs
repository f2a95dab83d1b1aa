//! Kernels of x86-64.

pub(super) mod avx2;
pub(super) mod avx512;

use super::{Kernel, KernelName, Task};

/// Runs portable code with the vectors and population counts of a kernel.
#[allow(unsafe_code, reason = "the blocks say why they are sound")]
pub(super) fn run<T: Task>(kernel: Kernel, task: T) -> T::Output {
    match kernel.name() {
        // SAFETY: the kernel proves the instructions.
        KernelName::Avx512 => unsafe { run_avx512(task) },
        name => {
            assert!(name == KernelName::Avx2);
            // SAFETY: the kernel is AVX2's, which proves its instructions.
            unsafe { run_avx2(task) }
        }
    }
}

#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vpopcntdq,popcnt")]
fn run_avx512<T: Task>(task: T) -> T::Output {
    task.run()
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
