"""The two forms of Spark's sessions, as a night uses them: in its classic form the program is the driver of Spark, in Spark
Connect it is a client of a server that is.
"""

# pyarrow has no types.
# mypy: disable-error-code="import-untyped"

from __future__ import annotations

import abc
import collections
import contextlib
import itertools
import os
import pathlib
import pickle
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol

from . import Error, _nearprint
from ._spark_errors import NO_WORKER, no_worker, told

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import StatusTracker
    from pyspark.sql import DataFrame, SparkSession

PIECE_BYTES = 4 << 20
"""The bytes of rows that each worker returns to a query, about, or those of files whose number of documents is not known. Spark holds
what a query returns whole, and more than once."""

FETCHED_WORKERS = (8, 32)
"""Fewer and more workers than these count as so many."""

LOOK_SECONDS = 0.5

IDLE_SECONDS = 60
"""The seconds between two warnings that no worker takes a task."""

GIVE_UP_SECONDS = 1800
"""The seconds after which a night gives up for which no worker has taken a task."""

SERVER_SECONDS = 30
"""The seconds in which a server of Spark Connect must answer."""

CANCEL_SECONDS = 5
"""The seconds in which a server of Spark Connect is to answer that it has ended what is under way."""

MOST_CORES = 1 << 16
"""The cores of a cluster that are counted, at most."""

Work = Callable[[Iterable[Any]], Iterator[Any]]
"""What workers do with batches of the numbers of shares. It returns batches with the columns task and message."""


class Kept(Protocol):
    """A value that all workers can read."""

    @property
    def value(self) -> Any: ...


def read_once(kept: Kept) -> Any:
    """Returns a value that this process reads once. Spark would hold it as long as the process lives."""
    value = kept.value
    # Spark reads a value again from its file. What came encrypted has none.
    if getattr(kept, "_path", None):
        vars(kept).pop("_value", None)
    return value


class Watch(Protocol):
    """Looks at the work of one stage. Two stages may be under way at once."""

    def look(self, n_shares: int) -> tuple[bool, int]:
        """Whether a worker has taken a task, and how many shares are done."""


class Session(abc.ABC):
    """A session of Spark. Its methods are called from other threads than the one that made it, and `unordered` also while what
    `sorted` returned is iterated over.
    """

    why_idle = NO_WORKER
    """Why no worker may take a task."""

    is_lost = False
    """Spark does not answer any more, and would keep a program that ends waiting for minutes."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        self.spark, self.name = spark, name
        self.tag = f"{name} {uuid.uuid4()}".replace(",", " ")
        self.ended = False

    @abc.abstractmethod
    def slots(self, asked: int | None) -> tuple[int, int]:
        """The tasks that the cluster runs at once, as many as asked for if any are, and the threads of each."""

    def keep(self, value: Any) -> Kept:
        """Brings a value to all workers."""
        try:
            return self._keep(value)
        except Exception as error:
            raise told(error) from error

    @abc.abstractmethod
    def _keep(self, value: Any) -> Kept: ...

    @abc.abstractmethod
    def let_go(self, kept: Iterable[Kept]) -> None:
        """Lets go of values that no task will read any more."""

    def cancel(self) -> None:
        """Ends what is under way. A query that begins at the same moment may go on; whoever leaves calls it until all has ended."""
        self.ended = True
        self._cancel()

    @abc.abstractmethod
    def _cancel(self) -> None: ...

    @abc.abstractmethod
    def close(self) -> None:
        """Lets go of all that was kept."""

    def unordered(
        self, work: Work, weights: Sequence[int], n_workers: int, progress: _nearprint.Progress
    ) -> Iterator[pa.Array]:
        """Iterates over the messages of shares with these bytes, in any order, while later shares are worked on."""
        # Spark holds the rows of a whole query until they are fetched. Therefore each query is about a part of the shares, and two
        # are under way, so that the workers go on while the rows of one are fetched.
        fetches = fetches_of(weights, fetch_bytes(n_workers))
        with self._watched(len(weights), progress) as watch, ThreadPoolExecutor(2) as threads:
            under_way: collections.deque[Any] = collections.deque()
            try:
                for begin, end in fetches:
                    under_way.append(threads.submit(self._fetched, work, begin, end, watch))
                    if len(under_way) == 2:
                        yield from under_way.popleft().result()
                while under_way:
                    yield from under_way.popleft().result()
            except BaseException:
                # A session that was stopped cannot cancel: the reason is what it was stopped for.
                with contextlib.suppress(Exception):
                    self.cancel()
                raise

    def _fetched(self, work: Work, begin: int, end: int, watch: Any) -> list[pa.Array]:
        self._begin(watch)
        table = self._frame(work, begin, end).select("message").toArrow()
        return [_of_rust(chunk) for chunk in table.column("message").chunks]

    def _begin(self, watch: Any) -> None:
        """Makes what this thread does part of the night, and of the stage that is watched."""
        if self.ended:
            raise Error("the night was stopped", kind="try_again", exit_code=75)
        self._enter(watch)

    @abc.abstractmethod
    def _enter(self, watch: Any) -> None: ...

    def sorted(self, work: Work, n_shares: int, progress: _nearprint.Progress) -> Iterator[pa.Array]:
        """Iterates over the messages of shares in their order, each once."""
        with self._watched(n_shares, progress) as watch:
            reduced = self._frame(work, 0, n_shares).select("message").distinct().orderBy("message")
            for message in self._waiting(self._rows(reduced.mapInArrow(_pack, "message binary"), watch)):
                yield from _unpacked(message)

    def _frame(self, work: Work, begin: int, end: int) -> DataFrame:
        numbers = self.spark.range(begin, end, 1, max(end - begin, 1))
        return numbers.mapInArrow(work, "task bigint, message binary")

    @abc.abstractmethod
    def _rows(self, frame: DataFrame, watch: Any) -> Iterator[bytes]:
        """Iterates over the only column of a frame."""

    @abc.abstractmethod
    def _waiting(self, rows: Iterator[bytes]) -> Iterator[bytes]:
        """Iterates over rows, which may wait for an hour between two of them."""

    @abc.abstractmethod
    def _watched(
        self, n_shares: int, progress: _nearprint.Progress | None
    ) -> contextlib.AbstractContextManager[Watch]:
        """Watches the work of a stage that begins."""

    @contextlib.contextmanager
    def _looked_at(self, watch: Watch, n_shares: int, progress: _nearprint.Progress | None) -> Iterator[None]:
        """Reports the share of the work that is done, and ends work of which no worker takes a task."""
        done, idle = threading.Event(), threading.Event()
        watcher = threading.Thread(target=self._look, args=(watch, n_shares, progress, done, idle), daemon=True)
        watcher.start()
        try:
            yield
        except Exception as error:
            raise (no_worker(self.why_idle, GIVE_UP_SECONDS) if idle.is_set() else told(error)) from error
        finally:
            done.set()
            watcher.join()

    def _look(
        self,
        watch: Watch,
        n_shares: int,
        progress: _nearprint.Progress | None,
        done: threading.Event,
        idle: threading.Event,
    ) -> None:
        begun, next_warning, is_taken = time.monotonic(), IDLE_SECONDS, False
        while not done.wait(LOOK_SECONDS):
            try:
                taken, n_done = watch.look(n_shares)
            except Exception:
                # Spark may be gone. Whoever waits for its rows says so.
                taken, n_done = False, 0
            is_taken = is_taken or taken
            if progress:
                progress.reach(n_done / max(n_shares, 1))
            waited = time.monotonic() - begun
            if is_taken or waited < next_warning:
                continue
            if waited >= GIVE_UP_SECONDS:
                # Again and again: what has just begun may have been too late for the last time.
                idle.set()
                self.cancel()
                continue
            _nearprint.Progress.warn(f"no worker of the cluster has taken a task for {int(waited)} seconds: {self.why_idle}")
            next_warning += IDLE_SECONDS


class Classic(Session):
    """A session in a process that is the driver of Spark."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        super().__init__(spark, name)
        self.context = spark.sparkContext
        self.broadcasts: list[Any] = []
        self.numbers = itertools.count()
        # The groups of the stages that have not ended well.
        self.groups: list[str] = []

    def slots(self, asked: int | None) -> tuple[int, int]:
        threads = int(self.context.getConf().get("spark.task.cpus", "1"))
        return asked or max(1, self.context.defaultParallelism // threads), threads

    def _keep(self, value: Any) -> Kept:
        broadcast: Any = self.context.broadcast(value)
        self.broadcasts.append(broadcast)
        return broadcast  # type: ignore[no-any-return]

    def let_go(self, kept: Iterable[Any]) -> None:
        for broadcast in kept:
            self.broadcasts.remove(broadcast)
            with contextlib.suppress(Exception):
                broadcast.destroy()

    def _cancel(self) -> None:
        for group in list(self.groups):
            self.context.cancelJobGroup(group)

    def close(self) -> None:
        self.let_go(list(self.broadcasts))

    def _enter(self, watch: _Jobs) -> None:
        self.context.setJobGroup(watch.group, self.name)

    def _rows(self, frame: DataFrame, watch: _Jobs) -> Iterator[bytes]:
        self._begin(watch)
        # Not frame.toLocalIterator: Spark 4.3 keeps the rows of all jobs that belong to a query, even after it has ended, and the
        # jobs of an RDD belong to none.
        return (bytes(row.message) for row in frame.rdd.toLocalIterator(prefetchPartitions=True))

    def _waiting(self, rows: Iterator[bytes]) -> Iterator[bytes]:
        return rows

    @contextlib.contextmanager
    def _watched(self, n_shares: int, progress: _nearprint.Progress | None) -> Iterator[_Jobs]:
        jobs = _Jobs(self.context.statusTracker(), f"{self.tag} {next(self.numbers)}")
        self.groups.append(jobs.group)
        with self._looked_at(jobs, n_shares, progress):
            yield jobs
        self.groups.remove(jobs.group)


class _Jobs:
    """The jobs of one stage, which are a group of Spark's."""

    def __init__(self, tracker: StatusTracker, group: str) -> None:
        self.tracker, self.group = tracker, group

    def look(self, n_shares: int) -> tuple[bool, int]:
        is_taken, n_done = False, {}
        for job in self.tracker.getJobIdsForGroup(self.group):
            info = self.tracker.getJobInfo(job)
            stages = [self.tracker.getStageInfo(number) for number in sorted(info.stageIds)] if info else []
            known = [stage for stage in stages if stage]
            is_taken = is_taken or any(stage.numActiveTasks + stage.numCompletedTasks > 0 for stage in known)
            # The first stage of a job does the work; later ones move what came of it.
            n_done.update({stage.stageId: stage.numCompletedTasks for stage in known[:1]})
        return is_taken, sum(n_done.values())


class Connect(Session):
    """A session of a process that is a client of a Spark Connect server. It has no Spark context: values travel as files of the
    session, and the server tells the progress together with the rows.
    """

    why_idle = f"{NO_WORKER}; or the server does not answer any more"

    def __init__(self, spark: SparkSession, name: str) -> None:
        super().__init__(spark, name)
        self.has_reports = True
        self.is_lost = False
        self.folder = tempfile.TemporaryDirectory(prefix="nearprint-", ignore_cleanup_errors=True)

    def slots(self, asked: int | None) -> tuple[int, int]:
        threads = int(self._setting("spark.task.cpus", "1"))
        self.has_reports = not self._setting("spark.connect.progress.reportInterval", "2s").startswith("-")
        return asked or max(1, self._cores() // threads), threads

    def _setting(self, key: str, default: str) -> str:
        # Some servers keep their settings to themselves.
        with contextlib.suppress(Exception):
            return self.spark.conf.get(key, default) or default
        return default

    def _cores(self) -> int:
        """The cores of the cluster: so many partitions a range has."""
        from pyspark.sql.functions import spark_partition_id

        try:
            with self._watched(0, None) as watch:
                self._begin(watch)
                return self.spark.range(MOST_CORES).select(spark_partition_id()).distinct().count()
        finally:
            # This thread may be the caller's.
            self.spark.removeTag(self.tag)

    def _keep(self, value: Any) -> Kept:
        path = pathlib.Path(self.folder.name, f"nearprint-{uuid.uuid4()}")
        with path.open("wb") as file:
            pickle.dump(value, file)
        self.spark.addArtifacts(str(path), file=True)
        path.unlink()
        return _SessionFile(path.name)

    def _cancel(self) -> None:
        # Spark's client asks a server that is gone again and again for ten minutes. The night does not wait for that.
        asking = threading.Thread(target=self._interrupt, daemon=True)
        asking.start()
        asking.join(CANCEL_SECONDS)
        self.is_lost = asking.is_alive()

    def _interrupt(self) -> None:
        with contextlib.suppress(Exception):
            self.spark.interruptTag(self.tag)

    def let_go(self, kept: Iterable[Kept]) -> None:
        """Does nothing: the server removes the files of a session with the session."""

    def close(self) -> None:
        """Removes files that are still being sent."""
        self.folder.cleanup()

    def _rows(self, frame: DataFrame, watch: _Reports) -> Iterator[bytes]:
        self._begin(watch)
        for row in frame.toLocalIterator():
            watch.is_taken = True
            yield bytes(row.message)
        watch.is_taken = True

    def _waiting(self, rows: Iterator[bytes]) -> Iterator[bytes]:
        # A server gives up a query whose rows are not fetched for some minutes, while the judge has texts read or reads them.
        with tempfile.TemporaryFile(prefix="nearprint-") as file:
            for row in rows:
                file.write(len(row).to_bytes(8, "little"))
                file.write(row)
            file.seek(0)
            while size := file.read(8):
                yield file.read(int.from_bytes(size, "little"))

    def _enter(self, watch: _Reports) -> None:
        self.spark.addTag(self.tag)
        watch.own_threads.add(threading.get_ident())

    @contextlib.contextmanager
    def _watched(self, n_shares: int, progress: _nearprint.Progress | None) -> Iterator[_Reports]:
        watch = _Reports(self.has_reports)
        # The types of pyspark ask for a class of theirs, its code for anything that is called so.
        handler: Any = watch.reached
        self.spark.registerProgressHandler(handler)
        try:
            with self._looked_at(watch, n_shares, progress):
                yield watch
        finally:
            self.spark.removeProgressHandler(handler)


class _Reports:
    """What a server of Spark Connect reports of the operations of one stage."""

    def __init__(self, has_reports: bool) -> None:
        self.has_reports, self.is_taken = has_reports, False
        self.own_threads: set[int] = set()
        self.stages: dict[str | None, tuple[int, int]] = {}

    def reached(self, stages: Iterable[Any] | None, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        """Takes a report, in the thread that fetches the rows of an operation."""
        if threading.get_ident() not in self.own_threads:
            return
        for stage in stages or ():
            self.is_taken = self.is_taken or inflight_tasks + stage.num_completed_tasks > 0
            # The first stage of an operation does the work; later ones move what came of it.
            reached = (stage.stage_id, stage.num_completed_tasks)
            first, n_done = self.stages.get(operation_id, reached)
            if stage.stage_id <= first:
                self.stages[operation_id] = (stage.stage_id, max(n_done, stage.num_completed_tasks))

    def look(self, n_shares: int) -> tuple[bool, int]:
        # A server that sends no reports does not say that nothing is taken.
        return self.is_taken or not self.has_reports, sum(n_done for _, n_done in list(self.stages.values()))


class _SessionFile:
    """A pickled value in a file that Spark brings to the workers of a session."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def value(self) -> Any:
        from pyspark import SparkFiles

        with open(SparkFiles.get(self.name), "rb") as file:
            return pickle.load(file)


def session_of(spark: SparkSession | None, name: str) -> Session:
    """Returns the session of the caller, or the one that Spark has or starts."""
    if spark is None:
        try:
            from pyspark.sql import SparkSession

            await_server(os.environ.get("SPARK_REMOTE", ""))
            spark = SparkSession.builder.appName(name).getOrCreate()
        except ImportError as error:
            raise Error(f"Spark lacks a package: {error}: {INSTALL}", kind="config", exit_code=78) from error
    is_client = any(base.__module__.startswith("pyspark.sql.connect") for base in type(spark).__mro__)
    return Connect(spark, name) if is_client else Classic(spark, name)


INSTALL = "install pyspark in this Python, and pyspark[connect] for a Spark Connect server"


def await_server(address: str) -> None:
    """Waits until a server of Spark Connect answers. A session itself would try again for more than ten minutes, and say nothing."""
    if not address.startswith("sc://"):
        return
    import grpc
    from pyspark.sql.connect.client import DefaultChannelBuilder

    builder = DefaultChannelBuilder(address)
    channel = builder.toChannel()
    try:
        grpc.channel_ready_future(channel).result(timeout=SERVER_SECONDS)
    except grpc.FutureTimeoutError as error:
        reason = f"the Spark Connect server at {builder.endpoint} has not answered for {SERVER_SECONDS} seconds"
        raise Error(f"{reason}: start it, and run the night again", kind="try_again", exit_code=75) from error
    finally:
        channel.close()


def least_shares(n_bytes: int, n_workers: int) -> int:
    """The least number of shares into which tasks of so many bytes are cut, so that a query has one for each worker."""
    return n_bytes * n_workers // fetch_bytes(n_workers)


def fetch_bytes(n_workers: int) -> int:
    """The bytes of the rows that a query brings, about."""
    least, most = FETCHED_WORKERS
    return PIECE_BYTES * min(max(n_workers, least), most)


def fetches_of(weights: Sequence[int], most: int) -> list[tuple[int, int]]:
    """Cuts shares into ranges of shares that have at most so many bytes together, or are one share.

    >>> fetches_of([3, 3, 3, 9, 1], 6)
    [(0, 2), (2, 3), (3, 4), (4, 5)]
    """
    fetches: list[tuple[int, int]] = []
    begin, n_bytes = 0, 0
    for at, weight in enumerate(weights):
        if at > begin and n_bytes + weight > most:
            fetches.append((begin, at))
            begin, n_bytes = at, 0
        n_bytes += weight
    if weights:
        fetches.append((begin, len(weights)))
    return fetches


def _pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Makes one value of a batch of messages: rows that leave Spark one by one are slow."""
    import pyarrow as pa

    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        packed = pa.array([sink.getvalue().to_pybytes()], pa.binary())
        yield pa.RecordBatch.from_arrays([packed], names=["message"])


def _unpacked(packed: bytes) -> Iterator[pa.Array]:
    import pyarrow as pa

    for batch in pa.ipc.open_stream(packed):
        yield _of_rust(batch.column(0))


def _of_rust(messages: pa.Array) -> pa.Array:
    """Messages in the type that Rust reads. Those of a session may have a longer one."""
    import pyarrow as pa

    return messages.cast(pa.binary())
