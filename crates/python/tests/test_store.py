"""Single queries on a store."""

import nearprint
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conftest import ROOT

NIGHTS = ["2026-11-19", "2026-11-20"]


@pytest.fixture
def store(job, tmp_path):
    for night in NIGHTS:
        nearprint.run(job, night, create_store=True)
    return tmp_path / "store"


def of_night(night):
    return pq.read_table(ROOT / f"sample_data/documents/dt={night}")


def test_each_document_finds_itself_and_a_column_finds_what_its_rows_find(store, command):
    opened = nearprint.Store(store)
    table = of_night(NIGHTS[1]).slice(0, 40)
    ids, texts = table["id"].to_pylist(), table["text"].to_pylist()
    rows = opened.query(table["text"]).to_pylist()
    for i, (name, text) in enumerate(zip(ids, texts)):
        of_row = [{**row, "query": 0} for row in rows if row["query"] == i]
        assert of_row == opened.query(text).to_pylist()
        if text and text.strip():
            assert name in [row["id"] for row in of_row if row["exact"]]
    assert command("store", "index", store).returncode == 0
    assert opened.refresh() and not opened.refresh()
    assert opened.query(table["text"]).to_pylist() == rows


def test_fingerprints_are_compared_without_sketches(store):
    opened = nearprint.Store(store, max_distance=3)
    column = nearprint.fingerprint(of_night(NIGHTS[0])["text"])
    found = pa.table(opened.query(column))
    assert found["distance"].to_pylist() and max(found["distance"].to_pylist()) <= 3
    assert found["sketch_distance"].null_count == len(found)
    one = next(value for value in column.to_pylist() if value is not None)
    assert opened.query(one).to_pylist()[0]["distance"] == 0
    assert opened.query(np.uint64(one)).to_pylist() == opened.query(one).to_pylist()


def test_what_cannot_be_asked_is_refused(store, tmp_path):
    with pytest.raises(nearprint.Error, match="another configuration") as raised:
        nearprint.Store(store, profile="han-bigrams")
    assert raised.value.exit_code == 78
    with pytest.raises(nearprint.Error, match="no store") as raised:
        nearprint.Store(tmp_path / "absent")
    assert raised.value.kind == "input_missing"
    with pytest.raises(ValueError, match="no such profile|unknown|profile"):
        nearprint.Store(store, profile="absent")
    for wrong in [{"max_distance": 64}, {"max_distance": -1}, {"max_sketch_distance": 2**70}, {"threads": -1}]:
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} is .*: use "):
            nearprint.Store(store, **wrong)
    with pytest.raises(ValueError, match="main, all"):
        nearprint.Store(store, html_text="most")
    with pytest.raises(nearprint.Error, match="another configuration"):
        nearprint.Store(store, html_text="all")
    opened = nearprint.Store(store)
    for wrong in (1.5, True):
        with pytest.raises(TypeError):
            opened.query(wrong)
    with pytest.raises(ValueError):
        opened.query(-1)
    assert len(opened.query("")) == 0
