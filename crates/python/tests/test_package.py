"""The package itself: its documentation, its stubs, its size."""

import doctest
import inspect
import pathlib
import re
import subprocess
import sys

import nearprint
import nearprint.spark
import pytest
from nearprint import _error, _nearprint

from conftest import ROOT

DOCUMENTED = [nearprint, _error.Error, *(getattr(nearprint, name) for name in nearprint.__all__ if name != "__version__")]


@pytest.mark.parametrize("thing", [thing for thing in DOCUMENTED if ">>>" in (thing.__doc__ or "")])
def test_examples_in_the_documentation_give_what_they_say(thing):
    name = getattr(thing, "__qualname__", thing.__name__)
    examples = doctest.DocTestParser().get_doctest(inspect.getdoc(thing), {"nearprint": nearprint}, name, None, 0)
    assert examples.examples
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples)
    assert result.failed == 0


def test_every_public_name_is_documented_and_in_the_stubs():
    stubs = pathlib.Path(_nearprint.__file__).with_name("_nearprint.pyi").read_text()
    for name in nearprint.__all__:
        thing = getattr(nearprint, name)
        assert thing.__doc__ or name == "ArrowColumn", name
        if thing is getattr(_nearprint, name, None) and name != "__version__":
            assert f"def {name}(" in stubs or f"class {name}:" in stubs, name
    examples = {thing for thing in DOCUMENTED if ">>>" in (thing.__doc__ or "")}
    functions = [nearprint.fingerprint, nearprint.sketch, nearprint.hamming, nearprint.pairs_within, nearprint.join, nearprint.run]
    assert examples.issuperset(functions)


@pytest.mark.parametrize("options", [{"workers": 0}, {"workers": -2}, {"worker_memory": 0}])
def test_a_cluster_without_workers_or_memory_is_refused_before_spark_begins(options):
    (name, value), = options.items()
    with pytest.raises(ValueError, match=f"{name} {value}: give "):
        nearprint.spark.run("job.toml", "2026-11-20", **options)


@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_examples_on_the_pages_run(page, tmp_path):
    examples = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    assert examples
    for folder in ["sample_data", "jobs"]:
        (tmp_path / folder).symlink_to(ROOT / folder)
    for example in examples:
        done = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr


def test_the_tour_of_the_sample_data_finds_the_same_pairs_with_every_engine(tmp_path):
    for folder in ["sample_data", "jobs"]:
        (tmp_path / folder).symlink_to(ROOT / folder)
    done = subprocess.run([sys.executable, str(ROOT / "docs/python_tour.py")], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    pairs = re.findall(r"(\d+) pairs(?: in (?:Polars|DuckDB))?\b", done.stdout)
    assert len(pairs) == 3 and len(set(pairs)) == 1, done.stdout
    assert done.stdout.count("published:") == 2, done.stdout


USER = """
from typing import Any

import nearprint
import polars as pl

class Series:
    iloc = index = ["a text"]

index: list[str] = nearprint.fingerprint(Series()).index
one: int | None = nearprint.fingerprint("a text")
column: nearprint.Array = nearprint.fingerprint(pl.Series(["a text"]), profile="paper", threads=1)
wide: bytes | None = nearprint.sketch("a text")
bits: int = nearprint.hamming(1, 2)
many: nearprint.Array = nearprint.hamming(column, 1)
pairs: nearprint.Table = nearprint.pairs_within(column, 3)
joined: nearprint.Table = nearprint.join(pl.DataFrame(pairs), column, max_distance=3, max_sketch_distance=80)
summary: dict[str, Any] = nearprint.run("job.toml", "2026-11-20", create_store=True, threads=2)
code: int = nearprint.main(["--version"])
try:
    context = nearprint.FingerprintContext("{}")
    for kind, batch in nearprint.fingerprint_task(context, "{}"):
        rows: list[dict[str, Any]] = batch.to_pylist()
except nearprint.Error as error:
    place: tuple[str | None, str | None, int | None] = (error.file, error.column, error.row)
"""

WRONG = """
import nearprint

nearprint.fingerprint(3)
nearprint.pairs_within(3, 3)
"""


def mypy(tmp_path, program):
    path = tmp_path / "program.py"
    path.write_text(program)
    arguments = ["--strict", "--python-executable", sys.executable, "--cache-dir", str(tmp_path / "cache"), str(path)]
    return subprocess.run([sys.executable, "-m", "mypy", *arguments], capture_output=True, text=True, cwd=tmp_path)


def test_a_strict_type_checker_accepts_right_calls_and_refuses_wrong_ones(tmp_path):
    done = mypy(tmp_path, USER)
    assert done.returncode == 0, done.stdout + done.stderr
    assert mypy(tmp_path, WRONG).stdout.count("error:") >= 2


def test_the_package_itself_passes_the_strict_type_checker(tmp_path):
    package = pathlib.Path(nearprint.__file__).parent
    arguments = ["--strict", "--cache-dir", str(tmp_path), "-p", "nearprint"]
    done = subprocess.run([sys.executable, "-m", "mypy", *arguments], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (package / "py.typed").exists()
