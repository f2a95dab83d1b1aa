"""Joins, against the definition, the golden files and the command."""

import random
import subprocess
import sys
import threading

import nearprint
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conftest import ROOT

GOLDEN = ROOT / "crates/cli/tests/data/fingerprints"


def near(count, seed):
    """Fingerprints around a few centres, and some nulls."""
    draw = random.Random(seed)
    centres = [draw.getrandbits(64) for _ in range(20)]
    values = [draw.choice(centres) ^ (1 << draw.randrange(64)) ^ (1 << draw.randrange(64)) for _ in range(count)]
    return [None if draw.random() < 0.1 else value for value in values]


def distance(a, b):
    return (a ^ b).bit_count()


def rows(table):
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.mark.parametrize("k", [0, 1, 3, 12])
def test_pairs_within_are_those_of_the_definition_in_order(k):
    values = near(300, seed=7)
    known = [
        (a, b, distance(values[a], values[b]))
        for a in range(len(values))
        for b in range(a + 1, len(values))
        if values[a] is not None and values[b] is not None and distance(values[a], values[b]) <= k
    ]
    assert rows(nearprint.pairs_within(pa.array(values, pa.uint64()), k)) == known
    assert rows(nearprint.pairs_within(pl.Series(values, dtype=pl.UInt64), k)) == known
    assert pa.table(nearprint.pairs_within(pa.array(values, pa.uint64()), k)).schema == pa.schema(
        [pa.field("a", pa.int64(), False), pa.field("b", pa.int64(), False), pa.field("distance", pa.int32(), False)]
    )


@pytest.mark.parametrize("k", [0, 3, 8])
def test_join_is_that_of_the_definition_in_order(k):
    queries, existing = near(100, seed=1), near(200, seed=1)
    known = [
        (a, b, distance(x, y), None)
        for a, x in enumerate(queries)
        for b, y in enumerate(existing)
        if x is not None and y is not None and distance(x, y) <= k
    ]
    found = nearprint.join(pa.array(queries, pa.uint64()), pa.array(existing, pa.uint64()), max_distance=k)
    assert len(known) > 10
    assert rows(found) == known


def test_sketches_are_compared_where_both_tables_have_them():
    fingerprints = pa.array([5, 5, None, 5], pa.uint64())
    sketch, far = bytes(32), bytes([255] * 32)
    queries = pa.table({"fingerprint": fingerprints, "sketch": pa.array([sketch, far, sketch, None], pa.binary(32))})
    existing = pl.DataFrame({"sketch": [sketch, None], "fingerprint": [4, 4]}, schema_overrides={"fingerprint": pl.UInt64})
    assert rows(nearprint.join(queries, existing, 1)) == [(0, 0, 1, 0)]
    assert rows(nearprint.join(queries, existing, 1, 0)) == [(0, 0, 1, 0)]
    everything = [(a, b, 1, None) for a in [0, 1, 3] for b in [0, 1]]
    assert rows(nearprint.join(queries["fingerprint"], existing, 1)) == everything
    for empty in (existing.clear(), pa.table({"fingerprint": pa.array([], pa.uint64()), "sketch": pa.array([], pa.binary(32))})):
        assert rows(nearprint.join(queries, empty, 1, 20)) == []
    with pytest.raises(ValueError, match="existing: no column 'sketch'"):
        nearprint.join(queries, existing.select("fingerprint"), 1, max_sketch_distance=20)


def test_the_distances_of_the_default_profile_are_the_default(documents):
    limits = nearprint.profile("default")["join"]
    table = pa.table(
        {
            "fingerprint": pa.array(nearprint.fingerprint(documents["text"])),
            "sketch": pa.array(nearprint.sketch(documents["text"])),
        }
    )
    found = rows(nearprint.join(table, table))
    assert found == rows(nearprint.join(table, table, limits["max_distance"], limits["max_sketch_distance"]))
    assert len(found) > table.num_rows - table["fingerprint"].null_count


@pytest.mark.parametrize("name", sorted(path.name.removesuffix(".pairs.parquet") for path in GOLDEN.glob("*.pairs.parquet")))
def test_pairs_within_are_those_of_the_golden_files(name):
    golden = pq.read_table(GOLDEN / f"{name}.pairs.parquet").to_pylist()
    table = pq.read_table(GOLDEN / f"{name}.parquet")
    ids = table["doc_id"].to_pylist()
    k = max((row["distance"] for row in golden), default=3)
    known = {(frozenset([row["a"], row["b"]]), row["distance"]) for row in golden}
    found = nearprint.pairs_within(table["fingerprint"], k).to_pylist()
    assert {(frozenset([ids[row["a"]], ids[row["b"]]]), row["distance"]) for row in found} == known
    assert len(found) == len(golden)


def test_the_command_gives_the_same_join(command, tmp_path):
    nights = []
    for night in ["2026-11-19", "2026-11-20"]:
        nights.append(tmp_path / night)
        documents = ROOT / f"sample_data/documents/dt={night}"
        assert command("fingerprint", "--documents", documents, "--output", nights[-1]).returncode == 0
    limits = ["--max-distance", 12, "--max-sketch-distance", 80, "--pairs", "all"]
    done = command("join", "--queries", nights[1], "--existing", nights[0], "--output", tmp_path / "pairs", *limits)
    assert done.returncode == 0, done.stderr
    known = pq.read_table(tmp_path / "pairs/pairs").to_pylist()
    existing, queries = (pq.read_table(night) for night in nights)
    found = nearprint.join(queries, existing, 12, 80).to_pylist()
    ids_a, ids_b = queries["doc_id"].to_pylist(), existing["doc_id"].to_pylist()
    named = [(ids_a[r["query"]], ids_b[r["existing"]], r["distance"], r["sketch_distance"]) for r in found]
    # The command leaves out a document and itself.
    named = sorted(pair for pair in named if pair[0] != pair[1])
    assert named == [(r["id_a"], r["id_b"], r["distance"], r["sketch_distance"]) for r in known]
    assert len(named) > 10


@pytest.mark.parametrize("k", [-1, 64, 2**40, 2**70, -(2**70)])
def test_distances_out_of_range_are_value_errors(k):
    column = pa.array([1], pa.uint64())
    with pytest.raises(ValueError, match="use 0 to 63"):
        nearprint.pairs_within(column, k)
    with pytest.raises(ValueError, match="use 0 to 63"):
        nearprint.join(column, column, k)
    with pytest.raises(ValueError, match="threads is -1: use 1 to 65535"):
        nearprint.pairs_within(column, 3, threads=-1)


def test_negative_fingerprints_and_texts_are_refused():
    with pytest.raises(ValueError, match="unsigned"):
        nearprint.pairs_within(pa.array([-1]), 3)
    with pytest.raises(TypeError, match="expected UInt64"):
        nearprint.pairs_within(pa.array(["1"]), 3)
    assert rows(nearprint.pairs_within(pa.array([1, 3]), 1)) == [(0, 1, 1)]
    assert len(nearprint.pairs_within(pa.array([], pa.uint64()), 3)) == 0


def test_four_threads_at_once_give_what_one_gives(documents):
    text = documents["text"]
    fingerprints = pa.array(nearprint.fingerprint(text))
    known = rows(nearprint.pairs_within(fingerprints, 12))
    results = [None] * 4

    def work(i):
        for _ in range(3):
            results[i] = rows(nearprint.pairs_within(nearprint.fingerprint(text), 12))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [known] * 4


def test_calls_work_in_a_process_that_was_forked_from_one_with_calls(job, tmp_path):
    nearprint.run(job, "2026-11-20", create_store=True)
    code = f"""
import os, nearprint, pyarrow as pa
store = nearprint.Store({str(tmp_path / "store")!r})
text = "The quick brown fox jumps over the lazy dog near the old river bank."
texts = pa.array([text] * 1000)
def results():
    found = store.query(texts), store.query(texts[0].as_py())
    return nearprint.pairs_within(nearprint.fingerprint(texts), 3).to_pylist(), *(rows.to_pylist() for rows in found)
known = results()
child = os.fork()
if child == 0:
    os._exit(0 if results() == known else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=60)
