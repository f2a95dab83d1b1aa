"""Near-duplicate documents, found exactly: fingerprints of texts, joins of fingerprints, whole nights, and the command.

Columns and tables come in from anything that speaks Arrow's PyCapsule interface (pyarrow, Polars, DuckDB, pandas 3), and
the results speak it too; lists and arrays of NumPy are taken as well. Calls release the GIL and compute on threads of their own; `threads` limits them, and the
default is all cores. Ctrl-C ends a call.

>>> import nearprint
>>> text = "Near-duplicate pages differ in a date, a counter or an advertisement, and in nothing that a reader would miss."
>>> nearprint.hamming(nearprint.fingerprint(text), nearprint.fingerprint(text.upper()))
0
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Any, Protocol, Union

from . import _nearprint
from ._commands import audit, check, diff, explain, filter, query, report
from ._dedup import Deduplicated, Deduplicator, dedup
from ._error import Error
from ._job import Config, Job, Night, Option, arguments_of, job_file, night_of
from ._nearprint import (
    Array,
    FingerprintContext,
    MapContext,
    Store,
    Table,
    TaskBatches,
    __version__,
    fingerprint,
    fingerprint_task,
    hamming,
    join,
    map_task,
    pairs_within,
    profile,
    sketch,
)
from ._progress import Progress, Watch, watching
from ._summary import Summary

logging.getLogger("nearprint").addHandler(logging.NullHandler())

__all__ = [
    "Array",
    "ArrowColumn",
    "Deduplicated",
    "Deduplicator",
    "Error",
    "FingerprintContext",
    "Job",
    "MapContext",
    "Progress",
    "Store",
    "Summary",
    "Table",
    "TaskBatches",
    "__version__",
    "audit",
    "check",
    "dedup",
    "diff",
    "explain",
    "filter",
    "fingerprint",
    "fingerprint_task",
    "hamming",
    "join",
    "main",
    "map_task",
    "pairs_within",
    "profile",
    "query",
    "report",
    "run",
    "sketch",
]


def __dir__() -> list[str]:
    return __all__


class _ArrayLike(Protocol):
    def __arrow_c_array__(self, requested_schema: Any = None) -> Any: ...


class _StreamLike(Protocol):
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


class _ListLike(Protocol):
    def tolist(self) -> Any: ...


ArrowColumn = Union[_ArrayLike, _StreamLike, _ListLike, "list[Any]", "tuple[Any, ...]"]
"""What speaks the PyCapsule interface (an array, a chunked array, a series, a table or a stream of batches), an array of
NumPy, or a list."""

def run(config: Config, dt: Night, *, progress: Watch = None, **options: Option) -> Summary:
    """Run a night: fingerprint, join, decide, publish, advance the store. The log lines go to the logger `nearprint`.

    Args:
        config: the job file, or its keys as a dictionary, whose relative paths begin at the working folder; or a `Job`.
        dt: the date of the night, such as "2026-11-20".
        progress: True shows a bar of tqdm for each step; a function is called with a `Progress` several times a second.
        **options: the options of `nearprint run`, with underscores for hyphens: `create_store=True`, `replace=True`,
            `late=True`, `future=True`, `documents="crawl"`, `threads=4`, `memory_limit="4GiB"`, `max_pairs=1000`, ... An option that
            may be repeated takes a list. `None` and `False` leave an option out.

    Returns:
        The summary that the command prints with `--json`, as a dictionary. Its `status` is "published" or "already_published".

    Raises:
        Error: whatever makes the command fail, with its exit code. If a breaker stopped the night, `exit_code` is 65
            and `summary` has what was measured. After Ctrl-C nothing of the night is visible.

    >>> import os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> os.makedirs(f"{folder.name}/crawl/dt=2026-11-20")
    >>> text = "The quick brown fox jumps over the lazy dog near the old river bank."
    >>> with open(f"{folder.name}/crawl/dt=2026-11-20/pages.jsonl", "w") as pages:
    ...     for id, line in [("a", text), ("b", text.upper())]:
    ...         _ = pages.write('{"id": "%s", "text": "%s"}\\n' % (id, line))
    >>> with open(f"{folder.name}/job.toml", "w") as job:
    ...     _ = job.write("".join(f'{key} = "{folder.name}/{key}"\\n' for key in ["store", "output"]))
    >>> done = nearprint.run(f"{folder.name}/job.toml", "2026-11-20", documents=f"{folder.name}/crawl", create_store=True)
    >>> done["status"], done["n_drop"]
    ('published', 1)
    >>> folder.cleanup()
    """
    with job_file(config) as (path, _), watching(progress) as called:
        said = _nearprint.run(["--config", path, "--dt", night_of(dt), *arguments_of(options)], progress=called)
    return Summary.of(said, config)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the `nearprint` command and return its exit code. The console script `nearprint` calls it.

    The command writes to standard output and standard error, and takes over the signals and the threads of the process:
    call it once, from the main thread of a process that exists for it. Programs call `run` and the other functions.

    Args:
        argv: the arguments after the name of the program; those of the process if None.
    """
    arguments = sys.argv[1:] if argv is None else list(argv)
    own_process()
    return _nearprint.main(["nearprint", *arguments])


def own_process() -> None:
    """Gives the output and the signals of the process to the command."""
    if sys.stdout is not None:
        sys.stdout.flush()
    # Python would only note a signal and handle it after the command. The command handles it, or is killed by it.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_DFL)
