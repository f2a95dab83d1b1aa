"""Nights on Apache Spark: the tasks run in the cluster, and the store, the files and the bytes are those of one machine.

    import nearprint.spark
    summary = nearprint.spark.run("job.toml", "2026-11-20", spark=spark)

The driver lists the documents, and Spark's Python workers fingerprint them. The driver holds the batch of new documents and
broadcasts it; the workers probe it with the existing fingerprints, Spark sorts the pairs and makes them distinct, and the
driver decides and commits. docs/spark.md says what clusters need.

Workers read documents and the store themselves, so both must be in a place that all machines reach: a bucket, or a shared
file system. They must have this package, in the same version as the driver.
"""

# pyarrow has no types.
# mypy: disable-error-code="import-untyped"

from __future__ import annotations

import contextlib
import functools
import json
import os
import pathlib
import re
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from . import Error, FingerprintContext, MapContext, _nearprint, own_process
from ._job import Config, Night, Option, arguments_of, job_file, night_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import Broadcast
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["main", "run"]

WORKER_MEMORY = 1 << 30
"""The bytes that a worker process may take, unless the caller says otherwise."""

SHARES = 4
"""The number of shares of the tasks for each worker. More balance better, and each costs the time of a Spark task."""

PIECE_BYTES = 8 << 20
"""The bytes of documents whose rows come to the driver at once, about. Spark holds a piece whole, and more than once, in the JVM of
an executor and in that of the driver; the rows of short documents take several times the bytes of their files."""

LOOK_SECONDS = 0.5

IDLE_SECONDS = 60
"""The seconds between two warnings that no worker takes a task."""

GIVE_UP_SECONDS = 1800
"""The seconds after which a night gives up for which no worker has taken a task."""

LEAVE_SECONDS = 10
"""The seconds in which the threads of an engine must come back from Spark once its jobs are cancelled."""

MARK = "nearprint-error "
"""What precedes an error of nearprint, as JSON, in the message of a worker's exception."""


def run(
    config: Config,
    dt: Night,
    *,
    spark: SparkSession | None = None,
    workers: int | None = None,
    worker_memory: int = WORKER_MEMORY,
    **options: Option,
) -> dict[str, Any]:
    """Run a night on Spark. The driver publishes it with the same protocol and the same bytes as `nearprint.run`.

    Args:
        config: the job file, on the driver, or its keys as a dictionary.
        dt: the date of the night, such as "2026-11-20".
        spark: the session, or None for the one that `SparkSession.builder.getOrCreate()` returns. Spark is then asked for
            it when the night begins: not for a job that is refused, and not for a night that is published already.
        workers: the number of tasks that the cluster runs at once; by default what Spark says when the night begins. A
            cluster that grows later needs it.
        worker_memory: the bytes that a Python worker process may take. It holds the batch of new documents and tables of
            them; a batch that is too large for its tables is joined in parts. Default: 1 GiB.
        **options: as `nearprint.run`. `threads` and `memory_limit` are those of the driver.

    Returns:
        The summary, as `nearprint.run` returns it.

    Raises:
        ValueError: `workers` or `worker_memory` is below 1.
        Error: as `nearprint.run`. If Spark does not start or gives up, `kind` is "try_again" and nothing of the night is
            visible.
    """
    with job_file(config) as path, _engine(spark, night_of(dt), workers, worker_memory) as engine:
        arguments = ["--config", path, "--dt", night_of(dt), *arguments_of(options)]
        summary: dict[str, Any] = _nearprint.run(arguments, engine)
        return summary


def main(argv: Sequence[str] | None = None) -> int:
    """Run a night on Spark as the command `nearprint run` does, and return its exit code. `spark-submit` is for this.

    The command logs to standard error and prints its summary to standard output. Call it once, from the main thread.

    Args:
        argv: the arguments of `nearprint run`; those of the process if None. In addition there are `--workers N` and
            `--worker-memory BYTES`, as `run` has them.
    """
    own_process()
    arguments = sys.argv[1:] if argv is None else list(argv)
    workers, arguments = _taken(arguments, "--workers")
    worker_memory, arguments = _taken(arguments, "--worker-memory")
    try:
        n = _number("--workers", workers, int)
        memory = _number("--worker-memory", worker_memory, _nearprint.bytes_of)
    except ValueError as error:
        print(f"nearprint: error: {error}", file=sys.stderr)
        return 64
    date, _ = _taken(arguments, "--dt")
    with _engine(None, date or "", n, memory or WORKER_MEMORY) as engine:
        code: int = _nearprint.main(["nearprint", "run", *arguments], engine)
    if "--help" in arguments or "-h" in arguments:
        print(HELP)
    if _nearprint.engine_threads():
        # A thread that comes back from Spark into an interpreter that has ended would end the process with a signal.
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(code)
    return code


HELP = """
Options of nights on Spark:
      --workers <N>            The number of tasks that the cluster runs at once. Default: what Spark says at the beginning
      --worker-memory <BYTES>  The bytes that each Python worker process may take, such as 4GiB. Default: 1GiB"""


def _taken(arguments: list[str], flag: str) -> tuple[str | None, list[str]]:
    """Returns the value of a flag, and the arguments without it."""
    for at, argument in enumerate(arguments):
        if argument == flag and at + 1 < len(arguments):
            return arguments[at + 1], arguments[:at] + arguments[at + 2 :]
        if argument.startswith(flag + "="):
            return argument.partition("=")[2], arguments[:at] + arguments[at + 1 :]
    return None, arguments


def _number(flag: str, text: str | None, read: Callable[[str], int]) -> int | None:
    """Returns the value of a flag as `read` reads it, which is above 0."""
    try:
        number = None if text is None else read(text)
    except ValueError:
        number = 0
    if number is not None and number < 1:
        raise ValueError(f"{flag} {text}: give a number, such as 8 for workers or 2GiB for memory")
    return number


@contextlib.contextmanager
def _engine(spark: SparkSession | None, dt: str, workers: int | None, worker_memory: int) -> Iterator[_Engine]:
    """An engine, whose jobs are cancelled at the end if any is still under way."""
    if workers is not None and workers < 1:
        raise ValueError(f"workers {workers}: give 1 or more, or None for as many as Spark says")
    if worker_memory < 1:
        raise ValueError(f"worker_memory {worker_memory}: give bytes, such as 1 << 30, or leave it out")
    engine = _Engine(spark, dt, workers, worker_memory)
    try:
        yield engine
    finally:
        engine.close()


class _Engine:
    """Runs the tasks of one night. Its methods are called from other threads than the one that made it."""

    def __init__(self, spark: SparkSession | None, dt: str, workers: int | None, worker_memory: int) -> None:
        self.given, self.dt, self.asked, self.worker_memory = spark, dt, workers, worker_memory
        self.group = f"nearprint {dt} {uuid.uuid4()}"
        self.broadcasts: list[Broadcast[Any]] = []
        self.started = False

    def close(self) -> None:
        """Ends what is under way, and waits until the threads of the engine have come back."""
        if self.started:
            # A driver that was stopped may have lost its JVM, and with it its jobs.
            with contextlib.suppress(Exception):
                self.context.cancelJobGroup(self.group)
        deadline = time.monotonic() + LEAVE_SECONDS
        while _nearprint.engine_threads() and time.monotonic() < deadline:
            time.sleep(0.02)
        for broadcast in self.broadcasts:
            with contextlib.suppress(Exception):
                broadcast.destroy()

    def workers(self) -> tuple[int, int, int]:
        """The processes of the cluster. Spark starts here, unless the caller has a session."""
        self.spark = self.given if self.given is not None else _session(f"nearprint {self.dt}")
        self.context = self.spark.sparkContext
        self.threads = int(self.context.getConf().get("spark.task.cpus", "1"))
        at_once = max(1, self.context.defaultParallelism // self.threads)
        self.n = self.asked if self.asked is not None else at_once
        self.started = True
        return self.n, self.threads, self.worker_memory

    def fingerprint(
        self, spec: str, tasks: list[tuple[str, int]], s3: str, base: pathlib.Path, progress: _nearprint.Progress
    ) -> Iterator[pa.Array]:
        shares = shared(tasks, SHARES * self.n)
        work = functools.partial(_fingerprint, _nearprint.__version__, self._kept((spec, s3, str(base), shares)))
        sent = self._work(work, len(shares))
        # The shuffle lets all workers run at once, and the driver take their output at its own pace, piece by piece. The hash of a
        # message says which piece has it, so that pieces are about equal, and the same after a retry.
        n_pieces = max(2 * self.n, sum(weight for _, weight in tasks) // PIECE_BYTES)
        moved = sent.select("message").repartition(n_pieces, "message")
        return self._messages(moved, len(shares), progress)

    def map(
        self, folder: str, tasks: list[tuple[str, int]], s3: str, base: pathlib.Path, progress: _nearprint.Progress
    ) -> Iterator[pa.Array]:
        files = {}
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if path.is_file():
                files[str(path.relative_to(folder))] = path.read_bytes()
        shares = shared(tasks, SHARES * self.n)
        join = self._kept((files, s3, str(base), self.threads, shares))
        sent = self._work(functools.partial(_map, _nearprint.__version__, f"{self.group} {folder}", join), len(shares))
        reduced = sent.select("message").distinct().orderBy("message")
        packed = reduced.mapInArrow(_pack, "message binary")
        return (array for batch in self._messages(packed, len(shares), progress) for array in _unpacked(batch))

    def _kept(self, value: Any) -> Broadcast[Any]:
        broadcast = self.context.broadcast(value)
        self.broadcasts.append(broadcast)
        return broadcast

    def _work(self, work: Any, n_shares: int) -> DataFrame:
        numbers = self.spark.range(0, n_shares, 1, max(n_shares, 1))
        return numbers.mapInArrow(work, "task bigint, message binary")

    def _messages(self, frame: DataFrame, n_shares: int, progress: _nearprint.Progress) -> Iterator[pa.Array]:
        """Iterates over the messages of a frame, and reports how many of its first tasks are done."""
        import pyarrow as pa

        self.context.setJobGroup(self.group, self.group.rpartition(" ")[0])
        done, idle = threading.Event(), threading.Event()
        watcher = threading.Thread(target=self._watch, args=(n_shares, progress, done, idle), daemon=True)
        watcher.start()
        try:
            for row in frame.toLocalIterator(prefetchPartitions=True):
                yield pa.array([bytes(row.message)], pa.binary())
        except Exception as error:
            raise (_no_worker() if idle.is_set() else _told(error)) from error
        finally:
            done.set()
            watcher.join()

    def _watch(self, n_shares: int, progress: _nearprint.Progress, done: threading.Event, idle: threading.Event) -> None:
        """Reports the share of a stage's tasks that are done, and ends a stage of which no worker takes a task.

        The stage that does the work has a task for each share.
        """
        tracker = self.context.statusTracker()
        old = set(tracker.getJobIdsForGroup(self.group))
        begun, next_warning, is_taken = time.monotonic(), IDLE_SECONDS, False
        while not done.wait(LOOK_SECONDS):
            for job in set(tracker.getJobIdsForGroup(self.group)) - old:
                info = tracker.getJobInfo(job)
                for number in info.stageIds if info else ():
                    stage = tracker.getStageInfo(number)
                    if stage:
                        is_taken = is_taken or stage.numActiveTasks + stage.numCompletedTasks > 0
                    if stage and stage.numTasks == n_shares:
                        progress.reach(stage.numCompletedTasks / n_shares)
            waited = time.monotonic() - begun
            if is_taken or waited < next_warning:
                continue
            if waited >= GIVE_UP_SECONDS:
                idle.set()
                self.context.cancelJobGroup(self.group)
                return
            progress.warn(f"no worker of the cluster has taken a task for {int(waited)} seconds: {NO_WORKER}")
            next_warning += IDLE_SECONDS


def _session(name: str) -> SparkSession:
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise Error(f"no pyspark: {error}: install it in this Python", kind="config", exit_code=78) from error
    try:
        return SparkSession.builder.appName(name).getOrCreate()
    except Exception as error:
        reason = f"Spark does not start: {_reason(str(error)) or type(error).__name__}"
        raise Error(reason, kind="try_again", exit_code=75) from error


NO_WORKER = (
    "it is busy, has no worker, or has none with the cores and the memory that an executor asks for (spark.executor.cores, "
    "spark.executor.memory)"
)


def _no_worker() -> Error:
    reason = f"no worker of the cluster took a task within {GIVE_UP_SECONDS // 60} minutes: {NO_WORKER}: run it again"
    return Error(reason, kind="try_again", exit_code=75)


def shared(tasks: list[tuple[str, int]], n: int) -> list[list[tuple[int, str]]]:
    """Cuts numbered tasks into at most n shares of about the same bytes, which keep the order of the tasks.

    >>> shared([("a", 5), ("b", 1), ("c", 2), ("d", 2)], 2)
    [[(0, 'a')], [(1, 'b'), (2, 'c'), (3, 'd')]]
    """
    total = sum(weight + 1 for _, weight in tasks)
    shares: list[list[tuple[int, str]]] = []
    before, newest = 0, -1
    for number, (task, weight) in enumerate(tasks):
        # A task belongs to the share in which its middle lies.
        share = min(n - 1, (2 * before + weight + 1) * n // (2 * total))
        before += weight + 1
        if share != newest:
            shares.append([])
            newest = share
        shares[-1].append((number, task))
    return shares


def _told(error: Exception) -> Error:
    """The error of nearprint that made a Spark job fail, or one that says to try again: Spark itself gave up."""
    if isinstance(error, Error):
        return error
    text = str(error)
    at = text.find(MARK)
    if at >= 0:
        told, _ = json.JSONDecoder().raw_decode(text[at + len(MARK) :])
        return Error(told.pop("message"), **told)
    if "No module named 'nearprint'" in text:
        reason = "the Python of Spark's workers has no nearprint: install it on all machines, and let PYSPARK_PYTHON name that Python"
        return Error(reason, kind="config", exit_code=78)
    remedy = next((remedy for sign, remedy in REMEDIES.items() if sign in text), "run it again")
    reason = _reason(text) or type(error).__name__
    return Error(f"Spark gave up: {reason}: {remedy}", kind="try_again", exit_code=75)


REMEDIES = {
    "spark.driver.maxResultSize": "raise spark.driver.maxResultSize, with spark.driver.memory above it, and run it again",
    "Java heap space": "raise spark.driver.memory or spark.executor.memory, whichever log has the OutOfMemoryError, and run it again",
    "No space left on device": "make room on that disk, or set spark.excludeOnFailure.enabled so that other workers take over, and run it again",
}
"""What helps, by what an exception of Spark says."""


def _reason(text: str) -> str:
    """What an exception of Spark says, in one line: its first line, and its last cause. Lines of stacks are left out.

    >>> _reason("Job aborted.\\n\\tat org.apache.A\\nCaused by: java.io.IOException: disk full\\n\\tat org.apache.B")
    'Job aborted. Caused by: java.io.IOException: disk full'
    """
    lines = [line.strip() for line in text.splitlines()]
    frames = ("at ", "File ", "... ", "Driver stacktrace", "Traceback", "JVM stacktrace")
    told = [line for line in lines if line and not line.startswith(frames)]
    causes = [line for line in told if line.startswith("Caused by: ")]
    # What a worker's Python raised stands at the end of its traceback, without a blank before it.
    raised = [line for line in text.splitlines() if RAISED.match(line)]
    said = told[:1]
    for line in causes[-1:] + raised[-1:]:
        if not any(line in before or before in line for before in said[1:]) and line not in said[0]:
            said.append(line)
    return " ".join(said)


RAISED = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit): ")


# What follows runs in the worker processes.


def _fingerprint(version: str, kept: Broadcast[Any], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    with _reported():
        _refuse_other(version)
        spec, s3, base, shares = kept.value
        context = FingerprintContext(spec, s3=s3, base=base)
        for tasks in _of(shares, batches):
            yield from _records(tasks[0][0], _nearprint.fingerprint_messages(context, tasks))


_joins: dict[str, MapContext] = {}
"""The join that this process has loaded, by its name. Spark runs many tasks in one process, one after another."""


def _map(
    version: str, name: str, kept: Broadcast[Any], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    with _reported():
        _refuse_other(version)
        files, s3, base, threads, shares = kept.value
        if name not in _joins:
            _joins.clear()
            with tempfile.TemporaryDirectory(prefix="nearprint-") as folder:
                for place, content in files.items():
                    path = pathlib.Path(folder, place)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(content)
                _joins[name] = MapContext(folder, threads=threads, s3=s3, base=base)
        for tasks in _of(shares, batches):
            yield from _records(tasks[0][0], _nearprint.map_messages(_joins[name], tasks))


def _of(shares: list[list[tuple[int, str]]], batches: Iterable[pa.RecordBatch]) -> Iterator[list[tuple[int, str]]]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield shares[number]


def _records(task: int, messages: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for column in messages:
        column = pa.array(column)
        tasks = pa.array([task] * len(column), pa.int64())
        yield pa.RecordBatch.from_arrays([tasks, column], names=["task", "message"])


def _pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Makes one value of a batch of messages: rows that leave Spark one by one are slow."""
    import pyarrow as pa

    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        packed = pa.array([sink.getvalue().to_pybytes()], pa.binary())
        yield pa.RecordBatch.from_arrays([packed], names=["message"])


def _unpacked(packed: pa.Array) -> Iterator[pa.Array]:
    import pyarrow as pa

    for value in packed:
        for batch in pa.ipc.open_stream(value.as_buffer()):
            yield batch.column(0)


@contextlib.contextmanager
def _reported() -> Iterator[None]:
    """Turns an error of nearprint into an exception whose message the driver can read again."""
    try:
        yield
    except Error as error:
        told = {name: getattr(error, name) for name in ("kind", "exit_code", "file", "column", "row")}
        raise RuntimeError(MARK + json.dumps({"message": str(error), **told})) from None


def _refuse_other(version: str) -> None:
    if version != _nearprint.__version__:
        reason = f"the driver has nearprint {version}, a worker has {_nearprint.__version__}: install the same version"
        raise Error(reason, kind="config", exit_code=78)


if __name__ == "__main__":
    sys.exit(main())
