"""Nights on a Spark Connect server, whose clients have no Spark context."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from spark_nights import FEW_AT_ONCE, SAMPLE, cluster_module, damaged_crawl, options, published

from conftest import ROOT

pytest.importorskip("grpc_status")


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with cluster_module.Cluster(tmp_path_factory.mktemp("connect")) as cluster:
        yield cluster.start_server(conf=FEW_AT_ONCE)


def begun(address, *arguments, settings=""):
    """A night of a client, which has the limits of these settings."""
    program = f"import sys\nimport nearprint.spark\nfrom nearprint import _sessions as sessions\n{settings}\nsys.exit(nearprint.spark.main())"
    environment = {**os.environ, "SPARK_REMOTE": address}
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)


def night(address, *arguments, settings=""):
    process = begun(address, *arguments, settings=settings)
    out, err = process.communicate(timeout=300)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def test_three_nights_are_the_same_bytes_as_on_one_machine(tmp_path, address, command):
    """The third is the second in place of itself, of which a few documents are fetched at once."""
    small = "sessions.PIECE_BYTES, sessions.FETCHED_WORKERS, nearprint.spark.PIECE_BYTES = 2048, (1, 1), 512"
    for dt, settings, more in [("2026-11-19", "", []), ("2026-11-20", "", []), ("2026-11-20", small, ["--replace", "--pairs", "all"])]:
        here = command("run", *SAMPLE, "--dt", dt, *more, *options(tmp_path, "here"), cwd=ROOT)
        assert here.returncode == 0, here.stderr
        there = night(address, *SAMPLE, "--dt", dt, *more, *options(tmp_path, "there"), settings=settings)
        assert there.returncode == 0, there.stdout + there.stderr
        here, there = (json.loads(done.stdout.splitlines()[-1]) for done in (here, there))
        same = ["status", "n_documents", "n_keep", "n_drop", "n_pairs", "judge"]
        assert [here[name] for name in same] == [there[name] for name in same]
    assert published(tmp_path / "here") == published(tmp_path / "there") != {}


def test_errors_of_workers_are_those_of_the_command(tmp_path, address):
    there = ["--dt", "2026-11-19", "--documents", damaged_crawl(tmp_path), *options(tmp_path, "there")]
    done = night(address, *SAMPLE, *there)
    assert done.returncode == 65, done.stdout + done.stderr
    assert "damaged.parquet" in done.stdout.splitlines()[-1] and published(tmp_path / "there") == {}


@pytest.mark.parametrize("sent, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_client_that_is_stopped_leaves_nothing_and_the_workers_are_free(tmp_path, address, sent, code):
    process = begun(address, *SAMPLE, "--dt", "2026-11-19", *options(tmp_path, "there"))
    for line in process.stderr:
        if "fingerprint" in line:
            break
    time.sleep(0.5)
    process.send_signal(sent)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert published(tmp_path / "there") == {}
    done = night(address, *SAMPLE, "--dt", "2026-11-19", *options(tmp_path, "there"))
    assert done.returncode == 0, done.stderr


SENDING = """
import time
import nearprint.spark
from pyspark.sql.connect.session import SparkSession

def sent(self, *path, **kinds):
    print("sending", file=sys.stderr, flush=True)
    time.sleep(600)

SparkSession.addArtifacts, nearprint.spark.LEAVE_SECONDS = sent, 1
"""


def test_a_client_that_is_stopped_while_it_sends_a_file_leaves_no_folder(tmp_path, address, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    process = begun(address, *SAMPLE, "--dt", "2026-11-19", *options(tmp_path, "there"), settings=SENDING)
    for line in process.stderr:
        if "sending" in line:
            break
    assert list(tmp_path.glob("nearprint-*/nearprint-*"))
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 143, err
    assert list(tmp_path.glob("nearprint-*")) == []


def test_a_client_whose_server_dies_ends_when_it_is_stopped(tmp_path):
    with cluster_module.Cluster(tmp_path / "cluster") as cluster:
        process = begun(cluster.start_server(), *SAMPLE, "--dt", "2026-11-19", *options(tmp_path, "there"))
        for line in process.stderr:
            if "fingerprint" in line:
                break
        os.killpg(cluster.server.pid, signal.SIGKILL)
        time.sleep(1)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 143, err
    assert published(tmp_path / "there") == {}


def test_a_cluster_of_which_no_worker_takes_a_task_is_given_up_after_warnings(tmp_path):
    with cluster_module.Cluster(tmp_path / "empty", n_workers=0) as empty:
        there = ["--dt", "2026-11-19", *options(tmp_path, "there")]
        done = night(empty.start_server(), *SAMPLE, *there, settings="sessions.IDLE_SECONDS, sessions.GIVE_UP_SECONDS = 1, 4")
    assert done.returncode == 75, done.stderr
    assert "no worker of the cluster has taken a task for 1 seconds" in done.stderr
    assert "no worker of the cluster took a task within" in done.stderr and published(tmp_path / "there") == {}


def test_a_server_that_is_not_there_is_an_error_of_the_night(tmp_path):
    there = ["--dt", "2026-11-19", *options(tmp_path, "there")]
    done = night("sc://127.0.0.1:1/;token=secret", *SAMPLE, *there, settings="sessions.SERVER_SECONDS = 2")
    assert done.returncode == 75, done.stderr
    assert "the Spark Connect server at 127.0.0.1:1 has not answered for 2 seconds" in done.stderr and "secret" not in done.stderr


def test_fetches_have_all_shares_in_their_order_and_keep_the_limit():
    from nearprint._sessions import fetches_of

    weights = [number * 37 % 101 for number in range(200)]
    for most in (1, 60, 100, 5000, 100_000):
        fetches = fetches_of(weights, most)
        assert [at for begin, end in fetches for at in range(begin, end)] == list(range(200))
        assert all(end == begin + 1 or sum(weights[begin:end]) <= most for begin, end in fetches)
    assert fetches_of([], 5) == []
