"""simhash, as the tutorial that its README names: pairs of near fingerprints of windows of 3 word characters."""

import re

import pyarrow.parquet as pq
from simhash import Simhash, SimhashIndex


def get_features(s):
    width = 3
    s = s.lower()
    s = re.sub(r"[^\w]+", "", s)
    return [s[i : i + width] for i in range(max(len(s) - width + 1, 1))]


def pairs(path, distance=3):
    table = pq.read_table(path)
    ids = table["id"].to_pylist()
    objs = [(id, Simhash(get_features(text))) for id, text in zip(ids, table["text"].to_pylist())]
    index = SimhashIndex(objs, k=distance)
    for id, fingerprint in objs:
        for other in index.get_near_dups(fingerprint):
            if id < other:
                yield id, other
