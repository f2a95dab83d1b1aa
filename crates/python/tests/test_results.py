"""The queries of docs/results.md, run by the engines that they are for."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
from datetime import date

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from conftest import ROOT

NIGHTS = ["2026-11-19", "2026-11-20"]
# Has the canonical document of a dropped one with another text, so that the dropped one is decided anew.
LAST = "2026-11-21"
PAGE = (ROOT / "docs/results.md").read_text()


def queries(engine: str) -> str:
    """The first block of code after an engine's name."""
    return re.search(rf"\*\*{engine}\*\*.*?```\w+\n(.*?)```", PAGE, re.DOTALL)[1]


def queries_after(word: str) -> str:
    """The block of code that begins with a comment."""
    return re.search(rf"```sql\n(-- {word}:.*?)```", PAGE, re.DOTALL)[1]


def statements(sql: str) -> list[str]:
    return [statement for statement in sql.split(";") if statement.strip()]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, command) -> pathlib.Path:
    """A folder with the documents and results of two nights, the names that the page uses, and the survivors of filter."""
    place = tmp_path_factory.mktemp("results")
    shutil.copytree(ROOT / "sample_data/documents", place / "crawl")
    (place / "job.toml").write_text('documents = "crawl"\nstore = "store"\noutput = "results"\ncreate_store = true\n')
    for dt in NIGHTS:
        done = command("run", "--config", "job.toml", "--dt", dt, "--no-breakers", cwd=place)
        assert done.returncode == 0, done.stderr
    dropped = ds.dataset(place / f"results/decisions/dt={NIGHTS[1]}").to_table(filter=ds.field("decision") == "drop").to_pylist()
    moved = {"id": [dropped[0]["canonical_id"]], "text": ["This page has moved to another place, and says nothing of what it said before."]}
    (place / f"crawl/dt={LAST}").mkdir()
    pq.write_table(pa.table(moved), place / f"crawl/dt={LAST}/part-00000.parquet")
    done = command("run", "--config", "job.toml", "--dt", LAST, "--no-breakers", cwd=place)
    assert done.returncode == 0, done.stderr
    for what in (["--dt", NIGHTS[0], "--to", NIGHTS[1], "--output", "survivors"], ["--corpus", "--output", "corpus"]):
        done = command("filter", "--config", "job.toml", *what, cwd=place)
        assert done.returncode == 0, done.stderr
    return place


def survivors(place: pathlib.Path) -> list[str]:
    """The documents of the second night that stay, by filter."""
    return sorted(ds.dataset(place / f"survivors/dt={NIGHTS[1]}").to_table()["id"].to_pylist())


def corpus(place: pathlib.Path) -> list[tuple[str, str]]:
    """The documents of all nights that stay: of each id its newest state, if the newest decision about that is to keep it."""
    newest, again = {}, {}
    for dt in [*NIGHTS, LAST]:
        for row in ds.dataset(place / f"results/decisions/dt={dt}").to_table().to_pylist():
            newest[row["doc_id"]] = (dt, row["decision"])
        for row in ds.dataset(place / f"results/redecided/dt={dt}").to_table().to_pylist():
            again[row["doc_id"], str(row["of_dt"])] = row["decision"]
    assert "keep" in again.values()
    return sorted((doc_id, dt) for doc_id, (dt, decision) in newest.items() if again.get((doc_id, dt), decision) == "keep")


def test_filter_writes_the_corpus(place):
    rows = [(id, dt) for dt in [*NIGHTS, LAST] for id in ds.dataset(place / f"corpus/dt={dt}").to_table()["id"].to_pylist()]
    assert sorted(rows) == corpus(place)


def test_polars_reads_the_documents_that_stay(place, monkeypatch):
    monkeypatch.chdir(place)
    found: dict = {}
    exec(queries("Polars"), found)
    assert sorted(found["documents"].collect()["id"].to_list()) == survivors(place)
    rows = found["corpus"].collect().with_columns(pl.col("dt").cast(pl.String)).rows()
    assert sorted(rows) == corpus(place)


def test_duckdb_reads_the_documents_that_stay(place, monkeypatch):
    monkeypatch.chdir(place)
    # Its extension for Delta tables has to be fetched. Nothing was replaced here, so that a glob counts the same.
    sql = re.sub(r"delta_scan\('([^']*)'\)", r"read_parquet('\1/*/*.parquet', hive_partitioning = true)", queries("DuckDB"))
    night, newest = statements(sql)
    assert sorted(doc_id for (doc_id,) in duckdb.sql(night).select("id").fetchall()) == survivors(place)
    assert sorted((doc_id, str(dt)) for doc_id, dt in duckdb.sql(newest).fetchall()) == corpus(place)


def test_duckdb_reads_the_documents_that_a_consumer_appends(place, monkeypatch):
    monkeypatch.chdir(place)
    (sql,) = statements(re.sub(r"delta_scan\('([^']*)'\)", r"read_parquet('\1/*/*.parquet', hive_partitioning = true)", queries("append")))
    rows = ds.dataset(place / f"results/decisions/dt={NIGHTS[1]}").to_table().to_pylist()
    appended = sorted(row["doc_id"] for row in rows if row["decision"] == "keep" and row["recrawl"] != "same")
    assert sorted(doc_id for (doc_id,) in duckdb.sql(sql).fetchall()) == appended
    assert {row["recrawl"] for row in rows} == {"new", "same", "changed"}


def test_who_follows_changes_has_the_corpus(place, monkeypatch):
    monkeypatch.chdir(place)
    (sql,) = statements(re.sub(r"delta_scan\('([^']*)'\)", r"read_parquet('\1/*/*.parquet', hive_partitioning = true)", queries_after("follow")))
    followed: dict[str, str] = {}
    for taken in range(3):
        rows = duckdb.sql(sql.replace("change_set > 7", f"change_set = {taken + 1}")).fetchall()
        for doc_id, decision, dt, _ in rows:
            followed.pop(doc_id, None)
            if decision == "keep":
                followed[doc_id] = str(dt)
    assert sorted(followed.items()) == corpus(place)
    assert len(duckdb.sql(sql.replace("change_set > 7", "change_set > 0")).fetchall()) >= len(followed)


def words(first: int, last: int) -> str:
    return " ".join(f"word{number}" for number in range(first, last))


@pytest.fixture
def night(command, tmp_path, monkeypatch):
    """Makes nights of documents, in the current folder, which has the names of the page."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.toml").write_text('documents = "crawl"\nstore = "store"\noutput = "results"\ncreate_store = true\n')

    def made(dt: str, texts: dict[str, str], *flags: str) -> None:
        folder = tmp_path / f"crawl/dt={dt}"
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": list(texts), "text": list(texts.values())}), folder / "part-00000.parquet")
        done = command("run", "--config", "job.toml", "--dt", dt, "--no-breakers", *flags, cwd=tmp_path)
        assert done.returncode == 0, done.stderr

    return made


def table(name: str) -> str:
    """The files of a table of results that count, for DuckDB."""
    files = DeltaTable(f"results/{name}").file_uris()
    return f"read_parquet({files}, hive_partitioning = true)" if files else "(SELECT NULL AS earlier_id, NULL AS new_id, NULL AS dt WHERE false)"


def asked(sql: str) -> list[tuple[str, str]]:
    rows = duckdb.sql(re.sub(r"delta_scan\('results/([^']*)'\)", lambda found: table(found[1]), sql)).fetchall()
    return sorted((row[0], str(row[-1])) for row in rows)


def test_who_begins_to_follow_later_takes_texts_from_nights_that_have_them(night):
    night("2026-11-17", {"other": words(500, 560)})
    night("2026-11-18", {"changed": words(0, 60), "gone": words(100, 160)})
    night("2026-11-19", {"changed": words(0, 60), "gone": words(100, 160)})
    night("2026-11-18", {"changed": words(200, 260)}, "--replace")
    (sql,) = statements(queries_after("follow"))
    sql = f"SELECT doc_id, dt FROM ({sql.replace('change_set > 7', 'change_set > 0')}) WHERE decision = 'keep'"
    assert asked(sql) == [("changed", "2026-11-19"), ("gone", "2026-11-19"), ("other", "2026-11-17")]


def test_a_document_that_a_fuller_page_replaced_counts_again_when_it_says_something_else(night):
    night("2026-11-17", {"page": words(0, 100), "stays": words(300, 400)})
    night("2026-11-18", {"fuller": words(0, 125)})
    corpus = statements(queries("DuckDB"))[1].replace("-- The documents of the whole corpus", "-- corpus:")
    (fuller,) = statements(queries_after("fuller"))
    sql = f"WITH corpus AS ({corpus}\n) {fuller}"
    assert asked(sql) == [("fuller", "2026-11-18"), ("stays", "2026-11-17")]
    night("2026-11-19", {"page": words(600, 700)})
    assert asked(sql) == [("fuller", "2026-11-18"), ("page", "2026-11-19"), ("stays", "2026-11-17")]


def families(place: pathlib.Path) -> list[tuple]:
    """The families by their definition: sightings, documents, hosts, first and last night."""
    seen: dict[str, list[dict]] = {}
    for dt in [*NIGHTS, LAST]:
        for row in ds.dataset(place / f"results/decisions/dt={dt}").to_table().to_pylist():
            if row["family_id"] is not None:
                seen.setdefault(row["family_id"], []).append({**row, "dt": dt})
    of = lambda id: id.split("://")[1].split("/")[0] if "://" in id else ""  # noqa: E731
    return sorted(
        (name, len(rows), len({r["doc_id"] for r in rows}), len({of(r["doc_id"]) for r in rows}), str(min(r["first_seen"] for r in rows)), max(r["dt"] for r in rows))
        for name, rows in seen.items()
    )


def test_duckdb_and_polars_count_families(place, monkeypatch):
    monkeypatch.chdir(place)
    expected = families(place)
    assert any(times > 1 for _, times, *_ in expected)
    (sql,) = statements(re.sub(r"delta_scan\('([^']*)'\)", r"read_parquet('\1/*/*.parquet', hive_partitioning = true)", queries("Families in DuckDB")))
    assert sorted((*row[:4], str(row[4]), str(row[5])) for row in duckdb.sql(sql).fetchall()) == expected
    found: dict = {}
    exec(queries("Families in Polars"), found)
    rows = found["families"].collect().select("family_id", "times_seen", "n_documents", "n_sources", "first_seen", "last_seen").rows()
    assert sorted((*row[:4], str(row[4]), str(row[5])) for row in rows) == expected


def test_tables_that_release_0_2_0_began_are_read_as_one(command, tmp_path):
    shutil.copytree(ROOT / "crates/cli/tests/data/store-v2", tmp_path, dirs_exist_ok=True)
    folder = tmp_path / "documents/dt=2026-11-20"
    folder.mkdir()
    (folder / "pages.jsonl").write_text('{"id": "s", "text": "short"}\n{"id": "x", "text": "short too"}\n')
    done = command("run", "--config", "job.toml", "--dt", "2026-11-20", "--no-breakers", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = pl.read_delta(str(tmp_path / "results/decisions")).sort("dt", "doc_id")
    assert rows.schema["first_seen"] == rows.schema["last_changed"] == pl.Date
    earlier = rows.filter(pl.col("dt") < date(2026, 11, 20))
    assert len(earlier) == 8 and earlier["recrawl"].null_count() == earlier["first_seen"].null_count() == 8
    first, tonight = date(2026, 11, 17), date(2026, 11, 20)
    assert rows.filter(pl.col("dt") == tonight).select("doc_id", "recrawl", "first_seen", "last_changed").rows() == [
        ("s", "same", first, first),
        ("x", "new", tonight, tonight),
    ]
    # The log has bounds of dates, by which engines pass over files.
    assert pl.scan_delta(str(tmp_path / "results/decisions")).filter(pl.col("first_seen") == first).collect()["doc_id"].to_list() == ["s"]


def test_spark_reads_the_documents_that_stay(place, monkeypatch):
    sql = pytest.importorskip("pyspark.sql")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    monkeypatch.setitem(os.environ, "SPARK_LOCAL_IP", "127.0.0.1")
    session = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    # Its package for Delta tables has to be fetched. Nothing was replaced here, so that the folder counts the same.
    text = queries("Spark").replace("delta.`", "parquet.`").replace("`crawl", f"`{place}/crawl").replace("`results", f"`{place}/results")
    night, newest = statements(text)
    try:
        assert sorted(row["id"] for row in session.sql(night).collect()) == survivors(place)
        assert sorted((row["doc_id"], str(row["dt"])) for row in session.sql(newest).collect()) == corpus(place)
        (sql,) = statements(queries("Families in Spark").replace("delta.`results", f"parquet.`{place}/results"))
        rows = [tuple(row) for row in session.sql(sql).collect()]
        assert sorted((*row[:4], str(row[4]), str(row[5])) for row in rows) == families(place)
    finally:
        session.stop()
