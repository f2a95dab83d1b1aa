#!/usr/bin/env bash
# test_wheel.sh [--debug | WHEEL]: installs the wheel into a venv of its own, with what the tests compare it with, and runs the tests. Builds
# the wheel first if none is given, optimised unless --debug is given.
set -euo pipefail

wheel=
if [ -n "${1:-}" ] && [ "$1" != --debug ]; then
  wheel=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
  shift
fi
cd "$(dirname "$0")/.."

say() { echo "test_wheel: $*" >&2; }

command -v python3 >/dev/null || { say "needs python3"; exit 69; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
[ -n "$wheel" ] || wheel=$(bash scripts/wheel.sh "$@" "$scratch")
python3 -m venv "$scratch/venv"
"$scratch/venv/bin/pip" install --quiet --disable-pip-version-check "$wheel" -r crates/python/tests/requirements.txt || {
  say "cannot install what the tests need"
  exit 69
}
# Not from the checkout, whose package has no compiled part.
"$scratch/venv/bin/python" -m pytest -q -p no:cacheprovider crates/python/tests
