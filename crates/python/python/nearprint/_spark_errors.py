"""Errors of nights on Spark: those of nearprint come back from the workers, and those of Spark itself say what helps."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator

from . import Error

MARK = "nearprint-error "
"""What precedes an error of nearprint, as JSON, in the message of a worker's exception."""


def not_started(error: Exception) -> Error:
    """The error of a session that does not start, or that cannot say what its cluster has."""
    if isinstance(error, Error):
        return error
    reason = f"Spark does not start: {_reason(str(error)) or type(error).__name__}"
    return _lacks(str(error), reason) or Error(reason, kind="try_again", exit_code=75)


NO_WORKER = (
    "it is busy, has no worker, or has none with the cores and the memory that an executor asks for (spark.executor.cores, "
    "spark.executor.memory)"
)


def no_worker(why: str, seconds: int) -> Error:
    reason = f"no worker of the cluster took a task within {seconds // 60} minutes: {why}: run it again"
    return Error(reason, kind="try_again", exit_code=75)


def told(error: Exception) -> Error:
    """The error of nearprint that made a Spark job fail, or one that says to try again: Spark itself gave up."""
    if isinstance(error, Error):
        return error
    text = str(error)
    at = text.find(MARK)
    if at >= 0:
        # Spark Connect may cut a long message.
        with contextlib.suppress(ValueError):
            fields, _ = json.JSONDecoder().raw_decode(text[at + len(MARK) :])
            return Error(fields.pop("message"), **fields)
    if "No module named 'nearprint" in text:
        reason = "the Python of Spark's workers has no nearprint, or another version: install the same on all machines, and let PYSPARK_PYTHON name that Python"
        return Error(reason, kind="config", exit_code=78)
    reason = f"Spark gave up: {_reason(text) or type(error).__name__}"
    remedy = next((remedy for sign, remedy in REMEDIES.items() if sign in text), "run it again")
    return _lacks(text, reason) or Error(f"{reason}: {remedy}", kind="try_again", exit_code=75)


def _lacks(text: str, reason: str) -> Error | None:
    """The error of an installation that lacks something, if a text says so."""
    remedy = next((remedy for sign, remedy in LACKS.items() if sign in text), None)
    return None if remedy is None else Error(f"{reason}: {remedy}", kind="config", exit_code=78)


LACKS = {
    "PYTHON_VERSION_MISMATCH": "give the workers a Python of this program's version (PYSPARK_PYTHON of the cluster)",
    "PACKAGE_NOT_INSTALLED": "install it beside pyspark, on all machines",
    "No module named": "install it on all machines, and let PYSPARK_PYTHON name the Python that has it",
}
"""What an installation lacks, by what an exception says, and how it gets that. No other try mends these."""

REMEDIES = {
    "StatusCode.UNAVAILABLE": "see that the Spark Connect server runs, and run it again",
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
    lines = [line for line in lines if line and not line.startswith(frames)]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    # What a worker's Python raised stands at the end of its traceback, without a blank before it.
    raised = [line for line in text.splitlines() if RAISED.match(line)]
    # What a lost connection says.
    details = [line for line in lines if line.startswith("details = ")]
    said = lines[:1]
    for line in causes[-1:] + raised[-1:] + details[-1:]:
        if not any(line in before or before in line for before in said[1:]) and line not in said[0]:
            said.append(line)
    return " ".join(said)


RAISED = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit): ")


@contextlib.contextmanager
def reported() -> Iterator[None]:
    """Turns an error of nearprint into an exception whose message the driver can read again."""
    try:
        yield
    except Error as error:
        fields = {name: getattr(error, name) for name in ("kind", "exit_code", "file", "column", "row")}
        raise RuntimeError(MARK + json.dumps({"message": str(error), **fields})) from None
