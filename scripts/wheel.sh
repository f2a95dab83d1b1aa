#!/usr/bin/env bash
# wheel.sh [--debug] DIR: builds the Python wheel for this machine into DIR, optimised unless --debug is given. Needs maturin, or python3 to
# install it to DIR/build-venv. Prints the wheel's path.
set -euo pipefail

options=(--profile release)
if [ "${1:-}" = --debug ]; then options=(--profile dev --features as-tested) && shift; fi
[ $# -eq 1 ] || { echo "usage: wheel.sh [--debug] DIR" >&2; exit 64; }
mkdir -p "$1"
dir=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."

say() { echo "wheel: $*" >&2; }

maturin=$(command -v maturin || true)
if [ -z "$maturin" ]; then
  maturin=$dir/build-venv/bin/maturin
  if [ ! -x "$maturin" ]; then
    python3 -m venv "$dir/build-venv"
    "$dir/build-venv/bin/pip" install --quiet --disable-pip-version-check 'maturin>=1.9.4,<2' || {
      say "cannot install maturin"
      exit 69
    }
  fi
fi
rm -f "$dir"/nearprint-*.whl
"$maturin" build "${options[@]}" --interpreter python3 --out "$dir" >&2
ls "$dir"/nearprint-*.whl
