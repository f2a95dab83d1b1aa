#!/usr/bin/env bash
# Builds the book into target/book. Needs mdBook 0.5 (cargo install mdbook --locked).
set -euo pipefail
cd "$(dirname "$0")/../.."

rm -rf target/book
mdbook build docs
# Pages link to files beside docs, which are no chapters. mdBook takes them for chapters; the book gets them as they are.
grep -oh 'href="\.\./[^"#]*\.html' target/book/*.html | sed 's|href="\.\./||; s|\.html$||' | sort -u | while read -r page; do
  mkdir -p "target/book/$(dirname "$page")"
  cp "$page.md" "target/book/$page.md"
done
sed -i -E 's|href="\.\./([^"#]*)\.html(#[^"]*)?"|href="\1.md"|g' target/book/*.html
