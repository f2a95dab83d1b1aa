"""Writes the documents of a night, a share of which have ids of a generated store: python3 recrawled.py STORE OUT --share 0.9

Needs numpy and pyarrow. Of the documents with known ids, every second one has the text that the store has for it, and the others
have another text. STORE is one that `nearprint-bench store` wrote.
"""

import argparse
import glob
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

N_WORDS = 60_000


def words(seeds):
    """Returns 40 numbers of words for each seed: those of SplitMix64, as in dev/bench/src/store.rs."""
    state, columns = seeds.astype(np.uint64), []
    with np.errstate(over="ignore"):
        for _ in range(40):
            state = state + np.uint64(0x9E3779B97F4A7C15)
            z = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            columns.append((z ^ (z >> np.uint64(31))) % np.uint64(N_WORDS))
    return np.stack(columns, 1).astype(np.int64)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", help="folder of the store")
    parser.add_argument("out", help="folder of the night, such as crawl/dt=2025-01-17")
    parser.add_argument("--share", type=float, default=0.9, help="share of the documents whose ids the store has")
    parser.add_argument("--log-documents", type=int, default=20, help="binary logarithm of the number of documents")
    parser.add_argument("--seed", type=int, default=7, help="seed of the choice of ids")
    args = parser.parse_args()
    n, rng = 1 << args.log_documents, np.random.default_rng(args.seed)
    n_known = int(n * args.share)
    ids, seeds = [], []
    files = sorted(glob.glob(args.store + "/runs/*/fingerprints/part-00000.parquet"))
    for file in files if n_known else []:
        table = pq.ParquetFile(file).read(columns=["doc_id", "fingerprint"])
        table = table.take(pa.array(np.sort(rng.choice(len(table), n_known // len(files) + 1, replace=False))))
        ids += table["doc_id"].to_pylist()
        seeds += table["fingerprint"].to_pylist()
    ids = ids[:n_known] + [f"https://new.example/{i}" for i in range(n - n_known)]
    seeds = np.array(seeds[:n_known] + list(range(n - n_known)), dtype=np.uint64)
    changed = (np.arange(n) < n_known) & (np.arange(n) % 2 == 0)
    seeds = np.where(changed, seeds ^ np.uint64(0x5555), seeds)
    vocabulary = np.array([f"w{i:05x}" for i in range(N_WORDS)], dtype=object)
    os.makedirs(args.out, exist_ok=True)
    schema = pa.schema([("id", pa.string()), ("text", pa.string())])
    with pq.ParquetWriter(args.out + "/part-0.parquet", schema) as writer:
        for start in range(0, n, 1 << 16):
            texts = [" ".join(row) for row in vocabulary[words(seeds[start : start + (1 << 16)])]]
            writer.write_table(pa.table({"id": ids[start : start + (1 << 16)], "text": texts}, schema=schema))


if __name__ == "__main__":
    main()
