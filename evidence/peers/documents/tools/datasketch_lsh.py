"""datasketch, as its documentation begins: MinHash of 128 permutations of the set of words, LSH at the threshold given.

The documentation gives lists of words. Here they are words in lower case, and each pair of neighbouring characters in Chinese and Japanese.
"""

import re

import pyarrow.parquet as pq
from datasketch import MinHash, MinHashLSH

WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]+|[^\W\u3040-\u30ff\u3400-\u9fff]+")


def words(text):
    for word in WORD.findall(text.lower()):
        if word[0] < "\u3040" or word[0] > "\u9fff":
            yield word
        else:
            yield from (word[i : i + 2] for i in range(max(len(word) - 1, 1)))


def pairs(path, threshold=0.5):
    table = pq.read_table(path)
    lsh = MinHashLSH(threshold=threshold, num_perm=128)
    signatures = {}
    for id, text in zip(table["id"].to_pylist(), table["text"].to_pylist()):
        signatures[id] = MinHash(num_perm=128)
        for word in set(words(text)):
            signatures[id].update(word.encode("utf8"))
        lsh.insert(id, signatures[id])
    for id, signature in signatures.items():
        for other in lsh.query(signature):
            if id < other:
                yield id, other
