#!/usr/bin/env bash
# stop-rgw.sh DIR: ends what start-rgw.sh DIR started, and nothing else. Safe to repeat. Leaves DIR/log.
set -euo pipefail

[ $# -eq 1 ] || { echo "usage: stop-rgw.sh DIR" >&2; exit 64; }
[ -d "$1" ] || exit 0
dir=$(cd "$1" && pwd)

# A pid may have been given to another program meanwhile: ours names DIR's configuration on its command line.
ours() { tr '\0' '\n' <"/proc/$1/cmdline" 2>/dev/null | grep -qxF "$dir/ceph.conf"; }

# The gateway first, so that it does not wait for a store that is gone.
for name in client.rgw osd.0 mon.a; do
  pid=$(cat "$dir/run/$name.pid" 2>/dev/null) || continue
  ours "$pid" || continue
  kill "$pid" 2>/dev/null || true
  # The data are in memory and are not wanted: no need to wait long for an orderly end.
  for _ in $(seq 10); do ours "$pid" || break; sleep 0.2; done
  if ours "$pid"; then
    kill -9 "$pid" 2>/dev/null || true
    while ours "$pid"; do sleep 0.1; done
  fi
done
[ ! -e "$dir/ceph.conf" ] || rm -rf "${dir:?}"/{mon,osd,rgw,run,monmap,keyring,env}
