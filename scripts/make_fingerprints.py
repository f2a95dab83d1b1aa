#!/usr/bin/env python3
"""Makes random fingerprints with planted near-duplicates, and the pairs to be found. Needs numpy and pyarrow.

usage: make_fingerprints.py --existing N --queries M --planted P --max-distance K --seed S --out DIR

Writes DIR/existing.parquet and DIR/queries.parquet (doc_id, fingerprint; in no order) and DIR/expected.parquet (id_a a query,
id_b an existing one, distance; sorted by the ids). A pair is a query and an existing fingerprint made from it by flipping random
bits, from 0 to K of them in turn.

Where P exceeds M, a query has P/M existing neighbours. Where P exceeds N, an existing one has P/N queries around it, too: these
differ from their common centre in a bit each, and P is rounded down to whole groups.

Fingerprints are uniform, so pairs that nobody planted are possible, but rare: N * M * (C(64, 0) + ... + C(64, K)) / 2^64 are to
be expected (0.02 for 10 million, 1 million and K = 3; 45 for K = 6). The program prints that figure.
"""

import argparse
from math import comb
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FINGERPRINTS = pa.schema([("doc_id", pa.string()), ("fingerprint", pa.uint64())])
PAIRS = pa.schema([("id_a", pa.string()), ("id_b", pa.string()), ("distance", pa.uint8())])
# Ids are made and written this many at a time; the numbers themselves take 8 bytes a row and stay in memory.
CHUNK_ROWS = 1_000_000


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("existing", "queries", "planted", "max-distance"):
        arguments.add_argument(f"--{name}", type=int, required=True)
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--out", type=Path, required=True)
    options = arguments.parse_args()
    # Queries around one centre. Each flips a low bit of its own, and the existing ones flip other bits.
    group = max(1, -(-options.planted // max(options.existing, 1)))
    least_distance = 0 if group == 1 else 1
    n_groups = options.queries // group
    if options.planted and not n_groups or group > 16:
        arguments.error("too few fingerprints for so many planted pairs")
    if not least_distance <= options.max_distance <= 16:
        arguments.error(f"--max-distance is from {least_distance} to 16 here")

    random = np.random.default_rng(options.seed)
    existing = random_fingerprints(random, options.existing)
    queries = random_fingerprints(random, options.queries)
    if group > 1:
        members = n_groups * group
        queries[:members] = (np.repeat(queries[:members:group], group)
                              ^ np.tile(np.uint64(1) << np.arange(group, dtype=np.uint64), n_groups))

    # Neighbour i has centre i mod n_groups, and a place of its own among the existing.
    n_neighbours = options.planted // group
    neighbours = np.arange(n_neighbours)
    centres = (neighbours % max(n_groups, 1)).astype(np.uint32)
    places = random.permutation(options.existing)[:n_neighbours].astype(np.uint32)
    # Shifted with each lap over the centres, so that one with several neighbours has them at several distances.
    n_flips = (neighbours + neighbours // max(n_groups, 1)) % (options.max_distance + 1 - least_distance)
    own_bit = np.uint64(1 if group > 1 else 0)
    existing[places] = queries[centres * np.uint32(group)] ^ own_bit ^ random_flips(random, n_flips, group if group > 1 else 0)

    id_b = np.repeat(places, group)
    id_a = np.repeat(centres * np.uint32(group), group) + np.tile(np.arange(group, dtype=np.uint32), n_neighbours)
    distances = np.bitwise_count(existing[id_b] ^ queries[id_a])
    assert distances.max(initial=0) <= options.max_distance

    options.out.mkdir(parents=True, exist_ok=True)
    write(options.out / "existing.parquet", FINGERPRINTS, options.existing,
          lambda rows: [ids("e", rows), pa.array(existing[rows])])
    write(options.out / "queries.parquet", FINGERPRINTS, options.queries,
          lambda rows: [ids("q", rows), pa.array(queries[rows])])
    # Ids have as many digits as any, so the order of the numbers is the order of the ids.
    order = np.lexsort((id_b, id_a))
    write(options.out / "expected.parquet", PAIRS, len(order),
          lambda rows: [ids("q", id_a[order[rows]]), ids("e", id_b[order[rows]]), pa.array(distances[order[rows]])])

    n_chance = sum(comb(64, d) for d in range(options.max_distance + 1)) * options.existing * options.queries / 2**64
    print(f"{options.out}: {options.existing} existing, {options.queries} queries, {len(order)} planted pairs; "
          f"{n_chance:.3g} more are to be expected by chance")


def random_fingerprints(random, count):
    return random.integers(0, 2**64, count, dtype=np.uint64, endpoint=False)


def random_flips(random, counts, first_bit):
    """For each count, a number with that many bits set, none below first_bit, all such numbers being equally likely."""
    flips = np.zeros(len(counts), dtype=np.uint64)
    for position in range(int(counts.max(initial=0))):
        pending = np.flatnonzero(counts > position)
        # Draw a bit that is not yet set; the few that hit a set one draw again.
        while len(pending):
            bits = np.uint64(1) << random.integers(first_bit, 64, len(pending), dtype=np.uint64)
            fresh = (flips[pending] & bits) == 0
            flips[pending[fresh]] |= bits[fresh]
            pending = pending[~fresh]
    return flips


def ids(prefix, numbers):
    digits = np.char.zfill(np.asarray(numbers).astype("S10"), 10)
    return pa.array(np.char.add(prefix.encode(), digits)).cast(pa.string())


def write(path, schema, n_rows, columns):
    with pq.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True) as writer:
        for start in range(0, n_rows, CHUNK_ROWS):
            rows = np.arange(start, min(start + CHUNK_ROWS, n_rows))
            writer.write_batch(pa.record_batch(columns(rows), schema=schema))


if __name__ == "__main__":
    main()
