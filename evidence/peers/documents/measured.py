#!/usr/bin/env python3
"""Runs one tool of compare.py in this process: measured.py TOOL.py DOCUMENTS OUT.json PACKAGE [ARGUMENTS AS JSON].

A tool is a module with pairs(path), which gives pairs of ids, or clusters(path), which gives lists of ids. The seconds of its imports and
those of the call, with reading the documents, are written beside what it gave.
"""

import importlib.metadata
import importlib.util
import json
import sys
import time
from pathlib import Path

started = time.perf_counter()
spec = importlib.util.spec_from_file_location("tool", sys.argv[1])
tool = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tool)
imported = time.perf_counter()
kind = "pairs" if hasattr(tool, "pairs") else "clusters"
arguments = json.loads(sys.argv[5]) if len(sys.argv) > 5 else {}
found = list(getattr(tool, kind)(Path(sys.argv[2]), **arguments))
done = time.perf_counter()
result = {
    "kind": kind, "import_seconds": imported - started, "seconds": done - imported, "found": found,
    "version": f"{sys.argv[4]} {importlib.metadata.version(sys.argv[4])}",
}
Path(sys.argv[3]).write_text(json.dumps(result), encoding="utf-8")
