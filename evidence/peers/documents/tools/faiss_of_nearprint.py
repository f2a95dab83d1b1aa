"""FAISS, IndexBinaryFlat, over nearprint's fingerprints: pairs within distance 12, without the second look (the radius is strict)."""

import faiss
import nearprint
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq


def pairs(path):
    table = pq.read_table(path)
    fingerprints = pa.array(nearprint.fingerprint(table["text"], threads=1))
    kept = np.flatnonzero(pc.is_valid(fingerprints))
    db = fingerprints.take(pa.array(kept)).to_numpy().view(np.uint8).reshape(-1, 8)
    faiss.omp_set_num_threads(1)
    index = faiss.IndexBinaryFlat(64)
    index.add(db)
    limits, _, found = index.range_search(db, 13)
    rows = np.repeat(np.arange(len(db)), np.diff(limits.astype(np.int64)))
    ids = table["id"].to_pylist()
    return [(ids[kept[a]], ids[kept[b]]) for a, b in zip(rows, found) if a < b]
