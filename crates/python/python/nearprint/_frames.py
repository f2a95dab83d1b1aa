"""Frames of pandas, Polars, pyarrow, DuckDB and lists: their columns, and results in their form."""

# None of these libraries is needed, and not all of them have types.
# mypy: ignore-errors

from __future__ import annotations

import numbers
from typing import Any

from . import _nearprint

INTEGERS = {f"{sign}int{bits}" for sign in ("u", "") for bits in (8, 16, 32, 64)}


def frame_of(given: Any, text: str) -> Frame:
    """The frame of what a caller has given, whose column of texts has this name, or which is that column.

    Raises:
        TypeError: it is nothing of these.
    """
    if isinstance(given, (list, tuple)):
        return _List(given, text)
    for of in (_Pandas, _Polars, _Arrow, _DuckDB):
        if _is_of(given, of.library, of.kinds):
            return of(given, text)
    kind = type(given)
    raise TypeError(f"frame: {kind.__module__}.{kind.__qualname__}: give a frame of pandas, Polars, pyarrow or DuckDB, a column, or a list")


def _is_of(given: Any, library: str, kinds: tuple[str, ...]) -> bool:
    """Whether a value has one of these types of a library, or a type that is derived from one."""
    return any(kind.__name__ in kinds and kind.__module__.partition(".")[0].lstrip("_") == library for kind in type(given).__mro__)


def _integers_of(values: Any) -> str:
    """The type that holds these integers, "int64" or "uint64"."""
    return "uint64" if any(value >= 2**63 for value in values) else "int64"


class Frame:
    """Rows with a text each, in the form of some library. `given` is what the caller has given, `frame` a table of it. What the
    caller changes afterwards changes neither.
    """

    def __init__(self, given: Any, frame: Any) -> None:
        self.given, self.frame = given, frame

    def columns(self) -> list[str]:
        return list(self.frame.columns)

    def table(self, columns: list[str]) -> Any:
        """Some columns, as what speaks Arrow's interface."""
        return self.frame.select(columns)

    def column(self, name: str) -> Any:
        return self.frame[name]

    def integers(self, name: str) -> str | None:
        """The type of the integers that a column has, "int64" or "uint64"; None for other columns. Ids of a night are texts."""
        raise NotImplementedError

    def has_categories(self, name: str) -> bool:
        """Whether the values of a column are categories, which may have an order of their own."""
        return False

    def with_columns(self, columns: dict[str, _nearprint.Array]) -> Any:
        """The frame with more columns, in its own form."""
        raise NotImplementedError

    def rows(self, keep: list[bool]) -> Any:
        """The rows for which `keep` has True, as they were given."""
        raise NotImplementedError

    def of(self, table: _nearprint.Table) -> Any:
        """A table of results in the form of the frame."""
        raise NotImplementedError


class _List(Frame):
    """Texts, or dictionaries."""

    def __init__(self, given: Any, text: str) -> None:
        given = [dict(row) if isinstance(row, dict) else row for row in given]
        super().__init__(given, [row if isinstance(row, dict) else {text: row} for row in given])
        self.names = list(dict.fromkeys(name for row in self.frame for name in row)) or [text]

    def columns(self) -> list[str]:
        return self.names

    def table(self, columns: list[str]) -> Any:
        return _nearprint.table_of([(name, self.column(name)) for name in columns])

    def column(self, name: str) -> Any:
        return [row.get(name) for row in self.frame]

    def integers(self, name: str) -> str | None:
        values = self.column(name)
        if not all(isinstance(value, numbers.Integral) for value in values):
            return None
        return _integers_of(values)

    def with_columns(self, columns: dict[str, _nearprint.Array]) -> Any:
        values = {name: column.to_pylist() for name, column in columns.items()}
        return [{**row, **{name: of[at] for name, of in values.items()}} for at, row in enumerate(self.frame)]

    def rows(self, keep: list[bool]) -> Any:
        return [row for row, stays in zip(self.given, keep) if stays]

    def of(self, table: _nearprint.Table) -> Any:
        return table.to_pylist()


class _Pandas(Frame):
    library, kinds = "pandas", ("DataFrame", "Series", "Index")

    def __init__(self, given: Any, text: str) -> None:
        import pandas as pd

        # From pandas 3 on, a copy shares its values until one of the two is changed.
        given = given.copy(deep=int(pd.__version__.split(".")[0]) < 3)
        super().__init__(given, given if hasattr(given, "columns") else given.to_frame(name=text))
        self.text = text

    def table(self, columns: list[str]) -> Any:
        return _nearprint.table_of([(name, self.column(name)) for name in columns])

    def column(self, name: str) -> Any:
        return _of_pandas(self.frame[name])

    def integers(self, name: str) -> str | None:
        from pandas.api.types import infer_dtype

        values = self.frame[name]
        values = values.cat.categories if hasattr(values, "cat") else values
        if values.dtype.kind == "O" and infer_dtype(values) == "integer":
            return _integers_of(values.dropna())
        return {"i": "int64", "u": "uint64"}.get(values.dtype.kind)

    def has_categories(self, name: str) -> bool:
        return hasattr(self.frame[name], "cat")

    def with_columns(self, columns: dict[str, _nearprint.Array]) -> Any:
        return self.frame.assign(**{name: to_pandas(column).set_axis(self.frame.index) for name, column in columns.items()})

    def rows(self, keep: list[bool]) -> Any:
        import numpy as np

        return self.given[np.array(keep, dtype=bool)]

    def of(self, table: _nearprint.Table) -> Any:
        return to_pandas(table)


class _Polars(Frame):
    library, kinds = "polars", ("DataFrame", "LazyFrame", "Series")

    def __init__(self, given: Any, text: str) -> None:
        self.is_lazy, self.text = hasattr(given, "collect"), text
        # Whoever asks a lazy frame for its columns has it computed.
        self.is_column = not self.is_lazy and not hasattr(given, "columns")
        given = given.clone()
        frame = given.collect() if self.is_lazy else given
        super().__init__(given, frame.alias(text).to_frame() if self.is_column else frame)

    def table(self, columns: list[str]) -> Any:
        return readable(self.frame.select(columns))

    def column(self, name: str) -> Any:
        return self.table([name])[name]

    def integers(self, name: str) -> str | None:
        dtype = self.frame[name].dtype
        if not dtype.is_integer():
            return None
        return "uint64" if dtype.is_unsigned_integer() else "int64"

    def has_categories(self, name: str) -> bool:
        import polars as pl

        return isinstance(self.frame[name].dtype, (pl.Categorical, pl.Enum))

    def with_columns(self, columns: dict[str, _nearprint.Array]) -> Any:
        made = self.frame.with_columns([to_polars(column).alias(name) for name, column in columns.items()])
        return made.lazy() if self.is_lazy else made

    def rows(self, keep: list[bool]) -> Any:
        import polars as pl

        kept = self.frame.filter(pl.Series(keep, dtype=pl.Boolean))
        if self.is_lazy:
            return kept.lazy()
        return kept[self.text].alias(self.given.name) if self.is_column else kept

    def of(self, table: _nearprint.Table) -> Any:
        return to_polars(table).lazy() if self.is_lazy else to_polars(table)


def readable(frame: Any) -> Any:
    """A frame of Polars in a form that others read: of a column without any value, Polars gives no Arrow that they do."""
    import polars as pl

    of_names = {"fingerprint": pl.UInt64, "sketch": pl.Binary}
    null = [name for name, of in frame.schema.items() if of == pl.Null]
    return frame.with_columns(pl.col(name).cast(of_names.get(name, pl.String)) for name in null)


class _Arrow(Frame):
    library, kinds = "pyarrow", ("Table", "RecordBatch", "RecordBatchReader", "Array", "ChunkedArray")

    def __init__(self, given: Any, text: str) -> None:
        import pyarrow as pa

        frame = given
        if hasattr(given, "read_all"):
            frame = given = given.read_all()
        elif isinstance(given, pa.RecordBatch):
            frame = pa.Table.from_batches([given])
        elif not isinstance(given, pa.Table):
            frame = pa.table({text: given})
        super().__init__(given, frame)

    def columns(self) -> list[str]:
        return self.frame.column_names

    def integers(self, name: str) -> str | None:
        import pyarrow as pa

        of = self.frame.schema.field(name).type
        of = of.value_type if pa.types.is_dictionary(of) else of
        if not pa.types.is_integer(of):
            return None
        return "uint64" if pa.types.is_unsigned_integer(of) else "int64"

    def has_categories(self, name: str) -> bool:
        import pyarrow as pa

        return pa.types.is_dictionary(self.frame.schema.field(name).type)

    def with_columns(self, columns: dict[str, _nearprint.Array]) -> Any:
        made = self.frame
        for name, column in columns.items():
            made = made.append_column(name, to_arrow(column))
        return made

    def rows(self, keep: list[bool]) -> Any:
        import pyarrow as pa

        return self.given.filter(pa.array(keep, pa.bool_()))

    def of(self, table: _nearprint.Table) -> Any:
        return to_arrow(table)


class _DuckDB(_Arrow):
    """A relation. It is a question: asked again, it may give its rows in another order. So it is asked once."""

    library, kinds = "duckdb", ("DuckDBPyRelation",)

    def __init__(self, given: Any, text: str) -> None:
        super().__init__(given.to_arrow_table(), text)

    def with_columns(self, columns: dict[str, _nearprint.Array]) -> Any:
        return self._relation(super().with_columns(columns))

    def rows(self, keep: list[bool]) -> Any:
        return self._relation(super().rows(keep))

    def of(self, table: _nearprint.Table) -> Any:
        return self._relation(super().of(table))

    def _relation(self, table: Any) -> Any:
        import duckdb

        return duckdb.from_arrow(table)


def _of_pandas(series: Any) -> Any:
    """A column of pandas for Arrow. Without pyarrow, pandas cannot give it."""
    if (series.dtype.kind == "f" or hasattr(series, "cat")) and series.isna().all():
        # A column without any value may have been one of texts.
        return [None] * len(series)
    try:
        import pyarrow as pa

        return pa.array(series, from_pandas=True)
    except (ImportError, OverflowError):
        # pyarrow is not there, or there are integers of Python above those of 64 bits with a sign.
        return series.astype(object).where(series.notna(), None).tolist()


def to_pandas(result: Any) -> Any:
    """A column or table of results in pandas: integers are nullable, so that none becomes a float."""
    import pandas as pd

    if isinstance(result, _nearprint.Table):
        return pd.DataFrame({name: to_pandas(result[name]) for name in result.column_names})
    numbers = _numbers(result)
    if numbers is None:
        return pd.Series(result.to_pylist(), dtype="str" if result._is_text() and int(pd.__version__.split(".")[0]) > 2 else object)
    values, is_there = numbers
    if values.dtype.kind not in "iu":
        import numpy as np

        return pd.Series(np.where(is_there, values, np.nan) if not is_there.all() else values)
    return pd.Series(pd.arrays.IntegerArray(values, ~is_there))


def like(given: Any, column: Any) -> Any:
    """A column of results: for a column of pandas as one of pandas, with its index, because pandas would take any other object for the
    value of each row.
    """
    if not _is_of(given, _Pandas.library, _Pandas.kinds):
        return column
    series = to_pandas(column)
    return series.set_axis(given.index) if hasattr(given, "index") else series


def to_numpy(result: Any, dtype: Any = None) -> Any:
    import numpy as np

    numbers = _numbers(result)
    if numbers is not None and numbers[1].all():
        return np.asarray(numbers[0], dtype=dtype)
    values = np.empty(len(result), dtype=object)
    values[:] = result.to_pylist()
    return values if dtype is None else values.astype(dtype)


def _numbers(column: Any) -> Any:
    """The values of a column of numbers, and which of them are there; None for other columns."""
    import numpy as np

    buffers = column._buffers()
    if buffers is None or buffers[0] not in (*INTEGERS, "float64"):
        return None
    name, values, is_there = buffers
    return np.frombuffer(values, dtype=name).copy(), np.frombuffer(is_there, dtype=np.uint8).astype(bool)


def to_arrow(result: Any) -> Any:
    import pyarrow as pa

    return pa.table(result) if isinstance(result, _nearprint.Table) else pa.array(result)


def to_polars(result: Any) -> Any:
    import polars as pl

    return pl.DataFrame(result) if isinstance(result, _nearprint.Table) else pl.Series(result)
