"""FAISS, IndexBinaryFlat, as its wiki shows, over the fingerprints of simhash: pairs within the distance (its radius is strict)."""

import re

import faiss
import numpy as np
import pyarrow.parquet as pq
from simhash import Simhash


def get_features(s):
    width = 3
    s = s.lower()
    s = re.sub(r"[^\w]+", "", s)
    return [s[i : i + width] for i in range(max(len(s) - width + 1, 1))]


def pairs(path, distance=3):
    table = pq.read_table(path)
    values = [Simhash(get_features(text)).value for text in table["text"].to_pylist()]
    db = np.array(values, dtype=np.uint64).view(np.uint8).reshape(-1, 8)
    faiss.omp_set_num_threads(1)
    index = faiss.IndexBinaryFlat(64)
    index.add(db)
    limits, _, found = index.range_search(db, distance + 1)
    rows = np.repeat(np.arange(len(db)), np.diff(limits.astype(np.int64)))
    ids = table["id"].to_pylist()
    return [(ids[a], ids[b]) for a, b in zip(rows, found) if a < b]
