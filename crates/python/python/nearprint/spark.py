"""Nights on Apache Spark: the tasks run in the cluster, and the store, the files and the bytes are those of one machine.

    import nearprint.spark
    summary = nearprint.spark.run("job.toml", "2026-11-20", spark=spark)

The driver lists the documents, and Spark's Python workers fingerprint them. The driver holds the batch of new documents and
sends it to all workers; they probe it, part by part, with the existing fingerprints, Spark sorts the pairs and makes them
distinct, and the driver decides and commits. docs/spark.md says what clusters need.

Workers read documents and the store themselves, so both must be in a place that all machines reach: a bucket, or a shared
file system. They must have this package, in the same version as the driver.
"""

# pyarrow has no types.
# mypy: disable-error-code="import-untyped"

from __future__ import annotations

import contextlib
import functools
import logging
import operator
import os
import pathlib
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from . import Error, FingerprintContext, MapContext, _nearprint, own_process
from ._job import Config, Night, Option, arguments_of, job_file, night_of
from ._sessions import Kept, Session, least_shares, read_once, session_of
from ._spark_errors import not_started, reported
from ._summary import Summary

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

__all__ = ["main", "run"]

WORKER_MEMORY = 1 << 30
"""The bytes that a worker process may take, unless the caller says otherwise."""

MOST = (1 << 63) - 1
"""The largest number of workers, and of their bytes."""

SHARES = 4
"""The number of shares of the tasks for each worker. More balance better, and each costs the time of a Spark task."""

PIECE_BYTES = 32 << 20
"""The bytes of a file that are brought to the workers at a time, unless there would be more than MOST_PIECES."""

MOST_PIECES = 512

STOPPED = (130, 143)
"""The exit codes of a night that was stopped by SIGINT or SIGTERM."""

LEAVE_SECONDS = 10
"""The seconds in which the threads of an engine must come back from Spark once its jobs are cancelled."""


def run(
    config: Config,
    dt: Night,
    *,
    spark: SparkSession | None = None,
    workers: int | None = None,
    worker_memory: int = WORKER_MEMORY,
    **options: Option,
) -> Summary:
    """Run a night on Spark. The driver publishes it with the same protocol and the same bytes as `nearprint.run`.

    Args:
        config: the job file, on the driver, or its keys as a dictionary.
        dt: the date of the night, such as "2026-11-20".
        spark: the session, of either form, or None for the one that `SparkSession.builder.getOrCreate()` returns: that of
            a Spark Connect server if SPARK_REMOTE names one. Spark is then asked for it when the night begins: not for a
            job that is refused, and not for a night that is published already.
        workers: the number of tasks that the cluster runs at once; by default what Spark says when the night begins. A
            cluster that grows later needs it.
        worker_memory: the bytes that a Python worker process may take. It holds a part of the batch of new
            documents and its tables: all of the batch if there is room, and otherwise one part after another. Default: 1 GiB.
        **options: as `nearprint.run`. `threads` and `memory_limit` are those of the driver.

    Returns:
        The summary, as `nearprint.run` returns it.

    Raises:
        ValueError: `workers` or `worker_memory` is below 1, or above 2**63 - 1.
        TypeError: one of them is no whole number.
        Error: as `nearprint.run`. If Spark does not start or gives up, `kind` is "try_again", or "config" if a package or the right
            Python is missing, and nothing of the night is visible.
    """
    with job_file(config) as (path, _), _engine(spark, night_of(dt), workers, worker_memory) as engine:
        arguments = ["--config", path, "--dt", night_of(dt), *arguments_of(options)]
        try:
            said = _nearprint.run(arguments, engine)
        except Error as error:
            # What Spark lacks is no wrong setting.
            error._is_of_engine = engine.is_lacking
            raise
    return Summary.of(said, config)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a night on Spark as the command `nearprint run` does, and return its exit code. `spark-submit` is for this.

    The command logs to standard error and prints its summary to standard output. Call it once, from the main thread.

    Args:
        argv: the arguments of `nearprint run`; those of the process if None. In addition there are `--workers N` and
            `--worker-memory BYTES`, as `run` has them.
    """
    own_process()
    arguments = sys.argv[1:] if argv is None else list(argv)
    workers, of_run = _taken(arguments, "--workers")
    worker_memory, of_run = _taken(of_run, "--worker-memory")
    dates, _ = _taken(of_run, "--dt")
    try:
        n = _number("--workers", workers, int)
        memory = _number("--worker-memory", worker_memory, _nearprint.bytes_of)
    except ValueError as error:
        return _nearprint.refuse(["nearprint", "run", *arguments], str(error))
    with _engine(None, "".join(dates[:1]), n, memory or WORKER_MEMORY) as engine:
        code: int = _nearprint.main(["nearprint", "run", *of_run], engine)
        if code in STOPPED:
            # The JVM gets the signal too, and py4j logs with tracebacks that it is gone.
            logging.disable()
    if "--help" in arguments or "-h" in arguments:
        print(HELP)
    if _nearprint.engine_threads() or (engine.session and engine.session.is_lost):
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


def _taken(arguments: list[str], flag: str) -> tuple[list[str], list[str]]:
    """Returns the values of a flag, of which a missing one is empty, and the arguments without it."""
    values, others, words = [], [], iter(arguments)
    for word in words:
        name, equals, value = word.partition("=")
        if name == flag:
            values.append(value if equals else next(words, ""))
        else:
            others.append(word)
    return values, others


def _number(flag: str, values: list[str], read: Callable[[str], int]) -> int | None:
    """Returns the value of a flag, if it has one, as `read` reads it. It is above 0."""
    if not values:
        return None
    if len(values) > 1:
        raise ValueError(f"the argument '{flag}' cannot be used multiple times")
    try:
        number = read(values[0])
    except ValueError:
        number = 0
    if not 1 <= number <= MOST:
        raise ValueError(f"{flag} {values[0]}".strip() + ": give a number, such as 8 for workers or 2GiB for memory")
    return number


def _whole(name: str, value: Any, remedy: str) -> int:
    """Returns the value of an argument that is a whole number above 0."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: {type(value).__name__} is no whole number: {remedy}") from None
    if not 1 <= number <= MOST:
        raise ValueError(f"{name} {number}: {remedy}")
    return number


@contextlib.contextmanager
def _engine(spark: SparkSession | None, dt: str, workers: int | None, worker_memory: int) -> Iterator[_Engine]:
    """An engine, whose jobs are cancelled at the end if any is still under way."""
    workers = None if workers is None else _whole("workers", workers, "give 1 or more, or None for as many as Spark says")
    worker_memory = _whole("worker_memory", worker_memory, "give bytes, such as 1 << 30, or leave it out")
    engine = _Engine(spark, dt, workers, worker_memory)
    try:
        yield engine
    finally:
        engine.close()


class _Engine:
    """Runs the tasks of one night. Its methods are called from other threads than the one that made it."""

    def __init__(self, spark: SparkSession | None, dt: str, workers: int | None, worker_memory: int) -> None:
        self.given, self.dt, self.asked, self.worker_memory = spark, dt, workers, worker_memory
        self.session: Session | None = None
        self.closed = self.is_lacking = False

    def close(self) -> None:
        """Ends what is under way, and waits until the threads of the engine have come back."""
        self.closed = True
        deadline = time.monotonic() + LEAVE_SECONDS
        while True:
            if self.session:
                # A driver that was stopped may have lost its JVM or its server, and with it its jobs.
                with contextlib.suppress(Exception):
                    self.session.cancel()
            if not _nearprint.engine_threads() or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        if self.session:
            self.session.close()

    def workers(self) -> tuple[int, int, int]:
        """The processes of the cluster. Spark starts here, unless the caller has a session."""
        try:
            self.session = session_of(self.given, f"nearprint {self.dt}")
            if self.closed:
                raise Error("the night was stopped while Spark started", kind="try_again", exit_code=75)
            self.n, self.threads = self.session.slots(self.asked)
        except Exception as error:
            self.is_lacking = True
            raise not_started(error) from error
        return self.n, self.threads, self.worker_memory

    def fingerprint(
        self, spec: str, tasks: list[tuple[str, int]], s3: str, base: pathlib.Path, progress: _nearprint.Progress
    ) -> Iterator[pa.Array]:
        session = self._started()
        n_bytes = sum(weight for _, weight in tasks)
        shares = shared(tasks, max(SHARES * self.n, least_shares(n_bytes, self.n)))
        weights = [sum(tasks[number][1] for number, _ in share) for share in shares]
        kept = session.keep(spec), session.keep((s3, str(base), shares))
        work = functools.partial(_fingerprint, _nearprint.__version__, session.tag, kept)
        yield from session.unordered(work, weights, self.n, progress)
        session.let_go(kept)

    def map(
        self, folder: str, tasks: list[tuple[str, int]], s3: str, base: pathlib.Path, progress: _nearprint.Progress
    ) -> Iterator[pa.Array]:
        session = self._started()
        shares = shared(tasks, SHARES * self.n)
        # A process that has loaded the join does not read its files again.
        kept = _kept_files(session, pathlib.Path(folder)), session.keep((s3, str(base), self.threads, shares))
        work = functools.partial(_map, _nearprint.__version__, f"{session.tag} {folder}", kept)
        yield from session.sorted(work, len(shares), progress)
        session.let_go([*(piece for _, piece in kept[0]), kept[1]])

    def _started(self) -> Session:
        assert self.session, "Rust asks for the workers first"
        return self.session


def _kept_files(session: Session, folder: pathlib.Path) -> list[tuple[str, Kept]]:
    """Brings the files of a folder to all workers, in pieces of which neither side holds two. Names repeat for further pieces of a file."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    most = max(PIECE_BYTES, sum(path.stat().st_size for path in paths) // MOST_PIECES)
    kept = []
    for path in paths:
        name = str(path.relative_to(folder))
        with path.open("rb") as file:
            # An empty file is a piece too.
            kept.append((name, session.keep(file.read(most))))
            while piece := file.read(most):
                kept.append((name, session.keep(piece)))
    return kept


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


# What follows runs in the worker processes.


_joins: dict[str, MapContext] = {}
"""The join that this process has loaded, by its name. Spark runs many tasks in one process, one after another."""


def _fingerprint(
    version: str, tag: str, kept: tuple[Kept, Kept], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    with reported():
        _refuse_other(version)
        # When the judge asks for texts, the join of this night has ended, and the specification names all these texts.
        if any(name.startswith(tag) for name in _joins):
            _joins.clear()
        spec, stage = kept
        s3, base, shares = stage.value
        context = FingerprintContext(read_once(spec), s3=s3, base=base)
        for tasks in _of(shares, batches):
            yield from _records(tasks[0][0], _nearprint.fingerprint_messages(context, tasks))


def _map(
    version: str, name: str, kept: tuple[list[tuple[str, Kept]], Kept], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    with reported():
        _refuse_other(version)
        files, join = kept
        s3, base, threads, shares = join.value
        if name not in _joins:
            _joins.clear()
            # Spark kills workers of a night that is stopped, and removes its own folders.
            of_spark = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
            # Some file systems keep the names of files that are still open.
            with tempfile.TemporaryDirectory(prefix="nearprint-", dir=of_spark or None, ignore_cleanup_errors=True) as folder:
                for place, piece in files:
                    path = pathlib.Path(folder, place)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    with path.open("ab") as file:
                        file.write(read_once(piece))
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


def _refuse_other(version: str) -> None:
    if version != _nearprint.__version__:
        reason = f"the driver has nearprint {version}, a worker has {_nearprint.__version__}: install the same version"
        raise Error(reason, kind="config", exit_code=78)


if __name__ == "__main__":
    sys.exit(main())
