"""Nights on a Spark cluster whose driver is the program itself."""

import json
import pathlib
import pickle
import subprocess
from random import Random

import nearprint.spark
import pytest
from nearprint._sessions import read_once
from spark_nights import FEW_AT_ONCE, SAMPLE, cluster_module, damaged_crawl, options, published

from conftest import ROOT


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with cluster_module.Cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


def test_nights_are_the_same_bytes_as_on_one_machine(tmp_path, cluster, command):
    for dt in ["2026-11-19", "2026-11-20"]:
        here = command("run", *SAMPLE, "--dt", dt, *options(tmp_path, "here"), cwd=ROOT)
        assert here.returncode == 0, here.stderr
        there = cluster.submit(*SAMPLE, "--dt", dt, *options(tmp_path, "there"))
        assert there.returncode == 0, there.stdout
        here, there = (json.loads(done.stdout.splitlines()[-1]) for done in (here, there))
        assert there["judge"]["n_read"] > 0 and "texts to judge" in there["stage_ms"]
        same = ["status", "n_documents", "n_keep", "n_drop", "n_pairs", "judge"]
        assert [here[name] for name in same] == [there[name] for name in same]
    assert published(tmp_path / "here") == published(tmp_path / "there")
    again = cluster.submit(*SAMPLE, "--dt", "2026-11-19", *options(tmp_path, "there"))
    assert json.loads(again.stdout.splitlines()[-1])["status"] == "already_published"


def test_errors_of_workers_are_those_of_the_command(tmp_path, cluster):
    night = ["--dt", "2026-11-19", "--documents", str(damaged_crawl(tmp_path))]
    done = cluster.submit(*SAMPLE, *night, *options(tmp_path, "there"))
    assert done.returncode == 65, done.stdout
    assert "damaged.parquet" in done.stdout.splitlines()[-1]
    assert published(tmp_path / "there") == {}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (["--worker-memory", "much"], "--worker-memory much: give a number"),
        (["--worker-memory", "1GiB", "--worker-memory=2GiB"], "'--worker-memory' cannot be used multiple times"),
        (["--workers", "0"], "--workers 0: give a number"),
        (["--workers"], "--workers: give a number"),
        (["--workers", str(1 << 63)], f"--workers {1 << 63}: give a number"),
    ],
)
def test_wrong_arguments_are_refused_before_spark_begins_with_the_summary_of_a_failure(tmp_path, capfd, wrong, said):
    kept = tmp_path / "summary.json"
    kept.write_text('{"schema_version": 1, "command": "run", "status": "published"}\n')
    night = ["--config", "job.toml", "--dt", "2026-11-19", "--json", f"--summary-file={kept}"]
    assert nearprint.spark.main([*night, *wrong]) == 64
    told = capfd.readouterr()
    assert kept.read_text() == told.out
    assert told.err.startswith("nearprint: error: ") and said in told.err
    summary = json.loads(told.out.splitlines()[-1])
    assert nearprint.spark.main([*night, "--threads", "0"]) == 64
    known = json.loads(capfd.readouterr().out)
    assert said in summary.pop("error") and known.pop("error")
    assert summary == known


@pytest.mark.parametrize("number", [0, 1 << 63, 2.0, "2"])
@pytest.mark.parametrize("name", ["workers", "worker_memory"])
def test_an_argument_that_is_no_number_of_workers_or_bytes_is_named(name, number):
    with pytest.raises(TypeError if isinstance(number, (float, str)) else ValueError, match=f"^{name}"):
        nearprint.spark.run("job.toml", "2026-11-19", **{name: number})


def test_shares_have_about_the_same_bytes_and_all_tasks_in_their_order():
    from nearprint.spark import shared

    tasks = [(str(number), number * 37 % 101) for number in range(200)]
    for n in (1, 3, 8, 200, 1000):
        shares = shared(tasks, n)
        assert len(shares) <= n
        assert [task for share in shares for task in share] == list(enumerate(str(number) for number in range(200)))
        weights = [sum(tasks[number][1] for number, _ in share) for share in shares]
        assert max(weights) <= sum(weights) / n + 2 * 101
    assert shared([], 4) == []


def test_an_error_that_spark_passes_on_is_read_again():
    from nearprint._spark_errors import MARK
    from nearprint._spark_errors import told as read

    told = {"message": 'a "file": {x}', "kind": "bad_data", "exit_code": 65, "file": "f", "column": None, "row": 7}
    error = read(RuntimeError(f"Traceback ...\n RuntimeError: {MARK}{json.dumps(told)}\n\tat org.apache"))
    assert (str(error), error.exit_code, error.file, error.row) == (told["message"], 65, "f", 7)
    cut = read(RuntimeError(f"Traceback ...\n RuntimeError: {MARK}{json.dumps(told)[:20]}"))
    assert isinstance(cut, nearprint.Error) and cut.exit_code == 75
    lost = read(RuntimeError("Job aborted due to stage failure: ExecutorLostFailure"))
    assert isinstance(lost, nearprint.Error) and lost.exit_code == 75


def test_what_an_installation_lacks_is_no_reason_to_try_again():
    from nearprint._spark_errors import not_started, told

    pandas = RuntimeError("[PACKAGE_NOT_INSTALLED] Pandas >= 2.2.0 must be installed; however, it was not found.")
    pyspark = ModuleNotFoundError("No module named 'pyspark'")
    for error in (told(pandas), not_started(pyspark)):
        assert (error.kind, error.exit_code) == ("config", 78) and "install it" in str(error)


def test_a_reason_of_spark_is_whole_and_names_what_helps():
    from nearprint._spark_errors import told as read

    stack = "".join(f"\tat org.apache.spark.Frame{n}(Frame.scala:{n})\n" for n in range(100))
    failed = f"An error occurred while calling o5.x.\n: Job aborted.\n{stack}Caused by: java.io.IOException: No space left on device\n{stack}"
    told = str(read(RuntimeError(failed)))
    assert "No space left on device" in told and "excludeOnFailure" in told and "Frame1" not in told
    too_large = "Total size of serialized results of 3 tasks (1 GiB) is bigger than spark.driver.maxResultSize 1024.0 MiB."
    assert "raise spark.driver.maxResultSize" in str(read(RuntimeError(too_large)))
    python = 'Traceback (most recent call last):\n  File "x.py", line 1\nMemoryError: no room\n'
    assert "MemoryError: no room" in str(read(RuntimeError(f"Job aborted.\n{python}{stack}")))


def test_spark_does_not_start_for_a_job_that_is_refused_and_help_has_its_options(capfd, monkeypatch):
    import pyspark.sql

    def refused(self):
        raise AssertionError("Spark starts")

    monkeypatch.setattr(pyspark.sql.SparkSession.Builder, "getOrCreate", refused)
    assert nearprint.spark.main(["--config", "no-such-job.toml", "--dt", "2026-11-19"]) == 66
    assert "no-such-job.toml" in capfd.readouterr().err
    assert nearprint.spark.main(["--help"]) == 0
    assert "--workers" in capfd.readouterr().out


def test_spark_that_does_not_start_is_an_error_of_the_night(tmp_path, monkeypatch):
    import pyspark.sql

    def refused(self):
        raise RuntimeError("no master at spark://nowhere")

    monkeypatch.setattr(pyspark.sql.SparkSession.Builder, "getOrCreate", refused)
    places = {"store": str(tmp_path / "store"), "output": str(tmp_path / "results"), "documents": str(ROOT / "sample_data/documents")}
    with pytest.raises(nearprint.Error, match="Spark does not start: no master at spark://nowhere") as raised:
        nearprint.spark.run({**places, "create_store": True}, "2026-11-19")
    assert raised.value.exit_code == 75


def submitted(cluster, folder, settings, *arguments, **conf):
    """A night whose driver has other limits."""
    program = f"import sys\nimport nearprint.spark as spark\nfrom nearprint import _sessions as sessions\n{settings}\nsys.exit(spark.main())\n"
    return driven(cluster, folder, program, *arguments, conf=conf)


def driven(cluster, folder, program, *arguments, conf=None):
    (folder / "driver.py").write_text(program)
    command = cluster.command(*arguments, conf=conf, job=folder / "driver.py")
    return subprocess.run(command, env=cluster.environment, capture_output=True, text=True, timeout=300, cwd=ROOT)


def test_a_night_in_many_pieces_has_the_same_bytes(tmp_path, cluster, command):
    job = ["--config", str(ROOT / "jobs/sample.toml"), "--dt", "2026-11-19"]
    here = command("run", *job, *options(tmp_path, "here"), cwd=ROOT)
    assert here.returncode == 0, here.stderr
    small = "sessions.PIECE_BYTES, spark.PIECE_BYTES = 2048, 512"
    there = submitted(cluster, tmp_path, small, *job, *options(tmp_path, "there"), **FEW_AT_ONCE)
    assert there.returncode == 0, there.stdout
    assert published(tmp_path / "here") == published(tmp_path / "there")


def test_nights_in_parts_that_workers_hold_one_at_a_time_have_the_same_bytes(tmp_path, cluster, command):
    for dt, memory in [("2026-11-19", "6kB"), ("2026-11-20", "8746kB")]:
        job = [*SAMPLE, "--dt", dt]
        here = command("run", *job, *options(tmp_path, "here"), cwd=ROOT)
        assert here.returncode == 0, here.stderr
        there = cluster.submit(*job, *options(tmp_path, "there"), "--worker-memory", memory)
        assert there.returncode == 0, there.stdout
        assert json.loads(there.stdout.splitlines()[-1])["n_parts"] > 2
    assert published(tmp_path / "here") == published(tmp_path / "there") != {}


def test_a_night_of_a_session_with_long_types_has_the_same_bytes(tmp_path, cluster, command):
    job = [*SAMPLE, "--dt", "2026-11-19"]
    here = command("run", *job, *options(tmp_path, "here"), cwd=ROOT)
    assert here.returncode == 0, here.stderr
    there = cluster.submit(*job, *options(tmp_path, "there"), conf={"spark.sql.execution.arrow.useLargeVarTypes": "true"})
    assert there.returncode == 0, there.stdout
    assert published(tmp_path / "here") == published(tmp_path / "there") != {}


class OfValue:
    def __init__(self, value):
        self.value = value


def test_a_worker_holds_the_batch_in_a_folder_that_spark_removes(tmp_path, monkeypatch):
    folders, read = [], []

    def loaded(folder, **_):
        folders.append(pathlib.Path(folder))
        read.extend(path.read_bytes() for path in sorted(pathlib.Path(folder).rglob("*")) if path.is_file())

    monkeypatch.setattr(nearprint.spark, "MapContext", loaded)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},{tmp_path}/other")
    files = [("batch/rows", OfValue(b"ro")), ("batch/rows", OfValue(b"ws")), ("spec", OfValue(b""))]
    assert list(nearprint.spark._map(nearprint.__version__, "a join", (files, OfValue(("{}", "", 1, []))), [])) == []
    assert [folder.parent for folder in folders] == [tmp_path]
    assert read == [b"rows", b""]


def test_a_worker_does_not_hold_the_pieces_of_the_batch_beside_the_batch(tmp_path):
    from pyspark import Broadcast

    sent = tmp_path / "piece"
    with sent.open("wb") as file:
        pickle.dump(b"piece", file)
    # As Spark makes them for its workers.
    piece = Broadcast(path=str(sent))
    for _ in range(2):
        assert read_once(piece) == b"piece"
        assert b"piece" not in vars(piece).values()
    with sent.open("rb") as file:
        encrypted = Broadcast(sock_file=file)
    for _ in range(2):
        assert read_once(encrypted) == b"piece"


def test_a_cluster_of_which_no_worker_takes_a_task_is_given_up_after_warnings(tmp_path):
    with cluster_module.Cluster(tmp_path / "empty", n_workers=0) as empty:
        job = ["--config", str(ROOT / "jobs/sample.toml"), "--dt", "2026-11-19", *options(tmp_path, "there")]
        limits = "sessions.IDLE_SECONDS, sessions.GIVE_UP_SECONDS = 1, 4"
        done = submitted(empty, tmp_path, limits, *job, **{"spark.cores.max": "1"})
    assert done.returncode == 75, done.stdout + done.stderr
    said = done.stdout + done.stderr
    assert "no worker of the cluster has taken a task for 1 seconds" in said
    assert "no worker of the cluster took a task within" in said and published(tmp_path / "there") == {}


HELD = """
import sys
import nearprint.spark
from pyspark.sql import SparkSession

documents, places = sys.argv[1], {"store": sys.argv[2], "output": sys.argv[3]}
spark = SparkSession.builder.getOrCreate()
runtime = spark.sparkContext._jvm.java.lang.Runtime.getRuntime()

def held():
    runtime.gc()
    return runtime.totalMemory() - runtime.freeMemory()

bytes_held = []
for dt in ["2026-11-19", "2026-11-20"]:
    nearprint.spark.run({"documents": documents, "create_store": True, **places}, dt, spark=spark)
    bytes_held.append(held())
print("grown by", bytes_held[1] - bytes_held[0])
"""


def test_spark_lets_go_of_the_rows_of_a_night(tmp_path, cluster):
    import pyarrow as pa
    import pyarrow.parquet as pq

    random = Random(7)
    words = ["".join(random.choices("abcdefghij", k=6)) for _ in range(20_000)]
    for dt, n in [("2026-11-19", 100), ("2026-11-20", 150_000)]:
        folder = tmp_path / "documents" / f"dt={dt}"
        folder.mkdir(parents=True)
        texts = [" ".join(random.choices(words, k=15)) for _ in range(n)]
        table = pa.table({"id": [f"{dt}/{at}" for at in range(n)], "text": texts})
        pq.write_table(table, folder / "part-0.parquet", row_group_size=10_000)
    done = driven(cluster, tmp_path, HELD, *(str(tmp_path / name) for name in ("documents", "store", "results")))
    assert done.returncode == 0, done.stdout + done.stderr
    # The rows of the second night alone have 25 MB. Beside other tests, the heap of a session grows by up to 10 MB without them.
    assert int(done.stdout.split("grown by")[1]) < 12 << 20, done.stdout
