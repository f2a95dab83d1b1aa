#!/usr/bin/env bash
# Sets up what evidence/benchmarks/text.py measures: a venv with text_requirements.txt, and text_peer.
#
#   bash evidence/peers/text_setup.sh FOLDER
#
# They have a venv of their own: simhash 2.1.2 fails with numpy 2 on features that occur more than 255 times.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=${1:?usage: text_setup.sh FOLDER}
mkdir -p "$work"
work=$(cd "$work" && pwd)

[[ -x "$work/text-venv/bin/python" ]] || python3 -m venv "$work/text-venv"
"$work/text-venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$here/text_requirements.txt"
CARGO_TARGET_DIR="$work/target" cargo build --quiet --release --locked --manifest-path "$here/text_peer/Cargo.toml"
