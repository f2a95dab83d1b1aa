"""Jobs and nights, as Python has them."""

from __future__ import annotations

import contextlib
import datetime
import json
import numbers
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Union

from ._error import Error, of_settings


class Job(Mapping[str, Any]):
    """The keys of a job file, for functions that take a job. Those of tables are in dictionaries.

    >>> import nearprint
    >>> job = nearprint.Job(documents="crawl", store="store", output="results", breakers={"max_cluster": 1000})
    >>> job["breakers"], len(job)
    ({'max_cluster': 1000}, 4)
    >>> nearprint.Job({**job, "store": "other"})
    Job(documents='crawl', store='other', output='results', breakers={'max_cluster': 1000})
    """

    def __init__(self, keys: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        self._keys = {**(keys or {}), **more}

    def __getitem__(self, key: str) -> Any:
        return self._keys[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __repr__(self) -> str:
        return f"Job({', '.join(f'{key}={value!r}' for key, value in self._keys.items())})"

    def __str__(self) -> str:
        return job_text(self)


Config = Union[str, "os.PathLike[str]", Mapping[str, Any]]
"""A job: its file, its keys as a dictionary, or a `Job`."""

Night = Union[str, datetime.date]  # noqa: UP007
"""The date of a night."""

Option = Union[str, int, float, bool, "os.PathLike[str]", Sequence[str], None]
"""An option of a command."""


def night_of(dt: Night) -> str:
    """The date of a night: a text, a date, or a time, whose date counts.

    >>> night_of(datetime.date(2026, 11, 20)), night_of("2026-11-20")
    ('2026-11-20', '2026-11-20')
    """
    if isinstance(dt, datetime.datetime):
        dt = dt.date()
    return dt.isoformat() if isinstance(dt, datetime.date) else str(dt)


def job_text(job: Mapping[str, Any]) -> str:
    """A job file with these keys; those of tables are in dictionaries. Keys that are None are left out.

    >>> print(job_text({"store": "s", "breakers": {"max_cluster": 5}, "keep": ["length desc"], "lock": None}), end="")
    store = "s"
    keep = ["length desc"]
    [breakers]
    max_cluster = 5
    """
    keys = {key: value for key, value in job.items() if value is not None}
    plain = [f"{_name(key)} = {_value(key, value)}\n" for key, value in keys.items() if not isinstance(value, Mapping)]
    tables = [(key, value) for key, value in keys.items() if isinstance(value, Mapping)]
    return "".join(plain + [_table(_name(key), value) for key, value in tables])


def _name(key: str) -> str:
    """A key of TOML, which may be that of a table, such as "breakers.max_cluster". What is no key is in quotes, and refused by its name."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*", str(key)) else _text(str(key))


def _text(value: str) -> str:
    # Strings of TOML have the escapes of JSON, and no bare delete.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _table(name: str, table: Mapping[str, Any]) -> str:
    inner = {key: value for key, value in table.items() if value is not None}
    lines = [f"{_name(key)} = {_value(key, value)}\n" for key, value in inner.items() if not isinstance(value, Mapping)]
    below = [_table(f"{name}.{_name(key)}", value) for key, value in inner.items() if isinstance(value, Mapping)]
    return "".join([f"[{name}]\n", *lines, *below])


def _value(key: str, value: Any) -> str:
    value = _plain(value)
    if isinstance(value, (bool, int)):
        return json.dumps(value)
    # Floats, fractions, and long floats of NumPy. Those of TOML may be nan and inf.
    if isinstance(value, numbers.Real):
        return repr(float(value))
    if isinstance(value, (str, os.PathLike)):
        return _text(os.fspath(value))
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(key, one) for one in value) + "]"
    raise TypeError(f"{key}: {type(value).__name__} is no value of a job file: give a text, a number, a bool, a list or a dictionary")


def _plain(value: Any) -> Any:
    """A number or a bool of NumPy as one of Python, and any other value as it is."""
    return value.item() if hasattr(value, "item") and not hasattr(value, "__len__") else value


@contextlib.contextmanager
def job_file(config: Config) -> Iterator[tuple[str, list[int]]]:
    """The path of a job file, and the numbers of the open files that it needs. Relative paths in a dictionary begin at the working
    folder. Errors are told as those of what the caller has given.
    """
    with _file_of(config) as (path, open_files):
        try:
            yield path, open_files
        except Error as error:
            raise of_settings(error, path if isinstance(config, Mapping) else None) from None


@contextlib.contextmanager
def _file_of(config: Config) -> Iterator[tuple[str, list[int]]]:
    if not isinstance(config, Mapping):
        yield os.fspath(config), []
        return
    # A job file that is named by its number has the working folder. It is read more than once, so it is no pipe.
    with tempfile.TemporaryFile("w", encoding="utf-8") as file:
        file.write(job_text(config))
        file.flush()
        yield f"/dev/fd/{file.fileno()}", [file.fileno()]


def arguments_of(options: Mapping[str, Option]) -> list[str]:
    """The arguments of the command for options of a function."""
    arguments = []
    for name, value in options.items():
        # The command names what may be repeated in the singular.
        flag = "--root" if name == "roots" else "--" + name.replace("_", "-")
        value = _plain(value)
        if value is None or value is False:
            continue
        if value is True:
            arguments.append(flag)
            continue
        values = [value] if isinstance(value, (str, int, float, os.PathLike)) else value
        for one in values:
            arguments.append(f"{flag}={os.fspath(one) if isinstance(one, os.PathLike) else one}")
    return arguments
