#!/usr/bin/env bash
# before_release.sh [STEP…]: what is checked in the night before a release, and is too long for CI: about four hours on two cores. All steps
# without any:
#
#   ci            what CI runs (.ci/run)
#   arm           all code type-checks for ARM
#   s3            the tests on S3 with a second server
#   advisories    licences, bans, sources, and advisories; notices and bill of materials
#   fuzz          each fuzz target, about an hour in all
#   trials        reliability.sh quick
#   wheel         the wheel as it is released, with Spark
#   package       the Debian package
#   book          the book
#   reproducible  two builds from two folders are the same bytes
#
# A step that fails ends no other; the exit code is 1 then. The last lines say what was NOT CHECKED. Logs: target/before-release.
# Works as root, as reliability.sh does. Installs the tools that it needs into target/tools.
set -euo pipefail
cd "$(dirname "$0")/.."

# tool NAME [OPTION…]: a command of cargo's, installed if there is none.
tool() {
  command -v "$1" >/dev/null || cargo install "$@" --locked --debug --root target/tools --target-dir target/tools/build
}

run() {
  case $1 in
    ci) bash .ci/run ;;
    arm) bash scripts/lint_rust.sh nearprint-cli nearprint-python ;;
    s3) bash scripts/test_second_s3.sh ;;
    advisories) bash scripts/supply_chain.sh advisories ;;
    fuzz) dev/fuzz/run.sh 380 ;;
    trials) bash scripts/reliability.sh quick ;;
    wheel) bash scripts/test_wheel.sh ;;
    package) tool cargo-deb && bash scripts/deb.sh ;;
    book) tool mdbook --version '^0.5' && bash scripts/book/build.sh ;;
    reproducible) bash scripts/reproducible.sh ;;
  esac
}

all=(ci arm s3 advisories fuzz trials wheel package book reproducible)
steps=("$@")
[ $# -gt 0 ] || steps=("${all[@]}")
for step in "${steps[@]}"; do
  [[ " ${all[*]} " == *" $step "* ]] || { echo "usage: before_release.sh [${all[*]}]" >&2; exit 64; }
done

export PATH=$PATH:$PWD/target/tools/bin
logs=target/before-release
mkdir -p "$logs"
red=0
for step in "${steps[@]}"; do
  began=$SECONDS
  if run "$step" >"$logs/$step.log" 2>&1; then result=passed; else result=FAILED red=1; fi
  echo "$step: $result, $((SECONDS - began)) s"
done
(cd "$logs" && grep --with-filename --only-matching 'NOT CHECKED.*' "${steps[@]/%/.log}") || true
exit "$red"
