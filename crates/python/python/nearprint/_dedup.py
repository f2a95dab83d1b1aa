"""Near-duplicates of a frame: one night in a folder of its own."""

from __future__ import annotations

import contextlib
import datetime
import html
import os
import pathlib
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from . import _nearprint
from ._error import Error, SettingError, of_settings, retold
from ._frames import Frame, frame_of
from ._job import arguments_of, job_text, night_of
from ._progress import Watch, watching
from ._summary import Summary

NIGHT = "2000-01-01"
"""The night of frames that no store has."""

ALWAYS = ["decision", "reason", "canonical_id", "distance", "lost_share", "cluster_id", "cluster_size"]
WITH_STORE = ["reference"]
OF_STORE = ["recrawl", "first_seen", "last_changed", "family_id"]
PAIRS = ["id_a", "id_b", "distance", "sketch_distance", "scope", "reason"]


def dedup(
    frame: Any,
    text: str = "text",
    id: str | None = "id",
    keep: str | Sequence[str] | None = None,
    *,
    profile: str = "default",
    max_lost_share: float | None = None,
    prefix: str = "",
    progress: Watch = None,
    **settings: Any,
) -> Any:
    """Decide which rows of a frame are near-duplicates of others, as a night decides: returns the frame with columns.

    Each dropped row has the text of a kept one, or makes a verified pair with it; that row represents it, and it loses little.
    Rows with short texts, which are compared as wholes, and rows without a text are decided as well.

    Args:
        frame: a frame of pandas, Polars, pyarrow or DuckDB; a list of dictionaries, or of texts; or a column of texts.
        text: the column of the texts.
        id: the column of the ids, which are all different. If the frame has no column `id`, or `id` is None, rows have their
            numbers, from 0 on, as ids.
        keep: which of near rows stays, as in a job file: `["length desc"]` unless given, that is the longest text. Other
            columns of the frame may stand here: `["score desc", "length desc"]`, or `"score desc"` alone. If rows are equal in
            all of them, the one whose id comes first as a text stays; for numbers of rows it is the first row.
        profile: the name of a profile.
        max_lost_share: the largest share of its text that a dropped row may lose; the profile's unless given.
        prefix: what the names of the new columns begin with, if the frame has columns of these names.
        progress: as `run` has it.
        **settings: other keys of a job file: `threads=4`, `memory_limit="4GiB"`, `spill_dir="/big/disk"`, and tables of
            it as dictionaries: `judge={"max_looks": 0}`. The texts are written to `spill_dir` meanwhile. Paths of files begin
            at the working folder. `references=[…]` names stores: rows that are near one of their documents are dropped for it.

    Returns:
        The frame in its own form, with all its rows in their order and these columns: `decision` ("keep", "drop", or
        "skip" for a row without a text), `reason`, `canonical_id` (the id of the row that represents a dropped one),
        `distance`, `lost_share`, `cluster_id` and `cluster_size`. Without a column of ids, `canonical_id` and
        `cluster_id` are numbers of rows. With stores, `canonical_id` is text: documents of stores have such ids.

    Raises:
        TypeError: `frame` is none of these, or a column is named by what is no text.
        ValueError: the frame lacks a column, or has one of the new names already; or a setting has no meaning for frames.
        Error: two rows have one id, or whatever else makes a night fail. That of a setting is a `ValueError` too.

    >>> import nearprint
    >>> line = "The quick brown fox jumps over the lazy dog near the old river bank."
    >>> for row in nearprint.dedup([line, line.upper(), "Another page about something else, which nobody wrote before it."]):
    ...     row["decision"], row["canonical_id"]
    ('keep', None)
    ('drop', 0)
    ('keep', None)
    """
    deduplicator = Deduplicator(profile=profile, max_lost_share=max_lost_share, **settings)
    return deduplicator.dedup(frame, text, id, keep, prefix=prefix, progress=progress).frame


class Deduplicator:
    """Decides about frames: alone, or together with the documents of a store.

    Args:
        store: a store, or None. Rows that are near one of its documents are dropped for it.
        output: the output of the store's nights. Only frames that are added to the store need it.
        profile: the name of a profile, that of the store.
        max_lost_share: the largest share of its text that a dropped row may lose; the profile's unless given.
        **settings: other keys of a job file. Each row gets a decision, so keys that would leave rows out are refused.

    >>> import nearprint
    >>> line = "The quick brown fox jumps over the lazy dog near the old river bank."
    >>> found = nearprint.Deduplicator().dedup([line, line.upper()])
    >>> found.kept
    ['The quick brown fox jumps over the lazy dog near the old river bank.']
    >>> found.summary["n_drop"]
    1
    """

    def __init__(
        self,
        store: str | os.PathLike[str] | None = None,
        output: str | os.PathLike[str] | None = None,
        *,
        profile: str = "default",
        max_lost_share: float | None = None,
        **settings: Any,
    ) -> None:
        self.store, self.output = (None if place is None else _place(place) for place in (store, output))
        settings = _given(settings)
        if self.output is not None and self.store is None:
            message = "output: it is that of the nights of a store: give the store too, Deduplicator(store, output)"
            raise SettingError(message, kind="usage", exit_code=64)
        for key, (as_it_is, instead) in INSTEAD.items():
            if settings.pop(key, as_it_is) != as_it_is:
                raise SettingError(f"{key}: {instead}", kind="usage", exit_code=64)
        resources = {**{key: settings.pop(key) for key in RESOURCES if key in settings}, **settings.pop("resources", {})}
        for paths, keys in ((settings, FILES), (resources, ("spill_dir",))):
            paths |= {key: os.path.abspath(paths[key]) for key in keys if key in paths}
        references = settings.pop("references", [])
        if isinstance(references, (str, os.PathLike)):
            raise SettingError("references: a list of stores", kind="usage", exit_code=64)
        self.references = [_place(place) for place in references]
        self.settings = {"profile": profile, "max_lost_share": max_lost_share, **settings}
        if resources:
            self.settings["resources"] = resources

    def dedup(
        self,
        frame: Any,
        text: str = "text",
        id: str | None = "id",
        keep: str | Sequence[str] | None = None,
        *,
        add: str | datetime.date | None = None,
        replace: bool = False,
        late: bool = False,
        prefix: str = "",
        progress: Watch = None,
    ) -> Deduplicated:
        """Decide about the rows of a frame.

        Args:
            frame, text, id, keep, prefix, progress: as `dedup` has them.
            add: the date of the night as which the frame is added to the store, such as "2026-11-20"; None adds nothing.
                A frame that is added needs a column of ids, and the store's `output`. A store that is not there is made.
            replace: the frame takes the place of the night of that date. Without it a date that the store has is refused,
                even if the frame is the same.
            late: the store may have later nights. They do not know the frame: add their frames again, with `replace`.

        Raises:
            ValueError: `add` is given, and there is no store, no column of ids, or no output in a folder of this machine; or
                `replace` or `late` is given without it.
        """
        keep = [] if keep is None else keep
        keep = [keep] if isinstance(keep, str) or not isinstance(keep, Sequence) else list(keep)
        for argument, name in (("text", text), ("id", "" if id is None else id), *(("keep", term) for term in keep)):
            if not isinstance(name, str):
                raise TypeError(f"{argument}: {name!r} is no text, and columns are named by texts: rename it, as with frame.rename(columns=str)")
        given = frame_of(frame, text)
        there = given.columns()
        # A column that the caller has not named may be missing.
        own_id = None if id == "id" and id not in there else id
        source = self.settings.get("source_column")
        wanted = list(dict.fromkeys([*([own_id] if own_id is not None else []), text, *order_of(keep), *([source] if source is not None else [])]))
        for name in wanted:
            if name not in there:
                raise ValueError(f"frame: no column '{name}', it has: {', '.join(map(str, there))}")
            if there.count(name) > 1:
                raise ValueError(f"frame: several columns have the name '{name}': rename all but one")
        for name in order_of(keep):
            if given.has_categories(name):
                raise ValueError(f"keep: column '{name}' has categories, whose own order is not known here: make it one of numbers, or of texts")
        references = [*([self.store] if self.store and add is None else []), *self.references]
        names = [*ALWAYS, *(WITH_STORE if references else []), *(OF_STORE if add is not None else [])]
        taken = [prefix + name for name in names if prefix + name in there]
        if taken:
            raise ValueError(f"frame: it has a column '{taken[0]}' already: name the new ones with prefix=, such as prefix='near_'")
        if add is not None and (self.store is None or self.output is None or own_id is None):
            raise ValueError("add: a frame is added to a store with an output, Deduplicator(store, output), and by its column of ids")
        if add is not None and self.output is not None and "://" in self.output:
            raise ValueError(f"add: the results are read from the output, which must be a folder of this machine: {self.output}")
        if add is not None and not _is_date(night_of(add)):
            raise ValueError(f"add: '{add}': give the date of the night, such as 2026-11-20")
        if add is None and (replace or late):
            raise ValueError("replace, late: they are about the night of a store: give its date with add=")
        ids = own_id
        if ids is None:
            # The numbers of the rows are in a column of their own.
            ids = "row"
            while ids in wanted:
                ids += "_"
        with _folder(self.settings) as folder:
            night = night_of(add) if add is not None else NIGHT
            place = folder / "documents" / f"dt={night}"
            place.mkdir(parents=True)
            rows = place / "rows.parquet"
            n_rows = _nearprint.write_columns(given.table(wanted), wanted, rows, ids if own_id is None else None)
            places: dict[str, str | None] = {"store": str(folder / "store"), "output": str(folder / "results")}
            if add is not None:
                places = {"store": self.store, "output": self.output}
            job = {**self.settings, **places, "references": references or None, "documents": str(folder / "documents"), "text_column": text}
            job |= {"id_column": ids, "keep": keep or None}
            path = folder / "job.toml"
            if add is None:
                # A stub leaves a page with its earlier text, and a frame has none.
                job = {"stubs": {"find": False}, **job}
            path.write_text(job_text({**job, "create_store": True, "allow_empty": n_rows == 0}), encoding="utf-8")
            arguments = ["--config", str(path), "--dt", night, "--no-breakers", *arguments_of({"replace": replace, "late": late})]
            with watching(progress) as called, _told_of_frame(path, rows, ids):
                summary = Summary.of(_nearprint.run(arguments, progress=called), job)
            files = pathlib.Path(str(places["output"]))
            of_night = f"dt={night}/*{summary['generation']}*.parquet"
            decisions = _read(files / "decisions", of_night, ["doc_id", *names])
            pairs = _read(files / "pairs", of_night, PAIRS)
        # Documents of stores have ids of their own, which are texts.
        of_stores = bool(references) or add is not None
        return Deduplicated(given, own_id, decisions, pairs, summary, prefix, of_stores)


def _is_date(night: str) -> bool:
    try:
        return datetime.date.fromisoformat(night).isoformat() == night
    except ValueError:
        return False


def _given(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings without those that are None, and without tables that have no others."""
    inner = {key: _given(value) if isinstance(value, Mapping) else value for key, value in settings.items()}
    return {key: value for key, value in inner.items() if value is not None and value != {}}


def order_of(keep: Sequence[str]) -> list[str]:
    """The columns of a keep order. The length of a text is none."""
    names = [term.split()[0] for term in keep if term.split()]
    return [name for name in names if name != "length"]


RESOURCES = ("threads", "memory_limit", "spill_dir")
FILES = ("user_dictionary", "stop_words", "idf", "lock")
"""The keys of files of this machine, beside `spill_dir`."""
INSTEAD = {
    "documents": (None, "the frame has the documents"),
    "text_column": (None, "name the column with text="),
    "id_column": (None, "name the column with id="),
    "create_store": (True, "a frame that is added makes the store that is not there"),
    "allow_empty": (True, "an empty frame is allowed in any case"),
    "on_duplicate_id": ("fail", "each row of a frame gets a decision: give the rows different ids, or none"),
    "max_bad_rows": (0, "each row of a frame gets a decision: raise max_doc_bytes, or leave such rows out"),
    "max_bad_files": (0, "a frame is no file"),
    **dict.fromkeys(("require_marker", "documents_version", "roots", "clone_roots"), (None, "a frame has no files")),
    "max_ignored_files": (0, "a frame has no files"),
    "watch": (None, "a frame leaves no files beside its results"),
    "keep": (None, "say which of near rows stays with keep= of dedup"),
    "breakers": (None, "a frame has no nights before it, so none is on: look at the summary of Deduplicator(…).dedup(…)"),
}
"""Keys of a job file that have no meaning for a frame, each with the value that it has for one, and what to do instead."""


class Deduplicated:
    """What was decided about a frame, in the form of the frame.

    Attributes:
        frame: the frame with the columns that `dedup` describes.
        kept: the rows that stay, as they were given.
        dropped: the rows that others represent, as they were given.
        pairs: the pairs of near-duplicates: `id_a`, `id_b`, `distance`, `sketch_distance`, `scope` and `reason`. They
            are a forest that connects all rows that belong together, unless their texts are short: equal ones make no pairs.
        clusters: the rows of clusters of two and more: `cluster_id`, `cluster_size`, `id`, `decision`, `canonical_id`.
        summary: the summary of the night, as `run` returns it.
    """

    def __init__(
        self,
        given: Frame,
        id: str | None,
        decisions: _nearprint.Table,
        pairs: _nearprint.Table,
        summary: Summary,
        prefix: str,
        of_stores: bool,
    ) -> None:
        self._given, self._prefix, self.summary = given, prefix, summary
        if id is not None:
            decisions = _nearprint.rows_of(decisions, given.column(id))
        elif of_stores:
            # Numbers of rows have leading zeros in a night, whose ids are in order as texts.
            decisions = _with(decisions, "canonical_id", _nearprint.unpadded(decisions["canonical_id"], decisions["reference"], None))
            pairs = _with(pairs, "id_b", _nearprint.unpadded(pairs["id_b"], pairs["scope"], "new_new"))
        integers = "int64" if id is None else given.integers(id)
        ids = [name for name in IDS if integers is not None and not (of_stores and name in IDS_OF_STORES)]
        self._decisions, self._pairs = (_with_ids(table, ids, integers == "uint64") for table in (decisions, pairs))

    @property
    def frame(self) -> Any:
        columns = {self._prefix + name: self._decisions[name] for name in self._decisions.column_names[1:]}
        return self._given.with_columns(columns)

    @property
    def kept(self) -> Any:
        return self._rows("keep")

    @property
    def dropped(self) -> Any:
        return self._rows("drop")

    def _rows(self, wanted: str) -> Any:
        return self._given.rows([decision == wanted for decision in self._decisions["decision"].to_pylist()])

    @property
    def pairs(self) -> Any:
        return self._given.of(self._pairs)

    @property
    def clusters(self) -> Any:
        together = _nearprint.rows_above(self._decisions, "cluster_size", 1)
        names = {"cluster_id": "cluster_id", "cluster_size": "cluster_size", "id": "doc_id", "decision": "decision", "canonical_id": "canonical_id"}
        return self._given.of(_nearprint.table_of([(name, together[column]) for name, column in names.items()]))

    def __len__(self) -> int:
        return len(self._decisions)

    def __repr__(self) -> str:
        n = self.summary
        return f"<nearprint.Deduplicated: {n['n_keep']:,} of {n['n_documents']:,} rows stay, near-duplicates: {n['n_drop']:,}>"

    def _repr_html_(self) -> str:
        n = self.summary
        rows = [("rows", n["n_documents"]), ("stay", n["n_keep"]), ("near-duplicates", n["n_drop"]), ("without a text", n.get("n_skip", 0))]
        cells = "".join(f"<tr><th style='text-align:left'>{html.escape(name)}</th><td style='text-align:right'>{count:,}</td></tr>" for name, count in rows)
        return f"<table>{cells}</table>"


IDS = ("doc_id", "id_a", "id_b", "canonical_id", "cluster_id")
IDS_OF_STORES = ("id_b", "canonical_id")
"""The columns with ids that may be those of documents of stores."""


def _with(table: _nearprint.Table, name: str, column: _nearprint.Array) -> _nearprint.Table:
    """The table with another column of this name."""
    return _nearprint.table_of([(one, column if one == name else table[one]) for one in table.column_names])


def _with_ids(table: _nearprint.Table, ids: Sequence[str], unsigned: bool) -> _nearprint.Table:
    """The table with integers in these columns, which are ids."""
    if not ids:
        return table
    columns = [(name, _nearprint.integers_of(table[name], unsigned) if name in ids else table[name]) for name in table.column_names]
    return _nearprint.table_of(columns)


def _read(folder: pathlib.Path, files: str, columns: list[str]) -> _nearprint.Table:
    return _nearprint.read_columns(sorted(folder.glob(files)), columns)


def _place(place: str | os.PathLike[str]) -> str:
    place = os.fspath(place)
    return place if "://" in place else os.path.abspath(place)


def _folder(settings: dict[str, Any]) -> _nearprint.TempFolder:
    """A folder for one night, beside what the night spills."""
    parent = settings.get("resources", {}).get("spill_dir")
    try:
        return _nearprint.TempFolder(os.path.realpath(parent or tempfile.gettempdir()))
    except Error as error:
        if parent is None:
            raise
        raise retold(error, f"spill_dir: {error}: name a folder in which files can be made", None, SettingError) from None


@contextlib.contextmanager
def _told_of_frame(job: pathlib.Path, rows: pathlib.Path, id: str) -> Iterator[None]:
    """Tells errors as those of the frame and of the settings. A night would tell of its files, and offer keys that leave rows out."""
    try:
        yield
    except Error as raised:
        error = of_settings(raised, str(job))
        message = _of_frame(error, str(rows), id)
        raise (error if message == str(error) else retold(error, message, str(rows))) from None


def _of_frame(error: Error, rows: str, id: str) -> str:
    """The message of an error about the file of a frame as one about the frame."""

    def of_rows(message: str) -> str:
        return re.sub(re.escape(rows) + r" row (\d+)", lambda row: f"row {int(row[1]) - 1}", message)

    about = error._about
    if about == "far_ahead":
        return f"add: {error._reason}: check the date"
    if about == "repeated_ids":
        return f"{of_rows(error._reason)}: give the rows different ids, or none (id=None); the first row is row 0"
    if about is not None:
        counts = ", ".join(f"{n} {reason}" for reason, n in about["by_reason"].items())
        what = BAD_ROWS.get(about["reason"], f"{about['reason']}: mend the row").format(id=id)
        row = f"row {about['row'] - 1}"
        if about["n"] == 1:
            return f"{row} cannot be used ({counts}): {what}; the first row is row 0"
        least = "at least " if about["is_stopped"] else ""
        return f"{least}{about['n']} rows cannot be used ({counts}), such as {row}: {what}; the first row is row 0"
    return re.sub(re.escape(rows) + ": ", "frame: ", of_rows(str(error)))


BAD_ROWS = {
    "null_id": "column '{id}' has no value: fill the column, or use the numbers of the rows (id=None)",
    "too_large": "its text has more bytes than max_doc_bytes, or its id or a value for keep has more than 64 KiB: raise max_doc_bytes, or shorten them",
    "invalid_utf8": "its text, or its id or a value for keep, has bytes that are not UTF-8: decode them",
    "wrong_type": "a value for keep is above 2**63 - 1, or is a time that microseconds cannot count: make the column one of floats",
}
"""What is wrong with a row of a frame, by the reason of the night."""
