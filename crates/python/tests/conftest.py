"""What the tests share: the sample data, and texts."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]

TEXT = "The quick brown fox jumps over the lazy dog near the old river bank."


@pytest.fixture(scope="session")
def documents() -> pa.Table:
    """The documents of the first sample night."""
    return pq.read_table(ROOT / "sample_data/documents/dt=2026-11-19/part-00000.parquet")


@pytest.fixture(scope="session")
def command() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the console script that the wheel installed."""
    script = pathlib.Path(sys.executable).with_name("nearprint")

    def run(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
        arguments = [str(script), *map(str, arguments)]
        return subprocess.run(arguments, capture_output=True, text=True, timeout=300, **options)

    return run


LOGGED = """
import logging, sys, nearprint
logging.basicConfig(level=logging.INFO, format="%(name)s %(levelname)s %(message)s", stream=sys.stdout)
"""


@pytest.fixture
def logged(tmp_path: pathlib.Path) -> Callable[..., list[str]]:
    """Runs a program and gives what its logger got: "nearprint INFO ...". In a process of its own, since a command that ran before in the
    same process has taken all lines for its log."""

    def run(program: str, *arguments: object) -> list[str]:
        command = [sys.executable, "-c", LOGGED + program, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return run


@pytest.fixture
def job(tmp_path: pathlib.Path) -> pathlib.Path:
    """A job on the sample data, with a store and an output of its own."""
    places = {"documents": ROOT / "sample_data/documents", "store": tmp_path / "store", "output": tmp_path / "results"}
    path = tmp_path / "job.toml"
    path.write_text("".join(f'{key} = "{place}"\n' for key, place in places.items()))
    return path
