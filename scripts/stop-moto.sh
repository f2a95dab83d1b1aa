#!/usr/bin/env bash
# stop-moto.sh DIR: ends what start-moto.sh DIR started, and nothing else. Safe to repeat.
set -euo pipefail

[ $# -eq 1 ] || { echo "usage: stop-moto.sh DIR" >&2; exit 64; }
pid=$(cat "$1/pid" 2>/dev/null) || exit 0
# A pid may have been given to another program meanwhile.
if tr '\0' '\n' <"/proc/$pid/cmdline" 2>/dev/null | grep -q moto_server; then kill "$pid"; fi
rm -f "$1/pid"
