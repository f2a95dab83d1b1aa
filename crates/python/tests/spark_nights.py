"""Nights on a standalone Spark cluster on loopback: a master and two workers, each a process of its own."""

import hashlib
import importlib.util
import pathlib
import shutil

import pytest

from conftest import ROOT

pytest.importorskip("pyspark")
if shutil.which("java") is None:
    pytest.skip("no Java", allow_module_level=True)

_spec = importlib.util.spec_from_file_location("cluster", ROOT / "evidence/spark/cluster.py")
cluster_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(cluster_module)

FEW_AT_ONCE = {"spark.sql.execution.arrow.maxRecordsPerBatch": "10"}
"""The pairs of a night come so slowly that the judge asks for texts before all are there."""

SAMPLE = ["--config", str(ROOT / "jobs/sample.toml"), "--json"]


def options(tmp_path, name):
    places = {"store": tmp_path / name / "store", "output": tmp_path / name / "results"}
    return [part for key, place in places.items() for part in (f"--{key}", str(place))]


def published(folder):
    """The data files of a store and its results."""
    files = sorted(pathlib.Path(folder).rglob("*.parquet"))
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def damaged_crawl(tmp_path):
    """A night with a file whose middle is zeros."""
    night = tmp_path / "crawl/dt=2026-11-19"
    night.mkdir(parents=True)
    content = bytearray((ROOT / "sample_data/documents/dt=2026-11-19/part-00000.parquet").read_bytes())
    middle = len(content) // 2
    content[middle : middle + 64] = bytes(64)
    (night / "damaged.parquet").write_bytes(content)
    return night.parent
