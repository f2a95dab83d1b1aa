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
# Spark needs it. Elsewhere than on Debian or Ubuntu, its tests are left out where there is none.
if ! command -v java >/dev/null && command -v apt-get >/dev/null; then
  run_as_root=()
  [ "$(id -u)" -eq 0 ] || run_as_root=(sudo -n)
  "${run_as_root[@]}" apt-get update -q >&2 &&
    "${run_as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends default-jre-headless >&2 ||
    say "cannot install Java"
fi
command -v java >/dev/null || say "NOT CHECKED: nights on Spark (no Java)"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
[ -n "$wheel" ] || wheel=$(bash scripts/wheel.sh "$@" "$scratch")
python3 -m venv "$scratch/venv"
"$scratch/venv/bin/pip" install --quiet --disable-pip-version-check "$wheel" -r crates/python/tests/requirements.txt || {
  say "cannot install what the tests need"
  exit 69
}
# Not from the checkout, whose package has no compiled part.
# Two files at a time; those of Spark, which take longest, come first. Of a folder beside its files, pytest would take the folder alone.
others=()
for file in crates/python/tests/test_*.py; do
  [[ $file == */test_spark* ]] || others+=("$file")
done
"$scratch/venv/bin/python" -m pytest -q -p no:cacheprovider -n 2 --dist loadfile --no-loadscope-reorder \
  crates/python/tests/test_spark*.py "${others[@]}"
