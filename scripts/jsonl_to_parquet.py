#!/usr/bin/env python3
"""Turns a JSONL file of documents into Parquet with the columns id and text. Needs pyarrow.

usage: jsonl_to_parquet.py [--strip-crawl-prefix CRAWL] [--id-column NAME] [--text-column NAME] INPUT.jsonl OUTPUT.parquet

With --strip-crawl-prefix CRAWL only ids `CRAWL|URL` are kept, and the URL becomes the id, so that a page has the same id in
every crawl.
"""

import argparse
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

SCHEMA = pa.schema([("id", pa.string()), ("text", pa.string())])
BATCH_ROWS = 10_000


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("input", type=Path)
    arguments.add_argument("output", type=Path)
    arguments.add_argument("--strip-crawl-prefix", metavar="CRAWL")
    arguments.add_argument("--id-column", default="id")
    arguments.add_argument("--text-column", default="text")
    options = arguments.parse_args()

    options.output.parent.mkdir(parents=True, exist_ok=True)
    n_documents = 0
    with options.input.open(encoding="utf-8") as lines, \
            pq.ParquetWriter(options.output, SCHEMA, compression="zstd", write_page_checksum=True) as writer:
        batch = []
        for row in rows(lines, options):
            batch.append(row)
            n_documents += 1
            if len(batch) == BATCH_ROWS:
                writer.write_table(pa.Table.from_pylist(batch, schema=SCHEMA))
                batch.clear()
        writer.write_table(pa.Table.from_pylist(batch, schema=SCHEMA))
    print(f"{options.output}: {n_documents} documents")


def rows(lines, options):
    prefix = f"{options.strip_crawl_prefix}|" if options.strip_crawl_prefix else ""
    for line in lines:
        document = json.loads(line)
        if document[options.id_column].startswith(prefix):
            yield {"id": document[options.id_column][len(prefix):], "text": document[options.text_column]}


if __name__ == "__main__":
    main()
