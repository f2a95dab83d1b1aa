#!/usr/bin/env bash
# Builds the book of docs/ and evidence/ into target/book. Needs mdBook 0.5 (cargo install mdbook --locked) and Python 3.11.
set -euo pipefail
cd "$(dirname "$0")/../.."

rm -rf target/book
python3 scripts/book/stage.py target/book-source
mdbook build target/book-source --dest-dir "$PWD/target/book"
