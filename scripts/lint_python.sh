#!/usr/bin/env bash
# Checks all Python files with ruff, by the rules of pyproject.toml. Installs ruff into target/tools if there is none.
set -euo pipefail
cd "$(dirname "$0")/.."

ruff=$(command -v ruff || true)
if [ -z "$ruff" ]; then
  ruff=target/tools/python/bin/ruff
  [ -x "$ruff" ] || { python3 -m venv target/tools/python && target/tools/python/bin/pip install -q --disable-pip-version-check 'ruff<1'; } || {
    echo "lint_python: NOT CHECKED: Python files (cannot install ruff)" >&2
    exit 0
  }
fi
"$ruff" check --no-cache .
