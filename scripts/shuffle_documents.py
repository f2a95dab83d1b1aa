#!/usr/bin/env python3
"""Writes the rows of document files again, shuffled and split differently: results must not change. Needs pyarrow, numpy.

usage: shuffle_documents.py [--files N] [--seed S] [--format parquet|jsonl] INPUT... OUTPUT_DIR

An input is a .parquet or .jsonl file, or a folder of them. OUTPUT_DIR is new or empty: rows left from before would be read again.
Columns of every type are kept in Parquet; in JSONL, times become text.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.json
import pyarrow.parquet as pq


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("input", type=Path, nargs="+")
    arguments.add_argument("output", type=Path)
    arguments.add_argument("--files", type=int, default=3)
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--format", choices=["parquet", "jsonl"], default="parquet")
    options = arguments.parse_args()

    options.output.mkdir(parents=True, exist_ok=True)
    if any(options.output.iterdir()):
        sys.exit(f"shuffle_documents: {options.output} is not empty")
    table = pa.concat_tables([read(path) for path in document_files(options.input)], promote_options="permissive")
    random = np.random.default_rng(options.seed)
    order = random.permutation(table.num_rows)
    # Cuts at random rows, so that files differ in length and some may be empty.
    cuts = np.sort(random.integers(0, table.num_rows + 1, options.files - 1))
    for number, rows in enumerate(np.split(order, cuts)):
        write(table.take(pa.array(rows)), options.output / f"part-{number:05}.{options.format}")
    print(f"{options.output}: {table.num_rows} rows in {options.files} files")


def document_files(inputs):
    for path in inputs:
        yield from sorted(f for f in path.rglob("*") if f.suffix in (".parquet", ".jsonl")) if path.is_dir() else [path]


def read(path):
    if path.suffix == ".jsonl":
        return pa.json.read_json(path, read_options=pa.json.ReadOptions(block_size=1 << 28))
    return pq.ParquetFile(path).read()


def write(table, path):
    if path.suffix == ".parquet":
        pq.write_table(table, path, compression="zstd", write_page_checksum=True)
        return
    with path.open("w", encoding="utf-8") as lines:
        for row in table.to_pylist():
            lines.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")


if __name__ == "__main__":
    main()
