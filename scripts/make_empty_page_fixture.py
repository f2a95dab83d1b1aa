#!/usr/bin/env python3
"""Writes crates/cli/tests/data/empty_page.parquet: documents in a Parquet file with a page without values, which the parquet crate cannot write.

    python3 scripts/make_empty_page_fixture.py      # needs pyarrow
"""
import pathlib
import random

import pyarrow
import pyarrow.parquet

rng = random.Random(1)
words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=5)) for _ in range(200)]
texts = [" ".join(rng.choices(words, k=14)) for _ in range(20)]
rows = range(40)
# Each text is that of two documents.
columns = {"id": [f"d{row:02}" for row in rows], "text": [texts[row // 2] for row in rows], "list": [[row] * 5 for row in rows]}
table = pyarrow.table(columns)
path = pathlib.Path(__file__).resolve().parents[1] / "crates/cli/tests/data/empty_page.parquet"
# Before the last row, the writer ends a page that has nothing.
pyarrow.parquet.write_table(
    table, path, compression="zstd", data_page_size=64, write_batch_size=64, store_schema=False, write_statistics=False
)
print(f"{path}: {path.stat().st_size} bytes")
