"""Fingerprints, sketches and distances."""

import duckdb
import nearprint
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conftest import ROOT, TEXT

TEXTS = [TEXT, None, "too short", "", TEXT.upper(), "  "]


def expected():
    return [None if text is None else nearprint.fingerprint(text) for text in TEXTS]


def test_a_text_without_enough_features_has_neither_fingerprint_nor_sketch():
    for text in ["", " \n", "too short"]:
        assert nearprint.fingerprint(text) is None
        assert nearprint.sketch(text) is None
    assert isinstance(nearprint.fingerprint(TEXT), int)
    assert isinstance(nearprint.sketch(TEXT), bytes)


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())])
def test_columns_of_every_type_of_string_have_the_fingerprints_of_their_texts(type_):
    column = pa.array(TEXTS, pa.string()).cast(type_) if not pa.types.is_dictionary(type_) else pa.array(TEXTS).dictionary_encode()
    fingerprints = pa.array(nearprint.fingerprint(column))
    assert fingerprints.type == pa.uint64()
    assert fingerprints.to_pylist() == expected()
    sketches = pa.array(nearprint.sketch(column))
    assert sketches.type == pa.binary(32)
    assert sketches.to_pylist() == [text and nearprint.sketch(text) for text in TEXTS[:3]] + [None, nearprint.sketch(TEXT), None]


def test_slices_chunks_streams_and_tables_of_one_column_count_as_the_column():
    column = pa.array(TEXTS)
    assert nearprint.fingerprint(column[1:5]).to_pylist() == expected()[1:5]
    chunked = pa.chunked_array([column[:2], column[2:2], column[2:]])
    assert nearprint.fingerprint(chunked).to_pylist() == expected()
    table = pa.table({"text": chunked})
    assert nearprint.fingerprint(table).to_pylist() == expected()
    assert nearprint.fingerprint(table.to_reader()).to_pylist() == expected()
    assert len(nearprint.fingerprint(pa.array([], pa.string()))) == 0
    assert len(nearprint.fingerprint(pa.chunked_array([], pa.string()))) == 0
    assert nearprint.fingerprint(pa.nulls(2)).to_pylist() == [None, None]


def test_polars_duckdb_and_pandas_give_and_take_columns():
    assert nearprint.fingerprint(pl.Series(TEXTS)).to_pylist() == expected()
    assert pl.Series(nearprint.fingerprint(pl.Series(TEXTS))).to_list() == expected()
    found = nearprint.fingerprint(pd.Series(TEXTS, dtype="str"))
    assert [None if value is pd.NA else int(value) for value in found] == expected()
    relation = duckdb.sql("SELECT unnest($texts) AS text", params={"texts": TEXTS})
    assert nearprint.fingerprint(relation).to_pylist() == expected()
    pairs = pl.DataFrame(nearprint.pairs_within(pl.Series(expected(), dtype=pl.UInt64), 0))
    assert pairs.rows() == [(0, 4, 0)]
    found = pa.table(nearprint.pairs_within(pl.Series(expected(), dtype=pl.UInt64), 0))  # noqa: F841  (DuckDB finds it by its name)
    assert duckdb.sql("SELECT a, b FROM found").fetchall() == [(0, 4)]


def test_the_command_gives_the_same_fingerprints_and_sketches(command, documents, tmp_path):
    for profile in ["default", "paper", "python-simhash"]:
        output = tmp_path / profile
        done = command(
            "fingerprint", "--documents", ROOT / "sample_data/documents/dt=2026-11-19", "--profile", profile, "--output", output
        )
        assert done.returncode == 0, done.stderr
        rows = pq.read_table(output).to_pylist()
        by_id = {row["doc_id"]: (row["fingerprint"], row["sketch"]) for row in rows}
        fingerprints = nearprint.fingerprint(documents["text"], profile).to_pylist()
        sketches = [None] * len(fingerprints)
        if profile == "default":
            sketches = nearprint.sketch(documents["text"]).to_pylist()
        found = {
            str(id): (fingerprint, sketch)
            for id, fingerprint, sketch in zip(documents["id"].to_pylist(), fingerprints, sketches)
            if fingerprint is not None
        }
        assert len(by_id) > 100
        assert found == by_id, profile


def test_the_number_of_threads_changes_nothing(documents):
    one = nearprint.fingerprint(documents["text"], threads=1).to_pylist()
    assert nearprint.fingerprint(documents["text"], threads=3).to_pylist() == one


def test_distances_of_numbers_bytes_and_columns():
    assert nearprint.hamming(0, 2**128 - 1) == 128
    assert nearprint.hamming(b"\x00\xff", b"\x01\xf0") == 5
    numbers = pa.array([0b111, None, 0], pa.uint64())
    assert pa.array(nearprint.hamming(numbers, pa.array([0b1, 0b1, None], pa.uint64()))).type == pa.int32()
    assert nearprint.hamming(numbers, pa.array([0b1, 0b1, None], pa.uint64())).to_pylist() == [2, None, None]
    assert nearprint.hamming(0b1, numbers).to_pylist() == [2, None, 1]
    sketch = nearprint.sketch(TEXT)
    for sketches in [pa.array([sketch, None], pa.binary(32)), pa.array([sketch, None]), pl.Series([sketch, None])]:
        assert nearprint.hamming(sketches, sketches).to_pylist() == [0, None]
        assert nearprint.hamming(sketches, bytes(32)).to_pylist() == [nearprint.hamming(sketch, bytes(32)), None]


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (ValueError, lambda: nearprint.fingerprint(TEXT, "no such profile")),
        (ValueError, lambda: nearprint.sketch(TEXT, "paper")),
        (ValueError, lambda: nearprint.fingerprint(pa.array([TEXT]), threads=0)),
        (ValueError, lambda: nearprint.fingerprint(pa.table({"id": [1], "text": [TEXT]}))),
        (ValueError, lambda: nearprint.fingerprint(pa.array([b"\xff\xfe"]).view(pa.string()))),
        (ValueError, lambda: nearprint.fingerprint([TEXT, "\ud83d"])),
        (ValueError, lambda: nearprint.hamming([1, 2**64], [1, 1])),
        (TypeError, lambda: nearprint.fingerprint(None)),
        (TypeError, lambda: nearprint.fingerprint([TEXT, 1])),
        (TypeError, lambda: nearprint.fingerprint({TEXT})),
        (TypeError, lambda: nearprint.fingerprint(pa.array([1]))),
        (ValueError, lambda: nearprint.hamming(-1, 0)),
        (ValueError, lambda: nearprint.hamming(2**128, 0)),
        (ValueError, lambda: nearprint.hamming(b"1", b"12")),
        (ValueError, lambda: nearprint.hamming(pa.array([1]), pa.array([1, 2]))),
        (TypeError, lambda: nearprint.hamming(pa.array([1]), b"1")),
        (TypeError, lambda: nearprint.hamming(1.5, 1)),
        (TypeError, lambda: nearprint.hamming(True, 1)),
        (ValueError, lambda: nearprint.fingerprint(TEXT, threads=-1)),
        (ValueError, lambda: nearprint.sketch([TEXT], threads=2**70)),
        (TypeError, lambda: nearprint.query("job.toml", 5)),
    ],
)
def test_wrong_arguments_raise_what_python_expects(error, call):
    with pytest.raises(error) as raised:
        call()
    assert not isinstance(raised.value, nearprint.Error)


def test_integers_of_numpy_are_fingerprints():
    wide = nearprint.fingerprint(TEXT)
    assert nearprint.hamming(np.uint64(wide), wide ^ 0b111) == nearprint.hamming(wide, np.uint64(wide ^ 0b111)) == 3
    assert nearprint.hamming(np.array([7, 0], dtype=np.uint64), np.uint64(1)).to_pylist() == [2, 1]


@pytest.mark.parametrize("type_", [pa.int64(), pa.uint8(), pa.float64()])
def test_no_value_becomes_null_or_another_in_the_type_that_a_consumer_asks_for(type_):
    column = nearprint.hamming([2**63 + 1, 2**63 + 1], [0, 2**64 - 1])
    assert pa.array(column, type=type_).to_pylist() == [2, 62]
    fingerprints = nearprint.fingerprint([f"{TEXT} {n}" for n in range(40)])
    table = nearprint.pairs_within([1] * 300, 0)
    for ask in (
        lambda: pa.array(fingerprints, type=type_),
        lambda: pa.chunked_array(fingerprints, type=type_),
        lambda: pa.table(table, schema=pa.schema([("a", pa.int8()), ("b", pa.int8()), ("distance", pa.int32())])),
    ):
        with pytest.raises((ValueError, pa.ArrowInvalid)):
            ask()
    wide = pa.schema([("a", pa.int64()), ("b", pa.uint64()), ("distance", pa.int64())])
    assert pa.table(table, schema=wide).to_pylist() == table.to_pylist()


def test_a_column_of_pandas_has_the_same_type_whether_any_row_has_a_value_or_none():
    some, none = pd.Series([TEXT, "short"]), pd.Series(["short", None])
    for call in (nearprint.sketch, nearprint.fingerprint):
        assert call(some).dtype == call(none).dtype
        assert call(none).isna().all()


def test_columns_of_pandas_whose_categories_have_no_value_are_columns_without_texts():
    for values in ([], [None, None]):
        column = pd.Series(values, dtype="category")
        assert nearprint.fingerprint(column).isna().tolist() == [True] * len(values)
        assert [row["reason"] for row in nearprint.dedup(column.to_frame("text")).to_dict("records")] == ["null_text"] * len(values)


def test_frames_of_polars_may_have_other_columns_without_any_value():
    frame = pl.DataFrame({"fingerprint": pl.Series([1, 3], dtype=pl.UInt64), "note": [None, None]})
    assert nearprint.pairs_within(frame, 1).to_pylist() == [{"a": 0, "b": 1, "distance": 1}]
    assert len(nearprint.join(frame, frame, 0)) == 2
    without = frame.with_columns(sketch=None)
    assert nearprint.join(without, without, 0).to_pylist() == [], "a document without a sketch is in no pair of sketches"
    assert nearprint.pairs_within(frame.select(fingerprint=None), 3).to_pylist() == []


def test_a_reader_that_fails_raises_its_own_exception():
    def batches():
        yield pa.record_batch({"text": [TEXT]})
        raise KeyError("the reader")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"text": pa.string()}), batches())
    with pytest.raises(Exception, match="the reader"):
        nearprint.fingerprint(reader)
