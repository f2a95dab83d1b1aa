#!/usr/bin/env bash
# reliability.sh [quick]: all trials of evidence/reliability against a release build, and the tables of that page made from what they say.
#
# In full it takes some hours on two cores; `quick` takes half an hour, has few seeds, points and rounds, and leaves the page alone.
# Works as root: some trials mount small file systems. Results: target/reliability/results.jsonl.
# ONLY="kills races" runs only these groups.
set -euo pipefail
cd "$(dirname "$0")/.."

quick=${1:-}
case $quick in ''|quick) ;; *) echo "usage: reliability.sh [quick]" >&2; exit 64 ;; esac
say() { echo "reliability: $*" >&2; }

if [ "$quick" = quick ]; then
  seeds=2 outage=3 points=(--points 20) rounds=50 rounds_rgw=10 nights=20 sequences=10 scale=0.02
else
  seeds=20 outage=20 points=() rounds=1000 rounds_rgw=1000 nights=30 sequences=200 scale=1
fi

# Trials whose tool is missing are skipped, and a row that was skipped is not green.
command -v faketime >/dev/null || { apt-get update -q && apt-get install -y -q --no-install-recommends faketime; } >&2 \
  || say "faketime cannot be installed: F27 will be skipped"
command -v chromium >/dev/null || { apt-get update -q && apt-get install -y -q --no-install-recommends chromium; } >&2 \
  || say "chromium cannot be installed: S6 will be skipped"
if ! command -v radosgw >/dev/null; then bash scripts/install-rgw.sh >&2; fi

cargo build --release -p nearprint-cli -p nearprint-trials
trials=$PWD/target/release/nearprint-trials
out=$PWD/target/reliability
results=$out/results.jsonl
mkdir -p "$out"
[ -n "${ONLY:-}" ] || rm -f "$results"

scratch=$(mktemp -d)
chmod 755 "$scratch" # a trial runs as another user
trap 'bash scripts/stop-rgw.sh "$scratch/rgw"; rm -rf "$scratch"' EXIT
environment=
for port in 17480 17580 17680 17780; do
  environment=$(bash scripts/start-rgw.sh "$scratch/rgw" "$port" nearprint-test) && break
done
[ -n "$environment" ] || { say "the S3 server did not start"; exit 69; }
set -a
eval "$environment"
set +a

red=0
# group NAME ARGUMENTS...: one subcommand; a red row is no reason to stop.
group() {
  local name=$1
  shift
  [[ " ${ONLY:-$name} " == *" $name "* ]] || return 0
  say "$name $*"
  "$trials" "$name" --nearprint "$PWD/target/release/nearprint" --results "$results" --work "$scratch/work" "$@" \
    >>"$out/$name.log" || { red=1; say "$name has red rows"; }
}

group night --seeds "$seeds"
group faults --seeds "$seeds" --outage "$outage" --rgw-dir "$scratch/rgw"
group kills "${points[@]}"
group races --backend local --rounds "$rounds"
group races --backend rgw --rounds "$rounds_rgw"
group nights --nights "$nights" --seeds "$sequences"
for name in bad-input security flips loads; do group "$name" --scale "$scale"; done
# Which credentials are found is what it tries: those of the server would be found first.
(unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_REGION; group canary --scale "$scale"; exit "$red") || red=1

table=$out/table.md
"$trials" table --results "$results" >"$table"
page=evidence/reliability/README.md
if [ "$quick" != quick ] && [ -e "$page" ] && grep -q '^<!-- trials: begin -->$' "$page"; then
  # The generated part of the page is replaced; what is written by hand around it stays.
  awk -v table="$table" '
    /^<!-- trials: begin -->$/ { print; print ""; while ((getline line < table) > 0) print line; print ""; skipping = 1 }
    /^<!-- trials: end -->$/ { skipping = 0 }
    !skipping && !/^<!-- trials: begin -->$/ { print }
  ' "$page" >"$page.new" && mv "$page.new" "$page"
fi
cat "$table"
exit "$red"
