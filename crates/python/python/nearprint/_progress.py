"""How far a night is: a bar in a terminal or a notebook, or what a caller makes of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Union


class Progress(NamedTuple):
    """How far a night is."""

    step: int
    """The number of the step, from 1 on."""
    n_steps: int
    """The number of all steps; 0 if it is unknown."""
    stage: str
    """The name of the step."""
    done: int
    """How much of it is done."""
    total: int
    """How much there is in all; 0 if it is unknown."""
    unit: str
    """What is counted: `documents`, `bytes`, ..."""


Watch = Union[bool, Callable[[Progress], object], None]  # noqa: UP007
"""True for bars of tqdm, or a function that is called several times a second."""

Called = Callable[[int, int, str, int, int, str], object]


@contextlib.contextmanager
def watching(progress: Watch) -> Iterator[Called | None]:
    """What the night calls.

    Raises:
        ImportError: bars are wanted, and tqdm is not installed.
    """
    if progress is None or progress is False:
        yield None
    elif progress is True:
        bars = _Bars()
        try:
            yield bars.see
            bars.complete()
        finally:
            bars.close()
    else:
        yield lambda *now: progress(Progress(*now))


class _Bars:
    """A bar for each step."""

    def __init__(self) -> None:
        from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]

        self._make, self._bar, self._step = tqdm, None, 0

    _bar: Any

    def see(self, step: int, n_steps: int, stage: str, done: int, total: int, unit: str) -> None:
        if step != self._step or self._bar is None:
            self.complete()
            self.close()
            of_all = f"{step}/{n_steps} " if n_steps else ""
            self._bar = self._make(desc=of_all + stage, total=total or None, unit=" " + unit, unit_scale=True, dynamic_ncols=True)
            self._step = step
        self._bar.total = total or None
        self._bar.n = done
        self._bar.refresh()

    def complete(self) -> None:
        """Fills the bar: its step has ended, whatever was seen of it last."""
        if self._bar is not None and self._bar.total:
            self._bar.n = self._bar.total
            self._bar.refresh()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        self._bar = None
