#!/usr/bin/env bash
# Type-checks nearprint for ARM with the oldest toolchain that Cargo.toml promises, and with that toolchain the code that only x86-64 has.
#
# One pass does for both: over all dependencies it takes minutes, and its messages tell a language feature that is too new from code that
# ARM lacks. Nothing is linked, so `true` stands for the C compiler, and none for ARM is needed.
set -euo pipefail
cd "$(dirname "$0")/.."

target=aarch64-unknown-linux-gnu
oldest=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
if ! cargo "+$oldest" --version >/dev/null 2>&1 || [ ! -d "$(rustc "+$oldest" --print sysroot)/lib/rustlib/$target" ]; then
  rustup toolchain install "$oldest" --profile minimal --target "$target" >&2 || {
    echo "check_oldest: NOT CHECKED: Rust $oldest and ARM (rustup cannot install them)" >&2
    exit 0
  }
fi
CC_aarch64_unknown_linux_gnu=true AR_aarch64_unknown_linux_gnu=true \
  cargo "+$oldest" check --locked -p nearprint-cli -p nearprint-python --target "$target"
cargo "+$oldest" check --locked -p nearprint-join -p nearprint-parquet
