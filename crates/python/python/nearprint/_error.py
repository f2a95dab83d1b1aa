"""The exception of the package."""

from __future__ import annotations

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
        summary: the summary of a night that a breaker stopped, or None.

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
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.exit_code = exit_code
        self.file = file
        self.column = column
        self.row = row
        self.summary = summary
