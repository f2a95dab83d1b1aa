#!/usr/bin/env bash
# Sets the peers up and measures them. All arguments go to measure.py.
#
#   bash evidence/peers/measure.sh --existing OLD.u64 --queries NEW.u64 --max-distance 3
#
# PEERS_DIR names the folder for the venv and the build; without it a temporary one is made and removed at the end.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [[ -n "${PEERS_DIR:-}" ]]; then
  mkdir -p "$PEERS_DIR"
  work=$(cd "$PEERS_DIR" && pwd)
else
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
fi

python="$work/venv/bin/python"
[[ -x "$python" ]] || python3 -m venv "$work/venv"
# One by one, so that a peer that does not install leaves the others standing; measure.py reports what it cannot import.
while read -r requirement; do
  [[ -z "$requirement" || "$requirement" == \#* ]] && continue
  "$python" -m pip install --quiet --disable-pip-version-check "$requirement" < /dev/null >&2 ||
    echo "measure.sh: $requirement did not install" >&2
done < "$here/requirements.txt"
CARGO_TARGET_DIR="$work/target" cargo build --quiet --release --locked --manifest-path "$here/gaoya_peer/Cargo.toml" >&2 ||
  echo "measure.sh: the gaoya peer did not build" >&2

"$python" "$here/measure.py" --gaoya "$work/target/release/gaoya_peer" "$@"
