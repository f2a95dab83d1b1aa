"""The commands as functions: each runs in a process of its own, and returns the summary that `--json` prints."""

from __future__ import annotations

import json
import numbers
import os
import subprocess
import sys
from collections.abc import Mapping

from . import _nearprint
from ._error import Error
from ._job import Config, Night, Option, arguments_of, job_file, night_of
from ._summary import Summary


def _run(command: str, config: Config, given: Mapping[str, Option], options: Mapping[str, Option], *words: str) -> Summary:
    """Runs a command and returns its summary.

    Raises:
        Error: the command fails. If it has found what it looks for, as `check` does, `summary` has it.
    """
    with job_file(config) as (path, open_files):
        line = [sys.executable, "-m", "nearprint", command, "--config", path, *arguments_of({**given, **options}), "--json", "--", *words]
        done = subprocess.run(line, capture_output=True, check=False, pass_fds=open_files)
        # A process that a signal has killed has no code.
        kind = _nearprint.kind_of(done.returncode) if done.returncode >= 0 else "other"
        try:
            # A line ends with a line feed alone: ids may have other characters that Python takes for ends of lines.
            said = json.loads(done.stdout.rstrip(b"\n").rpartition(b"\n")[2])
        except ValueError:
            raise Error(done.stderr.decode("utf-8", "replace").strip() or f"nearprint {command} ended with {done.returncode}", kind=kind, exit_code=done.returncode) from None
        summary = Summary.of(said, config)
        if done.returncode != 0:
            raise Error(_message(command, summary), kind=kind, exit_code=done.returncode, summary=summary)
        return summary


def _message(command: str, summary: Summary) -> str:
    """Why a command has failed. One that has done its work and found something bad has no error."""
    if "error" in summary:
        return str(summary["error"])
    counts = ", ".join(f"{name}: {n}" for name, n in summary.get("unmeasured", {}).items() if n)
    return f"nearprint {command}: {summary['status']}{f' ({counts})' if counts else ''}: the summary of this error says more"


def report(config: Config, dt: Night = "latest", **options: Option) -> Summary:
    """Report a published night: what `nearprint report --json` prints. `html="page.html"` writes the page too."""
    return _run("report", config, {"dt": night_of(dt)}, options)


def filter(config: Config, output: str | os.PathLike[str], dt: Night | None = None, **options: Option) -> Summary:
    """Write the documents that stay: those of a night, or with `corpus=True` those of all nights, each once.

    The option `as` of the command is `texts` here: `texts="parquet"` writes the texts that were compared.
    """
    texts = options.pop("texts", None)
    night = None if dt is None else night_of(dt)
    return _run("filter", config, {"output": os.fspath(output), "dt": night, "as": texts}, options)


def explain(config: Config, *ids: str | int, **options: Option) -> Summary:
    """Explain what became of a document in each night, or why two documents are near-duplicates or not."""
    return _run("explain", config, {}, options, *map(str, ids))


def audit(config: Config, dt: Night = "latest", **options: Option) -> Summary:
    """Draw documents that a night dropped, for people to look at.

    Raises:
        Error: no text of a document that was drawn can be read; `unmeasured` in `summary` says why.
    """
    return _run("audit", config, {"dt": night_of(dt)}, options)


def diff(config: Config, dt: Night = "latest", **options: Option) -> Summary:
    """Compare the generations of a night."""
    return _run("diff", config, {"dt": night_of(dt)}, options)


def check(config: Config, **options: Option) -> Summary:
    """Check the store and the results against their own records.

    Raises:
        Error: something is damaged; `summary` says what.
    """
    return _run("check", config, {}, options)


def query(config: Config, text: str | None = None, **options: Option) -> Summary:
    """Find the documents of a job's store that are near a text, an `id` or a `fingerprint`. `Store` answers many queries.

    Raises:
        TypeError: `text` is no str.
        ValueError: the text is no word of a command line: it has more than 100,000 bytes, or a NUL character.
    """
    if text is not None and not isinstance(text, str):
        raise TypeError(f"text: {type(text).__name__} is no text: ask Store(place).query for a fingerprint or a column")
    fingerprint = options.get("fingerprint")
    if isinstance(fingerprint, numbers.Integral):
        # The command takes 16 digits for those of hex.
        options["fingerprint"] = f"{int(fingerprint):#x}"
    if text is not None and (len(text.encode("utf-8", "replace")) > 100_000 or "\0" in text):
        raise ValueError("text: it has more than 100,000 bytes, or a NUL character: ask Store(place).query(text)")
    return _run("query", config, {"text": text}, options)
