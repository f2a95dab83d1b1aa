#!/usr/bin/env bash
# start-moto.sh DIR PORT [BUCKET]: a second S3 server for tests on 127.0.0.1, moto (Python), installed to DIR/venv where it is not there yet.
# Why a second one: it is no relative of the first, and honours conditions that the first one ignores. It checks no signatures.
# Prints the endpoint, and creates BUCKET. stop-moto.sh DIR ends it.
set -euo pipefail

[ $# -ge 2 ] || { echo "usage: start-moto.sh DIR PORT [BUCKET]" >&2; exit 64; }
mkdir -p "$1"
dir=$(cd "$1" && pwd)
port=$2
bucket=${3:-}
endpoint=http://127.0.0.1:$port

say() { echo "start-moto: $*" >&2; }

command -v python3 >/dev/null || { say "needs python3"; exit 69; }
if (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then say "port $port is in use"; exit 69; fi
if [ ! -x "$dir/venv/bin/moto_server" ]; then
  python3 -m venv "$dir/venv"
  "$dir/venv/bin/pip" install --quiet --disable-pip-version-check 'moto[server,s3]==5.2.5' >"$dir/install.log" 2>&1 || {
    tail -n 3 "$dir/install.log" >&2
    say "cannot install moto"
    exit 69
  }
fi
setsid "$dir/venv/bin/moto_server" -H 127.0.0.1 -p "$port" >"$dir/log" 2>&1 </dev/null &
echo $! >"$dir/pid"
for _ in $(seq 100); do
  if curl -fsS --max-time 5 -o /dev/null "$endpoint/" 2>/dev/null; then
    [ -z "$bucket" ] || curl -fsS --max-time 10 -o /dev/null -X PUT "$endpoint/$bucket"
    echo "$endpoint"
    exit 0
  fi
  sleep 0.2
done
say "did not start; its log is $dir/log"
kill "$(cat "$dir/pid")" 2>/dev/null || true
exit 69
