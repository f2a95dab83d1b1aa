#!/usr/bin/env bash
# check.sh NEARPRINT [STEP...]: runs the examples of jobs/dagster and jobs/prefect in a real Dagster and a real Prefect, in a scratch folder: nights
# of the sample data, a night that is published already, one that is missing, one that arrives late, and one that is stopped; has systemd check its unit, and compares the
# manifest of jobs/kubernetes with the schemas of Kubernetes. The steps are dagster, prefect, systemd and kubernetes, by default all. Two minutes.
set -euo pipefail
[ $# -ge 1 ] || { echo "usage: check.sh NEARPRINT [dagster|prefect|systemd|kubernetes...]" >&2; exit 64; }
nearprint=$(realpath "$1")
steps=("${@:2}")
[ ${#steps[@]} -gt 0 ] || steps=(dagster prefect systemd kubernetes)
for step in "${steps[@]}"; do
    case $step in dagster | prefect | systemd | kubernetes) ;; *) echo "check.sh: no step $step" >&2; exit 64 ;; esac
done
wanted() { [[ " ${steps[*]} " == *" $1 "* ]]; }
root=$(realpath "$(dirname "$0")/../..")
tools=${SCHEDULERS_DIR:-$root/target/schedulers}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/bin" "$work/crawl" "$tools"
ln -s "$nearprint" "$work/bin/nearprint"
export PATH=$work/bin:$PATH NEARPRINT_RETRIES=8 NEARPRINT_RETRY_SECONDS=2

# Kubernetes' schemas come with the validator: its version is that of the newest.
for tool in dagster==1.13.29 prefect==3.9.1 kubernetes-validate==1.37.0; do
    name=${tool%%=*}
    wanted "${name%-validate}" || continue
    [ -x "$tools/$name/bin/$name" ] || { python3 -m venv "$tools/$name" && "$tools/$name/bin/pip" install -q --disable-pip-version-check "$tool"; }
done

say() { echo "$1: $2"; }
failed() { echo "FAILED: $1: $2" >&2; tail -n 40 "$work/log" >&2; exit 1; }
# Expects a command to succeed, or to fail with a text in its log.
succeeds() { "${@:2}" >"$work/log" 2>&1 || failed "$1" "it fails"; say "$1" "ok"; }
fails() { if "${@:3}" >"$work/log" 2>&1; then failed "$1" "it succeeds"; fi; grep -q "$2" "$work/log" || failed "$1" "no '$2'"; say "$1" "ok"; }

# An own store for each tool.
job() {
    printf '%s = "%s"\n' documents "$work/crawl" store "$work/$1/store" output "$work/$1/results" >"$work/$1.toml"
    echo 'create_store = true' >>"$work/$1.toml"
    echo "$work/$1.toml"
}
arrives() { cp -r "$root/sample_data/documents/dt=$1" "$work/crawl"; }

try() {
    local name=$1 night=("${@:2}")
    rm -rf "$work/crawl/"*
    arrives 2026-11-19
    succeeds "$name: a night" "${night[@]}" 2026-11-19
    succeeds "$name: a published night" "${night[@]}" 2026-11-19
    [ "$(find "$work/$name/results/decisions/dt=2026-11-19" -name '*.parquet' | wc -l)" -ge 1 ] || failed "$name" "no decisions"
    (sleep 5; arrives 2026-11-20) &
    succeeds "$name: a late crawl" "${night[@]}" 2026-11-20
    wait
    rm -rf "$work/$name/store"
    mkdir "$work/$name/store"
    NEARPRINT_RUN_ARGS="--output /proc/nearprint-{dt}" fails "$name: a failure that no retry mends" "night 2026-11-19, exit code 7[0-9]" "${night[@]}" 2026-11-19
    stop "${night[@]}"
}

# A stand-in for nearprint that works until it gets SIGTERM: a run that is stopped passes it on, and has logged the lines until then.
stop() {
    mkdir -p "$work/stand-in"
    printf '#!/bin/bash\ntrap "echo TERM >%q; exit 143" TERM\necho "it works" >&2\nfor _ in {1..600}; do sleep 0.1; done\n' "$work/got" >"$work/stand-in/nearprint"
    chmod +x "$work/stand-in/nearprint"
    rm -f "$work/got"
    # A session of its own: Prefect leaves the server that it had started.
    PATH=$work/stand-in:$PATH setsid "$@" 2026-11-19 >"$work/log" 2>&1 &
    local run=$!
    for _ in {1..50}; do grep -q 'it works' "$work/log" && break; sleep 1; done
    grep -q 'it works' "$work/log" || failed "$name: a run that is stopped" "its lines are not logged as they come"
    kill -TERM "$run"
    ! wait "$run" || failed "$name: a run that is stopped" "it succeeds"
    kill -TERM -- "-$run" 2>/dev/null || true
    [ -e "$work/got" ] || failed "$name: a run that is stopped" "nearprint got no SIGTERM"
    say "$name: a run that is stopped" "ok"
}

export DAGSTER_HOME=$work/dagster-home PREFECT_HOME=$work/prefect-home PREFECT_LOGGING_LEVEL=INFO PREFECT_SERVER_ANALYTICS_ENABLED=false DAGSTER_DISABLE_TELEMETRY=1
mkdir -p "$DAGSTER_HOME"
export NEARPRINT_CONFIG
if wanted dagster; then
    NEARPRINT_CONFIG=$(job dagster)
    try dagster "$tools/dagster/bin/dagster" asset materialize -f "$root/jobs/dagster/nearprint_night.py" --select near_duplicates --partition
    "$tools/dagster/bin/dagster" schedule list -f "$root/jobs/dagster/nearprint_night.py" >"$work/log" 2>&1
    grep -q 'every_night \[RUNNING\]' "$work/log" || failed "dagster: the schedule" "it is not on"
    say "dagster: the schedule is on" "ok"
fi
if wanted prefect; then
    NEARPRINT_CONFIG=$(job prefect)
    try prefect "$tools/prefect/bin/python" "$root/jobs/prefect/nearprint_night.py"
fi

if wanted systemd && command -v systemd-analyze >/dev/null; then
    succeeds "systemd: the unit" systemd-analyze verify --man=no "$root/jobs/systemd/nearprint.service"
fi

if wanted kubernetes; then
    manifest=$root/jobs/kubernetes/cronjob.yaml validate=("$tools/kubernetes-validate/bin/kubernetes-validate" --strict)
    # The first Kubernetes whose podFailurePolicy is no beta, and the newest.
    for version in 1.31 1.37; do
        succeeds "kubernetes $version: the manifest" "${validate[@]}" --kubernetes-version "$version" "$manifest"
        # A kind without a schema is a warning only.
        [ "$(grep -c " passed for resource .* against version $version$" "$work/log")" -eq "$(grep -c '^kind:' "$manifest")" ] || failed "kubernetes $version" "not all resources were compared"
    done
    sed 's/startingDeadlineSeconds/startingDeadlineSecond/' "$manifest" >"$work/fault.yaml"
    fails "kubernetes: a manifest with a fault" "'startingDeadlineSecond' was unexpected" "${validate[@]}" "$work/fault.yaml"
fi
