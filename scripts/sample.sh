#!/usr/bin/env bash
# Builds nearprint, runs both nights of the sample data, and shows what was found. Writes to out/. Repeating it changes nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --release --bin nearprint
nearprint=target/release/nearprint
for night in 2026-11-19 2026-11-20; do
  "$nearprint" run --config jobs/sample.toml --dt "$night"
done
"$nearprint" report --config jobs/sample.toml --dt 2026-11-20
