#!/usr/bin/env python3
"""Measures published Python programs that fingerprint texts, on one thread: simhash (1e0ng) and datasketch's MinHash.

    text_measure.py --way python-simhash --way minhash-words [--passes 1] FILE.jsonl...

Reads the texts into memory and runs each way over all of them in turn, as many times as --passes. One JSON object per line on
stdout. A peer that cannot be run is reported as {"peer": ..., "error": ...}.
"""
import argparse
import importlib.metadata
import json
import os
import re
import statistics
import sys
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

WORD = re.compile(r"\w+")


def python_simhash():
    """`Simhash(text)` as it comes: windows of 4 word characters, MD5."""
    from simhash import Simhash

    return lambda text: Simhash(text).value


def minhash(elements):
    """datasketch's MinHash of 128 permutations over a set of elements, all given at once."""
    from datasketch import MinHash

    def run(text):
        signature = MinHash(num_perm=128)
        signature.update_batch([element.encode("utf-8") for element in elements(text.lower())])
        return int(signature.hashvalues.sum())

    return run


def minhash_each(elements):
    """The same signature, an element at a time, as datasketch's README begins."""
    from datasketch import MinHash

    def run(text):
        signature = MinHash(num_perm=128)
        for element in elements(text.lower()):
            signature.update(element.encode("utf-8"))
        return int(signature.hashvalues.sum())

    return run


def words(text):
    """The distinct words; a run of Han characters is one word."""
    return set(WORD.findall(text))


def shingles(text):
    """The distinct sequences of five words."""
    found = WORD.findall(text)
    return {" ".join(found[i : i + 5]) for i in range(max(len(found) - 4, 1))}


def bigrams(text):
    """The distinct pairs of neighbouring characters inside words: what to do without a segmenter in Chinese."""
    return {word[i : i + 2] for word in WORD.findall(text) for i in range(max(len(word) - 1, 1))}


WAYS = {
    "python-simhash": ("simhash", "Simhash(text)", python_simhash),
    "minhash-words": ("datasketch", r"MinHash(num_perm=128).update_batch, words \w+ lower-cased", lambda: minhash(words)),
    "minhash-shingles": ("datasketch", "the same, shingles of 5 words", lambda: minhash(shingles)),
    "minhash-words-each": ("datasketch", "MinHash(num_perm=128).update, a word at a time", lambda: minhash_each(words)),
    "minhash-shingles-each": ("datasketch", "the same, shingles of 5 words", lambda: minhash_each(shingles)),
    "minhash-bigrams": ("datasketch", "the same, pairs of characters", lambda: minhash(bigrams)),
}


def read(paths):
    """The texts of all files."""
    texts = []
    for path in paths:
        with open(path, encoding="utf-8") as lines:
            texts += [json.loads(line)["text"] for line in lines]
    return texts


def one_pass(run, texts):
    """Seconds and processor seconds of a pass over all texts, and the sum of what it gives modulo 2^64."""
    start, cpu_start = time.perf_counter(), time.process_time()
    total = sum(run(text) for text in texts)
    return time.perf_counter() - start, time.process_time() - cpu_start, total % (1 << 64)


def report(name, texts, passes):
    """Prints one line of results."""
    package, settings, _ = WAYS[name]
    n_bytes = sum(len(text.encode("utf-8")) for text in texts)
    seconds, cpu_seconds, sums = zip(*passes)
    median = statistics.median(seconds)
    print(json.dumps({
        "peer": f"{package} {importlib.metadata.version(package)} {name}", "settings": settings, "threads": 1,
        "n_documents": len(texts), "n_bytes": n_bytes, "rounds": len(passes), "mb_per_second": n_bytes / median / 1e6,
        "median_ns_per_byte": median * 1e9 / n_bytes, "min_ns_per_byte": min(seconds) * 1e9 / n_bytes,
        "cpu_ns_per_byte": statistics.median(cpu_seconds) * 1e9 / n_bytes, "sum": f"{sums[0]:016x}",
    }), flush=True)


def prepared(names):
    """The ways that can be run; what cannot be imported is reported, and the rest goes on."""
    ways = {}
    for name in names:
        try:
            ways[name] = WAYS[name][2]()
        except ImportError as error:
            print(json.dumps({"peer": name, "error": f"{type(error).__name__}: {error}"}), flush=True)
    return ways


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--way", action="append", choices=WAYS, required=True)
    parser.add_argument("--passes", type=int, default=1)
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    texts, ways = read(args.files), prepared(args.way)
    passes = {name: [] for name in ways}
    for _ in range(args.passes):
        for name, run in ways.items():
            passes[name].append(one_pass(run, texts))
    for name in ways:
        report(name, texts, passes[name])
    return 0


if __name__ == "__main__":
    sys.exit(main())
