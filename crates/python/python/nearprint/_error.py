"""The exception of the package."""

from __future__ import annotations

import re
from typing import Any


class Error(Exception):
    """An error of nearprint: what it is about, and how a scheduler should treat it.

    Attributes:
        kind: "usage", "bad_data", "input_missing", "store_unavailable", "bug", "output_exists", "local_io",
            "try_again", "permission", "config", or "other" for a code of your own.
        exit_code: the exit code with which the command ends for the same reason, such as 65 for bad data.
        file: the path or URL that the error is about, or None.
        column: the column of the file, or None.
        row: the row or line of the file, counted from 1, or None.
        summary: the summary of a night that a breaker stopped, or of another command that failed, or None.

    An error of a key or an argument that the caller has given is a `ValueError` too.

    `file`, `column` and `row` are None for what runs as a command: `report`, `filter`, `explain`, `audit`, `diff`, `check`
    and `query`. Their message has the place.

    >>> import nearprint
    >>> try:
    ...     nearprint.run("no-such-job.toml", "2026-11-20")
    ... except nearprint.Error as error:
    ...     error.kind, error.exit_code, error.file
    ('input_missing', 66, 'no-such-job.toml')
    """

    kind: str
    exit_code: int
    file: str | None
    column: str | None
    row: int | None
    summary: dict[str, Any] | None

    # The defaults are for pickle, which sets the attributes afterwards.
    def __init__(
        self,
        message: str,
        *,
        kind: str = "bug",
        exit_code: int = 70,
        file: str | None = None,
        column: str | None = None,
        row: int | None = None,
        summary: dict[str, Any] | None = None,
        about: Any = None,
        reason: str | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.exit_code = exit_code
        self.file = file
        self.column = column
        self.row = row
        self.summary = summary
        # What the package tells it by, as error.rs gives it, and the message without a remedy.
        self._about = about
        self._reason = message if reason is None else reason
        # It is about a key of the engine, not about one of the job.
        self._is_of_engine = False


class SettingError(Error, ValueError):
    """An error of a key or of an argument that the caller has given."""


def retold(error: Error, message: str, gone: str | None, kind: type[Error] | None = None) -> Error:
    """The error with another message, and without the place in a file that is there no longer."""
    names = ["kind", "exit_code", "column", "summary", *(["file", "row"] if error.file != gone else [])]
    attributes = {name: getattr(error, name) for name in names} | {"about": error._about, "reason": error._reason}
    if error.summary is not None and error.summary.get("error") == str(error):
        attributes["summary"] = type(error.summary)({**error.summary, "error": message})
    return (kind or type(error))(message, **attributes)


def of_settings(error: Error, path: str | None) -> Error:
    """The error of a call. `path` is that of its job file if it was made of keys, and is there no longer: no error names it."""
    message = str(error)
    if path is not None:
        message = re.sub(re.escape(path) + r":(?: line \d+, column \d+:)? ", "", message)
        message = re.sub(re.escape(path) + r"(?!\d)", "the job", message)
    is_of_job = error.kind == "config" and path is not None and not error._is_of_engine
    if error.kind == "usage" or is_of_job:
        return retold(error, message, path, SettingError)
    return error if message == str(error) else retold(error, message, path)
