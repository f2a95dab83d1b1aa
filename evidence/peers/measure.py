#!/usr/bin/env python3
"""Measures published peers of the near-duplicate join on raw little-endian uint64 fingerprints, on one thread.

Prints one JSON object per line on stdout. A peer that cannot be run is reported as {"peer": ..., "error": ...}.
"""
import argparse
import importlib.metadata
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402  (after the thread counts, which it reads when it is loaded)

BITS = 64
HERE = os.path.dirname(os.path.abspath(__file__))


def arguments():
    """Parses and checks the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--existing", help="cross join: the stored fingerprints, which the peers are asked for")
    parser.add_argument("--queries", help="cross join: the new fingerprints, of which the peers build their index")
    parser.add_argument("--self", dest="own", help="self-join of this file")
    parser.add_argument("--max-distance", type=int, default=3)
    parser.add_argument("--expected", type=int, help="known number of pairs of the whole join, counted by index")
    parser.add_argument("--sample", type=int, default=1 << 18, help="how many of the existing fingerprints to ask for")
    parser.add_argument("--flip-sample", type=int, default=1 << 15, help="the same for the slow IndexBinaryHash")
    parser.add_argument("--probes", type=int, default=512, help="fingerprints of the brute-force check")
    parser.add_argument("--find-all-blocks", type=int, nargs="+", default=[4, 5, 6])
    parser.add_argument("--gaoya", default="gaoya_peer", help="the built gaoya peer")
    parser.add_argument("--gaoya-blocks", type=int, nargs="+", default=[5, 6])
    parser.add_argument("--max-gib", type=float, default=6, help="gaoya: number of blocks that would need more is left out")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if bool(args.existing) != bool(args.queries) or not (args.existing or args.own):
        parser.error("give --existing with --queries, or --self, or all three")
    if args.expected is not None and args.existing and args.own:
        parser.error("--expected belongs to one join: run the two separately")
    return args


def report(**fields):
    """Prints one line of results."""
    print(json.dumps(fields), flush=True)


def result(peer, version, operation, n_existing, n_queries, distance, seconds, n, n_pairs=None, expected=None, note=""):
    """Reports one measurement; `n` is the number of fingerprints that the seconds are divided by."""
    report(
        peer=peer, version=version, operation=operation, n_existing=n_existing, n_queries=n_queries,
        max_distance=distance, threads=1, seconds=round(seconds, 6), ns_per_fingerprint=round(seconds * 1e9 / n, 1),
        n_pairs=n_pairs, expected_pairs=expected, note=note,
    )


def guarded(peer, measure, *args):
    """Runs one peer; whatever goes wrong there is reported, and the rest goes on."""
    try:
        measure(*args)
    except Exception as error:  # a peer's failure of any kind must not end the others
        report(peer=peer, error=f"{type(error).__name__}: {error}")


def load(path):
    """Reads a file of raw little-endian uint64."""
    return np.fromfile(path, dtype="<u8")


def sampled(values, n, rng):
    """Gives n of the values at random, without repetition and in their order."""
    if n >= len(values):
        return values
    return values[np.sort(rng.choice(len(values), n, replace=False))]


def perturbed(values, n, distance, rng):
    """Gives n of the values, each with 0 to `distance` random bits flipped."""
    chosen = values[rng.integers(0, len(values), n)]
    for i in range(n):
        for bit in rng.choice(BITS, rng.integers(0, distance + 1), replace=False):
            chosen[i] ^= np.uint64(1) << np.uint64(bit)
    return chosen


def brute_force(probes, values, distance):
    """Gives all pairs (index in probes, index in values) within the distance, found by comparing everything."""
    pairs = []
    for start in range(0, len(values), 1 << 16):
        chunk = values[start : start + (1 << 16)]
        for i, probe in enumerate(probes):
            near = np.flatnonzero(np.bitwise_count(chunk ^ probe) <= distance)
            pairs += [(i, start + int(j)) for j in near]
    return pairs


def recall_note(found, true):
    """Words the outcome of the brute-force check."""
    if not true:
        return "recall unknown: brute force finds no pair of the probes"
    return f"recall {found / true:.4f} of {true} pairs that brute force finds for the probes"


def as_bytes(values):
    """Views fingerprints as the rows of bytes that FAISS takes."""
    return np.ascontiguousarray(values).view(np.uint8).reshape(-1, BITS // 8)


def faiss_pairs(index, values, distance, batch=1 << 16):
    """Gives the distinct pairs (position in values, id) that range_search finds, each packed into one integer.

    The radius of FAISS's binary range_search is strict (distance < radius), hence the + 1.
    """
    packed = []
    for start in range(0, len(values), batch):
        part = values[start : start + batch]
        limits, _, ids = index.range_search(as_bytes(part), distance + 1)
        rows = np.repeat(np.arange(start, start + len(part)), np.diff(limits.astype(np.int64)))
        packed.append(rows.astype(np.int64) << 32 | ids)
    return np.unique(np.concatenate(packed))


def measure_faiss(make, name, what, cross, n_sample):
    """Builds one FAISS index of the queries, and asks it for existing fingerprints."""
    import faiss

    faiss.omp_set_num_threads(1)
    version = importlib.metadata.version("faiss-cpu")
    index = make(faiss)
    start = time.perf_counter()
    index.add(as_bytes(cross["queries"]))
    built = time.perf_counter() - start
    distance, n_queries = cross["distance"], len(cross["queries"])
    result(name, version, "cross build", 0, n_queries, distance, built, n_queries, note=what)

    found = faiss_pairs(index, cross["probes"], distance)
    true = np.array([i << 32 | j for i, j in cross["true"]], dtype=np.int64)
    recall = recall_note(len(np.intersect1d(found, true)), len(true))
    values = cross["sample"][:n_sample]
    start = time.perf_counter()
    pairs = faiss_pairs(index, values, distance)
    seconds = time.perf_counter() - start
    result(
        name, version, "cross query", len(values), n_queries, distance, seconds, len(values), len(pairs),
        expected_of(cross, len(values)), f"{what}; {recall}; time without the build",
    )


def expected_of(cross, n):
    """Gives the known number of pairs if all existing fingerprints were asked for."""
    return cross["expected"] if n == cross["n_existing"] else None


def multi_hash(blocks):
    """Makes an IndexBinaryMultiHash with one table per block, complete up to a distance of blocks - 1."""
    return lambda faiss: faiss.IndexBinaryMultiHash(BITS, blocks, BITS // blocks)


def one_hash(bits, nflip):
    """Makes an IndexBinaryHash of the first bits, which visits all buckets within nflip bits."""

    def make(faiss):
        index = faiss.IndexBinaryHash(BITS, bits)
        index.nflip = nflip
        return index

    return make


def gaoya_version():
    """Reads gaoya's version out of the lock file of its peer."""
    with open(os.path.join(HERE, "gaoya_peer", "Cargo.lock"), encoding="utf-8") as lock:
        return re.search(r'name = "gaoya"\nversion = "([^"]+)"', lock.read()).group(1)


def gaoya_tables(blocks, distance):
    """Gives the number of tables that gaoya keeps: combinations of blocks - (distance + 1) blocks."""
    return len(list(itertools.combinations(range(blocks), distance + 1)))


def run_gaoya(args, indexed, blocks, asked):
    """Runs the gaoya peer and gives its measurements."""
    tables = gaoya_tables(blocks, args.max_distance)
    # About 90 bytes a table and fingerprint: a hash slot of 33 bytes at a load of 1/2 to 7/8, and a vector's allocation.
    gib = tables * 90 * (os.path.getsize(indexed) // 8) / 2**30
    if gib > args.max_gib:
        raise MemoryError(f"{tables} tables would take about {gib:.1f} GiB; --max-gib {args.max_gib:g}")
    command = [args.gaoya, indexed, str(blocks), str(args.max_distance), *asked]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip() or f"exit code {done.returncode}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def gaoya_words(blocks, distance):
    """Tells how gaoya's index is made."""
    tables = gaoya_tables(blocks, distance)
    return f"SimHashIndex::new({blocks}, {distance + 1}), {tables} tables of precomputed fingerprints"


def measure_gaoya_cross(args, cross, blocks):
    """Builds gaoya's index of the queries, and asks it for existing fingerprints."""
    with tempfile.TemporaryDirectory() as folder:
        sample, probes = os.path.join(folder, "sample.u64"), os.path.join(folder, "probes.u64")
        cross["sample"].tofile(sample)
        cross["probes"].tofile(probes)
        build, check, query = run_gaoya(args, args.queries, blocks, [probes, sample])
    what, version, distance = gaoya_words(blocks, args.max_distance), gaoya_version(), args.max_distance
    result("gaoya", version, "cross build", 0, build["n"], distance, build["seconds"], build["n"], note=what)
    result(
        "gaoya", version, "cross query", query["n"], query["n_indexed"], distance, query["seconds"], query["n"],
        query["n_pairs"], expected_of(cross, query["n"]),
        f"{what}; {recall_note(check['n_pairs'], len(cross['true']))}; time without the build",
    )


def measure_gaoya_self(args, own, blocks):
    """Builds gaoya's index of all fingerprints, and asks it for each of them."""
    with tempfile.TemporaryDirectory() as folder:
        small = os.path.join(folder, "small.u64")
        own["small"].tofile(small)
        _, check = run_gaoya(args, small, blocks, ["self"])
        build, query = run_gaoya(args, args.own, blocks, ["self"])
    n = query["n"]
    result(
        "gaoya", gaoya_version(), "self-join", n, n, args.max_distance, build["seconds"] + query["seconds"], n,
        query["n_pairs"], own["expected"],
        f"{gaoya_words(blocks, args.max_distance)}; {recall_note(check['n_pairs'], len(own['true']))}; "
        f"build {build['seconds']:.3f} s and query",
    )


def measure_find_all(own, distance, blocks):
    """Runs simhash-cpp's find_all through its Python module."""
    import simhash

    small = own["small"]
    true = {(min(a, b), max(a, b)) for a, b in ((int(small[i]), int(small[j])) for i, j in own["true"]) if a != b}
    found = set(simhash.find_all(set(small.tolist()), blocks, distance))
    recall = recall_note(len(found & true), len(true))
    values = set(own["values"].tolist())
    start = time.perf_counter()
    pairs = simhash.find_all(values, blocks, distance)
    seconds = time.perf_counter() - start
    repeated = len(own["values"]) - len(values)
    result(
        "simhash-cpp find_all", "simhash-pybind " + importlib.metadata.version("simhash-pybind"), "self-join",
        len(values), len(values), distance, seconds, len(values), len(pairs), None if repeated else own["expected"],
        f"{blocks} blocks; {recall}; a set: {repeated} repeated fingerprints left out; "
        "time with the conversion from and to Python objects",
    )


def measure_cross(args):
    """Measures the peers of the cross join."""
    rng = np.random.default_rng(args.seed)
    existing, queries = load(args.existing), load(args.queries)
    # In random order, so that the first of them are a sample, too.
    sample = rng.permutation(sampled(existing, args.sample, rng))
    half = args.probes // 2
    probes = np.concatenate([sample[:half], perturbed(queries, args.probes - half, args.max_distance, rng)])
    cross = {
        "queries": queries, "sample": sample, "n_existing": len(existing), "probes": probes,
        "true": brute_force(probes, queries, args.max_distance), "distance": args.max_distance,
        "expected": args.expected,
    }
    del existing
    blocks = args.max_distance + 1
    multi = (f"IndexBinaryMultiHash({BITS}, {blocks}, {BITS // blocks}), nflip 0", multi_hash(blocks), args.sample)
    flips = [
        (f"IndexBinaryHash({BITS}, 16), nflip {nflip}", one_hash(16, nflip), n)
        for nflip, n in ((0, args.sample), (args.max_distance, args.flip_sample))
    ]
    for what, make, n in [multi, *flips]:
        name = "faiss " + what.split("(")[0]
        guarded(name, measure_faiss, make, name, what, cross, n)
    for blocks in args.gaoya_blocks:
        guarded("gaoya", measure_gaoya_cross, args, cross, blocks)


def measure_self(args):
    """Measures the peers of the self-join."""
    rng = np.random.default_rng(args.seed)
    values = load(args.own)
    # A small array that is dense in pairs, of the file's fingerprints and altered copies, for the brute-force check.
    base = sampled(values, args.probes, rng)
    small = np.concatenate([base, perturbed(base, 3 * args.probes, args.max_distance, rng)])
    true = [(i, j) for i, j in brute_force(small, small, args.max_distance) if i < j]
    own = {"values": values, "small": small, "true": true, "expected": args.expected}
    for blocks in args.find_all_blocks:
        guarded("simhash-cpp find_all", measure_find_all, own, args.max_distance, blocks)
    for blocks in args.gaoya_blocks:
        guarded("gaoya", measure_gaoya_self, args, own, blocks)


def main():
    """Runs what the command line asks for."""
    args = arguments()
    if args.existing:
        measure_cross(args)
    if args.own:
        measure_self(args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
