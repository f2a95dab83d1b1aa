#!/usr/bin/env bash
# deb.sh [--no-build]: makes target/debian/nearprint_*.deb of the release binary, with manual pages and completions, the systemd units, the
# notices of third parties and the software bill of materials. --no-build takes the binary in target/release. Needs cargo-deb (cargo install
# cargo-deb --locked) and python3.
set -euo pipefail
cd "$(dirname "$0")/.."

[ "${1:-}" = --no-build ] || cargo build --release --locked --bin nearprint
rm -rf target/manual
mkdir -p target/supply-chain target/manual
target/release/nearprint man target/manual/man1
target/release/nearprint completions bash >target/manual/nearprint.bash
target/release/nearprint completions zsh >target/manual/_nearprint
target/release/nearprint completions fish >target/manual/nearprint.fish
python3 scripts/supply_chain.py notices target/supply-chain/THIRD-PARTY-NOTICES.txt
python3 scripts/supply_chain.py sbom target/supply-chain/nearprint.cdx.json
cargo deb -p nearprint-cli --locked --no-build
