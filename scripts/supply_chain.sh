#!/usr/bin/env bash
# Checks licences, bans and sources of all dependencies by deny.toml, and advisories with `advisories` as argument, which needs the network.
# Installs cargo-deny into a folder of its own if there is none; to build it takes some minutes, so scripts/test.sh leaves this out.
set -euo pipefail
cd "$(dirname "$0")/.."

deny=$(command -v cargo-deny || true)
if [ -z "$deny" ]; then
  cargo install cargo-deny --version '^0.20' --locked --debug --root target/tools --target-dir target/tools/build >&2
  deny=target/tools/bin/cargo-deny
fi
"$deny" check licenses bans sources "$@"
mkdir -p target/supply-chain
python3 scripts/supply_chain.py notices target/supply-chain/THIRD-PARTY-NOTICES.txt
python3 scripts/supply_chain.py sbom target/supply-chain/nearprint.cdx.json
