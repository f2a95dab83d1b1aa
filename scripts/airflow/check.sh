#!/usr/bin/env bash
# check.sh NEARPRINT: runs the DAGs of jobs/airflow in a real Airflow, with scheduler and API, in a scratch folder. About five minutes.
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: check.sh NEARPRINT" >&2; exit 64; }
nearprint=$(realpath "$1")
root=$(realpath "$(dirname "$0")/../..")
airflow=${AIRFLOW_VENV:-$root/target/airflow-venv}
work=$(mktemp -d)
if [ ! -x "$airflow/bin/airflow" ]; then
    python3.11 -m venv "$airflow"
    "$airflow/bin/pip" install --quiet -r "$root/jobs/airflow/constraints.txt"
fi

mkdir -p "$work/dags" "$work/bin" "$work/documents"
cp "$root"/jobs/airflow/*.py "$root/scripts/airflow/dags.py" "$work/dags"
ln -s "$nearprint" "$work/bin/nearprint"
sed 's|"\.\./sample_data/|"|; s|"\.\./|"|' "$root/jobs/sample.toml" >"$work/job.toml"
printf '%s\n' 'lock = "lock"' 'lock_wait = 600' | cat - "$work/job.toml" >"$work/locked.toml"

export PATH=$work/bin:$PATH NEARPRINT_CONFIG=$work/job.toml NEARPRINT_CORPUS=$work/corpus.duckdb NEARPRINT_CRAWL_ASSET=crawl NEARPRINT_RETRY_SECONDS=3
export AIRFLOW_HOME=$work/airflow AIRFLOW__CORE__LOAD_EXAMPLES=False AIRFLOW__CORE__DAGS_FOLDER=$work/dags
export AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS=True AIRFLOW__API__HOST=127.0.0.1 AIRFLOW__API__PORT=18089 AIRFLOW__API__WORKERS=1
export AIRFLOW__CORE__EXECUTION_API_SERVER_URL=http://127.0.0.1:18089/execution/
export AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION=False

PATH=$airflow/bin:$PATH setsid "$airflow/bin/airflow" standalone >"$work/standalone.log" 2>&1 &
group=$!
trap 'kill -TERM -- -$group 2>/dev/null; wait 2>/dev/null; rm -rf "$work"' EXIT
"$airflow/bin/python" "$root/scripts/airflow/check.py" "$work" "$root/sample_data/documents"
