"""The notebook of the documentation, and what a notebook sees of a night: its progress, its log lines and its summary."""

from __future__ import annotations

import base64
import io
import json
import pathlib
import random

import nbformat
import nearprint
import numpy as np
import pytest
from matplotlib import image
from nbclient import NotebookClient

from conftest import ROOT

NOTEBOOK = ROOT / "docs/a_night.ipynb"
NIGHT = "2026-11-19"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs of Python leave a file in the working folder for as long as a call takes: not in the repository."""
    monkeypatch.chdir(tmp_path)


def checkout(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder that looks like the checkout, as far as the notebook needs it. Notebooks may write there."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "sample_data").symlink_to(ROOT / "sample_data")
    return tmp_path


def is_drawn(png: bytes) -> bool:
    """Whether a plot has more than its axes and texts: colours, on at least a hundredth of it."""
    pixels = image.imread(io.BytesIO(png))[..., :3].reshape(-1, 3)
    is_coloured = np.ptp(pixels, axis=1) > 0.3
    return len(np.unique(pixels, axis=0)) > 20 and bool(is_coloured.mean() > 0.01)


def long_night(folder: pathlib.Path) -> nearprint.Job:
    """A job whose night takes long enough to be looked at several times."""
    chance = random.Random(1)
    words = [f"word{n}" for n in range(5000)]
    night = folder / f"crawl/dt={NIGHT}"
    night.mkdir(parents=True)
    rows = ({"id": f"d{n}", "text": " ".join(chance.choices(words, k=400))} for n in range(4000))
    (night / "pages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    places = {"documents": folder / "crawl", "store": folder / "store", "output": folder / "results"}
    return nearprint.Job(places, create_store=True, resources={"threads": 1})


def test_the_notebook_is_stored_without_outputs():
    notebook = json.loads(NOTEBOOK.read_text())
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert code and all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"


@pytest.mark.parametrize("folder", [".", "docs"])
def test_the_notebook_of_a_night_runs_and_draws_its_plots(folder, tmp_path, monkeypatch):
    monkeypatch.delenv("MPLBACKEND", raising=False)
    for name in ["IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"]:
        monkeypatch.setenv(name, str(tmp_path / "jupyter"))
    place = checkout(tmp_path) / folder
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(place)}}).execute()

    cells = {cell["id"]: cell for cell in notebook.cells if cell.cell_type == "code"}
    assert [cell.execution_count for cell in cells.values()] == list(range(1, len(cells) + 1))
    shown = {name: [output["data"] for output in cell.outputs if "data" in output] for name, cell in cells.items()}
    for name in ["run", "report"]:
        assert "<table>" in shown[name][-1]["text/html"] and "147" in shown[name][-1]["text/html"], name
    plots = {name: [base64.b64decode(data["image/png"]) for data in outputs if "image/png" in data] for name, outputs in shown.items()}
    assert sum(len(pngs) for pngs in plots.values()) >= 5
    assert [name for name, pngs in plots.items() if not all(map(is_drawn, pngs))] == []
    assert {path.name for path in tmp_path.iterdir()} <= {"docs", "jupyter", "sample_data"} and not list((tmp_path / "docs").iterdir())


def test_a_callback_sees_the_steps_of_a_night_in_their_order(tmp_path):
    seen: list[nearprint.Progress] = []
    job = long_night(tmp_path)
    summary = nearprint.run(job, NIGHT, progress=seen.append)
    assert summary["status"] == "published"
    steps = [now.step for now in seen]
    assert len(seen) > 1 and steps == sorted(steps) and 1 <= steps[0] and steps[-1] <= seen[-1].n_steps
    assert all(now.stage and now.unit and 0 <= now.done <= (now.total or now.done) for now in seen)

    seen.clear()
    again = nearprint.run(job, NIGHT, progress=seen.append)
    assert again["status"] == "already_published" and seen == [], "a night that does nothing has no step"


def test_an_exception_of_a_callback_ends_the_night_and_nothing_is_published(tmp_path):
    job = long_night(tmp_path)

    def refuse(now: nearprint.Progress) -> None:
        raise LookupError(f"enough of {now.stage}")

    with pytest.raises(LookupError, match="enough of"):
        nearprint.run(job, NIGHT, progress=refuse)
    assert not list((tmp_path / "results").rglob("*.parquet"))
    assert nearprint.run(job, NIGHT)["status"] == "published"


@pytest.mark.parametrize("raised", [LookupError, KeyboardInterrupt, SystemExit])
def test_an_exception_of_the_last_call_is_raised_though_the_night_has_ended(job, tmp_path, raised):
    def refuse(now: nearprint.Progress) -> None:
        if now.stage == "commit":
            raise raised("enough")

    with pytest.raises(raised, match="enough"):
        nearprint.run(job, NIGHT, create_store=True, progress=refuse)
    # The last call may come before the commit or after it.
    assert nearprint.run(job, NIGHT, create_store=True)["status"] in ("published", "already_published")


CTRL_C = """
import os, signal
class CtrlC(logging.Handler):
    def emit(self, record):
        seen.append(record)
        if len(seen) == at:
            os.kill(os.getpid(), signal.SIGINT)
logging.getLogger("nearprint").addHandler(CtrlC())
seen, at = [], 0
nearprint.dedup(["one", "two"])
n_lines = len(seen)
for at in range(1, n_lines + 1):
    seen = []
    try:
        nearprint.dedup(["one", "two"])
    except KeyboardInterrupt:
        print("interrupted", len(seen) >= at)
print("of", n_lines)
"""


def test_ctrl_c_while_a_log_line_is_written_is_never_lost(logged):
    lines = [line for line in logged(CTRL_C) if not line.startswith("nearprint ")]
    assert len(lines) > 3 and lines == ["interrupted True"] * (len(lines) - 1) + [f"of {len(lines) - 1}"], lines


def test_log_lines_of_a_night_reach_the_logger(job, logged):
    lines = logged("nearprint.run(sys.argv[1], sys.argv[2], create_store=True)", job, NIGHT)
    for stage in ("fingerprint", "publish"):
        assert any(line.startswith(f"nearprint INFO {stage} ") for line in lines), lines


def test_a_job_of_python_gives_a_summary_that_shows_its_counts(tmp_path):
    job = nearprint.Job(documents=ROOT / "sample_data/documents", store=tmp_path / "store", output=tmp_path / "results")
    summary = nearprint.run(job, NIGHT, create_store=True)
    assert isinstance(summary, nearprint.Summary) and isinstance(summary, dict)
    shown = summary._repr_html_()
    assert f"run {NIGHT} published" in shown
    for name, key in [("documents", "n_documents"), ("keep", "n_keep"), ("drop", "n_drop"), ("pairs", "n_pairs")]:
        assert f">{name}</th><td style='text-align:right'>{summary[key]:,}</td>" in shown, name
