#!/usr/bin/env bash
# lint_rust.sh [PACKAGE…]: formatting, lints and docs of all Rust code, with the oldest toolchain that Cargo.toml promises, and a type-check of
# packages for ARM: those that have code of their own for a processor, unless others are given.
#
# The oldest toolchain lints, since a pass over all dependencies takes minutes: what it accepts needs no second one.
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# -gt 0 ] || set -- nearprint-join nearprint-parquet
say() { echo "lint_rust: $*" >&2; }

oldest=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
arm=aarch64-unknown-linux-gnu
rust=("+$oldest")
if ! cargo "${rust[@]}" clippy --version >/dev/null 2>&1 || [ ! -d "$(rustc "${rust[@]}" --print sysroot)/lib/rustlib/$arm" ]; then
  rustup toolchain install "$oldest" --profile minimal --component clippy --target "$arm" >&2 || {
    say "NOT CHECKED: Rust $oldest and ARM (rustup cannot install them)"
    rust=()
  }
fi
# A toolchain may come without these two.
if cargo fmt --version >/dev/null 2>&1; then
  cargo fmt --check
else
  say "NOT CHECKED: formatting (rustup component add rustfmt)"
fi
if cargo "${rust[@]}" clippy --version >/dev/null 2>&1; then
  cargo "${rust[@]}" clippy --locked --workspace --all-targets -- -D warnings
else
  say "NOT CHECKED: lints (rustup component add clippy)"
fi
RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" cargo "${rust[@]}" doc --locked --workspace --no-deps --quiet
# Nothing is linked, so `true` stands for the C compiler, and none for ARM is needed.
[ "${#rust[@]}" -eq 0 ] || CC_aarch64_unknown_linux_gnu=true AR_aarch64_unknown_linux_gnu=true \
  cargo "${rust[@]}" check --locked "${@/#/--package=}" --target "$arm"
