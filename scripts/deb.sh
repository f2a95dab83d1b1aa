#!/usr/bin/env bash
# deb.sh [--no-build]: makes target/debian/nearprint_*.deb of the release binary, with the notices of third parties and the software bill of
# materials. --no-build takes the binary in target/release. Needs cargo-deb (cargo install cargo-deb --locked) and python3.
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p target/supply-chain
python3 scripts/supply_chain.py notices target/supply-chain/THIRD-PARTY-NOTICES.txt
python3 scripts/supply_chain.py sbom target/supply-chain/nearprint.cdx.json
cargo deb -p nearprint-cli --locked "$@"
