#!/usr/bin/env python3
"""Makes large document sets that are nearly all duplicates: the load that breaks pair lists. Needs numpy and pyarrow.

usage: make_documents.py --identical N [--seed S] --out DIR
       make_documents.py --templates T --count N [--words W] [--edits E] [--seed S] --out DIR

--identical: N documents with one text. --templates: N documents, document i from template i mod T with 1 to E words replaced.
Columns id and text, one file DIR/part-00000.parquet. The words are made from syllables, as common as those of a language are.
"""

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SCHEMA = pa.schema([("id", pa.string()), ("text", pa.string())])
CHUNK_ROWS = 20_000
VOCABULARY = 20_000
SYLLABLES = [onset + vowel + coda for onset in ("b", "c", "d", "f", "gr", "l", "m", "n", "p", "r", "s", "st", "t", "tr", "v")
             for vowel in "aeiou" for coda in ("", "n", "r", "s", "l")]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kind = arguments.add_mutually_exclusive_group(required=True)
    kind.add_argument("--identical", type=int, metavar="N")
    kind.add_argument("--templates", type=int, metavar="T")
    arguments.add_argument("--count", type=int, metavar="N", help="documents from all templates together")
    arguments.add_argument("--words", type=int, default=200, help="words in a document")
    arguments.add_argument("--edits", type=int, default=2, help="the most words replaced in a document")
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--out", type=Path, required=True)
    options = arguments.parse_args()
    if options.templates and options.count is None:
        arguments.error("--templates needs --count")

    random = np.random.default_rng(options.seed)
    words = vocabulary(random)
    # The k-th most common word is used about 1/k times as often as the first.
    weights = 1 / np.arange(1, len(words) + 1)
    weights /= weights.sum()
    templates = random.choice(len(words), (options.templates or 1, options.words), p=weights)
    count = options.identical if options.identical is not None else options.count
    edits = options.edits if options.templates else 0

    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "part-00000.parquet"
    with pq.ParquetWriter(path, SCHEMA, compression="zstd", write_page_checksum=True) as writer:
        for start in range(0, count, CHUNK_ROWS):
            numbers = range(start, min(start + CHUNK_ROWS, count))
            texts = [edited(random, templates[number % len(templates)], words, edits) for number in numbers]
            writer.write_batch(pa.record_batch([[f"doc-{number:09}" for number in numbers], texts], schema=SCHEMA))
    print(f"{path}: {count} documents")


def vocabulary(random):
    made = {}
    while len(made) < VOCABULARY:
        parts = random.integers(0, len(SYLLABLES), random.integers(1, 4))
        made["".join(SYLLABLES[part] for part in parts)] = None
    return list(made)


def edited(random, template, words, edits):
    if edits:
        template = template.copy()
        places = random.choice(len(template), random.integers(1, edits + 1), replace=False)
        template[places] = random.integers(0, len(words), len(places))
    return " ".join(words[word] for word in template)


if __name__ == "__main__":
    main()
