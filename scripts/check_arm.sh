#!/usr/bin/env bash
# Type-checks all of nearprint for ARM, with the oldest toolchain that Cargo.toml promises. Nothing is linked, so `true` stands for the C
# compiler, and none for ARM is needed. It takes minutes, over all dependencies; CI has lint_rust.sh check the kernels alone.
set -euo pipefail
cd "$(dirname "$0")/.."

target=aarch64-unknown-linux-gnu
oldest=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
if ! cargo "+$oldest" --version >/dev/null 2>&1 || [ ! -d "$(rustc "+$oldest" --print sysroot)/lib/rustlib/$target" ]; then
  rustup toolchain install "$oldest" --profile minimal --target "$target" >&2 || {
    echo "check_arm: NOT CHECKED: ARM (rustup cannot install Rust $oldest for it)" >&2
    exit 0
  }
fi
CC_aarch64_unknown_linux_gnu=true AR_aarch64_unknown_linux_gnu=true \
  cargo "+$oldest" check --locked -p nearprint-cli -p nearprint-python --target "$target"
