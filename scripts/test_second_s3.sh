#!/usr/bin/env bash
# Runs the tests on S3 with a server of another make than that of test.sh. What must hold on any S3 server is tested: this one checks no
# signatures, and dates every upload in the year 2010.
set -euo pipefail
cd "$(dirname "$0")/.."

scratch=$(mktemp -d)
trap 'bash scripts/stop-moto.sh "$scratch/moto"; rm -rf "$scratch"' EXIT
# Another program may hold the port, or another checkout's tests: try a few.
for port in 17490 17590 17690 17790; do
  if endpoint=$(bash scripts/start-moto.sh "$scratch/moto" "$port" nearprint-test); then
    NEARPRINT_TEST_S3_ENDPOINT=$endpoint cargo test --workspace --no-fail-fast --test cli -- s3:: --skip wrong_key --skip uploads_that_nobody_ends
    exit
  fi
done
echo "test_second_s3: the server did not start" >&2
exit 69
