#!/usr/bin/env bash
# nearprint-nightly.sh CONFIG LOG_DIR: tonight's run, started by cron. Its exit code is nearprint's own.
set -euo pipefail

[ $# -eq 2 ] || { echo "usage: nearprint-nightly.sh CONFIG LOG_DIR" >&2; exit 64; }
config=$1
log_dir=$2

# UTC: a date in local time would skip or repeat an hour twice a year, and differ from the crawl's.
dt=$(date -u +%F)
mkdir -p "$log_dir"
exec >>"$log_dir/$dt.log" 2>&1

# Last night's run may still be at work. Two at once are safe, but would share the memory; 75 means try again later.
# The lock belongs to descriptor 9, which nearprint inherits: it ends with the run, however that ends.
exec 9>"$log_dir/lock"
flock -n 9 || { echo "another run holds $log_dir/lock"; exit 75; }

# exec: signals reach nearprint itself.
exec nearprint run --config "$config" --dt "$dt" --json
