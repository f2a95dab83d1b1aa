"""Near-duplicates of frames, and results in the libraries of frames."""

import datetime
import json
import random
import signal
import subprocess
import sys
import uuid

import duckdb
import nearprint
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conftest import ROOT, TEXT

WORDS = [f"word{n}" for n in range(400)]


def made(n, seed=1):
    """Texts of which some are copies of those before, some are edited copies, some are short and some are missing."""
    chance = random.Random(seed)
    texts = []
    for row in range(n):
        kind = row % 6
        if kind == 1:
            texts.append(chance.choice(texts) if texts else None)
        elif kind == 2:
            words = (chance.choice(texts) or "").split()
            words[len(words) // 2 : len(words) // 2] = ["another"]
            texts.append(" ".join(words))
        elif kind == 3:
            texts.append(chance.choice(["short", "Short!", "", None]))
        else:
            texts.append(" ".join(chance.choices(WORDS, k=60)))
    return texts


def decided(tmp_path, rows, **job):
    """The decisions of a night of these rows, by id."""
    night = tmp_path / "crawl/dt=2026-11-20"
    night.mkdir(parents=True)
    (night / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    places = {"documents": str(tmp_path / "crawl"), "store": str(tmp_path / "store"), "output": str(tmp_path / "results")}
    nearprint.run({**places, **job}, datetime.date(2026, 11, 20), create_store=True, no_breakers=True)
    decisions = pq.read_table(tmp_path / "results/decisions").to_pylist()
    return {row["doc_id"]: (row["decision"], row["reason"], row["canonical_id"], row["lost_share"]) for row in decisions}


def test_a_frame_is_decided_as_a_night_decides(tmp_path):
    rows = [{"id": f"d{row % 997}-{row}", "text": text, "score": row % 7} for row, text in enumerate(made(600))]
    order = ["score desc", "length desc"]
    expected = decided(tmp_path, rows, keep=order, max_lost_share=0.2)
    found = nearprint.dedup(pd.DataFrame(rows), keep=order, max_lost_share=0.2)
    assert isinstance(found, pd.DataFrame) and len(found) == len(rows)
    assert list(found["id"]) == [row["id"] for row in rows]
    by_id = {
        row["id"]: tuple(None if pd.isna(row[name]) else row[name] for name in ["decision", "reason", "canonical_id", "lost_share"])
        for row in found.to_dict("records")
    }
    assert by_id == expected
    assert {decision for decision, *_ in expected.values()} == {"keep", "drop", "skip"}


def test_every_library_gets_its_own_form_back_with_the_same_decisions():
    texts = made(120)
    ids = list(range(1000, 1120))
    rows = [{"id": id, "text": text} for id, text in zip(ids, texts)]
    relation = duckdb.from_arrow(pa.Table.from_pylist(rows))
    frames = {
        "pandas": pd.DataFrame(rows, index=[f"r{id}" for id in ids]),
        "polars": pl.DataFrame(rows),
        "lazy": pl.DataFrame(rows).lazy(),
        "pyarrow": pa.Table.from_pylist(rows),
        "duckdb": relation,
        "list": rows,
    }
    listed = {
        "pandas": lambda frame: frame.astype(object).where(frame.notna(), None).to_dict("records"),
        "polars": lambda frame: frame.to_dicts(),
        "lazy": lambda frame: frame.collect().to_dicts(),
        "pyarrow": lambda frame: frame.to_pylist(),
        "duckdb": lambda frame: frame.to_arrow_table().to_pylist(),
        "list": lambda frame: frame,
    }
    expected = None
    for name, frame in frames.items():
        found = nearprint.Deduplicator().dedup(frame)
        assert type(found.frame) is type(frame), name
        assert type(found.kept) is type(frame) and type(found.pairs) is type(frame) and type(found.clusters) is type(frame), name
        decisions = listed[name](found.frame)
        expected = expected or decisions
        assert decisions == expected, name
        assert [row["id"] for row in listed[name](found.kept)] == [row["id"] for row in expected if row["decision"] == "keep"], name
        # Ids of integers are integers.
        assert all(row["canonical_id"] is None or row["canonical_id"] in ids for row in decisions)
        pairs = {(row["id_a"], row["id_b"]) for row in listed[name](found.pairs)}
        assert pairs and all(a in ids and b in ids for a, b in pairs)
        assert "rows stay" in repr(found) and "<table>" in found._repr_html_()
    assert list(nearprint.dedup(frames["pandas"]).index) == list(frames["pandas"].index)


def test_ids_of_integers_are_integers_in_columns_of_objects_and_categories_too():
    for ids in ([10, 11], [10, 2**63]):
        columns = [pd.Series(ids).astype("category")]
        # Arrow refuses larger integers of Python in a column of objects, and takes those of numpy.
        objects = ids if ids[1] < 2**63 else [np.uint64(id) for id in ids]
        columns += [pd.Series(objects, dtype=object), pd.Series(objects, dtype=object).astype("category")]
        for column in columns:
            found = nearprint.dedup(pd.DataFrame({"id": column, "text": [TEXT, TEXT]}))
            assert list(found["canonical_id"].dropna()) == [10] and list(found["id"]) == ids
        table = pa.table({"id": pa.array(ids, pa.uint64()).dictionary_encode(), "text": [TEXT, TEXT]})
        assert nearprint.dedup(table)["canonical_id"].to_pylist() == [None, 10]


def test_a_relation_of_duckdb_joins_with_tables_of_another_connection_through_arrow():
    connection = duckdb.connect()
    connection.sql(f"CREATE TABLE pages AS SELECT 1 AS n, '{TEXT}' AS text")
    found = connection.from_arrow(nearprint.dedup(connection.table("pages")).to_arrow_table())
    assert found.join(connection.table("pages"), "n").select("decision").fetchall() == [("keep",)]


def test_equal_short_texts_make_no_pairs_and_the_first_id_as_a_text_stays():
    found = nearprint.Deduplicator().dedup([{"id": id, "text": "short"} for id in (9, 10)])
    assert [row["id"] for row in found.kept] == [10] and found.pairs == []
    assert [row["id"] for row in found.clusters] == [9, 10]


def test_rows_without_ids_have_numbers_and_the_first_of_equal_rows_stays():
    texts = [TEXT, TEXT.upper(), None, TEXT]
    found = nearprint.dedup(texts)
    assert [(row["decision"], row["canonical_id"]) for row in found] == [("keep", None), ("drop", 0), ("skip", None), ("drop", 0)]
    assert nearprint.Deduplicator().dedup(texts).kept == [TEXT]
    series = pd.Series(texts, index=list("abcd"), name="page")
    assert list(nearprint.Deduplicator().dedup(series).kept) == [TEXT]
    assert nearprint.Deduplicator().dedup(pl.Series("text", texts)).kept.to_list() == [TEXT]
    array = pa.array(texts)
    for given in (array, pa.chunked_array([array[:1], array[1:]]), pa.record_batch({"text": array}), pa.table({"text": array})):
        kept = nearprint.Deduplicator().dedup(given).kept
        assert type(kept) is type(given) and TEXT in str(kept.to_pylist()) and len(kept) == 1
    many = nearprint.dedup([f"{TEXT} {n // 2} " + " ".join(random.Random(n // 2).choices(WORDS, k=40)) for n in range(30)])
    assert [row["canonical_id"] for row in many] == [None if n % 2 == 0 else n - 1 for n in range(30)]
    assert nearprint.dedup([]) == []
    assert len(nearprint.dedup(pd.DataFrame({"id": [], "text": []}, dtype="str"))) == 0


def test_a_frame_is_decided_against_a_store_and_added_to_it(tmp_path):
    seen = nearprint.Deduplicator(tmp_path / "store", tmp_path / "results")
    first = seen.dedup([{"id": "a", "text": TEXT}], add="2026-11-20")
    assert first.summary["status"] == "published" and first.frame[0]["recrawl"] == "new"
    for _ in range(2):
        found = seen.dedup([{"id": "b", "text": TEXT.upper()}]).frame[0]
        assert (found["decision"], found["canonical_id"], found["reference"]) == ("drop", "a", str(tmp_path / "store"))
    added = seen.dedup(pl.DataFrame({"id": ["b"], "text": [TEXT.lower()]}), add=datetime.date(2026, 11, 21))
    assert added.frame["canonical_id"].to_list() == ["a"]
    assert nearprint.check({"store": str(tmp_path / "store"), "output": str(tmp_path / "results")})["status"] == "sound"
    with pytest.raises(ValueError, match="Deduplicator\\(store, output\\)"):
        nearprint.Deduplicator(tmp_path / "store").dedup([{"id": "c", "text": TEXT}], add="2026-11-22")
    with pytest.raises(ValueError, match="column of ids"):
        seen.dedup([TEXT], add="2026-11-22")


def test_a_night_of_a_frame_has_no_files_for_commands_that_read_texts(tmp_path):
    places = {"store": str(tmp_path / "store"), "output": str(tmp_path / "results")}
    nearprint.Deduplicator(**places).dedup([{"id": "a", "text": TEXT}, {"id": "b", "text": TEXT}], add="2026-11-20")
    with pytest.raises(nearprint.Error) as raised:
        nearprint.audit(places)
    assert str(raised.value) == "nearprint audit: unmeasured (n_not_found: 1): the summary of this error says more"
    assert raised.value.kind == "input_missing" and raised.value.summary["unmeasured"]["n_not_found"] == 1
    with pytest.raises(nearprint.Error, match="no input file"):
        nearprint.filter(places, tmp_path / "texts", dt="2026-11-20")


def test_ids_of_stores_stay_texts_and_large_ids_stay_numbers(tmp_path):
    seen = nearprint.Deduplicator(tmp_path / "store", tmp_path / "results")
    seen.dedup([{"id": "a", "text": TEXT}], add="2026-11-20")
    for rows, own in (([{"id": 7, "text": TEXT.upper()}], 7), ([TEXT.upper()], 0)):
        found = seen.dedup(rows)
        (row,) = found.frame
        assert (row["decision"], row["canonical_id"], row["cluster_id"]) == ("drop", "a", own)
        assert [(pair["id_a"], pair["id_b"]) for pair in found.pairs] == [(own, "a")]
    large = pl.DataFrame({"id": pl.Series([2**63 + 1, 2**63 + 2], dtype=pl.UInt64), "text": [TEXT, TEXT]})
    decided = nearprint.dedup(large)
    assert decided.schema["canonical_id"] == decided.schema["cluster_id"] == pl.UInt64
    assert decided["canonical_id"].drop_nulls().to_list() in ([2**63 + 1], [2**63 + 2])
    assert set(decided["cluster_id"]) <= {2**63 + 1, 2**63 + 2}


@pytest.mark.parametrize("of_type", [pa.binary(16), pa.uuid()])
def test_ids_of_16_bytes_are_uuids_also_in_a_frame_that_is_added(tmp_path, of_type):
    ids = [uuid.UUID(int=n) for n in range(2)]
    rows = pa.table({"id": pa.array([id.bytes for id in ids], of_type), "text": [TEXT, TEXT.upper()]})
    seen = nearprint.Deduplicator(tmp_path / "store", tmp_path / "results")
    for found in (nearprint.Deduplicator().dedup(rows), seen.dedup(rows, add="2026-11-20")):
        assert found.frame["canonical_id"].to_pylist() == [None, str(ids[0])]
        assert found.kept["id"].to_pylist() == rows["id"].to_pylist()[:1]


def test_one_of_equal_rows_stays_even_where_a_crawl_would_call_them_stubs():
    rows = [{"id": f"https://shop.example/p/{n}", "text": TEXT} for n in range(30)]
    found = nearprint.Deduplicator().dedup(rows)
    assert len(found.kept) == 1 and {row["canonical_id"] for row in found.frame} == {None, found.kept[0]["id"]}
    stubs = nearprint.Deduplicator(stubs={"find": True}).dedup(rows)
    assert stubs.kept == [] and stubs.summary["by_reason"] == {"drop_stub": 30}


@pytest.mark.parametrize("settings", [{"stubs": None}, {"stubs": {"find": None}}, {"resources": {"threads": None}, "spill_dir": None}])
def test_a_setting_that_is_none_is_not_given(settings):
    rows = [{"id": f"https://shop.example/p/{n}", "text": TEXT} for n in range(30)]
    assert nearprint.dedup(rows, **settings) == nearprint.dedup(rows)


def test_a_frame_takes_the_place_of_a_night_only_if_it_is_told_to(tmp_path):
    seen = nearprint.Deduplicator(tmp_path / "store", tmp_path / "results")
    rows = [{"id": "a", "text": TEXT}]
    seen.dedup(rows, add="2026-11-20")
    with pytest.raises(nearprint.Error) as raised:
        seen.dedup(rows, add="2026-11-20")
    assert raised.value.kind == "output_exists"
    assert seen.dedup(rows, add="2026-11-20", replace=True).summary["status"] == "published"
    with pytest.raises(nearprint.Error) as raised:
        seen.dedup([{"id": "b", "text": TEXT}], add="2026-11-19")
    assert raised.value.kind == "usage"
    summary = seen.dedup([{"id": "b", "text": TEXT}], add="2026-11-19", late=True).summary
    assert summary["status"] == "published" and "next" not in summary


def test_references_are_stores_that_rows_are_dropped_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    nearprint.Deduplicator("store", "results").dedup([{"id": "a", "text": TEXT}], add="2026-11-20")
    (row,) = nearprint.dedup([{"id": "b", "text": TEXT.upper()}], references=["store"])
    assert (row["decision"], row["canonical_id"], row["reference"]) == ("drop", "a", str(tmp_path / "store"))


def test_paths_of_settings_begin_at_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spill").mkdir()
    (tmp_path / "stop.txt").write_text("the\n")
    for spill in ({"spill_dir": "spill"}, {"resources": {"spill_dir": "spill"}}):
        (row,) = nearprint.dedup([TEXT], stop_words="stop.txt", **spill)
        assert row["decision"] == "keep"


def test_errors_of_settings_and_dates_name_what_the_caller_wrote(tmp_path):
    for limit in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="max_lost_share"):
            nearprint.dedup([TEXT], max_lost_share=limit)
    for key in ("a b", 'a"b', "a\nb = 1\nc"):
        with pytest.raises(ValueError, match=f"unknown key.*{key.split()[0][0]}"):
            nearprint.dedup([TEXT], **{key: 1})
    with pytest.raises(ValueError, match="^add: 2999-01-01 is more than .*: check the date$"):
        nearprint.Deduplicator(tmp_path / "store", tmp_path / "results").dedup([{"id": "a", "text": TEXT}], add="2999-01-01")


def test_zeros_of_both_signs_are_equal_in_a_keep_order():
    for zeros in ((0.0, -0.0), (-0.0, 0.0)):
        rows = [{"id": id, "text": TEXT, "score": score} for id, score in zip("ba", zeros)]
        for order in ("score desc", "score asc"):
            assert {row["id"]: row["decision"] for row in nearprint.dedup(rows, keep=order)} == {"a": "keep", "b": "drop"}


def test_a_night_of_a_frame_warns_of_nothing(logged, tmp_path):
    (tmp_path / "rows.json").write_text(json.dumps(made(60)))
    lines = logged("import json; nearprint.dedup(json.load(open('rows.json')))")
    assert any("INFO decide" in line for line in lines) and not any("WARNING" in line for line in lines), lines


KILLED = """
import os, sys
import nearprint

rows = [f"{sys.argv[2]} {n}" for n in range(50)]
nearprint.dedup(rows, spill_dir=sys.argv[1], progress=lambda now: os.kill(os.getpid(), int(sys.argv[3])))
"""


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL])
def test_what_a_process_leaves_that_a_signal_ended_is_removed_by_the_next_one(tmp_path, sent):
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), TEXT, str(int(sent))], capture_output=True, text=True)
    assert done.returncode == -sent, done.stderr
    assert list(tmp_path.glob("nearprint-*/documents/*/rows.parquet"))
    nearprint.dedup([TEXT], spill_dir=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "said", "call"),
    [
        (TypeError, "give a frame of pandas", lambda: nearprint.dedup(3)),
        (ValueError, "no column 'text', it has: id, body", lambda: nearprint.dedup(pd.DataFrame({"id": [1], "body": ["x"]}))),
        (ValueError, "no column 'score'", lambda: nearprint.dedup(pd.DataFrame({"id": [1], "text": ["x"]}), keep=["score desc"])),
        (ValueError, "has a column 'reason' already", lambda: nearprint.dedup(pl.DataFrame({"text": ["x"], "reason": ["y"]}))),
        (TypeError, "give a frame of pandas", lambda: nearprint.dedup(np.array([TEXT]))),
        (TypeError, "give a frame of pandas", lambda: nearprint.dedup(pd.array([TEXT]))),
        (TypeError, "give a frame of pandas", lambda: nearprint.dedup(pd.DataFrame({"text": [TEXT]}).groupby("text"))),
        (TypeError, "give a frame of pandas", lambda: nearprint.dedup(pl.col("text"))),
        (TypeError, "text: 0 is no text", lambda: nearprint.dedup(pd.DataFrame([[TEXT]]), text=0)),
        (TypeError, "id: 0 is no text", lambda: nearprint.dedup(pd.DataFrame([[TEXT]], columns=["text"]), id=0)),
        (TypeError, "keep: 3 is no text", lambda: nearprint.dedup([TEXT], keep=[3])),
        (TypeError, "keep: 3 is no text", lambda: nearprint.dedup([TEXT], keep=3)),
        (ValueError, "several columns have the name 'text'", lambda: nearprint.dedup(pd.DataFrame([[TEXT, TEXT]], columns=["text", "text"]))),
        (ValueError, "several columns have the name 'text'", lambda: nearprint.dedup(pa.table([[TEXT], [TEXT]], names=["text", "text"]))),
        (ValueError, "no column 'ulr', it has: url, text", lambda: nearprint.dedup([{"url": "a", "text": TEXT}], id="ulr")),
        (ValueError, "max_bad_rows: each row", lambda: nearprint.dedup([TEXT], max_bad_rows=1)),
        (ValueError, "on_duplicate_id: each row", lambda: nearprint.Deduplicator(on_duplicate_id="keep_first")),
        (ValueError, "name the column with id=", lambda: nearprint.dedup([TEXT], id_column="url")),
        (ValueError, "keep: say which", lambda: nearprint.Deduplicator(keep=["score desc"])),
        (ValueError, "give its date with add=", lambda: nearprint.Deduplicator("store", "results").dedup([TEXT], replace=True)),
        (ValueError, "output: it is that of the nights", lambda: nearprint.dedup([TEXT], output="results")),
        (ValueError, "breakers: a frame has no nights", lambda: nearprint.dedup([TEXT], breakers={"max_cluster": 1})),
        (ValueError, "a list of stores", lambda: nearprint.dedup([TEXT], references="store")),
        (
            ValueError,
            "folder of this machine: s3://b/results",
            lambda: nearprint.Deduplicator("store", "s3://b/results").dedup([{"id": "a", "text": TEXT}], add="2026-11-20"),
        ),
        (ValueError, "ask Store", lambda: nearprint.query({"store": "store"}, "word " * 40_000)),
        (nearprint.Error, "no_such_key", lambda: nearprint.dedup([TEXT], no_such_key=3)),
        (TypeError, "value 1 is of int, expected str", lambda: nearprint.fingerprint([TEXT, 3])),
    ],
)
def test_what_cannot_be_decided_is_refused_with_its_reason(error, said, call):
    with pytest.raises(error, match=said):
        call()


def test_repeated_ids_are_told_by_their_rows_with_a_remedy_that_works():
    frame = pd.DataFrame({"id": [7, 1, 1], "text": [TEXT, TEXT, TEXT.upper()]})
    with pytest.raises(nearprint.Error) as raised:
        nearprint.dedup(frame)
    assert str(raised.value) == (
        "1 row repeats a document id: '1' in row 1 and row 2: give the rows different ids, or none (id=None); the first row is row 0"
    )
    assert raised.value.kind == "bad_data"
    assert list(nearprint.dedup(frame, id=None)["decision"]) == ["keep", "drop", "drop"]


@pytest.mark.parametrize(
    ("rows", "settings", "said"),
    [
        ([{"id": "a", "text": TEXT}, {"id": None, "text": TEXT}], {}, "row 1 cannot be used (1 null_id): column 'id' has no value: fill the column, or use the numbers"),
        ([TEXT, TEXT * 100], {"max_doc_bytes": 1000}, "row 1 cannot be used (1 too_large): its text has more bytes than max_doc_bytes"),
        ([{"text": TEXT, "n": 2**63}], {"keep": "n desc"}, "row 0 cannot be used (1 wrong_type): a value for keep is above"),
    ],
)
def test_a_row_that_cannot_be_used_is_told_by_its_number_with_a_remedy_that_works(rows, settings, said):
    with pytest.raises(nearprint.Error) as raised:
        nearprint.dedup(rows, **settings)
    assert said in str(raised.value) and raised.value.kind == "bad_data"
    assert not any(word in str(raised.value) for word in ["rows.parquet", "max_bad_rows", "allowed"])


def test_many_rows_that_cannot_be_used_are_told_by_one_of_them_with_a_remedy_that_works():
    # So many end the reading before all rows are there.
    for n, least in ((2, ""), (150_000, "at least ")):
        frame = pa.table({"id": pa.nulls(n, pa.string()), "text": pa.repeat(TEXT, n)})
        with pytest.raises(nearprint.Error, match=rf"^{least}\d+ rows cannot be used \(\d+ null_id\), such as row \d+: column 'id' has no value: fill the column"):
            nearprint.dedup(frame)
    assert set(nearprint.dedup(frame.slice(0, 3), id=None)["decision"].to_pylist()) == {"keep", "drop"}


PLACES = {"documents": "crawl", "store": "store", "output": "results"}


@pytest.mark.parametrize(
    ("said", "call"),
    [
        ("profile: no such name: use default", lambda: nearprint.dedup([TEXT], profile="no-such-profile")),
        ("unknown key 'no_such_key'", lambda: nearprint.dedup([TEXT], no_such_key=3)),
        ("resources.threads: invalid value", lambda: nearprint.dedup([TEXT], threads=-1)),
        ("max_lost_share: 2 is not a share", lambda: nearprint.dedup([TEXT], max_lost_share=2)),
        ("profile: no such name", lambda: nearprint.run({**PLACES, "profile": "no-such-profile"}, "2026-11-20")),
        ("profile: no such name", lambda: nearprint.report({**PLACES, "profile": "no-such-profile"})),
    ],
)
def test_a_wrong_setting_is_a_value_error_that_names_no_file(said, call):
    with pytest.raises(ValueError, match=f"^{said}") as raised:
        call()
    error = raised.value
    assert isinstance(error, nearprint.Error) and (error.kind, error.exit_code, error.file, error.row) == ("config", 78, None, None)


def test_a_wrong_option_of_a_night_is_a_value_error(job):
    with pytest.raises(ValueError) as raised:
        nearprint.run(job, "2026-11-20", threads=-1)
    assert isinstance(raised.value, nearprint.Error) and raised.value.kind == "usage"


def test_a_column_of_a_wrong_type_is_told_as_one_of_the_frame():
    with pytest.raises(nearprint.Error) as raised:
        nearprint.dedup([{"text": 3}])
    assert str(raised.value).startswith("frame: column 'text' is UInt64, expected string")
    assert (raised.value.column, raised.value.file) == ("text", None)


def test_a_folder_to_spill_to_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ValueError, match=f"spill_dir: {tmp_path}/no: No such file or directory .*: name a folder") as raised:
        nearprint.dedup([TEXT], spill_dir=tmp_path / "no")
    error = raised.value
    assert isinstance(error, nearprint.Error) and (error.kind, error.exit_code, error.file) == ("local_io", 74, str(tmp_path / "no"))


@pytest.mark.parametrize("numbers", [[1, 2.5], [2.5, 1], [np.int64(1), np.float64(2.5)], [np.float32(2.5), 1], [None, 1, 2.5, float("nan")]])
def test_a_list_may_mix_integers_and_floats_of_python_and_numpy_in_any_order(numbers):
    rows = [{"text": TEXT, "score": number} for number in numbers]
    assert [row["score"] for row in nearprint.Deduplicator().dedup(rows, keep="score desc").kept] == [2.5]


def test_ids_of_numpy_are_integers():
    rows = [{"id": np.int64(7), "text": TEXT}, {"id": np.int64(8), "text": TEXT}]
    assert [row["canonical_id"] for row in nearprint.dedup(rows)] == [None, 7]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([1, "x"], "column 'id': value 1 is of str, expected int as the others"),
        ([None, datetime.date(2026, 11, 20)], "column 'id': value 1 is of date, expected str, bytes, int, float or bool"),
        ([1, True], "column 'id': value 1 is of bool, expected int as the others"),
        ([2.5, True], "column 'id': value 1 is of bool, expected float as the others"),
    ],
)
def test_a_value_of_another_type_is_told_with_its_column_and_place(values, said):
    with pytest.raises(TypeError, match=said):
        nearprint.dedup([{"id": value, "text": TEXT} for value in values])


def test_an_order_of_one_term_may_be_a_text():
    rows = [{"text": TEXT, "score": 1}, {"text": TEXT.upper(), "score": 2}]
    assert nearprint.dedup(rows, keep="score desc") == nearprint.dedup(rows, keep=["score desc"])
    assert [row["decision"] for row in nearprint.dedup(rows, keep="score desc")] == ["drop", "keep"]


CATEGORIES = ["low", "mid", "high"]


@pytest.mark.parametrize(
    "frame",
    [
        lambda values: pd.DataFrame({"text": TEXT, "grade": pd.Categorical(values, CATEGORIES, ordered=True)}),
        lambda values: pl.DataFrame({"text": TEXT, "grade": pl.Series(values, dtype=pl.Enum(CATEGORIES))}),
        lambda values: pa.table({"text": [TEXT] * 2, "grade": pa.array(values).dictionary_encode()}),
        lambda values: duckdb.sql(f"SELECT '{TEXT}' AS text, unnest({values})::ENUM('low', 'mid', 'high') AS grade"),
    ],
)
def test_categories_are_not_compared_as_texts(frame):
    with pytest.raises(ValueError, match="keep: column 'grade' has categories"):
        nearprint.dedup(frame(["low", "high"]), keep="grade desc")
    assert len(nearprint.dedup(frame(["low", "high"]))) == 2


@pytest.mark.filterwarnings("ignore:The inplace keyword")
def test_results_stay_with_their_rows_whatever_the_caller_does_to_the_frame():
    texts = [TEXT, TEXT.upper(), "Another page about something else, which nobody wrote before it."]
    frame = pd.DataFrame({"text": texts, "n": [3, 2, 1]})
    found = nearprint.Deduplicator().dedup(frame)
    frame.sort_values("n", inplace=True)
    frame["text"] = "x"
    frame.drop(frame.index[0], inplace=True)
    assert list(found.frame["text"]) == texts and list(found.kept["n"]) == [3, 1]
    frame = pl.DataFrame({"text": texts, "n": [3, 2, 1]})
    found = nearprint.Deduplicator().dedup(frame)
    frame.drop_in_place("n")
    assert found.kept["n"].to_list() == [3, 1]
    rows = [{"text": text} for text in texts]
    found = nearprint.Deduplicator().dedup(rows)
    rows.reverse()
    rows[0]["text"] = "x"
    assert [row["text"] for row in found.kept] == [texts[0], texts[2]]


def test_a_column_may_be_named_row():
    rows = pd.DataFrame({"row": [TEXT, TEXT.upper()], "row_": [1, 2]})
    found = nearprint.dedup(rows, text="row", keep="row_ desc")
    assert list(found["decision"]) == ["drop", "keep"] and found["canonical_id"][0] == 1


class Pages(pd.DataFrame):
    @property
    def _constructor(self):
        return Pages


def test_types_that_are_derived_from_a_frame_are_frames():
    pages = Pages({"text": [TEXT, TEXT.upper()]})
    found = nearprint.Deduplicator().dedup(pages)
    assert type(found.frame) is type(found.kept) is Pages and list(found.kept["text"]) == [TEXT]


class Column(pd.Series):
    @property
    def _constructor(self):
        return Column


def test_a_column_of_a_derived_type_gets_a_series_with_its_index():
    assert list(nearprint.fingerprint(Column([TEXT], index=["a"])).index) == ["a"]


@pytest.mark.parametrize("texts", [[], [float("nan")], [None]])
def test_a_frame_of_pandas_may_have_no_text_at_all(texts):
    assert list(nearprint.dedup(pd.DataFrame({"text": texts}))["decision"]) == ["skip"] * len(texts)
    assert list(nearprint.dedup(pd.DataFrame({"text": texts}, dtype="float64"))["decision"]) == ["skip"] * len(texts)


def test_a_prefix_keeps_new_columns_apart():
    found = nearprint.dedup(pl.DataFrame({"text": [TEXT, TEXT], "reason": ["x", "y"]}), prefix="near_")
    assert found["reason"].to_list() == ["x", "y"] and found["near_decision"].to_list() == ["keep", "drop"]


def test_pandas_has_fingerprints_as_nullable_integers_of_all_64_bits():
    texts = [TEXT, "too short", TEXT + " And more words of another page."]
    frame = pd.DataFrame({"text": texts}, index=[7, 8, 9])
    frame["fp"] = nearprint.fingerprint(frame["text"])
    assert str(frame["fp"].dtype) == "UInt64"
    expected = [nearprint.fingerprint(text) for text in texts]
    assert [None if value is pd.NA else int(value) for value in frame["fp"]] == expected
    column = nearprint.fingerprint(pa.array(texts))
    assert [None if value is pd.NA else int(value) for value in column.to_pandas()] == expected
    assert column.to_arrow().to_pylist() == column.to_polars().to_list() == list(column) == expected
    assert (column[0], column[-1]) == (expected[0], expected[2])
    assert np.asarray(column).tolist() == expected and np.asarray(column).dtype == object
    whole = nearprint.fingerprint(texts[:1])
    assert np.asarray(whole).dtype == np.uint64 and np.asarray(whole).tolist() == expected[:1]
    with pytest.raises(IndexError):
        column[3]


def test_tables_of_results_become_frames_and_have_columns():
    pairs = nearprint.pairs_within([1, 2, 3, None], 1)
    assert pairs["a"].to_pylist() == [0, 1] and [row["b"] for row in pairs] == [2, 2]
    for frame in (pd.DataFrame(pairs), pairs.to_pandas(), pairs.to_polars().to_pandas(), pairs.to_arrow().to_pandas()):
        assert frame.values.tolist() == [[0, 2, 1], [1, 2, 1]]
    with pytest.raises(KeyError, match="there are: a, b, distance"):
        pairs["c"]


def test_lists_and_arrays_of_numpy_are_columns():
    texts = [TEXT, None, "too short"]
    expected = [nearprint.fingerprint(TEXT), None, None]
    for column in (texts, tuple(texts), np.array(texts, dtype=object), pd.Series(texts, dtype=object)):
        assert list(nearprint.fingerprint(column)) == expected or list(nearprint.fingerprint(column).isna()) == [False, True, True]
    # pandas 2 gives its columns as lists.
    assert nearprint.fingerprint([TEXT, pd.NA, float("nan"), pd.NaT]).to_pylist() == [expected[0], None, None, None]
    assert nearprint.hamming([7, pd.NA], [7, 7]).to_pylist() == [0, None]
    assert nearprint.hamming(np.array([7, 0], dtype=np.uint64), [0, 1]).to_pylist() == [3, 1]


def test_ids_with_ends_of_lines_of_other_standards_come_back_from_commands(tmp_path):
    night = tmp_path / "crawl/dt=2026-11-20"
    night.mkdir(parents=True)
    id = "a\u2028b\u2029c"
    pq.write_table(pa.table({"id": [id], "text": [TEXT]}), night / "rows.parquet")
    job = {**{key: str(tmp_path / place) for key, place in PLACES.items()}, "create_store": True}
    nearprint.run(job, "2026-11-20")
    assert nearprint.query(job, TEXT)["matches"][0]["id"] == id


def test_commands_are_functions_that_return_their_summaries(tmp_path):
    job = {"documents": str(ROOT / "sample_data/documents"), "store": str(tmp_path / "store"), "output": str(tmp_path / "results"), "create_store": True}
    done = nearprint.run(job, datetime.date(2026, 11, 19))
    assert done["status"] == "published"
    reported = nearprint.report(job)
    assert reported["dt"] == "2026-11-19" and "next" not in reported
    written = nearprint.filter(job, tmp_path / "texts", corpus=True, texts="parquet")
    assert written["n_keep"] == done["n_keep"] == sum(pq.read_table(path).num_rows for path in (tmp_path / "texts").rglob("*.parquet"))
    assert nearprint.check(job)["status"] == "sound"
    kept = pq.read_table(next((tmp_path / "texts").rglob("*.parquet"))).to_pylist()[0]
    assert nearprint.query(job, kept["text"])["matches"][0]["id"] == kept["id"]
    with pytest.raises(nearprint.Error, match="the document '5'"):
        nearprint.explain(job, 5)
    with pytest.raises(nearprint.Error) as raised:
        nearprint.report(job, "2026-11-18")
    assert (raised.value.exit_code, raised.value.kind) == (66, "input_missing")
    assert raised.value.summary["status"] == "failed" and "hint" not in raised.value.summary


def test_dir_shows_what_is_public():
    assert "os" not in dir(nearprint) and set(dir(nearprint)) == set(nearprint.__all__)


def test_frames_need_no_pyarrow(tmp_path):
    program = f"""
import sys
sys.modules["pyarrow"] = None
import nearprint, pandas as pd
frame = pd.DataFrame({{"id": [1, 2], "text": ["{TEXT}", "{TEXT.upper()}"], "score": [1.5, 2.5]}})
found = nearprint.dedup(frame, keep=["score desc"])
assert list(found["decision"]) == ["drop", "keep"], found
assert found["canonical_id"][0] == 2
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_setting_may_be_a_number_of_numpy():
    np = pytest.importorskip("numpy")
    done = nearprint.Deduplicator(threads=np.int64(2), max_lost_share=np.float32(0.5)).dedup(["a text", "a text"])
    assert [row["decision"] for row in done.frame] == ["keep", "drop"]


def test_numbers_of_rows_are_the_same_beside_those_of_a_store(tmp_path):
    other = "Ten entirely different words about commits, stores and sorted runs."
    decided(tmp_path, [{"id": "s", "text": TEXT}])
    found = nearprint.Deduplicator(references=[tmp_path / "store"]).dedup([TEXT, other, other.upper(), other])
    assert [(row["canonical_id"], row["cluster_id"]) for row in found.frame] == [("s", 0), (None, 1), ("1", 1), ("1", 1)]
    assert [(pair["id_a"], pair["id_b"]) for pair in found.pairs] == [(0, "s"), (1, "2"), (1, "3")]


def test_a_frame_of_pandas_with_one_column_is_that_column_whatever_its_index():
    frame = pd.DataFrame({"text": [TEXT, TEXT.upper(), TEXT]}, index=["p", "q", "r"])
    expected = nearprint.fingerprint(frame["text"])
    assert expected.equals(nearprint.fingerprint(frame)) and list(expected.index) == ["p", "q", "r"]
    assert nearprint.fingerprint(frame[[True, False, True]]).equals(expected[[True, False, True]])
    assert len(nearprint.pairs_within(expected.to_frame(), 0)) == 3


def test_columns_of_polars_and_pandas_may_have_no_value_at_all():
    assert nearprint.dedup(pl.DataFrame({"text": []})).is_empty()
    rows = pl.DataFrame({"text": [None, None]})
    assert nearprint.dedup(rows)["decision"].to_list() == ["skip", "skip"]
    assert nearprint.dedup(rows.with_columns(score=pl.lit(None)), keep="score desc").height == 2
    assert nearprint.fingerprint(rows["text"]).to_pylist() == [None, None]
    assert nearprint.fingerprint(pd.Series([np.nan, np.nan])).isna().all()
    assert nearprint.sketch(pd.Series([np.nan])).isna().all()


def test_a_frame_may_have_a_column_of_sources():
    rows = [{"id": "a", "text": TEXT, "site": "s"}, {"id": "b", "text": TEXT, "site": "s"}]
    for frame in (rows, pd.DataFrame(rows)):
        assert nearprint.Deduplicator(source_column="site").dedup(frame).summary["n_drop"] == 1
    with pytest.raises(ValueError, match="no column 'place', it has: id, text, site"):
        nearprint.dedup(rows, source_column="place")


def test_integers_of_python_above_those_with_a_sign_are_ids_of_pandas():
    ids = pd.Series([2**63, 1], dtype=object)
    found = nearprint.dedup(pd.DataFrame({"id": ids, "text": [TEXT, TEXT.upper()]}))
    assert found["canonical_id"].dropna().tolist() == [1] and found["cluster_id"].tolist() == [1, 1]


def test_options_and_settings_may_be_scalars_of_numpy(job):
    assert nearprint.dedup([TEXT], stubs={"find": np.bool_(False)})[0]["decision"] == "keep"
    summary = nearprint.run(job, "2026-11-19", create_store=np.bool_(True), threads=np.int64(1), dry_run=np.bool_(False))
    assert summary["status"] == "published"


@pytest.mark.parametrize(
    ("said", "call"),
    [
        ("add: 'today': give the date", lambda: nearprint.Deduplicator("store", "out").dedup([{"id": "a", "text": TEXT}], add="today")),
        ("add: '20261120': give the date", lambda: nearprint.Deduplicator("store", "out").dedup([{"id": "a", "text": TEXT}], add="20261120")),
        ("require_marker: a frame has no files", lambda: nearprint.dedup([TEXT], require_marker="_SUCCESS")),
        ("roots: a frame has no files", lambda: nearprint.dedup([TEXT], roots=["/"])),
    ],
)
def test_what_only_files_have_is_refused(said, call):
    with pytest.raises(ValueError, match=said):
        call()


def test_a_fingerprint_of_16_digits_is_asked_for_as_the_integer_that_it_is(tmp_path):
    chance = random.Random(1)
    texts = [" ".join(chance.choices(WORDS, k=12)) for _ in range(3000)]
    fingerprints = nearprint.fingerprint(texts).to_pylist()
    text, fingerprint = next((text, value) for text, value in zip(texts, fingerprints) if value is not None and len(str(value)) == 16)
    decided(tmp_path, [{"id": "a", "text": text}])
    job = {"documents": str(tmp_path / "crawl"), "store": str(tmp_path / "store"), "output": str(tmp_path / "results")}
    for asked in (fingerprint, np.uint64(fingerprint)):
        found = nearprint.query(job, fingerprint=asked)
        assert found["status"] == "found" and found["matches"][0]["distance"] == 0
