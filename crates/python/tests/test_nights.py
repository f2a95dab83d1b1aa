"""Nights, the command, exceptions and Ctrl-C."""

import json
import pickle
import signal
import subprocess
import sys
import threading
import time

import nearprint
import pyarrow.parquet as pq
import pytest

from conftest import ROOT

NIGHTS = ["2026-11-19", "2026-11-20"]


def data_files(folder):
    """The published rows, by name and content. Manifests, which name input files, are left out."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.parquet")}


def test_nights_are_those_of_the_command_byte_for_byte(command, job, tmp_path):
    summaries = [nearprint.run(job, night, create_store=True, threads=2) for night in NIGHTS]
    mine = data_files(tmp_path / "results")
    other = ["--store", tmp_path / "store2", "--output", tmp_path / "results2", "--create-store", "--json"]
    for night, summary in zip(NIGHTS, summaries):
        done = command("run", "--config", job, "--dt", night, *other)
        assert done.returncode == 0, done.stderr
        known = json.loads(done.stdout.splitlines()[-1])
        for varies in ["elapsed_ms", "peak_rss_bytes", "stage_ms", "next", "output"]:
            assert type(known.pop(varies)) is type(summary.pop(varies))
        assert summary == known
    theirs = data_files(tmp_path / "results2")
    assert len(mine) >= 6
    assert mine == theirs
    again = nearprint.run(str(job), NIGHTS[1])
    assert again["status"] == "already_published"


def test_relative_paths_of_a_job_begin_at_its_folder_and_those_of_a_call_at_the_current_one(tmp_path, monkeypatch):
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "documents").symlink_to(ROOT / "sample_data/documents")
    (conf / "job.toml").write_text('documents = "documents"\nstore = "store"\noutput = "results"\n')
    monkeypatch.chdir(tmp_path)
    assert nearprint.run("conf/job.toml", NIGHTS[0], create_store=True)["status"] == "published"
    assert (conf / "results").is_dir() and not (tmp_path / "results").exists()
    assert nearprint.run("conf/job.toml", NIGHTS[0], create_store=True, store="st", output="out")["status"] == "published"
    assert (tmp_path / "st").is_dir() and not (conf / "st").exists()
    monkeypatch.chdir("/")
    assert nearprint.run(conf / "job.toml", NIGHTS[0])["status"] == "already_published"


def test_keys_are_a_job_in_a_folder_that_cannot_be_written_to(tmp_path, monkeypatch):
    places = {"documents": ROOT / "sample_data/documents", "store": tmp_path / "store", "output": tmp_path / "results"}
    job = nearprint.Job(places, create_store=True, watch={"report": str(tmp_path / "{dt}.html")})
    monkeypatch.chdir("/proc")
    assert nearprint.run(job, NIGHTS[0])["status"] == "published"
    assert nearprint.report(job)["dt"] == NIGHTS[0] and (tmp_path / f"{NIGHTS[0]}.html").exists()


def test_keys_are_the_job_of_a_file_in_the_working_folder_and_make_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "documents").symlink_to(ROOT / "sample_data/documents")
    seen = []
    job = {"documents": "documents", "store": "store", "output": "results"}
    nearprint.run(job, NIGHTS[0], create_store=True, progress=lambda _: seen.extend(path.name for path in tmp_path.iterdir()))
    assert {"documents", "store"} <= set(seen) <= {"documents", "store", "results"}
    (tmp_path / "job.toml").write_text(str(nearprint.Job(job)))
    assert nearprint.run("job.toml", NIGHTS[0])["status"] == "already_published"
    assert nearprint.report(job)["dt"] == nearprint.report("job.toml")["dt"] == NIGHTS[0]


def test_four_nights_at_once_publish_what_one_publishes(job, tmp_path):
    results = [None] * 4

    def work(i):
        places = {"store": tmp_path / f"store{i}", "output": tmp_path / f"results{i}"}
        done = [nearprint.run(job, night, create_store=True, **places) for night in NIGHTS]
        results[i] = [{key: value for key, value in summary.items() if key.startswith("n_")} for summary in done]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [results[0]] * 4
    assert results[0][0]["n_drop"] > 10
    files = [data_files(tmp_path / f"results{i}") for i in range(4)]
    assert files == [files[0]] * 4


def test_errors_name_the_file_the_column_and_the_row(job, tmp_path):
    with pytest.raises(nearprint.Error, match="no documents at") as raised:
        nearprint.run(job, "1999-01-01", create_store=True)
    assert (raised.value.kind, raised.value.exit_code) == ("input_missing", 66)
    assert raised.value.file.endswith("dt=1999-01-01")

    crawl = tmp_path / "crawl/dt=2026-11-19"
    crawl.mkdir(parents=True)
    (crawl / "pages.jsonl").write_text('{"id": "a", "body": "text"}\n')
    with pytest.raises(nearprint.Error, match="no column 'text'") as raised:
        nearprint.run(job, NIGHTS[0], documents=tmp_path / "crawl", create_store=True)
    assert (raised.value.kind, raised.value.exit_code, raised.value.column) == ("bad_data", 65, "text")
    assert raised.value.file.endswith("pages.jsonl")

    bad = tmp_path / "bad.toml"
    bad.write_text('store = "x"\nno_such_key = 1\n')
    with pytest.raises(nearprint.Error, match="no_such_key") as raised:
        nearprint.run(bad, NIGHTS[0])
    unpickled = pickle.loads(pickle.dumps(raised.value))
    for error in [raised.value, unpickled]:
        assert (error.kind, error.exit_code, error.file, error.row) == ("config", 78, str(bad), 2)
        assert error.summary is None

    with pytest.raises(nearprint.Error, match="no_such_option|no-such-option") as raised:
        nearprint.run(job, NIGHTS[0], no_such_option=1)
    assert (raised.value.kind, raised.value.exit_code) == ("usage", 64)


def test_a_night_that_a_breaker_stops_raises_with_its_summary(job):
    with pytest.raises(nearprint.Error, match="stopped before publishing") as raised:
        nearprint.run(job, NIGHTS[0], create_store=True, max_cluster=1)
    assert raised.value.exit_code == 65
    assert raised.value.summary["status"] == "stopped"
    assert nearprint.run(job, NIGHTS[0], create_store=True, no_breakers=True, max_cluster=1)["status"] == "published"


def test_the_console_script_is_the_command_with_its_exit_codes(command, tmp_path):
    assert command("--version").stdout == f"nearprint {nearprint.__version__}\n"
    assert command("--help").returncode == 0
    assert command("run").returncode == 64
    missing = command("run", "--config", "no-such-job.toml", "--dt", NIGHTS[0], "--json", cwd=tmp_path)
    assert missing.returncode == 66
    assert missing.stderr.startswith("nearprint: error: job file no-such-job.toml")
    assert json.loads(missing.stdout)["exit_code"] == 66
    assert json.loads(command("no-such-command", "--json").stdout)["exit_code"] == 64
    module = subprocess.run([sys.executable, "-m", "nearprint", "--version"], capture_output=True, text=True)
    assert module.stdout == f"nearprint {nearprint.__version__}\n"


def many_documents(folder, copies):
    """Sample documents, again and again, under ids of their own."""
    table = pq.read_table(ROOT / "sample_data/documents/dt=2026-11-19/part-00000.parquet")
    folder.mkdir(parents=True)
    texts = table["text"].to_pylist()
    with open(folder / "pages.jsonl", "w") as pages:
        for copy in range(copies):
            for i, text in enumerate(texts):
                pages.write(json.dumps({"id": f"{copy}-{i}", "text": f"{copy} {text} {copy}"}) + "\n")


def interrupted(code, *arguments):
    """Runs a program that says when it begins, sends SIGINT, and returns its exit code, output and seconds to the end."""
    child = subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout.readline() == b"begin\n"
    time.sleep(0.7)
    assert child.poll() is None, child.stderr.read()
    began = time.monotonic()
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    return child.returncode, out, err, time.monotonic() - began


CATCH = """
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize(
    "call",
    [
        "nearprint.fingerprint(texts)",
        "nearprint.sketch(texts)",
        "nearprint.pairs_within(numbers, 24)",
        "nearprint.join(numbers, numbers, 24)",
    ],
)
def test_ctrl_c_ends_long_calls(call):
    code = f"""
import random, nearprint, pyarrow as pa
draw = random.Random(1)
texts = pa.array([" ".join(str(draw.random()) for _ in range(200)) for _ in range(2000)])
texts = pa.chunked_array([texts] * 500)
numbers = pa.array([draw.getrandbits(64) for _ in range(300_000)], pa.uint64())
try:
    print("begin", flush=True)
    {call}
""" + CATCH
    returncode, out, err, seconds = interrupted(code)
    assert (returncode, out) == (0, b"interrupted\n"), err
    assert seconds < 5


def test_ctrl_c_ends_a_night_and_the_next_one_publishes_it(job, tmp_path):
    many_documents(tmp_path / "crawl/dt=2026-11-19", copies=150)
    code = """
import sys, nearprint
try:
    print("begin", flush=True)
    nearprint.run(sys.argv[1], "2026-11-19", documents=sys.argv[2], create_store=True, threads=1)
""" + CATCH
    returncode, out, err, seconds = interrupted(code, job, tmp_path / "crawl")
    assert (returncode, out) == (0, b"interrupted\n"), err
    assert seconds < 5
    assert not list((tmp_path / "results").rglob("*.parquet"))
    assert nearprint.run(job, "2026-11-20", create_store=True)["status"] == "published"


def test_ctrl_c_ends_the_command_with_130(job, tmp_path):
    many_documents(tmp_path / "crawl/dt=2026-11-19", copies=150)
    code = """
import sys, nearprint
print("begin", flush=True)
job, crawl = sys.argv[1:]
sys.exit(nearprint.main(["run", "--config", job, "--dt", "2026-11-19", "--documents", crawl, "--create-store", "--threads", "1"]))
"""
    returncode, _, err, seconds = interrupted(code, job, tmp_path / "crawl")
    assert returncode == 130, err
    assert b"stopped by SIGINT" in err
    assert seconds < 5
