#!/usr/bin/env bash
# All tests of Rust code. Installs and starts the S3 server that the tests need, and stops it at the end.
# NEARPRINT_SKIP_S3=1 leaves this server, and the tests that need it, out.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "test: $*" >&2; }

# A server of one's own may be given instead, through the variables that start-rgw.sh prints.
start_s3() {
  if ! command -v radosgw >/dev/null || ! command -v ceph-mon >/dev/null || ! command -v ceph-osd >/dev/null; then
    say "installing Ceph's S3 gateway"
    bash scripts/install-rgw.sh >"$scratch/install.log" 2>&1 || {
      tail -n 5 "$scratch/install.log" >&2
      say "cannot install the S3 server: run scripts/install-rgw.sh as root, or set NEARPRINT_SKIP_S3=1 to test without it"
      exit 69
    }
  fi
  local environment
  # Another program may hold the port, or another checkout's tests: try a few.
  for port in 17480 17580 17680 17780; do
    if environment=$(bash scripts/start-rgw.sh "$scratch/rgw" "$port" nearprint-test); then
      set -a
      eval "$environment"
      set +a
      return
    fi
  done
  say "the S3 server did not start"
  exit 69
}

# Files of tests lie in memory if there is room, so that no test waits for a disk.
room=$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1 || true)
if [ -z "${TMPDIR:-}" ] && [ "${room:-0}" -gt $((8 << 20)) ] && ! findmnt --noheadings --output OPTIONS /dev/shm | grep -q noexec; then
  export TMPDIR=/dev/shm
fi
scratch=$(mktemp -d)
trap 'bash scripts/stop-rgw.sh "$scratch/rgw"; rm -rf "$scratch"' EXIT
if [ "${NEARPRINT_SKIP_S3:-0}" = 1 ]; then
  say "NOT CHECKED: nights on S3 (NEARPRINT_SKIP_S3=1)"
  unset NEARPRINT_TEST_S3_ENDPOINT
elif [ -z "${NEARPRINT_TEST_S3_ENDPOINT:-}" ]; then
  start_s3
fi

# Tests of the command wait for disks, servers and deadlines: one more at once than there are processors.
RUST_TEST_THREADS=${RUST_TEST_THREADS:-$(($(nproc) + 1))} cargo test --workspace --no-fail-fast
