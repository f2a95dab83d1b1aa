#!/usr/bin/env bash
# Checks licences, bans and sources of all dependencies by deny.toml, and advisories with `advisories` as argument, which needs the network.
# Installs cargo-deny into target/tools if there is none.
set -euo pipefail
cd "$(dirname "$0")/.."

deny=$(command -v cargo-deny || true)
if [ -z "$deny" ]; then
  deny=target/tools/bin/cargo-deny
  [ -x "$deny" ] || cargo install cargo-deny --version '^0.20' --locked --debug --root target/tools --target-dir target/tools/build >&2 || {
    echo "supply_chain: NOT CHECKED: licences, bans and sources (cannot install cargo-deny)" >&2
    exit 0
  }
fi
"$deny" check licenses bans sources "$@"
mkdir -p target/supply-chain
python3 scripts/supply_chain.py notices target/supply-chain/THIRD-PARTY-NOTICES.txt
python3 scripts/supply_chain.py sbom target/supply-chain/nearprint.cdx.json
