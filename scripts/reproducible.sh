#!/usr/bin/env bash
# reproducible.sh [PACKAGE KIND NAME]: builds a program (default: nearprint-cli bin nearprint) from two folders with the same flags, and compares
# the SHA-256 of the two. A release build of nearprint takes minutes, and this makes two. A small one, which ends sooner:
# reproducible.sh nearprint-fingerprint example distance
set -euo pipefail
cd "$(dirname "$0")/.."

package=${1:-nearprint-cli}
kind=${2:-bin}
program=${3:-nearprint}
folder=release
[ "$kind" = bin ] || folder=release/examples
scratch=$(mktemp -d "${TMPDIR:-/tmp}/reproducible-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
cargo_home=${CARGO_HOME:-$HOME/.cargo}

for name in one another-folder; do
  mkdir -p "$scratch/$name"
  git archive HEAD | tar -x -C "$scratch/$name"
  (
    cd "$scratch/$name"
    # Paths of sources are in panic messages, and through C compilers in the code of assertions.
    export RUSTFLAGS="--remap-path-prefix=$PWD=/nearprint --remap-path-prefix=$cargo_home=/cargo"
    export CFLAGS="-ffile-prefix-map=$PWD=/nearprint -ffile-prefix-map=$cargo_home=/cargo"
    export SOURCE_DATE_EPOCH=0 CARGO_INCREMENTAL=0
    cargo build --quiet --release --locked -p "$package" "--$kind" "$program" --target-dir "$PWD/target"
    sha256sum "target/$folder/$program" | cut -d' ' -f1
  ) >"$scratch/$name.sha256"
  rm -rf "${scratch:?}/$name"
done
cat "$scratch"/*.sha256
cmp "$scratch/one.sha256" "$scratch/another-folder.sha256"
