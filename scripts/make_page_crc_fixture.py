#!/usr/bin/env python3
"""Writes dev/trials/data/page_crc.parquet: documents in a Parquet file whose pages have checksums, which the parquet crate cannot write.

    python3 scripts/make_page_crc_fixture.py      # needs pyarrow
"""
import pathlib
import random

import pyarrow
import pyarrow.parquet

rng = random.Random(1)
words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 9))) for _ in range(4000)]
rows = [" ".join(rng.choices(words, k=rng.randint(20, 160))) for _ in range(120)]
table = pyarrow.table({"id": [f"doc-{i:04}" for i in range(len(rows))], "text": rows})
path = pathlib.Path(__file__).resolve().parents[1] / "dev/trials/data/page_crc.parquet"
path.parent.mkdir(exist_ok=True)
pyarrow.parquet.write_table(
    table, path, compression="zstd", row_group_size=60, data_page_size=4096, use_dictionary=["id"], write_page_checksum=True
)
print(f"{path}: {path.stat().st_size} bytes")
